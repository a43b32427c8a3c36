//! Observations of a run over time: only the stored types.
//!
//! Counts are relative to the previous reading, not to the beginning. An expensive value is not
//! read at every moment (see `budget`). It is then absent, and the next reading covers the whole
//! time since the last one.

use serde::{Deserialize, Serialize};

/// The moments of one run, ten a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// Time of the first reading, which belongs to no moment: CLOCK_MONOTONIC, in ns, the clock of
    /// the samples.
    pub begin_ns: u64,
    /// The observed processes, in the order of [`ProcessMoment::process`].
    pub processes: Vec<ObservedProcess>,
    pub cpus: u32,
    /// Unit of [`Moment::steal_ticks`].
    pub ticks_per_s: u64,
    /// In order of time. The last one was taken after the run had ended and has all readable
    /// values.
    pub moments: Vec<Moment>,
    /// CPU time of observing, from `begin_ns` to the end of the run; 100 is one core.
    pub cost_percent: f64,
    /// What [`ProcessMoment::hardware`] counts; absent if nothing could be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// Threads beyond the limit; only the sum of their process includes their CPU time.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads_left_out: u32,
}

impl Series {
    /// Seconds from the beginning to the last moment.
    pub fn duration_s(&self) -> f64 {
        self.moments.last().map_or(0.0, |last| last.at_ns as f64 * 1e-9)
    }

    /// Whether time increases from moment to moment and every process belongs to the series. A
    /// stored series may be damaged.
    pub fn is_sound(&self) -> bool {
        let known = |seen: &ProcessMoment| (seen.process as usize) < self.processes.len();
        self.moments.is_sorted_by_key(|moment| moment.at_ns)
            && self.moments.iter().flat_map(|moment| &moment.processes).all(known)
    }
}

fn is_zero(count: &u32) -> bool {
    *count == 0
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedProcess {
    /// `ping`, `pong` or the daemon's name.
    pub name: String,
    /// Names of its threads, including short-lived ones, in the order of [`ThreadMoment::thread`].
    pub threads: Vec<String>,
}

/// The processor modes in which hardware events are counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    UserAndKernel,
    /// Only user mode, without permission for more (`kernel.perf_event_paranoid`).
    User,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Time since [`Series::begin_ns`].
    pub at_ns: u64,
    /// The live processes.
    pub processes: Vec<ProcessMoment>,
    /// Bytes and packets received on the loopback interface of ping's network, or at both ends of
    /// the link across hosts; absent if not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loopback: Option<Loopback>,
    /// Time that the hypervisor gave to others, summed over CPUs; absent if not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub steal_ticks: Option<u64>,
}

/// Traffic of the loopback interface, or of the link across hosts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Loopback {
    pub bytes: u64,
    pub packets: u64,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProcessMoment {
    /// Index in [`Series::processes`].
    pub process: u32,
    /// CPU time of all threads, including ended ones.
    pub cpu_ns: u64,
    /// The threads that ran or waited for a CPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadMoment>,
    /// Page faults, minor and major.
    pub faults: u64,
    /// Resident memory, without the bench's own samples.
    pub rss_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ProportionalMemory>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<Switches>,
    /// Absent if not read, or if nothing can be read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hardware: Option<Hardware>,
}

/// One thread at one moment, stored as `[thread, cpu_ns, wait_ns, slices]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "(u32, u64, u64, u64)", into = "(u32, u64, u64, u64)")]
pub struct ThreadMoment {
    /// Index in [`ObservedProcess::threads`].
    pub thread: u32,
    pub cpu_ns: u64,
    /// Time in a run queue, waiting for a CPU.
    pub wait_ns: u64,
    /// How often it got a CPU: context switches of either kind.
    pub slices: u64,
}

impl From<(u32, u64, u64, u64)> for ThreadMoment {
    fn from((thread, cpu_ns, wait_ns, slices): (u32, u64, u64, u64)) -> Self {
        ThreadMoment { thread, cpu_ns, wait_ns, slices }
    }
}

impl From<ThreadMoment> for (u32, u64, u64, u64) {
    fn from(moment: ThreadMoment) -> Self {
        (moment.thread, moment.cpu_ns, moment.wait_ns, moment.slices)
    }
}

/// Memory at this moment, without the bench's own samples; shared pages are divided among the
/// processes that map them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProportionalMemory {
    pub pss_bytes: u64,
    /// Bytes of shared memory in it (`/dev/shm`, memfd, System V); absent before Linux 5.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_bytes: Option<u64>,
}

/// Context switches and migrations of all live threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    pub voluntary: u64,
    pub involuntary: u64,
    /// Continued on another CPU; absent if the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
}

/// Counts of the processor, for all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    pub cycles: u64,
    /// Retired instructions; absent if the processor does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Usually of the last level; absent if the processor does not count them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_misses: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unread_values_take_no_space_and_stay_absent() {
        let thread = ThreadMoment { thread: 3, cpu_ns: 10, wait_ns: 20, slices: 30 };
        let process = ProcessMoment { threads: vec![thread], ..ProcessMoment::default() };
        let moment = Moment { at_ns: 7, processes: vec![process], ..Moment::default() };
        let text = serde_json::to_string(&moment).unwrap();
        assert!(text.contains("[3,10,20,30]") && !text.contains("null"), "{text}");
        assert!(!text.contains("steal") && !text.contains("hardware"), "{text}");
        assert_eq!(serde_json::from_str::<Moment>(&text).unwrap(), moment);
    }
}
