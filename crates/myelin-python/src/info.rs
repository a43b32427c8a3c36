//! What a node knows, and what happens: values without a life of their own.

use pyo3::prelude::*;

/// What a publish says.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct Published {
    /// How many samples its publisher published before it.
    sequence: u64,
    /// Late reliable subscribers that were not waited for.
    passed_over: u32,
}

impl From<myelin::Published> for Published {
    fn from(published: myelin::Published) -> Self {
        let myelin::Published { sequence, passed_over, .. } = published;
        Published { sequence, passed_over }
    }
}

#[pymethods]
impl Published {
    fn __repr__(&self) -> String {
        format!("Published(sequence={}, passed_over={})", self.sequence, self.passed_over)
    }
}

/// Something happened to a match. What its kind does not have is None.
#[pyclass(frozen, get_all, module = "myelin")]
#[derive(Default)]
pub struct Event {
    /// `matched`, `unmatched`, `qos_reduced`, `lost`, `passed_over`, `caught_up`, `incompatible`,
    /// `deadline_missed`, `liveliness_lost`, `liveliness_regained`, `buffer_too_small`, `corrupt`.
    kind: String,
    /// The other side's id.
    endpoint: u64,
    /// Its process.
    pid: Option<u32>,
    /// Of `unmatched`: it crashed or was killed.
    died: Option<bool>,
    /// Why, and what to do.
    reason: Option<String>,
    /// Of `lost`: how many.
    samples: Option<u64>,
}

impl From<myelin::Event> for Event {
    fn from(event: myelin::Event) -> Self {
        use myelin::Event as E;
        let of = |kind: &str, endpoint| Event { kind: kind.into(), endpoint, ..Event::default() };
        match event {
            E::Matched { endpoint, pid } => Event { pid: Some(pid), ..of("matched", endpoint) },
            E::Unmatched { endpoint, pid, died } => {
                Event { pid: Some(pid), died: Some(died), ..of("unmatched", endpoint) }
            }
            E::QosReduced { endpoint, pid, reason } => {
                Event { pid: Some(pid), reason: Some(reason), ..of("qos_reduced", endpoint) }
            }
            E::Lost { endpoint, samples } => {
                Event { samples: Some(samples), ..of("lost", endpoint) }
            }
            E::PassedOver { endpoint, pid } => {
                Event { pid: Some(pid), ..of("passed_over", endpoint) }
            }
            E::CaughtUp { endpoint, pid } => Event { pid: Some(pid), ..of("caught_up", endpoint) },
            E::Incompatible { endpoint, pid, reason } => {
                Event { pid: Some(pid), reason: Some(reason), ..of("incompatible", endpoint) }
            }
            E::DeadlineMissed { endpoint } => of("deadline_missed", endpoint),
            E::LivelinessLost { endpoint } => of("liveliness_lost", endpoint),
            E::LivelinessRegained { endpoint } => of("liveliness_regained", endpoint),
            E::BufferTooSmall { endpoint, remedy, .. } => {
                Event { reason: Some(remedy), ..of("buffer_too_small", endpoint) }
            }
            E::Corrupt { endpoint } => of("corrupt", endpoint),
            other => Event { reason: Some(format!("{other:?}")), ..of("other", 0) },
        }
    }
}

#[pymethods]
impl Event {
    fn __repr__(&self) -> String {
        let Event { kind, endpoint, pid, died, reason, samples } = self;
        let mut text = format!("Event({kind}, endpoint={endpoint:#x}");
        let said = [
            pid.map(|pid| format!(", pid={pid}")),
            died.map(|died| format!(", died={}", if died { "True" } else { "False" })),
            samples.map(|samples| format!(", samples={samples}")),
            reason.as_ref().map(|reason| format!(", reason={reason:?}")),
        ];
        said.into_iter().flatten().for_each(|each| text += &each);
        text + ")"
    }
}

pub fn events(events: Vec<myelin::Event>) -> Vec<Event> {
    events.into_iter().map(Event::from).collect()
}

/// All that a node knows of its domain at one moment.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct Graph {
    nodes: Vec<Py<NodeInfo>>,
    endpoints: Vec<Py<EndpointInfo>>,
    matches: Vec<Py<MatchInfo>>,
}

/// A node of the domain.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct NodeInfo {
    node: u64,
    name: String,
    pid: u32,
}

/// A publisher or subscriber of the domain.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct EndpointInfo {
    id: u64,
    node: u64,
    topic: String,
    type_name: String,
    type_hash: u64,
    is_publisher: bool,
    depth: u32,
    reliable: bool,
    history: u32,
}

/// A match of an endpoint of this node, as far as it is.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct MatchInfo {
    endpoint: u64,
    other: u64,
    /// `pending`, `matched` or `refused`.
    state: String,
    /// Why it is refused, and what to do.
    reason: Option<String>,
}

impl Graph {
    pub fn new(py: Python<'_>, graph: myelin::Graph) -> PyResult<Graph> {
        let nodes = graph.nodes.into_iter().map(|it| {
            let myelin::PeerInfo { node, name, pid, .. } = it;
            Py::new(py, NodeInfo { node, name, pid })
        });
        let endpoints = graph.endpoints.into_iter().map(|it| {
            let myelin::EndpointInfo { id, node, topic, type_name, type_hash, .. } = it;
            let myelin::EndpointInfo { is_publisher, depth, reliable, history, .. } = it;
            let info = EndpointInfo {
                id,
                node,
                topic,
                type_name,
                type_hash,
                is_publisher,
                depth,
                reliable,
                history,
            };
            Py::new(py, info)
        });
        let matches = graph.matches.into_iter().map(|it| {
            let (state, reason) = match it.state {
                myelin::MatchState::Matched => ("matched", None),
                myelin::MatchState::Refused { reason } => ("refused", Some(reason)),
                _ => ("pending", None),
            };
            let (endpoint, other, state) = (it.endpoint, it.other, state.to_string());
            Py::new(py, MatchInfo { endpoint, other, state, reason })
        });
        Ok(Graph {
            nodes: nodes.collect::<PyResult<_>>()?,
            endpoints: endpoints.collect::<PyResult<_>>()?,
            matches: matches.collect::<PyResult<_>>()?,
        })
    }
}
