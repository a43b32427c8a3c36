//! Better, worse, or not decided: the verdict on two sets of runs, the same in reports, advice and
//! comparisons of folders.
//!
//! A difference counts under three conditions. The permutation test, corrected for the number of
//! comparisons, calls it more than chance ([`permutation`]). It is beyond [`RATIO_MATERIAL`]. And
//! it is larger than the resolution of the clock and any other error that all runs of a side share.
//! If it does not count, the verdict is "no difference" only if the bootstrap interval of the ratio
//! excludes one beyond [`RATIO_EQUAL`]; otherwise it stays undecided.

use serde::Serialize;

use super::interval::RUNS_MIN;
use super::median;
use super::of_medians;
use super::permutation::{self, RATE, Sides, TestResult};

/// Two sets of runs, by one figure of each, in the same unit. Lower is better.
#[derive(Clone, Debug, PartialEq)]
pub struct Pair {
    /// The runs to judge.
    pub subject: Vec<f64>,
    /// The runs to compare with.
    pub reference: Vec<f64>,
    /// A smaller difference does not matter, however large its fraction of the whole is.
    pub immaterial: f64,
    /// An error that all runs of a side may share, so that the runs do not show it.
    pub error: f64,
}

/// The four results of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Significantly lower.
    Better,
    /// Significantly higher.
    Worse,
    /// Equal, as far as it matters.
    NoDifference,
    /// The runs vary too much, or are too few, to decide.
    TooNoisy,
}

/// The result of a comparison.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// Which of the four results it is.
    pub kind: Kind,
    /// Ratio of subject to reference, with its interval.
    pub ratio: Ratio,
    /// Whether it is undecided for lack of runs: too few to test, or too few for so many
    /// comparisons although the interval alone excludes 1.
    pub lacks_runs: bool,
}

/// Ratio of the medians of the runs: below 1 the subject is better.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ratio {
    /// Subject divided by reference.
    pub value: f64,
    /// 95 % bootstrap interval over runs, widened by [`Pair::error`]; absent with too few runs, or
    /// if it would reach below 0.
    pub interval: Option<[f64; 2]>,
}

impl Kind {
    /// The result in words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Better => "better",
            Kind::Worse => "worse",
            Kind::NoDifference => "no difference",
            Kind::TooNoisy => "too noisy",
        }
    }

    /// Whether a difference was shown; only then is it coloured.
    pub fn is_significant(self) -> bool {
        matches!(self, Kind::Better | Kind::Worse)
    }
}

impl Ratio {
    /// Reference divided by subject.
    pub fn inverse(self) -> Self {
        let interval = self.interval.map(|[low, high]| [1.0 / high, 1.0 / low]);
        Self { value: 1.0 / self.value, interval }
    }
}

impl Verdict {
    /// The verdict in words.
    pub fn words(&self) -> &'static str {
        match self.kind {
            Kind::TooNoisy if self.lacks_runs => "too few runs",
            kind => kind.words(),
        }
    }
}

impl Pair {
    /// Puts a finite figure, far above all others, in the place of infinite ones: of runs that lost
    /// too many messages for a percentile. All of them become equal, and the test stays exact,
    /// because the figure depends only on the runs of both sides together.
    pub fn bounded(mut self) -> Self {
        let sides = || self.subject.iter().chain(&self.reference).copied();
        let greatest = sides().filter(|value| value.is_finite()).fold(0.0, f64::max);
        let above = if greatest > 0.0 { ABOVE * greatest } else { 1.0 };
        let runs = self.subject.iter_mut().chain(&mut self.reference);
        runs.filter(|value| value.is_infinite()).for_each(|value| *value = above);
        self
    }

    /// The verdict from the result of [`test_results`] for the pair; `None` if a ratio has no meaning.
    pub fn verdict(&self, chance: Option<TestResult>) -> Option<Verdict> {
        self.judged(chance, || of_medians(&self.reference, &self.subject, |a, b| b / a))
    }

    /// Like [`Pair::verdict`], with the given 95 % bootstrap interval of the ratio, from the runs
    /// alone.
    pub fn judged(
        &self,
        chance: Option<TestResult>,
        interval: impl FnOnce() -> Option<[f64; 2]>,
    ) -> Option<Verdict> {
        let mut values = self.subject.iter().chain(&self.reference);
        if values.any(|value| *value <= 0.0) {
            return None;
        }
        let reference = median(self.reference.clone())?;
        let value = median(self.subject.clone())? / reference;
        let error = self.error / reference;
        let ends = interval().map(|[low, high]| [low - error, high + error]);
        let kind = match (chance, ends) {
            (Some(chance), Some(ends)) => self.kind(chance, reference, value, ends),
            _ => Kind::TooNoisy,
        };
        let lacks_runs = ends.is_none_or(|[low, high]| low > 1.0 || high < 1.0);
        let interval = ends.filter(|[low, _]| *low > 0.0);
        Some(Verdict { kind, ratio: Ratio { value, interval }, lacks_runs })
    }

    fn kind(&self, chance: TestResult, reference: f64, ratio: f64, [low, high]: [f64; 2]) -> Kind {
        let is_beyond = |ratio: f64, least: f64| (ratio - 1.0).abs() * reference > least;
        let is_same_way = (chance.statistic > 0.0) == (ratio > 1.0);
        let is_apart = chance.p_adjusted <= RATE
            && is_same_way
            && is_beyond(ratio, self.immaterial.max(self.error));
        let matters = is_beyond(low, self.immaterial) || is_beyond(high, self.immaterial);
        match matters {
            false => Kind::NoDifference,
            true if low <= 0.0 => Kind::TooNoisy,
            true if is_apart && ratio < 1.0 / RATIO_MATERIAL => Kind::Better,
            true if is_apart && ratio > RATIO_MATERIAL => Kind::Worse,
            true if low >= 1.0 / RATIO_EQUAL && high <= RATIO_EQUAL => Kind::NoDifference,
            true => Kind::TooNoisy,
        }
    }

    fn is_testable(&self) -> bool {
        let sides = [&self.subject, &self.reference];
        sides.iter().all(|runs| runs.len() >= RUNS_MIN && runs.iter().all(|value| *value > 0.0))
    }
}

fn sides(pair: &Pair) -> Sides {
    let logarithms = |runs: &[f64]| runs.iter().map(|value| value.ln()).collect();
    Sides { a: logarithms(&pair.reference), b: logarithms(&pair.subject) }
}

/// Tests all pairs of a family together; `None` for pairs that cannot be tested.
pub fn test_results(family: &[Pair]) -> Vec<Option<TestResult>> {
    let testable = family.iter().filter(|pair| pair.is_testable());
    let mut found = permutation::test(&testable.map(sides).collect::<Vec<_>>()).into_iter();
    family.iter().map(|pair| pair.is_testable().then(|| found.next()).flatten()).collect()
}

/// Like [`test_results`], for values of sessions: the first values of all pairs are of one session, and so
/// on. A pair that lacks a session cannot be tested.
pub fn test_results_of_sessions(family: &[Pair]) -> Vec<Option<TestResult>> {
    let most = |of: fn(&Pair) -> &Vec<f64>| family.iter().map(|pair| of(pair).len()).max();
    let most =
        [most(|pair| &pair.reference), most(|pair| &pair.subject)].map(Option::unwrap_or_default);
    let is_complete =
        |pair: &&Pair| pair.is_testable() && [pair.reference.len(), pair.subject.len()] == most;
    let testable: Vec<Sides> = family.iter().filter(is_complete).map(sides).collect();
    let mut found = permutation::test_together(&testable).into_iter();
    family.iter().map(|pair| is_complete(&pair).then(|| found.next()).flatten()).collect()
}

/// How far a run that lost too many messages is above the slowest of the others.
const ABOVE: f64 = 1e3;

/// A smaller ratio is not called a difference, however certain it is.
pub const RATIO_MATERIAL: f64 = 1.02;

/// "No difference" requires that the interval of the ratio lies within this value and its inverse.
pub const RATIO_EQUAL: f64 = 1.10;

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(subject: &[f64], reference: &[f64]) -> Pair {
        let (subject, reference) = (subject.to_vec(), reference.to_vec());
        Pair { subject, reference, immaterial: 0.0, error: 0.0 }
    }

    /// Five runs around a median.
    fn around(median: f64, spread: f64) -> [f64; 5] {
        [-1.0, -0.4, 0.0, 0.5, 1.0].map(|place| median + spread * place)
    }

    fn alone(pair: &Pair) -> Verdict {
        pair.verdict(test_results(std::slice::from_ref(pair))[0]).unwrap()
    }

    fn kind(subject: [f64; 5], reference: [f64; 5]) -> Kind {
        alone(&pair(&subject, &reference)).kind
    }

    #[test]
    fn separate_and_material_is_a_difference() {
        let (fast, slow) = (around(91.0, 4.0), around(127.0, 6.0));
        assert_eq!(kind(fast, slow), Kind::Better);
        assert_eq!(kind(slow, fast), Kind::Worse);
        let ratio = alone(&pair(&fast, &slow)).ratio;
        assert!((ratio.value - 91.0 / 127.0).abs() < 1e-12);
        let [low, high] = ratio.interval.unwrap();
        assert!(87.0 / 133.0 <= low && low < ratio.value && high <= 95.0 / 121.0, "{ratio:?}");
        assert_eq!(ratio.inverse().value, 1.0 / ratio.value);
    }

    #[test]
    fn runs_that_lost_too_much_are_worse_than_any_that_did_not() {
        let told = |a: &[f64], b: &[f64]| alone(&pair(a, b).bounded()).kind;
        let (none, some) = ([f64::INFINITY; 5], around(900.0, 90.0));
        assert_eq!((told(&none, &some), told(&some, &none)), (Kind::Worse, Kind::Better));
        assert_eq!(told(&none, &none), Kind::NoDifference);
        let [a, b, c, ..] = some;
        let mixed = [a, b, c, f64::INFINITY, f64::INFINITY];
        assert_eq!(told(&mixed, &some), Kind::TooNoisy);
    }

    #[test]
    fn separate_but_tiny_is_no_difference() {
        assert_eq!(kind(around(100.0, 0.1), around(101.0, 0.1)), Kind::NoDifference);
        assert_eq!(kind(around(101.0, 0.1), around(100.0, 0.1)), Kind::NoDifference);
        let step = Pair { immaterial: 0.03, ..pair(&around(0.06, 1e-4), &around(0.04, 1e-4)) };
        assert_eq!(alone(&step).kind, Kind::NoDifference, "a step of the clock");
    }

    #[test]
    fn overlapping_runs_are_no_difference_or_too_noisy() {
        assert_eq!(kind(around(100.0, 2.0), around(101.0, 2.0)), Kind::NoDifference);
        let noisy = alone(&pair(&around(90.0, 30.0), &around(110.0, 30.0)));
        assert_eq!((noisy.kind, noisy.words()), (Kind::TooNoisy, "too noisy"));
    }

    #[test]
    fn a_difference_within_the_common_error_is_not_significant() {
        let told = |error: f64| {
            alone(&Pair { error, ..pair(&around(200.0, 2.0), &around(300.0, 2.0)) }).kind
        };
        assert_eq!([24.0, 120.0].map(told), [Kind::Better, Kind::TooNoisy]);
    }

    #[test]
    fn too_few_runs_give_no_verdict_at_any_distance() {
        let verdict = alone(&pair(&[50.0; 4], &[100.0; 5]));
        assert_eq!((verdict.kind, verdict.words()), (Kind::TooNoisy, "too few runs"));
        assert_eq!(verdict.ratio, Ratio { value: 0.5, interval: None });
        for nonsense in [[0.0; 5].as_slice(), &[]] {
            assert_eq!(pair(nonsense, &[1.0; 5]).verdict(None), None);
            assert_eq!(pair(&[1.0; 5], nonsense).verdict(None), None);
        }
    }
}
