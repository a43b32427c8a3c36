//! Advice: which configuration to use, and the files ([`files`]) to use it. It only computes;
//! `report::advice` takes figures and configuration from the cells.

pub mod files;

use crate::summary::Percentile;

/// Limits on the cost of a configuration.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// CPU of all processes including daemons; 100 is one core. `None` is no limit.
    pub cpu_percent: Option<f64>,
    /// Proportional memory of all processes including daemons. `None` is no limit.
    pub memory_bytes: Option<u64>,
}

/// A configuration with usable figures: its cell is valid and kept its rate.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Median latency.
    pub p50: f64,
    /// 99th percentile; `None` if it was withheld, of all runs together or of one of them.
    pub p99: Option<f64>,
    /// See [`Budget`]; `None` if it was not measured, which no budget allows.
    pub cpu_percent: Option<f64>,
    /// Like `cpu_percent`.
    pub memory_bytes: Option<u64>,
    /// Due messages that were not taken.
    pub lost: u64,
}

/// The result of a choice, as indices of the candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The configuration to use.
    pub best: usize,
    /// What distinguishes it from the others.
    pub by: DecidedBy,
    /// Candidates that cannot be distinguished from it, in the given order.
    pub ties: Vec<usize>,
}

/// What distinguishes the best from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DecidedBy {
    /// There was no other candidate.
    Alone,
    /// Its 99th percentile is below all others that are known.
    P99,
    /// Its median, among the candidates whose 99th percentile cannot be distinguished from the
    /// lowest.
    P50,
    /// Nothing: its median is the lowest of several that cannot be distinguished.
    Nothing,
}

/// Why no configuration can be chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChoice {
    /// No usable candidate was measured.
    NothingValid,
    /// All candidates lost messages.
    AllLost,
    /// All candidates without loss exceed the budget.
    OverBudget,
}

/// Chooses among `candidates`. The lowest p99 wins; a withheld one counts as higher than any, as it
/// may be the worst. If all were withheld, p99 decides nothing. If the runs of others cannot be distinguished
/// from it, the lowest p50 among these wins; any that cannot be distinguished from that either are
/// its ties. `is_higher` says whether a percentile of the first index is higher than that of the
/// second, beyond noise.
pub fn choose(
    candidates: &[Candidate],
    budget: &Budget,
    is_higher: impl Fn(Percentile, usize, usize) -> bool,
) -> Result<Choice, NoChoice> {
    let complete = filter(0..candidates.len(), |place| candidates[place].lost == 0);
    let within = filter(complete.iter().copied(), |place| budget.allows(&candidates[place]));
    if within.is_empty() {
        return Err(match (candidates.is_empty(), complete.is_empty()) {
            (true, _) => NoChoice::NothingValid,
            (_, true) => NoChoice::AllLost,
            _ => NoChoice::OverBudget,
        });
    }
    let p99 = |place: usize| candidates[place].p99;
    let p50 = |place: usize| Some(candidates[place].p50);
    let indistinguishable = |places: &[usize], at, of: &dyn Fn(usize) -> Option<f64>| {
        let lowest = lowest(places, of);
        let keeps = |place| place == lowest || !is_higher(at, place, lowest);
        filter(places.iter().copied(), keeps)
    };
    let known = filter(within.iter().copied(), |place| p99(place).is_some());
    let by_p99 = match known.is_empty() {
        true => within.clone(),
        false => indistinguishable(&known, Percentile::P99, &p99),
    };
    let by_p50 = indistinguishable(&by_p99, Percentile::P50, &p50);
    let best = lowest(&by_p50, p50);
    let by = match (within.len(), by_p99.len(), by_p50.len()) {
        (1, ..) => DecidedBy::Alone,
        (_, 1, _) => DecidedBy::P99,
        (.., 1) => DecidedBy::P50,
        _ => DecidedBy::Nothing,
    };
    Ok(Choice { best, by, ties: filter(by_p50, |place| place != best) })
}

impl Budget {
    /// Whether a configuration is within the budget.
    pub fn allows(&self, candidate: &Candidate) -> bool {
        let Candidate { cpu_percent, memory_bytes, .. } = candidate;
        self.cpu_percent.is_none_or(|most| cpu_percent.is_some_and(|it| it <= most))
            && self.memory_bytes.is_none_or(|most| memory_bytes.is_some_and(|it| it <= most))
    }
}

fn lowest(places: &[usize], of: impl Fn(usize) -> Option<f64>) -> usize {
    let value = |place: usize| of(place).unwrap_or(f64::INFINITY);
    let lowest = places.iter().copied().min_by(|a, b| value(*a).total_cmp(&value(*b)));
    lowest.expect("there is a place to choose from")
}

fn filter(places: impl IntoIterator<Item = usize>, keeps: impl Fn(usize) -> bool) -> Vec<usize> {
    places.into_iter().filter(|place| keeps(*place)).collect()
}

#[cfg(test)]
mod tests {
    use super::DecidedBy::{Alone, Nothing, P50, P99};
    use super::*;

    fn candidate(p50: f64, p99: f64) -> Candidate {
        Candidate {
            p50,
            p99: Some(p99),
            cpu_percent: Some(50.0),
            memory_bytes: Some(10 << 20),
            lost: 0,
        }
    }

    /// Here a p99 is higher from a fifth more on, a median from a fiftieth.
    fn choose(all: &[Candidate], budget: &Budget) -> Result<Choice, NoChoice> {
        super::choose(all, budget, |at, place, than| match at {
            Percentile::P50 => all[place].p50 > 1.02 * all[than].p50,
            Percentile::P99 => all[place].p99 > all[than].p99.map(|p99| 1.2 * p99),
        })
    }

    #[test]
    fn p99_decides_then_p50_among_what_lost_nothing_and_is_within_the_budget() {
        let found = |best, by, ties: &[usize]| Ok(Choice { best, by, ties: ties.to_vec() });
        let any = Budget::default();
        let small = Budget { memory_bytes: Some(20 << 20), ..any };
        let withheld = Candidate { p99: None, ..candidate(8.0, 1.0) };
        let lossy = Candidate { lost: 1, ..candidate(1.0, 2.0) };
        let large = Candidate { memory_bytes: Some(90 << 20), ..candidate(3.0, 4.0) };
        let unknown = Candidate { memory_bytes: None, ..candidate(3.0, 4.0) };
        let [a, b, c] = [candidate(12.0, 40.0), candidate(9.0, 42.0), candidate(9.05, 41.0)];
        for (all, budget, expected) in [
            (vec![candidate(10.0, 90.0), a, candidate(9.0, 70.0)], any, found(1, P99, &[])),
            // The p99 of the last cannot be distinguished from the lowest.
            (vec![candidate(5.0, 90.0), a, b], any, found(2, P50, &[])),
            (vec![b, c, candidate(20.0, 43.0)], any, found(0, Nothing, &[1])),
            // A withheld p99 may be the worst, so a lower median does not help.
            (vec![b, withheld, candidate(30.0, 10.0)], any, found(2, P99, &[])),
            (vec![withheld, b], any, found(1, P99, &[])),
            (vec![Candidate { p50: 20.0, ..withheld }, withheld], any, found(1, P50, &[])),
            (vec![lossy, large, candidate(40.0, 60.0)], small, found(2, Alone, &[])),
            (vec![lossy, unknown, candidate(40.0, 60.0)], small, found(2, Alone, &[])),
            (vec![lossy, large], small, Err(NoChoice::OverBudget)),
            (vec![lossy], small, Err(NoChoice::AllLost)),
            (vec![], any, Err(NoChoice::NothingValid)),
        ] {
            assert_eq!(choose(&all, &budget), expected, "{all:?}");
        }
        let choice = super::choose(&[b, c, a], &any, |_, _, _| false);
        assert_eq!(choice, found(0, Nothing, &[1, 2]), "nothing can be told");
    }
}
