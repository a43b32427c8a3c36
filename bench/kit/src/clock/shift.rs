//! A clock with a known offset from `CLOCK_MONOTONIC` and a known drift. Tests of two hosts' clocks
//! must recover these.

/// The offset from `CLOCK_MONOTONIC`. It depends on nothing else, so all processes of a host with
/// the same `Shift` read the same clock.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Shift {
    offset_ns: i64,
    /// Gain in seconds per second.
    rate: f64,
}

impl Shift {
    /// The clock that reads `offset_ns` when `CLOCK_MONOTONIC` reads 0 (at the start of the host)
    /// and gains `drift_ppm` microseconds on it every second. At time t it reads t + `offset_ns` +
    /// t × `drift_ppm` / 1 000 000. `None` if |`drift_ppm`| exceeds [`DRIFT_PPM_MAX`] or is not
    /// finite.
    pub fn new(offset_ns: i64, drift_ppm: f64) -> Option<Self> {
        (drift_ppm.abs() <= DRIFT_PPM_MAX).then_some(Shift { offset_ns, rate: drift_ppm * 1e-6 })
    }

    /// The offset of this clock when `CLOCK_MONOTONIC` reads `at_ns`; exact to the nanosecond.
    #[inline]
    pub fn offset_at(&self, at_ns: u64) -> i64 {
        self.offset_ns + (at_ns as f64 * self.rate).round() as i64
    }

    /// The reading of this clock when `CLOCK_MONOTONIC` reads `at_ns`; never below 0.
    #[inline]
    pub fn apply(&self, at_ns: u64) -> u64 {
        at_ns.saturating_add_signed(self.offset_at(at_ns))
    }

    /// The time on `CLOCK_MONOTONIC` when this clock reads at least `at_ns`: at most 2 ns late,
    /// never early.
    pub fn invert(&self, at_ns: u64) -> u64 {
        let since_ns = at_ns as i64 - self.offset_ns;
        // Written so that the double holds only the small difference.
        let gained_ns = since_ns as f64 * (self.rate / (1.0 + self.rate));
        (since_ns - gained_ns.round() as i64 + 1).max(0) as u64
    }
}

/// A clock that drifts more is broken: quartz is off by tens of parts per million, and the kernel
/// slews by at most 500.
pub const DRIFT_PPM_MAX: f64 = 1_000.0;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::clock::{Clock, monotonic_ns};
    use proptest::prelude::*;

    #[test]
    fn a_shifted_clock_gains_its_drift() {
        let shift = Shift::new(-5, 100.0).unwrap();
        assert_eq!(shift.apply(1_000_000_000), 1_000_099_995);
        assert_eq!(shift.apply(0), 0, "there is no time before 0");
        assert_eq!(Shift::new(0, 1e4), None);
        assert_eq!(Shift::new(0, f64::NAN), None);
    }

    #[test]
    fn a_sleep_on_a_shifted_clock_is_never_early() {
        let clock = Clock::Shifted(Shift::new(3_600_000_000_000, -500.0).unwrap());
        let now_ns = clock.now();
        assert!(now_ns.abs_diff(monotonic_ns()) > 1_000_000_000_000);
        clock.sleep_until(now_ns + 2_000_000);
        assert!(clock.now() >= now_ns + 2_000_000);
        assert!(clock.at_monotonic(monotonic_ns()) >= now_ns + 2_000_000);
    }

    proptest! {
        #[test]
        fn the_inverse_of_a_shift_is_exact_within_a_few_ns(
            at_ns in 0u64..3_000_000_000_000_000,
            offset_ns in 0i64..100_000_000_000_000,
            drift_ppm in -DRIFT_PPM_MAX..DRIFT_PPM_MAX,
        ) {
            let shift = Shift::new(offset_ns, drift_ppm).unwrap();
            let reads_ns = shift.apply(at_ns);
            let found_ns = shift.invert(reads_ns);
            prop_assert!(shift.apply(found_ns) >= reads_ns);
            prop_assert!(found_ns.abs_diff(at_ns) <= 2, "{found_ns} for {at_ns}");
        }
    }
}
