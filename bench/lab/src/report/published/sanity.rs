//! ddsperf's table at one ping a second, and the scorecard its author gave.

use super::super::scorecard::{self, beside};
use super::super::view::{Entry, Group, View};
use super::super::words;
use super::cyclonedds::{CycloneddsOrin, system};
use super::{Comparison, ComparisonRow, dash, struck};

/// 12 B, one ping a second.
pub(super) fn comparison(published: &CycloneddsOrin, group: &Group) -> Comparison {
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
            let entry = here(shared);
            let ours = entry.and_then(|entry| figure(entry, metric));
            let ours = struck(entry, ours.map_or_else(dash, words::amount));
            (words::amount(value * factor), ours)
        };
        let pairs = vec![pair(*with, true), pair(*without, false)];
        ComparisonRow { labels: vec![label], pairs, alone: vec![] }
    });
    Comparison {
        caption: format!("ddsperf, 12 B, one ping a second ({})", group.scenario),
        remark: REMARK,
        labels: vec!["metric"],
        pairs: PAIRS.map(str::to_owned).into(),
        rows: rows.collect(),
        ..Comparison::default()
    }
}

fn figure(entry: &Entry, metric: &str) -> Option<f64> {
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
        "wait_for_daemon_s" => entry.cell.daemon_ms.map(|ms| ms / 1e3),
        _ => None,
    }
}

/// Beside the scores of this report.
pub(super) fn scorecard(published: &CycloneddsOrin, view: &View, group: &Group) -> Comparison {
    let tuning = group.tunings.first().copied().unwrap_or_default();
    let card = scorecard::card(view, group.scenario, tuning);
    let rows = published.scorecard.rows.iter().map(|(criterion, weight, with, without)| {
        let pair = |score: &f64, shared| {
            let here = card.as_ref().and_then(|card| beside(card, system(shared), criterion));
            (format!("{score:.1}"), here.map_or_else(dash, |score| format!("{score:.1}")))
        };
        ComparisonRow {
            labels: vec![criterion.clone(), format!("{weight:.2}")],
            pairs: vec![pair(with, true), pair(without, false)],
            alone: vec![],
        }
    });
    Comparison {
        caption: format!("Scorecard: the scores its author gave, out of 10 ({})", group.scenario),
        remark: "Published: judged by its author, no formula. Here: as in the scorecard above, over \
                 the best of all systems of this run, with the weights of this report.",
        labels: vec!["criterion", "weight"],
        pairs: PAIRS.map(str::to_owned).into(),
        rows: rows.collect(),
        ..Comparison::default()
    }
}

const PAIRS: [&str; 2] = ["with shared memory", "without"];

const REMARK: &str = "Latencies were published as half round trips and are doubled here. MB are \
2^20 bytes, as ddsperf's. Voluntary \
context switches were published as the smallest and the largest of a second; ours is the mean, \
beside either. Waiting for the daemon: published is the pause of its script, ours lasts until the \
daemon answers. At the first tuning measured.";
