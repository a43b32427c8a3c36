//! What the processes of a run used, and those of a cell.

use std::collections::BTreeMap;

use super::judged::JudgedRun;
use crate::lists::distinct;
use crate::observe::{Observation, ProcessObservation};
use crate::record::RunRecord;
use crate::summary::{ProcessUse, ThreadUse};

/// CPU time by process and thread name, summed over runs; threads of the same name are one.
pub(super) fn of(runs: &[&JudgedRun<'_>]) -> Vec<ProcessUse> {
    let observed: Vec<&Observation> =
        runs.iter().filter_map(|run| run.record.observation.as_ref()).collect();
    let seconds = observed.iter().map(|observed| observed.wall_ns as f64 * 1e-9).sum();
    let all = || observed.iter().flat_map(|observed| &observed.processes);
    let of_name = |name: &str| {
        process(name, &all().filter(|process| process.name == name).collect::<Vec<_>>(), seconds)
    };
    distinct(all().map(|process| process.name.as_str())).into_iter().map(of_name).collect()
}

/// One process in all runs, which took so many seconds.
fn process(name: &str, same: &[&ProcessObservation], seconds: f64) -> ProcessUse {
    let per_second = |amount: f64| if seconds > 0.0 { amount / seconds } else { 0.0 };
    let percent = |ns: u64| 100.0 * per_second(ns as f64 * 1e-9);
    let mut threads: BTreeMap<&str, u64> = BTreeMap::new();
    for (thread, used) in same.iter().flat_map(|process| &process.threads) {
        *threads.entry(thread).or_default() += used;
    }
    let mut threads: Vec<ThreadUse> = threads
        .into_iter()
        .map(|(name, used)| ThreadUse { name: name.into(), cpu_percent: percent(used) })
        .collect();
    threads.sort_by(|a, b| b.cpu_percent.total_cmp(&a.cpu_percent));
    let rate = |of: fn(&ProcessObservation) -> u64| {
        per_second(same.iter().map(|process| of(process)).sum::<u64>() as f64)
    };
    let user =
        |process: &&ProcessObservation| Some((process.user_share? * process.cpu_ns as f64) as u64);
    ProcessUse {
        role: name.into(),
        cpu_percent: percent(same.iter().map(|process| process.cpu_ns).sum()),
        user_percent: same.iter().map(user).sum::<Option<u64>>().map(percent),
        rss_bytes: same.iter().map(|process| process.rss_bytes).max().unwrap_or(0),
        voluntary_switches_per_s: rate(|process| process.voluntary_switches),
        involuntary_switches_per_s: rate(|process| process.involuntary_switches),
        thread_count: same.iter().map(|it| it.threads.len()).max().unwrap_or(0) as u32,
        threads,
    }
}

/// CPU time of the exchange alone. Ping and pong may measure their own; for daemons and other
/// drivers the observation counts.
pub(super) fn exchange_cpu_ns(record: &RunRecord, observed: &Observation) -> f64 {
    // The first of several processes of a role has the name of the role, and its account covers
    // all.
    let own = |name: &str| match name.split_once('-').unwrap_or((name, "")) {
        ("ping", "") => record.ping.as_ref()?.cpu_ns,
        ("pong", "") => record.pong.as_ref()?.cpu_ns,
        ("ping", _) => record.ping.as_ref()?.cpu_ns.map(|_| 0),
        ("pong", _) => record.pong.as_ref()?.cpu_ns.map(|_| 0),
        _ => None,
    };
    let measured_ns =
        record.ping.as_ref().map_or(0, |ping| ping.end_ns.saturating_sub(ping.begin_ns));
    let part = measured_ns as f64 / (observed.wall_ns as f64).max(1.0);
    let used = |process: &ProcessObservation| match own(&process.name) {
        Some(cpu_ns) => cpu_ns as f64,
        None => process.cpu_ns as f64 * part.min(1.0),
    };
    observed.processes.iter().map(used).sum()
}

pub(super) fn sum(observed: &Observation, of: impl Fn(&ProcessObservation) -> u64) -> u64 {
    observed.processes.iter().map(of).sum()
}
