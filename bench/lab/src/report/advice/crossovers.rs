//! The size from which shared memory pays against the network stack of the same middleware: the
//! smallest that was measured from which on its median is told to be the lower at every size.

use myelin_bench_kit::protocol::Transport;

use super::super::document::{Column, Part, Table, TableCell};
use super::super::format;
use super::super::view::{Group, Traits, View};
use crate::scenario::Tuning;
use crate::stats::verdict::Kind;

pub(super) fn crossovers(view: &View) -> Vec<Part> {
    let part = |group: &Group| {
        let row = |(shared, network): (Traits, Traits)| {
            let told = |tuning: &Tuning| told(group, [shared.name, network.name], *tuning);
            let told: Vec<_> = group.tunings.iter().map(told).collect();
            let is_told = told.iter().any(|sizes| sizes.len() > 1);
            is_told.then(|| (label((shared, network)), told))
        };
        let rows: Vec<_> = pairs(group).into_iter().filter_map(row).collect();
        let columns = group.tunings.iter().enumerate();
        let columns =
            columns.map(|(place, tuning)| (Column::new(tuning.name(), ""), place)).collect();
        let caption = "the smallest payload measured from which on its p50 is told to be the \
                       lower; and up to which it is told to be the higher";
        (!rows.is_empty()).then(|| Part {
            title: format!("Where shared memory begins to pay: {}", group.title()),
            tables: vec![Table::new(caption, columns, rows, |told, place| {
                begin(group, &told[*place])
            })],
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
            format!(" ({})", format::reliability(reliability))
        }
        _ => String::new(),
    };
    let name = |system: Traits| format!("{}{}", system.variant(), promise(system));
    format!("{}: {} over {}", shared.family(), name(shared), name(network))
}

/// What is told of the median of the one beside that of the other, at the sizes at which they may be
/// compared.
fn told(group: &Group, [shared, network]: [&str; 2], tuning: Tuning) -> Vec<(u64, Kind)> {
    let told = |&payload: &u64| {
        let entry = |system: &str| group.entry(system, tuning, payload);
        Some((payload, group.verdict(entry(shared)?, entry(network)?)?.kind))
    };
    group.payloads.iter().filter_map(told).collect()
}

fn begin(group: &Group, sizes: &[(u64, Kind)]) -> TableCell {
    if sizes.len() < 2 {
        return TableCell::absent();
    }
    let pays = sizes.iter().rev().take_while(|(_, kind)| *kind == Kind::Better).count();
    let (before, paying) = sizes.split_at(sizes.len() - pays);
    let is_worse = |(_, kind): &&(u64, Kind)| *kind == Kind::Worse;
    let last_worse = before.iter().rev().find(is_worse);
    let main = match (paying.first(), before.last()) {
        (Some(_), None) => "at all sizes".to_owned(),
        (Some((payload, _)), _) => format!("from {}", group.size(*payload)),
        (None, Some((_, Kind::Worse))) => "not at the largest".to_owned(),
        (None, _) => "cannot be told".to_owned(),
    };
    let small = match last_worse {
        Some((payload, _)) => format!("slower up to {}", group.size(*payload)),
        None if pays > 0 && !before.is_empty() => "below it not told".to_owned(),
        None => String::new(),
    };
    TableCell::plain(main).small(small)
}
