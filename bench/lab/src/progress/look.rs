//! Figures of a run so far, from the records that its processes have written up to now.
//!
//! Each look takes in the records that were complete at the look before: answers and messages that
//! were on their way then have arrived by now, or are lost. Of very many it takes every n-th, so
//! that a look costs the same at any rate.

use std::time::Instant;

use hdrhistogram::Histogram;
use myelin_bench_kit::protocol::Workload;
use myelin_bench_kit::samples::Record;

use crate::analyse::distribution::{is_supported, us};
use crate::analyse::series::has_parts;
use crate::observe::cpu_ns;
use crate::run::watch::Running;

/// What can be said of a run in progress.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Figures {
    /// What the percentiles are of.
    pub(super) of: &'static str,
    /// `None` with fewer than ten samples.
    pub(super) p50_us: Option<f64>,
    /// `None` with fewer than ten samples beyond it.
    pub(super) p99_us: Option<f64>,
    /// Messages that were looked at, and those of them that have been lost; `None` where the
    /// records do not say.
    pub(super) lost: Option<(u64, u64)>,
    /// Messages so far, without the warm-up's.
    pub(super) messages: u64,
    /// Messages asked for; 0 for no limit.
    pub(super) messages_all: u64,
    /// Whether measuring has not begun.
    pub(super) is_warming_up: bool,
    /// Since the look before, by process; 100 is one core.
    pub(super) cpu_percent: Vec<(String, f64)>,
    /// How much of the run is done, 0 to 1.
    pub(super) part: f64,
}

/// Looks at a run, again and again.
pub(super) struct Look {
    running: Running,
    begin: Instant,
    /// Of each ping: records taken in, and those that were complete at the last look.
    places: Vec<(usize, usize)>,
    /// In ns. Where any message is lean, percentiles are of those alone.
    lean: Histogram<u32>,
    stamped: Histogram<u32>,
    looked: u64,
    lost: u64,
    /// When CPU times were read last, and what they were.
    cpu_at: Instant,
    cpu_ns: Vec<u64>,
}

impl Look {
    pub(super) fn new(running: Running) -> Self {
        let histogram = || Histogram::new(FIGURES).expect("a precision that is offered");
        Look {
            begin: Instant::now(),
            places: vec![(0, 0); running.pings.len()],
            lean: histogram(),
            stamped: histogram(),
            looked: 0,
            lost: 0,
            cpu_at: Instant::now(),
            cpu_ns: running.processes.iter().map(|(_, pid)| cpu_ns(*pid).unwrap_or(0)).collect(),
            running,
        }
    }

    /// Looks once more.
    pub(super) fn look(&mut self) -> Figures {
        let (of, has_loss) = match self.running.prepare.workload {
            Workload::Roundtrip => ("round trip", true),
            Workload::Publish => ("publish call", false),
            Workload::Stream | Workload::Image | Workload::Flood => ("one way", true),
            Workload::Startup => ("start-up", false),
        };
        self.take_in();
        let used = if self.lean.is_empty() { &self.stamped } else { &self.lean };
        let at = |quantile| {
            let is_enough = is_supported(used.len() as usize, quantile);
            is_enough.then(|| us(used.value_at_quantile(quantile) as i64))
        };
        let exchanges = self.running.exchanges();
        let warmup = self.running.warmup_messages();
        Figures {
            of,
            p50_us: at(0.5),
            p99_us: at(0.99),
            lost: has_loss.then_some((self.looked, self.lost)),
            messages: exchanges.saturating_sub(warmup),
            messages_all: self.running.messages(),
            is_warming_up: exchanges < warmup,
            part: self.running.part(exchanges, self.begin.elapsed()),
            cpu_percent: self.cpu(),
        }
    }

    fn take_in(&mut self) {
        let heard = self.running.pongs.len().max(1);
        let room = (RECORDS_PER_LOOK / (self.places.len().max(1) * heard)).max(1);
        for index in 0..self.places.len() {
            let (next, settled) = self.places[index];
            let step = (settled - next).div_ceil(room).max(1);
            for place in (next..settled).step_by(step) {
                if let Some(ping) = self.running.pings[index].copy(place) {
                    self.take(index, place, &ping);
                }
            }
            self.places[index] = (settled, self.running.pings[index].written());
        }
    }

    /// Takes in record `place` of the `index`-th ping.
    fn take(&mut self, index: usize, place: usize, ping: &Record) {
        let prepare = &self.running.prepare;
        match prepare.workload {
            Workload::Roundtrip => self.count(ping, ping.publish_entry_ns, ping.take_return_ns),
            Workload::Publish => self.count(ping, ping.publish_entry_ns, ping.publish_return_ns),
            Workload::Startup => {}
            Workload::Stream | Workload::Image | Workload::Flood => {
                // As the report has it (`analyse::stream`).
                let is_due = prepare.workload == Workload::Stream && prepare.rate_hz.is_some();
                let from_ns = if is_due { ping.intended_ns } else { ping.publish_entry_ns };
                for pong in 0..self.running.pongs.len() {
                    let taken = self.taken(pong, index, place, ping.id);
                    self.count(ping, from_ns, taken.map_or(0, |pong| pong.take_return_ns));
                }
            }
        }
    }

    /// The record of a message at the `pong`-th receiving end, where each ping has its part of the
    /// file; `None` if it has not come.
    fn taken(&self, pong: usize, ping: usize, place: usize, id: u64) -> Option<Record> {
        let file = &self.running.pongs[pong];
        let record = file.copy(file.capacity() / self.places.len() * ping + place)?;
        (record.id == id && record.take_return_ns != 0).then_some(record)
    }

    /// Counts one latency; that of what is lost ends at 0.
    fn count(&mut self, ping: &Record, from_ns: u64, until_ns: u64) {
        self.looked += 1;
        if until_ns == 0 {
            self.lost += 1;
            return;
        }
        let prepare = &self.running.prepare;
        if prepare.workload.is_one_way() && prepare.network.is_some() {
            return; // the end is on another host's clock, which is compared when the run is over
        }
        let histogram = if has_parts(ping) { &mut self.stamped } else { &mut self.lean };
        // No memory for a latency beyond all before is one sample less.
        let _ = histogram.record(until_ns.saturating_sub(from_ns));
    }

    /// CPU of the processes since the look before; those of one role together.
    fn cpu(&mut self) -> Vec<(String, f64)> {
        let elapsed_ns = self.cpu_at.elapsed().as_nanos().max(1) as f64;
        self.cpu_at = Instant::now();
        let mut seen: Vec<(String, f64)> = Vec::new();
        for ((name, pid), last_ns) in self.running.processes.iter().zip(&mut self.cpu_ns) {
            // One that has ended used nothing since, as far as anybody knows.
            let now_ns = cpu_ns(*pid).unwrap_or(*last_ns);
            let percent = 100.0 * now_ns.saturating_sub(*last_ns) as f64 / elapsed_ns;
            *last_ns = now_ns;
            let role = ["ping", "pong"].into_iter().find(|role| name.starts_with(role));
            let role = role.unwrap_or(name);
            match seen.iter_mut().find(|(name, _)| name == role) {
                Some((_, sum)) => *sum += percent,
                None => seen.push((role.to_owned(), percent)),
            }
        }
        seen
    }
}

/// Significant figures of a latency.
const FIGURES: u8 = 3;
/// Taken in by one look: 256 KiB, what a second-level cache forgets without harm.
const RECORDS_PER_LOOK: usize = 4096;

#[cfg(test)]
mod tests;
