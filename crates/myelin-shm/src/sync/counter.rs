//! Numbers that people and tools read, and on which nothing depends.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::os::segment::{Shared, Zeroed};

/// A number for people and tools in shared memory.
///
/// It is the hardware's atomic in models too, because nothing depends on its value. ORDER: Relaxed
/// everywhere, for the same reason.
#[derive(Debug, Default)]
#[repr(transparent)]
pub struct Counter(AtomicU64);

impl Counter {
    /// Its value.
    #[inline(always)]
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }

    /// Sets it.
    #[inline(always)]
    pub fn set(&self, value: u64) {
        self.0.store(value, Ordering::Relaxed);
    }

    /// Adds to a counter that only this thread writes: without a locked instruction.
    #[inline(always)]
    pub fn add_own(&self, more: u64) {
        self.set(self.get().wrapping_add(more));
    }

    /// Adds to a counter that several threads write.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }
}

impl Zeroed for Counter {
    #[cfg(loom)]
    fn zeroed() -> Self {
        Counter::default()
    }
}

// SAFETY: an atomic.
unsafe impl Shared for Counter {}
