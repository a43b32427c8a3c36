//! What systems are scored by.

/// A criterion. Its figure is measured, above 0, and less is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Criterion {
    /// Proportional memory of all processes, daemons included, in bytes.
    Memory,
    /// 99th percentile of the latency over its median.
    Stability,
    /// CPU of all processes, daemons included, in µs for each message.
    Cpu,
    /// The geometric mean of three counts: processes, threads, and lines of configuration plus 1.
    Simplicity,
    /// From the start of the processes until they have found each other, in ms, with the time that
    /// a daemon took before.
    StartUp,
}

impl Criterion {
    /// All of them, in the order in which they are shown.
    pub const ALL: [Criterion; 5] = [
        Criterion::Memory,
        Criterion::Stability,
        Criterion::Cpu,
        Criterion::Simplicity,
        Criterion::StartUp,
    ];

    /// As a file of weights names it.
    pub fn key(self) -> &'static str {
        ["memory", "latency_stability", "cpu", "simplicity", "start_up"][self as usize]
    }

    /// As a report names it.
    pub fn words(self) -> &'static str {
        ["memory", "latency stability", "CPU", "simplicity", "start-up"][self as usize]
    }
}
