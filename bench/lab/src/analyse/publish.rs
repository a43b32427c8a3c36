//! What only publish runs have: counts of two sides that do not answer each other, and the cost of
//! each further subscriber.

use myelin_bench_kit::protocol::Done;

use super::distribution::us;
use super::judged::JudgedRun;
use crate::record::RunRecord;
use crate::scenario::Kind;
use crate::stats::bootstrap::of_medians;
use crate::summary::{Cell, CellKey, FurtherSubscriber, Params};

/// The counts of a run: ping knows what was sent, pong what was taken.
pub(super) fn counts(record: &RunRecord, subscribers: u32) -> Done {
    let ping = record.ping.clone().unwrap_or_default();
    let pong = record.pong.clone().unwrap_or_default();
    let expected = ping.sent * u64::from(subscribers);
    Done {
        received: pong.received,
        lost: expected.saturating_sub(pong.received),
        duplicates: pong.duplicates,
        out_of_order: pong.out_of_order,
        corrupt: pong.corrupt,
        ..ping
    }
}

/// Fills in what each subscriber beyond the first adds. `writes[i]` are the [`medians`] of the runs
/// that `cells[i]` comes from.
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

/// Whether `base` is the same but for its one subscriber, and `cell` has more.
fn is_base(base: &Cell, cell: &Cell) -> bool {
    let alone = Params { subscribers: 1, ..cell.params.clone() };
    cell.workload == Kind::Publish
        && cell.params.subscribers > 1
        && base.key() == CellKey { params: alone, ..cell.key() }
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

/// Of the publish call, of each run.
pub(super) fn medians(runs: &[&JudgedRun]) -> Vec<f64> {
    runs.iter().filter_map(|run| run.latency.quantile(0.5)).map(us).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_pong_did_not_take_is_lost() {
        let record = |sent, received| RunRecord {
            ping: Some(Done { sent, end_ns: 9, ..Done::default() }),
            pong: Some(Done { received, duplicates: 2, ..Done::default() }),
            ..RunRecord::default()
        };
        let found = counts(&record(100, 750), 8);
        assert_eq!((found.sent, found.received, found.lost), (100, 750, 50));
        assert_eq!((found.duplicates, found.end_ns), (2, 9));
        assert_eq!(counts(&record(100, 0), 0).lost, 0);
    }
}
