//! The results folder: append-only, resumable, readable without this program.
//!
//! ```text
//! DIR/plan.json        the runs to make, their order and seed
//!     host.json        the machine
//!     recordings/      the trace of each replayed recording, named after its scenario
//!     runs.jsonl       one line per run, appended when the run is over
//!     runs/0007-…/     one run's configuration files, logs, ping.samples.zst, pong.samples.zst,
//!                      observed.json.zst, across hosts exchanges.json.zst, with a load
//!                      load-ping.samples.zst, load-pong.samples.zst
//!     summary.json …   made from the above; can be made again at any time
//! ```
//! `observed.json.zst` is a [`Series`]; folders of earlier versions lack it. A sample file holds
//! `myelin_bench_kit::samples::Record`s of 64 bytes each, compressed with zstd. A run counts once
//! its line is complete, so a crash loses at most the run in progress. `docs/reference/results.md`
//! describes each file for other programs.

mod lines;
mod run;
mod samples;
#[cfg(test)]
mod tests;

use std::fs::{self, File, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow};
use myelin_bench_kit::protocol::Role;
use myelin_bench_kit::trace::Trace;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::input_error::InputError;
use crate::machine::Machine;
use crate::observe::series::Series;
use crate::plan::{self, CellPlan, Plan, RunPlan, SCHEMA};
use crate::recording::trace_file;
use crate::scenario::Scenario;
pub use lines::Lines;
use lines::Origin;
pub use run::{LoadRecord, RunRecord, RunSamples};
use samples::file_of;

/// A results folder.
pub struct Folder {
    path: PathBuf,
    runs: File,
    origin: Origin,
    /// Whether this session has claimed the folder.
    is_ours: bool,
}

impl Folder {
    /// Makes a new folder for `plan`. Fails if the folder exists and is not empty.
    pub fn create(path: &Path, plan: &Plan, host: &Machine) -> Result<Self> {
        let taken = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if taken {
            let text = format!("--out {}: the folder is not empty", path.display());
            return Err(InputError::new(text)
                .remedy("name a new one, or continue this one with --resume")
                .into());
        }
        let make = || -> io::Result<File> {
            fs::create_dir_all(path.join(RUNS))?;
            write_whole(&path.join(PLAN), &to_json(plan))?;
            write_whole(&path.join(HOST), &to_json(host))?;
            write_traces(path, plan)?;
            File::options().create(true).append(true).read(true).open(path.join(LINES))
        };
        let runs = make().map_err(|error| {
            InputError::new(format!("--out {}: {error}", path.display()))
                .remedy("name a folder that can be made and written")
        })?;
        let origin = Origin::new(plan, Some(host.identity.clone()));
        let mut folder = Folder { path: path.into(), runs, origin, is_ours: false };
        folder.claim()?;
        Ok(folder)
    }

    /// Opens a folder to read it or to continue it. A missing or damaged `host.json` does not
    /// prevent that.
    pub fn open(path: &Path) -> Result<(Self, Plan, Result<Machine>)> {
        let plan: Plan = read_json(path, PLAN)?;
        let host = read_json::<Machine>(path, HOST);
        let lines = path.join(LINES);
        // Reading a folder must not need permission to write it.
        let runs = File::options().append(true).read(true).open(&lines);
        let runs = runs.or_else(|_| File::open(&lines)).map_err(|error| missing(&lines, &error))?;
        let origin = Origin::new(&plan, host.as_ref().ok().map(|host| host.identity.clone()));
        Ok((Folder { path: path.into(), runs, origin, is_ours: false }, plan, host))
    }

    /// Locks the folder for this session and cuts off an unfinished last line. The kernel releases
    /// the lock when the process ends, for any reason.
    pub fn claim(&mut self) -> Result<()> {
        if self.runs.try_lock().is_err() {
            let text = format!("{}: another session is using this folder", self.path.display());
            return Err(InputError::new(text).remedy("wait until it has ended").into());
        }
        let text = fs::read(self.path.join(LINES))?;
        let complete = text.iter().rposition(|byte| *byte == b'\n').map_or(0, |at| at + 1);
        if complete < text.len() {
            self.runs.set_len(complete as u64)?;
        }
        self.is_ours = true;
        Ok(())
    }

    /// Whether another session is measuring into this folder.
    pub fn in_progress(&self) -> bool {
        // Opens the file again: a lock taken through `self.runs` would replace a claim.
        let look = || File::open(self.path.join(LINES)).ok()?.try_lock_shared().err();
        !self.is_ours && matches!(look(), Some(TryLockError::WouldBlock))
    }

    /// Path of the folder.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder of one run, or empties it if an interrupted run left one. Returns its path
    /// relative to the results folder.
    pub fn run_directory(&self, run: &RunPlan, cell: &CellPlan) -> io::Result<String> {
        let relative = format!(
            "{RUNS}/{:04}-{}-{}-{}",
            run.order,
            cell.system,
            cell.tuning.name(),
            cell.point(),
        );
        let path = self.path.join(&relative);
        if path.exists() {
            fs::remove_dir_all(&path)?;
        }
        fs::create_dir_all(&path)?;
        Ok(relative)
    }

    /// Stores a run: its samples, what was observed over time, then its line. If the line cannot be
    /// written whole, it is removed again, so that earlier runs stay readable.
    pub fn keep(&mut self, record: &RunRecord, samples: &RunSamples) -> io::Result<()> {
        let directory = self.path.join(&record.directory);
        if record.failure.is_none() {
            let loads = samples.load.iter().map(|load| (LOAD, &**load));
            for (prefix, of) in std::iter::once(("", samples)).chain(loads) {
                let file = |role| directory.join(format!("{prefix}{}", file_of(role)));
                samples::write(&file(Role::Ping), &of.ping)?;
                samples::write(&file(Role::Pong), &of.pong)?;
            }
        }
        if record.failure.is_none() && !samples.exchanges.is_empty() {
            let text = serde_json::to_vec(&samples.exchanges).expect("plain data serialises");
            write_whole(&directory.join(EXCHANGES), &samples::pack(&text)?)?;
        }
        if let Some(series) = record.observation.as_ref().and_then(|seen| seen.series.as_ref()) {
            let text = serde_json::to_vec(series).expect("plain data serialises");
            write_whole(&directory.join(OBSERVED), &samples::pack(&text)?)?;
        }
        let before = self.runs.seek(SeekFrom::End(0))?;
        let mut line = serde_json::to_vec(record).expect("records serialise");
        line.push(b'\n');
        let kept = self.runs.write_all(&line).and_then(|()| self.runs.sync_data());
        if kept.is_err() {
            self.runs.set_len(before)?;
        }
        kept
    }

    /// The runs stored so far.
    pub fn runs(&mut self) -> Result<Lines> {
        let mut bytes = Vec::new();
        self.runs.seek(SeekFrom::Start(0))?;
        self.runs.read_to_end(&mut bytes)?;
        // Bytes that are not UTF-8 make one line unreadable, not the whole file.
        Ok(self.origin.read(&String::from_utf8_lossy(&bytes), &self.path.join(LINES)))
    }

    /// The samples of a stored run.
    pub fn samples(&self, record: &RunRecord) -> Result<RunSamples> {
        let directory = self.path.join(&record.directory);
        let read = |prefix, role| {
            let file = directory.join(format!("{prefix}{}", file_of(role)));
            samples::read(&file).with_context(|| format!("{}", file.display()))
        };
        let read = |prefix| -> Result<RunSamples> {
            let (ping, pong) = (read(prefix, Role::Ping)?, read(prefix, Role::Pong)?);
            Ok(RunSamples { ping, pong, ..RunSamples::default() })
        };
        let load = record.load.as_ref().map(|_| read(LOAD)).transpose()?;
        let exchanges = read_packed(&directory.join(EXCHANGES))?.unwrap_or_default();
        Ok(RunSamples { exchanges, load: load.map(Box::new), ..read("")? })
    }

    /// The path of the trace that the scenario replays.
    pub fn trace_path(&self, scenario: &Scenario) -> PathBuf {
        self.path.join(trace_file(&scenario.name))
    }

    /// The messages that the scenario replays; `None` for other workloads.
    pub fn trace(&self, scenario: &Scenario) -> Result<Option<Trace>> {
        match scenario.workload.replay {
            Some(_) => Ok(Some(Trace::read(&self.trace_path(scenario))?)),
            None => Ok(None),
        }
    }

    /// The observations of a stored run over time; `None` if there are none.
    pub fn series(&self, record: &RunRecord) -> Result<Option<Series>> {
        let path = self.path.join(&record.directory).join(OBSERVED);
        let series: Option<Series> = read_packed(&path)?;
        if series.as_ref().is_some_and(|series| !series.is_sound()) {
            anyhow::bail!("{}: its times are out of order", path.display());
        }
        Ok(series)
    }
}

/// Reads a compressed JSON file of a run; `None` if there is none.
fn read_packed<T: DeserializeOwned>(path: &Path) -> Result<Option<T>> {
    let file = match File::open(path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        opened => opened,
    };
    let read = || -> Result<T> { Ok(serde_json::from_slice(&zstd::decode_all(file?)?)?) };
    read().map(Some).with_context(|| path.display().to_string())
}

fn write_traces(path: &Path, plan: &Plan) -> io::Result<()> {
    for scenario in &plan.scenarios {
        let replay = scenario.workload.replay.as_ref();
        if let Some(trace) = replay.and_then(|replay| replay.trace.as_ref()) {
            let file = path.join(trace_file(&scenario.name));
            fs::create_dir_all(file.parent().unwrap_or(path))?;
            write_whole(&file, &trace.to_bytes())?;
        }
    }
    Ok(())
}

/// Writes a file atomically: it appears whole or not at all.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    make_whole(path, |mut file| file.write_all(bytes))
}

/// Lets `write` make a file, atomically: it appears whole or not at all.
pub fn make_whole<E: From<io::Error>>(
    path: &Path,
    write: impl FnOnce(&File) -> Result<(), E>,
) -> Result<(), E> {
    // Two programs may make the same file at once: a session, and a reader of its folder.
    let mut name = path.file_name().unwrap_or_default().to_owned();
    name.push(format!(".{}.part", std::process::id()));
    let temporary = path.with_file_name(name);
    let make = || {
        let file = File::create(&temporary)?;
        write(&file)?;
        file.sync_data()?;
        Ok(fs::rename(&temporary, path)?)
    };
    let made = make();
    if made.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    made
}

/// Reads a JSON file of the folder, in this layout or an older one.
fn read_json<T: DeserializeOwned>(folder: &Path, name: &str) -> Result<T> {
    let path = folder.join(name);
    let text = fs::read_to_string(&path).map_err(|error| match error.kind() {
        io::ErrorKind::InvalidData => anyhow!(error).context(damaged(&path)),
        _ => missing(&path, &error).into(),
    })?;
    let layout: Versioned = serde_json::from_str(&text).with_context(|| damaged(&path))?;
    anyhow::ensure!(
        (plan::first_schema()..=SCHEMA).contains(&layout.schema),
        "{}: schema {}, but this program reads 1 to {SCHEMA}; use the version of myelin that wrote \
         the folder",
        path.display(),
        layout.schema
    );
    serde_json::from_str(&text).with_context(|| damaged(&path))
}

fn missing(path: &Path, error: &io::Error) -> InputError {
    InputError::new(format!("{}: {error}", path.display()))
        .remedy("name a results folder of `myelin bench run`")
}

fn damaged(path: &Path) -> String {
    format!("{} is damaged or from another version; restore a copy of it", path.display())
}

/// The fields that all layouts of a file share.
#[derive(Deserialize)]
struct Versioned {
    #[serde(default = "plan::first_schema")]
    schema: u32,
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).expect("plain data serialises")
}

const PLAN: &str = "plan.json";
const HOST: &str = "host.json";
const LINES: &str = "runs.jsonl";
const RUNS: &str = "runs";
/// What a folder has beside reports, which are made of it.
pub(crate) const RECORDS: [&str; 5] = [PLAN, HOST, LINES, RUNS, "recordings"];
/// The prefix of the names of a load's files.
const LOAD: &str = "load-";
const OBSERVED: &str = "observed.json.zst";
const EXCHANGES: &str = "exchanges.json.zst";
