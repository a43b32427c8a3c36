//! The load beside a run. It is judged like a run of a stream alone.

use myelin_bench_kit::protocol::Done;

use super::distribution::Sorted;
use super::judged::{Case, JudgedRun};
use super::measures::measured_s;
use super::part::{Part, over_runs};
use crate::summary::{LoadFigures, OverRuns};

/// Everything wrong with the load beside a run with these counts.
pub(super) fn faults(load: &JudgedRun<'_>, rate_hz: f64, run: &Done) -> Vec<String> {
    let own = load.faults.iter().map(|fault| format!("the load: {fault}"));
    own.chain(covers_too_little(&load.counts, rate_hz, run)).collect()
}

/// Figures beside a load need the load. Its first and its last message are up to a period away from
/// those of the run.
fn covers_too_little(load: &Done, rate_hz: f64, run: &Done) -> Option<String> {
    let period_ns = (1e9 / rate_hz) as u64;
    let begin_ns = load.begin_ns.saturating_sub(period_ns).max(run.begin_ns);
    let end_ns = load.end_ns.saturating_add(period_ns).min(run.end_ns);
    let whole_ns = run.end_ns.saturating_sub(run.begin_ns) as f64;
    let part = end_ns.saturating_sub(begin_ns) as f64 / whole_ns.max(1.0);
    (whole_ns > 0.0 && part < COVERED)
        .then(|| format!("the load was there for only {:.0} % of the measured time", 100.0 * part))
}

/// The figures of the load beside these runs; `None` if none had one.
pub(super) fn figures(case: Case<'_>, runs: &[&JudgedRun<'_>]) -> Option<LoadFigures> {
    let load = case.plan.load.as_ref()?;
    let own: Vec<&JudgedRun<'_>> = runs.iter().filter_map(|run| run.load.as_deref()).collect();
    if own.is_empty() {
        return None;
    }
    let total = |of: fn(&Done) -> u64| own.iter().map(|run| of(&run.counts)).sum();
    let rate = |of: fn(&Done) -> u64| {
        // The last message ends a run one period early.
        let part = |run: &&JudgedRun<'_>| {
            Part::ratio(of(&run.counts) as f64, measured_s(run) + 1.0 / load.rate_hz)
        };
        over_runs(OverRuns::Sum, &own.iter().map(part).collect::<Vec<_>>())
    };
    let cpu = |run: &&JudgedRun<'_>| {
        let used_ns = run.record.ping.as_ref()?.cpu_ns? + run.record.pong.as_ref()?.cpu_ns?;
        Some(Part::ratio(used_ns as f64 / 1e3, run.counts.sent as f64))
    };
    Some(LoadFigures {
        payload_bytes: load.payload_bytes,
        rate_hz: load.rate_hz,
        reliability: load.reliability,
        depth: load.depth,
        sent: total(|it| it.sent),
        received: total(|it| it.received),
        lost: total(|it| it.lost),
        sent_per_s: rate(|it| it.sent),
        received_per_s: rate(|it| it.received),
        cpu_us_per_message: over_runs(
            OverRuns::Sum,
            &own.iter().filter_map(cpu).collect::<Vec<_>>(),
        ),
        one_way_us: Sorted::pooled(own.iter().map(|run| &run.latency)).distribution(),
    })
}

/// Remarks on the load beside these runs.
pub(super) fn remarks(runs: &[&JudgedRun<'_>]) -> Vec<String> {
    let own = || runs.iter().filter_map(|run| run.load.as_deref());
    let saturated = own().find_map(|run| run.saturation.as_ref());
    let lost: u64 = own().map(|run| run.counts.lost).sum();
    let lost = (lost > 0).then(|| format!("{lost} messages of the load lost"));
    saturated.map(|run| format!("the load was saturated: {run}")).into_iter().chain(lost).collect()
}

/// The least part of the measured time during which there has to be a load.
const COVERED: f64 = 0.9;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_load_that_begins_late_or_ends_early_is_a_fault() {
        let run = Done { begin_ns: 10_000_000_000, end_ns: 20_000_000_000, ..Done::default() };
        let load = |begin_ns, end_ns| {
            let load = Done { begin_ns, end_ns, ..Done::default() };
            covers_too_little(&load, 5.0, &run)
        };
        assert_eq!(load(10_200_000_000, 19_800_000_000), None, "a period is no gap");
        assert_eq!(load(9_000_000_000, 21_000_000_000), None);
        let late = load(13_200_000_000, 20_000_000_000).unwrap();
        assert!(late.contains("only 70 % of"), "{late}");
        assert!(load(10_000_000_000, 12_800_000_000).unwrap().contains("only 30 %"));
        assert!(load(1, 2).unwrap().contains("only 0 %"));
    }
}
