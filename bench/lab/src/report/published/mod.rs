//! Published figures beside the measured ones: for each published report its tables, in its shape,
//! from our records.
//!
//! They come from other machines: shapes and ratios may be compared, values not. What can be derived
//! of published rows (gains, growth, the best configuration) is derived by the very arithmetic that
//! ours is. What this folder has not measured is named, with the command that measures it.

mod data;
mod figures;
mod join;
mod resources;
mod shape;
mod sweeps;

use serde::Serialize;

pub use data::PublishedReport;
pub(super) use data::modules;

use super::document::Table;
use super::format;
use super::view::{Entry, View};

/// A published report beside what was measured here, ready to print.
#[derive(Serialize)]
pub(super) struct Beside {
    pub title: String,
    pub tables: Vec<TableBeside>,
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
#[derive(Serialize)]
pub(super) struct TableBeside {
    pub caption: String,
    /// Its headings.
    pub published: &'static data::PublishedTable,
    pub rows: Vec<RowBeside>,
    /// Instead of rows: tables with a row for what was published, and one for each system.
    pub tables: Vec<Table>,
}

/// One row of a [`TableBeside`].
#[derive(Serialize)]
pub(super) struct RowBeside {
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
    data::REPORTS.iter().map(|report| join::beside(report, view)).collect()
}

/// Strikes the figure of a cell that may not be used.
fn struck(entry: &Entry, text: String) -> String {
    if entry.cell.valid || text == dash() { text } else { format!("✗ {text}") }
}

/// Not published, not measured, or withheld.
fn dash() -> String {
    format::WITHHELD.to_owned()
}

/// What every reader of published tables must be told.
pub(super) const REMARK: &str = "Measured on other machines: compare shapes and ratios, not \
values. Microseconds. “–”: not published, not measured here, or too few samples lie beyond; \
✗: invalid here.";
