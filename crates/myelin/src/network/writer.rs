//! The way of a publisher's samples to other hosts, and the limit of samples under way.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};
use std::time::{Duration, Instant};

use myelin_dds::{Endpoint, Guid, History, Listener, Settings, Writer, check_topic_name};
use myelin_shm::data_plane::publication::SampleHold;
use myelin_shm::node as shm;
use myelin_shm::topic::{Late, PublisherQos, Reliability};
use myelin_shm::waiting::cancel;

use super::dds_endpoint::DdsEndpoint;
use super::flow_channel::{FlowKind, FlowMessage};
use super::flow_control::{FlowControl, WakeThreshold, Window};
use super::host::Kind;
use super::lane::{
    Delivery, Frame, Head, InFlight, LANE_BYTES_MIN, Link, Notice, PREFIX_BYTES, Pool,
};
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
    /// Whether samples are also written without readers: for late subscribers. They never go by the
    /// lane, which late subscribers do not have yet.
    keeps: bool,
    limit: Duration,
    late: Late,
    worker: Arc<NetworkWorker>,
    /// How its samples go by the lane, and memory for those that wait.
    lane_delivery: Delivery,
    pool: Arc<Pool>,
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
    /// Whether a sample was large enough for the lane.
    has_large: AtomicBool,
    /// Whether they go by the lane.
    has_lane: AtomicBool,
    /// How many readers DDS has matched; more may come at any moment.
    dds_matched: AtomicU32,
    /// Locked before `output`.
    lanes: Mutex<Lanes>,
}

/// Which readers take samples by the lane.
#[derive(Default)]
struct Lanes {
    /// By which connection.
    subscribed: BTreeMap<Guid, Arc<Link>>,
    /// The readers elsewhere, and how many DDS had matched, with those of this host.
    readers: BTreeSet<Guid>,
    matched: u32,
    /// Those that know of the large samples.
    told: BTreeSet<Guid>,
}

impl Lanes {
    /// The connections, if all readers take the samples by them.
    fn complete(&self) -> Option<LaneOutput> {
        let mut links: Vec<Arc<Link>> = Vec::new();
        for reader in &self.readers {
            let link = self.subscribed.get(reader)?;
            if !links.iter().any(|known| Arc::ptr_eq(known, link)) {
                links.push(link.clone());
            }
        }
        let (readers, matched) = (self.readers.clone(), self.matched);
        (!links.is_empty()).then_some(LaneOutput { links, readers, matched })
    }

    /// Whether any reader uses this connection.
    fn uses(&self, link: &Arc<Link>) -> bool {
        self.subscribed.values().any(|its| Arc::ptr_eq(its, link))
    }

    /// The connection with the oldest unacknowledged sample of the writer.
    fn slowest(&self, writer: &Guid) -> Option<Arc<Link>> {
        let oldest = |link: &Arc<Link>| Some((link.oldest(writer)?, link.clone()));
        let all = self.subscribed.values().filter_map(oldest);
        all.min_by_key(|(number, _)| *number).map(|(_, link)| link)
    }

    /// Removes the readers of a connection.
    fn remove(&mut self, link: &Arc<Link>) -> Vec<Guid> {
        self.subscribed.extract_if(.., |_, its| Arc::ptr_eq(its, link)).map(|(it, _)| it).collect()
    }
}

/// The way of all samples to all readers, during a run.
struct LaneOutput {
    /// One for each node.
    links: Vec<Arc<Link>>,
    readers: BTreeSet<Guid>,
    /// It holds while DDS has matched so many readers: with another one, samples go by DDS.
    matched: u32,
}

impl LaneOutput {
    fn is_same(&self, other: &LaneOutput) -> bool {
        let is_same = |(one, other): (&Arc<Link>, &Arc<Link>)| Arc::ptr_eq(one, other);
        self.links.len() == other.links.len()
            && self.links.iter().zip(&other.links).all(is_same)
            && (&self.readers, self.matched) == (&other.readers, other.matched)
    }
}

/// The destination of samples.
#[derive(Default)]
struct Output {
    /// `None` while no interface leads to other hosts. Outside this lock only the node's thread may
    /// hold it, while it is busy; see [`NetworkWorker::apply_pending`].
    writer: Option<BoundWriter>,
    /// How many messages it has written: the number of the last one in DDS.
    written: u64,
    /// The newest samples, for the readers of the next writer: each with its head and payload.
    kept: VecDeque<(Vec<u8>, Vec<u8>)>,
    kept_max: usize,
    /// `None`: everything goes by DDS.
    lane: Option<LaneOutput>,
    /// How often the lane has begun, and how many samples it has carried.
    runs: u64,
    numbered: u64,
    /// How many readers DDS had matched, if there are some, and all are Myelin's.
    all_of_myelin: Option<u32>,
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
    is_myelin: bool,
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
        let dds = DdsEndpoint::new(spec, shm::EndpointHandle::clone(publisher))?;
        let kind = Kind::of(&dds.info.qos);
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
            has_large: AtomicBool::new(false),
            has_lane: AtomicBool::new(false),
            dds_matched: AtomicU32::new(0),
            lanes: Mutex::default(),
        });
        worker.add_writer(&shared)?;
        let window = reliable.then(|| Window::new(depth, history, memory_max));
        let (worker, keeps, pool) = (worker.clone(), history > 0, Arc::default());
        let lane_delivery = Delivery { is_acknowledged: reliable, depth: depth as usize };
        Ok(NetworkWriter { shared, wire, window, keeps, limit, late, worker, lane_delivery, pool })
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

    /// Whether it wants to hold a sample of so many bytes, instead of a copy of it.
    #[inline]
    pub(crate) fn holds(&self, bytes: usize) -> bool {
        // ORDER: Relaxed: without a hold a copy is made.
        bytes >= LANE_BYTES_MIN && self.shared.has_lane.load(Ordering::Relaxed)
    }

    /// Sends a published sample, if a subscriber on another host wants it: its held memory, or a copy.
    #[inline]
    pub(crate) fn write(&self, payload: &[u8], hold: Option<SampleHold>) -> Result<(), Error> {
        if self.is_wanted() { self.send(payload, hold) } else { Ok(()) }
    }

    /// Waits until everything sent is acknowledged, for at most `limit`. False if the time is over.
    pub(crate) fn wait_for_acknowledgements(&self, limit: Duration) -> bool {
        let bound = lock(&self.shared.output).writer.clone();
        let Some(BoundWriter { writer, .. }) = bound else { return true };
        let flow = &self.shared.flow;
        // What a history keeps counts as under way, and never goes by the lane.
        let is_off_lane = || !self.lane_delivery.is_acknowledged || self.keeps || flow.is_idle();
        let begin = Instant::now();
        loop {
            let left = limit.saturating_sub(begin.elapsed());
            let slice = if cancel::is_cancelled() { Duration::ZERO } else { cancel::slice(left) };
            if writer.wait_for_acknowledgements(slice) && flow.wait(slice, None, is_off_lane) {
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

    fn send(&self, payload: &[u8], hold: Option<SampleHold>) -> Result<(), Error> {
        let head = self.wire.head(payload.len())?;
        let bytes = (head.bytes().len() + payload.len()) as u64;
        let is_large = payload.len() >= LANE_BYTES_MIN && !self.keeps;
        // ORDER: Relaxed: the task orders what follows.
        if is_large && !self.shared.has_large.load(Ordering::Relaxed) {
            self.begin_lane();
        }
        let mut output = lock(&self.shared.output);
        if self.shared.takes_lane(&mut output) {
            self.send_by_lane(&mut output, head.bytes(), payload, hold);
            return Ok(());
        }
        if payload.len() as u64 > self.shared.buffer_bytes.load(Ordering::Relaxed) {
            self.shared.warn(payload.len() as u64, self.window.is_some());
        }
        if self.keeps {
            output.keep(head.bytes(), payload);
        }
        let after = self.shared.after_lane(&output);
        let Some(BoundWriter { writer, .. }) = &output.writer else {
            // Kept samples count for the window, even while nothing is sent.
            if let Some(window) = &self.window {
                window.enter(bytes, Instant::now());
            }
            return Ok(());
        };
        let flow = &self.shared.flow;
        let bytes = bytes + after.map_or(0, |after| after.len() as u64);
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
        let written = match after {
            None => writer.write(head.bytes(), payload, flow.clone(), hold_back),
            Some(after) => {
                let head = [&after, head.bytes()].concat();
                writer.write(&head, payload, flow.clone(), hold_back)
            }
        };
        output.written += u64::from(written.is_ok());
        self.outcome(output, written)
    }

    /// Sends a sample by the lane. TCP keeps the pace.
    fn send_by_lane(
        &self,
        output: &mut Output,
        head: &[u8],
        payload: &[u8],
        hold: Option<SampleHold>,
    ) {
        let Output { writer: Some(bound), lane: Some(lane), numbered, .. } = output else { return };
        *numbered += 1;
        let head = Head::new(head).expect("shorter than any");
        let sample = InFlight::new(bound.guid, *numbered, head, payload.len(), &self.shared.flow);
        if let Some(hold) = hold {
            sample.hold(hold);
        }
        for link in &lane.links {
            link.send(&sample, payload, self.lane_delivery, &self.pool);
        }
    }

    /// Has the readers take the samples by the lane, and waits for them a little: by DDS, a few
    /// large samples would take longer, and those behind them wait for as long again.
    #[cold]
    fn begin_lane(&self) {
        let shared = &self.shared;
        shared.has_large.store(true, Ordering::Relaxed);
        self.worker.queue.push(Task::Writer(Arc::downgrade(shared)));
        let limit = if self.window.is_some() { self.limit.min(LANE_LIMIT) } else { LANE_LIMIT };
        let has_lane = || shared.has_lane.load(Ordering::SeqCst);
        if self.worker.bulk_lane.is_some() {
            shared.flow.wait(limit, None, has_lane);
        }
    }

    /// The result of a publish, of that of DDS.
    fn outcome(
        &self,
        output: MutexGuard<'_, Output>,
        written: Result<(), myelin_dds::Error>,
    ) -> Result<(), Error> {
        match written {
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
            let by_dds = shared.with_writer(Writer::pass_over).flatten();
            let readers = match by_dds {
                Some(reader) => {
                    shared.end_lane(|lanes| lanes.subscribed.get(&reader).cloned());
                    vec![reader]
                }
                // They take too long for the samples of the lane.
                None => shared.end_lane(|lanes| lanes.slowest(&writer)),
            };
            if readers.is_empty() {
                return;
            }
            for reader in readers {
                if shared.flow.pass_over_silent(reader) {
                    shared.report_passed_over(&reader);
                }
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
        self.shared.end_lanes();
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
        let writer = Writer::create(participant, &self.settings, Box::new(watch))
            .map_err(|error| session.endpoint_error(error))?;
        let guid = writer.guid();
        let mut output = lock(&self.output);
        if output.closed {
            return Ok(());
        }
        for (head, payload) in &output.kept {
            self.flow.enter((head.len() + payload.len()) as u64);
            writer.write(head, payload, self.flow.clone(), || {}).map_err(network_error)?;
        }
        output.written = output.kept.len() as u64;
        output.writer = Some(BoundWriter { writer: Arc::new(writer), guid });
        Ok(())
    }

    /// Closes the writer: the way to other hosts has gone.
    pub(super) fn unbind(&self) {
        self.end_lanes();
        let bound = lock(&self.output).writer.take();
        drop(bound);
        lock(&self.ready).0.clear();
        self.update(BTreeMap::new());
    }

    /// Handles a message of a reader elsewhere. Called by the node's thread.
    pub(super) fn receive(&self, message: &FlowMessage, session: &Session) {
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
            FlowKind::Late | FlowKind::Large => {} // to readers
            FlowKind::Ready => {
                if lock(&self.ready).0.insert(message.reader) {
                    self.refresh(session);
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
    pub(super) fn refresh(&self, session: &Session) {
        let Some(BoundWriter { writer, .. }) = lock(&self.output).writer.clone() else { return };
        let (mut found, mut there, mut elsewhere) =
            (BTreeMap::new(), BTreeSet::new(), BTreeSet::new());
        let mut has_foreign = false;
        let mut ready = lock(&self.ready);
        let _ = writer.visit_matched(&mut |endpoint: Endpoint| {
            there.insert(endpoint.guid);
            let discovered = Discovered::read(&endpoint, false, session.host);
            if discovered != Discovered::ThisHost {
                elsewhere.insert(endpoint.guid);
                has_foreign |= !matches!(discovered, Discovered::OtherHost(_));
            }
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
                is_myelin: matches!(discovered, Discovered::OtherHost(_)),
                reliable: theirs.qos.reliability == Reliability::Reliable,
                reported: false,
            };
            found.insert(endpoint.handle, each);
        });
        let matches = lock(&self.matches);
        ready.forget_the_gone(&there, |reader| matches.values().any(|each| each.guid == *reader));
        drop((ready, matches));
        let all_of_myelin = (!has_foreign && !there.is_empty()).then_some(there.len() as u32);
        lock(&self.output).all_of_myelin = all_of_myelin;
        self.refresh_lanes(elsewhere, there.len() as u32, &found, session);
        self.update(found);
    }

    /// Whether samples go by the lane now. If DDS has matched another reader, the run is over.
    fn takes_lane(&self, output: &mut Output) -> bool {
        // ORDER: Acquire pairs with the release in `matched`; nothing else depends on it.
        let matched = self.dds_matched.load(Ordering::Acquire);
        match &output.lane {
            Some(lane) if lane.matched == matched => return true,
            Some(_) => self.pause(output),
            None => {}
        }
        false
    }

    /// Begins a run, behind all that DDS has.
    fn begin(&self, output: &mut Output, lane: LaneOutput) {
        let Some(BoundWriter { writer, guid }) = output.writer.clone() else { return };
        let (run, number) = (output.runs + 1, output.numbered + 1);
        let fence = Notice::fence(run, number);
        self.flow.enter(fence.len() as u64);
        if writer
            .write(&fence, &[], self.flow.clone(), || writer.request_acknowledgements())
            .is_err()
        {
            return; // everything goes on by DDS
        }
        output.written += 1;
        output.runs = run;
        let begun = Frame::Run { writer: guid, run, fence: output.written, number };
        lane.links.iter().for_each(|link| link.control(&begun));
        output.lane = Some(lane);
        self.has_lane.store(true, Ordering::SeqCst);
    }

    /// What goes in front of a sample by DDS, once the lane has carried some: how many.
    fn after_lane(&self, output: &Output) -> Option<[u8; PREFIX_BYTES]> {
        // ORDER: as in `takes_lane`. A DDS program would not understand it.
        let is_understood =
            || output.all_of_myelin == Some(self.dds_matched.load(Ordering::Acquire));
        (output.numbered > 0 && is_understood()).then(|| Notice::after(output.numbered))
    }

    /// Ends the run, if there is one: what follows goes by DDS.
    fn pause(&self, output: &mut Output) {
        self.has_lane.store(false, Ordering::SeqCst);
        let Output { writer: Some(bound), lane: Some(lane), runs, .. } = output else { return };
        let paused = Frame::Paused { writer: bound.guid, run: *runs };
        lane.links.iter().for_each(|link| link.control(&paused));
        output.lane = None;
    }

    /// Updates the readers of the lane, and tells new ones of the large samples.
    fn refresh_lanes(
        &self,
        readers: BTreeSet<Guid>,
        matched: u32,
        ready: &BTreeMap<u64, RemoteSubscriber>,
        session: &Session,
    ) {
        let Some(writer) = self.guid() else { return };
        let mut lanes = lock(&self.lanes);
        let gone: Vec<_> =
            lanes.subscribed.extract_if(.., |reader, _| !readers.contains(reader)).collect();
        lanes.told.retain(|reader| readers.contains(reader));
        (lanes.readers, lanes.matched) = (readers, matched);
        self.apply(&lanes, NOTHING);
        let unused = gone.into_iter().filter(|(_, link)| !lanes.uses(link));
        let unused: Vec<Arc<Link>> = unused.map(|(_, link)| link).collect();
        if self.has_large.load(Ordering::Relaxed) && session.lane.is_some() {
            for reader in ready.values().filter(|it| it.is_myelin).map(|it| it.guid) {
                if lanes.told.insert(reader) {
                    session.send(FlowMessage { writer, reader, kind: FlowKind::Large, count: 0 });
                }
            }
        }
        drop(lanes);
        unused.iter().for_each(|link| link.end(&writer, false));
    }

    /// Makes the lanes those of the publisher, from its next sample on. In between, while everything
    /// goes by DDS, `act` may send.
    fn apply(&self, lanes: &Lanes, act: Option<impl FnOnce(&mut Output)>) {
        let mut output = lock(&self.output);
        let complete = lanes.complete();
        let is_same = match (&output.lane, &complete) {
            (Some(now), Some(next)) => now.is_same(next),
            (None, None) => true,
            _ => false,
        };
        if act.is_some() || !is_same {
            self.pause(&mut output);
            act.into_iter().for_each(|act| act(&mut output));
            complete.into_iter().for_each(|lane| self.begin(&mut output, lane));
        }
        drop(output);
        self.flow.stir();
    }

    /// A reader takes the samples by this connection from now on. False if it means another writer.
    /// Called by the node's thread, as the next two.
    pub(super) fn lane_subscribed(&self, link: &Arc<Link>, writer: &Guid, reader: &Guid) -> bool {
        if self.guid() != Some(*writer) {
            return false;
        }
        let mut lanes = lock(&self.lanes);
        // A fence must not be lost.
        let is_waited_for = || self.with_writer(|writer| writer.is_waited_for(reader));
        let is_lost = self.flow.is_silent(reader) && is_waited_for() == Some(false);
        if !lanes.readers.contains(reader) || is_lost {
            return false;
        }
        let earlier = lanes.subscribed.insert(*reader, link.clone());
        let earlier = earlier.filter(|earlier| !lanes.uses(earlier));
        let start = |output: &mut Output| {
            earlier.iter().for_each(|earlier| self.send_again(output, earlier));
            let (writer, reader, run) = (*writer, *reader, output.runs);
            link.control(&Frame::Started { writer, reader, run });
        };
        self.apply(&lanes, Some(start));
        true
    }

    /// A reader does not want them any more.
    pub(super) fn lane_unsubscribed(&self, link: &Arc<Link>, writer: &Guid, reader: &Guid) {
        if self.guid() != Some(*writer) {
            return;
        }
        let mut lanes = lock(&self.lanes);
        if lanes.subscribed.get(reader).is_some_and(|its| Arc::ptr_eq(its, link)) {
            lanes.subscribed.remove(reader);
        }
        self.apply(&lanes, NOTHING);
        let is_used = lanes.uses(link);
        drop(lanes);
        if !is_used {
            link.end(writer, false);
        }
    }

    /// A connection has gone: samples that it may not have carried are sent again by DDS.
    pub(super) fn lane_closed(&self, link: &Arc<Link>) {
        let mut lanes = lock(&self.lanes);
        if !lanes.remove(link).is_empty() {
            self.apply(&lanes, Some(|output: &mut Output| self.send_again(output, link)));
        }
    }

    fn send_again(&self, output: &mut Output, link: &Arc<Link>) {
        let Some(BoundWriter { writer, guid }) = output.writer.clone() else { return };
        for sample in link.take_unacknowledged(&guid) {
            let Some(payload) = sample.payload() else { continue };
            let head = [&Notice::resent(sample.number), sample.head.bytes()].concat();
            // If it fails, the sample is lost as any other that DDS cannot take.
            let written = writer.write(&head, payload, sample.clone(), || {});
            output.written += u64::from(written.is_ok());
        }
    }

    /// Ends a connection for this writer, because a reader does not keep up; returns its readers. They
    /// ask again.
    fn end_lane(&self, choose: impl FnOnce(&Lanes) -> Option<Arc<Link>>) -> Vec<Guid> {
        let Some(writer) = self.guid() else { return Vec::new() };
        let mut lanes = lock(&self.lanes);
        let Some(link) = choose(&lanes) else { return Vec::new() };
        let readers = lanes.remove(&link);
        self.apply(&lanes, NOTHING);
        drop(lanes);
        link.end(&writer, true);
        readers
    }

    /// Ends all connections for this writer, which ends.
    fn end_lanes(&self) {
        let writer = self.guid();
        let lanes = std::mem::take(&mut *lock(&self.lanes));
        self.apply(&Lanes::default(), NOTHING);
        for link in lanes.subscribed.values() {
            if let Some(writer) = &writer {
                link.end(writer, false);
            }
        }
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

/// How long a publisher's first large sample waits for the lane: some round trips on any link.
const LANE_LIMIT: Duration = Duration::from_millis(100);

/// For [`WriterState::apply`].
const NOTHING: Option<fn(&mut Output)> = None;

/// Readers that sent a message before they are found; beyond this number a message is forgotten and must
/// be repeated.
const EARLY_MAX: usize = 1_024;

/// The object that CycloneDDS calls.
struct WriterListener {
    shared: Weak<WriterState>,
    queue: Arc<TaskQueue>,
}

impl Listener for WriterListener {
    fn matched(&self, count: u32) {
        if let Some(shared) = self.shared.upgrade() {
            // ORDER: Release pairs with the acquire in `takes_lane`; nothing else depends on it.
            shared.dds_matched.store(count, Ordering::Release);
        }
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
