//! What a run is made of, and what follows from it.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;

use myelin_bench_kit::protocol::{Network, Prepare, Role, System, Topology, Wait, Workload};

use crate::host::{Across, ProcessId};
use crate::registry::SystemDriver;
use crate::scenario::Tuning;
use crate::tuning::{self, Cpus, Settings};

pub struct RunSpec<'a> {
    pub entry: &'a SystemDriver,
    /// What the driver is told; role and files are filled in here.
    pub prepare: Prepare,
    pub tuning: Tuning,
    /// The CPUs of `tuned`; absent for `default`.
    pub cpus: Option<Cpus>,
    /// SCHED_FIFO priority of `tuned`.
    pub priority: u32,
    /// Folder of the run, absolute.
    pub directory: PathBuf,
    /// Records to make room for, of each publisher.
    pub capacity: u64,
    /// The two hosts; absent for one.
    pub(crate) across: Option<Across>,
    /// Set when the user has had enough.
    pub interrupted: &'a AtomicBool,
}

impl RunSpec<'_> {
    /// The processes of `role`. Where there is one process, it is ping's.
    pub(super) fn processes_of(&self, role: Role) -> impl Iterator<Item = ProcessId> + use<> {
        let one_way = self.prepare.workload.is_one_way() && !self.is_one_process();
        let count = match role {
            Role::Ping if one_way => self.prepare.publishers,
            Role::Pong if one_way => self.prepare.subscribers,
            Role::Ping | Role::Pong => 1,
            Role::Daemon => 1 + u32::from(self.across.is_some()),
            Role::Clock => 2 * u32::from(self.across.is_some()),
        };
        (0..count).map(move |index| ProcessId { role, index })
    }

    /// Records that one process of `role` has room for.
    pub(super) fn capacity_of(&self, role: Role) -> u64 {
        match (role, self.prepare.workload) {
            // Who polls subscribers counts, and records nothing.
            (Role::Pong, Workload::Publish) => 0,
            (Role::Pong, _) => self.capacity * u64::from(self.prepare.publishers),
            _ => self.capacity,
        }
    }

    /// Whether ping's process has both ends, and there is no pong.
    pub(super) fn is_one_process(&self) -> bool {
        self.entry.system.topology == Topology::OneProcess
    }

    /// The way from a host to the other, if there is one.
    pub(super) fn network(&self, host: usize) -> Option<Network> {
        self.across.as_ref().map(|across| across.network[host].clone())
    }

    /// The interface of a host over which messages travel that do not stay in memory.
    pub(super) fn interface(&self, host: usize) -> &str {
        self.across.as_ref().map_or("lo", |across| &across.network[host].interface)
    }

    fn wait(&self) -> Wait {
        waits(&self.entry.system, self.prepare.workload)
    }

    pub(super) fn settings(&self, role: Role) -> Settings {
        Settings::of(self.tuning, role, self.wait(), self.cpus, self.priority)
    }
}

/// How the receiving end of `system` comes to its messages: in a publish run it polls, whatever the
/// system would do; in one process it is called then.
pub fn waits(system: &System, workload: Workload) -> Wait {
    match (workload, system.topology) {
        (Workload::Publish, Topology::TwoProcesses | Topology::TwoHosts) => Wait::Poll,
        (Workload::Publish, Topology::OneProcess) => Wait::Callback,
        _ => system.wait,
    }
}

/// The remarks a tuning makes on a system, for the report.
pub fn tuning_notes(spec: &RunSpec<'_>) -> Vec<String> {
    let tuned = spec.tuning != Tuning::Default;
    let remark = tuned.then(|| tuning::fifo_remark(spec.wait())).flatten();
    remark.into_iter().collect()
}
