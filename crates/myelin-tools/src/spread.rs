//! How times or sizes are spread: percentiles, not a mean alone.

use hdrhistogram::Histogram;

/// Numbers, described: exact for a [slice](Spread::of), within 0.1 % for a
/// [histogram](Spread::of_histogram).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Spread {
    /// How many.
    pub count: u64,
    /// The least.
    pub min: u64,
    /// Half are not above it.
    pub p50: u64,
    /// 99 % are not above it.
    pub p99: u64,
    /// The greatest.
    pub max: u64,
    /// The standard deviation.
    pub deviation: f64,
}

impl Spread {
    /// Describes these numbers, and changes their order; `None` if there are none.
    pub fn of(numbers: &mut [u64]) -> Option<Spread> {
        let count = numbers.len();
        let (&min, &max) = (numbers.iter().min()?, numbers.iter().max()?);
        let mean = numbers.iter().map(|it| *it as f64).sum::<f64>() / count as f64;
        let squares = numbers.iter().map(|it| (*it as f64 - mean).powi(2)).sum::<f64>();
        let mut at_least = |percent: usize| {
            let at = (count * percent).div_ceil(100).max(1) - 1;
            *numbers.select_nth_unstable(at).1
        };
        let (p50, p99) = (at_least(50), at_least(99));
        let deviation = (squares / count as f64).sqrt();
        Some(Spread { count: count as u64, min, p50, p99, max, deviation })
    }

    /// Describes the numbers of a histogram; `None` if there are none.
    pub fn of_histogram(numbers: &Histogram<u32>) -> Option<Spread> {
        (!numbers.is_empty()).then(|| Spread {
            count: numbers.len(),
            min: numbers.min(),
            p50: numbers.value_at_quantile(0.5),
            p99: numbers.value_at_quantile(0.99),
            max: numbers.max(),
            deviation: numbers.stdev(),
        })
    }
}

/// An empty histogram of any numbers: it grows with the largest, to 400 KB at most.
pub fn histogram() -> Histogram<u32> {
    let mut histogram = Histogram::new(3).expect("three digits are allowed");
    histogram.auto(true);
    histogram
}

/// Adds a number; one too large counts as the largest.
pub fn record(histogram: &mut Histogram<u32>, number: u64) {
    histogram.record(number.min(NUMBER_MAX)).expect("it grows");
}

/// 13 days in nanoseconds, or a pebibyte.
const NUMBER_MAX: u64 = 1 << 50;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_are_members_and_a_histogram_agrees() {
        assert_eq!(Spread::of(&mut []), None);
        let one = Spread::of(&mut [7]).unwrap();
        assert_eq!((one.min, one.p50, one.p99, one.max, one.deviation), (7, 7, 7, 7, 0.0));
        let mut numbers: Vec<u64> = (1..=200).rev().collect();
        let mut kept = histogram();
        numbers.iter().for_each(|it| record(&mut kept, *it));
        let spread = Spread::of(&mut numbers).unwrap();
        assert_eq!((spread.count, spread.min, spread.max), (200, 1, 200));
        assert_eq!((spread.p50, spread.p99), (100, 198));
        let kept = Spread::of_histogram(&kept).unwrap();
        assert_eq!((kept.count, kept.p50, kept.p99, kept.max), (200, 100, 198, 200));
        assert!((kept.deviation - spread.deviation).abs() < 0.1, "{kept:?} {spread:?}");
    }

    #[test]
    fn any_number_is_recorded() {
        let mut all = histogram();
        [0, 1, u64::MAX].into_iter().for_each(|it| record(&mut all, it));
        assert_eq!(all.len(), 3);
        assert!(all.max() >= NUMBER_MAX);
    }
}
