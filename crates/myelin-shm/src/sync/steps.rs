//! Atomics for tests: a thread's stores can be made to stop, or be interrupted, at any step. Only
//! this crate's own tests use them; a release build has the hardware's.
//!
//! A step is a store, or an effect on others through the kernel. After the thread's simulated death
//! its stores have no effect. So the drops while it unwinds leave memory as a killed process would.

use std::cell::{Cell, RefCell};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{self, Ordering};

thread_local! {
    static LEFT: Cell<u64> = const { Cell::new(u64::MAX) };
    static THEN: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    static IS_DEAD: Cell<bool> = const { Cell::new(false) };
}

/// The panic payload of a thread that dies.
struct Died;

/// Runs `what`, and dies before its step `at`, counted from 0. `None` if it has died.
pub(crate) fn dies<T>(at: u64, what: impl FnOnce() -> T) -> Option<T> {
    let end = || {
        IS_DEAD.set(true);
        resume_unwind(Box::new(Died)); // without output on stderr
    };
    let (done, _) = interrupted(at, Box::new(end), || catch_unwind(AssertUnwindSafe(what)));
    IS_DEAD.set(false);
    done.map_or_else(|panic| if panic.is::<Died>() { None } else { resume_unwind(panic) }, Some)
}

/// Runs `what`, and `then` before its step `at`; whether that step was reached. The steps of `then`
/// do not count.
pub(crate) fn interrupted<T>(
    at: u64,
    then: Box<dyn FnOnce()>,
    what: impl FnOnce() -> T,
) -> (T, bool) {
    LEFT.set(at);
    THEN.set(Some(then));
    let done = what();
    LEFT.set(u64::MAX);
    (done, THEN.take().is_none())
}

/// Does `what` as another process would, which goes on after the death of this one: its steps do not count.
pub(crate) fn elsewhere<T>(what: impl FnOnce() -> T) -> T {
    let left = LEFT.replace(u64::MAX);
    let done = what();
    LEFT.set(left);
    done
}

/// Whether the step takes effect: this thread has not died.
pub(crate) fn step() -> bool {
    match LEFT.get() {
        u64::MAX => {}
        0 => {
            LEFT.set(u64::MAX);
            if let Some(then) = THEN.take() {
                then();
            }
        }
        left => LEFT.set(left - 1),
    }
    !IS_DEAD.get()
}

macro_rules! atomic {
    ($name:ident, $value:ty) => {
        #[derive(Debug, Default)]
        #[repr(transparent)]
        pub struct $name(atomic::$name);

        impl $name {
            pub const fn new(value: $value) -> $name {
                $name(atomic::$name::new(value))
            }

            #[inline(always)]
            pub fn load(&self, order: Ordering) -> $value {
                self.0.load(order)
            }

            pub fn store(&self, value: $value, order: Ordering) {
                if step() {
                    self.0.store(value, order);
                }
            }

            #[allow(dead_code, reason = "not each of them is used so")]
            pub fn swap(&self, value: $value, order: Ordering) -> $value {
                self.change(|| self.0.swap(value, order))
            }

            #[allow(dead_code, reason = "not each of them is used so")]
            pub fn fetch_or(&self, value: $value, order: Ordering) -> $value {
                self.change(|| self.0.fetch_or(value, order))
            }

            #[allow(dead_code, reason = "not each of them is used so")]
            pub fn fetch_and(&self, value: $value, order: Ordering) -> $value {
                self.change(|| self.0.fetch_and(value, order))
            }

            pub fn compare_exchange(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                if step() {
                    return self.0.compare_exchange(current, new, success, failure);
                }
                Ok(current)
            }

            #[allow(dead_code, reason = "not each of them is used so")]
            pub fn compare_exchange_weak(
                &self,
                current: $value,
                new: $value,
                success: Ordering,
                failure: Ordering,
            ) -> Result<$value, $value> {
                self.compare_exchange(current, new, success, failure)
            }

            fn change(&self, change: impl FnOnce() -> $value) -> $value {
                if step() { change() } else { self.0.load(Ordering::Relaxed) }
            }
        }
    };
}
atomic!(AtomicBool, bool);
atomic!(AtomicU32, u32);
atomic!(AtomicU64, u64);

macro_rules! counting {
    ($name:ident, $value:ty) => {
        impl $name {
            pub fn fetch_add(&self, value: $value, order: Ordering) -> $value {
                self.change(|| self.0.fetch_add(value, order))
            }

            #[allow(dead_code, reason = "not each of them is used so")]
            pub fn fetch_sub(&self, value: $value, order: Ordering) -> $value {
                self.change(|| self.0.fetch_sub(value, order))
            }
        }
    };
}
counting!(AtomicU32, u32);
counting!(AtomicU64, u64);
