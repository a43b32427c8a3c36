//! Floods and start-ups as a reader meets them: a row for every configuration. What of a flood is
//! read is how much goes through; the latency of its messages is the depth of a queue.

use super::document::{Column, Row, Table, TableCell, Tone};
use super::entry::Entry;
use super::flow::{label, lost, ordered, plain};
use super::table::{Notes, absent};
use super::validity;
use super::view::Group;
use super::words;
use crate::summary::Distribution;

/// How much goes through, for each size.
pub(super) fn floods(group: &Group) -> Vec<Table> {
    let table = |&payload: &u64| {
        let what = "back to back for as long as the run lasts; then the highest rate without loss";
        figures(group, payload, what, FLOOD)
    };
    group.payloads.iter().map(table).collect()
}

/// How long until the first message, for each size.
pub(super) fn startups(group: &Group) -> Vec<Table> {
    let table = |&payload: &u64| {
        let what = "from the start of the later process, over runs, ms; daemons start before";
        figures(group, payload, what, STARTUP)
    };
    group.payloads.iter().map(table).collect()
}

/// A heading, one below it, and what a cell has there.
type Figure = (&'static str, &'static str, fn(&Entry) -> TableCell);

fn figures(group: &Group, payload: u64, what: &str, figures: &[Figure]) -> Table {
    let entries = ordered(group, payload);
    let is_there =
        |figure: &&Figure| entries.iter().any(|entry| !(figure.2)(entry).main.is_empty());
    let columns: Vec<&Figure> = figures.iter().filter(is_there).collect();
    let mut notes = Notes::default();
    let mut row = |entry: &&Entry| {
        let cells = columns.iter().enumerate();
        let cells = cells.map(|(place, figure)| {
            let mark = (place == 0 && !entry.cell.valid).then(|| notes.add(invalid(entry)));
            toned(entry, (figure.2)(entry), mark)
        });
        Row { label: label(entry, &entries), cells: cells.collect() }
    };
    let rows = entries.iter().map(&mut row).collect();
    Table {
        caption: format!("{}: {what}", group.size(payload)),
        columns: columns
            .iter()
            .map(|(group, head, _)| Column { group: (*group).to_owned(), head: (*head).to_owned() })
            .collect(),
        rows,
        notes: notes.0,
    }
}

fn invalid(entry: &Entry) -> String {
    format!("invalid: {}: {}", entry.name(), validity::reasons(entry))
}

fn toned(entry: &Entry, cell: TableCell, mark: Option<usize>) -> TableCell {
    let tone = match (entry.cell.valid, entry.system.floor) {
        (false, _) => Tone::Invalid,
        (true, true) => Tone::Faint,
        (true, false) => cell.tone,
    };
    TableCell { tone, mark, ..cell }
}

fn amount(value: Option<f64>) -> TableCell {
    value.map_or_else(absent, |value| main(words::amount(value)))
}

/// A figure that matters as much as any.
fn main(text: String) -> TableCell {
    TableCell { main: text, ..TableCell::default() }
}

/// Median and 99th percentile in µs.
fn write(entry: &Entry) -> TableCell {
    entry.cell.write_us.map_or_else(absent, |it| TableCell {
        side: words::us_or_dash(it.p99),
        ..plain(words::us_or_dash(it.p50))
    })
}

fn no_loss(entry: &Entry) -> TableCell {
    match entry.cell.lossless_per_s {
        Some(rate) => main(words::amount(rate)),
        None => TableCell {
            title: "no rate was found at which nothing was lost".to_owned(),
            ..plain(words::WITHHELD.to_owned())
        },
    }
}

fn ms(us: Option<f64>) -> TableCell {
    plain(us.map_or_else(|| words::WITHHELD.to_owned(), |us| words::us(us / 1e3)))
}

fn daemon(entry: &Entry) -> TableCell {
    entry.cell.daemon_ms.map_or_else(absent, |it| plain(words::us(it)))
}

/// Part of a distribution over runs, in ms.
fn part(of: Option<Distribution>, value: fn(Distribution) -> Option<f64>) -> TableCell {
    of.map_or_else(absent, |of| ms(value(of)))
}

/// From the start of the daemon, if there is one, to the first sample.
fn altogether(entry: &Entry) -> TableCell {
    let cell = entry.cell;
    let Some(first) = cell.first_sample_us else { return absent() };
    let total = cell.daemon_ms.unwrap_or(0.0) + first.mean / 1e3;
    TableCell {
        title: "median of the daemon's start, mean of the first sample".to_owned(),
        ..main(words::us(total))
    }
}

const FLOOD: &[Figure] = &[
    ("taken", "a second", |entry| amount(entry.cell.taken_per_s)),
    ("taken", "MB/s", |entry| {
        let bytes = entry.cell.params.payload_bytes as f64;
        amount(entry.cell.taken_per_s.map(|rate| rate * bytes / 1e6))
    }),
    ("published", "a second", |entry| plain(words::amount(entry.cell.throughput_per_s))),
    ("published", "lost %", lost),
    ("without loss", "a second", no_loss),
    ("publish, µs", "p50 p99", write),
    ("CPU", "µs/message", |entry| plain(words::us(entry.cell.cpu_us_per_message))),
    ("CPU", "% of a core", |entry| plain(words::cpu_percent(entry.cell.cpu_percent))),
    ("PSS", "MB", |entry| plain(words::megabytes(entry.cell.pss_bytes))),
    ("QoS", "and depth", |entry| plain(words::qos(&entry.cell.params))),
];

const STARTUP: &[Figure] = &[
    ("daemon", "answers", |entry| daemon(entry)),
    ("both ends matched", "min", |entry| part(entry.cell.matched_us, |of| Some(of.min))),
    ("both ends matched", "mean", |entry| part(entry.cell.matched_us, |of| Some(of.mean))),
    ("both ends matched", "p50", |entry| part(entry.cell.matched_us, |of| of.p50)),
    ("both ends matched", "max", |entry| part(entry.cell.matched_us, |of| Some(of.max))),
    ("first sample taken", "min", |entry| part(entry.cell.first_sample_us, |of| Some(of.min))),
    ("first sample taken", "mean", |entry| part(entry.cell.first_sample_us, |of| Some(of.mean))),
    ("first sample taken", "p50", |entry| part(entry.cell.first_sample_us, |of| of.p50)),
    ("first sample taken", "max", |entry| part(entry.cell.first_sample_us, |of| Some(of.max))),
    ("with the daemon", "mean", altogether),
    ("runs", "", |entry| plain(entry.cell.runs.to_string())),
];
