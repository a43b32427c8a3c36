//! A process's part in a domain.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use crate::control_plane::event_loop::{self, Core, Notice};
use crate::control_plane::protocol::Input;
pub use crate::control_plane::protocol::graph::{
    Counters, DdsInfo, EndpointInfo, Graph, Location, MatchInfo, MatchState, TypeInfo,
};
pub use crate::control_plane::protocol::{PeerInfo, RefusedPeer};
pub use crate::control_plane::proxy::Proxy;
use crate::control_plane::reactor::{LISTENER, Reactor};
use crate::control_plane::registry::Registry;
use crate::data_plane::observer::{ObserverReader, ObserverState};
use crate::data_plane::publication::Writer;
use crate::data_plane::subscription::{Reader, SubscriptionState};
use crate::dispatch::dispatcher::Dispatcher;
pub use crate::endpoint::{EndpointHandle, Observer, Publisher, Subscriber};
use crate::error::Error;
use crate::listener::{Call, Listener, ListenerThread};
use crate::os::descriptor::NodeFd;
use crate::os::fork;
pub use crate::os::latency_guard::LATENCY_DEVICE;
use crate::os::latency_guard::LatencyGuard;
use crate::os::poll::Poll;
pub use crate::os::thread::{Policy, Thread, Threads};
use crate::record::{self, Attributes, Kind, NodeRecord, PASSIVE, RecordOptions, Schema};
use crate::sync::lock;
use crate::tasks::Tasks;
use crate::topic::{EndpointId, PublisherQos, SubscriberQos, Topic, check_name};
use crate::waiting::cancel;
use crate::waiting::wake_table::WakeTable;
pub use crate::warnings::report_failure;

/// Options for opening a [`Node`].
#[derive(Clone, Debug, Default)]
pub struct NodeOptions {
    /// Nodes of different domains do not see each other.
    pub domain: u32,
    /// The id of a group whose members share the domain; `None`: only the user's own processes.
    pub group: Option<u32>,
    /// For people; at most 255 bytes without control characters.
    pub name: String,
    /// The folder that contains the folders of the sockets, instead of `/dev/shm`.
    pub runtime_dir: Option<PathBuf>,
    /// Keeps all CPUs of the machine from deep sleep while the node lives; see
    /// `docs/reference/library.md`.
    pub latency_guard: bool,
    /// Settings of the threads that the node starts.
    pub threads: Threads,
    /// How long a new publisher or subscriber waits at most until it is matched with those that
    /// exist; `None`: 20 ms.
    pub match_limit: Option<Duration>,
    /// What the node announces of itself beside its name.
    pub announced: AnnouncedNode,
}

/// What a node announces of itself beside its name; see [`NodeRecord`].
#[derive(Clone, Debug, Default)]
pub struct AnnouncedNode {
    /// Its namespace; at most 255 bytes without control characters.
    pub namespace: String,
    /// The program; by default the name of its executable file.
    pub program: Option<String>,
    /// The language of the library that it uses; by default Rust.
    pub language: Option<String>,
    /// Attributes.
    pub attributes: Attributes,
}

/// A topic with at least one publisher or subscriber.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicInfo {
    /// The topic's name.
    pub name: String,
    /// The type's name. Endpoints with different types are listed separately.
    pub type_name: String,
    /// How many publishers there are.
    pub publishers: usize,
    /// How many subscribers there are.
    pub subscribers: usize,
}

/// A node; clones are the same node. It leaves when the last clone and all its publishers,
/// subscribers and samples have gone. Any thread may call it. Calls do not wait for another
/// process, except [`open`](Node::open), which waits at most 10 ms, [`publisher`](Node::publisher)
/// and [`subscriber`](Node::subscriber), at most [`match_limit`](NodeOptions::match_limit), and
/// [`graph_within`](Node::graph_within).
///
/// In a child of `fork` every call fails with [`Error::Forked`] or returns nothing.
#[derive(Clone)]
pub struct Node(Arc<Handle>);

/// Ends the thread when the last handle is dropped.
struct Handle {
    core: Arc<Core>,
    thread: Mutex<Option<Thread>>,
    table: Mutex<Option<Arc<WakeTable>>>,
    listeners: Mutex<Option<ListenerThread>>,
    /// What wakes its asynchronous tasks, as long as there are any.
    tasks: Mutex<Weak<Tasks>>,
    /// The folder of its sockets.
    domain: PathBuf,
    threads: Threads,
    match_limit: Duration,
    _latency_guard: Option<LatencyGuard>,
}

impl Node {
    /// Enters a domain. On return all endpoints of nodes that answer within 10 ms are known.
    ///
    /// # Errors
    /// [`Error::NoPermission`] and [`Error::NoSpace`] name the folder of the sockets;
    /// [`Error::TooManyFiles`], [`Error::Setting`]; [`Error::LatencyGuard`] if the guard is
    /// requested and not available.
    pub fn open(options: NodeOptions) -> Result<Node, Error> {
        if !options.name.is_empty() {
            check_name("a node's name", &options.name)?;
        }
        let AnnouncedNode { namespace, program, language, attributes } = options.announced;
        if !namespace.is_empty() {
            check_name("a node's namespace", &namespace)?;
        }
        options.threads.check()?;
        let match_limit = options.match_limit.unwrap_or(MATCH_LIMIT);
        let latency_guard = options.latency_guard.then(LatencyGuard::hold).transpose()?;
        let base = options.runtime_dir.as_deref().unwrap_or(Path::new(FOLDER));
        let registry = Registry::new(base, options.domain, options.group);
        let mark = fork::mark();
        let poll = Arc::new(Poll::new()?);
        let (listener, id) = registry.enter()?;
        let mut record = NodeRecord::of_process(options.name);
        (record.namespace, record.attributes) = (namespace, attributes);
        record.program = program.unwrap_or(record.program);
        record.language = language.unwrap_or(record.language);
        let listener = NodeFd::new(listener);
        let reactor = Reactor::new(id, record, registry.clone(), poll, listener);
        let opened = Node::start(reactor, mark, latency_guard, options.threads, match_limit);
        if opened.is_err() {
            registry.leave(id);
        }
        opened
    }

    fn start(
        reactor: Reactor,
        mark: u32,
        guard: Option<LatencyGuard>,
        threads: Threads,
        match_limit: Duration,
    ) -> Result<Node, Error> {
        let listener = reactor.listener.as_ref().expect("a new reactor listens");
        reactor.poll.add(std::os::fd::AsFd::as_fd(listener), LISTENER)?;
        let domain = reactor.registry.domain_dir.clone();
        let core = Arc::new(Core::new(reactor, mark));
        let thread = Mutex::new(Some(event_loop::start(&core, &threads)?));
        let handle = Handle {
            core,
            thread,
            table: Mutex::default(),
            listeners: Mutex::default(),
            tasks: Mutex::default(),
            domain,
            threads,
            match_limit,
            _latency_guard: guard,
        };
        let node = Node(Arc::new(handle));
        node.core().change(Reactor::connect_all)?;
        let id = node.id()?;
        drop(node.core().wait_while(ANSWER_LIMIT, |reactor| reactor.protocol.is_awaiting(id)));
        Ok(node)
    }

    /// Its id.
    pub fn id(&self) -> Result<u64, Error> {
        Ok(self.checked()?.lock().protocol.node())
    }

    /// A publisher of a topic. On return it is matched with all existing subscribers whose nodes
    /// answer within [`match_limit`](NodeOptions::match_limit). A node that does not answer is not
    /// waited for again until it has answered. If a publisher and a subscriber are made at the same
    /// time, at least one of the two calls waits for their match. A call in the node's own thread
    /// ([`EndpointHandle::on_event`]) does not wait.
    ///
    /// # Errors
    /// [`Error::TypeMismatch`] if a known endpoint of the topic has another type.
    pub fn publisher(&self, topic: Topic, qos: PublisherQos) -> Result<Publisher, Error> {
        self.publisher_with(topic, qos, RecordOptions::default())
    }

    /// The same, with settings for its record.
    ///
    /// # Errors
    /// As for [`publisher`](Node::publisher).
    pub fn publisher_with(
        &self,
        topic: Topic,
        qos: PublisherQos,
        options: RecordOptions,
    ) -> Result<Publisher, Error> {
        let core = self.checked()?;
        topic.check()?;
        let id = core.lock().new_endpoint(&topic)?;
        let (mut writer, shared) = Writer::create(id, &topic, qos)?;
        self.dispatcher(&topic).enter(&mut writer);
        let (inbox, weak) = (shared.inbox().clone(), Arc::downgrade(core));
        shared.on_growth(Box::new(move |segment| {
            if let Some(core) = weak.upgrade().filter(|core| !core.is_forked()) {
                core.change(|reactor| reactor.grown(id, segment));
            }
        }));
        self.enter(id, Some(&topic), |reactor| reactor.add_publication(shared, options))?;
        Ok(Publisher::new(writer, id, self.clone(), inbox))
    }

    /// A subscriber of a topic. On return it is matched with the existing publishers, with the same
    /// exception as for a [`publisher`](Node::publisher).
    ///
    /// # Errors
    /// [`Error::TypeMismatch`] if a known endpoint of the topic has another type.
    pub fn subscriber(&self, topic: Topic, qos: SubscriberQos) -> Result<Subscriber, Error> {
        self.subscriber_with(topic, qos, RecordOptions::default())
    }

    /// The same, with settings for its record.
    ///
    /// # Errors
    /// As for [`subscriber`](Node::subscriber).
    pub fn subscriber_with(
        &self,
        topic: Topic,
        qos: SubscriberQos,
        options: RecordOptions,
    ) -> Result<Subscriber, Error> {
        let core = self.checked()?;
        topic.check()?;
        let is_passive = options.attributes.get(PASSIVE).is_some();
        let id = match is_passive {
            true => core.lock().new_passive_endpoint(&topic)?,
            false => core.lock().new_endpoint(&topic)?,
        };
        let (reader, shared) = Reader::create(id, &topic, qos, &self.wake_table()?)?;
        let (inbox, weak) = (shared.inbox().clone(), Arc::downgrade(core));
        shared.on_corrupt(Box::new(move |publisher| {
            if let Some(core) = weak.upgrade().filter(|core| !core.is_forked()) {
                core.notify(Notice::Corrupt { publisher, subscriber: id });
            }
        }));
        let checked = (!is_passive).then_some(&topic);
        self.enter(id, checked, |reactor| reactor.add_subscription(&shared, options))?;
        // The samples keep the node: if it left, publishers would reuse the samples' memory.
        let node = self.clone();
        shared.on_last_drop(Box::new(move || node.core().notify(Notice::Gone { subscriber: id })));
        Ok(Subscriber::new(reader, id, self.clone(), inbox))
    }

    /// An observer of a topic: it reads the publishers' rings without being known to them, and
    /// begins `history` samples before. On return it observes all existing publishers whose nodes
    /// answer within 20 ms, with the same exceptions as for a [`publisher`](Node::publisher).
    ///
    /// # Errors
    /// [`Error::TypeMismatch`] if all known endpoints of the topic have other types.
    pub fn observer(&self, topic: Topic, transient_local: u32) -> Result<Observer, Error> {
        let core = self.checked()?;
        topic.check()?;
        core.lock().protocol.check_observed_type(&topic)?;
        let state = ObserverState::new(topic.clone(), transient_local, record::date_ns());
        let weak = Arc::downgrade(core);
        state.on_missing(Box::new(move |publisher, from| {
            if let Some(core) = weak.upgrade().filter(|core| !core.is_forked()) {
                core.change(|reactor| reactor.drive(Input::Observe { publisher, from }));
            }
        }));
        let reader = ObserverReader::new(state.clone());
        let id = core.change_caught_up(|reactor| {
            let id = reactor.protocol.new_observer();
            reactor.add_observer(id, topic, state);
            id
        });
        let observer = Observer::new(reader, id, self.clone());
        if !core.is_own_thread() {
            let is_awaiting = |reactor: &mut Reactor| reactor.protocol.is_awaiting_rings(id);
            core.wait_while(MATCH_LIMIT, is_awaiting).protocol.stop_awaiting_rings();
        }
        Ok(observer)
    }

    /// Adds an endpoint to the node, and waits for its first matches.
    fn enter(
        &self,
        id: EndpointId,
        checked: Option<&Topic>,
        add: impl FnOnce(&mut Reactor),
    ) -> Result<(), Error> {
        let core = self.core();
        core.change_caught_up(|reactor| {
            // Once more: others may have come meanwhile.
            checked.map_or(Ok(()), |topic| reactor.protocol.check_type(topic))?;
            add(reactor);
            // Of two endpoints that are made at the same time, one reads what the other has sent.
            reactor.catch_up();
            Ok(())
        })?;
        if !core.is_own_thread() {
            let is_awaiting = |reactor: &mut Reactor| reactor.protocol.is_awaiting(id);
            let waited = wait_while(core, Instant::now(), self.0.match_limit, is_awaiting);
            waited.unwrap_or_else(|| core.lock()).protocol.stop_awaiting(id);
        }
        Ok(())
    }

    /// The topics of the domain, by name.
    pub fn topics(&self) -> Result<Vec<TopicInfo>, Error> {
        let reactor = self.checked()?.lock();
        let mut topics = BTreeMap::new();
        for (_, endpoint) in reactor.protocol.directory().iter() {
            let topic = &endpoint.topic;
            let key = (&topic.name, topic.type_hash());
            let info = topics.entry(key).or_insert_with(|| TopicInfo {
                name: topic.name.to_string(),
                type_name: topic.type_name().to_owned(),
                publishers: 0,
                subscribers: 0,
            });
            match endpoint.kind {
                Kind::Publisher => info.publishers += 1,
                Kind::Subscriber => info.subscribers += 1,
            }
        }
        Ok(topics.into_values().collect())
    }

    /// The other nodes of the domain.
    pub fn peers(&self) -> Result<Vec<PeerInfo>, Error> {
        Ok(self.checked()?.lock().protocol.peers().collect())
    }

    /// This node, as others see it.
    pub fn info(&self) -> Result<PeerInfo, Error> {
        Ok(self.checked()?.lock().protocol.info())
    }

    /// This node's view of its domain: nodes, endpoints with types and settings, and the matches,
    /// refusals and counters of its own endpoints. It takes memory for each endpoint in the domain.
    ///
    /// If two nodes each make an endpoint and then ask, at least one of them sees the other's
    /// endpoint, unless more data than a socket holds is between them.
    pub fn graph(&self) -> Result<Graph, Error> {
        let core = self.checked()?;
        Ok(core.change_caught_up(|reactor| reactor.graph(None)))
    }

    /// An endpoint of this host by its id, as in [`graph`](Node::graph), without its counters. It
    /// costs one look-up.
    pub fn endpoint(&self, id: EndpointId) -> Result<Option<EndpointInfo>, Error> {
        Ok(self.checked()?.lock().protocol.endpoint(id))
    }

    /// How often [`graph`](Node::graph) has changed so far, as far as this node knows by now.
    pub fn graph_changes(&self) -> Result<u64, Error> {
        Ok(self.checked()?.graph_changes())
    }

    /// Like [`graph`](Node::graph), and asks all other nodes for their matches, counters and types.
    /// Waits until all have answered, also nodes that have not answered since this one was opened,
    /// for at most `limit`; [`Graph::silent`] names those that are known and have not. It costs each
    /// of them a message for each endpoint and match. Do not call it in the node's own thread
    /// ([`EndpointHandle::on_event`]), which receives the answers.
    pub fn graph_within(&self, limit: Duration) -> Result<Graph, Error> {
        let core = self.checked()?;
        let begin = Instant::now();
        // A node that never greets, such as a stopped one, leaves the others time to answer.
        let is_cancelled = !self.wait_for_peers(limit / 2)?;
        let graph_query = core.change(Reactor::begin_graph_query);
        let answers = |reactor: &mut Reactor| reactor.protocol.is_awaited(graph_query);
        let reactor = (!is_cancelled).then(|| wait_while(core, begin, limit, answers)).flatten();
        let mut reactor = reactor.unwrap_or_else(|| core.lock());
        let graph = reactor.graph(Some(graph_query));
        reactor.protocol.end_query();
        Ok(graph)
    }

    /// Waits until all other nodes have announced their endpoints, for at most `limit`. False if the
    /// call was cancelled.
    pub fn wait_for_peers(&self, limit: Duration) -> Result<bool, Error> {
        let (core, id) = (self.checked()?, self.id()?);
        let greeting = |reactor: &mut Reactor| reactor.protocol.is_awaiting(id);
        Ok(wait_while(core, Instant::now(), limit, greeting).is_some())
    }

    /// The schema of a type of another node's endpoints: the node is asked for this schema alone, and
    /// has `limit` to answer. `None` if it has none, or does not answer. Do not call it in the node's
    /// own thread, as for [`graph_within`](Node::graph_within).
    pub fn schema_from(
        &self,
        node: u64,
        type_hash: u64,
        limit: Duration,
    ) -> Result<Option<Arc<Schema>>, Error> {
        let (core, begin) = (self.checked()?, Instant::now());
        core.change(|reactor| reactor.drive(Input::QuerySchema { node, type_hash }));
        let is_awaited =
            |reactor: &mut Reactor| reactor.protocol.is_awaiting_schema(node, type_hash);
        let reactor = wait_while(core, begin, limit, is_awaited);
        let mut reactor = reactor.unwrap_or_else(|| core.lock());
        let schema = reactor.protocol.sent_schema(node, type_hash);
        reactor.protocol.end_query();
        Ok(schema)
    }

    /// Calls `call` from now on whenever [`graph`](Node::graph) may have changed: an endpoint has
    /// come or gone, or another route has [reported a change](Node::report_graph_change). The thread
    /// and the panics are as for [`EndpointHandle::listen`]; the calls end with the node.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::System`] if no further thread can be started.
    pub fn listen(&self, call: Call) -> Result<(), Error> {
        let listener = self.listener(String::new(), "on_graph_change", call)?;
        self.core().listen(Some(listener));
        Ok(())
    }

    /// Calls `call` at the same times: for code that wakes a thread. Threads of the node and
    /// threads that make or drop endpoints call it, with a lock held: it must call no function of
    /// the library that locks. The newest call counts.
    pub fn on_graph_change(&self, call: Call) -> Result<(), Error> {
        self.checked()?.on_graph_change(call);
        Ok(())
    }

    /// A user's function that the node's listener thread calls.
    pub(crate) fn listener(
        &self,
        topic: String,
        function: &'static str,
        call: Call,
    ) -> Result<Listener, Error> {
        self.checked()?;
        let mut listeners = lock(&self.0.listeners);
        let thread = match &mut *listeners {
            Some(thread) => thread,
            none => none.insert(ListenerThread::start(&self.0.threads)?),
        };
        Ok(thread.listen(topic, function, call))
    }

    /// Reports that another route's part of the graph has changed.
    pub fn report_graph_change(&self) {
        if let Ok(core) = self.checked() {
            core.report_graph_change();
        }
    }

    /// Registers the schema of a type of its endpoints, for [`Graph::types`], here and at nodes that
    /// ask; the first one of a type counts. A schema of more than 64 KiB is not sent.
    pub fn describe(&self, type_hash: u64, schema: impl FnOnce() -> Schema) -> Result<(), Error> {
        let core = self.checked()?;
        if !core.lock().protocol.is_described(type_hash) {
            let schema = schema(); // user code, so not under the lock
            core.lock().protocol.describe(type_hash, schema);
        }
        Ok(())
    }

    /// The schema of a type of its endpoints, if it has one.
    pub fn schema(&self, type_hash: u64) -> Result<Option<Arc<Schema>>, Error> {
        Ok(self.checked()?.lock().protocol.schema(type_hash))
    }

    /// Peers that could not be linked because they have another version; the newest 64.
    pub fn refused(&self) -> Result<Vec<RefusedPeer>, Error> {
        Ok(self.checked()?.lock().protocol.refused().cloned().collect())
    }

    /// The folder of the domain's sockets: nodes with the same folder meet.
    pub fn runtime_dir(&self) -> &Path {
        &self.0.domain
    }

    /// A proxy for a publisher on another host: see [`Proxy`].
    ///
    /// # Errors
    /// [`Error::TooMany`] if the subscriber has as many publishers as it may have; errors of memory
    /// and of the limit of open files.
    pub fn proxy(
        &self,
        subscription: &Arc<SubscriptionState>,
        qos: PublisherQos,
    ) -> Result<Proxy, Error> {
        self.checked()?;
        Proxy::create(self, subscription, qos)
    }

    /// The table that its wait sets sleep on; made for the first subscriber.
    pub(crate) fn wake_table(&self) -> Result<Arc<WakeTable>, Error> {
        let mut table = lock(&self.0.table);
        match &*table {
            Some(table) => Ok(table.clone()),
            None => Ok(table.insert(WakeTable::create()?).clone()),
        }
    }

    /// Starts a thread for another route that does `role`, with the name, CPUs and policy of the
    /// node's own threads; it takes no signals.
    ///
    /// # Errors
    /// [`Error::System`] if no further thread can be started, or it may not run as chosen.
    pub fn spawn(&self, role: &str, run: impl FnOnce() + Send + 'static) -> Result<Thread, Error> {
        self.checked()?;
        self.0.threads.spawn(role, run)
    }

    /// The settings of the threads that it starts.
    pub(crate) fn threads(&self) -> &Threads {
        &self.0.threads
    }

    /// What wakes the asynchronous tasks of its subscribers, which sleep on `table`.
    pub(crate) fn tasks(&self, table: &Arc<WakeTable>) -> Result<Arc<Tasks>, Error> {
        let mut tasks = lock(&self.0.tasks);
        if let Some(tasks) = tasks.upgrade() {
            return Ok(tasks);
        }
        let started = Tasks::start(table, &self.0.threads)?;
        *tasks = Arc::downgrade(&started);
        Ok(started)
    }

    /// The dispatcher of a topic: it joins the publishers and callbacks in this process and domain.
    pub(crate) fn dispatcher(&self, topic: &Topic) -> Arc<Dispatcher> {
        Dispatcher::of(&self.0.domain, topic)
    }

    pub(crate) fn core(&self) -> &Arc<Core> {
        &self.0.core
    }

    fn checked(&self) -> Result<&Arc<Core>, Error> {
        match self.core().is_forked() {
            true => Err(Error::Forked),
            false => Ok(self.core()),
        }
    }
}

impl std::fmt::Debug for Node {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Node").finish_non_exhaustive()
    }
}

impl Drop for Handle {
    fn drop(&mut self) {
        let thread = self.thread.get_mut().unwrap_or_else(PoisonError::into_inner).take();
        if self.core.is_forked() {
            std::mem::forget(thread); // the thread does not exist in this process
            return;
        }
        self.core.listen(None);
        self.core.stop();
        // The thread itself may drop the last handle, with the last sample.
        if let Some(thread) = thread
            && !thread.is_current()
        {
            thread.join();
        }
    }
}

/// Waits while `is_awaited` returns true, until `limit` has passed since `begin`; `None` if the call
/// is cancelled. No lock is held when it looks for that, which may run the user's code.
fn wait_while(
    core: &Core,
    begin: Instant,
    limit: Duration,
    mut is_awaited: impl FnMut(&mut Reactor) -> bool,
) -> Option<MutexGuard<'_, Reactor>> {
    loop {
        let left = limit.saturating_sub(begin.elapsed());
        let mut reactor = core.wait_while(cancel::slice(left), &mut is_awaited);
        if !is_awaited(&mut reactor) || begin.elapsed() >= limit {
            return Some(reactor);
        }
        drop(reactor);
        if cancel::is_cancelled() {
            return None;
        }
    }
}

const FOLDER: &str = "/dev/shm";
/// How long [`Node::open`] waits for others to announce their endpoints.
const ANSWER_LIMIT: Duration = Duration::from_millis(10);
/// How long a new endpoint waits for its first matches, unless the node's options say otherwise.
const MATCH_LIMIT: Duration = Duration::from_millis(20);
