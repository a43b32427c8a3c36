//! What an analysis yields and every report is made from.
//!
//! [`Summary`] is the stable file `summary.json`; units are in the names, absent means not
//! measured, null means withheld for want of samples. [`Analysis`] adds what only the plots and
//! the per-second tables need.

mod cell;
mod timeline;

use std::collections::BTreeMap;

use myelin_bench_kit::protocol::{Reliability, Topology, Touch, Transport, Wait};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::plan::one;
pub use cell::Cell;
#[cfg(test)]
pub(crate) use cell::{Better, OverRuns};
pub(crate) use cell::{METRICS, Metric, Value};
pub use timeline::{
    Around, Bin, HeatMap, ObservedColumns, SlowMessage, Stage, StageMean, Stages, Timeline, Window,
};

/// `summary.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Version of this layout: [`SCHEMA`].
    pub schema: u32,
    /// The machine the figures were measured on.
    pub host: Machine,
    /// The command that repeats the measurement.
    pub command: String,
    /// Every system that was asked for.
    pub systems: Vec<SystemInfo>,
    /// One entry per scenario × system × tuning × parameter point, in plan order.
    pub cells: Vec<Cell>,
    /// What a reader must know: tunings left out, limits not raised, an interrupted plan.
    pub notes: Vec<String>,
    /// What of the results folder could not be read or was not its own: file, reason and remedy.
    /// The rest of the summary is of what is whole. Absent if everything is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
}

impl Summary {
    /// Whether every planned cell has a valid run.
    pub fn all_valid(&self) -> bool {
        self.cells.iter().all(|cell| cell.valid)
    }
}

/// A system as it was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SystemInfo {
    /// For instance `cyclonedds.udp`.
    pub name: String,
    /// In one line.
    pub about: String,
    /// Of the middleware; may be empty.
    pub version: String,
    /// How its subscriber waits.
    pub wait: Wait,
    /// What its messages travel over.
    pub transport: Transport,
    /// Where its ends live.
    #[serde(default)]
    pub topology: Topology,
    /// Whether it writes into loaned memory.
    pub loans: bool,
    /// Whether it is a bare primitive of the operating system.
    pub floor: bool,
    /// Why it did not run, and what to install; null if it did.
    pub missing: Option<String>,
}

/// The slope of the median publish call from one subscriber to several.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FurtherSubscriber {
    /// (p50 here − p50 at one subscriber) / (subscribers − 1).
    pub ns: f64,
    /// 95 % bootstrap interval over runs of the difference of the medians of the runs' own; null with
    /// fewer than 5 runs of either.
    pub interval_ns: Option<[f64; 2]>,
}

/// A distribution in microseconds. A percentile is null with fewer than ten samples beyond it, and
/// where one of several runs alone reaches it; a median with fewer than ten samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
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

/// Messages whose two sides ran on the same CPU, or on different ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Placement {
    /// Whether ping and pong took the message on the same CPU; of a stream, whether it was
    /// published and taken on one.
    pub same_cpu: bool,
    /// Part of all messages, 0 to 1.
    pub share: f64,
    /// The round trips of this placement; absent of streams and images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<Distribution>,
    /// The one-way latencies of this placement; of streams and images alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_us: Option<Distribution>,
}

impl Placement {
    /// What is compared of this placement.
    pub fn latency(&self) -> Option<&Distribution> {
        self.round_trip_us.as_ref().or(self.one_way_us.as_ref())
    }

    /// Its median; `None` where that was withheld.
    pub fn p50(&self) -> Option<f64> {
        self.latency()?.p50
    }
}

/// CPU of one process of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessUse {
    /// `ping`, `pong` or the daemon's name.
    pub role: String,
    /// All threads, while measuring; 100 is one core.
    pub cpu_percent: f64,
    /// Part of it in user mode; the split is sampled by the kernel's tick, and null where runs were
    /// too short for it.
    pub user_percent: Option<f64>,
    /// Resident set at the end; largest run.
    pub rss_bytes: u64,
    /// Gave up the CPU itself, all threads.
    pub voluntary_switches_per_s: f64,
    /// Was made to, all threads.
    pub involuntary_switches_per_s: f64,
    /// How many threads; largest run. 0 in a file of an earlier version.
    #[serde(default)]
    pub thread_count: u32,
    /// Threads by name, busiest first: CPU in per cent of a core.
    pub threads: Vec<ThreadUse>,
}

/// CPU of one thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadUse {
    /// As in `/proc/PID/task/TID/comm`.
    pub name: String,
    /// 100 is one core.
    pub cpu_percent: f64,
}

/// A parameter point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// Bytes of payload, beyond the 8 of the sequence number.
    pub payload_bytes: u64,
    /// Messages a second; null for back to back.
    pub rate_hz: Option<f64>,
    /// How the subscriber waits.
    pub wait: Wait,
    /// Subscribers per topic.
    pub subscribers: u32,
    /// How much of a message is written and read; absent for `stamps`, the default.
    #[serde(default, skip_serializing_if = "Touch::is_default")]
    pub touch: Touch,
    /// Of images, in pixels, for instance `1440x1080`; three bytes each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
    /// Of streams and images: the name of the schedule, if the scenario names any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<String>,
    /// Publishers of the topic, each a process; absent for 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub publishers: u32,
    /// Topics that messages go to in turn; absent for 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub topics: u32,
    /// Of workloads that go one way: what the system was set to, whatever the scenario asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<Reliability>,
    /// Of workloads that go one way: messages kept for a subscriber that lags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// What a module of a robot sends so, for instance `localisation`; if the scenario names any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
}

impl Params {
    /// Without what only describes a system.
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
        }
    }
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

/// How repeating a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// The width of the median's interval asked for, in per cent of the median.
    pub asked_percent: f64,
    /// The width reached; null where there is no interval.
    pub reached_percent: Option<f64>,
    /// Whether that is narrow enough; if not, the limit of runs was reached.
    pub is_narrow: bool,
}

/// How pong's clock stood to ping's, of the runs of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockFigures {
    /// What pong's clock was ahead by in the middle of the first run; within `error_us`.
    pub offset_us: f64,
    /// When that was, on ping's `CLOCK_MONOTONIC`.
    pub at_s: f64,
    /// What pong's clock gained on ping's, in microseconds a second, over the first run.
    pub drift_ppm: f64,
    /// How wrong `drift_ppm` may be.
    pub drift_error_ppm: f64,
    /// How wrong a one-way figure of any run may be because of the clocks: a bound, not a deviation.
    pub error_us: f64,
    /// How often pong's clock was asked, in all runs.
    pub exchanges: u64,
    /// The least time that a question and its answer were on their way.
    pub least_delay_us: f64,
    /// One-way latencies below zero, which two clocks known within an error alone can yield.
    pub negative: u64,
}

/// What a cut of the link between the hosts did in one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutFigures {
    /// When the link went down, in seconds from the first measured message.
    pub at_s: f64,
    /// How long it was down.
    pub for_s: f64,
    /// The longest time without a message taken that the cut is a part of; null if nothing was taken
    /// before it, or nothing after.
    pub silent_s: Option<f64>,
    /// Messages sent while it was down.
    pub sent: u64,
    /// Those of them that were never taken.
    pub lost: u64,
    /// Those of them that were taken when it was up again.
    pub late: u64,
}

/// A summary with what only plots and per-second tables need; `details[i]` belongs to `cells[i]`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Analysis {
    /// The stable part.
    pub summary: Summary,
    /// One entry per cell.
    pub details: Vec<Detail>,
}

/// The distribution of a cell in full.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Detail {
    /// Of the cell, for names of files: `quick-os.futex-default-64B`.
    #[serde(default)]
    pub name: String,
    /// The latencies of `curve`, all of them: HdrHistogram's buckets of three significant digits, as
    /// the largest value in ns and the count, ascending.
    #[serde(default)]
    pub histogram: Vec<(u64, u64)>,
    /// Round trip, publish call or one-way latency by quantile, pooled over runs, ascending; ends
    /// where fewer than ten samples lie beyond, or one run alone goes on. A quantile of 0.99 is the 99th percentile.
    pub curve: Vec<CurvePoint>,
    /// The same at the quantiles 1/400, 3/400, 5/400 …, in µs, ends where `curve` does: fine where
    /// most messages are, to see modes.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub even_us: Vec<f64>,
    /// Each run on its own, in the order of execution.
    pub runs: Vec<RunPoint>,
    /// Rows of one second each, of the first valid run; empty for runs shorter than two seconds.
    pub seconds: Vec<Second>,
    /// What was observed over time, of the first valid run; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<ObservedColumns>,
    /// Messages over time, of the run that `series` is of; absent of floods and start-ups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timeline: Option<Timeline>,
    /// Where the time of the messages goes; absent where it is not divided.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stages: Option<Stages>,
    /// The ten slowest messages of all runs that are used, the slowest first.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slowest: Vec<SlowMessage>,
    /// Files with the configuration the system was given, name → text.
    pub configuration: BTreeMap<String, String>,
    /// Where the tuned runs had their place; absent if they were not pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<Pinned>,
}

/// What tuned processes are given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pinned {
    /// The CPUs of ping and pong.
    pub cpus: [usize; 2],
    /// Of SCHED_FIFO, where the system's manner of waiting allows it.
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

/// One run of a cell.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunPoint {
    /// Place in the order of execution of the whole plan, from 0.
    pub order: u32,
    /// Median round trip, publish call or one-way latency; null with too few samples.
    pub p50_us: Option<f64>,
    /// 99th percentile; null with too few samples.
    pub p99_us: Option<f64>,
    /// Whether it was valid.
    pub valid: bool,
    /// The latency at each of [`RUN_QUANTILES`] that has ten samples beyond it, from the first on.
    #[serde(default)]
    pub curve_us: Vec<f64>,
    /// As `p50_us`, of the messages whose two ends were on different CPUs.
    #[serde(default)]
    pub cross_p50_us: Option<f64>,
    /// As `p99_us`, of the messages whose two ends were on different CPUs.
    #[serde(default)]
    pub cross_p99_us: Option<f64>,
    /// Of start-ups: until pong had taken a message.
    #[serde(default)]
    pub first_sample_us: Option<f64>,
    /// CPU of ping, pong and daemons for each message published; null if not observed.
    #[serde(default)]
    pub cpu_us_per_message: Option<f64>,
    /// Proportional memory of ping, pong and daemons at the end; null if not observed.
    #[serde(default)]
    pub pss_bytes: Option<u64>,
    /// Of floods: messages taken a second, back to back.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_per_s: Option<f64>,
    /// Of floods: the highest rate at which nothing was lost.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lossless_per_s: Option<f64>,
}

/// A percentile that each run has of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Percentile {
    /// The median.
    P50,
    /// The 99th.
    P99,
}

impl RunPoint {
    /// Its latency; of the messages whose two ends were on different CPUs alone, if `across`.
    pub fn latency(&self, at: Percentile, across: bool) -> Option<f64> {
        match (at, across) {
            (Percentile::P50, false) => self.p50_us,
            (Percentile::P50, true) => self.cross_p50_us,
            (Percentile::P99, false) => self.p99_us,
            (Percentile::P99, true) => self.cross_p99_us,
        }
    }
}

/// Of [`RunPoint::curve_us`]: tenths up to p90, then half a step or less of a nine at a time.
pub const RUN_QUANTILES: [f64; 19] = [
    0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999,
    0.9995, 0.9998, 0.9999,
];

/// One second of a run. Whole round trips; the formats of RoundtripPing and ddsperf print halves.
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
    /// The take; absent where not measured.
    pub read_us: Option<Distribution>,
}

/// [`Summary::schema`]. Of 1 intervals were bootstraps, which were called 95 % and had less.
pub const SCHEMA: u32 = 2;
