//! A scenario is a TOML file: which workload, over which systems, with which tunings, how often.
//!
//! Reading one checks everything that can be checked without running; each error names file, line,
//! key and remedy. `docs/scenarios.md` describes the keys.

mod built_in;
mod file;
mod kind;
mod limits;
mod modules;
mod network;
mod precision;
mod stream;

use std::collections::BTreeMap;

/// What the processes do.
pub use myelin_bench_kit::protocol::Workload as Kind;
pub use myelin_bench_kit::protocol::{Arrivals, Frame, Reliability, Topology, Touch};
use serde::{Deserialize, Serialize};

use crate::input_error::Source;
use myelin_bench_kit::protocol::DEPTH_DEFAULT;
pub use network::{Cut, Link};
pub use precision::Precision;
pub use stream::frame_name;

/// A scenario, checked.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Scenario {
    /// Names it in reports.
    pub name: String,
    /// In one line.
    pub about: String,
    /// What the processes do.
    pub workload: Workload,
    /// Over what, and how often.
    pub plan: Plan,
    /// What `tuned` means.
    pub tuning: TuningChoice,
    /// The link between two hosts, where it is to be a particular one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Link>,
    /// Tables for drivers, by the driver's name.
    pub options: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
    /// Where the scenario was read from, for errors found later.
    #[serde(skip)]
    pub source: Source,
    /// Whether this program carries it: it may then name systems whose drivers are not here.
    #[serde(skip)]
    pub is_built_in: bool,
}

/// What the processes do, how often, and with what.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Workload {
    /// Kind of workload.
    pub kind: Kind,
    /// How much of a message is written and read.
    #[serde(default)]
    pub touch: Touch,
    /// Each is a parameter point; those of `frames`, if there are any.
    pub payload_bytes: Vec<u64>,
    /// Of images: each is a parameter point.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub frames: Vec<Frame>,
    /// Of streams and images: each is a parameter point; none is an even schedule without a name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<ArrivalsCase>,
    /// Of streams: named pairs of a size and a rate, which are the parameter points then.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<Module>,
    /// Each is a parameter point; 1 alone for round trips.
    #[serde(default = "one_alone")]
    pub subscribers: Vec<u32>,
    /// Of streams: each is a parameter point.
    #[serde(default = "one_alone")]
    pub publishers: Vec<u32>,
    /// Of streams and start-ups: each is a parameter point.
    #[serde(default = "one_alone")]
    pub topics: Vec<u32>,
    /// Of what goes one way: what is asked of systems that have the choice.
    #[serde(default)]
    pub reliability: Reliability,
    /// Of what goes one way: messages kept for a subscriber that lags.
    #[serde(default = "depth_default")]
    pub depth: u32,
    /// Each is a parameter point; `None` is back to back.
    pub rate_hz: Vec<Option<f64>>,
    /// Messages to measure in a run; 0 for no limit.
    pub messages: u64,
    /// Time to measure for in a run; 0 for no limit.
    pub duration_s: f64,
    /// Messages before measuring.
    pub warmup_messages: u64,
    /// Of streams, images and round trips: time before measuring; 0 for `warmup_messages`.
    #[serde(default)]
    pub warmup_s: f64,
    /// After which an answer counts as lost.
    pub reply_timeout_ms: u64,
    /// Keeps every n-th record.
    pub record_every: u64,
}

impl Workload {
    /// Messages before measuring at `rate_hz`; at most, where there is [`Workload::warmup_ns`].
    pub fn warmup_at(&self, rate_hz: Option<f64>) -> u64 {
        match rate_hz {
            Some(rate_hz) if self.warmup_s > 0.0 => (self.warmup_s * rate_hz).ceil() as u64,
            None if self.warmup_ns(None) > 0 => (self.warmup_s * MESSAGES_PER_S_MAX).ceil() as u64,
            _ => self.warmup_messages,
        }
    }

    /// Time before measuring, of round trips back to back, whose number nobody knows beforehand; 0
    /// where [`Workload::warmup_at`] says all.
    pub fn warmup_ns(&self, rate_hz: Option<f64>) -> u64 {
        match (self.kind, rate_hz) {
            (Kind::Roundtrip, None) => (self.warmup_s * 1e9) as u64,
            _ => 0,
        }
    }

    /// More records than this a run cannot yield.
    pub fn records_at_most(&self, rate_hz: Option<f64>) -> u64 {
        if self.kind == Kind::Startup {
            return 1;
        }
        let by_count = if self.messages == 0 { u64::MAX } else { self.messages };
        let densest = self.arrivals.iter().map(ArrivalsCase::density).fold(1.0, f64::max);
        let by_time = match self.duration_s {
            0.0 => u64::MAX,
            seconds => (seconds * densest * rate_hz.unwrap_or(MESSAGES_PER_S_MAX)).ceil() as u64,
        };
        (by_count.min(by_time) / self.record_every).saturating_add(2)
    }
}

impl Plan {
    /// Whether ping and pong are on two hosts.
    pub fn is_across_hosts(&self) -> bool {
        self.topology == [Topology::TwoHosts]
    }
}

impl Workload {
    /// How long a run lasts at most, warm-up included; `None` if nothing given says so.
    pub fn seconds_at_most(&self, rate_hz: Option<f64>) -> Option<f64> {
        let longest = self.arrivals.iter().map(|case| case.arrivals.period_factor);
        let longest = longest.fold(1.0, f64::max);
        let by_rate = |messages: u64| rate_hz.map(|rate| messages as f64 / rate);
        let by_count = by_rate(self.messages).filter(|_| self.messages > 0);
        let by_time = (self.duration_s > 0.0).then_some(self.duration_s);
        let measured = match (by_count.map(|seconds| seconds * (1.0 + longest) / 2.0), by_time) {
            (Some(count), Some(time)) => Some(count.min(time)),
            (count, time) => count.or(time),
        };
        let warmup_s = match self.warmup_s > 0.0 {
            true => Some(self.warmup_s),
            false => by_rate(self.warmup_messages),
        };
        Some(measured? + warmup_s.unwrap_or(0.0))
    }
}

/// A schedule of a stream, with the name that reports give it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ArrivalsCase {
    /// A plain word.
    pub name: String,
    /// How it departs from the rate.
    #[serde(flatten)]
    pub arrivals: Arrivals,
}

impl ArrivalsCase {
    /// How many times as many messages there may be as at an even rate.
    fn density(&self) -> f64 {
        match self.arrivals.period_factor {
            factor if factor > 0.0 => (1.0 / factor).max(1.0),
            _ => 1.0,
        }
    }
}

fn one_alone() -> Vec<u32> {
    vec![1]
}

fn depth_default() -> u32 {
    DEPTH_DEFAULT
}

/// What a module of a robot sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Module {
    /// A plain word.
    pub name: String,
    /// Of each message.
    pub payload_bytes: u64,
    /// Messages a second.
    pub rate_hz: f64,
}

/// Over what, and how often.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Plan {
    /// Names of systems, or patterns with `*`.
    pub systems: Vec<String>,
    /// The columns of the experiment.
    pub tunings: Vec<Tuning>,
    /// Systems that live otherwise are left out; each has one topology, which is its cells'.
    /// [`Topology::TwoHosts`] stands alone, and its systems are those of two processes that can be
    /// run so.
    #[serde(deserialize_with = "one_or_many")]
    pub topology: Vec<Topology>,
    /// Repeats of each cell in fresh processes; with `precision`, at least.
    pub runs: u32,
    /// When further repeats are made; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub precision: Option<Precision>,
}

/// What is done for latency before a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Tuning {
    /// Nothing.
    Default,
    /// CPU affinity, SCHED_FIFO, locked memory, 1 ns timer slack.
    Tuned,
    /// `tuned`, and idle cores do not sleep.
    Awake,
}

impl Tuning {
    /// As it is written in scenarios and reports.
    pub fn name(self) -> &'static str {
        match self {
            Tuning::Default => "default",
            Tuning::Tuned => "tuned",
            Tuning::Awake => "awake",
        }
    }
}

/// A plan written before systems lived in one process names one topology.
fn one_or_many<'de, D: serde::Deserializer<'de>>(input: D) -> Result<Vec<Topology>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Written {
        One(Topology),
        Many(Vec<Topology>),
    }
    Ok(match Written::deserialize(input)? {
        Written::One(topology) => vec![topology],
        Written::Many(topologies) => topologies,
    })
}

/// What `tuned` means on this host.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct TuningChoice {
    /// CPU of ping; chosen from the topology if absent.
    pub ping_cpu: Option<usize>,
    /// CPU of pong; chosen from the topology if absent.
    pub pong_cpu: Option<usize>,
    /// SCHED_FIFO priority.
    pub priority: u32,
}

/// A cache line crosses between two cores and back in no less than 100 ns; a publish run that is
/// faster ends when its records are full.
const MESSAGES_PER_S_MAX: f64 = 1e7;
#[cfg(test)]
mod tests {
    use super::*;

    const GOOD: &str = "name = \"x\"\n\n[workload]\nkind = \"roundtrip\"\npayload_bytes = [0, 64]\n\
        rate_hz = [1, \"max\"]\nmessages = 100\n\n[plan]\nsystems = [\"os.*\"]\n\
        tunings = [\"default\"]\ntopology = \"two-processes\"\nruns = 3\n";

    fn error_of(text: &str) -> String {
        Scenario::parse(Source::new("x.toml", text)).unwrap_err().to_string()
    }

    #[test]
    fn every_built_in_scenario_parses() {
        for scenario in Scenario::built_in() {
            assert!(!scenario.about.is_empty(), "{}", scenario.name);
        }
    }

    #[test]
    fn a_first_answer_gives_all_systems_the_same_time() {
        let workload = Scenario::load("quick").unwrap().workload;
        assert!(workload.warmup_ns(None) > 0 && workload.duration_s > 0.0);
        // A round trip of a microsecond still fills the time.
        assert!(workload.messages as f64 >= workload.duration_s * 1e6);
        let slow = workload.seconds_at_most(Some(4_000.0)).unwrap();
        assert_eq!(slow, workload.seconds_at_most(Some(1e6)).unwrap());
        // Neither memory nor disk need more than a few megabytes a run.
        assert!(workload.records_at_most(None) * 64 < 8 << 20);
    }

    #[test]
    fn a_warm_up_is_messages_or_time() {
        let text = GOOD.replace("messages = 100", "messages = 100\nwarmup_s = 0.5");
        let workload = Scenario::parse(Source::new("x.toml", &text)).unwrap().workload;
        assert_eq!((workload.warmup_at(Some(10.0)), workload.warmup_ns(Some(10.0))), (5, 0));
        assert_eq!((workload.warmup_at(None), workload.warmup_ns(None)), (5_000_000, 500_000_000));
        let workload = Scenario::parse(Source::new("x.toml", GOOD)).unwrap().workload;
        assert_eq!((workload.warmup_at(None), workload.warmup_ns(None)), (500, 0));
    }

    #[test]
    fn a_good_scenario_is_read_whole() {
        let scenario = Scenario::parse(Source::new("x.toml", GOOD)).unwrap();
        assert_eq!(scenario.workload.payload_bytes, [0, 64]);
        assert_eq!(scenario.workload.rate_hz, [Some(1.0), None]);
        assert_eq!(scenario.plan.runs, 3);
    }

    #[test]
    fn errors_name_file_line_key_and_remedy() {
        let cases = [
            ("kind = \"roundtrip\"", "kind = \"roundtrp\"", "x.toml:4: unknown variant `roundtrp`"),
            (
                "messages = 100",
                "mesages = 100",
                "x.toml:7: unknown field `mesages`; did you mean `messages`?",
            ),
            ("[1, \"max\"]", "[-5]", "x.toml:6: rate_hz: -5 is out of range"),
            ("[1, \"max\"]", "[\"fast\"]", "x.toml:6: rate_hz: \"fast\" is out of range"),
            ("[0, 64]", "[0, -1]", "x.toml:5: payload_bytes: -1 is out of range; use 0 to"),
            ("runs = 3", "runs = 0", "x.toml:13: runs: 0 is out of range; use 1 to 1000"),
            ("messages = 100", "", "x.toml:3: messages: nothing given"),
            ("name = \"x\"", "name = \"a/b\"", "x.toml:1: name: not a plain word"),
            ("[\"default\"]", "[\"fast\"]", "x.toml:11: unknown variant `fast`"),
            ("runs = 3", "runs = \"many\"", "x.toml:13: invalid type"),
            ("[plan]", "[plan", "x.toml:9: "),
        ];
        for (good, bad, expected) in cases {
            let error = error_of(&GOOD.replace(good, bad));
            assert!(error.starts_with(expected), "{error:?} does not start with {expected:?}");
            assert!(!error.contains('\n'), "{error:?}");
        }
    }

    #[test]
    fn a_misspelt_key_is_told_before_what_is_missing() {
        let text = GOOD.replace("runs = 3\n", "").replace("kind =", "knid =");
        let expected = "x.toml:4: unknown field `knid`; did you mean `kind`?";
        assert!(error_of(&text).starts_with(expected), "{}", error_of(&text));
        let text = GOOD.replace("tunings", "tunnings");
        let expected = "x.toml:11: unknown field `tunnings`; did you mean `tunings`?";
        assert!(error_of(&text).starts_with(expected), "{}", error_of(&text));
        let text = text.replace("messages", "mesages");
        let expected = "x.toml:7: unknown field `mesages`; did you mean `messages`?";
        assert!(error_of(&text).starts_with(expected), "the first in the file: {text}");
    }

    #[test]
    fn what_is_missing_is_told_with_what_it_may_be() {
        for (line, expected) in [
            ("kind = \"roundtrip\"\n", "x.toml:3: kind: nothing given; use one of \"roundtrip\""),
            ("runs = 3\n", "x.toml:9: runs: nothing given; for instance 5"),
            ("systems = [\"os.*\"]\n", "x.toml:9: systems: nothing given; for instance"),
            ("tunings = [\"default\"]\n", "x.toml:9: tunings: nothing given; for instance"),
        ] {
            let error = error_of(&GOOD.replace(line, ""));
            assert!(error.starts_with(expected), "{error:?} does not start with {expected:?}");
        }
    }

    #[test]
    fn systems_are_two_processes_unless_said() {
        let text = GOOD.replace("topology = \"two-processes\"\n", "");
        let scenario = Scenario::parse(Source::new("x.toml", &text)).unwrap();
        assert_eq!(scenario.plan.topology, [Topology::TwoProcesses]);
    }

    #[test]
    fn a_publish_scenario_has_subscribers_and_a_rate_of_its_own() {
        let text = GOOD.replace("\"roundtrip\"", "\"publish\"\nsubscribers = [0, 8, 8]");
        let scenario = Scenario::parse(Source::new("x.toml", &text)).unwrap();
        assert_eq!(scenario.workload.kind, Kind::Publish);
        assert_eq!(scenario.workload.subscribers, [0, 8]);
        let text = text.replace("rate_hz = [1, \"max\"]\n", "");
        let scenario = Scenario::parse(Source::new("x.toml", &text)).unwrap();
        assert_eq!(scenario.workload.rate_hz, [Some(20_000.0)]);
        assert!(error_of(&text.replace("[0, 8, 8]", "[-1]")).contains("subscribers: -1 is out"));
        assert!(error_of(&text.replace("[0, 8, 8]", "[]")).contains("subscribers: nothing given"));
    }

    #[test]
    fn a_key_of_another_kind_is_a_mistake() {
        let with = |keys: &str| error_of(&GOOD.replace("messages = 100", keys));
        let error = with("messages = 100\nsubscribers = [1]");
        assert!(
            error.starts_with("x.toml:8: subscribers: not a key of kind \"roundtrip\""),
            "{error}"
        );
        let text = GOOD.replace("\"roundtrip\"", "\"publish\"\nreply_timeout_ms = 10");
        assert!(error_of(&text).starts_with("x.toml:5: reply_timeout_ms: not a key"));
        let error = with("messages = 100\ntouch = \"headers\"");
        assert!(error.contains("did you mean `header`?"), "{error}");
    }

    #[test]
    fn what_is_touched_is_everything_unless_said() {
        let touch =
            |text: &str| Scenario::parse(Source::new("x.toml", text)).unwrap().workload.touch;
        assert_eq!(touch(GOOD), Touch::Stamps);
        assert_eq!(touch(&GOOD.replace("[plan]", "touch = \"header\"\n[plan]")), Touch::Header);
    }

    #[test]
    fn a_plan_written_before_there_were_kinds_is_read() {
        let scenario = Scenario::parse(Source::new("x.toml", GOOD)).unwrap();
        let mut json = serde_json::to_value(scenario).unwrap();
        let workload = json["workload"].as_object_mut().unwrap();
        assert!(workload.remove("touch").is_some() && workload.remove("subscribers").is_some());
        json["plan"]["topology"] = "two-processes".into();
        let scenario: Scenario = serde_json::from_value(json).unwrap();
        assert_eq!(scenario.workload.subscribers, [1]);
        assert_eq!(scenario.plan.topology, [Topology::TwoProcesses]);
        assert!(scenario.workload.frames.is_empty() && scenario.workload.arrivals.is_empty());
    }

    #[test]
    fn unknown_built_in_names_the_nearest() {
        let error = Scenario::load("quik").unwrap_err().to_string();
        assert!(error.contains("`quick`"), "{error}");
    }
}
