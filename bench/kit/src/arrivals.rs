//! When the messages of a stream are due: a pure function of rate, [`Arrivals`] and seed. So it is
//! fixed before the run, and the same for every system with the same seed. It is computed message
//! by message and takes no memory.
//!
//! ```text
//! warm-up            measured                        middle of the run
//! │ · · · · · · · · ·│  ·   ·  ·   ·   ✕  ·   ·   ·  │   ·     ·     ·   ✕   ·
//! 0                  begin_ns    jitter  missing       period × factor
//! ```

use crate::error::Error;
use crate::protocol::{Arrivals, Prepare};

/// Iterates over the times at which messages are due, in nanoseconds after the first message of the
/// warm-up. With jitter all times are half a period later, so that none is negative. Missing
/// messages are left out; the warm-up has no missing messages and no drift. Times never decrease.
/// With several publishers, each is a fraction of the period behind the previous one.
#[derive(Clone)]
pub struct Schedule {
    arrivals: Arrivals,
    period_ns: f64,
    /// Delay of this publisher behind the first, so that several do not publish at once.
    phase_ns: f64,
    seed: u64,
    warmup_messages: u64,
    /// Messages to send, including the warm-up.
    messages: u64,
    /// Duration of the measured part.
    duration_ns: f64,
    /// When the period changes, relative to the beginning of the measured part.
    middle_ns: f64,
    /// Index of the next message, counting missing ones.
    place: u64,
    sent: u64,
    /// When the next message is due without jitter, relative to the beginning of the measured part.
    due_ns: f64,
    /// The period before the next message.
    last_step_ns: f64,
}

impl Schedule {
    /// The schedule of `prepare`; `None` without a rate.
    pub fn new(prepare: &Prepare) -> Option<Self> {
        let period_ns = 1e9 / prepare.rate_hz?;
        let unlimited = |limit: u64| if limit == 0 { u64::MAX } else { limit };
        let messages = unlimited(prepare.messages);
        let duration_ns = unlimited(prepare.duration_ns) as f64;
        Some(Schedule {
            arrivals: prepare.arrivals,
            period_ns,
            phase_ns: period_ns * f64::from(prepare.index) / f64::from(prepare.publishers.max(1)),
            seed: prepare.seed ^ u64::from(prepare.index) << 48,
            warmup_messages: prepare.warmup_messages,
            messages: messages.saturating_add(prepare.warmup_messages),
            duration_ns,
            middle_ns: duration_ns.min(messages as f64 * period_ns) / 2.0,
            place: 0,
            sent: 0,
            due_ns: -(prepare.warmup_messages as f64 * period_ns),
            last_step_ns: period_ns,
        })
    }

    /// When the measured part begins; without jitter the first measured message is due then.
    pub fn begin_ns(&self) -> u64 {
        (self.warmup_messages as f64 * self.period_ns + self.room_ns() + self.phase_ns) as u64
    }

    /// How far jitter may move a message forward.
    fn room_ns(&self) -> f64 {
        if self.arrivals.jitter_percent > 0.0 { self.period_ns / 2.0 } else { 0.0 }
    }

    /// The jitter of the next message; the period after it is `step_ns`.
    fn jitter_ns(&self, step_ns: f64) -> f64 {
        let sigma_ns = self.arrivals.jitter_percent / 100.0 * step_ns;
        // At most half of the shorter period, so that no message overtakes a neighbour.
        let half_ns = step_ns.min(self.last_step_ns) / 2.0;
        match sigma_ns > 0.0 {
            true => (sigma_ns * self.normal()).clamp(-half_ns, half_ns),
            false => 0.0,
        }
    }

    /// A random number with the standard normal distribution (Box and Muller).
    fn normal(&self) -> f64 {
        let [first, second] = [0, 1].map(|which| self.draw(which));
        // 1 − [0, 1) is never 0.
        (-2.0 * (1.0 - first).ln()).sqrt() * (std::f64::consts::TAU * second).cos()
    }

    /// A random number from [0, 1); there are three for each message.
    fn draw(&self, which: u64) -> f64 {
        // 53 bits, the precision of a double.
        (mix(self.seed, 3 * self.place + which) >> 11) as f64 / (1u64 << 53) as f64
    }

    fn is_missing(&self) -> bool {
        let one_in = self.arrivals.missing_one_in;
        let measured = self.place >= self.warmup_messages;
        one_in > 0 && measured && self.draw(2) * f64::from(one_in) < 1.0
    }

    fn step_ns(&self) -> f64 {
        let since_s = self.due_ns.max(0.0) * 1e-9;
        let drift = 1.0 + self.arrivals.drift_ppm_per_s * 1e-6 * since_s;
        let factor = match self.arrivals.period_factor {
            factor if factor > 0.0 && self.due_ns >= self.middle_ns => factor,
            _ => 1.0,
        };
        (self.period_ns * drift * factor).max(PERIOD_NS_MIN)
    }
}

impl Iterator for Schedule {
    type Item = u64;

    fn next(&mut self) -> Option<u64> {
        while self.sent < self.messages && self.due_ns < self.duration_ns {
            let step_ns = self.step_ns();
            let at_ns = self.begin_ns() as f64 + self.due_ns + self.jitter_ns(step_ns);
            let missing = self.is_missing();
            self.due_ns += step_ns;
            self.last_step_ns = step_ns;
            self.place += 1;
            if !missing {
                self.sent += 1;
                return Some(at_ns.round() as u64);
            }
        }
        None
    }
}

/// Whether `arrivals` and the rate are valid.
pub fn check(prepare: &Prepare) -> Result<(), Error> {
    let arrivals = &prepare.arrivals;
    if prepare.rate_hz.is_none() && *arrivals != Arrivals::default() {
        return Err(Error::new("arrivals: a schedule needs rate_hz")
            .remedy("set rate_hz, or leave arrivals out"));
    }
    if let Some(rate) = prepare.rate_hz.filter(|rate| !(*rate > 0.0 && *rate <= RATE_HZ_MAX)) {
        return Err(Error::new(format!("rate_hz: {rate} is not a rate")).remedy("for instance 100"));
    }
    let numbers = [
        ("jitter_percent", arrivals.jitter_percent, 0.0..=1000.0),
        ("drift_ppm_per_s", arrivals.drift_ppm_per_s, -1e6..=1e6),
        ("period_factor", arrivals.period_factor, 0.0..=1000.0),
    ];
    match numbers.iter().find(|(_, value, range)| !range.contains(value)) {
        Some((key, value, range)) => Err(Error::new(format!("arrivals.{key}: {value}"))
            .remedy(format!("use {} to {}", range.start(), range.end()))),
        None => Ok(()),
    }
}

/// The number of SplitMix64 at `index`: six lines whose results never change between versions.
pub(crate) fn mix(seed: u64, index: u64) -> u64 {
    let mut word = seed.wrapping_add((index + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    word = (word ^ (word >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^ (word >> 31)
}

/// Time advances even if a drift shortens the period to nothing.
const PERIOD_NS_MIN: f64 = 1.0;
const RATE_HZ_MAX: f64 = 1e9;

#[cfg(test)]
mod tests;
