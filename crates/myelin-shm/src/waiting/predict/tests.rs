//! The predictor on a simulated clock and kernel: no sample later than with a plain sleep, no more
//! spinning than allowed, and worth it where samples are periodic.

use proptest::prelude::*;

use super::{Ended, Predictor, Waiter, wait};
use crate::waiting::wait::NEVER;

/// The times of samples.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Process {
    /// Exact to the nanosecond.
    Exact,
    /// By a timer that is late by 20 µs on average, as the kernel's is.
    Timer,
    /// Each sample within 5 % of the period before or after its time.
    Jitter,
    /// Each sample at most 5 % of the period later or earlier, relative to the previous one.
    Wander,
    /// The period grows by a hundredth of a per mille each time.
    Drift,
    /// One sample in ten is missing.
    Missing,
    /// The period is 30 % shorter from a third on, 10 % longer from two thirds on.
    Change,
    Poisson,
    /// Four samples in a row, then a pause.
    Bursts,
    /// Five seconds of silence every fifty samples.
    Silence,
}

const PERIODIC: [Process; 6] = {
    use Process::{Change, Drift, Exact, Missing, Timer, Wander};
    [Exact, Timer, Wander, Drift, Missing, Change]
};
const OTHERS: [Process; 4] = [Process::Jitter, Process::Poisson, Process::Bursts, Process::Silence];

/// xorshift64*: Marsaglia, *Xorshift RNGs*, 2003; Vigna's multiplier.
#[derive(Clone)]
struct Random(u64);

impl Random {
    /// Uniform in [0, 1).
    fn unit(&mut self) -> f64 {
        self.0 ^= self.0 >> 12;
        self.0 ^= self.0 << 25;
        self.0 ^= self.0 >> 27;
        (self.0.wrapping_mul(0x2545_F491_4F6C_DD1D) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn exponential(&mut self, mean: f64) -> f64 {
        -mean * (1.0 - self.unit()).ln()
    }
}

fn arrivals(process: Process, period_ns: f64, count: usize, random: &mut Random) -> Vec<u64> {
    let (mut at_ns, mut period_now_ns) = (1e9 + period_ns * random.unit(), period_ns);
    let mut arrivals = Vec::with_capacity(count);
    for number in 0..count {
        let mut off_ns = 0.0;
        let mut step_ns = period_now_ns;
        match process {
            Process::Exact => {}
            Process::Timer => off_ns = random.exponential(20e3),
            Process::Jitter => off_ns = (random.unit() - 0.5) * 0.1 * period_ns,
            Process::Wander => step_ns *= 0.95 + 0.1 * random.unit(),
            Process::Drift => period_now_ns *= 1.00001,
            Process::Missing if random.unit() < 0.1 => step_ns *= 2.0,
            Process::Missing => {}
            Process::Change if number == count / 3 => period_now_ns = 0.7 * period_ns,
            Process::Change if number == 2 * count / 3 => period_now_ns = 1.1 * period_ns,
            Process::Change => {}
            Process::Poisson => step_ns = random.exponential(period_ns),
            Process::Bursts if number % 4 < 3 => step_ns = 30e3,
            Process::Bursts => {}
            Process::Silence if number % 50 == 49 => step_ns = 5e9,
            Process::Silence => {}
        }
        arrivals.push((at_ns + off_ns) as u64);
        at_ns += step_ns;
    }
    arrivals.sort_unstable();
    arrivals
}

/// The simulated machine around the predictor.
#[derive(Clone)]
struct Machine {
    now_ns: u64,
    arrivals_ns: Vec<u64>,
    /// The stream of each arrival.
    streams: Vec<usize>,
    next: usize,
    random: Random,
    spun_ns: u64,
    /// Whether the publisher runs on this core.
    shares_a_core: bool,
    /// Whether it sleeps on a timer and not on the wake word: the tests must detect this fault.
    is_deaf: bool,
    /// Until then other threads need the cores whenever a sample is due: a waiter woken by a timer
    /// is held up, and a spinning waiter holds up the publisher.
    crowded_until_ns: u64,
    delayed_ns: u64,
}

impl Waiter for Machine {
    fn is_ready(&mut self) -> bool {
        self.arrivals_ns[self.next] <= self.now_ns
    }

    fn now_ns(&self) -> u64 {
        self.now_ns
    }

    fn sleep(&mut self, until_ns: u64) -> Ended {
        let arrives_ns = self.arrivals_ns[self.next];
        if arrives_ns <= self.now_ns {
            return Ended::Sample;
        }
        let late_ns = 40_000 + self.random.exponential(15e3) as u64;
        let timer_ns = until_ns.max(self.now_ns).saturating_add(late_ns);
        let wake_up_ns = arrives_ns + WAKE_NS;
        let by_wake_up = wake_up_ns <= timer_ns && (!self.is_deaf || until_ns == NEVER);
        self.now_ns = if by_wake_up { wake_up_ns } else { timer_ns };
        if !by_wake_up && self.now_ns < self.crowded_until_ns {
            self.delayed_ns += HELD_UP_NS;
            self.now_ns += HELD_UP_NS;
        }
        match arrives_ns <= self.now_ns {
            true if by_wake_up => Ended::Sample,
            true => Ended::SampleAtTime,
            false => Ended::Time,
        }
    }

    fn spin(&mut self, until_ns: u64) -> Ended {
        assert!(until_ns > self.now_ns && !self.shares_a_core);
        let arrives_ns = self.arrivals_ns[self.next];
        let ends_ns = arrives_ns.max(self.now_ns).min(until_ns);
        self.spun_ns += ends_ns - self.now_ns;
        self.now_ns = ends_ns;
        if arrives_ns <= ends_ns { Ended::Sample } else { Ended::Time }
    }

    fn may_spin(&self) -> bool {
        !self.shares_a_core
    }

    fn delayed_ns(&self) -> u64 {
        self.delayed_ns
    }

    fn streams(&self) -> usize {
        1 + self.streams.iter().max().unwrap()
    }

    fn has_come(&self, stream: usize) -> bool {
        let arrivals = self.arrivals_ns.iter().zip(&self.streams).skip(self.next);
        let mut come = arrivals.take_while(|(at_ns, _)| **at_ns <= self.now_ns);
        come.any(|(_, of)| *of == stream)
    }
}

/// The results of a simulation.
struct Outcome {
    /// For each awaited sample: how long after its arrival, or after the begin of the wait, it was
    /// seen.
    late_ns: Vec<u64>,
    /// The numbers of these samples.
    samples: Vec<usize>,
    /// At the end of each wait: the time since the first wait, and the spinning time.
    spun: Vec<(u64, u64)>,
}

/// Takes all samples, works on each for `work_ns`, and waits for `limit_ns` at a time.
fn simulate(machine: &mut Machine, permille: u16, work_ns: u64, limit_ns: u64) -> Outcome {
    let mut predictor = Predictor::new(permille);
    let (mut late_ns, mut samples, mut spun) = (Vec::new(), Vec::new(), Vec::new());
    let first_ns = machine.now_ns;
    while let Some(arrives_ns) = machine.arrivals_ns.get(machine.next).copied() {
        if arrives_ns > machine.now_ns {
            let came = wait(&mut predictor, machine, machine.now_ns.saturating_add(limit_ns));
            spun.push((machine.now_ns - first_ns, machine.spun_ns));
            if !came {
                continue;
            }
            late_ns.push(machine.now_ns - arrives_ns);
            samples.push(machine.next);
        }
        machine.next += 1;
        machine.now_ns += work_ns;
    }
    Outcome { late_ns, samples, spun }
}

fn machine(process: Process, period_ns: f64, count: usize, seed: u64) -> Machine {
    let mut random = Random(seed | 1); // not 0
    let arrivals_ns = arrivals(process, period_ns, count, &mut random);
    let (shares_a_core, is_deaf) = (false, false);
    Machine {
        now_ns: 1_000_000_000,
        streams: vec![0; arrivals_ns.len()],
        arrivals_ns,
        next: 0,
        random,
        spun_ns: 0,
        shares_a_core,
        is_deaf,
        crowded_until_ns: 0,
        delayed_ns: 0,
    }
}

/// (a) No sample is seen later than a sleeping waiter would see it.
fn never_later_than_asleep(outcome: &Outcome) -> bool {
    outcome.late_ns.iter().all(|late_ns| *late_ns <= WAKE_NS)
}

/// (b) At no time was more spun than the budget for spinning, seven eighths, of the time that had
/// passed.
fn within_budget(outcome: &Outcome, permille: u16) -> bool {
    let allowed_ns = |time_ns: u64| time_ns as f64 * f64::from(permille) * 0.875 / 1000.0 + 10.0;
    outcome.spun.iter().all(|(time_ns, spun_ns)| *spun_ns as f64 <= allowed_ns(*time_ns))
}

/// The share of `late_ns` below which `share` of the samples are.
fn quantile_ns(outcome: &Outcome, share: f64) -> u64 {
    let mut sorted = outcome.late_ns.clone();
    sorted.sort_unstable();
    sorted[((sorted.len() - 1) as f64 * share) as usize]
}

fn any_process() -> impl Strategy<Value = Process> {
    prop_oneof![prop::sample::select(&PERIODIC[..]), prop::sample::select(&OTHERS[..])]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn no_sample_is_later_than_with_a_plain_sleep_and_no_more_is_spun_than_allowed(
        process in any_process(),
        period_us in 100u32..200_000,
        permille in 0u16..=200,
        work_us in 0u32..20_000,
        limit_ms in prop_oneof![Just(u64::MAX / 1_000_000), 1u64..100],
        shares_a_core in prop::bool::weighted(0.1),
        seed: u64,
    ) {
        let mut machine = machine(process, f64::from(period_us) * 1e3, 300, seed);
        machine.shares_a_core = shares_a_core;
        let work_ns = u64::from(work_us) * 1000;
        let outcome = simulate(&mut machine, permille, work_ns, limit_ms * 1_000_000);
        prop_assert!(never_later_than_asleep(&outcome));
        prop_assert!(within_budget(&outcome, permille));
    }

    #[test]
    fn periodic_samples_are_awaited_awake(
        process in prop::sample::select(&PERIODIC[..]),
        period_us in 5_000u32..50_000,
        seed: u64,
    ) {
        let mut machine = machine(process, f64::from(period_us) * 1e3, 600, seed);
        let outcome = simulate(&mut machine, 20, 100_000, NEVER);
        let (median_ns, wanders) = (quantile_ns(&outcome, 0.5), process == Process::Wander);
        prop_assert!(median_ns == 0 || wanders && median_ns < WAKE_NS, "{median_ns} ns");
    }
}
#[test]
fn jittered_samples_are_awaited_awake() {
    let caught = |process, seed| {
        let mut machine = machine(process, 10e6, 1000, seed);
        let outcome = simulate(&mut machine, 20, 100_000, NEVER);
        outcome.late_ns.iter().filter(|late_ns| **late_ns == 0).count() * 100 / 1000
    };
    for seed in [1, 3] {
        assert!(caught(Process::Jitter, seed) > 50, "{}", caught(Process::Jitter, seed));
        assert!(caught(Process::Exact, seed) > 96, "{}", caught(Process::Exact, seed));
        assert!(caught(Process::Missing, seed) > 94, "{}", caught(Process::Missing, seed));
        assert!(caught(Process::Silence, seed) > 93, "{}", caught(Process::Silence, seed));
        assert!(caught(Process::Poisson, seed) < 5, "{}", caught(Process::Poisson, seed));
    }
}

/// An IMU at 500 Hz and detections at 30 Hz in one wait set: both are awaited awake.
#[test]
fn streams_of_different_periods_are_told_apart() {
    for seed in [1, 3, 5] {
        let mut both = machine(Process::Timer, 2e6, 3000, seed);
        let slow = machine(Process::Timer, 1e9 / 30.0, 180, seed + 100);
        let arrivals = |machine: &Machine, of| {
            machine.arrivals_ns.iter().map(move |at_ns| (*at_ns, of)).collect::<Vec<_>>()
        };
        let mut merged = [arrivals(&both, 0), arrivals(&slow, 1)].concat();
        merged.sort_unstable();
        (both.arrivals_ns, both.streams) = merged.into_iter().unzip();
        let as_one = Machine { streams: vec![0; both.streams.len()], ..both.clone() };
        let caught = |mut machine: Machine, stream| {
            let of = machine.streams.clone();
            let outcome = simulate(&mut machine, 60, 50_000, NEVER);
            assert!(never_later_than_asleep(&outcome) && within_budget(&outcome, 60));
            let of = outcome.samples.iter().map(|at| of[*at]).collect::<Vec<_>>();
            let its = || of.iter().zip(&outcome.late_ns).filter(|(of, _)| **of == stream);
            its().filter(|(_, late_ns)| **late_ns == 0).count() * 100 / its().count()
        };
        let (fast, slow) = (caught(both.clone(), 0), caught(both, 1));
        assert!(fast > 80 && slow > 80, "{fast} % at 500 Hz, {slow} % at 30 Hz");
        assert!(caught(as_one, 0) < fast, "what is not told apart is no rhythm");
    }
}

#[test]
fn a_new_period_is_learnt_within_a_few_samples() {
    for seed in [1, 3, 5, 7, 9] {
        let mut machine = machine(Process::Change, 10e6, 120, seed);
        let outcome = simulate(&mut machine, 20, 100_000, NEVER);
        let missed = outcome.late_ns.iter().filter(|late_ns| **late_ns > 0).count();
        assert!(missed <= 26, "{missed} of 120 around two changes");
    }
}

/// While other threads need the cores it sleeps as `Block` does, except for a few trials;
/// afterwards it predicts again.
#[test]
fn prediction_backs_off_on_busy_cores() {
    for seed in [1, 3, 5] {
        let mut machine = machine(Process::Timer, 10e6, 8_000, seed);
        machine.crowded_until_ns = machine.arrivals_ns[1_000];
        let outcome = simulate(&mut machine, 20, 100_000, NEVER);
        let later = |range: std::ops::Range<usize>| {
            let its = outcome.samples.iter().zip(&outcome.late_ns);
            let its = its.filter(|(sample, _)| range.contains(sample));
            its.filter(|(_, late_ns)| **late_ns > WAKE_NS).count()
        };
        assert!(later(0..1_000) < 10, "{} of 1,000 are later than asleep", later(0..1_000));
        assert_eq!(later(1_000..8_000), 0);
        let caught = outcome.samples.iter().zip(&outcome.late_ns);
        let caught = caught.filter(|(sample, late_ns)| **sample >= 7_000 && **late_ns == 0).count();
        assert!(caught > 900, "{caught} of the last 1,000 are awaited awake");
    }
}

/// 2 % of 0.4 ms are 8 µs: not worth a timer.
#[test]
fn samples_too_frequent_for_the_budget_are_awaited_asleep() {
    for seed in [1, 3, 5] {
        let mut machine = machine(Process::Timer, 0.4e6, 3_000, seed);
        let spun_ns = |outcome: &Outcome, at: usize| outcome.spun[at].1;
        let outcome = simulate(&mut machine, 20, 100_000, NEVER);
        assert_eq!(spun_ns(&outcome, 2_900), spun_ns(&outcome, 10), "seed {seed}");
        assert!(outcome.late_ns[10..].iter().all(|late_ns| *late_ns == WAKE_NS));
    }
}

/// The three properties can be violated.
#[test]
fn mutants_of_the_prediction_are_detected() {
    let mut deaf = machine(Process::Change, 10e6, 600, 1);
    deaf.is_deaf = true;
    assert!(!never_later_than_asleep(&simulate(&mut deaf, 20, 100_000, NEVER)));

    let mut wasteful = machine(Process::Jitter, 10e6, 600, 1);
    assert!(!within_budget(&simulate(&mut wasteful, 30, 100_000, NEVER), 20));

    let mut without_spinning = machine(Process::Exact, 10e6, 600, 1);
    without_spinning.shares_a_core = true;
    let outcome = simulate(&mut without_spinning, 20, 100_000, NEVER);
    assert_eq!((quantile_ns(&outcome, 0.5), without_spinning.spun_ns), (WAKE_NS, 0));
}

/// How long other threads hold it up on busy cores.
const HELD_UP_NS: u64 = 400_000;
/// How long a wake-up by its publisher takes.
const WAKE_NS: u64 = 50_000;
