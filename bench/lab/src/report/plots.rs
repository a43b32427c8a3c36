//! What the plots of the page are drawn from: one JSON document inside it.

use serde::Serialize;

use super::fan::Fan;
use super::sweep::{self, Sweep};
use super::view::{Entry, Group, View};
use super::words;
use crate::summary::{CurvePoint, Distribution};

/// The document.
#[derive(Serialize)]
pub(super) struct Data<'a> {
    systems: Vec<Drawn<'a>>,
    groups: Vec<PlotGroup<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    sweeps: Vec<Sweep<'a>>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    fans: Vec<PlotFan<'a>>,
}

/// A system as every plot shows it.
#[derive(Serialize)]
pub(super) struct Drawn<'a> {
    pub name: &'a str,
    pub floor: bool,
    /// How it waits, unless it simply sleeps.
    pub wait: &'static str,
    /// A CSS colour.
    pub colour: String,
    /// A symbol by the name that Plot gives it.
    pub symbol: &'static str,
    /// The same symbol as a character; of no use to the floor, which is drawn as dashed lines.
    pub sign: &'static str,
    /// A dash pattern, for the floor.
    pub dash: &'static str,
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
    /// Quantile as a number of nines, µs, lowest and highest run.
    curve: Vec<[f64; 4]>,
    runs: Vec<PlotRun>,
    /// Only of bimodal cells.
    placements: Vec<PlotPlacement>,
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

/// Which colour belongs to which system, in every plot and table of a page.
pub(super) struct Palette {
    /// Colour, symbol and dash by system, in the order of the summary.
    places: Vec<(String, bool, usize)>,
}

impl Palette {
    pub(super) fn new(view: &View) -> Self {
        let (mut peers, mut floors) = (0, 0);
        let mut places: Vec<(String, bool, usize)> = Vec::new();
        let listed = view.analysis.summary.systems.iter().map(|system| system.name.as_str());
        for name in listed.chain(view.entries().map(|entry| entry.system.name)) {
            let known = places.iter().any(|(other, ..)| other == name);
            let Some(entry) = view.entries().find(|entry| entry.system.name == name) else {
                continue;
            };
            if !known {
                let next = if entry.system.floor { &mut floors } else { &mut peers };
                places.push((name.to_owned(), entry.system.floor, *next));
                *next += 1;
            }
        }
        Self { places }
    }

    /// A CSS colour that suits light and dark.
    pub(super) fn colour(&self, system: &str) -> String {
        match self.place(system) {
            (true, _) => "var(--floor)".to_owned(),
            (false, place) => format!("var(--system-{})", place % COLOURS),
        }
    }

    /// Every system that was measured.
    pub(super) fn drawn<'a>(&self, view: &View<'a>) -> Vec<Drawn<'a>> {
        let one = |(name, floor, place): &(String, bool, usize)| {
            let entry = view.entries().find(|entry| entry.system.name == name)?;
            let (symbol, sign) = SYMBOLS[place % SYMBOLS.len()];
            Some(Drawn {
                name: entry.system.name,
                floor: *floor,
                wait: words::wait_remark(entry.system.wait),
                colour: self.colour(name),
                symbol,
                sign,
                dash: DASHES[place % DASHES.len()],
            })
        };
        self.places.iter().filter_map(one).collect()
    }

    fn place(&self, system: &str) -> (bool, usize) {
        let found = self.places.iter().find(|(name, ..)| name == system);
        found.map_or((true, 0), |(_, floor, place)| (*floor, *place))
    }
}

/// The document as text that may stand inside a `<script>` element.
pub(super) fn json(view: &View, palette: &Palette) -> String {
    let sweeps = sweep::sweeps(view);
    let groups = view.groups.iter().enumerate().filter(|(_, group)| group.is_steady());
    let data = Data {
        systems: palette.drawn(view),
        groups: groups.map(|(place, it)| group(it, place, &sweeps)).collect(),
        sweeps,
        fans: view.fans.iter().map(fan).collect(),
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
        system: entry.system.name,
        tuning: &entry.cell.tuning,
        payload: entry.cell.params.payload_bytes,
        topology: &entry.cell.topology,
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
        curve: thin(&entry.detail.curve),
        runs: runs.collect(),
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
            kept.push([
                (nines * 1e4).round() / 1e4,
                short(point.us),
                short(point.low_us),
                short(point.high_us),
            ]);
        }
    }
    kept
}

/// Five significant figures: finer than a pixel, and half the bytes.
pub(super) fn short(value: f64) -> f64 {
    format!("{value:.4e}").parse().unwrap_or(value)
}

/// Colours defined by the style sheet as `--system-0` and on.
const COLOURS: usize = 8;

/// Names in Plot, and the same as characters.
const SYMBOLS: [(&str, &str); 7] = [
    ("circle", "●"),
    ("square", "■"),
    ("triangle", "▲"),
    ("diamond", "◆"),
    ("star", "★"),
    ("cross", "✚"),
    ("wye", "▼"),
];

const DASHES: [&str; 6] = ["5 3", "1.5 2.5", "8 3 1.5 3", "3 2", "10 4", "6 2 1.5 2 1.5 2"];

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
