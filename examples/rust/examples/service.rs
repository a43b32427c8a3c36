//! A service: one program asks for a path, another one plans it and replies with as many points as
//! needed.
//!
//! `cargo run -p myelin-examples --example service -- serve`, and in another terminal the same with
//! `call`. The client ends by itself, the server when no client is left.

use std::time::Duration;

use myelin::{Error, Node, PlainData};

/// From the origin to there.
#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Goal {
    x: f64,
    y: f64,
    /// Between two points, in m.
    step: f64,
}

type Point = [f64; 2];

fn main() -> Result<(), Error> {
    match std::env::args().nth(1).as_deref() {
        Some("serve") => serve(&Node::new("planner")?),
        Some("call") => call(&Node::new("robot")?),
        _ => {
            eprintln!("usage: service serve|call");
            std::process::exit(2);
        }
    }
}

fn serve(node: &Node) -> Result<(), Error> {
    let mut service = node.service::<Goal, [Point]>("plan")?;
    let mut plans = 0;
    // Until no client is left.
    while let Some(request) = service.receive(if plans == 0 { FOR_A_CLIENT } else { FOR_MORE })? {
        let distance = request.x.hypot(request.y);
        let points = (distance / request.step).ceil() as usize + 1;
        let mut path = request.loan(points)?; // in shared memory, where the client reads it
        for (at, point) in path.iter_mut().enumerate() {
            let part = at as f64 / (points - 1) as f64;
            *point = [request.x * part, request.y * part];
        }
        path.send()?;
        plans += 1;
    }
    println!("planned {plans} paths");
    Ok(())
}

fn call(node: &Node) -> Result<(), Error> {
    let client = node.client::<Goal, [Point]>("plan")?;
    for leg in 1..=5 {
        let goal = Goal { x: 3.0 * f64::from(leg), y: 4.0 * f64::from(leg), step: 1.0 / 1024.0 };
        // The server may start within this time; if it dies, the call ends at once.
        let path = client.call(&goal, Duration::from_secs(30))?;
        let [x, y] = path.last().expect("a path has two points at least");
        println!("{} points to {x} m, {y} m", path.len());
    }
    Ok(())
}

const FOR_A_CLIENT: Duration = Duration::from_secs(30);
const FOR_MORE: Duration = Duration::from_secs(1);
