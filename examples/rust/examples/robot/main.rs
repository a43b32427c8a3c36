//! A robot of five processes, each of which may die at any moment, and a supervisor that starts
//! them again. `docs/tutorials/robot.md` explains it.
//!
//! `cargo run -p myelin-examples --example robot -- supervise`, until Ctrl-C; or each part in a
//! terminal of its own: `robot camera`, `robot detector`, `robot imu`, `robot controller`,
//! `robot logger`. On two hosts: `MYELIN_NETWORK=1 robot supervise camera detector` on the one and
//! `MYELIN_NETWORK=1 robot supervise imu controller logger` on the other.

mod camera;
mod common;
mod controller;
mod detector;
mod imu;
mod logger;
mod scene;
mod supervisor;
mod topics;

use std::process::ExitCode;

use common::{Failure, Stop};
use myelin::Node;

fn main() -> ExitCode {
    let mut words = std::env::args().skip(1);
    let part = words.next().unwrap_or_default();
    match run(&part, words.collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failure) => {
            eprintln!("{part}: {failure}");
            ExitCode::FAILURE
        }
    }
}

fn run(part: &str, others: Vec<String>) -> Result<(), Failure> {
    let run = match part {
        "camera" => camera::run,
        "detector" => detector::run,
        "imu" => imu::run,
        "controller" => controller::run,
        "logger" => logger::run,
        "supervise" => return supervisor::run(&others, &Stop::at_signals()?),
        _ => {
            eprintln!(
                "usage: robot camera|detector|imu|controller|logger\n       \
                 robot supervise [PART…]      (all of them, if none is named)"
            );
            std::process::exit(2);
        }
    };
    let stop = Stop::at_signals()?;
    supervisor::end_with_it()?;
    run(&Node::new(part)?, &stop)
}
