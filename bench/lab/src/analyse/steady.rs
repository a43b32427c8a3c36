//! Whether a run had settled: a test of stationarity on its latencies in the order of sending.
//!
//! The warm-up is fixed before a run, so its length must be checked afterwards. The run is cut into
//! [`PARTS`] equal parts, and each part gives its median. That turns skewed, dependent latencies
//! into a short series without outliers. Two rank tests look at that series, each at 0.5 %, so at
//! most one in a hundred runs of independent latencies is accused:
//!
//! - Mann-Kendall with the correction for ties (Mann, "Nonparametric tests against trend",
//!   Econometrica 13, 1945; Kendall, "Rank Correlation Methods", 1975) finds a drift in one
//!   direction;
//! - Pettitt ("A non-parametric approach to the change-point problem", Applied Statistics 28, 1979)
//!   finds a step, as when a clock, a placement or the size of a pool changes in the middle of a
//!   run. Mann-Kendall is weak against a clean step, in which half of the pairs are unordered.
//!
//! In addition, the effect must matter: the medians of the first and the last third of the run
//! differ by more than 10 %, and by more than a step of the clock.
//!
//! Barrett et al. ("Virtual machine warmup blows hot and cold", OOPSLA 2017) divide the whole
//! series at change points (PELT) and call a program steady if its last 500 iterations are one
//! segment. They ask where the steady state begins, so that a person can choose the warm-up; their
//! penalties are tuned to their machines. Here a program asks of every run, without supervision,
//! only whether this warm-up suffices. That needs a known rate of false alarms, which rank tests
//! have for any distribution. The price: the test misses a run that deviates and returns within the
//! middle third (its median hardly moves, and the spread over runs shows it), and a run of which
//! only the first sixth differs.
//!
//! Correlated noise counts as independent as long as its memory is short against a part. With
//! first-order autoregressive noise whose memory is a tenth of a part, false alarms stay below 1 %.
//! With a memory of one part some 8 % of runs are accused, with a third of the run half of them.
//! One run cannot tell such a wander from a drift, and its median is just as unreliable.

use crate::scenario::Kind;
use crate::stats;

/// The medians of the first and the last third of a run that never settled, in nanoseconds.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Drift {
    from_ns: f64,
    to_ns: f64,
}

/// Tests latencies in the order of sending, in nanoseconds; `step_ns` is the resolution of the
/// clock. `None` if they have settled, or if there are fewer than [`PARTS`] × [`PART_SAMPLES_MIN`].
pub fn drift(latencies_ns: &[i64], step_ns: u64) -> Option<Drift> {
    if latencies_ns.len() < PARTS * PART_SAMPLES_MIN {
        return None;
    }
    let third = latencies_ns.len() / 3;
    let from_ns = median(&latencies_ns[..third]);
    let to_ns = median(&latencies_ns[latencies_ns.len() - third..]);
    let (change_ns, least_ns) = ((to_ns - from_ns).abs(), from_ns.abs().min(to_ns.abs()));
    let matters = change_ns > CHANGE_MIN * least_ns && change_ns > step_ns as f64;
    // One test suffices to reject stationarity.
    let is_unsteady =
        |series: &[f64]| mann_kendall_z(series).abs() > Z_MAX || pettitt_p(series) < EACH_TEST;
    (matters && is_unsteady(&part_medians(latencies_ns))).then_some(Drift { from_ns, to_ns })
}

/// Whether a run of this workload with so many latencies can be judged.
pub fn can_tell(kind: Kind, latencies: u64) -> bool {
    let varies = matches!(kind, Kind::Flood | Kind::Startup);
    !varies && latencies >= (PARTS * PART_SAMPLES_MIN) as u64
}

impl Drift {
    /// A remark on the run with this number.
    pub(super) fn remark(self, number: u32) -> String {
        let (from_us, to_us) = (self.from_ns / 1e3, self.to_ns / 1e3);
        format!("run {number}{NEVER_SETTLED}{from_us} to {to_us} µs")
    }
}

/// Whether a remark on a cell says that one of its runs had not settled.
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

/// Mann-Kendall's S, less one for continuity, divided by its standard deviation without a trend;
/// positive for a rise. 0 if all values are equal.
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

/// Pettitt's upper approximation of the probability that a series without a step shows one as clear
/// as the clearest here.
fn pettitt_p(series: &[f64]) -> f64 {
    let across = |at: usize| -> i64 {
        let (before, after) = series.split_at(at);
        before.iter().flat_map(|one| after.iter().map(|other| sign(*one, *other))).sum()
    };
    let clearest = (1..series.len()).map(|at| across(at).abs()).max().unwrap_or(0) as f64;
    let n = series.len() as f64;
    (2.0 * (-6.0 * clearest.powi(2) / (n.powi(3) + n.powi(2))).exp()).min(1.0)
}

/// 1 if the later value is greater, -1 if it is less, 0 if they are equal.
fn sign(earlier: f64, later: f64) -> i64 {
    later.total_cmp(&earlier) as i64
}

const NEVER_SETTLED: &str = " never settled: median drifted from ";
/// Parts of a run. With ten, neither test would reach 1 % for a clean step in the middle. With
/// thirty they do from a quarter of the run to three quarters.
pub const PARTS: usize = 30;
/// Least number of latencies in a part.
pub const PART_SAMPLES_MIN: usize = 10;
/// Least difference of the thirds, as a fraction of the smaller median.
const CHANGE_MIN: f64 = 0.1;
/// Rate of false alarms of each test.
const EACH_TEST: f64 = 0.005;
/// A normal deviate exceeds this magnitude with that probability.
const Z_MAX: f64 = 2.807;

#[cfg(test)]
mod tests;
