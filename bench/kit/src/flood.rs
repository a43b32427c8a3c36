//! The publisher's end of a flood: it publishes back to back, then searches for the highest rate without
//! loss.
//!
//! The publisher reads the number of messages that the subscriber has taken from the header of the subscriber's sample file,
//! which both have mapped. So that number does not use the measured path. The subscriber's end is the same as
//! in any stream.
//!
//! ```text
//! warm-up │ back to back, recorded │ quiet │ a rate on trial │ quiet │ another │ … │ the best, confirmed
//! ```

use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::Clock;
use crate::driver::Stream;
use crate::error::Error;
use crate::numbers::PROBES;
use crate::outgoing::Outgoing;
use crate::pace::Pace;
use crate::process;
use crate::protocol::{Done, Prepare};
use crate::samples::SampleFile;
use crate::stream::keep;
use crate::transfer::Limit;

/// The publisher's end of a flood; see the module.
pub(crate) struct Flood {
    outgoing: Outgoing,
    clock: Clock,
    /// The subscriber's sample file, whose count of messages this reads.
    taken: SampleFile,
    /// Messages sent in the search so far.
    probes: u64,
}

impl Flood {
    pub(crate) fn new(stream: Stream, prepare: &Prepare) -> Result<Self, Error> {
        let publisher = stream.publisher;
        let publisher = publisher.ok_or_else(|| Error::new("this driver opened no publisher"))?;
        let path = prepare.taken_counter.as_ref();
        let path = path.ok_or_else(|| Error::new("protocol: no `taken_counter` for a flood"))?;
        let outgoing = Outgoing::new(publisher, prepare, None);
        Ok(Flood { outgoing, clock: stream.clock, taken: SampleFile::look(path)?, probes: 0 })
    }

    /// Publishes from `start_ns` on for `prepare.duration_ns` or `prepare.messages`, searches, and
    /// sends its last message. Ends early if `stop` is set.
    pub(crate) fn run(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        start_ns: u64,
        stop: &AtomicBool,
    ) -> Result<Done, Error> {
        self.clock.sleep_until(start_ns);
        for count in 0..prepare.warmup_messages {
            self.outgoing.publish(count, Default::default(), &self.clock)?;
            samples.beat(count + 1);
        }
        self.quiet(stop);
        let mut done = self.saturate(prepare, samples, stop)?;
        self.quiet(stop);
        let seconds = (done.end_ns - done.begin_ns) as f64 * 1e-9;
        let taken = done.more[TAKEN];
        let mut search = Search::new(taken as f64 / seconds);
        while let Some(rate_hz) = search.next() {
            // ORDER: Relaxed, the flag carries nothing else.
            if stop.load(Ordering::Relaxed) {
                break;
            }
            let holds = self.hold(prepare, samples, rate_hz, search.seconds(), stop)?;
            search.note(holds);
        }
        done.more.insert(LOSSLESS.into(), (search.found() * 1e3) as u64);
        self.outgoing.end_stream()?;
        Ok(done)
    }

    fn saturate(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        stop: &AtomicBool,
    ) -> Result<Done, Error> {
        let cpu_before_ns = process::cpu_ns();
        let taken_before = self.taken.exchanges();
        let mut done = Done { begin_ns: self.clock.now(), ..Done::default() };
        let limit = Limit::new(prepare, done.begin_ns);
        let mut written = 0;
        // ORDER: Relaxed, the flag carries nothing else.
        while !stop.load(Ordering::Relaxed) && limit.next(done.sent, &self.clock).is_some() {
            let count = prepare.warmup_messages + done.sent;
            let sent = self.outgoing.publish(count, prepare.touch, &self.clock)?;
            keep(samples, &mut written, prepare, done.sent, &sent, None);
            done.sent += 1;
            samples.beat(count + 1);
        }
        let taken = self.taken.exchanges() - taken_before;
        done.end_ns = self.clock.now();
        done.cpu_ns = Some(process::cpu_ns() - cpu_before_ns);
        done.more.insert(TAKEN.into(), taken);
        Ok(done)
    }

    /// Whether the system sustains `rate_hz` for `seconds`: the schedule is kept, and nothing is
    /// lost.
    fn hold(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        rate_hz: f64,
        seconds: f64,
        stop: &AtomicBool,
    ) -> Result<bool, Error> {
        let messages = ((rate_hz * seconds) as u64).max(TRIAL_MESSAGES_MIN);
        let period_ns = 1e9 / rate_hz;
        let mut pace = Pace::new(self.clock.clone(), period_ns);
        let (taken_before, begin_ns) = (self.taken.exchanges(), self.clock.now());
        let over_ns = begin_ns + (messages as f64 * period_ns * LATE_MAX) as u64 + LATE_NS_MAX;
        for message in 0..messages {
            pace.wait_until(begin_ns + (message as f64 * period_ns) as u64);
            let count = prepare.warmup_messages + PROBES + self.probes;
            let sent = self.outgoing.publish(count, prepare.touch, &self.clock)?;
            self.probes += 1;
            samples.beat(count);
            // ORDER: Relaxed, the flag carries nothing else.
            if sent.return_ns > over_ns || stop.load(Ordering::Relaxed) {
                self.quiet(stop);
                return Ok(false);
            }
        }
        self.quiet(stop);
        Ok(self.taken.exchanges() - taken_before >= messages)
    }

    /// Waits until the subscriber has taken everything that will arrive.
    fn quiet(&self, stop: &AtomicBool) {
        let (mut taken, mut since_ns) = (self.taken.exchanges(), self.clock.now());
        let end_ns = since_ns + QUIET_NS_MAX;
        // ORDER: Relaxed, the flag carries nothing else.
        while !stop.load(Ordering::Relaxed) && self.clock.now() < end_ns {
            self.clock.sleep_until(self.clock.now() + QUIET_NS / 10);
            let now_taken = self.taken.exchanges();
            if now_taken != taken {
                (taken, since_ns) = (now_taken, self.clock.now());
            } else if self.clock.now() >= since_ns + QUIET_NS {
                break;
            }
        }
    }
}

/// Finds the highest sustained rate by bisection of its logarithm, beginning at the rate that the subscriber
/// took during the flood. A system may sustain less than that; some sustain more when they are not
/// flooded.
struct Search {
    /// A sustained rate; 0 if none is known.
    low_hz: f64,
    /// A rate that is not sustained; infinite if none is known.
    high_hz: f64,
    next_hz: f64,
    trials: u32,
    /// Number of longer trials of the best rate.
    confirmations: u32,
    is_confirmed: bool,
}

impl Search {
    fn new(first_hz: f64) -> Self {
        Search {
            low_hz: 0.0,
            high_hz: f64::INFINITY,
            // If nothing of the flood was taken, a search is pointless.
            next_hz: if first_hz > 0.0 { first_hz.max(RATE_HZ_MIN) } else { 0.0 },
            trials: 0,
            confirmations: 0,
            is_confirmed: false,
        }
    }

    /// The next rate to try; `None` at the end.
    fn next(&self) -> Option<f64> {
        let is_over = self.is_confirmed
            || self.next_hz < RATE_HZ_MIN
            || self.confirmations > CONFIRMATIONS_MAX;
        (!is_over).then_some(self.next_hz)
    }

    /// Duration of the trial.
    fn seconds(&self) -> f64 {
        if self.is_narrow() { CONFIRMATION_S } else { TRIAL_S }
    }

    /// Records whether the last rate was sustained.
    fn note(&mut self, holds: bool) {
        if self.is_narrow() {
            self.confirmations += 1;
            self.is_confirmed = holds;
            self.low_hz = if holds { self.next_hz } else { self.next_hz * STEP_BACK };
            self.next_hz = self.low_hz;
            return;
        }
        self.trials += 1;
        if holds {
            self.low_hz = self.next_hz
        } else {
            self.high_hz = self.next_hz
        }
        self.next_hz = match (self.low_hz > 0.0, self.high_hz.is_finite()) {
            _ if self.is_narrow() => self.low_hz,
            (true, true) => (self.low_hz * self.high_hz).sqrt(),
            (true, false) => self.low_hz * STEP_UP,
            (false, _) => self.high_hz * STEP_DOWN,
        };
    }

    /// Whether only confirmations are left.
    fn is_narrow(&self) -> bool {
        self.low_hz > 0.0 && (self.high_hz < self.low_hz * NARROW || self.trials >= TRIALS_MAX)
    }

    /// The highest rate that was sustained for a confirmation; 0 if there is none.
    fn found(&self) -> f64 {
        if self.is_confirmed { self.low_hz } else { 0.0 }
    }
}

/// In the publisher's `more`: messages that the subscriber took while the publisher published back to back.
pub const TAKEN: &str = "taken_meanwhile";
/// In the publisher's `more`: the highest sustained rate, in messages per 1000 s; 0 if none was found.
pub const LOSSLESS: &str = "lossless_per_1000_s";

const TRIAL_S: f64 = 0.25;
const CONFIRMATION_S: f64 = 0.75;
const TRIAL_MESSAGES_MIN: u64 = 10;
/// A trial fails if it takes longer than planned by this factor and a moment.
const LATE_MAX: f64 = 1.01;
const LATE_NS_MAX: u64 = 10_000_000;
const STEP_UP: f64 = 1.5;
const STEP_DOWN: f64 = 0.5;
/// Factor for the next rate after a failed confirmation.
const STEP_BACK: f64 = 0.9;
/// The search ends when the highest sustained and the lowest unsustained rate differ by at most
/// this factor.
const NARROW: f64 = 1.05;
const TRIALS_MAX: u32 = 24;
const CONFIRMATIONS_MAX: u32 = 12;
const RATE_HZ_MIN: f64 = 0.5;
/// If nothing is taken for this long, the subscriber has everything.
const QUIET_NS: u64 = 20_000_000;
/// Limit of that wait, however many messages are on their way.
const QUIET_NS_MAX: u64 = 2_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// The rate found if every rate up to `capacity_hz` is sustained.
    fn found(first_hz: f64, capacity_hz: f64) -> f64 {
        let mut search = Search::new(first_hz);
        while let Some(rate_hz) = search.next() {
            search.note(rate_hz <= capacity_hz);
        }
        search.found()
    }

    proptest! {
        #[test]
        fn the_search_finds_the_highest_sustained_rate(
            capacity in 0.0f64..6.0,
            first in -1.0f64..1.0,
        ) {
            let capacity_hz = 10f64.powf(capacity) * 2.0;
            let found = found(capacity_hz * 10f64.powf(first), capacity_hz);
            prop_assert!(found <= capacity_hz && found * NARROW >= capacity_hz,
                "{found} of {capacity_hz}");
        }
    }

    #[test]
    fn a_rate_sustained_only_briefly_is_rejected() {
        let mut search = Search::new(1000.0);
        while let Some(rate_hz) = search.next() {
            let capacity_hz = if search.seconds() > TRIAL_S { 700.0 } else { 1000.0 };
            search.note(rate_hz <= capacity_hz);
        }
        assert!((600.0..=700.0).contains(&search.found()), "{}", search.found());
    }

    #[test]
    fn a_search_without_a_sustained_rate_ends() {
        assert_eq!(found(1e6, 0.0), 0.0);
        assert_eq!(found(0.0, 100.0), 0.0, "nothing was taken of the flood");
    }
}
