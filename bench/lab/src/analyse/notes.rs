//! Remarks on a cell, in words.

use super::distribution::us;
use super::judged::{Case, JudgedRun};
use super::{clock_figures, link, load};
use crate::lists::distinct;
use crate::scenario::Kind;

/// Why runs are not valid.
pub(super) fn reasons(runs: &[JudgedRun<'_>]) -> Vec<String> {
    let of = |run: &JudgedRun<'_>| {
        let number = run.number();
        run.faults.iter().map(|fault| format!("run {number}: {fault}")).collect::<Vec<_>>()
    };
    match runs.is_empty() {
        true => vec!["this cell has no runs".into()],
        false => runs.iter().flat_map(of).collect(),
    }
}

/// Remarks on the runs and on the used ones of them.
pub(super) fn of(case: Case<'_>, runs: &[JudgedRun<'_>], used: &[&JudgedRun<'_>]) -> Vec<String> {
    let kind = case.kind();
    let (what, loss) = match kind {
        Kind::Roundtrip => ("round trips", "messages lost; they count as infinite in percentiles"),
        Kind::Publish => {
            ("publish calls", "messages that a subscriber should have taken and did not")
        }
        Kind::Flood => ("latencies", "messages lost; they have no latency"),
        _ => ("latencies", "messages lost; they count as infinite in percentiles"),
    };
    let mut notes = distinct(runs.iter().flat_map(|run| run.record.notes.clone()));
    let observed = used.iter().filter_map(|run| run.record.observation.as_ref());
    let stolen: Vec<f64> = observed.map(|observed| observed.steal_percent).collect();
    let steal_percent = stolen.iter().sum::<f64>() / stolen.len().max(1) as f64;
    if steal_percent > STEAL_PERCENT_MAX {
        let text = "of the CPU time during the runs";
        notes.push(format!("the hypervisor took {steal_percent:.1} % {text}"));
    }
    let lost: u64 = used.iter().map(|run| run.counts.lost).sum();
    let due = used.iter().filter(|run| run.messages.measured.has_rate);
    let lateness = due.flat_map(|run| run.quantities.lateness.iter().copied()).max();
    if let Some(late_ns) = lateness.filter(|late_ns| *late_ns > LATE_NS_MAX) {
        let from = match kind {
            Kind::Stream | Kind::Replay => "the time a message was due",
            _ => "the actual sending",
        };
        let late_us = us(late_ns);
        let text = format!("{what} are measured from {from}");
        notes.push(format!("sent up to {late_us:.0} µs behind schedule; {text}"));
    }
    let saturated = used.iter().filter_map(|run| run.saturation.as_ref());
    notes.extend(saturated.take(1).map(|run| format!("saturated: {run}")));
    if lost > 0 {
        notes.push(format!("{lost} {loss}"));
    }
    notes.extend(used.iter().filter_map(|run| Some(run.drift?.remark(run.number()))));
    notes.extend(clock_figures::remarks(used, kind));
    notes.extend(used.iter().filter_map(|run| Some(link::remark(run.number(), &run.cut?))));
    notes.extend(load::remarks(used));
    notes.extend(link::too_much(lost, case.plan, case.scenario));
    notes
}

/// If a message is sent later than this, the cell gets a remark.
const LATE_NS_MAX: i64 = 1_000_000;
/// More stolen time than this gets a remark; one tick of the kernel in a short run is 2 %.
const STEAL_PERCENT_MAX: f64 = 5.0;
