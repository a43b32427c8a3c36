//! What the wall clocks of two hosts say of their other clocks, where PTP keeps both.
//!
//! Let K be what a host's `CLOCK_REALTIME` is ahead of its `CLOCK_MONOTONIC`. Both hosts' wall clocks
//! read the same, as far as PTP states, so θ = K of ping's host − K of pong's. K changes only where a
//! wall clock is set; it is read before a run and after it. What PTP states is what its servo last saw,
//! and no bound: it is used within the bounds of the exchanges alone.

use myelin_bench_kit::protocol::Keeping;

/// θ by the wall clocks.
#[derive(Clone, Debug)]
pub(super) struct Kept {
    ping: Ahead,
    pong: Ahead,
    /// What PTP says that the two may be wrong by, and how well they could be read.
    pub error_ns: f64,
}

/// K of a host as a function of its monotonic clock, by two readings.
#[derive(Clone, Debug)]
struct Ahead {
    at_ns: u64,
    ahead_ns: i64,
    slope: f64,
}

impl Kept {
    /// By readings of ping's host and of pong's, the first and the last; `None` unless the kernels of
    /// both hold their clocks for synchronised and both follow one grandmaster throughout.
    pub(super) fn of(keeping: &[[Keeping; 2]]) -> Option<Self> {
        let (first, last) = (keeping.first()?, keeping.last()?);
        let all = || keeping.iter().flatten();
        let grandmaster = &first[0].ptp.as_ref()?.grandmaster;
        let follows = |keeping: &Keeping| {
            let same = keeping.ptp.as_ref().is_some_and(|ptp| ptp.grandmaster == *grandmaster);
            same && keeping.is_synchronised
        };
        if keeping.len() < 2 || !all().all(follows) {
            return None;
        }
        let [ping, pong] = [0, 1].map(|side| Ahead::of(&first[side], &last[side]));
        let error_of = |side: usize| {
            let errors = keeping.iter().map(|both| {
                let offset_ns = both[side].ptp.as_ref().map_or(0, |ptp| ptp.offset_ns);
                offset_ns.unsigned_abs() as f64 + both[side].width_ns as f64 / 2.0
            });
            errors.fold(0.0, f64::max)
        };
        Some(Kept { ping: ping?, pong: pong?, error_ns: error_of(0) + error_of(1) })
    }

    /// θ when ping's clock reads `at_ns`, in ns.
    pub(super) fn offset_at(&self, at_ns: u64) -> i64 {
        let ahead_ns = self.ping.at(at_ns);
        let about_ns = ahead_ns - self.pong.ahead_ns;
        ahead_ns - self.pong.at(at_ns.saturating_add_signed(about_ns))
    }
}

impl Ahead {
    fn of(first: &Keeping, last: &Keeping) -> Option<Self> {
        let ahead = |keeping: &Keeping| keeping.wall_ns as i64 - keeping.monotonic_ns as i64;
        let passed_ns = last.monotonic_ns.checked_sub(first.monotonic_ns)?;
        let slope = (ahead(last) - ahead(first)) as f64 / (passed_ns as f64).max(1.0);
        Some(Ahead { at_ns: first.monotonic_ns, ahead_ns: ahead(first), slope })
    }

    fn at(&self, at_ns: u64) -> i64 {
        let since_ns = at_ns as i64 - self.at_ns as i64;
        self.ahead_ns + (since_ns as f64 * self.slope).round() as i64
    }
}
