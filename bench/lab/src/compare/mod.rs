//! Compares results folders, one or several of each side: another day, another machine, another version of a peer. It shows
//! what differs around them, what differs in each cell, and whether that is more than chance.
//!
//! For the cells in both folders `judge` compares the figures that the table of figures says, with
//! verdicts from `stats::verdict`. `environment` finds other differences, `document` puts all into
//! words; `terminal` and `html` print. docs/how-to/compare.md explains how to read a comparison.

mod condition;
mod document;
mod environment;
mod history;
mod html;
mod judge;
mod markdown;
mod sessions;
mod terminal;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::Result;
use serde::Serialize;

use crate::input_error::InputError;
use crate::lists::grouped;
use crate::plan::Plan;
use crate::report::entry::{Entry, Latency};
use crate::scenario::Tuning;
use crate::session;
use crate::summary::{Analysis, Cell, Params};
pub use condition::{Condition, Outcome};
pub use document::Found;
pub use environment::{Aspect, Difference};
pub use history::{CellHistory, FigureHistory, history};
pub use html::page;
pub use judge::{FigureComparison, ShiftPoint};
pub use markdown::markdown;
pub use terminal::render as terminal;

use crate::report::format::plural;
use crate::stats::permutation::RATE;
use crate::stats::verdict::Kind;

/// One of the two sides: a results folder, or several.
pub struct Side {
    /// The name of its first folder, as the user gave it.
    pub name: String,
    /// The names of its folders. With several, a run of `analysis` is a session.
    pub sessions: Vec<String>,
    /// The plan of its runs.
    pub plan: Plan,
    /// The results.
    pub analysis: Analysis,
}

/// The result of a comparison. `compare --json` prints it.
#[derive(Clone, Debug, Serialize)]
pub struct Comparison {
    /// Version of this layout: [`SCHEMA`].
    pub schema: u32,
    /// The reference folder.
    pub a: FolderInfo,
    /// The folder that is compared with A.
    pub b: FolderInfo,
    /// What is repeated, and so is compared.
    pub unit: Unit,
    /// Other differences between the folders.
    pub environment: Vec<Difference>,
    /// Number of known facts about the hosts, all of which are compared.
    pub host_facts: usize,
    /// The family-wise error rate: the probability that at least one of `comparisons` is called
    /// better or worse although nothing differs.
    pub error_rate: f64,
    /// Number of tested figures.
    pub comparisons: usize,
    /// Runs of each cell in each folder from which on every comparison can show a difference.
    pub runs_to_tell_any: usize,
    /// The least number of runs behind a comparison.
    pub runs_least: usize,
    /// How often each verdict was given.
    pub verdicts: Counts,
    /// Verdicts on primitives of the operating system, which change only with the machine.
    pub floor: Counts,
    /// Cells in both folders, in the order of A.
    pub cells: Vec<CellComparison>,
    /// Cells that are missing in B.
    pub only_in_a: Vec<CellName>,
    /// Cells that are missing in A.
    pub only_in_b: Vec<CellName>,
}

/// What a value of [`FigureComparison::runs_a`] is of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Unit {
    /// A run; there is one session of each side. A hint: the machine may have changed between them.
    Run,
    /// A session, by the median of its runs.
    Session,
}

/// The folders of a side.
#[derive(Clone, Debug, Serialize)]
pub struct FolderInfo {
    /// The name of the first, as the user gave it.
    pub folder: String,
    /// The names of all.
    pub sessions: Vec<String>,
    /// The command that repeats it.
    pub command: String,
    /// Damaged or missing records, and remarks of its report that the other report does not make.
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
    /// Equal, as far as it matters.
    pub no_difference: usize,
    /// The runs vary too much, or are too few for so many comparisons.
    pub too_noisy: usize,
    /// Nothing could be tested; the figure says why.
    pub no_verdict: usize,
}

/// The identity of a cell.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct CellName {
    /// Name of the scenario.
    pub scenario: String,
    /// Name of the system.
    pub system: String,
    /// The preparation for low latency.
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

/// A cell in both folders.
#[derive(Clone, Debug, Serialize)]
pub struct CellComparison {
    /// Its identity.
    #[serde(flatten)]
    pub name: CellName,
    /// Whether the system is a primitive of the operating system.
    pub floor: bool,
    /// Whether it was valid in A and has no valid run in B.
    pub no_longer_valid: bool,
    /// Remarks: mixtures of placements that shifted.
    pub remarks: Vec<String>,
    /// The figures of the cell, in the order of the table of figures.
    pub figures: Vec<FigureComparison>,
    /// The difference of the latencies, B minus A, by quantile.
    pub shift: Vec<ShiftPoint>,
}

/// Reads and analyses all folders and compares B with A: one folder each, or at least
/// [`RUNS_MIN`](crate::stats::interval::RUNS_MIN) each. A problem with one is an [`InputError`] that
/// names it.
pub fn read(a: &[PathBuf], b: &[PathBuf]) -> Result<Comparison> {
    let mut known = BTreeSet::new();
    for path in a.iter().chain(b) {
        if fs::canonicalize(path).is_ok_and(|path| !known.insert(path)) {
            let text = format!("{}: this folder is named twice", path.display());
            return Err(InputError::new(text).remedy("name different results folders").into());
        }
    }
    let sides = |paths: &[PathBuf]| paths.iter().map(|path| side(path)).collect::<Result<Vec<_>>>();
    sessions(sides(a)?, sides(b)?)
}

/// Compares the sessions of B with those of A; an [`InputError`] if they are too few, or have no
/// common cell.
pub fn sessions(a: Vec<Side>, b: Vec<Side>) -> Result<Comparison> {
    sessions::check(&a, &b)?;
    compare(&sessions::merged(a), &sessions::merged(b))
}

/// Compares B with A; an [`InputError`] if they have no common cell.
pub fn compare(a: &Side, b: &Side) -> Result<Comparison> {
    // Indices of the common cells, in the order of A, then those of cells on one side only.
    let [cells_a, cells_b] = [a, b].map(|side| &side.analysis.summary.cells);
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
    let unit = if a.sessions.len().max(b.sessions.len()) > 1 { Unit::Session } else { Unit::Run };
    let comparisons = judge::family(&mut cells, unit, clock_step_ns[0].max(clock_step_ns[1]));
    let name = |side: &Side, places: &[usize]| {
        places.iter().map(|&at| CellName::of(&entry(&side.analysis, at))).collect()
    };
    Ok(Comparison {
        schema: SCHEMA,
        a: FolderInfo::of(a, b),
        b: FolderInfo::of(b, a),
        unit,
        environment: environment::differences(a, b, &both),
        host_facts: environment::host_facts(a),
        error_rate: RATE,
        comparisons,
        runs_to_tell_any: judge::runs_asked(&cells, unit),
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

/// A folder, analysed as for its report, but for the plots.
pub fn side(path: &Path) -> Result<Side> {
    let read = || -> Result<Side> {
        let (_, plan, analysis) = session::open(path, false)?;
        let name = path.display().to_string();
        Ok(Side { sessions: vec![name.clone()], name, plan, analysis })
    };
    read().map_err(|error| match error.is::<InputError>() {
        true => error,
        false => InputError::new(format!("{}: {error:#}", path.display()))
            .remedy(
                "name a results folder of `myelin bench run`; `myelin bench report` says more \
                     about this one",
            )
            .into(),
    })
}

fn is_same(one: &Cell, other: &Cell) -> bool {
    one.key() == other.key() && one.params == other.params
}

fn entry(analysis: &Analysis, place: usize) -> Entry<'_> {
    let cell = &analysis.summary.cells[place];
    Entry::new(analysis, place, Latency::of(cell.workload, cell.round_trip_us.is_none()))
}

impl Comparison {
    /// Whether anything is worse in B: a figure by its verdict, or a cell that no longer has a
    /// valid run.
    pub fn is_worse(&self) -> bool {
        self.verdicts.worse > 0 || self.no_longer_valid().next().is_some()
    }

    /// Why a comparison in which nothing is worse does not show that nothing is; empty if it does.
    pub fn unanswered(&self) -> Vec<String> {
        self.unanswered_of(|_| true)
    }

    /// Like [`unanswered`](Self::unanswered), of some figures.
    fn unanswered_of(&self, is_wanted: impl Fn(&FigureComparison) -> bool) -> Vec<String> {
        let figures = || {
            let all = self.cells.iter().flat_map(|cell| &cell.figures);
            all.filter(|figure| is_wanted(figure))
        };
        let lacking = figures().filter(|figure| figure.lacking_in_b).count();
        let is_tested = figures().any(|figure| figure.p.is_some());
        let missing = self.only_in_a.len();
        let reasons = [
            (missing > 0).then(|| format!("{} only in A", plural(missing, "cell"))),
            (lacking > 0).then(|| format!("{} can be tested only in A", plural(lacking, "figure"))),
            (!is_tested).then(|| "nothing can be tested".to_owned()),
        ];
        reasons.into_iter().flatten().collect()
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
            sessions: side.sessions.clone(),
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

    /// Whether it is the same cell, perhaps of another folder.
    fn is_same(&self, other: &CellName) -> bool {
        let key = |it: &Self| {
            (
                it.scenario.clone(),
                it.system.clone(),
                it.tuning,
                it.topology.clone(),
                it.params.clone(),
            )
        };
        key(self) == key(other)
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
