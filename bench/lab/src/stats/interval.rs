//! Between which values the median of runs lies, whatever their distribution.
//!
//! Samples within a run depend on each other (one placement, one state of the machine), so a run
//! counts once, by its own percentile. Runs are as likely to fall short of their median as to exceed
//! it, so that of n runs fewer than k lie below it, or above, with the probability of fewer than k
//! heads in n throws of a coin. The k-th smallest and the k-th largest of them then enclose the
//! median in all other cases (Thompson, "On Confidence Ranges for the Median", Annals of
//! Mathematical Statistics 7, 1936): the least and the greatest of five runs in 93.75 %.

/// The interval of the median of `values`: the narrowest pair of values, as far from either end,
/// that covers it in [`LEVEL_PERCENT_MIN`] of cases; `None` of fewer than [`RUNS_MIN`].
pub fn interval(mut values: Vec<f64>) -> Option<[f64; 2]> {
    let cut = cut(values.len())?;
    values.sort_unstable_by(f64::total_cmp);
    Some([values[cut], values[values.len() - 1 - cut]])
}

/// In how many of a hundred cases the interval of so many runs covers their median.
pub fn level_percent(runs: usize) -> Option<f64> {
    cut(runs).map(|cut| 100.0 * level(runs, cut))
}

/// How many values may be cut off at either end.
fn cut(runs: usize) -> Option<usize> {
    let covers = |cut: &usize| level(runs, *cut) >= LEVEL_PERCENT_MIN / 100.0;
    (0..runs.div_ceil(2)).take_while(covers).last()
}

/// The probability that more than `cut` of so many runs lie on either side of the median.
fn level(runs: usize, cut: usize) -> f64 {
    let mut ways = 0.5f64.powi(runs as i32);
    let mut missed = ways;
    for heads in 0..cut {
        ways *= (runs - heads) as f64 / (heads + 1) as f64;
        missed += ways;
    }
    1.0 - 2.0 * missed
}

/// What the least and the greatest of [`RUNS_MIN`] runs reach; no interval has less.
pub const LEVEL_PERCENT_MIN: f64 = 93.75;
/// The least and the greatest of four runs cover their median in 87.5 % of cases.
pub const RUNS_MIN: usize = 5;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_levels_are_those_of_the_binomial_distribution() {
        let found = |runs| level_percent(runs).map(|level| (level * 1e4).round() / 1e4);
        assert_eq!(found(0), None);
        assert_eq!(found(4), None);
        assert_eq!((found(5), cut(5)), (Some(93.75), Some(0)));
        assert_eq!((found(6), cut(6)), (Some(96.875), Some(0)));
        assert_eq!((found(8), cut(8)), (Some(99.2188), Some(0)));
        assert_eq!((found(9), cut(9)), (Some(96.0938), Some(1)));
        assert_eq!((found(15), cut(15)), (Some(96.4844), Some(3)));
        assert!((RUNS_MIN..=1000).all(|runs| level_percent(runs) >= Some(LEVEL_PERCENT_MIN)));
    }

    #[test]
    fn the_ends_are_runs() {
        assert_eq!(interval(vec![4.0, 1.0, 5.0, 2.0, 3.0]), Some([1.0, 5.0]));
        assert_eq!(interval(vec![4.0, 1.0, 5.0, 2.0]), None);
        assert_eq!(interval((0..9).map(f64::from).collect()), Some([1.0, 7.0]));
    }
}
