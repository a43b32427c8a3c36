//! A scenario is a TOML file: which workload, on which systems, with which tunings, how often.
//!
//! Reading a scenario checks everything that can be checked without running it; each error names
//! file, line, key and remedy. `docs/how-to/scenarios.md` describes the keys. The same types serve
//! the file and `plan.json`. `keys` has the limits of single values, `check` the conditions between
//! values.

mod built_in;
mod check;
mod keys;
mod network;
mod recording;
mod schema;
#[cfg(test)]
mod tests;

use std::collections::BTreeMap;
use std::fmt;

use myelin_bench_kit::protocol::DEPTH_DEFAULT;
/// What the processes do.
pub use myelin_bench_kit::protocol::Workload as Kind;
pub use myelin_bench_kit::protocol::{Arrivals, Frame, Reliability, Topology, Touch};
use schemars::JsonSchema;
use serde::de::{Deserializer, Error};
use serde::{Deserialize, Serialize};

use crate::input_error::Source;
use crate::stats::interval::RunCount;
pub use network::{Cut, Link};
pub use recording::{RecordedTopic, Recording, Replay};
pub(crate) use schema::plain;
pub use schema::schema;

/// The contents of a scenario file, checked.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Scenario {
    /// Its name in reports.
    pub name: String,
    /// A description in one line.
    #[serde(default)]
    pub about: String,
    /// What the processes do.
    pub workload: Workload,
    /// The systems, and how often they run.
    pub plan: Selection,
    /// The meaning of `tuned` on this host.
    #[serde(default)]
    pub tuning: TuningChoice,
    /// The properties of the link between two hosts, if the scenario sets them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<Link>,
    /// Tables for drivers, by the driver's name.
    #[serde(default)]
    #[schemars(with = "BTreeMap<String, BTreeMap<String, serde_json::Value>>")]
    pub options: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
    /// Where the scenario was read from, for errors found later.
    #[serde(skip)]
    pub source: Source,
    /// Whether this program carries the scenario. A built-in scenario may name systems whose
    /// drivers are not installed.
    #[serde(skip)]
    pub is_built_in: bool,
}

/// What the processes do, how often, and with what.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct Workload {
    /// Kind of workload.
    pub kind: Kind,
    /// How much of a message is written and read.
    pub touch: Touch,
    /// Bytes of a message; each is a parameter point. Follows from `frames` if that is given.
    pub payload_bytes: Vec<u64>,
    /// Sizes of images; each is a parameter point.
    #[serde(skip_serializing_if = "Vec::is_empty", deserialize_with = "frames")]
    #[schemars(with = "Vec<String>")]
    pub frames: Vec<Frame>,
    /// Schedules of streams and images; each is a parameter point. Empty: one even schedule without
    /// a name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub arrivals: Vec<ArrivalsCase>,
    /// Named pairs of size and rate for streams; they replace sizes and rates as parameter points.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub modules: Vec<Module>,
    /// Streams that the system carries at the same time, between the same hosts in the same
    /// direction. Each is a parameter point, beside the point without any.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub loads: Vec<Load>,
    /// The recording of a replay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
    /// What was read from it; it also determines sizes, rates and topics.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub replay: Option<Replay>,
    /// Subscribers of a topic; each number is a parameter point. Always 1 for round trips.
    pub subscribers: Vec<u32>,
    /// Publishers of a topic, for streams; each number is a parameter point.
    pub publishers: Vec<u32>,
    /// Topics, for streams and start-ups; each number is a parameter point.
    pub topics: Vec<u32>,
    /// Reliability to request from systems that offer the choice. Only for one-way workloads.
    pub reliability: Reliability,
    /// Messages kept for a slow subscriber. Only for one-way workloads.
    pub depth: u32,
    /// Messages per second; each is a parameter point. `None` is back to back.
    #[serde(deserialize_with = "rates")]
    #[schemars(schema_with = "schema::rates")]
    pub rate_hz: Vec<Option<f64>>,
    /// Messages to measure in a run; 0 for no limit.
    pub messages: u64,
    /// Time to measure for in a run; 0 for no limit.
    pub duration_s: f64,
    /// Messages before measuring.
    pub warmup_messages: u64,
    /// Time before measuring, for streams, images and round trips; 0 for `warmup_messages`.
    pub warmup_s: f64,
    /// An answer that takes longer counts as lost.
    pub reply_timeout_ms: u64,
    /// Every n-th record is kept.
    pub record_every: u64,
}

impl Default for Workload {
    /// The values of an empty file.
    fn default() -> Self {
        let (kind, touch, payload_bytes, frames, arrivals, modules) = Default::default();
        let (reliability, rate_hz, messages, duration_s, warmup_s) = Default::default();
        let [subscribers, publishers, topics] = [vec![1], vec![1], vec![1]];
        Workload {
            kind,
            touch,
            payload_bytes,
            frames,
            arrivals,
            modules,
            loads: Vec::new(),
            recording: None,
            replay: None,
            subscribers,
            publishers,
            topics,
            reliability,
            depth: DEPTH_DEFAULT,
            rate_hz,
            messages,
            duration_s,
            warmup_messages: 500,
            warmup_s,
            reply_timeout_ms: 1_000,
            record_every: 1,
        }
    }
}

impl Workload {
    /// Messages before measuring at `rate_hz`; an upper limit if [`Workload::warmup_ns`] is not 0.
    pub fn warmup_at(&self, rate_hz: Option<f64>) -> u64 {
        if let Some(replay) = &self.replay {
            return replay.warmup_messages;
        }
        match rate_hz {
            Some(rate_hz) if self.warmup_s > 0.0 => (self.warmup_s * rate_hz).ceil() as u64,
            None if self.warmup_ns(None) > 0 => (self.warmup_s * MESSAGES_PER_S_MAX).ceil() as u64,
            _ => self.warmup_messages,
        }
    }

    /// Time before measuring, for round trips back to back, whose number is unknown beforehand; 0
    /// if [`Workload::warmup_at`] is the exact number.
    pub fn warmup_ns(&self, rate_hz: Option<f64>) -> u64 {
        match (self.kind, rate_hz) {
            (Kind::Roundtrip, None) => (self.warmup_s * 1e9) as u64,
            _ => 0,
        }
    }

    /// An upper limit of the records of a run.
    pub fn records_at_most(&self, rate_hz: Option<f64>) -> u64 {
        if self.kind == Kind::Startup {
            return 1;
        }
        if let Some(replay) = &self.replay {
            return replay.messages.saturating_add(2);
        }
        let by_count = if self.messages == 0 { u64::MAX } else { self.messages };
        let densest = self.arrivals.iter().map(ArrivalsCase::density).fold(1.0, f64::max);
        let by_time = match self.duration_s {
            0.0 => u64::MAX,
            seconds => (seconds * densest * rate_hz.unwrap_or(MESSAGES_PER_S_MAX)).ceil() as u64,
        };
        (by_count.min(by_time) / self.record_every).saturating_add(2)
    }

    /// An upper limit of the duration of a run, including its warm-up; `None` if nothing limits it.
    pub fn seconds_at_most(&self, rate_hz: Option<f64>) -> Option<f64> {
        if let Some(replay) = &self.replay {
            return Some(self.warmup_s + replay.seconds);
        }
        Some(self.measured_s(rate_hz)? + self.warming_s(rate_hz))
    }

    /// An upper limit of the measured time of a run; `None` if nothing limits it.
    fn measured_s(&self, rate_hz: Option<f64>) -> Option<f64> {
        let longest = self.arrivals.iter().map(|case| case.arrivals.period_factor);
        let longest = longest.fold(1.0, f64::max);
        let by_count = rate_hz.map(|rate| self.messages as f64 / rate);
        let by_count = by_count.filter(|_| self.messages > 0);
        let by_time = (self.duration_s > 0.0).then_some(self.duration_s);
        match (by_count.map(|seconds| seconds * (1.0 + longest) / 2.0), by_time) {
            (Some(count), Some(time)) => Some(count.min(time)),
            (count, time) => count.or(time),
        }
    }

    /// The duration of the warm-up; 0 if it is a number of messages back to back.
    fn warming_s(&self, rate_hz: Option<f64>) -> f64 {
        let by_messages = || rate_hz.map_or(0.0, |rate| self.warmup_messages as f64 / rate);
        if self.warmup_s > 0.0 { self.warmup_s } else { by_messages() }
    }

    /// The workload of `load` beside this one at `rate_hz`: it is warmed up and measured for the
    /// same time. Round trips are warmed up back to back, in at most this time; so the load beside
    /// them is measured from its second message on.
    pub(crate) fn of_load(&self, load: &Load, rate_hz: Option<f64>) -> Workload {
        let [warming_s, measured_s] =
            [self.warming_s(rate_hz), self.measured_s(rate_hz).unwrap_or(0.0)];
        let (warmup_s, duration_s) = match self.kind {
            Kind::Roundtrip => (0.0, warming_s + measured_s),
            _ => (warming_s, measured_s),
        };
        Workload {
            kind: Kind::Stream,
            payload_bytes: vec![load.payload_bytes],
            rate_hz: vec![Some(load.rate_hz)],
            reliability: load.reliability,
            depth: load.depth,
            duration_s,
            warmup_messages: 1,
            warmup_s,
            ..Workload::default()
        }
    }
}

/// A named schedule of a stream.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ArrivalsCase {
    /// Its name in reports: a plain word.
    pub name: String,
    /// How it deviates from the even rate.
    #[serde(flatten)]
    pub arrivals: Arrivals,
}

impl ArrivalsCase {
    /// The factor by which it may send more messages than an even rate.
    fn density(&self) -> f64 {
        match self.arrivals.period_factor {
            factor if factor > 0.0 => (1.0 / factor).max(1.0),
            _ => 1.0,
        }
    }
}

/// What one module of a robot sends.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Module {
    /// Its name in reports: a plain word.
    pub name: String,
    /// Bytes of each message.
    pub payload_bytes: u64,
    /// Messages a second.
    pub rate_hz: f64,
}

/// A stream beside the measured messages: by the same system, from the same host to the same other
/// one, in two processes of its own, without tuning.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Load {
    /// Its name in reports: a plain word.
    pub name: String,
    /// Bytes of each message.
    pub payload_bytes: u64,
    /// Messages a second.
    pub rate_hz: f64,
    /// Reliability to request from systems that offer the choice.
    #[serde(default)]
    pub reliability: Reliability,
    /// Messages kept for a slow subscriber.
    #[serde(default = "depth_default")]
    pub depth: u32,
}

fn depth_default() -> u32 {
    DEPTH_DEFAULT
}

/// The systems, and how often they run.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Selection {
    /// Names of systems, or patterns with `*`.
    #[serde(default)]
    pub systems: Vec<String>,
    /// The tunings to compare.
    #[serde(default)]
    pub tunings: Vec<Tuning>,
    /// Topologies; other systems are left out. A system has one topology, and its cells have the
    /// same. [`Topology::TwoHosts`] stands alone and selects the systems of two processes that can
    /// run on two hosts.
    #[serde(default = "two_processes", deserialize_with = "topologies")]
    #[schemars(schema_with = "schema::topologies")]
    pub topology: Vec<Topology>,
    /// Repeats of each cell, in fresh processes; with `precision` a minimum.
    #[serde(default)]
    pub runs: u32,
    /// When to make further repeats; absent: never. In a file its keys are those of `plan`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(skip)]
    pub precision: Option<Precision>,
}

impl Selection {
    /// Whether the number of a cell's runs depends on their results.
    pub fn run_count(&self) -> RunCount {
        self.precision.map_or(RunCount::Fixed, |asked| RunCount::UpTo(asked.runs_max as usize))
    }

    /// Whether ping and pong are on two hosts.
    pub fn is_across_hosts(&self) -> bool {
        self.topology == [Topology::TwoHosts]
    }
}

/// The preparation for low latency before a run.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum Tuning {
    /// None.
    #[default]
    Default,
    /// CPU affinity, SCHED_FIFO, locked memory, 1 ns timer slack.
    Tuned,
    /// `tuned`, and idle cores do not enter sleep states.
    Awake,
}

impl Tuning {
    /// The name in scenarios and reports.
    pub fn name(self) -> &'static str {
        match self {
            Tuning::Default => "default",
            Tuning::Tuned => "tuned",
            Tuning::Awake => "awake",
        }
    }
}

impl fmt::Display for Tuning {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Cells are repeated beyond `runs` until their median is known this well, or up to a limit.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Precision {
    /// Requested width of the median's interval, in per cent of the median.
    pub interval_percent: f64,
    /// Limit of the runs of a cell, including failed and invalid ones.
    pub runs_max: u32,
}

/// The meaning of `tuned` on this host.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[serde(default)]
pub struct TuningChoice {
    /// CPU of ping; chosen from the topology if absent.
    pub ping_cpu: Option<usize>,
    /// CPU of pong; chosen from the topology if absent.
    pub pong_cpu: Option<usize>,
    /// SCHED_FIFO priority.
    pub priority: u32,
}

impl Default for TuningChoice {
    fn default() -> Self {
        TuningChoice { ping_cpu: None, pong_cpu: None, priority: 80 }
    }
}

/// Reads rates: a number, or "max" for none, which is null in JSON.
fn rates<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Option<f64>>, D::Error> {
    #[derive(Deserialize)]
    enum Word {
        #[serde(rename = "max")]
        Max,
    }
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "rate_hz: neither messages a second nor \"max\"")]
    enum Rate {
        Hertz(Option<f64>),
        Word(Word),
    }
    let rates = Vec::<Rate>::deserialize(input)?.into_iter();
    Ok(rates.map(|rate| if let Rate::Hertz(hertz) = rate { hertz } else { None }).collect())
}

/// Reads frames: a word in scenarios, width and height in JSON.
fn frames<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Frame>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "frames: not a word such as \"1440x1080\"")]
    enum FrameText {
        Word(String),
        Frame(Frame),
    }
    let frame = |written| match written {
        FrameText::Word(word) => frame_of(&word).ok_or_else(|| D::Error::custom("not a frame")),
        FrameText::Frame(frame) => Ok(frame),
    };
    Vec::<FrameText>::deserialize(input)?.into_iter().map(frame).collect()
}

fn two_processes() -> Vec<Topology> {
    vec![Topology::TwoProcesses]
}

/// Reads one topology, several, or "any" for all of one host.
fn topologies<'de, D: Deserializer<'de>>(input: D) -> Result<Vec<Topology>, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged, expecting = "topology: neither a word nor a list of words")]
    enum OneOrMany {
        One(String),
        Many(Vec<String>),
    }
    let one_host = [Topology::TwoProcesses, Topology::OneProcess];
    let words = match OneOrMany::deserialize(input)? {
        OneOrMany::One(word) if word == "any" => return Ok(one_host.into()),
        OneOrMany::One(word) => vec![word],
        OneOrMany::Many(words) => words,
    };
    let topology = |word: String| {
        let mut known = one_host.into_iter().chain([Topology::TwoHosts]);
        let unknown = || D::Error::custom(format!("topology: unknown {word:?}; {TOPOLOGIES}"));
        known.find(|topology| topology.name() == word).ok_or_else(unknown)
    };
    words.into_iter().map(topology).collect()
}

/// A frame as scenarios write it: `1440x1080`.
pub fn frame_name(frame: Frame) -> String {
    format!("{}x{}", frame.width, frame.height)
}

fn frame_of(name: &str) -> Option<Frame> {
    let (width, height) = name.split_once('x')?;
    let side = |text: &str| text.parse().ok().filter(|side| (1..=SIDE_MAX).contains(side));
    Some(Frame { width: side(width)?, height: side(height)? })
}

const TOPOLOGIES: &str =
    "use \"two-processes\", \"one-process\", a list of them, \"any\", or \"two-hosts\"";
/// The largest frame, with both sides at the limit, has 805 MB.
const SIDE_MAX: u32 = 16_384;
/// A cache line takes at least 100 ns from core to core and back. A faster publish run ends when
/// its records are full.
const MESSAGES_PER_S_MAX: f64 = 1e7;
