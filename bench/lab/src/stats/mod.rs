//! The statistics behind every figure of a report: quantile, median, interval, and the comparison
//! of two figures.

pub mod interval;
pub mod permutation;
pub mod verdict;

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use interval::RUNS_MIN;

/// The middle value, or the mean of the two middle ones; `None` without values.
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

/// The number of values, of `count`, at or below the quantile; at least 1.
pub fn rank(count: usize, quantile: f64) -> usize {
    ((quantile * count as f64).ceil() as usize).max(1)
}

/// 95 % interval of `of` applied to the medians of `a` and `b`, which have one figure per run;
/// `None` with fewer than [`RUNS_MIN`] runs on either side. The median of five runs can take few
/// values, so this interval is a little too wide (95 to 97 % of them cover the truth). That of a
/// mean would be too narrow (87 %); see the tests.
///
/// A bootstrap over runs (Davison and Hinkley, "Bootstrap Methods and their Application", 1997,
/// section 3.8), with the percentile interval.
pub fn of_medians(a: &[f64], b: &[f64], of: fn(f64, f64) -> f64) -> Option<[f64; 2]> {
    if a.len().min(b.len()) < RUNS_MIN {
        return None;
    }
    let drawn = draws([a.len(), b.len()]);
    let mut drawn = drawn.iter();
    let mut median_of = |runs: &[f64]| {
        let drawn = drawn.by_ref().take(runs.len());
        median(drawn.map(|at| runs[*at]).collect()).unwrap_or(f64::NAN)
    };
    Some(middle(|| of(median_of(a), median_of(b))))
}

/// The indices of the drawn runs of both sides, [`RESAMPLES`] times: drawn once and shared by all
/// comparisons with the same numbers of runs.
fn draws(lengths: [usize; 2]) -> Rc<[usize]> {
    thread_local! {
        static DRAWN: RefCell<HashMap<[usize; 2], Rc<[usize]>>> = RefCell::default();
    }
    let draw = || {
        let mut random = StdRng::seed_from_u64(SEED);
        let each = lengths.iter().flat_map(|&runs| std::iter::repeat_n(runs, runs));
        let all = std::iter::repeat_n(each, RESAMPLES).flatten();
        all.map(|runs| random.random_range(0..runs)).collect()
    };
    DRAWN.with_borrow_mut(|drawn| drawn.entry(lengths).or_insert_with(draw).clone())
}

/// The range of the middle 95 % of [`RESAMPLES`] drawn values.
fn middle(draw: impl FnMut() -> f64) -> [f64; 2] {
    let mut found: Vec<f64> = std::iter::repeat_with(draw).take(RESAMPLES).collect();
    found.sort_unstable_by(f64::total_cmp);
    [0.025, 0.975].map(|part| found[((RESAMPLES - 1) as f64 * part).round() as usize])
}

const RESAMPLES: usize = 400;
/// Fixed, so that a repeated report is the same.
pub(crate) const SEED: u64 = 0x6d79_656c_696e;

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

    #[test]
    fn the_ratio_interval_has_its_stated_coverage() {
        let mut random = StdRng::seed_from_u64(2);
        let mut runs = |number: usize| -> Vec<f64> {
            let offset = || (0..12).map(|_| random.random_range(-0.01..0.01)).sum::<f64>().exp();
            std::iter::repeat_with(offset).take(number).collect()
        };
        for number in [5, 10] {
            let covers = |_: &i32| {
                let found = of_medians(&runs(number), &runs(number), |a, b| b / a).unwrap();
                (found[0]..=found[1]).contains(&1.0)
            };
            let covered = (0..1000).filter(covers).count();
            assert!((935..=985).contains(&covered), "{covered} of 1000, {number} runs");
        }
        assert_eq!(of_medians(&[1.0; 4], &[1.0; 5], |a, b| b / a), None);
    }
}
