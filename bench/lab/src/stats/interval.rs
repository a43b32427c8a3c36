//! The confidence interval of the median over runs, also if the number of runs was decided while
//! they were made.
//!
//! Samples within a run depend on each other (one placement, one state of the machine), so a run
//! counts once, by its own percentile. A run is as likely to be below the true median as above it,
//! so the number of runs below it is that of heads of a coin. The k-th smallest and the k-th
//! largest run enclose the median unless fewer than k runs lie on one side of it (Thompson, "On
//! Confidence Ranges for the Median", Annals of Mathematical Statistics 7, 1936). The least and the
//! greatest of five runs do so in 93.75 % of cases, whatever the distribution is.
//!
//! A session that repeats a cell until its interval is narrow stops when the runs happen to agree,
//! and an interval for a fixed number of runs then covers the median too seldom. So there the
//! intervals of *all* numbers of runs up to the limit have to cover it together: then it does not
//! matter at which of them the session stops, or why (Darling and Robbins, "Confidence sequences
//! for mean, variance, and median", PNAS 58, 1967). The probability that one of them misses it is
//! exact: that of a coin's throws which leave a corridor. It is spent evenly over the runs from
//! [`RUNS_MIN`] to the limit (Lan and DeMets, "Discrete sequential boundaries for clinical trials",
//! Biometrika 70, 1983). With a limit of up to eight runs no interval cuts anything off, so it is all
//! spent at the first.

/// How the number of runs was decided.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunCount {
    /// As many as there are, decided before the first.
    Fixed,
    /// Until the results please, but at most so many.
    UpTo(usize),
}

impl RunCount {
    /// The confidence interval of the median of `values`: the narrowest pair of values, equally far
    /// from both ends, that covers it in at least [`LEVEL_PERCENT_MIN`] of cases. `None` if there
    /// are too few: fewer than [`RUNS_MIN`], or with a limit of 9 to 15, fewer than seven.
    pub fn interval(self, mut values: Vec<f64>) -> Option<[f64; 2]> {
        let cut = self.cut(values.len())?.0;
        values.sort_unstable_by(f64::total_cmp);
        Some([values[cut], values[values.len() - 1 - cut]])
    }

    /// The coverage of the interval of so many values, in per cent.
    pub fn level_percent(self, runs: usize) -> Option<f64> {
        Some(100.0 * (1.0 - self.cut(runs)?.1))
    }

    /// How many values may be cut off at each end, and the probability of an interval that misses.
    fn cut(self, runs: usize) -> Option<(usize, f64)> {
        match self {
            RunCount::Fixed => fixed(runs),
            RunCount::UpTo(most) => {
                let (cuts, missed) = corridor(most.max(runs));
                Some((cuts.get(runs).copied()??, missed))
            }
        }
    }
}

fn fixed(runs: usize) -> Option<(usize, f64)> {
    let with_missed = |cut| (cut, missed(runs, cut));
    let is_rare = |it: &(usize, f64)| it.1 <= MISSED_MAX;
    (0..runs.div_ceil(2)).map(with_missed).take_while(is_rare).last()
}

/// The probability that at most `cut` of the runs lie on one of the sides of the median.
fn missed(runs: usize, cut: usize) -> f64 {
    let mut ways = 0.5f64.powi(runs as i32);
    let mut sum = ways;
    for heads in 0..cut {
        ways *= (runs - heads) as f64 / (heads + 1) as f64;
        sum += ways;
    }
    2.0 * sum
}

/// For each number of runs up to `most` how many may be cut off at each end, and the probability
/// that any of the intervals misses the median.
fn corridor(most: usize) -> (Vec<Option<usize>>, f64) {
    let mut cuts = vec![None; most + 1];
    // The probability of so many runs below the median, while all intervals before cover it.
    let mut heads = vec![1.0];
    let mut missed = 0.0;
    let is_all_spent_first = matches!(fixed(most), Some((0, _)));
    for (runs, kept) in cuts.iter_mut().enumerate().skip(1) {
        heads.push(0.0);
        for below in (0..heads.len()).rev() {
            let one_less = below.checked_sub(1).map_or(0.0, |it| heads[it]);
            heads[below] = (heads[below] + one_less) / 2.0;
        }
        if runs < RUNS_MIN {
            continue;
        }
        let share = (runs - RUNS_MIN + 1) as f64 / (most - RUNS_MIN + 1) as f64;
        let spent = if is_all_spent_first { MISSED_MAX } else { share * MISSED_MAX };
        let outside = |cut: usize| {
            let sides = heads[..=cut].iter().chain(&heads[runs - cut..]);
            missed + sides.sum::<f64>()
        };
        let cut = (0..runs.div_ceil(2)).take_while(|cut| outside(*cut) <= spent + ROUNDING).last();
        if let Some(cut) = cut {
            missed = outside(cut);
            heads[..=cut].fill(0.0);
            heads[runs - cut..].fill(0.0);
        }
        *kept = cut;
    }
    (cuts, missed)
}

/// The coverage of the least and the greatest of [`RUNS_MIN`] runs; no interval has less.
pub const LEVEL_PERCENT_MIN: f64 = 93.75;
/// With four runs the least and the greatest would cover the median in only 87.5 % of cases.
pub const RUNS_MIN: usize = 5;
const MISSED_MAX: f64 = 1.0 - LEVEL_PERCENT_MIN / 100.0;
/// Sums of binary fractions, which are exact up to 53 runs.
const ROUNDING: f64 = 1e-12;

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn the_levels_are_those_of_the_binomial_distribution() {
        let found = |runs| RunCount::Fixed.level_percent(runs).map(|it| (it * 1e4).round() / 1e4);
        assert_eq!(found(0), None);
        assert_eq!(found(4), None);
        assert_eq!((found(5), fixed(5).unwrap().0), (Some(93.75), 0));
        assert_eq!((found(6), fixed(6).unwrap().0), (Some(96.875), 0));
        assert_eq!((found(8), fixed(8).unwrap().0), (Some(99.2188), 0));
        assert_eq!((found(9), fixed(9).unwrap().0), (Some(96.0938), 1));
        assert_eq!((found(15), fixed(15).unwrap().0), (Some(96.4844), 3));
        let is_enough = |runs| RunCount::Fixed.level_percent(runs) >= Some(LEVEL_PERCENT_MIN);
        assert!((RUNS_MIN..=1000).all(is_enough));
    }

    #[test]
    fn interval_ends_are_runs() {
        assert_eq!(RunCount::Fixed.interval(vec![4.0, 1.0, 5.0, 2.0, 3.0]), Some([1.0, 5.0]));
        assert_eq!(RunCount::Fixed.interval(vec![4.0, 1.0, 5.0, 2.0]), None);
        let nine = || (0..9).map(f64::from).collect::<Vec<_>>();
        assert_eq!(RunCount::Fixed.interval(nine()), Some([1.0, 7.0]));
        assert_eq!(RunCount::UpTo(15).interval(nine()), Some([0.0, 8.0]));
    }

    #[test]
    fn repeats_spend_the_same_probability_over_all_numbers_of_runs() {
        let cuts = |most| corridor(most).0[RUNS_MIN.min(most)..].to_vec();
        assert_eq!(cuts(5), [Some(0)]);
        assert_eq!(cuts(8), [Some(0); 4], "they have the same interval as without a limit");
        assert_eq!(cuts(9), [None, None, Some(0), Some(0), Some(1)]);
        let of_15 = [0, 0, 0, 1, 1, 1, 2, 2, 3].map(Some);
        assert_eq!(cuts(15), [&[None, None][..], &of_15].concat());
        for most in [5, 6, 8, 9, 15, 30, 60, 1000] {
            let missed = corridor(most).1;
            assert!(missed <= MISSED_MAX + ROUNDING, "{most}: {missed}");
            let last = RunCount::UpTo(most).level_percent(most).expect("all of it is spent");
            assert!(last >= LEVEL_PERCENT_MIN - 1e-9, "{most}: {last}");
        }
    }

    /// A session that stops at the narrowest interval that luck can offer.
    fn covered(
        count: RunCount,
        most: usize,
        is_good: impl Fn(f64) -> bool,
        random: &mut StdRng,
    ) -> bool {
        let mut values = Vec::new();
        loop {
            values.push((0..12).map(|_| random.random_range(-0.5..0.5)).sum::<f64>());
            let found = count.interval(values.clone());
            let stops = found.is_some_and(|[low, high]| is_good(high - low));
            if stops || values.len() == most {
                return found.is_some_and(|[low, high]| (low..=high).contains(&0.0));
            }
        }
    }

    #[test]
    fn an_interval_at_which_a_session_stopped_covers_the_median() {
        let random = &mut StdRng::seed_from_u64(3);
        for most in [6, 9, 15, 40] {
            for width in [0.3, 0.8, 1.2, 2.0] {
                let mut share = |count| {
                    let one = |_: &i32| covered(count, most, |it| it <= width, random);
                    (0..4000).filter(one).count() as f64 / 4000.0
                };
                let spent = share(RunCount::UpTo(most));
                // Three standard deviations below the promised level.
                assert!(spent >= 0.9375 - 0.0115, "{spent} up to {most} runs, width {width}");
            }
        }
        // The interval of a fixed number does not: that is the fault that this mends.
        let one = |_: &i32| covered(RunCount::Fixed, 40, |it| it <= 1.2, random);
        let naive = (0..4000).filter(one).count() as f64 / 4000.0;
        assert!(naive < 0.92, "{naive}");
    }
}
