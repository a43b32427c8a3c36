//! Period and phase of the samples, from the times at which they came.
//!
//! A line is fitted to the last arrivals over their number. Medians find it (slopes between
//! arrivals half a history apart: the *incomplete method* of Theil, *A rank-invariant method of
//! linear and polynomial regression analysis*, 1950; Sen, JASA 63, 1968), even if a quarter of the
//! arrivals are outliers. Least squares over the arrivals within three standard deviations (by the
//! median absolute deviation) then refine it (one-step reweighting: Rousseeuw and Leroy, *Robust
//! Regression and Outlier Detection*, 1987). A recursive filter (alpha-beta, PLL) costs less, but
//! follows each outlier, and must be tuned to a jitter that is not known. An arrival may be several
//! periods after the previous one.

use super::few::{Few, quantile};

/// Arrivals, and the period found from them.
#[derive(Debug, Default)]
pub(super) struct Rhythm {
    /// Oldest first.
    arrivals_ns: Few<u64, ARRIVALS_KEPT>,
    /// The period of the last fit; 0: none yet.
    period_ns: f64,
}

/// A period and the last arrival, from which two experts predict the next arrival. One trusts the
/// phase of all arrivals (a publisher woken by an absolute timer has a new delay each time), the
/// other trusts that of the last one (a publisher that pauses between samples).
#[derive(Clone, Debug)]
pub(super) struct Fit {
    pub(super) period_ns: f64,
    newest_ns: u64,
    /// Each expert's time of the last arrival, relative to `newest_ns`.
    phases_ns: [f64; EXPERTS],
}

impl Rhythm {
    pub(super) fn note(&mut self, arrived_ns: u64) {
        if self.arrivals_ns.last().is_some_and(|last| *last >= arrived_ns) {
            return;
        }
        self.arrivals_ns.shift(arrived_ns);
        self.forget_an_older_period();
    }

    /// `None` until there are two arrivals.
    pub(super) fn mean_interval_ns(&self) -> Option<f64> {
        let (first, last) = (self.arrivals_ns.first()?, self.arrivals_ns.last()?);
        let intervals = self.arrivals_ns.len() - 1;
        (intervals > 0).then(|| (last - first) as f64 / intervals as f64)
    }

    /// `None` until there are a few arrivals.
    pub(super) fn fit(&mut self) -> Option<Fit> {
        let newest_ns = *self.arrivals_ns.last()?;
        let rough_ns = if self.period_ns > 0.0 { self.period_ns } else { self.usual_interval()? };
        let chain = self.chain(rough_ns);
        let line = match chain.len() >= CHAIN_MIN {
            true => line(&chain)?,
            false => Line { period_ns: rough_ns, phase_ns: 0.0 },
        };
        self.period_ns = line.period_ns;
        if self.period_ns < PERIOD_MIN_NS {
            self.period_ns = 0.0;
            return None;
        }
        Some(Fit { period_ns: line.period_ns, newest_ns, phases_ns: [line.phase_ns, 0.0] })
    }

    /// If three intervals agree with each other and not with the period, the period has changed.
    fn forget_an_older_period(&mut self) {
        let Some(last) = self.arrivals_ns.last_chunk::<4>() else { return };
        let mut intervals = [0, 1, 2].map(|at| (last[at + 1] - last[at]) as f64);
        intervals.sort_by(f64::total_cmp);
        let [least_ns, median_ns, most_ns] = intervals;
        let off_ns = (median_ns - self.period_ns).abs();
        if self.period_ns > 0.0 && off_ns > 4.0 * (most_ns - least_ns) + self.period_ns / 64.0 {
            self.period_ns = median_ns;
            self.arrivals_ns.keep_last(4);
        }
    }

    fn usual_interval(&self) -> Option<f64> {
        let interval = |pair: &[u64]| (pair[1] - pair[0]) as f64;
        let mut intervals: Numbers = self.arrivals_ns.windows(2).map(interval).collect();
        quantile(&mut intervals, 0.5).filter(|_| intervals.len() >= CHAIN_MIN)
    }

    /// The arrivals that are whole periods apart, newest first, as (periods before the newest, age).
    fn chain(&self, rough_ns: f64) -> Few<(f64, f64), ARRIVALS_KEPT> {
        let newest_ns = self.arrivals_ns[self.arrivals_ns.len() - 1];
        let mut chain = Few::default();
        let mut link = (0.0, 0.0);
        chain.push(link);
        for arrived_ns in self.arrivals_ns.iter().rev().skip(1) {
            let age_ns = (newest_ns - arrived_ns) as f64;
            let since_ns = age_ns - link.1;
            let periods = (since_ns / rough_ns).round();
            if periods > GAP_MAX {
                break; // the error of the period would have grown beyond the period
            }
            if periods >= 1.0 && (since_ns - periods * rough_ns).abs() <= rough_ns / 4.0 {
                link = (link.0 + periods, age_ns);
                chain.push(link);
            }
        }
        chain
    }
}

impl Fit {
    /// How much later than each expert predicted; `None` if too much time has passed to tell.
    pub(super) fn errors_ns(&self, arrived_ns: u64) -> Option<[f64; EXPERTS]> {
        let age_ns = arrived_ns.checked_sub(self.newest_ns)? as f64;
        (age_ns < (GAP_MAX + 0.5) * self.period_ns).then(|| {
            self.phases_ns.map(|phase_ns| {
                let since_ns = age_ns - phase_ns;
                since_ns - (since_ns / self.period_ns).round().max(1.0) * self.period_ns
            })
        })
    }

    /// When an expert expects the next arrival after `after_ns`.
    pub(super) fn due_ns(&self, expert: usize, after_ns: u64) -> u64 {
        let phase_ns = self.phases_ns[expert];
        let after_ns = after_ns.saturating_sub(self.newest_ns) as f64 - phase_ns;
        let periods = (after_ns / self.period_ns).floor().max(0.0) + 1.0;
        self.newest_ns.saturating_add_signed((phase_ns + periods * self.period_ns) as i64)
    }
}

/// The times of regular arrivals: `phase_ns`, and every `period_ns` before it.
#[derive(Clone, Copy)]
struct Line {
    period_ns: f64,
    phase_ns: f64,
}

/// The line through an (index, age) chain: medians first, then least squares over the near points.
fn line(chain: &[(f64, f64)]) -> Option<Line> {
    let half = chain.len() / 2;
    let between = |(near, far): (&(f64, f64), &(f64, f64))| (far.1 - near.1) / (far.0 - near.0);
    let mut slopes: Numbers = chain.iter().zip(&chain[half..]).map(between).collect();
    let period_ns = quantile(&mut slopes, 0.5)?;
    let residual = |(index, age_ns): &(f64, f64)| index * period_ns - age_ns;
    let phase_ns = quantile(&mut chain.iter().map(residual).collect::<Numbers>(), 0.5)?;
    let off = |arrival: &(f64, f64)| (residual(arrival) - phase_ns).abs();
    let spread_ns = quantile(&mut chain.iter().map(off).collect::<Numbers>(), 0.5)?;
    let near = chain.iter().filter(|arrival| off(arrival) <= NEAR * spread_ns + 1.0);
    Some(least_squares(near).unwrap_or(Line { period_ns, phase_ns }))
}

fn least_squares<'a>(chain: impl Iterator<Item = &'a (f64, f64)> + Clone) -> Option<Line> {
    let count = chain.clone().count() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| chain.clone().map(of).sum::<f64>() / count;
    let (index, age_ns) = (mean(|arrival| arrival.0), mean(|arrival| arrival.1));
    let (mut both, mut own) = (0.0, 0.0);
    for arrival in chain {
        both += (arrival.0 - index) * (arrival.1 - age_ns);
        own += (arrival.0 - index).powi(2);
    }
    let period_ns = both / own;
    period_ns.is_finite().then_some(Line { period_ns, phase_ns: index * period_ns - age_ns })
}

type Numbers = Few<f64, ARRIVALS_KEPT>;

pub(super) const EXPERTS: usize = 2;
const ARRIVALS_KEPT: usize = 32;
/// The number of arrivals that make a period.
const CHAIN_MIN: usize = 4;
/// In median deviations: three standard deviations of a normal distribution.
const NEAR: f64 = 3.0 * 1.4826;
/// The largest number of periods between two arrivals of one chain.
const GAP_MAX: f64 = 8.0;
/// A timer is useless below this period.
const PERIOD_MIN_NS: f64 = 100_000.0;
