//! The one source of atomics and locks: the hardware's, or the model checker's (`--cfg loom`). In
//! this crate's own tests, a thread's stores can be made to stop at any point: see `steps`.

pub mod counter;
#[cfg(all(test, not(loom)))]
pub(crate) mod steps;

#[cfg(loom)]
pub use loom::hint::spin_loop;
#[cfg(loom)]
pub use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
#[cfg(loom)]
pub use loom::sync::{Mutex, MutexGuard};
#[cfg(not(loom))]
pub use std::hint::spin_loop;
#[cfg(not(any(loom, test)))]
pub use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64};
#[cfg(not(loom))]
pub use std::sync::atomic::{Ordering, fence};
#[cfg(not(loom))]
pub use std::sync::{Mutex, MutexGuard};
#[cfg(all(test, not(loom)))]
pub use steps::{AtomicBool, AtomicU32, AtomicU64};

/// A relaxed load followed by an acquire fence: an acquire load that is sound on memory mapped
/// read-only, for which Rust allows only relaxed loads (`std::sync::atomic`, "Atomic accesses to
/// read-only memory").
#[inline(always)]
pub fn load_acquire(word: &AtomicU64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    value
}

/// Locks a mutex, whether or not a thread has panicked under it.
pub fn lock<M: Lock + ?Sized>(mutex: &M) -> M::Guard<'_> {
    mutex.lock_anyway()
}

/// A mutex of either kind: mutexes outside the models remain the system's.
pub trait Lock {
    /// Unlocks it when dropped.
    type Guard<'a>
    where
        Self: 'a;

    /// See [`lock`].
    fn lock_anyway(&self) -> Self::Guard<'_>;
}

impl<T: ?Sized> Lock for std::sync::Mutex<T> {
    type Guard<'a>
        = std::sync::MutexGuard<'a, T>
    where
        T: 'a;

    fn lock_anyway(&self) -> Self::Guard<'_> {
        self.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

#[cfg(loom)]
impl<T> Lock for Mutex<T> {
    type Guard<'a>
        = MutexGuard<'a, T>
    where
        T: 'a;

    fn lock_anyway(&self) -> Self::Guard<'_> {
        self.lock().unwrap_or_else(std::sync::PoisonError::into_inner)
    }
}

/// Steps of `docs/explanation/shared-memory.md` that keep two sides from overlooking each other. A
/// model can leave one out, to show that it is needed (`tests/model_loom`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    /// The magic of a head is written last.
    Magic,
    /// A connection says that its subscriber has not begun, before its publisher can look.
    NotBegun,
    /// The fence before a reliable publisher sleeps.
    P1,
    /// A cell is marked as being written.
    P2,
    /// A sample is written before it is counted.
    P5,
    /// A sample is counted before any subscriber is notified.
    P6,
    /// The fence between a sample and the look for sleepers.
    P7,
    /// The notification of a sleeper.
    P8,
    /// The count of a wake-up, which keeps a subscriber that is about to sleep from sleeping.
    Count,
    /// A publisher stays silent only after the kernel has confirmed that a thread was woken.
    Certain,
    /// The fence between a bit of the ready table and the look whether its set sleeps.
    Ready,
    /// A publisher that finds callbacks away notifies their threads.
    Away,
    /// A publisher calls with a sample only in its turn.
    Turn,
    /// The fence before a publisher looks for free slots.
    R1,
    /// Only slots that no subscriber can find any more are free.
    R3,
    /// A sample's cell says that its slot is used again.
    R4,
    /// The fence between that and the next write of the slot.
    Withdrawn,
    /// The fence between an observer's copy of a slot and its second look at the cell.
    O4,
    /// The fence between the announcement of the next sample and the look at its cell.
    T1,
    /// A sample is marked as held before its successor is announced.
    T6,
    /// An announcement comes after the reads of everything before it.
    T7,
    /// The fence between an announcement and the look whether the publisher waits for it.
    T8,
    /// No two sleeps have the same number.
    S1,
    /// The fence between "I sleep" and the last look.
    S2,
    /// The fence between a publisher's ready bit and the look whether its subscriber sleeps.
    B2,
    /// The fence between taking ready bits and the look at these publishers.
    B4,
    /// The last look before a sleep.
    S3,
    /// A sleeper on `published` says which value of it it sleeps on.
    Value,
    /// The fence between arming members of a wait set and the last look at them.
    Arm,
    /// The fence between a newcomer's entry in the list and the look at the publisher's progress.
    Attach,
    /// A hold ends after the reads of its sample.
    Release,
    /// The last clone of a sample ends after the reads of all other clones.
    Clones,
    /// A publisher releases a subscriber that has gone.
    Gone,
    /// A subscriber releases a publisher that has gone, once it has read all its samples.
    Finished,
}

/// The seq-cst fence of a step.
#[inline(always)]
pub fn fence_of(step: Step) {
    if is_taken(step) {
        full_fence();
    }
}

/// A seq-cst fence. On x86-64 a locked instruction is one (Intel SDM volume 3, 9.2.3.9; AMD APM
/// volume 2, 7.4.2). It is cheaper than the `mfence` that the compiler emits, which also orders
/// streaming stores.
#[inline(always)]
fn full_fence() {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    {
        let mut word = 0_u32;
        // SAFETY: the word belongs to this function, and its value does not change.
        unsafe {
            std::arch::asm!("lock or dword ptr [{0}], 0", in(reg) &raw mut word, options(nostack));
        }
    }
    #[cfg(not(all(target_arch = "x86_64", not(any(loom, miri)))))]
    fence(Ordering::SeqCst);
}

/// Release; relaxed in a model that leaves out the step.
#[inline(always)]
pub fn release_of(step: Step) -> Ordering {
    if is_taken(step) { Ordering::Release } else { Ordering::Relaxed }
}

/// Whether the caller goes on to affect others through the kernel: always, except after its death
/// in a test.
#[cfg(not(loom))]
#[inline(always)]
pub fn acts() -> bool {
    #[cfg(test)]
    return steps::step();
    #[cfg(not(test))]
    true
}

/// Whether a step is taken: always, except in a model's mutant.
#[inline(always)]
pub fn is_taken(step: Step) -> bool {
    #[cfg(any(loom, test))]
    return LEFT_OUT.get() != Some(step);
    #[cfg(not(any(loom, test)))]
    {
        let _ = step;
        true
    }
}

/// Leaves a step out of everything that this thread, with its models, runs from now on.
#[cfg(any(loom, test))]
pub fn leave_out(step: Option<Step>) {
    LEFT_OUT.set(step);
}

/// Up to so many publishers, a subscriber looks at all of them at each take. With more, it looks
/// only at those whose ready bit is set. A model may use another number.
pub(crate) fn few() -> usize {
    #[cfg(loom)]
    return FEW.get();
    #[cfg(not(loom))]
    4
}

/// Sets this number of publishers, for this thread's models.
#[cfg(loom)]
pub fn set_few(publishers: usize) {
    FEW.set(publishers);
}

#[cfg(any(loom, test))]
std::thread_local! {
    // loom runs all threads of a model in the thread that checks it.
    static LEFT_OUT: std::cell::Cell<Option<Step>> = const { std::cell::Cell::new(None) };
    #[cfg(loom)]
    static FEW: std::cell::Cell<usize> = const { std::cell::Cell::new(4) };
}
