//! The measurement of each scalar figure: what a run contributes to it. How the runs make the figure
//! of the cell follows from the table of figures ([`METRICS`](crate::summary::METRICS)).

use super::distribution::us;
use super::judged::{Case, JudgedRun};
use super::part::{Part, over_runs};
use super::processes::{exchange_cpu_ns, sum};
use super::{observed, workloads};
use crate::observe::{Observation, ProcessObservation};
use crate::scenario::Kind;
use crate::summary::{Cell, Metric, RUN_QUANTILES, RunFigures};

/// What a run contributes to a figure; `None` if it was not measured.
type Measure = fn(&JudgedRun<'_>, Case<'_>) -> Option<Part>;

/// Sets the figures of the cell that its used runs measure.
pub(super) fn fill(cell: &mut Cell, case: Case<'_>, runs: &[&JudgedRun<'_>]) {
    for (name, measure) in MEASURES {
        let metric = Metric::named(name);
        if let Some(set) = metric.set {
            let parts: Vec<Part> = runs.iter().filter_map(|run| measure(run, case)).collect();
            set(cell, over_runs(metric.over_runs, &parts));
        }
    }
}

/// The figures of one run; none if it failed.
pub(super) fn single(run: &JudgedRun<'_>, case: Case<'_>) -> RunFigures {
    let measured = MEASURES.iter().filter(|_| run.record.failure.is_none());
    let figures = measured.map(|(name, of)| (*name, of(run, case).and_then(Part::value)));
    let at = |quantile| run.latency.supported(quantile).map(us);
    let curve = RUN_QUANTILES.into_iter().map_while(at).take_while(|us| us.is_finite());
    let order = run.record.plan.order;
    RunFigures { curve_us: curve.collect(), ..RunFigures::new(order, run.is_valid(), figures) }
}

fn whole(amount: u64) -> Option<Part> {
    Some(Part::whole(amount as f64))
}

/// A count of all processes of the run.
fn total(run: &JudgedRun<'_>, of: fn(&ProcessObservation) -> u64) -> Option<f64> {
    Some(sum(run.record.observation.as_ref()?, of) as f64)
}

/// Like [`total`], for each second of observation.
fn per_second(run: &JudgedRun<'_>, of: fn(&ProcessObservation) -> u64) -> Option<Part> {
    let seconds = run.record.observation.as_ref()?.wall_ns as f64 * 1e-9;
    Some(Part::ratio(total(run, of)?, seconds))
}

/// From the first measured message to the last, without the bench's own start and end.
fn exchange_cpu_s(run: &JudgedRun<'_>) -> Option<f64> {
    Some(exchange_cpu_ns(run.record, run.record.observation.as_ref()?) * 1e-9)
}

pub(super) fn measured_s(run: &JudgedRun<'_>) -> f64 {
    run.counts.end_ns.saturating_sub(run.counts.begin_ns) as f64 * 1e-9
}

/// Messages that the rate counts: answered or published ones. Each publisher has the rate.
fn throughput(run: &JudgedRun<'_>, case: Case<'_>) -> Option<Part> {
    let messages = match case.kind() {
        Kind::Roundtrip => run.counts.received as f64,
        _ => run.counts.sent as f64 / f64::from(case.plan.publishers.max(1)),
    };
    // The last message ends a run one period early.
    let unsent_s = case.plan.rate_hz.map_or(0.0, |rate_hz| 1.0 / rate_hz);
    Some(Part::ratio(messages, measured_s(run) + unsent_s))
}

fn cpu_percent(run: &JudgedRun<'_>, case: Case<'_>) -> Option<Part> {
    match case.kind().is_one_way() {
        true => Some(Part::ratio(100.0 * exchange_cpu_s(run)?, measured_s(run))),
        false => {
            let part = per_second(run, |process| process.cpu_ns)?;
            Some(Part { amount: 100.0 * part.amount * 1e-9, ..part })
        }
    }
}

/// CPU of pong alone; `None` if pong does not measure it, as in one process.
fn receiver_cpu_percent(run: &JudgedRun<'_>, case: Case<'_>) -> Option<Part> {
    let cpu_ns = run.record.pong.as_ref()?.cpu_ns.filter(|_| case.kind().is_one_way())?;
    Some(Part::ratio(100.0 * cpu_ns as f64 * 1e-9, measured_s(run)))
}

/// Messages, with those of the warm-up, in both directions of a round trip.
fn travelled(run: &JudgedRun<'_>, case: Case<'_>) -> f64 {
    let directions = if case.kind() == Kind::Roundtrip { 2.0 } else { 1.0 };
    directions * run.published(case)
}

/// `None` beside a load, whose messages travel in the same packets.
fn traffic(run: &JudgedRun<'_>, of: fn(&Observation) -> u64, per: f64) -> Option<Part> {
    let observation = run.record.observation.as_ref().filter(|_| run.load.is_none())?;
    Some(Part::ratio(of(observation) as f64, per))
}

/// `None` if a trace does not say which messages were lost.
fn lost(run: &JudgedRun<'_>, case: Case<'_>) -> Option<u64> {
    case.plan.imported.is_none_or(|it| it.knows_lost).then_some(run.counts.lost)
}

/// The differences between latencies of neighbours. Records that stand for many messages are none.
fn jitter(run: &JudgedRun<'_>, case: Case<'_>) -> Option<Part> {
    let is_single = case.plan.subscribers == 1 && case.scenario.workload.record_every == 1;
    if !is_single || !case.kind().is_one_way() {
        return None;
    }
    let quantities = run.messages.quantities();
    let latencies = run.messages.in_order(&quantities);
    let sum_ns: u64 = latencies.windows(2).map(|pair| pair[1].abs_diff(pair[0])).sum();
    Some(Part::ratio(sum_ns as f64 / 1e3, latencies.len().saturating_sub(1) as f64))
}

fn latency(ns: Option<i64>) -> Option<Part> {
    Some(Part::whole(us(ns?)))
}

/// In the order of the table of figures.
static MEASURES: &[(&str, Measure)] = &[
    ("p50_us", |run, _| latency(run.latency.supported(0.5))),
    ("p99_us", |run, _| latency(run.latency.supported(0.99))),
    ("cross_p50_us", |run, _| latency(run.across()[0])),
    ("cross_p99_us", |run, _| latency(run.across()[1])),
    ("first_sample_us", |run, _| run.record.first_sample_ms.map(|ms| Part::whole(ms * 1e3))),
    ("throughput_per_s", throughput),
    ("cpu_us_per_message", |run, _| {
        Some(Part::ratio(exchange_cpu_s(run)? * 1e6, run.counts.sent as f64))
    }),
    ("cpu_percent", cpu_percent),
    ("rss_bytes", |run, _| total(run, |process| process.rss_bytes).map(Part::whole)),
    ("pss_bytes", |run, _| total(run, |process| process.pss_bytes).map(Part::whole)),
    ("shared_bytes", |run, _| whole(run.record.observation.as_ref()?.shared_bytes)),
    ("voluntary_switches_per_s", |run, _| per_second(run, |it| it.voluntary_switches)),
    ("involuntary_switches_per_s", |run, _| per_second(run, |it| it.involuntary_switches)),
    ("page_faults", |run, _| total(run, |process| process.page_faults).map(Part::whole)),
    ("startup_ms", |run, _| run.record.startup_ms.map(Part::whole)),
    ("sent", |run, _| whole(run.counts.sent)),
    ("received", |run, _| whole(run.counts.received)),
    ("lost", |run, case| whole(lost(run, case)?)),
    ("duplicates", |run, case| {
        let is_known = case.plan.imported.is_none_or(|it| it.numbered);
        whole(run.counts.duplicates).filter(|_| is_known)
    }),
    ("out_of_order", |run, _| whole(run.counts.out_of_order)),
    ("corrupt", |run, case| whole(run.counts.corrupt).filter(|_| case.plan.imported.is_none())),
    ("loopback_bytes_per_byte", |run, case| {
        let bytes = travelled(run, case) * (case.plan.payload_bytes as f64 + 8.0);
        traffic(run, |observed| observed.loopback_bytes, bytes)
    }),
    ("loopback_packets_per_message", |run, case| {
        traffic(run, |observed| observed.loopback_packets, travelled(run, case))
    }),
    ("receiver_cpu_percent", receiver_cpu_percent),
    ("taken_per_s", |run, _| workloads::taken_per_s(run.record).map(Part::whole)),
    ("lossless_per_s", |run, _| workloads::lossless_per_s(run.record).map(Part::whole)),
    ("daemon_ms", |run, _| run.record.daemon_ms.map(Part::whole)),
    ("runqueue_wait_percent", |run, _| run.series().map(observed::runqueue_wait_percent)),
    ("migrations_per_s", |run, _| observed::migrations_per_s(run.series()?)),
    ("pss_peak_bytes", |run, _| observed::pss_peak_bytes(run.series()?).and_then(whole)),
    ("cycles_per_message", |run, case| {
        observed::hardware(run.series()?, |it| Some(it.cycles), run.published(case))
    }),
    ("instructions_per_message", |run, case| {
        observed::hardware(run.series()?, |it| it.instructions, run.published(case))
    }),
    ("cache_misses_per_message", |run, case| {
        observed::hardware(run.series()?, |it| it.cache_misses, run.published(case))
    }),
    ("observation_cpu_percent", |run, _| Some(Part::whole(run.series()?.cost_percent))),
    ("unsettled_runs", |run, _| whole(run.drift.is_some().into())),
    ("loss_percent", |run, case| {
        let lost = lost(run, case)?;
        Some(Part::ratio(100.0 * lost as f64, (lost + run.counts.received) as f64))
    }),
    ("jitter_us", jitter),
];

#[cfg(test)]
mod tests {
    use super::*;
    use crate::summary::{METRICS, OverRuns};

    #[test]
    fn each_measurement_is_of_one_figure_of_the_table() {
        let is_scalar = |over| {
            matches!(over, OverRuns::Sum | OverRuns::Mean | OverRuns::Median | OverRuns::Largest)
        };
        let mut names: Vec<&str> = MEASURES.iter().map(|(name, _)| *name).collect();
        for name in &names {
            let over = Metric::named(name).over_runs;
            assert!(over == OverRuns::Single || is_scalar(over), "{name}: {over:?}");
        }
        names.sort_unstable();
        assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
        let fields = METRICS.iter().filter(|it| it.set.is_some());
        for metric in fields.filter(|it| is_scalar(it.over_runs)) {
            assert!(names.contains(&metric.name), "{} is never measured", metric.name);
        }
    }
}
