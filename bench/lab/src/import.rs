//! `myelin bench import`: traces that applications wrote of their own messages, as a results folder.
//! Every report, comparison and export reads it like a measured one.
//!
//! A file is a run of an application, and each of its topics is a cell. Only sending and taking are
//! known: nothing of the machine, of CPU and memory, or of what happened in between.

#[cfg(test)]
mod tests;
mod trace;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chrono::{DateTime, SecondsFormat, Utc};
use myelin_bench_kit::protocol::{Done, System, Transport, Wait};

use crate::analyse::analyse;
use crate::input_error::InputError;
use crate::machine::Machine;
use crate::plan::{CellPlan, Imported, Plan, RunPlan, UNKNOWN_BYTES, file_name};
use crate::record::{Folder, RunRecord, RunSamples};
use crate::scenario::{
    Kind, Reliability, Scenario, Selection, Topology, Tuning, TuningChoice, Workload,
};
use crate::session::default_folder;
use crate::summary::Analysis;
use trace::TopicTrace;

/// What to import.
#[derive(Clone, Debug, Default)]
pub struct ImportOptions {
    /// CSV files, each of one run.
    pub files: Vec<PathBuf>,
    /// The name of the application; `None`: each file is named after itself.
    pub name: Option<String>,
    /// The results folder; by default one is made under `results/`.
    pub out: Option<PathBuf>,
    /// The command that does this, for the report.
    pub command: String,
}

/// Reads the files and writes a results folder; returns its path and its analysis. The caller writes
/// the reports. Nothing is written before all files have been read.
///
/// # Errors
/// A file that is not such a trace: file, line, column, and what to do about it.
pub fn import(options: &ImportOptions) -> Result<(PathBuf, Analysis)> {
    let mut planned = Planned::new(options.command.clone());
    for path in &options.files {
        planned.add(path, &system_of(path, options.name.as_deref())?)?;
    }
    let Planned { mut plan, traces, first_ns } = planned;
    plan.begun = Some(begun(first_ns).to_rfc3339_opts(SecondsFormat::Secs, true));
    let path = options.out.clone().unwrap_or_else(|| default_folder(&plan));
    let machine = Machine::unknown("machine not recorded");
    let mut folder = Folder::create(&path, &plan, &machine)?;
    let kept = keep(&mut folder, &plan, traces);
    if kept.is_err() {
        // It was empty or not there.
        let _ = std::fs::remove_dir_all(&path);
    }
    kept.with_context(|| {
        format!("{}: make room, or name another folder by --out", path.display())
    })?;
    let analysis = analyse(&mut folder, &plan, machine, true)?;
    Ok((path, analysis))
}

/// The plan that would have made the traces.
struct Planned {
    plan: Plan,
    /// One for each run of the plan.
    traces: Vec<TopicTrace>,
    /// When the first message of all was sent.
    first_ns: u64,
}

impl Planned {
    fn new(command: String) -> Self {
        let mut plan = Plan::new(Vec::new(), 0, command);
        plan.scenarios.push(scenario());
        Planned { plan, traces: Vec::new(), first_ns: u64::MAX }
    }

    fn add(&mut self, path: &Path, system: &str) -> Result<(), InputError> {
        let file = trace::read(path)?;
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        match self.plan.systems.iter_mut().find(|known| known.name == system) {
            Some(known) => known.about += &format!(", {name}"),
            None => {
                let about = format!("messages of {name}");
                self.plan.systems.push(System::new(
                    system,
                    &about,
                    "",
                    Wait::None,
                    Transport::None,
                ));
            }
        }
        if !file.ignored.is_empty() {
            self.plan.notes.push(format!("{name}: not read: {}", file.ignored.join(", ")));
        }
        for topic in file.topics {
            self.first_ns = self.first_ns.min(topic.first_ns());
            let cell = self.cell(system, &topic)?;
            let repeat = self.plan.runs.iter().filter(|run| run.cell == cell).count() as u32;
            let order = self.plan.runs.len() as u32;
            self.plan.runs.push(RunPlan { order, cell, repeat });
            self.traces.push(topic);
        }
        Ok(())
    }

    /// The cell of a topic, which is made for its first run.
    fn cell(&mut self, system: &str, topic: &TopicTrace) -> Result<usize, InputError> {
        let imported = Imported { numbered: topic.is_numbered, knows_lost: topic.knows_lost };
        let payload_bytes = topic.one_size().unwrap_or(UNKNOWN_BYTES);
        let key = (system, &topic.name, topic.subscribers);
        let cells = self.plan.cells.iter_mut();
        let own = |it: &CellPlan| (it.system.as_str(), &it.module, it.subscribers) == key;
        if let Some((index, known)) = cells.enumerate().find(|(_, it)| own(it)) {
            if known.payload_bytes != payload_bytes {
                known.payload_bytes = UNKNOWN_BYTES;
            }
            known.imported = known.imported.map(|before| Imported {
                numbered: before.numbered && imported.numbered,
                knows_lost: before.knows_lost && imported.knows_lost,
            });
            return Ok(index);
        }
        self.plan.cells.push(CellPlan {
            scenario: 0,
            system: system.to_owned(),
            tuning: Tuning::Default,
            topology: Topology::TwoProcesses,
            payload_bytes,
            rate_hz: None,
            subscribers: topic.subscribers,
            frame: None,
            arrivals: None,
            publishers: 1,
            topics: 1,
            reliability: Reliability::default(),
            module: topic.name.clone(),
            load: None,
            imported: Some(imported),
        });
        self.apart()?;
        Ok(self.plan.cells.len() - 1)
    }

    /// Whether the names of all topics stay apart as names of files.
    fn apart(&self) -> Result<(), InputError> {
        let mut known: BTreeMap<String, &str> = BTreeMap::new();
        for topic in self.plan.cells.iter().filter_map(|cell| cell.module.as_deref()) {
            let other = known.insert(file_name(topic), topic);
            if let Some(other) = other.filter(|other| *other != topic) {
                let text = format!("topic: `{other}` and `{topic}` have the same name in files");
                return Err(InputError::new(text).remedy("rename one of them"));
            }
        }
        Ok(())
    }
}

fn keep(folder: &mut Folder, plan: &Plan, traces: Vec<TopicTrace>) -> std::io::Result<()> {
    for (run, topic) in plan.runs.iter().zip(traces) {
        let directory = folder.run_directory(run, &plan.cells[run.cell])?;
        let [begin_ns, end_ns] = topic.span_ns();
        let ping = Done { sent: topic.sent, begin_ns, end_ns, ..Done::default() };
        let pong = Done {
            received: topic.pong.len() as u64,
            duplicates: topic.duplicates,
            out_of_order: topic.out_of_order,
            ..Done::default()
        };
        let record = RunRecord {
            plan: *run,
            notes: topic.notes(),
            ping: Some(ping),
            pong: Some(pong),
            directory,
            ..RunRecord::default()
        };
        let samples = RunSamples { ping: topic.ping, pong: topic.pong, ..RunSamples::default() };
        folder.keep(&record, &samples)?;
    }
    Ok(())
}

fn scenario() -> Scenario {
    Scenario {
        name: "trace".into(),
        about: "messages of applications, imported from their own traces".into(),
        workload: Workload {
            kind: Kind::Stream,
            rate_hz: vec![None],
            warmup_messages: 0,
            ..Workload::default()
        },
        plan: Selection {
            systems: Vec::new(),
            tunings: vec![Tuning::Default],
            topology: vec![Topology::TwoProcesses],
            runs: 1,
            precision: None,
        },
        tuning: TuningChoice::default(),
        network: None,
        options: BTreeMap::new(),
        source: Default::default(),
        is_built_in: false,
    }
}

/// The name of the application in reports.
fn system_of(path: &Path, name: Option<&str>) -> Result<String, InputError> {
    let is_plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '.' | '-' | '_');
    let is_name = |name: &str| {
        (1..=NAME_MAX).contains(&name.len())
            && name.chars().all(is_plain)
            && !name.starts_with(['.', '-'])
    };
    if let Some(name) = name {
        return match is_name(name) {
            true => Ok(name.to_owned()),
            false => Err(InputError::new(format!("--name {name:?}")).remedy(format!(
                "use up to {NAME_MAX} letters, digits, `.`, `-` and `_`, a letter or digit first"
            ))),
        };
    }
    let stem = path.file_stem().unwrap_or_default().to_string_lossy();
    let plain = stem.chars().map(|it| if is_plain(it) { it } else { '-' });
    let name: String = plain.skip_while(|it| matches!(it, '.' | '-')).take(NAME_MAX).collect();
    Ok(if name.is_empty() { "application".to_owned() } else { name })
}

/// When the messages were sent, if their clock is one of calendar time; otherwise now.
fn begun(first_ns: u64) -> DateTime<Utc> {
    let now = Utc::now();
    let sent = i64::try_from(first_ns).map(DateTime::from_timestamp_nanos);
    sent.ok().filter(|sent| first_ns >= CALENDAR_NS_MIN && *sent <= now).unwrap_or(now)
}

const NAME_MAX: usize = 64;
/// The year 2001. No clock that counts from the start of a machine is that late.
const CALENDAR_NS_MIN: u64 = 1_000_000_000_000_000_000;
