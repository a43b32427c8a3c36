//! The figures of each of many sessions, for their trend.

use serde::Serialize;

use super::{CellName, Side, entry, sessions};
use crate::summary::{Compared, Metric};

/// A cell over the sessions.
#[derive(Clone, Debug, Serialize)]
pub struct CellHistory {
    /// Its identity.
    #[serde(flatten)]
    pub name: CellName,
    /// Whether the system is a primitive of the operating system.
    pub floor: bool,
    /// In the order of the table of figures.
    pub figures: Vec<FigureHistory>,
}

/// A figure over the sessions. Its name ends in the unit.
#[derive(Clone, Debug, Serialize)]
pub struct FigureHistory {
    /// The figure.
    pub figure: &'static Metric,
    /// How it is compared.
    #[serde(skip)]
    pub how: Compared,
    /// The median of the runs of each session; null if the session lacks the cell, if the cell has
    /// no valid run, or if the figure was withheld or is infinite.
    pub values: Vec<Option<f64>>,
}

/// The cells of all sessions, in the order of the first that has them.
pub fn history(sides: &[Side]) -> Vec<CellHistory> {
    let mut cells: Vec<CellHistory> = Vec::new();
    for (session, side) in sides.iter().enumerate() {
        for place in 0..side.analysis.summary.cells.len() {
            let entry = entry(&side.analysis, place);
            let name = CellName::of(&entry);
            let at = cells.iter().position(|cell| cell.name.is_same(&name));
            let at = at.unwrap_or_else(|| {
                let figures = Metric::compared().filter(|(_, how)| (how.is_of)(entry.cell));
                let empty =
                    |(figure, how)| FigureHistory { figure, how, values: vec![None; sides.len()] };
                let figures = figures.map(empty).collect();
                cells.push(CellHistory { name, floor: entry.system.floor, figures });
                cells.len() - 1
            });
            let run = sessions::session(&entry, 0);
            for it in &mut cells[at].figures {
                let across = it.how.across.filter(|_| entry.is_mixed());
                let value = run.get(across.unwrap_or(it.figure.name));
                it.values[session] = value.filter(|value| run.valid && value.is_finite());
            }
        }
    }
    cells
}
