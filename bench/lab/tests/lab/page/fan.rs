//! Made-up publish runs, derived from the cells of the fixture beside this file.

use myelin_bench_kit::protocol::{Wait, Workload};

use super::fixture;
use myelin_bench_lab::scenario::Tuning;
use myelin_bench_lab::summary::{Analysis, Cell, Detail, FurtherSubscriber};

/// Numbers of subscribers of the cells.
pub const SUBSCRIBERS: [u32; 4] = [0, 1, 8, 64];

/// `publish` with 64 B on two systems, default and tuned; one cell is invalid.
pub fn analysis() -> Analysis {
    let Analysis { mut summary, details } = fixture::analysis();
    let pairs: Vec<(Cell, Detail)> = std::mem::take(&mut summary.cells)
        .into_iter()
        .zip(details)
        .filter(|(cell, _)| cell.params.payload_bytes == 64 && is_publisher(&cell.system))
        .collect();
    let mut details = Vec::new();
    for (cell, detail) in &pairs {
        for subscribers in SUBSCRIBERS {
            let (cell, detail) = publish(cell, detail, subscribers);
            summary.cells.push(cell);
            details.push(detail);
        }
    }
    Analysis { summary, details }
}

fn is_publisher(system: &str) -> bool {
    ["cyclonedds.udp", "cyclonedds.iceoryx-loan"].contains(&system)
}

/// 120 ns plus 2 ns for each subscriber; half as much when tuned.
fn publish(cell: &Cell, detail: &Detail, subscribers: u32) -> (Cell, Detail) {
    let scale = if cell.tuning == Tuning::Tuned { 0.5 } else { 1.0 };
    let p50 = scale * (0.120 + 0.002 * f64::from(subscribers));
    let valid =
        !(cell.tuning == Tuning::Default && cell.system == "cyclonedds.udp" && subscribers == 64);
    let mut made = cell.clone();
    made.scenario = "publish".to_owned();
    made.workload = Workload::Publish;
    made.params.subscribers = subscribers;
    made.params.rate_hz = Some(20_000.0);
    made.params.wait = Wait::Poll;
    made.round_trip_us = None;
    made.one_way_us = None;
    made.read_us = None;
    made.wake_us = None;
    made.placements.clear();
    made.round_trip_p50_interval_us = None;
    made.round_trip_p99_interval_us = None;
    let write = made.write_us.as_mut().unwrap();
    (write.p50, write.p99) = (Some(p50), Some(3.0 * p50));
    made.write_p50_interval_us = Some([0.9 * p50, 1.1 * p50]);
    made.further_subscriber = (subscribers > 1)
        .then_some(FurtherSubscriber { ns: 2.0 * scale, interval_ns: Some([1.5, 2.5]) });
    made.received = made.sent * u64::from(subscribers);
    made.lost = Some(0);
    (made.valid, made.invalid_reasons) = match valid {
        true => (true, vec![]),
        false => {
            (false, vec![format!("run 1: 3 of 64 subscribers took nothing {}", fixture::HOSTILE)])
        }
    };
    let mut runs = detail.runs.clone();
    for run in &mut runs {
        run.set("p50_us", Some(p50));
        run.set("p99_us", Some(3.0 * p50));
    }
    (made, Detail { runs, seconds: Vec::new(), ..detail.clone() })
}
