//! A node's view of its domain.

use std::collections::BTreeMap;
use std::ffi::{CString, c_char};
use std::time::Duration;

use myelin::{
    Attributes, Counters, EndpointInfo, Graph, GuardCondition, LATENESS_BUCKETS, Location,
    MatchState, Matching, Mismatch, Node, NodeRecord, PeerInfo,
};

use crate::error::{Failure, MYELIN_NOTHING, MYELIN_OK, enter, myelin_code};
use crate::event::myelin_setting;
use crate::graph_watcher::Watched;
use crate::node::{myelin_attribute, myelin_node};
use crate::sized::{self, sized};
use crate::topic::myelin_matching;
use crate::wait_set::myelin_guard_condition;
use crate::{handle, text};

/// A node's view of its domain at one moment. Any thread may read it.
pub enum myelin_graph {}

pub struct GraphHandle {
    graph: Graph,
    /// Texts of the nodes: name, namespace, program, host, language and version.
    nodes: Vec<[CString; 6]>,
    endpoints: Vec<EndpointTexts>,
    /// Texts of the matches: the reason, what is offered and what is requested.
    matches: Vec<[Option<CString>; 3]>,
    /// The names of attributes, by the id of their node or endpoint.
    attributes: BTreeMap<u64, (Attributes, Vec<CString>)>,
    /// What a graph watcher knows beside it.
    pub(crate) watched: Watched,
}

/// Texts of an endpoint.
pub(crate) struct EndpointTexts {
    topic: CString,
    type_name: CString,
    /// Both in DDS.
    of_dds: Option<[CString; 2]>,
}

/// Where a node or an endpoint is.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum myelin_location {
    /// On this host: it is reached through shared memory.
    MYELIN_LOCATION_THIS_HOST = 0,
    /// On another host: it is reached through the network.
    MYELIN_LOCATION_OTHER_HOST = 1,
    /// In a DDS program that does not use Myelin, wherever it runs.
    MYELIN_LOCATION_DDS = 2,
}

/// A node. Texts are valid until the graph is closed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_graph_node {
    /// sizeof(struct myelin_graph_node): MYELIN_INIT(myelin_graph_node).
    pub size: usize,
    /// Its id.
    pub node: u64,
    /// Its name.
    pub name: *const c_char,
    /// Its process.
    pub pid: u32,
    /// Its namespace; empty for none.
    pub node_namespace: *const c_char,
    /// The program.
    pub program: *const c_char,
    /// The name of its host. Containers on one host have names of their own.
    pub host: *const c_char,
    /// The language of the library that it uses: `C`, `C++`, `Python`, `Rust` or another.
    pub language: *const c_char,
    /// The version of the library.
    pub version: *const c_char,
    /// The user that its process runs as.
    pub user: u32,
    /// The number of its host, if that is another one.
    pub host_id: u64,
    /// Where it is.
    pub location: myelin_location,
    /// How long the threads of its process have run since the update before, in percent of one core;
    /// NaN if that is not known. All that follows is 0, and this is NaN, in a graph that is not of a
    /// `myelin_graph_watcher`.
    pub cpu_percent: f64,
    /// The resident memory (RSS) of its process; 0 if that is not known.
    pub memory_bytes: u64,
    /// How many publishers and subscribers it has on the watched topics.
    pub publishers: usize,
    pub subscribers: usize,
    /// How many threads its process has; 0 if that is not known.
    pub threads: u32,
    /// Whether a signal or a debugger has stopped its process.
    pub is_stopped: bool,
    /// Whether it has not answered in time: it is stopped, or busy.
    pub is_silent: bool,
    /// Whether its answer was cut off at a limit: some of its matches are missing.
    pub is_incomplete: bool,
}

/// A publisher or subscriber. Of an endpoint of a DDS program, DDS announces no depth and no layout:
/// they are 0; its history is 0, or 1 for any number.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_graph_endpoint {
    /// sizeof(struct myelin_graph_endpoint): MYELIN_INIT(myelin_graph_endpoint).
    pub size: usize,
    /// Its id, as in events and samples.
    pub endpoint: u64,
    /// Its node's id; 0 for an endpoint of a DDS program.
    pub node: u64,
    /// Its topic; for an endpoint of a DDS program, the name in DDS.
    pub topic: *const c_char,
    /// Its type's name; for an endpoint of a DDS program, the name in DDS.
    pub type_name: *const c_char,
    /// Its type's layout hash.
    pub type_hash: u64,
    /// Its depth, in samples.
    pub depth: u32,
    /// Its history, in samples.
    pub transient_local: u32,
    /// Whether it publishes; else it subscribes.
    pub is_publisher: bool,
    /// Whether it is reliable.
    pub is_reliable: bool,
    /// Its GUID in DDS, if it is reached through the network, or belongs to this node while there is a
    /// network; otherwise zeros.
    pub dds_guid: [u8; 16],
    /// When it was made, in ns since 1970 by the clock of the host.
    pub created_ns: u64,
    /// The longest time between two samples; MYELIN_FOREVER: any. Here and below, a publisher offers
    /// the value and a subscriber requests it.
    pub deadline_ns: u64,
    /// Its liveliness lease; MYELIN_FOREVER: none.
    pub liveliness_ns: u64,
    /// How long its samples are valid; MYELIN_FOREVER: for ever.
    pub lifespan_ns: u64,
    /// When it matches.
    pub matching: myelin_matching,
    /// Whether only its program asserts liveliness, for this endpoint alone.
    pub is_alive_by_topic: bool,
    /// Whether samples lost on the way to or from other hosts are sent again, although no publisher
    /// waits: MYELIN_KEEP_LAST.
    pub resends: bool,
    /// The number of its host, if that is another one.
    pub host_id: u64,
    /// Its topic and its type in DDS, or NULL if it has no GUID there.
    pub dds_topic: *const c_char,
    pub dds_type: *const c_char,
    /// Its user data in DDS, as its program set it.
    pub dds_user_data: *const u8,
    /// How many bytes.
    pub dds_user_data_bytes: usize,
    /// Where it is.
    pub location: myelin_location,
    /// How many samples a publisher has published, or a subscriber has taken, in a second, since its
    /// counters were read before; NaN if that is not known. All that follows is 0, and this is NaN, in a
    /// graph that is not of a `myelin_graph_watcher`.
    pub rate_hz: f64,
    /// How many samples a subscriber has lost since its counters were read before.
    pub lost_in_interval: u64,
    /// When its counters were read, by `myelin_now`; 0 if never.
    pub counted_ns: u64,
    /// Its matches: their number, and the index of the first one.
    pub matches: usize,
    pub first_match: usize,
    /// Whether its node has not answered in time: its matches are those that were known before.
    pub is_silent: bool,
}

/// What an endpoint has counted since it was made. It stands in the endpoint's memory, where nodes of
/// its domain read it, also while its process is stopped. The values come from its process, which can
/// lie. Times are by `myelin_now`. What only the other kind of endpoint counts is 0.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_graph_counters {
    /// sizeof(struct myelin_graph_counters): MYELIN_INIT(myelin_graph_counters).
    pub size: usize,
    /// Bytes of its shared memory.
    pub memory_bytes: u64,
    /// How many samples a publisher has published.
    pub published: u64,
    /// Bytes of their payloads.
    pub published_bytes: u64,
    /// When it published last; 0 if it has not, or if its samples carry no time.
    pub last_published_ns: u64,
    /// How many loans and copies were refused for lack of memory.
    pub refused_loans: u64,
    /// How many samples a subscriber has taken.
    pub taken: u64,
    /// How many it has lost, for any of the four reasons that follow.
    pub lost: u64,
    /// Because it was further behind than its depth or its publisher's.
    pub lost_overwritten: u64,
    /// Because a reliable publisher did not wait for it any longer.
    pub lost_passed_over: u64,
    /// On the way from another host.
    pub lost_network: u64,
    /// Because there was no memory for a sample that had come from another host, or for its
    /// publisher's.
    pub lost_memory: u64,
    /// How many samples in slots its user holds now.
    pub held: u64,
    /// When the sample that it took last was published; 0 if it has taken none, or if the sample
    /// carries no time.
    pub last_taken_ns: u64,
    /// How old samples were when it took them: about 10 samples a second are measured, if they carry
    /// their time. How many were measured.
    pub lateness_measured: u64,
    /// The age of the last one of them, and of the oldest.
    pub lateness_last_ns: u64,
    pub lateness_max_ns: u64,
    /// So many were so old: the first less than 128 ns, number `i` from `64 << i` ns to `128 << i` ns, and
    /// the last one also older.
    pub lateness_buckets: [u64; MYELIN_LATENESS_BUCKETS],
}

/// The number of `lateness_buckets`.
pub const MYELIN_LATENESS_BUCKETS: usize = 32;

const _: () = assert!(MYELIN_LATENESS_BUCKETS == LATENESS_BUCKETS);

/// The state of a match.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum myelin_match_state {
    /// The two sides are connecting.
    MYELIN_MATCH_PENDING = 0,
    /// Samples flow.
    MYELIN_MATCH_MATCHED = 1,
    /// There is no match: `reason` says why.
    MYELIN_MATCH_REFUSED = 2,
}

/// A match of an endpoint of this node.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_graph_match {
    /// sizeof(struct myelin_graph_match): MYELIN_INIT(myelin_graph_match).
    pub size: usize,
    /// The endpoint of this node.
    pub endpoint: u64,
    /// The other side.
    pub other: u64,
    /// Why there is no match, and what to do; or NULL.
    pub reason: *const c_char,
    /// Its state.
    pub state: myelin_match_state,
    /// What the publisher offers and what the subscriber requests, or NULL.
    pub offered: *const c_char,
    pub requested: *const c_char,
    /// The setting that differs; MYELIN_SETTING_NONE: one side lacks something.
    pub setting: myelin_setting,
}

sized! {
    myelin_graph_node up to node: u64;
    myelin_graph_endpoint up to node: u64;
    myelin_graph_match up to other: u64;
    myelin_graph_counters up to lateness_buckets: [u64; MYELIN_LATENESS_BUCKETS];
}

impl From<Counters> for myelin_graph_counters {
    fn from(counters: Counters) -> Self {
        // SAFETY: zeros are a value (`sized`).
        let mut all: myelin_graph_counters = unsafe { std::mem::zeroed() };
        match counters {
            Counters::Publisher {
                published,
                published_bytes,
                last_published_ns,
                refused_loans,
                memory_bytes,
            } => {
                all.published = published;
                all.published_bytes = published_bytes;
                all.last_published_ns = last_published_ns;
                all.refused_loans = refused_loans;
                all.memory_bytes = memory_bytes;
            }
            Counters::Subscriber {
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
                all.taken = taken;
                all.lost = lost;
                all.lost_overwritten = lost_overwritten;
                all.lost_passed_over = lost_passed_over;
                all.lost_network = lost_network;
                all.lost_memory = lost_memory;
                all.held = held;
                all.last_taken_ns = last_taken_ns;
                all.lateness_measured = lateness.measured();
                all.lateness_last_ns = lateness.last_ns;
                all.lateness_max_ns = lateness.max_ns;
                all.lateness_buckets = lateness.buckets;
                all.memory_bytes = memory_bytes;
            }
        }
        all
    }
}

impl EndpointTexts {
    pub(crate) fn new(it: &EndpointInfo) -> EndpointTexts {
        let dds = it.dds.as_ref();
        EndpointTexts {
            topic: text::c_string(&it.topic),
            type_name: text::c_string(&it.type_name),
            of_dds: dds.map(|dds| [&dds.topic, &dds.type_name].map(|name| text::c_string(name))),
        }
    }

    /// The endpoint for the program, as in a graph that is not of a watcher.
    pub(crate) fn fields(&self, it: &EndpointInfo) -> myelin_graph_endpoint {
        let [dds_topic, dds_type] = match &self.of_dds {
            Some(texts) => texts.each_ref().map(|text| text.as_ptr()),
            None => [std::ptr::null(); 2],
        };
        let user_data = it.dds.as_ref().map_or(&[][..], |dds| &dds.user_data);
        myelin_graph_endpoint {
            size: 0,
            endpoint: it.id,
            node: it.node,
            topic: self.topic.as_ptr(),
            type_name: self.type_name.as_ptr(),
            type_hash: it.type_hash,
            depth: it.depth,
            transient_local: it.transient_local,
            is_publisher: it.is_publisher,
            is_reliable: it.reliable,
            dds_guid: it.dds.as_ref().map(|dds| dds.guid).unwrap_or_default(),
            created_ns: it.created_ns,
            deadline_ns: limit_ns(it.qos.deadline),
            liveliness_ns: limit_ns(it.qos.liveliness),
            lifespan_ns: limit_ns(it.qos.lifespan),
            matching: match it.matching {
                Matching::Exact => myelin_matching::MYELIN_MATCHING_EXACT,
                Matching::RequestedOffered => myelin_matching::MYELIN_MATCHING_REQUESTED_OFFERED,
            },
            is_alive_by_topic: it.qos.is_alive_by_topic,
            resends: it.qos.resends,
            host_id: host_id(it.location),
            dds_topic,
            dds_type,
            dds_user_data: user_data.as_ptr(),
            dds_user_data_bytes: user_data.len(),
            location: it.location.into(),
            rate_hz: f64::NAN,
            lost_in_interval: 0,
            counted_ns: 0,
            matches: 0,
            first_match: 0,
            is_silent: false,
        }
    }
}

impl GraphHandle {
    pub(crate) fn new(graph: Graph, watched: Watched) -> Box<GraphHandle> {
        let name = |text: &String| text::c_string(text);
        let of_match = |state: &MatchState| match state {
            MatchState::Refused { reason, mismatch } => {
                let of = |it: fn(&Mismatch) -> &String| mismatch.as_ref().map(it).map(name);
                [Some(name(reason)), of(|it| &it.offered), of(|it| &it.requested)]
            }
            _ => [None, None, None],
        };
        let of_node = |PeerInfo { record, .. }: &PeerInfo| {
            let NodeRecord { name, namespace, program, host, language, version, .. } = record;
            [name, namespace, program, host, language, version].map(|text| text::c_string(text))
        };
        let of_nodes = graph.nodes.iter().map(|it| (it.node, &it.record.attributes));
        let of_endpoints = graph.endpoints.iter().map(|it| (it.id, &it.attributes));
        let attributes = of_nodes.chain(of_endpoints).filter(|(_, it)| !it.is_empty());
        let names = |it: &Attributes| it.iter().map(|(name, _)| text::c_string(name)).collect();
        Box::new(GraphHandle {
            nodes: graph.nodes.iter().map(of_node).collect(),
            attributes: attributes.map(|(id, it)| (id, (it.clone(), names(it)))).collect(),
            endpoints: graph.endpoints.iter().map(EndpointTexts::new).collect(),
            matches: graph.matches.iter().map(|each| of_match(&each.state)).collect(),
            graph,
            watched,
        })
    }
}

/// Writes the handle of a graph to `to`.
///
/// # Safety
/// `to` is valid.
pub(crate) unsafe fn hand_over(
    to: *mut *mut myelin_graph,
    graph: Graph,
    watched: Watched,
) -> Result<myelin_code, Failure> {
    let handle = handle::insert(GraphHandle::new(graph, watched))?;
    // SAFETY: as the caller promises.
    unsafe { to.write(handle::to_pointer(handle)) };
    Ok(MYELIN_OK)
}

/// A node's view of its domain now. It takes memory for each endpoint in the domain; close it.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_node_graph(
    node: *mut myelin_node,
    graph: *mut *mut myelin_graph,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(graph, std::ptr::null_mut(), "graph")?;
        let found = handle::get::<Node>(handle::of_pointer(node))?.graph()?;
        hand_over(graph, found, Watched::default())
    })
}

/// The same, and asks all other nodes of this host for their matches and for the memory in which their
/// endpoints count, and waits until all have answered, for at most so long. From then on
/// `myelin_node_graph` knows these counters, too, and those of a stopped process: the node keeps a page or
/// two of each endpoint mapped, read-only.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_node_graph_within(
    node: *mut myelin_node,
    limit_ns: u64,
    graph: *mut *mut myelin_graph,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(graph, std::ptr::null_mut(), "graph")?;
        let limit = text::duration(limit_ns);
        let found = handle::get::<Node>(handle::of_pointer(node))?.graph_within(limit)?;
        hand_over(graph, found, Watched::default())
    })
}

/// A graph with one endpoint of this host and no node, match or other endpoint: it costs one
/// look-up, however many endpoints there are. MYELIN_NOTHING if there is no such endpoint now.
/// Close the graph.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_node_endpoint(
    node: *mut myelin_node,
    endpoint: u64,
    graph: *mut *mut myelin_graph,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        text::put(graph, std::ptr::null_mut(), "graph")?;
        let found = handle::get::<Node>(handle::of_pointer(node))?.endpoint(endpoint)?;
        let Some(found) = found else { return Ok(MYELIN_NOTHING) };
        let found = Graph { endpoints: vec![found], ..Graph::default() };
        hand_over(graph, found, Watched::default())
    })
}

/// How often `myelin_node_graph` has changed so far. While the number stays the same, a graph that was
/// taken after it was read is still the newest, except for its matches.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_node_graph_changes(
    node: *mut myelin_node,
    changes: *mut u64,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let number = handle::get::<Node>(handle::of_pointer(node))?.graph_changes()?;
        text::put(changes, number, "changes")?;
        Ok(MYELIN_OK)
    })
}

/// Closes a graph.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_close(graph: *mut myelin_graph) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<GraphHandle>(handle::of_pointer(graph))?);
        Ok(MYELIN_OK)
    })
}

/// The node with this number, from 0 on; MYELIN_NOTHING after the last.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_node_at(
    graph: *mut myelin_graph,
    index: usize,
    node: *mut myelin_graph_node,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let graph = of(graph)?;
        let Some(it) = graph.graph.nodes.get(index) else { return Ok(MYELIN_NOTHING) };
        let texts = graph.nodes[index].each_ref().map(|text| text.as_ptr());
        let [name, node_namespace, program, host, language, version] = texts;
        let fields = myelin_graph_node {
            size: 0,
            node: it.node,
            name,
            pid: it.pid,
            user: it.user,
            node_namespace,
            program,
            host,
            language,
            version,
            host_id: host_id(it.location),
            location: it.location.into(),
            cpu_percent: f64::NAN,
            memory_bytes: 0,
            publishers: 0,
            subscribers: 0,
            threads: 0,
            is_stopped: false,
            is_silent: false,
            is_incomplete: false,
        };
        sized::write(node, graph.watched.node(index, fields))?;
        Ok(MYELIN_OK)
    })
}

/// The endpoint with this number, from 0 on; MYELIN_NOTHING after the last.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_endpoint_at(
    graph: *mut myelin_graph,
    index: usize,
    endpoint: *mut myelin_graph_endpoint,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let graph = of(graph)?;
        let Some(it) = graph.graph.endpoints.get(index) else { return Ok(MYELIN_NOTHING) };
        let fields = graph.endpoints[index].fields(it);
        sized::write(endpoint, graph.watched.endpoint(index, fields))?;
        Ok(MYELIN_OK)
    })
}

/// What the endpoint with this number has counted; MYELIN_NOTHING if that is not known: it is on
/// another host, or its node has never answered `myelin_node_graph_within`.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_counters_at(
    graph: *mut myelin_graph,
    index: usize,
    counters: *mut myelin_graph_counters,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let endpoint = of(graph)?.graph.endpoints.get(index);
        let Some(found) = endpoint.and_then(|it| it.counters) else { return Ok(MYELIN_NOTHING) };
        sized::write(counters, found.into())?;
        Ok(MYELIN_OK)
    })
}

/// The match with this number, from 0 on; MYELIN_NOTHING after the last.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_match_at(
    graph: *mut myelin_graph,
    index: usize,
    match_: *mut myelin_graph_match,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let graph = of(graph)?;
        let Some(it) = graph.graph.matches.get(index) else { return Ok(MYELIN_NOTHING) };
        let state = match it.state {
            MatchState::Matched => myelin_match_state::MYELIN_MATCH_MATCHED,
            MatchState::Refused { .. } => myelin_match_state::MYELIN_MATCH_REFUSED,
            _ => myelin_match_state::MYELIN_MATCH_PENDING,
        };
        let mismatch = match &it.state {
            MatchState::Refused { mismatch, .. } => mismatch.as_ref(),
            _ => None,
        };
        let [reason, offered, requested] = graph.matches[index].each_ref().map(text::pointer);
        let fields = myelin_graph_match {
            size: 0,
            endpoint: it.endpoint,
            other: it.other,
            reason,
            state,
            setting: mismatch.map(|it| it.setting).into(),
            offered,
            requested,
        };
        sized::write(match_, fields)?;
        Ok(MYELIN_OK)
    })
}

/// The attribute with this number, from 0 on, of the node or endpoint with this id, by name;
/// MYELIN_NOTHING after the last. The name and the value are valid until the graph is closed.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_graph_attribute_at(
    graph: *mut myelin_graph,
    id: u64,
    index: usize,
    attribute: *mut myelin_attribute,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let found = of(graph)?.attributes.get(&id);
        let Some((attributes, names)) = found else { return Ok(MYELIN_NOTHING) };
        let Some((_, value)) = attributes.iter().nth(index) else { return Ok(MYELIN_NOTHING) };
        let (name, bytes) = (names[index].as_ptr(), value.len());
        let fields = myelin_attribute { name, value: value.as_ptr().cast(), bytes };
        text::put(attribute, fields, "attribute")?;
        Ok(MYELIN_OK)
    })
}

/// Triggers the guard condition from now on whenever `myelin_node_graph` has changed: an endpoint of the
/// domain came or went or, with a network, other hosts or DDS programs changed what they announce.
/// A node triggers one guard condition, the latest one set.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_node_on_graph_change(
    node: *mut myelin_node,
    guard: *mut myelin_guard_condition,
) -> myelin_code {
    // SAFETY: as the caller promises, here and below.
    enter(|| unsafe {
        let guard = handle::get::<GuardCondition>(handle::of_pointer(guard))?;
        handle::get::<Node>(handle::of_pointer(node))?.trigger_on_graph_change(guard)?;
        Ok(MYELIN_OK)
    })
}

impl From<Location> for myelin_location {
    fn from(location: Location) -> Self {
        match location {
            Location::ThisHost => myelin_location::MYELIN_LOCATION_THIS_HOST,
            Location::Dds => myelin_location::MYELIN_LOCATION_DDS,
            _ => myelin_location::MYELIN_LOCATION_OTHER_HOST,
        }
    }
}

fn host_id(location: Location) -> u64 {
    if let Location::OtherHost(id) = location { id } else { 0 }
}

/// A limit of time; MYELIN_FOREVER for none.
fn limit_ns(limit: Option<Duration>) -> u64 {
    limit.map_or(u64::MAX, |limit| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX))
}

pub(crate) unsafe fn of<'a>(graph: *mut myelin_graph) -> Result<&'a GraphHandle, Failure> {
    // SAFETY: as the caller promises.
    unsafe { handle::get::<GraphHandle>(handle::of_pointer(graph)) }
}
