//! The way of a publisher to other hosts: what it writes, and how much may be under way.

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

/// A publisher's. Used by the publisher's thread.
pub(crate) struct Outlet {
    shared: Arc<Shared>,
    wire: Wire,
    /// What may be under way; `None` for a publisher that waits for nobody.
    window: Option<Window>,
    /// Written also while nobody listens: for those that come later.
    keeps: bool,
    limit: Duration,
    late: Late,
    open: Arc<Open>,
}

/// What the node's thread knows of it too.
pub(super) struct Shared {
    pub(super) end: End,
    /// Of its writers.
    settings: Settings,
    route: Mutex<Route>,
    /// Readers that have said that they take what is written; some before they are found here.
    ready: Mutex<Ready>,
    /// Subscribers of other hosts, those that are ready.
    matches: Mutex<BTreeMap<u64, Match>>,
    /// How many; read on every publish.
    wanted: AtomicU32,
    /// The least that any host of theirs receives at once, in bytes.
    buffer_bytes: AtomicU64,
    /// The same, also of those that have been warned of; the size that is reckoned with of others.
    socket_bytes: AtomicU64,
    room: Arc<Room>,
}

/// Where what is published goes.
#[derive(Default)]
struct Route {
    /// `None` while no interface leads to other hosts. To be held outside of this only by the node's
    /// thread while it is busy; see [`Open::apply_pending`].
    writer: Option<Bound>,
    /// The newest samples, for whom the next writer meets: each the head and the payload.
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
    /// Its id there; of one that is not Myelin's what this process calls it.
    endpoint: EndpointId,
    guid: Guid,
    reliable: bool,
    buffer_bytes: u64,
    told: bool,
}

/// Readers that have spoken.
#[derive(Debug, Default)]
struct Ready(BTreeSet<Guid>);

impl Ready {
    /// Those that are `there` stay, and those that have spoken before they were found; not those that
    /// have left, and of those before only as many as may be.
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
        let end = End::new(spec, shm::Observer::clone(publisher), true);
        check_topic_name(&end.dds_topic).map_err(said)?;
        let private = matches!(spec.dds.encoding, Encoding::Private);
        let settings = Settings {
            topic: end.dds_topic.clone(),
            type_name: end.dds_type.clone(),
            partitions: if private { open.host.offered(kind) } else { Vec::new() },
            user_data: open.user_data(spec, publisher.id(), reliable),
            // What comes later can only be had reliably.
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

    /// Waits until another sample may be under way; for the publisher's time limit at most. How many
    /// subscribers it does not wait for. Not inlined, here and below: a publish without a network stays small.
    pub(crate) fn make_room(&self) -> Result<u32, Error> {
        self.try_make_room().or_else(|wait| {
            wait.wait(Instant::now())?;
            Ok(self.late())
        })
    }

    /// The same without a wait: what is to be waited for, if there is no room.
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

    /// Sends a copy of what has been published, if somebody on another host wants it.
    #[inline]
    pub(crate) fn write(&self, payload: &[u8]) -> Result<(), Error> {
        if self.is_wanted() { self.send(payload) } else { Ok(()) }
    }

    /// Waits until all that was sent is acknowledged, for `limit` at most. False if it is not by then.
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
            // What is kept counts for the window, also while nothing leaves.
            if let Some(window) = &self.window {
                window.enter(bytes, Instant::now());
            }
            return Ok(());
        };
        let room = &self.shared.room;
        room.enter(bytes);
        // The message is made while those before it are under way. This thread has the route meanwhile:
        // acknowledgements do not need it.
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
            // CycloneDDS's own limits, which only a configuration of the user's sets: that is a loss.
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

/// A publisher's wait for room on the way to other hosts. Nothing of the publisher is locked meanwhile.
pub(crate) struct OutletWait {
    shared: Arc<Shared>,
    open: Arc<Open>,
    half: Half,
    keeps: bool,
    limit: Duration,
    late: Late,
}

impl OutletWait {
    /// Waits until there is room, until the publisher's limit has passed since `begin` at most. False if the
    /// publisher is to go on regardless: those that hold it up are passed over.
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

    /// Waits no longer for those that hold all others up.
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
            // What has been published may not have arrived, and goes with the writer.
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
    /// Keeps a sample, in the memory of one that is kept no longer.
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
    /// Whether what is published is to be written. `keeps`: also for those that come later.
    #[inline]
    fn is_wanted(&self, keeps: bool) -> bool {
        // ORDER: Acquire pairs with the release in `refresh`; nothing else hangs on it.
        keeps || self.wanted.load(Ordering::Acquire) > 0
    }

    /// `None` while there is none. It is not kept while a publish waits: the interface may go then, and
    /// the writer with it.
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

    /// Opens a writer where there is a way to other hosts now, with what is kept for them.
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

    /// A reader elsewhere has said something. By the node's thread.
    pub(super) fn hear(&self, word: &Word, host: Host) {
        if lock(&self.route).writer.as_ref().is_none_or(|bound| bound.guid != word.writer) {
            return;
        }
        match word.says {
            // Nobody waits for one that has not spoken before.
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

    /// What names it on the network; `None` while there is none.
    pub(super) fn guid(&self) -> Option<Guid> {
        lock(&self.route).writer.as_ref().map(|bound| bound.guid)
    }

    /// Who listens, as far as it is known.
    pub(super) fn readers(&self) -> Vec<Guid> {
        lock(&self.matches).values().map(|each| each.guid).collect()
    }

    /// Looks who listens. By the node's thread.
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

    /// Tells of the subscribers that have come and gone, now that there are those that are `found`.
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
        // ORDER: Release, before the match is told of: who has heard of it publishes to it.
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

/// Of what a host's sockets hold, and of one that has not told, so much is reckoned with. What is under way is
/// half of it: more fills no link of a robot any better, and what comes waits the longer behind it.
const SOCKET_BYTES: u64 = 1 << 20;

/// Readers that speak before they are found; the word of more is forgotten, and they have to speak again.
const EARLY_MAX: usize = 1_024;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn readers_that_nobody_finds_are_kept_up_to_a_maximum() {
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
