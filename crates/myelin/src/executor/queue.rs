//! The next calls of an executor.

use std::cmp::Ordering;
use std::collections::{BinaryHeap, VecDeque};

use super::Order;
use crate::wait_set::{Key, Paused};

/// A function that is due.
pub(super) struct Job {
    pub(super) key: Key,
    /// The place of its function, if the function has not been removed meanwhile.
    pub(super) place: usize,
    /// Since when, by the monotonic clock in ns. Used if the oldest is called first.
    pub(super) since_ns: u64,
    /// Keeps the set from reporting its subscriber, while other threads look at the set.
    pub(super) paused: Option<Paused>,
}

/// The functions that are due, in the order in which they are called.
#[derive(Default)]
pub(super) struct Queue {
    order: Order,
    /// For turns: the rest of this round.
    round: VecDeque<Job>,
    /// Functions called in this round that are due again in the next.
    again: VecDeque<Job>,
    /// Oldest first: all that are due.
    by_age: BinaryHeap<Aged>,
    /// Counts the jobs added to `by_age`: of two with the same age, the first comes first.
    count: u64,
}

struct Aged {
    job: Job,
    number: u64,
}

impl Aged {
    fn age(&self) -> (u64, u64) {
        (self.job.since_ns, self.number)
    }
}

impl Ord for Aged {
    /// The oldest is the greatest.
    fn cmp(&self, other: &Aged) -> Ordering {
        other.age().cmp(&self.age())
    }
}

impl PartialOrd for Aged {
    fn partial_cmp(&self, other: &Aged) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Aged {
    fn eq(&self, other: &Aged) -> bool {
        self.age() == other.age()
    }
}

impl Eq for Aged {}

impl Queue {
    pub(super) fn order(&self) -> Order {
        self.order
    }

    #[inline]
    pub(super) fn is_by_age(&self) -> bool {
        self.order == Order::OldestFirst
    }

    /// Sets the order of an empty queue.
    pub(super) fn set_order(&mut self, order: Order) {
        self.order = order;
    }

    /// Whether this round is over.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.round.is_empty() && self.by_age.is_empty()
    }

    /// Whether functions are due again after this round.
    #[inline]
    pub(super) fn has_again(&self) -> bool {
        !self.again.is_empty()
    }

    pub(super) fn is_again(&self, key: Key) -> bool {
        self.again.iter().any(|job| job.key == key)
    }

    /// Whether a function that has been due again since then comes before all others.
    #[inline]
    pub(super) fn is_before_all(&self, since_ns: u64) -> bool {
        let oldest = self.by_age.peek();
        self.round.is_empty()
            && self.again.is_empty()
            && oldest.is_none_or(|oldest| since_ns < oldest.job.since_ns)
    }

    #[inline]
    pub(super) fn pop(&mut self) -> Option<Job> {
        match self.order {
            Order::RoundRobin => self.round.pop_front(),
            Order::OldestFirst => self.by_age.pop().map(|oldest| oldest.job),
        }
    }

    /// Adds a job that is due in this round, after the others.
    pub(super) fn push(&mut self, job: Job) {
        match self.order {
            Order::RoundRobin => self.round.push_back(job),
            Order::OldestFirst => {
                self.count += 1;
                self.by_age.push(Aged { job, number: self.count });
            }
        }
    }

    /// Adds a timer that is due in this round, before the others; if ordered by age, at its age.
    pub(super) fn push_timer(&mut self, job: Job) {
        match self.order {
            Order::RoundRobin => self.round.push_front(job),
            Order::OldestFirst => self.push(job),
        }
    }

    /// Adds a job that is due in the next round.
    #[inline]
    pub(super) fn push_again(&mut self, job: Job) {
        self.again.push_back(job);
    }

    /// Begins the next round with the functions that are due again.
    pub(super) fn next_round(&mut self) {
        if self.round.is_empty() && self.order == Order::RoundRobin {
            std::mem::swap(&mut self.round, &mut self.again);
        } else {
            let again = std::mem::take(&mut self.again);
            again.into_iter().for_each(|job| self.push(job));
        }
    }

    /// Drops the functions that are due again: the set reports them.
    pub(super) fn clear_again(&mut self) {
        self.again.clear();
    }

    /// Lets the set report all of them.
    pub(super) fn resume_all(&mut self) {
        let Queue { round, again, .. } = self;
        round.iter_mut().chain(again).for_each(|job| job.paused = None);
        let by_age = std::mem::take(&mut self.by_age).into_iter();
        self.by_age =
            by_age.map(|aged| Aged { job: Job { paused: None, ..aged.job }, ..aged }).collect();
    }

    /// Takes all jobs, the next one first.
    pub(super) fn take_all(&mut self) -> Vec<Job> {
        let by_age = std::mem::take(&mut self.by_age).into_sorted_vec();
        let by_age = by_age.into_iter().rev().map(|aged| aged.job);
        self.round.drain(..).chain(self.again.drain(..)).chain(by_age).collect()
    }
}
