//! The one place where atomics and locks come from: the hardware's, or the model checker's (`--cfg loom`).
//! In this crate's own tests, what a thread stores can be made to end: see `steps`.

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
/// read-only, for which Rust allows relaxed loads alone (`std::sync::atomic`, "Atomic accesses to
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

/// A mutex of either kind: those that no model runs stay the system's.
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

/// Steps of `docs/explanation/shared-memory.md` that keep two sides from overlooking each other. A model can leave
/// one out, to see that the others do not do without it (`tests/model_loom`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u32)]
pub enum Step {
    /// That a head's magic comes last.
    Magic,
    /// That a connection says that its subscriber has not begun, before its publisher is to look.
    NotBegun,
    /// Before a reliable publisher sleeps.
    P1,
    /// That a cell says that it is being written.
    P2,
    /// That a sample is there before it is counted.
    P5,
    /// That a sample is counted before anybody is notified.
    P6,
    /// Between a sample and the look at who sleeps.
    P7,
    /// That who sleeps is notified.
    P8,
    /// That a wake-up is counted, so that who is about to sleep does not.
    Count,
    /// That a publisher is silent only when the kernel has told it that somebody was woken.
    Certain,
    /// Between a bit of the ready table and the look whether its set sleeps.
    Ready,
    /// That a publisher that finds callbacks away notifies their threads.
    Away,
    /// That a publisher calls with a sample only in its turn.
    Turn,
    /// Before a publisher looks which slots are free.
    R1,
    /// That only what nobody can find any more is free.
    R3,
    /// Between the announcement of the next sample and the look at its cell.
    T1,
    /// That a sample is held, before its successor is announced.
    T6,
    /// That an announcement comes after the reads of what lies before it.
    T7,
    /// Between an announcement and the look whether the publisher waits for it.
    T8,
    /// That no two sleeps have the same number.
    S1,
    /// Between "I sleep" and the last look.
    S2,
    /// Between a publisher's ready bit and the look whether its subscriber sleeps.
    B2,
    /// Between the taking of ready bits and the look at these publishers.
    B4,
    /// The last look.
    S3,
    /// That who sleeps on `published` says which value of it.
    Value,
    /// Between what a wait set arms and its last look at that.
    Arm,
    /// Between a newcomer's entry in the list and the look at how far the publisher is.
    Attach,
    /// That a hold ends after the reads of its sample.
    Release,
    /// That the last clone of a sample ends after the reads of all others.
    Clones,
    /// That a publisher lets go of a subscriber that has gone.
    Gone,
    /// That a subscriber lets go of a publisher that has gone, once it has read all of it.
    Finished,
}

/// The seq-cst fence of a step.
#[inline(always)]
pub fn fence_of(step: Step) {
    if is_taken(step) {
        full_fence();
    }
}

/// A seq-cst fence. On x86-64 a locked instruction is one (Intel SDM volume 3, 9.2.3.9; AMD APM volume 2, 7.4.2)
/// and holds up less than the `mfence` that the compiler takes, which orders streaming stores, too.
#[inline(always)]
fn full_fence() {
    #[cfg(all(target_arch = "x86_64", not(any(loom, miri))))]
    {
        let mut word = 0_u32;
        // SAFETY: the word is this function's own, and stays as it is.
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

/// Whether the caller goes on to what it does to others by the kernel: always, but when it has died in a
/// test.
#[cfg(not(loom))]
#[inline(always)]
pub fn acts() -> bool {
    #[cfg(test)]
    return steps::step();
    #[cfg(not(test))]
    true
}

/// Whether a step is taken: always, but in a model's mutant.
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

/// Leaves a step out of what this thread, with its models, runs from now on.
#[cfg(any(loom, test))]
pub fn leave_out(step: Option<Step>) {
    LEFT_OUT.set(step);
}

/// So many publishers a subscriber looks at at each take; of more, at those that say that they have
/// published. A model may take another number.
pub(crate) fn few() -> usize {
    #[cfg(loom)]
    return FEW.get();
    #[cfg(not(loom))]
    4
}

/// Sets the number of publishers that are few, for this thread's models.
#[cfg(loom)]
pub fn set_few(publishers: usize) {
    FEW.set(publishers);
}

#[cfg(any(loom, test))]
std::thread_local! {
    // loom runs all threads of a model in the one that checks it.
    static LEFT_OUT: std::cell::Cell<Option<Step>> = const { std::cell::Cell::new(None) };
    #[cfg(loom)]
    static FEW: std::cell::Cell<usize> = const { std::cell::Cell::new(4) };
}
