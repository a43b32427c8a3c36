//! Published rows beside our cells: one piece of code for every report.

use super::super::format;
use super::super::scorecard;
use super::super::view::{Entry, Group, Traits, View, distinct};
use super::data::{
    Experiment, MadeOf, PublishedReport, PublishedRow, PublishedTable, PublishedValue,
};
use super::figures::{ours, published};
use super::shape::Shape;
use super::{Beside, Gap, RowBeside, TableBeside, dash, resources, struck, sweeps};
use crate::scenario::Tuning;

/// A report, with those of its tables that were measured.
pub(super) fn beside(report: &'static PublishedReport, view: &View) -> Beside {
    let doubts = report.doubts.iter().chain([&report.notes]).cloned().collect();
    let title = report.title.clone();
    let mut beside = Beside { title, tables: Vec::new(), doubts, gaps: Vec::new() };
    for experiment in &report.experiments {
        let groups = experiment.groups(view);
        let scenario = &experiment.scenarios[0];
        let command = format!("myelin bench run {scenario}");
        if groups.is_empty() {
            beside.gaps.push(Gap { what: experiment.what.clone(), command });
            continue;
        }
        let join = Join { view, experiment, groups };
        beside.tables.extend(experiment.tables.iter().map(|table| join.table(table)));
        beside.gaps.extend(join.configurations_missing());
        let sizes = join.sizes().1;
        if !sizes.is_empty() {
            let sizes: Vec<_> = sizes.into_iter().map(format::bytes).collect();
            beside.gaps.push(Gap { what: format!("round trips of {}", sizes.join(", ")), command });
        }
    }
    beside
}

/// An experiment, and ours that repeat it, at least one.
struct Join<'v, 'a> {
    view: &'v View<'a>,
    experiment: &'v Experiment,
    groups: Vec<&'v Group<'a>>,
}

impl<'v, 'a> Join<'v, 'a> {
    fn table(&self, table: &'static PublishedTable) -> TableBeside {
        let group = self.groups[0];
        let shape = Shape { published: &self.experiment.tables[0], group };
        let sizes = self.sizes().0;
        let (mut rows, mut tables) = (vec![], vec![]);
        match table.made_of {
            None => rows.extend(table.rows().flat_map(|row| self.rows(row))),
            Some(MadeOf::Scores) => rows = self.scores(table),
            Some(MadeOf::Gains) => rows = shape.gains(&sizes),
            Some(MadeOf::Growth) => rows = shape.growth(),
            Some(MadeOf::Tiers) => rows = shape.tiers(&sizes),
            Some(MadeOf::Resources) => rows = resources::rows(group),
            Some(MadeOf::Sweep) => tables = sweeps::tables(&self.groups, &table.labels),
        }
        let rate = format::rate(group.params().rate_hz);
        let caption = table.caption.replace("{scenario}", group.scenario).replace("{rate}", &rate);
        TableBeside { caption, published: table, rows, tables }
    }

    /// One for each cell that a row stands beside; of sizes that were not measured only where it
    /// says so.
    fn rows(&self, row: PublishedRow) -> Vec<RowBeside> {
        if row.payload().is_some_and(|size| self.is_left_out(row.table, size)) {
            return vec![];
        }
        let mut here = match row.text("metric") {
            Some(_) => vec![],
            None => self.entries(row, row.systems().as_deref()),
        };
        here.truncate(if row.table.first_of.is_some() { 1 } else { here.len() });
        match here.is_empty() {
            true => vec![self.row(row, None)],
            false => here.into_iter().map(|entry| self.row(row, Some(entry))).collect(),
        }
    }

    fn row(&self, row: PublishedRow, here: Option<&Entry>) -> RowBeside {
        let copy = row.text("copied_by");
        let mut labels = row.labels();
        if row.table.says_here() {
            let of = copy.map(|copy| format!("{copy}, ")).unwrap_or_default();
            let hosts = if row.table.across_hosts == Some(true) { ": two hosts" } else { "" };
            let not_measured = || format!("not measured{hosts}");
            labels.push(here.map_or_else(not_measured, |it| of + &it.configuration()));
        }
        let pairs = row.figures().map(|(column, value)| {
            let (metric, here) = match row.text("metric") {
                Some(metric) => (metric, self.entries(row, Some(&[column])).first().copied()),
                None => (column, here),
            };
            let ours = here.and_then(|it| Some(struck(it, ours(metric, it, copy)?)));
            (published(metric, value), ours.unwrap_or_else(dash))
        });
        RowBeside { labels, pairs: pairs.collect(), alone: vec![] }
    }

    /// Published scores beside those of the first tuning's card.
    fn scores(&self, table: &PublishedTable) -> Vec<RowBeside> {
        let group = self.groups[0];
        let card = scorecard::card(self.view, group.scenario, group.tunings[0]);
        let row = |row: PublishedRow| {
            let pair = |(system, value): (&str, &PublishedValue)| {
                let criterion = row.text("criterion").unwrap_or_default();
                let score = card.as_ref().and_then(|it| scorecard::beside(it, system, criterion));
                let here = score.map_or_else(dash, |score| format!("{score:.1}"));
                (published("score", value), here)
            };
            let pairs = row.figures().map(pair).collect();
            RowBeside { labels: row.labels(), pairs, alone: vec![] }
        };
        table.rows().map(row).collect()
    }

    /// Each of these systems at the first tuning at which it was measured; of all, the floor last.
    fn entries(&self, row: PublishedRow, systems: Option<&[&str]>) -> Vec<&'v Entry<'a>> {
        let rank = |system: &Traits| match systems {
            Some(names) => names.iter().position(|name| *name == system.name),
            None => Some(usize::from(system.floor)),
        };
        let of_group = |group: &&'v Group<'a>| {
            let group = *group;
            let mut systems: Vec<_> =
                group.systems.iter().filter(|it| rank(it).is_some()).collect();
            systems.sort_by_key(|system| rank(system));
            systems.into_iter().filter_map(move |system| {
                let is_it = |entry: &&Entry| entry.system == *system && row.is_of(entry);
                let at = |tuning: &Tuning| {
                    group.entries.iter().filter(is_it).find(|it| it.cell.tuning == *tuning)
                };
                group.tunings.iter().find_map(at)
            })
        };
        self.groups.iter().flat_map(of_group).collect()
    }

    /// Sizes of the published rows that were measured here, and those that were not; none of those
    /// that say so in their rows.
    fn sizes(&self) -> (Vec<u64>, Vec<u64>) {
        let table = &self.experiment.tables[0];
        let sizes = distinct(table.rows().filter_map(|row| row.payload()));
        sizes.into_iter().partition(|size| !self.is_left_out(table, *size))
    }

    fn is_left_out(&self, table: &PublishedTable, size: u64) -> bool {
        !table.says_here() && self.groups.iter().all(|group| !group.payloads.contains(&size))
    }

    /// Of the systems and tunings that stand beside published ones, those that were not measured.
    fn configurations_missing(&self) -> Vec<Gap> {
        let group = self.groups[0];
        let wanted = distinct(self.experiment.tables[0].rows().flat_map(|row| {
            let systems = match row.text("metric") {
                Some(_) => row.figures().map(|(system, _)| system).collect(),
                None => row.systems().unwrap_or_default(),
            };
            systems.into_iter().map(move |system| (system, row.text("tuning")))
        }));
        let is_there = |(system, tuning): &(&str, Option<&str>)| {
            let is_it = |entry: &Entry| {
                entry.system.name == *system
                    && tuning.is_none_or(|it| entry.cell.tuning.name() == it)
            };
            group.entries.iter().any(is_it)
        };
        let missing = wanted.into_iter().filter(|it| !is_there(it));
        missing.map(|(system, tuning)| self.gap(group.scenario, system, tuning)).collect()
    }

    fn gap(&self, scenario: &str, system: &str, tuning: Option<&str>) -> Gap {
        let why = self.view.missing().find(|(info, _)| info.name == system);
        let why = why.map(|(_, why)| format!(", which did not run: {why}")).unwrap_or_default();
        let tuned = tuning.map(|tuning| format!(", {tuning}")).unwrap_or_default();
        let what = format!("{system}{tuned} of {scenario}{why}");
        let tuned = tuning.map(|tuning| format!(" --tuning {tuning}")).unwrap_or_default();
        Gap { what, command: format!("myelin bench run {scenario} --system {system}{tuned}") }
    }
}
