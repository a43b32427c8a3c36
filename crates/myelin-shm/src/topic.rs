//! What two endpoints must agree on, and what each may choose.

use std::time::Duration;

use crate::error::Error;
use crate::limits::{
    CELLS_MAX, CONNECTIONS_MAX, HOLDS_MAX, LOANS_MAX, NAME_BYTES_MAX, PAYLOAD_BYTES_MAX,
};

/// Names an endpoint on its host: random in the upper 40 bits (those of its node), counted below.
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
    /// A topic of messages that are serialised as a type of another system, `of`, which alone tells the
    /// type. As there, a name may have several types: endpoints of the same one are matched.
    pub fn of_messages(name: String, of: &str) -> Topic {
        let type_name = format!("{MESSAGES}{of}");
        // FNV-1a, as of layouts.
        let hash =
            |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3);
        let type_hash = type_name.bytes().fold(0xcbf2_9ce4_8422_2325, hash);
        Topic { name, type_name, type_hash }
    }

    /// Whether a type's name is of [messages](Topic::of_messages).
    pub(crate) fn is_of_messages(type_name: &str) -> bool {
        type_name.starts_with(MESSAGES)
    }

    /// How far behind a multiple of 64 a payload begins in its slot: of a message it is the body that is
    /// to be aligned, behind a header of 4 bytes.
    pub(crate) fn lead(&self) -> usize {
        if Topic::is_of_messages(&self.type_name) { 4 } else { 0 }
    }

    /// Whether endpoints of the two can match.
    pub fn fits(&self, other: &Topic) -> bool {
        self.name == other.name && self.type_hash == other.type_hash
    }

    /// Fails if a name is empty, too long or has control characters. A type may have none.
    pub fn check(&self) -> Result<(), Error> {
        check_name("a topic's name", &self.name)?;
        if self.type_name.is_empty() {
            Ok(())
        } else {
            check_name("a type's name", &self.type_name)
        }
    }
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reliability {
    /// The oldest sample goes, the subscriber learns how many it lost, the publisher never waits.
    BestEffort,
    /// The publisher waits for the slowest subscriber that asks for it, up to its time limit.
    Reliable,
}

/// What a reliable publish does about a subscriber for which it has waited in vain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Passes it over: the late one alone loses samples, until it has caught up. Nobody waits for it
    /// meanwhile.
    PassOver,
    /// Fails, and nothing is published.
    Fail,
}

/// What a publisher chooses.
#[derive(Clone, Copy, Debug)]
pub struct PublisherQos {
    /// How many of the newest samples a subscriber can be behind without a loss; 1 to 65,535.
    pub depth: u32,
    /// Whether to wait for reliable subscribers.
    pub reliability: Reliability,
    /// How long a reliable publish waits at most.
    pub block_max: Duration,
    /// What it does then.
    pub late: Late,
    /// How many of the newest samples are kept for subscribers that come later; at most `depth`.
    pub history: u32,
    /// Loans that may be out at once, 1 to 4,096.
    pub loans_max: u32,
    /// Largest payload, in bytes.
    pub payload_bytes_max: u64,
    /// Largest sum of slot segments, in bytes.
    pub memory_max: u64,
    /// The publisher means to publish at least once in this time; `None` for no promise.
    pub deadline: Option<Duration>,
    /// Whether each sample says when it was published; costs a reading of the clock.
    pub timestamps: bool,
}

impl Default for PublisherQos {
    fn default() -> Self {
        PublisherQos {
            depth: 8,
            reliability: Reliability::BestEffort,
            block_max: Duration::from_secs(1),
            late: Late::PassOver,
            history: 0,
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
        range(topic, "history", u64::from(self.history), 0..depth + 1, "it is at most the depth")?;
        let loans = 1..u64::from(LOANS_MAX) + 1;
        range(topic, "loans_max", u64::from(self.loans_max), loans, "it is 1 to 4,096")?;
        let payload = 0..PAYLOAD_BYTES_MAX + 1;
        range(topic, "payload_bytes_max", self.payload_bytes_max, payload, "it is at most 2^40 − 1")
    }
}

/// What a subscriber chooses.
#[derive(Clone, Copy, Debug)]
pub struct SubscriberQos {
    /// How many of the newest samples of each publisher it wants to be able to be behind; the
    /// publisher's depth bounds it.
    pub depth: u32,
    /// Whether publishers that are reliable wait for it.
    pub reliability: Reliability,
    /// How many samples published before the match it wants, as far as the publisher keeps them.
    pub history: u32,
    /// Samples in slots it may hold at once, 1 to 4,096.
    pub held_max: u32,
    /// Publishers it may be matched with, 1 to 4,096. Memory is taken for those that are there.
    pub publishers_max: u32,
    /// Whether it is matched with publishers of other nodes alone.
    pub ignore_own_node: bool,
    /// An event is raised for a publisher that publishes nothing for this long.
    pub deadline: Option<Duration>,
    /// An event is raised for a publisher that neither publishes nor asserts itself for this long.
    pub liveliness: Option<Duration>,
    /// Whether the subscriber has a file descriptor that becomes readable when there is a sample.
    pub descriptor: bool,
}

impl Default for SubscriberQos {
    fn default() -> Self {
        SubscriberQos {
            depth: 8,
            reliability: Reliability::BestEffort,
            history: 0,
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
        range(topic, "held_max", u64::from(self.held_max), held, "it is 1 to 4,096")?;
        let publishers = 1..u64::from(CONNECTIONS_MAX) + 1;
        range(
            topic,
            "publishers_max",
            u64::from(self.publishers_max),
            publishers,
            "it is 1 to 4,096",
        )
    }
}

/// What an endpoint's node tells all others of its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AnnouncedQos {
    /// See [`PublisherQos::depth`] and [`SubscriberQos::depth`].
    pub depth: u32,
    /// Whether a publisher waits, or a subscriber asks to be waited for.
    pub reliability: Reliability,
    /// See [`PublisherQos::history`] and [`SubscriberQos::history`].
    pub history: u32,
}

impl From<&PublisherQos> for AnnouncedQos {
    fn from(qos: &PublisherQos) -> Self {
        let PublisherQos { depth, reliability, history, .. } = *qos;
        AnnouncedQos { depth, reliability, history }
    }
}

impl From<&SubscriberQos> for AnnouncedQos {
    fn from(qos: &SubscriberQos) -> Self {
        let SubscriberQos { depth, reliability, history, .. } = *qos;
        AnnouncedQos { depth, reliability, history }
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

/// What the name of a type of messages begins with.
const MESSAGES: &str = "CDR ";
const DEPTHS: &str = "it is 1 to 65,535";
