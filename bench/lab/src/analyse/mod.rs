//! From a results folder to an [`Analysis`]: judge each run, pool the valid ones of each cell.

mod cell;
mod clock_figures;
pub(crate) mod clocks;
pub mod distribution;
mod judge;
mod judged;
mod link;
mod load;
mod measures;
pub(crate) mod messages;
mod notes;
mod observed;
mod part;
mod processes;
mod recorded;
mod slowest;
mod stages;
pub mod steady;
mod timeline;
mod validity;
mod workloads;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::path::Path;

use anyhow::Result;

use judge::Recorded;
use judged::{Case, JudgedRun};
use myelin_bench_kit::protocol::System;

use crate::cgroup::Throttling;
use crate::machine::Machine;
use crate::plan::{Plan, RunPlan};
use crate::record::{Folder, Lines, RunRecord, RunSamples};
use crate::scenario::{Kind, Scenario, Touch};
use crate::summary::{Analysis, Cell, SCHEMA, Summary, SystemInfo};

/// Analyses what a folder has of its plan; if `is_plotted`, with the details that only plots and rows
/// per second need.
pub fn analyse(
    folder: &mut Folder,
    plan: &Plan,
    host: Machine,
    is_plotted: bool,
) -> Result<Analysis> {
    let Lines { runs: records, mut damage } = folder.runs()?;
    let mut summary = Summary {
        schema: SCHEMA,
        host,
        command: plan.command.clone(),
        systems: systems(plan),
        cells: Vec::new(),
        notes: plan.notes.clone(),
        damage: Vec::new(),
    };
    summary.host.steal_percent = mean_steal(&records);
    let observations = records.iter().filter_map(|record| record.observation.as_ref());
    summary.host.throttling = observations.filter_map(|it| it.throttling).reduce(Throttling::and);
    summary.notes.extend(summary.host.disturbances());
    summary.notes.extend(plan.scenarios.iter().filter_map(touch_remark));
    let planned = records.iter().filter(|record| (record.plan.order as usize) < plan.runs.len());
    let (done, all) = (planned.count(), plan.runs.len());
    if folder.in_progress() {
        summary.notes.push(format!("in progress: {done} of {all} runs are done"));
    } else if done < all {
        summary.notes.push(format!("incomplete: {done} of {all} runs were done"));
    }
    let made: Vec<RunPlan> = records.iter().map(|record| record.plan).collect();
    let mut by_cell: BTreeMap<usize, Vec<RunRecord>> = BTreeMap::new();
    for record in records {
        by_cell.entry(record.plan.cell).or_default().push(record);
    }
    let mut traces = Vec::new();
    for scenario in &plan.scenarios {
        traces.push(folder.trace(scenario).unwrap_or_else(|error| {
            damage.push(format!("{error:#}: figures of its topics are left out"));
            None
        }));
    }
    let (mut cells, mut details, mut writes) = (Vec::new(), Vec::new(), Vec::new());
    for index in 0..plan.cells.len() {
        let Some(case) = Case::of(plan, index, &summary.host) else {
            continue;
        };
        let records = by_cell.remove(&index).unwrap_or_default();
        let configuration = configuration_of(folder, &records);
        let recorded = read(folder, case, records, &mut damage);
        let runs = judge(&recorded, case);
        let is_publish = case.kind() == Kind::Publish;
        writes.push(if is_publish { workloads::medians(&judged::used(&runs)) } else { Vec::new() });
        let (mut cell, detail) = cell::pool_in_detail(case, &runs, configuration, is_plotted);
        details.push(detail);
        let (replay, trace) = (&case.scenario.workload.replay, &traces[case.plan.scenario]);
        if let (Some(replay), Some(trace)) = (replay, trace) {
            let used = judged::used(&runs);
            cell.by_topic = recorded::topics(replay, trace, &used, case.plan.subscribers);
        }
        cells.push(cell);
    }
    workloads::compare_subscribers(&mut cells, &writes);
    summary.cells = cells;
    let is_narrow = |cell: usize| {
        let repeats = summary.cells.get(cell).and_then(|cell| cell.repeats);
        repeats.is_none_or(|repeats| repeats.is_narrow)
    };
    if done == all && !folder.in_progress() && !plan.further(&made, is_narrow).is_empty() {
        let text = "incomplete: intervals are wider than requested and more runs are allowed; \
                    --resume continues";
        summary.notes.push(text.into());
    }
    summary.damage = damage;
    Ok(Analysis { summary, details })
}

/// Whether the runs of a cell so far determine its median as narrowly as its scenario asks; true if
/// it does not ask.
pub fn is_narrow(
    folder: &Folder,
    plan: &Plan,
    cell: usize,
    records: &[RunRecord],
    host: &Machine,
) -> bool {
    let Some(case) = Case::of(plan, cell, host) else {
        return true;
    };
    let own = records.iter().filter(|record| record.plan.cell == cell).cloned().collect();
    let recorded = read(folder, case, own, &mut Vec::new());
    let runs = judge(&recorded, case);
    judged::repeats(&runs, case.scenario).is_none_or(|repeats| repeats.is_narrow)
}

/// The report's view of a single run; `None` if its system is unknown.
pub fn alone(plan: &Plan, record: RunRecord, samples: &RunSamples, host: &Machine) -> Option<Cell> {
    let case = Case::of(plan, record.plan.cell, host)?;
    let recorded = Recorded::new(record, Cow::Borrowed(samples), case);
    Some(cell::pool(case, &[judge::run(&recorded, case)]))
}

/// Reads the runs of a cell; unreadable files are added to `damage`.
fn read(
    folder: &Folder,
    case: Case<'_>,
    records: Vec<RunRecord>,
    damage: &mut Vec<String>,
) -> Vec<Recorded<'static>> {
    let one = |mut record: RunRecord| {
        let mut samples = RunSamples::default();
        if record.failure.is_none() {
            samples = folder.samples(&record).unwrap_or_else(|error| {
                let reason = format!("{error:#}; --resume measures it again");
                damage.push(reason.clone());
                record.failure = Some(reason);
                RunSamples::default()
            });
            damage.extend(observed::attach(&mut record, folder));
        }
        Recorded::new(record, Cow::Owned(samples), case)
    };
    records.into_iter().map(one).collect()
}

fn judge<'a>(recorded: &'a [Recorded<'_>], case: Case<'_>) -> Vec<JudgedRun<'a>> {
    recorded.iter().map(|run| judge::run(run, case)).collect()
}

/// Remark on what a scenario leaves unwritten and unchecked, so that its figures are not overrated.
fn touch_remark(scenario: &Scenario) -> Option<String> {
    (scenario.workload.touch == Touch::Header).then(|| {
        format!(
            "{}: touch = \"header\": after the warm-up only the 8-byte sequence number is written \
             into a loan, and only it and the length are checked; the payload is neither written \
             nor read, but systems without loans copy all of it",
            scenario.name
        )
    })
}

fn systems(plan: &Plan) -> Vec<SystemInfo> {
    let info = |system: &System| SystemInfo {
        name: system.name.clone(),
        about: system.about.clone(),
        version: system.version.clone(),
        wait: system.wait,
        transport: system.transport,
        topology: system.topology,
        loans: system.loans,
        floor: system.floor,
        missing: system.missing.clone(),
    };
    plan.systems.iter().map(info).collect()
}

fn mean_steal(records: &[RunRecord]) -> Option<f64> {
    let steal: Vec<f64> = records
        .iter()
        .filter_map(|record| Some(record.observation.as_ref()?.steal_percent))
        .collect();
    (!steal.is_empty()).then(|| steal.iter().sum::<f64>() / steal.len() as f64)
}

/// The configuration of the first run that has one.
fn configuration_of(folder: &Folder, records: &[RunRecord]) -> BTreeMap<String, String> {
    let of = |record: &RunRecord| configuration_files(&folder.path().join(&record.directory));
    records.iter().map(of).find(|files| !files.is_empty()).unwrap_or_default()
}

/// The configuration a driver has written for a run.
fn configuration_files(directory: &Path) -> BTreeMap<String, String> {
    let mut files = BTreeMap::new();
    for entry in std::fs::read_dir(directory).into_iter().flatten().flatten() {
        let path = entry.path();
        let kind = path.extension().and_then(|kind| kind.to_str()).unwrap_or("");
        if !matches!(kind, "xml" | "toml" | "json") {
            continue;
        }
        if let Ok(text) = std::fs::read_to_string(&path) {
            files.insert(entry.file_name().to_string_lossy().into_owned(), text);
        }
    }
    files
}
