//! Processes on this host: started by this process, their sample memory mapped by both.

use std::collections::BTreeMap;
use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use myelin_bench_kit::clock;
use myelin_bench_kit::protocol::{Command, Prepare, Role};
use myelin_bench_kit::samples::{Record, SampleFile};

use super::process::{Process, sample_memory};
use super::{Host, ProcessId, ProcessMessage, ProcessSpec, RunOnHost};
use crate::observe::{Observation, Sampler, Snapshot};
use crate::registry;
use crate::tuning::LatencyGuard;

/// This host. When it is dropped, no process of a run is left.
#[derive(Default)]
pub(crate) struct LocalHost {
    run: Option<LocalRun>,
}

struct LocalRun {
    // Dropped from the last to the first: the daemon goes last.
    processes: Vec<Process>,
    samples: BTreeMap<ProcessId, (OwnedFd, Arc<SampleFile>)>,
    messages: Sender<ProcessMessage>,
    directory: PathBuf,
    interface: String,
    observing: Option<Observing>,
    _guard: Option<LatencyGuard>,
}

struct Observing {
    processes: Vec<(String, u32)>,
    sampler: Sampler,
    before: Snapshot,
}

impl Drop for LocalRun {
    fn drop(&mut self) {
        while self.processes.pop().is_some() {}
    }
}

impl LocalRun {
    /// The memory that `id` writes its records to, made when it is first asked for.
    fn memory(&mut self, id: ProcessId, capacity: u64) -> Result<PathBuf, String> {
        if let Some((memory, _)) = self.samples.get(&id) {
            return Ok(path_of(memory));
        }
        let make = || -> Result<(OwnedFd, SampleFile), myelin_bench_kit::Error> {
            let memory = sample_memory()?;
            let file = std::fs::File::from(memory.try_clone()?);
            let mapped = SampleFile::create(&file, capacity)?;
            Ok((memory, mapped))
        };
        let (memory, mapped) = make().map_err(|error| format!("sample memory: {error}"))?;
        let path = path_of(&memory);
        self.samples.insert(id, (memory, Arc::new(mapped)));
        Ok(path)
    }

    fn of(&mut self, role: Role) -> impl Iterator<Item = &mut Process> {
        self.processes.iter_mut().filter(move |process| process.id.role == role)
    }

    fn measuring(&self) -> Vec<(String, u32)> {
        let measures = |process: &&Process| matches!(process.id.role, Role::Ping | Role::Pong);
        let measuring = self.processes.iter().filter(measures);
        let mut all: Vec<(String, u32)> =
            measuring.map(|process| (process.id.to_string(), process.pid())).collect();
        // Pings first, as reports have them.
        all.sort_by_key(|(name, _)| !name.starts_with("ping"));
        all
    }
}

impl LocalHost {
    fn run(&mut self) -> Result<&mut LocalRun, String> {
        self.run.as_mut().ok_or_else(|| "no run has begun".into())
    }
}

impl Host for LocalHost {
    fn begin(&mut self, run: &RunOnHost, messages: Sender<ProcessMessage>) -> Result<(), String> {
        self.end();
        let guard = run.awake.then(LatencyGuard::hold).transpose();
        self.run = Some(LocalRun {
            processes: Vec::new(),
            samples: BTreeMap::new(),
            messages,
            directory: run.directory.clone(),
            interface: run.interface.clone(),
            observing: None,
            _guard: guard.map_err(|error| format!("/dev/cpu_dma_latency: {error}"))?,
        });
        Ok(())
    }

    fn start(&mut self, start: ProcessSpec) -> Result<u64, String> {
        let begin_ns = clock::monotonic_ns();
        let ProcessSpec { id, executable, settings, capacity, pong_capacity, hears, prepare } =
            start;
        let run = self.run()?;
        let pong = ProcessId::first(Role::Pong);
        let own = capacity.map(|capacity| run.memory(id, capacity)).transpose()?;
        let other = pong_capacity.map(|capacity| run.memory(pong, capacity)).transpose()?;
        let known = run.samples.get(&pong).filter(|_| hears);
        let heard = known.map(|(memory, _)| path_of(memory));
        if hears && heard.is_none() {
            return Err(format!("{id} cannot look at what pong has taken on another host"));
        }
        let is_given = |owner: &ProcessId| {
            *owner == id || (*owner == pong && (other.is_some() || heard.is_some()))
        };
        let given = run.samples.iter().filter(|(owner, _)| is_given(owner));
        let given: Vec<&OwnedFd> = given.map(|(_, (memory, _))| memory).collect();
        let log = run.directory.join(format!("{id}.log"));
        let messages = run.messages.clone();
        let mut process = Process::start(&executable, id, settings, &log, &given, messages)
            .map_err(|error| format!("{}: {error}", executable.display()))?;
        let prepare = Prepare {
            samples: own,
            pong_samples: other,
            heard,
            directory: run.directory.clone(),
            ..prepare
        };
        process.send(&Command::Prepare(Box::new(prepare)));
        run.processes.push(process);
        Ok(begin_ns)
    }

    fn send(&mut self, role: Role, command: &Command) -> Result<(), String> {
        self.run()?.of(role).for_each(|process| process.send(command));
        Ok(())
    }

    fn go(&mut self, roles: &[Role], delay: Duration) -> Result<u64, String> {
        let at_ns = clock::monotonic_ns() + delay.as_nanos() as u64;
        for role in roles {
            self.send(*role, &Command::Start { at_ns })?;
        }
        Ok(at_ns)
    }

    fn wait_ended(&mut self, role: Role, limit: Duration) -> Result<(), String> {
        for process in self.run()?.of(role) {
            process.wait(limit);
        }
        Ok(())
    }

    fn ending(&mut self, id: ProcessId) -> Result<String, String> {
        let process = self.run()?.processes.iter_mut().find(|process| process.id == id);
        Ok(process.map(Process::ending).unwrap_or_default())
    }

    fn files(&self) -> Vec<(ProcessId, Arc<SampleFile>)> {
        let samples = self.run.iter().flat_map(|run| &run.samples);
        samples.map(|(id, (_, file))| (*id, Arc::clone(file))).collect()
    }

    fn processes(&self, daemons: &[u32]) -> Vec<(String, u32)> {
        let mut all = self.run.as_ref().map(LocalRun::measuring).unwrap_or_default();
        all.extend(daemons.iter().map(|pid| (daemon_name(*pid), *pid)));
        all
    }

    fn observe(&mut self, daemons: &[u32]) -> Result<(), String> {
        let processes = self.processes(daemons);
        let run = self.run()?;
        let sampler = Sampler::start(processes.clone(), &run.interface);
        let before = Snapshot::take(&processes);
        run.observing = Some(Observing { processes, sampler, before });
        Ok(())
    }

    fn observed(&mut self) -> Result<Observation, String> {
        let run = self.run()?;
        let Some(Observing { processes, sampler, before }) = run.observing.take() else {
            return Err("nothing is observed".into());
        };
        let after = Snapshot::take(&processes);
        Ok(before.until(&after, sampler.stop()))
    }

    fn records(&mut self, id: ProcessId) -> Result<Vec<Record>, String> {
        let file = self.run()?.samples.get(&id).map(|(_, file)| file.records());
        Ok(file.unwrap_or_default())
    }

    fn end(&mut self) {
        self.run = None;
    }

    fn clean(&mut self, executable: &Path) {
        registry::clean(executable);
    }
}

/// As a process that keeps the memory open names it.
fn path_of(memory: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", memory.as_raw_fd()).into()
}

fn daemon_name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "daemon".into(), |name| name.trim().into())
}
