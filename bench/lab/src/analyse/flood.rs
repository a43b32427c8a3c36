//! What only floods have: how much was taken meanwhile, and the rate of which nothing is lost.

use myelin_bench_kit::flood::{LOSSLESS, TAKEN};

use crate::record::RunRecord;

/// Messages taken a second while ping published back to back.
pub(super) fn taken_per_s(run: &RunRecord) -> Option<f64> {
    let ping = run.ping.as_ref()?;
    let seconds = ping.end_ns.saturating_sub(ping.begin_ns) as f64 * 1e-9;
    Some(*ping.more.get(TAKEN)? as f64 / seconds).filter(|rate| rate.is_finite())
}

/// The highest rate at which nothing was lost.
pub(super) fn lossless_per_s(run: &RunRecord) -> Option<f64> {
    Some(*run.ping.as_ref()?.more.get(LOSSLESS)? as f64 / 1e3)
}
