//! What there is to be seen of a run while it lasts, for whoever wants to see it.

use std::sync::Arc;
use std::time::Duration;

use myelin_bench_kit::protocol::Prepare;
use myelin_bench_kit::samples::SampleFile;

/// Someone who looks at runs while they last, in a thread of his own.
pub trait Watch {
    /// A run begins: its processes are ready, and told to start next.
    fn begin(&mut self, running: Running);

    /// It is over, or was never begun. When this returns nobody looks any more. Yields the CPU time
    /// that looking took, in ns.
    fn end(&mut self) -> u64;
}

pub struct Running {
    /// What its drivers were told, ping's of those that differ.
    pub prepare: Prepare,
    pub pings: Vec<Arc<SampleFile>>,
    pub processes: Vec<(String, u32)>,
}

impl Running {
    /// Messages that the pings have exchanged so far, those of the warm-up included.
    pub fn exchanges(&self) -> u64 {
        self.pings.iter().map(|ping| ping.exchanges()).sum()
    }

    /// Messages of the warm-up, of all pings.
    pub fn warmup_messages(&self) -> u64 {
        self.prepare.warmup_messages * u64::from(self.prepare.publishers)
    }

    /// Messages that are to be measured, of all pings; 0 for no limit.
    pub fn messages(&self) -> u64 {
        self.prepare.messages * u64::from(self.prepare.publishers)
    }

    /// How much of it is done after so many `exchanges` and so long, 0 to 1.
    pub fn part(&self, exchanges: u64, elapsed: Duration) -> f64 {
        let all = self.messages() + self.warmup_messages();
        let by_count = if self.messages() == 0 { 0.0 } else { exchanges as f64 / all as f64 };
        let by_time = match self.prepare.duration_ns {
            0 => 0.0,
            duration_ns => elapsed.as_secs_f64() * 1e9 / duration_ns as f64,
        };
        by_count.max(by_time).min(1.0)
    }
}
