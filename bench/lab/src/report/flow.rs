//! Tables of one-way workloads: for each size one row for every configuration. Streams and images
//! show the transport apart from what a user does with the payload, and the schedules side by side.
//! Floods show throughput, because their latency is the depth of a queue. Start-ups show the time
//! to the first message.

use myelin_bench_kit::protocol::{Topology, Workload};

use super::cells::{Notes, latency};
use super::document::{Column, Table, TableCell, Tone};
use super::entry::Entry;
use super::format;
use super::metrics::memory_mb;
use super::view::{Group, View};
use crate::lists::distinct;
use crate::summary::{Cell, Distribution, Metric, TopicFigures};

/// One table for each size; none for other workloads.
pub(super) fn tables(group: &Group) -> Vec<Table> {
    let figures = match group.workload {
        Workload::Stream | Workload::Image | Workload::Replay => FLOW,
        Workload::Flood => FLOOD,
        Workload::Startup => STARTUP,
        Workload::Roundtrip | Workload::Publish => return vec![],
    };
    let of_size = |&payload: &u64| {
        [Some(table(group, payload, figures)), by_topic(group, payload, TOPICS_SHOWN)]
    };
    group.payloads.iter().flat_map(of_size).flatten().collect()
}

fn table(group: &Group, payload: u64, figures: &[Figure]) -> Table {
    let entries = ordered(group, payload);
    let mut notes = Notes::default();
    let column = |figure: &Figure| {
        let cells = entries.iter().map(|entry| figure.cell(group, entry, &mut notes));
        (Column::new(figure.0, figure.1), cells.collect())
    };
    let mut columns: Vec<(Column, Vec<TableCell>)> = figures.iter().map(column).collect();
    // Drop columns that are empty for all rows.
    columns.retain(|(_, cells)| cells.iter().any(|cell| !cell.main.is_empty()));
    for (cell, entry) in columns.iter_mut().take(1).flat_map(|it| &mut it.1).zip(&entries) {
        cell.mark = cell.mark.or_else(|| notes.invalid(entry));
    }
    let caption = format!("{}: {}", group.size(payload), caption(group, &entries));
    let rows = entries.iter().enumerate().map(|(row, entry)| (label(entry, &entries), row));
    let table = Table::new(caption, columns, rows, |row, cells| cells[*row].clone());
    Table { notes: notes.0, ..table }
}

fn caption(group: &Group, entries: &[&Entry]) -> String {
    match group.workload {
        Workload::Flood => {
            "back to back for as long as the run lasts; then the highest rate without loss"
                .to_owned()
        }
        Workload::Startup => {
            "from the start of the later process, over runs, ms; daemons start before".to_owned()
        }
        _ => format!(
            "from {}{}{}",
            if is_from_due(group) { FROM_DUE } else { FROM_STAMP },
            floors(group, entries),
            match entries.iter().any(|entry| entry.clock_error_us().is_some()) {
                true =>
                    "; ±: possible error of all figures of a row because of the two hosts' \
                         clocks",
                false => "",
            }
        ),
    }
}

/// Whether latencies count from the schedule. A publisher that falls behind is then late for all
/// subscribers.
fn is_from_due(group: &Group) -> bool {
    let is_stream = matches!(group.workload, Workload::Stream | Workload::Replay);
    is_stream && group.params().rate_hz.is_some()
}

/// `myelin.shm-block tuned`, and the topology if the entries differ in it.
fn label(entry: &Entry, entries: &[&Entry]) -> String {
    let is_mixed = distinct(entries.iter().map(|entry| entry.system.topology)).len() > 1;
    let place = match entry.system.topology {
        Topology::OneProcess if is_mixed => ", one process",
        Topology::TwoHosts if is_mixed => ", two hosts",
        _ => "",
    };
    format!("{}{place}", entry.configuration())
}

/// The systems under test in the order of the summary, then the floor.
fn ordered<'v, 'a>(group: &'v Group<'a>, payload: u64) -> Vec<&'v Entry<'a>> {
    let here = |entry: &&Entry| entry.cell.params.payload_bytes == payload;
    let mut entries: Vec<&Entry> = group.entries.iter().filter(here).collect();
    let rank = |entry: &Entry| group.systems.iter().position(|system| *system == entry.system);
    entries.sort_by_key(|entry| {
        let topology = entry.system.topology.name();
        (entry.system.floor, topology, rank(entry), entry.cell.tuning)
    });
    entries
}

/// A column: the shared heading, its own heading, and its cells; a cell is empty if it was not
/// measured.
struct Figure(&'static str, &'static str, fn(&Group, &Entry, &mut Notes) -> TableCell);

impl Figure {
    /// Whether it uses stamps of both ends, so that the clocks of two hosts add their error.
    fn crosses_clocks(&self) -> bool {
        matches!(self.0, ONE_WAY | NAIVE) && self.1 != OVER_FLOOR
    }

    fn cell(&self, group: &Group, entry: &Entry, notes: &mut Notes) -> TableCell {
        let figure = self.2(group, entry, notes);
        let error = entry.clock_error_us().filter(|_| self.crosses_clocks());
        let error = error.filter(|_| !figure.main.is_empty()).map(format::plus_minus_us);
        let said = Some(figure.title.clone()).filter(|title| !title.is_empty());
        let title = said.into_iter().chain(error).collect::<Vec<_>>().join("; ");
        match (entry.cell.valid, entry.system.floor) {
            _ if figure.main.is_empty() => figure,
            (false, _) => figure.tone(Tone::Invalid),
            (true, true) => figure.tone(Tone::Faint),
            (true, false) => figure,
        }
        .title(title)
    }
}

/// The tables by topic, short enough for a glance.
pub(super) fn topics(view: &View) -> Vec<Table> {
    let of = |group: &Group| group.payloads.iter().find_map(|it| by_topic(group, *it, TOPICS_FEW));
    view.groups.iter().filter_map(of).collect()
}

/// A row for each topic of a replayed recording, with the rates and sizes that it was recorded with;
/// `None` for other workloads. Of more than `most` topics it has the busiest.
fn by_topic(group: &Group, payload: u64, most: usize) -> Option<Table> {
    let entries = ordered(group, payload);
    let mut topics: Vec<&TopicFigures> =
        entries.iter().find(|it| !it.cell.by_topic.is_empty())?.cell.by_topic.iter().collect();
    let all = topics.len();
    if all > most {
        topics.sort_by(|a, b| b.rate_hz.total_cmp(&a.rate_hz));
        topics.truncate(most);
    }
    let further = match all - topics.len() {
        0 => String::new(),
        more => format!("; {more} topics with lower rates are only in topics.csv"),
    };
    let caption =
        format!("by topic of the recording: one way p50 and p99, µs, and what was lost{further}");
    let mut notes = Notes::default();
    let recorded = [("recorded", "a second"), ("recorded", "bytes")];
    let mut columns: Vec<(Column, Result<&Entry, usize>)> = recorded
        .iter()
        .zip(0..)
        .map(|((of, what), at)| (Column::new(*of, *what), Err(at)))
        .collect();
    columns.extend(
        entries
            .iter()
            .map(|entry| (Column::new(entry.system.name, entry.cell.tuning.name()), Ok(*entry))),
    );
    let rows = topics.into_iter().map(|topic| (format::shown(&topic.topic), topic));
    let table = Table::new(caption, columns, rows, |topic, column| match column {
        Err(0) => plain(format::amount(topic.rate_hz)),
        Err(_) => plain(format::bytes(topic.payload_bytes))
            .title(format!("largest: {}", format::bytes(topic.payload_bytes_max))),
        Ok(entry) => of_topic(entry, &topic.topic, &mut notes),
    });
    Some(Table { notes: notes.0, ..table })
}

/// The latency of a topic and its loss, if there is one.
fn of_topic(entry: &Entry, topic: &str, notes: &mut Notes) -> TableCell {
    let found = entry.cell.by_topic.iter().find(|it| it.topic == topic);
    let Some(found) = found else { return TableCell::absent() };
    let counts = [found.sent, found.received, found.lost].map(format::count);
    let part = |of: fn(&Distribution) -> Option<f64>| {
        format::us_or_dash(found.one_way_us.as_ref().and_then(of))
    };
    let max =
        found.one_way_us.map_or_else(String::new, |of| format!("; max {} µs", format::us(of.max)));
    let percent = 100.0 * found.lost as f64 / ((found.lost + found.received) as f64).max(1.0);
    // Of a topic with few messages the largest is all that can be said.
    let withheld = found.one_way_us.filter(|of| of.p99.is_none());
    let largest = withheld.map(|of| format!("max {}", format::us(of.max)));
    let lost = (found.lost > 0).then(|| format!("{} % lost", format::percent(percent)));
    let small = largest.into_iter().chain(lost).collect::<Vec<_>>().join(", ");
    let cell = TableCell::plain(part(|of| of.p50))
        .side(part(|of| of.p99))
        .small(small)
        .valid(entry.cell.valid)
        .title(format!("{} sent, {} taken, {} lost{max}", counts[0], counts[1], counts[2]));
    TableCell { mark: notes.invalid(entry), ..cell }
}

/// The metric with this name; for a distribution its median.
fn metric(name: &str, entry: &Entry) -> TableCell {
    let metric = Metric::named(name);
    let Some(text) = metric.text(entry.cell) else { return TableCell::absent() };
    let p99 = metric.is_distribution().then(|| p99(name, entry));
    plain(text).title(p99.map(|p99| format!("p99 {p99} µs")).unwrap_or_default())
}

/// Median and 99th percentile of a distribution.
fn both(name: &str, entry: &Entry) -> TableCell {
    let median = metric(name, entry);
    if median.main.is_empty() { median } else { median.side(p99(name, entry)) }
}

fn p99(name: &str, entry: &Entry) -> String {
    format::us_or_dash(Metric::named(name).p99(entry.cell))
}

/// For a scenario with several rates, schedules or sizes: p50 and p99 of all of them side by side.
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
    let mut places = distinct(all().map(Entry::configured));
    places.sort_by_key(|(system, _)| system.floor);
    let columns =
        places.into_iter().map(|place| (Column::new(place.0.name, place.1.name()), place));
    let rows = groups.iter().flat_map(|&group| {
        let label = move |payload| point(group, payload, groups);
        group.payloads.iter().map(move |&payload| (label(payload), (group, payload)))
    });
    let whose = match all().any(|entry| entry.cell.receiver_cpu_percent.is_some()) {
        true => "; CPU of the receiving process, % of a core",
        false if all().any(|entry| entry.cell.cpu_percent.is_some()) => {
            "; CPU of the process, % of a core"
        }
        false => "",
    };
    let caption = format!(
        "{scenario}: one way p50 and p99, µs{whose}{}",
        match all().any(|entry| entry.short_of_rate().is_some()) {
            true => "; the reached rate where it is below the requested one",
            false => "",
        }
    );
    Table::new(caption, columns.collect(), rows, |(group, payload), (system, tuning)| {
        let entry = group.entry(system.name, *tuning, *payload);
        entry.map_or_else(TableCell::absent, |entry| {
            TableCell::plain(format::us_or_dash(entry.p50()))
                .side(format::us_or_dash(entry.latency().and_then(|latency| latency.p99)))
                .small(small(entry))
                .valid(entry.cell.valid)
                .title(entry.name())
        })
    })
}

/// `30 Hz, jitter`, with the payload if there are several.
fn point(group: &Group, payload: u64, groups: &[&Group]) -> String {
    let has_sizes = distinct(groups.iter().flat_map(|group| &group.payloads)).len() > 1;
    let size = has_sizes.then(|| group.size(payload));
    let point = Some(group.point.clone()).filter(|point| !point.is_empty());
    size.into_iter().chain(point).collect::<Vec<_>>().join(", ")
}

/// `1.25 %, 8 200/s`: the CPU if it was measured, and the rate if that fell short.
fn small(entry: &Entry) -> String {
    let cpu = cpu(entry.cell).map(|percent| format!("{} %", format::cpu_percent(percent)));
    let reached =
        entry.short_of_rate().map(|(reached, _)| format!("{}/s", format::amount(reached)));
    cpu.into_iter().chain(reached).collect::<Vec<_>>().join(", ")
}

/// CPU of the receiving end if it is a separate process, else of the single process.
fn cpu(cell: &Cell) -> Option<f64> {
    cell.receiver_cpu_percent.or(cell.cpu_percent)
}

fn over_floor(group: &Group, entry: &Entry) -> TableCell {
    group.over_floor(entry).map_or_else(TableCell::absent, |over| {
        let interval = over.ratio.interval.map(format::factor_interval);
        plain(format::factor(over.ratio.value))
            .small(interval.unwrap_or_default())
            .title(over.text())
    })
}

/// Names the systems that `÷ floor` refers to, once.
fn floors(group: &Group, entries: &[&Entry]) -> String {
    let over = entries.iter().filter_map(|entry| group.over_floor(entry));
    match distinct(over.map(|over| over.floor.floor_name())).join(", ") {
        names if names.is_empty() => names,
        names => format!("; floor: {names}, the one that waits in the same way"),
    }
}

fn rarest(distribution: Option<&Distribution>) -> TableCell {
    written(distribution, |it| format::us_or_dash(it.p999))
}

/// Latency from the stamp, where the main latency counts from the schedule.
fn naive(group: &Group, entry: &Entry) -> TableCell {
    rarest(entry.cell.service_us.as_ref().filter(|_| is_from_due(group)))
}

/// Share of the due messages that were not taken.
fn lost(entry: &Entry) -> TableCell {
    let cell = entry.cell;
    let [sent, taken, lost] = [Some(cell.sent), Some(cell.received), cell.lost]
        .map(|number| format::or_dash(number, format::count));
    let title = format!("{sent} sent, {taken} taken, {lost} lost");
    written(entry.loss_percent(), format::percent).title(title)
}

/// A figure beside the main ones.
fn plain(main: String) -> TableCell {
    TableCell::plain(main).tone(Tone::Minor)
}

/// Like [`plain`], for a figure that may not have been measured.
fn written<T>(figure: Option<T>, write: impl FnOnce(T) -> String) -> TableCell {
    figure.map_or_else(TableCell::absent, |figure| plain(write(figure)))
}

const FROM_DUE: &str = "the time a message was due until its payload was taken, µs; naive: from \
                        its stamp";
const FROM_STAMP: &str = "the stamp until the payload was taken, µs";

fn rate(entry: &Entry) -> TableCell {
    let short = entry.short_of_rate().map(|(got, asked)| format::reached(got, asked));
    written(entry.cell.throughput_per_s, format::amount).title(short.unwrap_or_default())
}

fn memory(entry: &Entry) -> TableCell {
    written(memory_mb(entry), |it| format::megabytes((it * 1e6).round() as u64))
}

fn qos(entry: &Entry) -> TableCell {
    plain(format::qos(&entry.cell.params))
}

fn taken(entry: &Entry, scale: f64) -> TableCell {
    let taken = entry.cell.taken_per_s.map(|rate| format::amount(rate * scale));
    taken.map_or_else(TableCell::absent, TableCell::plain)
}

fn no_loss(entry: &Entry) -> TableCell {
    let unknown = || plain(format::WITHHELD.to_owned()).title("no rate without loss was found");
    entry.cell.lossless_per_s.map(format::amount).map_or_else(unknown, TableCell::plain)
}

/// One value of a distribution over runs, in ms.
fn ms(of: Option<Distribution>, part: fn(Distribution) -> Option<f64>) -> TableCell {
    written(of, |of| format::us_or_dash(part(of).map(|us| us / 1e3)))
}

/// From the start of the daemon, if there is one, to the first sample.
fn altogether(entry: &Entry) -> TableCell {
    let cell = entry.cell;
    cell.first_sample_us.map_or_else(TableCell::absent, |first| {
        let total = cell.daemon_ms.unwrap_or(0.0) + first.mean / 1e3;
        let title = "median of the daemon's start, mean of the first sample";
        TableCell::plain(format::us(total)).title(title)
    })
}

/// Rows of the table by topic, in reports and at a glance.
const TOPICS_SHOWN: usize = 200;
const TOPICS_FEW: usize = 20;

const ONE_WAY: &str = "one way";
const NAIVE: &str = "naive";
const OVER_FLOOR: &str = "÷ floor";
const PUBLISHER: &str = "p50 of";
const MESSAGES: &str = "messages";
const BUSINESS: &str = "user's copies, p50";
const CPU: &str = "CPU, % of a core";
const MATCHED: &str = "both ends matched";
const FIRST: &str = "first sample taken";

/// The transport, the work before and after it, and the cost of all of it.
const FLOW: &[Figure] = &[
    Figure(ONE_WAY, "p50 p99", latency),
    Figure(ONE_WAY, "p99.9", |_, it, _| rarest(it.latency())),
    Figure(ONE_WAY, "max", |_, it, _| written(it.latency(), |of| format::us(of.max))),
    Figure(ONE_WAY, "jitter", |_, it, _| metric("jitter_us", it)),
    Figure(ONE_WAY, OVER_FLOOR, |group, it, _| over_floor(group, it)),
    Figure(ONE_WAY, "wake", |_, it, _| metric("wake_us", it)),
    Figure(NAIVE, "p99.9", |group, it, _| naive(group, it)),
    Figure("late", "p50 p99", |_, it, _| both("lateness_us", it)),
    Figure(PUBLISHER, "loan", |_, it, _| metric("loan_us", it)),
    Figure(PUBLISHER, "fill", |_, it, _| metric("fill_us", it)),
    Figure(PUBLISHER, "publish", |_, it, _| metric("write_us", it)),
    Figure(BUSINESS, "memcpy", |_, it, _| metric("memcpy_us", it)),
    Figure(BUSINESS, "streaming", |_, it, _| metric("stream_copy_us", it)),
    Figure(CPU, "all", |_, it, _| metric("cpu_percent", it)),
    Figure(CPU, "receiver", |_, it, _| metric("receiver_cpu_percent", it)),
    Figure("PSS", "MB", |_, it, _| memory(it)),
    Figure(MESSAGES, "lost %", |_, it, _| lost(it)),
    Figure(MESSAGES, "a second", |_, it, _| rate(it)),
    Figure("QoS", "and depth", |_, it, _| qos(it)),
];

const FLOOD: &[Figure] = &[
    Figure("taken", "a second", |_, it, _| taken(it, 1.0)),
    Figure("taken", "MB/s", |_, it, _| taken(it, it.cell.params.payload_bytes as f64 / 1e6)),
    Figure("published", "a second", |_, it, _| rate(it)),
    Figure("published", "lost %", |_, it, _| lost(it)),
    Figure("without loss", "a second", |_, it, _| no_loss(it)),
    Figure(PUBLISHER, "loan", |_, it, _| metric("loan_us", it)),
    Figure(PUBLISHER, "fill", |_, it, _| metric("fill_us", it)),
    Figure("publish, µs", "p50 p99", |_, it, _| both("write_us", it)),
    Figure("CPU", "µs/message", |_, it, _| metric("cpu_us_per_message", it)),
    Figure("CPU", "% of a core", |_, it, _| metric("cpu_percent", it)),
    Figure("CPU", "% of the receiver", |_, it, _| metric("receiver_cpu_percent", it)),
    Figure("PSS", "MB", |_, it, _| memory(it)),
    Figure("QoS", "and depth", |_, it, _| qos(it)),
];

const STARTUP: &[Figure] = &[
    Figure("daemon", "answers", |_, it, _| written(it.cell.daemon_ms, format::us)),
    Figure(MATCHED, "min", |_, it, _| ms(it.cell.matched_us, |of| Some(of.min))),
    Figure(MATCHED, "mean", |_, it, _| ms(it.cell.matched_us, |of| Some(of.mean))),
    Figure(MATCHED, "p50", |_, it, _| ms(it.cell.matched_us, |of| of.p50)),
    Figure(MATCHED, "max", |_, it, _| ms(it.cell.matched_us, |of| Some(of.max))),
    Figure(FIRST, "min", |_, it, _| ms(it.cell.first_sample_us, |of| Some(of.min))),
    Figure(FIRST, "mean", |_, it, _| ms(it.cell.first_sample_us, |of| Some(of.mean))),
    Figure(FIRST, "p50", |_, it, _| ms(it.cell.first_sample_us, |of| of.p50)),
    Figure(FIRST, "max", |_, it, _| ms(it.cell.first_sample_us, |of| Some(of.max))),
    Figure("with the daemon", "mean", |_, it, _| altogether(it)),
    Figure("runs", "", |_, it, _| metric("runs", it)),
];
