//! The runs of a session: unfinished ones of the plan, then further blocks as long as intervals are
//! too wide.

use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Instant;

use anyhow::{Context, Result};

use super::across::drivers_of;
use crate::analyse::{alone, is_narrow};
use crate::host::Host;
use crate::host::hosts::Hosts;
use crate::input_error::InputError;
use crate::machine::Machine;
use crate::plan::{Plan, RunPlan};
use crate::progress::{Progress, Title};
use crate::record::{Folder, RunRecord, RunSamples};
use crate::registry::SystemDriver;
use crate::run::execute::execute;
use crate::run::{Failure, LoadSpec, RunSpec, tuning_notes};
use crate::scenario::{Topology, Tuning};
use crate::shell;
use crate::summary::Cell;
use crate::tuning::Cpus;

/// The state of measuring.
pub(super) struct Measuring<'a> {
    folder: &'a mut Folder,
    plan: &'a Plan,
    systems: &'a [SystemDriver],
    machine: Machine,
    /// This host, for runs on one host.
    here: Box<dyn Host>,
    hosts: Option<Hosts>,
    interrupted: &'a AtomicBool,
    progress: Progress,
    ends_early: bool,
    /// Cells whose interval is narrow enough; it does not change without further runs.
    narrow: BTreeSet<usize>,
}

impl<'a> Measuring<'a> {
    /// Continues from the contents of `folder`.
    pub(super) fn new(
        folder: &'a mut Folder,
        plan: &'a Plan,
        systems: &'a [SystemDriver],
        (machine, hosts): (Machine, Option<Hosts>),
        mut here: Box<dyn Host>,
        interrupted: &'a AtomicBool,
        (progress, ends_early): (Progress, bool),
    ) -> Self {
        // A killed session may have left segments and daemons' files behind.
        let planned =
            |entry: &&SystemDriver| plan.cells.iter().any(|cell| cell.system == entry.system.name);
        let drivers = drivers_of(systems.iter().filter(planned));
        drivers.iter().for_each(|driver| here.clean(driver));
        let narrow = BTreeSet::new();
        Measuring {
            folder,
            plan,
            systems,
            machine,
            here,
            hosts,
            interrupted,
            progress,
            ends_early,
            narrow,
        }
    }

    /// Measures until nothing is left to do or the user interrupts.
    pub(super) fn finish(mut self) -> Result<Machine> {
        let mut block = self.unfinished()?;
        while self.make(&block)? {
            block = self.further()?;
            if block.is_empty() {
                break;
            }
            let (wide, all) = (block.len(), self.plan.cells.len());
            self.progress.say(&format!(
                "{wide} of {all} cells have an interval wider than requested: another block of \
                 {wide} runs"
            ));
            self.progress.add(block.iter().map(|run| run.cell));
        }
        self.progress.end();
        Ok(self.machine)
    }

    /// The runs of the plan and of further blocks that failed, lost their samples, or were never
    /// made.
    fn unfinished(&mut self) -> Result<Vec<RunPlan>> {
        let records = self.folder.runs()?.runs;
        let folder = &*self.folder;
        let is_kept =
            |record: &&RunRecord| record.failure.is_none() && folder.samples(record).is_ok();
        let finished: Vec<&RunRecord> = records.iter().filter(is_kept).collect();
        let orders: BTreeSet<u32> = finished.iter().map(|record| record.plan.order).collect();
        for record in &finished {
            self.progress.made_before(record.plan.cell, seconds_of(record));
        }
        let beyond = records.iter().map(|record| record.plan);
        let beyond = beyond.filter(|run| run.order as usize >= self.plan.runs.len());
        let all = self.plan.runs.iter().copied().chain(beyond);
        let open: Vec<RunPlan> = all.filter(|run| !orders.contains(&run.order)).collect();
        self.progress.add(open.iter().map(|run| run.cell));
        Ok(open)
    }

    /// The next block beyond the plan.
    fn further(&mut self) -> Result<Vec<RunPlan>> {
        if self.plan.scenarios.iter().all(|scenario| scenario.plan.precision.is_none()) {
            return Ok(Vec::new());
        }
        let records = self.folder.runs()?.runs;
        for cell in 0..self.plan.cells.len() {
            let is_known = self.narrow.contains(&cell);
            if !is_known && is_narrow(self.folder, self.plan, cell, &records, &self.machine) {
                self.narrow.insert(cell);
            }
        }
        let made: Vec<RunPlan> = records.iter().map(|record| record.plan).collect();
        Ok(self.plan.further(&made, |cell| self.narrow.contains(&cell)))
    }

    /// Makes the runs, one after the other; false if the user interrupted.
    fn make(&mut self, runs: &[RunPlan]) -> Result<bool> {
        for run in runs {
            if self.interrupted.load(Ordering::Relaxed) {
                return Ok(false);
            }
            let begin = Instant::now();
            let Some((record, samples)) = self.one_run(run)? else {
                return Ok(false);
            };
            if let Some(failure) = &record.failure {
                let what = self.plan.cells[run.cell].title();
                self.progress.say(&format!("run {} of {what}: {failure}", run.repeat + 1));
            }
            self.folder.keep(&record, &samples).with_context(|| {
                format!(
                    "run {} could not be saved in {}; the {} runs before it are intact: make room \
                     and continue with: {}",
                    run.order,
                    self.folder.path().display(),
                    run.order,
                    shell::resume(self.folder.path())
                )
            })?;
            let alone = self.progress.is_live().then(|| self.alone(record, &samples)).flatten();
            self.progress.finish_run(run.cell, begin.elapsed().as_secs_f64(), alone.as_ref());
        }
        Ok(true)
    }

    /// The figures of a run for the live view; prints why it is invalid, if it is. `None` if it
    /// failed.
    fn alone(&mut self, record: RunRecord, samples: &RunSamples) -> Option<Cell> {
        let (run, has_failed) = (record.plan, record.failure.is_some());
        let cell = alone(self.plan, record, samples, &self.machine)?;
        // The reason of a failure was printed before.
        if !cell.valid && !has_failed {
            let what = self.plan.cells[run.cell].title();
            let reasons = cell.invalid_reasons.iter().map(|reason| {
                let reason = reason.strip_prefix(&format!("run {}: ", run.repeat + 1));
                reason.unwrap_or_default()
            });
            let reasons = reasons.collect::<Vec<_>>().join("; ");
            self.progress.say(&format!("run {} of {what} is not valid: {reasons}", run.repeat + 1));
        }
        (!has_failed).then_some(cell)
    }

    /// One run and its samples; `None` if it was interrupted.
    fn one_run(&mut self, run: &RunPlan) -> Result<Option<(RunRecord, RunSamples)>> {
        let cell = &self.plan.cells[run.cell];
        let scenario = &self.plan.scenarios[cell.scenario];
        let entry = entry_of(self.systems, &cell.system)?;
        let directory = self.folder.run_directory(run, cell).with_context(|| {
            let (path, resume) = (self.folder.path(), shell::resume(self.folder.path()));
            format!(
                "{}: earlier runs are intact: make room and continue with: {resume}",
                path.display()
            )
        })?;
        let tuned = cell.tuning != Tuning::Default;
        let cpus = match &mut self.hosts {
            Some(hosts) if hosts.choice().are_real() && cell.topology == Topology::TwoHosts => {
                tuned.then(|| hosts.cpus(&scenario.tuning)).transpose().map_err(InputError::new)?
            }
            _ => tuned.then(|| Cpus::choose(&scenario.tuning)).transpose()?,
        };
        let mut prepare = self.plan.prepare(cell, run);
        if let Some(recording) = &mut prepare.recording {
            recording.trace = std::path::absolute(self.folder.trace_path(scenario))?;
        }
        let load = self
            .plan
            .prepare_load(cell, run)
            .map(|(prepare, capacity)| LoadSpec { prepare, capacity: capacity.min(RECORDS_MAX) });
        let mut spec = RunSpec {
            entry,
            prepare,
            tuning: cell.tuning,
            cpus,
            priority: scenario.tuning.priority,
            directory: std::path::absolute(self.folder.path())?.join(&directory),
            capacity: scenario.workload.records_at_most(cell.rate_hz).min(RECORDS_MAX),
            load,
            across: None,
            interrupted: self.interrupted,
            ends_early: self.ends_early,
        };
        let title = Title {
            scenario: scenario.name.clone(),
            cell: cell.title(),
            run: run.repeat + 1,
            // Further blocks exceed the planned number.
            runs: scenario.plan.runs.max(run.repeat + 1),
        };
        self.progress.begin_run(run.cell, title);
        let mut record = RunRecord {
            plan: *run,
            notes: tuning_notes(&spec),
            pinned: cpus.map(|cpus| [cpus.ping, cpus.pong]),
            host: Some(self.machine.identity.clone()),
            directory,
            ..RunRecord::default()
        };
        let link = scenario.network.clone().unwrap_or_default();
        let hosts: Result<Vec<&mut dyn Host>, String> = match &mut self.hosts {
            _ if cell.topology != Topology::TwoHosts => Ok(vec![self.here.as_mut()]),
            None => Err("two hosts were reachable when the plan was made".into()),
            Some(hosts) => {
                let are_real = hosts.choice().are_real();
                let ready = hosts.ready(&link, run.order);
                if let (true, Err(reason)) = (are_real, &ready) {
                    // All further runs would fail in the same way.
                    let resume = shell::resume(self.folder.path());
                    anyhow::bail!("{reason}; earlier runs are intact: continue with: {resume}");
                }
                ready.map(|(hosts, across)| {
                    spec.across = Some(across);
                    hosts
                })
            }
        };
        let outcome = hosts
            .map_err(Failure::Run)
            .and_then(|mut hosts| execute(&spec, &mut record, &mut hosts, &mut self.progress));
        let samples = match outcome {
            Ok(samples) => samples,
            Err(Failure::Interrupted) => return Ok(None),
            Err(Failure::Run(reason) | Failure::Gone(reason)) => {
                record.failure = Some(reason);
                RunSamples::default()
            }
        };
        if samples.ping.len() as u64 == RECORDS_MAX {
            record.notes.push(format!("stopped after {RECORDS_MAX} records, the limit"));
        }
        Ok(Some((record, samples)))
    }
}

/// Duration of a run, as far as its record says.
fn seconds_of(record: &RunRecord) -> f64 {
    let observed_ns = record.observation.as_ref().map_or(0, |observed| observed.wall_ns);
    record.startup_ms.unwrap_or(0.0) * 1e-3 + observed_ns as f64 * 1e-9 + KEEPING_S
}

fn entry_of<'a>(systems: &'a [SystemDriver], name: &str) -> Result<&'a SystemDriver> {
    let is_it = |entry: &&SystemDriver| entry.system.name == name && entry.system.missing.is_none();
    let found = systems.iter().find(is_it);
    found.with_context(|| {
        format!(
            "{name} was installed when the plan was made, but it is not any \
                                   more"
        )
    })
}

/// Time to stop processes and store samples, which records do not include.
const KEEPING_S: f64 = 0.2;
/// Limit of the records in one run: 256 MB on each side.
const RECORDS_MAX: u64 = 4_000_000;

#[cfg(test)]
mod tests;
