//! The result of an analysis, from which every report is made.
//!
//! [`Summary`] is the stable file `summary.json`. Units are in the names; an absent value was not
//! measured, a null was withheld because there were too few samples. [`Analysis`] adds the data
//! that only plots and per-second tables need.

mod cell;
mod timeline;

use std::collections::BTreeMap;

use myelin_bench_kit::protocol::{Reliability, Topology, Touch, Transport, Wait};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::plan::{UNKNOWN_BYTES, one};
pub(crate) use cell::{Better, METRICS, OverRuns, Value, is_steady};
pub use cell::{Cell, Compared, Metric};
pub use timeline::{
    Around, Bin, HeatMap, ObservedColumns, SlowMessage, Stage, StageMean, Stages, Timeline, Window,
};

/// `summary.json`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Summary {
    /// Version of this layout: [`SCHEMA`].
    pub schema: u32,
    /// The machine of the measurement.
    pub host: Machine,
    /// The command that repeats the measurement.
    pub command: String,
    /// Every requested system.
    pub systems: Vec<SystemInfo>,
    /// One entry per scenario × system × tuning × parameter point, in plan order.
    pub cells: Vec<Cell>,
    /// Remarks for the reader: tunings left out, limits not raised, an interrupted plan.
    pub notes: Vec<String>,
    /// Parts of the results folder that are unreadable or foreign: file, reason and remedy. The
    /// rest of the summary covers the intact parts. Absent if everything is intact.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
}

impl Summary {
    /// Whether every planned cell has a valid run.
    pub fn all_valid(&self) -> bool {
        self.cells.iter().all(|cell| cell.valid)
    }
}

/// A system and its properties.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct SystemInfo {
    /// For instance `cyclonedds.udp`.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// Version of the middleware; may be empty.
    pub version: String,
    /// How its subscriber waits.
    pub wait: Wait,
    /// How its messages travel.
    pub transport: Transport,
    /// Where its ends run.
    #[serde(default)]
    pub topology: Topology,
    /// Whether publishers write into loaned memory.
    pub loans: bool,
    /// Whether it is a primitive of the operating system.
    pub floor: bool,
    /// Why it did not run, and what to install; null if it did.
    pub missing: Option<String>,
}

/// The slope of the median publish call from one subscriber to several.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct FurtherSubscriber {
    /// (p50 here − p50 at one subscriber) / (subscribers − 1).
    pub ns: f64,
    /// 95 % bootstrap interval over runs, for the difference of the runs' medians; null with fewer
    /// than 5 runs on either side.
    pub interval_ns: Option<[f64; 2]>,
}

/// A distribution in microseconds. A percentile is null if fewer than ten samples lie beyond it, or
/// if only one of several runs reaches it; a median is null with fewer than ten samples. A lost
/// message is above all others: a percentile that so many were lost at is infinite, in JSON null.
/// Least, mean and largest are of the messages that arrived.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Distribution {
    /// Smallest.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: f64,
}

/// Messages whose two ends ran on the same CPU, or on different ones.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct Placement {
    /// Whether ping and pong took the message on the same CPU; for streams, whether it was
    /// published and taken on the same one.
    pub same_cpu: bool,
    /// Share of all messages, 0 to 1.
    pub share: f64,
    /// The round trips of this placement; absent for streams and images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<Distribution>,
    /// The one-way latencies of this placement; only for streams and images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_us: Option<Distribution>,
}

impl Placement {
    /// The latency that comparisons use.
    pub fn latency(&self) -> Option<&Distribution> {
        self.round_trip_us.as_ref().or(self.one_way_us.as_ref())
    }

    /// The median of that latency; `None` if it was withheld.
    pub fn p50(&self) -> Option<f64> {
        self.latency()?.p50
    }
}

/// A topic of a replayed recording.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TopicFigures {
    /// Its name.
    pub topic: String,
    /// Messages a second, as recorded.
    pub rate_hz: f64,
    /// Mean bytes of a message.
    pub payload_bytes: u64,
    /// Bytes of the largest message.
    pub payload_bytes_max: u64,
    /// Messages published, in all runs.
    pub sent: u64,
    /// Messages taken, in all runs.
    pub received: u64,
    /// Messages never taken, in all runs.
    pub lost: u64,
    /// From the time a message was due until the take returns; absent if nothing was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_us: Option<Distribution>,
}

/// CPU of one process of a cell.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ProcessUse {
    /// `ping`, `pong` or the daemon's name.
    pub role: String,
    /// CPU of all threads while measuring; 100 is one core.
    pub cpu_percent: f64,
    /// The part in user mode. The kernel samples it at its tick; null if runs were too short for
    /// that.
    pub user_percent: Option<f64>,
    /// Resident set at the end, of the largest run.
    pub rss_bytes: u64,
    /// Times that its threads gave up the CPU.
    pub voluntary_switches_per_s: f64,
    /// Times that its threads were preempted.
    pub involuntary_switches_per_s: f64,
    /// Number of threads, of the largest run. 0 in a file of an earlier version.
    #[serde(default)]
    pub thread_count: u32,
    /// Threads by name, busiest first: CPU in per cent of a core.
    pub threads: Vec<ThreadUse>,
}

/// CPU of one thread.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
pub struct ThreadUse {
    /// The name in `/proc/PID/task/TID/comm`.
    pub name: String,
    /// 100 is one core.
    pub cpu_percent: f64,
}

/// A parameter point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Params {
    /// Bytes of payload, in addition to the 8 of the sequence number; absent for an imported trace
    /// whose messages have no size, or different ones.
    #[serde(default = "unknown", skip_serializing_if = "is_unknown")]
    pub payload_bytes: u64,
    /// Messages a second; null for back to back, and for an imported trace.
    pub rate_hz: Option<f64>,
    /// How the subscriber waits.
    pub wait: Wait,
    /// Subscribers per topic.
    pub subscribers: u32,
    /// How much of a message is written and read; absent for `stamps`, the default.
    #[serde(default, skip_serializing_if = "Touch::is_default")]
    pub touch: Touch,
    /// Size of images in pixels, for instance `1440x1080`; three bytes each. Only for images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
    /// Name of the schedule of streams and images, if the scenario names one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<String>,
    /// Publishers of the topic, one process each; absent for 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub publishers: u32,
    /// Topics that messages are sent to in turn; absent for 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub topics: u32,
    /// The reliability that the system used, which may differ from the request; only for one-way
    /// workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<Reliability>,
    /// Messages kept for a slow subscriber; only for one-way workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// Name of the module that sends these messages, for instance `localisation`, or the topic of an
    /// imported trace; only if the scenario names modules, or the trace topics.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
    /// Name of the load beside these messages; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<String>,
    /// Name of the file whose messages are replayed; `payload_bytes` and `rate_hz` are their means.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<String>,
    /// Whether these are the messages of an application, imported from its trace; absent if not.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub imported: bool,
}

impl Params {
    /// Bytes of payload; `None` if they are not known.
    pub fn size(&self) -> Option<u64> {
        Some(self.payload_bytes).filter(|bytes| !is_unknown(bytes))
    }

    /// The parameters without the fields that only describe a system.
    pub(crate) fn point(&self) -> Self {
        Params { wait: Wait::None, reliability: None, depth: None, ..self.clone() }
    }
}

impl Default for Params {
    /// One publisher and one subscriber of one topic, back to back.
    fn default() -> Self {
        Params {
            payload_bytes: 0,
            rate_hz: None,
            wait: Wait::None,
            subscribers: 1,
            touch: Touch::default(),
            frame: None,
            arrivals: None,
            publishers: 1,
            topics: 1,
            reliability: None,
            depth: None,
            module: None,
            load: None,
            recording: None,
            imported: false,
        }
    }
}

fn unknown() -> u64 {
    UNKNOWN_BYTES
}

fn is_unknown(bytes: &u64) -> bool {
    *bytes == UNKNOWN_BYTES
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

/// The result of repeating a cell.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct Repeats {
    /// Requested width of the median's interval, in per cent of the median.
    pub asked_percent: f64,
    /// The reached width; null if there is no interval.
    pub reached_percent: Option<f64>,
    /// Whether that is narrow enough; if not, the limit of runs was reached.
    pub is_narrow: bool,
}

/// The relation of pong's clock to ping's in the runs of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct ClockFigures {
    /// Offset of pong's clock, ahead of ping's, in the middle of the first run; its error is at
    /// most `error_us`.
    pub offset_us: f64,
    /// The time of that offset, on ping's `CLOCK_MONOTONIC`.
    pub at_s: f64,
    /// Drift of pong's clock against ping's over the first run, in microseconds a second.
    pub drift_ppm: f64,
    /// Bound of the error of `drift_ppm`.
    pub drift_error_ppm: f64,
    /// Bound of the error that the clocks add to a one-way figure of any run; not a deviation.
    pub error_us: f64,
    /// Number of readings of pong's clock, in all runs.
    pub exchanges: u64,
    /// Least round-trip time of such a reading.
    pub least_delay_us: f64,
    /// One-way latencies below zero, which are possible if two clocks agree only within an error.
    pub negative: u64,
}

/// The load beside the messages of a cell: a stream of the same system, in processes of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LoadFigures {
    /// Bytes of each message, in addition to the 8 of the sequence number.
    pub payload_bytes: u64,
    /// Requested messages a second.
    pub rate_hz: f64,
    /// The reliability that the system used.
    pub reliability: Reliability,
    /// Messages kept for a slow subscriber.
    pub depth: u32,
    /// Messages published, in all runs.
    pub sent: u64,
    /// Messages taken, in all runs.
    pub received: u64,
    /// Messages never taken, in all runs.
    pub lost: u64,
    /// Messages published a second; null if nothing was published.
    pub sent_per_s: Option<f64>,
    /// Messages taken for each second of publishing.
    pub received_per_s: Option<f64>,
    /// CPU of its two processes for each published message; null if its driver does not tell.
    pub cpu_us_per_message: Option<f64>,
    /// From the time a message was due until the take returns; absent if nothing was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_us: Option<Distribution>,
}

/// The effect of a cut of the link between the hosts in one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct CutFigures {
    /// When the link went down, in seconds from the first measured message.
    pub at_s: f64,
    /// Duration of the cut.
    pub for_s: f64,
    /// The longest time without a taken message that overlaps the cut; null if nothing was taken
    /// before it, or nothing after.
    pub silent_s: Option<f64>,
    /// Messages sent during the cut.
    pub sent: u64,
    /// Those of them that were never taken.
    pub lost: u64,
    /// Those of them that were taken after the cut.
    pub late: u64,
}

/// A summary with the data that only plots and per-second tables need; `details[i]` belongs to
/// `cells[i]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Analysis {
    /// The stable part.
    pub summary: Summary,
    /// One entry per cell.
    pub details: Vec<Detail>,
}

/// The full distribution of a cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Detail {
    /// The cell's name in file names: `quick-os.futex-default-64B`.
    #[serde(default)]
    pub name: String,
    /// All latencies of `curve`, in HdrHistogram's buckets of three significant digits: largest
    /// value in ns and count, ascending.
    #[serde(default)]
    pub histogram: Vec<(u64, u64)>,
    /// Round trip, publish call or one-way latency by quantile, pooled over runs, ascending. It
    /// ends where fewer than ten samples lie beyond, or where only one run continues. A quantile of
    /// 0.99 is the 99th percentile.
    pub curve: Vec<CurvePoint>,
    /// The same at the quantiles 1/400, 3/400, 5/400 …, in µs; it ends where `curve` does. It is
    /// fine where most messages are, so that modes show.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub even_us: Vec<f64>,
    /// Each single run, in the order of execution.
    pub runs: Vec<RunFigures>,
    /// Rows of one second each, from the first valid run; empty for runs shorter than two seconds.
    pub seconds: Vec<Second>,
    /// Observations over time, from the first valid run; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<ObservedColumns>,
    /// Messages over time, from the run of `series`; absent for floods and start-ups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Where the time of the messages goes; absent if it is not divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<Stages>,
    /// The ten slowest messages of all used runs, slowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowMessage>,
    /// Configuration files of the system, name → text.
    pub configuration: BTreeMap<String, String>,
    /// CPUs and priority of the tuned runs; absent if they were not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
}

/// CPUs and priority of tuned processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    /// The CPUs of ping and pong.
    pub cpus: [usize; 2],
    /// Priority of SCHED_FIFO, if the system's way of waiting allows it.
    pub priority: u32,
}

/// A point of a percentile curve.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct CurvePoint {
    /// 0 to 1.
    pub quantile: f64,
    /// Pooled over runs.
    pub us: f64,
    /// Smallest and largest of the runs at this quantile.
    pub low_us: f64,
    /// See `low_us`.
    pub high_us: f64,
}

/// One run of a cell, and its rows of `figures.parquet`.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunFigures {
    /// Position in the order of execution of the whole plan, from 0.
    pub order: u32,
    /// Whether the run was valid.
    pub valid: bool,
    /// The latency at each of [`RUN_QUANTILES`], from the first up to the last one with ten samples
    /// beyond it.
    #[serde(default)]
    pub curve_us: Vec<f64>,
    /// By the name of the metric; null is infinite.
    pub(crate) figures: BTreeMap<String, Option<f64>>,
}

/// A percentile of each single run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Percentile {
    /// The median.
    P50,
    /// The 99th.
    P99,
}

impl RunFigures {
    /// A run with these figures.
    pub fn new<'a>(
        order: u32,
        valid: bool,
        figures: impl IntoIterator<Item = (&'a str, Option<f64>)>,
    ) -> Self {
        let mut run = RunFigures { order, valid, ..RunFigures::default() };
        for (name, value) in figures {
            run.set(name, value);
        }
        run
    }

    /// The figure; `None` if it was not measured or has too few samples.
    pub fn get(&self, name: &str) -> Option<f64> {
        self.figures.get(name).map(|value| value.unwrap_or(f64::INFINITY))
    }

    /// Sets a figure, or removes it.
    pub fn set(&mut self, name: &str, value: Option<f64>) {
        match value {
            Some(value) => {
                self.figures.insert(name.to_owned(), Some(value).filter(|it| it.is_finite()))
            }
            None => self.figures.remove(name),
        };
    }

    /// All figures, by name.
    pub fn all(&self) -> impl Iterator<Item = (&str, f64)> {
        self.figures.iter().map(|(name, value)| (name.as_str(), value.unwrap_or(f64::INFINITY)))
    }

    /// Whether it lacks something without this figure. A run without messages across CPUs does not
    /// lack their latency.
    pub(crate) fn should_have(&self, figure: &str) -> bool {
        !figure.starts_with("cross_") || self.get("cross_p50_us").is_some()
    }
}

impl Percentile {
    /// The figure of a run; with `across` only of messages whose two ends were on different CPUs.
    pub fn figure(self, across: bool) -> &'static str {
        match (self, across) {
            (Percentile::P50, false) => "p50_us",
            (Percentile::P50, true) => "cross_p50_us",
            (Percentile::P99, false) => "p99_us",
            (Percentile::P99, true) => "cross_p99_us",
        }
    }
}

/// Quantiles of [`RunFigures::curve_us`]: tenths up to p90, then steps of at most half a nine.
pub const RUN_QUANTILES: [f64; 19] = [
    0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999,
    0.9995, 0.9998, 0.9999,
];

/// One second of a run, in whole round trips; the formats of RoundtripPing and ddsperf print
/// halves.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Second {
    /// From 1.
    pub second: u32,
    /// Round trips in this second.
    pub count: u64,
    /// Round trip, in µs. Percentiles as in [`Distribution`].
    pub round_trip_us: Distribution,
    /// The publish call.
    pub write_us: Distribution,
    /// The take; absent if not measured.
    pub read_us: Option<Distribution>,
}

/// Current value of [`Summary::schema`]. In version 1 intervals were bootstraps; they were called
/// 95 % but covered less.
pub const SCHEMA: u32 = 2;
