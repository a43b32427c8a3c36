//! A process's part in a domain, and helpers of all calls: seconds, limits, waits in slices.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use myelin::{Matching, NetworkState, Policy, Threads};
use pyo3::prelude::*;

use crate::any::{AnyTopic, Discovery};
use crate::call::{Target, call, call_until_closed};
use crate::errors::{closed, exception, raised};
use crate::executor::Executor;
use crate::gil_cell::GilCell;
use crate::graph_watcher::GraphWatcher;
use crate::info::{EndpointInfo, Graph};
use crate::released::{Released, released};
use crate::service::{Client, Service};
use crate::topic::Topic;
use crate::types::Carried;
use crate::wait_set::WaitSet;

/// The time now in ns, of the clock of `published_at`: `time.monotonic_ns()`, the same for all processes of
/// a host.
#[pyfunction]
pub fn now() -> u64 {
    myelin::now()
}

/// A process's part in a domain: topics are made from it. Threads may share it.
#[pyclass(frozen, subclass, weakref, module = "myelin")]
pub struct Node {
    inner: GilCell<Option<Released<myelin::Node>>>,
    is_closed: AtomicBool,
    name: String,
}

/// A group by number or by name.
#[derive(FromPyObject)]
enum Group {
    Id(u32),
    Name(String),
}

impl Node {
    pub fn node(&self, py: Python<'_>) -> PyResult<Released<myelin::Node>> {
        let node = self.inner.look(py, |inner| inner.as_ref().map(|inner| (**inner).clone()));
        node.map(Released::new).ok_or_else(|| closed("node"))
    }
}

#[pymethods]
impl Node {
    /// Opens a node. `domain` is `MYELIN_DOMAIN` or 0 by default; `lease` is in
    /// seconds, and so is `match_limit`: how long the call that makes a publisher or subscriber
    /// waits at most until it is matched with those that exist on this host, by default 0.02.
    #[new]
    #[pyo3(signature = (
        name, *, domain=None, group=None, runtime_dir=None, latency_guard=false, network=None, interface=None,
        peers=None, lease=None, thread_name=None, thread_cpus=None, thread_fifo=None, namespace=None,
        attributes=None, match_limit=None, keystore=None, enclave=None, bulk_lane=None, datagram_bytes=None,
        bulk_lane_dscp=None, multicast=false, dds_user_data=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn new(
        py: Python<'_>,
        name: &str,
        domain: Option<u32>,
        group: Option<Group>,
        runtime_dir: Option<PathBuf>,
        latency_guard: bool,
        network: Option<bool>,
        interface: Option<&str>,
        peers: Option<Vec<String>>,
        lease: Option<f64>,
        thread_name: Option<String>,
        thread_cpus: Option<Vec<usize>>,
        thread_fifo: Option<u8>,
        namespace: Option<&str>,
        attributes: Option<BTreeMap<String, Vec<u8>>>,
        match_limit: Option<f64>,
        keystore: Option<PathBuf>,
        enclave: Option<&str>,
        bulk_lane: Option<bool>,
        datagram_bytes: Option<u32>,
        bulk_lane_dscp: Option<u8>,
        multicast: bool,
        dds_user_data: Option<&str>,
    ) -> PyResult<Node> {
        let threads = Threads {
            name: thread_name.unwrap_or_default(),
            cpus: thread_cpus.unwrap_or_default(),
            policy: thread_fifo.map_or(Policy::Usual, Policy::Fifo),
        };
        let mut builder = myelin::Node::builder(name).latency_guard(latency_guard).threads(threads);
        builder = builder.announced_as(script(py).as_deref(), "Python");
        if let Some(namespace) = namespace {
            builder = builder.namespace(namespace);
        }
        for (name, value) in attributes.into_iter().flatten() {
            builder = builder.attribute(&name, &value);
        }
        if let Some(domain) = domain {
            builder = builder.domain(domain);
        }
        builder = match group {
            Some(Group::Id(id)) => builder.group(id),
            Some(Group::Name(name)) => builder.group(name),
            None => builder,
        };
        if let Some(runtime_dir) = runtime_dir {
            builder = builder.runtime_dir(runtime_dir);
        }
        if let Some(open) = network {
            builder = builder.network(open);
        }
        if let Some(interface) = interface {
            builder = builder.interface(interface);
        }
        if let Some(peers) = peers {
            builder = builder.peers(peers);
        }
        if let Some(lease) = lease {
            builder = builder.lease(seconds(lease)?);
        }
        if let Some(limit) = match_limit {
            builder = builder.match_limit(seconds(limit)?);
        }
        if let Some(keystore) = keystore {
            builder = builder.keystore(keystore);
        }
        if let Some(enclave) = enclave {
            builder = builder.enclave(enclave);
        }
        if let Some(on) = bulk_lane {
            builder = builder.bulk_lane(on);
        }
        if let Some(most) = datagram_bytes {
            builder = builder.datagram_bytes(most);
        }
        if let Some(dscp) = bulk_lane_dscp {
            builder = builder.bulk_lane_dscp(dscp);
        }
        builder = builder.multicast(multicast);
        if let Some(text) = dds_user_data {
            builder = builder.dds_user_data(text);
        }
        let node = call(py, || builder.open())?;
        let inner = GilCell::new(Some(Released::new(node)));
        Ok(Node { inner, is_closed: AtomicBool::new(false), name: name.to_string() })
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        &self.name
    }

    /// The topic with this name and type. Nothing happens until a publisher or subscriber is made
    /// from it.
    #[pyo3(signature = (
        name, r#type, *, depth=None, reliable=None, reliable_or_fail=None, reliable_keep_last=false,
        transient_local=None, deadline=None, dds_type=None, dds_name=None, dds_cdr=None, matching=None, attributes=None, any=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn _topic(
        &self,
        py: Python<'_>,
        name: &str,
        r#type: &Bound<'_, PyAny>,
        depth: Option<u32>,
        reliable: Option<f64>,
        reliable_or_fail: Option<f64>,
        reliable_keep_last: bool,
        transient_local: Option<u32>,
        deadline: Option<f64>,
        dds_type: Option<&str>,
        dds_name: Option<&str>,
        dds_cdr: Option<&str>,
        matching: Option<&str>,
        attributes: Option<BTreeMap<String, Vec<u8>>>,
        any: Option<&AnyTopic>,
    ) -> PyResult<Topic> {
        let carried = Arc::new(Carried::new(r#type)?);
        let mut topic = match any {
            Some(any) => any.0.topic(),
            None => self.node(py)?.dynamic_topic(name, &carried.of_type().dynamic_type),
        };
        if let Some(depth) = depth {
            topic = topic.depth(depth);
        }
        topic = match (reliable, reliable_or_fail, reliable_keep_last) {
            (None, None, false) => topic,
            (Some(limit), None, false) => topic.reliable(seconds(limit)?),
            (None, Some(limit), false) => topic.reliable_or_fail(seconds(limit)?),
            (None, None, true) => topic.reliable_keep_last(),
            _ => {
                let message = "reliable, reliable_or_fail and reliable_keep_last exclude each other; \
                               choose one";
                return Err(exception("WrongSetting", message.to_string()));
            }
        };
        if let Some(samples) = transient_local {
            topic = topic.transient_local(samples);
        }
        if let Some(period) = deadline {
            topic = topic.deadline(seconds(period)?);
        }
        topic = match matching {
            None | Some("exact") => topic,
            Some("requested_offered") => topic.matching(Matching::RequestedOffered),
            Some(other) => {
                let message =
                    format!("matching is {other:?}; set it to \"exact\" or \"requested_offered\"");
                return Err(exception("WrongSetting", message));
            }
        };
        for (name, value) in attributes.into_iter().flatten() {
            topic = topic.attribute(&name, &value);
        }
        if let Some(name) = dds_type {
            topic = topic.dds_type(name);
        }
        if let Some(name) = dds_name {
            topic = topic.dds_name(name);
        }
        if let Some(name) = dds_cdr {
            topic = topic.dds_cdr(name);
        }
        let problem = any.and_then(|any| any.0.problem()).map(ToString::to_string);
        Ok(Topic { topic, carried, problem })
    }

    /// A topic that another node has; its node is asked for its schema for at most `within`
    /// seconds.
    fn _any_topic(&self, py: Python<'_>, name: &str, within: f64) -> PyResult<AnyTopic> {
        let (node, limit) = (self.node(py)?, seconds(within)?);
        call(py, || node.any_topic(name, limit)).map(AnyTopic)
    }

    /// The publishers and subscribers of this host on topics whose names match a pattern with `*`
    /// and `?`. The first call of `changes` gives those that are there.
    #[pyo3(signature = (pattern="*"))]
    fn discover(&self, py: Python<'_>, pattern: &str) -> PyResult<Discovery> {
        Ok(Discovery(self.node(py)?.discover(pattern)))
    }

    /// Watches the topics whose names match a pattern with `*` and `?`, and all nodes: rates, losses,
    /// matches, CPU and memory. Nothing happens before the first `update`.
    #[pyo3(signature = (pattern="*"))]
    fn watch_graph(&self, py: Python<'_>, pattern: &str) -> PyResult<GraphWatcher> {
        GraphWatcher::new(py, self.node(py)?.watch_graph(pattern))
    }

    /// The server of a service.
    fn _service(
        &self,
        py: Python<'_>,
        name: &str,
        request: &Bound<'_, PyAny>,
        reply: &Bound<'_, PyAny>,
    ) -> PyResult<Service> {
        let (request, reply) = (Carried::new(request)?, Carried::new(reply)?);
        let node = self.node(py)?;
        let service = {
            let (request, reply) = (&request.of_type().dynamic_type, &reply.of_type().dynamic_type);
            call(py, || node.dynamic_service(name, request, reply))?
        };
        Ok(Service::new(service, Arc::new(request), Arc::new(reply)))
    }

    /// A client of a service.
    fn _client(
        &self,
        py: Python<'_>,
        name: &str,
        request: &Bound<'_, PyAny>,
        reply: &Bound<'_, PyAny>,
    ) -> PyResult<Client> {
        let (request, reply) = (Carried::new(request)?, Carried::new(reply)?);
        let node = self.node(py)?;
        let client = {
            let (request, reply) = (&request.of_type().dynamic_type, &reply.of_type().dynamic_type);
            call(py, || node.dynamic_client(name, request, reply))?
        };
        Ok(Client::new(client, Arc::new(request), Arc::new(reply)))
    }

    /// A wait set: one thread waits for many of this node's subscribers.
    fn wait_set(&self, py: Python<'_>) -> PyResult<WaitSet> {
        let node = self.node(py)?;
        let set = released(py, || node.wait_set()).map_err(raised)?;
        Ok(WaitSet::new(set))
    }

    /// An executor: it calls functions with the samples of many of this node's subscribers.
    fn executor(&self, py: Python<'_>) -> PyResult<Executor> {
        let node = self.node(py)?;
        released(py, || node.executor()).map(Executor::new).map_err(raised)
    }

    /// This node's view of its domain now. With `within`, it also asks all other nodes of this host
    /// for their matches, counters and types, and waits for their answers for at most so many
    /// seconds.
    #[pyo3(signature = (within=None))]
    fn graph(&self, py: Python<'_>, within: Option<f64>) -> PyResult<Graph> {
        let node = self.node(py)?;
        let within = within.map(seconds).transpose()?;
        let target = Target { is_closed: &self.is_closed, what: "node", is_woken: false };
        let graph = call_until_closed(py, &target, || match within {
            Some(limit) => node.graph_within(limit),
            None => node.graph(),
        })?;
        // After a close the answer would not be complete.
        target.check()?;
        Graph::new(py, graph)
    }

    /// How often `graph` has changed so far: while the number stays the same, a graph that was taken
    /// after it was read is still the newest, except for the states of matches and the counters.
    fn graph_changes(&self, py: Python<'_>) -> PyResult<u64> {
        self.node(py)?.graph_changes().map_err(raised)
    }

    /// An endpoint of this host by its id, as in `graph`, or None if there is none now. It costs one
    /// look-up, however many endpoints there are.
    fn endpoint(&self, py: Python<'_>, id: u64) -> PyResult<Option<EndpointInfo>> {
        let node = self.node(py)?;
        let found = released(py, || node.endpoint(id)).map_err(raised)?;
        Ok(found.map(EndpointInfo::from))
    }

    /// Whether other hosts can be reached: `off`, `waiting` with the reason, `up` with the
    /// interface.
    #[getter]
    fn network(&self, py: Python<'_>) -> PyResult<(&'static str, String)> {
        Ok(match self.node(py)?.network() {
            NetworkState::Up { interface, .. } => ("up", interface),
            NetworkState::Waiting { reason } => ("waiting", reason),
            _ => ("off", String::new()),
        })
    }

    /// Closes the node's handle, and ends a running `graph`. The node's publishers and subscribers
    /// keep it open until they end.
    fn close(&self, py: Python<'_>) {
        self.is_closed.store(true, Ordering::Relaxed);
        drop(self.inner.replace(py, None));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<Node {:?}>", self.name)
    }
}

/// A duration from seconds, as Python gives times.
pub fn seconds(seconds: f64) -> PyResult<Duration> {
    if seconds.is_nan() || seconds < 0.0 {
        let message = format!("a time is {seconds}; use a number of seconds that is not negative");
        return Err(exception("WrongSetting", message));
    }
    Ok(Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

/// The limit of a timeout: seconds, or None for ever.
pub fn limit(timeout: Option<f64>) -> PyResult<Duration> {
    timeout.map_or(Ok(Duration::MAX), seconds)
}

/// The rest of a limit.
pub fn left(limit: Duration, begun: Instant) -> Duration {
    match limit {
        Duration::MAX => limit,
        limit => limit.saturating_sub(begun.elapsed()),
    }
}

/// The name of the running script, for people; `None` for an interpreter without one.
fn script(py: Python<'_>) -> Option<String> {
    let first = py.import("sys").ok()?.getattr("argv").ok()?.get_item(0).ok()?;
    let path = PathBuf::from(first.extract::<String>().ok()?);
    Some(path.file_name()?.to_string_lossy().into_owned())
}
