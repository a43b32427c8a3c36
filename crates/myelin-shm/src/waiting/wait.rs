//! The clock and the futex.

use std::fs::File;
#[cfg(not(loom))]
use std::num::NonZeroU32;
use std::os::unix::fs::FileExt;
#[cfg(not(loom))]
use std::sync::OnceLock;

#[cfg(not(loom))]
use rustix::io::Errno;
#[cfg(not(loom))]
use rustix::thread::ClockId;
#[cfg(not(loom))]
use rustix::thread::futex::{self, Flags, Timespec, WaitFlags, WaitPtr, WaitvFlags};

#[cfg(not(loom))]
use crate::sync::acts;
use crate::sync::{AtomicU32, AtomicU64};
use crate::waiting::notify;

/// `CLOCK_MONOTONIC` in nanoseconds; in a model, it stands still.
#[inline]
pub fn now_ns() -> u64 {
    if cfg!(loom) {
        return 0;
    }
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Monotonic);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

/// The CPU that this thread runs on; Miri and models know none.
#[inline(always)]
pub(crate) fn cpu() -> u64 {
    // SAFETY: no preconditions.
    if cfg!(any(miri, loom)) { 0 } else { unsafe { libc::sched_getcpu() as u64 } }
}

/// How many CPUs there are.
pub(crate) fn cpus() -> u64 {
    static CPUS: std::sync::OnceLock<u64> = std::sync::OnceLock::new();
    // The CPUs of this thread alone would be wrong: a program that pins its threads has all of
    // them.
    // SAFETY: no preconditions. If it failed, -1 would mean that there are enough.
    *CPUS.get_or_init(|| unsafe { libc::sysconf(libc::_SC_NPROCESSORS_ONLN) } as u64)
}

/// A word that a thread can sleep on: the kernel compares its lower half.
pub(crate) trait Futex {
    /// The address of the lower half. Only the kernel reads it.
    fn lower_half(&self) -> *const std::sync::atomic::AtomicU32;
    /// The value that the kernel sees.
    #[cfg(loom)]
    fn seen(&self) -> u32;
}

impl Futex for AtomicU32 {
    fn lower_half(&self) -> *const std::sync::atomic::AtomicU32 {
        std::ptr::from_ref(self).cast()
    }

    #[cfg(loom)]
    fn seen(&self) -> u32 {
        self.load(crate::sync::Ordering::Relaxed)
    }
}

impl Futex for AtomicU64 {
    fn lower_half(&self) -> *const std::sync::atomic::AtomicU32 {
        std::ptr::from_ref(self).cast() // little-endian
    }

    #[cfg(loom)]
    fn seen(&self) -> u32 {
        self.load(crate::sync::Ordering::Relaxed) as u32
    }
}

/// Sleeps while the lower half of the word in memory is `value`. False if the timer ended the sleep
/// at `until_ns`.
#[cfg(not(loom))]
pub(crate) fn sleep(word: &impl Futex, value: u32, until_ns: u64) -> bool {
    let until = limit(until_ns);
    // SAFETY: the first four bytes of an aligned word are an aligned half, which lives as long.
    let word = unsafe { &*word.lower_half() };
    // A shared futex, not private: other processes map the word.
    let slept = futex::wait_bitset(word, Flags::empty(), value, until.as_ref(), NonZeroU32::MAX);
    slept != Err(Errno::TIMEDOUT)
}

/// Sleeps while the lower half of each word has its value; the words may be mapped read-only. False
/// if the timer ended the sleep. Only if [`can_sleep_on_two`].
#[cfg(not(loom))]
pub(crate) fn sleep_on_two(words: [(&dyn Futex, u32); 2], until_ns: u64) -> bool {
    wait_on(words, limit(until_ns)) != Err(Errno::TIMEDOUT)
}

/// Whether a thread can sleep on two words: from Linux 5.16 on, unless a filter of system calls
/// forbids it or an emulator lacks it.
#[cfg(not(loom))]
pub fn can_sleep_on_two() -> bool {
    static CAN: OnceLock<bool> = OnceLock::new();
    *CAN.get_or_init(|| {
        let word = AtomicU32::new(0);
        !cfg!(miri) && wait_on([(&word, 1), (&word, 1)], None) == Err(Errno::AGAIN)
    })
}

#[cfg(not(loom))]
fn wait_on(words: [(&dyn Futex, u32); 2], until: Option<Timespec>) -> Result<usize, Errno> {
    let waiter = |(word, value): (&dyn Futex, u32)| {
        let mut waiter = futex::Wait::new();
        waiter.val = u64::from(value);
        waiter.uaddr = WaitPtr::new(word.lower_half().cast_mut().cast());
        waiter.flags = WaitFlags::SIZE_U32;
        waiter
    };
    let (flags, clock) = (WaitvFlags::empty(), ClockId::Monotonic);
    futex::waitv(&words.map(waiter), flags, until.as_ref(), clock)
}

#[cfg(not(loom))]
fn limit(until_ns: u64) -> Option<Timespec> {
    (until_ns != NEVER).then_some(Timespec {
        tv_sec: (until_ns / 1_000_000_000) as i64,
        tv_nsec: (until_ns % 1_000_000_000) as _,
    })
}

/// Wakes the sleepers on `word`; returns how many.
#[cfg(not(loom))]
pub(crate) fn wake(word: &impl Futex) -> usize {
    if !acts() {
        return 0;
    }
    // SAFETY: as in `sleep`.
    let word = unsafe { &*word.lower_half() };
    // It fails only for an address that is not mapped.
    futex::wake(word, Flags::empty(), u32::MAX >> 1).unwrap_or(0)
}

/// The kernel in a model. It has no timers, so a lost wake-up ends in a deadlock.
#[cfg(loom)]
mod model {
    use std::collections::{BTreeMap, BTreeSet};

    use loom::sync::{Condvar, Mutex};

    use super::Futex;

    #[derive(Default)]
    struct Kernel {
        /// Counts the sleeps.
        sleeps: u64,
        asleep: BTreeSet<u64>,
        /// The sleeps that each word was a reason of, including those that have ended.
        queues: BTreeMap<usize, Vec<u64>>,
    }

    loom::lazy_static! {
        static ref KERNEL: Mutex<Kernel> = Mutex::new(Kernel::default());
        static ref WOKEN: Condvar = Condvar::new();
    }

    pub(crate) fn sleep(word: &impl Futex, value: u32, _until_ns: u64) -> bool {
        sleep_on(&[(word, value)])
    }

    pub(crate) fn sleep_on_two(words: [(&dyn Futex, u32); 2], _until_ns: u64) -> bool {
        sleep_on(&words)
    }

    /// The model's kernel is a new one.
    pub fn can_sleep_on_two() -> bool {
        true
    }

    /// Comparing and falling asleep are one step.
    fn sleep_on(words: &[(&dyn Futex, u32)]) -> bool {
        let mut kernel = KERNEL.lock().unwrap();
        if words.iter().any(|(word, value)| word.seen() != *value) {
            return true;
        }
        kernel.sleeps += 1;
        let sleep = kernel.sleeps;
        kernel.asleep.insert(sleep);
        for (word, _) in words {
            kernel.queues.entry(word.lower_half().addr()).or_default().push(sleep);
        }
        while kernel.asleep.contains(&sleep) {
            kernel = WOKEN.wait(kernel).unwrap();
        }
        true
    }

    pub(crate) fn wake(word: &impl Futex) -> usize {
        let mut kernel = KERNEL.lock().unwrap();
        let queue = kernel.queues.remove(&word.lower_half().addr()).unwrap_or_default();
        let woken = queue.iter().filter(|sleep| kernel.asleep.remove(sleep)).count();
        drop(kernel);
        if woken > 0 {
            WOKEN.notify_all();
        }
        woken
    }
}
#[cfg(loom)]
pub use model::can_sleep_on_two;
#[cfg(loom)]
pub(crate) use model::{sleep, sleep_on_two, wake};

/// Makes timers of this thread end on time, not up to 50 µs late. The kernel sets it for each
/// thread; threads of real-time classes have no slack in any case.
pub(crate) fn exact_timers() {
    thread_local! {
        static ARE_EXACT: std::cell::Cell<bool> = const { std::cell::Cell::new(false) };
    }
    if !ARE_EXACT.replace(true) {
        // SAFETY: integers only. If it failed, the predictor would learn how late timers are.
        unsafe { libc::prctl(libc::PR_SET_TIMERSLACK, 1) };
    }
}

/// How long this thread was ready to run without running, in ns, since it began; 0 if the kernel
/// does not say.
pub(crate) fn delayed_ns() -> u64 {
    thread_local! {
        static STATISTICS: Option<File> = File::open("/proc/thread-self/schedstat").ok();
    }
    let read = |file: &File| {
        let mut bytes = [0; 96];
        let length = file.read_at(&mut bytes, 0).ok()?;
        // The fields: running time, ready time, number of turns.
        str::from_utf8(&bytes[..length]).ok()?.split(' ').nth(1)?.parse().ok()
    };
    // A destructor may wait after the destructors of this thread's values.
    let delayed = STATISTICS.try_with(|file| file.as_ref().and_then(read));
    delayed.ok().flatten().unwrap_or(0)
}

/// Counts a wake word up and wakes its sleepers; whether there was one.
pub(crate) fn count_and_wake(wakes: &AtomicU32) -> bool {
    notify::count_up(wakes);
    wake(wakes) > 0
}

/// A time limit that is never reached.
pub const NEVER: u64 = u64::MAX;

/// How a subscriber waits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Wait {
    /// Spins until a sample comes: the lowest latency, at the cost of a core.
    Poll,
    /// Sleeps in the kernel.
    Block,
    /// Spins for as long as that has paid off, then sleeps; never spins on the core where the
    /// publisher last ran.
    #[default]
    Adaptive,
    /// For periodic samples: learns period and jitter, sleeps until just before the next sample is
    /// due, then spins. All waits of the process together spin at most 2 % of a core
    /// ([`PREDICTIVE_CPU_PERMILLE`]). They do not spin while other threads need the cores, or with
    /// fewer cores than the publisher and its subscribers need. A sample that comes early or late
    /// wakes it as with `Block`. While nothing can be predicted it waits as `Adaptive` does, within
    /// the same 2 %.
    ///
    /// It sets the timer slack of the waiting thread to 1 ns (`PR_SET_TIMERSLACK`), permanently:
    /// otherwise its timer would end up to 50 µs late.
    Predictive,
    /// [`Predictive`](Wait::Predictive) with another budget: samples over 500 Hz need more than 2
    /// %, and a larger budget covers more jitter.
    PredictiveWithin {
        /// Thousandths of a core that it may spin, on average over a few periods; at most 1000.
        cpu_permille: u16,
    },
}

/// The budget of [`Wait::Predictive`], in thousandths of a core.
pub const PREDICTIVE_CPU_PERMILLE: u16 = 20;

/// About the cost of a sleep and a wake-up where a hypervisor halts an idle core.
pub(crate) const SPIN_NS: u64 = 50_000;
/// Looks between two readings of the clock.
pub(crate) const LOOKS_PER_CLOCK_READ: u32 = 128;
