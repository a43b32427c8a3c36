//! Which of many differences between two sets of runs are more than chance: a permutation test with
//! a correction for their number. `verdict` turns the result into words.
//!
//! If A and B do not differ, every other division of a cell's runs into as many of A and of B is
//! equally likely. The statistic of a comparison is Welch's t of the logarithms of its runs. It is
//! compared with that of all divisions, or of [`DIVISIONS_MAX`] random ones if there are more. The
//! test is exact for any distribution of runs, with any outliers, and robust if A and B differ only
//! in spread (Chung and Romano, "Exact and asymptotically robust permutation tests", Annals of
//! Statistics 41, 2013). With at least [`RUNS_TRIMMED`] runs on each side, the fastest and the
//! slowest fifth are trimmed (Yuen, "The two-sample trimmed t for unequal population variances",
//! Biometrika 61, 1974), so that single disturbed runs do not hide a difference. With fewer runs
//! that would lose too much.
//!
//! The p of one such test is never below 2 / 252 with five runs on each side. Holm's and
//! Benjamini-Hochberg's corrections multiply p by the number of comparisons, so they would find
//! nothing among more than six. Instead the step-down procedure of Westfall and Young is used
//! ("Resampling-Based Multiple Testing", 1993). It compares the largest statistic with those of
//! *any* comparison in its own divisions, the second largest with those of all but the first, and
//! so on. The probabilities of the single comparisons are added up, which needs no assumption about
//! their dependence (Westfall and Wolfinger, "Multiple tests with discrete distributions", The
//! American Statistician 51, 1997). This limits the family-wise error rate: the probability that at
//! least one true equality is called a difference.
//!
//! The test assumes that runs are exchangeable: a run of B could have been one of A. Between two
//! sessions just that is in question: the machine may have changed as well as the measured system,
//! and no test on the runs of two sessions can tell these apart. [`test_together`] compares several
//! sessions of each side, which are exchangeable. Within a session, a disturbance of
//! a block affects runs on both sides, which makes the test more conservative. A test by pairs of a
//! block would never have a p below 2 / 32 with five.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// The logarithms of one figure of each run of A and of B; at least two on each side.
#[derive(Clone, Debug)]
pub struct Sides {
    /// Runs of A.
    pub a: Vec<f64>,
    /// Runs of B.
    pub b: Vec<f64>,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct TestResult {
    /// Positive if B is larger.
    pub statistic: f64,
    /// The probability of a statistic at least as large in either direction if nothing differs, for
    /// this comparison alone.
    pub p: f64,
    /// Like `p`, for all comparisons together: if differences below a limit are accepted, the
    /// probability of at least one wrong one is at most that limit.
    pub p_adjusted: f64,
}

/// Tests all comparisons of a family.
pub fn test(family: &[Sides]) -> Vec<TestResult> {
    let statistics: Vec<f64> = family.iter().map(Sides::statistic).collect();
    let mut order: Vec<usize> = (0..family.len()).collect();
    let scaled = |index: usize| statistics[index].abs() as f32 * scale(index);
    order.sort_by(|&a, &b| scaled(b).total_cmp(&scaled(a)));
    let limit = |index: &usize| scaled(*index) * (1.0 - ROUNDING);
    let limits: Vec<f32> = order.iter().map(limit).collect();
    let most = (STATISTICS_MAX / family.len().max(1)).clamp(DIVISIONS_MIN, DIVISIONS_MAX);
    // Sum of probabilities at each rank, as increments from the rank before. A comparison counts up
    // to its own rank, from the first rank whose statistic one of its divisions reaches.
    let mut growth = vec![0.0; family.len() + 1];
    let mut alone = Vec::with_capacity(family.len());
    for (place, &index) in order.iter().enumerate() {
        let (mut all, mut reached) = (0, vec![]);
        family[index].each_statistic(most, |found| {
            all += 1;
            let found = found * scale(index);
            if found >= limits[place] {
                reached.push(limits[..place].partition_point(|limit| *limit > found));
            }
        });
        reached.iter().for_each(|first| growth[*first] += 1.0 / f64::from(all));
        alone.push(reached.len() as f64 / f64::from(all));
        growth[place + 1] -= alone[place];
    }
    let mut test_results =
        vec![TestResult { statistic: 0.0, p: 1.0, p_adjusted: 1.0 }; family.len()];
    let (mut sum, mut adjusted) = (0.0, 0.0f64);
    for (place, &index) in order.iter().enumerate() {
        sum += growth[place];
        // The adjusted p never decreases from rank to rank.
        adjusted = adjusted.max(sum).min(1.0);
        let (statistic, p) = (statistics[index], alone[place]);
        test_results[index] = TestResult { statistic, p, p_adjusted: adjusted };
    }
    test_results
}

/// Tests all comparisons of a family whose values come from the same sessions, in the same order.
///
/// All comparisons are divided alike: a session of A with all its values becomes one of B. So the
/// largest statistic of each division is what chance alone would show of the whole family, for any
/// dependence between its comparisons (Westfall and Young). The more alike they move from session to
/// session, the less their number matters.
pub fn test_together(family: &[Sides]) -> Vec<TestResult> {
    let Some(first) = family.first() else { return Vec::new() };
    let (in_a, all) = (first.a.len(), first.a.len() + first.b.len());
    let mut each: Vec<Together> = family.iter().map(Together::of).collect();
    let mut is_a = vec![false; all];
    is_a[..in_a].fill(true);
    let statistics: Vec<f64> = each.iter_mut().map(|it| it.statistic(&is_a)).collect();
    let mut order: Vec<usize> = (0..family.len()).collect();
    order.sort_by(|&a, &b| statistics[b].abs().total_cmp(&statistics[a].abs()));
    let limits: Vec<f64> =
        statistics.iter().map(|it| it.abs() * (1.0 - f64::from(ROUNDING))).collect();
    let (mut number, mut alone, mut adjusted) =
        (0.0, vec![0.0; family.len()], vec![0.0; family.len()]);
    let mut note = |is_a: &[bool]| {
        number += 1.0;
        let mut largest = 0.0f64;
        for &index in order.iter().rev() {
            let found = each[index].statistic(is_a).abs();
            largest = largest.max(found);
            alone[index] += f64::from(u8::from(found >= limits[index]));
            adjusted[index] += f64::from(u8::from(largest >= limits[index]));
        }
    };
    let most = (STATISTICS_MAX / family.len()).clamp(DIVISIONS_MIN, DIVISIONS_MAX);
    each_of_all(&is_a, most, &mut note);
    let mut least = 0.0f64;
    let mut test_results =
        vec![TestResult { statistic: 0.0, p: 1.0, p_adjusted: 1.0 }; family.len()];
    for &index in &order {
        least = least.max(adjusted[index] / number);
        let (statistic, p) = (statistics[index], alone[index] / number);
        test_results[index] = TestResult { statistic, p, p_adjusted: least };
    }
    test_results
}

/// A comparison whose values are divided by the places that they had before they were sorted.
struct Together {
    division: Division,
    /// The place of each of the ascending values.
    places: Vec<usize>,
    is_a: Vec<bool>,
}

impl Together {
    fn of(sides: &Sides) -> Self {
        let values: Vec<f64> = sides.a.iter().chain(&sides.b).copied().collect();
        let mut places: Vec<usize> = (0..values.len()).collect();
        // Like the sort within a division: stable, so that equal values keep their order.
        places.sort_by(|&one, &other| values[one].total_cmp(&values[other]));
        let (division, is_a) = Division::of(sides);
        Together { division, places, is_a }
    }

    /// The statistic if the values at these places were those of A.
    fn statistic(&mut self, is_a: &[bool]) -> f64 {
        for (of_value, place) in self.is_a.iter_mut().zip(&self.places) {
            *of_value = is_a[*place];
        }
        self.division.statistic(&self.is_a)
    }
}

/// Calls `note` with the given and all other divisions; if there are more than `most`, with random
/// ones.
fn each_of_all(is_a: &[bool], most: usize, note: &mut impl FnMut(&[bool])) {
    let in_a = is_a.iter().filter(|is_a| **is_a).count();
    if divisions(is_a.len(), in_a) <= most as f64 {
        each_division(is_a.len(), in_a, note);
        return;
    }
    let (mut random, mut is_a) = (StdRng::seed_from_u64(SEED), is_a.to_vec());
    note(&is_a);
    for _ in 1..most {
        is_a.shuffle(&mut random);
        note(&is_a);
    }
}

/// A factor of up to 2 % by index in the family, which does not change the error rate. Without it
/// equal statistics, as of runs that agree to the last digit, would all count against each other.
fn scale(index: usize) -> f32 {
    1.0 + 0.02 * (index as f64 * 0.618_034).fract() as f32
}

/// The number of runs on each side with which any of `comparisons` can be found different, however
/// many of the others divide as clearly by chance.
pub fn runs_to_tell_any(comparisons: usize) -> usize {
    let suffice = |runs: &usize| comparisons as f64 * 2.0 <= RATE * divisions(2 * runs, *runs);
    (2..).find(suffice).expect("divisions grow without bound")
}

impl Sides {
    fn statistic(&self) -> f64 {
        let (mut division, is_a) = Division::of(self);
        division.statistic(&is_a)
    }

    /// Calls `note` with the absolute statistic of the observed and all other divisions; if there
    /// are more than `most`, of random ones.
    fn each_statistic(&self, most: usize, mut note: impl FnMut(f32)) {
        let (mut division, is_a) = Division::of(self);
        each_of_all(&is_a, most, &mut |is_a| note(division.statistic(is_a).abs() as f32));
    }
}

/// Ascending values, to be divided in many ways.
struct Division {
    values: Vec<f64>,
    /// Buffers for the values of A and of B.
    sides: [Vec<f64>; 2],
    /// Whether to trim the ends.
    is_trimmed: bool,
}

impl Division {
    /// The values of both sides, and which of them belong to A.
    fn of(sides: &Sides) -> (Self, Vec<bool>) {
        let of_a = sides.a.iter().map(|value| (*value, true));
        let mut all: Vec<(f64, bool)> =
            of_a.chain(sides.b.iter().map(|value| (*value, false))).collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let is_trimmed = sides.a.len().min(sides.b.len()) >= RUNS_TRIMMED;
        // Their mean is subtracted, which keeps sums of squares exact.
        let mean = all.iter().map(|(value, _)| value).sum::<f64>() / all.len() as f64;
        let (values, is_a) = all.into_iter().map(|(value, is_a)| (value - mean, is_a)).unzip();
        (Self { values, sides: [vec![], vec![]], is_trimmed }, is_a)
    }

    /// Welch's or Yuen's t of B minus A. [`SPREAD_MIN`] is added to the standard error, so that a
    /// tiny difference between runs that agree to the last digit is not infinitely clear (Tusher,
    /// Tibshirani and Chu, PNAS 98, 2001).
    fn statistic(&mut self, is_a: &[bool]) -> f64 {
        self.sides.iter_mut().for_each(Vec::clear);
        for (value, is_a) in self.values.iter().zip(is_a) {
            self.sides[usize::from(!is_a)].push(*value);
        }
        let of = |side: &Vec<f64>| trimmed(side, if self.is_trimmed { side.len() / 5 } else { 0 });
        let [(a, error_a), (b, error_b)] = self.sides.each_ref().map(of);
        (b - a) / ((error_a + error_b).sqrt() + SPREAD_MIN)
    }
}

/// The mean of ascending values without `cut` at each end, and the square of its standard error.
/// The error uses the variance of all values; those cut off count as the last value kept.
fn trimmed(values: &[f64], cut: usize) -> (f64, f64) {
    let kept = &values[cut..values.len() - cut];
    let (mut sum, mut squares) = (0.0, 0.0);
    for value in kept {
        sum += value;
        squares += value * value;
    }
    let (low, high) = (kept[0], kept[kept.len() - 1]);
    let (all, cut, kept) = (values.len() as f64, cut as f64, kept.len() as f64);
    let drawn_in = sum + cut * (low + high);
    let deviations = squares + cut * (low * low + high * high) - drawn_in * drawn_in / all;
    (sum / kept, deviations.max(0.0) / (kept * (kept - 1.0)))
}

/// Every choice of `wanted` out of `total`, beginning with the first ones.
fn each_division(total: usize, wanted: usize, note: &mut impl FnMut(&[bool])) {
    let mut chosen: Vec<usize> = (0..wanted).collect();
    let mut is_chosen = vec![false; total];
    loop {
        is_chosen.fill(false);
        chosen.iter().for_each(|at| is_chosen[*at] = true);
        note(&is_chosen);
        let movable = (0..wanted).rev().find(|&at| chosen[at] < total - wanted + at);
        let Some(at) = movable else { return };
        chosen[at] += 1;
        for next in at + 1..wanted {
            chosen[next] = chosen[next - 1] + 1;
        }
    }
}

/// Number of ways to choose `wanted` out of `total`.
fn divisions(total: usize, wanted: usize) -> f64 {
    (0..wanted).map(|at| (total - at) as f64 / (at + 1) as f64).product()
}

/// The family-wise error rate of verdicts.
pub const RATE: f64 = 0.05;
/// More than all divisions of seven runs and seven.
const DIVISIONS_MAX: usize = 5_000;
/// More than all divisions of six runs and six.
const DIVISIONS_MIN: usize = 1_000;
/// Limit for a family, which takes some seconds. In a large family each comparison has fewer
/// divisions.
const STATISTICS_MAX: usize = 10_000_000;
/// From this number of runs on each side, a fifth is trimmed at each end.
const RUNS_TRIMMED: usize = 8;
/// A tenth of the material ratio, 2 %, as a logarithm.
const SPREAD_MIN: f64 = 0.002;
/// Statistics with a smaller difference are equal: they are the same sum in another order.
const ROUNDING: f32 = 1e-5;
/// Fixed, so that a repeated comparison is the same.
const SEED: u64 = 0x0063_6f6d_7061_7265;

#[cfg(test)]
mod tests;
