//! The ring, the announcements and the arena on memory of this process alone, in threads: what
//! Miri can run (it knows neither memfds nor futexes), and a check of the models in `model_loom`
//! by real threads.
//!
//! `MIRIFLAGS=-Zmiri-many-seeds=0..8 cargo +nightly miri test -p myelin-shm --test on_heap`

use std::cell::UnsafeCell;
use std::sync::atomic::{AtomicU64, Ordering, fence};

use myelin_shm::data_plane::arena::{Arena, Slot};
use myelin_shm::data_plane::layout::{Cell, EMPTY};
use myelin_shm::data_plane::reclaim::{self, Announced, Protected};
use myelin_shm::data_plane::ring::{self, Inline, Look};

const CELLS: usize = 4;
const DEPTH: u64 = CELLS as u64 - 1;
const SLOT_BYTES: usize = 256;
const SLOTS: usize = 16;
const SAMPLES: u64 = if cfg!(miri) { 60 } else { 200_000 };

#[repr(C, align(4096))]
struct Bytes(UnsafeCell<[u8; SLOT_BYTES * SLOTS]>);

struct Shared {
    cells: [Cell; CELLS],
    published: AtomicU64,
    slots: Box<Bytes>,
    reading: AtomicU64,
    holds: [AtomicU64; 3],
}

// SAFETY: who accesses a slot is what is tested here.
unsafe impl Sync for Shared {}

impl Shared {
    fn new() -> Self {
        let cell = || Cell {
            sequence: AtomicU64::new(EMPTY),
            length: AtomicU64::new(0),
            place: AtomicU64::new(0),
            inline: std::array::from_fn(|_| AtomicU64::new(0)),
        };
        Shared {
            cells: std::array::from_fn(|_| cell()),
            published: AtomicU64::new(0),
            slots: Box::new(Bytes(UnsafeCell::new([0; SLOT_BYTES * SLOTS]))),
            reading: AtomicU64::new(0),
            holds: std::array::from_fn(|_| AtomicU64::new(0)),
        }
    }

    fn slot(&self, index: u64) -> *mut u8 {
        self.slots.0.get().cast::<u8>().wrapping_add(index as usize * SLOT_BYTES)
    }
}

/// As `Writer`: every third sample in the cell, the others in slots.
fn publish(shared: &Shared) {
    let mut arena = Arena::default();
    let growth = arena.growth(SLOT_BYTES as u64);
    assert_eq!((growth.slot_bytes as usize, growth.slots as usize), (SLOT_BYTES, SLOTS));
    arena.add(growth, shared.slot(0));
    let mut out: Vec<(u64, Slot)> = Vec::with_capacity(SLOTS);
    let mut protected = Protected::with_capacity(shared.holds.len() + 1);
    for sequence in 0..SAMPLES {
        let cell = &shared.cells[sequence as usize % CELLS];
        if sequence.is_multiple_of(3) {
            ring::begin(cell);
            ring::write_inline(cell, &[sequence as u8; 100], 0);
            ring::finish(cell, &shared.published, sequence);
        } else {
            if arena.free() == 0 {
                fence(Ordering::SeqCst);
                let Shared { reading, holds, .. } = shared;
                let announced = Announced { reading, holds, connection: 0, start: 0 };
                protected.collect(std::iter::once(announced));
                out.retain(|(sent, slot)| {
                    let free = protected.is_free(*sent, sent + (CELLS as u64) < sequence, false);
                    if free {
                        arena.give_back(*slot);
                    }
                    !free
                });
            }
            let slot = arena.take(SLOT_BYTES as u64).expect("more slots than cells and holds");
            // SAFETY: it is free: nobody reads it.
            unsafe { slot.pointer.write_bytes(sequence as u8, SLOT_BYTES) };
            ring::begin(cell);
            ring::write_place(cell, SLOT_BYTES as u64, slot.place(), 0);
            ring::finish(cell, &shared.published, sequence);
            out.push((sequence, slot));
        }
        fence(Ordering::SeqCst);
        if cfg!(miri) {
            std::thread::yield_now();
        }
    }
}

/// As `Reader`, holding the last three samples. Returns how many were taken and how many lost.
fn read(shared: &Shared) -> (u64, u64) {
    let (mut next, mut taken, mut lost) = (0u64, 0, 0);
    let mut held: [Option<(u64, u64)>; 3] = [None; 3];
    let check = |held: Option<(u64, u64)>| {
        let Some((sequence, slot)) = held else { return };
        // SAFETY: it is held: nobody writes it.
        let bytes = unsafe { std::slice::from_raw_parts(shared.slot(slot), SLOT_BYTES) };
        assert!(bytes.iter().all(|byte| *byte == sequence as u8), "{sequence}");
    };
    let mut inline = Inline::ZERO;
    fence(Ordering::SeqCst);
    while next < SAMPLES {
        match ring::look(&shared.cells[next as usize % CELLS], next, &mut inline) {
            Look::NotYet => {
                std::thread::yield_now();
                continue;
            }
            Look::Inline { length, .. } => {
                assert_eq!(inline.bytes(length), [next as u8; 100]);
                reclaim::go_on(&shared.reading, next + 1);
                (next, taken) = (next + 1, taken + 1);
            }
            Look::Slot { length, place, .. } => {
                assert_eq!((length, place >> 32), (SLOT_BYTES as u64, 0));
                let at = taken as usize % 3;
                check(held[at].take());
                reclaim::release(&shared.holds[at]);
                reclaim::hold(&shared.holds[at], 0, next);
                reclaim::go_on(&shared.reading, next + 1);
                held[at] = Some((next, place));
                check(held[at]);
                (next, taken) = (next + 1, taken + 1);
            }
            Look::Passed => {
                let published = shared.published.load(Ordering::Acquire);
                if published <= next + DEPTH {
                    std::thread::yield_now();
                    continue;
                }
                lost += published - DEPTH - next;
                next = published - DEPTH;
                reclaim::go_on(&shared.reading, next);
            }
            Look::Corrupt => panic!("corrupt"),
        }
        fence(Ordering::SeqCst);
    }
    held.into_iter().for_each(check);
    (taken, lost)
}

#[test]
fn what_is_held_is_not_written_and_nothing_is_torn() {
    let shared = &Shared::new();
    std::thread::scope(|scope| {
        let reader = scope.spawn(move || read(shared));
        publish(shared);
        let (taken, lost) = reader.join().unwrap();
        assert_eq!(taken + lost, SAMPLES);
        assert!(taken > 0);
    });
}
