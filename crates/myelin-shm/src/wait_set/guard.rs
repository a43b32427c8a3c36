//! A guard condition: a member of a wait set that any thread makes ready.

use std::sync::Arc;

use crate::sync::{AtomicBool, Ordering};
use crate::wait_set::Key;
use crate::waiting::wake_table::ReadyBit;

/// Ends a wait of its set: the wait reports the guard condition's key. Clones are the same guard. Any thread
/// may trigger it, and a signal handler. It ends with its last clone.
#[derive(Clone)]
pub struct GuardCondition {
    pub(super) key: Key,
    pub(super) triggered: Arc<Triggered>,
}

impl GuardCondition {
    /// The key that the set reports.
    pub fn key(&self) -> Key {
        self.key
    }

    /// Ends the running wait, or else the next one. Neither waits nor allocates.
    pub fn trigger(&self) {
        if self.triggered.ready_bit.table().is_forked() {
            return;
        }
        // ORDER: Release pairs with the acquire in `take_news`: the woken thread sees everything
        // written before.
        self.triggered.is_set.store(true, Ordering::Release);
        self.triggered.ready_bit.notify(self.triggered.set as usize);
    }

    /// Whether it was triggered since the last wait that has reported it.
    #[inline]
    pub fn is_triggered(&self) -> bool {
        // ORDER: Acquire pairs with the release in `trigger`.
        self.triggered.is_set.load(Ordering::Acquire)
    }

    /// Ends its triggered state.
    pub fn reset(&self) {
        self.triggered.is_set.store(false, Ordering::Relaxed);
    }
}

impl std::fmt::Debug for GuardCondition {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("GuardCondition").field("key", &self.key).finish_non_exhaustive()
    }
}

/// What the guard condition and its set share.
pub(super) struct Triggered {
    pub(super) ready_bit: Arc<ReadyBit>,
    pub(super) set: u32,
    /// Triggered since the last wait that has reported it.
    pub(super) is_set: AtomicBool,
    /// Whether waits report it until it is [reset](GuardCondition::reset); otherwise once.
    pub(super) is_kept: bool,
}

impl Triggered {
    /// Whether the set has to report it; a guard condition that is not kept is reported once.
    pub(super) fn take_news(&self) -> bool {
        // ORDER: Relaxed: the thread that reported it had written it before. Acquire pairs with the
        // release in `trigger`.
        self.is_set.load(Ordering::Acquire)
            && (self.is_kept || self.is_set.swap(false, Ordering::Acquire))
    }
}

impl Drop for Triggered {
    fn drop(&mut self) {
        if !self.ready_bit.table().is_forked() {
            self.ready_bit.notify(self.set as usize); // the set then releases it
        }
    }
}
