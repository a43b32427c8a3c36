//! When to be awake: from the errors of the predictions, the lateness of the kernel's timer, and
//! the time that may be spent.
//!
//! Both errors and lateness are kept as samples, and quantiles are read off. Nothing is assumed
//! about their distributions, which are one-sided and heavy-tailed.

use super::few::{Few, quantile};
use super::rhythm::EXPERTS;

/// How this thread is woken, and when it would have to be.
#[derive(Debug)]
pub(super) struct Alarm {
    oversleeps_ns: Few<f64, RECENT>,
    errors_ns: [Few<f64, RECENT>; EXPERTS],
    /// Added to the lead. It grows when a sample comes before the window although the window was as
    /// wide as wanted, and shrinks while samples come inside.
    margin_ns: f64,
}

/// When to look for a sample, relative to its due time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Window {
    /// The timer is set so long before the due time.
    pub(super) lead_ns: f64,
    /// The spin ends so long after the due time.
    pub(super) tail_ns: f64,
    /// Whether it has the wanted width, not only what the budget allows.
    pub(super) full: bool,
    /// How many of the past samples would have come inside.
    caught: usize,
}

impl Default for Alarm {
    fn default() -> Alarm {
        let (oversleeps_ns, errors_ns) = Default::default();
        Alarm { oversleeps_ns, errors_ns, margin_ns: MARGIN_FIRST_NS }
    }
}

impl Alarm {
    pub(super) fn note_oversleep(&mut self, late_ns: u64) {
        self.oversleeps_ns.shift(late_ns as f64);
    }

    pub(super) fn note_errors(&mut self, errors_ns: [f64; EXPERTS]) {
        for (recent, error_ns) in self.errors_ns.iter_mut().zip(errors_ns) {
            recent.shift(error_ns);
        }
    }

    /// A window passed without a sample.
    pub(super) fn note_missing(&mut self) {
        self.note_errors([f64::INFINITY; EXPERTS]);
    }

    /// A sample came within its window.
    pub(super) fn narrow(&mut self) {
        self.margin_ns = (self.margin_ns * NARROWING).max(MARGIN_MIN_NS);
    }

    /// A sample came before its window.
    pub(super) fn widen(&mut self) {
        self.margin_ns = (self.margin_ns * WIDENING).min(MARGIN_MAX_NS);
    }

    /// How long a wake-up takes, judged by the timer: the kernel does the same for a futex.
    pub(super) fn wake_ns(&self) -> f64 {
        quantile(&mut self.oversleeps_ns.clone(), 0.5).unwrap_or(WAKE_GUESS_NS)
    }

    /// The window that would have caught the most of the recent samples while spinning `spend_ns`
    /// on average, and its expert. `None` if it would have caught too few.
    pub(super) fn window(&self, spend_ns: f64) -> Option<(usize, Window)> {
        if spend_ns < SPEND_MIN_NS {
            return None;
        }
        let of = |expert: usize| Some((expert, self.window_by(expert, spend_ns)?));
        let better = |(_, one): &(usize, Window), (_, other): &(usize, Window)| {
            one.caught.cmp(&other.caught).then(other.width_ns().total_cmp(&one.width_ns()))
        };
        (0..EXPERTS).filter_map(of).max_by(better)
    }

    fn window_by(&self, expert: usize, spend_ns: f64) -> Option<Window> {
        let errors = &self.errors_ns[expert];
        let known = errors.iter().copied().filter(|error_ns| error_ns.is_finite());
        let mut known: Few<f64, RECENT> = known.collect();
        known.sort_unstable_by(f64::total_cmp);
        if known.len() < ERRORS_MIN {
            return None;
        }
        let missing = errors.len() - known.len();
        let usual_ns = self.wake_ns();
        let latest_ns = quantile(&mut self.oversleeps_ns.clone(), 0.97);
        let latest_ns = latest_ns.unwrap_or(2.0 * WAKE_GUESS_NS);
        let wanted_ns = latest_ns - known[known.len() / 32] + self.margin_ns;
        // The latest samples may cost more than they are worth.
        let tails = [0, known.len() / 16, known.len() / 8, known.len() / 4];
        let windows = tails.map(|given_up| {
            let tail_ns = known[known.len() - 1 - given_up] + TAIL_NS;
            let cost = |lead_ns: f64| {
                let spun = |error_ns: f64| (error_ns.min(tail_ns) + lead_ns - usual_ns).max(0.0);
                let all = known.iter().map(|error_ns| spun(*error_ns)).sum::<f64>();
                (all + missing as f64 * spun(tail_ns)) / errors.len() as f64
            };
            let full = cost(wanted_ns) <= spend_ns;
            let none_ns = usual_ns - tail_ns;
            let lead_ns = if full { wanted_ns } else { most(cost, none_ns, wanted_ns, spend_ns) };
            let is_caught = |error_ns: &&f64| (usual_ns - lead_ns..=tail_ns).contains(*error_ns);
            let caught = known.iter().filter(is_caught).count();
            Window { lead_ns, tail_ns, full, caught }
        });
        let more = |best: Window, one: Window| if one.caught > best.caught { one } else { best };
        let best = windows.into_iter().reduce(more)?;
        (best.caught * 100 >= errors.len() * CAUGHT_MIN_PERCENT).then_some(best)
    }
}

impl Window {
    fn width_ns(&self) -> f64 {
        self.lead_ns + self.tail_ns
    }
}

/// The greatest lead that costs at most `spend_ns`; the cost rises with the lead.
fn most(cost: impl Fn(f64) -> f64, mut low_ns: f64, mut high_ns: f64, spend_ns: f64) -> f64 {
    for _ in 0..12 {
        let middle_ns = (low_ns + high_ns) / 2.0;
        match cost(middle_ns) <= spend_ns {
            true => low_ns = middle_ns,
            false => high_ns = middle_ns,
        }
    }
    low_ns
}

const RECENT: usize = 64;
/// Less spinning time is not worth a timer.
pub(super) const SPEND_MIN_NS: f64 = 10_000.0;
/// The number of errors that make a distribution.
const ERRORS_MIN: usize = 3;
/// If a window catches fewer, the topic is not periodic, or too fast for the budget.
const CAUGHT_MIN_PERCENT: usize = 40;
/// The guess before any timer was seen.
const WAKE_GUESS_NS: f64 = 50_000.0;
/// In balance if one sample in 256 is missed: 2 × 0.9973^255 = 1. After Robbins and Monro, *A
/// stochastic approximation method*, 1951.
const WIDENING: f64 = 2.0;
const NARROWING: f64 = 0.9973;
const MARGIN_FIRST_NS: f64 = 50_000.0;
const MARGIN_MIN_NS: f64 = 10_000.0;
const MARGIN_MAX_NS: f64 = 100_000.0;
const TAIL_NS: f64 = 20_000.0;
