//! The time to wake a thread on another, idle core: with the idle states as they are, and with
//! cores held awake. Blocks of both alternate, so that a drift affects both.

use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::time::Duration;

use myelin_bench_kit::clock::{Clock, monotonic_ns};
use myelin_bench_lab::scenario::TuningChoice;
use myelin_bench_lab::tuning::{Cpus, LatencyGuard, pin_this_thread};
use rustix::fs::Timespec;
use rustix::thread::futex;
use serde::{Deserialize, Serialize};

use super::host::reason;
use super::measure::Quantiles;

/// From just before `futex_wake` until the woken thread has read the clock.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct WakeUp {
    /// CPU of the thread that wakes.
    pub waker_cpu: usize,
    /// CPU of the thread that sleeps.
    pub sleeper_cpu: usize,
    /// Pause before each wake-up.
    pub pause_us: u64,
    /// With the idle states of this host as they are.
    pub as_found: Quantiles,
    /// While `/dev/cpu_dma_latency` was held at 0; absent if it could not be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_awake: Option<Quantiles>,
    /// Why there is no `held_awake`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub held_awake_missing: Option<String>,
}

/// Measures for some 0.4 s; the error says what is missing.
pub fn measure() -> Result<WakeUp, String> {
    let choice = TuningChoice { ping_cpu: None, pong_cpu: None, priority: 0 };
    let cpus = Cpus::choose(&choice).map_err(|_| "this process has one core only".to_owned())?;
    let (mut as_found, mut held_awake, mut missing) = (Vec::new(), Vec::new(), None);
    for _ in 0..BLOCKS {
        as_found.extend(block(cpus)?);
        match LatencyGuard::hold() {
            Ok(_guard) => held_awake.extend(block(cpus)?),
            Err(error) => missing = Some(format!("/dev/cpu_dma_latency: {}", reason(&error))),
        }
    }
    Ok(WakeUp {
        waker_cpu: cpus.ping,
        sleeper_cpu: cpus.pong,
        pause_us: PAUSE.as_micros() as u64,
        as_found: Quantiles::of(as_found),
        held_awake: (!held_awake.is_empty()).then(|| Quantiles::of(held_awake)),
        held_awake_missing: missing,
    })
}

/// State shared by the two threads.
#[derive(Default)]
struct Shared {
    /// The round: the sleeper sleeps on it, the waker counts it up.
    round: AtomicU32,
    /// When the sleeper woke in the latest round; written by the sleeper.
    woke_ns: AtomicU64,
    /// The latest round the sleeper has seen; written by the sleeper.
    seen: AtomicU32,
    /// The other thread has failed or gone.
    over: AtomicBool,
}

fn block(cpus: Cpus) -> Result<Vec<u64>, String> {
    let shared = Shared::default();
    std::thread::scope(|scope| {
        let sleeper = scope.spawn(|| {
            let done = sleeper(&shared, cpus.pong);
            // ORDER: Relaxed, only a flag; the waker looks again and again.
            shared.over.store(true, Ordering::Relaxed);
            done
        });
        let waker = scope.spawn(|| waker(&shared, cpus.ping));
        let durations = waker.join().map_err(|_| "the waking thread died".to_owned())?;
        sleeper.join().map_err(|_| "the sleeping thread died".to_owned())??;
        durations
    })
}

fn sleeper(shared: &Shared, cpu: usize) -> Result<(), String> {
    let pinned = pin_this_thread(cpu);
    pinned.map_err(|error| format!("a thread cannot be bound to CPU {cpu}: {}", reason(&error)))?;
    let limit = Timespec { tv_sec: TIME_MAX.as_secs() as i64, tv_nsec: 0 };
    for round in 0..ROUNDS {
        // ORDER: Acquire pairs with the waker's Release: a round that has begun is seen.
        while shared.round.load(Ordering::Acquire) == round {
            let waited = futex::wait(&shared.round, futex::Flags::PRIVATE, round, Some(&limit));
            if waited == Err(rustix::io::Errno::TIMEDOUT) {
                return Err(format!("no wake-up within {} s", TIME_MAX.as_secs()));
            }
        }
        // ORDER: Relaxed, published by the Release of `seen`.
        shared.woke_ns.store(monotonic_ns(), Ordering::Relaxed);
        // ORDER: Release pairs with the waker's Acquire of `seen`.
        shared.seen.store(round + 1, Ordering::Release);
    }
    Ok(())
}

fn waker(shared: &Shared, cpu: usize) -> Result<Vec<u64>, String> {
    let pinned = pin_this_thread(cpu);
    let mut durations = Vec::with_capacity(ROUNDS as usize);
    for round in 1..=ROUNDS {
        Clock::Monotonic.sleep_until(monotonic_ns() + PAUSE.as_nanos() as u64);
        let begin_ns = monotonic_ns();
        // ORDER: Release pairs with the sleeper's Acquire.
        shared.round.store(round, Ordering::Release);
        let _ = futex::wake(&shared.round, futex::Flags::PRIVATE, 1);
        let end_ns = begin_ns + TIME_MAX.as_nanos() as u64;
        // ORDER: Acquire pairs with the sleeper's Release: `woke_ns` belongs to this round.
        while shared.seen.load(Ordering::Acquire) != round {
            // ORDER: Relaxed, only a flag.
            if shared.over.load(Ordering::Relaxed) || monotonic_ns() > end_ns {
                return Err("the sleeping thread does not answer".to_owned());
            }
            std::hint::spin_loop();
        }
        // ORDER: Relaxed, after the Acquire above.
        durations.push(shared.woke_ns.load(Ordering::Relaxed).saturating_sub(begin_ns));
    }
    pinned.map_err(|error| format!("a thread cannot be bound to CPU {cpu}: {}", reason(&error)))?;
    Ok(durations)
}

const BLOCKS: usize = 3;
const ROUNDS: u32 = 50;
/// Long enough for the sleeper's core to fall asleep, too.
const PAUSE: Duration = Duration::from_millis(1);
/// A longer wake-up is a failure: of a stopped machine, not of an idle core.
const TIME_MAX: Duration = Duration::from_secs(5);
