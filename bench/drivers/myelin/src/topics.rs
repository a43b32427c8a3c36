//! The ends of a stream of several topics.

use std::collections::VecDeque;

use myelin::{Node, Wait, WaitSet};
use myelin_bench_kit::{Error, Publisher, Subscriber};

use crate::link::{LoanPublisher, Taker, left, said};

/// A publisher for each topic.
pub struct PublishedTopics {
    publishers: Vec<LoanPublisher>,
    selected: usize,
}

impl PublishedTopics {
    /// Publisher n belongs to topic n.
    pub fn new(publishers: Vec<LoanPublisher>) -> Self {
        PublishedTopics { publishers, selected: 0 }
    }
}

impl Publisher for PublishedTopics {
    fn has_loans(&self) -> bool {
        self.publishers[self.selected].has_loans()
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        self.publishers[self.selected].loan(len)
    }

    #[inline]
    fn publish_loan(&mut self) -> Result<(), Error> {
        self.publishers[self.selected].publish_loan()
    }

    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.publishers[self.selected].publish(message)
    }

    #[inline]
    fn select(&mut self, topic: u32) {
        self.selected = topic as usize;
    }
}

/// Waits for all topics in one wait set.
pub struct TakenTopics {
    takers: Vec<Taker>,
    set: WaitSet,
    /// Topics that may have samples.
    pending: VecDeque<usize>,
    /// The topic of the last take.
    at: usize,
}

impl TakenTopics {
    /// Subscribers of all topics, one taker for each.
    pub fn new(node: &Node, takers: Vec<Taker>, wait: Wait) -> Result<Self, Error> {
        let set = node.wait_set().map_err(said)?;
        set.set_wait(wait);
        for taker in &takers {
            set.add(taker.subscriber()).map_err(said)?;
        }
        let pending = VecDeque::with_capacity(takers.len());
        Ok(TakenTopics { takers, set, pending, at: 0 })
    }
}

impl Subscriber for TakenTopics {
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        if self.pending.is_empty() {
            let ready = self.set.wait(left(until_ns)).map_err(said)?;
            // Keys are in the order of adding, so key n is topic n.
            self.pending.extend(ready.iter().map(|key| key.index()));
        }
        Ok(Some(!self.pending.is_empty()))
    }

    #[inline]
    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        while let Some(topic) = self.pending.pop_front() {
            if self.takers[topic].take_and_hold()? {
                self.pending.push_back(topic);
                self.at = topic;
                return Ok(self.takers[topic].held());
            }
        }
        Ok(None)
    }

    #[inline]
    fn release(&mut self) {
        self.takers[self.at].release();
    }
}
