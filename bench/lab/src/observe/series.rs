//! What a run did over time: the types that are stored, and nothing else.
//!
//! Counts are those since the reading before, not since the beginning. What is costly to read is not
//! read at every moment (see `budget`): it is absent then, and the next reading covers the whole
//! time since the last.

use serde::{Deserialize, Serialize};

/// The moments of one run, ten a second.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// When the first reading was done, which no moment shows: CLOCK_MONOTONIC, in ns, the clock of
    /// the samples.
    pub begin_ns: u64,
    /// The observed, in the order of [`ProcessMoment::process`].
    pub processes: Vec<ObservedProcess>,
    pub cpus: u32,
    /// Unit of [`Moment::steal_ticks`].
    pub ticks_per_s: u64,
    /// In order of time. The last was taken after the run had ended and has everything that can be
    /// read.
    pub moments: Vec<Moment>,
    /// CPU time that observing took, from `begin_ns` until the run had ended; 100 is one core.
    pub cost_percent: f64,
    /// What [`ProcessMoment::hardware`] counts; absent where nothing could be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counted: Option<Counted>,
    /// Threads beyond the room there is for them; their CPU is in the sum of their process alone.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub threads_left_out: u32,
}

impl Series {
    /// From the beginning until the last moment, in seconds.
    pub fn duration_s(&self) -> f64 {
        self.moments.last().map_or(0.0, |last| last.at_ns as f64 * 1e-9)
    }

    /// Whether time goes on from moment to moment and every process is one of the series. One that
    /// was stored may be damaged.
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
    /// Names of its threads, those that came and went included, in the order of
    /// [`ThreadMoment::thread`].
    pub threads: Vec<String>,
}

/// In which mode of the processor the hardware counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Counted {
    UserAndKernel,
    /// Without the kernel, for want of the right to (`kernel.perf_event_paranoid`).
    User,
}

#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// Since [`Series::begin_ns`].
    pub at_ns: u64,
    /// Those that were alive.
    pub processes: Vec<ProcessMoment>,
    /// What the loopback interface of ping's network has received, or both ends of the link across
    /// hosts; absent where not read.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loopback: Option<Loopback>,
    /// Time the hypervisor gave to others, summed over CPUs; absent where not read.
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
    /// All threads, ended ones included.
    pub cpu_ns: u64,
    /// The threads that ran or waited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub threads: Vec<ThreadMoment>,
    /// Page faults, minor and major.
    pub faults: u64,
    /// Resident now, without the bench's own samples.
    pub rss_bytes: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memory: Option<ProportionalMemory>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub switches: Option<Switches>,
    /// Absent where not read, and where there is nothing to read.
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
    /// Could have run, and waited in a run queue for a CPU.
    pub wait_ns: u64,
    /// How often it was given a CPU: context switches of either kind.
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

/// Memory now, shared pages divided among those that map them, without the bench's own samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProportionalMemory {
    pub pss_bytes: u64,
    /// Pages of shared memory in it (`/dev/shm`, memfd, System V); absent before Linux 5.3.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub shared_bytes: Option<u64>,
}

/// Context switches and migrations of all living threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Switches {
    pub voluntary: u64,
    pub involuntary: u64,
    /// Went on on another CPU; absent where the kernel does not say.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations: Option<u64>,
}

/// Counts of the processor, of all threads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Hardware {
    pub cycles: u64,
    /// Retired; absent where the processor does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions: Option<u64>,
    /// Of the last level, as a rule; absent where the processor does not count it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_misses: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_not_read_takes_no_room_and_is_absent_again() {
        let thread = ThreadMoment { thread: 3, cpu_ns: 10, wait_ns: 20, slices: 30 };
        let process = ProcessMoment { threads: vec![thread], ..ProcessMoment::default() };
        let moment = Moment { at_ns: 7, processes: vec![process], ..Moment::default() };
        let text = serde_json::to_string(&moment).unwrap();
        assert!(text.contains("[3,10,20,30]") && !text.contains("null"), "{text}");
        assert!(!text.contains("steal") && !text.contains("hardware"), "{text}");
        assert_eq!(serde_json::from_str::<Moment>(&text).unwrap(), moment);
    }
}
