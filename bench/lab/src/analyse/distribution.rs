//! Exact percentiles, withheld where there are too few samples to support them. A lost message is a
//! value of its own, [`NEVER`], which is above all others.

use hdrhistogram::Histogram;

use crate::stats::interval::RunCount;
use crate::stats::rank;
use crate::summary::Distribution;

/// Values of one quantity in nanoseconds, ascending.
#[derive(Clone, Debug, Default)]
pub struct Sorted {
    values: Vec<i64>,
    /// The second largest of the runs' maxima; `None` for a single run.
    second_largest: Option<i64>,
}

impl Sorted {
    pub fn new(mut values: Vec<i64>) -> Self {
        values.sort_unstable();
        Sorted { values, second_largest: None }
    }

    /// All values of all `runs`. Distributions are merged; percentiles never are.
    pub fn pooled<'a>(runs: impl Iterator<Item = &'a Sorted>) -> Self {
        let Unsorted { mut values, second_largest } = Unsorted::of(runs.map(|run| &run.values));
        // This sort recognises the ascending runs and merges them.
        values.sort();
        Sorted { values, second_largest }
    }

    /// The number of values.
    pub fn len(&self) -> usize {
        self.values.len()
    }

    /// The values of the messages that arrived.
    pub fn arrived(&self) -> &[i64] {
        &self.values[..self.values.partition_point(|value| *value < NEVER)]
    }

    /// The quantile by nearest rank: the smallest value with at least `quantile` of all values at
    /// or below it. `None` only if there are no values.
    pub fn quantile(&self, quantile: f64) -> Option<i64> {
        self.values.get(rank(self.values.len(), quantile) - 1).copied()
    }

    /// The quantile, if enough values support it, and at least two of several runs reach it.
    pub fn supported(&self, quantile: f64) -> Option<i64> {
        let is_shown = |it: &i64| is_shown(*it, self.values.len(), self.second_largest, quantile);
        self.quantile(quantile).filter(is_shown)
    }

    /// The confidence interval of the quantile over `runs`, whose values these are, in
    /// microseconds. It is the interval of the median of the runs' own quantiles, at the level of
    /// [`RunCount::level_percent`]. It is widened to include the quantile of all runs together, as one
    /// run may have most of a tail. `None` if the quantile is withheld, if there are too few runs,
    /// if a run has no values beyond its own quantile, or if an end is infinite.
    pub fn interval(&self, count: RunCount, runs: &[&Sorted], quantile: f64) -> Option<[f64; 2]> {
        let pooled = self.supported(quantile).map(us)?;
        let own = |run: &&Sorted| {
            let values = run.values.len();
            let is_within = rank(values, quantile) < values;
            run.quantile(quantile).filter(|_| is_within).map(us)
        };
        let own: Option<Vec<f64>> = runs.iter().map(own).collect();
        let [low, high] = count.interval(own?)?;
        Some([low.min(pooled), high.max(pooled)]).filter(|[_, high]| high.is_finite())
    }

    /// An HdrHistogram of three significant digits: the largest value of each bucket in use, and
    /// its number of values. It cannot hold negative values: they count as 0, and reports say how
    /// many there are ([`ClockFigures::negative`](crate::summary::ClockFigures)).
    pub fn histogram(&self) -> Vec<(u64, u64)> {
        let mut histogram = Histogram::<u64>::new(3).expect("3 digits are within 0 to 5");
        for equal in self.arrived().chunk_by(|one, other| one == other) {
            let value = equal[0].max(0) as u64;
            let recorded = histogram.record_n(value, equal.len() as u64);
            recorded.expect("the histogram grows as needed");
        }
        let buckets = histogram.iter_recorded();
        buckets.map(|bucket| (bucket.value_iterated_to(), bucket.count_at_value())).collect()
    }

    /// The distribution in microseconds, for reports; `None` if nothing arrived.
    pub fn distribution(&self) -> Option<Distribution> {
        distribution(&self.values, |quantile| self.supported(quantile))
    }
}

/// Values of one quantity in nanoseconds, in any order: for a few percentiles, which takes a fraction
/// of the time of sorting.
#[derive(Clone, Debug, Default)]
pub struct Unsorted {
    values: Vec<i64>,
    second_largest: Option<i64>,
}

impl Unsorted {
    /// All values of all `runs`.
    pub fn of<T: AsRef<[i64]>>(runs: impl Iterator<Item = T>) -> Self {
        let (mut values, mut largest) = (Vec::new(), Vec::new());
        for run in runs {
            values.extend_from_slice(run.as_ref());
            largest.extend(run.as_ref().iter().copied().max());
        }
        largest.sort_unstable();
        let second_largest = largest.len().checked_sub(2).map(|place| largest[place]);
        Unsorted { values, second_largest }
    }

    /// Like [`Sorted::supported`], at each of the quantiles, which ascend.
    pub fn supported<const N: usize>(&mut self, quantiles: [f64; N]) -> [Option<i64>; N] {
        let mut found = [None; N];
        // What is selected parts the values: the higher quantiles are behind it, and few.
        let mut begin = 0;
        for (found, quantile) in found.iter_mut().zip(quantiles) {
            let at = rank(self.values.len(), quantile) - 1;
            if (begin..self.values.len()).contains(&at) {
                self.values[begin..].select_nth_unstable(at - begin);
                begin = at + 1;
            }
            *found = self.values.get(at).copied();
        }
        let is_shown = |(found, quantile): (Option<i64>, f64)| {
            found.filter(|it| is_shown(*it, self.values.len(), self.second_largest, quantile))
        };
        let mut pairs = found.into_iter().zip(quantiles).map(is_shown);
        std::array::from_fn(|_| pairs.next().flatten())
    }

    /// Like [`Sorted::distribution`].
    pub fn distribution(mut self) -> Option<Distribution> {
        let values = self.supported(QUANTILES);
        let at = |quantile: f64| values[QUANTILES.iter().position(|it| *it == quantile)?];
        distribution(&self.values, at)
    }
}

/// Adds the `lost` messages of `received` + `lost` to latencies. They may be those of a part of the
/// received messages; then they get as large a part of the lost ones, rounded up.
pub fn add_lost(latencies: &mut Vec<i64>, lost: u64, received: u64) {
    let part = u128::from(lost) * latencies.len() as u128;
    let missing = part.div_ceil(u128::from(received).max(1)) as usize;
    latencies.extend(std::iter::repeat_n(NEVER, missing));
}

fn distribution(values: &[i64], at: impl Fn(f64) -> Option<i64>) -> Option<Distribution> {
    let (mut count, mut sum) = (0u64, 0i128);
    let (mut least, mut largest) = (NEVER, i64::MIN);
    for &value in values.iter().filter(|value| **value < NEVER) {
        count += 1;
        sum += i128::from(value);
        least = least.min(value);
        largest = largest.max(value);
    }
    let [p50, p90, p99, p999] = QUANTILES.map(|quantile| at(quantile).map(us));
    (count > 0).then(|| Distribution {
        min: us(least),
        mean: sum as f64 / count as f64 / 1e3,
        p50,
        p90,
        p99,
        p999,
        max: us(largest),
    })
}

/// Whether a quantile of `count` values is shown: if enough values support it ([`is_supported`]).
/// Beyond the median, at least two runs must reach it, because one stall can delay many messages.
fn is_shown(value: i64, count: usize, second_largest: Option<i64>, quantile: f64) -> bool {
    let is_shared = second_largest.is_none_or(|largest| value <= largest);
    is_supported(count, quantile) && (quantile <= 0.5 || is_shared)
}

/// Whether at least [`BEYOND_MIN`] of `count` values lie beyond the quantile; for the median and
/// below, whether there are at least that many values.
pub fn is_supported(count: usize, quantile: f64) -> bool {
    match quantile <= 0.5 {
        true => count >= BEYOND_MIN,
        false => count >= rank(count, quantile) + BEYOND_MIN,
    }
}

/// In microseconds; infinite for [`NEVER`].
pub fn us(ns: i64) -> f64 {
    if ns == NEVER { f64::INFINITY } else { ns as f64 / 1e3 }
}

/// Of a distribution.
const QUANTILES: [f64; 4] = [0.5, 0.9, 0.99, 0.999];

/// The latency of a message that was lost.
pub const NEVER: i64 = i64::MAX;

/// A percentile with fewer values beyond it is not shown.
pub const BEYOND_MIN: usize = 10;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use rand::rngs::StdRng;
    use rand::{RngExt, SeedableRng};

    #[test]
    fn percentiles_are_withheld_without_ten_samples_beyond() {
        assert_eq!(Sorted::new((1..=9).collect()).distribution().unwrap().p50, None);
        let ten = Sorted::new((1..=10).map(|us| us * 1000).collect()).distribution().unwrap();
        assert_eq!((ten.p50, ten.p90), (Some(5.0), None), "a median of ten messages is one");
        let twenty = Sorted::new((1..=20).map(|us| us * 1000).collect()).distribution().unwrap();
        assert_eq!(twenty.p50, Some(10.0));
        assert_eq!(twenty.p90, None);
        let many = Sorted::new((1..=1000).map(|us| us * 1000).collect()).distribution().unwrap();
        assert_eq!((many.p99, many.p999), (Some(990.0), None));
        assert_eq!(Sorted::default().distribution(), None);
    }

    #[test]
    fn a_stall_of_one_run_does_not_set_a_pooled_percentile() {
        // Twenty messages of one run wait out one stall.
        let stalled =
            Sorted::new((0..500).map(|at| if at < 480 { at } else { 90_000 + at }).collect());
        let even = || Sorted::new((0..500).collect());
        let pooled = |runs: &[Sorted]| Sorted::pooled(runs.iter()).distribution().unwrap();
        let alone = pooled(&[stalled.clone(), even(), even()]);
        assert_eq!((alone.p90, alone.p99), (Some(0.449), None));
        assert!(pooled(&[stalled.clone(), even(), stalled.clone()]).p99.is_some(), "two have it");
        assert!(
            pooled(std::slice::from_ref(&stalled)).p90.is_some(),
            "of a single run ten messages suffice"
        );
        let slow = Sorted::new(vec![90_000; 500]);
        assert_eq!(pooled(&[even(), slow]).p50, Some(0.499), "half of all are no stall");
        // With a coarse clock, runs end with the same value.
        let coarse = || Sorted::new(vec![15; 1000]);
        assert_eq!(pooled(&[coarse(), coarse()]).p99, Some(0.015));
    }

    fn with_lost(received: impl Iterator<Item = i64>, lost: u64, of: u64) -> Vec<i64> {
        let mut latencies = received.collect();
        add_lost(&mut latencies, lost, of);
        latencies
    }

    #[test]
    fn a_lost_message_is_infinite_in_every_percentile() {
        let lost = |lost: u64| Sorted::new(with_lost((1..=1000).map(|at| at * 1000), lost, 1000));
        let none = lost(0).distribution().unwrap();
        assert_eq!((none.p50, none.p99), (Some(500.0), Some(990.0)));
        let some = lost(50).distribution().unwrap();
        assert_eq!((some.p50, some.p90), (Some(525.0), Some(945.0)), "each percentile rises");
        assert_eq!(some.p99, Some(f64::INFINITY), "more than one of a hundred never came");
        assert_eq!((some.mean, some.max), (500.5, 1000.0), "of the messages that arrived");
        assert_eq!(lost(1100).distribution().unwrap().p50, Some(f64::INFINITY));
        assert_eq!(lost(50).arrived().len(), 1000);
        assert_eq!(lost(50).histogram().iter().map(|it| it.1).sum::<u64>(), 1000);

        // A tenth of the messages has stamps: of 10 lost ones, one is theirs.
        assert_eq!(with_lost(0..100, 10, 1000).len(), 101);
        assert_eq!(with_lost(1..=1, 1, 1000).len(), 2, "rounded up");
        let runs: Vec<Sorted> = (0..5).map(|_| lost(50)).collect();
        let of = |quantile| {
            lost(50).interval(RunCount::Fixed, &runs.iter().collect::<Vec<_>>(), quantile)
        };
        assert_eq!((of(0.5), of(0.99)), (Some([525.0, 525.0]), None));
        assert_eq!(Sorted::pooled(runs.iter()).supported(0.99), Some(NEVER));
    }

    /// A run of skewed latencies around 20 µs; runs differ by a few per cent.
    fn run(random: &mut StdRng) -> Sorted {
        let scale_ns =
            20_000.0 * (0..12).map(|_| random.random_range(-0.05..0.05)).sum::<f64>().exp();
        let one = || (scale_ns * (1.0 - (1.0 - random.random::<f64>()).ln())) as i64;
        Sorted::new(std::iter::repeat_with(one).take(200).collect())
    }

    #[test]
    fn the_interval_of_five_runs_covers_as_often_as_it_says() {
        let random = &mut StdRng::seed_from_u64(7);
        for quantile in [0.5, 0.99] {
            let own = |_| us(run(random).quantile(quantile).unwrap());
            let truth = crate::stats::median((0..4001).map(own).collect()).unwrap();
            let covered = (0..1000).filter(|_| {
                let runs: Vec<Sorted> = (0..5).map(|_| run(random)).collect();
                let runs: Vec<&Sorted> = runs.iter().collect();
                let pooled = Sorted::pooled(runs.iter().copied());
                let [low, high] = pooled.interval(RunCount::Fixed, &runs, quantile).unwrap();
                (low..=high).contains(&truth)
            });
            // 937 are expected; three standard deviations are 23.
            let covered = covered.count();
            assert!((914..=961).contains(&covered), "{covered} of 1000 at {quantile}");
        }
    }

    #[test]
    fn an_interval_contains_its_figure() {
        let even = || Sorted::new((0..1000).collect());
        let mut runs: Vec<Sorted> = (0..8).map(|_| even()).collect();
        // Nearly all of the tail comes from one run, and one message from another.
        runs[7].values[999] = 1_000_000;
        runs.push(Sorted::new((0..1000).map(|at| at * if at < 700 { 1 } else { 100 }).collect()));
        let pooled = Sorted::pooled(runs.iter());
        let of = |runs: &[Sorted], quantile| {
            pooled.interval(RunCount::Fixed, &runs.iter().collect::<Vec<_>>(), quantile)
        };
        let p99 = us(pooled.quantile(0.99).unwrap());
        assert_eq!(of(&runs, 0.99), Some([0.989, p99]));
        assert!(p99 > 70.0, "{p99}");
        assert_eq!(of(&runs[..4], 0.5), None, "four runs");
        assert_eq!(of(&runs, 0.9999), None, "nothing beyond it");
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
            let at_most = |limit: i64| values.iter().filter(|value| **value <= limit).count() as f64;
            prop_assert!(at_most(found) >= needed);
            prop_assert!(at_most(found - 1) < needed.max(1.0));
        }

        #[test]
        fn pooling_keeps_every_sample(
            parts in prop::collection::vec(prop::collection::vec(0i64..99, 0..50), 0..6),
        ) {
            let sorted: Vec<Sorted> = parts.iter().cloned().map(Sorted::new).collect();
            let pooled = Sorted::pooled(sorted.iter());
            let expected = Sorted::new(parts.concat());
            prop_assert_eq!(pooled.values, expected.values);
        }

        #[test]
        fn selected_percentiles_are_those_of_the_sorted_values(
            parts in prop::collection::vec(prop::collection::vec(0i64..999, 0..400), 0..6),
            lost in 0u64..40,
        ) {
            let mut parts = parts;
            if let Some(first) = parts.first_mut() {
                let received = first.len() as u64;
                add_lost(first, lost, received);
            }
            let sorted: Vec<Sorted> = parts.iter().cloned().map(Sorted::new).collect();
            let pooled = Sorted::pooled(sorted.iter());
            let mut unsorted = Unsorted::of(parts.iter());
            prop_assert_eq!(unsorted.clone().distribution(), pooled.distribution());
            let quantiles = [0.1, 0.5, 0.5, 0.97, 0.99];
            prop_assert_eq!(unsorted.supported(quantiles), quantiles.map(|it| pooled.supported(it)));
        }
    }
}
