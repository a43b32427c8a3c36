//! The figures of a cell that are compared, run by run.

use myelin_bench_kit::protocol::Workload;
use serde::Serialize;

use crate::report::entry::Entry;
use crate::report::words;
use crate::summary::{Percentile, RunPoint};

/// What is compared. Of all of them less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub enum Figure {
    /// Median of a run's latency: round trip, publish call or one way.
    #[serde(rename = "p50_us")]
    P50,
    /// 99th percentile of a run's latency.
    #[serde(rename = "p99_us")]
    P99,
    /// Of a start-up, which is a run: until the first message was taken.
    #[serde(rename = "first_sample_us")]
    FirstSample,
    /// CPU of all processes for each message published. Not per cent of a core: that is as much as
    /// there is back to back, however much is done with it, and falls where a rate is not reached.
    #[serde(rename = "cpu_us_per_message")]
    Cpu,
    /// Proportional memory of all processes at the end.
    #[serde(rename = "pss_bytes")]
    Memory,
}

/// In the order of reports.
pub const FIGURES: [Figure; 5] =
    [Figure::P50, Figure::P99, Figure::FirstSample, Figure::Cpu, Figure::Memory];

impl Figure {
    /// Whether cells of this kind have it. The latency of a flood is the depth of a queue; CPU for
    /// each message means nothing where only the first counts.
    pub(super) fn is_of(self, entry: &Entry) -> bool {
        let is_startup = entry.cell.workload == Workload::Startup;
        match self {
            Figure::P50 | Figure::P99 => entry.is_steady(),
            Figure::FirstSample => is_startup,
            Figure::Cpu => !is_startup,
            Figure::Memory => true,
        }
    }

    /// Whether it is a latency of messages, which depends on where the two ends ran.
    pub(super) fn is_latency(self) -> bool {
        matches!(self, Figure::P50 | Figure::P99)
    }

    /// Of one run; of messages across cores alone, if `across`.
    pub(super) fn of(self, run: &RunPoint, across: bool) -> Option<f64> {
        match self {
            Figure::P50 => run.latency(Percentile::P50, across),
            Figure::P99 => run.latency(Percentile::P99, across),
            Figure::FirstSample => run.first_sample_us,
            Figure::Cpu => run.cpu_us_per_message,
            Figure::Memory => run.pss_bytes.map(|bytes| bytes as f64),
        }
    }

    /// A difference up to this is none, whatever part of the whole it is: of latencies a step of the
    /// clock, of memory [`MEMORY_MATERIAL`].
    pub(super) fn immaterial(self, clock_step_ns: u64) -> f64 {
        match self {
            Figure::P50 | Figure::P99 => clock_step_ns as f64 / 1e3,
            Figure::FirstSample | Figure::Cpu => 0.0,
            Figure::Memory => MEMORY_MATERIAL,
        }
    }

    /// As a heading.
    pub fn words(self) -> &'static str {
        match self {
            Figure::P50 => "p50",
            Figure::P99 => "p99",
            Figure::FirstSample => "first sample",
            Figure::Cpu => "CPU",
            Figure::Memory => "memory",
        }
    }

    /// The unit of what [`Figure::text`] writes.
    pub fn unit(self) -> &'static str {
        match self {
            Figure::P50 | Figure::P99 | Figure::FirstSample => "µs",
            Figure::Cpu => "µs for each message",
            Figure::Memory => "MB (PSS)",
        }
    }

    /// A value without its unit.
    pub fn text(self, value: f64) -> String {
        match self {
            Figure::Memory => words::megabytes(value as u64),
            _ => words::us(value),
        }
    }
}

/// Bytes. Proportional memory shares out the pages of the C library and the like among all who map
/// them, so it moves when other programs start and end: by 0.13 MB between ten sessions of two
/// small processes on a busy machine.
const MEMORY_MATERIAL: f64 = 500e3;
