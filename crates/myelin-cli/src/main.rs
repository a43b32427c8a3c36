//! The command `myelin`. Thin: every verb is a call into a library.

mod bench;

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
}

fn main() -> ExitCode {
    let Verb::Bench(verb) = Arguments::parse().verb;
    match bench::run(verb) {
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

/// Exit status for what the user gave and cannot be used.
const BAD_INPUT: u8 = 2;
