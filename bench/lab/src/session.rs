//! A session of `myelin bench run`: from what the user asked for to a results folder with reports.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};

use crate::analyse::analyse;
use crate::host::Host;
use crate::input_error::InputError;
use crate::plan::{self, Plan, RunPlan};
use crate::progress::Progress;
use crate::record::{Folder, RunRecord, RunSamples};
use crate::registry::{Entry, Registry};
use crate::run::execute::{Failure, Outcome, execute};
use crate::run::order::{Order, tuning_notes};
use crate::run::tuning::{self, Cpus};
use crate::scenario::{Scenario, Tuning};
use crate::summary::Analysis;

/// What the user asked for.
#[derive(Clone, Debug, Default)]
pub struct Request {
    /// Names of built-in scenarios, or files.
    pub scenarios: Vec<String>,
    /// Patterns; replace the scenarios' systems.
    pub systems: Vec<String>,
    /// Replaces the scenarios' tunings.
    pub tunings: Vec<Tuning>,
    /// Replaces the scenarios' number of runs.
    pub runs: Option<u32>,
    /// Cuts every scenario down.
    pub quick: bool,
    /// The results folder; by default one is made under `results/`.
    pub out: Option<PathBuf>,
    /// Goes on with this folder instead of starting anew.
    pub resume: Option<PathBuf>,
    /// Of the order; drawn from the time if absent.
    pub seed: Option<u64>,
}

/// How a session ended.
pub struct Finished {
    /// The results folder.
    pub folder: PathBuf,
    /// What it holds.
    pub analysis: Analysis,
    /// Whether the user interrupted it.
    pub interrupted: bool,
}

/// Runs, records and analyses. Reports are the caller's to write.
pub fn run(request: &Request) -> Result<Finished> {
    let interrupted = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM, SIGHUP] {
        signal_hook::flag::register(signal, Arc::clone(&interrupted))?;
    }
    let registry = Registry::discover();
    for broken in &registry.broken {
        eprintln!("driver left out: {broken}");
    }
    let (mut folder, plan, host) = match &request.resume {
        Some(path) => resume(path)?,
        None => {
            let plan = make_plan(request, &registry)?;
            let host = Host::read();
            let path = request.out.clone().unwrap_or_else(|| default_folder(&plan));
            (Folder::create(&path, &plan, &host)?, plan, host)
        }
    };
    eprintln!("{}", plan.size());
    for note in plan.notes.iter().chain(&host.disturbances()) {
        eprintln!("note: {note}");
    }
    execute_plan(&mut folder, &plan, &registry, &interrupted)?;
    let analysis = analyse(&mut folder, &plan, host)?;
    Ok(Finished {
        folder: folder.path().into(),
        analysis,
        interrupted: interrupted.load(Ordering::Relaxed),
    })
}

/// A folder to go on with: of this machine, and of nobody else. Runs that failed are repeated.
fn resume(path: &Path) -> Result<(Folder, Plan, Host)> {
    let (mut folder, plan, host) = Folder::open(path)?;
    folder.claim()?;
    let now = Host::read();
    let same = |of: fn(&Host) -> (&str, &str, u32)| of(&host) == of(&now);
    if !same(|host| (&host.cpu_model, &host.kernel, host.cpus)) {
        let text = format!("--resume {}: begun on another machine or kernel", path.display());
        return Err(InputError::new(text)
            .remedy("figures of two machines are not pooled; start anew")
            .into());
    }
    Ok((folder, plan, host))
}

/// Reads a results folder again.
pub fn read(path: &Path) -> Result<Analysis> {
    let (mut folder, plan, host) = Folder::open(path)?;
    analyse(&mut folder, &plan, host)
}

fn make_plan(request: &Request, registry: &Registry) -> Result<Plan> {
    if request.scenarios.is_empty() {
        return Err(InputError::new("no scenario given")
            .remedy("for instance `myelin bench run quick`; `myelin bench list scenarios`")
            .into());
    }
    let mut notes = Vec::new();
    let mut chosen = Vec::new();
    for name in &request.scenarios {
        let mut scenario = Scenario::load(name)?;
        if request.quick {
            scenario.hasten();
        }
        if !request.tunings.is_empty() {
            scenario.plan.tunings.clone_from(&request.tunings);
        }
        scenario.plan.runs = request.runs.unwrap_or(scenario.plan.runs);
        let mut entries = match request.systems.is_empty() {
            true => registry.select(&scenario, &mut notes)?,
            false => registry.matching(&request.systems)?,
        };
        notes.extend(plan::leave_out_unsupported(&scenario, &mut entries));
        plan::check(&scenario, &entries)?;
        drop_unavailable_tunings(&mut scenario, &mut notes)?;
        chosen.push((scenario, entries));
    }
    let seed = request.seed.unwrap_or_else(seed_from_time);
    let mut plan = Plan::new(chosen, seed, command(request, seed));
    plan.notes = notes;
    if plan.runs.is_empty() {
        let missing = (plan.systems.iter())
            .filter_map(|system| Some(format!("{}: {}", system.name, system.missing.as_ref()?)));
        let reasons: Vec<String> = missing.chain(plan.notes.iter().cloned()).collect();
        anyhow::bail!("nothing to run: {}", reasons.join("; "));
    }
    Ok(plan)
}

/// Tunings this process has no right to are left out, and said so.
fn drop_unavailable_tunings(scenario: &mut Scenario, notes: &mut Vec<String>) -> Result<()> {
    let choice = &scenario.tuning;
    let wants_cpus = scenario.plan.tunings.iter().any(|tuning| *tuning != Tuning::Default);
    if wants_cpus && (choice.ping_cpu.is_some() || choice.pong_cpu.is_some()) {
        Cpus::choose(choice)
            .map_err(|error| error.at(&scenario.source, scenario.source.find("_cpu")))?;
    }
    scenario.plan.tunings.retain(|tuning| {
        let reason = tuning::unavailable(*tuning, choice);
        if let Some(reason) = &reason {
            let note = format!("`{}` left out: {reason}", tuning.name());
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        reason.is_none()
    });
    if scenario.plan.tunings.is_empty() {
        anyhow::bail!("{}: no tuning is left: {}", scenario.name, notes.join("; "));
    }
    Ok(())
}

fn execute_plan(
    folder: &mut Folder,
    plan: &Plan,
    registry: &Registry,
    interrupted: &AtomicBool,
) -> Result<()> {
    let records = folder.runs()?;
    let is_kept = |record: &&RunRecord| record.failure.is_none() && folder.samples(record).is_ok();
    let finished: Vec<RunPlan> = records.iter().filter(is_kept).map(|record| record.plan).collect();
    let open: Vec<&RunPlan> = plan.runs.iter().filter(|run| !finished.contains(run)).collect();
    clean_up_after_others(plan, registry);
    let mut progress = Progress::new(plan.runs.len(), finished.len());
    for run in open {
        if interrupted.load(Ordering::Relaxed) {
            break;
        }
        let Some((record, samples)) =
            one_run(folder, plan, run, registry, interrupted, &mut progress)?
        else {
            break;
        };
        if let Some(failure) = &record.failure {
            let cell = &plan.cells[run.cell];
            let what = format!("{} {} {}", cell.system, cell.tuning.name(), cell.point());
            progress.complain(&format!("run {} of {what}: {failure}", run.repeat + 1));
        }
        folder.keep(&record, &samples).with_context(|| {
            format!(
                "run {} could not be kept in {}; the {} before it are intact: make room and go \
                 on with `myelin bench run --resume {}`",
                run.order,
                folder.path().display(),
                run.order,
                folder.path().display()
            )
        })?;
        progress.finish_run();
    }
    progress.end();
    Ok(())
}

/// A session that was killed may have left segments and daemons' files behind.
fn clean_up_after_others(plan: &Plan, registry: &Registry) {
    let planned = |entry: &&Entry| {
        let name = &entry.system.name;
        plan.cells.iter().any(|cell| cell.system == *name)
    };
    let mut cleaned = Vec::new();
    for entry in registry.entries().iter().filter(planned) {
        if !cleaned.contains(&&entry.executable) {
            entry.clean();
            cleaned.push(&entry.executable);
        }
    }
}

/// One run and its samples; `None` if it was interrupted.
fn one_run(
    folder: &Folder,
    plan: &Plan,
    run: &RunPlan,
    registry: &Registry,
    interrupted: &AtomicBool,
    progress: &mut Progress,
) -> Result<Option<(RunRecord, RunSamples)>> {
    let cell = &plan.cells[run.cell];
    let scenario = &plan.scenarios[cell.scenario];
    let entry = entry_of(registry, &cell.system)?;
    let directory = folder.run_directory(run, cell).with_context(|| {
        let path = folder.path().display();
        format!("{path}: earlier runs are intact: make room and go on with --resume {path}")
    })?;
    let tuned = cell.tuning != Tuning::Default;
    let cpus = tuned.then(|| Cpus::choose(&scenario.tuning)).transpose()?;
    let order = Order {
        entry,
        prepare: plan.prepare(cell, run),
        tuning: cell.tuning,
        cpus,
        priority: scenario.tuning.priority,
        directory: std::path::absolute(folder.path())?.join(&directory),
        capacity: scenario.workload.records_at_most(cell.rate_hz).min(RECORDS_MAX),
        interrupted,
    };
    progress.begin_run(&cell.system, cell.tuning.name(), &cell.point());
    let mut record = RunRecord {
        plan: *run,
        failure: None,
        notes: tuning_notes(&order),
        ping: None,
        pong: None,
        startup_ms: 0.0,
        first_sample_ms: None,
        daemon_ms: None,
        pinned: cpus.map(|cpus| [cpus.ping, cpus.pong]),
        observation: None,
        directory,
    };
    match execute(&order, &mut |part| progress.within_run(part)) {
        Err(Failure::Interrupted) => Ok(None),
        Err(Failure::Run(reason)) => {
            record.failure = Some(reason);
            Ok(Some((record, RunSamples::default())))
        }
        Ok(outcome) => {
            let samples = fill(&mut record, outcome);
            if samples.ping.len() as u64 == RECORDS_MAX {
                record
                    .notes
                    .push(format!("ended after {RECORDS_MAX} records, all there is room for"));
            }
            Ok(Some((record, samples)))
        }
    }
}

fn fill(record: &mut RunRecord, outcome: Outcome) -> RunSamples {
    record.notes.extend(outcome.notes);
    record.ping = Some(outcome.ping);
    record.pong = Some(outcome.pong);
    record.startup_ms = outcome.startup.matched_ms;
    record.first_sample_ms = outcome.startup.first_sample_ms;
    record.daemon_ms = outcome.startup.daemon_ms;
    record.observation = Some(outcome.observation);
    outcome.samples
}

fn entry_of<'a>(registry: &'a Registry, system: &str) -> Result<&'a Entry> {
    registry
        .entries()
        .iter()
        .find(|entry| entry.system.name == system && entry.system.missing.is_none())
        .with_context(|| format!("{system} was there when the plan was made and is gone"))
}

fn command(request: &Request, seed: u64) -> String {
    let mut words = vec!["myelin bench run".to_string()];
    words.extend(request.scenarios.iter().cloned());
    words.extend(request.systems.iter().map(|system| format!("--system '{system}'")));
    words.extend(request.tunings.iter().map(|tuning| format!("--tuning {}", tuning.name())));
    words.extend(request.runs.map(|runs| format!("--runs {runs}")));
    words.extend(request.quick.then(|| "--quick".to_string()));
    words.push(format!("--seed {seed}"));
    words.join(" ")
}

fn default_folder(plan: &Plan) -> PathBuf {
    let names: Vec<&str> = plan.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    Path::new("results").join(format!("{}-{}", timestamp(), names.join("+")))
}

/// UTC, for instance `20261121-013000`.
fn timestamp() -> String {
    let now = rustix::time::clock_gettime(rustix::time::ClockId::Realtime).tv_sec;
    // SAFETY: a tm is plain data; gmtime_r fills it and keeps no pointer.
    let time = unsafe {
        let mut time: libc::tm = std::mem::zeroed();
        libc::gmtime_r(&now, &mut time);
        time
    };
    format!(
        "{:04}{:02}{:02}-{:02}{:02}{:02}",
        time.tm_year + 1900,
        time.tm_mon + 1,
        time.tm_mday,
        time.tm_hour,
        time.tm_min,
        time.tm_sec
    )
}

fn seed_from_time() -> u64 {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    now.as_nanos() as u64 % 1_000_000
}

/// Room for records in one run: 256 MB at each side.
const RECORDS_MAX: u64 = 4_000_000;
