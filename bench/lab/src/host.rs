//! The machine's fingerprint: everything about it that may change a latency.

use serde::{Deserialize, Serialize};

/// What a results folder knows about its machine. Absent values could not be read.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Host {
    /// `model name` of the first processor.
    pub cpu_model: String,
    /// Online CPUs.
    pub cpus: u32,
    /// Machine architecture, for instance `x86_64`.
    pub architecture: String,
    /// Hypervisor flag or DMI vendor; null on bare metal.
    pub hypervisor: Option<String>,
    /// Main memory.
    pub memory_bytes: u64,
    /// Pretty name of the distribution.
    pub os: String,
    /// `uname -r`.
    pub kernel: String,
    /// Preemption model of the kernel, where it says so.
    pub preemption: Option<String>,
    /// `/proc/cmdline`, without what names devices or addresses.
    pub kernel_command_line: String,
    /// Source of the kernel's clock, for instance `tsc`.
    pub clocksource: String,
    /// Cost of reading CLOCK_MONOTONIC.
    pub clock_read_ns: f64,
    /// Smallest step of CLOCK_MONOTONIC seen.
    pub clock_step_ns: u64,
    /// Frequency governor of CPU 0.
    pub governor: Option<String>,
    /// cpuidle driver, for instance `intel_idle` or `haltpoll`.
    pub idle_driver: Option<String>,
    /// cpuidle governor.
    pub idle_governor: Option<String>,
    /// Idle states of CPU 0 in order: name and exit latency.
    pub idle_states: Vec<IdleState>,
    /// Whether `/dev/cpu_dma_latency` can be held: the `awake` tuning.
    pub can_hold_awake: bool,
    /// `kernel.sched_rt_runtime_us`; -1 is no throttling.
    pub rt_runtime_us: Option<i64>,
    /// `ulimit -l`; null is unlimited.
    pub memlock_bytes: Option<u64>,
    /// `net.core.rmem_max`.
    pub socket_buffer_max_bytes: Option<u64>,
    /// Transparent huge pages setting.
    pub huge_pages: Option<String>,
    /// Steal time while measuring, in per cent of all CPUs; absent before the first run.
    pub steal_percent: Option<f64>,
}

/// One idle state of a CPU.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct IdleState {
    /// As the driver calls it.
    pub name: String,
    /// Exit latency as the driver states it.
    pub latency_us: u64,
}
