//! `myelin bench export`: the samples of a results folder as one Parquet file, a row for each message
//! and subscriber that took it, for pandas, polars, DuckDB and whatever else reads columns.
//!
//! Parquet, and not Arrow's own file format, for three reasons. The `parquet` crate without its
//! `arrow` feature builds in two thirds of the time that `arrow-ipc` with the crates it needs takes
//! (76 against 117 s of CPU in a release build, zstd's C included, which is needed anyway). Strings
//! that repeat and time stamps that grow take hardly any room, so that the file is about as large as
//! the sample files it comes from. And every tool reads a part of the columns without the rest. Both
//! are Apache's, with its licence.
//!
//! Runs are read one after the other: the memory needed is that of the largest run and of one row
//! group, however many there are, besides what the analysis needs, which says which runs are valid
//! and holds one cell at a time.

mod columns;
mod parquet;

use std::path::PathBuf;

use anyhow::{Context, Result};
use myelin_bench_kit::protocol::Topology;

use crate::analyse::clocks::{self, Clocks};
use crate::analyse::messages::{Measured, Messages};
use crate::input_error::InputError;
use crate::plan::{CellPlan, Plan};
use crate::record::{RunRecord, make_whole};
use crate::scenario::Scenario;
use crate::session;
use crate::summary::Analysis;
use parquet::Sheet;

/// What to export.
#[derive(Clone, Debug, Default)]
pub struct ExportOptions {
    /// The results folder.
    pub directory: PathBuf,
    /// The file to write; `samples.parquet` in the folder by default.
    pub out: Option<PathBuf>,
    /// Patterns of names of cells, `quick-os.futex-default-64B`; all if there are none.
    pub cells: Vec<String>,
}

/// What was exported.
#[derive(Debug)]
pub struct Exported {
    /// The file.
    pub path: PathBuf,
    /// Of all runs, also of those that are not valid.
    pub rows: u64,
    /// Runs that the rows come from.
    pub runs: u64,
    /// What the folder holds, as a report has it.
    pub analysis: Analysis,
}

/// One run, and all that its rows have in common.
struct RunSource<'a> {
    scenario: &'a Scenario,
    cell: &'a CellPlan,
    run: &'a RunRecord,
    /// Whether the run is valid.
    valid: bool,
    /// What the two ends' stamps have to do with each other.
    clocks: &'a Clocks,
}

/// Writes the file, whole or not at all.
pub fn export(request: &ExportOptions) -> Result<Exported> {
    let (mut folder, plan, analysis) = session::open(&request.directory)?;
    let runs = folder.runs()?.runs;
    let chosen = choose(&plan, &request.cells)?;
    let path = request.out.clone().unwrap_or_else(|| request.directory.join("samples.parquet"));
    let is_wanted = |run: &&RunRecord| chosen[run.plan.cell] && run.failure.is_none();
    let mut counts = (0, 0);
    let written = make_whole(&path, |file| {
        let mut sheet = Sheet::new(file)?;
        for run in runs.iter().filter(is_wanted) {
            // What cannot be read is in the analysis, with its remedy.
            let Ok(mut samples) = folder.samples(run) else {
                continue;
            };
            let cell = &plan.cells[run.plan.cell];
            let (scenario, system) = (&plan.scenarios[cell.scenario], plan.system(cell));
            let clocks = match cell.topology {
                Topology::TwoHosts => clocks::apply(&mut samples, &run.keeping),
                _ => Clocks::default(),
            };
            let has_loans = system.is_some_and(|system| system.loans);
            let kind = scenario.workload.kind;
            let measured = Measured {
                crosses_ends: !clocks.are_two || clocks.error_ns.is_some(),
                ..Measured::new(kind, cell.rate_hz.is_some(), has_loans)
            };
            let valid = is_valid(&analysis, run);
            let rows = Messages::of(&samples, measured);
            counts = (counts.0 + rows.all.len() as u64, counts.1 + 1);
            sheet.add(&RunSource { scenario, cell, run, valid, clocks: &clocks }, rows)?;
        }
        sheet.finish()
    });
    written.with_context(|| format!("cannot write {}", path.display()))?;
    Ok(Exported { path, rows: counts.0, runs: counts.1, analysis })
}

fn is_valid(analysis: &Analysis, run: &RunRecord) -> bool {
    let judged = analysis.details.get(run.plan.cell).map(|detail| &detail.runs);
    let mut judged = judged.into_iter().flatten();
    judged.any(|point| point.order == run.plan.order && point.valid)
}

/// Which cells of the plan are wanted.
fn choose(plan: &Plan, patterns: &[String]) -> Result<Vec<bool>> {
    let name = |cell: &CellPlan| cell.name(&plan.scenarios[cell.scenario].name);
    let names: Vec<String> = plan.cells.iter().map(name).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let mut chosen = vec![patterns.is_empty(); names.len()];
    let what = ("cell", "cells are named as the files in the folder's hgrm/ are");
    for pattern in patterns {
        InputError::matching(what, pattern, &names)?.into_iter().for_each(|at| chosen[at] = true);
    }
    Ok(chosen)
}
