//! Advice: which configuration to use, and the files ([`files`]) to use it.
//! Pure: of figures and configuration that `report::advice` has taken from the cells.

pub mod files;

use crate::summary::Percentile;

/// What a configuration may cost.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Budget {
    /// CPU of all processes, daemons included; 100 is one core. `None` is any.
    pub cpu_percent: Option<f64>,
    /// Proportional memory of all processes, daemons included. `None` is any.
    pub memory_bytes: Option<u64>,
}

/// A configuration with figures that may be used: valid, and its rate was kept.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Candidate {
    /// Median latency.
    pub p50: f64,
    /// 99th percentile; `None` where it was withheld.
    pub p99: Option<f64>,
    /// As of [`Budget`].
    pub cpu_percent: f64,
    /// As of [`Budget`].
    pub memory_bytes: u64,
    /// Messages that were to be taken and were not.
    pub lost: u64,
}

/// What was decided, by places in the candidates.
#[derive(Clone, Debug, PartialEq)]
pub struct Choice {
    /// The one to use.
    pub best: usize,
    /// What it was told from the others by.
    pub by: Told,
    /// Those that cannot be told from it, in the order given.
    pub ties: Vec<usize>,
}

/// By what the best was told from the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Told {
    /// No other could be chosen.
    Alone,
    /// Its 99th percentile is below all others.
    P99,
    /// Its median, among those whose 99th percentile cannot be told from the lowest.
    P50,
    /// Nothing: its median is the lowest of those that cannot be told apart.
    Nothing,
}

/// Why there is none to choose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoChoice {
    /// Nothing that may be used was measured.
    NothingValid,
    /// All lost messages.
    AllLost,
    /// What lost nothing costs more than the budget.
    OverBudget,
}

/// Chooses among `candidates`. The lowest p99 decides. Where others cannot be told from it by their runs,
/// the lowest p50 among these decides; and whoever cannot be told from that either is named beside it.
/// `is_higher` says whether a percentile of the first place can be told to
/// be higher than that of the second.
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
    let not_told = |places: &[usize], at, of: &dyn Fn(usize) -> Option<f64>| {
        let lowest = lowest(places, of);
        let keeps = |place| place == lowest || !is_higher(at, place, lowest);
        filter(places.iter().copied(), keeps)
    };
    // Withheld of one, it decides nothing.
    let by_p99 = match within.iter().all(|place| p99(*place).is_some()) {
        true => not_told(&within, Percentile::P99, &p99),
        false => within.clone(),
    };
    let by_p50 = not_told(&by_p99, Percentile::P50, &p50);
    let best = lowest(&by_p50, p50);
    let by = match (within.len(), by_p99.len(), by_p50.len()) {
        (1, ..) => Told::Alone,
        (_, 1, _) => Told::P99,
        (.., 1) => Told::P50,
        _ => Told::Nothing,
    };
    Ok(Choice { best, by, ties: filter(by_p50, |place| place != best) })
}

impl Budget {
    /// Whether a configuration costs no more.
    pub fn allows(&self, candidate: &Candidate) -> bool {
        self.cpu_percent.is_none_or(|most| candidate.cpu_percent <= most)
            && self.memory_bytes.is_none_or(|most| candidate.memory_bytes <= most)
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
    use super::*;

    fn candidate(p50: f64, p99: f64) -> Candidate {
        Candidate { p50, p99: Some(p99), cpu_percent: 50.0, memory_bytes: 10 << 20, lost: 0 }
    }

    /// A p99 is told from a fifth more on, a median from a fiftieth.
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
        let large = Candidate { memory_bytes: 90 << 20, ..candidate(3.0, 4.0) };
        let [a, b, c] = [candidate(12.0, 40.0), candidate(9.0, 42.0), candidate(9.05, 41.0)];
        for (all, budget, expected) in [
            (vec![candidate(10.0, 90.0), a, candidate(9.0, 70.0)], any, found(1, Told::P99, &[])),
            // The p99 of the last cannot be told from the lowest.
            (vec![candidate(5.0, 90.0), a, b], any, found(2, Told::P50, &[])),
            (vec![b, c, candidate(20.0, 43.0)], any, found(0, Told::Nothing, &[1])),
            // Withheld of one, it decides nothing.
            (vec![b, withheld, candidate(30.0, 10.0)], any, found(1, Told::P50, &[])),
            (vec![lossy, large, candidate(40.0, 60.0)], small, found(2, Told::Alone, &[])),
            (vec![lossy, large], small, Err(NoChoice::OverBudget)),
            (vec![lossy], small, Err(NoChoice::AllLost)),
            (vec![], any, Err(NoChoice::NothingValid)),
        ] {
            assert_eq!(choose(&all, &budget), expected, "{all:?}");
        }
        let choice = super::choose(&[b, c, a], &any, |_, _, _| false);
        assert_eq!(choice, found(0, Told::Nothing, &[1, 2]), "nothing can be told");
    }
}
