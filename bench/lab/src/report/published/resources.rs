//! What CycloneDDS's round trips cost: memory by process, CPU by thread, context switches.
//!
//! Of this, memory and voluntary switches were published, at one ping a second alone; those stand in
//! ddsperf's table.

use super::super::format;
use super::super::view::{Entry, Group};
use super::shape::CONFIGURATIONS;
use super::{RowBeside, dash, struck};
use crate::summary::ProcessUse;

/// Each configuration that was measured, at each size.
pub(super) fn rows(group: &Group) -> Vec<RowBeside> {
    let entries = CONFIGURATIONS.into_iter().flat_map(|(system, tuning)| {
        group.payloads.iter().filter_map(move |&size| group.entry(system, tuning, size))
    });
    entries.map(row).collect()
}

fn row(entry: &Entry) -> RowBeside {
    let cell = entry.cell;
    let labels = vec![entry.system.name.to_owned(), cell.tuning.to_string(), entry.size()];
    let of = |role: &'static str| cell.processes.iter().filter(move |it| is_of(it, role));
    let any = |role, text: String| if of(role).count() > 0 { text } else { dash() };
    let resident = |role| any(role, format::megabytes(of(role).map(|it| it.rss_bytes).sum()));
    let cpu = |role| {
        let total = format::cpu_percent(of(role).map(|it| it.cpu_percent).sum());
        let threads: Vec<_> = of(role).flat_map(threads).collect();
        let colon = if threads.is_empty() { "" } else { ": " };
        any(role, total + colon + &threads.join(", "))
    };
    let roles = ["ping", "pong", DAEMON];
    let switches = [cell.voluntary_switches_per_s, cell.involuntary_switches_per_s];
    let figures = roles.map(resident).into_iter().chain(roles.map(cpu));
    let figures = figures.chain(switches.map(format::amount));
    RowBeside { labels, pairs: vec![], alone: figures.map(|text| struck(entry, text)).collect() }
}

fn is_of(process: &ProcessUse, role: &str) -> bool {
    match role {
        DAEMON => !["ping", "pong"].contains(&process.role.as_str()),
        _ => process.role == role,
    }
}

/// `recvUC 18.2`, `main 7.02`: those that use a hundredth of a core.
fn threads(process: &ProcessUse) -> impl Iterator<Item = String> {
    let busy = process.threads.iter().filter(|thread| thread.cpu_percent >= BUSY_PERCENT);
    busy.map(|it| format!("{} {}", it.name, format::cpu_percent(it.cpu_percent)))
}

/// Stands for every role that is neither of the two ends.
const DAEMON: &str = "daemon";

/// A thread below it is not named.
const BUSY_PERCENT: f64 = 1.0;
