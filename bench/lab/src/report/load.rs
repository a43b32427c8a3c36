//! Messages beside a load against the same messages alone: a table for each point with a load.

use super::cells::Notes;
use super::document::{Column, Table, TableCell, Tone};
use super::entry::{Entry, RATE_TOLERANCE};
use super::format;
use super::view::{Group, View};
use crate::stats::of_medians;
use crate::summary::{Distribution, LoadFigures, Params};

/// A table for each payload with a load; none without any.
pub(super) fn tables(view: &View) -> Vec<Table> {
    let loaded = view.groups.iter().filter(|group| group.params().load.is_some());
    let of = |group| {
        let alone = alone(group, view);
        group.payloads.iter().filter_map(move |payload| table(group, alone?, *payload))
    };
    loaded.flat_map(of).collect()
}

/// The group of the same messages without a load.
fn alone<'v, 'a>(group: &Group<'a>, view: &'v View<'a>) -> Option<&'v Group<'a>> {
    let point = |group: &Group| Params { payload_bytes: 0, frame: None, ..group.params().point() };
    let wanted = Params { load: None, ..point(group) };
    let topology = |group: &Group| group.entries.first().map(|entry| entry.cell.topology);
    view.groups.iter().find(|other| {
        other.scenario == group.scenario
            && other.workload == group.workload
            && topology(other) == topology(group)
            && point(other) == wanted
    })
}

fn table<'a>(group: &Group<'a>, alone: &Group<'a>, payload: u64) -> Option<Table> {
    let here = |entry: &&Entry<'a>| entry.cell.params.payload_bytes == payload;
    let entries: Vec<&Entry> = group.entries.iter().filter(here).collect();
    let load = entries.iter().find_map(|entry| entry.cell.load.as_ref())?;
    let columns = FIGURES.iter().map(|it| (Column::new(it.0, it.1), it.2)).collect();
    let pair = |entry: &&Entry<'a>| {
        let twin = alone.entry(entry.system.name, entry.cell.tuning, payload).copied();
        (entry.configuration(), Pair { beside: **entry, alone: twin })
    };
    let mut notes = Notes::default();
    let rows = entries.iter().map(pair);
    let caption = caption(group, payload, load);
    let mut table = Table::new(caption, columns, rows, |pair, of: &fn(&Pair) -> _| of(pair));
    let rate = FIGURES.iter().position(|it| it.0 == LOAD).unwrap_or_default();
    for (row, entry) in table.rows.iter_mut().zip(&entries) {
        row.cells[0].mark = notes.invalid(entry);
        row.cells[rate].mark = short_of_load(entry).map(|note| notes.add(note));
    }
    Some(Table { notes: notes.0, ..table })
}

/// `command-beside-images: 64 B, 1000 Hz, alone and beside images (10 MiB at 5 Hz): …`.
fn caption(group: &Group, payload: u64, load: &LoadFigures) -> String {
    let params = group.params();
    format!(
        "{}: {}, {}, alone and beside {} ({} at {}): {}, µs; ×: beside ÷ alone, with the interval \
         over runs",
        group.scenario,
        group.size(payload),
        format::rate(params.rate_hz),
        params.load.as_deref().unwrap_or_default(),
        format::bytes(load.payload_bytes),
        format::rate(Some(load.rate_hz)),
        group.metric.words(),
    )
}

/// A remark that less of the load arrived than was asked for: its messages were beside less.
fn short_of_load(entry: &Entry) -> Option<String> {
    let load = entry.cell.load.as_ref()?;
    let got = load.received_per_s.filter(|got| *got < load.rate_hz * (1.0 - RATE_TOLERANCE))?;
    let [got, asked] = [got, load.rate_hz].map(format::amount);
    Some(format!("{}: of the load {got} of {asked} messages a second were taken", entry.name()))
}

/// A cell with a load and, if it was measured, the same cell without.
struct Pair<'a> {
    beside: Entry<'a>,
    alone: Option<Entry<'a>>,
}

type Percentile = fn(&Distribution) -> Option<f64>;

impl Pair<'_> {
    fn of_alone(&self, part: Percentile) -> TableCell {
        self.alone.map_or_else(TableCell::absent, |alone| latency(&alone, part, Tone::Minor))
    }

    fn of_both(&self, part: Percentile) -> TableCell {
        latency(&self.beside, part, Tone::Plain)
    }

    /// How many times as large the figure is beside the load; its interval is that of the figure of
    /// single runs.
    fn ratio(&self, part: Percentile, of_run: Option<&str>) -> TableCell {
        let of = |entry: &Entry| entry.latency().and_then(part).filter(|us| us.is_finite());
        let both = self.alone.filter(|alone| alone.cell.valid && self.beside.cell.valid);
        let Some(ratio) = both.and_then(|alone| Some(of(&self.beside)? / of(&alone)?)) else {
            return TableCell::plain(format::WITHHELD).title("not measured, invalid, or withheld");
        };
        let runs = |entry: &Entry| -> Vec<f64> {
            let valid = entry.detail.runs.iter().filter(|run| run.valid);
            valid.filter_map(|run| run.get(of_run?)).filter(|us| us.is_finite()).collect()
        };
        let interval = self.alone.and_then(|alone| {
            of_medians(&runs(&self.beside), &runs(&alone), |beside, alone| beside / alone)
        });
        let interval = interval.map(format::factor_interval);
        TableCell::plain(format::factor(ratio)).small(interval.unwrap_or_default())
    }

    fn load(&self, of: impl Fn(&LoadFigures) -> TableCell) -> TableCell {
        let load = self.beside.cell.load.as_ref();
        load.map_or_else(TableCell::absent, of).valid(self.beside.cell.valid)
    }
}

fn latency(entry: &Entry, part: Percentile, tone: Tone) -> TableCell {
    let us = format::us_or_dash(entry.latency().and_then(part));
    TableCell::plain(us).tone(tone).valid(entry.cell.valid).title(entry.name())
}

/// The rate that arrives; a system can protect the messages by starving the load.
fn taken(load: &LoadFigures) -> TableCell {
    let sent = format::or_dash(load.sent_per_s, format::amount);
    let title = format!("{sent} sent a second, {} asked for", format::amount(load.rate_hz));
    TableCell::plain(format::or_dash(load.received_per_s, format::amount)).title(title)
}

fn lost(load: &LoadFigures) -> TableCell {
    let due = (load.lost + load.received).max(1);
    let [sent, taken, lost] = [load.sent, load.received, load.lost].map(format::count);
    TableCell::plain(format::percent(100.0 * load.lost as f64 / due as f64))
        .title(format!("{sent} sent, {taken} taken, {lost} lost"))
}

fn load_latency(load: &LoadFigures) -> TableCell {
    let of = |part: Percentile| format::us_or_dash(load.one_way_us.as_ref().and_then(part));
    TableCell::plain(of(|it| it.p50)).side(of(|it| Some(it.max)))
}

fn load_cpu(load: &LoadFigures) -> TableCell {
    TableCell::plain(format::us_or_dash(load.cpu_us_per_message))
}

/// A column: the shared heading, its own heading, and its cells.
struct Figure(&'static str, &'static str, fn(&Pair<'_>) -> TableCell);

const LOAD: &str = "load";

const FIGURES: &[Figure] = &[
    Figure("p50", "alone", |pair| pair.of_alone(|it| it.p50)),
    Figure("p50", "beside", |pair| pair.of_both(|it| it.p50)),
    Figure("p50", "×", |pair| pair.ratio(|it| it.p50, Some("p50_us"))),
    Figure("p99", "alone", |pair| pair.of_alone(|it| it.p99)),
    Figure("p99", "beside", |pair| pair.of_both(|it| it.p99)),
    Figure("p99", "×", |pair| pair.ratio(|it| it.p99, Some("p99_us"))),
    Figure("max", "alone", |pair| pair.of_alone(|it| Some(it.max))),
    Figure("max", "beside", |pair| pair.of_both(|it| Some(it.max))),
    Figure("max", "×", |pair| pair.ratio(|it| Some(it.max), None)),
    Figure(LOAD, "a second", |pair| pair.load(taken)),
    Figure(LOAD, "lost %", |pair| pair.load(lost)),
    Figure(LOAD, "p50 max", |pair| pair.load(load_latency)),
    Figure(LOAD, "CPU µs/message", |pair| pair.load(load_cpu)),
];
