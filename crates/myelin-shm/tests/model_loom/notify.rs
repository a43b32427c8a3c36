//! P7 and P8 against S1 to S3: no wake-up is lost, whatever another publisher writes to the wake word.

// Not loom's `Arc`: it panics when a deadlock unwinds.
use std::sync::Arc;

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::thread;
use myelin_shm::waiting::notify::{self, Notifier};

use crate::{Kernel, explore, load_acquire, not_many, not_on_published};

const PREEMPTIONS: usize = 3;

struct Sleeper {
    asleep: AtomicU64,
    wakes: AtomicU32,
    kernel: Kernel,
    /// One publisher's samples each.
    samples: [AtomicU64; 2],
}

type FallAsleep = fn(&AtomicU64, &AtomicU32, u64) -> u32;

impl Sleeper {
    fn new() -> Arc<Self> {
        Arc::new(Sleeper {
            asleep: AtomicU64::new(0),
            wakes: AtomicU32::new(0),
            kernel: Kernel::new(),
            samples: [AtomicU64::new(0), AtomicU64::new(0)],
        })
    }

    fn has_all(&self, wanted: [u64; 2]) -> bool {
        let seen = |at: usize| self.samples[at].load(Ordering::Relaxed);
        seen(0) >= wanted[0] && seen(1) >= wanted[1]
    }

    /// As `Reader::sleep`: until there is a sample more than before, and so on until all are there.
    fn sleep_until(&self, wanted: [u64; 2], sleep: &mut u64, fall_asleep: FallAsleep) {
        while !self.has_all(wanted) {
            *sleep += 1;
            let count = fall_asleep(&self.asleep, &self.wakes, *sleep);
            if !self.has_all(wanted) {
                self.kernel.wait_32(&self.wakes, count);
            }
            notify::wake_up(&self.asleep);
        }
    }
}

#[derive(Clone, Copy)]
struct Steps {
    p7: fn(),
    notify: fn(&Notifier, &Sleeper),
    fall_asleep: FallAsleep,
}

const REAL: Steps = Steps {
    p7: || fence(Ordering::SeqCst),
    notify: |notifier, sleeper| {
        let on_published = notifier.notify(&sleeper.asleep, not_on_published, not_many, |_| {
            notify::count_up(&sleeper.wakes);
            sleeper.kernel.wake()
        });
        assert!(!on_published);
    },
    fall_asleep: notify::fall_asleep,
};

fn publish(sleeper: &Sleeper, notifier: &Notifier, publisher: usize, sample: u64, steps: Steps) {
    sleeper.samples[publisher].store(sample, Ordering::Release);
    (steps.p7)();
    (steps.notify)(notifier, sleeper);
}

/// One publisher publishes `samples`, the sleeper waits for all of them.
fn one(steps: Steps, samples: u64) {
    let sleeper = Sleeper::new();
    let publishing = sleeper.clone();
    let publisher = thread::spawn(move || {
        let notifier = Notifier::new();
        for sample in 1..=samples {
            publish(&publishing, &notifier, 0, sample, steps);
        }
    });
    let mut sleep = 0;
    for sample in 1..=samples {
        sleeper.sleep_until([sample, 0], &mut sleep, steps.fall_asleep);
    }
    publisher.join().unwrap();
}

/// Two publishers, one sample each.
fn two(steps: Steps) {
    let sleeper = Sleeper::new();
    let publishers = [0, 1].map(|number| {
        let publishing = sleeper.clone();
        thread::spawn(move || publish(&publishing, &Notifier::new(), number, 1, steps))
    });
    sleeper.sleep_until([1, 1], &mut 0, steps.fall_asleep);
    for publisher in publishers {
        publisher.join().unwrap();
    }
}

/// A hostile publisher sets the wake word back, at any moment; an honest one publishes twice. The sleeper
/// may miss the first wake-up, but not both.
fn set_back(steps: Steps) {
    let sleeper = Sleeper::new();
    let hostile = sleeper.clone();
    let hostile = thread::spawn(move || hostile.wakes.store(0, Ordering::Relaxed));
    let publishing = sleeper.clone();
    let publisher = thread::spawn(move || {
        let notifier = Notifier::new();
        publish(&publishing, &notifier, 0, 1, steps);
        // What it has set back, it has set back before.
        hostile.join().unwrap();
        publish(&publishing, &notifier, 0, 2, steps);
    });
    sleeper.sleep_until([1, 0], &mut 0, steps.fall_asleep);
    publisher.join().unwrap();
}

#[test]
fn no_wake_up_is_lost() {
    explore("notify: one publisher", PREEMPTIONS, 500, || one(REAL, 2));
}

#[test]
fn no_wake_up_is_lost_between_two_publishers() {
    explore("notify: two publishers", 2, 1_000, || two(REAL));
}

#[test]
fn a_bell_that_is_set_back_silences_nobody() {
    explore("notify: set back", 3, 1_000, || set_back(REAL));
}

/// As it was: whoever has notified a sleep is silent for the rest of it.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_does_not_ask_the_kernel() {
    let notify = |notifier: &Notifier, sleeper: &Sleeper| {
        let _ = notifier.notify(&sleeper.asleep, not_on_published, not_many, |_| {
            notify::count_up(&sleeper.wakes);
            sleeper.kernel.wake();
            true
        });
    };
    explore("mutant: set back", 3, 0, move || set_back(Steps { notify, ..REAL }));
}

/// The first publisher is stopped for ever (SIGSTOP) before it wakes: the second one's sample must
/// arrive all the same.
fn stopped(steps: Steps) {
    let sleeper = Sleeper::new();
    let stopping = sleeper.clone();
    let stopped = thread::spawn(move || {
        stopping.samples[0].store(1, Ordering::Release);
        fence(Ordering::SeqCst);
        if stopping.asleep.load(Ordering::Relaxed) != 0 {
            notify::count_up(&stopping.wakes); // stopped before the wake
        }
    });
    let publishing = sleeper.clone();
    let publisher = thread::spawn(move || publish(&publishing, &Notifier::new(), 1, 1, steps));
    sleeper.sleep_until([0, 1], &mut 0, steps.fall_asleep);
    publisher.join().unwrap();
    stopped.join().unwrap();
}

#[test]
fn a_stopped_publisher_does_not_keep_others_from_waking() {
    explore("notify: one is stopped", 2, 20, || stopped(REAL));
}

/// The first to count wakes, the others rely on it.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_in_which_only_who_counts_first_wakes() {
    let notify = |_: &Notifier, sleeper: &Sleeper| {
        let order = Ordering::Relaxed;
        let asleep = sleeper.asleep.load(order) != 0;
        if asleep && sleeper.wakes.compare_exchange(0, 1, order, order).is_ok() {
            sleeper.kernel.wake();
        }
    };
    explore("mutant: only who counts first wakes", 2, 0, move || {
        stopped(Steps { notify, ..REAL });
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
    let fall_asleep: FallAsleep = |asleep, wakes, sleep| {
        let count = wakes.load(Ordering::Relaxed);
        asleep.store(sleep, Ordering::Relaxed);
        count
    };
    explore("mutant S2", PREEMPTIONS, 0, move || one(Steps { fall_asleep, ..REAL }, 1));
}

/// Wakes without counting: a sleeper on its way into the kernel does not notice.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_count_of_p8() {
    let notify = |_: &Notifier, sleeper: &Sleeper| {
        if sleeper.asleep.load(Ordering::Relaxed) != 0 {
            sleeper.kernel.wake();
        }
    };
    explore("mutant P8", PREEMPTIONS, 0, move || one(Steps { notify, ..REAL }, 1));
}

/// Every sleep has the same number: who has woken the first is silent in the second.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_in_which_all_sleeps_are_one() {
    let fall_asleep: FallAsleep = |asleep, wakes, _| notify::fall_asleep(asleep, wakes, 1);
    explore("mutant: one sleep", PREEMPTIONS, 0, move || one(Steps { fall_asleep, ..REAL }, 2));
}

/// Two subscribers of one publisher, which sleep on its `published` and on their own wake words.
struct Many {
    /// P5 and P6 of the publisher.
    sample: AtomicU64,
    published: AtomicU64,
    /// One queue a futex; a thread in two of them is in this one of its own, which both wake.
    subscribers: [Sleeper; 2],
}

#[derive(Clone, Copy)]
struct ManySteps {
    /// What the sleeper reads first: the value to sleep on, or `asleep` is said.
    reads_first: bool,
    counts_before_notifying: bool,
    /// In `asleep`; otherwise a number.
    tells_value: bool,
}

const MANY: ManySteps =
    ManySteps { reads_first: true, counts_before_notifying: true, tells_value: true };

impl Many {
    fn publish(&self, notifiers: &[Notifier; 2], sample: u64, steps: ManySteps) {
        self.sample.store(sample, Ordering::Release);
        if steps.counts_before_notifying {
            self.published.store(sample, Ordering::Release);
        }
        fence(Ordering::SeqCst);
        let on_published = [0, 1].map(|at| {
            notifiers[at].notify(
                &self.subscribers[at].asleep,
                || self.published.load(Ordering::Relaxed),
                not_many,
                |_| panic!("nobody is on its wake_word alone"),
            )
        });
        if on_published != [false; 2] {
            self.subscribers.iter().for_each(|it| _ = it.kernel.wake());
        }
        self.published.store(sample, Ordering::Release);
    }

    fn sleep_until(
        &self,
        at: usize,
        wanted: u64,
        steps: ManySteps,
        is_interrupted: &dyn Fn() -> bool,
    ) {
        let its = &self.subscribers[at];
        let is_there = || self.sample.load(Ordering::Relaxed) >= wanted || is_interrupted();
        let mut sleeps = 0;
        while !is_there() {
            let read = || load_acquire(&self.published);
            let first = read();
            sleeps += 1;
            let told = if steps.tells_value { first } else { wanted << 40 | sleeps << 32 };
            let number = notify::Sleep::on_published(told).0;
            let count = notify::fall_asleep(&its.asleep, &its.wakes, number);
            let there = is_there();
            let value = if steps.reads_first { first } else { read() };
            if !there {
                its.kernel.wait(|| {
                    its.wakes.load(Ordering::Relaxed) == count
                        && self.published.load(Ordering::Relaxed) == value
                });
            }
            notify::wake_up(&its.asleep);
        }
    }
}

fn many(subscribers: usize, samples: u64, steps: ManySteps) {
    let sleeper = || Arc::into_inner(Sleeper::new()).unwrap();
    let (sample, published) = (AtomicU64::new(0), AtomicU64::new(0));
    let many = Arc::new(Many { sample, published, subscribers: [sleeper(), sleeper()] });
    let others: Vec<_> = (1..subscribers)
        .map(|at| {
            let many = many.clone();
            thread::spawn(move || many.sleep_until(at, samples, steps, &|| false))
        })
        .collect();
    let publishing = many.clone();
    let publisher = thread::spawn(move || {
        let notifiers = [Notifier::new(), Notifier::new()];
        (1..=samples).for_each(|sample| publishing.publish(&notifiers, sample, steps));
    });
    (1..=samples).for_each(|sample| many.sleep_until(0, sample, steps, &|| false));
    publisher.join().unwrap();
    others.into_iter().for_each(|other| other.join().unwrap());
}

#[test]
fn no_wake_up_of_many_is_lost() {
    explore("notify: one of many", PREEMPTIONS, 500, || many(1, 2, MANY));
    explore("notify: two of many", 2, 500, || many(2, 1, MANY));
}

/// Its own process cannot change `published`, and counts its wake word up.
#[test]
fn one_of_many_is_woken_by_its_own_process() {
    explore("notify: interrupted", PREEMPTIONS, 50, || {
        let sleeper = || Arc::into_inner(Sleeper::new()).unwrap();
        let (sample, published) = (AtomicU64::new(0), AtomicU64::new(0));
        let many = Arc::new(Many { sample, published, subscribers: [sleeper(), sleeper()] });
        let interrupting = many.clone();
        let interrupter = thread::spawn(move || {
            let its = &interrupting.subscribers[0];
            its.samples[1].store(1, Ordering::Release);
            fence(Ordering::SeqCst);
            notify::count_up(&its.wakes);
            its.kernel.wake();
        });
        let its = &many.subscribers[0];
        many.sleep_until(0, 1, MANY, &|| its.samples[1].load(Ordering::Relaxed) != 0);
        interrupter.join().unwrap();
    });
}

/// Who sleeps on the present value has not been woken by it: as it was first, without the value in `asleep`.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_counts_who_has_seen_the_sample_as_woken() {
    let steps = ManySteps { tells_value: false, ..MANY };
    explore("mutant: no value", PREEMPTIONS, 0, move || many(1, 2, steps));
}

/// The value is read after the last look: the sample that came in between is in it already.
#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_reads_published_late() {
    let steps = ManySteps { reads_first: false, ..MANY };
    explore("mutant: reads late", PREEMPTIONS, 0, move || many(1, 1, steps));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_that_counts_after_notifying() {
    let steps = ManySteps { counts_before_notifying: false, ..MANY };
    explore("mutant: counts late", PREEMPTIONS, 0, move || many(1, 1, steps));
}
