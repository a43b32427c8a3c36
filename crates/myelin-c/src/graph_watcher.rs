//! Watchers of a domain: rates, losses, silence, CPU and memory.

use std::cell::UnsafeCell;
use std::ffi::{CString, c_char};

use myelin::{
    Change, EndpointInfo, EndpointStatus, Graph, GraphStatus, GraphWatcher, MatchInfo, Node,
    NodeStatus, TopicStatus,
};

use crate::error::{MYELIN_NOTHING, MYELIN_OK, enter, myelin_code};
use crate::graph::{self, EndpointTexts, hand_over};
use crate::graph::{myelin_graph, myelin_graph_endpoint, myelin_graph_node};
use crate::node::myelin_node;
use crate::sized::{self, sized};
use crate::{handle, text};

/// Watches topics and nodes: rates, losses, matches, CPU and memory. One thread at a time uses it.
pub enum myelin_graph_watcher {}

pub struct GraphWatcherHandle(UnsafeCell<GraphWatcher>);

/// What a graph has beside nodes, endpoints and matches if it is of a watcher.
#[derive(Default)]
pub struct Watched {
    at_ns: u64,
    since_ns: Option<u64>,
    topics: Vec<WatchedTopic>,
    nodes: Vec<(NodeStatus, bool)>,
    /// Without matches.
    endpoints: Vec<WatchedEndpoint>,
    changes: Vec<(myelin_graph_change, EndpointInfo, EndpointTexts)>,
}

struct WatchedTopic {
    name: CString,
    type_name: CString,
    first_endpoint: usize,
    publishers: usize,
    subscribers: usize,
    /// Without endpoints.
    status: TopicStatus,
}

struct WatchedEndpoint {
    rate_hz: Option<f64>,
    lost_in_interval: u64,
    counted_ns: Option<u64>,
    is_silent: bool,
    first_match: usize,
    matches: usize,
}

/// The time of a watcher's graph.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_graph_time {
    /// sizeof(struct myelin_graph_time): MYELIN_INIT(myelin_graph_time).
    pub size: usize,
    /// When the counters were read, by `myelin_now`.
    pub at_ns: u64,
    /// How long before that the update before was; 0 at the first one.
    pub since_ns: u64,
}

/// A topic that is watched. Texts are valid until the graph is closed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_graph_topic {
    /// sizeof(struct myelin_graph_topic): MYELIN_INIT(myelin_graph_topic).
    pub size: usize,
    /// Its name.
    pub name: *const c_char,
    /// The name of its type; if its endpoints have several, all of them, with `, ` between.
    pub type_name: *const c_char,
    /// How many types it has: more than one means that endpoints do not match.
    pub types: usize,
    /// The index of its first endpoint. Its publishers are in a row, then its subscribers.
    pub first_endpoint: usize,
    /// How many publishers and subscribers it has.
    pub publishers: usize,
    pub subscribers: usize,
    /// How many samples its publishers have published in a second, all those together whose rate is
    /// known; NaN if it is known of none. A topic without a publisher has 0.
    pub rate_hz: f64,
    /// Bytes of its endpoints' shared memory, as far as known.
    pub memory_bytes: u64,
    /// How many samples its subscribers have lost since the update before.
    pub lost: u64,
    /// How many pairs of a publisher and a subscriber do not match although they share the topic.
    pub refused: usize,
}

/// A change of what is there.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum myelin_graph_change {
    /// An endpoint has come.
    MYELIN_GRAPH_FOUND = 0,
    /// An endpoint has gone.
    MYELIN_GRAPH_GONE = 1,
}

sized! {
    myelin_graph_time up to since_ns: u64;
    myelin_graph_topic up to refused: usize;
}

impl Watched {
    /// The status of a watcher as a graph, with its endpoints topic by topic.
    fn graph(watcher: &GraphWatcher) -> (Graph, Watched) {
        let GraphStatus { at_ns, since_ns, nodes, silent, incomplete, .. } = watcher.status();
        let mut graph = Graph {
            nodes: nodes.iter().map(|it| it.info.clone()).collect(),
            silent: silent.clone(),
            incomplete: incomplete.clone(),
            ..Graph::default()
        };
        let is_incomplete = |it: &NodeStatus| incomplete.binary_search(&it.info.node).is_ok();
        let nodes = nodes.iter().map(|it| (it.clone(), is_incomplete(it))).collect();
        let mut watched =
            Watched { at_ns: *at_ns, since_ns: *since_ns, nodes, ..Watched::default() };
        for topic in &watcher.status().topics {
            watched.topics.push(WatchedTopic::new(topic, graph.endpoints.len()));
            for endpoint in topic.publishers.iter().chain(&topic.subscribers) {
                watched.endpoints.push(WatchedEndpoint::new(endpoint, graph.matches.len()));
                graph.endpoints.push(endpoint.info.clone());
                let id = endpoint.info.id;
                let info = |it: &myelin::MatchStatus| MatchInfo {
                    endpoint: id,
                    other: it.other,
                    state: it.state.clone(),
                };
                graph.matches.extend(endpoint.matches.iter().map(info));
            }
        }
        let changes = watcher.changes().iter().map(|change| {
            let (kind, endpoint) = match change {
                Change::Found(endpoint) => (myelin_graph_change::MYELIN_GRAPH_FOUND, endpoint),
                Change::Gone(endpoint) => (myelin_graph_change::MYELIN_GRAPH_GONE, endpoint),
            };
            (kind, endpoint.clone(), EndpointTexts::new(endpoint))
        });
        watched.changes = changes.collect();
        (graph, watched)
    }

    /// A node of the graph, with what the watcher knows of it.
    pub(crate) fn node(&self, index: usize, fields: myelin_graph_node) -> myelin_graph_node {
        let Some((it, is_incomplete)) = self.nodes.get(index) else { return fields };
        myelin_graph_node {
            cpu_percent: it.cpu_percent.unwrap_or(f64::NAN),
            memory_bytes: it.memory_bytes.unwrap_or(0),
            publishers: it.publishers,
            subscribers: it.subscribers,
            threads: it.threads.unwrap_or(0),
            is_stopped: it.is_stopped,
            is_silent: it.is_silent,
            is_incomplete: *is_incomplete,
            ..fields
        }
    }

    /// An endpoint of the graph, with what the watcher knows of it.
    pub(crate) fn endpoint(
        &self,
        index: usize,
        fields: myelin_graph_endpoint,
    ) -> myelin_graph_endpoint {
        let Some(it) = self.endpoints.get(index) else { return fields };
        myelin_graph_endpoint {
            rate_hz: it.rate_hz.unwrap_or(f64::NAN),
            lost_in_interval: it.lost_in_interval,
            counted_ns: it.counted_ns.unwrap_or(0),
            matches: it.matches,
            first_match: it.first_match,
            is_silent: it.is_silent,
            ..fields
        }
    }
}

impl WatchedTopic {
    fn new(topic: &TopicStatus, first_endpoint: usize) -> WatchedTopic {
        let mut status = TopicStatus::default();
        status.types.clone_from(&topic.types);
        (status.rate_hz, status.memory_bytes) = (topic.rate_hz, topic.memory_bytes);
        (status.lost, status.refused) = (topic.lost, topic.refused);
        WatchedTopic {
            name: text::c_string(&topic.name),
            type_name: text::c_string(&topic.type_name),
            first_endpoint,
            publishers: topic.publishers.len(),
            subscribers: topic.subscribers.len(),
            status,
        }
    }

    fn fields(&self) -> myelin_graph_topic {
        let TopicStatus { types, rate_hz, memory_bytes, lost, refused, .. } = &self.status;
        myelin_graph_topic {
            size: 0,
            name: self.name.as_ptr(),
            type_name: self.type_name.as_ptr(),
            types: types.len(),
            first_endpoint: self.first_endpoint,
            publishers: self.publishers,
            subscribers: self.subscribers,
            rate_hz: rate_hz.unwrap_or(f64::NAN),
            memory_bytes: *memory_bytes,
            lost: *lost,
            refused: *refused,
        }
    }
}

impl WatchedEndpoint {
    fn new(endpoint: &EndpointStatus, first_match: usize) -> WatchedEndpoint {
        WatchedEndpoint {
            rate_hz: endpoint.rate_hz,
            lost_in_interval: endpoint.lost_in_interval,
            counted_ns: endpoint.counted_ns,
            is_silent: endpoint.is_silent,
            first_match,
            matches: endpoint.matches.len(),
        }
    }
}

/// Watches the topics whose names match `pattern`, and all nodes: `*` stands for any text and `?` for
/// one character. Nothing happens before the first update. Close the watcher.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_watcher_open(
    node: *mut myelin_node,
    pattern: *const c_char,
    watcher: *mut *mut myelin_graph_watcher,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(watcher, std::ptr::null_mut(), "watcher")?;
        let pattern = text::required(pattern, "the pattern")?;
        let opened = handle::get::<Node>(handle::of_pointer(node))?.watch_graph(pattern);
        let opened = Box::new(GraphWatcherHandle(UnsafeCell::new(opened)));
        watcher.write(handle::to_pointer(handle::insert(opened)?));
        Ok(MYELIN_OK)
    })
}

/// Asks all nodes of this host, waits until they have answered, for at most `limit_ns`, and computes
/// what has changed since the last call: rates and losses, what came and went, CPU and memory. A node
/// that does not answer makes each call take the whole limit. Any thread may read the graph; its
/// endpoints are ordered by topic. Close it; the watcher does not need it.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time uses the watcher.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_watcher_update(
    watcher: *mut myelin_graph_watcher,
    limit_ns: u64,
    graph: *mut *mut myelin_graph,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(graph, std::ptr::null_mut(), "graph")?;
        let watcher = handle::get::<GraphWatcherHandle>(handle::of_pointer(watcher))?;
        let watcher = &mut *watcher.0.get();
        watcher.update(text::duration(limit_ns))?;
        let (found, watched) = Watched::graph(watcher);
        hand_over(graph, found, watched)
    })
}

/// Closes a watcher.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_watcher_close(
    watcher: *mut myelin_graph_watcher,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<GraphWatcherHandle>(handle::of_pointer(watcher))?);
        Ok(MYELIN_OK)
    })
}

/// When a watcher's graph was taken; MYELIN_NOTHING for a graph that is not of a watcher.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_time_of(
    graph: *mut myelin_graph,
    time: *mut myelin_graph_time,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let Watched { at_ns, since_ns, .. } = graph::of(graph)?.watched;
        if at_ns == 0 {
            return Ok(MYELIN_NOTHING);
        }
        sized::write(time, myelin_graph_time { size: 0, at_ns, since_ns: since_ns.unwrap_or(0) })?;
        Ok(MYELIN_OK)
    })
}

/// The topic with this number, from 0 on, by name, of a watcher's graph; MYELIN_NOTHING after the
/// last.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_topic_at(
    graph: *mut myelin_graph,
    index: usize,
    topic: *mut myelin_graph_topic,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let Some(it) = graph::of(graph)?.watched.topics.get(index) else {
            return Ok(MYELIN_NOTHING);
        };
        sized::write(topic, it.fields())?;
        Ok(MYELIN_OK)
    })
}

/// The change with this number, from 0 on: the endpoints that went and came with the update of a
/// watcher's graph, those that went first; at the first update, all that are there. MYELIN_NOTHING
/// after the last.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_change_at(
    graph: *mut myelin_graph,
    index: usize,
    change: *mut myelin_graph_change,
    endpoint: *mut myelin_graph_endpoint,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let found = graph::of(graph)?.watched.changes.get(index);
        let Some((kind, info, texts)) = found else { return Ok(MYELIN_NOTHING) };
        sized::check(endpoint)?;
        text::put(change, *kind, "change")?;
        sized::write(endpoint, texts.fields(info))?;
        Ok(MYELIN_OK)
    })
}
