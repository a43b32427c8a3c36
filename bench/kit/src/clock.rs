//! The one clock of a run: `CLOCK_MONOTONIC` in nanoseconds, or one of two clocks for self-tests.
//!
//! `CLOCK_MONOTONIC` is the same for all processes of a host, so stamps of different processes can
//! be subtracted. The virtual clock stands still until its owner advances it; the synthetic driver
//! uses it to inject delays that are exact by construction. The shifted clock looks like that of
//! another host.

mod shift;

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use serde::{Deserialize, Serialize};

pub use shift::{DRIFT_PPM_MAX, Shift};

/// A source of time in nanoseconds. Cheap to clone; clones share a virtual clock's time.
#[derive(Clone, Debug, Default)]
pub enum Clock {
    /// `CLOCK_MONOTONIC`.
    #[default]
    Monotonic,
    /// Time that moves only when it is set.
    Virtual(Arc<AtomicU64>),
    /// `CLOCK_MONOTONIC` with another origin and another rate, like that of another host.
    Shifted(Shift),
}

impl Clock {
    /// A virtual clock that reads `start_ns`.
    pub fn virtual_at(start_ns: u64) -> Self {
        Clock::Virtual(Arc::new(AtomicU64::new(start_ns)))
    }

    /// Nanoseconds since an arbitrary origin that all processes of this host share.
    #[inline(always)]
    pub fn now(&self) -> u64 {
        match self {
            Clock::Monotonic => monotonic_ns(),
            // ORDER: Relaxed, the virtual clock belongs to one thread.
            Clock::Virtual(time) => time.load(Ordering::Relaxed),
            Clock::Shifted(shift) => shift.apply(monotonic_ns()),
        }
    }

    /// The reading of this clock when `CLOCK_MONOTONIC` of this host reads `at_ns`. For the virtual
    /// clock this is `at_ns` itself: it begins at a time of `CLOCK_MONOTONIC` and has no other
    /// relation to it.
    pub fn at_monotonic(&self, at_ns: u64) -> u64 {
        match self {
            Clock::Monotonic | Clock::Virtual(_) => at_ns,
            Clock::Shifted(shift) => shift.apply(at_ns),
        }
    }

    /// Waits until the clock reads at least `at_ns`; a virtual clock jumps there.
    pub fn sleep_until(&self, at_ns: u64) {
        match self {
            Clock::Monotonic => sleep_until_monotonic(at_ns),
            Clock::Virtual(time) => {
                // ORDER: Relaxed, the virtual clock belongs to one thread.
                time.fetch_max(at_ns, Ordering::Relaxed);
            }
            Clock::Shifted(shift) => sleep_until_monotonic(shift.invert(at_ns)),
        }
    }

    /// Moves a virtual clock to `at_ns`; does nothing to the real one.
    pub(crate) fn jump_to(&self, at_ns: u64) {
        if let Clock::Virtual(_) = self {
            self.sleep_until(at_ns);
        }
    }
}

/// `CLOCK_MONOTONIC` in nanoseconds. Takes some 20 ns through the vDSO; see [`calibrate`].
#[inline(always)]
pub fn monotonic_ns() -> u64 {
    read_ns(libc::CLOCK_MONOTONIC)
}

/// Reads a clock that always exists on Linux, in nanoseconds.
#[inline(always)]
pub(crate) fn read_ns(clock: libc::clockid_t) -> u64 {
    let mut time = libc::timespec { tv_sec: 0, tv_nsec: 0 };
    // SAFETY: `time` is a valid timespec; it stays unchanged if the clock does not exist.
    unsafe { libc::clock_gettime(clock, &mut time) };
    time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64
}

/// The CPU this thread runs on; with glibc 2.35 or newer just a load from the rseq area.
#[inline(always)]
pub fn cpu() -> u16 {
    // SAFETY: sched_getcpu has no preconditions.
    unsafe { libc::sched_getcpu() as u16 }
}

fn sleep_until_monotonic(at_ns: u64) {
    let time = libc::timespec {
        tv_sec: (at_ns / 1_000_000_000) as libc::time_t,
        tv_nsec: (at_ns % 1_000_000_000) as libc::c_long,
    };
    loop {
        // SAFETY: `time` is a valid timespec; the remainder pointer may be null with TIMER_ABSTIME.
        let status = unsafe {
            libc::clock_nanosleep(
                libc::CLOCK_MONOTONIC,
                libc::TIMER_ABSTIME,
                &time,
                std::ptr::null_mut(),
            )
        };
        if status != libc::EINTR {
            return;
        }
    }
}

/// The duration of reading the clock and its resolution, in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Calibration {
    /// Mean distance of two consecutive reads, without the slowest 1 %: the duration of a read.
    pub read_ns: f64,
    /// Smallest non-zero distance between two reads: the resolution, if it is visible.
    pub step_ns: u64,
    /// Largest distance between two reads: an interruption of this thread.
    pub worst_ns: u64,
}

/// Reads the clock [`CALIBRATION_READS`] times and returns its costs. Takes about 2 ms.
pub fn calibrate() -> Calibration {
    let mut gaps = Vec::with_capacity(CALIBRATION_READS);
    let begin = monotonic_ns();
    let mut last = begin;
    for _ in 0..CALIBRATION_READS {
        let now = monotonic_ns();
        gaps.push(now - last);
        last = now;
    }
    gaps.sort_unstable();
    let kept = &gaps[..CALIBRATION_READS * 99 / 100];
    Calibration {
        read_ns: kept.iter().sum::<u64>() as f64 / kept.len() as f64,
        step_ns: gaps.iter().copied().find(|gap| *gap > 0).unwrap_or(0),
        worst_ns: gaps[CALIBRATION_READS - 1],
    }
}

const CALIBRATION_READS: usize = 100_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn monotonic_never_goes_back() {
        let mut last = monotonic_ns();
        for _ in 0..100_000 {
            let now = monotonic_ns();
            assert!(now >= last);
            last = now;
        }
    }

    #[test]
    fn virtual_clock_moves_only_when_told() {
        let clock = Clock::virtual_at(5);
        assert_eq!(clock.now(), 5);
        clock.sleep_until(40);
        clock.clone().sleep_until(30);
        assert_eq!(clock.now(), 40);
    }

    #[test]
    fn sleep_until_does_not_return_early() {
        let at = monotonic_ns() + 2_000_000;
        Clock::Monotonic.sleep_until(at);
        assert!(monotonic_ns() >= at);
    }

    #[test]
    fn calibration_is_plausible() {
        let calibration = calibrate();
        assert!(calibration.read_ns > 0.0);
        assert!(calibration.step_ns >= 1);
        assert!(calibration.worst_ns as f64 >= calibration.read_ns);
    }
}
