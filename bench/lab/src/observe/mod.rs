//! What the machine and the processes of a run did while it lasted, seen from outside.
//!
//! Two snapshots are taken, before the start and when ping is done: the sums. CPU times are the
//! scheduler's own (the CPU clock of a process, `schedstat` of a thread), in ns; the split into user
//! and system time is the kernel's, sampled by its tick. In between a [`Sampler`] looks ten times a
//! second: the course of things.

mod budget;
mod counters;
mod machine;
mod merge;
mod process;
mod procfile;
pub mod sampler;
pub mod series;
mod thread;
mod watched;

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use machine::MachineCounters;
use process::ProcessSnapshot;

pub use process::{Memory, SAMPLES_NAME};
pub use sampler::Sampler;
use series::Series;

/// A moment of a run.
pub struct Snapshot {
    machine: MachineCounters,
    processes: BTreeMap<(String, u32), ProcessSnapshot>,
}

impl Snapshot {
    /// Looks at the machine, one network interface of it, and `processes`, given by name and id.
    /// Processes that are gone are left out.
    pub fn take(processes: &[(String, u32)], interface: &str) -> Self {
        let seen = |(name, pid): &(String, u32)| {
            Some(((name.clone(), *pid), ProcessSnapshot::take(*pid)?))
        };
        let ping = processes.iter().find(|(name, _)| name == "ping").map(|(_, pid)| *pid);
        Snapshot {
            processes: processes.iter().filter_map(seen).collect(),
            machine: MachineCounters::read(interface, ping),
        }
    }

    /// What happened from `self` until `later`. `sample_bytes` of each process's memory are the
    /// bench's own and left out.
    pub fn until(&self, later: &Snapshot) -> Observation {
        let none = ProcessSnapshot::default();
        let memory: Vec<(&(String, u32), Memory)> =
            later.processes.keys().filter_map(|key| Some((key, Memory::of(key.1)?))).collect();
        let processes = later.processes.iter().map(|(key, after)| {
            let before = self.processes.get(key).unwrap_or(&none);
            let memory = memory.iter().find(|(owner, _)| *owner == key).map(|(_, memory)| memory);
            ProcessObservation {
                rss_bytes: memory.map_or(0, |memory| memory.rss_bytes),
                pss_bytes: memory.map_or(0, |memory| memory.pss_bytes),
                ..before.until(after, &key.0)
            }
        });
        let segments = shared_segments(memory.iter().map(|(_, memory)| memory));
        let of = |name: &str| memory.iter().find(|(key, _)| key.0 == name);
        let common = match (of("ping"), of("pong")) {
            (Some((_, ping)), Some((_, pong))) => {
                ping.shared.keys().any(|segment| pong.shared.contains_key(segment))
            }
            _ => false,
        };
        Observation {
            processes: processes.collect(),
            shared_bytes: segments.values().sum(),
            ping_and_pong_share_memory: common,
            ..self.machine.until(&later.machine)
        }
    }
}

fn shared_segments<'a>(memories: impl Iterator<Item = &'a Memory>) -> BTreeMap<(u64, u64), u64> {
    let mut segments = BTreeMap::new();
    for (segment, bytes) in memories.flat_map(|memory| &memory.shared) {
        let known = segments.entry(*segment).or_insert(0);
        *known = (*known).max(*bytes);
    }
    segments
}

/// What happened between two snapshots.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Observation {
    /// Time between the two.
    pub wall_ns: u64,
    /// Ping, pong and daemons.
    pub processes: Vec<ProcessObservation>,
    /// Shared segments that they have mapped, each counted once, at the end.
    pub shared_bytes: u64,
    /// Whether ping and pong have a segment in common.
    pub ping_and_pong_share_memory: bool,
    /// Bytes received on the loopback interface, of the whole machine; across hosts at both ends of
    /// the link instead.
    pub loopback_bytes: u64,
    /// Packets received there.
    pub loopback_packets: u64,
    /// Across hosts: ping's interface to the link, whose traffic that is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Time the hypervisor gave to others, in per cent of all CPUs.
    pub steal_percent: f64,
    /// The same over time; kept in a file of its own, absent from runs that have none.
    #[serde(skip)]
    pub series: Option<Series>,
}

impl Observation {
    /// Adds what was seen over time, if anything was.
    pub fn with(self, series: Series) -> Self {
        let series = Some(series).filter(|series| !series.moments.is_empty());
        Observation { series, ..self }
    }
}

/// What one process did.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessObservation {
    /// `ping`, `pong` or the daemon's name.
    pub name: String,
    /// All threads, ended ones included.
    pub cpu_ns: u64,
    /// Part of it in user mode, 0 to 1; absent with too few ticks to say.
    pub user_share: Option<f64>,
    /// Gave up the CPU itself.
    pub voluntary_switches: u64,
    /// Was made to.
    pub involuntary_switches: u64,
    /// Minor and major.
    pub page_faults: u64,
    /// Resident at the end, without the sample file.
    pub rss_bytes: u64,
    /// Proportional at the end, without the sample file.
    pub pss_bytes: u64,
    /// Name and CPU of each thread.
    pub threads: Vec<(String, u64)>,
}

/// When the link was down.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutRecord {
    /// From then on: CLOCK_MONOTONIC of ping's host, in ns, the clock of the samples.
    pub at_ns: u64,
    /// For so long.
    pub for_ns: u64,
}
