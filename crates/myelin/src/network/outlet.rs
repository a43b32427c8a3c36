//! The way of a publisher to other hosts: what it writes, and how much may be under way.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, Weak};
use std::time::Duration;

use myelin_dds::{Calls, Endpoint, Guid, History, Settings, Writer};
use myelin_shm::node as shm;
use myelin_shm::topic::{PublisherQos, Reliability};

use super::end::End;
use super::flow::Word;
use super::host::{Card, Host, Kind};
use super::open::Open;
use super::queue::{Queue, Task};
use super::room::Room;
use super::wire::Wire;
use super::{Encoding, Spec, lock, said};
use crate::{EndpointId, Error, Event};

/// A publisher's. Used by the publisher's thread.
pub(crate) struct Outlet {
    shared: Arc<Shared>,
    writer: Option<Arc<Writer>>,
    wire: Wire,
    /// Samples that may be under way; `None` for a publisher that waits for nobody.
    room: Option<u32>,
    /// Written also while nobody listens: for those that come later.
    keeps: bool,
    limit: Duration,
    open: Arc<Open>,
}

/// What the node's thread knows of it too.
pub(super) struct Shared {
    pub(super) end: End,
    guid: OnceLock<Guid>,
    /// To be held outside of this only by the node's thread while it is busy; see [`Open::settle`].
    writer: Mutex<Option<Arc<Writer>>>,
    /// Subscribers of other hosts.
    matches: Mutex<BTreeMap<u64, Match>>,
    /// How many; read on every publish.
    wanted: AtomicU32,
    /// The least that any host of theirs receives at once, in bytes.
    buffer_bytes: AtomicU64,
    room: Arc<Room>,
}

/// A subscriber of another host.
struct Match {
    /// Its id there; of one that is not Myelin's what this process calls it.
    endpoint: EndpointId,
    guid: Guid,
    reliable: bool,
    buffer_bytes: u64,
    told: bool,
}

impl Outlet {
    pub(super) fn create(
        open: &Arc<Open>,
        spec: &Spec,
        publisher: &shm::Publisher,
    ) -> Result<Outlet, Error> {
        let wire = Wire::of(&spec.dds.encoding, spec.shape)?;
        let PublisherQos { depth, history, block_max: limit, .. } = spec.publisher;
        let reliable = spec.publisher.reliability == Reliability::Reliable;
        let kind = match (history, reliable) {
            (0, false) => Kind::BestEffort,
            (0, true) => Kind::Reliable,
            _ => Kind::History,
        };
        let shared = Arc::new(Shared {
            end: End::new(spec, shm::Observer::clone(publisher), true),
            guid: OnceLock::new(),
            writer: Mutex::default(),
            matches: Mutex::default(),
            wanted: AtomicU32::new(0),
            buffer_bytes: AtomicU64::new(u64::MAX),
            room: Arc::default(),
        });
        let private = matches!(spec.dds.encoding, Encoding::Private);
        let settings = Settings {
            topic: shared.end.dds_topic.clone(),
            type_name: shared.end.dds_type.clone(),
            partitions: if private { open.host.offered(kind) } else { Vec::new() },
            user_data: open.card(spec, publisher.id(), reliable).encode(),
            // What comes later can only be had reliably.
            reliable: kind != Kind::BestEffort,
            history: match reliable {
                true => History::KeepAll { samples_max: 0 },
                false => History::KeepLast(depth.max(history)),
            },
            history_late: history,
            block_max: if reliable { limit } else { Duration::ZERO },
        };
        if reliable {
            open.join_flow()?;
        }
        let watch = Watch { shared: Arc::downgrade(&shared), queue: open.queue.clone() };
        let writer = Writer::create(&open.participant, &settings, Box::new(watch)).map_err(said)?;
        let _ = shared.guid.set(writer.guid().map_err(said)?);
        let writer = Arc::new(writer);
        *lock(&shared.writer) = Some(writer.clone());
        open.add_outlet(&shared);
        let room = reliable.then(|| depth.saturating_add(history));
        let (writer, open) = (Some(writer), open.clone());
        Ok(Outlet { shared, writer, wire, room, keeps: history > 0, limit, open })
    }

    /// Waits until another sample may be under way; for the publisher's time limit at most.
    #[inline]
    pub(crate) fn make_room(&self) -> Result<(), Error> {
        match self.room {
            Some(room) if self.is_wanted() && !self.shared.room.has(room) => self.wait(room),
            _ => Ok(()),
        }
    }

    /// Sends a copy of what has been published, if somebody on another host wants it.
    #[inline]
    pub(crate) fn write(&self, payload: &[u8]) -> Result<(), Error> {
        if self.is_wanted() { self.send(payload) } else { Ok(()) }
    }

    #[inline]
    fn is_wanted(&self) -> bool {
        // ORDER: Acquire pairs with the release in `refresh`; nothing else hangs on it.
        self.keeps || self.shared.wanted.load(Ordering::Acquire) > 0
    }

    fn send(&self, payload: &[u8]) -> Result<(), Error> {
        let head = self.wire.head(payload.len())?;
        if payload.len() as u64 > self.shared.buffer_bytes.load(Ordering::Relaxed) {
            self.shared.warn(payload.len() as u64, self.room.is_some());
        }
        let writer = self.writer.as_ref().expect("until it is dropped");
        self.shared.room.enter();
        match writer.write(head.bytes(), payload, self.shared.room.clone()) {
            Ok(()) => Ok(()),
            // CycloneDDS's own limits, which only a configuration of the user's sets: that is a loss.
            Err(myelin_dds::Error::Other { timeout: true, .. }) if self.room.is_none() => Ok(()),
            Err(myelin_dds::Error::Other { timeout: true, .. }) => Err(self.timed_out()),
            Err(error) => Err(said(error)),
        }
    }

    #[cold]
    fn wait(&self, limit: u32) -> Result<(), Error> {
        let is_there = || self.shared.room.has(limit) || !self.is_wanted();
        match self.shared.room.wait(self.limit, is_there) {
            true => Ok(()),
            false => Err(self.timed_out()),
        }
    }

    fn timed_out(&self) -> Error {
        let matches = lock(&self.shared.matches);
        let is_slow = |each: &Match| self.shared.room.is_full(&each.guid);
        let slow = matches.values().find(|each| is_slow(each));
        let some = slow.or_else(|| matches.values().find(|each| each.reliable));
        let subscriber = some.map_or(0, |each| each.endpoint);
        Error::ReliableTimeout { subscriber, pid: 0, waited: self.limit }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        if self.open.is_forked() {
            return;
        }
        let writer = self.writer.take();
        if let Some(writer) = writer.as_ref().filter(|_| self.room.is_some()) {
            // What has been published may not have arrived, and goes with the writer.
            writer.wait_for_acknowledgements(self.limit);
        }
        drop(lock(&self.shared.writer).take());
        self.open.settle();
    }
}

impl Shared {
    /// A subscriber of another host is full, or no longer. By the node's thread.
    pub(super) fn set_full(&self, word: &Word) {
        if self.guid.get() == Some(&word.writer) {
            self.room.set_full(word.reader, word.is_full);
        }
    }

    /// Looks who listens. By the node's thread.
    pub(super) fn refresh(&self, host: Host) {
        let Some(writer) = lock(&self.writer).clone() else { return };
        let mut found = BTreeMap::new();
        let _ = writer.visit_matched(&mut |endpoint: Endpoint| {
            let card = Card::decode(&endpoint.user_data);
            if card.as_ref().is_none_or(|card| card.host != host) {
                let each = Match {
                    endpoint: card.as_ref().map_or(endpoint.handle, |card| card.endpoint),
                    guid: endpoint.guid,
                    buffer_bytes: card.as_ref().map_or(u64::MAX, |card| card.buffer_bytes),
                    reliable: card.is_none_or(|card| card.reliable),
                    told: false,
                };
                found.insert(endpoint.handle, each);
            }
        });
        let mut matches = lock(&self.matches);
        let mut events = Vec::new();
        for (_, Match { endpoint, .. }) in
            matches.extract_if(.., |handle, _| !found.contains_key(handle))
        {
            events.push(Event::Unmatched { endpoint, pid: 0, died: false });
        }
        for (handle, each) in found {
            if let Entry::Vacant(place) = matches.entry(handle) {
                events.push(Event::Matched { endpoint: each.endpoint, pid: 0 });
                place.insert(each);
            }
        }
        let least = matches.values().map(|each| each.buffer_bytes).min().unwrap_or(u64::MAX);
        self.buffer_bytes.store(least, Ordering::Relaxed);
        self.room.retain(|reader| matches.values().any(|each| each.guid == *reader));
        // ORDER: Release, before the match is told of: who has heard of it publishes to it.
        self.wanted.store(matches.len() as u32, Ordering::Release);
        drop(matches);
        events.into_iter().for_each(|event| self.end.observer.tell(event));
        self.room.stir();
    }

    /// Tells once of each subscriber whose host may never receive a best-effort sample of this size.
    #[cold]
    fn warn(&self, bytes: u64, reliable: bool) {
        let mut matches = lock(&self.matches);
        let small = matches
            .values_mut()
            .filter(|each| !each.told && bytes > each.buffer_bytes && !(reliable && each.reliable));
        for each in small {
            each.told = true;
            let remedy = format!(
                "its host receives {} B at once: on it, sysctl -w net.core.rmem_max={}, or make the \
                 topic reliable on both sides",
                each.buffer_bytes,
                (2 * bytes).next_power_of_two()
            );
            self.end.observer.tell(Event::BufferTooSmall {
                endpoint: each.endpoint,
                bytes,
                remedy,
            });
        }
        let untold = matches.values().filter(|each| !each.told);
        let least = untold.map(|each| each.buffer_bytes).min().unwrap_or(u64::MAX);
        self.buffer_bytes.store(least, Ordering::Relaxed);
    }
}

/// What CycloneDDS calls.
struct Watch {
    shared: Weak<Shared>,
    queue: Arc<Queue>,
}

impl Calls for Watch {
    fn matched(&self, _count: u32) {
        self.queue.ask(Task::Outlet(self.shared.clone()));
    }

    fn incompatible(&self, policy: u32) {
        self.queue.ask(Task::OutletPolicy(self.shared.clone(), policy));
    }
}
