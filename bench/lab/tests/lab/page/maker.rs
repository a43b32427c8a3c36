//! Makes cells of one-way workloads from a cell of a fixture.

use myelin_bench_kit::protocol::{Topology, Transport, Wait};

use super::fixture;
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::summary::*;

/// A system with its median one-way latency when tuned, and its CPU: of all processes, and of the
/// receiver.
#[derive(Clone, Copy)]
pub struct Model {
    pub name: &'static str,
    pub wait: Wait,
    pub topology: Topology,
    pub floor: bool,
    pub p50: f64,
    pub cpu: f64,
    pub receiver: Option<f64>,
}

impl Model {
    pub const fn two(name: &'static str, wait: Wait, p50: f64, [cpu, receiver]: [f64; 2]) -> Self {
        let topology = Topology::TwoProcesses;
        Self { name, wait, topology, floor: false, p50, cpu, receiver: Some(receiver) }
    }

    pub const fn bare(self) -> Self {
        Self { floor: true, ..self }
    }

    fn info(&self) -> SystemInfo {
        SystemInfo {
            name: self.name.to_owned(),
            about: format!("{} as a test has it", self.name),
            version: String::new(),
            wait: self.wait,
            transport: match self.topology {
                Topology::OneProcess => Transport::Process,
                Topology::TwoProcesses | Topology::TwoHosts => Transport::SharedMemory,
            },
            topology: self.topology,
            loans: !self.floor,
            floor: self.floor,
            missing: None,
        }
    }
}

pub struct Maker {
    pattern: (Cell, Detail),
    summary: Summary,
    details: Vec<Detail>,
}

impl Maker {
    pub fn new(scenarios: &str, models: &[Model]) -> Self {
        let Analysis { mut summary, mut details } = fixture::analysis();
        let is_plain =
            |cell: &Cell| cell.tuning == Tuning::Tuned && cell.system == "cyclonedds.udp";
        let index = summary.cells.iter().position(is_plain).unwrap();
        let pattern = (summary.cells.swap_remove(index), details.swap_remove(index));
        summary.cells.clear();
        summary.systems = models.iter().map(Model::info).collect();
        summary.command = format!("myelin bench run {scenarios} --seed 7");
        Self { pattern, summary, details: Vec::new() }
    }

    /// Without tuning the latency is doubled; medians vary by a hundredth over the runs.
    pub fn cell(&mut self, model: &Model, tuning: Tuning, finish: impl FnOnce(&mut Cell)) {
        let (mut cell, mut detail) = self.pattern.clone();
        let p50 = model.p50 * if tuning == Tuning::Tuned { 1.0 } else { 2.0 };
        cell.system = model.name.to_owned();
        cell.tuning = tuning;
        cell.topology = model.topology;
        cell.params.wait = model.wait;
        cell.params.rate_hz = Some(30.0);
        (cell.round_trip_us, cell.read_us, cell.wake_us) = (None, None, None);
        (cell.round_trip_p50_interval_us, cell.round_trip_p99_interval_us) = (None, None);
        cell.placements.clear();
        cell.one_way_us = Some(around(p50));
        cell.one_way_p50_interval_us = Some([0.99 * p50, 1.01 * p50]);
        cell.write_us = Some(around(0.3));
        cell.lateness_us = Some(around(60.0));
        (cell.sent, cell.received, cell.lost) = (1670, 1670, Some(0));
        cell.throughput_per_s = Some(30.0);
        (cell.cpu_percent, cell.receiver_cpu_percent) = (Some(model.cpu), model.receiver);
        finish(&mut cell);
        // Each cell has a different spread.
        let spread = 0.004 + 0.001 * (self.summary.cells.len() as f64 * 0.618).fract();
        for (place, run) in detail.runs.iter_mut().enumerate() {
            let wander = 1.0 + spread * (place as f64 - 2.0);
            run.set("p50_us", Some(p50 * wander));
            run.set("p99_us", Some(3.0 * p50 * wander));
            run.set("taken_per_s", cell.taken_per_s.map(|rate| rate * wander));
            run.set("lossless_per_s", cell.lossless_per_s.map(|rate| rate * wander));
        }
        for point in &mut detail.curve {
            let us = p50 * (1.0 - point.quantile).powf(-0.2);
            (point.us, point.low_us, point.high_us) = (us, 0.9 * us, 1.1 * us);
        }
        self.summary.cells.push(cell);
        self.details.push(detail);
    }

    pub fn finish(self) -> Analysis {
        Analysis { summary: self.summary, details: self.details }
    }
}

pub fn around(p50: f64) -> Distribution {
    Distribution {
        min: 0.8 * p50,
        mean: 1.1 * p50,
        p50: Some(p50),
        p90: Some(1.5 * p50),
        p99: Some(3.0 * p50),
        p999: None,
        max: 9.0 * p50,
    }
}
