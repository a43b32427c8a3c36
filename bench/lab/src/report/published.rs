//! Published figures beside the measured ones; here those of CycloneDDS.
//!
//! They come from another machine: shapes and ratios may be compared, values not. RoundtripPing
//! and ddsperf print half round trips; those are doubled here, and minimum and percentiles are
//! therefore exact to 2 µs only.

use serde::{Deserialize, Serialize};

use super::published_images;
use super::published_modules;
use super::view::{Entry, Group, Metric, View};
use super::words;

/// `bench/published/cyclonedds-orin.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CycloneddsOrin {
    /// Short name of the report.
    pub id: String,
    /// What was published.
    pub title: String,
    /// What it was measured on.
    pub platform: String,
    /// Year and month.
    pub date: String,
    /// What was measured.
    pub systems: Vec<String>,
    /// What we found on reading or repeating the experiment.
    pub doubts: Vec<String>,
    /// Circumstances.
    pub notes: String,
    /// ddsperf at one ping a second: metric, with and without shared memory.
    #[serde(rename = "sanity_12B_1Hz")]
    pub sanity: Published<(String, f64, f64)>,
    /// Criterion, weight, score with and without shared memory.
    pub scorecard: Published<(String, f64, f64, f64)>,
    /// RoundtripPing for 60 s.
    #[serde(rename = "roundtrip_60s_0B_shm")]
    pub minute: Published<Minute>,
    /// RoundtripPing by size.
    #[serde(rename = "roundtrip_by_size")]
    pub by_size: Published<BySize>,
}

/// A row of RoundtripPing over 60 s without payload. Latencies are half round trips.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)] // The names say it all, units included.
pub struct Minute {
    pub tuning: String,
    pub samples: u64,
    pub median_us: f64,
    pub min_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    pub write_median_us: f64,
    pub read_median_us: f64,
}

/// A row of RoundtripPing by size. Latencies are half round trips.
#[derive(Debug, Deserialize)]
#[allow(missing_docs)] // The names say it all, units included.
pub struct BySize {
    pub transport: String,
    pub tuning: String,
    pub payload_bytes: u64,
    pub median_us: f64,
    pub min_us: f64,
    pub p99_us: f64,
    pub max_us: f64,
    pub write_median_us: f64,
    pub read_median_us: f64,
}

/// A published table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published<R> {
    /// Names of the columns, with units.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<R>,
}

impl CycloneddsOrin {
    /// The figures this program was built with.
    pub fn load() -> Self {
        toml::from_str(include_str!("../../../published/cyclonedds-orin.toml"))
            .expect("a test reads the published figures")
    }
}

/// Published figures beside measured ones, ready to print.
#[derive(Serialize)]
pub(super) struct Comparison {
    pub caption: String,
    /// Headings of what identifies a row.
    pub labels: Vec<&'static str>,
    /// Headings of the pairs (published, measured here).
    pub pairs: Vec<&'static str>,
    pub rows: Vec<ComparisonRow>,
    /// What the figures are.
    pub remark: &'static str,
    /// What to bear in mind.
    pub doubts: Vec<String>,
}

/// One row of a [`Comparison`].
#[derive(Serialize)]
pub(super) struct ComparisonRow {
    pub labels: Vec<String>,
    /// Published, measured here.
    pub pairs: Vec<(String, String)>,
}

/// Every published table whose scenario was measured.
pub(super) fn comparisons(view: &View) -> Vec<Comparison> {
    let published = CycloneddsOrin::load();
    let group = |accepts: &dyn Fn(&Group) -> bool| {
        view.groups.iter().find(|group| group.metric == Metric::RoundTrip && accepts(group))
    };
    let unpaced = |group: &Group| {
        group.entries.first().is_some_and(|entry| entry.cell.params.rate_hz.is_none())
    };
    let mut comparisons = Vec::new();
    for scenario in ["roundtrip-sizes", "quick"] {
        if let Some(group) = group(&|group| group.scenario == scenario && unpaced(group)) {
            comparisons.push(by_size(&published, group));
        }
    }
    if let Some(group) = group(&|group| group.scenario == "roundtrip-60s") {
        comparisons.push(minute(&published, group));
    }
    if let Some(group) = group(&|group| group.scenario == "sanity" && !unpaced(group)) {
        comparisons.extend([sanity(&published, group), scorecard(&published, view, group)]);
    }
    comparisons.extend(published_images::comparisons(view));
    comparisons.extend(published_modules::comparisons(view));
    comparisons
}

fn by_size(published: &CycloneddsOrin, group: &Group) -> Comparison {
    let rows = published.by_size.rows.iter().map(|row| {
        let system = system(row.transport == "shm");
        let here = group.entry(system, &row.tuning, row.payload_bytes);
        let halves = [row.min_us, row.median_us, row.p99_us, row.max_us];
        ComparisonRow {
            labels: vec![system.to_owned(), row.tuning.clone(), words::bytes(row.payload_bytes)],
            pairs: round_trips(halves, [row.write_median_us, row.read_median_us], here),
        }
    });
    Comparison {
        caption: format!("{} (scenario {})", title(published), group.scenario),
        labels: vec!["system", "tuning", "payload"],
        pairs: ROUND_TRIP_PAIRS.to_vec(),
        rows: rows.collect(),
        remark: HALVES,
        doubts: doubts(published, "roundtrip_by_size"),
    }
}

fn minute(published: &CycloneddsOrin, group: &Group) -> Comparison {
    let rows = published.minute.rows.iter().map(|row| {
        let ours = if row.tuning == "default" { "default" } else { "tuned" };
        let here = group.entry(system(true), ours, 0);
        let halves = [row.min_us, row.median_us, row.p99_us, row.max_us];
        let mut pairs = round_trips(halves, [row.write_median_us, row.read_median_us], here);
        let samples_here = here.map(|entry| words::count(entry.cell.samples));
        pairs.insert(0, (words::count(row.samples), samples_here.unwrap_or_else(dash)));
        ComparisonRow { labels: vec![system(true).to_owned(), row.tuning.clone()], pairs }
    });
    Comparison {
        caption: format!("{}: 0 B for 60 s", title(published)),
        labels: vec!["system", "tuning"],
        pairs: [&["round trips"], &ROUND_TRIP_PAIRS[..]].concat(),
        rows: rows.collect(),
        remark: HALVES,
        doubts: doubts(published, "roundtrip_60s_0B_shm"),
    }
}

fn sanity(published: &CycloneddsOrin, group: &Group) -> Comparison {
    let here = |shared| {
        let tuning = *group.tunings.first()?;
        group.entry(system(shared), tuning, *group.payloads.first()?)
    };
    let rows = published.sanity.rows.iter().map(|(metric, with, without)| {
        let (label, factor) = match metric.strip_prefix("half_rtt_") {
            Some(rest) => (format!("round_trip_{rest}"), 2.0),
            None => (metric.clone(), 1.0),
        };
        let pair = |value: f64, shared| {
            let ours = here(shared).and_then(|entry| sanity_figure(entry, metric));
            (words::amount(value * factor), ours.map_or_else(dash, words::amount))
        };
        ComparisonRow { labels: vec![label], pairs: vec![pair(*with, true), pair(*without, false)] }
    });
    Comparison {
        caption: format!("{}: ddsperf, 12 B, one ping a second", title(published)),
        labels: vec!["metric"],
        pairs: vec!["with shared memory", "without"],
        rows: rows.collect(),
        remark: HALVES,
        doubts: doubts(published, "sanity_12B_1Hz"),
    }
}

fn sanity_figure(entry: &Entry, metric: &str) -> Option<f64> {
    let process = |role: &str| entry.cell.processes.iter().find(|process| process.role == role);
    let resident = |role| Some(process(role)?.rss_bytes as f64 / f64::from(1 << 20));
    let switches = |role| Some(process(role)?.voluntary_switches_per_s);
    match metric {
        "half_rtt_min_us" => entry.latency().map(|latency| latency.min),
        "half_rtt_max_us" => entry.latency().map(|latency| latency.max),
        "rss_ping_MB" => resident("ping"),
        "rss_pong_MB" => resident("pong"),
        "vcsw_per_s_ping_min" | "vcsw_per_s_ping_max" => switches("ping"),
        "vcsw_per_s_pong_min" | "vcsw_per_s_pong_max" => switches("pong"),
        _ => None,
    }
}

fn scorecard(published: &CycloneddsOrin, view: &View, group: &Group) -> Comparison {
    let tuning = group.tunings.first().copied().unwrap_or_default();
    let rows = published.scorecard.rows.iter().map(|(criterion, weight, with, without)| {
        let pair = |score: &f64, shared| {
            let place = [group.scenario, tuning, system(shared)];
            let here = super::scorecard::beside(view, place, criterion);
            (format!("{score:.1}"), here.map_or_else(dash, |score| format!("{score:.1}")))
        };
        ComparisonRow {
            labels: vec![criterion.clone(), format!("{weight:.2}")],
            pairs: vec![pair(with, true), pair(without, false)],
        }
    });
    Comparison {
        caption: format!("{}: the scores its author gave, out of 10", title(published)),
        labels: vec!["criterion", "weight"],
        pairs: vec!["with shared memory", "without"],
        rows: rows.collect(),
        remark: "Published: judged by its author, no formula. Here: as in the scorecard above, over \
                 the best of all systems of this run, with the weights of this report.",
        doubts: doubts(published, "scorecard"),
    }
}

/// Doubles the halves; write and read access were published whole.
fn round_trips(
    [min, median, p99, max]: [f64; 4],
    [write, read]: [f64; 2],
    here: Option<&Entry>,
) -> Vec<(String, String)> {
    let latency = here.and_then(|entry| entry.latency());
    let cell = here.map(|entry| entry.cell);
    let measured = |value: Option<f64>| value.map_or_else(dash, words::us);
    let p50 = here.and_then(|entry| {
        let interval = entry.p50_interval().map(|ends| format!(" {}", words::interval_us(ends)));
        Some(words::us(entry.p50()?) + &interval.unwrap_or_default())
    });
    let access = |of: fn(&crate::summary::Cell) -> Option<&crate::summary::Distribution>| {
        measured(words::median(cell.and_then(of)))
    };
    let struck = |text: String| match cell {
        Some(cell) if !cell.valid && text != dash() => format!("✗ {text}"),
        _ => text,
    };
    let pairs = [
        (2.0 * min, measured(latency.map(|latency| latency.min))),
        (2.0 * median, p50.unwrap_or_else(dash)),
        (2.0 * p99, measured(latency.and_then(|latency| latency.p99))),
        (2.0 * max, measured(latency.map(|latency| latency.max))),
        (write, access(|cell| cell.write_us.as_ref())),
        (read, access(|cell| cell.read_us.as_ref())),
    ];
    pairs.map(|(published, here)| (format!("{published:.0}"), struck(here))).into()
}

fn title(published: &CycloneddsOrin) -> String {
    format!("CycloneDDS on {}, {}", published.platform, published.date)
}

/// The doubts about a table, and about all of them.
fn doubts(published: &CycloneddsOrin, table: &str) -> Vec<String> {
    let names = ["sanity_12B_1Hz", "scorecard", "roundtrip_60s_0B_shm", "roundtrip_by_size"];
    let concerns =
        |doubt: &&String| doubt.contains(table) || !names.iter().any(|name| doubt.contains(name));
    published.doubts.iter().filter(concerns).cloned().collect()
}

fn system(shared_memory: bool) -> &'static str {
    if shared_memory { "cyclonedds.iceoryx" } else { "cyclonedds.udp" }
}

fn dash() -> String {
    words::WITHHELD.to_owned()
}

const ROUND_TRIP_PAIRS: [&str; 6] =
    ["min", "p50", "p99", "max", "write access p50", "read access p50"];

/// What every reader of published tables must be told.
pub(super) const REMARK: &str =
    "Measured on other machines: compare shapes and ratios, not values. Microseconds.";

const HALVES: &str = "Latencies were published as half round trips in whole microseconds and are \
doubled here; write and read access were published whole.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn published_figures_are_read() {
        let published = CycloneddsOrin::load();
        assert_eq!(published.by_size.rows.len(), 27, "of 28, one did not complete");
        assert_eq!(published.by_size.columns.len(), 9);
        assert_eq!(published.minute.rows.len(), 2);
        assert_eq!(published.scorecard.rows.len(), 6);
        assert!(
            doubts(&published, "roundtrip_by_size").iter().any(|doubt| doubt.contains("75 us"))
        );
        assert!(
            !doubts(&published, "roundtrip_by_size").iter().any(|d| d.contains("ddsperf sets"))
        );
    }

    #[test]
    fn halves_are_doubled_and_accesses_are_not() {
        let pairs = round_trips([11.0, 12.0, 38.0, 270.0], [3.0, 0.0], None);
        let published: Vec<_> = pairs.iter().map(|(published, _)| published.as_str()).collect();
        assert_eq!(published, ["22", "24", "76", "540", "3", "0"]);
    }
}
