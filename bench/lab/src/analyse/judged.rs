//! One judged run of a cell: its messages, its faults, and its own figures.

use std::cell::OnceCell;

use myelin_bench_kit::protocol::{Arrivals, Done, System};

use super::clocks::Clocks;
use super::distribution::{Sorted, Unsorted, us};
use super::messages::{Messages, Quantities};
use super::steady;
use crate::machine::Machine;
use crate::observe::series::Series;
use crate::plan::{CellPlan, Plan};
use crate::record::RunRecord;
use crate::scenario::{Kind, Scenario};
use crate::stats::interval::RunCount;
use crate::summary::{CutFigures, Repeats};

/// A planned cell with everything that its runs are judged by.
#[derive(Clone, Copy)]
pub(super) struct Case<'a> {
    pub plan: &'a CellPlan,
    pub scenario: &'a Scenario,
    pub system: &'a System,
    pub host: &'a Machine,
}

impl<'a> Case<'a> {
    /// The case of the cell with this index; `None` if its system is unknown.
    pub(super) fn of(plan: &'a Plan, cell: usize, host: &'a Machine) -> Option<Self> {
        let cell = &plan.cells[cell];
        let (scenario, system) = (&plan.scenarios[cell.scenario], plan.system(cell)?);
        Some(Case { plan: cell, scenario, system, host })
    }

    pub(super) fn kind(&self) -> Kind {
        self.scenario.workload.kind
    }

    /// The deviation of the schedule from the even rate.
    pub(super) fn arrivals(&self) -> Arrivals {
        self.plan.arrivals.as_ref().map(|case| case.arrivals).unwrap_or_default()
    }

    /// Messages in the warm-up of each publisher.
    pub(super) fn warmup_messages(&self) -> u64 {
        self.scenario.workload.warmup_at(self.plan.rate_hz)
    }
}

pub(super) struct JudgedRun<'a> {
    pub record: &'a RunRecord,
    pub messages: Messages<'a>,
    pub quantities: Quantities,
    /// The latencies that percentiles describe: round trips, publish calls, or one-way latencies.
    pub latency: Sorted,
    pub faults: Vec<String>,
    /// Remark that a stream did not reach its rate.
    pub saturation: Option<String>,
    /// Ping's counts; for one-way workloads, those of ping and pong combined.
    pub counts: Done,
    pub drift: Option<steady::Drift>,
    pub clocks: &'a Clocks,
    pub cut: Option<CutFigures>,
    /// The load beside it, judged as a run of its own; `None` without one.
    pub load: Option<Box<JudgedRun<'a>>>,
    /// See [`JudgedRun::across`].
    pub across: OnceCell<[Option<i64>; 2]>,
}

impl JudgedRun<'_> {
    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// Number of the run within its cell, from 1.
    pub(super) fn number(&self) -> u32 {
        self.record.plan.repeat + 1
    }

    /// Median and 99th percentile of the messages whose two ends were on different CPUs.
    pub(super) fn across(&self) -> [Option<i64>; 2] {
        let (cross_cpu, quantiles) = (&self.quantities.cross_cpu, [0.5, 0.99]);
        *self.across.get_or_init(|| match cross_cpu.len() == self.latency.len() {
            true => quantiles.map(|quantile| self.latency.supported(quantile)),
            false => Unsorted::of([cross_cpu].into_iter()).supported(quantiles),
        })
    }

    /// The observations over time; `None` without any.
    pub(super) fn series(&self) -> Option<&Series> {
        let series = self.record.observation.as_ref()?.series.as_ref()?;
        series.moments.last().is_some().then_some(series)
    }

    /// Messages that were published, with those of the warm-up.
    pub(super) fn published(&self, case: Case<'_>) -> f64 {
        let warmup = case.warmup_messages() * u64::from(case.plan.publishers);
        (self.counts.sent + self.counts.warmed_up.unwrap_or(warmup)) as f64
    }
}

/// The runs that figures come from: the valid ones; if there are none, those that did not fail.
pub(super) fn used<'s, 'a>(runs: &'s [JudgedRun<'a>]) -> Vec<&'s JudgedRun<'a>> {
    let any_valid = runs.iter().any(JudgedRun::is_valid);
    let counts = |run: &&JudgedRun<'_>| run.is_valid() == any_valid && run.record.failure.is_none();
    runs.iter().filter(counts).collect()
}

/// How precisely the valid runs of a cell determine its median; `None` if the scenario does not ask
/// for it.
pub(super) fn repeats(runs: &[JudgedRun<'_>], scenario: &Scenario) -> Option<Repeats> {
    let asked_percent = scenario.plan.precision?.interval_percent;
    let valid = runs.iter().filter(|run| run.is_valid());
    let latencies: Vec<&Sorted> = valid.map(|run| &run.latency).collect();
    let reached_percent = width_percent(scenario.plan.run_count(), &latencies);
    let is_narrow = reached_percent.is_some_and(|reached| reached <= asked_percent);
    Some(Repeats { asked_percent, reached_percent, is_narrow })
}

/// Width of the median's interval over `runs`, in per cent of the median of all their messages;
/// `None` if there is no interval or too few samples for the median.
fn width_percent(count: RunCount, runs: &[&Sorted]) -> Option<f64> {
    let pooled = Sorted::pooled(runs.iter().copied());
    let median = us(pooled.supported(0.5)?);
    let [low, high] = pooled.interval(count, runs, 0.5)?;
    (median > 0.0).then(|| 100.0 * (high - low) / median)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_width_is_in_per_cent_of_the_median_and_needs_five_runs() {
        let run = |offset: i64| Sorted::new((0..100).map(|at| 100_000 + offset + at).collect());
        let same: Vec<Sorted> = (0..5).map(|_| run(0)).collect();
        let width =
            |runs: &[Sorted]| width_percent(RunCount::Fixed, &runs.iter().collect::<Vec<_>>());
        assert_eq!(width(&same), Some(0.0));
        assert_eq!(width(&same[1..]), None);
        let apart: Vec<Sorted> = (0..5).map(|at| run(at * 10_000)).collect();
        let found = width(&apart).unwrap();
        assert!((20.0..40.0).contains(&found), "of 100 to 140 µs: {found} %");
        let tiny: Vec<Sorted> = (0..5).map(|_| Sorted::new(vec![5_000])).collect();
        assert_eq!(width(&tiny), None, "five samples bear no median");
        let negative: Vec<Sorted> = (0..5).map(|_| Sorted::new(vec![-5_000; 100])).collect();
        assert_eq!(width(&negative), None);
        let of_many: Vec<&Sorted> = same.iter().collect();
        assert_eq!(width_percent(RunCount::UpTo(15), &of_many), None, "five may agree by luck");
    }
}
