//! The summary table of the page: one row for each cell, every figure of it.

use minijinja::{Value, context};
use myelin_bench_kit::protocol::Workload;

use super::document::TableCell;
use super::format;
use super::metrics::{PAGE, PageColumn, Shows};
use super::palette::Palette;
use super::validity;
use super::view::{Entry, Group, Point, View};
use crate::summary::{Distribution, Metric, Placement};

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
    let further = columns(view.has_one_way()).map(|column| (column.head, column.about()));
    LATENCY_HEADS.map(|(head, about)| (head, about.to_owned())).into_iter().chain(further).collect()
}

fn columns(has_one_way: bool) -> impl Iterator<Item = &'static PageColumn> {
    PAGE.iter().filter(move |column| has_one_way || !column.is_one_way)
}

pub(super) const LATENCIES: usize = LATENCY_HEADS.len();

/// The rows of each group, by payload, and by number of subscribers where nobody answers; the floor
/// first.
pub(super) fn sections(view: &View, palette: &Palette) -> Vec<Value> {
    let section = |group: &Group| {
        let body = |point: Point| {
            let mut entries: Vec<_> = group.at(point).collect();
            let rank = |entry: &Entry| group.systems.iter().position(|it| *it == entry.system);
            entries.sort_by_key(|entry| (rank(entry), entry.cell.tuning));
            let rows = entries.into_iter().map(|entry| row(entry, palette, view.has_one_way()));
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
fn row(entry: &Entry, palette: &Palette, has_one_way: bool) -> Value {
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
        colour => palette.colour(entry.system.name),
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
    figures.extend(columns(has_one_way).map(|column| figure(column, entry)));
    figures
}

fn figure(column: &PageColumn, entry: &Entry) -> TableCell {
    let cell = entry.cell;
    let (text, name) = match column.shows {
        Shows::Text(_, of) => (of(entry), ""),
        Shows::Metric(name) => (Metric::named(name).text(cell), name),
    };
    let Some(text) = text else { return TableCell::default() };
    let p99 = match column.shows {
        Shows::Metric(name) => Metric::named(name).p99(cell),
        Shows::Text(..) => None,
    };
    // It ends at the other end than it begins, also of round trips.
    let clock = cell.clock.as_ref().filter(|_| name == "wake_us");
    let clock = clock.map(|clock| format::plus_minus_us(clock.error_us)).unwrap_or_default();
    TableCell::plain(text).small(clock).title(match column.title {
        Some(of) => of(cell),
        None => p99.map(|p99| format!("p99 {} µs", format::us(p99))).unwrap_or_default(),
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
