//! Each published metric: how its figure is written, and which figure of ours stands beside it.

use super::super::format;
use super::super::view::Entry;
use super::dash;
use super::data::PublishedValue;
use crate::summary::Distribution;

/// A published figure; of half a round trip, that of the whole one.
pub(super) fn published(metric: &str, value: &PublishedValue) -> String {
    let PublishedValue::Number(value) = value else { return dash() };
    let whole = if metric.starts_with("half_") { 2.0 * value } else { *value };
    match metric {
        "samples" => format::count(whole as u64),
        "loss_percent" => format::percent(whole),
        "cpu_percent" => format::cpu_percent(whole),
        "mean_us" | "min_us" | "max_us" => format::us(whole),
        // With the digits it was published with.
        "half_min_us" | "half_median_us" | "half_p99_us" | "half_max_us" | "write_median_us"
        | "read_median_us" | "latency_us" | "memory_MB" | "arena_MB" => whole.to_string(),
        _ => format::amount(whole),
    }
}

/// Ours that stands beside it. `copy` is one of those that a user makes of a frame.
pub(super) fn ours(metric: &str, entry: &Entry, copy: Option<&str>) -> Option<String> {
    let cell = entry.cell;
    let latency = match copy {
        None => entry.latency(),
        Some("memcpy") => cell.memcpy_us.as_ref(),
        Some(_) => cell.stream_copy_us.as_ref(),
    };
    let us = |of: fn(&Distribution) -> Option<f64>| latency.and_then(of).map(format::us);
    match metric {
        "mean_us" | "latency_us" => us(|latency| Some(latency.mean)),
        "min_us" | "half_min_us" => us(|latency| Some(latency.min)),
        "max_us" | "half_max_us" => us(|latency| Some(latency.max)),
        "p50_us" => us(|latency| latency.p50),
        "half_p99_us" => us(|latency| latency.p99),
        "half_median_us" => {
            let ends = entry.p50_interval().map(|ends| format!(" {}", format::interval_us(ends)));
            Some(format::us(entry.p50()?) + &ends.unwrap_or_default())
        }
        "write_median_us" => format::median(cell.write_us.as_ref()).map(format::us),
        "read_median_us" => format::median(cell.read_us.as_ref()).map(format::us),
        "samples" => Some(format::count(cell.samples)),
        "cpu_percent" => Some(format::cpu_percent(cell.cpu_percent)),
        "loss_percent" => entry.loss_percent().map(format::percent),
        "memory_MB" => Some(format::megabytes(cell.rss_bytes)),
        "arena_MB" => Some(format::megabytes(cell.shared_bytes)),
        _ => sanity(metric, entry).map(format::amount),
    }
}

/// What ddsperf prints at one ping a second.
fn sanity(metric: &str, entry: &Entry) -> Option<f64> {
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
