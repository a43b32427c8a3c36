//! The tables of sizes, independent of any format: terminal, Markdown and page print the same ones.
//!
//! Rows are payloads, columns are systems × tunings: the usual layout for results of RoundtripPing.

use myelin_bench_kit::protocol::{Transport, Wait, Workload};

use super::cells::{Notes, latency};
use super::document::{Column, Part, Table, TableCell, Tone};
use super::view::{ComparisonClass, Configuration, Entry, Group, Traits, View, WaitStyle};
use super::{flow, format, load};
use crate::lists::distinct;
use crate::scenario::Tuning;
use crate::stats::verdict::{Kind, Verdict};

/// The tables of every group, of scenarios with several groups, and of publish runs.
pub(super) fn figures(view: &View) -> Vec<Part> {
    let part = |title, tables| Part { title, tables, ..Part::default() };
    let of = |group: &Group| part(group.title(), tables(group));
    let overviews = flow::overviews(view).into_iter().chain(load::tables(view)).collect();
    let overviews = part(String::new(), overviews);
    view.groups
        .iter()
        .map(of)
        .chain([overviews])
        .chain(view.publish_groups.iter().map(of))
        .collect()
}

/// Every table of a group that has content.
pub(super) fn tables(group: &Group) -> Vec<Table> {
    match group.workload {
        Workload::Publish => publish_groups(group),
        Workload::Roundtrip => {
            let tables = [latencies(group), changes(group), best(group)];
            tables.into_iter().filter(|table| !table.columns.is_empty()).collect()
        }
        _ => flow::tables(group),
    }
}

/// Medians and 99th percentiles of every configuration, the floor last, followed by their growth.
fn latencies(group: &Group) -> Table {
    let peers: Vec<_> = group.peers().collect();
    let shown = if peers.is_empty() { &group.systems } else { &peers };
    let is_used = |configuration: &Configuration| {
        group.entries.iter().any(|entry| entry.configured() == *configuration)
    };
    let measured = group.configurations(shown).filter(is_used);
    let measured = measured.map(|place| (Column::new(place.0.label(), place.1.name()), Ok(place)));
    let of_wait = |wait| group.tunings.iter().map(move |&tuning| (wait, tuning));
    let floors = group.waits().into_iter().flat_map(of_wait).filter(|(wait, tuning)| {
        group.payloads.iter().any(|&payload| group.floor(*tuning, payload, *wait).is_some())
    });
    let floors = floors.map(|(wait, tuning)| {
        (
            Column::new(format!("floor that {}", format::wait(wait)), tuning.name()),
            Err((wait, tuning)),
        )
    });
    let growing = (group.ends().len() == 2).then(|| ("growth".to_owned(), None));
    let rows = sizes(group).map(|(label, payload)| (label, Some(payload))).chain(growing);
    let mut notes = Notes::default();
    let columns = measured.chain(floors).collect();
    let table =
        Table::new(caption(group), columns, rows, |payload, column| match (*payload, *column) {
            (Some(payload), Ok((system, tuning))) => group
                .entry(system.name, tuning, payload)
                .map_or_else(TableCell::absent, |entry| latency(group, entry, &mut notes)),
            (Some(payload), Err((wait, tuning))) => {
                group.floor(tuning, payload, wait).map_or_else(TableCell::absent, floor_cell)
            }
            (None, Ok(place)) => TableCell::plain(
                growth(group, place).map_or_else(|| format::WITHHELD.to_owned(), format::factor),
            ),
            (None, Err(_)) => TableCell::default(),
        });
    Table { notes: notes.0, ..table }
}

/// A row for each payload.
fn sizes(group: &Group) -> impl Iterator<Item = (String, u64)> {
    group.payloads.iter().map(|&payload| (group.size(payload), payload))
}

fn caption(group: &Group) -> String {
    let growth = match group.ends()[..] {
        [small, large] => {
            format!("; growth: p50 of {} over that of {}", group.size(large), group.size(small))
        }
        _ => String::new(),
    };
    format!(
        "{}, µs: p50, p99 and [interval of p50, of at least 93.75 %]{growth}",
        group.metric.words()
    )
}

/// The ratio of the medians of the largest and the smallest payload.
fn growth(group: &Group, (system, tuning): Configuration) -> Option<f64> {
    let [small, large] = group.ends()[..] else { return None };
    let entry = |payload| group.entry(system.name, tuning, payload);
    let p50 = |payload| entry(payload).filter(|it| it.fault().is_none())?.typical_p50();
    Some(p50(large)? / p50(small)?)
}

/// The gain of one system over another at the same tuning, and of tunings over the default.
fn changes(group: &Group) -> Table {
    let peers: Vec<_> = group.peers().collect();
    let mut columns: Vec<(Column, Pair)> = Vec::new();
    for system in &peers {
        let Some(reference) = group.reference(*system) else { continue };
        columns.extend(group.tunings.iter().map(|&tuning| {
            let head = format!("{} {tuning}", system.short(&peers));
            let pair = [(system.name, tuning), (reference.name, tuning)];
            (Column::new(format!("over {}", reference.name), head), pair)
        }));
    }
    for &tuning in group.tunings.iter().filter(|tuning| **tuning != Tuning::Default) {
        columns.extend(peers.iter().map(|system| {
            let column = Column::new(format!("{tuning} over default"), system.short(&peers));
            (column, [(system.name, tuning), (system.name, Tuning::Default)])
        }));
    }
    let entries =
        |pair: Pair, payload| pair.map(|(system, tuning)| group.entry(system, tuning, payload));
    let verdict = |pair: Pair, payload| {
        let [subject, reference] = entries(pair, payload);
        group.verdict(subject?, reference?)
    };
    columns.retain(|(_, pair)| group.payloads.iter().any(|&it| verdict(*pair, it).is_some()));
    let caption = "change of p50: below zero is faster; ≈ no difference, ? too noisy or too few \
                   runs";
    Table::new(caption, columns, sizes(group), |&payload, &pair| match verdict(pair, payload) {
        Some(verdict) => change(verdict),
        None => entries(pair, payload)
            .into_iter()
            .find_map(|entry| entry?.fault())
            .map_or_else(TableCell::absent, void),
    })
}

/// The configuration with the lowest median for each payload, among systems with the same way of
/// waiting.
fn best(group: &Group) -> Table {
    let contenders = |comparison_class: &ComparisonClass| {
        let ours = |entry: &&Entry| {
            !entry.system.floor && entry.system.comparison_class() == *comparison_class
        };
        group.entries.iter().filter(ours).count()
    };
    let mut classes: Vec<ComparisonClass> = distinct(group.peers().map(Traits::comparison_class));
    classes.retain(|comparison_class| contenders(comparison_class) > group.payloads.len());
    classes.sort_by_key(|comparison_class| comparison_class.wait_style == WaitStyle::Polls);
    let column = |comparison_class: ComparisonClass| {
        let mut same = group.peers().filter(|peer| peer.comparison_class() == comparison_class);
        let wait_style = match comparison_class.wait_style {
            WaitStyle::Polls => "among systems that poll",
            WaitStyle::Sleeps if same.any(|peer| peer.wait == Wait::Adaptive) => {
                "among systems that sleep, some after spinning"
            }
            WaitStyle::Sleeps => "among systems that sleep",
            WaitStyle::IsCalled => "among systems with callbacks",
        };
        (Column::new("lowest p50", wait_style), comparison_class)
    };
    let caption = "best configuration by payload, among systems that wait in the same way; below \
                   it: ratio to the floor";
    let columns = classes.into_iter().map(column).collect();
    Table::new(caption, columns, sizes(group), |&payload, &comparison_class| {
        best_cell(group, &group.best(payload, comparison_class))
    })
}

fn best_cell(group: &Group, best: &[&Entry]) -> TableCell {
    let Some((first, tied)) = best.split_first() else { return TableCell::absent() };
    let over_floor = group.over_floor(first);
    let over_floor =
        over_floor.map(|it| format!("{} {}", format::ratio(it.ratio), it.floor.floor_name()));
    let names = tied.iter().map(|entry| entry.configuration()).collect::<Vec<_>>().join(", ");
    let ties = not_told_from(tied, |entry| entry.configuration());
    let loss = first.loss().unwrap_or_default();
    let small = [over_floor.unwrap_or_default(), loss, ties];
    let small = small.into_iter().filter(|part| !part.is_empty());
    TableCell::plain(first.configuration())
        .side(format::us_or_dash(first.typical_p50()))
        .small(small.collect::<Vec<_>>().join("; "))
        .title(if names.is_empty() { names } else { format!("tied with {names}") })
}

/// The entries that cannot be distinguished from the best: a single one by name; empty if there are
/// none.
pub(super) fn not_told_from(ties: &[&Entry], name: impl Fn(&Entry) -> String) -> String {
    match ties {
        [] => String::new(),
        [one] => format!("tied with {}", name(one)),
        _ => format!("tied with {} others", ties.len()),
    }
}

fn floor_cell(entry: &Entry) -> TableCell {
    TableCell::plain(format::us_or_dash(entry.typical_p50()))
        .side(format::us_or_dash(entry.typical_p99()))
        .small(entry.floor_name())
        .tone(Tone::Faint)
        .title(entry.name())
}

pub(super) fn change(verdict: Verdict) -> TableCell {
    let change = format::change_percent(verdict.ratio.value - 1.0);
    TableCell::plain(told(verdict.kind, change)).tone(Some(verdict.kind)).title(verdict.words())
}

/// A compared figure, marked if no difference can be shown.
pub(super) fn told(kind: Kind, figure: String) -> String {
    match kind {
        Kind::Better | Kind::Worse => figure,
        Kind::NoDifference => format!("≈ {figure}"),
        Kind::TooNoisy => format!("? {figure}"),
    }
}

/// A cell in place of a comparison, with the reason why there is none.
fn void(why: &str) -> TableCell {
    TableCell::plain(why).tone(Tone::Faint).title(format!("not compared: {why}"))
}

/// Subject and reference, each a system and a tuning.
type Pair<'a> = [(&'a str, Tuning); 2];

/// Tables of publish runs: the publish call against the number of subscribers, in ns. One table has
/// the call itself, another the call without reading the clock and the cost of a further
/// subscriber.
fn publish_groups(group: &Group) -> Vec<Table> {
    let sizes: Vec<_> = group.payloads.iter().map(|&size| format::bytes(size)).collect();
    let of_call = format!(
        "publish call of {}, ns: p50, p99 and [interval of p50, of at least 93.75 %]",
        sizes.join(", ")
    );
    let clock = match group.clock_read_ns > 0.0 {
        true => format!("{:.0} ns", group.clock_read_ns),
        false => "not calibrated".to_owned(),
    };
    let of_rest = format!(
        "p50 minus one clock read ({clock}), ns; time that each further subscriber adds [95 % \
         interval]"
    );
    let mut notes = Notes::default();
    let call = of_calls(group, of_call, |entry| call(entry, &mut notes));
    let beyond = of_calls(group, of_rest, |entry| beyond(group, entry));
    vec![Table { notes: notes.0, ..call }, beyond]
}

fn of_calls(group: &Group, caption: String, mut cell: impl FnMut(&Entry) -> TableCell) -> Table {
    let columns = group.configurations(&group.systems);
    let columns = columns.map(|place| (Column::new(place.0.name, place.1.name()), place)).collect();
    let rows = group.points().map(|point| (group.label(point), point));
    Table::new(caption, columns, rows, |point, configuration| {
        let entry = group.at(*point).find(|entry| entry.configured() == *configuration);
        entry.map_or_else(TableCell::absent, &mut cell)
    })
}

fn call(entry: &Entry, notes: &mut Notes) -> TableCell {
    let cell = entry.cell;
    let [sent, received, lost] = [Some(cell.sent), Some(cell.received), cell.lost]
        .map(|number| format::or_dash(number, format::count));
    TableCell { mark: notes.invalid(entry), ..TableCell::plain(format::ns_or_dash(entry.p50())) }
        .side(format::ns_or_dash(entry.latency().and_then(|latency| latency.p99)))
        .small(entry.p50_interval().map(format::interval_ns).unwrap_or_default())
        .valid(cell.valid)
        .title(format!("{}: {sent} published, {received} taken, {lost} lost", entry.name()))
}

fn beyond(group: &Group, entry: &Entry) -> TableCell {
    // Reading a simulated clock takes no time.
    let is_known = group.clock_read_ns > 0.0 && entry.system.transport != Transport::None;
    let rest = is_known.then(|| Some(entry.p50()? - group.clock_read_ns / 1e3));
    let further = entry.cell.further_subscriber.map(format::further_subscriber);
    TableCell::plain(format::ns_or_dash(rest.flatten()))
        .small(further.unwrap_or_default())
        .valid(entry.cell.valid)
        .title(entry.name())
}
