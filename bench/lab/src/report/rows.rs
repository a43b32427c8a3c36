//! The summary table of the page: one row for each cell, every figure of it.

use minijinja::{Value, context};
use myelin_bench_kit::protocol::Workload;

use super::document::TableCell;
use super::format;
use super::metrics::{PAGE, PAGE_ONE_WAY, Shows};
use super::validity;
use super::view::{Entry, Group, Point, View};
use crate::summary::{Cell, Distribution, Metric, Placement};

/// Headings and explanations of the first figures of a row, which those of its placements have, too.
const LATENCY_HEADS: [(&str, &str); 5] = [
    ("p50 µs", "median, and its interval over runs, of at least 93.75 %"),
    ("p90 µs", "90th percentile"),
    ("p99 µs", "99th percentile, and its interval over runs, of at least 93.75 %"),
    ("p99.9 µs", "99.9th percentile, and its interval over runs, of at least 93.75 %"),
    ("max µs", "largest"),
];

/// The headings of a report.
pub(super) fn heads(view: &View) -> Vec<(&'static str, String)> {
    let further = columns(view.has_one_way()).map(|(head, shows)| (*head, shows.about()));
    LATENCY_HEADS.map(|(head, about)| (head, about.to_owned())).into_iter().chain(further).collect()
}

fn columns(has_one_way: bool) -> impl Iterator<Item = &'static (&'static str, Shows)> {
    PAGE.iter().chain(if has_one_way { PAGE_ONE_WAY } else { &[] })
}

pub(super) const LATENCIES: usize = LATENCY_HEADS.len();

/// The rows of each group, by payload, and by number of subscribers where nobody answers; the floor
/// first.
pub(super) fn sections(view: &View) -> Vec<Value> {
    let section = |group: &Group| {
        let body = |point: Point| {
            let mut entries: Vec<_> = group.at(point).collect();
            let rank = |entry: &Entry| group.systems.iter().position(|it| *it == entry.system);
            entries.sort_by_key(|entry| (rank(entry), entry.cell.tuning));
            let rows = entries.into_iter().map(|entry| row(entry, view.has_one_way()));
            context! {
                payload_bytes => point.0,
                label => group.label(point),
                rows => rows.collect::<Vec<_>>(),
            }
        };
        context! {
            id => group.id,
            title => group.title(),
            // What p50 to max are percentiles of.
            metric => match group.workload {
                Workload::Flood => "one-way latency, which is the depth of a queue",
                _ => group.metric.words(),
            },
            bodies => group.points().map(body).collect::<Vec<_>>(),
        }
    };
    view.all().map(section).collect()
}

/// One cell, and the same by placement if it is bimodal.
fn row(entry: &Entry, has_one_way: bool) -> Value {
    let placement = |placement: &Placement| {
        let place = if placement.same_cpu { "same core" } else { "across cores" };
        let label = format!("{place} {}", format::share_percent(placement.share));
        context! { label, figures => latencies(placement.latency(), [None; 3]) }
    };
    let placements = entry.cell.placements.iter().filter(|_| entry.is_bimodal());
    context! {
        index => entry.index,
        system => entry.system.name,
        tuning => entry.cell.tuning,
        note => entry.system.note(),
        floor => entry.system.floor,
        valid => entry.cell.valid,
        reasons => if entry.cell.valid { String::new() } else { validity::reasons(entry) },
        figures => figures(entry, has_one_way),
        placements => placements.map(placement).collect::<Vec<_>>(),
    }
}

fn figures(entry: &Entry, has_one_way: bool) -> Vec<TableCell> {
    let mut figures = latencies(entry.latency(), entry.intervals());
    if let Some(p50) = figures.first_mut().filter(|_| entry.latency().is_some()) {
        p50.small = entry.spread();
    }
    figures.extend(columns(has_one_way).map(|(_, shows)| figure(shows, entry)));
    figures
}

fn figure(shows: &Shows, entry: &Entry) -> TableCell {
    let cell = entry.cell;
    let name = match shows {
        Shows::Text(_, of) => return of(entry).map(TableCell::plain).unwrap_or_default(),
        Shows::Metric(name) => *name,
    };
    let Some(text) = Metric::named(name).text(cell) else { return TableCell::default() };
    // It ends at the other end than it begins, also of round trips.
    let clock = cell.clock.as_ref().filter(|_| name == "wake_us");
    let clock = clock.map(|clock| format::plus_minus_us(clock.error_us)).unwrap_or_default();
    TableCell::plain(text).small(clock).title(more(name, cell).unwrap_or_default())
}

/// What else a reader may ask of a figure.
fn more(name: &str, cell: &Cell) -> Option<String> {
    Some(match name {
        "lost" => format!(
            "sent {}, duplicates {}, out of order {}, corrupt {}",
            cell.sent, cell.duplicates, cell.out_of_order, cell.corrupt
        ),
        "cpu_us_per_message" => format!("{} % of a core", format::cpu_percent(cell.cpu_percent)),
        "voluntary_switches_per_s" => {
            format!("and {:.0} involuntary", cell.involuntary_switches_per_s)
        }
        "pss_bytes" => {
            format!("RSS, shared pages counted for each: {}", format::bytes(cell.rss_bytes))
        }
        _ => format!("p99 {} µs", format::us(Metric::named(name).p99(cell)?)),
    })
}

fn latencies(
    latency: Option<&Distribution>,
    [p50, p99, p999]: [Option<[f64; 2]>; 3],
) -> Vec<TableCell> {
    let Some(latency) = latency else { return vec![TableCell::default(); LATENCIES] };
    let figures = [
        (latency.p50, p50),
        (latency.p90, None),
        (latency.p99, p99),
        (latency.p999, p999),
        (Some(latency.max), None),
    ];
    let figure = |(us, interval): (Option<f64>, Option<[f64; 2]>)| {
        let interval = interval.map(format::interval_us).unwrap_or_default();
        TableCell::plain(format::us_or_dash(us)).small(interval)
    };
    figures.map(figure).into()
}
