//! Sums over the runs of a cell: counts, CPU, memory, switches, traffic.

use std::collections::BTreeMap;

use myelin_bench_kit::protocol::Done;

use super::judged::JudgedRun;
use crate::lists::distinct;
use crate::observe::{Observation, ProcessObservation};
use crate::record::RunRecord;
use crate::run::processes::add;
use crate::scenario::Kind;
use crate::summary::{ProcessUse, ThreadUse};

/// Sums over the used runs.
#[derive(Default)]
pub(super) struct Totals<'a> {
    pub(super) counts: Done,
    pub(super) observations: Vec<&'a Observation>,
    pub(super) messages: f64,
    pub(super) measured_s: f64,
    pub(super) observed_s: f64,
    pub(super) cpu_us: f64,
    /// From the first measured message to the last, without the bench's own start and end.
    pub(super) exchange_cpu_us: f64,
    /// CPU time of pong and its time span, over the runs in which it is known.
    receiver_cpu_ns: f64,
    receiver_ns: f64,
    pub(super) loopback_bytes: f64,
    pub(super) loopback_packets: f64,
}

impl<'a> Totals<'a> {
    pub(super) fn of(runs: &[&'a JudgedRun], warmup_messages: u64) -> Self {
        let mut total = Totals::default();
        for run in runs {
            let counts = &run.counts;
            add(&mut total.counts, counts);
            total.messages += (counts.sent + counts.warmed_up.unwrap_or(warmup_messages)) as f64;
            let measured_ns = counts.end_ns.saturating_sub(counts.begin_ns) as f64;
            total.measured_s += measured_ns * 1e-9;
            if let Some(cpu_ns) = run.record.pong.as_ref().and_then(|pong| pong.cpu_ns) {
                total.receiver_cpu_ns += cpu_ns as f64;
                total.receiver_ns += measured_ns;
            }
            if let Some(observed) = &run.record.observation {
                total.observed_s += observed.wall_ns as f64 * 1e-9;
                total.cpu_us += sum(observed, |process| process.cpu_ns) as f64 / 1e3;
                total.exchange_cpu_us += exchange_cpu_ns(&run.record, observed) / 1e3;
                total.loopback_bytes += observed.loopback_bytes as f64;
                total.loopback_packets += observed.loopback_packets as f64;
                total.observations.push(observed);
            }
        }
        total
    }

    /// Messages that the rate counts: answered or published ones. Each of `publishers` has the
    /// rate.
    pub(super) fn exchanges(&self, kind: Kind, publishers: u32) -> f64 {
        match kind {
            Kind::Roundtrip => self.counts.received as f64,
            _ => self.counts.sent as f64 / f64::from(publishers.max(1)),
        }
    }

    /// CPU of pong alone, in per cent of a core; `None` if pong does not measure it, as in one
    /// process.
    pub(super) fn receiver_cpu_percent(&self) -> Option<f64> {
        (self.receiver_ns > 0.0).then(|| 100.0 * self.receiver_cpu_ns / self.receiver_ns)
    }

    pub(super) fn runs(&self) -> f64 {
        self.observations.len().max(1) as f64
    }

    pub(super) fn per_second(&self, amount: f64, seconds: f64) -> f64 {
        if seconds > 0.0 { amount / seconds } else { 0.0 }
    }

    pub(super) fn sum(&self, of: fn(&ProcessObservation) -> u64) -> f64 {
        self.observations.iter().map(|observed| sum(observed, of)).sum::<u64>() as f64
    }

    pub(super) fn rate(&self, of: fn(&ProcessObservation) -> u64) -> f64 {
        self.per_second(self.sum(of), self.observed_s)
    }

    pub(super) fn largest(&self, of: impl Fn(&Observation) -> u64) -> u64 {
        self.observations.iter().map(|observed| of(observed)).max().unwrap_or(0)
    }

    pub(super) fn steal_percent(&self) -> f64 {
        self.observations.iter().map(|observed| observed.steal_percent).sum::<f64>() / self.runs()
    }

    /// CPU time by process and thread name, summed over runs; threads of the same name are one.
    pub(super) fn processes(&self) -> Vec<ProcessUse> {
        let all = self.observations.iter().flat_map(|observed| &observed.processes);
        let names = distinct(all.map(|process| process.name.as_str()));
        names.into_iter().map(|name| self.process(name)).collect()
    }

    fn process(&self, name: &str) -> ProcessUse {
        let percent = |ns: u64| 100.0 * self.per_second(ns as f64 * 1e-9, self.observed_s);
        let all = self.observations.iter().flat_map(|observed| &observed.processes);
        let same: Vec<&ProcessObservation> = all.filter(|process| process.name == name).collect();
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
            let all: u64 = same.iter().map(|process| of(process)).sum();
            self.per_second(all as f64, self.observed_s)
        };
        let user = |process: &&ProcessObservation| {
            Some((process.user_share? * process.cpu_ns as f64) as u64)
        };
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
