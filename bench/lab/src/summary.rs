//! What an analysis yields and every report is made from.
//!
//! [`Summary`] is the stable file `summary.json`; units are in the names, absent means not
//! measured, null means withheld for want of samples. [`Analysis`] adds what only the plots and
//! the per-second tables need.

mod cell;
mod detail;
mod hosts;
mod params;
mod timeline;

use myelin_bench_kit::protocol::{Topology, Transport, Wait};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
pub use cell::Cell;
#[cfg(test)]
pub(crate) use cell::{Better, OverRuns};
pub(crate) use cell::{CellKey, METRICS, Metric, Value};
pub use detail::{
    Analysis, CurvePoint, Detail, Percentile, Pinned, RUN_QUANTILES, RunPoint, Second,
};
pub use hosts::{ClockFigures, CutFigures};
pub use params::{Params, Repeats};
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

/// [`Summary::schema`]. Of 1 intervals were bootstraps, which were called 95 % and had less.
pub const SCHEMA: u32 = 2;
