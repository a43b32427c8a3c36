//! Published figures beside the measured ones: for each published report its tables, in its shape,
//! from our records.
//!
//! They come from other machines: shapes and ratios may be compared, values not. What can be derived
//! of published rows (gains, growth, the best configuration) is derived by the very arithmetic that
//! ours is. What this folder has not measured is named, with the command that measures it.

mod cyclonedds;
mod images;
mod markdown;
mod modules;
mod resources;
mod roundtrips;
mod sanity;
mod shape;
mod sweeps;

use serde::{Deserialize, Serialize, Serializer};

pub use cyclonedds::{BySize, CycloneddsOrin, Minute};
pub use images::Images;
pub(super) use markdown::markdown;
pub use modules::{CyberRt, Module};

use super::html::TableOnPage;
use super::table::Table;
use super::view::{Entry, Group, View};
use super::words;

/// A published table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Published<R> {
    /// Names of the columns, with units.
    pub columns: Vec<String>,
    /// Its rows.
    pub rows: Vec<R>,
}

/// A published report beside what was measured here, ready to print.
#[derive(Serialize)]
pub(super) struct Beside {
    pub title: String,
    pub tables: Vec<Comparison>,
    /// What to bear in mind of the published figures; shown with any of them.
    pub doubts: Vec<String>,
    pub gaps: Vec<Gap>,
}

/// What a published table stands beside in vain, and how to measure it.
#[derive(Serialize)]
pub(super) struct Gap {
    pub what: String,
    pub command: String,
}

/// One table.
#[derive(Default, Serialize)]
pub(super) struct Comparison {
    pub caption: String,
    /// What the figures are, and what they are made of.
    pub remark: &'static str,
    /// Headings of what identifies a row.
    pub labels: Vec<&'static str>,
    /// Headings of the pairs (published, measured here).
    pub pairs: Vec<String>,
    /// Headings of what nobody has published.
    pub alone: Vec<&'static str>,
    pub rows: Vec<ComparisonRow>,
    /// Instead of rows: tables with a row for what was published, and one for each system.
    #[serde(serialize_with = "on_page")]
    pub tables: Vec<Table>,
}

/// One row of a [`Comparison`].
#[derive(Default, Serialize)]
pub(super) struct ComparisonRow {
    pub labels: Vec<String>,
    /// Published, measured here.
    pub pairs: Vec<(String, String)>,
    pub alone: Vec<String>,
}

/// Every published report, with those of its tables that were measured; none if nothing was.
pub(super) fn comparisons(view: &View) -> Vec<Beside> {
    if view.entries().next().is_none() {
        return Vec::new();
    }
    vec![cyclonedds::beside(view), modules::beside(view), images::beside(view)]
}

impl Beside {
    fn new(title: String, doubts: &[String], notes: &str) -> Self {
        let doubts = doubts.iter().map(String::as_str).chain([notes]).map(str::to_owned).collect();
        Self { title, tables: Vec::new(), doubts, gaps: Vec::new() }
    }

    /// Nothing was measured of a scenario.
    fn not_measured(&mut self, what: &str, scenario: &str) {
        let command = format!("myelin bench run {scenario}");
        self.gaps.push(Gap { what: what.to_owned(), command });
    }

    /// Of the systems and tunings that a group should have, those it has not.
    fn expect(&mut self, view: &View, group: &Group, wanted: &[(&str, Option<&str>)]) {
        for (system, tuning) in wanted {
            let is_it = |entry: &Entry| {
                entry.system.name == *system && tuning.is_none_or(|it| entry.cell.tuning == it)
            };
            if group.entries.iter().any(is_it) {
                continue;
            }
            let scenario = group.scenario;
            let why = view.missing().find(|(info, _)| info.name == *system);
            let why = why.map(|(_, why)| format!(", which did not run: {why}"));
            let tuned = tuning.map(|tuning| format!(", {tuning}")).unwrap_or_default();
            let what = format!("{system}{tuned} of {scenario}{}", why.unwrap_or_default());
            let tuned = tuning.map(|tuning| format!(" --tuning {tuning}")).unwrap_or_default();
            let command = format!("myelin bench run {scenario} --system {system}{tuned}");
            self.gaps.push(Gap { what, command });
        }
    }
}

/// Strikes the figure of a cell that may not be used.
fn struck(entry: Option<&Entry>, text: String) -> String {
    match entry {
        Some(entry) if !entry.cell.valid && text != dash() => format!("✗ {text}"),
        _ => text,
    }
}

/// Not published, not measured, or withheld.
fn dash() -> String {
    words::WITHHELD.to_owned()
}

fn on_page<S: Serializer>(tables: &[Table], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(tables.iter().map(TableOnPage::new))
}

/// What every reader of published tables must be told.
pub(super) const REMARK: &str = "Measured on other machines: compare shapes and ratios, not \
values. Microseconds. “–”: not published, not measured here, or too few samples lie beyond; \
✗: invalid here.";
