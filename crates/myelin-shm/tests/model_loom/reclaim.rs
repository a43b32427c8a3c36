//! R1 to R3 against T1 to T7: nobody writes to a slot that is read. The slots are plain memory, so
//! that loom itself finds a write that is not ordered after every read of the sample before.

use loom::cell::UnsafeCell;
use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;
use myelin_shm::data_plane::layout::{Cell, FINISHED, hold_word};
use myelin_shm::data_plane::reclaim::{self, Announced, Protected};
use myelin_shm::data_plane::ring::{self, Inline, Look};

use crate::{cell, explore, load_acquire};

const SLOTS: usize = 5;

/// What both processes map.
pub struct Shared {
    pub cells: Vec<Cell>,
    pub published: AtomicU64,
    pub slots: [UnsafeCell<u64>; SLOTS],
    pub reading: AtomicU64,
    pub holds: [AtomicU64; 2],
}

// SAFETY: loom checks every access to the slots.
unsafe impl Sync for Shared {}
// SAFETY: as above.
unsafe impl Send for Shared {}

impl Shared {
    pub fn new(cells: usize, reading: u64) -> Self {
        Shared {
            cells: (0..cells).map(|_| cell()).collect(),
            published: AtomicU64::new(0),
            slots: std::array::from_fn(|_| UnsafeCell::new(0)),
            reading: AtomicU64::new(reading),
            holds: [AtomicU64::new(0), AtomicU64::new(0)],
        }
    }

    /// Samples take turns.
    fn hold(&self, sequence: u64) -> &AtomicU64 {
        &self.holds[sequence as usize % 2]
    }

    fn cell(&self, sequence: u64) -> &Cell {
        &self.cells[sequence as usize % self.cells.len()]
    }
}

/// What a mutant does differently.
#[derive(Clone, Copy)]
pub struct Steps {
    /// R1, and P7 that comes before it too.
    pub r1: fn(),
    pub collect: fn(&mut Protected, Announced<'_>),
    pub is_free: fn(&Protected, u64, bool, bool) -> bool,
    pub t1: fn(),
    pub t6_t7: fn(&Shared, u64),
    pub release: fn(&AtomicU64),
    /// A sample is released after the one that follows it has been taken.
    pub late: bool,
}

pub const REAL: Steps = Steps {
    r1: || fence(Ordering::SeqCst),
    collect: |protected, announced| protected.collect(std::iter::once(announced)),
    is_free: Protected::is_free,
    t1: || fence(Ordering::SeqCst),
    t6_t7: |shared, sequence| {
        reclaim::hold(shared.hold(sequence), 0, sequence);
        reclaim::go_on(&shared.reading, sequence + 1);
    },
    release: reclaim::release,
    late: false,
};

/// As `Writer` in `publication.rs`.
pub struct Publisher {
    pub next: u64,
    pub free: Vec<usize>,
    pub out: Vec<(u64, usize)>,
    pub history: u64,
}

impl Publisher {
    pub fn new(slots: usize, history: u64) -> Self {
        Publisher { next: 0, free: (0..slots).rev().collect(), out: Vec::new(), history }
    }

    /// False if it would have to make a slot segment. `announced` after the fence R1.
    pub fn publish<'a>(
        &mut self,
        shared: &Shared,
        steps: Steps,
        announced: impl FnOnce() -> Option<Announced<'a>>,
    ) -> bool {
        if self.free.is_empty() {
            self.reclaim(shared, steps, announced);
        }
        let Some(slot) = self.free.pop() else { return false };
        // SAFETY: the slot is free; loom checks that nobody else accesses it.
        shared.slots[slot].with_mut(|slot| unsafe { *slot = self.next });
        let cell = shared.cell(self.next);
        ring::begin(cell);
        ring::write_place(cell, 1_000, slot as u64, 0);
        ring::finish(cell, &shared.published, self.next);
        self.out.push((self.next, slot));
        self.next += 1;
        (steps.r1)(); // P7
        true
    }

    fn reclaim<'a>(
        &mut self,
        shared: &Shared,
        steps: Steps,
        announced: impl FnOnce() -> Option<Announced<'a>>,
    ) {
        (steps.r1)();
        let mut protected = Protected::with_capacity(3);
        if let Some(announced) = announced() {
            (steps.collect)(&mut protected, announced);
        }
        let kept_from = self.next.saturating_sub(self.history);
        let Publisher { next, free, out, .. } = self;
        out.retain(|&(sequence, slot)| {
            let overwritten = sequence + (shared.cells.len() as u64) < *next;
            let kept = sequence >= kept_from;
            let is_free = (steps.is_free)(&protected, sequence, overwritten, kept);
            if is_free {
                free.push(slot);
            }
            !is_free
        });
    }
}

fn announced(shared: &Shared) -> Option<Announced<'_>> {
    let Shared { reading, holds, .. } = shared;
    Some(Announced { reading, holds, connection: 0, start: 0 })
}

/// As `Publisher::take` in `reader.rs` with a depth of cells − 1: takes, reads and releases one
/// sample after the other, in at most `looks` looks. `next` has been announced.
pub fn read(shared: &Shared, mut next: u64, looks: usize, steps: Steps) {
    let depth = shared.cells.len() as u64 - 1;
    let mut held = None;
    (steps.t1)();
    for _ in 0..looks {
        match ring::look(shared.cell(next), next, &mut Inline::ZERO.clone()) {
            Look::NotYet => break,
            Look::Slot { place, .. } => {
                (steps.t6_t7)(shared, next);
                let taken = (next, place);
                let done = if steps.late { held.replace(taken) } else { Some(taken) };
                finish(shared, done, steps);
                next += 1;
            }
            _ => {
                let published = load_acquire(&shared.published);
                if published <= next + depth {
                    break;
                }
                next = published - depth;
                reclaim::go_on(&shared.reading, next);
            }
        }
        (steps.t1)();
    }
    finish(shared, held, steps);
}

/// Reads a sample that is held, and releases it.
fn finish(shared: &Shared, taken: Option<(u64, u64)>, steps: Steps) {
    let Some((sequence, place)) = taken else { return };
    // SAFETY: it is held; loom checks that nobody writes it meanwhile.
    let found = shared.slots[place as usize].with(|slot| unsafe { *slot });
    assert_eq!(found, sequence, "another sample's payload");
    (steps.release)(shared.hold(sequence));
}

/// `before` samples lie in the ring; then the publisher publishes up to `last` while a reader that
/// has read nothing yet reads.
fn run(cells: usize, slots: usize, before: u64, last: u64, looks: usize, steps: Steps) {
    let shared = Arc::new(Shared::new(cells, 0));
    let mut publisher = Publisher::new(slots, 0);
    for _ in 0..before {
        publisher.publish(&shared, REAL, || announced(&shared));
    }
    let reading = shared.clone();
    let reader = thread::spawn(move || read(&reading, 0, looks, steps));
    while publisher.next <= last && publisher.publish(&shared, steps, || announced(&shared)) {}
    reader.join().unwrap();
}

/// More cells than samples: a slot is freed only because every reading is beyond it.
fn early(steps: Steps) {
    run(8, 2, 1, 3, 3, steps);
}

/// Two cells, five slots: the slot of sample 2 is freed because its cell is written anew, just as
/// a reader that was lapped goes on there.
fn overwritten(steps: Steps) {
    run(2, 5, 3, 5, 3, steps);
}

#[test]
fn a_slot_that_everybody_has_read_is_written_after_the_last_read() {
    explore("reclaim: early", 4, 500, || early(REAL));
    explore("reclaim: early, held longer", 4, 500, || early(Steps { late: true, ..REAL }));
}

#[test]
fn a_slot_whose_cell_is_written_anew_is_not_the_one_being_read() {
    explore("reclaim: overwritten", 4, 5_000, || overwritten(REAL));
    explore("reclaim: overwritten, held longer", 4, 5_000, || {
        overwritten(Steps { late: true, ..REAL });
    });
}

const MUTANT: usize = 3;

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_without_the_fences_of_p7_and_r1() {
    // Either alone is enough: P7 comes after the last cell written before a reclaim.
    explore("mutant R1", MUTANT, 0, || overwritten(Steps { r1: || (), ..REAL }));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_without_the_fence_of_t1() {
    explore("mutant T1", MUTANT, 0, || overwritten(Steps { t1: || (), ..REAL }));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_that_goes_on_before_it_holds() {
    let t6_t7 = |shared: &Shared, sequence: u64| {
        reclaim::go_on(&shared.reading, sequence + 1);
        reclaim::hold(shared.hold(sequence), 0, sequence);
    };
    explore("mutant T6/T7", MUTANT, 0, move || early(Steps { t6_t7, ..REAL }));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_with_a_relaxed_t7() {
    let t6_t7 = |shared: &Shared, sequence: u64| {
        shared.hold(sequence).store(hold_word(0, sequence), Ordering::Relaxed);
        shared.reading.store(sequence + 1, Ordering::Relaxed);
    };
    explore("mutant T7", MUTANT, 0, move || early(Steps { t6_t7, ..REAL }));
}

#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_with_a_relaxed_release() {
    let release = |hold: &AtomicU64| hold.store(0, Ordering::Relaxed);
    explore("mutant release", MUTANT, 0, move || early(Steps { release, ..REAL }));
}

/// Reads the holds before `reading`: a sample taken in between is seen by neither.
#[test]
#[should_panic(expected = "Causality violation")]
fn mutant_that_looks_at_the_holds_first() {
    let collect = |protected: &mut Protected, announced: Announced<'_>| {
        let holds = [0, 1].map(|at| AtomicU64::new(load_acquire(&announced.holds[at])));
        protected.collect(std::iter::once(Announced { holds: &holds, ..announced }));
    };
    explore("mutant R2", MUTANT, 0, move || early(Steps { collect, ..REAL }));
}

/// Frees what is not announced, whether or not it can still be found in the ring.
#[test]
#[should_panic(expected = "another sample's payload")]
fn mutant_that_frees_what_is_still_to_be_read() {
    let is_free = |protected: &Protected, sequence, _, kept| {
        protected.is_free(sequence, true, kept) && sequence != FINISHED
    };
    explore("mutant R3", MUTANT, 0, move || early(Steps { is_free, ..REAL }));
}
