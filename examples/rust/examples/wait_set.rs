//! One thread that waits for two topics, a timer and the end of another thread's work.
//!
//! `cargo run -p myelin-examples --example wait_set -- subscribe`, and in another terminal the same
//! with `publish`. Both end by themselves.

use std::thread;
use std::time::Duration;

use myelin::{Error, Node};

fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("publish") => publish(&Node::new("base")?),
        Some("subscribe") => subscribe(&Node::new("navigator")?),
        _ => {
            eprintln!("usage: wait_set publish|subscribe");
            std::process::exit(2);
        }
    }
}

fn publish(node: &Node) -> Result<(), Error> {
    let wheels = node.topic::<[f64; 2]>("wheels").depth(STEPS).publisher()?;
    let goals = node.topic::<[f64; 2]>("goals").publisher()?;
    let limit = Duration::from_secs(30);
    if !wheels.wait_for_match(1, limit) || !goals.wait_for_match(1, limit) {
        println!("nobody is there; start `wait_set subscribe` within 30 s");
        return Ok(());
    }
    for step in 0..STEPS {
        wheels.publish_copy(&[f64::from(step), f64::from(step) + 0.5])?;
    }
    goals.publish_copy(&[3.0, 4.0])?;
    println!("published {STEPS} steps and a goal");
    Ok(())
}

fn subscribe(node: &Node) -> Result<(), Error> {
    let mut wheels = node.topic::<[f64; 2]>("wheels").depth(STEPS).subscriber()?;
    let mut goals = node.topic::<[f64; 2]>("goals").subscriber()?;
    let mut set = node.wait_set()?;
    let (of_wheels, of_goals) = (set.add(&wheels)?, set.add(&goals)?);
    let tick = set.timer(Duration::from_secs(30))?;
    let planned = set.guard_condition()?;
    let (mut steps, mut is_planned) = (0, false);
    while steps < STEPS || !is_planned {
        let ready = set.wait(Duration::MAX)?.to_vec();
        if ready.contains(&of_wheels) {
            while let Some(wheel) = wheels.take()? {
                steps += 1;
                println!("wheels at {} m, {} m", wheel[0], wheel[1]);
            }
        }
        if ready.contains(&of_goals)
            && let Some(goal) = goals.take()?
        {
            let planned = planned.clone();
            thread::spawn(move || {
                println!("{} m to the goal", goal[0].hypot(goal[1]));
                planned.trigger();
            });
        }
        is_planned |= ready.contains(&planned.key());
        if ready.contains(&tick) {
            println!("not all came within 30 s; start `wait_set publish`");
            break;
        }
    }
    Ok(())
}

const STEPS: u32 = 10;
