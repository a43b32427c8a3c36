//! Figures of single workloads: counts of one-way workloads, the cost of each further subscriber,
//! the throughput of a flood, the duration of a start-up.

use myelin_bench_kit::flood::{LOSSLESS, TAKEN};
use myelin_bench_kit::protocol::Done;

use super::distribution::{Sorted, us};
use super::judged::JudgedRun;
use crate::record::RunRecord;
use crate::scenario::Kind;
use crate::stats::of_medians;
use crate::summary::{Cell, FurtherSubscriber, Params};

/// The counts of a run. In one-way workloads ping counts the sent messages and pong the taken ones.
/// A start-up sends messages until one is taken; none of them counts as lost.
pub(super) fn counts(record: &RunRecord, kind: Kind, subscribers: u32) -> Done {
    let ping = record.ping.clone().unwrap_or_default();
    let pong = record.pong.clone().unwrap_or_default();
    let expected = ping.sent * u64::from(subscribers);
    match kind {
        Kind::Roundtrip => ping,
        Kind::Startup => {
            Done { received: record.first_sample_ms.is_some().into(), lost: 0, ..ping }
        }
        _ => Done {
            received: pong.received,
            lost: expected.saturating_sub(pong.received),
            duplicates: pong.duplicates,
            out_of_order: pong.out_of_order,
            corrupt: pong.corrupt,
            ..ping
        },
    }
}

/// Messages that a flood took per second while ping published back to back.
pub(super) fn taken_per_s(run: &RunRecord) -> Option<f64> {
    let ping = run.ping.as_ref()?;
    let seconds = ping.end_ns.saturating_sub(ping.begin_ns) as f64 * 1e-9;
    Some(*ping.more.get(TAKEN)? as f64 / seconds).filter(|rate| rate.is_finite())
}

/// Highest rate of a flood without loss.
pub(super) fn lossless_per_s(run: &RunRecord) -> Option<f64> {
    Some(*run.ping.as_ref()?.more.get(LOSSLESS)? as f64 / 1e3)
}

/// Start-up times, one for each run.
pub(super) fn starts<'a>(
    runs: impl IntoIterator<Item = &'a RunRecord>,
    ms_of: fn(&RunRecord) -> Option<f64>,
) -> Sorted {
    let ns = |ms: f64| (ms * 1e6).round() as i64;
    Sorted::new(runs.into_iter().filter_map(ms_of).map(ns).collect())
}

/// Fills in the cost of each subscriber beyond the first. `writes[i]` are the [`medians`] of the
/// runs of `cells[i]`.
pub(super) fn compare_subscribers(cells: &mut [Cell], writes: &[Vec<f64>]) {
    let slopes: Vec<_> = (0..cells.len())
        .map(|index| {
            let base = (0..cells.len()).find(|&other| is_base(&cells[other], &cells[index]))?;
            slope(&cells[index], &cells[base], &writes[index], &writes[base])
        })
        .collect();
    for (cell, slope) in cells.iter_mut().zip(slopes) {
        cell.further_subscriber = slope;
    }
}

/// Whether `base` differs from `cell` only by having one subscriber, and `cell` has more.
fn is_base(base: &Cell, cell: &Cell) -> bool {
    let alone = Params { subscribers: 1, ..cell.params.clone() };
    cell.workload == Kind::Publish
        && cell.params.subscribers > 1
        && base.key() == cell.key()
        && base.params == alone
}

fn slope(cell: &Cell, base: &Cell, runs: &[f64], base_runs: &[f64]) -> Option<FurtherSubscriber> {
    let further = f64::from(cell.params.subscribers - 1);
    let per_subscriber_ns = |us: f64| us * 1e3 / further;
    let median = |cell: &Cell| cell.write_us?.p50.filter(|_| cell.valid);
    Some(FurtherSubscriber {
        ns: per_subscriber_ns(median(cell)? - median(base)?),
        interval_ns: of_medians(runs, base_runs, |one, base| one - base)
            .map(|ends| ends.map(per_subscriber_ns)),
    })
}

/// Median of the publish call of each run.
pub(super) fn medians(runs: &[&JudgedRun<'_>]) -> Vec<f64> {
    runs.iter().filter_map(|run| run.latency.quantile(0.5)).map(us).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_not_taken_by_pong_are_lost() {
        let record = |sent, received| RunRecord {
            ping: Some(Done { sent, end_ns: 9, ..Done::default() }),
            pong: Some(Done { received, duplicates: 2, ..Done::default() }),
            ..RunRecord::default()
        };
        let found = counts(&record(100, 750), Kind::Publish, 8);
        assert_eq!((found.sent, found.received, found.lost), (100, 750, 50));
        assert_eq!((found.duplicates, found.end_ns), (2, 9));
        assert_eq!(counts(&record(100, 0), Kind::Publish, 0).lost, 0);
    }
}
