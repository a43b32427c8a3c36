//! The record of one run: what the executor and the drivers found, nothing derived.

use myelin_bench_kit::protocol::{ClockDiscipline, Done, Exchange};
use myelin_bench_kit::samples::Record;
use serde::{Deserialize, Serialize};

use crate::machine::Identity;
use crate::observe::{CutRecord, LinkRecord, Observation};
use crate::plan::RunPlan;

/// A line of `runs.jsonl`: the facts of one run, nothing derived.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct RunRecord {
    /// The run's entry in the plan.
    #[serde(flatten)]
    pub plan: RunPlan,
    /// Why the run failed; absent if it ended well.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// Remarks, for example on what a driver or the tuning left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Counts of ping; absent if the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ping: Option<Done>,
    /// Counts of pong; absent if the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pong: Option<Done>,
    /// From the start of the later process until both directions had matched; absent if nothing was
    /// started.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub startup_ms: Option<f64>,
    /// From the start of the later process until pong took a message; only for start-ups.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sample_ms: Option<f64>,
    /// From the daemon's start until it answered; only for systems with a daemon.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon_ms: Option<f64>,
    /// When the link between the hosts was down; absent if it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut: Option<CutRecord>,
    /// What an emulated link between the hosts did to frames; absent if there was none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<LinkRecord>,
    /// Across hosts: how the clocks of ping's host and pong's host were synchronised, before and
    /// after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[serde(rename = "keeping")]
    pub clock_discipline: Vec<[ClockDiscipline; 2]>,
    /// Counts of the load beside the run; absent without one, or if the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub load: Option<LoadRecord>,
    /// CPUs to which ping and pong were pinned.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pinned: Option<[usize; 2]>,
    /// What the lab observed from start to done; absent if the run failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observation: Option<Observation>,
    /// The machine of the run; absent in folders of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<Identity>,
    /// Folder of the run, relative to the results folder.
    pub directory: String,
}

/// Counts of a load.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LoadRecord {
    /// Of the end that publishes.
    pub ping: Done,
    /// Of the end that takes.
    pub pong: Done,
}

/// The samples of a run, as its processes recorded them.
#[derive(Clone, Debug, Default)]
pub struct RunSamples {
    /// Ping's records: whole round trips, or publish calls.
    pub ping: Vec<Record>,
    /// Pong's records. For round trips the index is that of ping's record, and a record is all zero
    /// if pong took nothing. For streams and images they are by id, in the order of taking. A
    /// publish run has none.
    pub pong: Vec<Record>,
    /// Across hosts: readings of pong's clock from ping's host, before, during and after the run.
    pub exchanges: Vec<Exchange>,
    /// The records of the load, whose clocks are those of the run.
    pub load: Option<Box<RunSamples>>,
}
