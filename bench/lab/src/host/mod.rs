//! The hosts of a run's processes: this host, or another one by way of an agent.
//!
//! ```text
//! lab ── LocalHost                                 one host: the lab starts drivers itself
//!  ├── RemoteHost ── bytes ── agent ── LocalHost   host of ping
//!  └── RemoteHost ── bytes ── agent ── LocalHost   host of pong
//! ```
//! An agent is the same program (`myelin bench agent`). It serves its lab's requests with the code
//! that the lab uses on its own host. The two exchange bytes through two pipes, which lead to a
//! process in a namespace or to ssh. They share nothing else.

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
pub(crate) use namespace::{LinkCut, LinkError, NetworkPath};

/// A process of a run. Several processes can have the same role. Commands to a role reach those of
/// the load, too.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(crate) struct ProcessId {
    pub role: Role,
    /// Index among the processes of its role, from 0.
    pub index: u32,
    /// Whether its messages are the load beside the measured ones.
    pub is_load: bool,
}

impl ProcessId {
    pub(crate) fn first(role: Role) -> Self {
        ProcessId { role, index: 0, is_load: false }
    }
}

impl fmt::Display for ProcessId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.is_load {
            write!(f, "load-")?;
        }
        match self.index {
            0 => write!(f, "{}", role_name(self.role)),
            index => write!(f, "{}-{index}", role_name(self.role)),
        }
    }
}

/// The name of a role in messages and process lists.
fn role_name(role: Role) -> &'static str {
    match role {
        Role::Ping => "ping",
        Role::Pong => "pong",
        Role::Daemon => "daemon",
        Role::Clock => "clock",
    }
}

/// A message from the processes of a run.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ProcessMessage {
    /// An event of the line protocol.
    Event(ProcessId, Event),
    /// A line that is no event.
    Nonsense(ProcessId, String),
    /// The process closed its output.
    Closed(ProcessId),
    /// The host and all its processes are unreachable: which host, and why.
    Gone(String),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct RunOnHost {
    /// Name of the run; see [`Prepare::run`].
    pub run: String,
    /// The run's folder on the lab's host, absolute; the files of drivers end up there.
    pub directory: PathBuf,
    /// Whether to keep idle cores awake during the run.
    pub awake: bool,
    /// The interface whose traffic is observed.
    pub interface: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct ProcessSpec {
    pub id: ProcessId,
    /// The driver; a path on the lab's host.
    pub executable: PathBuf,
    pub settings: Settings,
    /// Number of records to make room for; `None` if it writes none.
    pub capacity: Option<u64>,
    /// For ping in one process: the same for the receiving end, whose records it writes.
    pub pong_capacity: Option<u64>,
    /// Whether it reads what the first pong has taken ([`Prepare::taken_counter`]).
    pub reads_taken_counter: bool,
    /// The driver's order; the host fills in files and folder.
    pub prepare: Prepare,
}

/// The two hosts of a run: ping's, then pong's.
#[derive(Clone)]
pub(crate) struct Across {
    pub names: [String; 2],
    /// The network to the other host, from each side.
    pub network: [Network; 2],
    /// Whether both are one machine, with the same counters.
    pub one_machine: bool,
    /// What joins them, if this session made it.
    pub path: Option<Arc<NetworkPath>>,
    /// When it goes down during a run, if it does.
    pub cut: Option<Cut>,
}

/// A host from the lab's view. An error is a text, and makes the run fail. A remote host that is
/// gone returns an error for every call from then on.
///
/// One run at a time: from [`begin`](Host::begin) to [`end`](Host::end).
pub(crate) trait Host: Send {
    /// Begins a run. The messages of its processes go to `messages`.
    fn begin(&mut self, run: &RunOnHost, messages: Sender<ProcessMessage>) -> Result<(), String>;

    /// Starts a process and sends it its order. Returns the time of the start, in ns of this host's
    /// CLOCK_MONOTONIC.
    fn start(&mut self, spec: ProcessSpec) -> Result<u64, String>;

    /// Sends `command` to all processes of `role`. The time of [`Command::Start`] is on this host's
    /// clock; see [`go`](Host::go).
    fn send(&mut self, role: Role, command: &Command) -> Result<(), String>;

    /// Tells all processes of `roles`, one role after the other, to start after `delay`. Returns
    /// that time, in ns of this host's CLOCK_MONOTONIC.
    fn go(&mut self, roles: &[Role], delay: Duration) -> Result<u64, String>;

    /// Waits until the process `id` has ended, at most `limit`; returns how it ended.
    fn ended(&mut self, id: ProcessId, limit: Duration) -> Result<Option<String>, String>;

    /// The sample files of the processes. For a remote host they only have the number of exchanges,
    /// a fraction of a second old, and no records.
    fn files(&self) -> Vec<(ProcessId, Arc<SampleFile>)>;

    /// Names and ids of the measuring processes and the daemons; empty for a remote host.
    fn processes(&self, _daemons: &[u32]) -> Vec<(String, u32)> {
        Vec::new()
    }

    /// Begins to observe the measuring processes and the daemons, but not the load. The first
    /// snapshot has been taken when it returns.
    fn observe(&mut self, daemons: &[u32]) -> Result<(), String>;

    /// What was observed since, in total and over time.
    fn observed(&mut self) -> Result<Observation, String>;

    /// All records of `id`.
    fn records(&mut self, id: ProcessId) -> Result<Vec<Record>, String>;

    /// Ends the run. After this no process of it is left, and the files that drivers wrote are in
    /// the run's folder of the lab.
    fn end(&mut self);

    /// Makes the driver remove what killed processes of it left behind on this host.
    fn clean(&mut self, executable: &Path);

    /// Fails if the host is out of reach.
    fn check(&self) -> Result<(), String> {
        Ok(())
    }
}

/// Identifies a boot of a machine, across its namespaces.
fn boot_id() -> String {
    std::fs::read_to_string("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// Locks a mutex. No code leaves the data half changed when it panics, so a poisoned lock is
/// usable.
fn lock<T>(of: &Mutex<T>) -> MutexGuard<'_, T> {
    of.lock().unwrap_or_else(PoisonError::into_inner)
}
