//! The figures of each topic of a replayed recording.

use myelin_bench_kit::trace::Trace;

use super::distribution::{Unsorted, add_lost};
use super::judged::JudgedRun;
use crate::scenario::Replay;
use crate::summary::TopicFigures;

/// One entry for each topic, from all messages of `runs`; none if there are no runs.
pub(super) fn topics(
    replay: &Replay,
    trace: &Trace,
    runs: &[&JudgedRun<'_>],
    subscribers: u32,
) -> Vec<TopicFigures> {
    if runs.is_empty() {
        return Vec::new();
    }
    let latencies: Vec<Vec<OfTopic>> =
        runs.iter().map(|run| by_topic(replay.topics.len(), trace, run, subscribers)).collect();
    let figures = |(topic, at): (&crate::scenario::RecordedTopic, usize)| {
        let own: Vec<&OfTopic> = latencies.iter().filter_map(|run| run.get(at)).collect();
        let sum = |of: fn(&OfTopic) -> u64| own.iter().map(|run| of(run)).sum();
        let (sent, received): (u64, u64) = (sum(|it| it.sent), sum(|it| it.received));
        let due = sent * u64::from(subscribers);
        TopicFigures {
            topic: topic.name.clone(),
            rate_hz: topic.messages as f64 / replay.seconds,
            payload_bytes: topic.payload_bytes,
            payload_bytes_max: topic.payload_bytes_max,
            sent,
            received,
            lost: due.saturating_sub(received),
            one_way_us: Unsorted::of(own.iter().map(|run| run.with_lost(subscribers)))
                .distribution(),
        }
    };
    replay.topics.iter().zip(0..).map(figures).collect()
}

/// What one run has of a topic.
#[derive(Clone, Default)]
struct OfTopic {
    sent: u64,
    received: u64,
    latencies_ns: Vec<i64>,
}

impl OfTopic {
    /// The latencies, with those of the lost messages.
    fn with_lost(&self, subscribers: u32) -> Vec<i64> {
        let lost = (self.sent * u64::from(subscribers)).saturating_sub(self.received);
        let mut latencies = self.latencies_ns.clone();
        add_lost(&mut latencies, lost, self.received);
        latencies
    }
}

fn by_topic(topics: usize, trace: &Trace, run: &JudgedRun<'_>, subscribers: u32) -> Vec<OfTopic> {
    let mut all = vec![OfTopic::default(); topics];
    let measured = trace.measured();
    for message in &run.messages.all {
        let sent = usize::try_from(message.ping.id).ok().and_then(|id| measured.get(id));
        let Some(own) = sent.and_then(|sent| all.get_mut(sent.topic as usize)) else {
            continue;
        };
        own.sent += u64::from(message.is_first);
        own.received += u64::from(message.pong.is_some());
        own.latencies_ns.extend(message.one_way(&run.messages.measured));
    }
    debug_assert!(all.iter().all(|it| it.received <= it.sent * u64::from(subscribers.max(1))));
    all
}
