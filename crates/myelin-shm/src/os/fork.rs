//! What a child of `fork` must not do: speak as its parent. Handles remember the generation of the
//! process they were made in; a `pthread_atfork` handler raises it in the child and closes there
//! what must not outlive the parent.

use std::os::fd::RawFd;
use std::sync::Once;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};

/// The generation of this process; a handle made now belongs to it.
pub(crate) fn mark() -> u32 {
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| {
        // Miri knows no fork.
        if !cfg!(miri) {
            // SAFETY: `in_child` is async-signal-safe: atomics and `close` alone.
            unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
        }
    });
    GENERATION.load(Ordering::Relaxed)
}

/// Whether a handle with this mark was made before a fork, in the parent.
#[inline(always)]
pub(crate) fn is_forked(mark: u32) -> bool {
    // ORDER: Relaxed: the child has one thread, the one that forked.
    GENERATION.load(Ordering::Relaxed) != mark
}

/// Closes `fd` in a child. Returns false if the table is full (the descriptor then stays open there).
pub(crate) fn close_in_child(fd: RawFd) -> bool {
    let free = |entry: &&AtomicI32| {
        entry.compare_exchange(0, fd + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    TO_CLOSE.iter().find(free).is_some()
}

/// Takes `fd` from the list again, before it is closed in this process.
pub(crate) fn keep_in_child(fd: RawFd) {
    for entry in &TO_CLOSE {
        if entry.compare_exchange(fd + 1, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    for entry in &TO_CLOSE {
        let fd = entry.swap(0, Ordering::Relaxed) - 1;
        if fd >= 0 {
            // SAFETY: the descriptor is ours alone in this process; its owner's handle is dead
            // here and does not close it again.
            unsafe { libc::close(fd) };
        }
    }
}

static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Descriptor + 1, or 0.
static TO_CLOSE: [AtomicI32; 4096] = [const { AtomicI32::new(0) }; 4096];
