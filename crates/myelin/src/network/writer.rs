//! The way of a publisher's samples to other hosts, and the limit of samples under way.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, Weak};
use std::time::{Duration, Instant};

use myelin_dds::{Endpoint, Guid, History, Listener, Settings, Writer, check_topic_name};
use myelin_shm::node as shm;
use myelin_shm::topic::{Late, PublisherQos, Reliability};
use myelin_shm::waiting::cancel;

use super::dds_endpoint::DdsEndpoint;
use super::flow_channel::{FlowKind, FlowMessage};
use super::flow_control::{FlowControl, WakeThreshold, Window};
use super::host::{Host, Kind};
use super::session::Session;
use super::task_queue::{Task, TaskQueue};
use super::user_data::Discovered;
use super::wire::Wire;
use super::worker::NetworkWorker;
use super::{Spec, lock, network_error};
use crate::{EndpointId, Error, Event};

/// The writer of a publisher. Used by the publisher's thread.
pub(crate) struct NetworkWriter {
    shared: Arc<WriterState>,
    wire: Wire,
    /// The limit of samples under way; `None` for a publisher that never waits.
    window: Option<Window>,
    /// Whether samples are also written without readers: for late subscribers.
    keeps: bool,
    limit: Duration,
    late: Late,
    worker: Arc<NetworkWorker>,
}

/// The part that the node's thread uses, too.
pub(super) struct WriterState {
    pub(super) dds: DdsEndpoint,
    /// The settings of its writers.
    settings: Settings,
    output: Mutex<Output>,
    /// Readers that have reported that they take samples; some before they are found here.
    ready: Mutex<ReadyReaders>,
    /// Subscribers of other hosts that are ready.
    matches: Mutex<BTreeMap<u64, RemoteSubscriber>>,
    /// Their number; read on every publish.
    wanted: AtomicU32,
    /// The least that any of their hosts receives at once, in bytes.
    buffer_bytes: AtomicU64,
    /// The same, including hosts that have been warned about; for hosts that do not announce it, an
    /// assumed size.
    socket_bytes: AtomicU64,
    flow: Arc<FlowControl>,
}

/// The destination of samples.
#[derive(Default)]
struct Output {
    /// `None` while no interface leads to other hosts. Outside this lock only the node's thread may
    /// hold it, while it is busy; see [`NetworkWorker::apply_pending`].
    writer: Option<BoundWriter>,
    /// The newest samples, for the readers of the next writer: each with its head and payload.
    kept: VecDeque<(Vec<u8>, Vec<u8>)>,
    kept_max: usize,
    /// The publisher has gone.
    closed: bool,
}

/// A writer on an interface.
#[derive(Clone)]
struct BoundWriter {
    writer: Arc<Writer>,
    guid: Guid,
}

/// A subscriber of another host.
struct RemoteSubscriber {
    /// Its id there; for one that is not Myelin's, the id that this process gave it.
    endpoint: EndpointId,
    guid: Guid,
    reliable: bool,
    buffer_bytes: u64,
    reported: bool,
}

/// Readers that have sent a message.
#[derive(Debug, Default)]
struct ReadyReaders(BTreeSet<Guid>);

impl ReadyReaders {
    /// Keeps the readers that are `there`, and a limited number of those that sent a message before
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

impl NetworkWriter {
    pub(super) fn create(
        worker: &Arc<NetworkWorker>,
        spec: &Spec,
        publisher: &shm::Publisher,
    ) -> Result<NetworkWriter, Error> {
        let wire = Wire::of(&spec.dds.encoding, spec.shape)?;
        let PublisherQos {
            depth,
            transient_local: history,
            block_max: limit,
            late,
            memory_max,
            ..
        } = spec.publisher;
        let reliable = spec.publisher.reliability == Reliability::Reliable;
        let kind = match (history, reliable || spec.dds.resends) {
            (0, false) => Kind::BestEffort,
            (0, true) => Kind::Reliable,
            _ => Kind::History,
        };
        let dds = DdsEndpoint::new(spec, shm::EndpointHandle::clone(publisher))?;
        check_topic_name(&dds.topic).map_err(network_error)?;
        let settings = Settings {
            topic: dds.topic.clone(),
            type_name: dds.type_name.clone(),
            partitions: if dds.is_private { worker.host.offered(kind) } else { Vec::new() },
            user_data: worker.user_data(&dds.info),
            // Late subscribers can only get samples reliably.
            reliable: kind != Kind::BestEffort,
            history: match reliable {
                true => History::KeepAll,
                false => History::KeepLast(depth.max(history)),
            },
            history_late: history,
            block_max: if reliable { limit } else { Duration::ZERO },
        };
        let output = Output { kept_max: history as usize, ..Output::default() };
        let shared = Arc::new(WriterState {
            dds,
            settings,
            output: Mutex::new(output),
            ready: Mutex::default(),
            matches: Mutex::default(),
            wanted: AtomicU32::new(0),
            buffer_bytes: AtomicU64::new(u64::MAX),
            socket_bytes: AtomicU64::new(u64::MAX),
            flow: Arc::default(),
        });
        worker.add_writer(&shared)?;
        let window = reliable.then(|| Window::new(depth, history, memory_max));
        let (worker, keeps) = (worker.clone(), history > 0);
        Ok(NetworkWriter { shared, wire, window, keeps, limit, late, worker })
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
    pub(crate) fn try_make_room(&self) -> Result<u32, NetworkWait> {
        match &self.window {
            Some(window) if self.is_wanted() => {
                let flow = &self.shared.flow;
                if flow.has(window) && flow.late() == 0 { Ok(0) } else { self.check_again(window) }
            }
            _ => Ok(0),
        }
    }

    /// How many subscribers it does not wait for.
    pub(crate) fn late(&self) -> u32 {
        self.shared.flow.late()
    }

    /// Sends a copy of a published sample, if a subscriber on another host wants it.
    #[inline]
    pub(crate) fn write(&self, payload: &[u8]) -> Result<(), Error> {
        if self.is_wanted() { self.send(payload) } else { Ok(()) }
    }

    /// Waits until everything sent is acknowledged, for at most `limit`. False if the time is over.
    pub(crate) fn wait_for_acknowledgements(&self, limit: Duration) -> bool {
        let bound = lock(&self.shared.output).writer.clone();
        let Some(BoundWriter { writer, .. }) = bound else { return true };
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
        let mut output = lock(&self.shared.output);
        if self.keeps {
            output.keep(head.bytes(), payload);
        }
        let Some(BoundWriter { writer, .. }) = &output.writer else {
            // Kept samples count for the window, even while nothing is sent.
            if let Some(window) = &self.window {
                window.enter(bytes, Instant::now());
            }
            return Ok(());
        };
        let flow = &self.shared.flow;
        flow.enter(bytes);
        // The message is made while earlier ones are under way. This thread has the output
        // meanwhile: acknowledgements do not need it.
        let hold_back = || {
            let Some(window) = &self.window else { return };
            window.set_buffer(self.shared.socket_bytes.load(Ordering::Relaxed));
            flow.pace(window, bytes, self.limit);
            if window.enter(bytes, Instant::now()) {
                writer.request_acknowledgements();
            }
        };
        match writer.write(head.bytes(), payload, flow.clone(), hold_back) {
            Ok(()) => Ok(()),
            // These are CycloneDDS's own limits, which only a user's configuration sets: the sample
            // is lost.
            Err(myelin_dds::Error::Other { timeout: true, .. }) if self.window.is_none() => Ok(()),
            Err(myelin_dds::Error::Other { timeout: true, .. }) => {
                drop(output);
                Err(self.timed_out())
            }
            Err(error) => Err(network_error(error)),
        }
    }

    #[cold]
    fn check_again(&self, window: &Window) -> Result<u32, NetworkWait> {
        let flow = &self.shared.flow;
        let answers = |writer: &Writer| flow.take_answering(|each| writer.is_waited_for(each));
        let answering = self.shared.with_writer(answers).unwrap_or_default();
        answering.iter().for_each(|reader| self.shared.report_caught_up(reader));
        if flow.has(window) {
            return Ok(flow.late());
        }
        let NetworkWriter { shared, worker, keeps, limit, late, .. } = self;
        let (shared, worker, threshold) = (shared.clone(), worker.clone(), window.threshold());
        Err(NetworkWait { shared, worker, threshold, keeps: *keeps, limit: *limit, late: *late })
    }

    fn timed_out(&self) -> Error {
        self.shared.timed_out(self.limit)
    }
}

/// A publisher's wait for room on the way to other hosts. No lock of the publisher is held
/// meanwhile.
pub(crate) struct NetworkWait {
    shared: Arc<WriterState>,
    worker: Arc<NetworkWorker>,
    threshold: WakeThreshold,
    keeps: bool,
    limit: Duration,
    late: Late,
}

impl NetworkWait {
    /// Waits until there is room, at most until the publisher's limit has passed since `begin`.
    /// False if the publisher must go on regardless: the subscribers that hold it up are passed
    /// over.
    ///
    /// # Errors
    /// [`Error::ReliableTimeout`].
    #[cold]
    pub(crate) fn wait(&self, begin: Instant) -> Result<bool, Error> {
        let NetworkWait { shared, threshold, .. } = self;
        let is_there = || shared.flow.has_in(threshold) || !shared.is_wanted(self.keeps);
        loop {
            let left = self.limit.saturating_sub(begin.elapsed());
            let slice = cancel::slice(left);
            if shared.flow.wait(slice, Some(*threshold), is_there) {
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
        let NetworkWait { shared, worker, .. } = self;
        let Some(writer) = shared.with_writer(Writer::guid) else { return };
        for (reader, count, is_new) in shared.flow.pass_over_full() {
            let message = FlowMessage { writer, reader, kind: FlowKind::Late, count };
            worker.queue.push(Task::Send(message));
            if is_new {
                shared.report_passed_over(&reader);
            }
        }
        // Each is passed over once, so this ends.
        while !is_there() {
            let Some(reader) = shared.with_writer(Writer::pass_over).flatten() else { return };
            if shared.flow.pass_over_silent(reader) {
                shared.report_passed_over(&reader);
            }
        }
    }
}

impl Drop for NetworkWriter {
    fn drop(&mut self) {
        if self.worker.is_forked() {
            return;
        }
        if self.window.is_some() {
            // Published samples may not have arrived, and would be lost with the writer.
            self.wait_for_acknowledgements(self.limit);
        }
        let mut output = lock(&self.shared.output);
        output.closed = true;
        drop(output.writer.take());
        drop(output);
        self.worker.apply_pending();
    }
}

impl Output {
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

impl WriterState {
    /// Whether samples must be written. `keeps`: also for late subscribers.
    #[inline]
    fn is_wanted(&self, keeps: bool) -> bool {
        // ORDER: Acquire pairs with the release in `refresh`; nothing else depends on it.
        keeps || self.wanted.load(Ordering::Acquire) > 0
    }

    /// `None` while there is none. It is not kept during the wait of a publish: the interface may
    /// go then, and the writer with it.
    fn with_writer<R>(&self, act: impl FnOnce(&Writer) -> R) -> Option<R> {
        lock(&self.output).writer.as_ref().map(|bound| act(&bound.writer))
    }

    fn timed_out(&self, waited: Duration) -> Error {
        let matches = lock(&self.matches);
        let is_slow = |each: &RemoteSubscriber| self.flow.is_full(&each.guid);
        let slow = matches.values().find(|each| is_slow(each));
        let some = slow.or_else(|| matches.values().find(|each| each.reliable));
        let subscriber = some.map_or(0, |each| each.endpoint);
        Error::ReliableTimeout { topic: self.dds.info.topic.clone(), subscriber, pid: 0, waited }
    }

    /// Opens a writer if there is a way to other hosts now, with the samples kept for them.
    pub(super) fn bind(self: &Arc<Self>, session: &Session) -> Result<(), Error> {
        let watch = WriterListener { shared: Arc::downgrade(self), queue: session.queue.clone() };
        let participant = &session.participant;
        let writer =
            Writer::create(participant, &self.settings, Box::new(watch)).map_err(network_error)?;
        let guid = writer.guid();
        let mut output = lock(&self.output);
        if output.closed {
            return Ok(());
        }
        for (head, payload) in &output.kept {
            self.flow.enter((head.len() + payload.len()) as u64);
            writer.write(head, payload, self.flow.clone(), || {}).map_err(network_error)?;
        }
        output.writer = Some(BoundWriter { writer: Arc::new(writer), guid });
        Ok(())
    }

    /// Closes the writer: the way to other hosts has gone.
    pub(super) fn unbind(&self) {
        let bound = lock(&self.output).writer.take();
        drop(bound);
        lock(&self.ready).0.clear();
        self.update(BTreeMap::new());
    }

    /// Handles a message of a reader elsewhere. Called by the node's thread.
    pub(super) fn receive(&self, message: &FlowMessage, host: Host) {
        if lock(&self.output).writer.as_ref().is_none_or(|bound| bound.guid != message.writer) {
            return;
        }
        match message.kind {
            // A publisher does not wait for a reader that has not reported that it is ready.
            FlowKind::Full if !lock(&self.ready).0.contains(&message.reader) => {}
            FlowKind::Full => self.flow.set_full(message.reader, message.count),
            FlowKind::Room => {
                if self.flow.set_room(&message.reader) {
                    self.report_caught_up(&message.reader);
                }
            }
            FlowKind::Late => {} // to readers
            FlowKind::Ready => {
                if lock(&self.ready).0.insert(message.reader) {
                    self.refresh(host);
                }
            }
        }
    }

    /// Its GUID in DDS; `None` while there is none.
    pub(super) fn guid(&self) -> Option<Guid> {
        lock(&self.output).writer.as_ref().map(|bound| bound.guid)
    }

    /// The known readers.
    pub(super) fn readers(&self) -> Vec<Guid> {
        lock(&self.matches).values().map(|each| each.guid).collect()
    }

    /// Updates the readers. Called by the node's thread.
    pub(super) fn refresh(&self, host: Host) {
        let Some(BoundWriter { writer, .. }) = lock(&self.output).writer.clone() else { return };
        let (mut found, mut there) = (BTreeMap::new(), BTreeSet::new());
        let mut ready = lock(&self.ready);
        let _ = writer.visit_matched(&mut |endpoint: Endpoint| {
            there.insert(endpoint.guid);
            let discovered = Discovered::read(&endpoint, false, host);
            let buffer_bytes = match &discovered {
                Discovered::OtherHost(data) if ready.0.contains(&endpoint.guid) => {
                    data.buffer_bytes
                }
                Discovered::Dds(theirs) if !self.dds.is_foreign(theirs) => u64::MAX,
                _ => return,
            };
            let theirs = discovered.info().expect("it is elsewhere");
            if let Some(mismatch) = self.dds.mismatch(theirs) {
                return self.dds.report_mismatch(theirs.id, mismatch);
            }
            let each = RemoteSubscriber {
                endpoint: theirs.id,
                guid: endpoint.guid,
                buffer_bytes,
                reliable: theirs.qos.reliability == Reliability::Reliable,
                reported: false,
            };
            found.insert(endpoint.handle, each);
        });
        let matches = lock(&self.matches);
        ready.forget_the_gone(&there, |reader| matches.values().any(|each| each.guid == *reader));
        drop((ready, matches));
        self.update(found);
    }

    /// Reports the subscribers that have come and gone, given the current `found`.
    fn update(&self, found: BTreeMap<u64, RemoteSubscriber>) {
        let mut matches = lock(&self.matches);
        let mut events = Vec::new();
        for (_, RemoteSubscriber { endpoint, .. }) in
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
        self.flow.retain(|reader| matches.values().any(|each| each.guid == *reader));
        // ORDER: Release, before the match is reported: a user that knows of the match publishes to
        // it.
        self.wanted.store(matches.len() as u32, Ordering::Release);
        drop(matches);
        events.into_iter().for_each(|event| self.dds.handle.report(event));
        self.flow.stir();
    }

    fn report_passed_over(&self, reader: &Guid) {
        if let Some(endpoint) = self.endpoint(reader) {
            self.dds.handle.report(Event::PassedOver { endpoint, pid: 0 });
        }
    }

    fn report_caught_up(&self, reader: &Guid) {
        if let Some(endpoint) = self.endpoint(reader) {
            self.dds.handle.report(Event::CaughtUp { endpoint, pid: 0 });
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
        let small = matches.values_mut().filter(|each| {
            !each.reported && bytes > each.buffer_bytes && !(reliable && each.reliable)
        });
        for each in small {
            each.reported = true;
            let remedy = format!(
                "its host receives {} B at once: on it, sysctl -w net.core.rmem_max={}, or make the \
                 topic reliable on both sides",
                each.buffer_bytes,
                (2 * bytes).next_power_of_two()
            );
            self.dds.handle.report(Event::BufferTooSmall {
                endpoint: each.endpoint,
                bytes,
                remedy,
            });
        }
        let unreported = matches.values().filter(|each| !each.reported);
        let least = unreported.map(|each| each.buffer_bytes).min().unwrap_or(u64::MAX);
        self.buffer_bytes.store(least, Ordering::Relaxed);
    }
}

/// The assumed capacity of a host's sockets, as a maximum and for hosts that do not announce it.
/// Half of it may be under way: more would not fill a robot's link better, and later samples would
/// wait longer behind it.
const SOCKET_BYTES: u64 = 1 << 20;

/// Readers that sent a message before they are found; beyond this number a message is forgotten and must
/// be repeated.
const EARLY_MAX: usize = 1_024;

/// The object that CycloneDDS calls.
struct WriterListener {
    shared: Weak<WriterState>,
    queue: Arc<TaskQueue>,
}

impl Listener for WriterListener {
    fn matched(&self, _count: u32) {
        self.queue.push(Task::Writer(self.shared.clone()));
    }

    fn incompatible(&self, policy: u32) {
        self.queue.push(Task::WriterPolicy(self.shared.clone(), policy));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unmatched_readers_are_kept_up_to_a_maximum() {
        let name = |number: u64| [number.to_be_bytes(), [7; 8]].concat().try_into().unwrap();
        let (there, left): (Guid, Guid) = (name(1 << 40), name(2 << 40));
        let mut ready = ReadyReaders::default();
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
