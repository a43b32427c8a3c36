//! What is lock-free, run in every order that the C++ memory model allows (as far as loom knows it: no load
//! buffering). `reclaim`, `attach`, `hold`, `reliable` and `sleep` run a writer and readers as they ship, on
//! memory and a kernel of the model; the others the functions that these are made of, beside which a model
//! can put a hostile peer. Each property has mutants, one step left out or weakened each, that must fail: a
//! model that cannot fail proves nothing. loom sometimes explores far less than it should and says
//! nothing (tokio-rs/loom #166, #392), so each run counts its executions and asserts a minimum.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p myelin-shm --release --test model_loom`
#![cfg(loom)]

mod attach;
mod dispatcher;
mod endpoints;
mod hold;
mod notify;
mod reclaim;
mod reliable;
mod ring;
mod sleep;
#[path = "../support/mod.rs"]
mod support;
mod wait_set;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Count, Ordering as Counting};

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use myelin_shm::data_plane::layout::{Cell, EMPTY};

/// Switches of threads that no thread asked for, in models of a whole publish and a whole take.
const PREEMPTIONS: usize = 2;

/// Runs a model in which a step of what ships is left out; it must fail.
fn mutant(step: myelin_shm::Step, model: impl Fn() + Send + Sync + 'static) {
    struct Restore;
    impl Drop for Restore {
        fn drop(&mut self) {
            myelin_shm::leave_out(None);
        }
    }
    let _restore = Restore;
    myelin_shm::leave_out(Some(step));
    explore(&format!("mutant {step:?}"), 3, 0, model);
}

/// Runs `handler` in every order with at most `preemptions` switches of threads that no thread asked
/// for.
fn explore(
    name: &str,
    preemptions: usize,
    at_least: u64,
    handler: impl Fn() + Send + Sync + 'static,
) {
    let executions = Arc::new(Count::new(0));
    let counted = executions.clone();
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(preemptions);
    model.max_branches = 10_000;
    model.check(move || {
        counted.fetch_add(1, Counting::Relaxed);
        handler();
    });
    let executions = executions.load(Counting::Relaxed);
    println!("{name}: {executions} executions, at most {preemptions} preemptions");
    assert!(executions >= at_least, "{name}: only {executions} executions were explored");
}

/// The ready bit of a publisher of few.
fn not_many<'a>() -> (&'a AtomicU64, u64) {
    panic!("its subscriber has few publishers")
}

/// The word that nobody sleeps on.
fn not_on_published() -> u64 {
    panic!("its subscriber sleeps on its wake word")
}

fn cell() -> Cell {
    Cell {
        sequence: AtomicU64::new(EMPTY),
        length: AtomicU64::new(0),
        place: AtomicU64::new(0),
        inline: std::array::from_fn(|_| AtomicU64::new(0)),
    }
}

/// As `sync::load_acquire`.
fn load_acquire(word: &AtomicU64) -> u64 {
    let value = word.load(Ordering::Relaxed);
    fence(Ordering::Acquire);
    value
}

/// The kernel's side of a futex: comparing and falling asleep are one step against waking. A wake-up
/// that is lost ends in loom's "deadlock".
struct Kernel {
    /// How many sleep.
    queue: Mutex<usize>,
    awake: Condvar,
}

impl Kernel {
    fn new() -> Self {
        Kernel { queue: Mutex::new(0), awake: Condvar::new() }
    }

    /// `is_same`: whether the word still has the value to sleep on.
    fn wait(&self, is_same: impl FnOnce() -> bool) {
        let mut queue = self.queue.lock().unwrap();
        if is_same() {
            *queue += 1;
            drop(self.awake.wait(queue).unwrap());
        }
    }

    fn wait_32(&self, word: &AtomicU32, value: u32) {
        self.wait(|| word.load(Ordering::Relaxed) == value);
    }

    /// Whether somebody slept.
    fn wake(&self) -> bool {
        let sleepers = std::mem::take(&mut *self.queue.lock().unwrap());
        self.awake.notify_all();
        sleepers > 0
    }
}
