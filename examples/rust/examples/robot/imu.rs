//! An IMU: 500 samples a second. The logger must not lose any.

use myelin::Node;

use crate::common::{Failure, Stop, Ticker, now_ns, report};
use crate::topics::{self, Imu};

pub fn run(node: &Node, stop: &Stop) -> Result<(), Failure> {
    let publisher = topics::imu(node).publisher()?;
    let mut ticker = Ticker::new(RATE_HZ);
    let life = now_ns();
    let mut number = 0;
    while !stop.is_set() {
        ticker.wait();
        let imu = Imu {
            stamp_ns: now_ns(),
            life,
            number,
            acceleration: [0.0, 0.0, 9.81],
            angular_velocity: [0.0; 3],
        };
        publisher.publish_copy(&imu)?;
        number += 1;
        report("imu", "imu", &publisher.events());
    }
    Ok(())
}

const RATE_HZ: u32 = 500;
