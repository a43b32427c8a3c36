//! One driver process: started, spoken to, and gone for certain when dropped.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::mpsc::Sender;
use std::time::Duration;

use myelin_bench_kit::protocol::{self, Role};
use rustix::fs::MemfdFlags;
use rustix::process::{Pid, Signal};

use super::{ProcessId, ProcessMessage, role_name};
use crate::observe::SAMPLES_NAME;
use crate::registry::wait_for;
use crate::tuning::{Settings, check};

pub(super) struct Process {
    process: Child,
    pub id: ProcessId,
}

impl Process {
    /// Starts `executable` for `id`. What it says goes to `messages`, its standard error to `log`.
    /// Each of `samples` stays open in the child.
    pub fn start(
        executable: &Path,
        id: ProcessId,
        settings: Settings,
        log: &Path,
        samples: &[&OwnedFd],
        messages: Sender<ProcessMessage>,
    ) -> std::io::Result<Self> {
        let mut command = Command::new(executable);
        command.args(["run", role_name(id.role)]).stdin(Stdio::piped()).stdout(Stdio::piped());
        command.stderr(File::create(log)?).process_group(0);
        settings.apply_to(&mut command);
        let inherited: Vec<_> = samples.iter().map(|samples| samples.as_raw_fd()).collect();
        // A daemon's supervisor has cleaning to do when the lab dies; the end of its input tells it.
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

    pub fn pid(&self) -> u32 {
        self.process.id()
    }

    /// Sends a command. A process that is gone shows by its closed output, not here.
    pub fn send(&mut self, command: &protocol::Command) {
        let line = serde_json::to_string(command).expect("commands serialise");
        if let Some(input) = self.process.stdin.as_mut() {
            let _ = writeln!(input, "{line}").and_then(|()| input.flush());
        }
    }

    /// Waits until it has ended, at most `limit`.
    pub fn wait(&mut self, limit: Duration) -> Option<ExitStatus> {
        wait_for(&mut self.process, limit)
    }

    pub fn ending(&mut self) -> String {
        self.wait(END_LIMIT).map_or_else(|| "closed its output and goes on".into(), describe)
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
        if self.wait(patience).is_some() {
            return;
        }
        if let Some(group) = i32::try_from(self.pid()).ok().and_then(Pid::from_raw) {
            // The group may be gone by now.
            let _ = rustix::process::kill_process_group(group, Signal::KILL);
        }
        let _ = self.process.wait();
    }
}

/// Anonymous memory for samples: no name, nothing to leave behind.
pub(super) fn sample_memory() -> std::io::Result<OwnedFd> {
    Ok(rustix::fs::memfd_create(SAMPLES_NAME, MemfdFlags::CLOEXEC)?)
}

/// How long a process whose output has ended may take to end itself.
const END_LIMIT: Duration = Duration::from_millis(500);
/// How long a daemon's supervisor may take to stop and clean.
const DAEMON_LIMIT: Duration = Duration::from_secs(10);
