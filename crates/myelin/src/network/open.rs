//! A node's part in the network, from its first topic on: the participant, what it discovers, the
//! word about subscribers that are full, and the thread that looks after all of it.

use std::sync::{Arc, Mutex, Weak};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use myelin_dds::{Calls, Config, Discovery, Guid, Participant, socket_buffer_bytes};
use myelin_shm::node as shm;

use super::end::type_text;
use super::flow::{Flow, Word};
use super::host::{Card, Host};
use super::inlet::{self, Inlet};
use super::outlet::{self, Outlet};
use super::queue::{Queue, Task};
use super::{Spec, Way, lock, said};
use crate::{EndpointId, Error};

/// A node's way to other hosts; opened with its first topic.
pub(crate) struct Network {
    way: Way,
    domain: u32,
    host: Host,
    open: Mutex<Option<Arc<Open>>>,
}

impl Network {
    /// # Errors
    /// There is no CycloneDDS, or no such domain.
    pub(crate) fn open(way: Way, domain: u32, node: &shm::Node) -> Result<Arc<Network>, Error> {
        Participant::check(domain).map_err(said)?;
        let host = Host::of(node.folder())?;
        Ok(Arc::new(Network { way, domain, host, open: Mutex::default() }))
    }

    pub(crate) fn outlet(&self, spec: &Spec, publisher: &shm::Publisher) -> Result<Outlet, Error> {
        Outlet::create(&self.opened()?, spec, publisher)
    }

    pub(crate) fn inlet(&self, spec: &Spec, subscriber: &shm::Subscriber) -> Result<Inlet, Error> {
        Inlet::create(&self.opened()?, spec, subscriber)
    }

    fn opened(&self) -> Result<Arc<Open>, Error> {
        let mut open = lock(&self.open);
        if let Some(open) = &*open {
            return Ok(open.clone());
        }
        let Way { interface, peers } = self.way.clone();
        let participant = Participant::open(self.domain, &Config { interface, peers });
        let made = Open::start(participant.map_err(said)?, self.host)?;
        Ok(open.insert(made).clone())
    }
}

/// What an open node and its endpoints hold; the last to go ends the thread.
pub(super) struct Open {
    hub: Arc<Hub>,
    thread: Option<JoinHandle<()>>,
    process: u32,
}

/// What the thread has too.
pub(super) struct Hub {
    pub(super) participant: Arc<Participant>,
    pub(super) host: Host,
    pub(super) queue: Arc<Queue>,
    outlets: Mutex<Vec<Weak<outlet::Shared>>>,
    inlets: Mutex<Vec<Weak<inlet::Shared>>>,
    flow: Mutex<Option<Arc<Flow>>>,
    /// Of writers and of readers.
    discoveries: [Discovery; 2],
    /// Held by the thread while it has any endpoint in its hands.
    busy: Mutex<()>,
}

impl Open {
    fn start(participant: Arc<Participant>, host: Host) -> Result<Arc<Open>, Error> {
        let queue = Arc::new(Queue::default());
        let discovery = |writers| {
            let news = Box::new(News(queue.clone()));
            Discovery::create(&participant, writers, news).map_err(said)
        };
        let discoveries = [discovery(true)?, discovery(false)?];
        let hub = Arc::new(Hub {
            participant,
            host,
            queue,
            outlets: Mutex::default(),
            inlets: Mutex::default(),
            flow: Mutex::default(),
            discoveries,
            busy: Mutex::default(),
        });
        let its = hub.clone();
        let builder = std::thread::Builder::new().name("myelin-network".to_owned());
        let thread = builder.spawn(move || its.attend());
        let thread =
            thread.map_err(|error| Error::system("starting the network's thread", error))?;
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
            let _ = thread.join(); // it does not panic; if it did, there is nothing left to do
        }
    }
}

impl Hub {
    /// What an endpoint of a topic tells of itself.
    pub(super) fn card(&self, spec: &Spec, endpoint: EndpointId, reliable: bool) -> Card {
        let (host, buffer_bytes) = (self.host, socket_buffer_bytes());
        Card { host, endpoint, buffer_bytes, reliable, type_text: type_text(spec) }
    }

    pub(super) fn add_outlet(&self, outlet: &Arc<outlet::Shared>) {
        let mut outlets = lock(&self.outlets);
        outlets.retain(|known| known.strong_count() > 0);
        outlets.push(Arc::downgrade(outlet));
        drop(outlets);
        self.queue.ask(Task::Outlet(Arc::downgrade(outlet)));
        self.queue.ask(Task::Discovery);
    }

    pub(super) fn add_inlet(&self, inlet: &Arc<inlet::Shared>) {
        let mut inlets = lock(&self.inlets);
        inlets.retain(|known| known.strong_count() > 0);
        inlets.push(Arc::downgrade(inlet));
        drop(inlets);
        self.queue.ask(Task::Inlet(Arc::downgrade(inlet)));
        self.queue.ask(Task::Discovery);
    }

    /// Waits until the thread has let go of what the caller has withdrawn: the caller is then the
    /// only one to hold it. Nothing of CycloneDDS may end in that thread or in CycloneDDS's own.
    pub(super) fn settle(&self) {
        drop(lock(&self.busy));
    }

    /// From now on it is said and heard whether subscribers are full.
    pub(super) fn join_flow(&self) -> Result<(), Error> {
        let mut flow = lock(&self.flow);
        if flow.is_none() {
            *flow = Some(Arc::new(Flow::create(&self.participant, &self.queue)?));
        }
        Ok(())
    }

    /// Tells writers elsewhere that the subscriber of `reader` is full, or no longer.
    pub(super) fn tell_full(&self, reader: Guid, writers: &[Guid], is_full: bool) {
        if let Some(flow) = &*lock(&self.flow) {
            writers.iter().for_each(|writer| {
                flow.say(Word { writer: *writer, reader, is_full });
            });
        }
    }

    /// The thread. It sleeps unless somebody comes or goes, or a subscriber is full.
    fn attend(&self) {
        let mut full: Vec<Weak<inlet::Shared>> = Vec::new();
        let mut said_at = Instant::now();
        loop {
            let limit = (!full.is_empty()).then_some(LOOK_AGAIN);
            let Some(tasks) = self.queue.take(limit) else { return };
            let _busy = lock(&self.busy);
            tasks.into_iter().for_each(|task| self.act(task, &mut full));
            let say = said_at.elapsed() > SAY_AGAIN;
            full.retain(|inlet| {
                let Some(inlet) = inlet.upgrade() else { return false };
                let is_full = inlet.pass_on_all(self);
                if is_full && say {
                    inlet.say_again(self);
                }
                is_full
            });
            if say {
                said_at = Instant::now();
            }
        }
    }

    fn act(&self, task: Task, full: &mut Vec<Weak<inlet::Shared>>) {
        match task {
            Task::Outlet(outlet) => {
                if let Some(outlet) = outlet.upgrade() {
                    outlet.refresh(self.host);
                }
            }
            Task::Inlet(inlet) => {
                if let Some(shared) = inlet.upgrade() {
                    shared.refresh(self.host);
                    add(full, inlet);
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
            Task::Discovery => self.compare(),
            Task::Flow => self.hear(),
        }
    }

    fn hear(&self) {
        let flow = lock(&self.flow).clone();
        let words = flow.map_or_else(Vec::new, |flow| flow.hear());
        if words.is_empty() {
            return;
        }
        for outlet in lock(&self.outlets).iter().filter_map(Weak::upgrade) {
            words.iter().for_each(|word| outlet.set_full(word));
        }
    }

    /// Finds who is on a topic of ours with another type.
    fn compare(&self) {
        let [writers, readers] = &self.discoveries;
        let inlets: Vec<_> = lock(&self.inlets).iter().filter_map(Weak::upgrade).collect();
        let outlets: Vec<_> = lock(&self.outlets).iter().filter_map(Weak::upgrade).collect();
        let _ = writers.visit(&mut |endpoint| {
            inlets.iter().for_each(|inlet| inlet.end.compare(&endpoint, self.host));
        });
        let _ = readers.visit(&mut |endpoint| {
            outlets.iter().for_each(|outlet| outlet.end.compare(&endpoint, self.host));
        });
    }
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

/// Something has been discovered, or has gone.
struct News(Arc<Queue>);

impl Calls for News {
    fn data(&self) {
        self.0.ask(Task::Discovery);
    }
}

/// How long a subscriber's queue stays full at least before it is looked at again.
const LOOK_AGAIN: Duration = Duration::from_millis(1);
/// A publisher that has just come may not have heard that a subscriber is full.
const SAY_AGAIN: Duration = Duration::from_millis(100);
