//! All comparisons of a report. Every pair of cells that a sentence, a ranking or an advice may
//! compare is tested together with all others of its scenario, so that a statement about one pair
//! takes their number into account, and a scenario beside does not change it. The pairs of a point
//! are all in the family, not only those with the reference and the best: the runs that are compared
//! with the best made it the best. A test in `stats/permutation` counts the false alarms of both.

use std::cell::RefCell;
use std::collections::HashMap;

use super::entry::Entry;
use super::format;
use crate::lists::grouped;
use crate::stats::interval::RUNS_MIN;
use crate::stats::permutation::{TestResult, runs_to_tell_any};
use crate::stats::verdict::{Pair, Verdict, test_results};
use crate::summary::Percentile;

/// The result for each pair.
#[derive(Default)]
pub(super) struct Verdicts {
    /// By the indices of both cells in the summary: subject, then reference.
    test_results: HashMap<(usize, usize, Percentile), TestResult>,
    /// The number of comparisons of the scenario with the most.
    comparisons: usize,
    /// The least number of runs behind any of them.
    runs_least: usize,
    /// Cache of earlier answers: each needs a bootstrap.
    told: RefCell<HashMap<(usize, usize, Percentile), Option<Verdict>>>,
}

impl Verdicts {
    /// Tests all pairs that differ only in system and tuning, group by group, and all of a scenario
    /// together; primitives are compared with each other only if there is nothing else.
    pub(super) fn new<'e, 'a: 'e>(groups: impl Iterator<Item = &'e [Entry<'a>]>) -> Self {
        let scenario = |entries: &&'e [Entry<'a>]| Some(entries.first()?.cell.scenario.as_str());
        let mut all = Self::default();
        for (_, groups) in grouped(groups.map(|entries| (scenario(&entries), entries))) {
            all.test(&groups);
        }
        all
    }

    /// Tests the groups of a scenario.
    fn test(&mut self, groups: &[&[Entry]]) {
        let (mut keys, mut family) = (Vec::new(), Vec::new());
        for entries in groups {
            let has_peers = entries.iter().any(|entry| !entry.system.floor);
            let ranked: Vec<&Entry> =
                entries.iter().filter(|entry| !(has_peers && entry.system.floor)).collect();
            for (place, subject) in ranked.iter().enumerate() {
                for reference in ranked[place + 1..].iter().filter(|it| are_beside(it, subject)) {
                    for at in [Percentile::P50, Percentile::P99] {
                        family.extend(subject.pair(reference, at));
                        keys.resize(family.len(), (subject.index, reference.index, at));
                    }
                }
            }
        }
        let runs = |pair: &Pair| pair.subject.len().min(pair.reference.len());
        let found = test_results(&family);
        let tested = || found.iter().zip(&family).filter(|(chance, _)| chance.is_some());
        let known = (!self.test_results.is_empty()).then_some(self.runs_least);
        let runs_least = tested().map(|(_, pair)| runs(pair)).chain(known).min();
        self.runs_least = runs_least.unwrap_or(0);
        self.comparisons = self.comparisons.max(tested().count());
        let test_results = keys.into_iter().zip(&found);
        self.test_results.extend(test_results.filter_map(|(key, chance)| Some((key, (*chance)?))));
    }

    /// The verdict on a cell against another; `None` if they must not be compared.
    pub(super) fn of(&self, subject: &Entry, reference: &Entry, at: Percentile) -> Option<Verdict> {
        let asked = (subject.index, reference.index, at);
        let known = self.told.borrow().get(&asked).copied();
        known.unwrap_or_else(|| {
            let told = self.judge(subject, reference, at);
            self.told.borrow_mut().insert(asked, told);
            told
        })
    }

    fn judge(&self, subject: &Entry, reference: &Entry, at: Percentile) -> Option<Verdict> {
        let chance = |a: &Entry, b: &Entry| self.test_results.get(&(a.index, b.index, at)).copied();
        let turned = |chance: TestResult| TestResult { statistic: -chance.statistic, ..chance };
        let chance = chance(subject, reference).or_else(|| chance(reference, subject).map(turned));
        subject.pair(reference, at)?.verdict(chance)
    }

    /// What is guaranteed for all verdicts on a scenario together.
    pub(super) fn promise(&self) -> String {
        let comparisons = self.comparisons;
        if comparisons == 0 {
            return format!("Too few runs for a comparison: it takes {RUNS_MIN} of each cell.");
        }
        let asked = runs_to_tell_any(comparisons).max(RUNS_MIN);
        let runs = [self.runs_least, asked];
        format::error_rate("scenarios", comparisons, "a step of the clock", runs)
    }
}

/// Whether two cells of a group differ only in system and tuning.
fn are_beside(a: &Entry, b: &Entry) -> bool {
    let [of_a, of_b] = [a, b].map(|entry| &entry.cell.params);
    of_a.payload_bytes == of_b.payload_bytes
        && of_a.subscribers == of_b.subscribers
        && a.system.topology == b.system.topology
}
