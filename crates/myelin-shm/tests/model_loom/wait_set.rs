//! P8 against a wait set: whose member has a sample and was armed, is looked at.

// Not loom's `Arc`: it panics when a deadlock unwinds.
use std::sync::Arc;

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;
use myelin_shm::waiting::bell::{self, Ringer};

use crate::{Kernel, explore};

/// Two members, each with a publisher of its own.
struct Set {
    samples: [AtomicU64; 2],
    armed: [AtomicU64; 2],
    ready: AtomicU64,
    asleep: AtomicU64,
    rings: AtomicU32,
    kernel: Kernel,
}

#[derive(Clone, Copy)]
struct Steps {
    arm_fence: fn(),
    looks_after_falling_asleep: bool,
    ring: fn(&Set, u64) -> bool,
}

const REAL: Steps = Steps {
    arm_fence: || fence(Ordering::SeqCst),
    looks_after_falling_asleep: true,
    ring: |set, bit| {
        let wake = |_| {
            bell::count_up(&set.rings);
            set.kernel.wake()
        };
        bell::ring_set(&set.ready, bit, &set.asleep, &Ringer::new(), wake)
    },
};

impl Set {
    fn new() -> Arc<Set> {
        let two = || [AtomicU64::new(0), AtomicU64::new(0)];
        Arc::new(Set {
            samples: two(),
            armed: two(),
            ready: AtomicU64::new(0),
            asleep: AtomicU64::new(0),
            rings: AtomicU32::new(0),
            kernel: Kernel::new(),
        })
    }

    fn publish(&self, member: usize, samples: u64, steps: Steps) {
        let ringer = Ringer::new();
        for sample in 1..=samples {
            self.samples[member].store(sample, Ordering::Release);
            fence(Ordering::SeqCst); // P7
            let _ = ringer
                .ring(&self.armed[member], &AtomicU64::new(0), |_| (steps.ring)(self, 1 << member));
        }
    }

    /// As `WaitSet::wait`, again and again, until so many have been taken of each.
    fn take_all(&self, wanted: [u64; 2], steps: Steps) {
        let (mut loose, mut taken, mut arms, mut sleeps) = (3, [0; 2], 0, 0);
        let has_more = |member: usize, taken: [u64; 2]| {
            self.samples[member].load(Ordering::Relaxed) > taken[member]
        };
        while taken != wanted {
            loose |= bell::collect(&self.ready, 3);
            let (mut found, looked) = (false, loose);
            for member in (0..2).filter(|member| looked >> member & 1 != 0) {
                if has_more(member, taken) {
                    taken[member] = self.samples[member].load(Ordering::Acquire);
                    found = true;
                } else {
                    arms += 1;
                    let sleep = bell::Sleep::new(arms, Some(0));
                    self.armed[member].store(sleep.0, Ordering::Relaxed);
                    loose &= !(1 << member);
                }
            }
            (steps.arm_fence)();
            for member in (0..2).filter(|member| looked >> member & 1 != 0) {
                if has_more(member, taken) {
                    (loose, found) = (loose | 1 << member, true);
                }
            }
            if found {
                continue;
            }
            sleeps += 1;
            let count = bell::fall_asleep(&self.asleep, &self.rings, sleeps);
            let told = steps.looks_after_falling_asleep && self.ready.load(Ordering::Relaxed) != 0;
            if !told {
                self.kernel.wait_32(&self.rings, count);
            }
            bell::wake_up(&self.asleep);
        }
    }
}

fn run(wanted: [u64; 2], steps: Steps) {
    let set = Set::new();
    let publishers = [0, 1].map(|member| {
        let set = set.clone();
        thread::spawn(move || set.publish(member, wanted[member], steps))
    });
    set.take_all(wanted, steps);
    for publisher in publishers {
        publisher.join().unwrap();
    }
}

#[test]
fn no_sample_of_one_publisher_is_forgotten() {
    explore("wait set: one publisher", 3, 500, || run([2, 0], REAL));
}

#[test]
fn no_sample_of_two_publishers_is_forgotten() {
    explore("wait set: two publishers", 2, 1_000, || run([1, 1], REAL));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_after_arming() {
    explore("mutant: arming", 3, 0, || run([1, 0], Steps { arm_fence: || (), ..REAL }));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_sleeps_without_another_look() {
    let steps = Steps { looks_after_falling_asleep: false, ..REAL };
    explore("mutant: no look", 3, 0, move || run([1, 0], steps));
}

/// Without the fence between the bit and the look whether the set sleeps.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_ring_set() {
    let ring = |set: &Set, bit: u64| {
        set.ready.fetch_or(bit, Ordering::Release);
        if set.asleep.load(Ordering::Relaxed) == 0 {
            return true;
        }
        bell::count_up(&set.rings);
        set.kernel.wake()
    };
    explore("mutant: ring_set", 3, 0, move || run([1, 0], Steps { ring, ..REAL }));
}

/// Who rings says nothing to a set that is on its way into the kernel.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_does_not_count() {
    let ring = |set: &Set, bit: u64| {
        let wake = |_| set.kernel.wake();
        bell::ring_set(&set.ready, bit, &set.asleep, &Ringer::new(), wake)
    };
    explore("mutant: no count", 3, 0, move || run([1, 0], Steps { ring, ..REAL }));
}
