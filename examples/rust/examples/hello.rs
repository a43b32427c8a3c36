//! Greetings from one program to another: bytes of any length.
//!
//! In one terminal `cargo run -p myelin-examples --example hello -- subscribe`, in another
//! `cargo run -p myelin-examples --example hello -- publish`. Both end by themselves.

use std::time::Duration;

use myelin::{Error, Node};

fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(),
        Some("subscribe") => subscribe(),
        _ => {
            eprintln!("usage: hello publish|subscribe");
            std::process::exit(2);
        }
    }
}

fn publish() -> Result<(), Error> {
    let node = Node::new("hello-publisher")?;
    let publisher = node.topic::<[u8]>("hello").publisher()?;
    if !publisher.wait_for_match(1, Duration::from_secs(30)) {
        println!("nobody is there; start `hello subscribe` within 30 s");
        return Ok(());
    }
    for number in 1..=GREETINGS {
        publisher.publish_copy(format!("hello, number {number}").as_bytes())?;
    }
    println!("published {GREETINGS} greetings");
    Ok(())
}

fn subscribe() -> Result<(), Error> {
    let node = Node::new("hello-subscriber")?;
    let mut subscriber = node.topic::<[u8]>("hello").subscriber()?;
    for _ in 0..GREETINGS {
        let Some(greeting) = subscriber.receive(Duration::from_secs(30))? else {
            println!("nothing came for 30 s; start `hello publish`");
            return Ok(());
        };
        println!("{}: {}", greeting.sequence(), String::from_utf8_lossy(&greeting));
    }
    Ok(())
}

const GREETINGS: u32 = 5;
