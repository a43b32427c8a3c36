//! A node's part in the network, from its first topic on: its publishers and subscribers, the
//! resources that are open while an interface leads to other hosts, and the thread that manages
//! them.

use std::sync::mpsc::channel;
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use myelin_dds::{Binding, Config, Domain, has_own_configuration, socket_buffer_bytes};
use myelin_shm::node as shm;

use super::end::type_text;
use super::flow::Says;
use super::graph;
use super::host::{Card, Host};
use super::inlet::{self, Inlet};
use super::interface::{self, Choice, Interface};
use super::outlet::{self, Outlet};
use super::queue::{Queue, Task};
use super::session::Session;
use super::{Spec, Way, lock, said};
use crate::{EndpointId, Error, Graph, NetworkState};

/// A node's way to other hosts; opened with its first topic.
pub(crate) struct Network {
    way: Way,
    domain: u32,
    host: Host,
    node: shm::Node,
    open: Mutex<Option<Arc<Open>>>,
}

impl Network {
    /// # Errors
    /// Permanent faults: CycloneDDS is missing, there is no such domain, or no interface can have
    /// such a name.
    pub(crate) fn open(way: Way, domain: u32, node: &shm::Node) -> Result<Arc<Network>, Error> {
        Domain::check(domain).map_err(said)?;
        if let Some(name) = way.interface.as_ref().filter(|name| !interface::can_be_named(name)) {
            return Err(Error::Setting {
                topic: None,
                field: "interface",
                value: format!("{name:?}"),
                remedy: "give the name of a network interface or its address (`ip address`)",
            });
        }
        let host = Host::of(node.folder())?;
        Ok(Arc::new(Network { way, domain, host, node: node.clone(), open: Mutex::default() }))
    }

    pub(crate) fn outlet(&self, spec: &Spec, publisher: &shm::Publisher) -> Result<Outlet, Error> {
        Outlet::create(&self.opened()?, spec, publisher)
    }

    pub(crate) fn inlet(&self, spec: &Spec, subscriber: &shm::Subscriber) -> Result<Inlet, Error> {
        Inlet::create(&self.opened()?, spec, subscriber)
    }

    pub(crate) fn state(&self) -> NetworkState {
        match &*lock(&self.open) {
            Some(open) => lock(&open.state).clone(),
            None => NetworkState::Waiting {
                reason: "it is opened with the node's first publisher or subscriber".to_string(),
            },
        }
    }

    /// Adds the endpoints of other hosts.
    pub(crate) fn add_to(&self, graph: &mut Graph) {
        let open = lock(&self.open).clone();
        if let Some(open) = open.filter(|open| !open.is_forked()) {
            let link = lock(&open.link);
            if let Some(session) = &link.session {
                graph::add(graph, session, &alive(&open.inlets), &alive(&open.outlets));
            }
        }
    }

    fn opened(&self) -> Result<Arc<Open>, Error> {
        let mut open = lock(&self.open);
        if let Some(open) = &*open {
            return Ok(open.clone());
        }
        let Way { interface, peers, multicast, lease, user_data } = self.way.clone();
        let config = Config { interface, peers, multicast, lease, user_data };
        let domain = Domain::claim(self.domain, &config).map_err(said)?;
        let made = Open::start(domain, self.host, &self.node)?;
        Ok(open.insert(made).clone())
    }
}

/// Shared by an open node and its endpoints; the last one dropped ends the thread.
pub(super) struct Open {
    hub: Arc<Hub>,
    thread: Option<shm::Thread>,
    process: u32,
}

/// The part that the thread owns, too.
pub(super) struct Hub {
    domain: Arc<Domain>,
    pub(super) host: Host,
    pub(super) queue: Arc<Queue>,
    node: shm::Node,
    outlets: Mutex<Vec<Weak<outlet::Shared>>>,
    inlets: Mutex<Vec<Weak<inlet::Shared>>>,
    /// For `Node::network`.
    state: Mutex<NetworkState>,
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
}

impl Open {
    fn start(domain: Arc<Domain>, host: Host, node: &shm::Node) -> Result<Arc<Open>, Error> {
        // Without notices of changes, only the current state is used.
        let queue = Arc::new(Queue::new(interface::Watch::open().ok())?);
        let hub = Arc::new(Hub {
            domain,
            host,
            queue,
            node: node.clone(),
            outlets: Mutex::default(),
            inlets: Mutex::default(),
            state: Mutex::new(NetworkState::Waiting { reason: String::new() }),
            link: Mutex::default(),
        });
        let (its, (opened, has_opened)) = (hub.clone(), channel());
        let run = move || {
            // In this thread: the threads that CycloneDDS starts inherit its CPUs and policy, and
            // take no signals.
            its.look(&mut lock(&its.link));
            its.warn_of_interface();
            let _ = opened.send(()); // the opening thread waits for it
            its.attend();
        };
        let thread = node.spawn("network", run)?;
        // When a publisher has been made, the network is open.
        let _ = has_opened.recv();
        Ok(Arc::new(Open { hub, thread: Some(thread), process: std::process::id() }))
    }

    /// Whether this is a child of the process that opened it.
    pub(super) fn is_forked(&self) -> bool {
        self.process != std::process::id()
    }
}

impl std::ops::Deref for Open {
    type Target = Hub;

    fn deref(&self) -> &Hub {
        &self.hub
    }
}

impl Drop for Open {
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

impl Hub {
    /// The user data of an endpoint of a topic.
    pub(super) fn user_data(&self, spec: &Spec, endpoint: EndpointId, reliable: bool) -> Vec<u8> {
        let (host, buffer_bytes) = (self.host, socket_buffer_bytes());
        let card = Card { host, endpoint, buffer_bytes, reliable, type_text: type_text(spec) };
        [spec.dds.user_data.as_bytes(), &card.encode()].concat()
    }

    /// Manages a publisher from now on.
    pub(super) fn add_outlet(&self, outlet: &Arc<outlet::Shared>) -> Result<(), Error> {
        let link = lock(&self.link);
        if let Some(session) = &link.session {
            outlet.bind(session)?;
        }
        let mut outlets = lock(&self.outlets);
        outlets.retain(|known| known.strong_count() > 0);
        outlets.push(Arc::downgrade(outlet));
        drop(outlets);
        self.queue.ask(Task::Outlet(Arc::downgrade(outlet)));
        self.queue.ask(Task::Discovery);
        Ok(())
    }

    /// Manages a subscriber from now on.
    pub(super) fn add_inlet(&self, inlet: &Arc<inlet::Shared>) -> Result<(), Error> {
        let link = lock(&self.link);
        if let Some(session) = &link.session {
            inlet.bind(session)?;
        }
        let mut inlets = lock(&self.inlets);
        inlets.retain(|known| known.strong_count() > 0);
        inlets.push(Arc::downgrade(inlet));
        drop(inlets);
        self.queue.ask(Task::Inlet(Arc::downgrade(inlet)));
        self.queue.ask(Task::Discovery);
        Ok(())
    }

    /// Waits until the thread has released the objects that the caller has withdrawn: the caller is
    /// then their only owner. No object of CycloneDDS may end in CycloneDDS's own threads.
    pub(super) fn apply_pending(&self) {
        drop(lock(&self.link));
    }

    /// Runs the thread. It sleeps unless an endpoint comes or goes, interfaces change, or a
    /// subscriber is full.
    fn attend(&self) {
        let mut full: Vec<Weak<inlet::Shared>> = Vec::new();
        let mut look_again = LOOK_AGAIN_MIN;
        let mut again: Option<Instant> = None;
        let mut ask_again: Option<Instant> = None;
        let mut say_again: Option<Instant> = None;
        loop {
            look_again = match full.is_empty() {
                true => LOOK_AGAIN_MIN,
                false => (2 * look_again).min(LOOK_AGAIN_MAX),
            };
            let limit = (!full.is_empty()).then_some(look_again);
            let due = again.into_iter().chain(ask_again).chain(say_again).min();
            let due_in = due.map(|at| at.saturating_duration_since(Instant::now()));
            let limit = limit.into_iter().chain(due_in).min();
            let Some(tasks) = self.queue.take(limit) else { return };
            let mut link = lock(&self.link);
            let have_changed = tasks.iter().any(|task| matches!(task, Task::Interfaces));
            if have_changed || again.is_some_and(|at| at <= Instant::now()) {
                self.look(&mut link);
            }
            again = link.again.map(|(at, _)| at);
            let Some(session) = &link.session else {
                full.clear();
                (ask_again, say_again) = (None, None); // a time that is past would end each wait at once
                continue; // the endpoint has gone
            };
            tasks.into_iter().for_each(|task| self.act(session, task, &mut full));
            if ask_again.is_some_and(|at| at <= Instant::now()) {
                let inlets = alive(&self.inlets).into_iter().filter(|inlet| inlet.has_declined());
                inlets.for_each(|inlet| self.queue.ask(Task::Inlet(Arc::downgrade(&inlet))));
                ask_again = None;
            } else if ask_again.is_none() {
                let has_declined = alive(&self.inlets).iter().any(|inlet| inlet.has_declined());
                ask_again = has_declined.then(|| Instant::now() + ASK_AGAIN);
            }
            if say_again.is_some_and(|at| at <= Instant::now()) {
                // Before the words are repeated: a peer that answers again gets all of them.
                session.forget_answering_peers();
                alive(&self.inlets).iter().for_each(|inlet| inlet.say_again(session));
                say_again = None;
            }
            if say_again.is_none() && session.has_silent_peers() {
                say_again = Some(Instant::now() + SAY_AGAIN);
            }
            full.retain(|inlet| inlet.upgrade().is_some_and(|inlet| inlet.pass_on_all(session)));
        }
    }

    /// Keeps everything bound to the interface that leads to other hosts.
    fn look(&self, link: &mut Link) {
        let chosen = self.choose(link);
        let state = match chosen {
            Err(reason) => {
                self.close(link);
                link.again = None;
                NetworkState::Waiting { reason }
            }
            Ok(choice) => self.open(link, choice),
        };
        *lock(&self.state) = state;
    }

    /// Warns that a named interface is not usable: it may be misspelt.
    fn warn_of_interface(&self) {
        let NetworkState::Waiting { reason } = lock(&self.state).clone() else { return };
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
        if link.session.is_none() || link.binding != binding {
            self.close(link);
            let participant = self.domain.open(binding).map_err(said);
            let session = participant
                .and_then(|participant| Session::open(participant, self.host, &self.queue));
            match session {
                Ok(session) => self.bind(link, session, binding),
                Err(error) => {
                    let waited = link.again.map_or(TRY_AGAIN, |(_, waited)| 2 * waited);
                    let waited = waited.min(TRY_AGAIN_MAX);
                    link.again = Some((Instant::now() + waited, waited));
                    return NetworkState::Waiting { reason: error.to_string() };
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

    fn bind(&self, link: &mut Link, session: Session, binding: Option<Binding>) {
        for outlet in alive(&self.outlets) {
            match outlet.bind(&session) {
                Ok(()) => self.queue.ask(Task::Outlet(Arc::downgrade(&outlet))),
                Err(error) => outlet.end.tell_unbound(&error),
            }
        }
        for inlet in alive(&self.inlets) {
            match inlet.bind(&session) {
                Ok(()) => self.queue.ask(Task::Inlet(Arc::downgrade(&inlet))),
                Err(error) => inlet.end.tell_unbound(&error),
            }
        }
        self.queue.ask(Task::Discovery);
        *link = Link { session: Some(session), binding, again: None };
    }

    /// Closes the resources: all matches across the network end.
    fn close(&self, link: &mut Link) {
        if link.session.is_some() {
            alive(&self.outlets).iter().for_each(|outlet| outlet.unbind());
            alive(&self.inlets).iter().for_each(|inlet| inlet.unbind());
        }
        (link.session, link.binding) = (None, None);
        self.node.report_graph_change();
    }

    fn act(&self, session: &Session, task: Task, full: &mut Vec<Weak<inlet::Shared>>) {
        match task {
            Task::Outlet(outlet) => {
                if let Some(outlet) = outlet.upgrade() {
                    outlet.refresh(self.host);
                }
            }
            Task::Inlet(inlet) => {
                if let Some(shared) = inlet.upgrade() {
                    shared.refresh(session);
                    add(full, inlet);
                    self.node.report_graph_change();
                }
            }
            Task::Full(inlet) => add(full, inlet),
            Task::OutletPolicy(outlet, policy) => {
                if let Some(outlet) = outlet.upgrade() {
                    outlet.end.tell_policy(policy);
                }
            }
            Task::InletPolicy(inlet, policy) => {
                if let Some(inlet) = inlet.upgrade() {
                    inlet.end.tell_policy(policy);
                }
            }
            Task::Discovery => {
                session.compare(&alive(&self.inlets), &alive(&self.outlets));
                self.node.report_graph_change();
            }
            Task::Flow => self.hear(session, full),
            Task::Say(word) => session.say(word),
            Task::Peers => alive(&self.inlets).iter().for_each(|inlet| inlet.say_again(session)),
            Task::Interfaces => {} // looked at before
        }
    }

    fn hear(&self, session: &Session, full: &mut Vec<Weak<inlet::Shared>>) {
        let words = session.hear();
        for outlet in alive(&self.outlets) {
            words.iter().for_each(|word| outlet.hear(word, self.host));
        }
        for word in words.iter().filter(|word| word.says == Says::Late) {
            for inlet in alive(&self.inlets) {
                if inlet.hear_late(word) {
                    add(full, Arc::downgrade(&inlet));
                }
            }
        }
    }
}

fn alive<T>(endpoints: &Mutex<Vec<Weak<T>>>) -> Vec<Arc<T>> {
    lock(endpoints).iter().filter_map(Weak::upgrade).collect()
}

fn add(full: &mut Vec<Weak<inlet::Shared>>, inlet: Weak<inlet::Shared>) {
    if !full.iter().any(|known| known.ptr_eq(&inlet)) {
        full.push(inlet);
    }
}

impl std::fmt::Debug for Network {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Network").field("way", &self.way).finish_non_exhaustive()
    }
}

/// How long a full subscriber's queue is left alone: a subscriber that takes has room soon, and one
/// that does not costs little.
const LOOK_AGAIN_MIN: Duration = Duration::from_micros(25);
const LOOK_AGAIN_MAX: Duration = Duration::from_millis(1);
/// The time until a publisher that found no room at a subscriber is asked again.
const ASK_AGAIN: Duration = Duration::from_millis(100);
/// How often all valid words are repeated while a peer does not acknowledge them.
const SAY_AGAIN: Duration = Duration::from_secs(2);
/// The delay before the first repetition of a failed attempt of CycloneDDS; it doubles each time.
const TRY_AGAIN: Duration = Duration::from_secs(1);
const TRY_AGAIN_MAX: Duration = Duration::from_secs(60);
