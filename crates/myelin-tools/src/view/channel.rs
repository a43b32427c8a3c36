//! A topic as clients see it, and its messages.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use data_encoding::BASE64;
use myelin::Sample;
use myelin_bag::{Schema, TopicFormat};
use myelin_value::{Kind, Type};

use super::image::ImageShape;
use crate::document::{Format, leaves, type_at};

/// A topic of one type.
pub(super) struct Channel {
    pub(super) id: u64,
    pub(super) name: String,
    pub(super) type_name: String,
    /// How clients of Foxglove's protocol read its messages, or why they cannot.
    pub(super) wire: Result<Wire, String>,
    /// `None`: messages are sent as they are.
    framing: Option<TopicFormat>,
    /// Bytes in front of the sample in a message of a file.
    skipped: usize,
    /// How the page's samples are read.
    pub(super) document: Format,
    pub(super) image: Option<ImageShape>,
    /// Messages that are other processes' memory.
    held: AtomicUsize,
    /// How many messages late clients get, and those.
    keeps: usize,
    kept: Mutex<VecDeque<Arc<Message>>>,
    /// Messages that came, and those that were lost before they came.
    pub(super) came: AtomicU64,
    pub(super) lost: AtomicU64,
}

/// What a client knows of a channel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Wire {
    pub(super) encoding: String,
    pub(super) schema_name: String,
    pub(super) schema_encoding: String,
    /// In base64 where the encoding of schemas is binary.
    pub(super) schema: String,
}

/// A message of a channel.
pub(super) struct Message {
    pub(super) channel: Arc<Channel>,
    /// In ns since 1970.
    pub(super) log_ns: u64,
    /// Messages that were overwritten before it.
    pub(super) lost_before: u64,
    payload: Payload,
}

enum Payload {
    /// In its publisher's memory.
    Held(Sample<[u8]>),
    Copied(Vec<u8>),
    /// In a chunk of a file.
    Recorded(myelin_bag::Message),
}

impl Channel {
    /// A topic of a running robot, by the schema of its type.
    pub(super) fn new(
        id: u64,
        name: String,
        type_name: String,
        schema: Option<Schema<'_>>,
        document: Format,
    ) -> Channel {
        let (wire, framing) = match schema {
            None => (Err("no node has reported its schema".to_owned()), None),
            Some(schema) => wire_of(&schema),
        };
        Channel::with(id, name, type_name, wire, framing, document)
    }

    /// A topic of a file, whose messages are sent as they are.
    pub(super) fn recorded(
        id: u64,
        channel: &myelin_bag::Channel,
        schema: Option<&Schema<'_>>,
        document: Format,
        skipped: usize,
    ) -> Channel {
        let name = schema.map_or("", |it| it.name).to_owned();
        let wire = match schema {
            _ if channel.encoding == TopicFormat::OWN_ENCODING => {
                Err("only Myelin's programs read its messages".to_owned())
            }
            Some(schema) => text_of(schema).map(|text| Wire {
                encoding: channel.encoding.clone(),
                schema_name: name.clone(),
                schema_encoding: schema.encoding.to_owned(),
                schema: text,
            }),
            None if channel.encoding == "json" => Ok(Wire {
                encoding: "json".to_owned(),
                schema_name: String::new(),
                schema_encoding: String::new(),
                schema: String::new(),
            }),
            None => Err("the file has no schema of it".to_owned()),
        };
        let (topic, framing) = (channel.topic.clone(), None);
        Channel { skipped, ..Channel::with(id, topic, name, wire, framing, document) }
    }

    fn with(
        id: u64,
        name: String,
        type_name: String,
        wire: Result<Wire, String>,
        framing: Option<TopicFormat>,
        document: Format,
    ) -> Channel {
        let image = match &document {
            Format::Fields(ty) => ImageShape::of(ty),
            _ => None,
        };
        let (skipped, held, keeps, kept, came, lost) = Default::default();
        Channel {
            id,
            name,
            type_name,
            wire,
            framing,
            skipped,
            document,
            image,
            held,
            keeps,
            kept,
            came,
            lost,
        }
    }

    /// Keeps so many messages for late clients, as its publishers do.
    pub(super) fn keeping(self, messages: u32) -> Channel {
        Channel { keeps: (messages as usize).min(KEPT_MAX), ..self }
    }

    /// Keeps a message for late clients, if the topic does.
    pub(super) fn keep(&self, message: &Arc<Message>) {
        if self.keeps > 0 && message.bytes() <= KEPT_BYTES_MAX {
            let mut kept = self.lock();
            if kept.len() >= self.keeps {
                kept.pop_front();
            }
            kept.push_back(message.clone());
        }
    }

    pub(super) fn kept(&self) -> Vec<Arc<Message>> {
        self.lock().iter().cloned().collect()
    }

    pub(super) fn forget(&self) {
        self.lock().clear();
    }

    fn lock(&self) -> MutexGuard<'_, VecDeque<Arc<Message>>> {
        self.kept.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The paths of its numbers that can be drawn, the first [`FIELDS_MAX`].
    pub(super) fn numbers(&self) -> Vec<String> {
        let Format::Fields(ty) = &self.document else { return Vec::new() };
        let mut paths = Vec::new();
        for path in leaves(ty) {
            let Ok(leaf) = type_at(ty, &path) else { continue };
            push_numbers(leaf, &path, &mut paths);
            if paths.len() >= FIELDS_MAX {
                paths.truncate(FIELDS_MAX);
                break;
            }
        }
        paths
    }
}

impl Message {
    /// A message of a sample. Its memory is kept as long as few others are: a client that reads
    /// slowly takes memory of this process, and not of the publisher.
    pub(super) fn of_sample(channel: Arc<Channel>, log_ns: u64, sample: Sample<[u8]>) -> Message {
        let lost_before = sample.lost_before();
        // ORDER: Relaxed: a count that guards nothing. Only one thread adds to it.
        let is_small = sample.len() <= COPIED_BYTES_MAX || channel.keeps > 0;
        if is_small || channel.held.load(Ordering::Relaxed) >= HELD_MAX {
            return Message::copied(channel, log_ns, lost_before, sample.to_vec());
        }
        channel.held.fetch_add(1, Ordering::Relaxed);
        Message { channel, log_ns, lost_before, payload: Payload::Held(sample) }
    }

    pub(super) fn copied(
        channel: Arc<Channel>,
        log_ns: u64,
        lost_before: u64,
        bytes: Vec<u8>,
    ) -> Message {
        Message { channel, log_ns, lost_before, payload: Payload::Copied(bytes) }
    }

    pub(super) fn recorded(channel: Arc<Channel>, message: myelin_bag::Message) -> Message {
        let log_ns = message.head.log_ns;
        Message { channel, log_ns, lost_before: 0, payload: Payload::Recorded(message.alone()) }
    }

    /// As it was published or recorded.
    fn data(&self) -> &[u8] {
        match &self.payload {
            Payload::Held(sample) => sample.as_bytes(),
            Payload::Copied(bytes) => bytes,
            Payload::Recorded(message) => message.data(),
        }
    }

    /// What the channel's document reads.
    pub(super) fn sample(&self) -> &[u8] {
        self.data().get(self.channel.skipped..).unwrap_or_default()
    }

    /// The parts of what clients of Foxglove's protocol get.
    pub(super) fn parts<'a>(&'a self, scratch: &'a mut Vec<u8>) -> [&'a [u8]; 4] {
        match &self.channel.framing {
            Some(framing) => framing.message(self.data(), scratch),
            None => [self.data(), &[], &[], &[]],
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.data().len()
    }
}

impl Drop for Message {
    fn drop(&mut self) {
        if let Payload::Held(_) = self.payload {
            // ORDER: Relaxed: as in `of_sample`.
            self.channel.held.fetch_sub(1, Ordering::Relaxed);
        }
    }
}

/// How samples of this schema are sent.
fn wire_of(schema: &Schema<'_>) -> (Result<Wire, String>, Option<TopicFormat>) {
    let foreign = |encoding: &str, schema_encoding: &str| {
        let wire = text_of(&Schema { encoding: schema_encoding, ..*schema }).map(|text| Wire {
            encoding: encoding.to_owned(),
            schema_name: schema.name.to_owned(),
            schema_encoding: schema_encoding.to_owned(),
            schema: text,
        });
        (wire, None)
    };
    match schema.encoding {
        "protobuf" => foreign("protobuf", "protobuf"),
        "flatbuffer" | "flatbuffers" => foreign("flatbuffer", "flatbuffer"),
        "json" | "jsonschema" | "application/json" => foreign("json", "jsonschema"),
        "ros2idl" | "omgidl" => foreign("cdr", schema.encoding),
        _ => {
            let format = TopicFormat::new(schema);
            let channel = format.channel("", 1);
            if channel.encoding != "cdr" {
                let why = format.not_cdr().unwrap_or("its encoding is not known to viewers");
                return (Err(why.to_owned()), None);
            }
            let of = format.schema();
            let text = String::from_utf8_lossy(&of.text).into_owned();
            let (schema_name, schema_encoding) = (of.name.clone(), of.encoding.clone());
            let wire =
                Wire { encoding: channel.encoding, schema_name, schema_encoding, schema: text };
            (Ok(wire), Some(format))
        }
    }
}

/// A schema in JSON.
fn text_of(schema: &Schema<'_>) -> Result<String, String> {
    match schema.encoding {
        "protobuf" | "flatbuffer" => Ok(BASE64.encode(schema.text)),
        _ => match std::str::from_utf8(schema.text) {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err("its schema is not UTF-8".to_owned()),
        },
    }
}

/// The numbers of a leaf: itself, or the elements of a short array.
fn push_numbers(ty: &Type, path: &str, to: &mut Vec<String>) {
    match ty.kind() {
        Kind::Primitive(_) => to.push(path.to_owned()),
        Kind::Array { element, length } if *length <= ELEMENTS_MAX => {
            for index in 0..*length {
                push_numbers(element, &format!("{path}[{index}]"), to);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
impl Channel {
    pub(super) fn test(id: u64) -> Arc<Channel> {
        let (name, type_name) = (format!("topic{id}"), String::new());
        Arc::new(Channel::new(id, name, type_name, None, Format::Bytes))
    }
}

/// Smaller samples are copied at once: their slots are free again.
const COPIED_BYTES_MAX: usize = 4096;
/// Samples of a topic whose memory is kept for all clients together.
const HELD_MAX: usize = 4;
/// Messages of a topic that late clients get, and their size.
const KEPT_MAX: usize = 64;
const KEPT_BYTES_MAX: usize = 1 << 20;
/// Numbers of a topic that can be drawn.
const FIELDS_MAX: usize = 128;
/// Of an array whose elements can be drawn.
const ELEMENTS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    fn channel(schema: Schema<'_>) -> Channel {
        let ty = schema.parse().map(Arc::new);
        let document = ty.map_or(Format::Bytes, |ty| Format::of_type(&ty));
        Channel::new(1, "a".to_owned(), "A".to_owned(), Some(schema), document)
    }

    #[test]
    fn plain_data_is_sent_as_cdr_without_a_change() {
        let imu = channel(Schema::layout("Imu{stamp: u64 @0, a: [f64; 3] @8, on: u8 @32} 40"));
        let wire = imu.wire.clone().unwrap();
        assert_eq!((&*wire.encoding, &*wire.schema_encoding), ("cdr", "ros2msg"));
        assert_eq!(wire.schema_name, "myelin/msg/Imu");
        assert_eq!(imu.numbers(), ["stamp", "a[0]", "a[1]", "a[2]", "on"]);
        let message = Message::copied(Arc::new(imu), 0, 0, (0..40).collect());
        let sent = message.parts(&mut Vec::new()).concat();
        assert_eq!((&sent[..4], &sent[4..]), ([0, 1, 0, 0].as_slice(), message.sample()));
    }

    #[test]
    fn what_viewers_cannot_read_has_a_reason() {
        let packed = channel(Schema::layout("Packed{a: u8 @0, b: u64 @1} 9"));
        assert!(packed.wire.unwrap_err().contains("begins at byte 1"));
        let none = Channel::test(1);
        assert!(none.wire.as_ref().unwrap_err().contains("schema"));
        let proto = channel(Schema::new("protobuf", "robot.Pose", &[1, 2, 255]));
        assert_eq!(proto.wire.unwrap().schema, "AQL/");
    }
}
