//! The lock-free parts, run in every order that the C++ memory model allows (as far as loom knows
//! it: no load buffering). Each property has mutants, one step weakened each, that must fail: a
//! model that cannot fail proves nothing. loom sometimes explores far less than it should and says
//! nothing (tokio-rs/loom #166, #392), so each run counts its executions and asserts a minimum.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p myelin-shm --release --test model_loom`
#![cfg(loom)]

mod attach;
mod bell;
mod dispatcher;
mod hold;
mod reclaim;
mod reliable;
mod ring;
mod wait_set;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Count, Ordering as Counting};

use loom::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};
use loom::sync::{Condvar, Mutex};
use myelin_shm::data_plane::layout::{Cell, EMPTY};

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

    fn wait_64(&self, word: &AtomicU64, value: u64) {
        self.wait(|| word.load(Ordering::Relaxed) as u32 == value as u32);
    }

    /// Whether somebody slept.
    fn wake(&self) -> bool {
        let sleepers = std::mem::take(&mut *self.queue.lock().unwrap());
        self.awake.notify_all();
        sleepers > 0
    }
}
