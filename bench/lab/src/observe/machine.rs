//! Counters of the whole machine: traffic of an interface and stolen time.

use myelin_bench_kit::clock;
use procfs::process::Process;
use procfs::{CurrentSI, KernelStats};

use super::Observation;

/// The counters at one moment.
pub(super) struct MachineCounters {
    at_ns: u64,
    loopback_bytes: u64,
    loopback_packets: u64,
    steal_ticks: u64,
    cpus: u64,
}

impl MachineCounters {
    /// Traffic is of the network that `ping` is in, which need not be the lab's.
    pub(super) fn read(interface: &str, ping: Option<u32>) -> Self {
        let interfaces = match ping.and_then(|pid| i32::try_from(pid).ok()) {
            Some(pid) => Process::new(pid).and_then(|ping| ping.dev_status()),
            None => procfs::net::dev_status(),
        };
        let loopback = interfaces.ok().and_then(|mut all| all.remove(interface));
        let (loopback_bytes, loopback_packets) =
            loopback.map_or((0, 0), |it| (it.recv_bytes, it.recv_packets));
        let stats = KernelStats::current().ok();
        MachineCounters {
            at_ns: clock::monotonic_ns(),
            loopback_bytes,
            loopback_packets,
            steal_ticks: stats.as_ref().and_then(|stats| stats.total.steal).unwrap_or(0),
            cpus: stats.map_or(1, |stats| stats.cpu_time.len() as u64),
        }
    }

    pub(super) fn until(&self, later: &MachineCounters) -> Observation {
        let wall_ns = later.at_ns - self.at_ns;
        let stolen_s = later.steal_ticks.saturating_sub(self.steal_ticks) as f64
            / procfs::ticks_per_second() as f64;
        let available_s = wall_ns as f64 * 1e-9 * self.cpus as f64;
        Observation {
            wall_ns,
            loopback_bytes: later.loopback_bytes.saturating_sub(self.loopback_bytes),
            loopback_packets: later.loopback_packets.saturating_sub(self.loopback_packets),
            steal_percent: 100.0 * stolen_s / available_s,
            ..Observation::default()
        }
    }
}
