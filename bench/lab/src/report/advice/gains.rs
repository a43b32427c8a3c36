//! What tuning gains, for each system and size.

use super::super::document::{Column, Part, Row, Table, TableCell, Tone};
use super::super::format;
use super::super::table::absent;
use super::super::view::{Group, View};
use crate::stats::verdict::{Kind, Verdict};
use crate::summary::Percentile;

/// p50 and p99 of each tuning over those before it.
pub(super) fn gains(view: &View) -> Vec<Part> {
    let groups = view.groups.iter().filter(|group| group.is_steady() && group.tunings.len() > 1);
    let part = |group: &Group| {
        let steps = steps(&group.tunings);
        let columns = steps.iter().flat_map(|[from, to]| {
            ["p50", "p99"]
                .map(|head| Column { group: format!("{from} → {to}"), head: head.to_owned() })
        });
        let row = |system: &str, payload: u64| {
            let cells: Vec<Option<TableCell>> = steps
                .iter()
                .flat_map(|[from, to]| {
                    let pair = || {
                        let to = group.entry(system, to, payload)?;
                        Some((to, group.entry(system, from, payload)?))
                    };
                    [Percentile::P50, Percentile::P99].map(|at| {
                        let (to, from) = pair()?;
                        group.verdicts.of(to, from, at).map(gain)
                    })
                })
                .collect();
            cells.iter().any(Option::is_some).then(|| Row {
                label: format!("{system}, {}", group.size(payload)),
                cells: cells.into_iter().map(|cell| cell.unwrap_or_else(absent)).collect(),
            })
        };
        let rows = group.peers().flat_map(|system| {
            group.payloads.iter().filter_map(move |payload| row(system.name, *payload))
        });
        let rows: Vec<Row> = rows.collect();
        (!rows.is_empty()).then(|| Part {
            title: format!("What tuning gains: {}", group.title()),
            tables: vec![Table {
                caption:
                    "how many times lower, with the 95 % interval; ≈ no difference, ? too noisy or too few runs to tell; below 1 it costs"
                        .to_owned(),
                columns: columns.collect(),
                rows,
                notes: vec![],
            }],
            is_detail: true,
            ..Part::default()
        })
    };
    groups.filter_map(part).collect()
}

/// From each tuning to those after it: default → tuned, tuned → awake, default → awake.
fn steps<'a>(tunings: &[&'a str]) -> Vec<[&'a str; 2]> {
    let to = |(place, to): (usize, &&'a str)| {
        let to = *to;
        tunings[..place].iter().rev().map(move |from| [*from, to]).collect::<Vec<_>>()
    };
    tunings.iter().enumerate().flat_map(to).collect()
}

fn gain(verdict: Verdict) -> TableCell {
    let ratio = verdict.ratio.inverse();
    let factor = format::factor(ratio.value);
    let (main, tone) = match verdict.kind {
        Kind::Better => (factor, Tone::Better),
        Kind::Worse => (factor, Tone::Worse),
        Kind::NoDifference => (format!("≈ {factor}"), Tone::Plain),
        Kind::TooNoisy => (format!("? {factor}"), Tone::Plain),
    };
    let small = ratio.interval.map(format::factor_interval).unwrap_or_default();
    TableCell { main, tone, small, ..TableCell::default() }
}
