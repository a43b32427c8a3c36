//! From the records and samples of a run to a judged run.

use std::borrow::Cow;
use std::cell::OnceCell;

use myelin_bench_kit::protocol::Topology;

use super::clocks::{self, Clocks};
use super::distribution::Sorted;
use super::judged::{Case, JudgedRun};
use super::messages::{Measured, Messages};
use super::validity::{Evidence, INCOMPLETE, faults, saturation};
use super::{link, load, steady, workloads};
use crate::observe::Observation;
use crate::plan::CellPlan;
use crate::record::{RunRecord, RunSamples};
use crate::scenario::{Kind, Scenario};

/// What was recorded of a run, with all stamps on ping's clock.
pub(super) struct Recorded<'a> {
    record: RunRecord,
    samples: Cow<'a, RunSamples>,
    clocks: Clocks,
    load: Option<Box<RecordedLoad>>,
}

impl<'a> Recorded<'a> {
    /// Converts pong's stamps to ping's clock. `samples` of a failed run are empty.
    pub(super) fn new(record: RunRecord, mut samples: Cow<'a, RunSamples>, case: Case<'_>) -> Self {
        let load = RecordedLoad::of(&record, &mut samples, case).map(Box::new);
        let clocks = match (case.plan.topology, &record.failure) {
            (Topology::TwoHosts, None) => clocks::apply(samples.to_mut(), &record.clock_discipline),
            _ => Clocks::default(),
        };
        Recorded { record, samples, clocks, load }
    }
}

/// What was recorded of a load, as a run of a cell of its own.
struct RecordedLoad {
    plan: CellPlan,
    scenario: Scenario,
    recorded: Recorded<'static>,
}

impl RecordedLoad {
    /// Takes the load out of the samples of a run; `None` without one, and if the run failed.
    fn of(record: &RunRecord, samples: &mut Cow<'_, RunSamples>, case: Case<'_>) -> Option<Self> {
        let (scenario, plan) = case.plan.beside(case.scenario)?;
        let counts = record.load.clone()?;
        let own = match samples {
            Cow::Owned(samples) => samples.load.take()?,
            Cow::Borrowed(samples) => samples.load.clone()?,
        };
        let seen = record.observation.as_ref()?;
        let record = RunRecord {
            plan: record.plan,
            ping: Some(counts.ping),
            pong: Some(counts.pong),
            clock_discipline: record.clock_discipline.clone(),
            // The network's counts are of the run and its load together.
            observation: Some(Observation {
                wall_ns: seen.wall_ns,
                loopback_bytes: seen.loopback_bytes,
                loopback_packets: seen.loopback_packets,
                link: seen.link.clone(),
                shared_bytes: seen.shared_bytes,
                ping_and_pong_share_memory: seen.ping_and_pong_share_memory,
                ..Observation::default()
            }),
            ..RunRecord::default()
        };
        let samples = RunSamples { exchanges: samples.exchanges.clone(), ..*own };
        let load = Case { plan: &plan, scenario: &scenario, ..case };
        let recorded = Recorded::new(record, Cow::Owned(samples), load);
        Some(RecordedLoad { plan, scenario, recorded })
    }

    fn judge(&self, case: Case<'_>) -> JudgedRun<'_> {
        let case = Case { plan: &self.plan, scenario: &self.scenario, ..case };
        run(&self.recorded, case)
    }
}

/// Derives and judges the messages of a run.
pub(super) fn run<'a>(recorded: &'a Recorded<'_>, case: Case<'_>) -> JudgedRun<'a> {
    let Recorded { record, samples, clocks, load } = recorded;
    let Case { plan, scenario, system, host } = case;
    let (record_every, kind) = (scenario.workload.record_every, case.kind());
    let clock_error_ns = match clocks.are_two {
        true => clocks.error_ns.map(|error_ns| error_ns.ceil() as u64),
        false => Some(0),
    };
    let evidence = Evidence { case, record, samples, clock_error_ns };
    let (mut faults, saturation) = (faults(&evidence), saturation(&evidence));
    if kind.is_one_way() && kind != Kind::Startup {
        faults.extend(clocks.trouble.iter().cloned());
    }
    // Latencies of an invalid run may be shown, but not latencies that could not be measured.
    let is_unknown = kind == Kind::Roundtrip || clocks.figures.is_none();
    let measured = Measured {
        crosses_ends: clocks.trouble.is_empty() || !is_unknown,
        is_one_machine: !clocks.are_two,
        is_imported: plan.imported.is_some(),
        ..Measured::new(kind, plan.rate_hz.is_some(), system.loans)
    };
    let messages = Messages::of(samples, measured);
    let mut quantities = messages.quantities();
    let drift = steady::drift(&messages.in_order(&quantities), host.clock_step_ns);
    // The time at which a one-way message was taken is not known then either.
    let is_known = kind == Kind::Roundtrip || measured.crosses_ends;
    let cut = record.cut.filter(|_| is_known);
    let counts = workloads::counts(record, kind, plan.subscribers);
    quantities.add_lost(kind, &counts);
    let load = load.as_ref().map(|load| Box::new(load.judge(case)));
    match (&plan.load, &load) {
        (Some(asked), Some(load)) => faults.extend(load::faults(load, asked.rate_hz, &counts)),
        (Some(_), None) if faults.is_empty() => faults.push(INCOMPLETE.into()),
        _ => {}
    }
    JudgedRun {
        latency: match kind {
            Kind::Startup => workloads::starts([record], |run| run.first_sample_ms),
            _ => Sorted::new(std::mem::take(&mut quantities.latency)),
        },
        drift,
        clocks,
        cut: cut.and_then(|it| link::figures(it, &messages, record_every)),
        messages,
        quantities,
        counts,
        load,
        record,
        faults,
        saturation,
        across: OnceCell::new(),
    }
}

#[cfg(test)]
mod tests;
