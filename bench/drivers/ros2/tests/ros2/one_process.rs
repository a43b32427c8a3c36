//! rclcpp within one process. Skipped, with a message, if rclcpp is not installed.

use std::path::Path;

use myelin_bench_kit::protocol::{Prepare, Topology};

use crate::support::describe;
use crate::support::streams::{at_rate, frames, one_way_systems, within};
use crate::{EXECUTABLE, own_host};

#[test]
fn frames_and_streams_arrive_as_sent() {
    let _host = own_host::enter();
    let systems = one_way_systems(Path::new(EXECUTABLE), Topology::OneProcess);
    if systems.is_empty() {
        let missing = describe(Path::new(EXECUTABLE)).systems.pop().and_then(|it| it.missing);
        println!("left out: ros2.rclcpp-intra: {}", missing.unwrap());
    }
    for system in systems {
        for prepare in [frames(&system.name), at_rate(&system.name)] {
            let depth = prepare.messages as u32 + 16;
            within(Path::new(EXECUTABLE), &Prepare { depth, domain: 95, ..prepare });
        }
    }
}
