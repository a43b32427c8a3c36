//! The thread that publishes.

use std::num::NonZeroU64;
use std::sync::atomic::Ordering;
use std::time::{Duration, Instant};

use hdrhistogram::Histogram;
use myelin::ClockPublisher;

use super::Player;
use super::control::{Command, Shared};
use super::error::PlayError;
use super::outlet::{Outlet, Sent};
use super::read_ahead::{Entry, Item, ReadAhead};
use super::timeline::Timeline;

/// What was published.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Played {
    /// Messages, with those of latched topics from before a place.
    pub messages: u64,
    /// Their bytes.
    pub bytes: u64,
    /// How long it took.
    pub duration: Duration,
    /// How late messages were published, but for latched ones and single steps; `None` if there were
    /// none.
    pub lateness: Option<Lateness>,
    /// By how much it took longer than planned, because this host could not keep up.
    pub delayed: Duration,
    /// The least share of the rate that this host kept; 1 if it kept up.
    pub least_share: f64,
    /// How many times a reliable subscriber was late and was not waited for.
    pub passed_over: u64,
    /// Messages that are no samples of their type, and were left out.
    pub unfit: u64,
    /// Parts of the files that cannot be read, and were left out.
    pub unreadable: u64,
    /// How many times it began again.
    pub repeats: u64,
    /// Whether it was stopped before its end.
    pub is_stopped: bool,
}

/// From the time at which messages were to be published until they were.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Lateness {
    /// Half are not above it.
    pub p50_ns: u64,
    /// 99 % are not above it.
    pub p99_ns: u64,
    /// The greatest.
    pub max_ns: u64,
}

impl Player {
    /// Plays until the end, or until it is [stopped](super::Control::stop). The publishers stay until
    /// the player is dropped, for late joiners.
    ///
    /// # Errors
    /// A file that cannot be read on; a publisher that fails.
    pub fn run(&mut self) -> Result<Played, PlayError> {
        let Player { recording, outlets, clock, plan, shared, timeline, .. } = self;
        let ahead = ReadAhead::new(&shared.wake);
        let clock = clock.as_ref();
        std::thread::scope(|scope| {
            let name = std::thread::Builder::new().name("myelin-read".to_owned());
            let reader = name.spawn_scoped(scope, || ahead.read(recording, plan));
            let reader = reader.map_err(PlayError::Thread)?;
            // Whatever happens here, the scope waits for the reader.
            let closed = Closing(&ahead);
            let timeline = timeline.clone();
            let mut run = Run::new(outlets, clock, shared, &ahead, timeline);
            let played = run.play(plan.start_ns);
            drop(closed);
            if let Err(panic) = reader.join() {
                std::panic::resume_unwind(panic);
            }
            played
        })
    }
}

struct Closing<'a>(&'a ReadAhead<'a>);

impl Drop for Closing<'_> {
    fn drop(&mut self) {
        self.0.close();
    }
}

struct Run<'p> {
    outlets: &'p [Option<Outlet>],
    clock: Option<&'p (ClockPublisher, u64)>,
    shared: &'p Shared,
    ahead: &'p ReadAhead<'p>,
    timeline: Timeline,
    /// What is next; `None` if it is not read yet.
    next: Option<Item>,
    /// Messages to be published while it is paused.
    steps: u64,
    /// Whether the time runs: from the first begin on.
    is_begun: bool,
    next_tick_ns: u64,
    played: Played,
    lateness: Spread,
    scratch: Vec<u8>,
}

/// What the publishing thread does next.
enum Step {
    Again,
    /// Wait until this time, or until something happens.
    Wait(u64),
    End,
}

impl<'p> Run<'p> {
    fn new(
        outlets: &'p [Option<Outlet>],
        clock: Option<&'p (ClockPublisher, u64)>,
        shared: &'p Shared,
        ahead: &'p ReadAhead<'p>,
        timeline: Timeline,
    ) -> Self {
        Run {
            outlets,
            clock,
            shared,
            ahead,
            timeline,
            next: None,
            steps: 0,
            is_begun: false,
            next_tick_ns: 0,
            played: Played::default(),
            lateness: Spread::default(),
            scratch: Vec::new(),
        }
    }

    fn play(&mut self, start_ns: u64) -> Result<Played, PlayError> {
        let _precise = PreciseTimers::set();
        let begin_ns = myelin::now();
        self.ahead.order(start_ns);
        while !self.shared.is_stopped() {
            let seen = self.shared.wake.count();
            self.obey();
            let tick_ns = self.tick()?;
            match self.step()? {
                Step::Again => {}
                Step::Wait(until_ns) => self.shared.wake.wait(seen, until_ns.min(tick_ns)),
                Step::End => break,
            }
        }
        let end = Instant::now() + FINISH_LIMIT;
        let mut outlets = self.outlets.iter().flatten();
        while let Some(outlet) = outlets.next().filter(|_| !self.shared.is_stopped()) {
            outlet.finish(end.saturating_duration_since(Instant::now()));
        }
        let mut played = self.played;
        played.duration = Duration::from_nanos(myelin::now() - begin_ns);
        played.delayed = Duration::from_nanos(self.timeline.delayed_ns());
        played.least_share = self.timeline.least_share();
        played.is_stopped = self.shared.is_stopped();
        played.lateness = self.lateness.described();
        Ok(played)
    }

    fn step(&mut self) -> Result<Step, PlayError> {
        if self.next.is_none() {
            self.next = self.ahead.next();
        }
        match &self.next {
            // The reader wakes.
            None => return Ok(Step::Wait(u64::MAX)),
            Some(Item::Message(entry)) => {
                let due_ns = self.timeline.due_ns(entry.time_ns);
                let is_step = self.timeline.is_paused();
                if is_step && self.steps == 0 {
                    return Ok(Step::Wait(u64::MAX));
                }
                if !is_step && due_ns > myelin::now() {
                    return Ok(Step::Wait(due_ns));
                }
            }
            // Somebody may go back.
            Some(Item::End) if self.timeline.is_paused() && self.steps == 0 => {
                return Ok(Step::Wait(u64::MAX));
            }
            _ => {}
        }
        match self.next.take() {
            Some(Item::Begin { at_ns, is_repeat }) => {
                self.is_begun = true;
                self.played.repeats += u64::from(is_repeat);
                self.move_to(at_ns)?;
            }
            Some(Item::Latched(entry)) => self.publish(&entry)?,
            Some(Item::Message(entry)) => self.publish_in_time(&entry)?,
            Some(Item::Lost) => self.played.unreadable += 1,
            Some(Item::Failed(error)) => return Err(error),
            Some(Item::End) => return Ok(Step::End),
            None => {}
        }
        Ok(Step::Again)
    }

    fn move_to(&mut self, at_ns: u64) -> Result<(), PlayError> {
        self.timeline.seek(at_ns, myelin::now());
        self.shared.show(&self.timeline);
        self.publish_clock(at_ns)
    }

    fn publish_in_time(&mut self, entry: &Entry) -> Result<(), PlayError> {
        if self.timeline.is_paused() {
            self.steps -= 1;
            self.move_to(entry.time_ns)?;
        } else {
            let late_ns = self.timeline.published(entry.time_ns, myelin::now());
            self.lateness.add(late_ns);
            self.shared.show(&self.timeline);
        }
        self.publish(entry)
    }

    fn publish(&mut self, entry: &Entry) -> Result<(), PlayError> {
        let Some(outlet) = &self.outlets[entry.topic] else { return Ok(()) };
        let shared = self.shared;
        match outlet.publish(entry.data(), &mut self.scratch, || shared.is_stopped())? {
            Sent::Published(passed_over) => {
                self.played.messages += 1;
                self.played.bytes += entry.data().len() as u64;
                self.played.passed_over += u64::from(passed_over);
                // ORDER: Relaxed: the number stands for itself.
                self.shared.messages.store(self.played.messages, Ordering::Relaxed);
            }
            Sent::Unfit => self.played.unfit += 1,
            Sent::Stopped => {}
        }
        Ok(())
    }

    /// Publishes the time if that is due; returns when it is next.
    fn tick(&mut self) -> Result<u64, PlayError> {
        let Some((_, period_ns)) = self.clock.filter(|_| self.is_begun) else {
            return Ok(u64::MAX);
        };
        let now_ns = myelin::now();
        if now_ns >= self.next_tick_ns {
            // What was missed is not made up.
            self.next_tick_ns = (self.next_tick_ns + period_ns).max(now_ns);
            self.publish_clock(self.timeline.bag_ns(now_ns))?;
        }
        Ok(self.next_tick_ns)
    }

    fn publish_clock(&self, bag_ns: u64) -> Result<(), PlayError> {
        self.clock.map_or(Ok(()), |(clock, _)| Ok(clock.publish(bag_ns)?))
    }

    fn obey(&mut self) {
        for command in self.shared.take_commands() {
            let now_ns = myelin::now();
            match command {
                Command::Pause => self.set_paused(true),
                Command::Resume => self.set_paused(false),
                Command::Toggle => self.set_paused(!self.timeline.is_paused()),
                Command::Step => {
                    self.set_paused(true);
                    self.steps += 1;
                }
                Command::Seek(to_ns) => self.seek(to_ns),
                Command::SeekBy(ns) => {
                    self.seek(self.timeline.bag_ns(now_ns).saturating_add_signed(ns));
                }
                Command::Rate(rate) => self.set_rate(rate, now_ns),
                Command::Scale(factor) => self.set_rate(self.timeline.rate() * factor, now_ns),
            }
            self.shared.show(&self.timeline);
        }
    }

    fn seek(&mut self, to_ns: u64) {
        let to_ns = to_ns.clamp(self.shared.begin_ns, self.shared.end_ns);
        self.timeline.seek(to_ns, myelin::now());
        self.steps = 0;
        self.next = None;
        self.ahead.order(to_ns);
    }

    /// What is no rate changes nothing.
    fn set_rate(&mut self, rate: f64, now_ns: u64) {
        if rate > 0.0 && rate <= super::RATE_MAX {
            self.timeline.set_rate(rate, now_ns);
        }
    }

    fn set_paused(&mut self, is_paused: bool) {
        if is_paused != self.timeline.is_paused() {
            self.timeline.set_paused(is_paused, myelin::now());
            self.steps = 0;
        }
    }
}

/// How late messages were: a histogram of bounded size, right to 0.1 %.
struct Spread(Histogram<u64>);

impl Default for Spread {
    fn default() -> Self {
        let mut histogram = Histogram::new(3).expect("three digits are allowed");
        histogram.auto(true);
        Spread(histogram)
    }
}

impl Spread {
    fn add(&mut self, ns: u64) {
        self.0.record(ns.min(LATENESS_MAX_NS)).expect("it grows");
    }

    fn described(&self) -> Option<Lateness> {
        (!self.0.is_empty()).then(|| Lateness {
            p50_ns: self.0.value_at_quantile(0.5),
            p99_ns: self.0.value_at_quantile(0.99),
            max_ns: self.0.max(),
        })
    }
}

/// This thread's timers ring at their time, and not up to 50 µs later; until it is dropped.
struct PreciseTimers(Option<NonZeroU64>);

impl PreciseTimers {
    fn set() -> PreciseTimers {
        let before = rustix::thread::current_timer_slack().ok().and_then(NonZeroU64::new);
        // Without it, timers are a little later.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        PreciseTimers(before)
    }
}

impl Drop for PreciseTimers {
    fn drop(&mut self) {
        let _ = rustix::thread::set_current_timer_slack(self.0);
    }
}

/// How long to wait at the end for other hosts.
const FINISH_LIMIT: Duration = Duration::from_secs(2);
/// Ten days.
const LATENESS_MAX_NS: u64 = 1 << 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lateness_of_any_size_is_described() {
        let mut spread = Spread::default();
        assert_eq!(spread.described(), None);
        (1..=99).for_each(|it| spread.add(it * 1_000));
        spread.add(u64::MAX);
        let lateness = spread.described().unwrap();
        assert!(lateness.p50_ns.abs_diff(50_000) < 100, "{lateness:?}");
        assert!(lateness.p99_ns.abs_diff(99_000) < 200, "{lateness:?}");
        assert!(lateness.max_ns >= LATENESS_MAX_NS, "{lateness:?}");
    }
}
