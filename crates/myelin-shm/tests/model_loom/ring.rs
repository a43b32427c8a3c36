//! P2 to P6 against T2 to T5: a taken sample is the requested one, and whole.

use std::mem::MaybeUninit;

use loom::sync::Arc;
use loom::sync::atomic::{AtomicU64, Ordering, fence};
use loom::thread;
use myelin_shm::data_plane::ring::{self, Inline, Look};
use myelin_shm::layout::{Cell, INLINE, INLINE_BYTES_MAX, WRITING};

use crate::{cell, explore, load_acquire};

const CELLS: u64 = 2;
const DEPTH: u64 = 1;
const PREEMPTIONS: usize = 3;

struct Ring {
    cells: [Cell; CELLS as usize],
    published: AtomicU64,
}

/// The change in a mutant.
#[derive(Clone, Copy)]
struct Steps {
    begin: fn(&Cell),
    finish: fn(&Cell, &AtomicU64, u64),
    look: fn(&Cell, u64, &mut MaybeUninit<Inline>) -> Look,
}

const REAL: Steps = Steps { begin: ring::begin, finish: ring::finish, look: ring::look };

/// Two words that contain the sequence; so does the length.
fn payload(sequence: u64) -> Vec<u8> {
    let words = [sequence + 100, !sequence];
    let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_ne_bytes()).collect();
    bytes[..16 - sequence as usize % 2 * 8].to_vec()
}

fn publish(ring: &Ring, sequence: u64, steps: Steps) {
    let cell = &ring.cells[(sequence % CELLS) as usize];
    (steps.begin)(cell);
    ring::write_inline(cell, &payload(sequence), 0);
    (steps.finish)(cell, &ring.published, sequence);
    fence(Ordering::SeqCst); // P7
}

/// The same as `PublisherCursor::take`, with a bound on the looks.
fn read(ring: &Ring, steps: Steps) {
    let mut next = 0;
    let mut inline = MaybeUninit::new(Inline::ZERO);
    for _ in 0..3 {
        match (steps.look)(&ring.cells[(next % CELLS) as usize], next, &mut inline) {
            Look::NotYet => return,
            Look::Inline { length, .. } => {
                // SAFETY: zeros at first.
                let bytes = unsafe { inline.assume_init_ref() }.bytes(length);
                assert_eq!(bytes, payload(next), "torn or old");
                next += 1;
            }
            Look::Passed => {
                let published = load_acquire(&ring.published);
                if published <= next {
                    return; // the sample itself is being written
                }
                next = next.max(published - DEPTH);
            }
            other => panic!("torn: {other:?}"),
        }
    }
}

/// The publisher fills the ring and writes cell 0 again, while a reader looks for sample 0.
fn overwrite(steps: Steps) {
    let ring = Ring { cells: std::array::from_fn(|_| cell()), published: AtomicU64::new(0) };
    publish(&ring, 0, REAL);
    let ring = Arc::new(ring);
    let reading = ring.clone();
    let reader = thread::spawn(move || read(&reading, steps));
    for sequence in 1..=3 {
        publish(&ring, sequence, steps);
    }
    reader.join().unwrap();
}

#[test]
fn a_taken_sample_is_whole_and_in_sequence() {
    explore("ring: overwritten", PREEMPTIONS, 1_000, || overwrite(REAL));
}

/// The reader waits for sample 0 before it exists.
#[test]
fn a_first_sample_is_seen_whole() {
    explore("ring: first", PREEMPTIONS, 20, || {
        let ring = Ring { cells: std::array::from_fn(|_| cell()), published: AtomicU64::new(0) };
        let ring = Arc::new(ring);
        let reading = ring.clone();
        let reader = thread::spawn(move || read(&reading, REAL));
        publish(&ring, 0, REAL);
        reader.join().unwrap();
    });
}

#[test]
#[should_panic(expected = "torn")]
fn mutant_without_the_fence_of_p3() {
    let begin = |cell: &Cell| cell.sequence.store(WRITING, Ordering::Relaxed);
    explore("mutant P3", PREEMPTIONS, 0, move || overwrite(Steps { begin, ..REAL }));
}

#[test]
#[should_panic(expected = "torn")]
fn mutant_without_p2() {
    explore("mutant P2", PREEMPTIONS, 0, || {
        overwrite(Steps { begin: |_| fence(Ordering::Release), ..REAL });
    });
}

#[test]
#[should_panic(expected = "torn")]
fn mutant_with_a_relaxed_p5() {
    let finish = |cell: &Cell, published: &AtomicU64, sequence: u64| {
        cell.sequence.store(sequence + 1, Ordering::Relaxed);
        published.store(sequence + 1, Ordering::Release);
    };
    explore("mutant P5", PREEMPTIONS, 0, move || overwrite(Steps { finish, ..REAL }));
}

/// `ring::look` for short payloads, with the fences as parameters.
fn look(cell: &Cell, sequence: u64, into: &mut MaybeUninit<Inline>, t2: bool, t5: bool) -> Look {
    let seen = cell.sequence.load(Ordering::Relaxed);
    if seen != sequence + 1 {
        return if seen <= sequence { Look::NotYet } else { Look::Passed };
    }
    if t2 {
        fence(Ordering::Acquire);
    }
    let length = cell.length.load(Ordering::Relaxed) as usize;
    let place = cell.place.load(Ordering::Relaxed);
    // SAFETY: zeros at first.
    let into = unsafe { into.assume_init_mut() };
    for (to, from) in into.0.iter_mut().zip(&cell.inline[..length.min(INLINE_BYTES_MAX) / 8]) {
        *to = from.load(Ordering::Relaxed);
    }
    if t5 {
        fence(Ordering::Acquire);
    }
    match cell.sequence.load(Ordering::Relaxed) == seen {
        true if place == INLINE => Look::Inline { length, time_ns: 0 },
        true => Look::Corrupt,
        false => Look::Passed,
    }
}

#[test]
#[should_panic(expected = "torn")]
fn mutant_without_the_fence_of_t2() {
    let look = |cell: &Cell, sequence, into: &mut MaybeUninit<Inline>| {
        look(cell, sequence, into, false, true)
    };
    explore("mutant T2", PREEMPTIONS, 0, move || overwrite(Steps { look, ..REAL }));
}

#[test]
#[should_panic(expected = "torn")]
fn mutant_without_the_fence_of_t5() {
    let look = |cell: &Cell, sequence, into: &mut MaybeUninit<Inline>| {
        look(cell, sequence, into, true, false)
    };
    explore("mutant T5", PREEMPTIONS, 0, move || overwrite(Steps { look, ..REAL }));
}
