//! P1 (`Writer::wait_for_room`, re-expressed) against T7 and T8: a publisher that waits is woken,
//! and does not write over what is still to be read.

// Not loom's `Arc`: it panics when a deadlock unwinds.
use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, AtomicU64, Ordering, fence};
use loom::thread;
use myelin_shm::data_plane::layout::FINISHED;
use myelin_shm::data_plane::reclaim;

use crate::{Kernel, explore, load_acquire};

const PREEMPTIONS: usize = 3;

struct Line {
    published: AtomicU64,
    waiting: AtomicU64,
    reading: AtomicU64,
    kernel: Kernel,
    /// The subscriber has been removed, and the publisher has not looked yet.
    changed: AtomicBool,
    /// Whom the publisher sleeps for: the remedy for `detach`.
    waits_for: AtomicU64,
}

#[derive(Clone, Copy)]
struct Steps {
    p1: fn(),
    t8: fn(),
}

const REAL: Steps = Steps { p1: || fence(Ordering::SeqCst), t8: || fence(Ordering::SeqCst) };

impl Line {
    fn new() -> Arc<Self> {
        Arc::new(Line {
            published: AtomicU64::new(0),
            waiting: AtomicU64::new(0),
            reading: AtomicU64::new(0),
            kernel: Kernel::new(),
            changed: AtomicBool::new(false),
            waits_for: AtomicU64::new(0),
        })
    }

    /// `Writer::wait_for_room` for sample `next` without a time limit.
    fn wait_for_room(&self, next: u64, depth: u64, steps: Steps) {
        loop {
            if self.changed.load(Ordering::Relaxed) {
                return; // refresh: nobody is left to wait for
            }
            let reading = load_acquire(&self.reading);
            if next - reading.min(next) < depth {
                return;
            }
            self.waiting.store(1, Ordering::Relaxed);
            self.waits_for.store(2, Ordering::Relaxed);
            (steps.p1)();
            let word = self.reading.load(Ordering::Relaxed);
            let changed = self.changed.load(Ordering::Relaxed);
            if load_acquire(&self.reading) == reading && !changed {
                self.kernel.wait_64(&self.reading, word);
            }
            self.waits_for.store(0, Ordering::Relaxed);
            self.waiting.store(0, Ordering::Relaxed);
        }
    }

    /// T7 and T8.
    fn announce(&self, next: u64, steps: Steps) {
        reclaim::go_on(&self.reading, next);
        (steps.t8)();
        if self.waiting.load(Ordering::Relaxed) != 0 {
            self.kernel.wake();
        }
    }
}

/// A publisher of `samples` with room for one, and a reader that polls.
fn waits(samples: u64, steps: Steps) {
    let line = Line::new();
    let reading = line.clone();
    let reader = thread::spawn(move || {
        for next in 1..=samples {
            while load_acquire(&reading.published) < next {
                loom::thread::yield_now();
            }
            reading.announce(next, steps);
        }
    });
    for sample in 0..samples {
        line.wait_for_room(sample, 1, steps);
        assert!(line.reading.load(Ordering::Relaxed) >= sample, "written over");
        line.published.store(sample + 1, Ordering::Release);
    }
    reader.join().unwrap();
}

/// The ring is full; the subscriber takes one sample.
fn takes_one(steps: Steps) {
    let line = Line::new();
    let reading = line.clone();
    let reader = thread::spawn(move || reading.announce(1, steps));
    line.wait_for_room(1, 1, steps);
    reader.join().unwrap();
}

/// The ring is full; the subscriber takes one sample and then drops (`SubscriptionShared::finish`).
fn leaves(steps: Steps) {
    let line = Line::new();
    let reading = line.clone();
    let reader = thread::spawn(move || {
        reading.announce(1, steps);
        reading.reading.store(FINISHED, Ordering::Release);
        reading.kernel.wake();
    });
    line.wait_for_room(1, 1, steps);
    line.wait_for_room(2, 1, steps);
    reader.join().unwrap();
}

/// The ring is full and the subscriber dead; the node thread removes it.
fn dies(detach: fn(&Line)) {
    let line = Line::new();
    let removing = line.clone();
    let node = thread::spawn(move || {
        removing.changed.store(true, Ordering::Release);
        detach(&removing);
    });
    line.wait_for_room(1, 1, REAL);
    node.join().unwrap();
}

#[test]
fn a_publisher_that_waits_for_room_is_woken() {
    explore("reliable: waits", PREEMPTIONS, 100, || waits(3, REAL));
}

#[test]
fn a_publisher_that_waits_is_woken_by_who_leaves() {
    explore("reliable: leaves", PREEMPTIONS, 20, || leaves(REAL));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_in_which_detach_wakes_once() {
    explore("mutant: detach wakes once", PREEMPTIONS, 0, || {
        dies(|line| _ = line.kernel.wake());
    });
}

/// `PublicationShared::detach`: wakes until the publisher no longer sleeps for the one removed.
#[test]
fn a_publisher_that_waits_for_the_dead_is_woken() {
    explore("reliable: dies", PREEMPTIONS, 20, || {
        dies(|line| {
            fence(Ordering::SeqCst);
            while line.waits_for.load(Ordering::Relaxed) == 2 {
                line.kernel.wake();
                loom::thread::yield_now();
            }
        });
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_t8() {
    explore("mutant T8", PREEMPTIONS, 0, || takes_one(Steps { t8: || (), ..REAL }));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_p1() {
    explore("mutant P1", PREEMPTIONS, 0, || takes_one(Steps { p1: || (), ..REAL }));
}
