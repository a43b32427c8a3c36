//! Where the time of a cell's messages goes: of all, and of those that make its tail.

use super::cell::JudgedRun;
use super::distribution::Sorted;
use super::messages::{Message, Messages, Part, STAGES};
use crate::summary::{Stage, StageMean, Stages};

/// Means of the parts over all runs that are used, and over those of their messages that are above
/// the 99th percentile. `None` where the time of no message is divided.
pub(super) fn of(runs: &[&JudgedRun]) -> Option<Stages> {
    let messages: Vec<&Messages> = runs.iter().map(|run| &run.messages).collect();
    of_messages(&messages)
}

/// Stamping takes time, so the percentile is that of the messages that were stamped, too.
fn of_messages(runs: &[&Messages]) -> Option<Stages> {
    let stamped = runs.iter().map(|run| {
        let stamped = run.all.iter().filter(|message| message.parts.is_some());
        stamped.map(|message| message.latency_ns).collect::<Vec<_>>()
    });
    let stamped: Vec<Vec<i64>> = stamped.collect();
    let limit_ns = Sorted::of_runs(stamped.iter().map(Vec::as_slice)).supported(0.99);
    let mut measured = [None; STAGES];
    let (mut all, mut slow) = (Sum::default(), Sum::default());
    for run in runs {
        let known = run.measured?;
        for (merged, part) in measured.iter_mut().zip(known) {
            *merged = merged.or(part);
        }
        for message in &run.all {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_slow_ones_are_the_slowest_of_those_that_were_stamped() {
        // Each 16th is stamped, which makes it slower by a fifth than any that is not.
        let message = |id: u64| {
            let is_stamped = id.is_multiple_of(16);
            let latency_ns = if is_stamped { 1_200 } else { 900 } + (id * 7919 % 1009 / 10) as i64;
            let mut parts = [0.0; STAGES];
            parts[Stage::Wake as usize] = latency_ns as f32;
            let (begin_ns, is_counted, cpus) = (id * 2_000, !is_stamped, [None; 3]);
            let parts = is_stamped.then_some(parts);
            Message { id, begin_ns, latency_ns, is_counted, parts, cpus }
        };
        let mut measured = [None; STAGES];
        measured[Stage::Wake as usize] = Some(Part::Within);
        let run = || Messages { all: (0..32_000).map(message).collect(), measured: Some(measured) };
        let stages = of_messages(&[&run(), &run()]).unwrap();
        assert_eq!(stages.messages, 4_000);
        assert!(stages.slow_messages <= 40, "1 % of them, not {}", stages.slow_messages);
        assert!(stages.parts[0].slow_us > Some(stages.parts[0].mean_us));
    }
}
