//! The summary table of the page: one row for each cell, every figure of it.

use myelin_bench_kit::protocol::Workload;
use serde::Serialize;

use super::document::TableCell;
use super::format;
use super::metrics::{PAGE, PageColumn, Shows};
use super::palette::Palette;
use super::validity;
use super::view::{Entry, Group, Point, View};
use crate::scenario::Tuning;
use crate::summary::{Distribution, Metric, Placement};

/// The rows of one group, by payload, and by number of subscribers where nobody answers.
#[derive(Serialize)]
pub(super) struct Section {
    pub id: String,
    pub title: String,
    /// What p50 to max are percentiles of.
    pub metric: &'static str,
    pub bodies: Vec<Body>,
}

/// The rows of one of them, the floor first.
#[derive(Serialize)]
pub(super) struct Body {
    pub payload_bytes: u64,
    pub label: String,
    pub rows: Vec<Row>,
}

/// One cell.
#[derive(Serialize)]
pub(super) struct Row {
    pub index: usize,
    pub system: String,
    pub tuning: Tuning,
    /// How it waits, where that sets it apart.
    pub note: &'static str,
    pub colour: String,
    pub floor: bool,
    pub valid: bool,
    pub reasons: String,
    pub figures: Vec<TableCell>,
    /// The same cell by placement, if it is bimodal.
    pub placements: Vec<PlacementRow>,
}

/// Round trips of one placement.
#[derive(Serialize)]
pub(super) struct PlacementRow {
    pub label: String,
    pub figures: Vec<TableCell>,
}

/// Headings and explanations of the first of [`Row::figures`], which [`PlacementRow::figures`] has, too.
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

/// The sections of a report.
pub(super) fn sections(view: &View, palette: &Palette) -> Vec<Section> {
    let page = Page { palette, has_one_way: view.has_one_way() };
    view.all().map(|group| page.section(group)).collect()
}

/// What all rows depend on.
struct Page<'a> {
    palette: &'a Palette,
    has_one_way: bool,
}

/// How many of [`Row::figures`] are latencies, which [`PlacementRow::figures`] has too.
pub(super) const LATENCIES: usize = LATENCY_HEADS.len();

impl Page<'_> {
    /// The section of a group.
    fn section(&self, group: &Group) -> Section {
        let body = |point: Point| {
            let mut entries: Vec<_> = group.at(point).collect();
            let rank = |entry: &Entry| group.systems.iter().position(|it| *it == entry.system);
            entries.sort_by_key(|entry| (rank(entry), entry.cell.tuning));
            Body {
                payload_bytes: point.0,
                label: group.label(point),
                rows: entries.into_iter().map(|entry| self.row(entry)).collect(),
            }
        };
        Section {
            id: group.id.clone(),
            title: group.title(),
            metric: match group.workload {
                Workload::Flood => "one-way latency, which is the depth of a queue",
                _ => group.metric.words(),
            },
            bodies: group.points().map(body).collect(),
        }
    }

    fn row(&self, entry: &Entry) -> Row {
        let placement = |placement: &Placement| PlacementRow {
            label: format!(
                "{} {}",
                if placement.same_cpu { "same core" } else { "across cores" },
                format::share_percent(placement.share)
            ),
            figures: latencies(placement.latency(), [None; 3]),
        };
        let placements = entry.cell.placements.iter().filter(|_| entry.is_bimodal());
        Row {
            index: entry.index,
            system: entry.system.name.to_owned(),
            tuning: entry.cell.tuning,
            note: entry.system.note(),
            colour: self.palette.colour(entry.system.name),
            floor: entry.system.floor,
            valid: entry.cell.valid,
            reasons: if entry.cell.valid { String::new() } else { validity::reasons(entry) },
            figures: figures(entry, self.has_one_way),
            placements: placements.map(placement).collect(),
        }
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
