//! One judged run of a cell: its messages, its faults, and its own figures.

use std::borrow::Cow;

use myelin_bench_kit::protocol::{Arrivals, Done, System, Topology};

use super::clocks::{self, Clocks};
use super::distribution::{Sorted, us};
use super::messages::{Measured, Message, Messages, Quantity};
use super::totals::{exchange_cpu_ns, sum};
use super::validity::{Evidence, faults, saturation};
use super::{link, steady, workloads};
use crate::machine::Machine;
use crate::plan::{CellPlan, Plan};
use crate::record::RunRecord;
use crate::run::RunSamples;
use crate::scenario::{Kind, Scenario};
use crate::stats::interval::RunCount;
use crate::summary::{CutFigures, RUN_QUANTILES, Repeats, RunPoint};

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

pub(super) struct JudgedRun {
    pub record: RunRecord,
    pub messages: Messages,
    /// The latencies that percentiles describe: round trips, publish calls, or one-way latencies.
    pub latency: Sorted,
    pub faults: Vec<String>,
    /// Remark that a stream did not reach its rate.
    pub saturation: Option<String>,
    /// Ping's counts; for one-way workloads, those of ping and pong combined.
    pub counts: Done,
    pub drift: Option<steady::Drift>,
    pub clocks: Clocks,
    pub cut: Option<CutFigures>,
}

impl JudgedRun {
    /// Converts pong's stamps to ping's clock, then derives and judges the messages. `samples` of a
    /// failed run are empty.
    pub(super) fn new(record: RunRecord, mut samples: Cow<'_, RunSamples>, case: Case<'_>) -> Self {
        let Case { plan, scenario, system, host } = case;
        let (record_every, kind) = (scenario.workload.record_every, case.kind());
        let clocks = match (plan.topology, &record.failure) {
            (Topology::TwoHosts, None) => clocks::apply(samples.to_mut(), &record.clock_discipline),
            _ => Clocks::default(),
        };
        let clock_error_ns = match clocks.are_two {
            true => clocks.error_ns.map(|error_ns| error_ns.ceil() as u64),
            false => Some(0),
        };
        let evidence = Evidence { case, record: &record, samples: &samples, clock_error_ns };
        let (mut faults, saturation) = (faults(&evidence), saturation(&evidence));
        if kind.is_one_way() && kind != Kind::Startup {
            faults.extend(clocks.trouble.iter().cloned());
        }
        // Latencies of an invalid run may be shown, but not latencies that could not be measured.
        let is_unknown = kind == Kind::Roundtrip || clocks.figures.is_none();
        let measured = Measured {
            crosses_ends: clocks.trouble.is_empty() || !is_unknown,
            is_one_machine: !clocks.are_two,
            ..Measured::new(kind, plan.rate_hz.is_some(), system.loans)
        };
        let messages = Messages::of(&samples, measured);
        // The time at which a one-way message was taken is not known then either.
        let is_known = kind == Kind::Roundtrip || measured.crosses_ends;
        let cut = record.cut.filter(|_| is_known);
        let counts = workloads::counts(&record, kind, plan.subscribers);
        JudgedRun {
            latency: match kind {
                Kind::Startup => workloads::starts([&record], |run| run.first_sample_ms),
                _ => with_lost(&messages, &counts, Message::latency),
            },
            drift: steady::drift(&messages.in_order(), host.clock_step_ns),
            clocks,
            cut: cut.and_then(|it| link::figures(it, &messages, record_every)),
            messages,
            counts,
            record,
            faults,
            saturation,
        }
    }

    /// A latency of every message, with those of the lost ones.
    pub(super) fn with_lost(&self, of: Quantity) -> Sorted {
        with_lost(&self.messages, &self.counts, of)
    }

    pub(super) fn is_valid(&self) -> bool {
        self.faults.is_empty()
    }

    /// Number of the run within its cell, from 1.
    pub(super) fn number(&self) -> u32 {
        self.record.plan.repeat + 1
    }

    /// The figures of this run alone.
    pub(super) fn point(&self) -> RunPoint {
        let at = |quantile| self.latency.supported(quantile).map(us);
        let across = self.with_lost(Message::cross_cpu);
        let observed = self.record.observation.as_ref();
        RunPoint {
            order: self.record.plan.order,
            p50_us: at(0.5),
            p99_us: at(0.99),
            valid: self.is_valid(),
            curve_us: RUN_QUANTILES
                .into_iter()
                .map_while(at)
                .take_while(|us| us.is_finite())
                .collect(),
            cross_p50_us: across.supported(0.5).map(us),
            cross_p99_us: across.supported(0.99).map(us),
            first_sample_us: self.record.first_sample_ms.map(|ms| ms * 1e3),
            cpu_us_per_message: observed
                .filter(|_| self.counts.sent > 0)
                .map(|seen| exchange_cpu_ns(&self.record, seen) / 1e3 / self.counts.sent as f64),
            pss_bytes: observed.map(|seen| sum(seen, |process| process.pss_bytes)),
            taken_per_s: workloads::taken_per_s(&self.record),
            lossless_per_s: workloads::lossless_per_s(&self.record),
        }
    }
}

/// A latency of every message, and of the lost ones that had none. A publish call ends without its
/// message being taken, and a flood is measured by what it loses.
fn with_lost(messages: &Messages, counts: &Done, of: Quantity) -> Sorted {
    let lost = match messages.measured.kind {
        Kind::Roundtrip | Kind::Stream | Kind::Image | Kind::Replay => counts.lost,
        Kind::Publish | Kind::Flood | Kind::Startup => 0,
    };
    Sorted::with_lost(messages.taken(of), lost, counts.received)
}

/// The runs that figures come from: the valid ones; if there are none, those that did not fail.
pub(super) fn used(runs: &[JudgedRun]) -> Vec<&JudgedRun> {
    let any_valid = runs.iter().any(JudgedRun::is_valid);
    let counts = |run: &&JudgedRun| run.is_valid() == any_valid && run.record.failure.is_none();
    runs.iter().filter(counts).collect()
}

/// How precisely the valid runs of a cell determine its median; `None` if the scenario does not ask
/// for it.
pub(super) fn repeats(runs: &[JudgedRun], scenario: &Scenario) -> Option<Repeats> {
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
