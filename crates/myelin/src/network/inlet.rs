//! The way of other hosts' samples to a subscriber: a reader takes them, a stand-in for each
//! publisher puts them into the subscriber's queue, in the thread that has received them.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use myelin_dds::{Calls, Endpoint, Guid, History, Message, Reader, Settings};
use myelin_shm::node as shm;
use myelin_shm::subscription::SubscriptionShared;
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos};

use super::end::End;
use super::host::{Card, Host, Kind};
use super::open::{Hub, Open};
use super::queue::{Queue, Task};
use super::wire::Wire;
use super::{Encoding, Spec, lock, said};
use crate::{Error, Event};

/// A subscriber's.
pub(crate) struct Inlet {
    shared: Arc<Shared>,
    open: Arc<Open>,
}

/// What the node's thread and CycloneDDS's know of it.
pub(super) struct Shared {
    pub(super) end: End,
    wire: Wire,
    qos: SubscriberQos,
    memory_max: u64,
    groups: Vec<Mutex<Group>>,
    lost: AtomicU64,
}

/// Publishers that are asked alike, by a reader of its own.
struct Group {
    kinds: Vec<Kind>,
    /// Of publishers that wait for the subscriber.
    reliable: bool,
    history: bool,
    /// To be held outside of this only by the node's thread while it is busy; see [`Open::settle`].
    reader: Option<Arc<Reader>>,
    guid: Guid,
    /// By handle.
    sources: BTreeMap<u64, Source>,
    /// The next sample, for which there is no room yet, or of whose publisher is nothing known yet.
    next: Option<Message>,
    /// Its publishers have been told to wait.
    full: bool,
    subscription: Option<Arc<SubscriptionShared>>,
}

/// A publisher.
struct Source {
    guid: Guid,
    /// `None`: its samples are not for us. It is on this host, or one too many.
    stand_in: Option<shm::StandIn>,
    /// Of the newest sample.
    sequence: u64,
}

/// What came of passing samples on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Passed {
    All,
    /// There is no room for the next.
    Full,
    /// The next is of a publisher that has to be looked at first.
    Unknown,
}

impl Inlet {
    pub(super) fn create(
        open: &Arc<Open>,
        spec: &Spec,
        subscriber: &shm::Subscriber,
    ) -> Result<Inlet, Error> {
        let wire = Wire::of(&spec.dds.encoding, spec.shape)?;
        let is_private = matches!(spec.dds.encoding, Encoding::Private);
        let subscription = subscriber.reader.shared();
        let groups = groups(&spec.subscriber, is_private, subscription);
        let shared = Arc::new(Shared {
            end: End::new(spec, shm::Observer::clone(subscriber), false),
            wire,
            qos: spec.subscriber,
            memory_max: spec.publisher.memory_max,
            groups: groups.into_iter().map(Mutex::new).collect(),
            lost: AtomicU64::new(0),
        });
        let reliable = spec.subscriber.reliability == Reliability::Reliable;
        if reliable {
            open.join_flow()?;
        }
        let inlet = Inlet { shared, open: open.clone() };
        inlet.open_readers(is_private, open.card(spec, subscriber.id(), reliable).encode())?;
        open.add_inlet(&inlet.shared);
        Ok(inlet)
    }

    fn open_readers(&self, is_private: bool, user_data: Vec<u8>) -> Result<(), Error> {
        let Inlet { shared, open } = self;
        let SubscriberQos { depth, history, .. } = shared.qos;
        for (number, group) in shared.groups.iter().enumerate() {
            let (kinds, is_reliable, has_history) = {
                let group = lock(group);
                (group.kinds.clone(), group.reliable, group.history)
            };
            let settings = Settings {
                topic: shared.end.dds_topic.clone(),
                type_name: shared.end.dds_type.clone(),
                partitions: if is_private { open.host.wanted(&kinds) } else { Vec::new() },
                user_data: user_data.clone(),
                reliable: is_reliable || has_history,
                history: match (is_reliable, is_private) {
                    // Myelin's publishers are told to wait; others know CycloneDDS's way alone.
                    (true, true) => History::KeepAll { samples_max: 0 },
                    (true, false) => History::KeepAll { samples_max: depth },
                    (false, _) => History::KeepLast(depth.max(history)),
                },
                history_late: if has_history { history.max(1) } else { 0 },
                block_max: Duration::ZERO,
            };
            let (shared, queue) = (Arc::downgrade(shared), open.queue.clone());
            let watch = Watch { shared, number, queue };
            let reader = Reader::create(&open.participant, &settings, Box::new(watch));
            let reader = reader.map_err(said)?;
            let guid = reader.guid().map_err(said)?;
            let mut group = lock(group);
            (group.guid, group.reader) = (guid, Some(Arc::new(reader)));
        }
        Ok(())
    }

    /// Samples lost on the way, so far.
    pub(crate) fn lost(&self) -> u64 {
        self.shared.lost.load(Ordering::Relaxed)
    }
}

impl Drop for Inlet {
    fn drop(&mut self) {
        if self.open.is_forked() {
            // Its locks may be held by threads that are not here.
            for group in &self.shared.groups {
                if let Ok(mut group) = group.try_lock() {
                    std::mem::forget(std::mem::take(&mut group.sources));
                }
            }
            return;
        }
        for group in &self.shared.groups {
            let mut group = lock(group);
            let (reader, sources) = (group.reader.take(), std::mem::take(&mut group.sources));
            let (next, subscription) = (group.next.take(), group.subscription.take());
            drop(group);
            // The node's thread may just have it.
            self.open.settle();
            drop((next, reader, sources, subscription));
        }
        self.open.settle();
    }
}

/// The groups of publishers a subscriber has to ask apart, each with what it can have of them:
/// reliability and history are what both sides want. Of a topic for all DDS programs DDS decides
/// itself who fits.
fn groups(
    qos: &SubscriberQos,
    is_private: bool,
    subscription: &Arc<SubscriptionShared>,
) -> Vec<Group> {
    let reliable = qos.reliability == Reliability::Reliable;
    let new = |kinds: Vec<Kind>, reliable: bool, history: bool| Group {
        kinds,
        reliable,
        history,
        reader: None,
        guid: Guid::default(),
        sources: BTreeMap::new(),
        next: None,
        full: false,
        subscription: Some(subscription.clone()),
    };
    if !is_private {
        return vec![new(Vec::new(), reliable, qos.history > 0)];
    }
    let mut groups: Vec<Group> = Vec::new();
    for kind in Kind::ALL {
        let wants =
            (reliable && kind != Kind::BestEffort, qos.history > 0 && kind == Kind::History);
        match groups.iter_mut().find(|group| (group.reliable, group.history) == wants) {
            Some(group) => group.kinds.push(kind),
            None => groups.push(new(vec![kind], wants.0, wants.1)),
        }
    }
    groups
}

impl Shared {
    /// Looks who publishes. By the node's thread.
    pub(super) fn refresh(&self, host: Host) {
        for group in &self.groups {
            let Some(reader) = lock(group).reader.clone() else { continue };
            let mut found: Vec<(Endpoint, bool)> = Vec::new();
            let _ = reader.visit_matched(&mut |endpoint| {
                let card = Card::decode(&endpoint.user_data);
                let is_here = card.is_some_and(|card| card.host == host);
                found.push((endpoint, is_here));
            });
            drop(reader);
            let mut group = lock(group);
            if group.reader.is_none() {
                continue;
            }
            let is_there = |handle: &u64| found.iter().any(|(each, _)| each.handle == *handle);
            group.sources.retain(|handle, _| is_there(handle));
            for (endpoint, is_here) in found {
                if !group.sources.contains_key(&endpoint.handle) {
                    let stand_in = if is_here { None } else { self.stand_in(&group, &endpoint) };
                    let source = Source { guid: endpoint.guid, stand_in, sequence: 0 };
                    group.sources.insert(endpoint.handle, source);
                }
            }
            // A message of one that has come and gone since is of nobody.
            if let Some(next) = &group.next
                && !group.sources.contains_key(&next.writer())
            {
                group.next = None;
                self.lost.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    fn stand_in(&self, group: &Group, endpoint: &Endpoint) -> Option<shm::StandIn> {
        let subscription = group.subscription.as_ref()?;
        let SubscriberQos { depth, history, .. } = self.qos;
        let reliability =
            if group.reliable { Reliability::Reliable } else { Reliability::BestEffort };
        let qos = PublisherQos {
            depth: depth.max(history),
            reliability,
            block_max: Duration::ZERO,
            memory_max: self.memory_max,
            ..PublisherQos::default()
        };
        let stand_in = self.end.observer.node().stand_in(subscription, qos);
        stand_in
            .inspect_err(|error| {
                let (endpoint, reason) = (endpoint.handle, error.to_string());
                self.end.observer.tell(Event::Incompatible { endpoint, pid: 0, reason });
            })
            .ok()
    }

    /// Passes on what there is, of all groups. By the node's thread. True if some had no room.
    pub(super) fn pass_on_all(&self, hub: &Hub) -> bool {
        let mut some_full = false;
        for group in &self.groups {
            let mut group = lock(group);
            let is_full = self.pass_on(&mut group) == Passed::Full;
            some_full |= is_full;
            if is_full != group.full {
                group.full = is_full;
                hub.tell_full(group.guid, &writers(&group), is_full);
            }
        }
        some_full
    }

    /// Says again that a group is full: a publisher that has just come has not heard it.
    pub(super) fn say_again(&self, hub: &Hub) {
        for group in &self.groups {
            let group = lock(group);
            if group.full {
                hub.tell_full(group.guid, &writers(&group), true);
            }
        }
    }

    /// Moves samples into the subscriber's queue until there are none, or no room.
    fn pass_on(&self, group: &mut Group) -> Passed {
        loop {
            let Group { reader, sources, next, .. } = &mut *group;
            let Some(reader) = reader else { return Passed::All };
            let message = match next.take() {
                Some(message) => message,
                None => match reader.take() {
                    Ok(Some(message)) => message,
                    Ok(None) | Err(_) => return Passed::All,
                },
            };
            let Some(source) = sources.get_mut(&message.writer()) else {
                *next = Some(message);
                return Passed::Unknown;
            };
            let Some(stand_in) = &mut source.stand_in else { continue };
            let Some(payload) = self.wire.payload(message.bytes()) else {
                self.end.observer.tell(Event::Corrupt { endpoint: stand_in.id() });
                source.stand_in = None;
                continue;
            };
            match stand_in.writer.publish_copy(&message.bytes()[payload]) {
                Ok(_) => {}
                Err(Error::ReliableTimeout { .. }) => {
                    *next = Some(message);
                    return Passed::Full;
                }
                Err(_) => drop(self.lost.fetch_add(1, Ordering::Relaxed)), // no memory
            }
            source.count(message.sequence(), &self.lost);
        }
    }
}

impl Source {
    /// A gap in the publisher's count is a loss on the way.
    fn count(&mut self, sequence: u64, lost: &AtomicU64) {
        if self.sequence > 0 && sequence > self.sequence {
            lost.fetch_add(sequence - self.sequence - 1, Ordering::Relaxed);
        }
        self.sequence = self.sequence.max(sequence);
    }
}

fn writers(group: &Group) -> Vec<Guid> {
    group.sources.values().map(|source| source.guid).collect()
}

/// What CycloneDDS calls.
struct Watch {
    shared: Weak<Shared>,
    number: usize,
    queue: Arc<Queue>,
}

impl Calls for Watch {
    fn data(&self) {
        let Some(shared) = self.shared.upgrade() else { return };
        let mut group = lock(&shared.groups[self.number]);
        if group.full {
            return; // the node's thread looks after it
        }
        let task = match shared.pass_on(&mut group) {
            Passed::All => return,
            Passed::Full => Task::Full(self.shared.clone()),
            Passed::Unknown => Task::Inlet(self.shared.clone()),
        };
        self.queue.ask(task);
    }

    fn matched(&self, _count: u32) {
        self.queue.ask(Task::Inlet(self.shared.clone()));
    }

    fn incompatible(&self, policy: u32) {
        self.queue.ask(Task::InletPolicy(self.shared.clone(), policy));
    }
}
