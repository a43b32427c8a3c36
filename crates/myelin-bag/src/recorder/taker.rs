//! Takes the samples of all topics, by polling: a subscriber that does not wait costs its publishers
//! no wake-up. Between two looks it sleeps, for a part of the time in which the fastest publisher
//! fills its ring.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::sync::mpsc::{Receiver, Sender};
use std::time::{Duration, Instant};

use myelin::{EndpointId, Error, Node, Sample, Subscriber};

use super::buffer::Taken;
use super::clock::Offset;
use super::status::{End, Shared, TopicState};

/// Takes from all sources until the recording ends, and then what is left.
pub(super) struct Taker {
    node: Node,
    shared: Arc<Shared>,
    sources: Vec<Source>,
    found: Receiver<Source>,
    /// Makes the follower look. Without it, the follower ends.
    asked: Option<Sender<()>>,
    graph_changes: u64,
    interval: Duration,
    taken: Vec<Taken>,
}

/// A subscriber, and where its samples go.
pub(super) struct Source {
    number: usize,
    state: Arc<TopicState>,
    subscriber: Subscriber<[u8]>,
    publishers: BTreeMap<EndpointId, Publisher>,
    /// The one of the last sample.
    last: Option<(EndpointId, Publisher)>,
    /// How many publishers there were when they were counted last.
    matched: u64,
    /// What publishers of other hosts keep for late subscribers.
    remote_latched: u32,
    /// When the recording has begun, by the date.
    begin_ns: u64,
    /// Losses that are counted already.
    lost: u64,
    /// Whether the buffer was full since it was read to the end. Then its losses are the recorder's.
    was_blocked: bool,
    rate: Option<RateLimit>,
}

#[derive(Clone, Copy)]
struct Publisher {
    latched: u32,
    depth: u32,
}

/// Leaves out messages that come faster.
struct RateLimit {
    period_ns: u64,
    next_ns: u64,
}

/// What a look at a source has found.
#[derive(Default)]
struct Found {
    /// The part of a ring that was full.
    filling: f64,
    was_full: bool,
}

impl Taker {
    pub(super) fn new(
        node: Node,
        shared: Arc<Shared>,
        sources: Vec<Source>,
        found: Receiver<Source>,
        (asked, graph_changes): (Sender<()>, u64),
    ) -> Taker {
        let interval = INTERVAL_MAX / 4;
        let asked = Some(asked);
        Taker { node, shared, sources, found, asked, graph_changes, interval, taken: Vec::new() }
    }

    /// Until the recording ends.
    pub(super) fn run(mut self) {
        let mut counted = Instant::now();
        while !self.shared.is_ending() {
            self.ask_follower();
            self.sources.extend(self.found.try_iter());
            if counted.elapsed() >= COUNT_INTERVAL {
                let node = &self.node;
                self.sources.iter_mut().for_each(|it| it.count_publishers(node));
                counted = Instant::now();
            }
            self.look();
            std::thread::park_timeout(self.interval);
        }
        // A subscriber that publishers know already may not have come from the follower yet.
        self.asked = None;
        self.sources.extend(self.found.iter());
        self.drain();
        for source in &mut self.sources {
            source.count_losses();
        }
        self.shared.buffer.close();
    }

    fn ask_follower(&mut self) {
        match self.node.graph_changes() {
            Ok(changes) if changes != self.graph_changes => {
                self.graph_changes = changes;
                if let Some(asked) = &self.asked {
                    // Without a follower, no topics are found any more.
                    let _ = asked.send(());
                }
            }
            Ok(_) => {}
            Err(error) => self.shared.end(End::Failed(error.to_string())),
        }
    }

    fn look(&mut self) {
        let offset = Offset::now();
        let mut filling = 0.0_f64;
        for source in &mut self.sources {
            let found = source.take(&self.node, &self.shared, offset, &mut self.taken, LOOK_MAX);
            filling = filling.max(found.filling);
            if self.taken.len() >= PUSH_MIN {
                self.shared.buffer.push(&mut self.taken);
            }
        }
        self.shared.buffer.push(&mut self.taken);
        self.interval = next_interval(self.interval, filling);
    }

    /// Takes what was published before. Publishers that go on do not delay the end: no source is
    /// read for longer than its ring is.
    fn drain(&mut self) {
        let begin = Instant::now();
        let offset = Offset::now();
        for source in &mut self.sources {
            let mut left = LOOK_MAX;
            while left > 0 {
                let before = self.taken.len();
                let found = source.take(&self.node, &self.shared, offset, &mut self.taken, left);
                left -= (self.taken.len() - before).min(left);
                self.shared.buffer.push(&mut self.taken);
                // A sample in memory that a thread of the node has yet to map.
                let is_coming = begin.elapsed() < MEMORY_LIMIT && source.subscriber.has_unread();
                if !found.was_full && !is_coming {
                    break;
                }
                if found.was_full || is_coming {
                    std::thread::sleep(INTERVAL_MIN);
                }
            }
        }
    }
}

impl Source {
    pub(super) fn new(
        number: usize,
        state: Arc<TopicState>,
        subscriber: Subscriber<[u8]>,
        remote_latched: u32,
        begin_ns: u64,
        max_rate_hz: Option<f64>,
    ) -> Source {
        let rate = max_rate_hz.map(|hz| RateLimit { period_ns: (1e9 / hz) as u64, next_ns: 0 });
        Source {
            number,
            state,
            subscriber,
            publishers: BTreeMap::new(),
            last: None,
            matched: 0,
            remote_latched,
            begin_ns,
            lost: 0,
            was_blocked: false,
            rate,
        }
    }

    /// Takes what is there, but not more than so many samples.
    fn take(
        &mut self,
        node: &Node,
        shared: &Shared,
        offset: Offset,
        to: &mut Vec<Taken>,
        samples_max: usize,
    ) -> Found {
        let mut found = Found::default();
        let mut count = 0_u64;
        for _ in 0..samples_max {
            if !shared.buffer.has_room() {
                (self.was_blocked, found.was_full) = (true, true);
                break;
            }
            match self.subscriber.take() {
                Ok(Some(sample)) => {
                    count += 1;
                    if sample.lost_before() > 0 {
                        self.count_losses();
                        found.filling = 1.0;
                    }
                    let publisher = self.publisher(&sample, node);
                    self.add(sample, publisher.latched, shared, offset, to);
                }
                Ok(None) => {
                    self.was_blocked = false;
                    break;
                }
                Err(Error::TooManyHeld { .. }) => {
                    (self.was_blocked, found.was_full) = (true, true);
                    break;
                }
                Err(error) => {
                    shared.report(format!("{}: {error}", self.state.topic.name));
                    break;
                }
            }
        }
        if let Some((_, publisher)) = self.last.filter(|_| count > 0) {
            let rings = u64::from(publisher.depth.max(1)) * self.matched.max(1);
            found.filling = found.filling.max(count as f64 / rings as f64);
        }
        found
    }

    /// Counts publishers, which are not looked at with each sample.
    fn count_publishers(&mut self, node: &Node) {
        self.matched = self.subscriber.matched() as u64;
        self.state.publishers.store(self.matched, Ordering::Relaxed);
        if self.publishers.len() > 2 * self.matched as usize + PUBLISHERS_KEPT {
            // One that has gone gives no more samples than those in its ring.
            self.publishers.retain(|id, _| node.endpoint(*id).is_ok_and(|it| it.is_some()));
        }
    }

    /// Counts the samples that its publishers have overwritten, also after the last one.
    fn count_losses(&mut self) {
        let lost = self.subscriber.lost();
        let cause =
            if self.was_blocked { &self.state.recorder } else { &self.state.publisher_ring };
        cause.fetch_add(lost - self.lost, Ordering::Relaxed);
        self.lost = lost;
    }

    /// The settings of a sample's publisher, asked for once.
    fn publisher(&mut self, sample: &Sample<[u8]>, node: &Node) -> Publisher {
        let id = sample.publisher();
        if let Some((_, publisher)) = self.last.filter(|(last, _)| *last == id) {
            return publisher;
        }
        let known = self.publishers.get(&id).copied();
        let publisher = known.unwrap_or_else(|| self.meet(sample, node));
        self.publishers.insert(id, publisher);
        self.last = Some((id, publisher));
        publisher
    }

    /// The first sample of a publisher. If that came after the recording had begun, all of its samples
    /// count, also those that it published before the recorder had found it.
    fn meet(&self, sample: &Sample<[u8]>, node: &Node) -> Publisher {
        // One of another host has an id that only this subscriber knows.
        let Some(found) = node.endpoint(sample.publisher()).ok().flatten() else {
            return Publisher { latched: self.remote_latched, depth: REMOTE_DEPTH };
        };
        if found.created_ns >= self.begin_ns {
            let before = sample.sequence().saturating_sub(sample.lost_before());
            self.state.publisher_ring.fetch_add(before, Ordering::Relaxed);
        }
        Publisher { latched: found.transient_local, depth: found.depth }
    }

    fn add(
        &mut self,
        sample: Sample<[u8]>,
        latched: u32,
        shared: &Shared,
        offset: Offset,
        to: &mut Vec<Taken>,
    ) {
        let now_ns = myelin::now();
        // Its publisher may be wrong: nothing is published later than it is taken.
        let publish_ns = sample.published_at().unwrap_or(now_ns).min(now_ns);
        if self.rate.as_mut().is_some_and(|rate| !rate.lets_through(publish_ns)) {
            self.state.skipped.fetch_add(1, Ordering::Relaxed);
            return;
        }
        let [log_ns, publish_ns] = [now_ns, publish_ns].map(|at| offset.date_ns(at));
        let taken = Taken { topic: self.number, latched, log_ns, publish_ns, sample };
        shared.buffer.reserve(&taken);
        to.push(taken);
    }
}

impl RateLimit {
    /// Whether the message of this time is recorded. On average there are as many as the limit says.
    fn lets_through(&mut self, publish_ns: u64) -> bool {
        if publish_ns < self.next_ns {
            return false;
        }
        let in_time = self.next_ns.saturating_add(self.period_ns);
        self.next_ns =
            if in_time > publish_ns { in_time } else { publish_ns.saturating_add(self.period_ns) };
        true
    }
}

/// The time until the next look. A look is to find rings less than half full: it becomes short at
/// once, and long again slowly.
fn next_interval(before: Duration, filling: f64) -> Duration {
    let next = match filling {
        0.5.. => before / 2,
        0.2..0.5 => before,
        _ => before + before / 8,
    };
    next.clamp(INTERVAL_MIN, INTERVAL_MAX)
}

const INTERVAL_MIN: Duration = Duration::from_micros(250);
const INTERVAL_MAX: Duration = Duration::from_millis(4);
const COUNT_INTERVAL: Duration = Duration::from_millis(500);
/// Of one source in one look: more than any ring has.
const LOOK_MAX: usize = 65_536;
/// So many samples are handed over before the look ends.
const PUSH_MIN: usize = 256;
/// At the end, how long the node has to map memory that is on its way.
const MEMORY_LIMIT: Duration = Duration::from_millis(200);
/// Settings of publishers that have gone are kept for a while.
const PUBLISHERS_KEPT: usize = 64;
/// Of a ring in which samples of another host wait here.
const REMOTE_DEPTH: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_limit_holds_on_average() {
        let count = |period_ns: u64, max_hz: f64| {
            let mut rate = RateLimit { period_ns: (1e9 / max_hz) as u64, next_ns: 0 };
            let times = (0..1_000_000_000 / period_ns).map(|it| 5_000_000_000 + it * period_ns);
            times.filter(|at| rate.lets_through(*at)).count()
        };
        assert_eq!(count(1_000_000, 10.0), 10);
        assert_eq!(count(10_000_000, 30.0), 30);
        assert_eq!(count(10_000_000, 1000.0), 100, "slower than the limit");
    }

    #[test]
    fn looks_become_frequent_at_once_and_rare_slowly() {
        assert_eq!(next_interval(INTERVAL_MAX, 1.0), INTERVAL_MAX / 2);
        assert_eq!(next_interval(INTERVAL_MIN, 1.0), INTERVAL_MIN);
        assert_eq!(next_interval(INTERVAL_MAX, 0.3), INTERVAL_MAX);
        assert_eq!(next_interval(INTERVAL_MAX / 2, 0.0), INTERVAL_MAX / 2 + INTERVAL_MAX / 16);
        assert_eq!(next_interval(INTERVAL_MAX, 0.0), INTERVAL_MAX);
    }
}
