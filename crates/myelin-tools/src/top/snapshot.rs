//! What is there at one moment, in rows: of topics and of nodes. The names in it are printable.

use serde::{Deserialize, Serialize};

/// All topics and nodes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Snapshot {
    /// When, in nanoseconds by `CLOCK_MONOTONIC`.
    pub at_ns: u64,
    /// Over how long rates and losses are counted; `None`: it is the first one.
    pub interval_s: Option<f64>,
    /// By name, without those of services.
    pub topics: Vec<TopicRow>,
    /// By name.
    pub nodes: Vec<NodeRow>,
}

/// A topic.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct TopicRow {
    /// Its name, as people write it.
    pub name: String,
    /// Its name in Myelin, or in DDS. No other topic has it.
    pub wire_name: String,
    /// The name of its type; if endpoints differ, all of them.
    #[serde(rename = "type")]
    pub type_name: String,
    /// All its publishers together.
    pub rate_hz: Option<f64>,
    /// The payloads of all its publishers together.
    pub bytes_per_s: Option<f64>,
    /// From publication to take.
    pub latency_us: Option<Latency>,
    /// How many samples its subscribers lost in the interval.
    pub lost: u64,
    /// The same since they were made.
    pub lost_total: u64,
    /// How many samples its subscribers hold.
    pub held: u64,
    /// Shared memory of its endpoints.
    pub memory_bytes: u64,
    /// How many pairs of endpoints do not match.
    pub refused: usize,
    /// Its publishers.
    pub publishers: Vec<EndpointRow>,
    /// Its subscribers.
    pub subscribers: Vec<EndpointRow>,
}

/// How many samples a subscriber has lost for each reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Losses {
    /// It was further behind than the depth.
    pub overwritten: u64,
    /// A reliable publisher did not wait any longer.
    pub passed_over: u64,
    /// On the way from another host.
    pub network: u64,
    /// No memory for a sample of another host.
    pub memory: u64,
}

/// From publication to take, of the last 10 to 20 s, as subscribers measure it; of samples with a
/// timestamp only.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Latency {
    /// The median, in microseconds.
    pub p50: f64,
    /// The 99th percentile, in microseconds.
    pub p99: f64,
}

/// A publisher or subscriber.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct EndpointRow {
    /// Its id.
    pub id: u64,
    /// Its node's id; 0 for a DDS program.
    pub node: u64,
    /// The name of its node; for one of ROS 2 with the namespace.
    pub node_name: String,
    /// Where it is, if not on this host.
    pub elsewhere: Option<String>,
    /// What it publishes, or takes.
    pub rate_hz: Option<f64>,
    /// The payloads that a publisher publishes.
    pub bytes_per_s: Option<f64>,
    /// How many loans were refused to a publisher for lack of memory.
    pub refused_loans: u64,
    /// How many samples a subscriber lost in the interval.
    pub lost: u64,
    /// The same since it was made.
    pub lost_total: u64,
    /// Why, since it was made.
    pub losses: Losses,
    /// How many samples a subscriber holds.
    pub held: u64,
    /// Its shared memory.
    pub memory_bytes: u64,
    /// Its settings: `reliable, depth 8`.
    pub qos: String,
    /// From publication to take.
    pub latency_us: Option<Latency>,
    /// The endpoints of the other side, and whether they match.
    pub matches: Vec<MatchRow>,
}

/// An endpoint of the other side.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MatchRow {
    /// Its id.
    pub other: u64,
    /// Its node's name.
    pub node_name: String,
    /// Whether samples flow.
    pub is_matched: bool,
    /// Why not.
    pub refusal: Option<String>,
}

/// A node. The nodes of ROS 2 in a process have an id, and the numbers of the process, in common.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NodeRow {
    /// Its id.
    pub node: u64,
    /// Its name.
    pub name: String,
    /// Its process; 0 if it cannot be seen here.
    pub pid: u32,
    /// The CPU time of its process; 100 is one core.
    pub cpu_percent: Option<f64>,
    /// The resident memory of its process.
    pub memory_bytes: Option<u64>,
    /// The threads of its process.
    pub threads: Option<u32>,
    /// How many publishers it has, without those of services.
    pub publishers: usize,
    /// How many subscribers it has, without those of services.
    pub subscribers: usize,
    /// Whether it has not answered.
    pub is_silent: bool,
    /// Whether a signal or a debugger has stopped its process.
    pub is_stopped: bool,
    /// Its program.
    pub program: String,
    /// The language of its library, and the library's version.
    pub library: String,
    /// Its host's name.
    pub host: String,
    /// The user that it runs as.
    pub user: u32,
}
