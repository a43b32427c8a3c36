//! Streams and images that were never measured. Whoever includes this file supplies
//! `super::{fixture, summary}`.

use myelin_bench_kit::protocol::{Topology, Transport, Wait, Workload};

use super::fixture;
use super::summary::*;

/// Frames of [`images`], with their bytes.
pub const FRAMES: [(&str, u64); 2] = [("1440x1080", 4_665_600), ("320x240", 230_400)];
/// Schedules of [`streams`].
pub const ARRIVALS: [&str; 3] = ["even", "jitter", "missing"];

/// A system, its median one way when tuned, and its CPU: of all, and of the receiver.
struct Model {
    name: &'static str,
    wait: Wait,
    topology: Topology,
    floor: bool,
    p50: f64,
    cpu: f64,
    receiver: Option<f64>,
}

const MODELS: [Model; 6] = [
    Model::one("os.call", Wait::Callback, 0.4, 2.1).bare(),
    Model::two("os.futex", Wait::Block, 47.0, [1.2, 0.4]).bare(),
    Model::one("myelin.local-callback", Wait::Callback, 0.5, 2.2),
    Model::two("myelin.shm-poll", Wait::Poll, 0.6, [101.0, 99.9]),
    Model::two("myelin.shm-block", Wait::Block, 52.0, [1.5, 0.6]),
    Model::two("myelin.shm-predictive", Wait::Predictive, 0.8, [2.0, 1.1]),
];

impl Model {
    const fn one(name: &'static str, wait: Wait, p50: f64, cpu: f64) -> Self {
        let topology = Topology::OneProcess;
        Self { name, wait, topology, floor: false, p50, cpu, receiver: None }
    }

    const fn two(name: &'static str, wait: Wait, p50: f64, [cpu, receiver]: [f64; 2]) -> Self {
        let topology = Topology::TwoProcesses;
        Self { name, wait, topology, floor: false, p50, cpu, receiver: Some(receiver) }
    }

    const fn bare(self) -> Self {
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
                Topology::TwoProcesses => Transport::SharedMemory,
            },
            topology: self.topology,
            loans: !self.floor,
            floor: self.floor,
            missing: None,
        }
    }
}

/// `image-30hz`: two frames, six systems in two topologies, default and tuned; one is invalid.
pub fn images() -> Analysis {
    let mut made = Maker::new();
    for (frame, bytes) in FRAMES {
        for model in &MODELS {
            for tuning in ["default", "tuned"] {
                made.cell(model, tuning, |cell| {
                    cell.scenario = "image-30hz".to_owned();
                    cell.workload = Workload::Image;
                    cell.params.payload_bytes = bytes;
                    cell.params.frame = Some(frame.to_owned());
                    let copy = bytes as f64 / 9000.0;
                    cell.memcpy_us = Some(around(copy));
                    cell.stream_copy_us = Some(around(0.8 * copy));
                    cell.fill_us = Some(around(2.0 * copy));
                    cell.loan_us = (!model.floor).then(|| around(0.2));
                    let wrong = model.name == "myelin.shm-block" && tuning == "default";
                    if wrong && frame == "320x240" {
                        cell.valid = false;
                        cell.invalid_reasons = vec![format!(
                            "run 1: 3 payloads were not as sent {}",
                            fixture::HOSTILE
                        )];
                    }
                });
            }
        }
    }
    made.finish()
}

/// `periodic`: 64 KiB at 100 Hz by three schedules, in two processes, tuned.
pub fn streams() -> Analysis {
    let mut made = Maker::new();
    for (place, arrivals) in ARRIVALS.into_iter().enumerate() {
        for model in MODELS.iter().filter(|model| model.topology == Topology::TwoProcesses) {
            made.cell(model, "tuned", |cell| {
                cell.scenario = "periodic".to_owned();
                cell.workload = Workload::Stream;
                cell.params.payload_bytes = 65_536;
                cell.params.rate_hz = Some(100.0);
                cell.params.arrivals = Some(arrivals.to_owned());
                cell.lost = place as u64;
            });
        }
    }
    made.finish()
}

struct Maker {
    pattern: (Cell, Detail),
    summary: Summary,
    details: Vec<Detail>,
}

impl Maker {
    fn new() -> Self {
        let Analysis { mut summary, mut details } = fixture::analysis();
        let is_plain = |cell: &Cell| cell.tuning == "tuned" && cell.system == "cyclonedds.udp";
        let index = summary.cells.iter().position(is_plain).unwrap();
        let pattern = (summary.cells.swap_remove(index), details.swap_remove(index));
        summary.cells.clear();
        summary.systems = MODELS.iter().map(Model::info).collect();
        summary.command = "myelin bench run image-30hz --seed 7".to_owned();
        Self { pattern, summary, details: Vec::new() }
    }

    /// Twice as slow when not tuned; medians wander by a hundredth over the runs.
    fn cell(&mut self, model: &Model, tuning: &str, finish: impl FnOnce(&mut Cell)) {
        let (mut cell, mut detail) = self.pattern.clone();
        let p50 = model.p50 * if tuning == "tuned" { 1.0 } else { 2.0 };
        cell.system = model.name.to_owned();
        cell.tuning = tuning.to_owned();
        cell.topology = model.topology.name().to_owned();
        cell.params.wait = model.wait;
        cell.params.rate_hz = Some(30.0);
        (cell.round_trip_us, cell.read_us, cell.wake_us) = (None, None, None);
        (cell.round_trip_p50_interval_us, cell.round_trip_p99_interval_us) = (None, None);
        cell.placements.clear();
        cell.one_way_us = Some(around(p50));
        cell.one_way_p50_interval_us = Some([0.99 * p50, 1.01 * p50]);
        cell.write_us = Some(around(0.3));
        cell.lateness_us = Some(around(60.0));
        (cell.sent, cell.received, cell.lost) = (1670, 1670, 0);
        (cell.cpu_percent, cell.receiver_cpu_percent) = (model.cpu, model.receiver);
        finish(&mut cell);
        for (place, run) in detail.runs.iter_mut().enumerate() {
            let wander = 0.99 + 0.005 * place as f64;
            (run.p50_us, run.p99_us) = (Some(p50 * wander), Some(3.0 * p50 * wander));
        }
        for point in &mut detail.curve {
            let us = p50 * (1.0 - point.quantile).powf(-0.2);
            (point.us, point.low_us, point.high_us) = (us, 0.9 * us, 1.1 * us);
        }
        self.summary.cells.push(cell);
        self.details.push(detail);
    }

    fn finish(self) -> Analysis {
        Analysis { summary: self.summary, details: self.details }
    }
}

fn around(p50: f64) -> Distribution {
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
