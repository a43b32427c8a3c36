//! P8 against a wait set: whose member has a sample and was armed, is looked at.

// Not loom's `Arc`: it panics when a deadlock unwinds.
use std::sync::Arc;

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;
use myelin_shm::Step;
use myelin_shm::waiting::notify::{self, Notifier};

use crate::{Kernel, explore, mutant, not_on_published};

/// Two members, each with a publisher of its own.
struct Set {
    samples: [AtomicU64; 2],
    armed: [AtomicU64; 2],
    /// The ready bit of its publisher, if the member has many.
    told: [AtomicU64; 2],
    ready: AtomicU64,
    asleep: AtomicU64,
    wakes: AtomicU32,
    kernel: Kernel,
}

#[derive(Clone, Copy)]
struct Steps {
    /// Members have many publishers, and are looked at by their ready bits alone.
    of_many: bool,
    /// The publisher's steps after its sample.
    publish: fn(&Set, &Notifier, usize, Steps),
    arm_fence: fn(),
    looks_after_falling_asleep: bool,
    notify: fn(&Set, u64) -> bool,
}

const REAL: Steps = Steps {
    of_many: false,
    publish: |set, notifier, member, steps| {
        fence(Ordering::SeqCst); // P7
        let ready = || (&set.told[member], 1);
        let wake = |_| (steps.notify)(set, 1 << member);
        let _ = notifier.notify(&set.armed[member], not_on_published, ready, wake);
    },
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
            told: two(),
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
            (steps.publish)(self, &notifier, member, steps);
        }
    }

    /// As `WaitSet::wait`, again and again, until so many have been taken of each.
    fn take_all(&self, wanted: [u64; 2], steps: Steps) {
        let (mut loose, mut taken, mut arms, mut sleeps) = (3, [0; 2], 0, 0);
        // Which publisher its reader has to look at, as `Due`.
        let mut due = [!steps.of_many; 2];
        let of_many = if steps.of_many { notify::Sleep::OF_MANY } else { 0 };
        let has_more = |member: usize, taken: [u64; 2], due: [bool; 2]| {
            (due[member] || self.told[member].load(Ordering::Acquire) != 0)
                && self.samples[member].load(Ordering::Relaxed) > taken[member]
        };
        while taken != wanted {
            loose |= notify::collect(&self.ready, 3);
            let (mut found, looked) = (false, loose);
            for member in (0..2).filter(|member| looked >> member & 1 != 0) {
                if has_more(member, taken, due) {
                    // As a reader of many that takes until there is nothing.
                    notify::take_ready(&self.told[member..=member], |_, _| due[member] = true);
                    taken[member] = self.samples[member].load(Ordering::Acquire);
                    due[member] = !steps.of_many;
                    found = true;
                } else {
                    arms += 1;
                    let sleep = notify::Sleep::new(arms, Some(0));
                    self.armed[member].store(sleep.0 | of_many, Ordering::Relaxed);
                    loose &= !(1 << member);
                }
            }
            (steps.arm_fence)();
            for member in (0..2).filter(|member| looked >> member & 1 != 0) {
                if has_more(member, taken, due) {
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
    if steps.of_many {
        set.armed.iter().for_each(|it| it.store(notify::Sleep::OF_MANY, Ordering::Relaxed));
    }
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

const MANY: Steps = Steps { of_many: true, ..REAL };

#[test]
fn no_ready_bit_of_a_member_is_forgotten() {
    explore("wait set: a publisher of many", 3, 500, || run([2, 0], MANY));
    explore("wait set: two members of many", 2, 1_000, || run([1, 1], MANY));
}

/// The member is armed between the look at `asleep` and the ready bit.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_does_not_look_again_after_its_ready_bit() {
    let publish = |set: &Set, _: &Notifier, member: usize, steps: Steps| {
        fence(Ordering::SeqCst);
        let sleep = set.armed[member].load(Ordering::Relaxed);
        set.told[member].fetch_or(1, Ordering::Release);
        if sleep != notify::Sleep::OF_MANY {
            (steps.notify)(set, 1 << member);
        }
    };
    explore("mutant: no second look", 3, 0, move || run([1, 0], Steps { publish, ..MANY }));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_after_its_ready_bit() {
    mutant(Step::B2, || run([1, 0], MANY));
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
