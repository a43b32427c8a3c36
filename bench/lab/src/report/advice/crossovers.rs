//! The size from which shared memory pays against the network stack of the same middleware.

use myelin_bench_kit::protocol::Transport;

use super::super::document::{Part, Row, Table, TableCell};
use super::super::table::absent;
use super::super::view::{Group, Traits, View};
use super::super::words;
use super::plain_columns;
use crate::advise::crossover::{Crossover, From, Point, crossover};
use crate::stats::RUNS_MIN;
use crate::summary::Percentile;

pub(super) fn crossovers(view: &View) -> Vec<Part> {
    let part = |group: &Group| {
        let pairs = pairs(group);
        let row = |&(shared, network): &(Traits, Traits)| {
            let found: Vec<_> = group
                .tunings
                .iter()
                .map(|tuning| crossover(&points(group, [shared.name, network.name], tuning)))
                .collect();
            let cell = |found: &Option<Crossover>| found.map_or_else(absent, |it| begin(group, it));
            found.iter().any(Option::is_some).then(|| Row {
                label: label((shared, network)),
                cells: found.iter().map(cell).collect(),
            })
        };
        let rows: Vec<Row> = pairs.iter().filter_map(row).collect();
        (!rows.is_empty()).then(|| Part {
            title: format!("Where shared memory begins to pay: {}", group.title()),
            tables: vec![Table {
                caption: format!(
                    "payload from which its p50 is the lower at all sizes measured, and 95 % of a \
                     bootstrap over runs, of which it takes {RUNS_MIN}"
                ),
                columns: plain_columns(&group.tunings),
                rows,
                notes: vec![],
            }],
            ..Part::default()
        })
    };
    view.groups.iter().filter(|group| group.is_steady()).filter_map(part).collect()
}

/// Systems over shared memory with those of the same middleware over the network stack that live and
/// wait alike. Where they promise unlike things, the label says so.
fn pairs<'a>(group: &Group<'a>) -> Vec<(Traits<'a>, Traits<'a>)> {
    let over = |transport| group.peers().filter(move |peer| peer.transport == transport);
    let alike = |a: Traits, b: Traits| {
        let way = |system: Traits| (system.kin().topology, system.kin().manner);
        a.family() == b.family() && way(a) == way(b)
    };
    let pairs = over(Transport::SharedMemory).flat_map(|shared| {
        let networks = over(Transport::Loopback).filter(move |network| alike(shared, *network));
        networks.map(move |network| (shared, network))
    });
    pairs.collect()
}

fn label((shared, network): (Traits, Traits)) -> String {
    let promise = |system: Traits| match system.reliability {
        Some(reliability) if shared.reliability != network.reliability => {
            format!(" ({})", words::reliability(reliability))
        }
        _ => String::new(),
    };
    let name = |system: Traits| {
        let (_, rest) = system.name.split_once('.').unwrap_or(("", system.name));
        format!("{rest}{}", promise(system))
    };
    format!("{}: {} over {}", shared.family(), name(shared), name(network))
}

/// At the sizes at which both may be compared.
fn points(group: &Group, [shared, network]: [&str; 2], tuning: &str) -> Vec<Point> {
    let runs = |system: &str, payload: u64| -> Option<Vec<f64>> {
        let entry = group.entry(system, tuning, payload)?;
        let medians = entry.fault().is_none().then(|| entry.runs(Percentile::P50))?;
        (!medians.is_empty() && medians.iter().all(|us| *us > 0.0)).then_some(medians)
    };
    let point = |&payload_bytes: &u64| {
        let network = runs(network, payload_bytes)?;
        Some(Point { payload_bytes, network, shared: runs(shared, payload_bytes)? })
    };
    group.payloads.iter().filter_map(point).collect()
}

fn begin(group: &Group, found: Crossover) -> TableCell {
    let ends = group.ends();
    let size = |from: From| match from {
        From::Everywhere => format!("≤ {}", words::bytes(ends[0])),
        From::Bytes(bytes) => words::bytes(bytes.round() as u64),
        From::Nowhere => format!("> {}", words::bytes(ends[ends.len() - 1])),
    };
    TableCell {
        main: match found.from {
            _ if found.interval == Some([From::Everywhere, From::Nowhere]) => {
                "cannot be told".to_owned()
            }
            From::Everywhere => "at all sizes".to_owned(),
            From::Nowhere => "not at the largest".to_owned(),
            from @ From::Bytes(_) => format!("from {}", size(from)),
        },
        small: match found.interval {
            Some([low, high]) => format!("[{}, {}]", size(low), size(high)),
            None => "no interval".to_owned(),
        },
        ..TableCell::default()
    }
}
