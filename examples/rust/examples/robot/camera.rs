//! A camera: 30 images a second, written straight into shared memory.

use myelin::Node;

use crate::common::{Failure, Stop, Ticker, now_ns, report};
use crate::{scene, topics};

pub fn run(node: &Node, stop: &Stop) -> Result<(), Failure> {
    let images = topics::image(node).publisher()?;
    let mut ticker = Ticker::new(RATE_HZ);
    let mut number = 0;
    while !stop.is_set() {
        ticker.wait();
        // A real driver passes the loan's memory to the hardware, or unpacks into it. Bytes that it
        // does not write keep their values from an earlier image.
        let mut image = images.loan()?;
        image.stamp_ns = now_ns();
        image.number = number;
        scene::draw(&mut image);
        image.publish()?;
        number += 1;
        report("camera", "image", &images.events());
    }
    Ok(())
}

const RATE_HZ: u32 = 30;
