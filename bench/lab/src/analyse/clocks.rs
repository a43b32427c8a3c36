//! The clocks of two hosts: from what was asked of pong's to a map from pong's clock to ping's, and
//! a bound of its error.
//!
//! What pong's clock is ahead of ping's by, θ, is a function of time. An exchange says of it, whatever
//! the way cost, there and back, and for clocks that never go back:
//!
//! ```text
//! asked (ping's) ──▶ heard (pong's)            θ(asked)    ≤ heard − asked
//! returned (ping's) ◀── answered (pong's)      θ(returned) ≥ answered − returned
//! ```
//! So the truth lies between, never further from the middle than half of the time on the way; the
//! exchange with the least delay says most (the clock filter of NTP, RFC 5905 section 10; Paxson,
//! "On Calibrating Measurements of Packet Transit Times", 1998).
//!
//! How θ goes on between exchanges is bounded by its slope. Lines that lie below all upper bounds and
//! above all lower ones have slopes from β₋ to β₊ (Duda, Harrus, Haddad and Bernard, "Estimating
//! Global Time in Distributed Systems", 1987; Moon, Skelly and Towsley, "Estimation and Removal of
//! Clock Skew from Network Delay Measurements", 1999, of one direction). A real oscillator wanders:
//! its rate may differ from a constant by [`WANDER`]. With β their middle, θ − βt then changes by at
//! most s = (β₊ − β₋) / 2 + 2 [`WANDER`] a second, so that each exchange bounds it at all times:
//!
//! ```text
//! max (lower − s |t − returned|)  ≤  θ(t) − βt  ≤  min (upper + s |t − asked|)      over exchanges
//! ```
//! The middle is what is taken from pong's stamps, and half of the width is the error: a bound, not a
//! deviation. Where no slope, or no such function, fits all exchanges, a clock has stepped or changed
//! its pace; the exchanges are then divided where that shows.

mod apply;
mod fit;
#[cfg(test)]
mod tests;

use myelin_bench_kit::protocol::Exchange;

pub(crate) use apply::{Clocks, apply};
pub(super) use apply::{figures, remarks};
use fit::Fit;

/// How pong's clock stands to ping's during a run.
#[derive(Clone, Debug)]
pub struct ClockMap {
    /// In the order of time; one, unless a clock has stepped or changed its pace.
    fits: Vec<Fit>,
    /// How many exchanges it comes from.
    pub exchanges: usize,
    /// The least time an exchange was on its way, there and back, in ns.
    pub least_delay_ns: i64,
}

/// A clock that was not steady.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// When, on ping's clock: between two exchanges, this being the middle.
    pub at_ns: u64,
    /// What θ became more by, in ns; within `error_ns`.
    pub step_ns: f64,
    pub error_ns: f64,
}

impl Change {
    /// Whether a clock has been set; else its pace has changed, or it was set by too little to tell:
    /// until a new pace has led out of the bounds, θ has gone as far as they are wide.
    pub fn is_step(&self) -> bool {
        self.step_ns.abs() > 3.0 * self.error_ns
    }

    /// What was seen `begin_ns` being the beginning of the run.
    pub(super) fn words(&self, begin_ns: u64) -> String {
        let at_s = (self.at_ns as i64 - begin_ns as i64) as f64 * 1e-9;
        match self.is_step() {
            true => format!(
                "the clock of pong's host was set by {:+.3} ms ± {:.3} against that of ping's, \
                 {at_s:.1} s into the run",
                self.step_ns * 1e-6,
                self.error_ns * 1e-6
            ),
            false => format!(
                "the clocks of the two hosts changed their pace against each other, {at_s:.1} s into \
                 the run"
            ),
        }
    }
}

impl ClockMap {
    /// Of the exchanges of a run, in whatever order; or why nothing can be said.
    pub fn of(exchanges: &[Exchange]) -> Result<Self, String> {
        let mut sound: Vec<Exchange> = exchanges.iter().copied().filter(is_sound).collect();
        if sound.len() < EXCHANGES_MIN {
            return Err(format!(
                "pong's clock was asked with {} answers, fewer than {EXCHANGES_MIN}: see the clocks' \
                 logs, and whether UDP passes between the hosts",
                sound.len()
            ));
        }
        sound.sort_by_key(|exchange| exchange.asked_ns);
        let mut fits = Vec::new();
        let mut rest = sound.as_slice();
        while !rest.is_empty() {
            if fits.len() > CHANGES_MAX {
                // It is no change but unrest.
                return Err(format!(
                    "the clocks changed their pace against each other more than {CHANGES_MAX} times"
                ));
            }
            let (fit, length) = longest(rest);
            fits.push(fit);
            rest = &rest[length..];
        }
        let least_delay_ns = sound.iter().map(Exchange::delay_ns).min().unwrap_or(0);
        Ok(ClockMap { fits, exchanges: sound.len(), least_delay_ns })
    }

    /// What pong's clock is ahead of ping's by when ping's reads `at_ns`, and the bound of the error,
    /// both in ns.
    pub fn offset_at(&self, at_ns: u64) -> (i64, f64) {
        self.fit_at(at_ns).offset_at(at_ns)
    }

    /// What ping's clock read when pong's read `pong_ns`, and the bound of the error, in ns.
    pub fn to_ping(&self, pong_ns: u64) -> (u64, f64) {
        let to_ping = |offset_ns: i64| pong_ns.saturating_add_signed(-offset_ns);
        // θ is asked for at a time that is a little wrong; as its slope is some parts per million,
        // each step makes the mistake so much smaller.
        let mut at_ns = to_ping(self.fits[0].offset_about(pong_ns));
        let mut error_ns = 0.0;
        for _ in 0..INVERSE_STEPS {
            let (offset_ns, bound_ns) = self.offset_at(at_ns);
            (at_ns, error_ns) = (to_ping(offset_ns), bound_ns);
        }
        (at_ns, error_ns)
    }

    /// What pong's clock gains on ping's, in parts per million, and the bound of the error; over the
    /// first part where it has changed.
    pub fn drift_ppm(&self) -> (f64, f64) {
        let Fit { slope, slope_error, .. } = self.fits[0];
        (slope * 1e6, slope_error * 1e6)
    }

    /// The middle of the exchanges, on ping's clock.
    pub fn middle_ns(&self) -> u64 {
        let (begin_ns, end_ns) = (self.fits[0].begin_ns, self.fits[self.fits.len() - 1].end_ns);
        begin_ns + (end_ns - begin_ns) / 2
    }

    pub fn changes(&self) -> Vec<Change> {
        let change = |pair: &[Fit]| {
            let at_ns = boundary_ns(&pair[0], &pair[1]);
            let [(before, one), (after, other)] = [0, 1].map(|at| pair[at].offset_at(at_ns));
            Change { at_ns, step_ns: (after - before) as f64, error_ns: one + other }
        };
        self.fits.windows(2).map(change).collect()
    }

    fn fit_at(&self, at_ns: u64) -> &Fit {
        let past = |pair: &&[Fit]| boundary_ns(&pair[0], &pair[1]) <= at_ns;
        &self.fits[self.fits.windows(2).take_while(past).count()]
    }
}

/// In the middle between the last exchange of one and the first of the next.
fn boundary_ns(before: &Fit, after: &Fit) -> u64 {
    let (end_ns, begin_ns) = (before.end_ns, after.begin_ns);
    end_ns.min(begin_ns) + end_ns.abs_diff(begin_ns) / 2
}

/// As many exchanges, from the first, as one clock can have answered; their number.
fn longest(exchanges: &[Exchange]) -> (Fit, usize) {
    if let Some(fit) = Fit::of(exchanges) {
        return (fit, exchanges.len());
    }
    // One always fits; all do not.
    let (mut fits, mut fails) = (1, exchanges.len());
    while fails - fits > 1 {
        let middle = fits + (fails - fits) / 2;
        match Fit::of(&exchanges[..middle]) {
            Some(_) => fits = middle,
            None => fails = middle,
        }
    }
    let fit = Fit::of(&exchanges[..fits]).expect("it did, or it is one alone");
    (fit, fits)
}

/// Whether its stamps are in order on each clock, as those of clocks that never go back are.
fn is_sound(exchange: &Exchange) -> bool {
    let in_order = exchange.asked_ns <= exchange.returned_ns
        && exchange.heard_ns <= exchange.answered_ns
        && exchange.delay_ns() >= 0;
    in_order && exchange.returned_ns.max(exchange.answered_ns) <= i64::MAX as u64
}

/// θ at `asked_ns` is no more than this.
fn upper_ns(exchange: &Exchange) -> i64 {
    exchange.heard_ns.wrapping_sub(exchange.asked_ns) as i64
}

/// θ at `returned_ns` is no less than this.
fn lower_ns(exchange: &Exchange) -> i64 {
    exchange.answered_ns.wrapping_sub(exchange.returned_ns) as i64
}

/// Fewer exchanges are chance.
pub const EXCHANGES_MIN: usize = 10;
/// More changes in a run are unrest.
const CHANGES_MAX: usize = 8;
/// By how much the rate of a clock may differ from a constant during a run: a quartz oscillator's
/// does by some tenths of a part per million for each degree.
pub const WANDER: f64 = 1e-6;
/// The first guess may be wrong by seconds where θ has stepped or has another slope.
const INVERSE_STEPS: u32 = 3;
