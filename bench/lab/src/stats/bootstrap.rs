//! How far a ratio or a difference of two medians of runs might have been off: a bootstrap over runs
//! (Davison and Hinkley, "Bootstrap Methods and their Application", 1997, section 3.8), with the
//! percentile interval.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{RUNS_MIN, median};

/// 95 % interval of what `of` makes of the medians of `a` and of `b`, one figure a run; `None` with
/// fewer than [`RUNS_MIN`] runs of either. The median of five runs has few values to take, which
/// makes this interval a little too wide (95 to 97 % of them cover the truth), where that of a mean
/// would be too narrow (87 %): see the tests.
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

/// Which runs of either side are drawn, [`RESAMPLES`] times: the same for all with so many runs, and
/// drawn once.
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

/// What 95 % of [`RESAMPLES`] drawn values lie between.
fn middle(draw: impl FnMut() -> f64) -> [f64; 2] {
    let mut found: Vec<f64> = std::iter::repeat_with(draw).take(RESAMPLES).collect();
    found.sort_unstable_by(f64::total_cmp);
    [0.025, 0.975].map(|part| found[((RESAMPLES - 1) as f64 * part).round() as usize])
}

const RESAMPLES: usize = 400;
/// Fixed, so that a report made again says the same.
pub(crate) const SEED: u64 = 0x6d79_656c_696e;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_interval_of_a_ratio_of_medians_covers_the_truth_as_often_as_it_says() {
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
