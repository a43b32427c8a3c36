//! One cell of the summary: its valid runs pooled.

use std::collections::BTreeMap;

use myelin_bench_kit::protocol::{Done, System};

use super::bootstrap;
use super::distribution::{Sorted, us};
use super::series::{Series, seconds};
use super::validity::{Evidence, faults};
use crate::host::Host;
use crate::observe::{Observation, ProcessObservation};
use crate::plan::CellPlan;
use crate::record::{RunRecord, RunSamples};
use crate::scenario::Scenario;
use crate::summary::{
    Cell, CurvePoint, Detail, Distribution, Params, Placement, ProcessUse, RunPoint, Second,
    ThreadUse,
};

/// One run of a cell, judged.
pub struct JudgedRun {
    record: RunRecord,
    series: Series,
    seconds: Vec<Second>,
    faults: Vec<String>,
}

impl JudgedRun {
    /// Derives and judges.
    pub fn new(
        record: RunRecord,
        samples: &RunSamples,
        plan: &CellPlan,
        system: &System,
        scenario: &Scenario,
        host: &Host,
    ) -> Self {
        let workload = &scenario.workload;
        let faults = faults(&Evidence {
            record: &record,
            samples,
            system,
            payload_bytes: plan.payload_bytes,
            rate_hz: plan.rate_hz,
            warmup_messages: workload.warmup_messages,
            record_every: workload.record_every,
            others_packets_per_s: host.loopback_packets_per_s,
        });
        JudgedRun {
            series: Series::of(samples, system.loans, plan.rate_hz.is_some()),
            seconds: seconds(&samples.ping, workload.record_every),
            record,
            faults,
        }
    }

    fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    fn counts(&self) -> Done {
        self.record.ping.clone().unwrap_or_default()
    }

    fn point(&self) -> RunPoint {
        let at = |quantile| self.series.round_trip.supported(quantile).map(us);
        RunPoint {
            order: self.record.plan.order,
            p50_us: at(0.5),
            p99_us: at(0.99),
            valid: self.is_valid(),
        }
    }
}

/// Pools the runs of a cell. Figures come from the valid runs, or, if there are none, from the
/// others, and the cell is marked.
pub fn pool(
    plan: &CellPlan,
    scenario: &Scenario,
    system: &System,
    runs: &[JudgedRun],
    configuration: BTreeMap<String, String>,
) -> (Cell, Detail) {
    let any_valid = runs.iter().any(JudgedRun::is_valid);
    let used: Vec<&JudgedRun> = runs
        .iter()
        .filter(|run| run.is_valid() == any_valid && run.record.failure.is_none())
        .collect();
    let round_trips: Vec<&Sorted> = used.iter().map(|run| &run.series.round_trip).collect();
    let round_trip = Sorted::pooled(round_trips.iter().copied());
    let pooled = |series: fn(&Series) -> &Vec<i64>| {
        let values = used.iter().flat_map(|run| series(&run.series).iter().copied());
        Sorted::new(values.collect()).distribution()
    };
    let total = Totals::of(&used, scenario.workload.warmup_messages);
    let cell = Cell {
        scenario: scenario.name.clone(),
        system: system.name.clone(),
        tuning: plan.tuning.name().into(),
        topology: "two-processes".into(),
        params: Params {
            payload_bytes: plan.payload_bytes,
            rate_hz: plan.rate_hz,
            wait: system.wait,
            subscribers: 1,
        },
        messages_asked: scenario.workload.messages,
        duration_asked_s: scenario.workload.duration_s,
        runs: used.len() as u32,
        samples: round_trip.len() as u64,
        round_trip_us: round_trip.distribution(),
        one_way_us: pooled(|series| &series.one_way),
        write_us: pooled(|series| &series.write),
        read_us: pooled(|series| &series.read),
        wake_us: pooled(|series| &series.wake),
        throughput_per_s: total.per_second(total.counts.received as f64, total.measured_s),
        cpu_us_per_message: total.exchange_cpu_us / (total.counts.sent as f64).max(1.0),
        cpu_percent: 100.0 * total.per_second(total.cpu_us * 1e-6, total.observed_s),
        rss_bytes: total.largest(|observed| sum(observed, |process| process.rss_bytes)),
        pss_bytes: total.largest(|observed| sum(observed, |process| process.pss_bytes)),
        shared_bytes: total.largest(|observed| observed.shared_bytes),
        voluntary_switches_per_s: total.rate(|process| process.voluntary_switches),
        involuntary_switches_per_s: total.rate(|process| process.involuntary_switches),
        page_faults: total.sum(|process| process.page_faults) / total.runs(),
        startup_ms: median(used.iter().map(|run| run.record.startup_ms).collect()),
        sent: total.counts.sent,
        received: total.counts.received,
        lost: total.counts.lost,
        duplicates: total.counts.duplicates,
        out_of_order: total.counts.out_of_order,
        corrupt: total.counts.corrupt,
        valid: any_valid,
        invalid_reasons: reasons(runs),
        round_trip_p50_interval_us: bootstrap::interval(&round_trips, 0.5),
        round_trip_p99_interval_us: round_trip
            .supported(0.99)
            .and_then(|_| bootstrap::interval(&round_trips, 0.99)),
        placements: placements(&used),
        lateness_us: pooled(|series| &series.lateness),
        loan_us: pooled(|series| &series.loan),
        fill_us: pooled(|series| &series.fill),
        processes: total.processes(),
        loopback_bytes_per_byte: total.loopback_bytes
            / (2.0 * total.messages * (plan.payload_bytes + 8) as f64).max(1.0),
        loopback_packets_per_message: total.loopback_packets / (2.0 * total.messages).max(1.0),
        notes: notes(runs, &used, total.steal_percent()),
    };
    let detail = Detail {
        curve: curve(&round_trip, &round_trips),
        runs: runs.iter().map(JudgedRun::point).collect(),
        seconds: used
            .first()
            .map(|run| run.seconds.clone())
            .filter(|rows| rows.len() > 1)
            .unwrap_or_default(),
        configuration,
    };
    (cell, detail)
}

/// Sums over the runs that are used.
struct Totals<'a> {
    counts: Done,
    observations: Vec<&'a Observation>,
    messages: f64,
    measured_s: f64,
    observed_s: f64,
    cpu_us: f64,
    /// From the first measured message to the last, without the bench's own start and end.
    exchange_cpu_us: f64,
    loopback_bytes: f64,
    loopback_packets: f64,
}

impl<'a> Totals<'a> {
    fn of(runs: &[&'a JudgedRun], warmup_messages: u64) -> Self {
        let mut total = Totals {
            counts: Done::default(),
            observations: Vec::new(),
            messages: 0.0,
            measured_s: 0.0,
            observed_s: 0.0,
            cpu_us: 0.0,
            exchange_cpu_us: 0.0,
            loopback_bytes: 0.0,
            loopback_packets: 0.0,
        };
        for run in runs {
            let counts = run.counts();
            total.counts.sent += counts.sent;
            total.counts.received += counts.received;
            total.counts.lost += counts.lost;
            total.counts.duplicates += counts.duplicates;
            total.counts.out_of_order += counts.out_of_order;
            total.counts.corrupt += counts.corrupt;
            total.messages += (counts.sent + warmup_messages) as f64;
            total.measured_s += counts.end_ns.saturating_sub(counts.begin_ns) as f64 * 1e-9;
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

    fn runs(&self) -> f64 {
        self.observations.len().max(1) as f64
    }

    fn per_second(&self, amount: f64, seconds: f64) -> f64 {
        if seconds > 0.0 { amount / seconds } else { 0.0 }
    }

    fn sum(&self, of: fn(&ProcessObservation) -> u64) -> f64 {
        self.observations.iter().map(|observed| sum(observed, of)).sum::<u64>() as f64
    }

    fn rate(&self, of: fn(&ProcessObservation) -> u64) -> f64 {
        self.per_second(self.sum(of), self.observed_s)
    }

    fn largest(&self, of: impl Fn(&Observation) -> u64) -> u64 {
        self.observations.iter().map(|observed| of(observed)).max().unwrap_or(0)
    }

    fn steal_percent(&self) -> f64 {
        self.observations.iter().map(|observed| observed.steal_percent).sum::<f64>() / self.runs()
    }

    /// CPU by process and thread name, added up over runs; threads that share a name are one.
    fn processes(&self) -> Vec<ProcessUse> {
        let mut names: Vec<&str> = Vec::new();
        for process in self.observations.iter().flat_map(|observed| &observed.processes) {
            if !names.contains(&process.name.as_str()) {
                names.push(&process.name);
            }
        }
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
            process.user_share.map(|share| (share * process.cpu_ns as f64) as u64)
        };
        ProcessUse {
            role: name.into(),
            cpu_percent: percent(same.iter().map(|process| process.cpu_ns).sum()),
            user_percent: same
                .iter()
                .all(|process| process.user_share.is_some())
                .then(|| percent(same.iter().filter_map(user).sum())),
            rss_bytes: same.iter().map(|process| process.rss_bytes).max().unwrap_or(0),
            voluntary_switches_per_s: rate(|process| process.voluntary_switches),
            involuntary_switches_per_s: rate(|process| process.involuntary_switches),
            threads,
        }
    }
}

/// CPU of the exchange alone: by ping's and pong's own account, where they keep one; the rest, daemons
/// and drivers that do not, by the observation's.
fn exchange_cpu_ns(record: &RunRecord, observed: &Observation) -> f64 {
    let own = |name: &str| match name {
        "ping" => record.ping.as_ref()?.cpu_ns,
        "pong" => record.pong.as_ref()?.cpu_ns,
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

fn sum(observed: &Observation, of: impl Fn(&ProcessObservation) -> u64) -> u64 {
    observed.processes.iter().map(of).sum()
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied().unwrap_or(0.0)
}

fn reasons(runs: &[JudgedRun]) -> Vec<String> {
    let of = |run: &JudgedRun| {
        let number = run.record.plan.repeat + 1;
        run.faults.iter().map(|fault| format!("run {number}: {fault}")).collect::<Vec<_>>()
    };
    match runs.is_empty() {
        true => vec!["no run of this cell was made".into()],
        false => runs.iter().flat_map(of).collect(),
    }
}

fn notes(runs: &[JudgedRun], used: &[&JudgedRun], steal_percent: f64) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    for note in runs.iter().flat_map(|run| &run.record.notes) {
        if !notes.contains(note) {
            notes.push(note.clone());
        }
    }
    if steal_percent > STEAL_PERCENT_MAX {
        notes.push(format!("the hypervisor took {steal_percent:.1} % of the CPUs meanwhile"));
    }
    let lost: u64 = used.iter().map(|run| run.counts().lost).sum();
    let lateness = used.iter().flat_map(|run| run.series.lateness.iter().copied()).max();
    if let Some(late_ns) = lateness.filter(|late_ns| *late_ns > LATE_NS_MAX) {
        let late_us = us(late_ns);
        notes.push(format!(
            "sent up to {late_us:.0} µs behind schedule; round trips count from the actual sending"
        ));
    }
    if lost > 0 {
        notes.push(format!("{lost} messages lost; they have no round trip"));
    }
    notes
}

/// The two placements, if either occurred; the order is same CPU first.
fn placements(runs: &[&JudgedRun]) -> Vec<Placement> {
    let gather = |of: fn(&Series) -> &Vec<i64>| -> Vec<i64> {
        runs.iter().flat_map(|run| of(&run.series).iter().copied()).collect()
    };
    let sides =
        [(true, gather(|series| &series.same_cpu)), (false, gather(|series| &series.cross_cpu))];
    let all: usize = sides.iter().map(|(_, values)| values.len()).sum();
    let placement = |(same_cpu, values): (bool, Vec<i64>)| {
        let share = values.len() as f64 / all as f64;
        let round_trip_us: Option<Distribution> = Sorted::new(values).distribution();
        Some(Placement { same_cpu, share, round_trip_us: round_trip_us? })
    };
    sides.into_iter().filter_map(placement).collect()
}

/// Points evenly spaced in −log10(1 − quantile), the axis they are drawn on.
fn curve(pooled: &Sorted, runs: &[&Sorted]) -> Vec<CurvePoint> {
    (0..=CURVE_NINES_MAX * CURVE_POINTS_PER_NINE)
        .map(|step| 1.0 - 10f64.powf(-f64::from(step) / f64::from(CURVE_POINTS_PER_NINE)))
        .map_while(|quantile| {
            let value = us(pooled.supported(quantile)?);
            let of_runs = runs.iter().filter_map(|run| run.quantile(quantile)).map(us);
            let (low_us, high_us) =
                of_runs.fold((value, value), |(low, high), run| (low.min(run), high.max(run)));
            Some(CurvePoint { quantile, us: value, low_us, high_us })
        })
        .collect()
}

/// Sending later than this is remarked.
const LATE_NS_MAX: i64 = 1_000_000;
const CURVE_NINES_MAX: u32 = 6;
const CURVE_POINTS_PER_NINE: u32 = 20;
/// More stolen time than this is remarked; one tick of the kernel in a short run is 2 %.
const STEAL_PERCENT_MAX: f64 = 5.0;
