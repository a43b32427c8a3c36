//! The clocks of two hosts: a map from pong's clock to ping's, with a bound of its error, estimated
//! from exchanges of time stamps.
//!
//! The offset θ of pong's clock, ahead of ping's, is a function of time. One exchange bounds it,
//! however long each way took, provided that neither clock goes back:
//!
//! ```text
//! asked (ping's) ──▶ heard (pong's)            θ(asked)    ≤ heard − asked
//! returned (ping's) ◀── answered (pong's)      θ(returned) ≥ answered − returned
//! ```
//! The true offset lies between the two, so the middle is wrong by at most half of the time on the
//! way. The exchange with the least delay says most (the clock filter of NTP, RFC 5905 section 10;
//! Paxson, "On Calibrating Measurements of Packet Transit Times", 1998).
//!
//! The slope of θ bounds it between exchanges. Lines below all upper bounds and above all lower
//! ones have slopes from β₋ to β₊ (Duda, Harrus, Haddad and Bernard, "Estimating Global Time in
//! Distributed Systems", 1987; Moon, Skelly and Towsley, "Estimation and Removal of Clock Skew from
//! Network Delay Measurements", 1999, for one direction). A real oscillator wanders: its rate may
//! differ from a constant by [`WANDER`]. With β in the middle of the slopes, θ − βt changes by at
//! most s = (β₊ − β₋) / 2 + 2 [`WANDER`] a second. So each exchange bounds it at all times:
//!
//! ```text
//! max (lower − s |t − returned|)  ≤  θ(t) − βt  ≤  min (upper + s |t − asked|)      over exchanges
//! ```
//! The middle is subtracted from pong's stamps, and half of the width is the error: a bound, not a
//! deviation. If no such slope or function fits all exchanges, a clock has stepped or changed its
//! pace. The exchanges are then divided at that point.

mod apply;
mod fit;
#[cfg(test)]
mod tests;

use myelin_bench_kit::protocol::Exchange;

pub(crate) use apply::{Clocks, apply};
use fit::Fit;

/// Maps pong's clock to ping's during a run.
#[derive(Clone, Debug)]
pub struct ClockMap {
    /// In order of time; only one unless a clock has stepped or changed its pace.
    fits: Vec<Fit>,
    /// Number of exchanges that it was estimated from.
    pub exchanges: usize,
    /// Least round-trip time of an exchange, in ns.
    pub least_delay_ns: i64,
}

/// A step or a change of pace of a clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Change {
    /// Time on ping's clock: the middle between two exchanges, between which the change lies.
    pub at_ns: u64,
    /// Increase of θ, in ns, with an error of at most `error_ns`.
    pub step_ns: f64,
    pub error_ns: f64,
}

impl Change {
    /// Whether a clock was set. Otherwise its pace changed, or it was set by too little to tell: a
    /// new pace shows only when θ has moved as far as its bounds are wide.
    pub fn is_step(&self) -> bool {
        self.step_ns.abs() > 3.0 * self.error_ns
    }

    /// A sentence for the report; `begin_ns` is the beginning of the run.
    pub(super) fn words(&self, begin_ns: u64) -> String {
        let at_s = (self.at_ns as i64 - begin_ns as i64) as f64 * 1e-9;
        match self.is_step() {
            true => format!(
                "the clock of pong's host jumped by {:+.3} ms ± {:.3} against the clock of ping's \
                 host, {at_s:.1} s into the run",
                self.step_ns * 1e-6,
                self.error_ns * 1e-6
            ),
            false => format!(
                "the relative rate of the two hosts' clocks changed {at_s:.1} s into the run"
            ),
        }
    }
}

impl ClockMap {
    /// Estimates the map from the exchanges of a run, in any order; an error says why that is
    /// impossible.
    pub fn of(exchanges: &[Exchange]) -> Result<Self, String> {
        let mut sound: Vec<Exchange> = exchanges.iter().copied().filter(is_sound).collect();
        if sound.len() < EXCHANGES_MIN {
            return Err(format!(
                "pong's clock answered {} times, fewer than {EXCHANGES_MIN}: see the clocks' logs, \
                 and check that UDP passes between the hosts",
                sound.len()
            ));
        }
        sound.sort_by_key(|exchange| exchange.asked_ns);
        let mut fits = Vec::new();
        let mut rest = sound.as_slice();
        while !rest.is_empty() {
            if fits.len() > CHANGES_MAX {
                // So many changes mean that a clock is unstable.
                return Err(format!(
                    "the relative rate of the two hosts' clocks changed more than {CHANGES_MAX} \
                     times"
                ));
            }
            let (fit, length) = longest(rest);
            fits.push(fit);
            rest = &rest[length..];
        }
        let least_delay_ns = sound.iter().map(Exchange::delay_ns).min().unwrap_or(0);
        Ok(ClockMap { fits, exchanges: sound.len(), least_delay_ns })
    }

    /// The offset of pong's clock, ahead of ping's, when ping's reads `at_ns`, and the bound of its
    /// error, both in ns.
    pub fn offset_at(&self, at_ns: u64) -> (i64, f64) {
        self.fit_at(at_ns).offset_at(at_ns)
    }

    /// The reading of ping's clock when pong's read `pong_ns`, and the bound of the error, in ns.
    pub fn to_ping(&self, pong_ns: u64) -> (u64, f64) {
        let to_ping = |offset_ns: i64| pong_ns.saturating_add_signed(-offset_ns);
        // The offset is evaluated at a slightly wrong time. As its slope is some parts per million,
        // each step reduces the error by that factor.
        let mut at_ns = to_ping(self.fits[0].offset_about(pong_ns));
        let mut error_ns = 0.0;
        for _ in 0..INVERSE_STEPS {
            let (offset_ns, bound_ns) = self.offset_at(at_ns);
            (at_ns, error_ns) = (to_ping(offset_ns), bound_ns);
        }
        (at_ns, error_ns)
    }

    /// The drift of pong's clock against ping's in parts per million, and the bound of its error;
    /// from the first part if the drift changed.
    pub fn drift_ppm(&self) -> (f64, f64) {
        let Fit { slope, slope_error, .. } = self.fits[0];
        (slope * 1e6, slope_error * 1e6)
    }

    /// The middle of the time of the exchanges, on ping's clock.
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

/// The middle between the last exchange of `before` and the first of `after`.
fn boundary_ns(before: &Fit, after: &Fit) -> u64 {
    let (end_ns, begin_ns) = (before.end_ns, after.begin_ns);
    end_ns.min(begin_ns) + end_ns.abs_diff(begin_ns) / 2
}

/// Fits as many exchanges as possible, from the first on; returns the fit and their number.
fn longest(exchanges: &[Exchange]) -> (Fit, usize) {
    if let Some(fit) = Fit::of(exchanges) {
        return (fit, exchanges.len());
    }
    // One exchange always fits; all of them do not.
    let (mut fits, mut fails) = (1, exchanges.len());
    while fails - fits > 1 {
        let middle = fits + (fails - fits) / 2;
        match Fit::of(&exchanges[..middle]) {
            Some(_) => fits = middle,
            None => fails = middle,
        }
    }
    let fit = Fit::of(&exchanges[..fits]).expect("these exchanges were found to fit");
    (fit, fits)
}

/// Whether the stamps of each clock are in order, as they must be if no clock goes back.
fn is_sound(exchange: &Exchange) -> bool {
    let in_order = exchange.asked_ns <= exchange.returned_ns
        && exchange.heard_ns <= exchange.answered_ns
        && exchange.delay_ns() >= 0;
    in_order && exchange.returned_ns.max(exchange.answered_ns) <= i64::MAX as u64
}

/// Upper bound of θ at `asked_ns`.
fn upper_ns(exchange: &Exchange) -> i64 {
    exchange.heard_ns.wrapping_sub(exchange.asked_ns) as i64
}

/// Lower bound of θ at `returned_ns`.
fn lower_ns(exchange: &Exchange) -> i64 {
    exchange.answered_ns.wrapping_sub(exchange.returned_ns) as i64
}

/// Fewer exchanges could agree by chance.
pub const EXCHANGES_MIN: usize = 10;
/// More changes in a run mean that a clock is unstable.
const CHANGES_MAX: usize = 8;
/// Largest deviation of a clock's rate from a constant during a run. The rate of a quartz
/// oscillator changes by some tenths of a part per million per degree.
pub const WANDER: f64 = 1e-6;
/// More than one, because the first guess is wrong by seconds if θ has stepped or changed its
/// slope.
const INVERSE_STEPS: u32 = 3;
