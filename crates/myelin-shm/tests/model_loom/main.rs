//! Lock-free code, run in every order that the C++ memory model allows (as far as loom knows it: no
//! load buffering): the shipping writers, readers, wait sets and callbacks, on memory and a kernel
//! of the model. `ring` runs the functions of a cell, and can put a hostile peer beside it. Each
//! property has mutants, each with one step left out or weakened, that must fail: a model that
//! cannot fail proves nothing. loom sometimes explores far less than it should without a notice
//! (tokio-rs/loom #166, #392), so each run counts its executions and asserts a minimum.
//!
//! `RUSTFLAGS="--cfg loom" cargo test -p myelin-shm --release --test model_loom`
#![cfg(loom)]

mod attach;
mod dispatcher;
mod endpoints;
mod hold;
mod notify;
mod observer;
mod reclaim;
mod reliable;
mod ring;
mod sleep;
#[path = "../support/mod.rs"]
mod support;
mod wait_set;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64 as Count, Ordering as Counting};

use loom::sync::atomic::{AtomicU64, Ordering, fence};
use myelin_shm::layout::{Cell, EMPTY};

/// Thread switches that no thread requested, in models of a whole publish and a whole take.
const PREEMPTIONS: usize = 2;

/// Runs a model in which a step of the shipping code is left out; it must fail.
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

/// Runs `handler` in every order with at most `preemptions` thread switches that no thread
/// requested.
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

/// An object that is not dropped when a deadlock unwinds: loom's objects would panic again.
struct Kept<T>(std::mem::ManuallyDrop<T>);

impl<T> Kept<T> {
    fn new(it: T) -> Kept<T> {
        Kept(std::mem::ManuallyDrop::new(it))
    }
}

impl<T> std::ops::Deref for Kept<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for Kept<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Kept<T> {
    fn drop(&mut self) {
        if !std::thread::panicking() {
            // SAFETY: this is its end.
            unsafe { std::mem::ManuallyDrop::drop(&mut self.0) };
        }
    }
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
