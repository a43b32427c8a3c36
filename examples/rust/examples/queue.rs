//! A queue of jobs; none may be lost. It is reliable, so the publisher waits for a slow worker.
//!
//! `cargo run -p myelin-examples --example queue -- subscribe`, and in another terminal the same
//! with `publish`. Both end by themselves.

use std::time::Duration;

use myelin::{Error, Event, Node, Topic};

fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(&Node::new("planner")?),
        Some("subscribe") => subscribe(&Node::new("worker")?),
        _ => {
            eprintln!("usage: queue publish|subscribe");
            std::process::exit(2);
        }
    }
}

/// Both sides must be reliable; each chooses how long the queue is and how long to wait.
fn jobs(node: &Node) -> Topic<u64> {
    node.topic("jobs").depth(64).reliable_or_fail(Duration::from_secs(10))
}

fn publish(node: &Node) -> Result<(), Error> {
    let publisher = jobs(node).publisher()?;
    if !publisher.wait_for_match(1, Duration::from_secs(30)) {
        println!("nobody is there; start `queue subscribe` within 30 s");
        return Ok(());
    }
    for job in 0..JOBS {
        publisher.publish_copy(&job)?; // waits while the worker is 64 jobs behind
    }
    println!("published {JOBS} jobs");
    Ok(())
}

fn subscribe(node: &Node) -> Result<(), Error> {
    let mut subscriber = jobs(node).subscriber()?;
    let mut sum = 0;
    for done in 0..JOBS {
        let Some(job) = subscriber.receive(Duration::from_secs(30))? else {
            println!("nothing came for 30 s after {done} jobs");
            return Ok(());
        };
        sum += *job;
    }
    println!("did {JOBS} jobs, lost {}, sum {sum}", subscriber.lost());
    for event in subscriber.events() {
        if let Event::Unmatched { pid, died: true, .. } = event {
            println!("the planner, process {pid}, has died");
        }
    }
    Ok(())
}

const JOBS: u64 = 100_000;
