//! How far a ranking depends on the weights.
//!
//! Two answers: how far a single weight may move, the others in proportion, before another system
//! is first; and how often each is first if nothing is known of the weights. The latter is the rank
//! acceptability index of the first rank in SMAA-2 (R. Lahdelma, P. Salminen, "SMAA-2: Stochastic
//! Multicriteria Acceptability Analysis for Group Decision Making", Operations Research 49(3), 2001,
//! 444–454): weights are drawn evenly from all that are not negative and add up to 1, which is the
//! Dirichlet distribution with parameters of 1.

use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::{Card, dot};
use crate::stats::SEED;

/// Where the weight of a criterion leaves the first system first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Swing {
    /// The least weight, and who is first below it.
    pub low: End,
    /// The greatest weight, and who is first above it.
    pub high: End,
}

/// One end of a [`Swing`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct End {
    /// A part of 1.
    pub weight: f64,
    /// The place of the row that is first beyond; `None` where there is no beyond: at 0 and 1.
    pub beyond: Option<usize>,
}

/// Of each criterion of the card.
pub fn swings(card: &Card) -> Vec<Swing> {
    (0..card.criteria.len()).map(|criterion| swing(card, criterion)).collect()
}

/// The total of a row is t · points + (1 − t) · rest, where t is the weight of the criterion and
/// rest the mean by the other weights in their proportions: straight lines, which cross once.
fn swing(card: &Card, criterion: usize) -> Swing {
    let weight = card.weights[criterion];
    let others: Vec<f64> = (0..card.weights.len())
        .map(|place| match place {
            place if place == criterion => 0.0,
            place if weight < 1.0 => card.weights[place] / (1.0 - weight),
            // Nothing is known of their proportions.
            _ => 1.0 / (card.weights.len() - 1).max(1) as f64,
        })
        .collect();
    let line = |row: usize| {
        let rest = dot(&card.rows[row].points, &others);
        (rest, card.rows[row].points[criterion] - rest)
    };
    let (start, slope) = line(0);
    let mut swing =
        Swing { low: End { weight: 0.0, beyond: None }, high: End { weight: 1.0, beyond: None } };
    for row in 1..card.rows.len() {
        let (its_start, its_slope) = line(row);
        // The leader's lead is (start − its_start) + t · (slope − its_slope), not negative at
        // `weight`.
        let gain = slope - its_slope;
        let crossing = (its_start - start) / gain;
        let end = End { weight: crossing.clamp(0.0, 1.0), beyond: Some(row) };
        if gain < -EVEN && crossing < swing.high.weight {
            swing.high = End { weight: end.weight.max(weight), ..end };
        } else if gain > EVEN && crossing > swing.low.weight {
            swing.low = End { weight: end.weight.min(weight), ..end };
        }
    }
    swing
}

/// The share of all weights by which each row is first; who are equal share it.
pub fn first_shares(card: &Card) -> Vec<f64> {
    let mut shares = vec![0.0; card.rows.len()];
    let mut random = StdRng::seed_from_u64(SEED);
    for _ in 0..DRAWS {
        let weights = dirichlet(card.criteria.len(), &mut random);
        let totals: Vec<f64> = card.rows.iter().map(|row| dot(&row.points, &weights)).collect();
        let most = totals.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let first = || totals.iter().enumerate().filter(|(_, total)| most - **total <= EVEN);
        let share = 1.0 / (first().count() * DRAWS) as f64;
        first().for_each(|(place, _)| shares[place] += share);
    }
    shares
}

/// Evenly from all weights: exponential numbers over their sum.
fn dirichlet(number: usize, random: &mut StdRng) -> Vec<f64> {
    let drawn: Vec<f64> = (0..number).map(|_| -(1.0 - random.random::<f64>()).ln()).collect();
    let sum: f64 = drawn.iter().sum();
    drawn.iter().map(|one| one / sum).collect()
}

/// A share is off by no more than 1 per cent, 19 times of 20.
const DRAWS: usize = 10_000;
/// Totals that differ by less are equal.
const EVEN: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use super::super::{Contender, Criterion, Weights};
    use super::*;
    use crate::input_error::Source;
    use proptest::prelude::*;

    fn card(figures: &[[f64; 5]], weights: &Weights) -> Card {
        let contender = |(place, figures): (usize, &[f64; 5])| Contender {
            name: place.to_string(),
            figures: figures.map(Some),
            as_best: figures.map(Some),
        };
        let contenders: Vec<_> = figures.iter().enumerate().map(contender).collect();
        Card::new(&contenders, weights).unwrap()
    }

    #[test]
    fn a_weight_swings_as_far_as_can_be_reckoned_by_hand() {
        // Memory and CPU alone: `0` is 2 points better in memory, `1` is 1 point better in CPU.
        let weights = Weights::parse(&Source::new("w", "memory = 1\ncpu = 1\n")).unwrap();
        let card = card(&[[1.0, 1.0, 2.0, 1.0, 1.0], [4.0, 1.0, 1.0, 1.0, 1.0]], &weights);
        assert_eq!(card.rows[0].name, "0");
        let memory = swings(&card)[Criterion::Memory as usize];
        // 2 t = 1 (1 − t)
        assert!((memory.low.weight - 1.0 / 3.0).abs() < 1e-9, "{memory:?}");
        assert_eq!(memory.low.beyond, Some(1));
        assert_eq!(memory.high, End { weight: 1.0, beyond: None });
        let cpu = swings(&card)[Criterion::Cpu as usize];
        assert!((cpu.high.weight - 2.0 / 3.0).abs() < 1e-9, "{cpu:?}");
        assert_eq!(cpu.low, End { weight: 0.0, beyond: None });
        let simplicity = swings(&card)[Criterion::Simplicity as usize];
        assert_eq!((simplicity.low.weight, simplicity.high.weight), (0.0, 1.0), "both are equal");
    }

    #[test]
    fn whoever_is_best_in_all_is_first_by_all_weights() {
        let weights = Weights::default();
        let card = card(&[[1.0; 5], [2.0; 5], [1.1, 9.0, 9.0, 9.0, 9.0]], &weights);
        assert!((first_shares(&card)[0] - 1.0).abs() < 1e-9);
        for swing in swings(&card) {
            assert_eq!((swing.low.beyond, swing.high.beyond), (None, None));
        }
    }

    #[test]
    fn shares_are_those_of_the_simplex() {
        // Each is best by one of five criteria, and alike otherwise.
        let mut figures = [[2.0; 5]; 5];
        (0..5).for_each(|place| figures[place][place] = 1.0);
        for share in first_shares(&card(&figures, &Weights::default())) {
            assert!((share - 0.2).abs() < 0.015, "{share}");
        }
        // Equals share.
        let shares = first_shares(&card(&[[1.0; 5], [1.0; 5]], &Weights::default()));
        assert!(shares.iter().all(|share| (share - 0.5).abs() < 1e-9), "{shares:?}");
    }

    proptest! {
        /// The first by the weights just inside a swing is the first; just outside it is not.
        #[test]
        fn a_swing_ends_where_the_first_changes(
            figures in prop::collection::vec(prop::array::uniform5(1.0f64..500.0), 2..6),
            criterion in 0usize..5,
        ) {
            let card = card(&figures, &Weights::default());
            let Swing { low, high } = swings(&card)[criterion];
            prop_assert!(low.weight <= card.weights[criterion] + 1e-9);
            prop_assert!(high.weight >= card.weights[criterion] - 1e-9);
            let first_at = |weight: f64| {
                let others = 1.0 - card.weights[criterion];
                let weights: Vec<f64> = (0..5)
                    .map(|place| match place == criterion {
                        true => weight,
                        false => card.weights[place] / others * (1.0 - weight),
                    })
                    .collect();
                let totals = card.rows.iter().map(|row| dot(&row.points, &weights));
                totals.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
            };
            let step = 1e-6;
            for (end, way) in [(low, -1.0), (high, 1.0)] {
                let Some(beyond) = end.beyond else { continue };
                if (step..1.0 - step).contains(&end.weight) && high.weight - low.weight > 3.0 * step {
                    prop_assert_eq!(first_at(end.weight - way * step), 0);
                    prop_assert_eq!(first_at(end.weight + way * step), beyond);
                }
            }
        }
    }
}
