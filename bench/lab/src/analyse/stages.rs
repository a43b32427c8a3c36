//! Where the time of a cell's messages goes: for all messages, and for those in the tail.

use super::distribution::Unsorted;
use super::messages::{Messages, STAGES};
use crate::summary::{Stage, StageMean, Stages};

/// Means of the parts over all used runs, and over their messages above the 99th percentile. `None`
/// if no message's time is divided. The percentile is that of stamped messages only, because
/// stamping takes time.
pub(super) fn of<'a, 's: 'a>(
    runs: impl Iterator<Item = &'a Messages<'s>> + Clone,
) -> Option<Stages> {
    let of_run =
        |run: &'a Messages<'s>| run.divided.iter().filter_map(|it| it.whole_ns(&run.measured));
    let latencies: Vec<Vec<i64>> = runs.clone().map(|run| of_run(run).collect()).collect();
    let [limit_ns] = Unsorted::of(latencies.iter()).supported([0.99]);
    let mut measured = [None; STAGES];
    let (mut all, mut slow) = (Sum::default(), Sum::default());
    for (run, latencies) in runs.zip(&latencies) {
        for (merged, part) in measured.iter_mut().zip(run.parts()?) {
            *merged = merged.or(part);
        }
        for (message, latency_ns) in run.divided.iter().zip(latencies) {
            let Some(parts) = message.parts(&run.measured) else { continue };
            all.add(&parts);
            if limit_ns.is_some_and(|limit_ns| *latency_ns > limit_ns) {
                slow.add(&parts);
            }
        }
    }
    let stages = Stage::ALL.into_iter().zip(measured);
    let parts = stages.filter_map(|(stage, is_before)| {
        Some(StageMean {
            stage,
            is_before: is_before?,
            mean_us: all.mean_us(stage)?,
            slow_us: slow.mean_us(stage),
        })
    });
    (all.messages > 0).then(|| Stages {
        messages: all.messages,
        slow_messages: slow.messages,
        parts: parts.collect(),
    })
}

#[derive(Default)]
struct Sum {
    messages: u64,
    ns: [i64; STAGES],
}

impl Sum {
    fn add(&mut self, parts: &[i64; STAGES]) {
        self.messages += 1;
        for (sum, part) in self.ns.iter_mut().zip(parts) {
            *sum += part;
        }
    }

    fn mean_us(&self, stage: Stage) -> Option<f64> {
        let sum = self.ns[stage as usize];
        (self.messages > 0).then(|| sum as f64 / self.messages as f64 / 1e3)
    }
}

#[cfg(test)]
mod tests {
    use myelin_bench_kit::samples::{LEAN, Record};

    use super::super::messages::Measured;
    use super::*;
    use crate::record::RunSamples;
    use crate::scenario::Kind;

    #[test]
    fn the_slow_group_contains_the_slowest_stamped_messages() {
        // Every 16th message is stamped, which makes it a fifth slower than all others.
        let ends = |id: u64| {
            let is_stamped = id.is_multiple_of(16);
            let latency_ns = if is_stamped { 1_200 } else { 900 } + id * 7919 % 1009 / 10;
            let (begin_ns, flags) = (1 + id * 2_000, if is_stamped { 0 } else { LEAN });
            let answered = Record {
                id,
                publish_entry_ns: begin_ns,
                take_return_ns: begin_ns + latency_ns,
                flags,
                ..Record::default()
            };
            (answered, Record { publish_return_ns: begin_ns, ..answered })
        };
        let (ping, pong) = (0..32_000).map(ends).unzip();
        let samples = RunSamples { ping, pong, ..RunSamples::default() };
        let run = Messages::of(&samples, Measured::new(Kind::Roundtrip, false, false));
        let stages = of([&run, &run].into_iter()).unwrap();
        assert_eq!(stages.messages, 4_000);
        assert!(stages.slow_messages <= 40, "1 % of them, not {}", stages.slow_messages);
        let part = stages.parts.iter().find(|part| part.stage == Stage::WakeAndTake).unwrap();
        assert!(part.slow_us > Some(part.mean_us));
    }
}
