//! The command `myelin`. Thin: every verb is a call into a library.

mod bench;
mod doctor;
mod options;

use std::io::Write;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use myelin_bench_lab::input_error::InputError;

/// Topics for robots, and a laboratory to measure them.
#[derive(Parser)]
#[command(version, about)]
struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    /// Measure middlewares: round trips, latency percentiles, CPU and memory.
    #[command(subcommand)]
    Bench(bench::Verb),
    /// Say what on this host costs latency, and what killed processes have left behind.
    Doctor(doctor::Options),
}

fn main() -> ExitCode {
    let done = match Arguments::parse().verb {
        Verb::Bench(verb) => bench::run(verb),
        Verb::Doctor(options) => doctor::run(&options),
    };
    match done {
        Ok(code) => code,
        Err(error) if error.is::<InputError>() => {
            eprintln!("error: {error}");
            ExitCode::from(BAD_INPUT)
        }
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

/// Prints; a reader that has gone away (`| head`, a closed terminal) is not our failure.
fn say(text: &str) {
    let mut output = std::io::stdout().lock();
    let _ = output.write_all(text.as_bytes()).and_then(|()| output.flush());
}

/// Exit status for what the user gave and cannot be used.
const BAD_INPUT: u8 = 2;
