//! The samples in slots that a subscriber borrows: taking, cloning and releasing their holds.

use std::sync::Arc;

use super::memory::SubscriptionMemory;
use crate::data_plane::reclaim;
use crate::layout::held_of;
use crate::limits::SEQUENCE_MAX;
use crate::sync::{AtomicU32, AtomicU64, Ordering, Step, is_taken};

/// The holds, and how often each is used.
pub(crate) struct Borrowed {
    /// For each hold: 0 if it is free, 1 while it is being released, otherwise 1 + the clones of
    /// its sample. `ORPHAN` is added when the reader has been dropped. From then on the sample owns
    /// a strong reference to the subscription; before, the reader's reference keeps it alive.
    clones: Box<[AtomicU32]>,
    memory: Arc<SubscriptionMemory>,
}

impl Borrowed {
    pub(super) fn new(memory: &Arc<SubscriptionMemory>) -> Borrowed {
        let clones = memory.holds().iter().map(|_| AtomicU32::new(0)).collect();
        Borrowed { clones, memory: memory.clone() }
    }

    /// How many samples are borrowed now.
    pub(super) fn count(&self) -> usize {
        let is_held = |clones: &&AtomicU32| clones.load(Ordering::Relaxed) & !ORPHAN != 0;
        self.clones.iter().filter(is_held).count()
    }

    /// The addresses that a take of a sample in a slot reads.
    pub(super) fn addresses(&self) -> [usize; 2] {
        [self.clones.as_ptr().addr(), self.memory.holds().as_ptr().addr()]
    }

    /// Holds a sample; `None` if there is no free hold. Only the reader calls it, so a hold that
    /// is found free stays free.
    #[inline(always)]
    pub(crate) fn hold(&self, connection: u32, sequence: u64) -> Option<u32> {
        // ORDER: acquire pairs with the release in `drop_clone`: the hold's word is 0 again.
        let is_free = |clones: &AtomicU32| clones.load(Ordering::Acquire) == 0;
        let hold = self.clones.iter().position(is_free)?;
        self.clones[hold].store(2, Ordering::Relaxed);
        reclaim::hold(&self.memory.holds()[hold], connection, sequence);
        Some(hold as u32)
    }

    pub(crate) fn clone_hold(&self, hold: u32) {
        // ORDER: Relaxed, as for any reference count: the clone comes from a live one.
        let before = self.clones[hold as usize].fetch_add(1, Ordering::Relaxed) & !ORPHAN;
        assert!((2..ORPHAN / 2).contains(&before), "a clone comes from a live sample");
    }

    /// Drops one clone of the sample in `hold`; the last one releases it. True if the sample owned
    /// a reference to the subscription, which is the caller's now. If not, the subscription may be
    /// gone when this returns.
    ///
    /// # Safety
    /// `this` must be the part of the subscription whose reader took the sample, and the clone must
    /// be dropped only once.
    #[inline(always)]
    #[must_use = "the reference must be dropped"]
    pub(super) unsafe fn drop_clone(this: *const Borrowed, hold: u32) -> bool {
        // SAFETY: the sample is not yet released, so the reader or the sample itself keeps it alive.
        let borrowed = unsafe { &*this };
        let clones = &borrowed.clones[hold as usize];
        // ORDER: acquire: if it is the only clone, the reads of all other clones came before their
        // end.
        if clones.load(Ordering::Acquire) != 2 {
            // ORDER: the reads of all clones come before the release of the slot.
            if clones.fetch_sub(1, last_clone()) & !ORPHAN != 2 {
                return false;
            }
        }
        reclaim::release(&borrowed.memory.holds()[hold as usize]);
        // ORDER: release, after the word is 0, see `hold`; acquire pairs with `abandon`.
        clones.swap(0, Ordering::AcqRel) & ORPHAN != 0
    }

    /// Like [`drop_clone`](Self::drop_clone), in the thread that has the reader: the reader cannot
    /// be dropped meanwhile.
    #[inline(always)]
    pub(crate) fn drop_lent(&self, hold: u32) {
        let clones = &self.clones[hold as usize];
        // ORDER: as in `drop_clone`.
        if clones.load(Ordering::Acquire) != 2 && clones.fetch_sub(1, Ordering::AcqRel) != 2 {
            return;
        }
        reclaim::release(&self.memory.holds()[hold as usize]);
        clones.store(0, Ordering::Release);
    }

    /// Called when the reader is dropped: from now on each borrowed sample owns a reference, which
    /// `own` makes.
    pub(super) fn abandon<T>(&self, own: impl Fn() -> T) {
        for clones in &self.clones {
            let own = own();
            // ORDER: release pairs with the acquire of the swap in `drop_clone`.
            if clones.fetch_or(ORPHAN, Ordering::AcqRel) != 0 {
                std::mem::forget(own); // now the sample's reference
            }
        }
    }

    /// Whether a sample with this mark is borrowed.
    pub(super) fn has_mark(&self, mark: u64) -> bool {
        self.memory.holds().iter().any(|hold| hold.load(Ordering::Relaxed) == mark)
    }

    /// Marks the borrowed samples of a publisher that has gone: they protect nothing any more, and
    /// must not be taken for a sample of the next publisher with this connection. Returns whether
    /// there are any.
    pub(super) fn mark(&self, connection: u32, mark: u64) -> bool {
        let is_marked = |hold: &AtomicU64| {
            // ORDER: Relaxed, both: it has no meaning for its publisher. A hold that is released
            // meanwhile is 0.
            let (word, order) = (hold.load(Ordering::Relaxed), Ordering::Relaxed);
            let is_its = word & SEQUENCE_MAX != 0 && held_of(word) == connection;
            is_its && hold.compare_exchange(word, mark, order, order).is_ok()
        };
        self.memory.holds().iter().filter(|hold| is_marked(hold)).count() > 0
    }
}

/// The order in which one of several clones ends.
#[inline(always)]
fn last_clone() -> Ordering {
    if is_taken(Step::Clones) { Ordering::AcqRel } else { Ordering::Relaxed }
}

/// See [`Borrowed::clones`].
const ORPHAN: u32 = 1 << 31;
