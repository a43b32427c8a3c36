//! Wakes the thread that publishes: at a time, or when there is something else to do.

use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

use rustix::thread::futex;
use rustix::time::Timespec;

/// Counts what has happened. Who waits reads the count first, then looks for work, and then waits
/// for another count: nothing is missed.
#[derive(Debug, Default)]
pub(super) struct Wake(AtomicU32);

impl Wake {
    pub(super) fn count(&self) -> u32 {
        // ORDER: Acquire pairs with the release in `ring`; what happened before it is seen.
        self.0.load(Ordering::Acquire)
    }

    /// Something has happened.
    pub(super) fn ring(&self) {
        // ORDER: Release pairs with the acquire in `count`.
        self.0.fetch_add(1, Ordering::Release);
        // There is nobody to wake if it fails.
        let _ = futex::wake(&self.0, futex::Flags::PRIVATE, 1);
    }

    /// Waits until the count is another one, or until this time of CLOCK_MONOTONIC: the kernel's
    /// timer has the time itself and not a duration, so that a delay before the call adds nothing.
    pub(super) fn wait(&self, seen: u32, until_ns: u64) {
        let until = Timespec {
            tv_sec: i64::try_from(until_ns / 1_000_000_000).unwrap_or(i64::MAX),
            tv_nsec: (until_ns % 1_000_000_000) as _,
        };
        let until = (until_ns != u64::MAX).then_some(&until);
        // Whatever ends it, the caller looks again.
        let _ = futex::wait_bitset(&self.0, futex::Flags::PRIVATE, seen, until, NonZeroU32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_before_the_wait_is_not_missed() {
        let wake = Wake::default();
        let seen = wake.count();
        wake.ring();
        wake.wait(seen, u64::MAX);
    }

    #[test]
    fn the_time_ends_a_wait_and_not_earlier() {
        let wake = Wake::default();
        let until = myelin::now() + 2_000_000;
        while myelin::now() < until {
            wake.wait(wake.count(), until);
        }
        assert!(myelin::now() >= until);
    }
}
