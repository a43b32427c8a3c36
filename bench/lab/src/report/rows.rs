//! The summary table of the page: one row for each cell, every figure of it.

use myelin_bench_kit::protocol::Workload;
use serde::Serialize;

use super::document::TableCell;
use super::fan::Fan;
use super::format;
use super::metrics::{PAGE, PageColumn, Shows};
use super::palette::Palette;
use super::validity;
use super::view::{Entry, Group, Latency, View, tuning_rank};
use crate::summary::{Distribution, Metric, Placement};

/// The rows of one group, by payload.
#[derive(Serialize)]
pub(super) struct Section {
    pub id: String,
    pub title: String,
    /// What p50 to max are percentiles of.
    pub metric: &'static str,
    pub bodies: Vec<Body>,
}

/// The rows of one payload, the floor first.
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
    pub tuning: String,
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
pub(super) fn heads(view: &View) -> Vec<(&'static str, &'static str)> {
    let further = columns(view.has_one_way()).map(|column| (column.head, column.about));
    LATENCY_HEADS.into_iter().chain(further).collect()
}

fn columns(has_one_way: bool) -> impl Iterator<Item = &'static PageColumn> {
    PAGE.iter().filter(move |column| has_one_way || !column.is_one_way)
}

/// The sections of a report.
pub(super) fn sections(view: &View, palette: &Palette) -> Vec<Section> {
    let page = Page { palette, has_one_way: view.has_one_way() };
    let groups = view.groups.iter().map(|group| page.section(group));
    groups.chain(view.fans.iter().map(|fan| page.fan_section(fan))).collect()
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
        let body = |&payload: &u64| {
            let mut entries: Vec<_> = group
                .entries
                .iter()
                .filter(|entry| entry.cell.params.payload_bytes == payload)
                .collect();
            let rank = |entry: &Entry| group.systems.iter().position(|it| *it == entry.system);
            entries.sort_by_key(|entry| (rank(entry), tuning_rank(&entry.cell.tuning)));
            Body {
                payload_bytes: payload,
                label: group.size(payload),
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
            bodies: group.payloads.iter().map(body).collect(),
        }
    }

    /// The section of publish runs: a body for each number of subscribers.
    fn fan_section(&self, fan: &Fan) -> Section {
        let body = |point: (u64, u32)| {
            let is_here = |entry: &&Entry| {
                let params = &entry.cell.params;
                (params.payload_bytes, params.subscribers) == point
            };
            Body {
                payload_bytes: point.0,
                label: fan.label(point),
                rows: fan.entries.iter().filter(is_here).map(|entry| self.row(entry)).collect(),
            }
        };
        Section {
            id: fan.id.clone(),
            title: fan.title(),
            metric: Latency::Publish.words(),
            bodies: fan.points().map(body).collect(),
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
            tuning: entry.cell.tuning.clone(),
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
        Shows::Text(of) => (of(entry), ""),
        Shows::Metric(name) => (Metric::named(name).text(cell), name),
    };
    let Some(text) = text else { return TableCell::default() };
    let p99 = match column.shows {
        Shows::Metric(name) => Metric::named(name).p99(cell),
        Shows::Text(_) => None,
    };
    // It ends at the other end than it begins, also of round trips.
    let clock = cell.clock.as_ref().filter(|_| name == "wake_us");
    TableCell {
        main: text,
        small: clock.map(|clock| format::plus_minus_us(clock.error_us)).unwrap_or_default(),
        title: match column.title {
            Some(of) => of(cell),
            None => p99.map(|p99| format!("p99 {} µs", format::us(p99))).unwrap_or_default(),
        },
        ..TableCell::default()
    }
}

fn latencies(
    latency: Option<&Distribution>,
    [p50, p99, p999]: [Option<[f64; 2]>; 3],
) -> Vec<TableCell> {
    let Some(latency) = latency else {
        return std::iter::repeat_with(TableCell::default).take(LATENCIES).collect();
    };
    let with = |figure: TableCell, interval: Option<[f64; 2]>| TableCell {
        small: interval.map(format::interval_us).unwrap_or_default(),
        ..figure
    };
    vec![
        with(percentile(latency.p50), p50),
        percentile(latency.p90),
        with(percentile(latency.p99), p99),
        with(percentile(latency.p999), p999),
        percentile(Some(latency.max)),
    ]
}

fn percentile(value: Option<f64>) -> TableCell {
    TableCell { main: format::us_or_dash(value), ..TableCell::default() }
}
