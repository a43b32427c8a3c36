//! What only the plots and the per-second tables need.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Distribution, ObservedColumns, SlowMessage, Stages, Summary, Timeline};

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
