//! From the records and samples of a run to a judged run.

use std::borrow::Cow;
use std::cell::OnceCell;

use myelin_bench_kit::protocol::Topology;

use super::clocks::{self, Clocks};
use super::distribution::Sorted;
use super::judged::{Case, JudgedRun, with_lost};
use super::messages::{Measured, Message, Messages};
use super::validity::{Evidence, faults, saturation};
use super::{link, steady, workloads};
use crate::record::{RunRecord, RunSamples};
use crate::scenario::Kind;

/// Converts pong's stamps to ping's clock, then derives and judges the messages. `samples` of a
/// failed run are empty.
pub(super) fn run(
    record: RunRecord,
    mut samples: Cow<'_, RunSamples>,
    case: Case<'_>,
) -> JudgedRun {
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
        is_imported: plan.imported.is_some(),
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
            _ => Sorted::new(with_lost(&messages, &counts, Message::latency)),
        },
        drift: steady::drift(&messages.in_order(), host.clock_step_ns),
        clocks,
        cut: cut.and_then(|it| link::figures(it, &messages, record_every)),
        messages,
        counts,
        record,
        faults,
        saturation,
        across: OnceCell::new(),
    }
}
