//! Executing a plan: fresh processes for every run, watched, and never left behind.

pub mod execute;
pub(crate) mod processes;
pub mod spec;
pub mod watch;

use myelin_bench_kit::protocol::{Done, Exchange, Keeping};
use myelin_bench_kit::samples::Record;
use serde::{Deserialize, Serialize};

use crate::machine::Identity;
use crate::observe::{CutRecord, Observation};
use crate::plan::RunPlan;

/// A line of `runs.jsonl`: the facts of one run, nothing derived.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunRecord {
    /// Which run of the plan.
    #[serde(flatten)]
    pub plan: RunPlan,
    /// Why it did not come to its end; absent if it did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Remarks: what a driver or the tuning left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Counts of ping; absent if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<Done>,
    /// Counts of pong; absent if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pong: Option<Done>,
    /// From the start of the later process until both directions matched.
    pub startup_ms: f64,
    /// From the start of the later process until pong had taken a message; of start-ups alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sample_ms: Option<f64>,
    /// From the daemon's start until it answered; of systems with a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon_ms: Option<f64>,
    /// The time for which the link between the hosts was down; absent if it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutRecord>,
    /// Across hosts: how the clocks of ping's host and of pong's were kept, before and after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeping: Vec<[Keeping; 2]>,
    /// CPUs that ping and pong were pinned to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<[usize; 2]>,
    /// What happened from start to done; absent if it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
    /// The machine that measured it; absent in folders of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Identity>,
    /// Folder of the run, relative to the results folder.
    pub directory: String,
}

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
