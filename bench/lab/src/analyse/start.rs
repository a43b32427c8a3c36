//! What only start-ups have: one figure a run, and the daemon's.

use myelin_bench_kit::protocol::Done;

use super::distribution::Sorted;
use super::judged::JudgedRun;
use crate::record::RunRecord;
use crate::scenario::Kind;
use crate::summary::Distribution;

/// What a start-up measures: how long until the first message was taken.
pub(super) fn latency(record: &RunRecord) -> Sorted {
    Sorted::new(record.first_sample_ms.map(ns).into_iter().collect())
}

/// The counts of a start-up: of the messages sent until one was taken, none is lost.
pub(super) fn counts(record: &RunRecord) -> Done {
    let ping = record.ping.clone().unwrap_or_default();
    let received = u64::from(record.first_sample_ms.is_some());
    Done { received, lost: 0, ..ping }
}

/// Until both ends had matched.
pub(super) fn matched(runs: &[&JudgedRun], kind: Kind) -> Option<Distribution> {
    over(runs, kind, |record| Some(record.startup_ms))
}

/// Until pong had taken a message.
pub(super) fn first_sample(runs: &[&JudgedRun], kind: Kind) -> Option<Distribution> {
    over(runs, kind, |record| record.first_sample_ms)
}

fn over(
    runs: &[&JudgedRun],
    kind: Kind,
    of: impl Fn(&RunRecord) -> Option<f64>,
) -> Option<Distribution> {
    let values = runs.iter().filter_map(|run| of(&run.record)).map(ns).collect();
    Sorted::new(values).distribution().filter(|_| kind == Kind::Startup)
}

fn ns(ms: f64) -> i64 {
    (ms * 1e6).round() as i64
}
