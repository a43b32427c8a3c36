//! The summary table of the page: one row for each cell, every figure of it.

use myelin_bench_kit::protocol::Workload;
use serde::Serialize;

use super::fan::Fan;
use super::palette::Palette;
use super::validity;
use super::view::{Entry, Group, Metric, View, tuning_rank};
use super::words;
use crate::summary::{Distribution, Placement};

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
    pub figures: Vec<Figure>,
    /// The same cell by placement, if it is bimodal.
    pub placements: Vec<PlacementRow>,
}

/// Round trips of one placement.
#[derive(Serialize)]
pub(super) struct PlacementRow {
    pub label: String,
    pub figures: Vec<Figure>,
}

/// A figure with what explains it.
#[derive(Default, Serialize)]
pub(super) struct Figure {
    pub text: String,
    /// In small type: the interval.
    pub small: String,
    pub title: String,
}

/// Headings and explanations of [`Row::figures`].
const HEADS: &[(&str, &str)] = &[
    ("p50 µs", "median, and its interval over runs, of at least 93.75 %"),
    ("p90 µs", "90th percentile"),
    ("p99 µs", "99th percentile, and its interval over runs, of at least 93.75 %"),
    ("p99.9 µs", "99.9th percentile, and its interval over runs, of at least 93.75 %"),
    ("max µs", "largest"),
    (
        "write µs",
        "write access: the publish call of ping, with loan and fill unless they stand apart; median",
    ),
    ("read µs", "read access: the take of ping, or of a stream's receiver; median"),
    ("wake µs", "from the end of publish until the one who waits for it runs; median"),
    ("per second", "round trips, publish calls or messages taken a second, or the rate reached"),
    ("lost", "messages never answered, or never taken"),
    ("CPU µs/msg", "CPU of ping, pong and daemons for each message"),
    ("switches/s", "voluntary context switches a second, all threads"),
    ("faults", "page faults while measuring"),
    ("PSS", "memory of ping, pong and daemons, shared pages counted once; tuned locks all of it"),
    ("shared", "shared segments mapped, each counted once"),
    ("start ms", "from the start of the later process until both directions matched"),
    ("runs × n", "runs, and figures in each of them"),
];

/// What goes one way has beyond [`HEADS`].
const FLOW_HEADS: &[(&str, &str)] = &[
    (
        "naive p99.9 µs",
        "from the stamp instead of the time the message was due: what a publisher that is held up \
         does not show; of streams with a rate",
    ),
    ("late p99 µs", "behind the schedule when the loan is asked for; 99th percentile"),
    ("late µs", "behind the schedule when the loan is asked for; median"),
    ("loan µs", "getting the loan, before the stamp; median"),
    ("fill µs", "filling it, before the stamp; median"),
    ("memcpy µs", "the receiver's memcpy of the frame, after it was taken; median"),
    ("streaming µs", "the receiver's streaming copy of the frame, after memcpy; median"),
    ("CPU %", "of a core: ping, pong and daemons, from the first measured message to the last"),
    ("receiver %", "of a core: the receiving process alone, its copies included"),
    ("lost %", "of the messages that were to be taken"),
    ("QoS, depth", "what the system was set to: reliability, and messages kept for one who lags"),
];

/// The headings of a report.
pub(super) fn heads(view: &View) -> Vec<(&'static str, &'static str)> {
    let more: &[_] = if view.has_one_way() { FLOW_HEADS } else { &[] };
    HEADS.iter().chain(more).copied().collect()
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
pub(super) const LATENCIES: usize = 5;

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
            metric: Metric::Publish.words(),
            bodies: fan.points().map(body).collect(),
        }
    }

    fn row(&self, entry: &Entry) -> Row {
        let placement = |placement: &Placement| PlacementRow {
            label: format!(
                "{} {}",
                if placement.same_cpu { "same core" } else { "across cores" },
                words::share_percent(placement.share)
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

fn figures(entry: &Entry, has_one_way: bool) -> Vec<Figure> {
    let cell = entry.cell;
    let intervals = [entry.p50_interval(), entry.p99_interval(), entry.p999_interval()];
    let mut figures = latencies(entry.latency(), intervals);
    if let Some(p50) = figures.first_mut().filter(|_| entry.latency().is_some()) {
        p50.small = entry.spread();
    }
    // It ends at the other end than it begins, also of round trips.
    let crossing = |figure: Figure| match &cell.clock {
        Some(clock) if !figure.text.is_empty() => {
            Figure { small: words::plus_minus_us(clock.error_us), ..figure }
        }
        _ => figure,
    };
    figures.extend([
        access(cell.write_us.as_ref()),
        access(cell.read_us.as_ref()),
        crossing(access(cell.wake_us.as_ref())),
        plain(words::amount(cell.throughput_per_s)),
        Figure {
            title: format!(
                "sent {}, duplicates {}, out of order {}, corrupt {}",
                cell.sent, cell.duplicates, cell.out_of_order, cell.corrupt
            ),
            ..plain(words::count(cell.lost))
        },
        Figure {
            title: format!("{} % of a core", words::cpu_percent(cell.cpu_percent)),
            ..plain(words::us(cell.cpu_us_per_message))
        },
        Figure {
            title: format!("and {:.0} involuntary", cell.involuntary_switches_per_s),
            ..plain(words::amount(cell.voluntary_switches_per_s))
        },
        plain(words::amount(cell.page_faults)),
        Figure {
            title: format!("RSS, shared pages counted for each: {}", words::bytes(cell.rss_bytes)),
            ..plain(words::bytes(cell.pss_bytes))
        },
        plain(words::bytes(cell.shared_bytes)),
        plain(words::amount(cell.startup_ms)),
        plain(format!("{} × {}", cell.runs, words::count(per_run(cell.samples, cell.runs)))),
    ]);
    if has_one_way {
        figures.extend(flow_figures(entry));
    }
    figures
}

fn flow_figures(entry: &Entry) -> [Figure; FLOW_HEADS.len()] {
    let cell = entry.cell;
    let late = cell.lateness_us;
    let percent = |percent: Option<f64>| {
        percent.map_or_else(not_measured, |percent| plain(words::cpu_percent(percent)))
    };
    let has_rate = cell.workload == Workload::Stream && cell.params.rate_hz.is_some();
    let naive = cell.service_us.filter(|_| has_rate);
    [
        naive.map_or_else(not_measured, |naive| percentile(naive.p999)),
        late.map_or_else(not_measured, |late| percentile(late.p99)),
        access(late.as_ref()),
        access(cell.loan_us.as_ref()),
        access(cell.fill_us.as_ref()),
        access(cell.memcpy_us.as_ref()),
        access(cell.stream_copy_us.as_ref()),
        percent(Some(cell.cpu_percent)),
        percent(cell.receiver_cpu_percent),
        entry.loss_percent().map_or_else(not_measured, |share| plain(words::percent(share))),
        plain(words::qos(&cell.params)),
    ]
}

fn latencies(
    latency: Option<&Distribution>,
    [p50, p99, p999]: [Option<[f64; 2]>; 3],
) -> Vec<Figure> {
    let Some(latency) = latency else {
        return std::iter::repeat_with(not_measured).take(LATENCIES).collect();
    };
    let with = |figure: Figure, interval: Option<[f64; 2]>| Figure {
        small: interval.map(words::interval_us).unwrap_or_default(),
        ..figure
    };
    vec![
        with(percentile(latency.p50), p50),
        percentile(latency.p90),
        with(percentile(latency.p99), p99),
        with(percentile(latency.p999), p999),
        plain(words::us(latency.max)),
    ]
}

fn percentile(value: Option<f64>) -> Figure {
    plain(value.map_or_else(|| words::WITHHELD.to_owned(), words::us))
}

fn access(distribution: Option<&Distribution>) -> Figure {
    let Some(distribution) = distribution else { return not_measured() };
    let title = distribution.p99.map(|p99| format!("p99 {} µs", words::us(p99)));
    Figure { title: title.unwrap_or_default(), ..percentile(distribution.p50) }
}

fn not_measured() -> Figure {
    Figure::default()
}

fn plain(text: String) -> Figure {
    Figure { text, ..Figure::default() }
}

fn per_run(samples: u64, runs: u32) -> u64 {
    samples / u64::from(runs.max(1))
}
