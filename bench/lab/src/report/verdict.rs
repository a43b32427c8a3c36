//! Whether two medians differ. Pure arithmetic on medians and their intervals over runs.
//!
//! A difference counts when the intervals do not overlap *and* the ratio exceeds
//! [`RATIO_MATERIAL`]. Where it does not count, "no difference" is said only if the intervals leave
//! no room for one beyond [`RATIO_EQUAL`]; otherwise the measurement was too noisy to tell. The
//! interval of a ratio is made of the quotients of the interval ends: it is wider than one of the
//! ratio itself would be, and excludes 1 exactly when the intervals do not overlap.

use serde::Serialize;

/// A median and its interval over runs, in one unit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Estimate {
    /// Pooled over runs.
    pub value: f64,
    /// Low and high end; absent with fewer than five runs.
    pub interval: Option<[f64; 2]>,
}

/// The four things a comparison can end in. Lower is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    /// Significantly lower.
    Better,
    /// Significantly higher.
    Worse,
    /// The same, as far as anyone need care.
    NoDifference,
    /// The runs spread too much, or are too few, to say.
    TooNoisy,
}

/// What a comparison ended in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Verdict {
    /// The word for it.
    pub kind: Kind,
    /// Reference over subject: above 1 the subject is lower, hence better.
    pub ratio: f64,
    /// Bounds of the ratio; absent if either estimate has no interval.
    pub interval: Option<[f64; 2]>,
}

impl Kind {
    /// In words.
    pub fn words(self) -> &'static str {
        match self {
            Kind::Better => "better",
            Kind::Worse => "worse",
            Kind::NoDifference => "no difference",
            Kind::TooNoisy => "too noisy",
        }
    }

    /// Whether a difference was shown, which alone may be coloured.
    pub fn is_significant(self) -> bool {
        matches!(self, Kind::Better | Kind::Worse)
    }
}

/// Compares a subject with a reference; `None` if a ratio makes no sense.
pub fn compare(subject: Estimate, reference: Estimate) -> Option<Verdict> {
    if !(subject.value > 0.0 && reference.value > 0.0) {
        return None;
    }
    let ratio = reference.value / subject.value;
    let interval = ratio_interval(subject, reference);
    let kind = interval.map_or(Kind::TooNoisy, |bounds| judge(ratio, bounds));
    Some(Verdict { kind, ratio, interval })
}

fn judge(ratio: f64, [low, high]: [f64; 2]) -> Kind {
    name(low > 1.0 || high < 1.0, ratio, [low, high])
}

/// The word for a ratio with these bounds, of reference over subject, that was found to be `apart`
/// from 1, or was not.
pub fn name(apart: bool, ratio: f64, [low, high]: [f64; 2]) -> Kind {
    if apart && ratio > RATIO_MATERIAL {
        Kind::Better
    } else if apart && ratio < 1.0 / RATIO_MATERIAL {
        Kind::Worse
    } else if low >= 1.0 / RATIO_EQUAL && high <= RATIO_EQUAL {
        Kind::NoDifference
    } else {
        Kind::TooNoisy
    }
}

fn ratio_interval(subject: Estimate, reference: Estimate) -> Option<[f64; 2]> {
    let ([low, high], [reference_low, reference_high]) = (subject.interval?, reference.interval?);
    (low > 0.0 && reference_low > 0.0).then(|| [reference_low / high, reference_high / low])
}

/// Differences below this ratio are not called differences, however certain.
pub const RATIO_MATERIAL: f64 = 1.02;

/// "No difference" is claimed only if the interval of the ratio lies within this and its inverse.
pub const RATIO_EQUAL: f64 = 1.10;

#[cfg(test)]
mod tests {
    use super::*;

    fn estimate(value: f64, low: f64, high: f64) -> Estimate {
        Estimate { value, interval: Some([low, high]) }
    }

    fn kind(subject: Estimate, reference: Estimate) -> Kind {
        compare(subject, reference).unwrap().kind
    }

    #[test]
    fn apart_and_material_is_a_difference() {
        let (fast, slow) = (estimate(91.0, 88.0, 95.0), estimate(127.0, 121.0, 133.0));
        assert_eq!(kind(fast, slow), Kind::Better);
        assert_eq!(kind(slow, fast), Kind::Worse);
        let verdict = compare(fast, slow).unwrap();
        assert!((verdict.ratio - 127.0 / 91.0).abs() < 1e-12);
        assert_eq!(verdict.interval, Some([121.0 / 95.0, 133.0 / 88.0]));
    }

    #[test]
    fn apart_but_tiny_is_no_difference() {
        let (a, b) = (estimate(100.0, 99.9, 100.1), estimate(101.0, 100.9, 101.1));
        assert_eq!(kind(a, b), Kind::NoDifference);
        assert_eq!(kind(b, a), Kind::NoDifference);
    }

    #[test]
    fn overlapping_and_narrow_is_no_difference() {
        assert_eq!(
            kind(estimate(100.0, 98.0, 102.0), estimate(101.0, 99.0, 103.0)),
            Kind::NoDifference
        );
    }

    #[test]
    fn overlapping_and_wide_is_too_noisy() {
        assert_eq!(kind(estimate(80.0, 60.0, 120.0), estimate(110.0, 90.0, 150.0)), Kind::TooNoisy);
    }

    #[test]
    fn touching_intervals_overlap() {
        assert_eq!(kind(estimate(80.0, 70.0, 90.0), estimate(100.0, 90.0, 110.0)), Kind::TooNoisy);
    }

    #[test]
    fn without_intervals_nothing_is_claimed() {
        let lone = Estimate { value: 50.0, interval: None };
        let verdict = compare(lone, estimate(100.0, 99.0, 101.0)).unwrap();
        assert_eq!((verdict.kind, verdict.interval), (Kind::TooNoisy, None));
        assert_eq!(verdict.ratio, 2.0);
    }

    #[test]
    fn nonsense_has_no_verdict() {
        let zero = Estimate { value: 0.0, interval: None };
        assert_eq!(compare(zero, estimate(1.0, 1.0, 1.0)), None);
        assert_eq!(compare(estimate(1.0, 1.0, 1.0), zero), None);
    }
}
