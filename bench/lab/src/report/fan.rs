//! Publish runs as a reader meets them: the publish call against the number of subscribers, in ns.

use myelin_bench_kit::protocol::Transport;

use super::document::{Column, Row, Table, TableCell, Tone};
use super::entry::{Entry, Latency, Traits, traits};
use super::format;
use super::table::absent;
use super::validity;
use super::view::{distinct, tuning_rank};
use crate::summary::{Analysis, Cell, Params};

/// Publish cells that differ in system, tuning, payload and subscribers alone.
pub(super) struct Fan<'a> {
    /// Unique within the report, fit for an HTML id.
    pub id: String,
    pub scenario: &'a str,
    /// Topology and rate in words.
    pub circumstances: String,
    /// In plan order.
    pub entries: Vec<Entry<'a>>,
    /// Ascending.
    pub payloads: Vec<u64>,
    /// Ascending.
    pub subscribers: Vec<u32>,
    pub tunings: Vec<&'a str>,
    pub systems: Vec<Traits<'a>>,
    /// What a clock read costs; 0 if that is not known.
    pub clock_read_ns: f64,
}

impl<'a> Fan<'a> {
    pub(super) fn new(analysis: &'a Analysis, indices: &[usize]) -> Self {
        let summary = &analysis.summary;
        let cells = || indices.iter().map(|&index| &summary.cells[index]);
        let mut payloads = distinct(cells().map(|cell| cell.params.payload_bytes));
        payloads.sort_unstable();
        let mut subscribers = distinct(cells().map(|cell| cell.params.subscribers));
        subscribers.sort_unstable();
        let mut tunings = distinct(cells().map(|cell| cell.tuning.as_str()));
        tunings.sort_by_key(|tuning| tuning_rank(tuning));
        let first = cells().next().expect("a fan is made of at least one cell");
        // Subscribers are rows here.
        let params = Params { subscribers: 1, ..first.params.clone() };
        let entry = |&index: &usize| Entry::new(analysis, index, Latency::Publish);
        Self {
            id: format!("fan-{}", indices[0]),
            scenario: &first.scenario,
            circumstances: format::circumstances(first.topology.name(), first.workload, &params),
            entries: indices.iter().map(entry).collect(),
            payloads,
            subscribers,
            tunings,
            systems: distinct(cells().map(|cell| traits(&summary.systems, cell))),
            clock_read_ns: summary.host.clock_read_ns,
        }
    }

    /// `publish · two processes · 20000 Hz`.
    pub(super) fn title(&self) -> String {
        format!("{} · {}", self.scenario, self.circumstances)
    }

    /// Every pair of payload and subscribers, in order.
    pub(super) fn points(&self) -> impl Iterator<Item = (u64, u32)> {
        let of_payload = |&payload| self.subscribers.iter().map(move |&number| (payload, number));
        self.payloads.iter().flat_map(of_payload)
    }

    /// `8 subscribers`, with the payload where there are several.
    pub(super) fn label(&self, (payload, number): (u64, u32)) -> String {
        let subscribers = format::plural(number as usize, "subscriber");
        match self.payloads.len() {
            1 => subscribers,
            _ => format!("{}, {subscribers}", format::bytes(payload)),
        }
    }

    fn entry(
        &self,
        system: &str,
        tuning: &str,
        (payload, number): (u64, u32),
    ) -> Option<&Entry<'a>> {
        self.entries.iter().find(|entry| {
            let params = &entry.cell.params;
            entry.system.name == system
                && entry.cell.tuning == tuning
                && (params.payload_bytes, params.subscribers) == (payload, number)
        })
    }
}

/// The call itself, and what remains of it beyond the clock, with what a subscriber adds.
pub(super) fn tables(fan: &Fan) -> Vec<Table> {
    let mut notes = Vec::new();
    let call = rows(fan, |entry| call(entry, &mut notes));
    let call = Table { caption: call_caption(fan), columns: columns(fan), rows: call, notes };
    let share = rows(fan, |entry| beyond(fan, entry));
    let share =
        Table { caption: beyond_caption(fan), columns: columns(fan), rows: share, notes: vec![] };
    vec![call, share]
}

fn pairs<'a>(fan: &Fan<'a>) -> impl Iterator<Item = (Traits<'a>, &'a str)> {
    let of_system = |&system| fan.tunings.iter().map(move |&tuning| (system, tuning));
    fan.systems.iter().flat_map(of_system)
}

fn columns(fan: &Fan) -> Vec<Column> {
    let column = |(system, tuning): (Traits, &str)| Column {
        group: system.name.to_owned(),
        head: tuning.to_owned(),
    };
    pairs(fan).map(column).collect()
}

fn rows(fan: &Fan, mut cell: impl FnMut(&Entry) -> TableCell) -> Vec<Row> {
    let mut row = |point| Row {
        label: fan.label(point),
        cells: pairs(fan)
            .map(|(system, tuning)| {
                fan.entry(system.name, tuning, point).map_or_else(absent, &mut cell)
            })
            .collect(),
    };
    fan.points().map(&mut row).collect()
}

fn call_caption(fan: &Fan) -> String {
    let sizes = fan.payloads.iter().map(|&size| format::bytes(size)).collect::<Vec<_>>().join(", ");
    format!("publish call of {sizes}, ns: p50, p99 and [interval of p50, of at least 93.75 %]")
}

fn beyond_caption(fan: &Fan) -> String {
    let clock = match fan.clock_read_ns > 0.0 {
        true => format!("{:.0} ns", fan.clock_read_ns),
        false => "not calibrated".to_owned(),
    };
    format!(
        "p50 less a clock read ({clock}), ns; what each further subscriber adds [95 % interval]"
    )
}

fn call(entry: &Entry, notes: &mut Vec<String>) -> TableCell {
    let mark = (!entry.cell.valid).then(|| {
        notes.push(format!("invalid: {}: {}", entry.name(), validity::reasons(entry)));
        notes.len()
    });
    let latency = entry.latency();
    TableCell {
        main: format::ns_or_dash(entry.p50()),
        side: format::ns_or_dash(latency.and_then(|latency| latency.p99)),
        small: entry.p50_interval().map(format::interval_ns).unwrap_or_default(),
        tone: if entry.cell.valid { Tone::Plain } else { Tone::Invalid },
        mark,
        title: format!("{}: {}", entry.name(), delivery(entry.cell)),
    }
}

fn beyond(fan: &Fan, entry: &Entry) -> TableCell {
    // A simulated clock is read in no time.
    let is_known = fan.clock_read_ns > 0.0 && entry.system.transport != Transport::None;
    let rest = is_known.then(|| Some(entry.p50()? - fan.clock_read_ns / 1e3));
    TableCell {
        main: format::ns_or_dash(rest.flatten()),
        small: entry.cell.further_subscriber.map(format::further_subscriber).unwrap_or_default(),
        tone: if entry.cell.valid { Tone::Plain } else { Tone::Invalid },
        title: entry.name(),
        ..TableCell::default()
    }
}

fn delivery(cell: &Cell) -> String {
    let (sent, received, lost) = (cell.sent, cell.received, cell.lost);
    format!(
        "{} published, {} taken, {} lost",
        format::count(sent),
        format::count(received),
        format::count(lost)
    )
}
