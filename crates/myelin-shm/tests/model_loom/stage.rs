//! The stage of a process's callbacks: whoever publishes runs the body, or its thread does; no sample
//! is left lying.

// Not loom's `Arc`: it panics when a deadlock unwinds.
use std::sync::Arc;

use loom::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use loom::thread;
use myelin_shm::bell;

use crate::{Kernel, explore};

/// What has been delivered, of each publisher.
type Body = [u64; 2];

struct Stage {
    place: Mutex<Option<Body>>,
    asleep: AtomicU64,
    rings: AtomicU32,
    kernel: Kernel,
    published: [AtomicU64; 2],
    stopping: AtomicBool,
    calls: Mutex<u64>,
    called: Condvar,
}

#[derive(Clone, Copy)]
struct Steps {
    /// A publisher that finds the stage taken.
    turned_away: fn(&Stage),
    /// Whether the thread looks once more when it has said that it sleeps.
    looks_again: bool,
    /// Whether a publisher calls with its sample only if that is the next one.
    in_turn: bool,
}

const REAL: Steps = Steps { turned_away: Stage::ring, looks_again: true, in_turn: true };

impl Stage {
    fn new() -> Arc<Self> {
        Arc::new(Stage {
            place: Mutex::new(None),
            asleep: AtomicU64::new(0),
            rings: AtomicU32::new(0),
            kernel: Kernel::new(),
            published: [AtomicU64::new(0), AtomicU64::new(0)],
            stopping: AtomicBool::new(false),
            calls: Mutex::new(0),
            called: Condvar::new(),
        })
    }

    fn ring(&self) {
        fence(Ordering::SeqCst);
        if bell::must_wake(&self.asleep, &self.rings) {
            self.kernel.wake();
        }
    }

    /// As `Writer::call_back`.
    fn publish(&self, publisher: usize, count: u64, steps: Steps) {
        self.published[publisher].store(count, Ordering::Release);
        let Ok(mut place) = self.place.try_lock() else { return (steps.turned_away)(self) };
        fence(Ordering::SeqCst);
        let Some(body) = place.as_mut() else { return };
        if body[publisher] + 1 == count || !steps.in_turn {
            body[publisher] = count;
            self.call();
        } else {
            self.deliver(body);
        }
    }

    fn deliver(&self, body: &mut Body) {
        for (delivered, published) in body.iter_mut().zip(&self.published) {
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

    fn is_ready(&self, body: &Body) -> bool {
        let pairs = body.iter().zip(&self.published);
        self.stopping.load(Ordering::Relaxed)
            || pairs.into_iter().any(|(seen, there)| there.load(Ordering::Relaxed) > *seen)
    }

    /// As `Attendant::attend`.
    fn attend(&self, steps: Steps) {
        let mut body = [0, 0];
        while !self.stopping.load(Ordering::Relaxed) {
            self.deliver(&mut body);
            let mut place = self.place.lock().unwrap();
            let count = bell::fall_asleep(&self.asleep, &self.rings);
            if !steps.looks_again || !self.is_ready(&body) {
                *place = Some(body);
                drop(place);
                self.kernel.wait_32(&self.rings, count);
                body = self.place.lock().unwrap().take().expect("nobody else takes it");
            }
            bell::wake_up(&self.asleep);
        }
    }

    fn stop(&self) {
        self.stopping.store(true, Ordering::SeqCst);
        self.ring();
    }
}

/// `samples` of each publisher; all must come to be called, or this never ends.
fn all_are_called(samples: [u64; 2], steps: Steps) {
    let stage = Stage::new();
    let attending = stage.clone();
    let attendant = thread::spawn(move || attending.attend(steps));
    let publishing = stage.clone();
    let publisher = thread::spawn(move || {
        for count in 1..=samples[1] {
            publishing.publish(1, count, steps);
        }
    });
    for count in 1..=samples[0] {
        stage.publish(0, count, steps);
    }
    let mut calls = stage.calls.lock().unwrap();
    while *calls < samples[0] + samples[1] {
        calls = stage.called.wait(calls).unwrap();
    }
    drop(calls);
    publisher.join().unwrap();
    stage.stop();
    attendant.join().unwrap();
    assert_eq!(*stage.calls.lock().unwrap(), samples[0] + samples[1], "none is called twice");
}

#[test]
fn every_sample_is_called_with_once_whoever_publishes() {
    explore("stage: two publishers", 2, 1_000, || all_are_called([1, 1], REAL));
}

#[test]
fn every_sample_of_one_publisher_is_called_with_once() {
    explore("stage: one publisher", 3, 500, || all_are_called([2, 0], REAL));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_in_which_who_is_turned_away_does_not_ring() {
    let steps = Steps { turned_away: |_| (), ..REAL };
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
