//! A node's part in the network, from its first topic on: its publishers and subscribers, the
//! resources that are open while an interface leads to other hosts, and the thread that manages
//! them.

#[cfg(feature = "any")]
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use myelin_dds::{Binding, Config, Domain, Guid, has_own_configuration, socket_buffer_bytes};
use myelin_shm::node as shm;

use super::flow_channel::{FlowKind, prefix};
use super::graph;
use super::host::Host;
use super::interface::{self, Choice, Interface};
use super::lane::{Connections, Frame, Identity, Lane};
use super::reader::{NetworkReader, ReaderState};
use super::schema_channel::Schemas;
use super::session::Session;
use super::settings::Resolved;
use super::task_queue::{Task, TaskQueue};
use super::user_data::EndpointUserData;
use super::writer::{NetworkWriter, WriterState};
use super::{Spec, lock, network_error};
#[cfg(feature = "any")]
use crate::Schema;
use crate::{EndpointInfo, Error, Graph, NetworkState};

/// A node's way to other hosts; opened with its first topic.
pub(crate) struct Network {
    config: Config,
    bulk_lane: Option<u8>,
    domain: u32,
    host: Host,
    node: shm::Node,
    worker: Mutex<Option<Arc<NetworkWorker>>>,
}

impl Network {
    /// # Errors
    /// Permanent faults: CycloneDDS is missing, there is no such domain, or no interface can have
    /// such a name.
    pub(crate) fn open(
        Resolved { config, bulk_lane }: Resolved,
        domain: u32,
        node: &shm::Node,
    ) -> Result<Arc<Network>, Error> {
        Domain::check(domain).map_err(network_error)?;
        myelin_dds::warn_by(|text| myelin_shm::warn("", "the network", text));
        if let Some(name) = config.interface.as_ref().filter(|name| !interface::can_be_named(name))
        {
            return Err(Error::Setting {
                topic: None,
                field: "interface",
                value: format!("{name:?}"),
                remedy: "give the name of a network interface or its address (`ip address`)",
            });
        }
        let host = Host::of(node.runtime_dir())?;
        let (node, is_secured, worker) =
            (node.clone(), config.security.is_some(), Mutex::default());
        let network = Network { config, bulk_lane, domain, host, node, worker };
        if is_secured {
            network.check_enclave()?;
        }
        Ok(Arc::new(network))
    }

    /// Opens the network at once: only CycloneDDS's plug-ins check an enclave's signatures and dates.
    fn check_enclave(&self) -> Result<(), Error> {
        use myelin_dds::Error::{NoPlugIn, Security};
        match lock(&self.worker()?.link).refusal.take() {
            Some(error @ (Security { .. } | NoPlugIn { .. })) => Err(network_error(error)),
            // It tries again.
            _ => Ok(()),
        }
    }

    pub(crate) fn writer(
        &self,
        spec: &Spec,
        publisher: &shm::Publisher,
    ) -> Result<NetworkWriter, Error> {
        NetworkWriter::create(&self.worker()?, spec, publisher)
    }

    pub(crate) fn reader(
        &self,
        spec: &Spec,
        subscriber: &shm::Subscriber,
    ) -> Result<NetworkReader, Error> {
        NetworkReader::create(&self.worker()?, spec, subscriber)
    }

    pub(crate) fn state(&self) -> NetworkState {
        match &*lock(&self.worker) {
            Some(worker) => lock(&worker.network_state).clone(),
            None => NetworkState::Waiting {
                reason: "it is opened with the node's first publisher or subscriber".to_string(),
            },
        }
    }

    /// Opens it, if it is not open yet. A program without topics sees other hosts, too, from then on.
    pub(crate) fn start(&self) -> Result<(), Error> {
        self.worker().map(drop)
    }

    /// Adds the nodes and endpoints of other hosts, and the schemas of their types that have come.
    pub(crate) fn add_to(&self, graph: &mut Graph) {
        self.with_session(|worker, session| {
            let (readers, writers) = (alive(&worker.readers), alive(&worker.writers));
            graph::add(graph, session, &worker.schemas, &readers, &writers);
        });
    }

    /// Waits until the schemas of all types of other hosts have come, for at most `limit`.
    pub(crate) fn wait_for_schemas(&self, limit: Duration) {
        let announced = self.with_session(|worker, session| {
            session.receive_schemas(&worker.schemas).ok()?;
            Some((worker.schemas.clone(), graph::announced_schemas(session)))
        });
        if let Some((schemas, announced)) = announced.flatten() {
            schemas.wait_for(&announced, limit);
        }
    }

    /// The schema of a type of other hosts. Waits until it has come, for at most `limit`.
    #[cfg(feature = "any")]
    pub(crate) fn schema(&self, type_hash: u64, limit: Duration) -> Option<Arc<Schema>> {
        let schemas = self.with_session(|worker, session| {
            session.receive_schemas(&worker.schemas).ok()?;
            let is_sent = graph::announced_schemas(session).contains(&type_hash);
            is_sent.then(|| worker.schemas.clone())
        });
        let schemas = schemas.flatten()?;
        schemas.wait_for(&BTreeSet::from([type_hash]), limit);
        schemas.get(type_hash)
    }

    fn with_session<R>(&self, act: impl FnOnce(&NetworkWorker, &Session) -> R) -> Option<R> {
        let worker = lock(&self.worker).clone().filter(|worker| !worker.is_forked())?;
        let link = lock(&worker.link);
        link.session.as_ref().map(|session| act(&worker, session))
    }

    fn worker(&self) -> Result<Arc<NetworkWorker>, Error> {
        let mut worker = lock(&self.worker);
        if let Some(worker) = &*worker {
            return Ok(worker.clone());
        }
        let domain = Domain::claim(self.domain, &self.config).map_err(network_error)?;
        let started = NetworkWorker::start(domain, self.bulk_lane, self.host, &self.node)?;
        Ok(worker.insert(started).clone())
    }
}

/// Shared by an open node and its endpoints; the last one dropped ends the thread.
pub(super) struct NetworkWorker {
    shared: Arc<WorkerState>,
    thread: Option<shm::Thread>,
    process: u32,
}

/// The part that the thread owns, too.
pub(super) struct WorkerState {
    domain: Arc<Domain>,
    /// Whether large samples may go by the lane.
    pub(super) bulk_lane: Option<u8>,
    pub(super) host: Host,
    pub(super) queue: Arc<TaskQueue>,
    node: shm::Node,
    writers: Mutex<Vec<Weak<WriterState>>>,
    readers: Mutex<Vec<Weak<ReaderState>>>,
    /// For `Node::network`.
    network_state: Mutex<NetworkState>,
    /// The schemas of other hosts.
    schemas: Arc<Schemas>,
    /// Whether a subscriber had no room for a publisher, since the thread last looked.
    has_declined: AtomicBool,
    /// Held by the thread while it uses any endpoint, and by a thread that makes one.
    link: Mutex<Link>,
}

/// The current way to other hosts.
#[derive(Default)]
struct Link {
    session: Option<Session>,
    /// The binding of the session; `None` if the user's configuration decides.
    binding: Option<Binding>,
    /// When to try a failed attempt again, and the delay before it.
    again: Option<(Instant, Duration)>,
    /// Whether there has been a session.
    was_open: bool,
    /// Why CycloneDDS does not accept the enclave.
    refusal: Option<myelin_dds::Error>,
}

impl NetworkWorker {
    fn start(
        domain: Arc<Domain>,
        bulk_lane: Option<u8>,
        host: Host,
        node: &shm::Node,
    ) -> Result<Arc<NetworkWorker>, Error> {
        // Without notices of changes, only the current state is used.
        let queue = Arc::new(TaskQueue::new(interface::Watch::open().ok())?);
        let shared = Arc::new(WorkerState {
            domain,
            bulk_lane,
            host,
            queue,
            node: node.clone(),
            writers: Mutex::default(),
            readers: Mutex::default(),
            network_state: Mutex::new(NetworkState::Waiting { reason: String::new() }),
            schemas: Arc::default(),
            has_declined: AtomicBool::new(false),
            link: Mutex::default(),
        });
        let (in_thread, (opened, has_opened)) = (shared.clone(), channel());
        let run = move || {
            // In this thread: the threads that CycloneDDS starts inherit its CPUs and policy, and
            // take no signals.
            in_thread.update_binding(&mut lock(&in_thread.link));
            in_thread.warn_of_interface();
            let _ = opened.send(()); // the opening thread waits for it
            in_thread.run();
        };
        let thread = node.spawn("network", run)?;
        // When a publisher has been made, the network is open.
        let _ = has_opened.recv();
        Ok(Arc::new(NetworkWorker { shared, thread: Some(thread), process: std::process::id() }))
    }

    /// Whether this is a child of the process that opened it.
    pub(super) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }
}

impl std::ops::Deref for NetworkWorker {
    type Target = WorkerState;

    fn deref(&self) -> &WorkerState {
        &self.shared
    }
}

impl Drop for NetworkWorker {
    fn drop(&mut self) {
        let thread = self.thread.take();
        if self.is_forked() {
            std::mem::forget(thread); // there is no such thread here
            return;
        }
        self.queue.stop();
        if let Some(thread) = thread {
            thread.join();
        }
    }
}

impl WorkerState {
    /// The user data of an endpoint: those of its program, and its record.
    pub(super) fn user_data(&self, info: &EndpointInfo) -> Vec<u8> {
        let own = info.dds.as_ref().map_or(&[][..], |dds| &dds.user_data);
        let (host, buffer_bytes) = (self.host, socket_buffer_bytes());
        let has_schema = matches!(self.node.schema(info.type_hash), Ok(Some(_)));
        let data = EndpointUserData { host, buffer_bytes, has_schema, info: info.clone() };
        [own, data.encode().as_bytes()].concat()
    }

    /// Manages a publisher from now on.
    pub(super) fn add_writer(&self, writer: &Arc<WriterState>) -> Result<(), Error> {
        let link = lock(&self.link);
        if let Some(session) = &link.session {
            writer.bind(session)?;
            self.send_schema(session, writer.dds.info.type_hash)?;
        }
        let mut writers = lock(&self.writers);
        writers.retain(|known| known.strong_count() > 0);
        writers.push(Arc::downgrade(writer));
        drop(writers);
        self.queue.push(Task::Writer(Arc::downgrade(writer)));
        link.session.iter().for_each(Session::compare_all);
        Ok(())
    }

    /// Manages a subscriber from now on.
    pub(super) fn add_reader(&self, reader: &Arc<ReaderState>) -> Result<(), Error> {
        let link = lock(&self.link);
        if let Some(session) = &link.session {
            reader.bind(session)?;
            self.send_schema(session, reader.dds.info.type_hash)?;
        }
        let mut readers = lock(&self.readers);
        readers.retain(|known| known.strong_count() > 0);
        readers.push(Arc::downgrade(reader));
        drop(readers);
        self.queue.push(Task::Reader(Arc::downgrade(reader)));
        link.session.iter().for_each(Session::compare_all);
        Ok(())
    }

    fn send_schema(&self, session: &Session, type_hash: u64) -> Result<(), Error> {
        match self.node.schema(type_hash)? {
            Some(schema) => session.send_schema(type_hash, &schema),
            None => Ok(()),
        }
    }

    /// Waits until the thread has released the objects that the caller has withdrawn: the caller is
    /// then their only owner. No object of CycloneDDS may end in CycloneDDS's own threads.
    pub(super) fn apply_pending(&self) {
        drop(lock(&self.link));
    }

    /// Runs the thread. It sleeps unless an endpoint comes or goes, interfaces change, or a
    /// subscriber is full.
    fn run(&self) {
        let mut full: Vec<Weak<ReaderState>> = Vec::new();
        let mut retry_full_in = RETRY_FULL_MIN;
        let mut again: Option<Instant> = None;
        let mut retry_declined_at: Option<Instant> = None;
        let mut repeat_at: Option<Instant> = None;
        let mut compare_at: Option<Instant> = None;
        let mut compared_at: Option<Instant> = None;
        let mut calm_at: Option<Instant> = None;
        let mut flush_at: Option<Instant> = None;
        let is_secured = self.domain.config().security.is_some();
        let mut check_at = is_secured.then(|| Instant::now() + CHECK_REVOKED);
        loop {
            retry_full_in = match full.is_empty() {
                true => RETRY_FULL_MIN,
                false => (2 * retry_full_in).min(RETRY_FULL_MAX),
            };
            let limit = (!full.is_empty()).then_some(retry_full_in);
            let due = again.into_iter().chain(retry_declined_at).chain(repeat_at);
            let due = due.chain(check_at).chain(compare_at).chain(calm_at).chain(flush_at).min();
            let due_in = due.map(|at| at.saturating_duration_since(Instant::now()));
            let limit = limit.into_iter().chain(due_in).min();
            let Some(tasks) = self.queue.take(limit) else { return };
            let mut link = lock(&self.link);
            let have_changed = tasks.iter().any(|task| matches!(task, Task::Interfaces));
            let is_check = check_at.is_some_and(|at| at <= Instant::now());
            if is_check {
                check_at = Some(Instant::now() + CHECK_REVOKED);
            }
            let session = link.session.as_ref();
            let is_outdated = is_check && session.is_some_and(Session::is_outdated);
            if have_changed || is_outdated || again.is_some_and(|at| at <= Instant::now()) {
                self.update_binding(&mut link);
            }
            again = link.again.map(|(at, _)| at);
            let Some(session) = &link.session else {
                full.clear();
                // A time that is past would end each wait at once.
                (retry_declined_at, repeat_at, compare_at) = (None, None, None);
                (calm_at, flush_at) = (None, None);
                continue; // the endpoint has gone
            };
            if tasks.iter().any(|task| matches!(task, Task::Discovery)) {
                let now = Instant::now();
                compare_at = compare_at.or(Some(compared_at.map_or(now, |at| at + COMPARE_EACH)));
            }
            if compare_at.is_some_and(|at| at <= Instant::now()) {
                session.compare(&alive(&self.readers), &alive(&self.writers));
                session.admit(&self.domain.config().user_data);
                self.node.report_graph_change();
                session.set_discovering(true);
                let now = Instant::now();
                (compare_at, compared_at, calm_at) = (None, Some(now), Some(now + CALM));
            } else if calm_at.is_some_and(|at| at <= Instant::now()) {
                session.set_discovering(false);
                calm_at = None;
            }
            if is_check {
                session.admit(&self.domain.config().user_data);
            }
            tasks.into_iter().for_each(|task| self.handle(session, task, &mut full));
            if retry_declined_at.is_some_and(|at| at <= Instant::now()) {
                let readers =
                    alive(&self.readers).into_iter().filter(|reader| reader.has_declined());
                readers.for_each(|reader| self.queue.push(Task::Reader(Arc::downgrade(&reader))));
                retry_declined_at = None;
            } else if retry_declined_at.is_none()
                && self.has_declined.swap(false, Ordering::Relaxed)
            {
                retry_declined_at = Some(Instant::now() + RETRY_DECLINED);
            }
            if repeat_at.is_some_and(|at| at <= Instant::now()) {
                // Before the messages are repeated: a peer that answers again gets all of them.
                session.forget_answering_peers();
                let readers = alive(&self.readers);
                readers.iter().for_each(|reader| reader.repeat_messages(session, |_| true));
                repeat_at = None;
            }
            if repeat_at.is_none() && session.has_silent_peers() {
                repeat_at = Some(Instant::now() + REPEAT_MESSAGES);
            }
            full.retain(|reader| {
                reader.upgrade().is_some_and(|reader| reader.pass_on_all(session))
            });
            flush_at = session.flush();
        }
    }

    /// Keeps everything bound to the interface that leads to other hosts.
    fn update_binding(&self, link: &mut Link) {
        let chosen = self.choose(link);
        let state = match chosen {
            Err(reason) => {
                self.close(link);
                link.again = None;
                NetworkState::Waiting { reason }
            }
            Ok(choice) => self.open(link, choice),
        };
        *lock(&self.network_state) = state;
    }

    /// Warns that a named interface is not usable: it may be misspelt.
    fn warn_of_interface(&self) {
        let NetworkState::Waiting { reason } = lock(&self.network_state).clone() else { return };
        if self.domain.config().interface.is_none() || has_own_configuration() {
            return;
        }
        let remedy = "until then this node finds no other host; check MYELIN_INTERFACE, or the \
                      node's option `interface`";
        myelin_shm::warn("", "the network", &format!("{reason}; {remedy}"));
    }

    /// The interface to bind to; `None` if the user's configuration decides.
    fn choose(&self, link: &Link) -> Result<Option<Choice>, String> {
        if has_own_configuration() {
            return Ok(None);
        }
        let config = self.domain.config();
        let there = interface::all(config.is_ipv6())
            .map_err(|error| format!("the network interfaces cannot be listed: {error}"))?;
        let wanted = config.interface.as_deref();
        // All nodes of one process use one interface.
        let now = link.binding.or_else(|| self.domain.bound());
        interface::choose(&there, wanted, now).map(Some)
    }

    /// Opens the resources, unless they are open.
    fn open(&self, link: &mut Link, choice: Option<Choice>) -> NetworkState {
        let (interface, shortcoming) = match choice {
            Some(Choice { interface, shortcoming }) => (Some(interface), shortcoming),
            None => (None, None),
        };
        let binding = interface.as_ref().and_then(Interface::binding);
        let is_fit = |it: &Session| link.binding == binding && !it.is_outdated();
        if !link.session.as_ref().is_some_and(is_fit) {
            self.close(link);
            let participant = self.domain.open(binding).map_err(|error| {
                let reason = error.to_string();
                if matches!(error, myelin_dds::Error::Security { .. }) && link.was_open {
                    myelin_dds::warn_once(&format!("this node has no network any more: {reason}"));
                }
                link.refusal = Some(error);
                reason
            });
            let session = participant.and_then(|participant| {
                let lane = self.bulk_lane.and_then(|dscp| self.open_lane(binding, dscp));
                let session = Session::open(participant, self.host, &self.node, &self.queue, lane);
                session.map_err(|error| error.to_string())
            });
            match session {
                Ok(session) => self.bind(link, session, binding),
                Err(reason) => {
                    let waited = link.again.map_or(TRY_AGAIN, |(_, waited)| 2 * waited);
                    let waited = waited.min(TRY_AGAIN_MAX);
                    link.again = Some((Instant::now() + waited, waited));
                    return NetworkState::Waiting { reason };
                }
            }
        }
        match (shortcoming, interface) {
            (Some(reason), _) => NetworkState::Waiting { reason },
            (None, Some(Interface { name, address, .. })) => {
                NetworkState::Up { interface: name, address }
            }
            (None, None) => NetworkState::Up { interface: String::new(), address: None },
        }
    }

    /// The lane, on the interface of the session. Without it everything goes by DDS.
    fn open_lane(&self, binding: Option<Binding>, dscp: u8) -> Option<Lane> {
        let config = self.domain.config();
        let identity = config.security.as_ref().map(Identity::load).transpose();
        let lane = identity.and_then(|identity| {
            let connections = Connections { patience: 2 * config.lease, dscp, identity };
            let lane = Lane::open(&self.node, binding, &self.queue, connections);
            lane.map_err(|error| error.to_string())
        });
        if let Err(error) = &lane {
            let reason = format!("{error}; large samples go by RTPS, at several times the CPU");
            myelin_shm::warn("", "the network", &reason);
        }
        lane.ok()
    }

    fn bind(&self, link: &mut Link, session: Session, binding: Option<Binding>) {
        for writer in alive(&self.writers) {
            let type_hash = writer.dds.info.type_hash;
            match writer.bind(&session).and_then(|()| self.send_schema(&session, type_hash)) {
                Ok(()) => self.queue.push(Task::Writer(Arc::downgrade(&writer))),
                Err(error) => writer.dds.report_unbound(&error),
            }
        }
        for reader in alive(&self.readers) {
            let type_hash = reader.dds.info.type_hash;
            match reader.bind(&session).and_then(|()| self.send_schema(&session, type_hash)) {
                Ok(()) => self.queue.push(Task::Reader(Arc::downgrade(&reader))),
                Err(error) => reader.dds.report_unbound(&error),
            }
        }
        self.queue.push(Task::Discovery);
        let session = Some(session);
        *link = Link { session, binding, again: None, was_open: true, refusal: None };
    }

    /// Closes the resources: all matches across the network end.
    fn close(&self, link: &mut Link) {
        if link.session.is_some() {
            alive(&self.writers).iter().for_each(|writer| writer.unbind());
            alive(&self.readers).iter().for_each(|reader| reader.unbind());
        }
        (link.session, link.binding) = (None, None);
        self.node.report_graph_change();
    }

    fn handle(&self, session: &Session, task: Task, full: &mut Vec<Weak<ReaderState>>) {
        match task {
            Task::Writer(writer) => {
                if let Some(writer) = writer.upgrade() {
                    writer.refresh(session);
                }
            }
            Task::Reader(reader) => {
                if let Some(shared) = reader.upgrade() {
                    shared.refresh(session);
                    if shared.has_declined() {
                        // ORDER: Relaxed, here and where it is read: only this thread uses it.
                        self.has_declined.store(true, Ordering::Relaxed);
                    }
                    if shared.has_waiting() {
                        add(full, reader);
                    }
                    self.node.report_graph_change();
                }
            }
            Task::Full(reader) => add(full, reader),
            Task::WriterPolicy(writer, policy) => {
                if let Some(writer) = writer.upgrade() {
                    writer.dds.report_policy(policy, session);
                }
            }
            Task::ReaderPolicy(reader, policy) => {
                if let Some(reader) = reader.upgrade() {
                    reader.dds.report_policy(policy, session);
                }
            }
            Task::Flow => self.receive(session, full),
            Task::Send(message) => session.send(message),
            Task::Peers => {
                let new = session.new_peers();
                let is_new = |publisher: &Guid| new.contains(&prefix(publisher));
                let readers = alive(&self.readers);
                readers.iter().for_each(|reader| reader.repeat_messages(session, is_new));
            }
            Task::Interfaces | Task::Discovery => {} // looked at before
            Task::LaneSubscribed { link, writer, reader } => {
                let subscribes =
                    |each: &Arc<WriterState>| each.lane_subscribed(&link, &writer, &reader);
                if !alive(&self.writers).iter().any(subscribes) {
                    link.control(&Frame::Ended { writer });
                }
            }
            Task::LaneUnsubscribed { link, writer, reader } => {
                let all = alive(&self.writers);
                all.iter().for_each(|each| each.lane_unsubscribed(&link, &writer, &reader));
            }
            Task::LaneClosed(link) => {
                alive(&self.writers).iter().for_each(|writer| writer.lane_closed(&link));
            }
        }
    }

    fn receive(&self, session: &Session, full: &mut Vec<Weak<ReaderState>>) {
        let messages = session.receive();
        for writer in alive(&self.writers) {
            messages.iter().for_each(|message| writer.receive(message, session));
        }
        for message in messages.iter().filter(|message| message.kind == FlowKind::Late) {
            for reader in alive(&self.readers) {
                if reader.receive_late(message) {
                    add(full, Arc::downgrade(&reader));
                }
            }
        }
        for message in messages.iter().filter(|message| message.kind == FlowKind::Large) {
            alive(&self.readers).iter().for_each(|reader| reader.receive_large(message, session));
        }
    }
}

fn alive<T>(endpoints: &Mutex<Vec<Weak<T>>>) -> Vec<Arc<T>> {
    lock(endpoints).iter().filter_map(Weak::upgrade).collect()
}

fn add(full: &mut Vec<Weak<ReaderState>>, reader: Weak<ReaderState>) {
    if !full.iter().any(|known| known.ptr_eq(&reader)) {
        full.push(reader);
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Network").field("config", &self.config).finish_non_exhaustive()
    }
}

/// How long a full subscriber's queue is left alone: a subscriber that takes has room soon, and one
/// that does not costs little.
const RETRY_FULL_MIN: Duration = Duration::from_micros(25);
const RETRY_FULL_MAX: Duration = Duration::from_millis(1);
/// The time until a publisher that found no room at a subscriber is asked again.
const RETRY_DECLINED: Duration = Duration::from_millis(100);
/// How often a node with an enclave looks for a new list of revoked certificates.
const CHECK_REVOKED: Duration = Duration::from_secs(2);
/// How often it looks for endpoints that have come: one by one, each look would cost as much as for all.
const COMPARE_EACH: Duration = Duration::from_millis(10);
/// Endpoints are coming until none has come for so long.
const CALM: Duration = Duration::from_millis(200);
/// How often all valid messages are repeated while a peer does not acknowledge them.
const REPEAT_MESSAGES: Duration = Duration::from_secs(2);
/// The delay before the first repetition of a failed attempt of CycloneDDS; it doubles each time.
const TRY_AGAIN: Duration = Duration::from_secs(1);
const TRY_AGAIN_MAX: Duration = Duration::from_secs(60);
