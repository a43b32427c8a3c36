//! What a link does to frames.

use std::time::Duration;

/// What a link does to the frames of one direction. The default does nothing to them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Conditions {
    /// The time of a frame on its way, without the time at the rate.
    pub delay: Duration,
    /// The delay varies evenly by up to so much, up and down. Frames stay in order: one that would
    /// overtake arrives with the frame before it.
    pub jitter: Duration,
    /// Share of frames that are lost, 0 to 100.
    pub loss_percent: f64,
    /// Share of frames without delay and jitter, 0 to 100: they overtake others.
    pub reorder_percent: f64,
    /// Millions of bits per second at which frames leave; 0 for no limit. Each frame takes 24 bytes
    /// more than its own, as on Ethernet (preamble, check sequence, gap).
    pub rate_mbit: f64,
}

impl Conditions {
    /// Checks the values.
    ///
    /// # Errors
    /// The field that is wrong, and why.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        let percent = |name, value: f64| {
            let is_right = (0.0..=100.0).contains(&value);
            let wrong = || (name, format!("{value} is not between 0 and 100"));
            if is_right { Ok(()) } else { Err(wrong()) }
        };
        percent("loss_percent", self.loss_percent)?;
        percent("reorder_percent", self.reorder_percent)?;
        if !(self.rate_mbit.is_finite() && self.rate_mbit >= 0.0) {
            return Err(("rate_mbit", format!("{} is no rate", self.rate_mbit)));
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        if self.jitter > self.delay {
            let text = format!("{} is more than delay_ms, {}", ms(self.jitter), ms(self.delay));
            return Err(("jitter_ms", format!("{text}; a frame cannot arrive before it is sent")));
        }
        if self.reorder_percent > 0.0 && self.delay.is_zero() {
            let text = "a frame overtakes others by having no delay, and there is no delay_ms";
            return Err(("reorder_percent", text.into()));
        }
        Ok(())
    }

    /// Time that a frame of `bytes` takes at the rate.
    pub(crate) fn line_ns(&self, bytes: usize) -> u64 {
        if self.rate_mbit == 0.0 {
            return 0;
        }
        let bits = 8.0 * (bytes as f64 + ETHERNET_BYTES);
        (bits * 1e3 / self.rate_mbit).round() as u64
    }
}

/// What Ethernet adds to a frame, besides its header.
const ETHERNET_BYTES: f64 = 24.0;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wrong_conditions_name_their_field() {
        let ms = Duration::from_millis;
        let good = Conditions { delay: ms(5), jitter: ms(5), reorder_percent: 100.0, ..BAD };
        assert_eq!(good.check(), Err(("loss_percent", "101 is not between 0 and 100".into())));
        assert_eq!(Conditions { loss_percent: 100.0, ..good }.check(), Ok(()));
        for (conditions, field) in [
            (Conditions { jitter: ms(6), delay: ms(5), ..Conditions::default() }, "jitter_ms"),
            (Conditions { reorder_percent: 1.0, ..Conditions::default() }, "reorder_percent"),
            (Conditions { loss_percent: f64::NAN, ..Conditions::default() }, "loss_percent"),
            (Conditions { rate_mbit: -1.0, ..Conditions::default() }, "rate_mbit"),
        ] {
            assert_eq!(conditions.check().unwrap_err().0, field);
        }
    }

    const BAD: Conditions = Conditions {
        delay: Duration::ZERO,
        jitter: Duration::ZERO,
        loss_percent: 101.0,
        reorder_percent: 0.0,
        rate_mbit: 0.0,
    };
}
