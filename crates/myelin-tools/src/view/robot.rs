//! A running robot: its topics as they come and go, and the samples of those that clients want.
//!
//! One thread follows the graph: it asks nodes, which can take long if one is stopped. Another one
//! takes samples.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use myelin::{
    AnyTopic, Clock, Error as MyelinError, GraphWatcher, Key, Location, Subscriber, WaitSet,
    WaitSetHandle,
};
use myelin_value::Schema;
use serde_json::{Value as Json, json};

use super::channel::{Channel, Message};
use super::hub::{Connections, Hub};
use crate::follow::owner;
use crate::info::{format_of, schema_of};
use crate::session::{Place, Session};
use crate::text::printable;
use crate::{Error, discovery, ros, select};

/// The threads; they end when it is dropped.
pub(super) struct Robot {
    sets: Vec<WaitSetHandle>,
    threads: Vec<JoinHandle<()>>,
}

/// A topic that is there.
struct Topic {
    channel: Arc<Channel>,
    topic: AnyTopic,
    /// Of its publishers.
    depth: u32,
    history: u32,
}

type Topics = Arc<Mutex<BTreeMap<u64, Arc<Topic>>>>;

impl Robot {
    /// Follows the topics with these names, or that match these patterns; all if there are none.
    /// Each has to name a topic that is there.
    pub(super) fn start(
        session: Session,
        place: &Place,
        patterns: Vec<String>,
        hub: Arc<Hub>,
    ) -> Result<Robot, Error> {
        discovery::settle(&session, place)?;
        if !patterns.is_empty() {
            let graph = discovery::graph(&session, ANSWER_LIMIT)?;
            select::topics(&graph, &patterns, &session, place)?;
        }
        let topics = Topics::default();
        let taken = Taker::new(&session, hub.clone(), topics.clone())?;
        let mut graph = GraphFollower::new(session, patterns, hub, topics)?;
        // So that the first client sees all of them at once.
        graph.follow()?;
        let sets = vec![taken.set.handle(), graph.set.handle()];
        let mut robot = Robot { sets, threads: Vec::new() };
        robot.spawn("view samples", move || taken.run())?;
        robot.spawn("view graph", move || graph.run())?;
        Ok(robot)
    }

    fn spawn(&mut self, name: &str, run: impl FnOnce() + Send + 'static) -> Result<(), Error> {
        let thread = std::thread::Builder::new().name(name.to_owned()).spawn(run);
        let failed = |error| Error::Io { what: "a thread".to_owned(), error };
        self.threads.push(thread.map_err(failed)?);
        Ok(())
    }
}

impl Drop for Robot {
    fn drop(&mut self) {
        self.sets.iter().for_each(WaitSetHandle::close);
        self.threads.drain(..).for_each(|it| drop(it.join()));
    }
}

/// Follows the graph.
struct GraphFollower {
    session: Session,
    patterns: Vec<String>,
    hub: Arc<Hub>,
    topics: Topics,
    /// By name on the wire and hash of the type: the channel, and whether its schema is known.
    known: BTreeMap<(String, u64), (u64, bool)>,
    set: WaitSet,
    changed: myelin::GuardCondition,
    watcher: GraphWatcher,
    due_rates: Instant,
    /// What subscribers have lost so far, by topic.
    lost: BTreeMap<String, u64>,
    problems: Vec<String>,
}

impl GraphFollower {
    fn new(
        session: Session,
        patterns: Vec<String>,
        hub: Arc<Hub>,
        topics: Topics,
    ) -> Result<GraphFollower, Error> {
        let set = session.node().wait_set()?;
        let changed = set.guard_condition()?;
        session.node().trigger_on_graph_change(&changed)?;
        let watcher = session.node().watch_graph("*");
        let (known, lost, problems) = Default::default();
        Ok(GraphFollower {
            session,
            patterns,
            hub,
            topics,
            known,
            set,
            changed,
            watcher,
            due_rates: Instant::now(),
            lost,
            problems,
        })
    }

    fn run(mut self) {
        loop {
            let has_changed = match self.set.wait(RATES_INTERVAL) {
                Ok(ready) => ready.contains(&self.changed.key()),
                Err(_) => return,
            };
            let lacks_schema = self.known.values().any(|(_, has_schema)| !has_schema);
            if has_changed || lacks_schema {
                let followed = self.follow();
                self.problem(followed.err());
            }
            if self.hub.has_pages() && self.due_rates <= Instant::now() {
                self.due_rates = Instant::now() + RATES_INTERVAL;
                let rates = self.rates();
                self.problem(rates.err());
            }
        }
    }

    /// Reports each problem once.
    fn problem(&mut self, problem: Option<Error>) {
        let Some(problem) = problem.map(|it| it.to_string()) else { return };
        if !self.problems.contains(&problem) && self.problems.len() < PROBLEMS_MAX {
            self.hub.event(printable(&problem).into_owned());
            self.problems.push(problem);
        }
    }

    /// Adds channels of topics that have come, and removes those of topics that have gone.
    fn follow(&mut self) -> Result<(), Error> {
        let graph = discovery::graph(&self.session, ANSWER_LIMIT)?;
        let mut now = BTreeMap::new();
        let mut connections = Connections::default();
        let all = select::all(&graph);
        for (names, endpoints) in &all {
            let is_meant = |it: &String| select::is_meant(it, *names, &all);
            let is_selected = self.patterns.is_empty() || self.patterns.iter().any(is_meant);
            if !is_selected || ros::is_of_service(endpoints[0]) {
                continue;
            }
            for endpoint in endpoints {
                let of_kind = match endpoint.is_publisher {
                    true => &mut connections.published,
                    false => &mut connections.subscribed,
                };
                let nodes = of_kind.entry(names.0.to_owned()).or_default();
                nodes.push(owner(&graph, endpoint.id).label());
                if endpoint.is_publisher {
                    let (depth, history) =
                        now.entry((endpoint.topic.clone(), endpoint.type_hash)).or_insert((0, 0));
                    *depth = endpoint.depth.max(*depth);
                    *history = endpoint.transient_local.max(*history);
                }
            }
        }
        let mut gone = Vec::new();
        self.known.retain(|key, (channel, has_schema)| {
            let endpoint =
                graph.endpoints.iter().find(|it| (&it.topic, it.type_hash) == (&key.0, key.1));
            let has_more =
                !*has_schema && endpoint.is_some_and(|it| schema_of(&graph, it).is_some());
            let stays = now.contains_key(key) && !has_more;
            if !stays {
                gone.push(*channel);
            }
            stays
        });
        let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
        gone.iter().for_each(|id| drop(topics.remove(id)));
        drop(topics);
        self.hub.remove_channels(&gone);
        for (key, (depth, history)) in now {
            if self.known.contains_key(&key) || self.known.len() >= TOPICS_MAX {
                continue;
            }
            let is_it = |it: &&myelin::EndpointInfo| {
                it.is_publisher && (&it.topic, it.type_hash) == (&key.0, key.1)
            };
            let Some(endpoint) = graph.endpoints.iter().find(is_it) else { continue };
            let topic = match ros::any_topic(self.session.node(), endpoint, &graph) {
                Ok(topic) => topic,
                Err(error) => {
                    self.problem(Some(error.into()));
                    continue;
                }
            };
            let type_name = ros::type_name(endpoint);
            let schema = schema_of(&graph, endpoint);
            let schema = schema.map(|it| Schema::new(&it.encoding, &type_name, &it.content));
            // Bytes need no description.
            let schema = schema.or_else(|| (type_name == BYTES).then(|| Schema::layout(BYTES)));
            let channel = self.hub.add_channel(|id| {
                let (name, ty) =
                    (ros::topic_name(endpoint).to_owned(), type_name.clone().into_owned());
                Channel::new(id, name, ty, schema, format_of(&graph, endpoint)).keeping(history)
            });
            // Another host's may still come, and is announced by a change; DDS has none.
            let has_schema = schema.is_some() || endpoint.location != Location::ThisHost;
            self.known.insert(key, (channel.id, has_schema));
            let topic = Topic { channel: channel.clone(), topic, depth, history };
            let mut topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner);
            topics.insert(channel.id, Arc::new(topic));
        }
        // A client may have subscribed to a channel before its topic was here.
        self.hub.wake();
        self.hub.set_connections(connections);
        Ok(())
    }

    /// Reads the counters of all endpoints for the pages. Nobody notices.
    fn rates(&mut self) -> Result<(), Error> {
        let status = self.watcher.update(ANSWER_LIMIT)?;
        let mut topics: Vec<Json> = Vec::new();
        for topic in &status.topics {
            let first = topic.publishers.first().or(topic.subscribers.first());
            let Some(first) = first.filter(|it| !ros::is_of_service(&it.info)) else { continue };
            let lost = self.lost.entry(topic.name.clone()).or_default();
            *lost += topic.lost;
            topics.push(json!({
                "name": ros::topic_name(&first.info),
                "rateHz": topic.rate_hz,
                "publishers": topic.publishers.len(),
                "subscribers": topic.subscribers.len(),
                "lost": *lost,
            }));
        }
        let names: Vec<_> = status.topics.iter().map(|it| &it.name).collect();
        self.lost.retain(|name, _| names.contains(&name));
        self.hub.set_rates(&json!({"op": "rates", "topics": topics}));
        Ok(())
    }
}

/// A topic that is subscribed to.
struct Taken {
    key: Key,
    topic: Arc<Topic>,
    subscriber: Subscriber<[u8]>,
}

/// Takes samples.
struct Taker {
    hub: Arc<Hub>,
    topics: Topics,
    set: WaitSet,
    wanted: myelin::GuardCondition,
    /// By channel.
    taken: BTreeMap<u64, Taken>,
    by_key: std::collections::HashMap<Key, u64>,
}

impl Taker {
    fn new(session: &Session, hub: Arc<Hub>, topics: Topics) -> Result<Taker, Error> {
        let set = session.node().wait_set()?;
        // A frame that comes 50 µs later is seen at the same time, and costs no core.
        set.set_wait(myelin::Wait::Block);
        let wanted = set.guard_condition()?;
        let guard = wanted.clone();
        hub.on_change(move || guard.trigger());
        let (taken, by_key) = Default::default();
        Ok(Taker { hub, topics, set, wanted, taken, by_key })
    }

    fn run(mut self) {
        loop {
            let ready: Vec<Key> = match self.set.wait(Duration::MAX) {
                Ok(ready) => ready.to_vec(),
                Err(_) => return,
            };
            if ready.contains(&self.wanted.key()) {
                self.follow();
            }
            let offset_ns = Clock::system().now().saturating_sub(myelin::now());
            for key in ready {
                if let Some(id) = self.by_key.get(&key)
                    && let Some(Taken { topic, subscriber, .. }) = self.taken.get_mut(id)
                {
                    take(topic, subscriber, offset_ns, &self.hub);
                }
            }
        }
    }

    /// Subscribes to what clients want, and to nothing else.
    fn follow(&mut self) {
        let topics = self.topics.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let hub = &self.hub;
        self.taken.retain(|id, Taken { key, .. }| {
            let stays = topics.contains_key(id) && hub.is_wanted(*id);
            if !stays {
                self.set.remove(*key);
                self.by_key.remove(key);
            }
            stays
        });
        for (id, topic) in topics {
            if self.taken.contains_key(&id) || !self.hub.is_wanted(id) {
                continue;
            }
            match self.subscribe(&topic) {
                Ok((key, subscriber)) => {
                    self.by_key.insert(key, id);
                    self.taken.insert(id, Taken { key, topic, subscriber });
                }
                Err(error) => {
                    let name = printable(&topic.channel.name).into_owned();
                    self.hub.event(format!("{name}: {}", printable(&error.to_string())));
                }
            }
        }
    }

    fn subscribe(&self, of: &Topic) -> Result<(Key, Subscriber<[u8]>), MyelinError> {
        let depth = of.depth.clamp(1, DEPTH_MAX);
        let topic = of.topic.topic().best_effort().depth(depth);
        let topic = topic.transient_local(of.history.min(depth)).passive();
        let builder = topic.subscriber_builder().publishers_max(PUBLISHERS_MAX);
        let subscriber = builder.open()?;
        Ok((self.set.add(&subscriber)?, subscriber))
    }
}

/// Takes what has come, a bounded number of samples.
fn take(topic: &Topic, subscriber: &mut Subscriber<[u8]>, offset_ns: u64, hub: &Hub) {
    for _ in 0..BATCH {
        match subscriber.take() {
            Ok(Some(sample)) => {
                let published_ns = sample.published_at().map(|ns| ns + offset_ns);
                let log_ns = published_ns.unwrap_or_else(|| Clock::system().now());
                hub.distribute(Message::of_sample(topic.channel.clone(), log_ns, sample));
            }
            Ok(None) => return,
            Err(error) => {
                let name = printable(&topic.channel.name).into_owned();
                hub.event(format!("{name}: {}", printable(&error.to_string())));
                return;
            }
        }
    }
}

/// How long to wait for nodes that do not answer.
const ANSWER_LIMIT: Duration = Duration::from_millis(500);
/// How often pages get rates.
const RATES_INTERVAL: Duration = Duration::from_secs(1);
/// The name of a type, and its layout.
const BYTES: &str = "[u8]";
const TOPICS_MAX: usize = 4096;
/// Problems that are reported.
const PROBLEMS_MAX: usize = 64;
/// Of one topic at a time, so that none starves the others.
const BATCH: usize = 256;
const DEPTH_MAX: u32 = 65_535;
/// Of a subscriber.
const PUBLISHERS_MAX: u32 = 4096;
