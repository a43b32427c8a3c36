//! From the records and samples of a run to a judged run.

use std::borrow::Cow;
use std::cell::OnceCell;

use myelin_bench_kit::protocol::Topology;

use super::clocks::{self, Clocks};
use super::distribution::Sorted;
use super::judged::{Case, JudgedRun};
use super::messages::{Measured, Messages};
use super::validity::{Evidence, faults, saturation};
use super::{link, steady, workloads};
use crate::record::{RunRecord, RunSamples};
use crate::scenario::Kind;

/// What was recorded of a run, with all stamps on ping's clock.
pub(super) struct Recorded<'a> {
    record: RunRecord,
    samples: Cow<'a, RunSamples>,
    clocks: Clocks,
}

impl<'a> Recorded<'a> {
    /// Converts pong's stamps to ping's clock. `samples` of a failed run are empty.
    pub(super) fn new(record: RunRecord, mut samples: Cow<'a, RunSamples>, case: Case<'_>) -> Self {
        let clocks = match (case.plan.topology, &record.failure) {
            (Topology::TwoHosts, None) => clocks::apply(samples.to_mut(), &record.clock_discipline),
            _ => Clocks::default(),
        };
        Recorded { record, samples, clocks }
    }
}

/// Derives and judges the messages of a run.
pub(super) fn run<'a>(recorded: &'a Recorded<'_>, case: Case<'_>) -> JudgedRun<'a> {
    let Recorded { record, samples, clocks } = recorded;
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
        record,
        faults,
        saturation,
        across: OnceCell::new(),
    }
}
