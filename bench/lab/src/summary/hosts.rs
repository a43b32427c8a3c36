//! What is said of two hosts: how their clocks stood to each other, and what a cut of the link did.

use serde::{Deserialize, Serialize};

/// How pong's clock stood to ping's, of the runs of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ClockFigures {
    /// What pong's clock was ahead by in the middle of the first run; within `error_us`.
    pub offset_us: f64,
    /// When that was, on ping's `CLOCK_MONOTONIC`.
    pub at_s: f64,
    /// What pong's clock gained on ping's, in microseconds a second, over the first run.
    pub drift_ppm: f64,
    /// How wrong `drift_ppm` may be.
    pub drift_error_ppm: f64,
    /// How wrong a one-way figure of any run may be because of the clocks: a bound, not a deviation.
    pub error_us: f64,
    /// How often pong's clock was asked, in all runs.
    pub exchanges: u64,
    /// The least time that a question and its answer were on their way.
    pub least_delay_us: f64,
    /// One-way latencies below zero, which two clocks known within an error alone can yield.
    pub negative: u64,
}

/// What a cut of the link between the hosts did in one run.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct CutFigures {
    /// When the link went down, in seconds from the first measured message.
    pub at_s: f64,
    /// How long it was down.
    pub for_s: f64,
    /// The longest time without a message taken that the cut is a part of; null if nothing was taken
    /// before it, or nothing after.
    pub silent_s: Option<f64>,
    /// Messages sent while it was down.
    pub sent: u64,
    /// Those of them that were never taken.
    pub lost: u64,
    /// Those of them that were taken when it was up again.
    pub late: u64,
}
