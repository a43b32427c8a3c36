//! Scores, totals, and the order that follows.

use super::{Criterion, Weights};

/// A system with its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Of the system.
    pub name: String,
    /// For each of [`Criterion::ALL`]; above 0, less is better. `None` is not known.
    pub figures: [Option<f64>; Criterion::ALL.len()],
    /// Its figures where it would be the best that others are scored by: no more than is modest.
    /// Whoever has a figure that is not, has no 10 by it, even if nobody has a better one.
    pub as_best: [Option<f64>; Criterion::ALL.len()],
}

/// Scores of systems, the first in the ranking first.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// What is scored: criteria with a figure of at least one system.
    pub criteria: Vec<Criterion>,
    /// Of `criteria`; their sum is 1.
    pub weights: Vec<f64>,
    /// Systems with all figures of `criteria`.
    pub rows: Vec<Scored>,
    /// Systems that have some of the figures, and what they lack: not scored.
    pub unscored: Vec<(String, Vec<Criterion>)>,
    /// Criteria that no system has a figure of: their weights are shared out among the others.
    pub dropped: Vec<Criterion>,
}

/// A scored system.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Of the system.
    pub name: String,
    /// By [`Card::criteria`].
    pub figures: Vec<f64>,
    /// By [`Card::criteria`], 0 to 10.
    pub points: Vec<f64>,
    /// The mean of the points by weight.
    pub total: f64,
}

impl Card {
    /// Scores `contenders`; `None` if none can be.
    pub fn new(contenders: &[Contender], weights: &Weights) -> Option<Self> {
        let has = |contender: &Contender, criterion: &Criterion| {
            contender.figures[*criterion as usize].is_some()
        };
        let (criteria, dropped): (Vec<Criterion>, Vec<_>) = Criterion::ALL
            .into_iter()
            .partition(|criterion| contenders.iter().any(|one| has(one, criterion)));
        let sum: f64 = criteria.iter().map(|criterion| weights.of(*criterion)).sum();
        if sum <= 0.0 {
            return None;
        }
        let weights: Vec<f64> = criteria.iter().map(|it| weights.of(*it) / sum).collect();
        let mut unscored = Vec::new();
        let mut known: Vec<(&Contender, Vec<f64>)> = Vec::new();
        for contender in contenders {
            let figures: Option<Vec<f64>> =
                criteria.iter().map(|it| contender.figures[*it as usize]).collect();
            match figures {
                Some(figures) => known.push((contender, figures)),
                None => {
                    let lacks = criteria.iter().filter(|it| !has(contender, it)).copied();
                    unscored.push((contender.name.clone(), lacks.collect()));
                }
            }
        }
        let best = |criterion: &Criterion| {
            let figures = known.iter().filter_map(|(it, _)| it.as_best[*criterion as usize]);
            figures.fold(f64::INFINITY, f64::min)
        };
        let best: Vec<f64> = criteria.iter().map(best).collect();
        let row = |(contender, figures): (&Contender, Vec<f64>)| {
            let points: Vec<f64> =
                figures.iter().zip(&best).map(|(figure, best)| points(*figure, *best)).collect();
            let total = dot(&points, &weights);
            Scored { name: contender.name.clone(), figures, points, total }
        };
        let mut rows: Vec<Scored> = known.into_iter().map(row).collect();
        rows.sort_by(|a, b| b.total.total_cmp(&a.total));
        (!rows.is_empty()).then_some(Card { criteria, weights, rows, unscored, dropped })
    }
}

/// The score of a figure: 10 for the best, one less for each doubling, no less than 0.
pub fn points(figure: f64, best: f64) -> f64 {
    (POINTS_MAX - (figure / best).log2()).clamp(0.0, POINTS_MAX)
}

pub(super) fn dot(points: &[f64], weights: &[f64]) -> f64 {
    points.iter().zip(weights).map(|(points, weight)| points * weight).sum()
}

const POINTS_MAX: f64 = 10.0;

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn contender(name: &str, figures: [f64; 5]) -> Contender {
        let figures = figures.map(Some);
        Contender { name: name.to_owned(), figures, as_best: figures }
    }

    fn order(card: &Card) -> Vec<&str> {
        card.rows.iter().map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn each_doubling_costs_a_point_and_totals_are_weighted_means() {
        let a = contender("a", [1e6, 2.0, 5.0, 3.0, 10.0]);
        let b = contender("b", [4e6, 1.0, 5.0, 3.0, 80.0]);
        let card = Card::new(&[b, a], &Weights::default()).unwrap();
        assert_eq!(order(&card), ["a", "b"]);
        assert_eq!(card.rows[0].points, [10.0, 9.0, 10.0, 10.0, 10.0]);
        assert_eq!(card.rows[1].points, [8.0, 10.0, 10.0, 10.0, 7.0]);
        assert!((card.rows[0].total - (10.0 - 0.25)).abs() < 1e-12);
        assert!((card.rows[1].total - (10.0 - 2.0 * 0.30 - 3.0 * 0.10)).abs() < 1e-12);
        assert_eq!(points(5000.0, 1.0), 0.0, "cut off");
    }

    proptest! {
        /// Independence of irrelevant alternatives: whoever comes, the others keep their order.
        #[test]
        fn a_newcomer_reorders_nobody(
            all in prop::collection::vec(prop::array::uniform5(1.0f64..30.0), 3..9),
            factor in 0.1f64..30.0,
        ) {
            let mut all: Vec<Contender> = all
                .into_iter()
                .enumerate()
                .map(|(place, figures)| contender(&format!("s{place}"), figures))
                .collect();
            let without = Card::new(&all, &Weights::default()).unwrap();
            let mut newcomer = all[0].clone();
            newcomer.name = "new".to_owned();
            newcomer.figures = newcomer.figures.map(|figure| figure.map(|it| it * factor));
            newcomer.as_best = newcomer.figures;
            all.push(newcomer);
            let with = Card::new(&all, &Weights::default()).unwrap();
            let kept: Vec<&str> = order(&with).into_iter().filter(|name| *name != "new").collect();
            prop_assert_eq!(kept, order(&without));
        }
    }
}
