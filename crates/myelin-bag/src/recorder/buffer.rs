//! What was taken and is not written yet: borrowed samples, between the thread that takes and the
//! one that writes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use myelin::Sample;

/// A sample that is to be written.
pub(super) struct Taken {
    /// The number of its topic.
    pub topic: usize,
    /// How many of its newest samples its publisher keeps for late subscribers.
    pub latched: u32,
    pub log_ns: u64,
    pub publish_ns: u64,
    pub sample: Sample<[u8]>,
}

/// A queue with a limit in bytes. The taker looks whether there is room before it takes.
pub(super) struct Buffer {
    queue: Mutex<Queue>,
    filled: Condvar,
    /// Of samples that are not written yet, those that the writer has already got included.
    bytes: AtomicU64,
    bytes_max: u64,
}

#[derive(Default)]
struct Queue {
    taken: Vec<Taken>,
    is_closed: bool,
}

impl Buffer {
    pub(super) fn new(bytes_max: u64) -> Buffer {
        Buffer {
            queue: Mutex::default(),
            filled: Condvar::new(),
            bytes: AtomicU64::new(0),
            bytes_max,
        }
    }

    /// Whether one more sample may be taken. The last one may go beyond the limit.
    pub(super) fn has_room(&self) -> bool {
        self.bytes() < self.bytes_max
    }

    pub(super) fn bytes(&self) -> u64 {
        // ORDER: Relaxed, here and below: a count, on which no other data depend.
        self.bytes.load(Ordering::Relaxed)
    }

    /// Counts a sample in that will be [pushed](Buffer::push).
    pub(super) fn reserve(&self, taken: &Taken) {
        self.bytes.fetch_add(bytes_of(taken), Ordering::Relaxed);
    }

    /// A sample is written or dropped.
    pub(super) fn release(&self, taken: &Taken) {
        self.bytes.fetch_sub(bytes_of(taken), Ordering::Relaxed);
    }

    /// Moves all of `taken` into the queue.
    pub(super) fn push(&self, taken: &mut Vec<Taken>) {
        if taken.is_empty() {
            return;
        }
        let mut queue = self.lock();
        if queue.taken.is_empty() {
            std::mem::swap(&mut queue.taken, taken);
        } else {
            queue.taken.append(taken);
        }
        drop(queue);
        self.filled.notify_one();
    }

    /// Nothing will be pushed any more.
    pub(super) fn close(&self) {
        self.lock().is_closed = true;
        self.filled.notify_one();
    }

    /// Moves the queue into `to`, which is empty. Waits for something, for at most `limit`. False
    /// if the queue is closed and was empty.
    pub(super) fn pop(&self, to: &mut Vec<Taken>, limit: Duration) -> bool {
        let is_idle = |queue: &mut Queue| queue.taken.is_empty() && !queue.is_closed;
        let waited = self.filled.wait_timeout_while(self.lock(), limit, is_idle);
        let (mut queue, _) = waited.unwrap_or_else(PoisonError::into_inner);
        std::mem::swap(&mut queue.taken, to);
        !(to.is_empty() && queue.is_closed)
    }

    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a sample costs: its slot, and its place in the queue.
fn bytes_of(taken: &Taken) -> u64 {
    (taken.sample.as_bytes().len() + size_of::<Taken>()) as u64
}
