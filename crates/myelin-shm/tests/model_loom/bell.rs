//! P7 and P8 against S1 to S3: no wake-up is lost.

// Not loom's `Arc`: it panics when a deadlock unwinds.
use std::sync::Arc;

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;
use myelin_shm::bell;

use crate::{Kernel, explore};

const PREEMPTIONS: usize = 3;

struct Sleeper {
    asleep: AtomicU64,
    rings: AtomicU32,
    kernel: Kernel,
    /// One publisher's samples each.
    samples: [AtomicU64; 2],
}

impl Sleeper {
    fn new() -> Arc<Self> {
        Arc::new(Sleeper {
            asleep: AtomicU64::new(0),
            rings: AtomicU32::new(0),
            kernel: Kernel::new(),
            samples: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }

    fn has_all(&self, wanted: [u64; 2]) -> bool {
        let seen = |at: usize| self.samples[at].load(Ordering::Relaxed);
        seen(0) >= wanted[0] && seen(1) >= wanted[1]
    }

    /// As `Reader::sleep`: until there is a sample more than before, and so on until all are there.
    fn sleep_until(&self, wanted: [u64; 2], fall_asleep: fn(&AtomicU64, &AtomicU32) -> u32) {
        while !self.has_all(wanted) {
            let count = fall_asleep(&self.asleep, &self.rings);
            if !self.has_all(wanted) {
                self.kernel.wait_32(&self.rings, count);
            }
            bell::wake_up(&self.asleep);
        }
    }
}

#[derive(Clone, Copy)]
struct Steps {
    p7: fn(),
    must_wake: fn(&AtomicU64, &AtomicU32) -> bool,
    fall_asleep: fn(&AtomicU64, &AtomicU32) -> u32,
}

const REAL: Steps = Steps {
    p7: || fence(Ordering::SeqCst),
    must_wake: bell::must_wake,
    fall_asleep: bell::fall_asleep,
};

fn publish(sleeper: &Sleeper, publisher: usize, sample: u64, steps: Steps) {
    sleeper.samples[publisher].store(sample, Ordering::Release);
    (steps.p7)();
    if (steps.must_wake)(&sleeper.asleep, &sleeper.rings) {
        sleeper.kernel.wake();
    }
}

/// One publisher publishes `samples`, the sleeper waits for all of them.
fn one(steps: Steps, samples: u64) {
    let sleeper = Sleeper::new();
    let publishing = sleeper.clone();
    let publisher = thread::spawn(move || {
        for sample in 1..=samples {
            publish(&publishing, 0, sample, steps);
        }
    });
    for sample in 1..=samples {
        sleeper.sleep_until([sample, 0], steps.fall_asleep);
    }
    publisher.join().unwrap();
}

/// Two publishers, one sample each.
fn two(steps: Steps) {
    let sleeper = Sleeper::new();
    let publishers = [0, 1].map(|number| {
        let publishing = sleeper.clone();
        thread::spawn(move || publish(&publishing, number, 1, steps))
    });
    sleeper.sleep_until([1, 1], steps.fall_asleep);
    for publisher in publishers {
        publisher.join().unwrap();
    }
}

#[test]
fn no_wake_up_is_lost() {
    explore("bell: one publisher", PREEMPTIONS, 500, || one(REAL, 2));
}

#[test]
fn no_wake_up_is_lost_between_two_publishers() {
    explore("bell: two publishers", 2, 1_000, || two(REAL));
}

/// The first publisher is stopped for ever (SIGSTOP) after it has claimed the wake-up: the second
/// one's sample must arrive all the same.
fn stopped(must_wake: fn(&AtomicU64, &AtomicU32) -> bool) {
    let sleeper = Sleeper::new();
    let stopping = sleeper.clone();
    let stopped = thread::spawn(move || {
        stopping.samples[0].store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        let _ = must_wake(&stopping.asleep, &stopping.rings); // stopped before the wake
    });
    let publishing = sleeper.clone();
    let steps = Steps { must_wake, ..REAL };
    let publisher = thread::spawn(move || publish(&publishing, 1, 1, steps));
    sleeper.sleep_until([0, 1], bell::fall_asleep);
    publisher.join().unwrap();
    stopped.join().unwrap();
}

#[test]
fn a_stopped_publisher_does_not_keep_others_from_waking() {
    explore("bell: one is stopped", 2, 20, || stopped(bell::must_wake));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_in_which_only_who_counts_wakes() {
    explore("mutant: only who counts wakes", 2, 0, || {
        stopped(|asleep, rings| {
            let asleep = asleep.load(Ordering::Relaxed);
            let count = asleep.wrapping_sub(1) as u32;
            let order = Ordering::Relaxed;
            asleep != 0
                && rings.compare_exchange(count, count.wrapping_add(1), order, order).is_ok()
        });
    });
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_p7() {
    explore("mutant P7", PREEMPTIONS, 0, || one(Steps { p7: || (), ..REAL }, 1));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_s2() {
    let fall_asleep = |asleep: &AtomicU64, rings: &AtomicU32| {
        let count = rings.load(Ordering::Relaxed);
        asleep.store(u64::from(count) + 1, Ordering::Relaxed);
        count
    };
    explore("mutant S2", PREEMPTIONS, 0, move || one(Steps { fall_asleep, ..REAL }, 1));
}

/// Wakes without counting: a sleeper on its way into the kernel does not notice.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_count_of_p8() {
    let must_wake = |asleep: &AtomicU64, _: &AtomicU32| asleep.load(Ordering::Relaxed) != 0;
    explore("mutant P8", PREEMPTIONS, 0, move || one(Steps { must_wake, ..REAL }, 1));
}
