//! The clock and the futex.

use std::fs::File;
use std::num::NonZeroU32;
use std::os::unix::fs::FileExt;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64};

use rustix::io::Errno;
use rustix::thread::ClockId;
use rustix::thread::futex::{self, Flags, Timespec, WaitFlags, WaitPtr, WaitvFlags};

use crate::waiting::bell;

/// `CLOCK_MONOTONIC` in nanoseconds.
#[inline]
pub fn now_ns() -> u64 {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The CPU that this thread runs on; Miri knows none.
#[inline(always)]
pub(crate) fn cpu() -> u64 {
    // SAFETY: no preconditions.
    if cfg!(miri) { 0 } else { unsafe { libc::sched_getcpu() as u64 } }
}

/// The lower half of a word, as a futex. Only its address and, in the kernel, its value are used.
pub(crate) fn low_half(word: &AtomicU64) -> &AtomicU32 {
    // SAFETY: the first four bytes of an aligned word are an aligned half (little-endian: the lower
    // one); it is never accessed through this reference but by the kernel.
    unsafe { &*std::ptr::from_ref(word).cast::<AtomicU32>() }
}

/// Sleeps while the word in memory is `value`. False if the timer ended it at `until_ns`.
pub(crate) fn sleep(word: &AtomicU32, value: u32, until_ns: u64) -> bool {
    let until = limit(until_ns);
    // Shared, not private: the word is mapped by other processes.
    let slept = futex::wait_bitset(word, Flags::empty(), value, until.as_ref(), NonZeroU32::MAX);
    slept != Err(Errno::TIMEDOUT)
}

/// Sleeps while each of the words is its value; they may be mapped read-only. False if the timer ended it.
/// Only if [`can_sleep_on_two`].
pub(crate) fn sleep_on_two(words: [(&AtomicU32, u32); 2], until_ns: u64) -> bool {
    wait_on(words, limit(until_ns)) != Err(Errno::TIMEDOUT)
}

/// Whether the kernel can: from Linux 5.16 on, where no filter of system calls forbids it.
pub(crate) fn can_sleep_on_two() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let word = AtomicU32::new(0);
        !cfg!(miri) && wait_on([(&word, 1), (&word, 1)], None) == Err(Errno::AGAIN)
    })
}

fn wait_on(words: [(&AtomicU32, u32); 2], until: Option<Timespec>) -> Result<usize, Errno> {
    let waiter = |(word, value): (&AtomicU32, u32)| {
        let mut waiter = futex::Wait::new();
        waiter.val = u64::from(value);
        waiter.uaddr = WaitPtr::new(word.as_ptr().cast());
        waiter.flags = WaitFlags::SIZE_U32;
        waiter
    };
    let (flags, clock) = (WaitvFlags::empty(), ClockId::Monotonic);
    futex::waitv(&words.map(waiter), flags, until.as_ref(), clock)
}

fn limit(until_ns: u64) -> Option<Timespec> {
    (until_ns != NEVER).then_some(Timespec {
        tv_sec: (until_ns / 1_000_000_000) as i64,
        tv_nsec: (until_ns % 1_000_000_000) as _,
    })
}

/// Has timers of this thread end when they should, not up to 50 µs later. The kernel asks for it to
/// be done thread by thread; threads of real-time classes have no slack in any case.
pub(crate) fn exact_timers() {
    thread_local! {
        static ARE_EXACT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    if !ARE_EXACT.replace(true) {
        // SAFETY: integers only. Were it to fail, the predictor would learn how late timers are.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    }
}

/// How long this thread was ready to run and did not, in ns, since it began; 0 if the kernel does not say.
pub(crate) fn delayed_ns() -> u64 {
    thread_local! {
        static STATISTICS: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    let read = |file: &File| {
        let mut bytes = [0; 96];
        let length = file.read_at(&mut bytes, 0).ok()?;
        // Time that it ran, time that it was ready, turns.
        str::from_utf8(&bytes[..length]).ok()?.split(' ').nth(1)?.parse().ok()
    };
    STATISTICS.with(|file| file.as_ref().and_then(read)).unwrap_or(0)
}

/// Wakes who sleeps on `word`; how many.
pub(crate) fn wake(word: &AtomicU32) -> usize {
    // It fails only for an address that is not mapped.
    futex::wake(word, Flags::empty(), u32::MAX >> 1).unwrap_or(0)
}

/// Counts a bell up and wakes who sleeps on it; whether there was anybody.
pub(crate) fn ring(rings: &AtomicU32) -> bool {
    bell::count_up(rings);
    wake(rings) > 0
}

/// A time limit that never comes.
pub const NEVER: u64 = u64::MAX;

/// How a subscriber waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Spins until a sample comes: the lowest latency, at the price of a core.
    Poll,
    /// Sleeps in the kernel.
    Block,
    /// Spins for as long as that has been paying, then sleeps; never spins on the core where the
    /// publisher last ran.
    #[default]
    Adaptive,
    /// For samples that come periodically: learns period and jitter, sleeps until just before the
    /// next sample is due, then spins; at most 2 % of a core ([`PREDICTIVE_CPU_PERMILLE`]) goes into
    /// spinning, by all waits of the process together, and none while others want the cores. A sample that comes early or late wakes it as with `Block`, and while nothing can
    /// be predicted it waits as `Adaptive` does, within the same 2 %.
    ///
    /// It sets the timer slack of the thread that waits to 1 ns (`PR_SET_TIMERSLACK`), for good: a
    /// timer of its own would otherwise end up to 50 µs late.
    Predictive,
    /// [`Predictive`](Wait::Predictive) with a budget of its own: samples over 500 Hz need more
    /// than 2 %, and jitter is covered the better, the more there is.
    PredictiveWithin {
        /// Thousandths of a core that may be spun, on average over a few periods; at most 1000.
        cpu_permille: u16,
    },
}

/// What [`Wait::Predictive`] may spin, in thousandths of a core.
pub const PREDICTIVE_CPU_PERMILLE: u16 = 20;

/// About what it costs to sleep and be woken where an idle core is halted by a hypervisor.
pub(crate) const SPIN_NS: u64 = 50_000;
/// Looks between two readings of the clock.
pub(crate) const LOOKS_PER_CLOCK_READ: u32 = 128;
