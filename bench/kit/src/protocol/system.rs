//! What a driver says of its systems.

use serde::{Deserialize, Serialize};

use super::Workload;
#[cfg(doc)]
use super::{PROTOCOL, Prepare, Role};

/// How a subscriber of a system comes to its next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Wait {
    /// Spins without limit: a core is busy all the time.
    Poll,
    /// Sleeps in the kernel until woken.
    Block,
    /// Spins for a bounded time, then sleeps.
    Adaptive,
    /// Sleeps on a timer until just before the next message is expected, spins for a moment, then
    /// sleeps.
    Predictive,
    /// Does not wait: the system calls a function.
    Callback,
    /// Simulated.
    None,
}

/// Over what the messages of a system are supposed to travel; the lab proves it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Loopback interface of the network stack.
    Loopback,
    /// Memory mapped by both processes.
    SharedMemory,
    /// Buffers of the kernel (pipes, UNIX sockets).
    Kernel,
    /// Memory of one process: a function call, or a hand-over between its threads.
    Process,
    /// Simulated.
    None,
}

/// Where the ends of a system live.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Ping and pong are processes of their own.
    #[default]
    TwoProcesses,
    /// There is no pong: ping's process has both ends.
    OneProcess,
    /// Ping and pong are processes on two hosts. No system lives so by itself: those of two
    /// processes that are [`across_hosts`](System::across_hosts) can be run so.
    TwoHosts,
}

impl Topology {
    /// As it is written in reports and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Topology::TwoProcesses => "two-processes",
            Topology::OneProcess => "one-process",
            Topology::TwoHosts => "two-hosts",
        }
    }
}

/// What becomes of a message for which a subscriber has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// Publishing never waits: the subscriber loses a message, the oldest or the newest.
    #[default]
    BestEffort,
    /// Publishing waits, and nothing is lost.
    Reliable,
}

impl Reliability {
    /// As it is written in scenarios and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Reliability::BestEffort => "best-effort",
            Reliability::Reliable => "reliable",
        }
    }

    fn best_effort_only() -> Vec<Reliability> {
        vec![Reliability::BestEffort]
    }
}

/// What the streams of a system can be, beyond one publisher, one subscriber and one topic at best
/// effort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Streams {
    /// What it offers; a scenario that asks for something else gets the first of these, and the
    /// report says so.
    pub reliability: Vec<Reliability>,
    /// Most publishers of a topic, each a process; 0 for no limit.
    pub publishers_max: u32,
    /// Most subscribers of a topic, each a process; 0 for no limit.
    pub subscribers_max: u32,
    /// Most topics between two processes; 0 for no limit.
    pub topics_max: u32,
}

impl Default for Streams {
    fn default() -> Self {
        Streams {
            reliability: Reliability::best_effort_only(),
            publishers_max: 1,
            subscribers_max: 1,
            topics_max: 1,
        }
    }
}

/// One middleware with one configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// `driver.configuration`, for instance `cyclonedds.udp`.
    pub name: String,
    /// What it is, in one line.
    pub about: String,
    /// Version of the middleware, as it reports it.
    #[serde(default)]
    pub version: String,
    /// How its subscriber waits.
    pub wait: Wait,
    /// What its messages travel over.
    pub transport: Transport,
    /// Where its ends live.
    #[serde(default)]
    pub topology: Topology,
    /// Whether its two processes may be on two hosts ([`Prepare::network`]).
    #[serde(default)]
    pub across_hosts: bool,
    /// Whether publishers write into loaned memory.
    #[serde(default)]
    pub loans: bool,
    /// Whether it needs a daemon ([`Role::Daemon`]) while it runs.
    #[serde(default)]
    pub daemon: bool,
    /// Why it cannot run here, and what to install; `None` if it can.
    #[serde(default)]
    pub missing: Option<String>,
    /// Largest payload it can carry here, in bytes; 0 if unlimited.
    #[serde(default)]
    pub payload_bytes_max: u64,
    /// A bare primitive of the operating system: part of the floor.
    #[serde(default)]
    pub floor: bool,
    /// The workloads it can run; round trips alone if the driver does not say.
    #[serde(default = "Workload::roundtrip_only")]
    pub workloads: Vec<Workload>,
    /// What its streams can be.
    #[serde(default)]
    pub streams: Streams,
}

/// The answer to `describe`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The driver's systems.
    pub systems: Vec<System>,
}
