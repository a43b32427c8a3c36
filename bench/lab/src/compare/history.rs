//! The figures of each of many sessions, for their trend.

use serde::Serialize;

use super::sessions::point;
use super::{CellName, Side, entry};
use crate::report::metrics::{COMPARED, Compared};

/// A cell over the sessions.
#[derive(Clone, Debug, Serialize)]
pub struct CellHistory {
    /// Its identity.
    #[serde(flatten)]
    pub name: CellName,
    /// Whether the system is a primitive of the operating system.
    pub floor: bool,
    /// In the order of [`COMPARED`].
    pub figures: Vec<FigureHistory>,
}

/// A figure over the sessions. Its name ends in the unit.
#[derive(Clone, Debug, Serialize)]
pub struct FigureHistory {
    /// The figure.
    pub figure: &'static Compared,
    /// The median of the runs of each session; null if the session lacks the cell, if the cell has
    /// no valid run, or if the figure was withheld or is infinite.
    pub values: Vec<Option<f64>>,
}

/// The cells of all sessions, in the order of the first that has them.
pub fn history(sessions: &[Side]) -> Vec<CellHistory> {
    let mut cells: Vec<CellHistory> = Vec::new();
    for (session, side) in sessions.iter().enumerate() {
        for place in 0..side.analysis.summary.cells.len() {
            let entry = entry(&side.analysis, place);
            let name = CellName::of(&entry);
            let at = cells.iter().position(|cell| cell.name.is_same(&name));
            let at = at.unwrap_or_else(|| {
                let figures = COMPARED.iter().filter(|figure| (figure.is_of)(&entry));
                let empty = |figure| FigureHistory { figure, values: vec![None; sessions.len()] };
                let figures = figures.map(empty).collect();
                cells.push(CellHistory { name, floor: entry.system.floor, figures });
                cells.len() - 1
            });
            let point = point(&entry, 0);
            for it in &mut cells[at].figures {
                let value = (it.figure.of)(&point, it.figure.is_latency && entry.is_mixed());
                it.values[session] = value.filter(|value| point.valid && value.is_finite());
            }
        }
    }
    cells
}
