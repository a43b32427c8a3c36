//! A camera: images whose size is known only at run time, written straight into shared memory and
//! read there, in a callback. Nothing is copied.
//!
//! `cargo run --release -p myelin-examples --example image -- subscribe`, and in another terminal
//! the same with `publish`. Both end by themselves.

use std::sync::mpsc;
use std::time::Duration;

use myelin::{Error, Node, Sample};

fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(),
        Some("subscribe") => subscribe(),
        _ => {
            eprintln!("usage: image publish|subscribe");
            std::process::exit(2);
        }
    }
}

fn publish() -> Result<(), Error> {
    let node = Node::new("camera")?;
    let publisher = node.topic::<[u8]>("image").reliable(Duration::from_secs(10)).publisher()?;
    if !publisher.wait_for_match(1, Duration::from_secs(30)) {
        println!("nobody is there; start `image subscribe` within 30 s");
        return Ok(());
    }
    for frame in 0..FRAMES {
        let (width, height) = if frame % 2 == 0 { (320, 240) } else { (1440, 1080) };
        let mut image = publisher.loan(width * height * 3)?;
        image.fill(frame as u8); // the exposure
        image.publish()?;
    }
    println!("published {FRAMES} images");
    Ok(())
}

fn subscribe() -> Result<(), Error> {
    let node = Node::new("viewer")?;
    let subscriber = node.topic::<[u8]>("image").reliable(Duration::from_secs(10)).subscriber()?;
    let (finished, all) = mpsc::channel();
    let _callback = subscriber.on_sample(move |image: &Sample<[u8]>| {
        let brightness =
            image.iter().map(|byte| u64::from(*byte)).sum::<u64>() / image.len() as u64;
        println!("image {}: {} B, brightness {brightness}", image.sequence(), image.len());
        if image.sequence() + 1 == FRAMES {
            let _ = finished.send(());
        }
    })?;
    if all.recv_timeout(Duration::from_secs(60)).is_err() {
        println!("not all images came within 60 s; start `image publish`");
    }
    Ok(())
}

const FRAMES: u64 = 10;
