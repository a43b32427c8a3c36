//! Finds the topics that are recorded, as they come, and subscribes to them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender};
use std::time::{Duration, Instant};

use myelin::{AnyTopic, Clock, EndpointInfo, Error, Graph, Location, NetworkState, Node, ros};
use myelin_value::Schema;

use super::output::RecordedTopic;
use super::ros_metadata;
use super::selection::{self, Selection};
use super::status::Shared;
use super::taker::Source;
use crate::format::Metadata;
use crate::topic_format::TopicFormat;

/// Finds topics. It has a thread of its own: nodes are asked for schemas, and may not answer.
pub(super) struct Follower {
    node: Node,
    selection: Selection,
    shared: Arc<Shared>,
    begin_ns: u64,
    known: BTreeSet<Key>,
    /// Topics that nobody has reported a schema of, since when.
    waiting: BTreeMap<Key, Instant>,
}

/// A topic, and the hash of its type.
type Key = (String, u64);

impl Follower {
    pub(super) fn new(node: Node, selection: Selection, shared: Arc<Shared>) -> Follower {
        let (known, waiting) = (BTreeSet::new(), BTreeMap::new());
        Follower { node, selection, shared, begin_ns: Clock::system().now(), known, waiting }
    }

    /// Sends what it finds. Looks whenever it is asked to, and now and then for what was missing;
    /// ends when nobody asks any more.
    pub(super) fn run(mut self, asked: &Receiver<()>, found: &Sender<Source>) {
        loop {
            match asked.recv_timeout(RETRY) {
                Ok(()) => while asked.try_recv().is_ok() {},
                Err(RecvTimeoutError::Timeout) if self.waiting.is_empty() => continue,
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return,
            }
            match self.follow() {
                Ok(sources) => {
                    let is_heard = |source| found.send(source).is_ok();
                    if !sources.into_iter().all(is_heard) {
                        return;
                    }
                }
                Err(error) => self.shared.report(error.to_string()),
            }
        }
    }

    /// Subscribes to what has come.
    ///
    /// # Errors
    /// Those of the graph. A topic that cannot be subscribed is reported.
    pub(super) fn follow(&mut self) -> Result<Vec<Source>, Error> {
        let mut graph = self.node.graph()?;
        ros::unite_types(&mut graph);
        let wanted: Vec<&EndpointInfo> =
            graph.endpoints.iter().filter(|it| self.selection.is_wanted(it)).collect();
        self.shared.records.update(&graph, &wanted, Clock::system().now());
        let mut topics: BTreeMap<Key, Vec<&EndpointInfo>> = BTreeMap::new();
        for endpoint in wanted {
            topics.entry((endpoint.topic.clone(), endpoint.type_hash)).or_default().push(endpoint);
        }
        self.waiting.retain(|key, _| topics.contains_key(key));
        let (mut found, mut silent) = (Vec::new(), BTreeSet::new());
        for (key, endpoints) in topics {
            if self.known.contains(&key) {
                continue;
            }
            if self.known.len() >= TOPICS_MAX {
                self.shared.report(format!("{TOPICS_MAX} topics are recorded; there are more"));
                break;
            }
            match self.open(&key, &endpoints, &graph, &mut silent) {
                Ok(None) => continue,
                Ok(Some(source)) => found.push(source),
                Err(error) => {
                    let name = selection::name(endpoints[0]);
                    self.shared.report(format!("{name} is not recorded: {error}"));
                }
            }
            self.waiting.remove(&key);
            self.known.insert(key);
        }
        Ok(found)
    }

    /// Subscribes to a topic, with the type of these endpoints; `None` if its schema is to be waited
    /// for. Nodes that have not answered are not asked again.
    fn open(
        &mut self,
        key: &Key,
        endpoints: &[&EndpointInfo],
        graph: &Graph,
        silent: &mut BTreeSet<u64>,
    ) -> Result<Option<Source>, Error> {
        let mut topic = None;
        for endpoint in endpoints {
            if topic.as_ref().is_some_and(|it: &AnyTopic| it.schema().is_some()) {
                break;
            }
            if endpoint.location == Location::Dds {
                topic = Some(ros::any_topic(&self.node, endpoint, graph)?);
            } else if !silent.contains(&endpoint.node) {
                let asked = self.node.any_topic_of(endpoint, ANSWER_LIMIT)?;
                if asked.schema().is_none() {
                    silent.insert(endpoint.node);
                }
                topic = Some(asked);
            }
        }
        let has_schema = topic.as_ref().is_some_and(|it| it.schema().is_some());
        if !has_schema {
            let since = *self.waiting.entry(key.clone()).or_insert_with(Instant::now);
            if since.elapsed() < SCHEMA_LIMIT {
                return Ok(None);
            }
        }
        let topic = match topic {
            Some(topic) => topic,
            None => ros::any_topic(&self.node, endpoints[0], graph)?,
        };
        self.subscribe(&topic, endpoints).map(Some)
    }

    fn subscribe(&self, any: &AnyTopic, endpoints: &[&EndpointInfo]) -> Result<Source, Error> {
        let first = endpoints[0];
        let publishers = || endpoints.iter().filter(|it| it.is_publisher);
        let is_remote = |it: &&&EndpointInfo| it.location != Location::ThisHost;
        let remote = || publishers().filter(is_remote);
        let has_network = !matches!(self.node.network(), NetworkState::Off);
        let depth = match has_network {
            // A publisher's depth bounds it.
            false => DEPTH_MAX,
            // Memory is taken for it.
            true => publishers().map(|it| it.depth).fold(NETWORK_DEPTH_MIN, u32::max),
        };
        // DDS refuses a subscriber that requests more than is offered.
        let latched = match remote().map(|it| it.transient_local).min() {
            None => depth,
            Some(0) => 0,
            Some(_) => depth.min(NETWORK_DEPTH_MIN),
        };
        let mut topic = any.topic().passive().depth(depth).transient_local(latched);
        let is_resent = |it: &&EndpointInfo| it.reliable || it.qos.resends;
        if self.selection.is_reliable(first) {
            topic = topic.reliable(RELIABLE_LIMIT);
        } else if remote().next().is_some() && remote().all(is_resent) {
            topic = topic.reliable_keep_last();
        }
        let builder = topic.subscriber_builder().held_max(HELD_MAX);
        let subscriber = builder.publishers_max(PUBLISHERS_MAX).open()?;
        let type_name = ros::type_name(first).into_owned();
        let name = selection::name(first).to_owned();
        let schema = any.schema();
        let schema = schema.map_or(Schema::new("", &type_name, b""), |it| {
            Schema::new(&it.encoding, &type_name, &it.content)
        });
        let metadata = match schema.encoding == Schema::ROS2MSG {
            true => ros_metadata::of_channel(endpoints),
            false => Metadata::new(),
        };
        let format = TopicFormat::new(&schema);
        let recorded = RecordedTopic { name, type_name, format, metadata };
        let remote_latched = remote().map(|it| it.transient_local).max().unwrap_or(0);
        let (number, state) = self.shared.add_topic(recorded);
        let rate_hz = self.selection.max_rate_hz(first);
        Ok(Source::new(number, state, subscriber, remote_latched, self.begin_ns, rate_hz))
    }
}

/// How long a node may take to report a schema; others are found later by so much.
const ANSWER_LIMIT: Duration = Duration::from_millis(200);
/// How often nodes are asked again that have not reported a schema.
const RETRY: Duration = Duration::from_millis(200);
/// After this time a topic is recorded without a schema.
const SCHEMA_LIMIT: Duration = Duration::from_secs(2);
/// The library's largest depth.
const DEPTH_MAX: u32 = 65_535;
const NETWORK_DEPTH_MIN: u32 = 256;
/// Samples of more than 104 bytes that wait to be written, of each topic. Its publishers look at
/// each of them when they need memory.
const HELD_MAX: u32 = 256;
const PUBLISHERS_MAX: u32 = 1_024;
/// A reliable subscriber has no limit of its own; its publishers have.
const RELIABLE_LIMIT: Duration = Duration::from_secs(1);
/// A file has at most 65,535 channels.
const TOPICS_MAX: usize = 60_000;
