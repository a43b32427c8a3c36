//! The timers of a wait set.

use std::collections::BinaryHeap;

use crate::wait_set::Key;
use crate::waiting::wait::{self, NEVER};

#[derive(Default)]
pub(super) struct Timers {
    waiting: BinaryHeap<Timer>,
    /// Those that have been reported since the last `begin`, and when they were due.
    due: Vec<(Key, u64)>,
}

impl Timers {
    pub(super) fn add(&mut self, timer: Timer) {
        self.waiting.push(timer);
    }

    pub(super) fn remove(&mut self, key: Key) {
        self.waiting.retain(|timer| timer.key != key);
    }

    /// When the next one is due.
    #[inline]
    pub(super) fn next_ns(&self) -> u64 {
        self.waiting.peek().map_or(NEVER, |timer| timer.due_ns)
    }

    /// Whether one is due. The clock is read only if there are timers.
    #[inline]
    pub(super) fn are_due(&self) -> bool {
        self.waiting.peek().is_some_and(|timer| timer.due_ns <= wait::now_ns())
    }

    /// A new wait begins: forgets what was due.
    #[inline]
    pub(super) fn begin(&mut self) {
        self.due.clear();
    }

    /// Adds those that are due to `ready`, and sets them again.
    #[inline]
    pub(super) fn look(&mut self, ready: &mut Vec<Key>) {
        if !self.waiting.is_empty() {
            self.take_due(ready);
        }
    }

    fn take_due(&mut self, ready: &mut Vec<Key>) {
        let now_ns = wait::now_ns();
        while let Some(mut timer) = self.waiting.peek_mut()
            && timer.due_ns <= now_ns
        {
            self.due.push((timer.key, timer.due_ns));
            let periods = (now_ns - timer.due_ns) / timer.period_ns + 1;
            let due_ns = timer.due_ns.saturating_add(periods.saturating_mul(timer.period_ns));
            timer.due_ns = due_ns;
            ready.push(timer.key);
        }
    }

    /// When a reported timer was due.
    pub(super) fn due_ns(&self, key: Key) -> Option<u64> {
        self.due.iter().find(|(timer, _)| *timer == key).map(|(_, due_ns)| *due_ns)
    }
}

/// The timer that is due next is the greatest.
#[derive(PartialEq, Eq)]
pub(super) struct Timer {
    pub(super) due_ns: u64,
    pub(super) period_ns: u64,
    pub(super) key: Key,
}

impl Ord for Timer {
    fn cmp(&self, other: &Timer) -> std::cmp::Ordering {
        (other.due_ns, other.key).cmp(&(self.due_ns, self.key))
    }
}

impl PartialOrd for Timer {
    fn partial_cmp(&self, other: &Timer) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}
