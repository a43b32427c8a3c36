//! Activity of the machine and of a run's processes during the run, observed from outside.
//!
//! Two snapshots of the processes give the sums: one before the start, one when ping is done. CPU
//! times come from the scheduler (the CPU clock of a process, `schedstat` of a thread), in ns; the
//! split into user and system time is sampled by the kernel's tick. Between the snapshots a
//! [`Sampler`] reads values over time, ten times a second, and the sums of the machine.

mod budget;
mod counters;
mod merge;
mod process;
mod procfile;
pub mod sampler;
pub mod series;
mod watched;

use std::collections::BTreeMap;

use myelin_bench_kit::clock;
use myelin_bench_link::Counts;
use serde::{Deserialize, Serialize};

use crate::cgroup::Throttling;
use process::ProcessSnapshot;

pub(crate) use process::cpu_ns;
pub use process::{Memory, SAMPLES_NAME};
pub use sampler::Sampler;
use series::Series;

pub struct Snapshot {
    at_ns: u64,
    processes: BTreeMap<(String, u32), ProcessSnapshot>,
}

impl Snapshot {
    /// Takes a snapshot of `processes`, given by name and id. Ended ones are left out.
    pub fn take(processes: &[(String, u32)]) -> Self {
        let seen = |(name, pid): &(String, u32)| {
            Some(((name.clone(), *pid), ProcessSnapshot::take(*pid)?))
        };
        let processes = processes.iter().filter_map(seen).collect();
        Snapshot { at_ns: clock::monotonic_ns(), processes }
    }

    /// Involuntary switches of each process from `self` to `later`.
    pub fn involuntary_until(&self, later: &Snapshot) -> Vec<(String, u64)> {
        let none = ProcessSnapshot::default();
        let of = |(key, after): (&(String, u32), &ProcessSnapshot)| {
            (key.0.clone(), self.processes.get(key).unwrap_or(&none).involuntary_until(after))
        };
        later.processes.iter().map(of).collect()
    }

    /// The changes from `self` to `later`; `series` was taken meanwhile.
    pub fn until(&self, later: &Snapshot, series: Series) -> Observation {
        let none = ProcessSnapshot::default();
        // An ended process has no memory.
        let memory = |pid: u32| Memory::of(pid).unwrap_or_default();
        let memory: Vec<Memory> = later.processes.keys().map(|(_, pid)| memory(*pid)).collect();
        let all = || later.processes.iter().zip(&memory);
        let processes = all().map(|((key, after), memory)| ProcessObservation {
            rss_bytes: memory.rss_bytes,
            pss_bytes: memory.pss_bytes,
            ..self.processes.get(key).unwrap_or(&none).until(after, &key.0)
        });
        let mut segments: BTreeMap<(u64, u64), u64> = BTreeMap::new();
        for (segment, bytes) in memory.iter().flat_map(|memory| &memory.shared) {
            let known = segments.entry(*segment).or_default();
            *known = (*known).max(*bytes);
        }
        let of = |name: &str| all().find(|((key, _), _)| key.0 == name).map(|(_, memory)| memory);
        let common = of("ping").zip(of("pong")).is_some_and(|(ping, pong)| {
            ping.shared.keys().any(|segment| pong.shared.contains_key(segment))
        });
        Observation {
            wall_ns: later.at_ns - self.at_ns,
            processes: processes.collect(),
            shared_bytes: segments.values().sum(),
            ping_and_pong_share_memory: common,
            ..Observation::of_machine(series)
        }
    }
}

/// What happened between two snapshots.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Observation {
    pub wall_ns: u64,
    /// Ping, pong and daemons.
    pub processes: Vec<ProcessObservation>,
    /// Bytes of shared segments that they have mapped, each counted once, at the end.
    pub shared_bytes: u64,
    /// Whether ping and pong have mapped a common segment.
    pub ping_and_pong_share_memory: bool,
    /// Bytes received on the loopback interface by the whole machine; across hosts, at both ends of
    /// the link instead.
    pub loopback_bytes: u64,
    pub loopback_packets: u64,
    /// Across hosts: ping's interface to the link, to which `loopback_bytes` refers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
    /// Time that the hypervisor gave to others, in per cent of all CPUs.
    pub steal_percent: f64,
    /// How often a CPU quota held up the processes, from their start on; absent if the kernel does
    /// not count.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub throttling: Option<Throttling>,
    /// The same over time; stored in a file of its own, absent for runs without one.
    #[serde(skip)]
    pub series: Option<Series>,
}

impl Observation {
    /// The machine's sums in a series: stolen time, and traffic of ping's network, which need not
    /// be the lab's.
    fn of_machine(series: Series) -> Self {
        let loopback = || series.moments.iter().filter_map(|moment| moment.loopback);
        let steal_ticks: u64 = series.moments.iter().filter_map(|moment| moment.steal_ticks).sum();
        let ticks = series.duration_s() * (series.ticks_per_s * u64::from(series.cpus)) as f64;
        Observation {
            loopback_bytes: loopback().map(|seen| seen.bytes).sum(),
            loopback_packets: loopback().map(|seen| seen.packets).sum(),
            steal_percent: 100.0 * steal_ticks as f64 / ticks.max(f64::MIN_POSITIVE),
            series: Some(series).filter(|series| !series.moments.is_empty()),
            ..Observation::default()
        }
    }
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct ProcessObservation {
    /// `ping`, `pong` or the daemon's name.
    pub name: String,
    /// CPU time of all threads, including ended ones.
    pub cpu_ns: u64,
    /// The fraction in user mode, 0 to 1; absent if there were too few ticks to tell.
    pub user_share: Option<f64>,
    pub voluntary_switches: u64,
    pub involuntary_switches: u64,
    /// Minor and major page faults.
    pub page_faults: u64,
    /// Resident memory at the end, without the sample file.
    pub rss_bytes: u64,
    /// Proportional memory at the end, without the sample file.
    pub pss_bytes: u64,
    /// Name and CPU of each thread.
    pub threads: Vec<(String, u64)>,
}

/// What emulated links did to frames, from the processes' start to their end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LinkRecord {
    /// For each link from ping's host to pong's: the frames towards pong, then those towards ping.
    pub frames: Vec<[Counts; 2]>,
    /// CPU time of carrying them, in ns. It is the lab's, and no system's.
    pub cpu_ns: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CutRecord {
    /// Time of the snapshot on CLOCK_MONOTONIC of ping's host, in ns, the clock of the samples.
    pub at_ns: u64,
    pub for_ns: u64,
}
