//! P8 against a wait set: whose member has a sample and was armed, is looked at.

// Not loom's `Arc`: it panics when a deadlock unwinds.
use std::sync::Arc;

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;
use myelin_shm::waiting::notify::{self, Notifier};

use crate::{Kernel, explore};

/// Two members, each with a publisher of its own.
struct Set {
    samples: [AtomicU64; 2],
    armed: [AtomicU64; 2],
    ready: AtomicU64,
    asleep: AtomicU64,
    wakes: AtomicU32,
    kernel: Kernel,
}

#[derive(Clone, Copy)]
struct Steps {
    arm_fence: fn(),
    looks_after_falling_asleep: bool,
    notify: fn(&Set, u64) -> bool,
}

const REAL: Steps = Steps {
    arm_fence: || fence(Ordering::SeqCst),
    looks_after_falling_asleep: true,
    notify: |set, bit| {
        let wake = |_| {
            notify::count_up(&set.wakes);
            set.kernel.wake()
        };
        notify::notify_set(&set.ready, bit, &set.asleep, &Notifier::new(), wake)
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
            wakes: AtomicU32::new(0),
            kernel: Kernel::new(),
        })
    }

    fn publish(&self, member: usize, samples: u64, steps: Steps) {
        let notifier = Notifier::new();
        for sample in 1..=samples {
            self.samples[member].store(sample, Ordering::Release);
            fence(Ordering::SeqCst); // P7
            let _ = notifier.notify(&self.armed[member], &AtomicU64::new(0), |_| {
                (steps.notify)(self, 1 << member)
            });
        }
    }

    /// As `WaitSet::wait`, again and again, until so many have been taken of each.
    fn take_all(&self, wanted: [u64; 2], steps: Steps) {
        let (mut loose, mut taken, mut arms, mut sleeps) = (3, [0; 2], 0, 0);
        let has_more = |member: usize, taken: [u64; 2]| {
            self.samples[member].load(Ordering::Relaxed) > taken[member]
        };
        while taken != wanted {
            loose |= notify::collect(&self.ready, 3);
            let (mut found, looked) = (false, loose);
            for member in (0..2).filter(|member| looked >> member & 1 != 0) {
                if has_more(member, taken) {
                    taken[member] = self.samples[member].load(Ordering::Acquire);
                    found = true;
                } else {
                    arms += 1;
                    let sleep = notify::Sleep::new(arms, Some(0));
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
            let count = notify::fall_asleep(&self.asleep, &self.wakes, sleeps);
            let told = steps.looks_after_falling_asleep && self.ready.load(Ordering::Relaxed) != 0;
            if !told {
                self.kernel.wait_32(&self.wakes, count);
            }
            notify::wake_up(&self.asleep);
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
    let notify = |set: &Set, bit: u64| {
        set.ready.fetch_or(bit, Ordering::Release);
        if set.asleep.load(Ordering::Relaxed) == 0 {
            return true;
        }
        notify::count_up(&set.wakes);
        set.kernel.wake()
    };
    explore("mutant: notify_set", 3, 0, move || run([1, 0], Steps { notify, ..REAL }));
}

/// Who notifies says nothing to a set that is on its way into the kernel.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_does_not_count() {
    let notify = |set: &Set, bit: u64| {
        let wake = |_| set.kernel.wake();
        notify::notify_set(&set.ready, bit, &set.asleep, &Notifier::new(), wake)
    };
    explore("mutant: no count", 3, 0, move || run([1, 0], Steps { notify, ..REAL }));
}
