//! What the lab asks an agent, and what an agent says. Both are of one build: nothing here is kept.

use std::net::IpAddr;
use std::path::PathBuf;

use myelin_bench_kit::protocol::{Command, Role};
use serde::{Deserialize, Serialize};

use super::{Begin, Player, Said, Start};
use crate::scenario::{Tuning, TuningChoice};

/// Lab to agent. Each is answered, in order, with the value and the body named here.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// [`Place::begin`](super::Place::begin), of the run with this number; the folder is the agent's.
    Begin(u64, Begin),
    /// Yields a u64, when it was. This one and the others are methods of [`Place`](super::Place), and
    /// yield what those do unless it is said.
    Start(Box<Start>),
    Say(Role, Command),
    Go(Vec<Role>, std::time::Duration),
    WaitEnded(Role, std::time::Duration),
    Ending(Player),
    Observe(Vec<u32>),
    /// Yields an `Observation`; the body is its `Series`, JSON.
    Observed,
    /// The body is records.
    Records(Player),
    /// Yields names and lengths of what is in the run's folder; the body is all of it, in order.
    Files,
    End,
    Clean(PathBuf),
    Describe(PathBuf),
    Unavailable(Tuning, TuningChoice),
    Cpus(TuningChoice),
    Facts,
    /// The lab is there: said now and then, and not answered.
    Alive,
    /// Yields the interface that leads to an address, and the address of this host there.
    Route(IpAddr),
}

/// Agent to lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// The first frame.
    Hello(Hello),
    /// To the oldest request that has none yet.
    Answer(Result<serde_json::Value, String>),
    /// From a process of the run with this number.
    Said(u64, Said),
    /// While a run lasts, a few times a second: the exchanges of each process that counts them.
    Beat(Vec<(Player, u64)>),
}

/// Who answers.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Of the program; the lab's must be the same.
    pub version: String,
    /// See [`boot_id`](super::boot_id).
    pub boot: String,
    /// This host's address as whoever logged in by ssh has reached it.
    pub address: Option<IpAddr>,
}
