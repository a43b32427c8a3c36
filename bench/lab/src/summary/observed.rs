//! What was observed of the runs of a cell while they lasted, ten times a second.

use serde::{Deserialize, Serialize};

/// Figures of a cell, of ping, pong and daemons together, warm-up included. Absent where no run was
/// observed over time, or the kernel or the processor does not tell.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedFigures {
    /// Time that threads could have run and waited for a CPU, summed over threads, in per cent of
    /// the time observed: 100 is one thread that always waits. Of threads that end meanwhile the
    /// last tenth of a second is not in it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub runqueue_wait_percent: Option<f64>,
    /// Threads that went on on another CPU, a second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub migrations_per_s: Option<f64>,
    /// Proportional memory in bytes, without the bench's own samples: the most that was seen; largest
    /// run.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pss_peak_bytes: Option<u64>,
    /// Core cycles for each message published; without the kernel's where that may not be counted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cycles_per_message: Option<f64>,
    /// Instructions for each message published; see `cycles_per_message`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub instructions_per_message: Option<f64>,
    /// Cache misses for each message published; see `cycles_per_message`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cache_misses_per_message: Option<f64>,
    /// CPU that observing took, 100 is one core; mean of the runs. In none of the other figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation_cpu_percent: Option<f64>,
}

/// One run over time: columns of the same length, a row for each look. Processes are added up. A
/// column of what is not known at all is empty; a null was not read then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedColumns {
    /// When a row ends, in seconds from the beginning; it begins where the row before it ends.
    /// Mostly 0.1 apart; more where a look was late or left out.
    pub t_s: Vec<f64>,
    /// CPU; 100 is one core.
    pub cpu_percent: Vec<f64>,
    /// CPU of the receiving processes; empty if there is one process only.
    pub receiver_cpu_percent: Vec<f64>,
    /// Time spent waiting for a CPU, summed over threads; 100 is one thread that always waits.
    pub runqueue_wait_percent: Vec<f64>,
    /// Proportional memory.
    pub pss_bytes: Vec<Option<u64>>,
    /// Shared memory in `pss_bytes`: pages in use, where `shared_bytes` of the cell are those mapped.
    pub shared_bytes: Vec<Option<u64>>,
    /// Context switches of either kind.
    pub switches_per_s: Vec<f64>,
    /// Page faults, minor and major.
    pub faults_per_s: Vec<f64>,
    /// Threads that went on on another CPU; the mean since the reading before.
    pub migrations_per_s: Vec<Option<f64>>,
    /// Received by the loopback interface of ping's network; the mean since the reading before.
    pub loopback_bytes_per_s: Vec<Option<f64>>,
    /// Time the hypervisor gave to others, of all CPUs; the mean since the reading before.
    pub steal_percent: Vec<Option<f64>>,
}
