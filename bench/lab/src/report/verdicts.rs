//! The one family of comparisons of a report: every pair of cells that a sentence, a ranking or an
//! advice may compare is tested with all others, so that what is said of one heeds their number.

use std::cell::RefCell;
use std::collections::HashMap;

use super::entry::Entry;
use super::format;
use crate::stats::RUNS_MIN;
use crate::stats::permutation::{Chance, runs_to_tell_any};
use crate::stats::verdict::{Pair, Verdict, chances};
use crate::summary::Percentile;

/// What was found of each pair.
#[derive(Default)]
pub(super) struct Verdicts {
    /// By the places of both in the summary: the first as the subject of the second.
    chances: HashMap<(usize, usize, Percentile), Chance>,
    /// The least number of runs behind any of them.
    runs_least: usize,
    /// What was asked before: each takes a bootstrap.
    told: RefCell<HashMap<(usize, usize, Percentile), Option<Verdict>>>,
}

impl Verdicts {
    /// Tests all pairs that differ in system and tuning alone, group by group; bare primitives among
    /// themselves where there is nothing else.
    pub(super) fn new<'e, 'a: 'e>(groups: impl Iterator<Item = &'e [Entry<'a>]>) -> Self {
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
        let found = chances(&family);
        let tested = || found.iter().zip(&family).filter(|(chance, _)| chance.is_some());
        let runs_least = tested().map(|(_, pair)| runs(pair)).min().unwrap_or(0);
        let chances = keys.into_iter().zip(&found);
        let chances = chances.filter_map(|(key, chance)| Some((key, (*chance)?)));
        Self { chances: chances.collect(), runs_least, told: RefCell::default() }
    }

    /// What may be said of a cell beside another; `None` if they may not be compared.
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
        let chance = |a: &Entry, b: &Entry| self.chances.get(&(a.index, b.index, at)).copied();
        let turned = |chance: Chance| Chance { statistic: -chance.statistic, ..chance };
        let chance = chance(subject, reference).or_else(|| chance(reference, subject).map(turned));
        subject.pair(reference, at)?.verdict(chance)
    }

    /// What is promised of all verdicts together.
    pub(super) fn promise(&self) -> String {
        let comparisons = self.chances.len();
        if comparisons == 0 {
            return format!("Too few runs to tell anything apart: it takes --runs {RUNS_MIN}.");
        }
        let asked = runs_to_tell_any(comparisons).max(RUNS_MIN);
        let runs = [self.runs_least, asked];
        format::error_rate(
            "reports in which nothing differs",
            comparisons,
            "a step of the clock",
            runs,
        )
    }
}

/// Whether two cells of a group differ in system and tuning alone.
fn are_beside(a: &Entry, b: &Entry) -> bool {
    let [of_a, of_b] = [a, b].map(|entry| &entry.cell.params);
    of_a.payload_bytes == of_b.payload_bytes
        && of_a.subscribers == of_b.subscribers
        && a.system.topology == b.system.topology
}
