//! CyberRT's sweeps against size and against rate. CyberRT published them only as pictures; the
//! modules that lie on the curves have figures, which are shown above ours.

use myelin_bench_kit::protocol::Topology;

use super::super::document::{Column, Table, TableCell, Tone};
use super::super::format;
use super::super::view::{Entry, Group};
use super::data::{self, PublishedValue};
use super::{ours, published, struck};
use crate::lists::distinct;

/// Latency, CPU, memory and loss of every system at every payload and rate, the floor last. The
/// modules on one host and on two come first, under the given labels.
pub(super) fn tables(groups: &[&Group], labels: &[String]) -> Vec<Table> {
    let tuning = groups[0].tunings.first().copied().unwrap_or_default();
    let entries = groups.iter().flat_map(|group| &group.entries);
    let entries: Vec<&Entry> = entries.filter(|entry| entry.cell.tuning == tuning).collect();
    let mut points = distinct(entries.iter().filter_map(|entry| point(entry)));
    points.sort_by(|a, b| a.0.cmp(&b.0).then(a.1.total_cmp(&b.1)));
    let mut systems = distinct(groups.iter().flat_map(|group| group.systems.iter().copied()));
    systems.sort_by_key(|system| system.floor);
    let column = |&(payload, rate): &Point| {
        (Column::new(format::bytes(payload), format::rate(Some(rate))), (payload, rate))
    };
    let table = |(caption, metric): (&str, &str)| {
        let theirs = labels.iter().zip(data::modules());
        let theirs = theirs.map(|(label, modules)| (label.clone(), Err(modules)));
        let ours = systems.iter().map(|system| {
            let place = if system.topology == Topology::TwoHosts { ", across hosts" } else { "" };
            (format!("{}{place}", system.label()), Ok(*system))
        });
        let columns = points.iter().map(column).collect();
        Table::new(caption, columns, theirs.chain(ours), |of, at| match of {
            Err(modules) => module(modules, *at, metric),
            Ok(system) => {
                let is_it = |it: &&&Entry| it.system == *system && point(it) == Some(*at);
                let entry = entries.iter().find(is_it);
                entry.map_or_else(TableCell::absent, |entry| measured(entry, metric))
            }
        })
    };
    METRICS.map(table).into()
}

/// The figure of the module with this size and rate.
fn module(modules: &data::PublishedTable, (payload, rate): Point, metric: &str) -> TableCell {
    let is_it = |row: &data::PublishedRow| {
        row.payload() == Some(payload) && row.number("rate_Hz") == Some(rate)
    };
    let Some(row) = modules.rows().find(is_it) else {
        return TableCell::default().title("not published as a figure");
    };
    let value =
        PublishedValue::Number(row.number(metric).expect("modules have every metric of a sweep"));
    let module = row.text("module").unwrap_or_default();
    TableCell::plain(published(metric, &value)).tone(Tone::Minor).title(module)
}

fn measured(entry: &Entry, metric: &str) -> TableCell {
    let Some(main) = ours(metric, entry, None) else { return TableCell::absent() };
    let p50 = || format::us_or_dash(entry.p50());
    TableCell::plain(struck(entry, main))
        .side(if metric == "latency_us" { p50() } else { String::new() })
        .tone(if entry.system.floor { Tone::Faint } else { Tone::Plain })
        .valid(entry.cell.valid)
        .title(entry.name())
}

fn point(entry: &Entry) -> Option<Point> {
    Some((entry.cell.params.payload_bytes, entry.cell.params.rate_hz?))
}

/// Payload and rate.
type Point = (u64, f64);

const METRICS: [(&str, &str); 4] = [
    ("latency one way, µs: mean, and of ours p50", "latency_us"),
    ("CPU, % of a core", "cpu_percent"),
    ("memory, MB: RSS of all processes together", "memory_MB"),
    ("lost, %", "loss_percent"),
];
