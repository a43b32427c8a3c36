//! Finds slots without readers: R1 to R3 of `docs/explanation/shared-memory.md` section 5.

use crate::layout::{FINISHED, NOT_BEGUN, held_of, hold_word};
use crate::limits::SEQUENCE_MAX;
use crate::sync::{AtomicU64, Ordering, Step, is_taken, load_acquire, release_of};

/// A subscriber's announcements: the samples of this publisher that it reads.
#[derive(Clone, Copy, Debug)]
pub struct Announced<'a> {
    /// Its `reading`.
    pub reading: &'a AtomicU64,
    /// Its holds, for all connections.
    pub holds: &'a [AtomicU64],
    /// The number of its connection to this publisher.
    pub connection: u32,
    /// The first sample that it may read, until it has begun.
    pub start: u64,
}

impl Announced<'_> {
    /// Sequence of the next sample it reads; never more than the true value.
    #[inline]
    pub fn reading(&self) -> u64 {
        match load_acquire(self.reading) {
            NOT_BEGUN => self.start,
            reading => reading,
        }
    }
}

/// The announcements of all subscribers, collected once for a whole reclaim.
#[derive(Debug)]
pub struct Protected {
    /// Sequences that a subscriber reads or holds; sorted after [`collect`](Self::collect).
    sequences: Vec<u64>,
    /// The least `reading`; [`FINISHED`] if there is no subscriber.
    least_reading: u64,
}

impl Protected {
    /// Protects nothing yet; has room for `announcements` without allocating.
    pub fn with_capacity(announcements: usize) -> Self {
        Protected { sequences: Vec::with_capacity(announcements), least_reading: FINISHED }
    }

    /// Makes room for `announcements` from now on.
    pub fn reserve(&mut self, announcements: usize) {
        self.sequences.clear();
        self.sequences.reserve(announcements);
    }

    /// R2. The caller has executed a seq-cst fence since it last wrote a cell (R1).
    pub fn collect<'a>(&mut self, subscribers: impl Iterator<Item = Announced<'a>>) {
        self.sequences.clear();
        self.least_reading = FINISHED;
        for announced in subscribers {
            // ORDER: acquire, before the holds: a subscriber that has gone on from `s` to `s + 1`
            // stored its hold of `s` before. A NOT_BEGUN subscriber may begin at `start`.
            let reading = announced.reading();
            self.least_reading = self.least_reading.min(reading);
            self.sequences.push(reading);
            for hold in announced.holds {
                // ORDER: acquire pairs with the release store of a 0: the reads from the slot came
                // before we write to it again.
                let word = load_acquire(hold);
                if word != 0 && held_of(word) == announced.connection {
                    self.sequences.push((word & SEQUENCE_MAX).wrapping_sub(1));
                }
            }
        }
        self.sequences.sort_unstable();
    }

    /// Protects one more, after [`collect`](Self::collect).
    pub fn protect(&mut self, sequence: u64) {
        let at = self.sequences.partition_point(|protected| *protected < sequence);
        self.sequences.insert(at, sequence);
    }

    /// R3: whether the slot of sample `sequence` is free. `overwritten`: its cell holds a later
    /// sample; `kept`: it must stay for late subscribers.
    pub fn is_free(&self, sequence: u64, overwritten: bool, kept: bool) -> bool {
        let unreachable =
            overwritten || (!kept && self.least_reading > sequence) || !is_taken(Step::R3);
        unreachable && self.sequences.binary_search(&sequence).is_err()
    }
}

/// T6: announces that sample `sequence` of `connection` is held.
#[inline(always)]
pub fn hold(hold: &AtomicU64, connection: u32, sequence: u64) {
    if is_taken(Step::T6) {
        // ORDER: release, and before `go_on`: see `Protected::collect`.
        hold.store(hold_word(connection, sequence), Ordering::Release);
    }
}

/// Ends a hold.
#[inline(always)]
pub fn release(hold: &AtomicU64) {
    // ORDER: pairs with the acquire in `Protected::collect`.
    hold.store(0, release_of(Step::Release));
}

/// T7: announces the next sample. The caller executes a seq-cst fence before it looks for it (T1).
#[inline(always)]
pub fn go_on(reading: &AtomicU64, next: u64) {
    // ORDER: release: the holds and copies of earlier samples come before.
    reading.store(next, release_of(Step::T7));
}
