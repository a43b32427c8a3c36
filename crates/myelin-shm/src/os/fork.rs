//! Keeps a child of `fork` from speaking for its parent. Handles remember the generation of the
//! process they were made in; a `pthread_atfork` handler raises it in the child and closes there
//! the descriptors that must not outlive the parent.
//!
//! Shared memory stays the parent's. In its place the child has zeros of its own: a loan or a
//! sample that it inherits leads to memory of no other process, and to no later mapping of the
//! child.

use std::cell::UnsafeCell;
use std::collections::BTreeMap;
use std::os::fd::RawFd;
use std::ptr;
use std::sync::atomic::{AtomicI32, AtomicU32, Ordering};
use std::sync::{Mutex, MutexGuard, Once, PoisonError};

/// The generation of this process; a handle made now belongs to it.
pub(crate) fn mark() -> u32 {
    static REGISTER: Once = Once::new();
    REGISTER.call_once(|| {
        // Miri does not support fork.
        if !cfg!(miri) {
            // SAFETY: `in_child` is async-signal-safe except for the lock, which `before` has
            // taken: only atomics, `close` and `mmap`.
            unsafe { libc::pthread_atfork(Some(before), Some(after), Some(in_child)) };
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

/// Closes `fd` in a child. False if the table is full (the descriptor then stays open there).
pub(crate) fn close_in_child(fd: RawFd) -> bool {
    let free = |entry: &&AtomicI32| {
        entry.compare_exchange(0, fd + 1, Ordering::AcqRel, Ordering::Relaxed).is_ok()
    };
    TO_CLOSE.iter().find(free).is_some()
}

/// Removes `fd` from the list, before it is closed in this process.
pub(crate) fn keep_in_child(fd: RawFd) {
    for entry in &TO_CLOSE {
        if entry.compare_exchange(fd + 1, 0, Ordering::AcqRel, Ordering::Relaxed).is_ok() {
            return;
        }
    }
}

/// Adds a mapping that a child does not inherit: the child gets zeros in its place.
#[cfg_attr(any(miri, loom), allow(dead_code, reason = "segments are of the heap there"))]
pub(crate) fn not_inherited(address: usize, bytes: usize) {
    mappings().insert(address, Mapping { bytes, is_zeros: false });
}

/// Removes a mapping that is no longer needed. Whether it exists: in a child the zeros, unless they
/// could not be made.
#[cfg_attr(any(miri, loom), allow(dead_code, reason = "as above"))]
pub(crate) fn is_to_be_unmapped(address: usize, mark: u32) -> bool {
    let known = mappings().remove(&address);
    !is_forked(mark) || known.is_some_and(|mapping| mapping.is_zeros)
}

/// A mapping that a child does not inherit.
struct Mapping {
    bytes: usize,
    /// Whether, in a child, there are zeros in its place.
    is_zeros: bool,
}

/// By address.
type Mappings = BTreeMap<usize, Mapping>;

fn mappings() -> MutexGuard<'static, Mappings> {
    MAPPINGS.lock().unwrap_or_else(PoisonError::into_inner)
}

/// No other thread may change the mappings while this one forks.
extern "C" fn before() {
    let guard = mappings();
    // SAFETY: only the holder of the lock uses this.
    unsafe { *HELD.0.get() = Some(guard) };
}

extern "C" fn after() {
    // SAFETY: `before` has taken the lock in this thread.
    drop(unsafe { (*HELD.0.get()).take() });
}

/// Maps private zeros, if nothing is there: a new mapping of another library's handler stays.
/// Whether it worked.
fn put_zeros(address: usize, bytes: usize) -> bool {
    // MAP_FIXED_NOREPLACE replaces nothing; kernels before 4.17 take the address as a hint.
    let flags =
        libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE | libc::MAP_FIXED_NOREPLACE;
    // Without overcommit there may be no memory for so many zeros: then the addresses are reserved
    // without access.
    for protection in [libc::PROT_READ | libc::PROT_WRITE, libc::PROT_NONE] {
        let wanted = ptr::without_provenance_mut(address);
        // SAFETY: no existing mapping is touched.
        let got = unsafe { libc::mmap(wanted, bytes, protection, flags, -1, 0) };
        if got == wanted {
            return true;
        }
        if got != libc::MAP_FAILED {
            // SAFETY: just mapped, and not used.
            unsafe { libc::munmap(got, bytes) };
            return false;
        }
    }
    false
}

extern "C" fn in_child() {
    GENERATION.fetch_add(1, Ordering::Relaxed);
    // SAFETY: as in `after`.
    let held = unsafe { (*HELD.0.get()).take() };
    if let Some(mut mappings) = held {
        for (address, mapping) in &mut *mappings {
            // In a child of a child they exist already.
            mapping.is_zeros |= put_zeros(*address, mapping.bytes);
        }
    }
    for entry in &TO_CLOSE {
        let fd = entry.swap(0, Ordering::Relaxed) - 1;
        if fd >= 0 {
            // SAFETY: the descriptor is ours alone in this process; its owner's handle is dead here
            // and does not close it again.
            unsafe { libc::close(fd) };
        }
    }
}

static MAPPINGS: Mutex<Mappings> = Mutex::new(BTreeMap::new());
/// The lock guard while a thread forks.
static HELD: Held = Held(UnsafeCell::new(None));

struct Held(UnsafeCell<Option<MutexGuard<'static, Mappings>>>);

// SAFETY: only the thread that holds the lock uses it.
unsafe impl Sync for Held {}

static GENERATION: AtomicU32 = AtomicU32::new(0);
/// Descriptor + 1, or 0.
static TO_CLOSE: [AtomicI32; 4096] = [const { AtomicI32::new(0) }; 4096];
