//! Made-up streams at a robot's rates, floods and start-ups.

use myelin_bench_kit::protocol::{Reliability, Wait, Workload};

use super::maker::{Maker, Model, around};
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::summary::*;

/// Payloads of `sizes-100hz`, in bytes.
pub const SIZES: [u64; 8] = [16, 1 << 10, 64 << 10, 256 << 10, 1 << 20, 2 << 20, 5 << 20, 10 << 20];
/// Rates of `rate-curve`, in messages per second.
pub const RATES: [f64; 6] = [1.0, 10.0, 100.0, 1e3, 1e4, 1e5];
/// Numbers of subscribers of `fan-out`, for 64 B and for 8 MiB.
pub const SUBSCRIBERS: [u32; 6] = [1, 2, 4, 8, 16, 32];
/// Modules: name, bytes, messages per second.
pub const MODULES: [(&str, u64, f64); 4] = [
    ("functional", 64 << 10, 10.0),
    ("localisation", 64 << 10, 100.0),
    ("normal-sensor", 1 << 20, 10.0),
    ("high-end-sensor", 10 << 20, 10.0),
];

/// Systems, each with the latency that a MiB adds.
const MODELS: [(Model, f64); 5] = [
    (Model::two("os.unix", Wait::Block, 49.0, [1.3, 0.5]).bare(), 610.0),
    (Model::two("cyclonedds.udp", Wait::Block, 140.0, [3.2, 1.9]), 1400.0),
    (Model::two("iceoryx2.event", Wait::Block, 61.0, [1.6, 0.7]), 0.0),
    (Model::two("myelin.shm-block", Wait::Block, 52.0, [1.5, 0.6]), 0.0),
    (Model::two("myelin.shm-poll", Wait::Poll, 0.6, [101.0, 99.9]), 0.0),
];
/// The only reliable system; all others are best effort.
pub const RELIABLE: &str = "iceoryx2.event";
/// The highest rate of `cyclonedds.udp`, in messages per second.
pub const SATURATED_AT: f64 = 8200.0;

/// `sizes-100hz`: the floor cannot carry 10 MiB, one cell is invalid, one has no p99.
pub fn sizes() -> Analysis {
    let mut made = maker("sizes-100hz");
    for bytes in SIZES {
        for (model, per_mib) in &MODELS {
            if model.floor && bytes == 10 << 20 {
                continue;
            }
            let slow = at_size(model, *per_mib, bytes);
            for tuning in [Tuning::Default, Tuning::Tuned] {
                made.cell(&slow, tuning, |cell| {
                    stream(cell, "sizes-100hz", bytes, 100.0);
                    let lost = if slow.p50 > 8000.0 { 30 } else { 0 };
                    (cell.received, cell.lost) = (cell.sent - lost, Some(lost));
                    if model.name == "myelin.shm-block" && bytes == 1 << 20 {
                        cell.one_way_us.as_mut().unwrap().p99 = None;
                    }
                    if model.name == "cyclonedds.udp" && bytes == 1 << 10 && tuning == Tuning::Tuned
                    {
                        cell.valid = false;
                        cell.invalid_reasons = vec!["run 2: ping ran on another CPU".to_owned()];
                    }
                });
            }
        }
    }
    made.finish()
}

/// `rate-curve`, 64 KiB, tuned: above 8200 a second `cyclonedds.udp` falls behind.
pub fn rates() -> Analysis {
    let mut made = maker("rate-curve");
    for rate in RATES {
        for (model, _) in &MODELS {
            let is_behind = model.name == "cyclonedds.udp" && rate > SATURATED_AT;
            let busy = (model.cpu * rate / 100.0).clamp(0.02, 130.0);
            let p50 = if is_behind { 90_000.0 } else { model.p50 };
            let model = Model { p50, cpu: busy, ..*model };
            made.cell(&model, Tuning::Tuned, |cell| {
                stream(cell, "rate-curve", 64 << 10, rate);
                if is_behind {
                    cell.throughput_per_s = Some(SATURATED_AT);
                }
                // Too few messages for high percentiles.
                let way = cell.one_way_us.as_mut().unwrap();
                way.p99 = way.p99.filter(|_| rate > 50.0);
                way.p999 = way.p999.filter(|_| rate > 500.0);
            });
        }
    }
    made.finish()
}

/// `fan-out`: two payloads, six numbers of subscribers, tuned.
pub fn fan_out() -> Analysis {
    let mut made = maker("fan-out");
    for bytes in [64, 8 << 20] {
        for subscribers in SUBSCRIBERS {
            for (model, per_mib) in &MODELS {
                let slow = at_size(model, *per_mib, bytes);
                let p50 = slow.p50 * (1.0 + 0.2 * f64::from(subscribers - 1));
                made.cell(&Model { p50, ..slow }, Tuning::Tuned, |cell| {
                    stream(cell, "fan-out", bytes, 30.0);
                    cell.params.subscribers = subscribers;
                    cell.received = cell.sent * u64::from(subscribers);
                });
            }
        }
    }
    made.finish()
}

/// `modules`, default and tuned, with the modules of the car.
pub fn modules() -> Analysis {
    let mut made = maker("modules");
    for (module, bytes, rate) in MODULES {
        for (model, per_mib) in &MODELS {
            let slow = at_size(model, *per_mib, bytes);
            for tuning in [Tuning::Default, Tuning::Tuned] {
                made.cell(&slow, tuning, |cell| {
                    stream(cell, "modules", bytes, rate);
                    cell.params.module = Some(module.to_owned());
                });
            }
        }
    }
    made.finish()
}

/// `command-beside-images`, tuned: beside the images everything takes three times as long; of the images
/// a system that loses some takes 4 a second of 5, and the cell of `iceoryx2.event` is not valid.
pub fn beside() -> Analysis {
    let mut made = maker("command-beside-images");
    for load in [None, Some("images")] {
        for (model, _) in &MODELS {
            let p50 = model.p50 * if load.is_some() { 3.0 } else { 1.0 };
            made.cell(&Model { p50, ..*model }, Tuning::Tuned, |cell| {
                stream(cell, "command-beside-images", 64, 1000.0);
                cell.params.load = load.map(str::to_owned);
                cell.load = load.map(|_| images(model.name));
                if load.is_some() && model.name == RELIABLE {
                    cell.valid = false;
                    cell.invalid_reasons = vec!["run 1: the load: no message was taken".to_owned()];
                }
            });
        }
    }
    made.finish()
}

fn images(system: &str) -> LoadFigures {
    let received = if system == "cyclonedds.udp" { 40 } else { 50 };
    LoadFigures {
        payload_bytes: 10 << 20,
        rate_hz: 5.0,
        reliability: Reliability::Reliable,
        depth: 4,
        sent: 50,
        received,
        lost: 50 - received,
        sent_per_s: Some(5.0),
        received_per_s: Some(received as f64 / 10.0),
        cpu_us_per_message: Some(6400.0),
        one_way_us: Some(around(90_000.0)),
    }
}

/// `flood` with three sizes and `sanity-discovery`, default.
pub fn extremes() -> Analysis {
    let mut made = maker("flood sanity-discovery");
    for bytes in [64u64, 4096, 65_536] {
        for (place, (model, _)) in MODELS.iter().enumerate() {
            made.cell(model, Tuning::Default, |cell| {
                one_way(cell, "flood", Workload::Flood, bytes);
                cell.params.rate_hz = None;
                cell.lateness_us = None;
                cell.throughput_per_s = Some(1.5e6 / (place + 1) as f64);
                cell.taken_per_s = Some(1.2e6 / (place + 1) as f64);
                let is_found = model.name != "cyclonedds.udp";
                cell.lossless_per_s = is_found.then_some(8e5 / (place + 1) as f64);
                (cell.sent, cell.received, cell.lost) = (5_000_000, 4_000_000, Some(1_000_000));
            });
        }
    }
    for (model, _) in &MODELS {
        made.cell(model, Tuning::Default, |cell| {
            one_way(cell, "sanity-discovery", Workload::Startup, 64);
            cell.params.rate_hz = None;
            (cell.one_way_us, cell.service_us, cell.lateness_us) = (None, None, None);
            cell.one_way_p50_interval_us = None;
            let withheld = |distribution: Distribution| Distribution {
                p50: None,
                p90: None,
                p99: None,
                ..distribution
            };
            cell.matched_us = Some(withheld(around(3000.0)));
            cell.first_sample_us = Some(withheld(around(3400.0)));
            cell.daemon_ms = model.name.starts_with("iceoryx2").then_some(12.5);
            (cell.sent, cell.received, cell.lost) = (5, 5, Some(0));
        });
    }
    made.finish()
}

fn maker(scenarios: &str) -> Maker {
    Maker::new(scenarios, &MODELS.map(|(model, _)| model))
}

fn at_size(model: &Model, per_mib: f64, bytes: u64) -> Model {
    Model { p50: model.p50 + per_mib * bytes as f64 / f64::from(1 << 20), ..*model }
}

fn stream(cell: &mut Cell, scenario: &str, bytes: u64, rate_hz: f64) {
    one_way(cell, scenario, Workload::Stream, bytes);
    cell.params.rate_hz = Some(rate_hz);
    cell.throughput_per_s = Some(rate_hz);
    cell.pss_bytes = Some(9_000_000 + 3 * bytes);
    cell.rss_bytes = Some(14_000_000 + 6 * bytes);
    let way = cell.one_way_us.as_mut().unwrap();
    way.p999 = way.p50.map(|p50| 5.0 * p50);
    cell.service_us = Some(Distribution { p999: way.p50.map(|p50| 2.5 * p50), ..*way });
}

fn one_way(cell: &mut Cell, scenario: &str, workload: Workload, bytes: u64) {
    cell.scenario = scenario.to_owned();
    cell.workload = workload;
    cell.params.payload_bytes = bytes;
    cell.params.depth = Some(16);
    cell.params.reliability = Some(match cell.system == RELIABLE {
        true => Reliability::Reliable,
        false => Reliability::BestEffort,
    });
}
