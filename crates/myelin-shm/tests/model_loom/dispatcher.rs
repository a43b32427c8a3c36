//! `entries`, where a process's callbacks and its publishers meet: whoever publishes runs the handler, or
//! its thread does, and no sample is left lying; whoever sleeps elsewhere or has just come is seen.

// Not loom's `Arc`: it panics when a deadlock unwinds.
use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use myelin_shm::dispatch::handlers::{self, Entered, Handlers};
use myelin_shm::waiting::notify;

use crate::{Kernel, explore};

/// What has been delivered, of each publisher.
type Handler = [u64; 2];

/// The callback's subscriber.
const CALLBACK: u64 = 1;

struct Process {
    entries: Handlers<Handler>,
    changed: AtomicBool,
    wake_word: WakeWord,
    published: [AtomicU64; 2],
    stopping: AtomicBool,
    calls: Mutex<u64>,
    called: Condvar,
}

struct WakeWord {
    asleep: AtomicU64,
    wakes: AtomicU32,
    kernel: Kernel,
}

impl WakeWord {
    fn new() -> Self {
        WakeWord { asleep: AtomicU64::new(0), wakes: AtomicU32::new(0), kernel: Kernel::new() }
    }

    /// After a fence.
    fn notify(&self) {
        if self.asleep.load(Ordering::Relaxed) != 0 {
            notify::count_up(&self.wakes);
            self.kernel.wake();
        }
    }
}

#[derive(Clone, Copy)]
struct Steps {
    /// Whether a publisher that has entered executes P7.
    fences: bool,
    /// Whether a publisher that finds somebody else there notifies.
    wakes: bool,
    /// Whether the thread looks once more when it has said that it sleeps.
    looks_again: bool,
    /// Whether a publisher calls with its sample only if that is the next one.
    in_turn: bool,
}

const REAL: Steps = Steps { fences: true, wakes: true, looks_again: true, in_turn: true };

impl Process {
    fn new() -> Arc<Self> {
        let entries = Handlers::new();
        entries.enter().join(CALLBACK);
        Arc::new(Process {
            entries,
            changed: AtomicBool::new(false),
            wake_word: WakeWord::new(),
            published: [AtomicU64::new(0), AtomicU64::new(0)],
            stopping: AtomicBool::new(false),
            calls: Mutex::new(0),
            called: Condvar::new(),
        })
    }

    /// As `Writer::call_back`, after P6; false if somebody has come or gone.
    fn dispatch(
        &self,
        steps: Steps,
        wake: impl FnOnce(bool),
        run: impl FnOnce(&mut Entered<'_, Handler>),
    ) -> bool {
        if steps.fences {
            return handlers::publish(Some(&self.entries), &self.changed, wake, run);
        }
        let entered = self.entries.try_enter();
        if self.changed.load(Ordering::Relaxed) {
            return false;
        }
        wake(entered.is_some());
        if let Some(mut entered) = entered {
            run(&mut entered);
        }
        true
    }

    fn publish(&self, publisher: usize, count: u64, steps: Steps) {
        self.published[publisher].store(count, Ordering::Release);
        let wake = |has_entered: bool| {
            if !has_entered && steps.wakes {
                self.wake_word.notify();
            }
        };
        let run = |entered: &mut Entered<'_, Handler>| {
            let Some(handler) = &mut entered.entries()[0].handler else { return };
            if handler[publisher] + 1 == count || !steps.in_turn {
                handler[publisher] = count;
                self.call();
            } else {
                self.deliver(handler);
            }
        };
        assert!(self.dispatch(steps, wake, run), "nobody comes");
    }

    fn deliver(&self, handler: &mut Handler) {
        for (delivered, published) in handler.iter_mut().zip(&self.published) {
            while *delivered < published.load(Ordering::Acquire) {
                *delivered += 1;
                self.call();
            }
        }
    }

    fn call(&self) {
        *self.calls.lock().unwrap() += 1;
        self.called.notify_all();
    }

    fn is_ready(&self, handler: &Handler) -> bool {
        let pairs = handler.iter().zip(&self.published);
        self.stopping.load(Ordering::Relaxed)
            || pairs.into_iter().any(|(seen, there)| there.load(Ordering::Relaxed) > *seen)
    }

    /// As `Attendant::attend`.
    fn attend(&self, steps: Steps) {
        let WakeWord { asleep, wakes, kernel } = &self.wake_word;
        let (mut handler, mut sleep) = ([0, 0], 0);
        while !self.stopping.load(Ordering::Relaxed) {
            self.deliver(&mut handler);
            sleep += 1;
            let fall_asleep = |handler: &mut Handler| {
                let count = notify::fall_asleep(asleep, wakes, sleep);
                (!steps.looks_again || !self.is_ready(handler)).then_some(count)
            };
            handler = match self.entries.enter().put_down(CALLBACK, handler, fall_asleep) {
                Ok(count) => {
                    kernel.wait_32(wakes, count);
                    self.entries.enter().pick_up(CALLBACK)
                }
                Err(handler) => handler,
            };
            notify::wake_up(asleep);
        }
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
        self.wake_word.notify();
    }
}

/// `samples` of each publisher; all must come to be called, or this never ends.
fn all_are_called(samples: [u64; 2], steps: Steps) {
    let process = Process::new();
    let attending = process.clone();
    let event_loop = thread::spawn(move || attending.attend(steps));
    let publishing = process.clone();
    let publisher = thread::spawn(move || {
        for count in 1..=samples[1] {
            publishing.publish(1, count, steps);
        }
    });
    for count in 1..=samples[0] {
        process.publish(0, count, steps);
    }
    let mut calls = process.calls.lock().unwrap();
    while *calls < samples[0] + samples[1] {
        calls = process.called.wait(calls).unwrap();
    }
    drop(calls);
    publisher.join().unwrap();
    process.stop();
    event_loop.join().unwrap();
    assert_eq!(*process.calls.lock().unwrap(), samples[0] + samples[1], "none is called twice");
}

/// Somebody elsewhere, whom a publisher that has entered has to notify: known to it, or just
/// coming. It sleeps until the one sample is there, or this never ends.
fn others_are_seen(is_known: bool, steps: Steps) {
    let (process, wake_word) = (Process::new(), Arc::new(WakeWord::new()));
    let is_listed = Arc::new(AtomicBool::new(is_known));
    let (others, others_word, others_place) =
        (process.clone(), wake_word.clone(), is_listed.clone());
    let other = thread::spawn(move || {
        let WakeWord { asleep, wakes, kernel } = &*others_word;
        let is_there = || others.published[0].load(Ordering::Relaxed) > 0;
        if !is_known {
            // As `PublicationShared::attach`; what is there by then is not for it.
            others_place.store(true, Ordering::Release);
            others.changed.store(true, Ordering::Relaxed);
            fence(Ordering::SeqCst);
        }
        let mut sleep = 0;
        while !is_there() {
            sleep += 1;
            let count = notify::fall_asleep(asleep, wakes, sleep);
            if !is_there() {
                kernel.wait_32(wakes, count);
            }
            notify::wake_up(asleep);
        }
    });
    process.published[0].store(1, Ordering::Release);
    let mut knows = is_known;
    let wake = |knows: bool| {
        if knows {
            wake_word.notify();
        }
    };
    while !process.dispatch(steps, |_| wake(knows), |_| ()) {
        // As `Writer::refresh`.
        process.changed.store(false, Ordering::Relaxed);
        fence(Ordering::SeqCst);
        knows = is_listed.load(Ordering::Acquire);
    }
    other.join().unwrap();
}

#[test]
fn every_sample_is_called_with_once_whoever_publishes() {
    explore("entries: two publishers", 2, 1_000, || all_are_called([1, 1], REAL));
}

#[test]
fn every_sample_of_one_publisher_is_called_with_once() {
    explore("entries: one publisher", 3, 500, || all_are_called([2, 0], REAL));
}

#[test]
fn who_sleeps_elsewhere_is_woken() {
    explore("entries: a sleeper elsewhere", 3, 40, || others_are_seen(true, REAL));
}

#[test]
fn who_has_just_come_is_woken() {
    explore("entries: a newcomer", 3, 40, || others_are_seen(false, REAL));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_p7_for_a_sleeper_elsewhere() {
    let steps = Steps { fences: false, ..REAL };
    explore("mutant: no P7, a sleeper", 3, 0, move || others_are_seen(true, steps));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_p7_for_a_newcomer() {
    let steps = Steps { fences: false, ..REAL };
    explore("mutant: no P7, a newcomer", 3, 0, move || others_are_seen(false, steps));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_p7_for_the_callbacks_thread() {
    let steps = Steps { fences: false, ..REAL };
    explore("mutant: no P7, the thread", 2, 0, move || all_are_called([1, 1], steps));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_in_which_who_is_turned_away_does_not_notify() {
    let steps = Steps { wakes: false, ..REAL };
    explore("mutant: no ring", 2, 0, move || all_are_called([1, 1], steps));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_in_which_the_thread_does_not_look_again() {
    let steps = Steps { looks_again: false, ..REAL };
    explore("mutant: no second look", 2, 0, move || all_are_called([1, 1], steps));
}

#[test]
#[should_panic(expected = "none is called twice")]
fn mutant_in_which_a_publisher_calls_out_of_turn() {
    let steps = Steps { in_turn: false, ..REAL };
    explore("mutant: out of turn", 4, 0, move || all_are_called([2, 1], steps));
}
