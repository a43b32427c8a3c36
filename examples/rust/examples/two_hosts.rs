//! A robot's pose, on its own host and on others: the same two programs, a node that is opened to the
//! network.
//!
//! `cargo run -p myelin-examples --example two_hosts -- subscribe` on one host, and the same with
//! `publish` on another one, or on the same. Both need CycloneDDS (`apt-get install cyclonedds-dev`).

use std::time::Duration;

use myelin::{Error, NetworkState, Node, PlainData};

#[derive(Clone, Copy, Debug, PlainData)]
#[repr(C)]
struct Pose {
    x: f64,
    y: f64,
    heading: f64,
}

fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(&open("robot")?),
        Some("subscribe") => subscribe(&open("map")?),
        _ => {
            eprintln!("usage: two_hosts publish|subscribe");
            std::process::exit(2);
        }
    }
}

fn open(name: &str) -> Result<Node, Error> {
    let node = Node::builder(name).network(true).open()?;
    if let NetworkState::Waiting { reason } = node.network() {
        eprintln!("alone for now: {reason}"); // topics work on the host, and on the network when it is up
    }
    Ok(node)
}

fn publish(node: &Node) -> Result<(), Error> {
    let publisher = node.topic::<Pose>("pose").reliable(Duration::from_secs(10)).publisher()?;
    if !publisher.wait_for_match(1, Duration::from_secs(30)) {
        println!("nobody is there; start `two_hosts subscribe` within 30 s");
        return Ok(());
    }
    for step in 0..POSES {
        let x = f64::from(step);
        publisher.publish_copy(&Pose { x, y: x / 2.0, heading: 0.25 })?;
        std::thread::sleep(Duration::from_millis(20));
    }
    println!("published {POSES} poses");
    Ok(())
}

fn subscribe(node: &Node) -> Result<(), Error> {
    let mut subscriber =
        node.topic::<Pose>("pose").reliable(Duration::from_secs(10)).subscriber()?;
    for _ in 0..POSES {
        let Some(pose) = subscriber.receive(Duration::from_secs(30))? else {
            println!("nothing came for 30 s; start `two_hosts publish`");
            return Ok(());
        };
        println!("at {} m, {} m, heading {} rad", pose.x, pose.y, pose.heading);
    }
    Ok(())
}

const POSES: u32 = 10;
