//! The results folder: append-only, resumable, readable without this program.
//!
//! ```text
//! DIR/plan.json        what was to be done, in which order, with which seed
//!     host.json        the machine
//!     runs.jsonl       one line per run, appended when the run is over
//!     runs/0007-…/     of one run: configuration files, logs, ping.samples.zst, pong.samples.zst,
//!                      observed.json.zst
//!     summary.json …   made from the above, again at any time
//! ```
//! `observed.json.zst` is a [`Series`]; folders of earlier versions lack it. A sample file is `myelin_bench_kit::samples::Record`s, 64 bytes each, compressed with zstd. A
//! run counts once its line is complete; a crash loses at most the run in progress.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use myelin_bench_kit::protocol::{Done, Role};
use myelin_bench_kit::samples::{RECORD_BYTES, Record};
use serde::{Deserialize, Serialize};

use crate::host::Host;
use crate::input_error::InputError;
use crate::observe::Observation;
use crate::observe::series::Series;
use crate::plan::{CellPlan, Plan, RunPlan};

/// A line of `runs.jsonl`: the facts of one run, nothing derived.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct RunRecord {
    /// Which run of the plan.
    #[serde(flatten)]
    pub plan: RunPlan,
    /// Why it did not come to its end; absent if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Remarks: what a driver or the tuning left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Counts of ping; absent if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<Done>,
    /// Counts of pong; absent if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pong: Option<Done>,
    /// From the start of the later process until both directions matched.
    pub startup_ms: f64,
    /// From the start of the later process until pong had taken a message; of start-ups alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sample_ms: Option<f64>,
    /// From the daemon's start until it answered; of systems with a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon_ms: Option<f64>,
    /// CPUs that ping and pong were pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<[usize; 2]>,
    /// What happened from start to done; absent if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
    /// Folder of the run, relative to the results folder.
    pub directory: String,
}

/// The samples of one run.
#[derive(Clone, Debug, Default)]
pub struct RunSamples {
    /// Ping's records: whole round trips, or publish calls.
    pub ping: Vec<Record>,
    /// Pong's records: of round trips at the index of ping's, all zero where pong took nothing; of
    /// streams and images by id, in the order of taking. None of a publish run.
    pub pong: Vec<Record>,
}

/// A results folder.
pub struct Folder {
    path: PathBuf,
    runs: File,
}

impl Folder {
    /// Makes a new folder for `plan`. An existing one is refused unless it is empty.
    pub fn create(path: &Path, plan: &Plan, host: &Host) -> Result<Self> {
        let taken = fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_some());
        if taken {
            let text = format!("--out {}: the folder is not empty", path.display());
            return Err(InputError::new(text)
                .remedy("name a new one, or go on with it by --resume")
                .into());
        }
        let make = || -> io::Result<File> {
            fs::create_dir_all(path.join(RUNS))?;
            write_whole(&path.join(PLAN), &to_json(plan))?;
            write_whole(&path.join(HOST), &to_json(host))?;
            File::options().create(true).append(true).read(true).open(path.join(LINES))
        };
        let runs = make().map_err(|error| {
            InputError::new(format!("--out {}: {error}", path.display()))
                .remedy("name a folder that can be made and written")
        })?;
        let mut folder = Folder { path: path.into(), runs };
        folder.claim()?;
        Ok(folder)
    }

    /// Opens a folder to read it or to go on with it.
    pub fn open(path: &Path) -> Result<(Self, Plan, Host)> {
        let read = |name: &str| -> Result<String> {
            let file = path.join(name);
            fs::read_to_string(&file).map_err(|error| {
                InputError::new(format!("{}: {error}", file.display()))
                    .remedy("name a results folder of `myelin bench run`")
                    .into()
            })
        };
        let plan = serde_json::from_str(&read(PLAN)?)
            .with_context(|| format!("{}/{PLAN} is damaged", path.display()))?;
        let host = serde_json::from_str(&read(HOST)?)
            .with_context(|| format!("{}/{HOST} is damaged", path.display()))?;
        read(LINES)?;
        let lines = path.join(LINES);
        // To read a folder, no right to write it is needed.
        let runs = File::options().append(true).read(true).open(&lines);
        let runs =
            runs.or_else(|_| File::open(&lines)).with_context(|| lines.display().to_string())?;
        Ok((Folder { path: path.into(), runs }, plan, host))
    }

    /// Takes the folder for this session, until it ends in whatever way, and cuts off a line that
    /// was not finished.
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
        Ok(())
    }

    /// Where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Makes the folder of one run, or empties it if an interrupted run left one; its path
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

    /// Keeps a run: its samples, what was observed over time, then its line. If that fails, the line is taken back, so that
    /// earlier runs stay readable.
    pub fn keep(&mut self, record: &RunRecord, samples: &RunSamples) -> io::Result<()> {
        let directory = self.path.join(&record.directory);
        if record.failure.is_none() {
            write_samples(&directory.join(file_of(Role::Ping)), &samples.ping)?;
            write_samples(&directory.join(file_of(Role::Pong)), &samples.pong)?;
        }
        if let Some(series) = record.observation.as_ref().and_then(|seen| seen.series.as_ref()) {
            let text = serde_json::to_vec(series).expect("plain data serialises");
            write_whole(&directory.join(OBSERVED), &zstd::encode_all(&*text, COMPRESSION)?)?;
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

    /// The runs kept so far, in the order of execution; of a run that was repeated, the last. An
    /// incomplete last line is ignored.
    pub fn runs(&mut self) -> Result<Vec<RunRecord>> {
        let mut text = String::new();
        self.runs.seek(SeekFrom::Start(0))?;
        self.runs.read_to_string(&mut text)?;
        let complete = text.rfind('\n').map_or(0, |at| at + 1);
        let mut runs = BTreeMap::new();
        for (number, line) in text[..complete].lines().enumerate() {
            let run: RunRecord = serde_json::from_str(line).map_err(|error| {
                let place = self.path.join(LINES);
                InputError::new(format!("{}:{}: {error}", place.display(), number + 1))
                    .remedy("delete the line, and measure that run again by --resume")
            })?;
            runs.insert(run.plan.order, run);
        }
        Ok(runs.into_values().collect())
    }

    /// The samples of a kept run.
    pub fn samples(&self, record: &RunRecord) -> Result<RunSamples> {
        let directory = self.path.join(&record.directory);
        let read = |role| {
            let file = directory.join(file_of(role));
            read_samples(&file).with_context(|| format!("{}", file.display()))
        };
        Ok(RunSamples { ping: read(Role::Ping)?, pong: read(Role::Pong)? })
    }

    /// What was observed of a kept run over time; `None` if nothing was.
    pub fn series(&self, record: &RunRecord) -> Result<Option<Series>> {
        let path = self.path.join(&record.directory).join(OBSERVED);
        let file = match File::open(&path) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
            opened => opened,
        };
        let read = || -> Result<Series> {
            let series: Series = serde_json::from_slice(&zstd::decode_all(file?)?)?;
            anyhow::ensure!(series.is_sound(), "its moments are out of order");
            Ok(series)
        };
        read().map(Some).with_context(|| path.display().to_string())
    }
}

/// Writes a file so that it is there whole or not at all.
pub fn write_whole(path: &Path, bytes: &[u8]) -> io::Result<()> {
    let temporary = path.with_extension("part");
    let write = || {
        let mut file = File::create(&temporary)?;
        file.write_all(bytes)?;
        file.sync_data()?;
        fs::rename(&temporary, path)
    };
    let written = write();
    if written.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    written
}

fn to_json(value: &impl Serialize) -> Vec<u8> {
    serde_json::to_vec_pretty(value).expect("plain data serialises")
}

fn file_of(role: Role) -> &'static str {
    match role {
        Role::Ping => "ping.samples.zst",
        _ => "pong.samples.zst",
    }
}

fn write_samples(path: &Path, records: &[Record]) -> io::Result<()> {
    // SAFETY: Record is repr(C) without padding (asserted by its size), so its bytes are all
    // initialised.
    let bytes =
        unsafe { std::slice::from_raw_parts(records.as_ptr().cast::<u8>(), size_of_val(records)) };
    let packed = zstd::encode_all(bytes, COMPRESSION)?;
    write_whole(path, &packed)
}

fn read_samples(path: &Path) -> io::Result<Vec<Record>> {
    let bytes = zstd::decode_all(File::open(path)?)?;
    if !bytes.len().is_multiple_of(RECORD_BYTES) {
        return Err(io::Error::new(io::ErrorKind::InvalidData, "not whole records"));
    }
    let mut records = vec![Record::default(); bytes.len() / RECORD_BYTES];
    // SAFETY: the target has exactly `bytes.len()` bytes, and any bit pattern is a valid Record.
    unsafe {
        std::ptr::copy_nonoverlapping(
            bytes.as_ptr(),
            records.as_mut_ptr().cast::<u8>(),
            bytes.len(),
        );
    }
    Ok(records)
}

const PLAN: &str = "plan.json";
const HOST: &str = "host.json";
const LINES: &str = "runs.jsonl";
const RUNS: &str = "runs";
const OBSERVED: &str = "observed.json.zst";
/// Of zstd; 1 is fast enough to stay out of the way between two runs.
const COMPRESSION: i32 = 1;

#[cfg(test)]
mod tests {
    use super::*;

    fn folder() -> (tempfile::TempDir, Folder) {
        let place = tempfile::tempdir().unwrap();
        let plan = Plan::new(Vec::new(), 1, "test".into());
        let folder = Folder::create(&place.path().join("out"), &plan, &Host::default()).unwrap();
        (place, folder)
    }

    fn record(order: u32) -> RunRecord {
        RunRecord {
            plan: RunPlan { order, cell: 0, repeat: 0 },
            failure: None,
            notes: Vec::new(),
            ping: None,
            pong: None,
            startup_ms: 1.5,
            first_sample_ms: None,
            daemon_ms: None,
            pinned: None,
            observation: None,
            directory: "runs".into(),
        }
    }

    #[test]
    fn what_is_kept_is_read_again() {
        let (_place, mut folder) = folder();
        let one = Record { id: 7, take_return_ns: 99, ..Record::default() };
        let samples = RunSamples { ping: vec![one; 1000], pong: Vec::new() };
        folder.keep(&record(0), &samples).unwrap();
        let (mut again, _, _) = Folder::open(folder.path()).unwrap();
        let runs = again.runs().unwrap();
        assert_eq!(runs.len(), 1);
        assert_eq!(again.samples(&runs[0]).unwrap().ping, samples.ping);
    }

    #[test]
    fn a_series_is_kept_beside_the_line_and_may_be_missing() {
        let (_place, mut folder) = folder();
        let series = Series { begin_ns: 5, cost_percent: 0.25, ..Series::default() };
        let observation = Observation { series: Some(series.clone()), ..Observation::default() };
        folder.keep(&record(0), &RunSamples::default()).unwrap();
        let without = folder.runs().unwrap().remove(0);
        assert_eq!(folder.series(&without).unwrap(), None);
        let seen = RunRecord { observation: Some(observation), ..record(0) };
        folder.keep(&seen, &RunSamples::default()).unwrap();
        let kept = folder.runs().unwrap().remove(0);
        assert_eq!(kept.observation.as_ref().unwrap().series, None);
        assert_eq!(folder.series(&kept).unwrap(), Some(series));
        fs::write(folder.path().join("runs").join(OBSERVED), b"no").unwrap();
        assert!(folder.series(&kept).unwrap_err().to_string().contains(OBSERVED));
    }

    #[test]
    fn an_incomplete_line_is_cut_off() {
        let (_place, mut folder) = folder();
        folder.keep(&record(0), &RunSamples::default()).unwrap();
        folder.runs.write_all(b"{\"order\": 1, \"ce").unwrap();
        assert_eq!(folder.runs().unwrap().len(), 1);
        folder.claim().unwrap();
        folder.keep(&record(1), &RunSamples::default()).unwrap();
        assert_eq!(folder.runs().unwrap().len(), 2);
    }

    #[test]
    fn one_session_at_a_time_goes_on_with_a_folder() {
        let (_place, folder) = folder();
        let (mut second, _, _) = Folder::open(folder.path()).unwrap();
        assert!(second.claim().unwrap_err().to_string().contains("another session"));
        drop(folder);
        second.claim().unwrap();
    }

    #[test]
    fn of_a_run_that_was_repeated_the_last_counts() {
        let (_place, mut folder) = folder();
        let failed = RunRecord { failure: Some("died".into()), ..record(0) };
        folder.keep(&failed, &RunSamples::default()).unwrap();
        folder.keep(&record(0), &RunSamples::default()).unwrap();
        let runs = folder.runs().unwrap();
        assert_eq!(runs.len(), 1);
        assert_eq!(runs[0].failure, None);
    }

    #[test]
    fn a_folder_in_use_is_refused() {
        let (_place, folder) = folder();
        let plan = Plan::new(Vec::new(), 1, String::new());
        let error = Folder::create(folder.path(), &plan, &Host::default()).err().unwrap();
        assert!(error.to_string().contains("not empty"), "{error}");
    }
}
