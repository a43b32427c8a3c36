//! What the lab asks an agent, and what an agent replies, in frames over two streams of bytes. Both are
//! of one build: nothing here is kept.

pub(super) mod frame;
pub(super) mod reader;
pub(super) mod writer;

use std::net::IpAddr;
use std::path::PathBuf;

use myelin_bench_kit::protocol::{Command, Role};
use serde::{Deserialize, Serialize};

use super::{ProcessId, ProcessMessage, ProcessSpec, RunOnHost};
use crate::scenario::{Tuning, TuningChoice};

/// Lab to agent. Each is answered, in order, with the value and the body named here.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Request {
    /// [`Host::begin`](super::Host::begin), of the run with this number; the folder is the agent's.
    Begin(u64, RunOnHost),
    /// Yields a u64, when it was. This one and those without a word are methods of
    /// [`Host`](super::Host), and yield what those do.
    Start(Box<ProcessSpec>),
    Send(Role, Command),
    Go(Vec<Role>, std::time::Duration),
    WaitEnded(Role, std::time::Duration),
    Ending(ProcessId),
    Observe(Vec<u32>),
    /// Yields an `Observation`; the body is its `Series`, JSON.
    Observed,
    /// The body is records.
    Records(ProcessId),
    /// Yields names and lengths of what is in the run's folder; the body is all of it, in order.
    Files,
    End,
    Clean(PathBuf),
    /// Yields the systems that a driver has there.
    Describe(PathBuf),
    /// Yields why a tuning cannot be had there; `None` if it can.
    Unavailable(Tuning, TuningChoice),
    /// Yields the CPUs of `tuned` there.
    Cpus(TuningChoice),
    /// Yields the machine that it is, after having watched it for a moment.
    Machine,
    /// The lab is there: said now and then, and not answered.
    Alive,
    /// Yields the interface that leads to an address, and the address of this host there.
    Route(IpAddr),
}

/// Agent to lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Reply {
    Hello(Hello),
    /// To the oldest request that has none yet.
    Answer(Result<serde_json::Value, String>),
    /// From a process of the run with this number.
    Message(u64, ProcessMessage),
    /// While a run lasts, a few times a second: the exchanges of each process that counts them.
    Progress(Vec<(ProcessId, u64)>),
}

#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Hello {
    /// Of the program; the lab's must be the same.
    pub version: String,
    pub boot: String,
    /// This host's address as whoever logged in by ssh has reached it.
    pub address: Option<IpAddr>,
}
