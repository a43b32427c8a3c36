//! What only the plots and the per-second tables need.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Distribution, ObservedColumns, Summary};

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
    /// where fewer than ten samples lie beyond. A quantile of 0.99 is the 99th percentile.
    pub curve: Vec<CurvePoint>,
    /// Each run on its own, in the order of execution.
    pub runs: Vec<RunPoint>,
    /// Rows of one second each, of the first valid run; empty for runs shorter than two seconds.
    pub seconds: Vec<Second>,
    /// What was observed over time, of the first valid run; absent if nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub series: Option<ObservedColumns>,
    /// Files with the configuration the system was given, name → text.
    pub configuration: BTreeMap<String, String>,
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
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunPoint {
    /// Place in the order of execution of the whole plan, from 0.
    pub order: u32,
    /// Median round trip, publish call or one-way latency; null with too few samples.
    pub p50_us: Option<f64>,
    /// 99th percentile; null with too few samples.
    pub p99_us: Option<f64>,
    /// Whether it was valid.
    pub valid: bool,
}

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
