//! Percentiles that are exact, and withheld where the samples do not bear them.

use hdrhistogram::Histogram;

use crate::summary::Distribution;

/// Values of one quantity in nanoseconds, ascending.
#[derive(Clone, Debug, Default)]
pub struct Sorted(Vec<i64>);

impl Sorted {
    /// Sorts `values`.
    pub fn new(mut values: Vec<i64>) -> Self {
        values.sort_unstable();
        Sorted(values)
    }

    /// All values of all of `parts`: distributions are merged, percentiles never.
    pub fn pooled<'a>(parts: impl Iterator<Item = &'a Sorted>) -> Self {
        Sorted::new(parts.flat_map(|part| part.0.iter().copied()).collect())
    }

    /// How many values.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// How many values are at most `limit`.
    pub fn rank(&self, limit: i64) -> usize {
        self.0.partition_point(|value| *value <= limit)
    }

    /// Smallest and largest; `None` if there are no values.
    pub fn range(&self) -> Option<(i64, i64)> {
        Some((*self.0.first()?, *self.0.last()?))
    }

    /// The quantile by nearest rank (the smallest value with at least `quantile` of all values at
    /// or below it), whatever the number of values; `None` if there are none.
    pub fn quantile(&self, quantile: f64) -> Option<i64> {
        let rank = (quantile * self.0.len() as f64).ceil() as usize;
        self.0.get(rank.max(1) - 1).copied()
    }

    /// The quantile, unless fewer than [`BEYOND_MIN`] values lie beyond it.
    pub fn supported(&self, quantile: f64) -> Option<i64> {
        is_supported(self.0.len(), quantile).then(|| self.quantile(quantile)).flatten()
    }

    /// As an HdrHistogram of three significant digits: the largest value of each bucket in use, and
    /// how many values it has. It holds no negative values: they count as 0, and whoever shows it
    /// says how many there are ([`ClockFigures::negative`](crate::summary::ClockFigures)).
    pub fn histogram(&self) -> Vec<(u64, u64)> {
        let mut histogram = Histogram::<u64>::new(3).expect("3 digits are within 0 to 5");
        for equal in self.0.chunk_by(|one, other| one == other) {
            let value = equal[0].max(0) as u64;
            let recorded = histogram.record_n(value, equal.len() as u64);
            recorded.expect("it grows as needed");
        }
        let buckets = histogram.iter_recorded();
        buckets.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect()
    }

    /// In microseconds, as reports show it; `None` if there are no values.
    pub fn distribution(&self) -> Option<Distribution> {
        let (min, max) = self.range()?;
        let mean = self.0.iter().map(|value| *value as f64).sum::<f64>() / self.0.len() as f64;
        let at = |quantile| self.supported(quantile).map(us);
        Some(Distribution {
            min: us(min),
            mean: mean / 1e3,
            p50: at(0.5),
            p90: at(0.9),
            p99: at(0.99),
            p999: at(0.999),
            max: us(max),
        })
    }
}

/// Whether at least [`BEYOND_MIN`] of `count` values lie beyond the quantile.
pub fn is_supported(count: usize, quantile: f64) -> bool {
    count >= (quantile * count as f64).ceil() as usize + BEYOND_MIN
}

/// Nanoseconds to microseconds.
pub fn us(ns: i64) -> f64 {
    ns as f64 / 1e3
}

/// A percentile with fewer values beyond it is not printed.
pub const BEYOND_MIN: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn percentiles_are_withheld_without_ten_samples_beyond() {
        let nineteen = Sorted::new((1..=19).collect()).distribution().unwrap();
        assert_eq!(nineteen.p50, None);
        let twenty = Sorted::new((1..=20).map(|us| us * 1000).collect()).distribution().unwrap();
        assert_eq!(twenty.p50, Some(10.0));
        assert_eq!(twenty.p90, None);
        let many = Sorted::new((1..=1000).map(|us| us * 1000).collect()).distribution().unwrap();
        assert_eq!((many.p99, many.p999), (Some(990.0), None));
        assert_eq!(Sorted::default().distribution(), None);
    }

    proptest! {
        #[test]
        fn a_quantile_has_its_share_at_or_below(
            values in prop::collection::vec(-1000i64..1000, 1..500),
            quantile in 0.0f64..1.0,
        ) {
            let sorted = Sorted::new(values.clone());
            let found = sorted.quantile(quantile).unwrap();
            let needed = quantile * values.len() as f64;
            prop_assert!(sorted.rank(found) as f64 >= needed);
            prop_assert!((sorted.rank(found - 1) as f64) < needed.max(1.0));
        }

        #[test]
        fn pooling_loses_nothing(parts in prop::collection::vec(prop::collection::vec(0i64..99, 0..50), 0..6)) {
            let sorted: Vec<Sorted> = parts.iter().cloned().map(Sorted::new).collect();
            let pooled = Sorted::pooled(sorted.iter());
            let expected = Sorted::new(parts.concat());
            prop_assert_eq!(pooled.0, expected.0);
        }
    }
}
