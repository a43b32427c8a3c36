//! A driver's description of its systems.

use serde::{Deserialize, Serialize};

use super::Workload;
#[cfg(doc)]
use super::{PROTOCOL, Prepare, Role};

/// How a subscriber of a system waits for its next message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
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

/// How the messages of a system are supposed to travel; the lab checks it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Transport {
    /// Loopback interface of the network stack.
    Loopback,
    /// Memory mapped by both processes.
    SharedMemory,
    /// Buffers of the kernel (pipes, UNIX sockets).
    Kernel,
    /// Memory of one process: a function call, or a hand-over between threads.
    Process,
    /// Simulated.
    None,
}

/// Where the ends of a system run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Topology {
    /// Ping and pong are separate processes.
    #[default]
    TwoProcesses,
    /// Ping's process has both ends; there is no pong process.
    OneProcess,
    /// Ping and pong are processes on two hosts. No system names this topology; systems of two
    /// processes can be run so if they are [`across_hosts`](System::across_hosts).
    TwoHosts,
}

impl Topology {
    /// The name in reports and in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Topology::TwoProcesses => "two-processes",
            Topology::OneProcess => "one-process",
            Topology::TwoHosts => "two-hosts",
        }
    }
}

/// What happens to a message for which a subscriber has no room.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum Reliability {
    /// Publishing never waits: the subscriber loses a message, the oldest or the newest.
    #[default]
    BestEffort,
    /// Publishing waits, and nothing is lost.
    Reliable,
}

impl Reliability {
    /// The name in scenarios and in the protocol.
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

/// What the streams of a system support, beyond one publisher, one subscriber and one topic with
/// best effort.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Streams {
    /// The supported ones. A scenario that asks for another one gets the first, and the report says
    /// so.
    pub reliability: Vec<Reliability>,
    /// Limit of publishers of a topic, one process each; 0 for no limit.
    pub publishers_max: u32,
    /// Limit of subscribers of a topic, one process each; 0 for no limit.
    pub subscribers_max: u32,
    /// Limit of topics between two processes; 0 for no limit.
    pub topics_max: u32,
    /// Limit of messages of a topic kept for a slow subscriber; 0 for no limit.
    pub depth_max: u32,
}

impl Default for Streams {
    fn default() -> Self {
        Streams {
            reliability: Reliability::best_effort_only(),
            publishers_max: 1,
            subscribers_max: 1,
            topics_max: 1,
            depth_max: 0,
        }
    }
}

/// One middleware with one configuration.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct System {
    /// `driver.configuration`, for instance `cyclonedds.udp`.
    pub name: String,
    /// A description in one line.
    pub about: String,
    /// Version of the middleware, as it reports it.
    #[serde(default)]
    pub version: String,
    /// How its subscriber waits.
    pub wait: Wait,
    /// How its messages travel.
    pub transport: Transport,
    /// Where its ends run.
    #[serde(default)]
    pub topology: Topology,
    /// Whether its two processes may be on two hosts ([`Prepare::network`]).
    #[serde(default)]
    pub across_hosts: bool,
    /// Whether it authenticates both sides and encrypts what it sends; it needs
    /// [`Prepare::identity`].
    #[serde(default)]
    pub secure: bool,
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
    /// Whether it is a primitive of the operating system, and part of the floor.
    #[serde(default)]
    pub floor: bool,
    /// The workloads it can run; only round trips if the driver does not say.
    #[serde(default = "Workload::roundtrip_only")]
    pub workloads: Vec<Workload>,
    /// What its streams support.
    #[serde(default)]
    pub streams: Streams,
}

impl System {
    /// A system of two processes on one host that runs round trips, without loans or a daemon.
    pub fn new(name: &str, about: &str, version: &str, wait: Wait, transport: Transport) -> Self {
        System {
            name: name.into(),
            about: about.into(),
            version: version.into(),
            wait,
            transport,
            topology: Topology::TwoProcesses,
            across_hosts: false,
            secure: false,
            loans: false,
            daemon: false,
            missing: None,
            payload_bytes_max: 0,
            floor: false,
            workloads: Workload::roundtrip_only(),
            streams: Streams::default(),
        }
    }

    /// Whether a stream without a rate makes sense: a callback in the publishing thread limits it.
    /// Where a subscriber takes the messages, nothing does.
    pub fn streams_back_to_back(&self) -> bool {
        self.wait == Wait::Callback && self.topology == Topology::OneProcess
    }
}

/// The answer to `describe`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Description {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// The driver's systems.
    pub systems: Vec<System>,
}
