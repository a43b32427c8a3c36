//! The one place where atomics and locks come from: the hardware's, or the model checker's (`--cfg loom`).

#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::{Mutex, MutexGuard};

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
pub fn lock<T: ?Sized>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
}
