//! `SubscriptionShared::{clone_hold, drop_clone, abandon}`, re-expressed: what samples share with
//! their reader lives as long as one of them, is freed once, and the slot is released after the
//! last read.

use std::sync::Arc;

use loom::cell::UnsafeCell;
use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use loom::thread;
use myelin_shm::data_plane::reclaim;

use crate::{explore, load_acquire};

const PREEMPTIONS: usize = 4;
const ORPHAN: u32 = 1 << 31;

struct Object {
    /// The object itself: read by whoever uses it, written when it is freed.
    memory: UnsafeCell<bool>,
    strong: AtomicU32,
    clones: AtomicU32,
    hold: AtomicU64,
    slot: UnsafeCell<u32>,
}

// SAFETY: loom checks every access.
unsafe impl Sync for Object {}
// SAFETY: as above.
unsafe impl Send for Object {}

#[derive(Clone, Copy)]
struct Steps {
    abandon: fn(&Object),
    drop_clone: fn(&Object, Ordering),
    order: Ordering,
}

const REAL: Steps = Steps { abandon, drop_clone, order: Ordering::AcqRel };

impl Object {
    fn uses(&self) {
        // SAFETY: loom checks it.
        assert!(!self.memory.with(|freed| unsafe { *freed }), "used after it was freed");
    }

    fn decrement(&self) {
        if self.strong.fetch_sub(1, Ordering::AcqRel) == 1 {
            // SAFETY: loom checks that nobody uses it any more.
            self.memory.with_mut(|freed| unsafe {
                assert!(!*freed, "freed twice");
                *freed = true;
            });
        }
    }
}

fn drop_clone(object: &Object, order: Ordering) {
    // SAFETY: loom checks that the publisher does not write it meanwhile.
    object.slot.with(|slot| unsafe { assert_eq!(*slot, 0, "written while it was read") });
    object.uses();
    if object.clones.load(Ordering::Acquire) != 2
        && object.clones.fetch_sub(1, order) & !ORPHAN != 2
    {
        return;
    }
    object.uses();
    reclaim::release(&object.hold);
    if object.clones.swap(0, Ordering::AcqRel) & ORPHAN != 0 {
        object.decrement();
    }
}

fn abandon(object: &Object) {
    object.strong.fetch_add(1, Ordering::Relaxed);
    if object.clones.fetch_or(ORPHAN, Ordering::AcqRel) == 0 {
        object.decrement();
    }
}

/// `clones` samples of one hold, each dropped by a thread of its own, while the reader goes and the
/// publisher looks whether it may write the slot.
fn run(clones: u32, steps: Steps) {
    let object = Arc::new(Object {
        memory: UnsafeCell::new(false),
        strong: AtomicU32::new(1),
        clones: AtomicU32::new(1 + clones),
        hold: AtomicU64::new(1),
        slot: UnsafeCell::new(0),
    });
    let dropping: Vec<_> = (0..clones)
        .map(|_| {
            let object = object.clone();
            thread::spawn(move || (steps.drop_clone)(&object, steps.order))
        })
        .collect();
    (steps.abandon)(&object);
    object.decrement();
    if load_acquire(&object.hold) == 0 {
        // SAFETY: nobody holds it; loom checks it.
        object.slot.with_mut(|slot| unsafe { *slot = 1 });
    }
    for thread in dropping {
        thread.join().unwrap();
    }
    // SAFETY: all threads have ended.
    assert!(object.memory.with(|freed| unsafe { *freed }), "never freed");
}

#[test]
fn what_a_sample_needs_lives_as_long_as_it() {
    explore("hold: one clone", PREEMPTIONS, 20, || run(1, REAL));
    explore("hold: two clones", PREEMPTIONS, 1_000, || run(2, REAL));
}

#[test]
#[should_panic(expected = "never freed")]
fn mutant_that_abandons_without_a_swap() {
    let drop_clone = |object: &Object, order| {
        let orphan = object.clones.load(Ordering::Acquire) & ORPHAN;
        if object.clones.fetch_sub(1, order) & !ORPHAN == 2 {
            reclaim::release(&object.hold);
            if orphan != 0 {
                object.decrement();
            }
        }
    };
    explore("mutant swap", PREEMPTIONS, 0, move || run(1, Steps { drop_clone, ..REAL }));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_that_counts_no_sample_in() {
    let abandon = |object: &Object| {
        object.clones.fetch_or(ORPHAN, Ordering::AcqRel);
    };
    explore("mutant abandon", PREEMPTIONS, 0, move || run(1, Steps { abandon, ..REAL }));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_with_a_relaxed_count() {
    let steps = Steps { order: Ordering::Relaxed, ..REAL };
    explore("mutant clones", PREEMPTIONS, 0, move || run(2, steps));
}
