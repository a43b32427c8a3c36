//! Executing a plan: fresh processes for every run, watched, and never left behind.

pub mod execute;
mod processes;
pub mod spec;
pub mod watch;

use myelin_bench_kit::protocol::Exchange;
use myelin_bench_kit::samples::Record;

/// The samples of one run.
#[derive(Clone, Debug, Default)]
pub struct RunSamples {
    /// Ping's records: whole round trips, or publish calls.
    pub ping: Vec<Record>,
    /// Pong's records: of round trips at the index of ping's, all zero where pong took nothing; of
    /// streams and images by id, in the order of taking. None of a publish run.
    pub pong: Vec<Record>,
    /// Across hosts: what pong's clock read, asked from ping's host before, during and after.
    pub exchanges: Vec<Exchange>,
}
