//! One cell of the summary: the pooled figures of its runs.

use std::collections::BTreeMap;

use myelin_bench_kit::protocol::{Topology, Transport};

use super::distribution::{NEVER, Sorted, Unsorted, us};
use super::judged::{self, Case, JudgedRun, used};
use super::messages::Quantities;
use super::{
    clock_figures, load, measures, notes, observed, processes, slowest, stages, timeline, workloads,
};
use crate::plan::waits;
use crate::scenario::{Kind, frame_name};
use crate::summary::{Cell, CurvePoint, Detail, Distribution, Params, Pinned, Placement};

/// Pools the runs of a cell. Figures come from the valid runs. If there are none, they come from
/// the others and the cell is marked.
pub(super) fn pool(case: Case<'_>, runs: &[JudgedRun<'_>]) -> Cell {
    with_latency(case, runs, &latency(&used(runs)))
}

/// Pools the runs of a cell, with its details; if `is_plotted`, also with those that only plots and
/// rows per second need.
pub(super) fn pool_in_detail(
    case: Case<'_>,
    runs: &[JudgedRun<'_>],
    configuration: BTreeMap<String, String>,
    is_plotted: bool,
) -> (Cell, Detail) {
    let latency = latency(&used(runs));
    let plots = if is_plotted { plots(case, runs, &latency) } else { Detail::default() };
    let pinned = used(runs).iter().find_map(|run| {
        let cpus = run.record.pinned?;
        Some(Pinned { cpus, priority: case.scenario.tuning.priority })
    });
    let detail = Detail {
        name: case.plan.name(&case.scenario.name),
        runs: runs.iter().map(|run| measures::single(run, case)).collect(),
        configuration,
        pinned,
        ..plots
    };
    (with_latency(case, runs, &latency), detail)
}

/// The latencies of all these runs.
fn latency(used: &[&JudgedRun<'_>]) -> Sorted {
    Sorted::pooled(used.iter().map(|run| &run.latency))
}

fn with_latency(case: Case<'_>, runs: &[JudgedRun<'_>], latency: &Sorted) -> Cell {
    let used = used(runs);
    let started = |ms_of| {
        let times = workloads::starts(used.iter().map(|run| run.record), ms_of);
        times.distribution().filter(|_| case.kind() == Kind::Startup)
    };
    let cell = Cell {
        runs: used.len() as u32,
        valid: runs.iter().any(JudgedRun::is_valid),
        invalid_reasons: notes::reasons(runs),
        interval_level_percent: case.scenario.plan.run_count().level_percent(used.len()),
        repeats: judged::repeats(runs, case.scenario),
        clock: clock_figures::figures(&used),
        cuts: used.iter().filter_map(|run| run.cut).collect(),
        load: load::figures(case, &used),
        notes: notes::of(case, runs, &used),
        matched_us: started(|run| run.startup_ms),
        first_sample_us: started(|run| run.first_sample_ms),
        processes: processes::of(&used),
        ..planned(case)
    };
    let mut cell = with_latencies(cell, case, &used, latency);
    measures::fill(&mut cell, case, &used);
    cell
}

/// The requested values of the cell, without results.
fn planned(case: Case<'_>) -> Cell {
    let (plan, workload, kind) = (case.plan, &case.scenario.workload, case.kind());
    let has_qos = kind.is_one_way() && plan.imported.is_none();
    Cell {
        scenario: case.scenario.name.clone(),
        workload: kind,
        system: case.system.name.clone(),
        tuning: plan.tuning,
        topology: plan.topology,
        params: Params {
            payload_bytes: plan.payload_bytes,
            imported: plan.imported.is_some(),
            rate_hz: plan.rate_hz,
            wait: waits(case.system, kind),
            subscribers: plan.subscribers,
            touch: workload.touch,
            frame: plan.frame.map(frame_name),
            arrivals: plan.arrivals.as_ref().map(|case| case.name.clone()),
            publishers: plan.publishers,
            topics: plan.topics,
            reliability: has_qos.then_some(plan.reliability),
            depth: has_qos.then_some(workload.depth),
            module: plan.module.clone(),
            load: plan.load.as_ref().map(|load| load.name.clone()),
            recording: workload.recording.as_ref().map(|recording| recording.name().to_owned()),
        },
        messages_asked: workload.messages,
        duration_asked_s: workload.duration_s,
        ..Cell::default()
    }
}

/// Adds the distributions over all messages of all runs, and the spread of the runs.
fn with_latencies(cell: Cell, case: Case<'_>, runs: &[&JudgedRun<'_>], latency: &Sorted) -> Cell {
    let kind = case.kind();
    let latencies: Vec<&Sorted> = runs.iter().map(|run| &run.latency).collect();
    let count = case.scenario.plan.run_count();
    let interval = |is_of: bool, quantile| {
        Some(latency.interval(count, &latencies, quantile)?).filter(|_| is_of)
    };
    let (is_round_trip, is_one_way) = (kind == Kind::Roundtrip, kind.is_one_way());
    let pooled =
        |of: Column| Unsorted::of(runs.iter().map(|run| of(&run.quantities))).distribution();
    let whole = latency.distribution();
    Cell {
        samples: latency.arrived().len() as u64,
        round_trip_us: whole.filter(|_| is_round_trip),
        round_trip_p50_interval_us: interval(is_round_trip, 0.5),
        round_trip_p99_interval_us: interval(is_round_trip, 0.99),
        round_trip_p999_interval_us: interval(is_round_trip, 0.999),
        one_way_us: pooled(|it| &it.one_way),
        one_way_p50_interval_us: interval(is_one_way, 0.5),
        one_way_p99_interval_us: interval(is_one_way, 0.99),
        one_way_p999_interval_us: interval(is_one_way, 0.999),
        service_us: pooled(|it| &it.service),
        write_us: pooled(|it| &it.write),
        write_p50_interval_us: interval(kind == Kind::Publish, 0.5),
        read_us: pooled(|it| &it.read),
        wake_us: pooled(|it| &it.wake),
        lateness_us: pooled(|it| &it.lateness),
        loan_us: pooled(|it| &it.loan),
        fill_us: pooled(|it| &it.fill),
        memcpy_us: pooled(|it| &it.memcpy),
        stream_copy_us: pooled(|it| &it.stream_copy),
        placements: match case.system.transport {
            // A publish call without subscribers does not depend on placement.
            Transport::None => Vec::new(),
            _ if case.plan.topology == Topology::TwoHosts => Vec::new(),
            _ => placements(runs, latency.len(), whole, is_one_way),
        },
        ..cell
    }
}

/// The details that only plots and rows per second need.
fn plots(case: Case<'_>, runs: &[JudgedRun<'_>], latency: &Sorted) -> Detail {
    let used = used(runs);
    let record_every = case.scenario.workload.record_every;
    let latencies: Vec<&Sorted> = used.iter().map(|run| &run.latency).collect();
    let first = used.first().copied();
    let seconds = first.map(|run| run.messages.seconds(record_every)).unwrap_or_default();
    Detail {
        histogram: latency.histogram(),
        curve: curve(latency, &latencies),
        even_us: even(latency),
        seconds: if seconds.len() > 1 { seconds } else { Vec::new() },
        series: first.and_then(observed::columns),
        timeline: first.and_then(|run| timeline::of(run, record_every)),
        stages: stages::of(used.iter().map(|run| &run.messages)),
        slowest: slowest::of(&used, latency),
        ..Detail::default()
    }
}

/// A quantity of all messages of a run.
type Column = fn(&Quantities) -> &Vec<i64>;

/// The two placements, if either occurred; same CPU first.
///
/// `whole` is the distribution of all `number` latencies.
fn placements(
    runs: &[&JudgedRun<'_>],
    number: usize,
    whole: Option<Distribution>,
    is_one_way: bool,
) -> Vec<Placement> {
    // Where a lost message would have arrived is not known: each placement has its part of them.
    let sides: [(bool, Column); 2] = [(true, |it| &it.same_cpu), (false, |it| &it.cross_cpu)];
    let arrived = |of: Column| {
        let all = runs.iter().flat_map(|run| of(&run.quantities));
        all.filter(|value| **value < NEVER).count() as f64
    };
    let sides = sides.map(|(same_cpu, of)| (same_cpu, arrived(of), of));
    let all: f64 = sides.iter().map(|(_, count, _)| count).sum();
    let placement = |(same_cpu, count, of): (bool, f64, Column)| {
        let each = runs.iter().map(|run| of(&run.quantities));
        let is_all = each.clone().map(Vec::len).sum::<usize>() == number;
        let latency = Some(if is_all { whole } else { Unsorted::of(each).distribution() }?);
        let (round_trip_us, one_way_us) =
            if is_one_way { (None, latency) } else { (latency, None) };
        Some(Placement { same_cpu, share: count / all, round_trip_us, one_way_us })
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

const CURVE_NINES_MAX: u32 = 6;
const CURVE_POINTS_PER_NINE: u32 = 20;
const EVEN_POINTS: u32 = 200;
