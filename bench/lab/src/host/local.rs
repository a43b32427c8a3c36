//! Processes on this host: this process starts them, and both sides map their sample memory.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{self, Child, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::mpsc::Sender;
use std::time::Duration;

use myelin_bench_kit::clock;
use myelin_bench_kit::protocol::{Command, Prepare, Role};
use myelin_bench_kit::samples::{Record, SampleFile};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal};

use super::{Host, ProcessId, ProcessMessage, ProcessSpec, RunOnHost};
use crate::cgroup::Throttling;
use crate::observe::{Observation, SAMPLES_NAME, Sampler, Snapshot};
use crate::registry;
use crate::registry::wait_for;
use crate::root::Root;
use crate::tuning::{LatencyGuard, Settings, check};

/// This host. Dropping it ends all processes of a run.
#[derive(Default)]
pub(crate) struct LocalHost {
    run: Option<LocalRun>,
}

struct LocalRun {
    // Dropped from the last to the first, so that the daemon ends last.
    processes: Vec<Process>,
    samples: BTreeMap<ProcessId, (OwnedFd, Arc<SampleFile>)>,
    messages: Sender<ProcessMessage>,
    directory: PathBuf,
    interface: String,
    observing: Option<Observing>,
    /// Counts before the start. The processes are in the cgroups of this one.
    throttling: Option<Throttling>,
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
    /// The path of the memory for the records of `id`, which is made on first use.
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

    fn measuring(&self) -> Vec<(String, u32)> {
        let measures = |process: &&Process| {
            matches!(process.id.role, Role::Ping | Role::Pong) && !process.id.is_load
        };
        let measuring = self.processes.iter().filter(measures);
        let mut all: Vec<(String, u32)> =
            measuring.map(|process| (process.id.to_string(), process.pid())).collect();
        // Pings first, as in reports.
        all.sort_by_key(|(name, _)| !name.starts_with("ping"));
        all
    }
}

impl LocalHost {
    /// Where other processes of this user can open the records of `id`.
    pub(crate) fn records_path(&self, id: ProcessId) -> Option<PathBuf> {
        let (memory, _) = self.run.as_ref()?.samples.get(&id)?;
        Some(format!("/proc/{}/fd/{}", process::id(), memory.as_raw_fd()).into())
    }

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
            throttling: Throttling::read(&Root::machine()),
            _guard: guard.map_err(|error| format!("/dev/cpu_dma_latency: {error}"))?,
        });
        Ok(())
    }

    fn start(&mut self, start: ProcessSpec) -> Result<u64, String> {
        let begin_ns = clock::monotonic_ns();
        let ProcessSpec {
            id,
            executable,
            settings,
            capacity,
            pong_capacity,
            reads_taken_counter,
            prepare,
        } = start;
        let run = self.run()?;
        let pong = ProcessId::first(Role::Pong);
        let own = capacity.map(|capacity| run.memory(id, capacity)).transpose()?;
        let other = pong_capacity.map(|capacity| run.memory(pong, capacity)).transpose()?;
        let known = run.samples.get(&pong).filter(|_| reads_taken_counter);
        let taken_counter = known.map(|(memory, _)| path_of(memory));
        if reads_taken_counter && taken_counter.is_none() {
            return Err(format!("{id} cannot see what pong took on another host"));
        }
        let is_given = |owner: &ProcessId| {
            *owner == id || (*owner == pong && (other.is_some() || taken_counter.is_some()))
        };
        let given = run.samples.iter().filter(|(owner, _)| is_given(owner));
        let given: Vec<&OwnedFd> = given.map(|(_, (memory, _))| memory).collect();
        // The configuration files of the load have the same names.
        let mut directory = run.directory.clone();
        if id.is_load {
            directory.push("load");
            fs::create_dir_all(&directory)
                .map_err(|error| format!("{}: {error}", directory.display()))?;
        }
        let log = run.directory.join(format!("{id}.log"));
        let messages = run.messages.clone();
        let mut process = Process::start(&executable, id, settings, &log, &given, messages)
            .map_err(|error| format!("{}: {error}", executable.display()))?;
        let prepare =
            Prepare { samples: own, pong_samples: other, taken_counter, directory, ..prepare };
        process.send(&Command::Prepare(Box::new(prepare)));
        run.processes.push(process);
        Ok(begin_ns)
    }

    fn send(&mut self, role: Role, command: &Command) -> Result<(), String> {
        let processes = self.run()?.processes.iter_mut();
        processes.filter(|process| process.id.role == role).for_each(|it| it.send(command));
        Ok(())
    }

    fn go(&mut self, roles: &[Role], delay: Duration) -> Result<u64, String> {
        let at_ns = clock::monotonic_ns() + delay.as_nanos() as u64;
        for role in roles {
            self.send(*role, &Command::Start { at_ns })?;
        }
        Ok(at_ns)
    }

    fn ended(&mut self, id: ProcessId, limit: Duration) -> Result<Option<String>, String> {
        let process = self.run()?.processes.iter_mut().find(|process| process.id == id);
        Ok(process.and_then(|it| wait_for(&mut it.process, limit)).map(describe))
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
        let throttling = run.throttling.zip(Throttling::read(&Root::machine()));
        let throttling = throttling.map(|(before, after)| before.until(after));
        Ok(Observation { throttling, ..before.until(&after, sampler.stop()) })
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

/// The path of the memory for other processes, through the file descriptor of this one.
fn path_of(memory: &OwnedFd) -> PathBuf {
    format!("/proc/self/fd/{}", memory.as_raw_fd()).into()
}

fn daemon_name(pid: u32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm"))
        .map_or_else(|_| "daemon".into(), |name| name.trim().into())
}

/// One driver process: starts it, sends it commands, and kills it when dropped.
struct Process {
    process: Child,
    pub id: ProcessId,
}

impl Process {
    /// Starts `executable` for `id`. Its output lines go to `messages`, its standard error to
    /// `log`. The child keeps each of `samples` open.
    fn start(
        executable: &Path,
        id: ProcessId,
        settings: Settings,
        log: &Path,
        samples: &[&OwnedFd],
        messages: Sender<ProcessMessage>,
    ) -> std::io::Result<Self> {
        let mut command = process::Command::new(executable);
        command.args(["run", &id.to_string()]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(log)?).process_group(0);
        settings.apply_to(&mut command);
        let inherited: Vec<_> = samples.iter().map(|samples| samples.as_raw_fd()).collect();
        // A daemon's supervisor must clean up when the lab dies, which it notices by the end of its
        // input.
        let dies_with_lab = id.role != Role::Daemon;
        // SAFETY: only async-signal-safe system calls between fork and exec.
        unsafe {
            command.pre_exec(move || {
                if dies_with_lab {
                    libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL);
                }
                for &descriptor in &inherited {
                    check(libc::fcntl(descriptor, libc::F_SETFD, 0))?;
                }
                Ok(())
            });
        }
        let mut process = command.spawn()?;
        let output = BufReader::new(process.stdout.take().expect("piped"));
        std::thread::spawn(move || {
            for line in output.lines().map_while(Result::ok) {
                let event =
                    serde_json::from_str(&line).map(|event| ProcessMessage::Event(id, event));
                let _ = messages.send(event.unwrap_or(ProcessMessage::Nonsense(id, line)));
            }
            let _ = messages.send(ProcessMessage::Closed(id));
        });
        Ok(Process { process, id })
    }

    fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends a command. A dead process is noticed by its closed output, not here.
    fn send(&mut self, command: &Command) {
        let line = serde_json::to_string(command).expect("commands serialise");
        if let Some(input) = self.process.stdin.as_mut() {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }
}

pub(super) fn describe(status: ExitStatus) -> String {
    match (status.signal(), status.code()) {
        (Some(signal), _) => format!("was killed by signal {signal}"),
        (None, code) => format!("ended with exit status {}", code.unwrap_or(-1)),
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.process.stdin.take());
        let patience = if self.id.role == Role::Daemon { DAEMON_LIMIT } else { Duration::ZERO };
        if wait_for(&mut self.process, patience).is_some() {
            return;
        }
        if let Some(group) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            // The group may have ended already.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = self.process.wait();
    }
}

/// Anonymous memory for samples: without a name nothing can be left behind.
pub(super) fn sample_memory() -> std::io::Result<OwnedFd> {
    Ok(rustix::fs::memfd_create(SAMPLES_NAME, MemfdFlags::CLOEXEC)?)
}

/// How long a daemon's supervisor may take to stop and clean.
const DAEMON_LIMIT: Duration = Duration::from_secs(10);
