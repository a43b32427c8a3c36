//! The one place where atomics come from: the hardware's, or the model checker's (`--cfg loom`).

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

/// A relaxed load followed by an acquire fence: an acquire load that is sound on memory mapped
/// read-only, for which Rust allows relaxed loads alone (`std::sync::atomic`, "Atomic accesses to
/// read-only memory").
#[inline(always)]
pub fn load_acquire(word: &AtomicU64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    value
}

/// Locks a mutex, whether or not a thread has panicked under it.
#[cfg(not(loom))]
pub fn lock<T: ?Sized>(mutex: &std::sync::Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
