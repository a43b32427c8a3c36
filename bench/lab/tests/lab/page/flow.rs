//! Made-up streams and images.

use myelin_bench_kit::protocol::{Topology, Wait, Workload};

use super::fixture;
use super::maker::{Maker, Model, around};
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::summary::*;

/// Frames of [`images`], with their bytes.
pub const FRAMES: [(&str, u64); 2] = [("1440x1080", 4_665_600), ("320x240", 230_400)];
/// Schedules of [`streams`].
pub const ARRIVALS: [&str; 3] = ["even", "jitter", "missing"];

const MODELS: [Model; 6] = [
    one("os.call", Wait::Callback, 0.4, 2.1).bare(),
    Model::two("os.futex", Wait::Block, 47.0, [1.2, 0.4]).bare(),
    one("myelin.local-callback", Wait::Callback, 0.5, 2.2),
    Model::two("myelin.shm-poll", Wait::Poll, 0.6, [101.0, 99.9]),
    Model::two("myelin.shm-block", Wait::Block, 52.0, [1.5, 0.6]),
    Model::two("myelin.shm-predictive", Wait::Predictive, 0.8, [2.0, 1.1]),
];

/// A system in one process.
const fn one(name: &'static str, wait: Wait, p50: f64, cpu: f64) -> Model {
    let topology = Topology::OneProcess;
    Model { name, wait, topology, floor: false, p50, cpu, receiver: None }
}

/// `image-30hz`: two frames, six systems in two topologies, default and tuned; one is invalid.
pub fn images() -> Analysis {
    let mut made = Maker::new("image-30hz", &MODELS);
    for (frame, bytes) in FRAMES {
        for model in &MODELS {
            for tuning in [Tuning::Default, Tuning::Tuned] {
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
                    let wrong = model.name == "myelin.shm-block" && tuning == Tuning::Default;
                    if wrong && frame == "320x240" {
                        cell.valid = false;
                        cell.invalid_reasons = vec![format!(
                            "run 1: 3 payloads differ from what was sent {}",
                            fixture::HOSTILE
                        )];
                    }
                });
            }
        }
    }
    made.finish()
}

/// `periodic`: 64 KiB at 100 Hz with three schedules, in two processes, tuned.
pub fn streams() -> Analysis {
    let mut made = Maker::new("periodic", &MODELS);
    for (place, arrivals) in ARRIVALS.into_iter().enumerate() {
        for model in MODELS.iter().filter(|model| model.topology == Topology::TwoProcesses) {
            made.cell(model, Tuning::Tuned, |cell| {
                cell.scenario = "periodic".to_owned();
                cell.workload = Workload::Stream;
                cell.params.payload_bytes = 65_536;
                cell.params.rate_hz = Some(100.0);
                cell.throughput_per_s = Some(100.0);
                cell.params.arrivals = Some(arrivals.to_owned());
                cell.lost = Some(place as u64);
            });
        }
    }
    made.finish()
}
