//! Topics: the name and type that two endpoints must share, and the settings that each may choose.

use std::time::Duration;

use crate::error::Error;
use crate::fnv::Fnv;
use crate::limits::{
    CELLS_MAX, CONNECTIONS_MAX, HOLDS_MAX, LOANS_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX,
};

/// An endpoint's id on its host: random in the upper 40 bits (those of its node), counted below.
pub type EndpointId = u64;

/// Name and type of a topic.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Topic {
    /// The topic's name, 1 to 255 bytes.
    pub name: String,
    /// The type's name, at most 255 bytes; for people.
    pub type_name: String,
    /// Hash of the type's layout; endpoints with different hashes do not match.
    pub type_hash: u64,
}

impl Topic {
    /// A topic of messages that are serialised as a type of another system. The name of the type,
    /// `of`, is its only identity. As in that system, a topic's name may have several types:
    /// endpoints with the same type match.
    pub fn of_messages(name: String, of: &str) -> Topic {
        let type_name = format!("{MESSAGES}{of}");
        let type_hash = Fnv::BEGIN.bytes(type_name.as_bytes()).finish();
        Topic { name, type_name, type_hash }
    }

    /// Whether a type's name is that of [messages](Topic::of_messages).
    pub(crate) fn is_of_messages(type_name: &str) -> bool {
        message_type(type_name).is_some()
    }

    /// How far behind a multiple of 64 a payload begins in its slot: in a message the body is to be
    /// aligned, behind a header of 4 bytes.
    pub(crate) fn payload_offset(&self) -> usize {
        if Topic::is_of_messages(&self.type_name) { 4 } else { 0 }
    }

    /// Whether endpoints of the two topics can match.
    pub fn fits(&self, other: &Topic) -> bool {
        self.name == other.name && self.type_hash == other.type_hash
    }

    /// Fails if a name is empty, too long or has control characters. A type's name may be empty.
    pub fn check(&self) -> Result<(), Error> {
        check_name("a topic's name", &self.name)?;
        if self.type_name.is_empty() {
            Ok(())
        } else {
            check_name("a type's name", &self.type_name)
        }
    }
}

/// The type of the other system, if a type's name is that of [messages](Topic::of_messages).
pub fn message_type(type_name: &str) -> Option<&str> {
    type_name.strip_prefix(MESSAGES)
}

/// Fails if a name is empty, too long or has control characters.
///
/// # Errors
/// [`Error::Setting`] of `field`.
pub fn check_name(field: &'static str, name: &str) -> Result<(), Error> {
    let fits = (1..=NAME_BYTES_MAX).contains(&name.len());
    if fits && !name.chars().any(char::is_control) {
        return Ok(());
    }
    let value = format!("{name:?} ({} bytes)", name.len());
    let remedy = "a name has 1 to 255 bytes and no control characters";
    Err(Error::Setting { topic: None, field, value, remedy })
}

/// Whether the publisher waits for a subscriber that is behind.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reliability {
    /// The oldest sample is dropped, the subscriber learns how many it lost, and the publisher
    /// never waits.
    #[default]
    BestEffort,
    /// The publisher waits for the slowest reliable subscriber, up to its time limit.
    Reliable,
}

/// The action of a reliable publish for a subscriber that is still behind at the time limit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Passes it over: only the late subscriber loses samples, until it has caught up. No publish
    /// waits for it meanwhile.
    PassOver,
    /// Fails, and publishes nothing.
    Fail,
}

/// A publisher's settings.
#[derive(Clone, Copy, Debug)]
pub struct PublisherQos {
    /// How many of the newest samples a subscriber can be behind without a loss; 1 to 65,535.
    pub depth: u32,
    /// Whether to wait for reliable subscribers.
    pub reliability: Reliability,
    /// How long a reliable publish waits at most.
    pub block_max: Duration,
    /// What it does after that time.
    pub late: Late,
    /// How many of the newest samples are kept for late subscribers; at most `depth`.
    pub transient_local: u32,
    /// How many loans there may be at once, 1 to 4,096.
    pub loans_max: u32,
    /// Largest payload, in bytes.
    pub payload_bytes_max: u64,
    /// Largest sum of slot segments, in bytes.
    pub memory_max: u64,
    /// The publisher intends to publish at least once in this time; `None` for no deadline.
    pub deadline: Option<Duration>,
    /// Whether each sample carries its time; each publish then reads the clock.
    pub timestamps: bool,
}

impl Default for PublisherQos {
    fn default() -> Self {
        PublisherQos {
            depth: 8,
            reliability: Reliability::BestEffort,
            block_max: Duration::from_secs(1),
            late: Late::PassOver,
            transient_local: 0,
            loans_max: 8,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            memory_max: 1 << 40,
            deadline: None,
            timestamps: false,
        }
    }
}

impl PublisherQos {
    /// Fails with the name of the topic and of a field that is out of range.
    pub fn check(&self, topic: &Topic) -> Result<(), Error> {
        let depth = u64::from(self.depth);
        range(topic, "depth", depth, 1..CELLS_MAX, DEPTHS)?;
        range(
            topic,
            "transient_local",
            u64::from(self.transient_local),
            0..depth + 1,
            "use at most the depth",
        )?;
        let loans = 1..u64::from(LOANS_MAX) + 1;
        range(topic, "loans_max", u64::from(self.loans_max), loans, "use 1 to 4,096")?;
        let payload = 0..PAYLOAD_BYTES_MAX + 1;
        range(topic, "payload_bytes_max", self.payload_bytes_max, payload, "use at most 2^40 − 1")
    }
}

/// A subscriber's settings.
#[derive(Clone, Copy, Debug)]
pub struct SubscriberQos {
    /// How many of the newest samples of each publisher it may be behind without a loss; the
    /// publisher's depth bounds it.
    pub depth: u32,
    /// Whether reliable publishers wait for it.
    pub reliability: Reliability,
    /// How many samples published before the match it requests, as far as the publisher keeps them.
    pub transient_local: u32,
    /// How many samples in slots it may hold at once, 1 to 4,096.
    pub held_max: u32,
    /// How many publishers it may be matched with, 1 to 4,096. Memory is allocated only for
    /// existing ones.
    pub publishers_max: u32,
    /// Whether it is matched only with publishers of other nodes.
    pub ignore_own_node: bool,
    /// An event is raised for a publisher that publishes nothing for so long.
    pub deadline: Option<Duration>,
    /// An event is raised for a publisher that neither publishes nor asserts its liveliness for so
    /// long.
    pub liveliness: Option<Duration>,
    /// Whether the subscriber has a file descriptor that becomes readable when there is a sample.
    pub descriptor: bool,
}

impl Default for SubscriberQos {
    fn default() -> Self {
        SubscriberQos {
            depth: 8,
            reliability: Reliability::BestEffort,
            transient_local: 0,
            held_max: 16,
            publishers_max: 16,
            ignore_own_node: false,
            deadline: None,
            liveliness: None,
            descriptor: false,
        }
    }
}

impl SubscriberQos {
    /// Fails with the name of the topic and of a field that is out of range.
    pub fn check(&self, topic: &Topic) -> Result<(), Error> {
        range(topic, "depth", u64::from(self.depth), 1..CELLS_MAX, DEPTHS)?;
        let held = 1..u64::from(HOLDS_MAX) + 1;
        range(topic, "held_max", u64::from(self.held_max), held, "use 1 to 4,096")?;
        let publishers = 1..u64::from(CONNECTIONS_MAX) + 1;
        range(topic, "publishers_max", u64::from(self.publishers_max), publishers, "use 1 to 4,096")
    }
}

fn range(
    topic: &Topic,
    field: &'static str,
    value: u64,
    allowed: std::ops::Range<u64>,
    remedy: &'static str,
) -> Result<(), Error> {
    if allowed.contains(&value) {
        return Ok(());
    }
    let (topic, value) = (Some(topic.name.clone()), value.to_string());
    Err(Error::Setting { topic, field, value, remedy })
}

/// The prefix of the type names of messages.
const MESSAGES: &str = "CDR ";
const DEPTHS: &str = "use 1 to 65,535";
