//! The samples in slots that a subscriber holds: taking, cloning and releasing them.

use crate::sync::{AtomicU32, Ordering, Step, is_taken};
use std::sync::Arc;

use super::SubscriptionState;
use crate::data_plane::reclaim;

impl SubscriptionState {
    /// How many samples in slots are held now.
    pub fn borrowed(&self) -> usize {
        let is_held = |clones: &&AtomicU32| clones.load(Ordering::Relaxed) & !ORPHAN != 0;
        self.clones.iter().filter(is_held).count()
    }

    /// An unused hold. Only the reader calls this, so the hold stays unused until `take_hold`.
    #[inline(always)]
    pub(crate) fn free_hold(&self) -> Option<u32> {
        // ORDER: acquire pairs with the release in `drop_clone`: the hold's word is 0 again.
        let free = |clones: &AtomicU32| clones.load(Ordering::Acquire) == 0;
        self.clones.iter().position(free).map(|at| at as u32)
    }

    #[inline(always)]
    pub(crate) fn take_hold(&self, hold: u32, connection: u32, sequence: u64) {
        self.clones[hold as usize].store(2, Ordering::Relaxed);
        reclaim::hold(&self.holds()[hold as usize], connection, sequence);
    }

    pub(crate) fn clone_hold(&self, hold: u32) {
        // ORDER: Relaxed, as for any reference count: the clone comes from a live one.
        let before = self.clones[hold as usize].fetch_add(1, Ordering::Relaxed) & !ORPHAN;
        assert!((2..ORPHAN / 2).contains(&before), "a clone comes from a live sample");
    }

    /// Drops one clone of the sample in `hold`; the last one releases it.
    ///
    /// # Safety
    /// `this` must come from the `Arc` of the reader that took the sample, and the clone must be
    /// dropped only once.
    #[inline]
    pub(crate) unsafe fn drop_clone(this: *const Self, hold: u32) {
        // SAFETY: the sample is not yet released, so the reader or the sample itself keeps it alive.
        let shared = unsafe { &*this };
        let clones = &shared.clones[hold as usize];
        // ORDER: acquire: if it is the only clone, the reads of all other clones came before their
        // end.
        if clones.load(Ordering::Acquire) != 2 {
            // ORDER: the reads of all clones come before the release of the slot.
            if clones.fetch_sub(1, last_clone()) & !ORPHAN != 2 {
                return;
            }
        }
        reclaim::release(&shared.holds()[hold as usize]);
        // ORDER: release, after the word is 0, see `free_hold`; acquire pairs with `abandon`.
        if clones.swap(0, Ordering::AcqRel) & ORPHAN != 0 {
            // SAFETY: `abandon` has counted this sample in, once.
            unsafe { Arc::decrement_strong_count(this) };
        }
        // The object may be gone after this point.
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
        reclaim::release(&self.holds()[hold as usize]);
        clones.store(0, Ordering::Release);
    }

    /// Called when the reader is dropped: every held sample keeps the object alive from now on.
    pub(crate) fn abandon(self: &Arc<Self>) {
        for clones in &self.clones {
            let own = Arc::clone(self);
            // ORDER: release pairs with the acquire of the swap in `drop_clone`.
            if clones.fetch_or(ORPHAN, Ordering::AcqRel) != 0 {
                std::mem::forget(own); // now the sample's reference
            }
        }
    }
}

/// The order in which one of several clones ends.
#[inline(always)]
fn last_clone() -> Ordering {
    if is_taken(Step::Clones) { Ordering::AcqRel } else { Ordering::Relaxed }
}

/// See [`SubscriptionState::clones`].
const ORPHAN: u32 = 1 << 31;
