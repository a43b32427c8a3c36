//! What an analysis yields and every report is made from.
//!
//! [`Summary`] is the stable file `summary.json`; units are in the names, absent means not
//! measured, null means withheld for want of samples. [`Analysis`] adds what only the plots and
//! the per-second tables need.

mod cell;
mod detail;
mod timeline;

use myelin_bench_kit::protocol::{Reliability, Topology, Touch, Transport, Wait};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
use crate::plan::one;
pub use cell::Cell;
#[cfg(test)]
pub(crate) use cell::{Better, OverRuns};
pub(crate) use cell::{METRICS, Metric, Value};
pub use detail::{
    Analysis, CurvePoint, Detail, Percentile, Pinned, RUN_QUANTILES, RunPoint, Second,
};
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

/// [`Summary::schema`]. Of 1 intervals were bootstraps, which were called 95 % and had less.
pub const SCHEMA: u32 = 2;
