//! One cell of the summary: the pooled figures of its runs.

use std::collections::BTreeMap;

use myelin_bench_kit::protocol::{Topology, Transport};

use super::distribution::{Sorted, us};
use super::judged::{self, Case, JudgedRun, used};
use super::messages::{Message, Messages, Quantity};
use super::totals::{Totals, sum};
use super::{clocks, link, observed, slowest, stages, steady, timeline, workloads};
use crate::lists::distinct;
use crate::record::RunRecord;
use crate::run::waits;
use crate::scenario::{Kind, frame_name};
use crate::stats::median;
use crate::summary::{Cell, CurvePoint, Detail, Distribution, Params, Pinned, Placement};

/// Pools the runs of a cell. Figures come from the valid runs. If there are none, they come from
/// the others and the cell is marked.
pub(super) fn pool(case: Case<'_>, runs: &[JudgedRun]) -> Cell {
    let used = used(runs);
    let warmup_messages = case.warmup_messages();
    let total = Totals::of(&used, warmup_messages * u64::from(case.plan.publishers));
    let cell = Cell {
        runs: used.len() as u32,
        valid: runs.iter().any(JudgedRun::is_valid),
        invalid_reasons: reasons(runs),
        interval_level_percent: case.scenario.plan.run_count().level_percent(used.len()),
        repeats: judged::repeats(runs, case.scenario),
        unsettled_runs: steady::remarks(&used).len() as u32,
        clock: clocks::figures(&used),
        cuts: used.iter().filter_map(|run| run.cut).collect(),
        notes: [
            notes(runs, &used, case.kind(), total.steal_percent()),
            steady::remarks(&used),
            clocks::remarks(&used, case.kind()),
            link::remarks(&used, total.counts.lost, case.plan, case.scenario),
        ]
        .concat(),
        ..planned(case)
    };
    let cell = with_costs(with_latencies(cell, case, &used), case, &used, &total);
    observed::with_figures(cell, &used, warmup_messages)
}

/// The requested values of the cell, without results.
fn planned(case: Case<'_>) -> Cell {
    let (plan, workload, kind) = (case.plan, &case.scenario.workload, case.kind());
    Cell {
        scenario: case.scenario.name.clone(),
        workload: kind,
        system: case.system.name.clone(),
        tuning: plan.tuning,
        topology: plan.topology,
        params: Params {
            payload_bytes: plan.payload_bytes,
            rate_hz: plan.rate_hz,
            wait: waits(case.system, kind),
            subscribers: plan.subscribers,
            touch: workload.touch,
            frame: plan.frame.map(frame_name),
            arrivals: plan.arrivals.as_ref().map(|case| case.name.clone()),
            publishers: plan.publishers,
            topics: plan.topics,
            reliability: kind.is_one_way().then_some(plan.reliability),
            depth: kind.is_one_way().then_some(workload.depth),
            module: plan.module.clone(),
            recording: workload.recording.as_ref().map(|recording| recording.name().to_owned()),
        },
        messages_asked: workload.messages,
        duration_asked_s: workload.duration_s,
        ..Cell::default()
    }
}

/// Adds the distributions over all messages of all runs, and the spread of the runs.
fn with_latencies(cell: Cell, case: Case<'_>, runs: &[&JudgedRun]) -> Cell {
    let kind = case.kind();
    let latencies: Vec<&Sorted> = runs.iter().map(|run| &run.latency).collect();
    let latency = Sorted::pooled(latencies.iter().copied());
    let count = case.scenario.plan.run_count();
    let interval = |is_of: bool, quantile| {
        Some(latency.interval(count, &latencies, quantile)?).filter(|_| is_of)
    };
    let (is_round_trip, is_one_way) = (kind == Kind::Roundtrip, kind.is_one_way());
    let taken = |of| pooled(runs, |messages| messages.taken(of)).distribution();
    let sent = |of| pooled(runs, |messages| messages.sent(of)).distribution();
    Cell {
        samples: latency.arrived().len() as u64,
        round_trip_us: latency.distribution().filter(|_| is_round_trip),
        round_trip_p50_interval_us: interval(is_round_trip, 0.5),
        round_trip_p99_interval_us: interval(is_round_trip, 0.99),
        round_trip_p999_interval_us: interval(is_round_trip, 0.999),
        one_way_us: with_lost(runs, Message::one_way).distribution(),
        one_way_p50_interval_us: interval(is_one_way, 0.5),
        one_way_p99_interval_us: interval(is_one_way, 0.99),
        one_way_p999_interval_us: interval(is_one_way, 0.999),
        service_us: with_lost(runs, Message::service).distribution(),
        write_us: sent(Message::write),
        write_p50_interval_us: interval(kind == Kind::Publish, 0.5),
        read_us: taken(Message::read),
        wake_us: taken(Message::wake),
        lateness_us: sent(Message::lateness),
        loan_us: sent(Message::loan),
        fill_us: sent(Message::fill),
        memcpy_us: taken(Message::memcpy),
        stream_copy_us: taken(Message::stream_copy),
        placements: match case.system.transport {
            // A publish call without subscribers does not depend on placement.
            Transport::None => Vec::new(),
            _ if case.plan.topology == Topology::TwoHosts => Vec::new(),
            _ => placements(runs, is_one_way),
        },
        ..cell
    }
}

/// Adds the sums over the runs, and their costs.
fn with_costs(cell: Cell, case: Case<'_>, runs: &[&JudgedRun], total: &Totals<'_>) -> Cell {
    let (plan, kind) = (case.plan, case.kind());
    // The last message ends a run one period early.
    let unsent_s = plan.rate_hz.map_or(0.0, |rate_hz| runs.len() as f64 / rate_hz);
    let exchanges = total.exchanges(kind, plan.publishers);
    let directions = if kind == Kind::Roundtrip { 2.0 } else { 1.0 };
    let travelled = directions * total.messages;
    let started = |ms_of| {
        let times = workloads::starts(runs.iter().map(|run| &run.record), ms_of);
        times.distribution().filter(|_| kind == Kind::Startup)
    };
    Cell {
        throughput_per_s: total.per_second(exchanges, total.measured_s + unsent_s),
        taken_per_s: over_runs(runs, workloads::taken_per_s),
        lossless_per_s: over_runs(runs, workloads::lossless_per_s),
        cpu_us_per_message: total.exchange_cpu_us / (total.counts.sent as f64).max(1.0),
        cpu_percent: match kind.is_one_way() {
            true => 100.0 * total.per_second(total.exchange_cpu_us * 1e-6, total.measured_s),
            false => 100.0 * total.per_second(total.cpu_us * 1e-6, total.observed_s),
        },
        receiver_cpu_percent: total.receiver_cpu_percent().filter(|_| kind.is_one_way()),
        rss_bytes: total.largest(|observed| sum(observed, |process| process.rss_bytes)),
        pss_bytes: total.largest(|observed| sum(observed, |process| process.pss_bytes)),
        shared_bytes: total.largest(|observed| observed.shared_bytes),
        voluntary_switches_per_s: total.rate(|process| process.voluntary_switches),
        involuntary_switches_per_s: total.rate(|process| process.involuntary_switches),
        page_faults: total.sum(|process| process.page_faults) / total.runs(),
        startup_ms: over_runs(runs, |run| Some(run.startup_ms)).unwrap_or(0.0),
        matched_us: started(|run| Some(run.startup_ms)),
        first_sample_us: started(|run| run.first_sample_ms),
        daemon_ms: over_runs(runs, |run| run.daemon_ms),
        sent: total.counts.sent,
        received: total.counts.received,
        lost: total.counts.lost,
        duplicates: total.counts.duplicates,
        out_of_order: total.counts.out_of_order,
        corrupt: total.counts.corrupt,
        processes: total.processes(),
        loopback_bytes_per_byte: total.loopback_bytes
            / (travelled * (plan.payload_bytes + 8) as f64).max(1.0),
        loopback_packets_per_message: total.loopback_packets / travelled.max(1.0),
        ..cell
    }
}

/// The part of the cell that only plots and rows per second need.
pub(super) fn detail(
    case: Case<'_>,
    runs: &[JudgedRun],
    configuration: BTreeMap<String, String>,
) -> Detail {
    let used = used(runs);
    let record_every = case.scenario.workload.record_every;
    let latencies: Vec<&Sorted> = used.iter().map(|run| &run.latency).collect();
    let latency = Sorted::pooled(latencies.iter().copied());
    let first = used.first().copied();
    let seconds = first.map(|run| run.messages.seconds(record_every)).unwrap_or_default();
    Detail {
        name: case.plan.name(&case.scenario.name),
        histogram: latency.histogram(),
        curve: curve(&latency, &latencies),
        even_us: even(&latency),
        runs: runs.iter().map(JudgedRun::point).collect(),
        seconds: if seconds.len() > 1 { seconds } else { Vec::new() },
        series: first.and_then(observed::columns),
        timeline: first.and_then(|run| timeline::of(run, record_every)),
        stages: stages::of(used.iter().map(|run| &run.messages)),
        slowest: slowest::of(&used),
        configuration,
        pinned: used.iter().find_map(|run| {
            let cpus = run.record.pinned?;
            Some(Pinned { cpus, priority: case.scenario.tuning.priority })
        }),
    }
}

fn over_runs(runs: &[&JudgedRun], of: impl Fn(&RunRecord) -> Option<f64>) -> Option<f64> {
    median(runs.iter().filter_map(|run| of(&run.record)).collect())
}

fn pooled(runs: &[&JudgedRun], of: impl Fn(&Messages) -> Vec<i64>) -> Sorted {
    let values: Vec<Vec<i64>> = runs.iter().map(|run| of(&run.messages)).collect();
    Sorted::of_runs(values.iter().map(Vec::as_slice))
}

/// A latency of all messages of all runs, with those of the lost ones.
fn with_lost(runs: &[&JudgedRun], of: Quantity) -> Sorted {
    let each: Vec<Sorted> = runs.iter().map(|run| run.with_lost(of)).collect();
    Sorted::pooled(each.iter())
}

fn reasons(runs: &[JudgedRun]) -> Vec<String> {
    let of = |run: &JudgedRun| {
        let number = run.number();
        run.faults.iter().map(|fault| format!("run {number}: {fault}")).collect::<Vec<_>>()
    };
    match runs.is_empty() {
        true => vec!["this cell has no runs".into()],
        false => runs.iter().flat_map(of).collect(),
    }
}

fn notes(runs: &[JudgedRun], used: &[&JudgedRun], kind: Kind, steal_percent: f64) -> Vec<String> {
    let (what, loss) = match kind {
        Kind::Roundtrip => ("round trips", "messages lost; they count as infinite in percentiles"),
        Kind::Publish => (
            "publish calls",
            "messages that a subscriber should have taken and did \
                                            not",
        ),
        Kind::Flood => ("latencies", "messages lost; they have no latency"),
        _ => ("latencies", "messages lost; they count as infinite in percentiles"),
    };
    let mut notes = distinct(runs.iter().flat_map(|run| run.record.notes.clone()));
    if steal_percent > STEAL_PERCENT_MAX {
        notes.push(format!(
            "the hypervisor took {steal_percent:.1} % of the CPU time during the \
                            runs"
        ));
    }
    let lost: u64 = used.iter().map(|run| run.counts.lost).sum();
    let lateness = used.iter().flat_map(|run| run.messages.sent(Message::lateness)).max();
    if let Some(late_ns) = lateness.filter(|late_ns| *late_ns > LATE_NS_MAX) {
        let from = match kind {
            Kind::Stream | Kind::Replay => "the time a message was due",
            _ => "the actual sending",
        };
        let late_us = us(late_ns);
        notes.push(format!(
            "sent up to {late_us:.0} µs behind schedule; {what} are measured from \
                            {from}"
        ));
    }
    let saturated = used.iter().filter_map(|run| run.saturation.as_ref());
    notes.extend(saturated.take(1).map(|run| format!("saturated: {run}")));
    if lost > 0 {
        notes.push(format!("{lost} {loss}"));
    }
    notes
}

/// The two placements, if either occurred; same CPU first.
fn placements(runs: &[&JudgedRun], is_one_way: bool) -> Vec<Placement> {
    // Where a lost message would have arrived is not known: each placement has its part of them.
    let sides = [(true, Message::same_cpu as Quantity), (false, Message::cross_cpu)];
    let sides = sides.map(|(same_cpu, of)| (same_cpu, with_lost(runs, of)));
    let all: usize = sides.iter().map(|(_, values)| values.arrived().len()).sum();
    let placement = |(same_cpu, values): (bool, Sorted)| {
        let share = values.arrived().len() as f64 / all as f64;
        let latency: Option<Distribution> = Some(values.distribution()?);
        let (round_trip_us, one_way_us) =
            if is_one_way { (None, latency) } else { (latency, None) };
        Some(Placement { same_cpu, share, round_trip_us, one_way_us })
    };
    sides.into_iter().filter_map(placement).collect()
}

/// Points evenly spaced in −log10(1 − quantile), the axis of the plot.
fn curve(pooled: &Sorted, runs: &[&Sorted]) -> Vec<CurvePoint> {
    (0..=CURVE_NINES_MAX * CURVE_POINTS_PER_NINE)
        .map(|step| 1.0 - 10f64.powf(-f64::from(step) / f64::from(CURVE_POINTS_PER_NINE)))
        .map_while(|quantile| {
            let value = Some(us(pooled.supported(quantile)?)).filter(|us| us.is_finite())?;
            let of_runs = runs.iter().filter_map(|run| run.quantile(quantile)).map(us);
            let of_runs = of_runs.filter(|us| us.is_finite());
            let (low_us, high_us) =
                of_runs.fold((value, value), |(low, high), run| (low.min(run), high.max(run)));
            Some(CurvePoint { quantile, us: value, low_us, high_us })
        })
        .collect()
}

fn even(pooled: &Sorted) -> Vec<f64> {
    let quantiles = (0..EVEN_POINTS).map(|step| (f64::from(step) + 0.5) / f64::from(EVEN_POINTS));
    let values = quantiles.map_while(|quantile| pooled.supported(quantile).map(us));
    values.take_while(|us| us.is_finite()).collect()
}

/// If a message is sent later than this, the cell gets a remark.
const LATE_NS_MAX: i64 = 1_000_000;
const CURVE_NINES_MAX: u32 = 6;
const CURVE_POINTS_PER_NINE: u32 = 20;
const EVEN_POINTS: u32 = 200;
/// More stolen time than this gets a remark; one tick of the kernel in a short run is 2 %.
const STEAL_PERCENT_MAX: f64 = 5.0;
