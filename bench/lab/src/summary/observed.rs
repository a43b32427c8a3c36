//! What was observed of the runs of a cell while they lasted, ten times a second.

use serde::{Deserialize, Serialize};

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
