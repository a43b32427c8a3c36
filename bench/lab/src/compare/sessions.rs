//! A side of several sessions, as one whose runs are sessions.
//!
//! The runs of one session share the state of the machine (what else runs, temperature, where
//! memory lies), and another session has another state. So runs of two sessions differ even if
//! nothing was changed between them, and no number of runs helps. What is repeated is the session:
//! it counts once, by the median of its runs.

use std::collections::BTreeSet;

use anyhow::Result;

use super::{Side, entry, environment, is_same};
use crate::input_error::InputError;
use crate::lists::ascending;
use crate::report::entry::Entry;
use crate::stats::interval::RUNS_MIN;
use crate::stats::median;
use crate::summary::{Cell, Detail, RunFigures};

/// Checks the number of sessions of both sides: one each, or enough for a test.
pub(super) fn check(a: &[Side], b: &[Side]) -> Result<()> {
    let (in_a, in_b) = (a.len(), b.len());
    if (in_a, in_b) == (1, 1) || in_a.min(in_b) >= RUNS_MIN {
        return Ok(());
    }
    let text = format!("{in_a} and {in_b} sessions: too few to compare sessions");
    let remedy = format!("name at least {RUNS_MIN} folders of each side, or one of each");
    Err(InputError::new(text).remedy(remedy).into())
}

/// The side whose runs are these sessions, with the cells that all of them have.
pub(super) fn merged(mut sessions: Vec<Side>) -> Side {
    if sessions.len() == 1 {
        return sessions.remove(0);
    }
    let (mut cells, mut details) = (Vec::new(), Vec::new());
    for cell in &sessions[0].analysis.summary.cells {
        if let Some((cell, detail)) = cell_of(cell, &sessions) {
            cells.push(cell);
            details.push(detail);
        }
    }
    let notes: Vec<String> =
        sessions.iter().flat_map(|side| own_notes(side, &sessions[0])).collect();
    let names = sessions.iter().flat_map(|side| side.sessions.clone()).collect();
    let mut first = sessions.swap_remove(0);
    first.analysis.summary.cells = cells;
    first.analysis.details = details;
    first.analysis.summary.damage.clear();
    first.analysis.summary.notes = ascending(notes);
    Side { sessions: names, ..first }
}

/// The cell with a run for each session; `None` if a session does not have it.
fn cell_of(wanted: &Cell, sessions: &[Side]) -> Option<(Cell, Detail)> {
    let place = |side: &Side| {
        let cells = &side.analysis.summary.cells;
        cells.iter().position(|cell| is_same(cell, wanted))
    };
    let places: Option<Vec<usize>> = sessions.iter().map(place).collect();
    let found = || sessions.iter().zip(places.iter().flatten());
    places.as_ref()?;
    let entries: Vec<Entry<'_>> =
        found().map(|(side, place)| entry(&side.analysis, *place)).collect();
    let runs = entries.iter().zip(0..).map(|(entry, order)| session(entry, order)).collect();
    // The one that forbids most: what holds for a session holds for the side.
    let doubt =
        |entry: &&Entry<'_>| (!entry.cell.valid, entry.short_of_rate().is_some(), entry.is_mixed());
    let most = entries.iter().rev().max_by_key(doubt)?;
    let cell = Cell { runs: sessions.len() as u32, ..most.cell.clone() };
    Some((cell, Detail { runs, ..most.detail.clone() }))
}

/// A session, by the medians of its runs. It lacks a figure if one of its runs does.
pub(super) fn session(entry: &Entry<'_>, order: u32) -> RunFigures {
    let runs: Vec<&RunFigures> = entry.detail.runs.iter().filter(|run| run.valid).collect();
    let names: BTreeSet<&str> = runs.iter().flat_map(|run| run.all()).map(|it| it.0).collect();
    let figures = names.into_iter().map(|name| {
        let ought = runs.iter().filter(|run| run.should_have(name));
        let all: Option<Vec<f64>> = ought.map(|run| run.get(name)).collect();
        (name, all.and_then(median))
    });
    let at = |place: usize| {
        let all: Option<Vec<f64>> =
            runs.iter().map(|run| run.curve_us.get(place).copied()).collect();
        all.and_then(median)
    };
    let curve_us = (0..).map_while(at).collect();
    RunFigures { curve_us, ..RunFigures::new(order, entry.cell.valid, figures) }
}

/// What a session says of itself, and how it differs from the first one.
fn own_notes(side: &Side, first: &Side) -> Vec<String> {
    let summary = &side.analysis.summary;
    let name = &side.name;
    let damage = summary.damage.iter().map(|text| format!("{name}: {text}"));
    let unlike = environment::lasting(first, side)
        .into_iter()
        .map(|it| format!("{name} is not like {}: {} {} → {}", first.name, it.what, it.a, it.b));
    damage.chain(summary.notes.iter().cloned()).chain(unlike).collect()
}
