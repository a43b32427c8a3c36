//! Which of many differences between two sets of runs are more than chance: a permutation test with
//! a correction for their number. `verdict` makes words of it.
//!
//! If nothing differs between A and B, the runs of a cell would be as likely in any other division
//! into so many of A and so many of B. So the statistic of a comparison, Welch's t of the logarithms
//! of its runs, is compared with those of all divisions (of [`DIVISIONS_MAX`] random ones at most, where
//! there are more): exact for any distribution of runs, with any outliers, and robust where A and B
//! differ in spread alone (Chung and Romano, "Exact and asymptotically robust permutation tests",
//! Annals of Statistics 41, 2013). With [`RUNS_TRIMMED`] runs of each or more, the fastest and the
//! slowest fifth are trimmed (Yuen, "The two-sample trimmed t for unequal population variances",
//! Biometrika 61, 1974), so that single disturbed runs hide no difference; fewer cannot spare them.
//!
//! The p of one such test is never below 2 / 252 with five runs and five, so Holm's and
//! Benjamini-Hochberg's corrections, which multiply p by the number of comparisons, would find
//! nothing among more than six. Instead the largest statistic is compared with those that *any*
//! of the comparisons has in its own divisions, the second largest with those of all but the first, and so on:
//! the step-down procedure of Westfall and Young ("Resampling-Based Multiple Testing", 1993),
//! with the probabilities of the single comparisons added up, which needs no
//! assumption on how they depend on each other (Westfall and Wolfinger, "Multiple tests with
//! discrete distributions", The American Statistician 51, 1997). It holds the family-wise error
//! rate: the probability that one or more of the true equalities is called a difference.
//!
//! What it presumes is that runs are exchangeable: that a run of B could have been one of A. Between
//! two sessions that is what is in question: the machine may differ as well as what was measured
//! on it, and no test on the runs of two sessions can tell these apart. Within a session, what disturbs
//! a block disturbs a run of either side, which makes the test more careful; one by pairs of a block
//! would never have a p below 2 / 32 with five.

use rand::SeedableRng;
use rand::rngs::StdRng;
use rand::seq::SliceRandom;

/// The logarithms of one figure of each run, of A and of B; at least two of each.
#[derive(Clone, Debug)]
pub struct Sides {
    /// Of A.
    pub a: Vec<f64>,
    /// Of B.
    pub b: Vec<f64>,
}

/// What a comparison came to.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Chance {
    /// Positive where B is larger.
    pub statistic: f64,
    /// The probability of a statistic as large in either direction if nothing differs, of this
    /// comparison alone.
    pub p: f64,
    /// As `p`, of all comparisons together: differences below a limit are called wrongly, one or
    /// more of them, with at most the probability of that limit.
    pub p_adjusted: f64,
}

/// Tests all comparisons of a family.
pub fn test(family: &[Sides]) -> Vec<Chance> {
    let statistics: Vec<f64> = family.iter().map(Sides::statistic).collect();
    let mut order: Vec<usize> = (0..family.len()).collect();
    let scaled = |index: usize| statistics[index].abs() as f32 * scale(index);
    order.sort_by(|&a, &b| scaled(b).total_cmp(&scaled(a)));
    let limit = |index: &usize| scaled(*index) * (1.0 - ROUNDING);
    let limits: Vec<f32> = order.iter().map(limit).collect();
    let most = (STATISTICS_MAX / family.len().max(1)).clamp(DIVISIONS_MIN, DIVISIONS_MAX);
    // By place: by how much the sum of probabilities grows from the place before. A comparison
    // counts up to its own place, from the first whose statistic a division of it reaches.
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
    let mut chances = vec![Chance { statistic: 0.0, p: 1.0, p_adjusted: 1.0 }; family.len()];
    let (mut sum, mut adjusted) = (0.0, 0.0f64);
    for (place, &index) in order.iter().enumerate() {
        sum += growth[place];
        // An easier one is not refused after a harder one was.
        adjusted = adjusted.max(sum).min(1.0);
        let (statistic, p) = (statistics[index], alone[place]);
        chances[index] = Chance { statistic, p, p_adjusted: adjusted };
    }
    chances
}

/// Up to 2 % by the place in the family, which leaves the rate what it is. Of equal statistics, as of
/// runs that agree to the last digit, each would otherwise count against all.
fn scale(index: usize) -> f32 {
    1.0 + 0.02 * (index as f64 * 0.618_034).fract() as f32
}

/// How many runs of each side let any one of so many comparisons be told, however many of the
/// others divide as clearly by chance.
pub fn runs_to_tell_any(comparisons: usize) -> usize {
    let suffice = |runs: &usize| comparisons as f64 * 2.0 <= RATE * divisions(2 * runs, *runs);
    (2..).find(suffice).expect("divisions grow without bound")
}

impl Sides {
    fn statistic(&self) -> f64 {
        let (mut division, is_a) = Division::of(self);
        division.statistic(&is_a)
    }

    /// The statistic of every division, of more than `most` of its own and random ones, without the
    /// sign.
    fn each_statistic(&self, most: usize, mut note: impl FnMut(f32)) {
        let (mut division, mut is_a) = Division::of(self);
        let mut note = |is_a: &[bool]| note(division.statistic(is_a).abs() as f32);
        if divisions(is_a.len(), self.a.len()) <= most as f64 {
            each_division(is_a.len(), self.a.len(), &mut note);
            return;
        }
        let mut random = StdRng::seed_from_u64(SEED);
        note(&is_a);
        for _ in 1..most {
            is_a.shuffle(&mut random);
            note(&is_a);
        }
    }
}

/// Values in ascending order that are divided in many ways.
struct Division {
    values: Vec<f64>,
    /// Room for those of A and those of B.
    sides: [Vec<f64>; 2],
    /// Whether ends are cut off.
    is_trimmed: bool,
}

impl Division {
    /// The values of both sides, and which of them are of A.
    fn of(sides: &Sides) -> (Self, Vec<bool>) {
        let of_a = sides.a.iter().map(|value| (*value, true));
        let mut all: Vec<(f64, bool)> =
            of_a.chain(sides.b.iter().map(|value| (*value, false))).collect();
        all.sort_by(|one, other| one.0.total_cmp(&other.0));
        let is_trimmed = sides.a.len().min(sides.b.len()) >= RUNS_TRIMMED;
        // Less their mean, so that sums of squares stay exact.
        let mean = all.iter().map(|(value, _)| value).sum::<f64>() / all.len() as f64;
        let (values, is_a) = all.into_iter().map(|(value, is_a)| (value - mean, is_a)).unzip();
        (Self { values, sides: [vec![], vec![]], is_trimmed }, is_a)
    }

    /// Welch's or Yuen's t of B less A. [`SPREAD_MIN`] is added to the standard error, so that runs
    /// that agree to the last digit do not make a difference of nothing infinitely clear (Tusher,
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

/// The mean of ascending values without so many at either end, and the square of its standard
/// error: by the variance of all values, those that are cut off counting as the last that is kept.
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

/// Every choice of `wanted` of `total`, the first ones first.
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

/// In how many ways so many can be chosen.
fn divisions(total: usize, wanted: usize) -> f64 {
    (0..wanted).map(|at| (total - at) as f64 / (at + 1) as f64).product()
}

/// The family-wise error rate that verdicts hold.
pub const RATE: f64 = 0.05;
/// More than all divisions of seven runs and seven.
const DIVISIONS_MAX: usize = 5_000;
/// More than all of six and six.
const DIVISIONS_MIN: usize = 1_000;
/// Of a family: some seconds. Large ones have fewer divisions of each.
const STATISTICS_MAX: usize = 10_000_000;
/// From so many runs on either side, a fifth at either end is trimmed.
const RUNS_TRIMMED: usize = 8;
/// A tenth of the ratio that matters, 2 %, as a logarithm.
const SPREAD_MIN: f64 = 0.002;
/// Statistics that differ by less are equal: they are sums in another order.
const ROUNDING: f32 = 1e-5;
/// Fixed, so that a comparison made again says the same.
const SEED: u64 = 0x0063_6f6d_7061_7265;

#[cfg(test)]
mod tests;
