//! The schemas of types, from host to host: how programs that were not compiled with a type read it.
//!
//! A node writes the schema of each type of its endpoints once, to a DDS topic that keeps it for late
//! readers. A node that wants schemas makes a reader, and gets all that are there and all that come.
//! So a node that asks for none, as most do, receives none, and nobody sends any for it.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::time::{Duration, Instant};

use myelin_dds::{History, Listener, Message, Participant, Reader, Release, Settings, Writer};
use myelin_shm::limits::{ENCODING_BYTES_MAX, SCHEMA_BYTES_MAX, SCHEMAS_BYTES_MAX};
use myelin_shm::waiting::cancel;

use super::{lock, network_error};
use crate::encapsulation::{little_endian, split};
use crate::{Error, Schema};

/// A node's end of the topic; both sides are made when they are needed.
#[derive(Default)]
pub(super) struct SchemaChannel {
    writer: Mutex<Option<Sent>>,
    reader: Mutex<Option<Reader>>,
}

struct Sent {
    writer: Writer,
    hashes: BTreeSet<u64>,
    bytes: usize,
}

/// The schemas that other hosts have sent, by the hash of their type. They are the claims of other
/// hosts, and the first one of a type counts.
#[derive(Debug, Default)]
pub(super) struct Schemas {
    received: Mutex<Received>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct Received {
    by_hash: BTreeMap<u64, Arc<Schema>>,
    bytes: usize,
}

impl SchemaChannel {
    /// Sends a schema, unless it has been sent, or too much has been.
    pub(super) fn send(
        &self,
        participant: &Arc<Participant>,
        type_hash: u64,
        schema: &Schema,
    ) -> Result<(), Error> {
        let mut writer = lock(&self.writer);
        let sent = match &mut *writer {
            Some(sent) => sent,
            none => {
                let made = Writer::create(participant, &settings(participant), Box::new(Nothing));
                let writer = made.map_err(network_error)?;
                none.insert(Sent { writer, hashes: BTreeSet::new(), bytes: 0 })
            }
        };
        let message = encode(type_hash, schema);
        let bytes = sent.bytes + message.len();
        if sent.hashes.len() == SCHEMAS_MAX
            || bytes > SCHEMAS_BYTES_MAX
            || !sent.hashes.insert(type_hash)
        {
            return Ok(());
        }
        sent.bytes = bytes;
        sent.writer
            .write(&little_endian(0), &message, Arc::new(Nothing), || {})
            .map_err(network_error)
    }

    /// Receives schemas from now on.
    pub(super) fn receive(
        &self,
        participant: &Arc<Participant>,
        schemas: &Arc<Schemas>,
    ) -> Result<(), Error> {
        let mut reader = lock(&self.reader);
        if reader.is_none() {
            let listener = Box::new(SchemaListener(schemas.clone()));
            let made = Reader::create(participant, &settings(participant), listener);
            *reader = Some(made.map_err(network_error)?);
        }
        Ok(())
    }
}

impl Schemas {
    pub(super) fn get(&self, type_hash: u64) -> Option<Arc<Schema>> {
        lock(&self.received).by_hash.get(&type_hash).cloned()
    }

    /// Waits until all of these are there, for at most `limit`.
    pub(super) fn wait_for(&self, type_hashes: &BTreeSet<u64>, limit: Duration) {
        let begin = Instant::now();
        let mut received = lock(&self.received);
        while !type_hashes.iter().all(|hash| received.by_hash.contains_key(hash)) {
            let left = limit.saturating_sub(begin.elapsed());
            if left.is_zero() || cancel::is_cancelled() {
                return;
            }
            let woken = self.changed.wait_timeout(received, cancel::slice(left));
            received = woken.unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn add(&self, type_hash: u64, schema: Schema) {
        let mut received = lock(&self.received);
        let bytes = received.bytes + schema.content.len();
        let has_room = received.by_hash.len() < RECEIVED_MAX && bytes <= RECEIVED_BYTES_MAX;
        if !has_room || received.by_hash.contains_key(&type_hash) {
            return;
        }
        received.bytes = bytes;
        received.by_hash.insert(type_hash, Arc::new(schema));
        drop(received);
        self.changed.notify_all();
    }
}

/// Takes the schemas of other hosts.
struct SchemaListener(Arc<Schemas>);

impl Listener for SchemaListener {
    fn received(&self, message: Message) -> bool {
        if let Some((type_hash, schema)) = split(message.bytes()).and_then(|(_, body)| decode(body))
        {
            self.0.add(type_hash, schema);
        }
        true
    }
}

/// A writer that needs to know nothing.
struct Nothing;

impl Listener for Nothing {}

impl Release for Nothing {
    fn released(&self, _bytes: usize) {}
}

fn settings(participant: &Participant) -> Settings {
    Settings {
        topic: SCHEMA_TOPIC[usize::from(participant.is_secured())].to_owned(),
        type_name: "myelin::Schema1".to_owned(),
        partitions: Vec::new(),
        user_data: Vec::new(),
        reliable: true,
        history: History::KeepLast(SCHEMAS_MAX as u32),
        history_late: SCHEMAS_MAX as u32,
        block_max: Duration::ZERO,
    }
}

fn encode(type_hash: u64, schema: &Schema) -> Vec<u8> {
    let encoding = schema.encoding.as_bytes();
    let hash = type_hash.to_le_bytes();
    [&hash[..], &[encoding.len() as u8], encoding, &schema.content].concat()
}

/// `None` for bytes of another form, and for what is too long.
fn decode(bytes: &[u8]) -> Option<(u64, Schema)> {
    let (type_hash, rest) = bytes.split_first_chunk()?;
    let (length, rest) = rest.split_first()?;
    let (encoding, content) = rest.split_at_checked((*length).into())?;
    let is_short = encoding.len() <= ENCODING_BYTES_MAX && content.len() <= SCHEMA_BYTES_MAX;
    let encoding = std::str::from_utf8(encoding).ok().filter(|_| is_short)?;
    let schema = Schema { encoding: encoding.into(), content: content.into() };
    Some((u64::from_le_bytes(*type_hash), schema))
}

/// Not a valid name of a user's topic.
pub(super) const SCHEMA_TOPIC: [&str; 2] = ["myelin_schemas", "rt/_myelin/schemas"];
/// How many schemas a node sends.
const SCHEMAS_MAX: usize = 1_024;
/// How many schemas of other hosts a node keeps, and how many bytes of them.
const RECEIVED_MAX: usize = 4_096;
const RECEIVED_BYTES_MAX: usize = 16 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    fn schema(content: &[u8]) -> Schema {
        Schema { encoding: "ros2msg".into(), content: content.into() }
    }

    #[test]
    fn a_schema_is_read_as_written_and_other_bytes_are_not() {
        let sent = schema(b"uint8 a");
        let bytes = encode(7, &sent);
        assert_eq!(bytes, b"\x07\0\0\0\0\0\0\0\x07ros2msguint8 a", "as nodes of 0.1 read it");
        assert_eq!(decode(&bytes), Some((7, sent)));
        for length in 0..8 + 1 + 7 {
            assert_eq!(decode(&bytes[..length]), None, "{length}");
        }
        let long = Schema { encoding: "x".repeat(ENCODING_BYTES_MAX + 1).into(), ..schema(b"") };
        assert_eq!(decode(&encode(7, &long)), None);
        assert_eq!(decode(&encode(7, &schema(&vec![0; SCHEMA_BYTES_MAX + 1]))), None);
        assert_eq!(decode(&[0, 0, 0, 0, 0, 0, 0, 0, 1, 0xff]), None, "its encoding is no text");
    }

    #[test]
    fn schemas_of_a_hostile_host_are_bounded_and_replace_none() {
        let schemas = Schemas::default();
        schemas.add(0, schema(b"first"));
        (0..2 * RECEIVED_MAX as u64).for_each(|hash| schemas.add(hash, schema(b"second")));
        assert_eq!(*schemas.get(0).unwrap().content, *b"first");
        assert_eq!(lock(&schemas.received).by_hash.len(), RECEIVED_MAX);
        let schemas = Schemas::default();
        for hash in 0..1_000 {
            schemas.add(hash, schema(&vec![0; SCHEMA_BYTES_MAX]));
        }
        assert_eq!(lock(&schemas.received).bytes, RECEIVED_BYTES_MAX);
    }

    #[test]
    fn a_wait_ends_when_all_are_there_or_the_time_is_over() {
        let schemas = Arc::new(Schemas::default());
        let adds = schemas.clone();
        let thread = std::thread::spawn(move || {
            [1, 3, 2].into_iter().for_each(|hash| adds.add(hash, schema(b"x")));
        });
        schemas.wait_for(&BTreeSet::from([1, 2, 3]), Duration::MAX);
        assert!((1..4).all(|hash| schemas.get(hash).is_some()));
        thread.join().unwrap();
        schemas.wait_for(&BTreeSet::from([4]), Duration::ZERO);
        assert!(schemas.get(4).is_none());
    }
}
