//! The ways to wait, for any kind of waiter.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::waiting::predict::{self, Predictor};
use crate::waiting::wait::{self, PREDICTIVE_CPU_PERMILLE, SPIN_NS, Wait};

/// How a sleep or a spin ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// The sample is there, and woke the sleeper.
    Sample,
    /// The sample is there; the timer woke the sleeper.
    SampleAtTime,
    /// The time is up.
    Time,
    /// Another thread has ended the wait.
    Stopped,
}

impl Ended {
    pub(crate) fn is_sample(self) -> bool {
        matches!(self, Ended::Sample | Ended::SampleAtTime)
    }
}

/// A waiter: for a sample of one subscriber, or for any member of a set.
pub(crate) trait Waiter {
    /// Whether the awaited sample or news is there.
    fn is_ready(&mut self) -> bool;
    fn now_ns(&self) -> u64;
    /// Sleeps on the wake word.
    fn sleep(&mut self, until_ns: u64) -> Ended;
    fn spin(&mut self, until_ns: u64) -> Ended;
    /// Whether a publisher could publish while we spin.
    fn may_spin(&self) -> bool;
    /// Whether there are not enough CPUs for the publisher and all its subscribers. They are all
    /// due at the same time, so a spinning subscriber would delay the others, and the sample
    /// itself.
    fn is_one_too_many(&self) -> bool {
        false
    }
    /// How long this thread was ready to run without running, in total, as far as it is known.
    fn delayed_ns(&self) -> u64 {
        wait::delayed_ns()
    }
    /// How many streams of samples to tell apart: at least 1, and the same number as long as the
    /// streams are the same.
    fn streams(&self) -> usize {
        1
    }
    /// Whether the sample that ended a sleep or spin is from this stream.
    fn has_come(&self, _stream: usize) -> bool {
        true
    }
}

/// Knowledge that a waiter has gained from its waits.
#[derive(Default)]
pub(crate) struct Strategy {
    habit: Habit,
    /// Made at the first predictive wait.
    predictor: Option<Box<Counted>>,
}

/// A predictor of this process, counted because all share one budget.
struct Counted(Predictor);

impl Counted {
    fn new(cpu_permille: u16) -> Counted {
        PREDICTORS.fetch_add(1, Ordering::Relaxed);
        Counted(Predictor::new(cpu_permille))
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        PREDICTORS.fetch_sub(1, Ordering::Relaxed);
    }
}

static PREDICTORS: AtomicUsize = AtomicUsize::new(0);

impl Strategy {
    /// Waits until it is ready; false once `CLOCK_MONOTONIC` reads `until_ns`, or if it was
    /// stopped.
    #[inline]
    pub(crate) fn wait(&mut self, how: Wait, waiter: &mut impl Waiter, until_ns: u64) -> bool {
        match how {
            Wait::Poll => waiter.spin(until_ns).is_sample(),
            Wait::Block => waiter.is_ready() || waiter.sleep(until_ns).is_sample(),
            Wait::Adaptive => waiter.is_ready() || self.spin_then_sleep(waiter, until_ns),
            Wait::Predictive => self.predict(PREDICTIVE_CPU_PERMILLE, waiter, until_ns),
            Wait::PredictiveWithin { cpu_permille } => self.predict(cpu_permille, waiter, until_ns),
        }
    }

    fn spin_then_sleep(&mut self, waiter: &mut impl Waiter, until_ns: u64) -> bool {
        let began_ns = waiter.now_ns();
        let spins = self.habit.spins() && waiter.may_spin();
        let spun = match spins {
            true => waiter.spin(until_ns.min(began_ns + SPIN_NS)),
            false => Ended::Time,
        };
        let ended = if spun == Ended::Time { waiter.sleep(until_ns) } else { spun };
        self.habit.note(waiter.now_ns() - began_ns, spun == Ended::Time);
        ended.is_sample()
    }

    /// If a sample is there already, its time is hardly known, so nothing is learnt from it.
    fn predict(&mut self, cpu_permille: u16, waiter: &mut impl Waiter, until_ns: u64) -> bool {
        if waiter.is_ready() {
            return true;
        }
        if waiter.is_one_too_many() {
            return waiter.sleep(until_ns).is_sample();
        }
        wait::exact_timers();
        let new = || Box::new(Counted::new(cpu_permille));
        let Counted(predictor) = &mut **self.predictor.get_or_insert_with(new);
        predictor.set_budget(cpu_permille, PREDICTORS.load(Ordering::Relaxed));
        predict::wait(predictor, waiter, until_ns)
    }
}

/// Whether spinning has paid off. After Karlin, Li, Manasse and Owicki, *Empirical studies of
/// competitive spinning for a shared-memory multiprocessor*, SOSP 1991: a waiter that spins for as
/// long as a sleep costs pays at most twice the optimum, and the recent past tells whether to spin
/// or to sleep first. A wait that was slept through is counted, too, so no trials are needed.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Habit {
    credit: i8,
}

impl Habit {
    pub(crate) fn spins(&self) -> bool {
        self.credit > 0
    }

    /// A wait took `waited_ns`, including the wake-up if it was slept through.
    pub(crate) fn note(&mut self, waited_ns: u64, slept: bool) {
        let limit = if slept { 2 * SPIN_NS } else { SPIN_NS };
        let step = if waited_ns <= limit { 1 } else { -1 };
        self.credit = (self.credit + step).clamp(-CREDIT_MAX, CREDIT_MAX);
    }
}

impl Default for Habit {
    fn default() -> Habit {
        Habit { credit: CREDIT_MAX }
    }
}

const CREDIT_MAX: i8 = 4;

#[cfg(test)]
mod tests {
    use super::*;

    /// Samples come 10 ms apart, to more subscribers than there are CPUs, until `few_from_ns`.
    #[derive(Default)]
    struct Crowded {
        now_ns: u64,
        few_from_ns: u64,
        /// The time limits of sleeps; spins.
        timers: u32,
        spins: u32,
    }

    impl Waiter for Crowded {
        fn is_ready(&mut self) -> bool {
            false
        }

        fn now_ns(&self) -> u64 {
            self.now_ns
        }

        fn sleep(&mut self, until_ns: u64) -> Ended {
            let arrives_ns = (self.now_ns / 10_000_000 + 1) * 10_000_000;
            self.timers += u32::from(until_ns < wait::NEVER);
            self.now_ns = arrives_ns.min(until_ns);
            if arrives_ns <= until_ns { Ended::Sample } else { Ended::Time }
        }

        fn spin(&mut self, until_ns: u64) -> Ended {
            self.spins += 1;
            self.sleep(until_ns.min(wait::NEVER - 1))
        }

        fn may_spin(&self) -> bool {
            true
        }

        fn is_one_too_many(&self) -> bool {
            self.now_ns < self.few_from_ns
        }

        fn delayed_ns(&self) -> u64 {
            0
        }
    }

    #[test]
    fn a_waiter_without_a_free_cpu_blocks() {
        let mut crowded = Crowded { few_from_ns: 1_000_000_000, ..Crowded::default() };
        let mut strategy = Strategy::default();
        let mut wait_100_times = |crowded: &mut Crowded| {
            (0..100).for_each(|_| assert!(strategy.wait(Wait::Predictive, crowded, wait::NEVER)));
            (crowded.timers, crowded.spins)
        };
        assert_eq!(wait_100_times(&mut crowded), (0, 0));
        let (timers, spins) = wait_100_times(&mut crowded);
        assert!(timers > 50 && spins > 50, "{timers} timers and {spins} spins once there are few");
    }

    #[test]
    fn spinning_stops_when_it_does_not_pay_and_resumes_when_it_would() {
        let mut habit = Habit::default();
        assert!(habit.spins());
        for _ in 0..4 {
            habit.note(10_000_000, true);
        }
        assert!(!habit.spins());
        for _ in 0..4 {
            habit.note(10_000_000, true);
        }
        for _ in 0..5 {
            assert!(!habit.spins());
            habit.note(60_000, true);
        }
        assert!(habit.spins());
    }
}
