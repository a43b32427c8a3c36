//! Where the processes of a run live: this host, or another one that an agent stands for.
//!
//! ```text
//! lab ── LocalHost                                 one host: the lab starts drivers itself
//!  ├── RemoteHost ── bytes ── agent ── LocalHost   host of ping
//!  └── RemoteHost ── bytes ── agent ── LocalHost   host of pong
//! ```
//! An agent is the same program (`myelin bench agent`) and serves the requests of its lab with what
//! the lab itself uses on its own host. The bytes between them are those of two pipes, whatever
//! carries them: to a process in a namespace, to ssh. Nothing else is shared.

pub mod agent;
pub(crate) mod hosts;
mod local;
mod namespace;
mod protocol;
mod remote;
mod ssh;

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use myelin_bench_kit::protocol::{Command, Event, Network, Prepare, Role};
use myelin_bench_kit::samples::{Record, SampleFile};
use serde::{Deserialize, Serialize};

use crate::observe::Observation;
use crate::scenario::Cut;
use crate::tuning::Settings;
use remote::{Connection, RemoteHost};

pub(crate) use local::LocalHost;
pub(crate) use namespace::{LinkCut, LinkError, VethPair};

/// A process of a run. Several may have one role.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub role: Role,
    /// Which of those that have it, from 0.
    pub index: u32,
}

impl ProcessId {
    pub(crate) fn first(role: Role) -> Self {
        ProcessId { role, index: 0 }
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.index {
            0 => write!(f, "{}", role_name(self.role)),
            index => write!(f, "{}-{index}", role_name(self.role)),
        }
    }
}

/// As messages and process lists show a role.
fn role_name(role: Role) -> &'static str {
    match role {
        Role::Ping => "ping",
        Role::Pong => "pong",
        Role::Daemon => "daemon",
        Role::Clock => "clock",
    }
}

/// What comes from the processes of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProcessMessage {
    /// A line of the protocol.
    Event(ProcessId, Event),
    /// Something else.
    Nonsense(ProcessId, String),
    /// Its output ended.
    Closed(ProcessId),
    /// The host is out of reach, and all that ran on it: which, and why.
    Gone(String),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunOnHost {
    /// Name of the run, as [`Prepare::run`].
    pub run: String,
    /// The run's folder on the lab's host, absolute: what drivers write ends up there.
    pub directory: PathBuf,
    /// Idle cores are kept from sleeping while the run lasts.
    pub awake: bool,
    /// The interface whose traffic is observed.
    pub interface: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProcessSpec {
    pub id: ProcessId,
    /// The driver, a path on the lab's host.
    pub executable: PathBuf,
    pub settings: Settings,
    /// Records that it has room for; `None` if it writes none.
    pub capacity: Option<u64>,
    /// Ping in one process: as `capacity`, of the receiving end, whose records are its to write.
    pub pong_capacity: Option<u64>,
    /// Whether it looks at what the first pong has taken ([`Prepare::heard`]).
    pub hears: bool,
    /// What it is told; the host fills in its files and its folder.
    pub prepare: Prepare,
}

/// The two hosts of a run: ping's, then pong's.
#[derive(Clone, Debug)]
pub(crate) struct Across {
    pub names: [String; 2],
    /// The way to the other, seen from each.
    pub network: [Network; 2],
    /// Whether both are one machine, whose counters are the same then.
    pub one_machine: bool,
    /// The link between them, if it is ours.
    pub link: Option<Arc<VethPair>>,
    /// When it goes down in a run, if it does.
    pub cut: Option<Cut>,
}

/// A host, as the lab sees it. What fails is said in words, and the run with it; a remote host that
/// has gone says so in each answer from then on.
///
/// One run at a time: from [`begin`](Host::begin) to [`end`](Host::end).
pub(crate) trait Host: Send {
    /// A run begins. What its processes say goes to `messages`.
    fn begin(&mut self, run: &RunOnHost, messages: Sender<ProcessMessage>) -> Result<(), String>;

    /// Starts a process and tells it what to prepare; yields when, in ns of this host's
    /// CLOCK_MONOTONIC.
    fn start(&mut self, spec: ProcessSpec) -> Result<u64, String>;

    /// Sends `command` to all of `role`. Of [`Command::Start`] the time is on this host's clock; see
    /// [`go`](Host::go).
    fn send(&mut self, role: Role, command: &Command) -> Result<(), String>;

    /// Tells all of `roles`, one role after the other, to start after `delay`; yields when that is,
    /// in ns of this host's CLOCK_MONOTONIC.
    fn go(&mut self, roles: &[Role], delay: Duration) -> Result<u64, String>;

    /// Waits until the process of `id` has ended, at most `limit`; yields how it came to its end.
    fn ended(&mut self, id: ProcessId, limit: Duration) -> Result<Option<String>, String>;

    /// What the processes write. Of a remote host the number of exchanges alone is up to date, to a
    /// part of a second, and there are no records in it.
    fn files(&self) -> Vec<(ProcessId, Arc<SampleFile>)>;

    /// Names and ids of the measuring processes and those of daemons; none of a remote host.
    fn processes(&self, _daemons: &[u32]) -> Vec<(String, u32)> {
        Vec::new()
    }

    /// Begins to observe the measuring processes and those of daemons: a first snapshot is taken
    /// when it returns.
    fn observe(&mut self, daemons: &[u32]) -> Result<(), String>;

    /// What has happened since, and over time.
    fn observed(&mut self) -> Result<Observation, String>;

    /// All that `id` has recorded.
    fn records(&mut self, id: ProcessId) -> Result<Vec<Record>, String>;

    /// Ends the run: when this returns no process of it is left, and what drivers wrote into the
    /// run's folder is in the lab's.
    fn end(&mut self);

    /// Has the driver remove what killed processes of it have left behind on this host.
    fn clean(&mut self, executable: &Path);

    /// Fails if the host is out of reach.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Tells one start of one machine from all others, whatever namespace it is read in.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Whoever has panicked under it has left nothing half done.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
