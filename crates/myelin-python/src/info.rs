//! A node's view of its domain, and events: plain values.

use pyo3::IntoPyObjectExt;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

use pyo3::prelude::*;

/// The result of a publish.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct Published {
    /// How many samples its publisher published before it.
    sequence: u64,
    /// How many late reliable subscribers were not waited for.
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

/// An event of a match. Members that its kind does not have are None.
#[pyclass(frozen, get_all, module = "myelin")]
#[derive(Default)]
pub struct Event {
    /// `matched`, `unmatched`, `qos_reduced`, `lost`, `passed_over`, `caught_up`, `incompatible`,
    /// `refused`, `deadline_missed`, `liveliness_lost`, `liveliness_regained`, `buffer_too_small`, `corrupt`.
    kind: String,
    /// The other side's id.
    endpoint: u64,
    /// Its process.
    pid: Option<u32>,
    /// For `unmatched`: whether it crashed or was killed.
    died: Option<bool>,
    /// Why, and what to do.
    reason: Option<String>,
    /// For `lost`: how many.
    samples: Option<u64>,
    /// For `qos_reduced` and `incompatible`: the setting, such as `reliability`.
    setting: Option<String>,
    /// What the publisher offers.
    offered: Option<String>,
    /// What the subscriber requests.
    requested: Option<String>,
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
            E::QosReduced { endpoint, pid, mismatch, reason } => {
                let (setting, offered, requested) = settings(Some(mismatch));
                let of = of("qos_reduced", endpoint);
                Event { pid: Some(pid), reason: Some(reason), setting, offered, requested, ..of }
            }
            E::Lost { endpoint, samples } => {
                Event { samples: Some(samples), ..of("lost", endpoint) }
            }
            E::PassedOver { endpoint, pid } => {
                Event { pid: Some(pid), ..of("passed_over", endpoint) }
            }
            E::CaughtUp { endpoint, pid } => Event { pid: Some(pid), ..of("caught_up", endpoint) },
            E::Incompatible { endpoint, pid, mismatch, reason } => {
                let (setting, offered, requested) = settings(mismatch);
                let of = of("incompatible", endpoint);
                Event { pid: Some(pid), reason: Some(reason), setting, offered, requested, ..of }
            }
            E::Refused { endpoint, pid, reason } => {
                Event { pid: Some(pid), reason: Some(reason), ..of("refused", endpoint) }
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
        let Event { kind, endpoint, pid, died, reason, samples, .. } = self;
        let mut text = format!("Event({kind}, endpoint={endpoint:#x}");
        let parts = [
            pid.map(|pid| format!(", pid={pid}")),
            died.map(|died| format!(", died={}", if died { "True" } else { "False" })),
            samples.map(|samples| format!(", samples={samples}")),
            reason.as_ref().map(|reason| format!(", reason={reason:?}")),
        ];
        parts.into_iter().flatten().for_each(|each| text += &each);
        text + ")"
    }
}

pub fn events(events: Vec<myelin::Event>) -> Vec<Event> {
    events.into_iter().map(Event::from).collect()
}

/// A node's view of its domain at one moment.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct Graph {
    nodes: Vec<Py<NodeInfo>>,
    endpoints: Vec<Py<EndpointInfo>>,
    matches: Vec<Py<MatchInfo>>,
    types: Vec<Py<TypeInfo>>,
    /// The nodes that were asked and have not answered in time.
    silent: Vec<u64>,
    /// The nodes whose answers were cut off at a limit.
    incomplete: Vec<u64>,
}

/// A node of the domain.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct NodeInfo {
    node: u64,
    name: String,
    pid: u32,
    user: u32,
    namespace: String,
    program: String,
    host: String,
    language: String,
    version: String,
    attributes: BTreeMap<String, Cow<'static, [u8]>>,
    /// `this_host` or `other_host`.
    location: String,
    /// The number of another host.
    host_id: Option<u64>,
}

/// A publisher or subscriber of the domain. A counter is None if the endpoint's node was not asked,
/// or if only the other kind of endpoint has the counter.
#[pyclass(frozen, get_all, module = "myelin")]
#[derive(Default)]
pub struct EndpointInfo {
    id: u64,
    node: u64,
    topic: String,
    type_name: String,
    type_hash: u64,
    is_publisher: bool,
    depth: u32,
    reliable: bool,
    transient_local: u32,
    /// Whether samples lost on the way to or from other hosts are sent again.
    resends: bool,
    /// The longest time between two samples, in seconds.
    deadline: Option<f64>,
    /// The liveliness lease, in seconds.
    liveliness: Option<f64>,
    /// How long samples are valid, in seconds.
    lifespan: Option<f64>,
    /// `exact` or `requested_offered`.
    matching: String,
    /// When it was made, in seconds since 1970.
    created: f64,
    attributes: BTreeMap<String, Cow<'static, [u8]>>,
    /// `this_host`, `other_host` or `dds`: in a DDS program without Myelin, wherever it runs.
    location: String,
    /// The number of another host.
    host_id: Option<u64>,
    published: Option<u64>,
    /// Bytes of their payloads.
    published_bytes: Option<u64>,
    /// When it published last, in ns of `now()`; None if it has not, or if its samples carry no time.
    last_published_at: Option<u64>,
    /// How many loans and copies were refused for lack of memory.
    refused_loans: Option<u64>,
    taken: Option<u64>,
    /// Lost for any of the four reasons that follow.
    lost: Option<u64>,
    /// Lost because it was further behind than its depth.
    lost_overwritten: Option<u64>,
    /// Lost because a reliable publisher did not wait for it any longer.
    lost_passed_over: Option<u64>,
    /// Lost on the way from another host.
    lost_network: Option<u64>,
    /// Lost for lack of memory.
    lost_memory: Option<u64>,
    held: Option<u64>,
    /// When the sample that it took last was published, in ns of `now()`; None as above.
    last_taken_at: Option<u64>,
    /// How old samples were when it took them.
    lateness: Option<Lateness>,
    memory_bytes: Option<u64>,
}

/// How old samples were when a subscriber took them, in seconds: about 10 samples a second are
/// measured.
#[pyclass(frozen, from_py_object, module = "myelin")]
#[derive(Clone)]
pub struct Lateness(myelin::Lateness);

#[pymethods]
impl Lateness {
    /// How many samples were measured.
    #[getter]
    fn measured(&self) -> u64 {
        self.0.measured()
    }

    /// That of the sample that was measured last.
    #[getter]
    fn last(&self) -> f64 {
        seconds(self.0.last_ns)
    }

    /// The longest.
    #[getter]
    fn max(&self) -> f64 {
        seconds(self.0.max_ns)
    }

    /// How many samples were so late: the first less than 128 ns, number `i` from `64 << i` ns to
    /// `128 << i` ns, and the last one also longer.
    #[getter]
    fn buckets(&self) -> Vec<u64> {
        self.0.buckets.to_vec()
    }

    /// So many percent of the measured samples were this late or less; None if none was measured.
    fn percentile(&self, percent: f64) -> Option<f64> {
        self.0.percentile_ns(percent).map(seconds)
    }

    fn __repr__(&self) -> String {
        format!("Lateness(measured={}, last={}, max={})", self.measured(), self.last(), self.max())
    }
}

fn seconds(ns: u64) -> f64 {
    Duration::from_nanos(ns).as_secs_f64()
}

/// A match of an endpoint of this node, or of a node that was asked, and its state.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct MatchInfo {
    endpoint: u64,
    other: u64,
    /// `pending`, `matched` or `refused`.
    state: String,
    /// Why it is refused, and what to do.
    reason: Option<String>,
    /// The setting that differs, what the publisher offers and what the subscriber requests.
    setting: Option<String>,
    offered: Option<String>,
    requested: Option<String>,
}

/// The type of a topic of the domain; its layout is None if no node has reported it.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct TypeInfo {
    hash: u64,
    name: String,
    layout: Option<String>,
    /// What `schema` is, such as `myelin-layout` or `ros2msg`.
    encoding: Option<String>,
    /// How its samples are to be read; None if no node has reported it.
    schema: Option<Cow<'static, [u8]>>,
}

/// Gives a class a `__repr__` that names its members.
macro_rules! representation {
    ($class:ident: $first:ident $(, $member:ident)*) => {
        #[pymethods]
        impl $class {
            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let mut text = concat!(stringify!($class), "(", stringify!($first), "=").to_owned();
                text += &(&self.$first).into_bound_py_any(py)?.repr()?.to_string();
                $(
                    text += concat!(", ", stringify!($member), "=");
                    text += &(&self.$member).into_bound_py_any(py)?.repr()?.to_string();
                )*
                Ok(text + ")")
            }
        }
    };
}

pub(crate) use representation;

representation!(Graph: nodes, endpoints, matches, types, silent, incomplete);
representation!(NodeInfo: node, name, pid);
representation!(
    EndpointInfo: id, node, topic, type_name, type_hash, is_publisher, depth, reliable, transient_local, published, taken,
    lost, held, memory_bytes
);
representation!(MatchInfo: endpoint, other, state, reason);
representation!(TypeInfo: hash, name, layout);

impl Graph {
    pub fn new(py: Python<'_>, graph: myelin::Graph) -> PyResult<Graph> {
        fn all<T, I>(py: Python<'_>, from: Vec<T>, make: impl Fn(T) -> I) -> PyResult<Vec<Py<I>>>
        where
            I: pyo3::PyClass + Into<PyClassInitializer<I>>,
        {
            from.into_iter().map(|it| Py::new(py, make(it))).collect()
        }
        Ok(Graph {
            nodes: all(py, graph.nodes, NodeInfo::from)?,
            endpoints: all(py, graph.endpoints, EndpointInfo::from)?,
            matches: all(py, graph.matches, MatchInfo::from)?,
            types: all(py, graph.types, TypeInfo::from)?,
            silent: graph.silent,
            incomplete: graph.incomplete,
        })
    }
}

/// The setting of a mismatch, what is offered and what is requested.
pub(crate) fn settings(
    mismatch: Option<myelin::Mismatch>,
) -> (Option<String>, Option<String>, Option<String>) {
    mismatch.map_or((None, None, None), |it| {
        (Some(it.setting.name().to_string()), Some(it.offered), Some(it.requested))
    })
}

/// The name of a state, and why a match is refused.
pub(crate) fn match_state(
    state: myelin::MatchState,
) -> (&'static str, Option<String>, Option<myelin::Mismatch>) {
    match state {
        myelin::MatchState::Matched => ("matched", None, None),
        myelin::MatchState::Refused { reason, mismatch } => ("refused", Some(reason), mismatch),
        _ => ("pending", None, None),
    }
}

/// The name of a location, and the number of another host.
fn place(location: myelin::Location) -> (String, Option<u64>) {
    let (name, host_id) = match location {
        myelin::Location::ThisHost => ("this_host", None),
        myelin::Location::Dds => ("dds", None),
        myelin::Location::OtherHost(id) => ("other_host", Some(id)),
        _ => ("other_host", None),
    };
    (name.to_owned(), host_id)
}

fn attributes_of(attributes: &myelin::Attributes) -> BTreeMap<String, Cow<'static, [u8]>> {
    let owned = |(name, value): (&str, &[u8])| (name.to_string(), Cow::Owned(value.to_vec()));
    attributes.iter().map(owned).collect()
}

impl NodeInfo {
    pub(crate) fn id(&self) -> u64 {
        self.node
    }
}

impl From<myelin::PeerInfo> for NodeInfo {
    fn from(it: myelin::PeerInfo) -> Self {
        let myelin::PeerInfo { node, pid, user, record, .. } = it;
        let (location, host_id) = place(it.location);
        let myelin::NodeRecord { name, namespace, program, host, language, version, .. } = record;
        let attributes = attributes_of(&record.attributes);
        NodeInfo {
            node,
            name,
            pid,
            user,
            namespace,
            program,
            host,
            language,
            version,
            attributes,
            location,
            host_id,
        }
    }
}

impl From<myelin::EndpointInfo> for EndpointInfo {
    fn from(it: myelin::EndpointInfo) -> Self {
        let (location, host_id) = place(it.location);
        let mut info = EndpointInfo {
            location,
            host_id,
            id: it.id,
            node: it.node,
            topic: it.topic,
            type_name: it.type_name,
            type_hash: it.type_hash,
            is_publisher: it.is_publisher,
            depth: it.depth,
            reliable: it.reliable,
            transient_local: it.transient_local,
            resends: it.qos.resends,
            deadline: it.qos.deadline.map(|limit| limit.as_secs_f64()),
            liveliness: it.qos.liveliness.map(|limit| limit.as_secs_f64()),
            lifespan: it.qos.lifespan.map(|limit| limit.as_secs_f64()),
            matching: match it.matching {
                myelin::Matching::Exact => "exact".to_string(),
                myelin::Matching::RequestedOffered => "requested_offered".to_string(),
            },
            created: Duration::from_nanos(it.created_ns).as_secs_f64(),
            attributes: attributes_of(&it.attributes),
            ..EndpointInfo::default()
        };
        it.counters.into_iter().for_each(|counters| info.count(counters));
        info
    }
}

impl EndpointInfo {
    fn count(&mut self, counters: myelin::Counters) {
        let time = |ns: u64| (ns > 0).then_some(ns);
        match counters {
            myelin::Counters::Publisher {
                published,
                published_bytes,
                last_published_ns,
                refused_loans,
                memory_bytes,
            } => {
                self.published = Some(published);
                self.published_bytes = Some(published_bytes);
                self.last_published_at = time(last_published_ns);
                self.refused_loans = Some(refused_loans);
                self.memory_bytes = Some(memory_bytes);
            }
            myelin::Counters::Subscriber {
                taken,
                lost,
                lost_overwritten,
                lost_passed_over,
                lost_network,
                lost_memory,
                held,
                last_taken_ns,
                lateness,
                memory_bytes,
            } => {
                self.taken = Some(taken);
                self.lost = Some(lost);
                self.lost_overwritten = Some(lost_overwritten);
                self.lost_passed_over = Some(lost_passed_over);
                self.lost_network = Some(lost_network);
                self.lost_memory = Some(lost_memory);
                self.held = Some(held);
                self.last_taken_at = time(last_taken_ns);
                self.lateness = Some(Lateness(lateness));
                self.memory_bytes = Some(memory_bytes);
            }
        }
    }
}

impl From<myelin::MatchInfo> for MatchInfo {
    fn from(it: myelin::MatchInfo) -> Self {
        let (state, reason, mismatch) = match_state(it.state);
        let (setting, offered, requested) = settings(mismatch);
        let (endpoint, other, state) = (it.endpoint, it.other, state.to_string());
        MatchInfo { endpoint, other, state, reason, setting, offered, requested }
    }
}

impl From<myelin::TypeInfo> for TypeInfo {
    fn from(it: myelin::TypeInfo) -> Self {
        let layout = it.schema.as_ref().and_then(|schema| schema.layout()).map(str::to_string);
        let encoding = it.schema.as_ref().map(|schema| schema.encoding.to_string());
        let schema = it.schema.map(|schema| Cow::Owned(schema.content.to_vec()));
        TypeInfo { hash: it.hash, name: it.name, layout, encoding, schema }
    }
}
