//! A sensor: a struct, checked on both sides. Run `subscribe`, then `publish`. `subscribe-wrong`,
//! while one of them waits, shows the error for a program with a different struct.
//!
//! `cargo run -p myelin-examples --example typed -- subscribe|publish|subscribe-wrong`

use std::time::Duration;

use myelin::{Error, Node, PlainData};

#[derive(Clone, Copy, Debug, PlainData)]
#[repr(C)]
struct Imu {
    stamp_ns: u64,
    acceleration: [f64; 3],
    temperature: f32,
    /// There must be no padding: the derive says so, and where, if this field is missing.
    _pad: [u8; 4],
}

fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(),
        Some("subscribe") => subscribe(),
        Some("subscribe-wrong") => subscribe_wrong(),
        _ => {
            eprintln!("usage: typed publish|subscribe|subscribe-wrong");
            std::process::exit(2);
        }
    }
}

fn publish() -> Result<(), Error> {
    let node = Node::new("imu-driver")?;
    let publisher = node.topic::<Imu>("imu").publisher()?;
    if !publisher.wait_for_match(1, Duration::from_secs(30)) {
        println!("nobody is there; start `typed subscribe` within 30 s");
        return Ok(());
    }
    for number in 0..SAMPLES {
        let acceleration = [0.0, 0.0, 9.81];
        let stamp_ns = number * 10_000_000;
        publisher.publish_copy(&Imu { stamp_ns, acceleration, temperature: 21.5, _pad: [0; 4] })?;
    }
    println!("published {SAMPLES} samples");
    Ok(())
}

fn subscribe() -> Result<(), Error> {
    let node = Node::new("filter")?;
    let mut subscriber = node.topic::<Imu>("imu").subscriber()?;
    for _ in 0..SAMPLES {
        let Some(imu) = subscriber.receive(Duration::from_secs(30))? else { break };
        println!("{} ns: {:?} m/s², {} °C", imu.stamp_ns, imu.acceleration, imu.temperature);
    }
    Ok(())
}

fn subscribe_wrong() -> Result<(), Error> {
    match Node::new("old-filter")?.topic::<[f32; 3]>("imu").subscriber() {
        Err(error) => println!("{error}"),
        Ok(_) => println!("there is no other program on this topic; start `typed publish` first"),
    }
    Ok(())
}

const SAMPLES: u64 = 5;
