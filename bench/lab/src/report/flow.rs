//! Streams and images as a reader meets them: for each size a row for every configuration, with what
//! the transport does apart from what a user does with the payload; and the schedules beside each
//! other.

use myelin_bench_kit::protocol::{Topology, Workload};

use super::document::{Column, Row, Table, TableCell, Tone};
use super::entry::Entry;
use super::table::{Notes, absent, latency};
use super::view::{Group, View, distinct, tuning_rank};
use super::words;
use crate::summary::{Cell, Distribution};

/// One table for each size.
pub(super) fn tables(group: &Group) -> Vec<Table> {
    group.payloads.iter().map(|&payload| figures(group, payload)).collect()
}

fn figures(group: &Group, payload: u64) -> Table {
    let entries = ordered(group, payload);
    let columns = columns(group, &entries);
    let mut notes = Notes::default();
    let mut row = |entry: &&Entry| Row {
        label: label(entry, &entries),
        cells: columns.iter().map(|figure| figure.cell(group, entry, &mut notes)).collect(),
    };
    let rows = entries.iter().map(&mut row).collect();
    Table {
        caption: format!(
            "{}: from {}{}{}",
            group.size(payload),
            if is_from_due(group) { FROM_DUE } else { FROM_STAMP },
            floors(group, &entries),
            match entries.iter().any(|entry| entry.clock_error_us().is_some()) {
                true => "; ±: the clocks of the two hosts may make all of a row wrong by so much",
                false => "",
            }
        ),
        columns: columns.iter().map(|figure| figure.column()).collect(),
        rows,
        notes: notes.0,
    }
}

/// Whether latencies count from the schedule: a publisher that falls behind is then late to all.
fn is_from_due(group: &Group) -> bool {
    group.workload == Workload::Stream && group.params().rate_hz.is_some()
}

/// `myelin.shm-block tuned`, and where it lives if that differs.
pub(super) fn label(entry: &Entry, entries: &[&Entry]) -> String {
    let is_mixed = distinct(entries.iter().map(|entry| entry.system.topology)).len() > 1;
    let place = match entry.system.topology {
        Topology::OneProcess if is_mixed => ", one process",
        Topology::TwoHosts if is_mixed => ", two hosts",
        _ => "",
    };
    format!("{}{place}", entry.configuration())
}

/// The systems under test as the summary lists them, then the floor.
pub(super) fn ordered<'v, 'a>(group: &'v Group<'a>, payload: u64) -> Vec<&'v Entry<'a>> {
    let here = |entry: &&Entry| entry.cell.params.payload_bytes == payload;
    let mut entries: Vec<&Entry> = group.entries.iter().filter(here).collect();
    let rank = |entry: &Entry| group.systems.iter().position(|system| *system == entry.system);
    entries.sort_by_key(|entry| {
        let topology = entry.system.topology.name();
        (entry.system.floor, topology, rank(entry), tuning_rank(&entry.cell.tuning))
    });
    entries
}

/// A column: the heading it shares, its own, and what stands below.
struct Figure(&'static str, &'static str, What);

enum What {
    OneWay,
    Max,
    OverFloor,
    Median(fn(&Cell) -> Option<&Distribution>),
    /// Median and 99th percentile.
    Both(fn(&Cell) -> Option<&Distribution>),
    Rarest,
    /// The 99.9th percentile from the stamp, where `Rarest` counts from the schedule.
    Naive,
    Cpu,
    ReceiverCpu,
    Memory,
    Lost,
    Rate,
    Qos,
}

impl Figure {
    fn column(&self) -> Column {
        Column { group: self.0.to_owned(), head: self.1.to_owned() }
    }

    /// Whether it is of a stamp of either end: wrong by as much as the clocks of two hosts.
    fn crosses_clocks(&self) -> bool {
        self.0 == ONE_WAY && !matches!(self.2, What::OverFloor) || matches!(self.2, What::Naive)
    }

    /// Whether a table of these is the poorer without it.
    fn is_measured(&self, group: &Group, entries: &[&Entry]) -> bool {
        let any = |is: &dyn Fn(&Cell) -> bool| entries.iter().any(|entry| is(entry.cell));
        match &self.2 {
            What::Median(of) | What::Both(of) => any(&|cell| of(cell).is_some()),
            What::Naive => is_from_due(group) && any(&|cell| cell.service_us.is_some()),
            What::Qos => any(&|cell| !words::qos(&cell.params).is_empty()),
            What::Memory => any(&|cell| cell.pss_bytes > 0),
            What::ReceiverCpu => any(&|cell| cell.receiver_cpu_percent.is_some()),
            What::OverFloor => entries.iter().any(|entry| over_floor(group, entry).is_some()),
            What::OneWay | What::Max | What::Rarest => true,
            What::Cpu | What::Lost | What::Rate => true,
        }
    }

    fn cell(&self, group: &Group, entry: &Entry, notes: &mut Notes) -> TableCell {
        let cell = entry.cell;
        let percent = |percent| plain(words::cpu_percent(percent));
        let figure = match &self.2 {
            What::OneWay => latency(group, entry, notes),
            What::Max => entry.latency().map_or_else(absent, |it| plain(words::us(it.max))),
            What::OverFloor => over_floor(group, entry).unwrap_or_else(absent),
            What::Median(of) => of(cell).map_or_else(absent, median),
            What::Both(of) => of(cell).map_or_else(absent, |it| TableCell {
                side: words::us_or_dash(it.p99),
                ..median(it)
            }),
            What::Rarest => rarest(entry.latency()),
            What::Naive => rarest(cell.service_us.as_ref()),
            What::Cpu => percent(cell.cpu_percent),
            What::ReceiverCpu => cell.receiver_cpu_percent.map_or_else(absent, percent),
            What::Memory => plain(words::megabytes(cell.pss_bytes)),
            What::Lost => lost(entry),
            What::Rate => TableCell {
                title: entry
                    .short_of_rate()
                    .map_or_else(String::new, |(got, asked)| words::reached(got, asked)),
                ..plain(words::amount(cell.throughput_per_s))
            },
            What::Qos => plain(words::qos(&cell.params)),
        };
        let error = entry.clock_error_us().filter(|_| self.crosses_clocks());
        let error = error.filter(|_| !figure.main.is_empty());
        let figure = match error.map(words::plus_minus_us) {
            Some(error) if figure.title.is_empty() => TableCell { title: error, ..figure },
            Some(error) => TableCell { title: format!("{}; {error}", figure.title), ..figure },
            None => figure,
        };
        match entry.system.floor && cell.valid {
            true => TableCell { tone: Tone::Faint, ..figure },
            false => figure,
        }
    }
}

fn columns(group: &Group, entries: &[&Entry]) -> Vec<&'static Figure> {
    FIGURES.iter().filter(|figure| figure.is_measured(group, entries)).collect()
}

/// Of a scenario with several rates, schedules or sizes: p50 and p99 of each beside the others.
pub(super) fn overviews(view: &View) -> Vec<Table> {
    let flows: Vec<&Group> = view.groups.iter().filter(|group| group.is_flow()).collect();
    let scenarios = distinct(flows.iter().map(|group| group.scenario));
    let of = |scenario: &str| {
        let groups: Vec<&Group> =
            flows.iter().copied().filter(|group| group.scenario == scenario).collect();
        let rows: usize = groups.iter().map(|group| group.payloads.len()).sum();
        (groups.len() > 1 || rows > 2).then(|| overview(scenario, &groups))
    };
    scenarios.into_iter().filter_map(of).collect()
}

fn overview(scenario: &str, groups: &[&Group]) -> Table {
    let all = || groups.iter().flat_map(|group| &group.entries);
    let mut columns = distinct(all().map(|entry| (entry.system, entry.cell.tuning.as_str())));
    columns.sort_by_key(|(system, _)| system.floor);
    let cell = |group: &Group, (system, tuning): (&str, &str), payload| {
        let entry = group.entry(system, tuning, payload);
        entry.map_or_else(absent, |entry| TableCell {
            main: words::us_or_dash(entry.p50()),
            side: words::us_or_dash(entry.latency().and_then(|latency| latency.p99)),
            small: format!("{} %{}", words::cpu_percent(cpu(entry.cell)), short(entry)),
            tone: if entry.cell.valid { Tone::Plain } else { Tone::Invalid },
            title: entry.name(),
            ..TableCell::default()
        })
    };
    let rows = groups.iter().flat_map(|group| {
        let columns = &columns;
        group.payloads.iter().map(move |&payload| Row {
            label: point(group, payload, groups),
            cells: (columns.iter())
                .map(|(system, tuning)| cell(group, (system.name, tuning), payload))
                .collect(),
        })
    });
    let whose = match all().any(|entry| entry.cell.receiver_cpu_percent.is_some()) {
        true => "of the receiving end",
        false => "of the process",
    };
    Table {
        caption: format!(
            "{scenario}: one way p50 and p99, µs; CPU {whose}, % of a core{}",
            match all().any(|entry| entry.short_of_rate().is_some()) {
                true => "; the rate reached where it was less than asked for",
                false => "",
            }
        ),
        rows: rows.collect(),
        columns: columns
            .iter()
            .map(|(system, tuning)| Column {
                group: system.name.to_owned(),
                head: (*tuning).to_owned(),
            })
            .collect(),
        notes: vec![],
    }
}

/// `30 Hz, jitter`, with the payload where there are several.
fn point(group: &Group, payload: u64, groups: &[&Group]) -> String {
    let has_sizes = distinct(groups.iter().flat_map(|group| &group.payloads)).len() > 1;
    let size = has_sizes.then(|| group.size(payload));
    let point = Some(group.point.clone()).filter(|point| !point.is_empty());
    size.into_iter().chain(point).collect::<Vec<_>>().join(", ")
}

/// `, 8 200/s` where that is less than was asked for.
fn short(entry: &Entry) -> String {
    let reached = entry.short_of_rate().map(|(reached, _)| words::amount(reached));
    reached.map_or_else(String::new, |reached| format!(", {reached}/s"))
}

/// CPU of the receiving end where it is a process of its own, else of the one that there is.
fn cpu(cell: &Cell) -> f64 {
    cell.receiver_cpu_percent.unwrap_or(cell.cpu_percent)
}

fn over_floor(group: &Group, entry: &Entry) -> Option<TableCell> {
    let over = group.over_floor(entry)?;
    let small = over.ratio.interval.map(words::factor_interval).unwrap_or_default();
    Some(TableCell { small, title: over.text(), ..plain(words::factor(over.ratio.value)) })
}

/// Names what `÷ floor` is over, once.
fn floors(group: &Group, entries: &[&Entry]) -> String {
    let over = entries.iter().filter_map(|entry| group.over_floor(entry));
    match distinct(over.map(|over| over.floor.floor_name())).join(", ") {
        names if names.is_empty() => names,
        names => format!("; floor: {names}, whichever waits alike"),
    }
}

fn median(distribution: &Distribution) -> TableCell {
    TableCell {
        title: format!("p99 {} µs", words::us_or_dash(distribution.p99)),
        ..plain(words::us_or_dash(distribution.p50))
    }
}

fn rarest(distribution: Option<&Distribution>) -> TableCell {
    distribution.map_or_else(absent, |it| plain(words::us_or_dash(it.p999)))
}

/// Of the messages that were to be taken, those that were not.
pub(super) fn lost(entry: &Entry) -> TableCell {
    let cell = entry.cell;
    let counts = [cell.sent, cell.received, cell.lost].map(words::count);
    TableCell {
        title: format!("{} sent, {} taken, {} lost", counts[0], counts[1], counts[2]),
        ..entry.loss_percent().map_or_else(absent, |share| plain(words::percent(share)))
    }
}

pub(super) fn plain(main: String) -> TableCell {
    TableCell { main, tone: Tone::Minor, ..TableCell::default() }
}

const FROM_DUE: &str = "the time a message was due until the payload is in hand, µs; naive: from \
its stamp";
const FROM_STAMP: &str = "the stamp until the payload is in hand, µs";

const ONE_WAY: &str = "one way";
const PUBLISHER: &str = "p50 of";
const MESSAGES: &str = "messages";
const BUSINESS: &str = "user's copies, p50";
const CPU: &str = "CPU, % of a core";

/// What the transport does, what is done before and after it, and what all of it costs.
const FIGURES: &[Figure] = &[
    Figure(ONE_WAY, "p50 p99", What::OneWay),
    Figure(ONE_WAY, "p99.9", What::Rarest),
    Figure(ONE_WAY, "max", What::Max),
    Figure(ONE_WAY, "÷ floor", What::OverFloor),
    Figure(ONE_WAY, "wake", What::Median(|cell| cell.wake_us.as_ref())),
    Figure("naive", "p99.9", What::Naive),
    Figure("late", "p50 p99", What::Both(|cell| cell.lateness_us.as_ref())),
    Figure(PUBLISHER, "loan", What::Median(|cell| cell.loan_us.as_ref())),
    Figure(PUBLISHER, "fill", What::Median(|cell| cell.fill_us.as_ref())),
    Figure(PUBLISHER, "publish", What::Median(|cell| cell.write_us.as_ref())),
    Figure(BUSINESS, "memcpy", What::Median(|cell| cell.memcpy_us.as_ref())),
    Figure(BUSINESS, "streaming", What::Median(|cell| cell.stream_copy_us.as_ref())),
    Figure(CPU, "all", What::Cpu),
    Figure(CPU, "receiver", What::ReceiverCpu),
    Figure("PSS", "MB", What::Memory),
    Figure(MESSAGES, "lost %", What::Lost),
    Figure(MESSAGES, "a second", What::Rate),
    Figure("QoS", "and depth", What::Qos),
];
