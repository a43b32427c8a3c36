//! Two results folders: another day, another machine, another version of a peer. What differs
//! around them, then what differs in each cell, and whether that is more than chance.
//!
//! `judge` compares, of the cells that both have, what `report::metrics` lists and asks
//! `stats::verdict`, `environment` says what else differs, `document` puts it in words; `terminal`
//! and `html` print. docs/how-to/compare.md says how to read it.

mod document;
mod environment;
mod html;
mod judge;
mod terminal;

use std::fs;
use std::path::Path;

use anyhow::Result;
use serde::Serialize;

use crate::input_error::InputError;
use crate::lists::grouped;
use crate::plan::Plan;
use crate::report::entry::{Entry, Latency};
pub use crate::report::metrics::{COMPARED, Compared};
use crate::scenario::Tuning;
use crate::session;
use crate::summary::{Analysis, Cell, Params};
pub use document::Found;
pub use environment::{Aspect, Difference};
pub use html::page;
pub use judge::{FigureComparison, ShiftPoint};
pub use terminal::render as terminal;

use crate::report::format::plural;
use crate::stats::permutation::RATE;
use crate::stats::verdict::Kind;

/// One of the two folders.
pub struct Side {
    /// As the user named it.
    pub name: String,
    /// What was planned.
    pub plan: Plan,
    /// What came of it.
    pub analysis: Analysis,
}

/// All that can be said of two folders. `compare --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Version of this layout: [`SCHEMA`].
    pub schema: u32,
    /// What B is compared with.
    pub a: FolderInfo,
    /// What is compared.
    pub b: FolderInfo,
    /// What else differs.
    pub environment: Vec<Difference>,
    /// How many facts of the host are known, and compared.
    pub host_facts: usize,
    /// The probability that one or more of `comparisons` is called better or worse if nothing
    /// differs: the family-wise error rate.
    pub error_rate: f64,
    /// Figures of cells that were tested.
    pub comparisons: usize,
    /// Runs of each cell, in either folder, that let any of them be told.
    pub runs_to_tell_any: usize,
    /// The least number of runs that one of them had.
    pub runs_least: usize,
    /// How often each verdict was given.
    pub verdicts: Counts,
    /// Bare primitives of the operating system: what becomes of them is the machine's doing.
    pub floor: Counts,
    /// Cells of both folders, in the order of A.
    pub cells: Vec<CellComparison>,
    /// Cells that B has not.
    pub only_in_a: Vec<CellName>,
    /// Cells that A has not.
    pub only_in_b: Vec<CellName>,
}

/// One of the folders.
#[derive(Clone, Debug, Serialize)]
pub struct FolderInfo {
    /// As the user named it.
    pub folder: String,
    /// The command that repeats it.
    pub command: String,
    /// What of its records is damaged or missing, and what its report remarks on the whole where the
    /// other's does not.
    pub notes: Vec<String>,
}

/// How often each verdict was given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub struct Counts {
    /// B is higher.
    pub worse: usize,
    /// B is lower.
    pub better: usize,
    /// Alike, as far as anyone need care.
    pub no_difference: usize,
    /// The runs spread too much, or are too few among so many comparisons, to say.
    pub too_noisy: usize,
    /// There was nothing to test, for a reason that is given.
    pub no_verdict: usize,
}

/// What a cell is.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellName {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the system.
    pub system: String,
    /// What was done for latency.
    pub tuning: Tuning,
    /// `two-processes` or `one-process`.
    pub topology: String,
    /// The parameter point.
    pub params: Params,
    /// `cyclonedds.udp, 64 KiB, tuned`.
    pub name: String,
    /// `quick, 100 Hz`.
    pub circumstances: String,
}

/// A cell of both folders.
#[derive(Clone, Debug, Serialize)]
pub struct CellComparison {
    /// Which.
    #[serde(flatten)]
    pub name: CellName,
    /// Whether the system is a bare primitive of the operating system.
    pub floor: bool,
    /// Whether it was valid in A and has no valid run in B.
    pub no_longer_valid: bool,
    /// What to bear in mind: mixtures of placements that shifted.
    pub remarks: Vec<String>,
    /// In the order of [`COMPARED`], those that the cell has.
    pub figures: Vec<FigureComparison>,
    /// The latency of B less that of A by quantile.
    pub shift: Vec<ShiftPoint>,
}

/// Reads and analyses both folders and compares B with A. Whatever is wrong with either is an
/// [`InputError`] that names it.
pub fn read(a: &Path, b: &Path) -> Result<Comparison> {
    if let (Ok(a), Ok(b)) = (fs::canonicalize(a), fs::canonicalize(b))
        && a == b
    {
        let text = format!("{}: this is both folders", a.display());
        return Err(InputError::new(text).remedy("name two results folders").into());
    }
    compare(&side(a)?, &side(b)?)
}

/// Compares B with A; an [`InputError`] if they have no cell in common.
pub fn compare(a: &Side, b: &Side) -> Result<Comparison> {
    // Places of the cells that both have, in the order of A, and of those that one has.
    let [cells_a, cells_b] = [a, b].map(|side| &side.analysis.summary.cells);
    let is_same = |a: &Cell, b: &Cell| a.key() == b.key() && a.params == b.params;
    let (mut both, mut only_in_a, mut only_in_b) =
        (vec![], vec![], Vec::from_iter(0..cells_b.len()));
    for (place, cell) in cells_a.iter().enumerate() {
        match only_in_b.iter().position(|&other| is_same(cell, &cells_b[other])) {
            Some(at) => both.push([place, only_in_b.remove(at)]),
            None => only_in_a.push(place),
        }
    }
    if both.is_empty() {
        let (held, other) = (a.contents(), b.contents());
        let text = format!("{} and {}: no cell is in both; {held}; {other}", a.name, b.name);
        let remedy = "compare folders of one scenario with systems, tunings and sizes in common";
        return Err(InputError::new(text).remedy(remedy).into());
    }
    let mut cells: Vec<CellComparison> = both
        .iter()
        .map(|&[of_a, of_b]| judge::cell(entry(&a.analysis, of_a), entry(&b.analysis, of_b)))
        .collect();
    let clock_step_ns = [a, b].map(|side| side.analysis.summary.host.clock_step_ns);
    let comparisons = judge::family(&mut cells, clock_step_ns[0].max(clock_step_ns[1]));
    let name = |side: &Side, places: &[usize]| {
        places.iter().map(|&at| CellName::of(&entry(&side.analysis, at))).collect()
    };
    Ok(Comparison {
        schema: SCHEMA,
        a: FolderInfo::of(a, b),
        b: FolderInfo::of(b, a),
        environment: environment::differences(a, b, &both),
        host_facts: environment::host_facts(a),
        error_rate: RATE,
        comparisons,
        runs_to_tell_any: judge::runs_asked(&cells),
        runs_least: judge::runs_least(&cells),
        verdicts: Counts::of(cells.iter()),
        floor: Counts::of(cells.iter().filter(|cell| cell.floor)),
        only_in_a: name(a, &only_in_a),
        only_in_b: name(b, &only_in_b),
        cells,
    })
}

impl Side {
    /// `results/a holds quick (12 cells), modules (4 cells)`.
    fn contents(&self) -> String {
        let cells = self.analysis.summary.cells.iter();
        let scenarios = grouped(cells.map(|cell| (cell.scenario.as_str(), cell)));
        let held = scenarios
            .iter()
            .map(|(name, cells)| format!("{name} ({})", plural(cells.len(), "cell")));
        let held = held.collect::<Vec<_>>().join(", ");
        format!("{} holds {}", self.name, if held.is_empty() { "nothing" } else { &held })
    }
}

/// A folder as the reports see it.
fn side(path: &Path) -> Result<Side> {
    let read = || -> Result<Side> {
        let (_, plan, analysis) = session::open(path)?;
        Ok(Side { name: path.display().to_string(), plan, analysis })
    };
    read().map_err(|error| match error.is::<InputError>() {
        true => error,
        false => InputError::new(format!("{}: {error:#}", path.display()))
            .remedy("name a results folder of `myelin bench run`; `report` says more of this one")
            .into(),
    })
}

fn entry(analysis: &Analysis, place: usize) -> Entry<'_> {
    let cell = &analysis.summary.cells[place];
    Entry::new(analysis, place, Latency::of(cell.workload, cell.round_trip_us.is_none()))
}

impl Comparison {
    /// Whether anything is worse in B: a figure by its verdict, or a cell that has no valid run any
    /// more.
    pub fn is_worse(&self) -> bool {
        self.verdicts.worse > 0 || self.no_longer_valid().next().is_some()
    }

    /// The cells that were valid in A and have no valid run in B.
    pub fn no_longer_valid(&self) -> impl Iterator<Item = &CellComparison> {
        self.cells.iter().filter(|cell| cell.no_longer_valid)
    }
}

impl FolderInfo {
    fn of(side: &Side, other: &Side) -> Self {
        let summary = &side.analysis.summary;
        let is_own = |note: &&String| !other.analysis.summary.notes.contains(note);
        let own = summary.notes.iter().filter(is_own);
        Self {
            folder: side.name.clone(),
            command: summary.command.clone(),
            notes: summary.damage.iter().chain(own).cloned().collect(),
        }
    }
}

impl CellName {
    fn of(entry: &Entry) -> Self {
        let cell = entry.cell;
        Self {
            scenario: cell.scenario.clone(),
            system: cell.system.clone(),
            tuning: cell.tuning,
            topology: cell.topology.name().to_owned(),
            params: cell.params.clone(),
            name: entry.name(),
            circumstances: entry.circumstances(),
        }
    }
}

impl Counts {
    fn of<'a>(cells: impl Iterator<Item = &'a CellComparison>) -> Self {
        let mut counts = Counts::default();
        for figure in cells.flat_map(|cell| &cell.figures) {
            let count = match figure.verdict {
                Some(Kind::Worse) => &mut counts.worse,
                Some(Kind::Better) => &mut counts.better,
                Some(Kind::NoDifference) => &mut counts.no_difference,
                Some(Kind::TooNoisy) => &mut counts.too_noisy,
                None => &mut counts.no_verdict,
            };
            *count += 1;
        }
        counts
    }
}

/// [`Comparison::schema`].
pub const SCHEMA: u32 = 1;
