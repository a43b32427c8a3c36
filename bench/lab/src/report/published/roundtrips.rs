//! RoundtripPing's tables of latency, write and read access.

use super::super::view::{Entry, Group};
use super::super::words;
use super::cyclonedds::{Configuration, CycloneddsOrin, system};
use super::{Comparison, ComparisonRow, dash, struck};
use crate::summary::{Cell, Distribution};

/// Each configuration at each of these sizes.
pub(super) fn by_size(published: &CycloneddsOrin, group: &Group, payloads: &[u64]) -> Comparison {
    let row = |configuration: Configuration, payload: u64| {
        let Configuration { tuning, .. } = configuration;
        let theirs = published.row(configuration, payload);
        let here = group.entry(configuration.system(), tuning, payload);
        let halves = theirs.map(|row| [row.min_us, row.median_us, row.p99_us, row.max_us]);
        let accesses = theirs.map(|row| [row.write_median_us, row.read_median_us]);
        ComparisonRow {
            labels: vec![
                configuration.system().to_owned(),
                tuning.to_owned(),
                words::bytes(payload),
            ],
            pairs: round_trips(halves, accesses, here),
            alone: vec![],
        }
    };
    let rows = Configuration::ALL.into_iter();
    let rows = rows.flat_map(|it| payloads.iter().map(move |&payload| row(it, payload)));
    Comparison {
        caption: format!("Round trips by size, write and read access ({})", group.scenario),
        remark: HALVES,
        labels: vec!["system", "tuning", "payload"],
        pairs: ROUND_TRIP_PAIRS.map(str::to_owned).into(),
        rows: rows.collect(),
        ..Comparison::default()
    }
}

/// Over shared memory without payload.
pub(super) fn minute(published: &CycloneddsOrin, group: &Group) -> Comparison {
    let rows = published.minute.rows.iter().map(|row| {
        let ours = if row.tuning == "default" { "default" } else { "tuned" };
        let here = group.entry(system(true), ours, 0);
        let halves = [row.min_us, row.median_us, row.p99_us, row.max_us];
        let accesses = [row.write_median_us, row.read_median_us];
        let mut pairs = round_trips(Some(halves), Some(accesses), here);
        let samples_here = here.map(|entry| words::count(entry.cell.samples));
        pairs.insert(0, (words::count(row.samples), samples_here.unwrap_or_else(dash)));
        let labels = vec![system(true).to_owned(), row.tuning.clone()];
        ComparisonRow { labels, pairs, alone: vec![] }
    });
    Comparison {
        caption: format!("Round trips without payload for 60 s ({})", group.scenario),
        remark: HALVES,
        labels: vec!["system", "tuning"],
        pairs: ["round trips"].into_iter().chain(ROUND_TRIP_PAIRS).map(str::to_owned).collect(),
        rows: rows.collect(),
        ..Comparison::default()
    }
}

/// Doubles the halves (min, median, p99, max); write and read access were published whole.
fn round_trips(
    halves: Option<[f64; 4]>,
    accesses: Option<[f64; 2]>,
    here: Option<&Entry>,
) -> Vec<(String, String)> {
    let latency = here.and_then(|entry| entry.latency());
    let cell = here.map(|entry| entry.cell);
    let measured = |value: Option<f64>| value.map_or_else(dash, words::us);
    let p50 = here.and_then(|entry| {
        let interval = entry.p50_interval().map(|ends| format!(" {}", words::interval_us(ends)));
        Some(words::us(entry.p50()?) + &interval.unwrap_or_default())
    });
    let access =
        |of: fn(&Cell) -> Option<&Distribution>| measured(words::median(cell.and_then(of)));
    let ours = [
        measured(latency.map(|latency| latency.min)),
        p50.unwrap_or_else(dash),
        measured(latency.and_then(|latency| latency.p99)),
        measured(latency.map(|latency| latency.max)),
        access(|cell| cell.write_us.as_ref()),
        access(|cell| cell.read_us.as_ref()),
    ];
    let whole = |values: Option<Vec<f64>>, number: usize| match values {
        Some(values) => values.iter().map(|value| format!("{value:.0}")).collect(),
        None => vec![dash(); number],
    };
    let mut theirs = whole(halves.map(|halves| halves.map(|half| 2.0 * half).into()), 4);
    theirs.extend(whole(accesses.map(Vec::from), 2));
    theirs.into_iter().zip(ours.map(|text| struck(here, text))).collect()
}

const ROUND_TRIP_PAIRS: [&str; 6] =
    ["min", "p50", "p99", "max", "write access p50", "read access p50"];

/// What was done to published latencies.
pub(super) const HALVES: &str = "Latencies were published as half round trips in whole \
microseconds and are doubled here; write and read access were published whole.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn halves_are_doubled_and_accesses_are_not() {
        let published = |halves, accesses| -> Vec<String> {
            round_trips(halves, accesses, None).into_iter().map(|(theirs, _)| theirs).collect()
        };
        let row = published(Some([11.0, 12.0, 38.0, 270.0]), Some([3.0, 0.0]));
        assert_eq!(row, ["22", "24", "76", "540", "3", "0"]);
        assert_eq!(published(None, None), ["–"; 6], "a run that did not complete");
    }
}
