//! What the plots of the page are drawn from: one JSON document inside it.

use std::collections::BTreeMap;

use serde::Serialize;

use super::course::{self, PlotCourse, Room};
use super::fan::Fan;
use super::metrics::memory_mb;
use super::packed::{integers, logarithms};
use super::palette::{Look, Palette};
use super::sweep::{self, Sweep};
use super::view::{Entry, Group, View};
use super::words;
use crate::summary::{CurvePoint, Distribution, StageMean, Stages};

/// The document.
#[derive(Serialize)]
pub(super) struct Data<'a> {
    systems: &'a [Look],
    groups: Vec<PlotGroup<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweeps: Vec<Sweep<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fans: Vec<PlotFan<'a>>,
    /// By the index of the cell.
    courses: BTreeMap<usize, PlotCourse<'a>>,
}

#[derive(Serialize)]
struct PlotGroup<'a> {
    id: &'a str,
    title: String,
    metric: &'static str,
    /// What percentiles are of, in the plural.
    noun: &'static str,
    is_flow: bool,
    scenario: &'a str,
    /// What sets it apart from the others of its scenario.
    point: &'a str,
    /// Whether it is one value of a sweep: the first and the last are drawn at first.
    is_swept: bool,
    /// Whether it has a plot against size.
    has_sizes: bool,
    tunings: &'a [&'a str],
    payloads: &'a [u64],
    payload_labels: Vec<String>,
    cells: Vec<PlotCell<'a>>,
}

/// Publish runs; latencies are in µs here, too.
#[derive(Serialize)]
struct PlotFan<'a> {
    id: &'a str,
    title: String,
    tunings: &'a [&'a str],
    subscribers: &'a [u32],
    payloads: &'a [u64],
    payload_labels: Vec<String>,
    clock_read_ns: f64,
    cells: Vec<FanCell<'a>>,
}

#[derive(Serialize)]
struct FanCell<'a> {
    subscribers: u32,
    #[serde(flatten)]
    cell: PlotCell<'a>,
}

#[derive(Serialize)]
struct PlotCell<'a> {
    /// In the summary.
    index: usize,
    system: &'a str,
    tuning: &'a str,
    payload: u64,
    topology: &'a str,
    valid: bool,
    /// CPU of all processes, and of the receiving end alone, in per cent of a core.
    cpu: f64,
    receiver_cpu: Option<f64>,
    /// CPU of all processes for each message, µs.
    cpu_us: f64,
    /// Whether it fell short of its rate, so that its latency says how long the run was.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    short: bool,
    /// Whether the median is an accident of two placements.
    mixed: bool,
    p50: Option<f64>,
    p99: Option<f64>,
    p50_interval: Option<[f64; 2]>,
    p99_interval: Option<[f64; 2]>,
    /// Quantile as a number of nines × 10,000, µs, lowest and highest run: packed columns.
    curve: [String; 4],
    /// The quantiles 1/400, 3/400 … in µs, packed.
    even: String,
    runs: Vec<PlotRun>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stages: Option<PlotStages>,
    /// PSS of all processes in MB, and messages lost in per cent; absent where not known.
    #[serde(skip_serializing_if = "Option::is_none")]
    memory: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    lost: Option<f64>,
    /// Only of bimodal cells.
    placements: Vec<PlotPlacement>,
}

#[derive(Serialize)]
struct PlotStages {
    messages: u64,
    slow_messages: u64,
    /// Stage by its number, whether it passes before the latency begins, mean µs, and that of the
    /// messages above the 99th percentile.
    parts: Vec<(u8, bool, f64, Option<f64>)>,
}

#[derive(Serialize)]
struct PlotRun {
    order: u32,
    p50: Option<f64>,
    p99: Option<f64>,
    valid: bool,
}

#[derive(Serialize)]
struct PlotPlacement {
    same_cpu: bool,
    label: String,
    share: f64,
    p50: Option<f64>,
    p99: Option<f64>,
}

/// Every system that was measured, by family, in the order of the first of each.
pub(super) fn families(palette: &Palette) -> Vec<(&str, Vec<&Look>)> {
    let mut families: Vec<(&str, Vec<&Look>)> = Vec::new();
    for look in palette.looks() {
        match families.iter_mut().find(|(name, _)| *name == look.family) {
            Some((_, members)) => members.push(look),
            None => families.push((&look.family, vec![look])),
        }
    }
    families
}

/// The document as text that may stand inside a `<script>` element.
pub(super) fn json(view: &View, palette: &Palette, room: Room) -> String {
    let sweeps = sweep::sweeps(view);
    let groups = view.groups.iter().enumerate().filter(|(_, group)| group.is_steady());
    let data = Data {
        systems: palette.looks(),
        groups: groups.map(|(place, it)| group(it, place, &sweeps)).collect(),
        sweeps,
        fans: view.fans.iter().map(fan).collect(),
        courses: course::courses(view, room),
    };
    embedded(&data)
}

/// A document to stand inside a page.
pub(crate) fn embedded(data: &impl Serialize) -> String {
    let text = serde_json::to_string(data).expect("numbers and texts can be written");
    // Inside JSON, `<` stands in strings alone; escaped, nothing can end the element early.
    text.replace('<', "\\u003c")
}

fn group<'a>(group: &'a Group<'a>, place: usize, sweeps: &[Sweep]) -> PlotGroup<'a> {
    PlotGroup {
        id: &group.id,
        title: group.title(),
        metric: group.metric.words(),
        noun: group.metric.noun(),
        is_flow: group.is_flow(),
        scenario: group.scenario,
        point: &group.point,
        is_swept: sweeps.iter().any(|sweep| sweep.groups.contains(&place)),
        has_sizes: group.payloads.len() > 1
            && !sweeps.iter().any(|sweep| sweep.sized.contains(&place)),
        tunings: &group.tunings,
        payloads: &group.payloads,
        payload_labels: group.payloads.iter().map(|&payload| group.size(payload)).collect(),
        cells: group.entries.iter().map(cell).collect(),
    }
}

fn fan<'a>(fan: &'a Fan<'a>) -> PlotFan<'a> {
    let cell = |entry: &Entry<'a>| FanCell {
        subscribers: entry.cell.params.subscribers,
        cell: cell(entry),
    };
    PlotFan {
        id: &fan.id,
        title: fan.title(),
        tunings: &fan.tunings,
        subscribers: &fan.subscribers,
        payloads: &fan.payloads,
        payload_labels: fan.payloads.iter().copied().map(words::bytes).collect(),
        clock_read_ns: short(fan.clock_read_ns),
        cells: fan.entries.iter().map(cell).collect(),
    }
}

fn cell<'a>(entry: &Entry<'a>) -> PlotCell<'a> {
    let latency = entry.latency();
    let of = |percentile: fn(&Distribution) -> Option<f64>| latency.and_then(percentile);
    let runs = entry.detail.runs.iter().map(|run| PlotRun {
        order: run.order,
        p50: run.p50_us.map(short),
        p99: run.p99_us.map(short),
        valid: run.valid,
    });
    let placements = entry.cell.placements.iter().filter(|_| entry.is_bimodal());
    PlotCell {
        index: entry.index,
        system: entry.system.name,
        tuning: &entry.cell.tuning,
        payload: entry.cell.params.payload_bytes,
        topology: entry.cell.topology.name(),
        valid: entry.cell.valid,
        cpu: short(entry.cell.cpu_percent),
        receiver_cpu: entry.cell.receiver_cpu_percent.map(short),
        cpu_us: short(entry.cell.cpu_us_per_message),
        short: entry.short_of_rate().is_some(),
        mixed: entry.is_mixed(),
        p50: of(|latency| latency.p50).map(short),
        p99: of(|latency| latency.p99).map(short),
        p50_interval: entry.p50_interval().map(|ends| ends.map(short)),
        p99_interval: entry.p99_interval().map(|ends| ends.map(short)),
        curve: packed(&thin(&entry.detail.curve)),
        even: logarithms(entry.detail.even_us.iter().copied().map(Some)),
        runs: runs.collect(),
        stages: entry.detail.stages.as_ref().map(stages),
        memory: memory_mb(entry).map(short),
        lost: entry.loss_percent().map(short),
        placements: placements
            .map(|placement| PlotPlacement {
                same_cpu: placement.same_cpu,
                label: if placement.same_cpu { "same core" } else { "across cores" }.to_owned(),
                share: short(placement.share),
                p50: placement.p50().map(short),
                p99: placement.latency().and_then(|it| it.p99).map(short),
            })
            .collect(),
    }
}

fn stages(stages: &Stages) -> PlotStages {
    let part = |part: &StageMean| {
        let slow = part.slow_us.map(short);
        (part.stage as u8, part.is_before, short(part.mean_us), slow)
    };
    PlotStages {
        messages: stages.messages,
        slow_messages: stages.slow_messages,
        parts: stages.parts.iter().map(part).collect(),
    }
}

/// Leaves out points that would lie within a fraction of a pixel of the one before, along both
/// axes; first and last stay.
fn thin(curve: &[CurvePoint]) -> Vec<[f64; 4]> {
    let mut kept: Vec<[f64; 4]> = Vec::new();
    let last = curve.len().saturating_sub(1);
    for (place, point) in curve.iter().enumerate() {
        let nines = -(1.0 - point.quantile).max(f64::EPSILON).log10();
        let near = kept.last().is_some_and(|previous| {
            nines - previous[0] < 0.004 && (point.us / previous[1]).ln().abs() < 0.004
        });
        if !near || place == last {
            kept.push([nines, point.us, point.low_us, point.high_us]);
        }
    }
    kept
}

fn packed(curve: &[[f64; 4]]) -> [String; 4] {
    let column = |place: usize| logarithms(curve.iter().map(|point| Some(point[place])));
    let nines = integers(curve.iter().map(|point| (point[0] * 1e4).round() as i64));
    [nines, column(1), column(2), column(3)]
}

/// Five significant figures: finer than a pixel, and half the bytes.
pub(super) fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thinning_keeps_ends_and_steps() {
        let point = |quantile: f64, us: f64| CurvePoint { quantile, us, low_us: us, high_us: us };
        let mut curve: Vec<_> = (0..1000).map(|i| point(f64::from(i) / 1e6, 10.0)).collect();
        curve.push(point(0.001, 60.0));
        curve.push(point(0.0011, 60.0));
        let thinned = thin(&curve);
        assert_eq!(thinned.first().unwrap()[..2], [0.0, 10.0]);
        assert_eq!(thinned.last().unwrap()[1], 60.0);
        assert_eq!(thinned.len(), 3, "{thinned:?}");
    }
}
