//! The scorecard: systems scored by criteria with the user's weights. This module only computes;
//! `report::scorecard` takes the figures from the cells.
//!
//! A system's score by a criterion is 10 less one for each doubling of its figure over the best: 10
//! − log₂(figure / best), but at least 0. For every figure less is better. Only ratios of figures
//! count, so units do not matter. The total of a system is the weighted mean of its scores.
//!
//! The score uses the logarithm and not 10 · best / figure for a reason. If a system is added or
//! removed, all other scores by a criterion change by the same amount, even if it was the best. So
//! the order of the others stays the same (independence of irrelevant alternatives). That holds
//! unless a score is cut off at 0, where a figure is 1,024 times the best.
//!
//! [`turns`] show how much a ranking depends on the weights: how far a single weight may move, with
//! the others in proportion, before another system leads.

use std::path::Path;

use serde::Deserialize;
use toml::Spanned;

use crate::input_error::{InputError, Source};

/// A criterion. Its figure is measured, above 0, and less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Proportional memory of all processes including daemons, in bytes.
    Memory,
    /// Ratio of the latency's 99th percentile to its median.
    Stability,
    /// CPU of all processes including daemons, in µs per message.
    Cpu,
    /// The geometric mean of three counts: processes, threads, and lines of configuration plus 1.
    Simplicity,
    /// From the start of the processes until they have found each other, in ms; the start of a
    /// daemon is added.
    StartUp,
}

impl Criterion {
    /// All criteria, in the order of display.
    pub const ALL: [Criterion; 5] = [
        Criterion::Memory,
        Criterion::Stability,
        Criterion::Cpu,
        Criterion::Simplicity,
        Criterion::StartUp,
    ];

    /// Its name in a file of weights.
    pub fn key(self) -> &'static str {
        ["memory", "latency_stability", "cpu", "simplicity", "start_up"][self as usize]
    }

    /// Its name in a report.
    pub fn words(self) -> &'static str {
        ["memory", "latency stability", "CPU", "simplicity", "start-up"][self as usize]
    }
}

/// A weight for each of [`Criterion::ALL`]; none is negative and their sum is 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Weights([f64; Criterion::ALL.len()]);

/// A file of weights: non-negative numbers, of which only the proportions matter.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WeightsFile {
    memory: Option<Spanned<f64>>,
    latency_stability: Option<Spanned<f64>>,
    cpu: Option<Spanned<f64>>,
    simplicity: Option<Spanned<f64>>,
    start_up: Option<Spanned<f64>>,
}

impl Weights {
    /// Reads a TOML file. A criterion that it leaves out has the weight 0.
    pub fn load(path: &Path) -> Result<Self, InputError> {
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path).map_err(|error| {
            InputError::new(format!("--weights {name}: {error}")).remedy(EXAMPLE)
        })?;
        Self::parse(&Source::new(&name, &text))
    }

    /// Like [`Weights::load`], from a text.
    pub fn parse(source: &Source) -> Result<Self, InputError> {
        let file: WeightsFile =
            toml::from_str(source.text()).map_err(|error| source.toml_error(&error))?;
        let WeightsFile { memory, latency_stability, cpu, simplicity, start_up } = file;
        let given = [memory, latency_stability, cpu, simplicity, start_up];
        let mut weights = [0.0; Criterion::ALL.len()];
        for ((weight, given), criterion) in weights.iter_mut().zip(&given).zip(Criterion::ALL) {
            let Some(given) = given else { continue };
            *weight = *given.get_ref();
            if !(weight.is_finite() && *weight >= 0.0) {
                let text = format!("{}: {weight} is not a weight", criterion.key());
                return Err(source.error(given.span(), text).remedy("use 0 or a positive number"));
            }
        }
        let sum: f64 = weights.iter().sum();
        if sum > 0.0 && sum.is_finite() {
            return Ok(Weights(weights.map(|weight| weight / sum)));
        }
        let keys = Criterion::ALL.map(Criterion::key).join(", ");
        let place = given.iter().flatten().next().map_or(0..0, Spanned::span);
        Err(source.error(place, format!("the sum of {keys} is {sum}")).remedy(EXAMPLE))
    }

    /// The weight of a criterion; all weights add up to 1.
    pub fn of(&self, criterion: Criterion) -> f64 {
        self.0[criterion as usize]
    }
}

impl Default for Weights {
    /// The weights of the scorecard published with the figures of CycloneDDS on a Jetson Orin.
    fn default() -> Self {
        Weights([0.30, 0.25, 0.20, 0.15, 0.10])
    }
}

/// A system with its figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Contender {
    /// Name of the system.
    pub name: String,
    /// A figure for each of [`Criterion::ALL`]; above 0, less is better. `None` if unknown.
    pub figures: [Option<f64>; Criterion::ALL.len()],
    /// Its figures in the role of the best one, from which others are scored: at least a modest
    /// value. A system with a larger figure does not get 10 by it, even if no other is better.
    pub as_best: [Option<f64>; Criterion::ALL.len()],
}

/// Scores of systems, in the order of the ranking.
#[derive(Clone, Debug, PartialEq)]
pub struct Card {
    /// The scored criteria: those with a figure of at least one system.
    pub criteria: Vec<Criterion>,
    /// Weights of `criteria`; their sum is 1.
    pub weights: Vec<f64>,
    /// All systems. A missing figure may be the worst: it scores 0.
    pub rows: Vec<Scored>,
    /// Systems without some of the figures, and these.
    pub lacking: Vec<(String, Vec<Criterion>)>,
    /// Criteria without a figure of any system: the others share their weights.
    pub dropped: Vec<Criterion>,
}

/// A scored system.
#[derive(Clone, Debug, PartialEq)]
pub struct Scored {
    /// Name of the system.
    pub name: String,
    /// In the order of [`Card::criteria`]; infinite if it is missing.
    pub figures: Vec<f64>,
    /// In the order of [`Card::criteria`], 0 to 10.
    pub points: Vec<f64>,
    /// The weighted mean of the points.
    pub total: f64,
}

impl Card {
    /// Scores `contenders`; `None` if none can be scored.
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
        let lacks = |contender: &Contender| {
            let lacks = criteria.iter().filter(|it| !has(contender, it));
            (contender.name.clone(), lacks.copied().collect::<Vec<_>>())
        };
        let lacking = contenders.iter().map(lacks).filter(|(_, lacks)| !lacks.is_empty());
        let best = |criterion: &Criterion| {
            let figures = contenders.iter().filter_map(|it| it.as_best[*criterion as usize]);
            figures.fold(f64::INFINITY, f64::min)
        };
        let best: Vec<f64> = criteria.iter().map(best).collect();
        let row = |contender: &Contender| {
            let figure = |it: &Criterion| contender.figures[*it as usize].unwrap_or(f64::INFINITY);
            let figures: Vec<f64> = criteria.iter().map(figure).collect();
            let points: Vec<f64> =
                figures.iter().zip(&best).map(|(figure, best)| points(*figure, *best)).collect();
            let total = dot(&points, &weights);
            Scored { name: contender.name.clone(), figures, points, total }
        };
        let lacking = lacking.collect();
        let mut rows: Vec<Scored> = contenders.iter().map(row).collect();
        rows.sort_by(|a, b| b.total.total_cmp(&a.total));
        (!rows.is_empty()).then_some(Card { criteria, weights, rows, lacking, dropped })
    }
}

/// The score of a figure: 10 for the best, one less for each doubling, at least 0.
pub fn points(figure: f64, best: f64) -> f64 {
    (POINTS_MAX - (figure / best).log2()).clamp(0.0, POINTS_MAX)
}

fn dot(points: &[f64], weights: &[f64]) -> f64 {
    points.iter().zip(weights).map(|(points, weight)| points * weight).sum()
}

/// A weight of one criterion at which another system becomes the first.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Turn {
    /// A fraction of 1; the other weights keep their proportions.
    pub weight: f64,
    /// Index of the row that is first beyond it.
    pub first: usize,
}

/// For each criterion of the card: the nearest turn below its weight, and the one above it.
pub fn turns(card: &Card) -> Vec<[Option<Turn>; 2]> {
    (0..card.criteria.len()).map(|criterion| turns_of(card, criterion)).collect()
}

/// The total of a row is t · points + (1 − t) · rest. Here t is the weight of the criterion, and
/// rest is the mean by the other weights in their proportions. Totals are thus straight lines, and
/// two of them cross once.
fn turns_of(card: &Card, criterion: usize) -> [Option<Turn>; 2] {
    let weight = card.weights[criterion];
    let others: Vec<f64> = (0..card.weights.len())
        .map(|place| match place {
            place if place == criterion => 0.0,
            place if weight < 1.0 => card.weights[place] / (1.0 - weight),
            // Their proportions are unknown.
            _ => 1.0 / (card.weights.len() - 1).max(1) as f64,
        })
        .collect();
    let line = |row: usize| {
        let rest = dot(&card.rows[row].points, &others);
        (rest, card.rows[row].points[criterion] - rest)
    };
    let (start, slope) = line(0);
    let mut turns = [None; 2];
    for row in 1..card.rows.len() {
        let (its_start, its_slope) = line(row);
        // The leader's lead is (start − its_start) + t · gain, which is not negative at `weight`.
        let gain = slope - its_slope;
        let crossing = (its_start - start) / gain;
        if gain.abs() <= EVEN || crossing <= 0.0 || crossing >= 1.0 {
            continue;
        }
        let turn: &mut Option<Turn> = &mut turns[usize::from(gain < 0.0)];
        let distance = |at: f64| (at - weight).abs();
        if turn.is_none_or(|nearest| distance(crossing) < distance(nearest.weight)) {
            *turn = Some(Turn { weight: crossing, first: row });
        }
    }
    turns
}

const EXAMPLE: &str = "for instance: memory = 30, latency_stability = 25, cpu = 20, \
                       simplicity = 15, start_up = 10, each on a line of its own";
const POINTS_MAX: f64 = 10.0;

/// Lines with a smaller difference of their slopes are parallel.
const EVEN: f64 = 1e-9;

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn parse(text: &str) -> Result<Weights, String> {
        Weights::parse(&Source::new("w.toml", text)).map_err(|error| error.to_string())
    }

    #[test]
    fn weights_are_relative_and_missing_ones_are_0() {
        let weights = parse("cpu = 3\nmemory = 1.0\n").unwrap();
        let found = Criterion::ALL.map(|criterion| weights.of(criterion));
        assert_eq!(found, [0.25, 0.0, 0.75, 0.0, 0.0]);
        let all = "memory = 30\nlatency_stability = 25\ncpu = 20\nsimplicity = 15\nstart_up = 10\n";
        let (read, default) = (parse(all).unwrap(), Weights::default());
        for criterion in Criterion::ALL {
            assert!((read.of(criterion) - default.of(criterion)).abs() < 1e-12);
        }
    }

    #[test]
    fn mistakes_name_line_key_and_remedy() {
        for (text, expected) in [
            ("cpu = 1\nmemori = 2\n", "w.toml:2: unknown field `memori`; did you mean `memory`?"),
            (
                "cpu = 1\n\nmemory = -1\n",
                "w.toml:3: memory: -1 is not a weight; use 0 or a positive",
            ),
            ("start_up = nan\n", "w.toml:1: start_up: NaN is not a weight"),
            ("simplicity = inf\n", "w.toml:1: simplicity: inf is not a weight"),
            ("\ncpu = 0\nmemory = 0\n", "the sum of memory, latency_stability, cpu, simplicity"),
            ("", "w.toml:1: the sum of memory"),
            ("cpu = \"much\"\n", "w.toml:1: invalid type"),
            ("cpu = 1e308\nmemory = 1e308\n", "start_up is inf"),
        ] {
            let error = parse(text).unwrap_err();
            assert!(error.contains(expected), "{text:?}: {error}");
        }
    }

    fn contender(name: &str, figures: [f64; 5]) -> Contender {
        let figures = figures.map(Some);
        Contender { name: name.to_owned(), figures, as_best: figures }
    }

    fn order(card: &Card) -> Vec<&str> {
        card.rows.iter().map(|row| row.name.as_str()).collect()
    }

    #[test]
    fn a_missing_figure_scores_0() {
        let mut unsteady = contender("unsteady", [1.0; 5]);
        (unsteady.figures[1], unsteady.as_best[1]) = (None, None);
        let all = [unsteady, contender("steady", [1.5; 5])];
        let card = Card::new(&all, &Weights::default()).unwrap();
        assert_eq!(order(&card), ["steady", "unsteady"]);
        assert_eq!((card.rows[1].points[1], card.rows[1].points[0]), (0.0, 10.0));
        assert_eq!(card.lacking, [("unsteady".to_owned(), vec![Criterion::Stability])]);
    }

    #[test]
    fn no_score_is_below_zero() {
        assert_eq!(
            [1.0, 2.0, 1024.0, 5000.0].map(|figure| points(figure, 1.0)),
            [10.0, 9.0, 0.0, 0.0]
        );
    }

    fn card(figures: &[[f64; 5]], weights: &Weights) -> Card {
        let contenders = figures.iter().enumerate();
        let contenders = contenders.map(|(place, it)| contender(&place.to_string(), *it));
        Card::new(&contenders.collect::<Vec<_>>(), weights).unwrap()
    }

    #[test]
    fn the_turns_of_a_weight_match_a_hand_calculation() {
        // Only memory and CPU: `0` is 2 points better in memory, `1` is 1 point better in CPU.
        let weights = Weights::parse(&Source::new("w", "memory = 1\ncpu = 1\n")).unwrap();
        let card = card(&[[1.0, 1.0, 2.0, 1.0, 1.0], [4.0, 1.0, 1.0, 1.0, 1.0]], &weights);
        assert_eq!(card.rows[0].name, "0");
        let turns = turns(&card);
        let [below, above] = turns[Criterion::Memory as usize];
        // 2 t = 1 (1 − t)
        assert!((below.unwrap().weight - 1.0 / 3.0).abs() < 1e-9, "{below:?}");
        assert_eq!((below.unwrap().first, above), (1, None));
        let [below, above] = turns[Criterion::Cpu as usize];
        assert!((above.unwrap().weight - 2.0 / 3.0).abs() < 1e-9, "{above:?}");
        assert_eq!(below, None);
        assert_eq!(turns[Criterion::Simplicity as usize], [None; 2], "both are equal");
    }

    #[test]
    fn nothing_turns_against_a_system_that_is_best_in_all_criteria() {
        let weights = Weights::default();
        let card = card(&[[1.0; 5], [2.0; 5], [1.1, 9.0, 9.0, 9.0, 9.0]], &weights);
        assert_eq!(turns(&card), [[None; 2]; 5]);
    }

    proptest! {
        /// Independence of irrelevant alternatives: the others keep their order when a system is
        /// added.
        #[test]
        fn another_system_does_not_change_the_order_of_the_others(
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

        /// The first system leads up to a turn, and the other beyond it.
        #[test]
        fn the_leader_changes_at_a_turn(
            figures in prop::collection::vec(prop::array::uniform5(1.0f64..500.0), 2..6),
            criterion in 0usize..5,
        ) {
            let card = card(&figures, &Weights::default());
            let own = card.weights[criterion];
            let first_at = |weight: f64| {
                let weights: Vec<f64> = (0..5)
                    .map(|place| match place == criterion {
                        true => weight,
                        false => card.weights[place] / (1.0 - own) * (1.0 - weight),
                    })
                    .collect();
                let totals = card.rows.iter().map(|row| dot(&row.points, &weights));
                totals.enumerate().max_by(|a, b| a.1.total_cmp(&b.1)).unwrap().0
            };
            let step = 1e-6;
            for (turn, way) in turns(&card)[criterion].into_iter().zip([-1.0, 1.0]) {
                let end = turn.map_or(if way < 0.0 { step } else { 1.0 - step }, |it| it.weight);
                if way * (end - own) > 3.0 * step {
                    prop_assert_eq!(first_at(end - way * step), 0);
                    let beyond = turn.filter(|_| (step..1.0 - step).contains(&end));
                    if let Some(turn) = beyond {
                        prop_assert_eq!(first_at(end + way * step), turn.first);
                    }
                }
            }
        }
    }
}
