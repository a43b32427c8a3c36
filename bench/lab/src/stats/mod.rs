//! The arithmetic that every figure of a report is made by: quantile, median, interval; and what may
//! be said of two figures.

pub mod bootstrap;
mod interval;
pub mod permutation;
pub mod verdict;

pub use interval::{LEVEL_PERCENT_MIN, RUNS_MIN, interval, level_percent};

/// The value in the middle, or the midpoint of the two in the middle; `None` of no values.
pub fn median(mut values: Vec<f64>) -> Option<f64> {
    if values.is_empty() {
        return None;
    }
    let (middle, is_even) = (values.len() / 2, values.len().is_multiple_of(2));
    let (below, upper, _) = values.select_nth_unstable_by(middle, f64::total_cmp);
    let upper = *upper;
    match below.iter().copied().max_by(f64::total_cmp) {
        Some(lower) if is_even => Some((lower + upper) / 2.0),
        _ => Some(upper),
    }
}

/// How many of `count` values are at or below the quantile; at least 1.
pub fn rank(count: usize, quantile: f64) -> usize {
    ((quantile * count as f64).ceil() as usize).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_median_of_an_even_number_is_the_midpoint() {
        assert_eq!(median(vec![]), None);
        assert_eq!(median(vec![3.0]), Some(3.0));
        assert_eq!(median(vec![9.0, 1.0]), Some(5.0));
        assert_eq!(median(vec![9.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0, 9.0, 3.0]), Some(3.5));
        assert_eq!(median(vec![2.0, 2.0, 2.0, -8.0]), Some(2.0));
    }
}
