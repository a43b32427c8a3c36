//! What tuning gains, for each system and size.

use super::super::document::{Column, Part, Table, TableCell};
use super::super::format;
use super::super::table::told;
use super::super::view::{Group, View};
use crate::scenario::Tuning;
use crate::stats::verdict::Verdict;
use crate::summary::Percentile;

/// p50 and p99 of each tuning over those before it.
pub(super) fn gains(view: &View) -> Vec<Part> {
    let groups = view.groups.iter().filter(|group| group.is_steady() && group.tunings.len() > 1);
    let part = |group: &Group| {
        let at = [("p50", Percentile::P50), ("p99", Percentile::P99)];
        let columns = steps(&group.tunings).into_iter().flat_map(|[from, to]| {
            at.map(|(head, at)| (Column::new(format!("{from} → {to}"), head), (from, to, at)))
        });
        let rows = group.peers().flat_map(|system| {
            let label = move |payload| format!("{}, {}", system.name, group.size(payload));
            group.payloads.iter().map(move |&payload| (label(payload), (system.name, payload)))
        });
        let caption = "how many times lower, with the 95 % interval; ≈ no difference, ? too noisy \
                       or too few runs to tell; below 1 it costs";
        let mut table =
            Table::new(caption, columns.collect(), rows, |(system, payload), (from, to, at)| {
                let entry = |tuning: &Tuning| group.entry(system, *tuning, *payload);
                let verdict = entry(to).zip(entry(from));
                let verdict = verdict.and_then(|(to, from)| group.verdicts.of(to, from, *at));
                verdict.map_or_else(TableCell::absent, gain)
            });
        table.rows.retain(|row| row.cells.iter().any(|cell| !cell.main.is_empty()));
        (!table.rows.is_empty()).then(|| Part {
            title: format!("What tuning gains: {}", group.title()),
            tables: vec![table],
            is_detail: true,
            ..Part::default()
        })
    };
    groups.filter_map(part).collect()
}

/// From each tuning to those after it: default → tuned, tuned → awake, default → awake.
fn steps(tunings: &[Tuning]) -> Vec<[Tuning; 2]> {
    let to = |(place, to): (usize, &Tuning)| {
        let to = *to;
        tunings[..place].iter().rev().map(move |from| [*from, to])
    };
    tunings.iter().enumerate().flat_map(to).collect()
}

fn gain(verdict: Verdict) -> TableCell {
    let ratio = verdict.ratio.inverse();
    let factor = format::factor(ratio.value);
    let small = ratio.interval.map(format::factor_interval).unwrap_or_default();
    TableCell::plain(told(verdict.kind, factor)).tone(Some(verdict.kind)).small(small)
}
