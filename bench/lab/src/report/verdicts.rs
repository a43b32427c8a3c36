//! All comparisons of a report. Every pair of cells that a sentence, a ranking or an advice may
//! compare is tested together with all others of its scenario, so that a statement about one pair
//! takes their number into account, and a scenario beside does not change it. The pairs of a point
//! are all in the family, because the same runs that are compared with the best made it the best.
//! Also the sentences, one for each comparison that a reader may want to
//! quote.

use std::cell::RefCell;
use std::collections::HashMap;

use super::document::{Finding, Part, Section};
use super::format;
use super::view::{Entry, Group, View};
use crate::lists::grouped;
use crate::scenario::Tuning;
use crate::stats::interval::RUNS_MIN;
use crate::stats::permutation::{TestResult, runs_to_tell_any};
use crate::stats::verdict::{Kind, Pair, Verdict, test_results};
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
            return format!("Too few runs for a comparison; use --runs {RUNS_MIN}.");
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

/// Every sentence that the analysis supports: first the few that open a report, then the others as
/// details.
pub(super) fn section(view: &View) -> Section {
    let mut headlines = Part { remark: view.verdicts.promise(), ..Part::default() };
    let mut further = Part { is_detail: true, ..Part::default() };
    // A flood's latency is the depth of a queue, so a lower one means nothing.
    for group in view.groups.iter().filter(|group| group.is_steady()) {
        // The first of several schedules represents its scenario.
        let leads = !group.is_flow() || view.leads(group);
        for (is_headline, finding) in of_group(group) {
            let part = if is_headline && leads { &mut headlines } else { &mut further };
            part.findings.push(finding);
        }
    }
    further.title = format::plural(further.findings.len(), "further comparison");
    let parts = [headlines, further].into_iter().filter(|part| !part.findings.is_empty());
    Section { id: "verdicts", title: "Verdicts", remark: String::new(), parts: parts.collect() }
}

/// Findings, and whether they may open a report.
fn of_group(group: &Group) -> Vec<(bool, Finding)> {
    let ends = group.ends();
    let mut lines = Vec::new();
    for &payload in &group.payloads {
        let at_end = ends.contains(&payload);
        for &tuning in &group.tunings {
            let lone = group.peers().count() == 1;
            lines.extend(group.peers().filter_map(|system| {
                let subject = group.entry(system.name, tuning, payload)?;
                let reference = group.reference(system);
                let reference = reference.and_then(|peer| group.entry(peer.name, tuning, payload));
                let headline = at_end && (reference.is_some() || lone);
                Some((headline, finding(group, subject, reference)?))
            }));
        }
    }
    for &payload in &group.payloads {
        lines.extend(group.peers().flat_map(|system| {
            let tunings = group.tunings.iter().filter(|tuning| **tuning != Tuning::Default);
            tunings.filter_map(move |&tuning| {
                let subject = group.entry(system.name, tuning, payload)?;
                let reference = group.entry(system.name, Tuning::Default, payload)?;
                let headline = payload == group.payloads[0];
                Some((headline, finding(group, subject, Some(reference))?))
            })
        }));
    }
    lines
}

fn finding(group: &Group, subject: &Entry, reference: Option<&Entry>) -> Option<Finding> {
    let median = subject.p50().filter(|_| subject.cell.valid)?;
    let verdict = reference.and_then(|reference| group.verdict(subject, reference));
    let floor = group.over_floor(subject).map(|over| over.text());
    let further = [floor, caution(subject, reference)].into_iter().flatten();
    let further: String = further.map(|part| format!("; {part}")).collect();
    let median = format!("p50 {} µs {}", format::us(median), subject.spread());
    let median = median.trim_end();
    let told = verdict.zip(reference).map(|(verdict, reference)| {
        format!(", {} {}", outcome(verdict), rival(subject, reference))
    });
    let text = format!("{median}{}{further}", told.unwrap_or_default());
    let subject = match group.is_flow() && !group.point.is_empty() {
        true => format!("{}, {}", subject.name(), group.point),
        false => subject.name(),
    };
    Some(Finding { standing: verdict.into(), subject, text, particulars: Vec::new() })
}

/// Names the reference by its difference from the subject.
fn rival(subject: &Entry, reference: &Entry) -> String {
    match subject.system.name == reference.system.name {
        true => reference.cell.tuning.to_string(),
        false => reference.system.name.to_owned(),
    }
}

fn caution(subject: &Entry, reference: Option<&Entry>) -> Option<String> {
    if let Some((reached, asked)) = subject.short_of_rate() {
        return Some(format::reached(reached, asked));
    }
    if subject.is_bimodal() {
        return Some(format!("bimodal: {}", format::placements(subject.cell)));
    }
    let reference = reference?;
    let why = reference.fault()?;
    Some(format!("not compared with {}, which is {why} here", rival(subject, reference)))
}

/// The verdict, up to the name of the reference.
pub(super) fn outcome(verdict: Verdict) -> String {
    let (ratio, direction) = match verdict.ratio.value > 1.0 {
        true => (verdict.ratio, "higher"),
        false => (verdict.ratio.inverse(), "lower"),
    };
    let text = format::ratio(ratio);
    let doubt = if ratio.interval.is_some() { "" } else { ", no interval" };
    match verdict.kind {
        Kind::Better | Kind::Worse => format!("{text} {direction} than"),
        Kind::NoDifference => format!("no difference ({text} {direction}) from"),
        Kind::TooNoisy => {
            format!("{} ({text} {direction}{doubt}) for a comparison with", verdict.words())
        }
    }
}
