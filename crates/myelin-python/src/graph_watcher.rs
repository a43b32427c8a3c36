//! Watchers of a domain, and its status: plain values.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::call::{call, this_thread};
use crate::errors::busy;
use crate::gil_cell::GilCell;
use crate::info::{EndpointInfo, NodeInfo, match_state, representation, settings};
use crate::node::seconds;
use crate::released::Released;

/// Watches topics and nodes: rates, losses, matches, CPU and memory. One thread at a time updates it.
#[pyclass(frozen, module = "myelin")]
pub struct GraphWatcher {
    /// No thread waits for it.
    inner: Mutex<Released<myelin::GraphWatcher>>,
    /// The thread that updates it, or the last that did.
    owner: AtomicUsize,
    latest: GilCell<Latest>,
}

/// What the last update has found.
struct Latest {
    status: Py<GraphStatus>,
    changes: Vec<(&'static str, Py<EndpointInfo>)>,
}

/// A domain at the time of an update.
#[pyclass(frozen, get_all, module = "myelin")]
#[derive(Default)]
pub struct GraphStatus {
    /// When the counters were read, by `now`; 0 before the first update.
    at_ns: u64,
    /// How long before that the update before was, in ns; None at the first one.
    since_ns: Option<u64>,
    /// By name.
    topics: Vec<Py<TopicStatus>>,
    /// All nodes of the domain, by id.
    nodes: Vec<Py<NodeStatus>>,
    /// The nodes that have not answered in time, by id.
    silent: Vec<u64>,
    /// The nodes whose answers were cut off at a limit.
    incomplete: Vec<u64>,
}

/// A topic.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct TopicStatus {
    name: String,
    /// If its endpoints have several types, the names of all of them, with `, ` between.
    type_name: String,
    /// The layout hashes of its types: more than one means that endpoints do not match.
    types: Vec<u64>,
    publishers: Vec<Py<EndpointStatus>>,
    subscribers: Vec<Py<EndpointStatus>>,
    /// How many samples its publishers have published in a second; None if it is known of none. A
    /// topic without a publisher has 0.
    rate_hz: Option<f64>,
    /// Bytes of its endpoints' shared memory.
    memory_bytes: u64,
    /// How many samples its subscribers have lost since the update before.
    lost: u64,
    /// How many pairs of a publisher and a subscriber do not match.
    refused: usize,
}

/// A publisher or subscriber.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct EndpointStatus {
    /// Its counters are the last known ones.
    info: Py<EndpointInfo>,
    /// How many samples a publisher has published, or a subscriber has taken, in a second; None if that
    /// is not known.
    rate_hz: Option<f64>,
    /// How many samples a subscriber has lost since its counters were read before.
    lost_in_interval: u64,
    matches: Vec<Py<MatchStatus>>,
    /// When its counters were read, by `now`; None if never.
    counted_ns: Option<u64>,
    /// Whether its node has not answered in time.
    is_silent: bool,
}

/// A match of an endpoint with another.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct MatchStatus {
    other: u64,
    /// The node of the other side.
    node: u64,
    /// `pending`, `matched` or `refused`.
    state: &'static str,
    /// Why it is refused, and what to do.
    reason: Option<String>,
    /// The setting that differs, what the publisher offers and what the subscriber requests.
    setting: Option<String>,
    offered: Option<String>,
    requested: Option<String>,
}

/// A node. CPU, memory and threads are those of its process; None if they are not known.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct NodeStatus {
    info: Py<NodeInfo>,
    /// How long its threads have run since the update before, in percent of one core.
    cpu_percent: Option<f64>,
    /// The resident memory (RSS).
    memory_bytes: Option<u64>,
    threads: Option<u32>,
    /// Whether a signal or a debugger has stopped it.
    is_stopped: bool,
    /// Whether it has not answered in time.
    is_silent: bool,
    /// How many publishers and subscribers it has on the watched topics.
    publishers: usize,
    subscribers: usize,
}

representation!(GraphStatus: topics, nodes, silent);
representation!(TopicStatus: name, type_name, publishers, subscribers, rate_hz, lost, refused);
representation!(EndpointStatus: info, rate_hz, lost_in_interval, is_silent);
representation!(MatchStatus: other, node, state, reason);
representation!(NodeStatus: info, cpu_percent, memory_bytes, threads, is_stopped, is_silent);

impl GraphWatcher {
    pub fn new(py: Python<'_>, watcher: myelin::GraphWatcher) -> PyResult<GraphWatcher> {
        let status = Py::new(py, GraphStatus::default())?;
        Ok(GraphWatcher {
            inner: Mutex::new(Released::new(watcher)),
            owner: AtomicUsize::new(0),
            latest: GilCell::new(Latest { status, changes: Vec::new() }),
        })
    }
}

#[pymethods]
impl GraphWatcher {
    /// Asks all nodes of this host, waits until they have answered, for at most `within` seconds, and
    /// computes what has changed since the last call. A node that does not answer makes each call
    /// take the whole time.
    #[pyo3(signature = (within=1.0))]
    fn update(&self, py: Python<'_>, within: f64) -> PyResult<Py<GraphStatus>> {
        let limit = seconds(within)?;
        let Ok(mut watcher) = self.inner.try_lock() else {
            return Err(busy("graph watcher", self.owner.load(Ordering::Relaxed) == this_thread()));
        };
        self.owner.store(this_thread(), Ordering::Relaxed);
        let of_call = &mut **watcher;
        call(py, || of_call.update(limit).map(|_| ()))?;
        let status = Py::new(py, GraphStatus::new(py, watcher.status())?)?;
        let changes = watcher.changes().iter().map(|change| {
            let (kind, endpoint) = match change {
                myelin::Change::Found(endpoint) => ("found", endpoint),
                myelin::Change::Gone(endpoint) => ("gone", endpoint),
            };
            Ok((kind, Py::new(py, EndpointInfo::from(endpoint.clone()))?))
        });
        let changes = changes.collect::<PyResult<_>>()?;
        let latest = Latest { status: status.clone_ref(py), changes };
        drop(self.latest.replace(py, latest));
        Ok(status)
    }

    /// The status of the last update; empty before the first one.
    #[getter]
    fn status(&self, py: Python<'_>) -> Py<GraphStatus> {
        self.latest.look(py, |latest| latest.status.clone_ref(py))
    }

    /// What went and came with the last update: pairs of `found` or `gone`, and the endpoint; those
    /// that went first.
    fn changes(&self, py: Python<'_>) -> Vec<(&'static str, Py<EndpointInfo>)> {
        let copy = |it: &(&'static str, Py<EndpointInfo>)| (it.0, it.1.clone_ref(py));
        self.latest.look(py, |latest| latest.changes.iter().map(copy).collect())
    }
}

#[pymethods]
impl GraphStatus {
    /// The topic of this name, or None.
    fn topic(&self, py: Python<'_>, name: &str) -> Option<Py<TopicStatus>> {
        let at = self.topics.binary_search_by(|it| it.get().name.as_str().cmp(name)).ok()?;
        Some(self.topics[at].clone_ref(py))
    }

    /// The node with this id, or None.
    fn node(&self, py: Python<'_>, id: u64) -> Option<Py<NodeStatus>> {
        let found = self.nodes.iter().find(|it| it.get().info.get().id() == id);
        found.map(|it| it.clone_ref(py))
    }
}

impl GraphStatus {
    fn new(py: Python<'_>, status: &myelin::GraphStatus) -> PyResult<GraphStatus> {
        let topics = status.topics.iter().map(|it| Py::new(py, TopicStatus::new(py, it)?));
        let nodes = status.nodes.iter().map(|it| Py::new(py, NodeStatus::new(py, it)?));
        Ok(GraphStatus {
            at_ns: status.at_ns,
            since_ns: status.since_ns,
            topics: topics.collect::<PyResult<_>>()?,
            nodes: nodes.collect::<PyResult<_>>()?,
            silent: status.silent.clone(),
            incomplete: status.incomplete.clone(),
        })
    }
}

impl TopicStatus {
    fn new(py: Python<'_>, topic: &myelin::TopicStatus) -> PyResult<TopicStatus> {
        let all = |of: &[myelin::EndpointStatus]| {
            of.iter().map(|it| Py::new(py, EndpointStatus::new(py, it)?)).collect::<PyResult<_>>()
        };
        Ok(TopicStatus {
            name: topic.name.clone(),
            type_name: topic.type_name.clone(),
            types: topic.types.clone(),
            publishers: all(&topic.publishers)?,
            subscribers: all(&topic.subscribers)?,
            rate_hz: topic.rate_hz,
            memory_bytes: topic.memory_bytes,
            lost: topic.lost,
            refused: topic.refused,
        })
    }
}

impl EndpointStatus {
    fn new(py: Python<'_>, endpoint: &myelin::EndpointStatus) -> PyResult<EndpointStatus> {
        let matches = endpoint.matches.iter().map(|it| Py::new(py, MatchStatus::from(it)));
        Ok(EndpointStatus {
            info: Py::new(py, EndpointInfo::from(endpoint.info.clone()))?,
            rate_hz: endpoint.rate_hz,
            lost_in_interval: endpoint.lost_in_interval,
            matches: matches.collect::<PyResult<_>>()?,
            counted_ns: endpoint.counted_ns,
            is_silent: endpoint.is_silent,
        })
    }
}

impl From<&myelin::MatchStatus> for MatchStatus {
    fn from(it: &myelin::MatchStatus) -> Self {
        let (state, reason, mismatch) = match_state(it.state.clone());
        let (setting, offered, requested) = settings(mismatch);
        MatchStatus { other: it.other, node: it.node, state, reason, setting, offered, requested }
    }
}

impl NodeStatus {
    fn new(py: Python<'_>, node: &myelin::NodeStatus) -> PyResult<NodeStatus> {
        Ok(NodeStatus {
            info: Py::new(py, NodeInfo::from(node.info.clone()))?,
            cpu_percent: node.cpu_percent,
            memory_bytes: node.memory_bytes,
            threads: node.threads,
            is_stopped: node.is_stopped,
            is_silent: node.is_silent,
            publishers: node.publishers,
            subscribers: node.subscribers,
        })
    }
}
