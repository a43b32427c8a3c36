//! A session of `myelin bench run`: from the user's options to a results folder with reports.

mod across;
mod measure;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use anyhow::{Context, Result, ensure};
use myelin_bench_kit::protocol::Transport;

use crate::analyse::analyse;
use crate::ftrace::KernelTrace;
use crate::host::LocalHost;
use crate::host::hosts::Hosts;
pub use crate::host::hosts::HostsChoice;
use crate::input_error::InputError;
use crate::lists::unmeasured;
use crate::live::Trigger;
use crate::machine::{Identity, Machine};
use crate::plan::size::Durations;
use crate::plan::{self, Plan};
use crate::progress::Progress;
pub use crate::progress::View;
use crate::record::Folder;
use crate::recording;
use crate::registry::{Registry, SystemDriver};
use crate::root::Root;
use crate::scenario::{Recording, Scenario, Tuning, TuningChoice};
use crate::shell;
use crate::stderr::print_line;
use crate::summary::{self, Analysis, Summary};
use crate::tuning::{self, Cpus};
use measure::Measuring;

/// The user's options.
#[derive(Clone, Debug, Default)]
pub struct RunOptions {
    /// Names of built-in scenarios, or files.
    pub scenarios: Vec<String>,
    /// A scenario that has no file, instead of scenarios, and the command that makes it.
    pub given: Option<(Scenario, String)>,
    /// A recording to replay over all systems, instead of scenarios, and the limit of its duration
    /// in seconds.
    pub from: Option<(Recording, Option<f64>)>,
    /// Patterns that replace the scenarios' systems.
    pub systems: Vec<String>,
    /// Replaces the scenarios' tunings.
    pub tunings: Vec<Tuning>,
    /// Replaces the scenarios' number of runs: exactly this many, however wide the intervals are.
    pub runs: Option<u32>,
    /// Shortens every scenario.
    pub quick: bool,
    /// The results folder; by default one is made under `results/`.
    pub out: Option<PathBuf>,
    /// Continues this folder instead of making a new one.
    pub resume: Option<PathBuf>,
    /// Seed of the order; random if absent.
    pub seed: Option<u64>,
    /// The two hosts of scenarios across hosts; by default two namespaces of this host.
    pub hosts: Option<HostsChoice>,
    /// A message of a longer latency, in nanoseconds, ends the session; the kernel traces until then,
    /// if it may.
    pub trace_on_ns: Option<u64>,
    /// How progress is shown.
    pub view: View,
    /// Whether an interruption ends the run in progress early and keeps its figures, instead of
    /// discarding it.
    pub ends_early: bool,
}

/// The result of a session.
pub struct Finished {
    /// The results folder.
    pub folder: PathBuf,
    /// The analysis of the folder.
    pub analysis: Analysis,
    /// Whether the user interrupted the session.
    pub interrupted: bool,
    /// The limit of [`RunOptions::trace_on_ns`], and the message that exceeded it, if one did.
    pub trigger: Option<Arc<Trigger>>,
}

/// Makes the runs until `interrupted` is set, records and analyses them. The caller writes the reports.
pub fn run(options: &RunOptions, interrupted: Arc<AtomicBool>) -> Result<Finished> {
    let registry = Registry::discover();
    for broken in &registry.broken {
        print_line(format_args!("driver left out: {broken}"));
    }
    let (mut folder, plan, machine, hosts) = match &options.resume {
        Some(path) => resume(path, &registry)?,
        None => {
            let (plan, mut hosts) = make_plan(options, &registry)?;
            let mut machine = Machine::read();
            if let Some(hosts) = &mut hosts {
                machine.others = hosts.others().map_err(InputError::new)?;
            }
            let path = options.out.clone().unwrap_or_else(|| default_folder(&plan));
            (Folder::create(&path, &plan, &machine)?, plan, machine, hosts)
        }
    };
    let trigger = options.trace_on_ns.map(|limit_ns| {
        let trace = KernelTrace::start(&Root::machine());
        if let Err(missing) = &trace {
            print_line(format_args!("note: the kernel traces nothing: {missing}"));
        }
        Arc::new(Trigger::new(limit_ns, trace.ok(), Arc::clone(&interrupted)))
    });
    print_line(plan.size());
    for warm_up in plan.warm_ups() {
        print_line(warm_up);
    }
    let unmeasured = unmeasured(plan.systems.iter().map(|it| (&*it.name, it.missing.as_deref())));
    for (systems, reason) in unmeasured {
        print_line(format_args!("note: {systems} cannot be measured: {reason}"));
    }
    for note in plan.notes.iter().chain(&machine.disturbances()) {
        print_line(format_args!("note: {note}"));
    }
    let (systems, here) = (registry.entries(), Box::new(LocalHost::default()));
    let machines = (machine, hosts);
    let progress = Progress::new(Durations::new(&plan), options.view, trigger.clone());
    let shown = (progress, options.ends_early);
    let measuring =
        Measuring::new(&mut folder, &plan, systems, machines, here, &interrupted, shown);
    let machine = measuring.finish()?;
    let analysis = analyse(&mut folder, &plan, machine, true)?;
    Ok(Finished {
        folder: folder.path().into(),
        analysis,
        interrupted: interrupted.load(Ordering::Relaxed),
        trigger,
    })
}

/// Opens a folder to continue it. It must be from these machines. Failed runs are repeated.
fn resume(path: &Path, registry: &Registry) -> Result<(Folder, Plan, Machine, Option<Hosts>)> {
    let (mut folder, plan, machine) = Folder::open(path)?;
    let machine = machine?;
    if plan.is_imported() {
        let text = format!("--resume {}: it has imported traces, no runs", path.display());
        return Err(InputError::new(text)
            .remedy("import them again, all into a new folder")
            .into());
    }
    folder.claim()?;
    let is_same = |begun: &Identity, now: &Identity| -> Result<(), InputError> {
        if !begun.differs(now) {
            return Ok(());
        }
        let path = path.display();
        let text = format!(
            "--resume {path}: it was started on another machine or kernel: {begun}; here: \
                     {now}"
        );
        Err(InputError::new(text).remedy(
            "figures of two machines must not be mixed; start a new \
                                          session",
        ))
    };
    is_same(&machine.identity, &Identity::read(&Root::machine()))?;
    let Some(choice) = &plan.hosts else {
        return Ok((folder, plan, machine, None));
    };
    let planned =
        |entry: &&SystemDriver| plan.systems.iter().any(|it| it.name == entry.system.name);
    let drivers = across::drivers_of(registry.entries().iter().filter(planned));
    let mut hosts = Hosts::reach(choice.clone(), drivers).map_err(InputError::new)?;
    let others = hosts.others().map_err(InputError::new)?;
    ensure!(
        others.len() == machine.others.len(),
        "--resume: it was started on other hosts; start \
                                                   a new session"
    );
    for (begun, now) in machine.others.iter().zip(&others) {
        is_same(&begun.host.identity, &now.host.identity)?;
    }
    Ok((folder, plan, machine, Some(hosts)))
}

/// Analyses the intact part of a results folder: [`Summary::damage`] lists the rest.
pub fn read(path: &Path) -> Result<Analysis> {
    open(path, true).map(|(.., analysis)| analysis)
}

/// Like [`read`], also returns the folder and its plan. Unless `is_plotted`, without the details that
/// only plots and rows per second need.
pub(crate) fn open(path: &Path, is_plotted: bool) -> Result<(Folder, Plan, Analysis)> {
    let (mut folder, plan, machine) = Folder::open(path)?;
    let (machine, damage) = match machine {
        Ok(machine) => (machine, None),
        Err(error) => {
            let earlier = read_earlier(path).map(|earlier| earlier.summary.host);
            let text = format!("{error:#}; the machine is read from summary.json, if it exists");
            (earlier.unwrap_or_else(|_| Machine::unknown("unknown machine")), Some(text))
        }
    };
    let mut analysis = analyse(&mut folder, &plan, machine, is_plotted)?;
    analysis.summary.damage.extend(damage);
    Ok((folder, plan, analysis))
}

/// The last derived figures of a folder whose plan or list of runs is lost. They have no data for
/// plots.
pub fn read_earlier(path: &Path) -> Result<Analysis> {
    let file = path.join("summary.json");
    let text = std::fs::read_to_string(&file).with_context(|| file.display().to_string())?;
    let summary: Summary =
        serde_json::from_str(&text).with_context(|| file.display().to_string())?;
    let (found, here) = (summary.schema, summary::SCHEMA);
    ensure!(found == here, "{}: schema {found}, but this program reads {here}", file.display());
    Ok(Analysis { summary, details: Vec::new() })
}

fn make_plan(options: &RunOptions, registry: &Registry) -> Result<(Plan, Option<Hosts>)> {
    if options.scenarios.is_empty() && options.from.is_none() && options.given.is_none() {
        return Err(InputError::new("no scenario given")
            .remedy("for instance `myelin bench run quick`; `myelin bench list scenarios`")
            .into());
    }
    let mut notes = Vec::new();
    let mut chosen = Vec::new();
    let recorded =
        options.from.iter().map(|(from, limit_s)| Scenario::of_recording(from, *limit_s));
    let named = options.scenarios.iter().map(|name| Scenario::load(name));
    let given = options.given.iter().map(|(scenario, _)| Ok(scenario.clone()));
    for scenario in recorded.chain(given).chain(named) {
        let mut scenario = scenario?;
        if options.quick {
            scenario.apply_quick();
        }
        if !options.tunings.is_empty() {
            scenario.plan.tunings.clone_from(&options.tunings);
        }
        if let Some(runs) = options.runs {
            (scenario.plan.runs, scenario.plan.precision) = (runs, None);
        }
        notes.extend(recording::load(&mut scenario)?);
        let mut entries = if options.systems.is_empty() {
            let mut entries = registry.select(&scenario, &mut notes)?;
            if options.from.is_some() {
                entries.retain(|entry| entry.system.transport != Transport::None);
            }
            entries
        } else {
            registry.matching(&options.systems)?
        };
        notes.extend(plan::leave_out_unsupported(&scenario, &mut entries));
        plan::check(&scenario, &entries)?;
        let are_real = options.hosts.as_ref().is_some_and(HostsChoice::are_real);
        // Other machines check their CPUs when they are reached.
        if !(are_real && scenario.plan.is_across_hosts()) {
            check_cpus(&scenario)?;
            let here = |tuning, choice: &TuningChoice| Ok(tuning::unavailable(tuning, choice));
            drop_unavailable_tunings(&mut scenario, &mut notes, here)?;
        }
        chosen.push((scenario, entries));
    }
    let hosts = across::reach(options.hosts.as_ref(), &mut chosen, &mut notes)?;
    let seed = options.seed.unwrap_or_else(|| rand::random_range(0..1_000_000));
    let mut plan = Plan::new(chosen, seed, command(options, seed));
    plan.notes = notes;
    plan.begun = Some(chrono::Utc::now().to_rfc3339_opts(chrono::SecondsFormat::Secs, true));
    plan.commit = commit();
    plan.hosts = hosts.as_ref().map(|hosts| hosts.choice().clone());
    if plan.runs.is_empty() {
        let missing = (plan.systems.iter())
            .filter_map(|system| Some(format!("{}: {}", system.name, system.missing.as_ref()?)));
        let reasons: Vec<String> = missing.chain(plan.notes.iter().cloned()).collect();
        anyhow::bail!("nothing to run: {}", reasons.join("; "));
    }
    Ok((plan, hosts))
}

/// Whether the CPUs that a scenario names exist.
fn check_cpus(scenario: &Scenario) -> Result<()> {
    let choice = &scenario.tuning;
    let wants_cpus = scenario.plan.tunings.iter().any(|tuning| *tuning != Tuning::Default);
    if wants_cpus && (choice.ping_cpu.is_some() || choice.pong_cpu.is_some()) {
        Cpus::choose(choice)
            .map_err(|error| error.at(&scenario.source, scenario.source.place("tuning")))?;
    }
    Ok(())
}

/// Leaves out tunings that lack permission or that this machine does not support, with a note.
fn drop_unavailable_tunings(
    scenario: &mut Scenario,
    notes: &mut Vec<String>,
    mut unavailable: impl FnMut(Tuning, &TuningChoice) -> Result<Option<String>, String>,
) -> Result<()> {
    let mut left = Vec::new();
    for tuning in std::mem::take(&mut scenario.plan.tunings) {
        let reason = unavailable(tuning, &scenario.tuning).map_err(InputError::new)?;
        if let Some(reason) = &reason {
            let note = format!("`{}` left out: {reason}", tuning.name());
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        left.extend(reason.is_none().then_some(tuning));
    }
    scenario.plan.tunings = left;
    if scenario.plan.tunings.is_empty() {
        anyhow::bail!("{}: no tuning can be used: {}", scenario.name, notes.join("; "));
    }
    Ok(())
}

fn command(options: &RunOptions, seed: u64) -> String {
    if let Some((_, command)) = &options.given {
        return command.clone();
    }
    let mut words = vec!["myelin bench run".to_string()];
    words.extend(options.scenarios.iter().map(|scenario| shell::quoted(scenario).into_owned()));
    words.extend(options.from.iter().flat_map(|(from, limit_s)| from_words(from, *limit_s)));
    words.extend(options.systems.iter().map(|system| format!("--system '{system}'")));
    words.extend(options.tunings.iter().map(|tuning| format!("--tuning {}", tuning.name())));
    words.extend(options.runs.map(|runs| format!("--runs {runs}")));
    words.extend(options.quick.then(|| "--quick".to_string()));
    words.extend(options.hosts.iter().map(|hosts| format!("--hosts {hosts}")));
    words.push(format!("--seed {seed}"));
    words.join(" ")
}

/// The options that name a recording.
fn from_words(from: &Recording, limit_s: Option<f64>) -> Vec<String> {
    let mut words = vec![format!("--from {}", shell::quoted(&from.file))];
    words.extend(from.topics.iter().map(|topic| format!("--topic {}", shell::quoted(topic))));
    words.extend((from.start_s > 0.0).then(|| format!("--start {}s", from.start_s)));
    words.extend(from.end_s.map(|end_s| format!("--end {end_s}s")));
    words.extend((from.speed != 1.0).then(|| format!("--speed {}", from.speed)));
    words.extend(limit_s.map(|limit_s| format!("--duration {limit_s}s")));
    words
}

/// The state of the repository that this was started in, which is most often that of the measured
/// program.
fn commit() -> Option<String> {
    let mut git = std::process::Command::new("git");
    git.args(["describe", "--always", "--dirty", "--tags", "--abbrev=12"]);
    let output = git.stderr(std::process::Stdio::null()).output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    Some(text.trim().to_owned()).filter(|it| output.status.success() && !it.is_empty())
}

pub(crate) fn default_folder(plan: &Plan) -> PathBuf {
    let names: Vec<&str> = plan.scenarios.iter().map(|scenario| scenario.name.as_str()).collect();
    let now = chrono::Utc::now().format("%Y%m%d-%H%M%S");
    Path::new("results").join(format!("{now}-{}", names.join("+")))
}
