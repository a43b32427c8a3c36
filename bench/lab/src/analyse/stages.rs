//! Where the time of a cell's messages goes: of all, and of those that make its tail.

use super::cell::JudgedRun;
use super::distribution::Sorted;
use super::messages::{Message, Part, STAGES};
use crate::summary::{Stage, StageMean, Stages};

/// Means of the parts over all runs that are used, and over their messages above the 99th
/// percentile of `latency`. `None` where the time of no message is divided.
pub(super) fn of(runs: &[&JudgedRun], latency: &Sorted) -> Option<Stages> {
    let limit_ns = latency.supported(0.99);
    let mut measured = [None; STAGES];
    let (mut all, mut slow) = (Sum::default(), Sum::default());
    for run in runs {
        let known = run.messages.measured?;
        for (merged, part) in measured.iter_mut().zip(known) {
            *merged = merged.or(part);
        }
        for message in &run.messages.all {
            all.add(message);
            if limit_ns.is_some_and(|limit_ns| message.latency_ns > limit_ns) {
                slow.add(message);
            }
        }
    }
    let stages = Stage::ALL.into_iter().zip(measured);
    let parts = stages.filter_map(|(stage, part)| {
        Some(StageMean {
            stage,
            is_before: part? == Part::Before,
            mean_us: all.mean_us(stage)?,
            slow_us: slow.mean_us(stage),
        })
    });
    let parts: Vec<StageMean> = parts.collect();
    (all.messages > 0).then_some(Stages {
        messages: all.messages,
        slow_messages: slow.messages,
        parts,
    })
}

#[derive(Default)]
struct Sum {
    messages: u64,
    ns: [f64; STAGES],
}

impl Sum {
    fn add(&mut self, message: &Message) {
        let Some(parts) = &message.parts else { return };
        self.messages += 1;
        for (sum, part) in self.ns.iter_mut().zip(parts) {
            *sum += f64::from(*part);
        }
    }

    fn mean_us(&self, stage: Stage) -> Option<f64> {
        let sum = self.ns[stage as usize];
        (self.messages > 0).then(|| sum / self.messages as f64 / 1e3)
    }
}
