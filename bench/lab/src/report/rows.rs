//! The summary table of the page: one row for each cell, with all its figures.

use minijinja::{Value, context};
use myelin_bench_kit::protocol::Workload;

use super::document::TableCell;
use super::format;
use super::validity;
use super::view::{Entry, Group, Point, View};
use crate::summary::{Cell, Distribution, Metric, Placement};

/// Headings and explanations of the first figures of a row; the rows of its placements have them,
/// too.
const LATENCY_HEADS: [(&str, &str); 5] = [
    ("p50 µs", "median, with its interval over the runs (level 93.75 % or more)"),
    ("p90 µs", "90th percentile"),
    ("p99 µs", "99th percentile, with its interval over the runs (level 93.75 % or more)"),
    ("p99.9 µs", "99.9th percentile, with its interval over the runs (level 93.75 % or more)"),
    ("max µs", "largest latency"),
];

/// Further headings, each with its metric. The tables of `flow` show the figures that only one-way
/// workloads have.
const METRICS: [(&str, &str); 11] = [
    ("write µs", "write_us"),
    ("read µs", "read_us"),
    ("wake µs", "wake_us"),
    ("per second", "throughput_per_s"),
    ("lost", "lost"),
    ("CPU µs/msg", "cpu_us_per_message"),
    ("switches/s", "voluntary_switches_per_s"),
    ("faults", "page_faults"),
    ("PSS", "pss_bytes"),
    ("shared", "shared_bytes"),
    ("start ms", "startup_ms"),
];

/// All headings, each with its explanation.
pub(super) fn heads() -> Vec<(&'static str, String)> {
    let metric = |(head, name)| {
        let metric = Metric::named(name);
        let median = if metric.is_distribution() { "; median" } else { "" };
        (head, format!("{}{median}", metric.about))
    };
    let latencies = LATENCY_HEADS.map(|(head, about)| (head, about.to_owned()));
    let runs = ("runs × n", "runs, and figures in each run".to_owned());
    latencies.into_iter().chain(METRICS.map(metric)).chain([runs]).collect()
}

pub(super) const LATENCIES: usize = LATENCY_HEADS.len();

/// The rows of each group, the floor first: by payload and, for publish runs, by number of
/// subscribers.
pub(super) fn sections(view: &View) -> Vec<Value> {
    let section = |group: &Group| {
        let body = |point: Point| {
            let mut entries: Vec<_> = group.at(point).collect();
            let rank = |entry: &Entry| group.systems.iter().position(|it| *it == entry.system);
            entries.sort_by_key(|entry| (rank(entry), entry.cell.tuning));
            let rows = entries.into_iter().map(row);
            context! {
                payload_bytes => point.0,
                label => group.label(point),
                rows => rows.collect::<Vec<_>>(),
            }
        };
        context! {
            id => group.id,
            title => group.title(),
            // The events that p50 to max describe.
            metric => match group.workload {
                Workload::Flood => "one-way latency, which is the depth of a queue",
                _ => group.metric.words(),
            },
            bodies => group.points().map(body).collect::<Vec<_>>(),
        }
    };
    view.all().map(section).collect()
}

/// One cell, followed by its placements if it is bimodal.
fn row(entry: &Entry) -> Value {
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
        figures => figures(entry),
        placements => placements.map(placement).collect::<Vec<_>>(),
    }
}

fn figures(entry: &Entry) -> Vec<TableCell> {
    let mut figures = latencies(entry.latency(), entry.intervals());
    if let Some(p50) = figures.first_mut().filter(|_| entry.latency().is_some()) {
        p50.small = entry.spread();
    }
    figures.extend(METRICS.map(|(_, name)| figure(name, entry.cell)));
    let (runs, samples) = (entry.cell.runs, entry.cell.samples);
    let runs = format!("{runs} × {}", format::count(samples / u64::from(runs.max(1))));
    figures.push(TableCell::plain(runs));
    figures
}

fn figure(name: &str, cell: &Cell) -> TableCell {
    let Some(text) = Metric::named(name).text(cell) else { return TableCell::absent() };
    // It begins at one end and finishes at the other, even in round trips.
    let clock = cell.clock.as_ref().filter(|_| name == "wake_us");
    let clock = clock.map(|clock| format::plus_minus_us(clock.error_us)).unwrap_or_default();
    TableCell::plain(text).small(clock).title(more(name, cell).unwrap_or_default())
}

/// Further details of a figure.
fn more(name: &str, cell: &Cell) -> Option<String> {
    Some(match name {
        "lost" => {
            let known = |number| format::or_dash(number, |it: u64| it.to_string());
            format!(
                "sent {}, duplicates {}, out of order {}, corrupt {}",
                cell.sent,
                known(cell.duplicates),
                cell.out_of_order,
                known(cell.corrupt)
            )
        }
        "cpu_us_per_message" => format!("{} % of a core", format::cpu_percent(cell.cpu_percent?)),
        "voluntary_switches_per_s" => {
            format!("and {:.0} involuntary", cell.involuntary_switches_per_s?)
        }
        "pss_bytes" => {
            format!(
                "RSS, which counts shared pages in each process: {}",
                format::bytes(cell.rss_bytes?)
            )
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
    figures.map(|(us, interval)| TableCell::us(us, interval)).into()
}
