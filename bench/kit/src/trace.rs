//! The messages of a recording: when each is due, on which topic, and how many bytes it has.
//!
//! The lab writes a trace once, and the processes of a run read it. All numbers are little-endian:
//!
//! ```text
//! offset 0   "myelinT1"                   8 bytes
//!        8   topics                       u64
//!       16   messages, with the warm-up   u64
//!       24   messages of the warm-up      u64
//!       32   begin_ns                     u64   when the measured part begins
//!       40   message 0 │ message 1 │ …          16 bytes each: due_ns u64 │ topic u32 │ bytes u32
//! ```
//! Times are in nanoseconds after the start of the warm-up and never decrease. Topics are numbers
//! from 0; `plan.json` has their names. The bytes are those of the payload, so a message has
//! [`HEADER_BYTES`](crate::message::HEADER_BYTES) more.

use std::path::Path;
use std::sync::Arc;

use crate::error::Error;
use crate::protocol::{Prepare, Workload};

/// A message of a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct TraceMessage {
    /// When it is due, in nanoseconds after the start of the warm-up.
    pub due_ns: u64,
    /// Its topic.
    pub topic: u32,
    /// Bytes of its payload.
    pub bytes: u32,
    /// How many messages of its topic come before it.
    pub place: u32,
}

/// The messages of a recording; see the module.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    topics: u32,
    warmup_messages: usize,
    begin_ns: u64,
    messages: Vec<TraceMessage>,
}

impl Trace {
    /// A trace of `topics` topics. The first `warmup_messages` messages are the warm-up, and the
    /// measured part begins at `begin_ns`. `place` of each message is filled in here.
    pub fn new(
        topics: u32,
        warmup_messages: usize,
        begin_ns: u64,
        mut messages: Vec<TraceMessage>,
    ) -> Result<Self, Error> {
        let wrong = |what: &str| Err(Error::new(format!("trace: {what}")));
        if topics == 0 || topics > TOPICS_MAX {
            return wrong("its number of topics is out of range");
        }
        if warmup_messages > messages.len() || messages.len() > MESSAGES_MAX {
            return wrong("its number of messages is out of range");
        }
        let mut next = vec![0u32; topics as usize];
        let mut before_ns = 0;
        for (index, message) in messages.iter_mut().enumerate() {
            let Some(place) = next.get_mut(message.topic as usize) else {
                return wrong("a message has an unknown topic");
            };
            let is_measured = index >= warmup_messages;
            if message.due_ns < before_ns || (is_measured && message.due_ns < begin_ns) {
                return wrong("its times are out of order");
            }
            (message.place, before_ns) = (*place, message.due_ns);
            *place += 1;
        }
        Ok(Trace { topics, warmup_messages, begin_ns, messages })
    }

    /// Reads the bytes of a trace file.
    pub fn parse(bytes: &[u8]) -> Result<Self, Error> {
        let short = || Error::new("trace: not a trace file of this version");
        let (head, rest) = bytes.split_at_checked(HEAD_BYTES).ok_or_else(short)?;
        let word = |at: usize| u64::from_le_bytes(head[at..at + 8].try_into().expect("8 bytes"));
        let (all, tail) = rest.as_chunks::<MESSAGE_BYTES>();
        if head[..8] != *MAGIC || !tail.is_empty() || word(16) != all.len() as u64 {
            return Err(short());
        }
        let message = |bytes: &[u8; MESSAGE_BYTES]| {
            let number = u128::from_le_bytes(*bytes);
            let (due_ns, topic, bytes) =
                (number as u64, (number >> 64) as u32, (number >> 96) as u32);
            TraceMessage { due_ns, topic, bytes, place: 0 }
        };
        let topics = u32::try_from(word(8)).unwrap_or(u32::MAX);
        let warmup_messages = usize::try_from(word(24)).unwrap_or(usize::MAX);
        Trace::new(topics, warmup_messages, word(32), all.iter().map(message).collect())
    }

    /// The bytes of a trace file.
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut bytes = Vec::with_capacity(HEAD_BYTES + self.messages.len() * MESSAGE_BYTES);
        bytes.extend(MAGIC);
        let (all, warm) = (self.messages.len() as u64, self.warmup_messages as u64);
        for word in [u64::from(self.topics), all, warm, self.begin_ns] {
            bytes.extend(word.to_le_bytes());
        }
        for message in &self.messages {
            bytes.extend(message.due_ns.to_le_bytes());
            bytes.extend(message.topic.to_le_bytes());
            bytes.extend(message.bytes.to_le_bytes());
        }
        bytes
    }

    /// Reads a trace file.
    pub fn read(path: &Path) -> Result<Self, Error> {
        let of_file = |text: String| Error::new(format!("{}: {text}", path.display()));
        let bytes = std::fs::read(path).map_err(|error| of_file(error.to_string()))?;
        Trace::parse(&bytes).map_err(|error| of_file(error.to_string()))
    }

    /// The trace of a replay; `None` for other workloads.
    pub fn of(prepare: &Prepare) -> Result<Option<Arc<Self>>, Error> {
        if prepare.workload != Workload::Replay {
            return Ok(None);
        }
        let recording = prepare.recording.as_ref();
        let recording = recording.ok_or_else(|| Error::new("protocol: a replay of nothing"))?;
        let trace = Trace::read(&recording.trace)?;
        let agrees = trace.topics == prepare.topics
            && trace.warmup_messages as u64 == prepare.warmup_messages
            && prepare.publishers <= 1;
        if !agrees {
            return Err(Error::new("protocol: the trace belongs to another run"));
        }
        Ok(Some(Arc::new(trace)))
    }

    /// Number of topics.
    pub fn topics(&self) -> u32 {
        self.topics
    }

    /// Number of messages of the warm-up.
    pub fn warmup_messages(&self) -> usize {
        self.warmup_messages
    }

    /// When the measured part begins, after the start of the warm-up.
    pub fn begin_ns(&self) -> u64 {
        self.begin_ns
    }

    /// Message `count`, counting the warm-up; `None` beyond the last.
    #[inline]
    pub fn get(&self, count: u64) -> Option<&TraceMessage> {
        self.messages.get(usize::try_from(count).ok()?)
    }

    /// The messages of the warm-up.
    pub fn warm_up(&self) -> &[TraceMessage] {
        &self.messages[..self.warmup_messages]
    }

    /// The measured messages.
    pub fn measured(&self) -> &[TraceMessage] {
        &self.messages[self.warmup_messages..]
    }

    /// Bytes of the largest payload of each topic.
    pub fn largest(&self) -> Vec<u64> {
        let mut largest = vec![0; self.topics as usize];
        for message in &self.messages {
            let topic = &mut largest[message.topic as usize];
            *topic = u64::from(message.bytes).max(*topic);
        }
        largest
    }
}

const MAGIC: &[u8; 8] = b"myelinT1";
const HEAD_BYTES: usize = 40;
const MESSAGE_BYTES: usize = 16;
/// More topics than any robot has; every receiving end has a window for each.
pub const TOPICS_MAX: u32 = 10_000;
/// Limit of the messages of a trace: 96 MB of memory in each process.
pub const MESSAGES_MAX: usize = 4_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn message(due_ns: u64, topic: u32, bytes: u32) -> TraceMessage {
        TraceMessage { due_ns, topic, bytes, place: 0 }
    }

    fn trace() -> Trace {
        let messages =
            vec![message(0, 1, 9), message(5, 0, 0), message(10, 1, 7), message(10, 1, u32::MAX)];
        Trace::new(2, 2, 10, messages).unwrap()
    }

    #[test]
    fn a_file_gives_the_same_trace() {
        let trace = trace();
        assert_eq!(Trace::parse(&trace.to_bytes()).unwrap(), trace);
        assert_eq!((trace.warm_up().len(), trace.measured().len()), (2, 2));
        assert_eq!(trace.largest(), [0, u64::from(u32::MAX)]);
        let places: Vec<u32> = (0..4).map(|at| trace.get(at).unwrap().place).collect();
        assert_eq!(places, [0, 0, 1, 2], "within the topic");
        assert_eq!(trace.get(4), None);
        assert_eq!(trace.get(u64::MAX), None);
    }

    #[test]
    fn what_contradicts_itself_is_refused() {
        let of = |topics, warm, begin, messages| Trace::new(topics, warm, begin, messages).is_ok();
        assert!(of(1, 0, 0, vec![message(1, 0, 1), message(1, 0, 1)]));
        assert!(!of(0, 0, 0, vec![]), "no topic");
        assert!(!of(1, 0, 0, vec![message(0, 1, 1)]), "topic 1 of 1");
        assert!(!of(1, 0, 0, vec![message(2, 0, 1), message(1, 0, 1)]), "back in time");
        assert!(!of(1, 0, 5, vec![message(4, 0, 1)]), "measured before it begins");
        assert!(!of(1, 2, 0, vec![message(4, 0, 1)]), "more warm-up than messages");
    }

    proptest! {
        #[test]
        fn no_bytes_of_a_file_are_a_panic(at in 0usize..104, value: u8, length in 0usize..105) {
            let mut bytes = trace().to_bytes();
            bytes[at] = value;
            bytes.truncate(length);
            let _ = Trace::parse(&bytes);
        }
    }
}
