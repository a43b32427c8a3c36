//! A domain under observation: what is there, what comes and goes, and how fast things are.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use crate::node::Node;
use crate::pattern::is_match;
use crate::process_usage::ProcessUsages;
use crate::{Counters, EndpointId, EndpointInfo, Error, Graph, Location, MatchState, PeerInfo};

/// Watches topics and nodes: rates, losses, matches and their reasons, CPU and memory. Made by
/// [`Node::watch_graph`].
///
/// [`update`](GraphWatcher::update) asks the nodes of this host for their matches, and takes
/// differences of the counters in their shared memory. Publishing and taking are not affected. Between
/// two updates nothing happens.
#[derive(Debug)]
pub struct GraphWatcher {
    node: Node,
    pattern: String,
    status: GraphStatus,
    changes: Vec<Change>,
    processes: ProcessUsages,
}

/// A change of what is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// An endpoint has come.
    Found(EndpointInfo),
    /// An endpoint has gone.
    Gone(EndpointInfo),
}

/// A domain at the time of an update.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct GraphStatus {
    /// When the counters were read, on the clock of [`now`](crate::now); 0 before the first update.
    pub at_ns: u64,
    /// How long before that the update before was; `None` at the first one.
    pub since_ns: Option<u64>,
    /// The topics, by name, with the endpoints of this host, of other hosts and of DDS programs. A
    /// service has topics, too.
    pub topics: Vec<TopicStatus>,
    /// All nodes of the domain, by id, also those without a topic that is watched.
    pub nodes: Vec<NodeStatus>,
    /// The nodes that have not answered in time, by id: stopped, or busy.
    pub silent: Vec<u64>,
    /// The nodes whose answers were cut off at a limit: some of their matches are missing.
    pub incomplete: Vec<u64>,
}

/// A topic.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TopicStatus {
    /// Its name.
    pub name: String,
    /// The name of its type; if its endpoints have several, all of them, with `, ` between.
    pub type_name: String,
    /// The layout hashes of its types, each once: more than one means that endpoints do not match.
    pub types: Vec<u64>,
    /// Its publishers, by id.
    pub publishers: Vec<EndpointStatus>,
    /// Its subscribers, by id.
    pub subscribers: Vec<EndpointStatus>,
    /// How many samples its publishers have published in a second, all those together whose rate is
    /// known; `None` if it is known of none. A topic without a publisher has 0.
    pub rate_hz: Option<f64>,
    /// Bytes of its endpoints' shared memory, as far as known.
    pub memory_bytes: u64,
    /// How many samples its subscribers have lost since the update before.
    pub lost: u64,
    /// How many pairs of a publisher and a subscriber do not match although they share the topic.
    pub refused: usize,
}

/// A publisher or subscriber.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct EndpointStatus {
    /// What its node announces of it. Its counters are the last known ones; see
    /// [`counted_ns`](EndpointStatus::counted_ns).
    pub info: EndpointInfo,
    /// How many samples a publisher has published, or a subscriber has taken, in a second, since its
    /// counters were read before. `None` if that is not known: at first sight, and of other hosts.
    pub rate_hz: Option<f64>,
    /// How many samples a subscriber has lost since its counters were read before.
    pub lost_in_interval: u64,
    /// Its matches, by the id of the other side, as its own node reports them.
    pub matches: Vec<MatchStatus>,
    /// When its counters were read, on the clock of [`now`](crate::now); `None` if never. They are
    /// read also while its process is stopped, once its node has answered.
    pub counted_ns: Option<u64>,
    /// Whether its node has not answered: its matches are those that were known before.
    pub is_silent: bool,
}

/// A match of an endpoint with another.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct MatchStatus {
    /// The other side.
    pub other: EndpointId,
    /// Its node; 0 for an endpoint of a DDS program.
    pub node: u64,
    /// Its state, with the reason if the two do not match.
    pub state: MatchState,
}

/// A node.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct NodeStatus {
    /// What is known of it.
    pub info: PeerInfo,
    /// How long the threads of its process have run since the update before, in percent of one core:
    /// four busy threads are 400. Here and below: `None` of other hosts and if `/proc` does not show
    /// the process. Nodes of one process have the same.
    pub cpu_percent: Option<f64>,
    /// The resident memory (RSS) of its process. It counts shared memory in each process that uses it.
    pub memory_bytes: Option<u64>,
    /// How many threads its process has.
    pub threads: Option<u32>,
    /// Whether a signal or a debugger has stopped its process.
    pub is_stopped: bool,
    /// Whether it has not answered in time.
    pub is_silent: bool,
    /// How many publishers it has on the watched topics.
    pub publishers: usize,
    /// How many subscribers it has on the watched topics.
    pub subscribers: usize,
}

impl Node {
    /// Watches the topics whose names match `pattern`, and all nodes: `*` stands for any text and `?`
    /// for one character. Nothing happens before the first [`update`](GraphWatcher::update).
    ///
    /// ```
    /// # use std::time::Duration;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// let publisher = node.topic::<f64>("temperature").publisher()?;
    /// let mut watcher = node.watch_graph("*");
    /// watcher.update(Duration::from_secs(1))?;
    /// publisher.publish_copy(&21.5)?;
    /// for topic in &watcher.update(Duration::from_secs(1))?.topics {
    ///     println!("{}: {:?} Hz, {} lost", topic.name, topic.rate_hz, topic.lost);
    /// }
    /// # assert!(watcher.status().topic("temperature").unwrap().rate_hz > Some(0.0));
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn watch_graph(&self, pattern: &str) -> GraphWatcher {
        GraphWatcher {
            node: self.clone(),
            pattern: pattern.to_owned(),
            status: GraphStatus::default(),
            changes: Vec::new(),
            processes: ProcessUsages::new(),
        }
    }
}

impl GraphWatcher {
    /// Asks all nodes of this host, waits until they have answered, for at most `limit`, and computes
    /// what has changed since the last call. A node that does not answer makes each call take the
    /// whole `limit`.
    ///
    /// # Errors
    /// Those of [`Node::graph_within`]; then the status stays.
    pub fn update(&mut self, limit: Duration) -> Result<&GraphStatus, Error> {
        let (mut graph, at_ns) = self.node.graph_and_time(limit)?;
        // The other side of a match may have another topic: its name in DDS.
        let of_nodes: BTreeMap<_, _> = graph.endpoints.iter().map(|it| (it.id, it.node)).collect();
        graph.endpoints.retain(|it| is_match(&self.pattern, &it.topic));
        let Graph { nodes, endpoints, matches, mut silent, mut incomplete, .. } = graph;
        silent.sort_unstable();
        incomplete.sort_unstable();
        let since_ns = (self.status.at_ns > 0).then(|| at_ns.saturating_sub(self.status.at_ns));
        let mut known: BTreeMap<_, _> =
            self.status.endpoints().map(|it| (it.info.id, it)).collect();
        let mut reported = BTreeMap::<_, Vec<_>>::new();
        for each in matches {
            let Some(node) = of_nodes.get(&each.other) else { continue };
            let status = MatchStatus { other: each.other, node: *node, state: each.state };
            reported.entry(each.endpoint).or_default().push(status);
        }
        let mut nodes = node_statuses(nodes, &silent, &mut self.processes);
        let mut topics = empty_topics(&endpoints);
        let mut found = Vec::new();
        for info in endpoints {
            let is_silent = silent.binary_search(&info.node).is_ok();
            let matches = reported.remove(&info.id).unwrap_or_default();
            let mut status =
                EndpointStatus { info, matches, is_silent, ..EndpointStatus::default() };
            if let Some(before) = known.remove(&status.info.id) {
                status.continue_from(before, at_ns, &of_nodes);
            } else {
                found.push(Change::Found(status.info.clone()));
                status.begin(at_ns, since_ns.is_some());
            }
            if let Ok(at) = nodes.binary_search_by_key(&status.info.node, |it| it.info.node) {
                nodes[at].count(&status.info);
            }
            topics.get_mut(&status.info.topic).expect("made for it").add(status);
        }
        self.changes.clear();
        self.changes.extend(known.into_values().map(|it| Change::Gone(it.info.clone())));
        self.changes.append(&mut found);
        let topics = topics.into_iter().map(|(name, topic)| topic.named(name)).collect();
        self.status = GraphStatus { at_ns, since_ns, topics, nodes, silent, incomplete };
        Ok(&self.status)
    }

    /// The status of the last update; empty before the first one.
    pub fn status(&self) -> &GraphStatus {
        &self.status
    }

    /// The endpoints that went and came with the last update, those that went first; at the first
    /// one, all that are there. A program that was started again has endpoints with other ids.
    pub fn changes(&self) -> &[Change] {
        &self.changes
    }
}

impl GraphStatus {
    /// The topic of this name.
    pub fn topic(&self, name: &str) -> Option<&TopicStatus> {
        let at = self.topics.binary_search_by(|it| it.name.as_str().cmp(name)).ok()?;
        Some(&self.topics[at])
    }

    /// The node with this id.
    pub fn node(&self, id: u64) -> Option<&NodeStatus> {
        let at = self.nodes.binary_search_by_key(&id, |it| it.info.node).ok()?;
        Some(&self.nodes[at])
    }

    fn endpoints(&self) -> impl Iterator<Item = &EndpointStatus> {
        self.topics.iter().flat_map(|it| it.publishers.iter().chain(&it.subscribers))
    }
}

impl TopicStatus {
    fn add(&mut self, endpoint: EndpointStatus) {
        let memory_bytes = match endpoint.info.counters {
            Some(
                Counters::Publisher { memory_bytes, .. }
                | Counters::Subscriber { memory_bytes, .. },
            ) => memory_bytes,
            None => 0,
        };
        self.memory_bytes = self.memory_bytes.saturating_add(memory_bytes);
        self.lost = self.lost.saturating_add(endpoint.lost_in_interval);
        let is_publisher = endpoint.info.is_publisher;
        if is_publisher { &mut self.publishers } else { &mut self.subscribers }.push(endpoint);
    }

    /// With its name, and with what depends on all of its endpoints.
    fn named(self, name: String) -> TopicStatus {
        let endpoints = || self.publishers.iter().chain(&self.subscribers);
        let types: BTreeSet<_> = endpoints().map(|it| it.info.type_hash).collect();
        let names: BTreeSet<_> = endpoints().map(|it| it.info.type_name.as_str()).collect();
        let refused: BTreeSet<_> = endpoints().flat_map(EndpointStatus::refused).collect();
        let rates = self.publishers.iter().filter_map(|it| it.rate_hz);
        let is_known = self.publishers.is_empty() || rates.clone().next().is_some();
        let rate_hz = is_known.then(|| rates.fold(0.0, |sum, rate| sum + rate));
        let type_name = names.into_iter().collect::<Vec<_>>().join(", ");
        let (types, refused) = (types.into_iter().collect(), refused.len());
        TopicStatus { name, type_name, types, rate_hz, refused, ..self }
    }
}

impl EndpointStatus {
    /// At first sight. If there was an update before, the endpoint is new, and has lost everything
    /// since.
    fn begin(&mut self, at_ns: u64, is_new: bool) {
        self.counted_ns = self.info.counters.map(|_| at_ns);
        self.lost_in_interval = self.info.counters.filter(|_| is_new).map_or(0, lost);
    }

    /// Takes over what was known before, and computes what has changed.
    fn continue_from(
        &mut self,
        before: &EndpointStatus,
        at_ns: u64,
        there: &BTreeMap<EndpointId, u64>,
    ) {
        if self.is_silent {
            let matches = before.matches.iter();
            self.matches = matches.filter(|it| there.contains_key(&it.other)).cloned().collect();
        }
        let Some(counters) = self.info.counters else {
            (self.info.counters, self.counted_ns) = (before.info.counters, before.counted_ns);
            return;
        };
        self.counted_ns = Some(at_ns);
        let (Some(earlier), Some(earlier_ns)) = (before.info.counters, before.counted_ns) else {
            return;
        };
        self.lost_in_interval = lost(counters).saturating_sub(lost(earlier));
        let passed_ns = at_ns.checked_sub(earlier_ns).filter(|passed| *passed > 0);
        let count = count(counters).checked_sub(count(earlier));
        let rate = |(count, passed_ns): (u64, u64)| count as f64 * 1e9 / passed_ns as f64;
        self.rate_hz = count.zip(passed_ns).map(rate);
    }

    /// The pairs that do not match, the same from both sides.
    fn refused(&self) -> impl Iterator<Item = (EndpointId, EndpointId)> {
        let refused = |it: &&MatchStatus| matches!(it.state, MatchState::Refused { .. });
        let id = self.info.id;
        self.matches.iter().filter(refused).map(move |it| (id.min(it.other), id.max(it.other)))
    }
}

impl NodeStatus {
    fn count(&mut self, endpoint: &EndpointInfo) {
        let count =
            if endpoint.is_publisher { &mut self.publishers } else { &mut self.subscribers };
        *count += 1;
    }
}

/// The nodes, with what their processes use.
fn node_statuses(
    nodes: Vec<PeerInfo>,
    silent: &[u64],
    processes: &mut ProcessUsages,
) -> Vec<NodeStatus> {
    let of_host = |it: &PeerInfo| (it.location == Location::ThisHost).then_some(it.pid);
    let pids: BTreeSet<_> = nodes.iter().filter_map(of_host).collect();
    let usages = processes.look(pids.into_iter());
    let nodes = nodes.into_iter().map(|info| {
        let usage = of_host(&info).and_then(|pid| usages.get(&pid));
        NodeStatus {
            is_silent: silent.binary_search(&info.node).is_ok(),
            info,
            cpu_percent: usage.and_then(|usage| usage.cpu_percent),
            memory_bytes: usage.map(|usage| usage.memory_bytes),
            threads: usage.map(|usage| usage.threads),
            is_stopped: usage.is_some_and(|usage| usage.is_stopped),
            publishers: 0,
            subscribers: 0,
        }
    });
    nodes.collect()
}

/// The topics of these endpoints, with room for them and no more: a status has some 600 bytes.
fn empty_topics(endpoints: &[EndpointInfo]) -> BTreeMap<String, TopicStatus> {
    let mut numbers = BTreeMap::<&str, [usize; 2]>::new();
    for endpoint in endpoints {
        numbers.entry(&endpoint.topic).or_default()[usize::from(endpoint.is_publisher)] += 1;
    }
    let topic = |(name, [subscribers, publishers]): (&str, [usize; 2])| {
        let (publishers, subscribers) =
            (Vec::with_capacity(publishers), Vec::with_capacity(subscribers));
        (name.to_owned(), TopicStatus { publishers, subscribers, ..TopicStatus::default() })
    };
    numbers.into_iter().map(topic).collect()
}

/// What the rate of an endpoint counts.
fn count(counters: Counters) -> u64 {
    match counters {
        Counters::Publisher { published, .. } => published,
        Counters::Subscriber { taken, .. } => taken,
    }
}

fn lost(counters: Counters) -> u64 {
    match counters {
        Counters::Publisher { .. } => 0,
        Counters::Subscriber { lost, .. } => lost,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn publisher(published: Option<u64>, counted_ns: Option<u64>) -> EndpointStatus {
        let counters = published.map(|published| Counters::Publisher {
            published,
            published_bytes: 0,
            last_published_ns: 0,
            refused_loans: 0,
            memory_bytes: 4_096,
        });
        let mut status = EndpointStatus { counted_ns, ..EndpointStatus::default() };
        (status.info.is_publisher, status.info.counters) = (true, counters);
        status
    }

    #[test]
    fn what_is_not_known_is_kept_and_has_no_rate() {
        let matched = |other| MatchStatus { other, node: 1, state: MatchState::Matched };
        let mut before = publisher(Some(10), Some(1_000_000_000));
        before.matches = vec![matched(7), matched(8)];
        let there = BTreeMap::from([(8, 1)]);
        let mut silent = EndpointStatus { is_silent: true, ..publisher(None, None) };
        silent.continue_from(&before, 2_000_000_000, &there);
        assert_eq!((silent.rate_hz, silent.counted_ns), (None, Some(1_000_000_000)));
        assert_eq!(silent.matches, [matched(8)], "the other one has gone");
        let later = |published, before: &EndpointStatus, at_ns| {
            let mut later = publisher(Some(published), None);
            later.continue_from(before, at_ns, &there);
            later
        };
        let again = later(40, &silent, 3_000_000_000);
        assert_eq!((again.rate_hz, again.counted_ns), (Some(15.0), Some(3_000_000_000)));
        assert_eq!(later(39, &again, 4_000_000_000).rate_hz, None, "it counts backwards");
        assert_eq!(later(50, &again, 3_000_000_000).rate_hz, None, "no time has passed");

        let mut topic = TopicStatus::default();
        topic.add(publisher(None, None));
        assert_eq!(topic.clone().named("imu".into()).rate_hz, None, "not 0");
        topic.add(EndpointStatus { rate_hz: Some(3.0), ..publisher(Some(1), None) });
        let topic = topic.named("imu".into());
        assert_eq!((topic.rate_hz, topic.memory_bytes), (Some(3.0), 4_096));
        assert_eq!(TopicStatus::default().named("imu".into()).rate_hz, Some(0.0));
    }
}
