//! The host under examination and the table of causes. It reads only below one root.

use std::io;

use myelin_bench_lab::machine::hypervisor;
use myelin_bench_lab::root::Root;

use super::finding::Finding;
use super::measure::Measured;
use super::{cpu, cyclonedds, idle, kernel, memory, preemption, rights};

/// The root to read from, and the measurements.
pub struct Host {
    /// Where `/proc`, `/sys`, `/dev` and `/boot` are.
    pub root: Root,
    /// Absent if the root is not this machine's.
    pub measured: Option<Measured>,
}

/// Why a property is unknown.
#[derive(Debug)]
pub struct Unknown(pub String);

/// The finding about one cause, or why there is none.
pub type Judged = Result<Finding, Unknown>;

/// Examines one cause.
type Judge = fn(&Host) -> Judged;

impl From<io::Error> for Unknown {
    fn from(error: io::Error) -> Self {
        Unknown(reason(&error))
    }
}

/// An error without its number.
pub fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    text.split(" (os error").next().unwrap_or("").to_owned()
}

impl Host {
    /// Every cause of the table, the worst first.
    pub fn examine(&self) -> Vec<Finding> {
        let judge = |&(cause, judge): &(&'static str, Judge)| match judge(self) {
            Ok(finding) => Finding { cause, ..finding },
            Err(Unknown(because)) => Finding::unknown(cause, because),
        };
        let mut findings: Vec<Finding> = CAUSES.iter().map(judge).collect();
        findings.sort_by_key(Finding::rank);
        findings
    }

    /// The numbers of the CPUs, in order.
    pub fn cpus(&self) -> io::Result<Vec<usize>> {
        let folder = "/sys/devices/system/cpu";
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{folder}: {error}"));
        let entries = std::fs::read_dir(self.root.path(folder)).map_err(named)?;
        let number = |entry: io::Result<std::fs::DirEntry>| {
            entry.ok()?.file_name().to_str()?.strip_prefix("cpu")?.parse().ok()
        };
        let mut cpus: Vec<usize> = entries.filter_map(number).collect();
        cpus.sort_unstable();
        Ok(cpus)
    }

    /// Whether this is the guest of a hypervisor.
    pub fn is_guest(&self) -> bool {
        hypervisor(&self.root).is_some()
    }

    /// Whether a file or folder is there.
    pub fn has(&self, path: &str) -> bool {
        self.root.path(path).exists()
    }
}

/// The causes; equally bad ones are reported in this order.
const CAUSES: [(&str, Judge); 15] = [
    ("idle_states", idle::idle_states),
    ("governor", cpu::governor),
    ("steal", cpu::steal),
    ("cpu_quota", kernel::cpu_quota),
    ("preemption", preemption::preemption),
    ("rt_throttling", kernel::rt_throttling),
    ("rtprio", rights::rtprio),
    ("memlock", rights::memlock),
    ("cpu_dma_latency", rights::cpu_dma_latency),
    ("socket_buffers", kernel::socket_buffers),
    ("shared_memory", memory::shared_memory),
    ("huge_pages", memory::huge_pages),
    ("clocksource", cpu::clocksource),
    ("smt", cpu::smt),
    ("cyclonedds", cyclonedds::version),
];
