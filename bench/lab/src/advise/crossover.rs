//! From what size on shared memory pays against the network stack of the same middleware.
//!
//! It pays from the size after which it was faster at every size measured. Between the last size at
//! which it was not and the next, the difference of the medians is taken to be a straight line over
//! the size, as it is where a byte costs each system a constant time; the answer is where that line
//! crosses zero. (Over the logarithm of the size such lines are bent, and the answer is too small
//! by a factor of 1.7 between sizes 16 times apart.) The interval is a bootstrap over runs: at each
//! size, runs of either system are drawn with replacement and the crossing is found anew.

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::stats::bootstrap::{SEED, middle, resample};
use crate::stats::{self, RUNS_MIN};

/// Both systems at one size.
#[derive(Clone, Debug, PartialEq)]
pub struct Point {
    /// Of the payload.
    pub payload_bytes: u64,
    /// The medians of the network's runs, in one unit; not empty.
    pub network: Vec<f64>,
    /// Those of shared memory.
    pub shared: Vec<f64>,
}

/// Where shared memory begins to pay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum From {
    /// At every size measured.
    Everywhere,
    /// From so many bytes of payload.
    Bytes(f64),
    /// Not at the largest size measured.
    Nowhere,
}

/// With what certainty.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crossover {
    /// By the medians of the runs' medians.
    pub from: From,
    /// 95 % of the bootstrap; absent with fewer than five runs of any.
    pub interval: Option<[From; 2]>,
}

/// Of `points` in ascending order of size; `None` with fewer than two.
pub fn crossover(points: &[Point]) -> Option<Crossover> {
    if points.len() < 2 {
        return None;
    }
    let sizes: Vec<f64> = points.iter().map(|point| point.payload_bytes as f64).collect();
    let all: Vec<f64> =
        points.iter().map(|it| median(it.shared.clone()) - median(it.network.clone())).collect();
    let enough = |runs: &[f64]| runs.len() >= RUNS_MIN;
    let interval = points.iter().all(|it| enough(&it.network) && enough(&it.shared)).then(|| {
        let mut random = StdRng::seed_from_u64(SEED);
        middle(|| {
            let mut drawn = |runs: &[f64]| median(resample(runs, &mut random));
            let differences = points.iter().map(|it| drawn(&it.shared) - drawn(&it.network));
            crossing(&sizes, &differences.collect::<Vec<_>>())
        })
    });
    Some(Crossover {
        from: from(crossing(&sizes, &all)),
        interval: interval.map(|ends| ends.map(from)),
    })
}

/// The size after which all of `differences` are below zero; −∞ if all are, ∞ if the last is not.
fn crossing(sizes: &[f64], differences: &[f64]) -> f64 {
    let Some(last) = differences.iter().rposition(|difference| *difference >= 0.0) else {
        return f64::NEG_INFINITY;
    };
    let Some(next) = differences.get(last + 1) else {
        return f64::INFINITY;
    };
    let part = differences[last] / (differences[last] - next);
    sizes[last] + (sizes[last + 1] - sizes[last]) * part
}

fn from(bytes: f64) -> From {
    match bytes {
        f64::NEG_INFINITY => From::Everywhere,
        f64::INFINITY => From::Nowhere,
        _ => From::Bytes(bytes),
    }
}

fn median(runs: Vec<f64>) -> f64 {
    stats::median(runs).expect("a point has runs of either system")
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::RngExt;

    const SIZES: [u64; 6] = [0, 64, 1024, 16 << 10, 64 << 10, 1 << 20];

    /// Runs that wander by `wander` around `us`.
    fn runs(us: f64, wander: f64, random: &mut StdRng) -> Vec<f64> {
        (0..8).map(|_| us * (1.0 + wander * (2.0 * random.random::<f64>() - 1.0))).collect()
    }

    /// Shared memory costs 30 µs more and nothing for a byte, the network so much for a byte.
    fn points(us_per_byte: f64, wander: f64, seed: u64) -> Vec<Point> {
        let random = &mut StdRng::seed_from_u64(seed);
        let point = |payload_bytes: &u64| Point {
            payload_bytes: *payload_bytes,
            network: runs(100.0 + us_per_byte * *payload_bytes as f64, wander, random),
            shared: runs(130.0, wander, random),
        };
        SIZES.iter().map(point).collect()
    }

    #[test]
    fn it_is_found_between_two_sizes_and_the_interval_has_it() {
        // The lines cross at 30 µs over 0.003 µs a byte: 10 000 bytes.
        let found = crossover(&points(0.003, 0.0, 1)).unwrap();
        let From::Bytes(bytes) = found.from else { panic!("{found:?}") };
        assert!((bytes - 10_000.0).abs() < 1.0, "{bytes}");
        assert_eq!(found.interval, Some([found.from; 2]), "runs that are equal leave no doubt");
        let has = |seed: u64| {
            let [From::Bytes(low), From::Bytes(high)] =
                crossover(&points(0.003, 0.1, seed)).unwrap().interval.unwrap()
            else {
                return false;
            };
            low < high && (low..=high).contains(&10_000.0)
        };
        let covered = (0..100).filter(|seed| has(*seed)).count();
        assert!((80..=100).contains(&covered), "{covered} of 100");
    }

    #[test]
    fn everywhere_and_nowhere_are_said() {
        let of = |us_per_byte: f64, shift: f64| {
            let mut points = points(us_per_byte, 0.02, 3);
            points.iter_mut().flat_map(|point| &mut point.shared).for_each(|us| *us += shift);
            crossover(&points).unwrap()
        };
        let always = of(0.01, -80.0);
        assert_eq!((always.from, always.interval), (From::Everywhere, Some([From::Everywhere; 2])));
        let never = of(0.0, 0.0);
        assert_eq!((never.from, never.interval), (From::Nowhere, Some([From::Nowhere; 2])));
    }

    #[test]
    fn a_size_that_is_better_by_itself_is_not_the_beginning() {
        let point = |payload_bytes, network: f64, shared: f64| Point {
            payload_bytes,
            network: vec![network],
            shared: vec![shared],
        };
        let found = crossover(&[point(0, 9.0, 5.0), point(64, 5.0, 9.0), point(128, 9.0, 5.0)]);
        let found = found.unwrap();
        let From::Bytes(bytes) = found.from else { panic!("{found:?}") };
        assert_eq!(bytes, 96.0);
        assert_eq!(found.interval, None, "one run has no interval");
        assert_eq!(crossover(&[point(0, 1.0, 1.0)]), None);
    }
}
