//! Whether a run had settled: a test of stationarity on its latencies in the order of sending.
//!
//! The warm-up is fixed before a run, so somebody must ask afterwards whether it was long enough.
//! The run is cut into [`PARTS`] equal parts and the median of each is taken, which makes of
//! skewed, dependent latencies a short series without outliers. Two rank tests look at that
//! series, each at 0.5 %, so that a run of independent latencies is accused in one
//! case of a hundred at most:
//!
//! - Mann-Kendall with the correction for ties (Mann, "Nonparametric tests against trend",
//!   Econometrica 13, 1945; Kendall, "Rank Correlation Methods", 1975): a drift one way;
//! - Pettitt ("A non-parametric approach to the change-point problem", Applied Statistics 28,
//!   1979): a step, as when a clock, a placement or a size of pool changes in the middle of a run.
//!   Of a clean step Mann-Kendall sees only that many pairs are ordered and as many are not.
//!
//! Either must be joined by an effect that matters: the medians of the first and of the last third
//! of the run differ by more than 10 %, and by more than a step of the clock.
//!
//! Barrett et al. ("Virtual machine warmup blows hot and cold", OOPSLA 2017) segment the whole
//! series by change points (PELT) and call a program steady if its last 500 iterations are one
//! segment. Their question is where the steady state begins, so that a person can choose the
//! warm-up; penalties are tuned to their machines. Here the question is only whether this warm-up
//! will do, asked of every run by a program that nobody watches. That wants a stated rate of false
//! alarms, which rank tests have whatever the distribution. What is given up: a run that departs
//! and comes back within the middle third is not accused (its median hardly moves, and the spread
//! over runs shows it), nor one whose first sixth alone differs.
//!
//! Noise that remembers counts as independent as long as its memory is short against a part. With
//! first-order autoregressive noise whose memory is a tenth of a part, false alarms stay below 1 %;
//! with a whole part some 8 % are accused, with a third of the run half: one run cannot tell
//! such a wander from a drift, and its median is as little to be relied on.

use super::judged::JudgedRun;
use crate::scenario::Kind;
use crate::stats;

/// The medians of the first and of the last third of a run that never settled, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    from_ns: f64,
    to_ns: f64,
}

/// Judges latencies in the order of sending, in nanoseconds; `step_ns` is the clock's. `None` of those
/// that have settled, and of fewer than [`PARTS`] × [`PART_SAMPLES_MIN`].
pub fn drift(latencies_ns: &[i64], step_ns: u64) -> Option<Drift> {
    if latencies_ns.len() < PARTS * PART_SAMPLES_MIN {
        return None;
    }
    let third = latencies_ns.len() / 3;
    let from_ns = median(&latencies_ns[..third]);
    let to_ns = median(&latencies_ns[latencies_ns.len() - third..]);
    let (change_ns, least_ns) = ((to_ns - from_ns).abs(), from_ns.abs().min(to_ns.abs()));
    let matters = change_ns > CHANGE_MIN * least_ns && change_ns > step_ns as f64;
    // Either test may refuse to call them stationary.
    let is_unsteady =
        |series: &[f64]| mann_kendall_z(series).abs() > Z_MAX || pettitt_p(series) < EACH_TEST;
    (matters && is_unsteady(&part_medians(latencies_ns))).then_some(Drift { from_ns, to_ns })
}

/// Whether runs of a workload with so many latencies have a verdict.
pub fn can_tell(kind: Kind, latencies: u64) -> bool {
    let varies = matches!(kind, Kind::Flood | Kind::Startup);
    !varies && latencies >= (PARTS * PART_SAMPLES_MIN) as u64
}

pub(super) fn remarks(runs: &[&JudgedRun]) -> Vec<String> {
    let remark = |run: &&JudgedRun| {
        let Drift { from_ns, to_ns } = run.drift?;
        let (number, from_us, to_us) = (run.number(), from_ns / 1e3, to_ns / 1e3);
        Some(format!("run {number}{NEVER_SETTLED}{from_us} to {to_us} µs"))
    };
    runs.iter().filter_map(remark).collect()
}

/// Whether a remark on a cell is that one of its runs had not settled.
pub fn is_remark(note: &str) -> bool {
    note.contains(NEVER_SETTLED)
}

fn part_medians(values: &[i64]) -> Vec<f64> {
    let edge = |part: usize| part * values.len() / PARTS;
    (0..PARTS).map(|part| median(&values[edge(part)..edge(part + 1)])).collect()
}

fn median(values: &[i64]) -> f64 {
    let values = values.iter().map(|value| *value as f64).collect();
    stats::median(values).expect("a part has latencies")
}

/// Mann-Kendall's S divided by its deviation under no trend, less one for continuity; positive for
/// a rise. 0 if all values are equal.
fn mann_kendall_z(series: &[f64]) -> f64 {
    let spread = |n: f64| n * (n - 1.0) * (2.0 * n + 5.0);
    let mut sorted = series.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let ties: f64 = sorted.chunk_by(f64::eq).map(|tied| spread(tied.len() as f64)).sum();
    let variance = (spread(series.len() as f64) - ties) / 18.0;
    let later = |at: usize| series[at + 1..].iter().map(move |value| sign(series[at], *value));
    let s: i64 = (0..series.len()).flat_map(later).sum();
    match variance > 0.0 {
        true => (s.abs() - 1).max(0) as f64 * s.signum() as f64 / variance.sqrt(),
        false => 0.0,
    }
}

/// The probability, as Pettitt approximates it from above, that a series without a step has one as
/// clear as the clearest of this one.
fn pettitt_p(series: &[f64]) -> f64 {
    let across = |at: usize| -> i64 {
        let (before, after) = series.split_at(at);
        before.iter().flat_map(|one| after.iter().map(|other| sign(*one, *other))).sum()
    };
    let clearest = (1..series.len()).map(|at| across(at).abs()).max().unwrap_or(0) as f64;
    let n = series.len() as f64;
    (2.0 * (-6.0 * clearest.powi(2) / (n.powi(3) + n.powi(2))).exp()).min(1.0)
}

/// 1 if the later value is the greater.
fn sign(earlier: f64, later: f64) -> i64 {
    later.total_cmp(&earlier) as i64
}

const NEVER_SETTLED: &str = " never settled: median drifted from ";
/// Parts of a run. Of ten, a clean step in the middle would not reach 1 % in either test; of thirty
/// it does from a quarter of the run to three quarters.
pub const PARTS: usize = 30;
/// Latencies in a part.
pub const PART_SAMPLES_MIN: usize = 10;
/// Part of the smaller median by which the thirds must differ.
const CHANGE_MIN: f64 = 0.1;
/// False alarms of either test.
const EACH_TEST: f64 = 0.005;
/// What a normal deviate exceeds in magnitude with that probability.
const Z_MAX: f64 = 2.807;

#[cfg(test)]
mod tests;
