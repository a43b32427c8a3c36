//! The outlet: the way of a publisher's samples to other hosts, and the limit of samples under way.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use myelin_dds::{Calls, Endpoint, Guid, History, Settings, Writer, check_topic_name};
use myelin_shm::node as shm;
use myelin_shm::topic::{Late, PublisherQos, Reliability};
use myelin_shm::waiting::cancel;

use super::end::End;
use super::flow::{Says, Word};
use super::host::{Card, Host, Kind};
use super::open::Open;
use super::queue::{Queue, Task};
use super::room::{Half, Room, Window};
use super::session::Session;
use super::wire::Wire;
use super::{Encoding, Spec, lock, said};
use crate::{EndpointId, Error, Event};

/// A publisher's outlet. Used by the publisher's thread.
pub(crate) struct Outlet {
    shared: Arc<Shared>,
    wire: Wire,
    /// The limit of samples under way; `None` for a publisher that never waits.
    window: Option<Window>,
    /// Whether samples are also written without readers: for late subscribers.
    keeps: bool,
    limit: Duration,
    late: Late,
    open: Arc<Open>,
}

/// The part that the node's thread uses, too.
pub(super) struct Shared {
    pub(super) end: End,
    /// The settings of its writers.
    settings: Settings,
    route: Mutex<Route>,
    /// Readers that have said that they take samples; some before they are found here.
    ready: Mutex<Ready>,
    /// Subscribers of other hosts that are ready.
    matches: Mutex<BTreeMap<u64, Match>>,
    /// Their number; read on every publish.
    wanted: AtomicU32,
    /// The least that any of their hosts receives at once, in bytes.
    buffer_bytes: AtomicU64,
    /// The same, including hosts that have been warned about; for hosts that do not announce it, an
    /// assumed size.
    socket_bytes: AtomicU64,
    room: Arc<Room>,
}

/// The destination of samples.
#[derive(Default)]
struct Route {
    /// `None` while no interface leads to other hosts. Outside this lock only the node's thread may
    /// hold it, while it is busy; see [`Open::apply_pending`].
    writer: Option<Bound>,
    /// The newest samples, for the readers of the next writer: each with its head and payload.
    kept: VecDeque<(Vec<u8>, Vec<u8>)>,
    kept_max: usize,
    /// The publisher has gone.
    closed: bool,
}

/// A writer on an interface.
#[derive(Clone)]
struct Bound {
    writer: Arc<Writer>,
    guid: Guid,
}

/// A subscriber of another host.
struct Match {
    /// Its id there; for one that is not Myelin's, the id that this process gave it.
    endpoint: EndpointId,
    guid: Guid,
    reliable: bool,
    buffer_bytes: u64,
    told: bool,
}

/// Readers that have sent a word.
#[derive(Debug, Default)]
struct Ready(BTreeSet<Guid>);

impl Ready {
    /// Keeps the readers that are `there`, and a limited number of those that sent a word before
    /// they were found; removes those that have left.
    fn forget_the_gone(&mut self, there: &BTreeSet<Guid>, has_left: impl Fn(&Guid) -> bool) {
        let mut early = 0;
        self.0.retain(|reader| {
            let is_there = there.contains(reader);
            early += usize::from(!is_there);
            is_there || (early <= EARLY_MAX && !has_left(reader))
        });
    }
}

impl Outlet {
    pub(super) fn create(
        open: &Arc<Open>,
        spec: &Spec,
        publisher: &shm::Publisher,
    ) -> Result<Outlet, Error> {
        let wire = Wire::of(&spec.dds.encoding, spec.shape)?;
        let PublisherQos { depth, history, block_max: limit, late, memory_max, .. } =
            spec.publisher;
        let reliable = spec.publisher.reliability == Reliability::Reliable;
        let kind = match (history, reliable || spec.dds.resends) {
            (0, false) => Kind::BestEffort,
            (0, true) => Kind::Reliable,
            _ => Kind::History,
        };
        let end = End::new(spec, shm::EndpointHandle::clone(publisher), true);
        check_topic_name(&end.dds_topic).map_err(said)?;
        let private = matches!(spec.dds.encoding, Encoding::Private);
        let settings = Settings {
            topic: end.dds_topic.clone(),
            type_name: end.dds_type.clone(),
            partitions: if private { open.host.offered(kind) } else { Vec::new() },
            user_data: open.user_data(spec, publisher.id(), reliable),
            // Late subscribers can only get samples reliably.
            reliable: kind != Kind::BestEffort,
            history: match reliable {
                true => History::KeepAll,
                false => History::KeepLast(depth.max(history)),
            },
            history_late: history,
            block_max: if reliable { limit } else { Duration::ZERO },
        };
        let route = Route { kept_max: history as usize, ..Route::default() };
        let shared = Arc::new(Shared {
            end,
            settings,
            route: Mutex::new(route),
            ready: Mutex::default(),
            matches: Mutex::default(),
            wanted: AtomicU32::new(0),
            buffer_bytes: AtomicU64::new(u64::MAX),
            socket_bytes: AtomicU64::new(u64::MAX),
            room: Arc::default(),
        });
        open.add_outlet(&shared)?;
        let window = reliable.then(|| Window::new(depth, history, memory_max));
        let (open, keeps) = (open.clone(), history > 0);
        Ok(Outlet { shared, wire, window, keeps, limit, late, open })
    }

    /// Waits until there is room for another sample, at most for the publisher's time limit.
    /// Returns how many subscribers it does not wait for. Not inlined, here and below, so that a
    /// publish without a network stays small.
    pub(crate) fn make_room(&self) -> Result<u32, Error> {
        self.try_make_room().or_else(|wait| {
            wait.wait(Instant::now())?;
            Ok(self.late())
        })
    }

    /// Like `make_room`, without a wait: returns the wait to make, if there is no room.
    pub(crate) fn try_make_room(&self) -> Result<u32, OutletWait> {
        match &self.window {
            Some(window) if self.is_wanted() => {
                let room = &self.shared.room;
                if room.has(window) && room.late() == 0 { Ok(0) } else { self.look_again(window) }
            }
            _ => Ok(0),
        }
    }

    /// How many subscribers it does not wait for.
    pub(crate) fn late(&self) -> u32 {
        self.shared.room.late()
    }

    /// Sends a copy of a published sample, if a subscriber on another host wants it.
    #[inline]
    pub(crate) fn write(&self, payload: &[u8]) -> Result<(), Error> {
        if self.is_wanted() { self.send(payload) } else { Ok(()) }
    }

    /// Waits until everything sent is acknowledged, for at most `limit`. False if the time is over.
    pub(crate) fn wait_for_acknowledgements(&self, limit: Duration) -> bool {
        let bound = lock(&self.shared.route).writer.clone();
        let Some(Bound { writer, .. }) = bound else { return true };
        let begin = Instant::now();
        loop {
            let left = limit.saturating_sub(begin.elapsed());
            let slice = if cancel::is_cancelled() { Duration::ZERO } else { cancel::slice(left) };
            if writer.wait_for_acknowledgements(slice) {
                return true;
            }
            if slice == left || slice.is_zero() {
                return false;
            }
        }
    }

    #[inline]
    fn is_wanted(&self) -> bool {
        self.shared.is_wanted(self.keeps)
    }

    fn send(&self, payload: &[u8]) -> Result<(), Error> {
        let head = self.wire.head(payload.len())?;
        if payload.len() as u64 > self.shared.buffer_bytes.load(Ordering::Relaxed) {
            self.shared.warn(payload.len() as u64, self.window.is_some());
        }
        let bytes = (head.bytes().len() + payload.len()) as u64;
        let mut route = lock(&self.shared.route);
        if self.keeps {
            route.keep(head.bytes(), payload);
        }
        let Some(Bound { writer, .. }) = &route.writer else {
            // Kept samples count for the window, even while nothing is sent.
            if let Some(window) = &self.window {
                window.enter(bytes, Instant::now());
            }
            return Ok(());
        };
        let room = &self.shared.room;
        room.enter(bytes);
        // The message is made while earlier ones are under way. This thread has the route
        // meanwhile: acknowledgements do not need it.
        let hold_back = || {
            let Some(window) = &self.window else { return };
            window.set_buffer(self.shared.socket_bytes.load(Ordering::Relaxed));
            room.pace(window, bytes, self.limit);
            if window.enter(bytes, Instant::now()) {
                writer.ask();
            }
        };
        match writer.write(head.bytes(), payload, room.clone(), hold_back) {
            Ok(()) => Ok(()),
            // These are CycloneDDS's own limits, which only a user's configuration sets: the sample
            // is lost.
            Err(myelin_dds::Error::Other { timeout: true, .. }) if self.window.is_none() => Ok(()),
            Err(myelin_dds::Error::Other { timeout: true, .. }) => {
                drop(route);
                Err(self.timed_out())
            }
            Err(error) => Err(said(error)),
        }
    }

    #[cold]
    fn look_again(&self, window: &Window) -> Result<u32, OutletWait> {
        let room = &self.shared.room;
        let answers = |writer: &Writer| room.take_answering(|each| writer.is_waited_for(each));
        let answering = self.shared.with_writer(answers).unwrap_or_default();
        answering.iter().for_each(|reader| self.shared.tell_caught_up(reader));
        if room.has(window) {
            return Ok(room.late());
        }
        let Outlet { shared, open, keeps, limit, late, .. } = self;
        let (shared, open, half) = (shared.clone(), open.clone(), window.half());
        Err(OutletWait { shared, open, half, keeps: *keeps, limit: *limit, late: *late })
    }

    fn timed_out(&self) -> Error {
        self.shared.timed_out(self.limit)
    }
}

/// A publisher's wait for room on the way to other hosts. No lock of the publisher is held
/// meanwhile.
pub(crate) struct OutletWait {
    shared: Arc<Shared>,
    open: Arc<Open>,
    half: Half,
    keeps: bool,
    limit: Duration,
    late: Late,
}

impl OutletWait {
    /// Waits until there is room, at most until the publisher's limit has passed since `begin`.
    /// False if the publisher must go on regardless: the subscribers that hold it up are passed
    /// over.
    ///
    /// # Errors
    /// [`Error::ReliableTimeout`].
    #[cold]
    pub(crate) fn wait(&self, begin: Instant) -> Result<bool, Error> {
        let OutletWait { shared, half, .. } = self;
        let is_there = || shared.room.has_in(half) || !shared.is_wanted(self.keeps);
        loop {
            let left = self.limit.saturating_sub(begin.elapsed());
            let slice = cancel::slice(left);
            if shared.room.wait(slice, Some(*half), is_there) {
                return Ok(true);
            }
            if cancel::is_cancelled() || (slice == left && self.late == Late::Fail) {
                return Err(shared.timed_out(self.limit));
            }
            if slice == left {
                self.pass_over(is_there);
                return Ok(false);
            }
        }
    }

    /// Stops waiting for the subscribers that hold all others up.
    fn pass_over(&self, is_there: impl Fn() -> bool) {
        let OutletWait { shared, open, .. } = self;
        let Some(writer) = shared.with_writer(Writer::guid) else { return };
        for (reader, count, is_new) in shared.room.pass_over_full() {
            let word = Word { writer, reader, says: Says::Late, count };
            open.queue.ask(Task::Say(word));
            if is_new {
                shared.tell_passed_over(&reader);
            }
        }
        // Each is passed over once, so this ends.
        while !is_there() {
            let Some(reader) = shared.with_writer(Writer::pass_over).flatten() else { return };
            if shared.room.pass_over_silent(reader) {
                shared.tell_passed_over(&reader);
            }
        }
    }
}

impl Drop for Outlet {
    fn drop(&mut self) {
        if self.open.is_forked() {
            return;
        }
        if self.window.is_some() {
            // Published samples may not have arrived, and would be lost with the writer.
            self.wait_for_acknowledgements(self.limit);
        }
        let mut route = lock(&self.shared.route);
        route.closed = true;
        drop(route.writer.take());
        drop(route);
        self.open.apply_pending();
    }
}

impl Route {
    /// Keeps a sample, in the memory of one that is dropped.
    fn keep(&mut self, head: &[u8], payload: &[u8]) {
        let is_full = self.kept.len() == self.kept_max;
        let oldest = if is_full { self.kept.pop_front() } else { None };
        let (mut kept_head, mut kept_payload) = oldest.unwrap_or_default();
        kept_head.clear();
        kept_head.extend_from_slice(head);
        kept_payload.clear();
        kept_payload.extend_from_slice(payload);
        self.kept.push_back((kept_head, kept_payload));
    }
}

impl Shared {
    /// Whether samples must be written. `keeps`: also for late subscribers.
    #[inline]
    fn is_wanted(&self, keeps: bool) -> bool {
        // ORDER: Acquire pairs with the release in `refresh`; nothing else depends on it.
        keeps || self.wanted.load(Ordering::Acquire) > 0
    }

    /// `None` while there is none. It is not kept during the wait of a publish: the interface may
    /// go then, and the writer with it.
    fn with_writer<R>(&self, act: impl FnOnce(&Writer) -> R) -> Option<R> {
        lock(&self.route).writer.as_ref().map(|bound| act(&bound.writer))
    }

    fn timed_out(&self, waited: Duration) -> Error {
        let matches = lock(&self.matches);
        let is_slow = |each: &Match| self.room.is_full(&each.guid);
        let slow = matches.values().find(|each| is_slow(each));
        let some = slow.or_else(|| matches.values().find(|each| each.reliable));
        let subscriber = some.map_or(0, |each| each.endpoint);
        Error::ReliableTimeout { topic: self.end.topic.clone(), subscriber, pid: 0, waited }
    }

    /// Opens a writer if there is a way to other hosts now, with the samples kept for them.
    pub(super) fn bind(self: &Arc<Self>, session: &Session) -> Result<(), Error> {
        let watch = Watch { shared: Arc::downgrade(self), queue: session.queue.clone() };
        let participant = &session.participant;
        let writer = Writer::create(participant, &self.settings, Box::new(watch)).map_err(said)?;
        let guid = writer.guid();
        let mut route = lock(&self.route);
        if route.closed {
            return Ok(());
        }
        for (head, payload) in &route.kept {
            self.room.enter((head.len() + payload.len()) as u64);
            writer.write(head, payload, self.room.clone(), || {}).map_err(said)?;
        }
        route.writer = Some(Bound { writer: Arc::new(writer), guid });
        Ok(())
    }

    /// Closes the writer: the way to other hosts has gone.
    pub(super) fn unbind(&self) {
        let bound = lock(&self.route).writer.take();
        drop(bound);
        lock(&self.ready).0.clear();
        self.update(BTreeMap::new());
    }

    /// Handles a word of a reader elsewhere. Called by the node's thread.
    pub(super) fn hear(&self, word: &Word, host: Host) {
        if lock(&self.route).writer.as_ref().is_none_or(|bound| bound.guid != word.writer) {
            return;
        }
        match word.says {
            // A publisher does not wait for a reader that has not said that it is ready.
            Says::Full if !lock(&self.ready).0.contains(&word.reader) => {}
            Says::Full => self.room.set_full(word.reader, word.count),
            Says::Room => {
                if self.room.set_room(&word.reader) {
                    self.tell_caught_up(&word.reader);
                }
            }
            Says::Late => {} // to readers
            Says::Ready => {
                if lock(&self.ready).0.insert(word.reader) {
                    self.refresh(host);
                }
            }
        }
    }

    /// Its GUID in DDS; `None` while there is none.
    pub(super) fn guid(&self) -> Option<Guid> {
        lock(&self.route).writer.as_ref().map(|bound| bound.guid)
    }

    /// The known readers.
    pub(super) fn readers(&self) -> Vec<Guid> {
        lock(&self.matches).values().map(|each| each.guid).collect()
    }

    /// Updates the readers. Called by the node's thread.
    pub(super) fn refresh(&self, host: Host) {
        let Some(Bound { writer, .. }) = lock(&self.route).writer.clone() else { return };
        let (mut found, mut there) = (BTreeMap::new(), BTreeSet::new());
        let mut ready = lock(&self.ready);
        let _ = writer.visit_matched(&mut |endpoint: Endpoint| {
            let card = Card::decode(&endpoint.user_data);
            there.insert(endpoint.guid);
            let takes = |card: &Card| card.host != host && ready.0.contains(&endpoint.guid);
            if card.as_ref().map_or_else(|| !self.end.is_foreign(&endpoint), takes) {
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
        let matches = lock(&self.matches);
        ready.forget_the_gone(&there, |reader| matches.values().any(|each| each.guid == *reader));
        drop((ready, matches));
        self.update(found);
    }

    /// Reports the subscribers that have come and gone, given the current `found`.
    fn update(&self, found: BTreeMap<u64, Match>) {
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
        let socket_bytes = matches.values().map(|each| each.buffer_bytes.min(SOCKET_BYTES)).min();
        self.socket_bytes.store(socket_bytes.unwrap_or(u64::MAX), Ordering::Relaxed);
        self.room.retain(|reader| matches.values().any(|each| each.guid == *reader));
        // ORDER: Release, before the match is reported: a user that knows of the match publishes to
        // it.
        self.wanted.store(matches.len() as u32, Ordering::Release);
        drop(matches);
        events.into_iter().for_each(|event| self.end.observer.tell(event));
        self.room.stir();
    }

    fn tell_passed_over(&self, reader: &Guid) {
        if let Some(endpoint) = self.endpoint(reader) {
            self.end.observer.tell(Event::PassedOver { endpoint, pid: 0 });
        }
    }

    fn tell_caught_up(&self, reader: &Guid) {
        if let Some(endpoint) = self.endpoint(reader) {
            self.end.observer.tell(Event::CaughtUp { endpoint, pid: 0 });
        }
    }

    fn endpoint(&self, reader: &Guid) -> Option<EndpointId> {
        let matches = lock(&self.matches);
        matches.values().find(|each| each.guid == *reader).map(|each| each.endpoint)
    }

    /// Reports once each subscriber whose host may never receive a best-effort sample of this size.
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

/// The assumed capacity of a host's sockets, as a maximum and for hosts that do not announce it.
/// Half of it may be under way: more would not fill a robot's link better, and later samples would
/// wait longer behind it.
const SOCKET_BYTES: u64 = 1 << 20;

/// Readers that sent a word before they are found; beyond this number a word is forgotten and must
/// be repeated.
const EARLY_MAX: usize = 1_024;

/// The object that CycloneDDS calls.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmatched_readers_are_kept_up_to_a_maximum() {
        let name = |number: u64| [number.to_be_bytes(), [7; 8]].concat().try_into().unwrap();
        let (there, left): (Guid, Guid) = (name(1 << 40), name(2 << 40));
        let mut ready = Ready::default();
        let early = (0..10 * EARLY_MAX as u64).map(name);
        for reader in early.chain([there, left]) {
            ready.0.insert(reader);
            ready.forget_the_gone(&BTreeSet::from([there]), |reader| *reader == left);
            assert!(ready.0.len() <= EARLY_MAX + 1);
        }
        assert!(ready.0.contains(&there) && !ready.0.contains(&left));
        assert_eq!(ready.0.len(), EARLY_MAX + 1);
    }
}
