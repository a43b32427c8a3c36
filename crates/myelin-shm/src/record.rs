//! Records: what a node announces of itself and of each endpoint, once, to every node of its
//! domain; and whether two endpoints match by their records.
//!
//! Everything in a record comes from its node, and other processes check only its form.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fmt;
use std::path::Path;
use std::time::Duration;

use crate::error::Error;
use crate::limits::{ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTES_BYTES_MAX, ATTRIBUTES_MAX};
use crate::topic::{PublisherQos, Reliability, SubscriberQos, Topic};

/// Named byte strings of a node or an endpoint, for programs that know them: the library passes
/// them on and does not read them. At most 32, and 1,024 B in all, names included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Attributes(BTreeMap<Box<str>, Box<[u8]>>);

/// The name of an attribute of subscribers that take whatever their topic has, such as those of a
/// recorder. Such a subscriber may have another type than others on its topic, and settings beyond
/// those of its publishers: nobody is warned, and no endpoint is refused for it.
pub const PASSIVE: &str = "myelin.passive";

/// The settings of an endpoint that its node announces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
#[non_exhaustive]
pub struct AnnouncedQos {
    /// See [`PublisherQos::depth`] and [`SubscriberQos::depth`].
    pub depth: u32,
    /// Whether a publisher waits, or a subscriber requests it.
    pub reliability: Reliability,
    /// Whether samples that are lost on the way to or from another host are sent again, although
    /// no publisher waits.
    pub resends: bool,
    /// See [`PublisherQos::transient_local`] and [`SubscriberQos::transient_local`].
    pub transient_local: u32,
    /// The longest time between two samples that a publisher offers or a subscriber requests;
    /// `None`: any.
    pub deadline: Option<Duration>,
    /// The longest time without a sign of life that a publisher offers or a subscriber requests;
    /// `None`: any.
    pub liveliness: Option<Duration>,
    /// Whether the program itself has to assert liveliness, for this endpoint alone.
    pub is_alive_by_topic: bool,
    /// How long a sample is valid; `None`: for ever. Only DDS programs and ROS 2 use it.
    pub lifespan: Option<Duration>,
}

/// When two endpoints of one topic and type match.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Matching {
    /// With any settings. Each side chooses its own, and the weaker one holds: a subscriber that
    /// requests more than its publisher offers is informed ([`Event::QosReduced`]).
    ///
    /// [`Event::QosReduced`]: crate::event::Event::QosReduced
    #[default]
    Exact,
    /// Only if the publisher offers at least what the subscriber requests, by the rules of DDS
    /// (OMG DDS 1.4, 2.2.3, "RxO"): reliability, durability (history), deadline, liveliness and its
    /// lease. It applies to a match if one of the two endpoints chooses it.
    RequestedOffered,
}

/// What a node announces of an endpoint of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct EndpointRecord {
    pub(crate) kind: Kind,
    pub(crate) topic: Topic,
    pub(crate) qos: AnnouncedQos,
    pub(crate) matching: Matching,
    /// When it was made, on the clock of the host (`CLOCK_REALTIME`).
    pub(crate) created_ns: u64,
    pub(crate) attributes: Attributes,
}

/// The direction of an endpoint.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// It publishes.
    Publisher,
    /// It subscribes.
    Subscriber,
}

/// What decides whether an endpoint matches one of the other kind on its topic.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Side<'a> {
    pub(crate) type_name: &'a str,
    pub(crate) type_hash: u64,
    pub(crate) qos: &'a AnnouncedQos,
    pub(crate) matching: Matching,
}

/// The settings of an endpoint that only its record has; the data plane does not use them.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RecordOptions {
    /// When it matches.
    pub matching: Matching,
    /// See [`AnnouncedQos::resends`].
    pub resends: bool,
    /// The lease that a publisher offers; see [`AnnouncedQos::liveliness`]. A subscriber requests
    /// [`SubscriberQos::liveliness`].
    pub liveliness: Option<Duration>,
    /// See [`AnnouncedQos::is_alive_by_topic`].
    pub is_alive_by_topic: bool,
    /// See [`AnnouncedQos::lifespan`].
    pub lifespan: Option<Duration>,
    /// What others may know of it.
    pub attributes: Attributes,
}

/// What a node announces of itself, to people and tools.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct NodeRecord {
    /// Its name.
    pub name: String,
    /// Its namespace, such as `/robot1`; empty for none.
    pub namespace: String,
    /// The program.
    pub program: String,
    /// The name of its host. Containers on one host have names of their own.
    pub host: String,
    /// The language of the library that it uses: `Rust`, `C`, `C++`, `Python` or another.
    pub language: String,
    /// The version of the library.
    pub version: String,
    /// What others may know of it.
    pub attributes: Attributes,
}

/// What an endpoint has counted since it was made. It stands in the endpoint's shared memory, where
/// every node of its domain can read it, also while its process is stopped. The values are read one
/// after the other while the endpoint goes on. They come from its process, which can lie.
///
/// Times are nanoseconds of `CLOCK_MONOTONIC`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(clippy::large_enum_variant, reason = "there is one for each endpoint of a graph")]
pub enum Counters {
    /// A publisher.
    Publisher {
        /// How many samples it has published.
        published: u64,
        /// Bytes of their payloads.
        published_bytes: u64,
        /// When it published last; 0 if it has not, or if its samples carry no time.
        last_published_ns: u64,
        /// How many loans and copies were refused for lack of memory: the publisher's own limit of
        /// memory or loans, or the memory of the host.
        refused_loans: u64,
        /// Bytes of its shared memory: ring and slots.
        memory_bytes: u64,
    },
    /// A subscriber.
    Subscriber {
        /// How many samples it has taken.
        taken: u64,
        /// How many samples it has lost for any of the four reasons that follow; a loss is counted
        /// when the next sample is taken.
        lost: u64,
        /// Lost because it was further behind than its depth or its publisher's: newer samples have
        /// overwritten them.
        lost_overwritten: u64,
        /// Lost because a reliable publisher did not wait for it any longer.
        lost_passed_over: u64,
        /// Lost on the way from another host.
        lost_network: u64,
        /// Lost because there was no memory for a sample that had come from another host.
        lost_memory: u64,
        /// How many samples in slots its user holds now; samples of up to 104 B are copies, and not
        /// counted.
        held: u64,
        /// When the sample that it took last was published; 0 if it has taken none, or if the sample
        /// carries no time. A take reads no clock: whether the subscriber still takes samples is seen
        /// by the growth of `taken`.
        last_taken_ns: u64,
        /// How old samples were when it took them.
        lateness: Lateness,
        /// Bytes of its shared memory: its announcements.
        memory_bytes: u64,
    },
}

/// How old samples were when a subscriber took them: the time from publication to take, of samples
/// that carry their time. Not every take reads the clock: about 10 samples a second are measured. Of
/// a topic with fewer samples a second, all are.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lateness {
    /// That of the sample that was measured last.
    pub last_ns: u64,
    /// The longest.
    pub max_ns: u64,
    /// How many samples were so late: `buckets[0]` less than 128 ns, `buckets[i]` from `64 << i` ns
    /// to `128 << i` ns, and the last one also longer.
    pub buckets: [u64; LATENESS_BUCKETS],
}

/// The number of [`Lateness::buckets`].
pub const LATENESS_BUCKETS: usize = 32;

/// How the samples of a type are to be read by programs that were not compiled with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Schema {
    /// What `content` is: `myelin-layout` (plain data), `ros2msg` or another, as in MCAP; at most
    /// 32 bytes.
    pub encoding: Box<str>,
    /// The description, in this encoding; at most 65,536 bytes.
    pub content: Box<[u8]>,
}

impl Schema {
    /// The encoding of layouts.
    pub const LAYOUT: &str = "myelin-layout";

    /// That of plain data: `docs/reference/library.md` has the grammar.
    pub fn of_layout(text: String) -> Schema {
        Schema { encoding: Schema::LAYOUT.into(), content: text.into_bytes().into() }
    }

    /// The layout of plain data.
    pub fn layout(&self) -> Option<&str> {
        std::str::from_utf8(&self.content).ok().filter(|_| &*self.encoding == Schema::LAYOUT)
    }
}

/// A setting that two endpoints of a topic do not agree on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Setting {
    /// The type of the samples.
    Type,
    /// The depth.
    Depth,
    /// Reliability.
    Reliability,
    /// Whether samples are kept for late subscribers.
    Durability,
    /// The deadline.
    Deadline,
    /// Who asserts liveliness.
    Liveliness,
    /// How often liveliness is asserted.
    LivelinessLease,
}

/// Why two endpoints of a topic do not match, or match with less than requested: the same at both
/// ends. Its text (`Display`) says it for people, with the remedy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mismatch {
    /// The setting.
    pub setting: Setting,
    /// What the publisher offers.
    pub offered: String,
    /// What the subscriber requests.
    pub requested: String,
    /// Whether the endpoints do not match; otherwise they match, with less than requested.
    pub is_refusal: bool,
}

/// A rule of DDS (OMG DDS 1.4, 2.2.3, "RxO").
struct Rule {
    setting: Setting,
    /// By what is offered and what is requested.
    is_broken: fn(&AnnouncedQos, &AnnouncedQos) -> bool,
    /// The setting, for people.
    text: fn(&AnnouncedQos) -> String,
}

/// In the order in which they are checked.
const RULES: [Rule; 5] = [
    Rule {
        setting: Setting::Reliability,
        is_broken: |offered, requested| requested.is_reliable() && !offered.is_reliable(),
        text: |qos| if qos.is_reliable() { "reliable" } else { "best effort" }.to_owned(),
    },
    Rule {
        setting: Setting::Durability,
        is_broken: |offered, requested| {
            requested.transient_local > 0 && offered.transient_local == 0
        },
        text: |qos| if qos.transient_local > 0 { "transient local" } else { "volatile" }.to_owned(),
    },
    Rule {
        setting: Setting::Deadline,
        is_broken: |offered, requested| is_longer(offered.deadline, requested.deadline),
        text: |qos| time_text(qos.deadline),
    },
    Rule {
        setting: Setting::Liveliness,
        is_broken: |offered, requested| requested.is_alive_by_topic && !offered.is_alive_by_topic,
        text: |qos| if qos.is_alive_by_topic { "manual by topic" } else { "automatic" }.to_owned(),
    },
    Rule {
        setting: Setting::LivelinessLease,
        is_broken: |offered, requested| is_longer(offered.liveliness, requested.liveliness),
        text: |qos| time_text(qos.liveliness),
    },
];

impl Attributes {
    /// Sets an attribute, in place of one with this name.
    ///
    /// # Errors
    /// [`Error::Setting`] if the name is empty, has more than 64 bytes or control characters, if all
    /// names and values together have more than 1,024 bytes, or if there are more than 32.
    pub fn insert(&mut self, name: &str, value: &[u8]) -> Result<(), Error> {
        let wrong = |value: String, remedy| {
            Err(Error::Setting { topic: None, field: "an attribute", value, remedy })
        };
        let has_form = (1..=ATTRIBUTE_NAME_BYTES_MAX).contains(&name.len());
        if !has_form || name.chars().any(char::is_control) {
            let remedy = "its name has 1 to 64 bytes and no control characters";
            return wrong(format!("{name:?}"), remedy);
        }
        let before = self.0.get(name).map_or(0, |value| name.len() + value.len());
        let bytes = self.bytes() - before + name.len() + value.len();
        if bytes > ATTRIBUTES_BYTES_MAX {
            let remedy = "all attributes of a record have at most 1,024 bytes, names included";
            return wrong(format!("{name:?}, with which there are {bytes} bytes"), remedy);
        }
        if self.0.len() == ATTRIBUTES_MAX && !self.0.contains_key(name) {
            return wrong(format!("{name:?}"), "a record has at most 32 attributes");
        }
        self.0.insert(name.into(), value.into());
        Ok(())
    }

    /// The value of an attribute.
    pub fn get(&self, name: &str) -> Option<&[u8]> {
        self.0.get(name).map(|value| &**value)
    }

    /// All, by name.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = (&str, &[u8])> {
        self.0.iter().map(|(name, value)| (&**name, &**value))
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn bytes(&self) -> usize {
        self.iter().map(|(name, value)| name.len() + value.len()).sum()
    }
}

impl Lateness {
    /// How many samples were measured.
    pub fn measured(&self) -> u64 {
        self.buckets.iter().fold(0, |sum, count| sum.saturating_add(*count))
    }

    /// So many percent of the measured samples were this late or less; to the resolution of the
    /// buckets. `None` if none was measured.
    pub fn percentile_ns(&self, percent: f64) -> Option<u64> {
        let measured = self.measured();
        let due = ((percent / 100.0 * measured as f64).ceil() as u64).clamp(1, measured.max(1));
        let mut before = 0_u64;
        for (bucket, count) in self.buckets.iter().enumerate() {
            let up_to = before.saturating_add(*count);
            if up_to >= due {
                let [from, to] = [Self::bucket_begin_ns(bucket), Self::bucket_begin_ns(bucket + 1)];
                let part = (due - before) as f64 / *count as f64;
                return Some(
                    (from + ((to - from) as f64 * part) as u64).min(self.max_ns.max(from)),
                );
            }
            before = up_to;
        }
        None
    }

    /// What was measured after `earlier`, which is an earlier value of the same subscriber. The
    /// longest is only known to the resolution of the buckets.
    pub fn since(&self, earlier: &Lateness) -> Lateness {
        let mut later = *self;
        for (count, before) in later.buckets.iter_mut().zip(&earlier.buckets) {
            *count = count.saturating_sub(*before);
        }
        let last = later.buckets.iter().rposition(|count| *count > 0);
        later.max_ns = last.map_or(0, |it| self.max_ns.min(Self::bucket_begin_ns(it + 1)));
        later
    }

    /// The bucket for a sample that is so late.
    pub(crate) fn bucket(late_ns: u64) -> usize {
        let bits = (u64::BITS - late_ns.leading_zeros()) as usize;
        bits.saturating_sub(7).min(LATENESS_BUCKETS - 1)
    }

    fn bucket_begin_ns(bucket: usize) -> u64 {
        if bucket == 0 { 0 } else { 64 << bucket }
    }
}

/// Why a publisher and a subscriber of a topic do not match; `None`: they match.
pub(crate) fn mismatch(publisher: Side<'_>, subscriber: Side<'_>) -> Option<Mismatch> {
    if publisher.type_hash != subscriber.type_hash {
        let [offered, requested] =
            [publisher, subscriber].map(|it| type_text(it.type_name, it.type_hash));
        return Some(Mismatch { setting: Setting::Type, offered, requested, is_refusal: true });
    }
    let is_checked = is_checked(publisher, subscriber);
    is_checked.then(|| AnnouncedQos::refusal(publisher.qos, subscriber.qos)).flatten()
}

/// Whether there is no [`mismatch`].
pub(crate) fn fits(publisher: Side<'_>, subscriber: Side<'_>) -> bool {
    publisher.type_hash == subscriber.type_hash
        && (!is_checked(publisher, subscriber) || AnnouncedQos::fits(publisher.qos, subscriber.qos))
}

/// Whether the settings of the two decide.
fn is_checked(publisher: Side<'_>, subscriber: Side<'_>) -> bool {
    [publisher.matching, subscriber.matching].contains(&Matching::RequestedOffered)
}

/// A type, for people.
pub(crate) fn type_text(name: &str, hash: u64) -> String {
    format!("{name} (layout {hash:016x})")
}

/// The date: nanoseconds since 1970.
pub(crate) fn date_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

impl EndpointRecord {
    /// That of a new endpoint.
    pub(crate) fn new(
        kind: Kind,
        topic: Topic,
        qos: AnnouncedQos,
        options: RecordOptions,
    ) -> EndpointRecord {
        let RecordOptions { matching, attributes, .. } = options;
        let created_ns = date_ns();
        EndpointRecord { kind, topic, qos, matching, created_ns, attributes }
    }
}

impl NodeRecord {
    /// That of a node of this process, with what the system knows of it.
    pub(crate) fn of_process(name: String) -> NodeRecord {
        let program = std::env::current_exe().ok();
        let program = program.as_deref().and_then(Path::file_name).map(OsStr::to_string_lossy);
        NodeRecord {
            name,
            program: program.unwrap_or_default().into_owned(),
            host: rustix::system::uname().nodename().to_string_lossy().into_owned(),
            language: "Rust".to_owned(),
            version: env!("CARGO_PKG_VERSION").to_owned(),
            ..NodeRecord::default()
        }
    }
}

impl Kind {
    /// The kind that it is matched with.
    pub(crate) fn other(self) -> Kind {
        match self {
            Kind::Publisher => Kind::Subscriber,
            Kind::Subscriber => Kind::Publisher,
        }
    }
}

impl AnnouncedQos {
    pub(crate) fn of_publisher(qos: &PublisherQos, options: &RecordOptions) -> AnnouncedQos {
        let PublisherQos { depth, reliability, transient_local, deadline, .. } = *qos;
        let liveliness = options.liveliness;
        AnnouncedQos { deadline, liveliness, ..options.qos(depth, reliability, transient_local) }
    }

    pub(crate) fn of_subscriber(qos: &SubscriberQos, options: &RecordOptions) -> AnnouncedQos {
        let SubscriberQos { depth, reliability, transient_local, deadline, liveliness, .. } = *qos;
        AnnouncedQos { deadline, liveliness, ..options.qos(depth, reliability, transient_local) }
    }

    /// Whether it is reliable in the sense of DDS: samples lost on the way are sent again.
    pub fn is_reliable(&self) -> bool {
        self.resends || self.reliability == Reliability::Reliable
    }

    /// Whether a publisher offers all that a subscriber requests, by the rules of DDS.
    pub(crate) fn fits(offered: &AnnouncedQos, requested: &AnnouncedQos) -> bool {
        RULES.iter().all(|rule| !(rule.is_broken)(offered, requested))
    }

    /// The first setting of which a publisher offers less than a subscriber requests, by the rules
    /// of DDS.
    pub fn refusal(offered: &AnnouncedQos, requested: &AnnouncedQos) -> Option<Mismatch> {
        let broken = RULES.iter().find(|rule| (rule.is_broken)(offered, requested))?;
        let (offered, requested) = ((broken.text)(offered), (broken.text)(requested));
        Some(Mismatch { setting: broken.setting, offered, requested, is_refusal: true })
    }

    /// The settings of which a publisher offers less than a subscriber requests, where they match
    /// all the same.
    pub(crate) fn reductions(offered: &AnnouncedQos, requested: &AnnouncedQos) -> Vec<Mismatch> {
        let mut reductions = Vec::new();
        let mut reduce = |setting, offered: String, requested: String| {
            reductions.push(Mismatch { setting, offered, requested, is_refusal: false });
        };
        if requested.depth > offered.depth {
            reduce(Setting::Depth, offered.depth.to_string(), requested.depth.to_string());
        }
        let waits = |qos: &AnnouncedQos| qos.reliability == Reliability::Reliable;
        if waits(requested) && !waits(offered) {
            let (offered, requested) = ("does not wait", "waits for slow subscribers");
            reduce(Setting::Reliability, offered.to_owned(), requested.to_owned());
        }
        // Fewer than requested are no surprise: a map that is kept once for subscribers that ask for
        // ten.
        if requested.transient_local > 0 && offered.transient_local == 0 {
            let (offered, requested) = (offered.transient_local, requested.transient_local);
            reduce(Setting::Durability, offered.to_string(), requested.to_string());
        }
        reductions
    }
}

impl RecordOptions {
    fn qos(&self, depth: u32, reliability: Reliability, transient_local: u32) -> AnnouncedQos {
        AnnouncedQos {
            depth,
            reliability,
            resends: self.resends,
            transient_local,
            deadline: None,
            liveliness: None,
            is_alive_by_topic: self.is_alive_by_topic,
            lifespan: self.lifespan,
        }
    }
}

impl Setting {
    /// Its name, for people and for other languages.
    pub fn name(self) -> &'static str {
        match self {
            Setting::Type => "type",
            Setting::Depth => "depth",
            Setting::Reliability => "reliability",
            Setting::Durability => "durability",
            Setting::Deadline => "deadline",
            Setting::Liveliness => "liveliness",
            Setting::LivelinessLease => "liveliness lease",
        }
    }
}

impl fmt::Display for Mismatch {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Mismatch { setting, offered, requested, is_refusal } = self;
        match setting {
            Setting::Type => write!(
                to,
                "the publisher has the type {offered}, the subscriber {requested}; use the same type \
                 on both sides (a struct: the same names, types and order of all fields), or another \
                 topic name"
            ),
            Setting::Depth => write!(
                to,
                "the subscriber requests a depth of {requested}, but the publisher has {offered}: a \
                 subscriber that falls further behind loses samples; set the publisher's depth to \
                 {requested}"
            ),
            Setting::Reliability if !is_refusal => write!(
                to,
                "the subscriber requests a publisher that waits, but this one does not wait for slow \
                 subscribers: a subscriber that falls further behind than the publisher's depth loses \
                 samples; make the publisher reliable (in ROS 2: RELIABLE and KEEP_ALL)"
            ),
            Setting::Durability if !is_refusal => write!(
                to,
                "the subscriber requests samples from before the match, but the publisher keeps none: \
                 they are lost; set the publisher's transient_local to {requested} (in ROS 2: TRANSIENT_LOCAL)"
            ),
            _ => write!(
                to,
                "{}: the publisher offers {offered}, the subscriber requests {requested}; let the \
                 publisher offer it, or the subscriber request less",
                setting.name()
            ),
        }
    }
}

/// Whether a publisher offers a longer time than a subscriber requests; `None` is for ever.
fn is_longer(offered: Option<Duration>, requested: Option<Duration>) -> bool {
    requested.is_some_and(|requested| offered.is_none_or(|offered| offered > requested))
}

/// A limit of time for people.
fn time_text(limit: Option<Duration>) -> String {
    limit.map_or_else(|| "none".to_owned(), |limit| format!("{limit:?}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MS: Duration = Duration::from_millis(1);

    fn qos() -> AnnouncedQos {
        RecordOptions::default().qos(8, Reliability::BestEffort, 0)
    }

    #[test]
    fn attributes_are_bounded_and_replaced_by_name() {
        let mut attributes = Attributes::default();
        attributes.insert("gid", &[1; 16]).unwrap();
        attributes.insert("gid", &[2; 16]).unwrap();
        assert_eq!(attributes.get("gid"), Some(&[2; 16][..]));
        assert_eq!(attributes.iter().len(), 1);
        attributes.insert("rest", &vec![0; ATTRIBUTES_BYTES_MAX - 23]).unwrap();
        let error = attributes.insert("more", b"").unwrap_err().to_string();
        assert!(error.contains("1,024 bytes") && error.contains("1028 bytes"), "{error}");
        attributes.insert("rest", b"").unwrap();
        for name in ["", "a\nb", &"x".repeat(65)] {
            assert!(attributes.insert(name, b"").is_err(), "{name:?}");
        }
        assert_eq!(attributes.iter().map(|(name, _)| name).collect::<Vec<_>>(), ["gid", "rest"]);
    }

    /// The table of OMG DDS 1.4, 2.2.3: each setting alone, at its limit and beyond.
    #[test]
    fn a_publisher_must_offer_what_a_subscriber_requests() {
        type Change = fn(&mut AnnouncedQos);
        let weaker: [(Setting, Change, Change); 9] = [
            (Setting::Reliability, |_| (), |it| it.resends = true),
            (Setting::Reliability, |_| (), |it| it.reliability = Reliability::Reliable),
            (Setting::Durability, |_| (), |it| it.transient_local = 1),
            (Setting::Deadline, |_| (), |it| it.deadline = Some(MS)),
            (Setting::Deadline, |it| it.deadline = Some(2 * MS), |it| it.deadline = Some(MS)),
            (Setting::Liveliness, |_| (), |it| it.is_alive_by_topic = true),
            (Setting::LivelinessLease, |_| (), |it| it.liveliness = Some(MS)),
            (
                Setting::LivelinessLease,
                |it| it.liveliness = Some(2 * MS),
                |it| it.liveliness = Some(MS),
            ),
            (
                Setting::Reliability,
                |it| it.transient_local = 4,
                |it| (it.transient_local, it.resends) = (4, true),
            ),
        ];
        for (setting, offer, request) in weaker {
            let (mut offered, mut requested) = (qos(), qos());
            offer(&mut offered);
            request(&mut requested);
            let mismatch = AnnouncedQos::refusal(&offered, &requested).unwrap();
            assert_eq!((mismatch.setting, mismatch.is_refusal), (setting, true));
            assert!(!AnnouncedQos::fits(&offered, &requested));
            assert!(AnnouncedQos::fits(&requested, &offered));
            assert_ne!(mismatch.offered, mismatch.requested);
            assert_eq!(AnnouncedQos::refusal(&requested, &requested), None, "the same fits");
            let reverse = AnnouncedQos::refusal(&requested, &offered);
            assert_eq!(reverse, None, "and more than requested: {setting:?}");
        }
        let waits = AnnouncedQos { reliability: Reliability::Reliable, ..qos() };
        let resends = AnnouncedQos { resends: true, ..qos() };
        assert_eq!(AnnouncedQos::refusal(&resends, &waits), None, "both are reliable in DDS");
    }
}
