//! Executes a plan: each run has fresh processes, which are watched and never left behind.

pub mod execute;
mod identities;
pub(crate) mod processes;

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use myelin_bench_kit::protocol::{Network, PORTS, Prepare, Role, Topology, Wait, Workload};
use myelin_bench_kit::samples::SampleFile;

use crate::host::{Across, ProcessId};
use crate::plan::waits;
use crate::registry::SystemDriver;
use crate::scenario::Tuning;
use crate::tuning::{self, Cpus, Settings};

/// Why a run has no samples.
#[derive(Debug, thiserror::Error)]
pub enum Failure {
    /// The user pressed Ctrl-C, or SIGTERM came: the run is discarded.
    #[error("interrupted")]
    Interrupted,
    /// The run is kept as failed.
    #[error("{0}")]
    Run(String),
    /// Like `Run`: a host became unreachable. That explains all other errors.
    #[error("{0}")]
    Gone(String),
}

impl From<String> for Failure {
    fn from(reason: String) -> Self {
        Failure::Run(reason)
    }
}

pub struct RunSpec<'a> {
    pub entry: &'a SystemDriver,
    /// The driver's order; role and files are filled in here.
    pub prepare: Prepare,
    pub tuning: Tuning,
    /// The CPUs of `tuned`; absent for `default`.
    pub cpus: Option<Cpus>,
    /// SCHED_FIFO priority of `tuned`.
    pub priority: u32,
    /// Folder of the run, absolute.
    pub directory: PathBuf,
    /// Records to make room for, for each publisher.
    pub capacity: u64,
    /// What the processes of the load do, if there is one.
    pub(crate) load: Option<LoadSpec>,
    /// The two hosts; absent on one host.
    pub(crate) across: Option<Across>,
    /// Set when the user interrupts the session.
    pub interrupted: &'a AtomicBool,
    /// Whether an interruption ends the run early, so that its figures are kept.
    pub ends_early: bool,
}

/// What the processes of a load do.
pub(crate) struct LoadSpec {
    /// The driver's order; role and files are filled in later.
    pub prepare: Prepare,
    /// Records to make room for.
    pub capacity: u64,
}

impl RunSpec<'_> {
    /// The measuring processes of `role`. A run in one process has only ping's.
    pub(super) fn processes_of(&self, role: Role) -> impl Iterator<Item = ProcessId> + use<> {
        let one_way = self.prepare.workload.is_one_way() && !self.is_one_process();
        let count = match role {
            Role::Ping if one_way => self.prepare.publishers,
            Role::Pong if one_way => self.prepare.subscribers,
            Role::Ping | Role::Pong => 1,
            Role::Daemon => 1 + u32::from(self.across.is_some()),
            Role::Clock => 2 * u32::from(self.across.is_some()),
        };
        (0..count).map(move |index| ProcessId { index, ..ProcessId::first(role) })
    }

    /// The load's process of `role`, ping or pong.
    pub(super) fn load_of(&self, role: Role) -> Option<ProcessId> {
        self.load.as_ref().map(|_| ProcessId { is_load: true, ..ProcessId::first(role) })
    }

    /// The order for the process `id`; role and files are filled in later.
    pub(super) fn prepare_of(&self, id: ProcessId) -> &Prepare {
        self.load.as_ref().filter(|_| id.is_load).map_or(&self.prepare, |load| &load.prepare)
    }

    /// Records that the process `id` has room for.
    pub(super) fn capacity_of(&self, id: ProcessId) -> u64 {
        if let Some(load) = self.load.as_ref().filter(|_| id.is_load) {
            return load.capacity;
        }
        match (id.role, self.prepare.workload) {
            // The subscribers of a publish run poll and count, but record nothing.
            (Role::Pong, Workload::Publish) => 0,
            (Role::Pong, _) => self.capacity * u64::from(self.prepare.publishers),
            _ => self.capacity,
        }
    }

    /// Whether both ends are in ping's process, without a pong process.
    pub(super) fn is_one_process(&self) -> bool {
        self.entry.system.topology == Topology::OneProcess
    }

    /// The network from `host` to the other one, if there is one.
    pub(super) fn network(&self, host: usize) -> Option<Network> {
        self.across.as_ref().map(|across| across.network[host].clone())
    }

    /// The same with the ports of the process `id`.
    pub(super) fn network_of(&self, id: ProcessId, host: usize) -> Option<Network> {
        let first = if id.is_load { PORTS } else { 0 };
        self.network(host).map(|network| Network { port: network.port + first, ..network })
    }

    /// The interface of `host` that carries messages outside of shared memory.
    pub(super) fn interface(&self, host: usize) -> &str {
        self.across.as_ref().map_or("lo", |across| &across.network[host].interface)
    }

    fn wait(&self) -> Wait {
        waits(&self.entry.system, self.prepare.workload)
    }

    /// How to start a process; a load is never tuned.
    pub(super) fn settings(&self, id: ProcessId) -> Settings {
        let tuning = if id.is_load { Tuning::Default } else { self.tuning };
        Settings::of(tuning, id.role, self.wait(), self.cpus, self.priority)
    }
}

/// Remarks of a tuning about a system, for the report.
pub fn tuning_notes(spec: &RunSpec<'_>) -> Vec<String> {
    let tuned = spec.tuning != Tuning::Default;
    let remark = tuned.then(|| tuning::fifo_remark(spec.wait())).flatten();
    remark.into_iter().collect()
}

/// Observer of a run in progress, in its own thread.
pub trait Watch {
    /// A run begins: its processes are ready and will be started next.
    fn begin(&mut self, running: Running);

    /// The run is over, or never began. After this call nothing observes it any more. Returns the
    /// CPU time of observing, in ns.
    fn end(&mut self) -> u64;
}

#[derive(Clone)]
pub struct Running {
    /// The drivers' order; where orders differ, ping's.
    pub prepare: Prepare,
    pub pings: Vec<Arc<SampleFile>>,
    pub pongs: Vec<Arc<SampleFile>>,
    pub processes: Vec<(String, u32)>,
}

impl Running {
    /// Messages that the pings have exchanged so far, including the warm-up.
    pub fn exchanges(&self) -> u64 {
        self.pings.iter().map(|ping| ping.exchanges()).sum()
    }

    /// Messages of the warm-up, of all pings.
    pub fn warmup_messages(&self) -> u64 {
        self.prepare.warmup_messages * u64::from(self.prepare.publishers)
    }

    /// Messages to measure, of all pings; 0 for no limit.
    pub fn messages(&self) -> u64 {
        self.prepare.messages * u64::from(self.prepare.publishers)
    }

    /// The finished part of the run, 0 to 1, after `exchanges` messages and `elapsed` time.
    pub fn part(&self, exchanges: u64, elapsed: Duration) -> f64 {
        let all = self.messages() + self.warmup_messages();
        let by_count = if self.messages() == 0 { 0.0 } else { exchanges as f64 / all as f64 };
        let by_time = match self.prepare.duration_ns {
            0 => 0.0,
            duration_ns => elapsed.as_secs_f64() * 1e9 / duration_ns as f64,
        };
        by_count.max(by_time).min(1.0)
    }
}
