//! The settings with which a topic was published, as rosbag2 writes them in the metadata of a
//! channel, [`QOS_PROFILES`](crate::names::QOS_PROFILES).

use std::time::Duration;

use serde::Deserialize;

/// What the publishers of a topic offered, all together: a subscriber that matched one of them
/// matches the player.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offered {
    pub depth: u32,
    /// How many samples late joiners get: those of all publishers.
    pub latched: u32,
    pub is_reliable: bool,
    pub keeps_all: bool,
    pub deadline: Option<Duration>,
    pub lease: Option<Duration>,
    pub is_alive_by_topic: bool,
}

/// A publisher, as the recorder describes it in the metadata `myelin:endpoints`.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub(crate) struct PublisherRecord {
    #[serde(skip)]
    id: String,
    kind: String,
    topic: String,
    depth: u32,
    reliable: bool,
    transient_local: u32,
    deadline_ns: Option<u64>,
    liveliness_ns: Option<u64>,
}

impl PublisherRecord {
    /// Its topic and itself; `None` if it is a subscriber, or is not understood.
    pub(crate) fn read(id: &str, text: &str) -> Option<(String, PublisherRecord)> {
        let record: PublisherRecord = serde_json::from_str(text).ok()?;
        let record = PublisherRecord { id: id.to_owned(), ..record };
        (record.kind == "publisher").then(|| (record.topic.clone(), record))
    }
}

impl Offered {
    /// Reads the metadata `offered_qos_profiles` of a channel, or else the records of the recorder;
    /// without any, or if they cannot be read, it is ROS 2's default.
    pub(crate) fn read(profiles: Option<&str>, publishers: &[PublisherRecord]) -> Offered {
        let profiles = profiles.filter(|text| text.len() <= TEXT_BYTES_MAX);
        let read = profiles.and_then(|text| serde_saphyr::from_str::<Vec<Profile>>(text).ok());
        let mut all = Offered::default();
        for profile in read.unwrap_or_default() {
            all.add(&profile);
        }
        if all.depth == 0 {
            publishers.iter().for_each(|publisher| all.add_record(publisher));
        }
        if all.depth == 0 {
            return Offered { depth: DEFAULT_DEPTH, is_reliable: true, ..Offered::default() };
        }
        all
    }

    fn add(&mut self, profile: &Profile) {
        let depth = u32::try_from(profile.depth).unwrap_or(DEPTH_MAX).clamp(1, DEPTH_MAX);
        let keeps_all = profile.history.is("keep_all", 2);
        let depth = if keeps_all { KEEP_ALL_DEPTH } else { depth };
        self.depth = self.depth.max(depth);
        self.keeps_all |= keeps_all;
        if profile.durability.is("transient_local", 1) {
            self.latched = (self.latched + depth).min(DEPTH_MAX);
        }
        self.is_reliable |= !profile.reliability.is("best_effort", 2);
        self.is_alive_by_topic |= profile.liveliness.is("manual_by_topic", 3);
        self.deadline = least(self.deadline, profile.deadline.limit());
        self.lease = least(self.lease, profile.liveliness_lease_duration.limit());
        self.depth = self.depth.max(self.latched);
    }

    fn add_record(&mut self, publisher: &PublisherRecord) {
        let limit = |ns: Option<u64>| ns.filter(|ns| *ns > 0).map(Duration::from_nanos);
        self.depth = self.depth.max(publisher.depth.clamp(1, DEPTH_MAX));
        self.latched = self.latched.saturating_add(publisher.transient_local).min(DEPTH_MAX);
        self.is_reliable |= publisher.reliable;
        self.deadline = least(self.deadline, limit(publisher.deadline_ns));
        self.lease = least(self.lease, limit(publisher.liveliness_ns));
        self.depth = self.depth.max(self.latched);
    }
}

/// Of a shorter one more subscribers are content.
fn least(one: Option<Duration>, other: Option<Duration>) -> Option<Duration> {
    one.into_iter().chain(other).min()
}

/// One publisher.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Profile {
    history: Policy,
    depth: u64,
    reliability: Policy,
    durability: Policy,
    deadline: Time,
    liveliness: Policy,
    liveliness_lease_duration: Time,
}

/// Old files have the numbers of `rmw/types.h`.
#[derive(Deserialize)]
#[serde(untagged)]
enum Policy {
    Number(i64),
    Name(String),
}

impl Default for Policy {
    fn default() -> Self {
        Policy::Number(0)
    }
}

impl Policy {
    fn is(&self, name: &str, number: i64) -> bool {
        match self {
            Policy::Number(it) => *it == number,
            Policy::Name(it) => it == name,
        }
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Time {
    sec: u64,
    nsec: u64,
}

impl Time {
    /// `None` if there is no limit: 0, or 68 years and more.
    fn limit(&self) -> Option<Duration> {
        let time = Duration::from_secs(self.sec).checked_add(Duration::from_nanos(self.nsec))?;
        (time > Duration::ZERO && time < FOREVER).then_some(time)
    }
}

/// `rmw_qos_profile_default`.
const DEFAULT_DEPTH: u32 = 10;
const DEPTH_MAX: u32 = 65_535;
/// As `rmw_myelin` has it.
const KEEP_ALL_DEPTH: u32 = 5_000;
const FOREVER: Duration = Duration::from_secs(i32::MAX as u64);
const TEXT_BYTES_MAX: usize = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    const NEW: &str = "\
- history: keep_last
  depth: 1
  reliability: reliable
  durability: transient_local
  deadline:
    sec: 9223372036
    nsec: 854775807
  lifespan:
    sec: 9223372036
    nsec: 854775807
  liveliness: automatic
  liveliness_lease_duration:
    sec: 9223372036
    nsec: 854775807
  avoid_ros_namespace_conventions: false
- {history: keep_last, depth: 3, reliability: best_effort, durability: transient_local, deadline: {sec: 0, nsec: 500000000}}
";
    const OLD: &str = "- history: 3\n  depth: 0\n  reliability: 2\n  durability: 2\n  deadline:\n    \
        sec: 2147483647\n    nsec: 4294967295\n  liveliness: 1\n";

    #[test]
    fn all_publishers_count() {
        let read = Offered::read(Some(NEW), &[]);
        assert_eq!((read.depth, read.latched, read.is_reliable), (4, 4, true));
        assert_eq!(read.deadline, Some(Duration::from_millis(500)));
        assert_eq!((read.lease, read.keeps_all, read.is_alive_by_topic), (None, false, false));
    }

    #[test]
    fn numbers_of_old_files_are_read() {
        let read = Offered::read(Some(OLD), &[]);
        assert_eq!((read.depth, read.latched, read.is_reliable), (1, 0, false));
    }

    #[test]
    fn without_profiles_it_is_the_default_of_ros_2() {
        for text in [None, Some(""), Some("[]"), Some("a: ["), Some("- depth: many"), Some("- 3")] {
            let read = Offered::read(text, &[]);
            assert_eq!((read.depth, read.is_reliable, read.latched), (10, true, 0), "{text:?}");
        }
    }

    #[test]
    fn records_of_the_recorder_count_if_there_are_no_profiles() {
        let of = |kind: &str, latched: u32| {
            format!(
                r#"{{"kind": "{kind}", "topic": "map", "depth": 8, "reliable": false, "new": 1,
                     "transient_local": {latched}, "deadline_ns": null, "liveliness_ns": 5}}"#
            )
        };
        let (topic, record) = PublisherRecord::read("1", &of("publisher", 1)).unwrap();
        assert_eq!(topic, "map");
        assert_eq!(PublisherRecord::read("1", &of("subscriber", 1)), None);
        assert_eq!(PublisherRecord::read("1", "[]"), None);
        let read = Offered::read(None, &[record.clone(), record.clone()]);
        assert_eq!((read.depth, read.latched, read.is_reliable), (8, 2, false));
        assert_eq!(read.lease, Some(Duration::from_nanos(5)));
        assert_eq!(Offered::read(Some(NEW), &[record]).depth, 4);
    }
}
