//! What only floods have: how much was taken meanwhile, and the rate of which nothing is lost.

use myelin_bench_kit::flood::{LOSSLESS, TAKEN};

use super::judged::JudgedRun;
use crate::stats::median;

/// Messages taken a second while ping published back to back; median of the runs.
pub(super) fn taken_per_s(runs: &[&JudgedRun]) -> Option<f64> {
    let of = |run: &&JudgedRun| {
        let ping = run.record.ping.as_ref()?;
        let seconds = ping.end_ns.saturating_sub(ping.begin_ns) as f64 * 1e-9;
        Some(*ping.more.get(TAKEN)? as f64 / seconds).filter(|rate| rate.is_finite())
    };
    median(runs.iter().filter_map(of).collect())
}

/// The highest rate at which nothing was lost; median of the runs.
pub(super) fn lossless_per_s(runs: &[&JudgedRun]) -> Option<f64> {
    let of = |run: &&JudgedRun| {
        let found = *run.record.ping.as_ref()?.more.get(LOSSLESS)?;
        Some(found as f64 / 1e3)
    };
    median(runs.iter().filter_map(of).collect())
}
