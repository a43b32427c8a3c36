//! Published figures beside the measured ones: for each published report its tables, in its form,
//! filled in from our records by the names of configurations, parameters and metrics.
//!
//! Published figures come from other machines, so shapes and ratios can be compared, but not
//! values. If this folder lacks a measurement, the report names it with the command that makes it.

mod data;

use data::{Experiment, Of, PublishedRow, PublishedTable, PublishedValue};
use minijinja::{Value, context};
use serde::Serialize;

use super::view::{Entry, Group, Traits, View};
use super::{format, scorecard};
use crate::lists::distinct;
use crate::scenario::Tuning;
use crate::score::Card;
use crate::summary::Distribution;

pub use data::PublishedReport;
pub(super) use data::modules;

/// A row of a table: published headings, published figures and ours.
#[derive(Serialize)]
struct RowBeside {
    labels: Vec<String>,
    /// Published value, and value measured here.
    pairs: Vec<(String, String)>,
}

/// Every published report with at least one measured table; none if nothing was measured.
pub(super) fn comparisons(view: &View) -> Vec<Value> {
    if view.entries().next().is_none() {
        return Vec::new();
    }
    data::REPORTS.iter().map(|report| beside(report, view)).collect()
}

/// Strikes out the figure of a cell that must not be used.
fn struck(entry: &Entry, text: String) -> String {
    if entry.cell.valid || text == dash() { text } else { format!("✗ {text}") }
}

/// A value that was not published, not measured, or withheld.
fn dash() -> String {
    format::WITHHELD.to_owned()
}

/// A report: its tables, its doubts, and what is missing here.
fn beside(report: &'static PublishedReport, view: &View) -> Value {
    let doubts: Vec<_> = report.doubts.iter().chain([&report.notes]).collect();
    let (mut tables, mut gaps) = (Vec::new(), Vec::new());
    for experiment in &report.experiments {
        let groups = experiment.groups(view);
        let scenario = &experiment.scenarios[0];
        let command = format!("myelin bench run {scenario}");
        if groups.is_empty() {
            gaps.push(context! { what => experiment.what, command });
            continue;
        }
        let tuning = groups[0].tunings.first().filter(|_| experiment.of == Of::Paced);
        let card = tuning.and_then(|tuning| scorecard::card(view, groups[0].scenario, *tuning));
        let join = Join { view, experiment, groups, card };
        tables.extend(experiment.tables.iter().map(|table| join.table(table)));
        gaps.extend(join.configurations_missing());
        let sizes = join.sizes().1;
        if !sizes.is_empty() {
            let sizes: Vec<_> = sizes.into_iter().map(format::bytes).collect();
            let what = format!("round trips of {}", sizes.join(", "));
            gaps.push(context! { what, command });
        }
    }
    context! { title => report.title, tables, doubts, gaps }
}

/// An experiment, with at least one group of ours that repeats it.
struct Join<'v, 'a> {
    view: &'v View<'a>,
    experiment: &'v Experiment,
    groups: Vec<&'v Group<'a>>,
    /// Our scores at the first tuning.
    card: Option<Card>,
}

impl<'v, 'a> Join<'v, 'a> {
    fn table(&self, table: &PublishedTable) -> Value {
        let caption = table.caption.replace("{scenario}", self.groups[0].scenario);
        let rows: Vec<_> = table.rows().flat_map(|row| self.rows(row)).collect();
        context! { caption, published => table, rows }
    }

    /// One row for each cell that matches; rows for unmeasured sizes only if the table names our
    /// counterpart.
    fn rows(&self, row: PublishedRow) -> Vec<RowBeside> {
        if row.payload().is_some_and(|size| self.is_left_out(row.table, size)) {
            return vec![];
        }
        let mut here = match row.text("metric").or(row.text("criterion")) {
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
            let measured = || here.and_then(|it| Some(struck(it, ours(metric, it, copy)?)));
            let ours = self.score(row, column).or_else(measured);
            (published(metric, value), ours.unwrap_or_else(dash))
        });
        RowBeside { labels, pairs: pairs.collect() }
    }

    /// Our score, if the row is a criterion of a scorecard.
    fn score(&self, row: PublishedRow, system: &str) -> Option<String> {
        let score = scorecard::beside(self.card.as_ref()?, system, row.text("criterion")?)?;
        Some(format!("{score:.1}"))
    }

    /// Each of these systems once, at its first measured tuning; if all are wanted, the floor comes
    /// last.
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
        let mut entries: Vec<&Entry> = Vec::new();
        for entry in self.groups.iter().flat_map(of_group) {
            if entries.iter().all(|it| it.system.name != entry.system.name) {
                entries.push(entry);
            }
        }
        entries
    }

    /// Published sizes that were measured here, and those that were not; without rows that name
    /// their counterpart themselves.
    fn sizes(&self) -> (Vec<u64>, Vec<u64>) {
        let table = &self.experiment.tables[0];
        let sizes = distinct(table.rows().filter_map(|row| row.payload()));
        sizes.into_iter().partition(|size| !self.is_left_out(table, *size))
    }

    fn is_left_out(&self, table: &PublishedTable, size: u64) -> bool {
        !table.says_here() && self.groups.iter().all(|group| !group.payloads.contains(&size))
    }

    /// Published systems and tunings that were not measured here.
    fn configurations_missing(&self) -> Vec<Value> {
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

    fn gap(&self, scenario: &str, system: &str, tuning: Option<&str>) -> Value {
        let why = self.view.missing().find(|(info, _)| info.name == system);
        let why = why.map(|(_, why)| format!(", which did not run: {why}")).unwrap_or_default();
        let tuned = tuning.map(|tuning| format!(", {tuning}")).unwrap_or_default();
        let what = format!("{system}{tuned} of {scenario}{why}");
        let tuned = tuning.map(|tuning| format!(" --tuning {tuning}")).unwrap_or_default();
        context! { what, command => format!("myelin bench run {scenario} --system {system}{tuned}") }
    }
}

/// A published figure as text; half a round trip is doubled to a whole one.
fn published(metric: &str, value: &PublishedValue) -> String {
    let PublishedValue::Number(value) = value else { return dash() };
    let whole = if metric.starts_with("half_") { 2.0 * value } else { *value };
    match metric {
        "samples" => format::count(whole as u64),
        "loss_percent" => format::percent(whole),
        "cpu_percent" => format::cpu_percent(whole),
        "mean_us" | "min_us" | "max_us" => format::us(whole),
        // Keeps the published digits.
        "half_min_us" | "half_median_us" | "half_p99_us" | "half_max_us" | "write_median_us"
        | "read_median_us" | "latency_us" | "memory_MB" | "arena_MB" => whole.to_string(),
        _ => format::amount(whole),
    }
}

/// Our counterpart of the figure as text. `copy` names one of the copies that a user makes of a
/// frame.
fn ours(metric: &str, entry: &Entry, copy: Option<&str>) -> Option<String> {
    let cell = entry.cell;
    let latency = match copy {
        None => entry.latency(),
        Some("memcpy") => cell.memcpy_us.as_ref(),
        Some(_) => cell.stream_copy_us.as_ref(),
    };
    let us = |of: fn(&Distribution) -> Option<f64>| latency.and_then(of).map(format::us);
    match metric {
        "mean_us" | "latency_us" => us(|latency| Some(latency.mean)),
        "min_us" | "half_min_us" => us(|latency| Some(latency.min)),
        "max_us" | "half_max_us" => us(|latency| Some(latency.max)),
        "p50_us" => us(|latency| latency.p50),
        "half_p99_us" => us(|latency| latency.p99),
        "half_median_us" => {
            let ends = entry.p50_interval().map(|ends| format!(" {}", format::interval_us(ends)));
            Some(format::us(entry.p50()?) + &ends.unwrap_or_default())
        }
        "write_median_us" => cell.write_us?.p50.map(format::us),
        "read_median_us" => cell.read_us?.p50.map(format::us),
        "samples" => Some(format::count(cell.samples)),
        "cpu_percent" => cell.cpu_percent.map(format::cpu_percent),
        "loss_percent" => entry.loss_percent().map(format::percent),
        "memory_MB" => cell.rss_bytes.map(format::megabytes),
        "arena_MB" => cell.shared_bytes.map(format::megabytes),
        _ => sanity(metric, entry).map(format::amount),
    }
}

/// The figures that ddsperf prints at one ping a second.
fn sanity(metric: &str, entry: &Entry) -> Option<f64> {
    let process = |role: &str| entry.cell.processes.iter().find(|process| process.role == role);
    let resident = |role| Some(process(role)?.rss_bytes as f64 / f64::from(1 << 20));
    let switches = |role| Some(process(role)?.voluntary_switches_per_s);
    match metric {
        "half_rtt_min_us" => entry.latency().map(|latency| latency.min),
        "half_rtt_max_us" => entry.latency().map(|latency| latency.max),
        "rss_ping_MB" => resident("ping"),
        "rss_pong_MB" => resident("pong"),
        "vcsw_per_s_ping_min" | "vcsw_per_s_ping_max" => switches("ping"),
        "vcsw_per_s_pong_min" | "vcsw_per_s_pong_max" => switches("pong"),
        "wait_for_daemon_s" => entry.cell.daemon_ms.map(|ms| ms / 1e3),
        _ => None,
    }
}

/// A warning for every reader of published tables.
pub(super) const REMARK: &str = "Measured on other machines: compare shapes and ratios, not \
values. Microseconds. “–”: not published, not measured here, or too few samples lie beyond; \
✗: invalid here.";
