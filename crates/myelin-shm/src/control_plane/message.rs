//! The messages between nodes: one message for each datagram, little-endian, with the kind in the
//! first byte.
//!
//! The bytes come from another process: everything is checked, every allocation is bounded by the
//! message's own length, and left-over bytes are an error. Descriptors travel beside the bytes
//! (`link`); [`ControlMessage::descriptors`] says how many belong to a message.

use std::time::Duration;

use crate::control_plane::protocol::Pair;
use crate::control_plane::protocol::graph::{MatchInfo, MatchState};
use crate::error::Error;
use crate::layout::VERSION;
use crate::limits::{
    ATTRIBUTES_BYTES_MAX, ATTRIBUTES_MAX, MESSAGE_SCHEMA_BYTES_MAX, MESSAGE_SEGMENTS_MAX,
    NAME_BYTES_MAX,
};
use crate::record::{
    AnnouncedQos, Attributes, EndpointRecord, Kind, Matching, Mismatch, NodeRecord, Setting,
};
use crate::topic::{EndpointId, Reliability, Topic};

/// One message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ControlMessage {
    /// The first message in each direction: the sender. Its bytes begin with magic and version in
    /// all versions of the protocol.
    Hello { node: u64, record: NodeRecord },
    /// All endpoints that existed at the time of the Hello have been announced.
    Ready,
    /// Announces an endpoint.
    Announced { endpoint: EndpointId, record: EndpointRecord },
    /// The endpoint has left; a subscriber holds nothing any more.
    Retracted { endpoint: EndpointId },
    /// To a matching subscriber. With the publication segment.
    Offer { pair: Pair },
    /// Slot segments of a publisher, for all subscribers with an offer. With one descriptor each.
    Segments { publisher: EndpointId, segments: Vec<SegmentSize> },
    /// The answer to an offer. With subscription segment, wake word, the two segments and the pipe
    /// of the wake table and perhaps a wake end.
    Accept { pair: Pair, connection: u32, wake_pipe: bool },
    /// From now on the publisher looks at the subscriber.
    Matched { pair: Pair, start: u64 },
    /// The publisher's side ends this one match, or does not begin it.
    Withdrawn { pair: Pair, reason: String },
    /// The subscriber's side ends this one match, or does not begin it.
    Declined { pair: Pair, reason: String },
    /// The subscriber has declined an offer before, and could take another one now.
    RequestOffer { pair: Pair },
    /// The node leaves in good order: the end of the link is not a death.
    Leaving,
    /// Requests the messages below, up to `Answered`. The next query comes after that. `from`: the
    /// least id of the endpoints whose segments are requested.
    Query { from: EndpointId },
    /// Requests the schema of one type: `Schema` if there is one, then `Answered`. As a `Query`.
    QuerySchema { type_hash: u64 },
    /// The segments in which endpoints count, with one descriptor each. In the order of the ids.
    Counted { endpoints: Vec<EndpointId> },
    /// The states of matches, of as many as fit into a message. In the order of the ids.
    MatchesReported { matches: Vec<MatchInfo> },
    /// The next part of a type's schema. In the order of the hashes.
    Schema { type_hash: u64, encoding: String, part: Vec<u8>, is_last: bool },
    /// The end of the answer, which is complete or was cut off at a limit.
    Answered { is_complete: bool },
    /// Requests a publisher's ring, if `from` is 0, and its slot segments from this number on, for
    /// observers. The next such request comes after the last part of the answer.
    Observe { publisher: EndpointId, from: u32 },
    /// A part of the answer: perhaps the ring, then slot segments in order. With one descriptor
    /// each. A publisher that has left has neither.
    Observed { publisher: EndpointId, has_ring: bool, segments: Vec<SegmentSize>, is_last: bool },
}

/// Geometry of a slot segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SegmentSize {
    /// Its number within the publisher.
    pub(crate) number: u32,
    /// How many slots.
    pub(crate) slots: u32,
    /// Bytes of each.
    pub(crate) slot_bytes: u64,
}

impl ControlMessage {
    /// How many descriptors belong to it.
    pub(crate) fn descriptors(&self) -> usize {
        match self {
            ControlMessage::Offer { .. } => 1,
            ControlMessage::Segments { segments, .. } => segments.len(),
            ControlMessage::Counted { endpoints } => endpoints.len(),
            ControlMessage::Observed { has_ring, segments, .. } => {
                usize::from(*has_ring) + segments.len()
            }
            ControlMessage::Accept { wake_pipe, .. } => PASSED_MIN + usize::from(*wake_pipe),
            _ => 0,
        }
    }

    /// The endpoint whose node alone may send it.
    pub(crate) fn sender(&self) -> Option<EndpointId> {
        match self {
            ControlMessage::Retracted { endpoint } => Some(*endpoint),
            ControlMessage::Segments { publisher, .. } => Some(*publisher),
            ControlMessage::Offer { pair }
            | ControlMessage::Matched { pair, .. }
            | ControlMessage::Withdrawn { pair, .. } => Some(pair.publisher),
            ControlMessage::Accept { pair, .. }
            | ControlMessage::Declined { pair, .. }
            | ControlMessage::RequestOffer { pair } => Some(pair.subscriber),
            _ => None,
        }
    }

    /// The message's bytes, at most [`MESSAGE_BYTES_MAX`].
    pub(crate) fn encode(&self) -> Vec<u8> {
        let mut to = Vec::with_capacity(64);
        to.push(self.kind());
        match self {
            ControlMessage::Hello { node, record } => {
                put_words(&mut to, &[MAGIC, VERSION, *node]);
                put_node(&mut to, record);
            }
            ControlMessage::Ready | ControlMessage::Leaving => {}
            ControlMessage::Announced { endpoint, record } => {
                put_words(&mut to, &[*endpoint]);
                put_endpoint(&mut to, record);
            }
            ControlMessage::Retracted { endpoint } => put_words(&mut to, &[*endpoint]),
            ControlMessage::Offer { pair } | ControlMessage::RequestOffer { pair } => {
                put_pair(&mut to, *pair);
            }
            ControlMessage::Segments { publisher, segments } => {
                assert!(!segments.is_empty());
                put_words(&mut to, &[*publisher]);
                put_segments(&mut to, segments);
            }
            ControlMessage::Accept { pair, connection, wake_pipe } => {
                put_pair(&mut to, *pair);
                to.extend(connection.to_le_bytes());
                to.push(u8::from(*wake_pipe));
            }
            ControlMessage::Matched { pair, start } => {
                put_pair(&mut to, *pair);
                put_words(&mut to, &[*start]);
            }
            ControlMessage::Withdrawn { pair, reason }
            | ControlMessage::Declined { pair, reason } => {
                put_pair(&mut to, *pair);
                put_text(&mut to, reason);
            }
            ControlMessage::Query { from } => put_words(&mut to, &[*from]),
            ControlMessage::QuerySchema { type_hash } => put_words(&mut to, &[*type_hash]),
            ControlMessage::Counted { endpoints } => {
                assert!((1..=MESSAGE_SEGMENTS_MAX).contains(&endpoints.len()));
                to.push(endpoints.len() as u8);
                put_words(&mut to, endpoints);
            }
            ControlMessage::MatchesReported { matches } => {
                assert!((1..=usize::from(u8::MAX)).contains(&matches.len()));
                to.push(matches.len() as u8);
                matches.iter().for_each(|each| put_match(&mut to, each));
            }
            ControlMessage::Schema { type_hash, encoding, part, is_last } => {
                put_words(&mut to, &[*type_hash]);
                put_text(&mut to, encoding);
                to.extend((part.len() as u16).to_le_bytes());
                to.extend(part);
                to.push(u8::from(*is_last));
            }
            ControlMessage::Answered { is_complete } => to.push(u8::from(*is_complete)),
            ControlMessage::Observe { publisher, from } => {
                put_words(&mut to, &[*publisher]);
                to.extend(from.to_le_bytes());
            }
            ControlMessage::Observed { publisher, has_ring, segments, is_last } => {
                put_words(&mut to, &[*publisher]);
                to.push(u8::from(*has_ring));
                put_segments(&mut to, segments);
                to.push(u8::from(*is_last));
            }
        }
        debug_assert!(to.len() <= MESSAGE_BYTES_MAX);
        to
    }

    /// The message for these bytes.
    ///
    /// # Errors
    /// [`Error::LayoutVersion`] for a Hello of another version, [`Error::PeerCorrupt`] for bytes
    /// that `encode` does not produce.
    pub(crate) fn decode(bytes: &[u8]) -> Result<ControlMessage, Error> {
        let mut from = Rest(bytes);
        let message = from.message()?;
        match from.0.is_empty() {
            true => Ok(message),
            false => Err(Error::PeerCorrupt { what: "a message too long for its kind" }),
        }
    }

    fn kind(&self) -> u8 {
        match self {
            ControlMessage::Hello { .. } => 1,
            ControlMessage::Ready => 2,
            ControlMessage::Announced { .. } => 3,
            ControlMessage::Retracted { .. } => 4,
            ControlMessage::Offer { .. } => 5,
            ControlMessage::Segments { .. } => 6,
            ControlMessage::Accept { .. } => 7,
            ControlMessage::Matched { .. } => 8,
            ControlMessage::Withdrawn { .. } => 9,
            ControlMessage::Declined { .. } => 10,
            ControlMessage::Leaving => 11,
            ControlMessage::RequestOffer { .. } => 12,
            ControlMessage::Query { .. } => 13,
            ControlMessage::Counted { .. } => 14,
            ControlMessage::MatchesReported { .. } => 15,
            ControlMessage::Schema { .. } => 16,
            ControlMessage::Answered { .. } => 17,
            ControlMessage::Observe { .. } => 18,
            ControlMessage::Observed { .. } => 19,
            ControlMessage::QuerySchema { .. } => 20,
        }
    }
}

/// A node with the numbers of its process and its user.
pub(crate) fn encode_node(node: u64, numbers: [u32; 2], record: &NodeRecord) -> Vec<u8> {
    let mut to = Vec::new();
    put_words(&mut to, &[node]);
    numbers.iter().for_each(|number| to.extend(number.to_le_bytes()));
    put_node(&mut to, record);
    to
}

/// The opposite of [`encode_node`].
pub(crate) fn decode_node(bytes: &[u8]) -> Result<(u64, [u32; 2], NodeRecord), Error> {
    let mut from = Rest(bytes);
    let node = (from.u64()?, [from.u32()?, from.u32()?], from.node()?);
    match from.0.is_empty() {
        true => Ok(node),
        false => Err(Error::PeerCorrupt { what: "a node too long" }),
    }
}

/// The minimum number of descriptors that a subscriber passes.
pub(crate) const PASSED_MIN: usize = 5;

/// How many of these matches fit into a message: at least one, if there are any.
pub(crate) fn fitting_matches(matches: &[MatchInfo]) -> usize {
    let mut bytes = Vec::with_capacity(MESSAGE_BYTES_MAX);
    let fits = |each: &&MatchInfo| {
        put_match(&mut bytes, each);
        bytes.len() + 2 <= MESSAGE_BYTES_MAX
    };
    matches.iter().take(usize::from(u8::MAX)).take_while(fits).count()
}

/// The longest beginning of `text` that fits into a message.
pub(crate) fn fitting(text: &str) -> &str {
    &text[..text.floor_char_boundary(NAME_BYTES_MAX)]
}

fn put_words(to: &mut Vec<u8>, words: &[u64]) {
    to.extend(words.iter().flat_map(|word| word.to_le_bytes()));
}

fn put_pair(to: &mut Vec<u8>, pair: Pair) {
    put_words(to, &[pair.publisher, pair.subscriber]);
}

fn put_text(to: &mut Vec<u8>, text: &str) {
    let text = fitting(text);
    to.push(text.len() as u8);
    to.extend(text.as_bytes());
}

fn put_topic(to: &mut Vec<u8>, topic: &Topic) {
    put_text(to, &topic.name);
    put_text(to, &topic.type_name);
    put_words(to, &[topic.type_hash]);
}

fn put_endpoint(to: &mut Vec<u8>, record: &EndpointRecord) {
    let EndpointRecord { kind, topic, qos, matching, created_ns, attributes } = record;
    let limits = [qos.deadline, qos.liveliness, qos.lifespan].map(limit_ns);
    let flags = [
        *kind == Kind::Subscriber,
        qos.reliability == Reliability::Reliable,
        qos.resends,
        qos.is_alive_by_topic,
        *matching == Matching::RequestedOffered,
        limits[0].is_some(),
        limits[1].is_some(),
        limits[2].is_some(),
    ];
    to.push((0..).zip(flags).map(|(bit, flag)| u8::from(flag) << bit).sum());
    put_topic(to, topic);
    to.extend(qos.depth.to_le_bytes());
    to.extend(qos.transient_local.to_le_bytes());
    limits.into_iter().flatten().for_each(|limit_ns| put_words(to, &[limit_ns]));
    put_words(to, &[*created_ns]);
    put_attributes(to, attributes);
}

fn put_node(to: &mut Vec<u8>, record: &NodeRecord) {
    let NodeRecord { name, namespace, program, host, language, version, attributes } = record;
    for text in [name, namespace, program, host, language, version] {
        put_text(to, text);
    }
    put_attributes(to, attributes);
}

fn put_attributes(to: &mut Vec<u8>, attributes: &Attributes) {
    to.push(attributes.iter().len() as u8);
    for (name, value) in attributes.iter() {
        put_text(to, name);
        to.extend((value.len() as u16).to_le_bytes());
        to.extend(value);
    }
}

/// A limit of time in nanoseconds; none if it is too long.
fn limit_ns(limit: Option<Duration>) -> Option<u64> {
    u64::try_from(limit?.as_nanos()).ok()
}

fn put_segments(to: &mut Vec<u8>, segments: &[SegmentSize]) {
    assert!(segments.len() <= MESSAGE_SEGMENTS_MAX);
    to.push(segments.len() as u8);
    for segment in segments {
        to.extend(segment.number.to_le_bytes());
        to.extend(segment.slots.to_le_bytes());
        put_words(to, &[segment.slot_bytes]);
    }
}

fn put_match(to: &mut Vec<u8>, each: &MatchInfo) {
    put_words(to, &[each.endpoint, each.other]);
    put_state(to, &each.state);
}

fn put_state(to: &mut Vec<u8>, state: &MatchState) {
    match state {
        MatchState::Pending => to.push(0),
        MatchState::Matched => to.push(1),
        MatchState::Refused { reason, mismatch } => {
            to.push(2);
            put_text(to, reason);
            to.push(mismatch.as_ref().map_or(0, |it| setting_number(it.setting)));
            if let Some(Mismatch { offered, requested, .. }) = mismatch {
                put_text(to, offered);
                put_text(to, requested);
            }
        }
    }
}

/// The bytes that are not decoded yet.
struct Rest<'a>(&'a [u8]);

impl Rest<'_> {
    fn message(&mut self) -> Result<ControlMessage, Error> {
        let kind = self.u8()?;
        Ok(match kind {
            1 => self.hello()?,
            2 => ControlMessage::Ready,
            3 => ControlMessage::Announced { endpoint: self.u64()?, record: self.endpoint()? },
            4 => ControlMessage::Retracted { endpoint: self.u64()? },
            5 => ControlMessage::Offer { pair: self.pair()? },
            6 => ControlMessage::Segments { publisher: self.u64()?, segments: self.segments(1)? },
            7 => ControlMessage::Accept {
                pair: self.pair()?,
                connection: self.u32()?,
                wake_pipe: self.flag()?,
            },
            8 => ControlMessage::Matched { pair: self.pair()?, start: self.u64()? },
            9 => ControlMessage::Withdrawn { pair: self.pair()?, reason: self.text()? },
            10 => ControlMessage::Declined { pair: self.pair()?, reason: self.text()? },
            11 => ControlMessage::Leaving,
            12 => ControlMessage::RequestOffer { pair: self.pair()? },
            13 => ControlMessage::Query { from: self.u64()? },
            14 => ControlMessage::Counted { endpoints: self.endpoints()? },
            15 => ControlMessage::MatchesReported { matches: self.matches()? },
            16 => ControlMessage::Schema {
                type_hash: self.u64()?,
                encoding: self.text()?,
                part: self.part()?,
                is_last: self.flag()?,
            },
            17 => ControlMessage::Answered { is_complete: self.flag()? },
            18 => ControlMessage::Observe { publisher: self.u64()?, from: self.u32()? },
            19 => self.observed()?,
            20 => ControlMessage::QuerySchema { type_hash: self.u64()? },
            _ => return Err(Error::PeerCorrupt { what: "a message of unknown kind" }),
        })
    }

    fn hello(&mut self) -> Result<ControlMessage, Error> {
        if self.u64()? != MAGIC {
            return Err(Error::PeerCorrupt { what: "a greeting that is not Myelin's" });
        }
        let theirs = self.u64()?;
        if theirs != VERSION {
            return Err(Error::LayoutVersion { ours: VERSION, theirs });
        }
        Ok(ControlMessage::Hello { node: self.u64()?, record: self.node()? })
    }

    fn pair(&mut self) -> Result<Pair, Error> {
        Ok(Pair { publisher: self.u64()?, subscriber: self.u64()? })
    }

    fn node(&mut self) -> Result<NodeRecord, Error> {
        Ok(NodeRecord {
            name: self.text()?,
            namespace: self.text()?,
            program: self.text()?,
            host: self.text()?,
            language: self.text()?,
            version: self.text()?,
            attributes: self.attributes()?,
        })
    }

    fn observed(&mut self) -> Result<ControlMessage, Error> {
        let (publisher, has_ring, segments) = (self.u64()?, self.flag()?, self.segments(0)?);
        if usize::from(has_ring) + segments.len() > MESSAGE_SEGMENTS_MAX {
            return Err(Error::PeerCorrupt { what: "a message's count of segments" });
        }
        Ok(ControlMessage::Observed { publisher, has_ring, segments, is_last: self.flag()? })
    }

    fn endpoint(&mut self) -> Result<EndpointRecord, Error> {
        let flags = self.u8()?;
        let flags: [bool; 8] = std::array::from_fn(|bit| flags >> bit & 1 == 1);
        let [subscribes, reliable, resends, is_alive_by_topic, requested_offered, ..] = flags;
        let [.., has_deadline, has_liveliness, has_lifespan] = flags;
        Ok(EndpointRecord {
            kind: if subscribes { Kind::Subscriber } else { Kind::Publisher },
            topic: self.topic()?,
            qos: AnnouncedQos {
                depth: self.u32()?,
                reliability: if reliable { Reliability::Reliable } else { Reliability::BestEffort },
                resends,
                transient_local: self.u32()?,
                deadline: self.limit(has_deadline)?,
                liveliness: self.limit(has_liveliness)?,
                lifespan: self.limit(has_lifespan)?,
                is_alive_by_topic,
            },
            matching: if requested_offered { Matching::RequestedOffered } else { Matching::Exact },
            created_ns: self.u64()?,
            attributes: self.attributes()?,
        })
    }

    /// Attributes in the order of their names, each once.
    fn attributes(&mut self) -> Result<Attributes, Error> {
        const WRONG: Error = Error::PeerCorrupt { what: "the attributes of a record" };
        let mut attributes = Attributes::default();
        let mut last = String::new();
        for _ in 0..self.u8()? {
            let name = self.text()?;
            let length = u16::from_le_bytes(self.array()?);
            let value = self.bytes(length.into())?;
            if name <= last {
                return Err(WRONG);
            }
            attributes.insert(&name, value).map_err(|_| WRONG)?;
            last = name;
        }
        Ok(attributes)
    }

    fn topic(&mut self) -> Result<Topic, Error> {
        let (name, type_name) = (self.text()?, self.text()?);
        let topic = Topic { name, type_name, type_hash: self.u64()? };
        topic.check().map_err(|_| Error::PeerCorrupt { what: "the name of a topic" })?;
        Ok(topic)
    }

    fn limit(&mut self, is_there: bool) -> Result<Option<Duration>, Error> {
        Ok(if is_there { Some(Duration::from_nanos(self.u64()?)) } else { None })
    }

    /// A part of a schema.
    fn part(&mut self) -> Result<Vec<u8>, Error> {
        let length = usize::from(u16::from_le_bytes(self.array()?));
        if length > MESSAGE_SCHEMA_BYTES_MAX {
            return Err(Error::PeerCorrupt { what: "a part of a schema" });
        }
        Ok(self.bytes(length)?.to_vec())
    }

    fn segments(&mut self, at_least: usize) -> Result<Vec<SegmentSize>, Error> {
        let count = usize::from(self.u8()?);
        if !(at_least..=MESSAGE_SEGMENTS_MAX).contains(&count) {
            return Err(Error::PeerCorrupt { what: "a message's count of segments" });
        }
        let segment = |_| {
            let (number, slots) = (self.u32()?, self.u32()?);
            Ok(SegmentSize { number, slots, slot_bytes: self.u64()? })
        };
        (0..count).map(segment).collect()
    }

    fn endpoints(&mut self) -> Result<Vec<EndpointId>, Error> {
        let count = usize::from(self.u8()?);
        if !(1..=MESSAGE_SEGMENTS_MAX).contains(&count) {
            return Err(Error::PeerCorrupt { what: "a message's count of endpoints" });
        }
        (0..count).map(|_| self.u64()).collect()
    }

    fn matches(&mut self) -> Result<Vec<MatchInfo>, Error> {
        let count = self.u8()?;
        if count == 0 {
            return Err(Error::PeerCorrupt { what: "a message's count of matches" });
        }
        (0..count).map(|_| self.match_info()).collect()
    }

    fn match_info(&mut self) -> Result<MatchInfo, Error> {
        Ok(MatchInfo { endpoint: self.u64()?, other: self.u64()?, state: self.state()? })
    }

    fn state(&mut self) -> Result<MatchState, Error> {
        Ok(match self.u8()? {
            0 => MatchState::Pending,
            1 => MatchState::Matched,
            2 => {
                let reason = self.text()?;
                let mismatch = match self.u8()? {
                    0 => None,
                    number => Some(Mismatch {
                        setting: setting_of(number)?,
                        offered: self.text()?,
                        requested: self.text()?,
                        is_refusal: true,
                    }),
                };
                MatchState::Refused { reason, mismatch }
            }
            _ => return Err(Error::PeerCorrupt { what: "the state of a match" }),
        })
    }

    fn text(&mut self) -> Result<String, Error> {
        let length = usize::from(self.u8()?);
        let bytes = self.bytes(length)?;
        let text = std::str::from_utf8(bytes);
        let text = text.map_err(|_| Error::PeerCorrupt { what: "a text that is not UTF-8" })?;
        Ok(text.to_owned())
    }

    fn flag(&mut self) -> Result<bool, Error> {
        match self.u8()? {
            0 => Ok(false),
            1 => Ok(true),
            _ => Err(Error::PeerCorrupt { what: "a flag that is neither 0 nor 1" }),
        }
    }

    fn u8(&mut self) -> Result<u8, Error> {
        Ok(self.array::<1>()?[0])
    }

    fn u32(&mut self) -> Result<u32, Error> {
        Ok(u32::from_le_bytes(self.array()?))
    }

    fn u64(&mut self) -> Result<u64, Error> {
        Ok(u64::from_le_bytes(self.array()?))
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], Error> {
        let (array, rest) = self.0.split_first_chunk().ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(*array)
    }

    fn bytes(&mut self, length: usize) -> Result<&[u8], Error> {
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(TOO_SHORT)?;
        self.0 = rest;
        Ok(bytes)
    }
}

/// The number of a setting in a message; 0 is none.
fn setting_number(setting: Setting) -> u8 {
    1 + SETTINGS.iter().position(|known| *known == setting).expect("it is in the list") as u8
}

fn setting_of(number: u8) -> Result<Setting, Error> {
    let setting = usize::from(number).checked_sub(1).and_then(|index| SETTINGS.get(index));
    setting.copied().ok_or(Error::PeerCorrupt { what: "the setting of a refused match" })
}

const SETTINGS: [Setting; 7] = [
    Setting::Type,
    Setting::Depth,
    Setting::Reliability,
    Setting::Durability,
    Setting::Deadline,
    Setting::Liveliness,
    Setting::LivelinessLease,
];
/// Bytes of the longest message.
pub(crate) const MESSAGE_BYTES_MAX: usize = 3_072;
const MAGIC: u64 = u64::from_le_bytes(*b"myelinH1");
const TOO_SHORT: Error = Error::PeerCorrupt { what: "a message too short for its kind" };

const _: () = {
    let text = 1 + NAME_BYTES_MAX;
    let attributes = 1 + ATTRIBUTES_BYTES_MAX + 3 * ATTRIBUTES_MAX;
    assert!(MESSAGE_BYTES_MAX > 3 * 8 + 6 * text + attributes);
    assert!(MESSAGE_BYTES_MAX > 2 * 8 + 2 * text + 5 * 8 + attributes);
    assert!(MESSAGE_BYTES_MAX >= 1 + 8 + 3 + 16 * MESSAGE_SEGMENTS_MAX);
    assert!(MESSAGE_BYTES_MAX > 2 * 8 + text + MESSAGE_SCHEMA_BYTES_MAX);
    assert!(MESSAGE_BYTES_MAX > 2 + 2 * 8 + 2 + 3 * text);
    assert!(ATTRIBUTES_MAX <= u8::MAX as usize);
    assert!(NAME_BYTES_MAX <= u8::MAX as usize);
    assert!(MESSAGE_SEGMENTS_MAX <= u8::MAX as usize);
};

#[cfg(test)]
mod tests;
