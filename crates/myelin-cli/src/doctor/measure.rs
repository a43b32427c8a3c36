//! Measurements of about a second on this machine: wake-ups, timers, interruptions, stolen time.

use std::num::NonZeroU64;
use std::path::PathBuf;
use std::time::Duration;

use memmap2::{Advice, MmapMut};
use myelin_bench_kit::clock::{self, Clock, monotonic_ns};
use myelin_bench_lab::root::Root;
use myelin_bench_lab::tuning::set_fifo;
use serde::{Deserialize, Serialize};

use super::host::reason;
use super::rights::PRIORITY;
use super::wake_up;
pub use super::wake_up::WakeUp;

/// All measurements.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Measured {
    /// How long measuring took.
    pub took_s: f64,
    /// A thread on an idle core, woken from another core; absent with one core.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_up: Option<WakeUp>,
    /// Why there is no `wake_up`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub wake_up_missing: Option<String>,
    /// How late `clock_nanosleep` returns, with the timer slack this process was started with.
    pub timer: Timer,
    /// The same with a timer slack of 1 ns.
    pub timer_exact: Timer,
    /// How long a spinning thread is kept from its CPU.
    pub gap: Gap,
    /// The share of all CPU time that a hypervisor gave to others meanwhile; absent if unknown.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub steal_percent: Option<f64>,
    /// One reading of CLOCK_MONOTONIC.
    pub clock_read_ns: f64,
    /// First touch of a page of ordinary size (p50).
    pub first_touch_us: f64,
    /// First touch of memory for which a huge page was requested (p50).
    pub first_touch_huge_us: f64,
    /// The file of the CycloneDDS that a node with the network loads; absent if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cyclonedds: Option<PathBuf>,
    /// Why there is no `cyclonedds`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cyclonedds_missing: Option<String>,
    /// Why a thread of this process may not have SCHED_FIFO; absent if it may.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fifo_refused: Option<String>,
}

/// A distribution, by the nearest rank of all samples; at least ten samples lie beyond p90.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// The number of samples.
    pub samples: usize,
    /// Median.
    pub p50_us: f64,
    /// Nine samples in ten are no larger.
    pub p90_us: f64,
    /// The largest.
    pub max_us: f64,
}

/// How late a timer is.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Timer {
    /// Slack that the kernel may add to let timers share an interrupt.
    pub slack_ns: u64,
    /// Length of each sleep.
    pub sleep_us: u64,
    /// From the requested time until the thread runs.
    pub late: Quantiles,
}

/// The effect of other work on a thread that only reads the clock.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct Gap {
    /// How long it spun.
    pub spun_s: f64,
    /// The longest time between two readings.
    pub longest_us: f64,
    /// How many took longer than 10 µs.
    pub longer_than_10_us: u64,
}

impl Quantiles {
    /// The distribution of durations in nanoseconds; at least one.
    pub fn of(mut durations_ns: Vec<u64>) -> Self {
        assert!(!durations_ns.is_empty());
        durations_ns.sort_unstable();
        let samples = durations_ns.len();
        let rank = |share: f64| (samples as f64 * share).ceil() as usize;
        let us = |rank: usize| durations_ns[rank.clamp(1, samples) - 1] as f64 / 1e3;
        Quantiles { samples, p50_us: us(rank(0.5)), p90_us: us(rank(0.9)), max_us: us(samples) }
    }
}

/// Measures for a little more than a second.
pub fn measure() -> Measured {
    let begin_ns = monotonic_ns();
    let before = cpu_times();
    let (wake_up, wake_up_missing) = match wake_up::measure() {
        Ok(wake_up) => (Some(wake_up), None),
        Err(missing) => (None, Some(missing)),
    };
    let timer = in_thread(|| late(None));
    let timer_exact = in_thread(|| late(NonZeroU64::new(1)));
    let gap = in_thread(spin);
    let stolen = before.zip(cpu_times()).and_then(|(before, after)| stolen(before, after));
    let fifo = in_thread(|| set_fifo(PRIORITY as u32));
    let (cyclonedds, cyclonedds_missing) = match myelin_dds::load() {
        Ok(file) => (Some(file), None),
        Err(missing) => (None, Some(missing.to_string())),
    };
    Measured {
        took_s: ((monotonic_ns() - begin_ns) / 1_000_000) as f64 / 1e3,
        wake_up,
        wake_up_missing,
        timer,
        timer_exact,
        gap,
        steal_percent: stolen,
        clock_read_ns: clock::calibrate().read_ns,
        first_touch_us: first_touch_us(Advice::NoHugePage, PAGE_BYTES),
        first_touch_huge_us: first_touch_us(Advice::HugePage, HUGE_PAGE_BYTES),
        cyclonedds,
        cyclonedds_missing,
        fifo_refused: fifo.err().map(|error| reason(&error)),
    }
}

/// Runs in a thread of its own, so that its settings end with it.
fn in_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    std::thread::scope(|scope| match scope.spawn(work).join() {
        Ok(done) => done,
        Err(panic) => std::panic::resume_unwind(panic),
    })
}

fn late(slack_ns: Option<NonZeroU64>) -> Timer {
    if slack_ns.is_some() {
        // If it is refused, the slack that is read below shows it.
        let _ = rustix::thread::set_current_timer_slack(slack_ns);
    }
    let durations = (0..TIMER_SAMPLES).map(|_| {
        let at_ns = monotonic_ns() + TIMER_SLEEP.as_nanos() as u64;
        Clock::Monotonic.sleep_until(at_ns);
        monotonic_ns().saturating_sub(at_ns)
    });
    Timer {
        late: Quantiles::of(durations.collect()),
        slack_ns: rustix::thread::current_timer_slack().unwrap_or(0),
        sleep_us: TIMER_SLEEP.as_micros() as u64,
    }
}

fn spin() -> Gap {
    let begin_ns = monotonic_ns();
    let end_ns = begin_ns + SPIN_TIME.as_nanos() as u64;
    let (mut last_ns, mut longest_ns, mut long) = (begin_ns, 0, 0);
    while last_ns < end_ns {
        let now_ns = monotonic_ns();
        longest_ns = longest_ns.max(now_ns - last_ns);
        long += u64::from(now_ns - last_ns > 10_000);
        last_ns = now_ns;
    }
    Gap {
        spun_s: ((last_ns - begin_ns) / 1_000_000) as f64 / 1e3,
        longest_us: longest_ns as f64 / 1e3,
        longer_than_10_us: long,
    }
}

/// The median of first touches, one in each `step` bytes; 0 if there is no memory.
fn first_touch_us(advice: Advice, step: usize) -> f64 {
    let Ok(mut memory) = MmapMut::map_anon(TOUCHED_BYTES) else { return 0.0 };
    let _ = memory.advise(advice);
    // From the first huge page that lies entirely in the mapping.
    let first = memory.as_ptr().align_offset(HUGE_PAGE_BYTES);
    let last = TOUCHED_BYTES - HUGE_PAGE_BYTES;
    let touch = |at| {
        let begin_ns = monotonic_ns();
        std::hint::black_box(&mut memory)[at] = 1;
        monotonic_ns() - begin_ns
    };
    Quantiles::of((first..=last).step_by(step).map(touch).collect()).p50_us
}

/// Stolen and all ticks of all CPUs since boot.
fn cpu_times() -> Option<(u64, u64)> {
    times_of(&Root::machine().line("/proc/stat")?)
}

fn times_of(stat: &str) -> Option<(u64, u64)> {
    let words = stat.lines().next()?.strip_prefix("cpu ")?.split_whitespace();
    // user nice system idle iowait irq softirq steal; later fields are parts of user and nice.
    let times: Vec<u64> = words.take(8).map_while(|word| word.parse().ok()).collect();
    Some((*times.get(7)?, times.iter().sum()))
}

fn stolen(before: (u64, u64), after: (u64, u64)) -> Option<f64> {
    let all = after.1.checked_sub(before.1).filter(|all| *all > 0)?;
    Some(100.0 * after.0.checked_sub(before.0)? as f64 / all as f64)
}

const TIMER_SAMPLES: usize = 100;
/// Long enough for a core to fall asleep.
const TIMER_SLEEP: Duration = Duration::from_millis(1);
const SPIN_TIME: Duration = Duration::from_millis(500);
const PAGE_BYTES: usize = 4 << 10;
const HUGE_PAGE_BYTES: usize = 2 << 20;
/// Seven huge pages, wherever the mapping begins.
const TOUCHED_BYTES: usize = 8 * HUGE_PAGE_BYTES;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_nearest_ranks() {
        let quantiles = Quantiles::of((1..=100).rev().map(|us| us * 1_000).collect());
        let right = Quantiles { samples: 100, p50_us: 50.0, p90_us: 90.0, max_us: 100.0 };
        assert_eq!(quantiles, right);
        let one = Quantiles::of(vec![2_000]);
        assert_eq!((one.p50_us, one.p90_us, one.max_us), (2.0, 2.0, 2.0));
    }

    #[test]
    fn stolen_time_is_a_share_of_all_time() {
        let before = times_of("cpu  10 0 10 70 0 0 0 10 5 0\ncpu0 1 1\n").unwrap();
        let after = times_of("cpu  60 0 10 100 0 0 0 30 5 0\n").unwrap();
        assert_eq!((before, after), ((10, 100), (30, 200)));
        assert_eq!(stolen(before, after), Some(20.0));
        assert_eq!(stolen(after, after), None);
        assert_eq!(times_of("cpu  1 2 3\n"), None);
    }

    #[test]
    fn a_little_memory_is_touched_for_the_first_time() {
        assert!(first_touch_us(Advice::NoHugePage, PAGE_BYTES) > 0.0);
        assert!(first_touch_us(Advice::HugePage, HUGE_PAGE_BYTES) > 0.0);
    }
}
