//! Waits for a sample that comes at a known time: sleeps until shortly before it, then spins.
//!
//! There is no clock and no system call here. [`wait`] asks a [`Waiter`] to sleep and to spin: the
//! reader, or in the tests a simulated kernel. `docs/explanation/shared-memory.md` section 12 gives
//! the reasons.
//!
//! A waiter sleeps on the wake word with the timer as the time limit. So a sample that comes early
//! wakes it as it would have woken [`Wait::Block`](crate::waiting::wait::Wait::Block).

mod account;
mod contention;
mod few;
mod rhythm;
#[cfg(test)]
mod tests;
mod window;

use account::Account;
use contention::Contention;
use rhythm::{Fit, Rhythm};
use window::{Alarm, SPEND_MIN_NS, Window};

use crate::waiting::strategy::{Ended, Habit, Waiter};
use crate::waiting::wait::{NEVER, SPIN_NS};

/// Waits for a sample; false once the time is `until_ns`, or if it was stopped. With several
/// streams it spins for the one whose window comes first; all share one account.
pub(crate) fn wait(predictor: &mut Predictor, waiter: &mut impl Waiter, until_ns: u64) -> bool {
    let began_ns = waiter.now_ns();
    // Read at most once, and not while other threads have the cores.
    let mut delayed_ns = None;
    predictor.contention.begin(|| *delayed_ns.insert(waiter.delayed_ns()));
    predictor.learn(began_ns, waiter.streams());
    let mut now_ns = began_ns;
    loop {
        let may_spin = waiter.may_spin() && !predictor.contention.gives_way();
        let (plan, first) = predictor.plan(now_ns, may_spin);
        if plan != Plan::SLEEP {
            predictor.contention.watch(|| delayed_ns.unwrap_or_else(|| waiter.delayed_ns()));
        }
        let planned_ns = waiter.now_ns();
        predictor.account.spend_on_planning(planned_ns.saturating_sub(now_ns));
        now_ns = planned_ns;
        let (ended, at_ns) = follow(plan, first, predictor, waiter, now_ns, until_ns);
        if ended != Ended::Time || at_ns >= until_ns {
            let slept = plan.sleep_until_ns == NEVER;
            for stream in predictor.concerned(first, ended, waiter) {
                stream.habit.note(at_ns - began_ns, slept);
            }
            return ended.is_sample();
        }
        now_ns = at_ns;
    }
}

/// One sleep and one spin for the stream `first`: how they ended, and when. [`Ended::Time`] calls
/// for another plan.
fn follow(
    plan: Plan,
    first: usize,
    predictor: &mut Predictor,
    waiter: &mut impl Waiter,
    mut now_ns: u64,
    until_ns: u64,
) -> (Ended, u64) {
    if plan.sleep_until_ns > now_ns + NAP_MIN_NS {
        let sleep_until_ns = plan.sleep_until_ns.min(until_ns);
        let ended = waiter.sleep(sleep_until_ns);
        let began_ns = std::mem::replace(&mut now_ns, waiter.now_ns());
        for stream in predictor.concerned(first, ended, waiter) {
            stream.slept(began_ns, sleep_until_ns, ended, now_ns);
        }
        if ended != Ended::Time || now_ns >= until_ns {
            return (ended, now_ns);
        }
    }
    let allowed_ns = predictor.account.allows(plan.spin_until_ns, now_ns).min(until_ns);
    if allowed_ns <= now_ns || !waiter.may_spin() {
        predictor.streams[first].passed();
        return (Ended::Time, now_ns);
    }
    let ended = waiter.spin(allowed_ns);
    let began_ns = std::mem::replace(&mut now_ns, waiter.now_ns());
    predictor.account.spend(now_ns - began_ns);
    for stream in predictor.concerned(first, ended, waiter) {
        stream.spun(now_ns, allowed_ns == plan.spin_until_ns, ended);
        if now_ns < until_ns {
            stream.passed();
        }
    }
    (ended, now_ns)
}

/// The next actions: sleep until a time, then spin until another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Plan {
    sleep_until_ns: u64,
    spin_until_ns: u64,
}

impl Plan {
    /// Nothing is known, or spinning is useless.
    const SLEEP: Plan = Plan { sleep_until_ns: NEVER, spin_until_ns: 0 };
}

/// When a sample came, as far as it is known.
enum Seen {
    Coming(u64),
    /// Somewhere between the two times.
    ByWakeUp {
        asleep_ns: u64,
        woken_ns: u64,
    },
}

/// A waiter's knowledge about the times of samples.
pub(crate) struct Predictor {
    account: Account,
    contention: Contention,
    streams: Vec<Stream>,
}

/// The samples of one subscriber, or of many together.
#[derive(Default)]
struct Stream {
    rhythm: Rhythm,
    fit: Option<Fit>,
    alarm: Alarm,
    window: Option<Window>,
    habit: Habit,
    /// An arrival that has not been learnt from: the next wait does it, when there is time.
    seen: Option<Seen>,
    /// How many windows in a row have passed without a sample.
    in_vain: u32,
    /// No window is planned for an arrival that is due before this time.
    not_before_ns: u64,
    /// The next value of `not_before_ns`, after the planned window has passed.
    next_not_before_ns: u64,
}

impl Predictor {
    /// `cpu_permille`: thousandths of a core that it may spin.
    pub(crate) fn new(cpu_permille: u16) -> Predictor {
        Predictor {
            account: Account::new(cpu_permille),
            contention: Contention::new(),
            streams: Vec::new(),
        }
    }

    /// All `predictors` of the process share the budget.
    pub(crate) fn set_budget(&mut self, cpu_permille: u16, predictors: usize) {
        self.account.set_budget(cpu_permille, predictors);
    }

    /// Learns from the last wait. If the number of streams differs, it starts from the beginning.
    fn learn(&mut self, now_ns: u64, streams: usize) {
        if self.streams.len() != streams {
            self.streams = (0..streams).map(|_| Stream::default()).collect();
        }
        self.accrue(now_ns);
        let plans = !self.contention.gives_way();
        let Predictor { account, streams, .. } = self;
        streams.iter_mut().for_each(|stream| stream.learn(plans, account));
    }

    fn accrue(&mut self, now_ns: u64) {
        let period_ns = |stream: &Stream| stream.fit.as_ref().map_or(0.0, |fit| fit.period_ns);
        let longest_ns = self.streams.iter().map(period_ns).fold(0.0, f64::max);
        self.account.accrue(now_ns, longest_ns);
    }

    /// The plan until the next arrival of any stream is due, or without an end; and the stream of
    /// that arrival.
    fn plan(&mut self, now_ns: u64, may_spin: bool) -> (Plan, usize) {
        self.accrue(now_ns);
        let Predictor { account, streams, .. } = self;
        let plans = streams.iter_mut().map(|stream| stream.plan(now_ns, may_spin, account));
        let first = plans.zip(0..).min_by_key(|(plan, _)| plan.sleep_until_ns);
        first.expect("a subscriber that waits has a stream")
    }

    /// The streams about which a sleep or a spin for stream `first` tells something.
    fn concerned(
        &mut self,
        first: usize,
        ended: Ended,
        waiter: &impl Waiter,
    ) -> impl Iterator<Item = &mut Stream> {
        let is_concerned = move |stream: &usize| match ended.is_sample() {
            true => waiter.has_come(*stream),
            false => *stream == first,
        };
        let streams = self.streams.iter_mut().enumerate();
        streams.filter(move |(at, _)| is_concerned(at)).map(|(_, stream)| stream)
    }
}

impl Stream {
    /// Learns from the last wait. A fit takes some µs, for which other threads would wait if they
    /// need the cores. So it is made only if the plan uses it, and not for samples so frequent that
    /// the budget of a period is not worth a timer.
    fn learn(&mut self, plans: bool, account: &Account) {
        let arrived_ns = match self.seen.take() {
            None => return,
            Some(Seen::Coming(at_ns)) => at_ns,
            Some(Seen::ByWakeUp { asleep_ns, woken_ns }) => {
                woken_ns.saturating_sub(self.alarm.wake_ns() as u64).max(asleep_ns)
            }
        };
        if let Some(errors_ns) = self.fit.as_ref().and_then(|fit| fit.errors_ns(arrived_ns)) {
            self.alarm.note_errors(errors_ns);
        }
        self.rhythm.note(arrived_ns);
        let is_slow = |interval_ns| account.income_ns(interval_ns) >= SPEND_MIN_NS;
        let is_slow = self.rhythm.mean_interval_ns().is_some_and(is_slow);
        self.fit = if plans && is_slow { self.rhythm.fit() } else { None };
        self.in_vain = 0;
    }

    /// The plan until the next arrival is due, or without an end.
    fn plan(&mut self, now_ns: u64, may_spin: bool, account: &Account) -> Plan {
        self.window = None;
        if !may_spin {
            return Plan::SLEEP;
        }
        let spend_ns = account.to_spend_ns();
        let fit = self.fit.as_ref().filter(|_| self.in_vain < IN_VAIN_MAX);
        let choice = fit.and_then(|fit| Some((fit, self.alarm.window(spend_ns)?)));
        self.window = choice.map(|(_, (_, window))| window);
        if let Some((fit, (expert, window))) = choice {
            let over_ns = now_ns.saturating_add_signed(-window.tail_ns as i64);
            let due_ns = fit.due_ns(expert, over_ns.max(self.not_before_ns));
            self.next_not_before_ns = due_ns + (fit.period_ns / 2.0) as u64;
            let at = |offset_ns: f64| due_ns.saturating_add_signed(offset_ns as i64);
            return Plan { sleep_until_ns: at(-window.lead_ns), spin_until_ns: at(window.tail_ns) };
        }
        let spins = self.in_vain == 0 && self.habit.spins() && account.affords(SPIN_NS);
        if spins {
            Plan { sleep_until_ns: 0, spin_until_ns: now_ns + SPIN_NS }
        } else {
            Plan::SLEEP
        }
    }

    /// A sleep has ended. Only bounds of the sample's time are known.
    fn slept(&mut self, began_ns: u64, until_ns: u64, ended: Ended, now_ns: u64) {
        let late_ns = now_ns.saturating_sub(until_ns);
        self.seen = match ended {
            Ended::Sample => Some(Seen::ByWakeUp { asleep_ns: began_ns, woken_ns: now_ns }),
            // A sample much before the end of the timer would have woken us itself.
            Ended::SampleAtTime => Some(Seen::Coming(until_ns + late_ns / 2)),
            Ended::Time | Ended::Stopped => None,
        };
        if matches!(ended, Ended::Time | Ended::SampleAtTime) {
            self.alarm.note_oversleep(late_ns);
        }
        if self.seen.is_some() && self.window.is_some_and(|window| window.full) {
            self.alarm.widen();
        }
    }

    /// A spin has ended; `whole`: it ends at the end of the window, if not earlier.
    fn spun(&mut self, now_ns: u64, whole: bool, ended: Ended) {
        match ended {
            Ended::Sample | Ended::SampleAtTime => {
                self.seen = Some(Seen::Coming(now_ns));
                self.alarm.narrow();
            }
            Ended::Time if whole && self.window.is_some() => self.alarm.note_missing(),
            Ended::Time | Ended::Stopped => {}
        }
    }

    /// A window is over, with or without a sample: the next plan is for another arrival.
    fn passed(&mut self) {
        self.in_vain += 1;
        self.not_before_ns = self.next_not_before_ns;
    }
}

/// After so many windows without a sample the topic counts as silent, and the waiter sleeps until a
/// sample comes.
const IN_VAIN_MAX: u32 = 4;
/// Setting a timer and waking up take longer than this.
const NAP_MIN_NS: u64 = 10_000;
