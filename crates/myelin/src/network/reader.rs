//! The way of other hosts' samples to a subscriber. A reader takes them, and a proxy for
//! each publisher puts them into the subscriber's queue, in the receiving thread.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, Weak};
use std::time::Duration;

use myelin_dds::{Endpoint, Guid, History, Listener, Message, Reader, Settings, check_topic_name};
use myelin_shm::counters::LossCause;
use myelin_shm::data_plane::publication::SlotLoan;
use myelin_shm::data_plane::subscription::SubscriptionState;
use myelin_shm::node as shm;
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos};

use super::backlog::{Backlog, give_way};
use super::dds_endpoint::DdsEndpoint;
use super::flow_channel::{FlowKind, FlowMessage};
use super::host::{Host, Kind};
use super::lane::{Arrived, LaneInbox, LaneSample, LaneSubscription, Next, Notice, PREFIX_BYTES};
use super::pending_samples::PendingSamples;
use super::session::Session;
use super::task_queue::{Task, TaskQueue};
use super::user_data::Discovered;
use super::wire::Wire;
use super::worker::NetworkWorker;
use super::{Spec, lock, network_error};
use crate::{EndpointId, EndpointInfo, Error, Event, Location};

/// The reader of a subscriber.
pub(crate) struct NetworkReader {
    shared: Arc<ReaderState>,
    worker: Arc<NetworkWorker>,
}

/// The part that the node's thread and CycloneDDS's threads use, too.
pub(super) struct ReaderState {
    pub(super) dds: DdsEndpoint,
    wire: Wire,
    qos: SubscriberQos,
    memory_max: u64,
    user_data: Vec<u8>,
    groups: Vec<Mutex<Group>>,
}

/// Publishers with the same settings, each group with a reader of its own.
struct Group {
    kinds: Vec<Kind>,
    /// Whether it has one: the first group always, another one from its first publisher on.
    is_needed: bool,
    request: Request,
    connection: Connection,
    /// By handle.
    publishers: BTreeMap<u64, RemotePublisher>,
    /// Waiting samples: there is no room yet for the first one, or its publisher is still unknown.
    waiting: PendingSamples<Received>,
    /// How many samples have ever waited.
    waited: u64,
    /// Whether there is no room for the next sample. The node's thread then checks again.
    full: bool,
    /// The number of its `Full` messages to its publishers.
    full_count: u8,
    /// The counts of publishers that have gone: a publisher that comes back goes on with them.
    gone: Vec<(Guid, Counts)>,
    /// `None`: the subscriber has gone.
    subscription: Option<Arc<SubscriptionState>>,
}

/// What a reader requests of its publishers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Request {
    delivery: Delivery,
    /// Whether they send samples from before the match.
    history: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Delivery {
    BestEffort,
    /// Lost samples are sent again.
    Resent,
    /// And the publisher waits for the subscriber.
    Awaited,
}

/// A group's connection to other hosts.
enum Connection {
    /// No interface leads to them.
    Closed,
    /// The reader is just being made, and may receive.
    Opening,
    Open {
        /// Outside the group's lock only the node's thread may hold it, while it is busy; see
        /// [`NetworkWorker::apply_pending`].
        reader: Arc<Reader>,
        guid: Guid,
    },
}

/// What has become of a sample.
enum Passed {
    /// It is in the subscriber's queue, or lost.
    On,
    /// It is in the queue, and its publisher is no longer late, which it must learn.
    CaughtUp,
    /// It has to wait, for room or until its publisher is known.
    Not(Received),
}

/// A sample that has come.
struct Received {
    /// The handle of its publisher.
    writer: u64,
    /// Its number in DDS, if it is not counted yet.
    sequence: Option<u64>,
    /// Its number in the lane, if it is not counted yet.
    number: Option<u64>,
    /// The number of the last one in the lane before it, if that is not counted yet.
    after: Option<u64>,
    body: Body,
}

enum Body {
    Message(Message),
    /// Behind a notice in the message.
    Noticed(Message),
    Lane(LaneSample),
    /// There is no sample at this place of the count.
    Nothing,
}

impl Received {
    /// A message of a publisher that sends `notices`, or does not.
    fn of(message: Message, notices: bool) -> Received {
        let (writer, sequence) = (message.writer(), message.sequence());
        let sequence = Some(sequence).filter(|known| *known > 0);
        let notice = if notices { Notice::of(message.bytes()) } else { None };
        let (number, after, body) = match notice {
            None => (None, None, Body::Message(message)),
            Some(Notice::Resent(number)) => (Some(number), None, Body::Noticed(message)),
            Some(Notice::After(number)) => (None, Some(number), Body::Noticed(message)),
            Some(Notice::Fence { .. }) => (None, None, Body::Nothing),
        };
        Received { writer, sequence, number, after, body }
    }

    fn next(writer: u64, next: Next<Message, LaneSample>) -> Received {
        let (sequence, number, body) = match next {
            Next::Message(message) => return Received::of(message, true),
            Next::Sample(number, sample) => (None, Some(number), Body::Lane(sample)),
            Next::Fence(sequence) => (Some(sequence), None, Body::Nothing),
        };
        Received { writer, sequence, number, after: None, body }
    }

    /// The bytes that it takes.
    fn size(&self) -> usize {
        match &self.body {
            Body::Message(message) | Body::Noticed(message) => message.bytes().len(),
            Body::Lane(sample) => sample.payload.len(),
            Body::Nothing => 0,
        }
    }

    /// Its payload; `None` if it has another type or byte order.
    fn payload(&self, wire: &Wire) -> Option<&[u8]> {
        let message = match &self.body {
            Body::Message(message) => message.bytes(),
            Body::Noticed(message) => message.bytes().get(PREFIX_BYTES..)?,
            Body::Lane(LaneSample { head, payload }) => {
                let expected = wire.head(payload.len()).ok()?;
                return (expected.bytes() == head.bytes()).then_some(payload);
            }
            Body::Nothing => return None,
        };
        wire.payload(message).map(|payload| &message[payload])
    }
}

/// The numbers of a publisher's newest sample in DDS and by the lane; `None` before the first one. A
/// gap is a loss on the way.
#[derive(Clone, Copy, Debug, Default)]
struct Counts {
    sequence: Option<u64>,
    number: Option<u64>,
}

impl Counts {
    /// Whether the lane has brought it before, or it is from before the match.
    fn has(&self, received: &Received) -> bool {
        let is_resent = matches!(received.body, Body::Noticed(_));
        is_resent && received.number.is_some_and(|it| self.number.is_none_or(|newest| it <= newest))
    }

    /// Counts a sample, and returns how many before it are lost.
    fn count(&mut self, received: &mut Received) -> u64 {
        let Received { sequence, number, after, .. } = received;
        let mut lost = gap(&mut self.sequence, sequence.take());
        if let (Some(after), Some(newest)) = (after.take(), &mut self.number) {
            lost += after.saturating_sub(*newest);
            *newest = after.max(*newest);
        }
        lost + gap(&mut self.number, number.take())
    }

    /// Whether a sample has come.
    fn is_begun(&self) -> bool {
        self.sequence.is_some() || self.number.is_some()
    }

    /// The lane begins with this number.
    fn begin_lane(&mut self, number: u64) {
        self.number.get_or_insert(number.saturating_sub(1));
    }
}

fn gap(newest: &mut Option<u64>, number: Option<u64>) -> u64 {
    let Some(number) = number else { return 0 };
    let lost = newest.map_or(0, |newest| number.saturating_sub(newest.saturating_add(1)));
    *newest = Some(number).max(*newest);
    lost
}

/// The contents of a group with a reader; the reader ends first.
struct Detached {
    _connection: Connection,
    _publishers: BTreeMap<u64, RemotePublisher>,
    waiting: PendingSamples<Received>,
}

/// A publisher.
struct RemotePublisher {
    guid: Guid,
    /// Its node, if it is Myelin's, and whether it waits for its subscribers.
    node: u64,
    is_reliable: bool,
    /// What comes by the lane, once it has announced large samples.
    lane: Option<LaneEnd>,
    /// Whether it heeds the messages of the flow topic.
    listens: bool,
    route: Route,
    /// It has ended, and the subscriber has not had room for all that it has sent.
    is_gone: bool,
    counts: Counts,
    backlog: Backlog,
    /// Whether it was asked to wait.
    waits: bool,
    /// Set when it waits no longer: samples without room are lost.
    late: Option<Late>,
}

/// The end of the lane from a publisher.
struct LaneEnd {
    inbox: LaneInbox<Message, LaneSample>,
    _subscription: LaneSubscription,
}

/// The way of a publisher's samples.
enum Route {
    /// Into the subscriber's queue.
    Proxy(Box<shm::Proxy>),
    /// There was no room for it; it is tried again.
    Declined,
    /// They are not for us: it is on this host, or does not match, or sends what is not understood.
    None,
}

/// A publisher for which the subscriber is late.
#[derive(Clone, Copy, Debug, Default)]
struct Late {
    /// How many samples were lost since the last one that there was room for.
    lost: u64,
    /// How many samples in a row there was room for.
    taken: u32,
}

impl NetworkReader {
    pub(super) fn create(
        worker: &Arc<NetworkWorker>,
        spec: &Spec,
        subscriber: &shm::Subscriber,
    ) -> Result<NetworkReader, Error> {
        let wire = Wire::of(&spec.dds.encoding, spec.shape)?;
        let dds = DdsEndpoint::new(spec, shm::EndpointHandle::clone(subscriber))?;
        check_topic_name(&dds.topic).map_err(network_error)?;
        let groups = groups(spec, dds.is_private, subscriber.reader.shared());
        let shared = Arc::new(ReaderState {
            wire,
            qos: spec.subscriber,
            memory_max: spec.publisher.memory_max,
            user_data: worker.user_data(&dds.info),
            dds,
            groups: groups.into_iter().map(Mutex::new).collect(),
        });
        let reader = NetworkReader { shared, worker: worker.clone() };
        worker.add_reader(&reader.shared)?;
        Ok(reader)
    }
}

impl Drop for NetworkReader {
    fn drop(&mut self) {
        if self.worker.is_forked() {
            // In a child of `fork`, other threads may have held its locks.
            for group in &self.shared.groups {
                if let Ok(mut group) = group.try_lock() {
                    std::mem::forget(std::mem::take(&mut group.publishers));
                }
            }
            return;
        }
        for group in &self.shared.groups {
            let mut group = lock(group);
            let (detached, subscription) = (group.detach(), group.subscription.take());
            drop(group);
            // The node's thread may be using it.
            self.worker.apply_pending();
            drop((detached, subscription));
        }
        self.worker.apply_pending();
    }
}

/// The groups of publishers that a subscriber must request separately, each with the settings that
/// it can have: reliability and history are used only if both sides want them. For a topic for all
/// DDS programs DDS itself decides which fit.
fn groups(spec: &Spec, is_private: bool, subscription: &Arc<SubscriptionState>) -> Vec<Group> {
    let wants_history = spec.subscriber.transient_local > 0;
    let delivery = match spec.subscriber.reliability {
        Reliability::Reliable => Delivery::Awaited,
        Reliability::BestEffort if spec.dds.resends => Delivery::Resent,
        Reliability::BestEffort => Delivery::BestEffort,
    };
    // What is kept for late subscribers is sent again.
    let request = |delivery: Delivery, history: bool| Request {
        delivery: if history { delivery.max(Delivery::Resent) } else { delivery },
        history,
    };
    let new = |kinds, is_needed, request| Group {
        kinds,
        is_needed,
        request,
        connection: Connection::Closed,
        publishers: BTreeMap::new(),
        waiting: PendingSamples::default(),
        waited: 0,
        full: false,
        full_count: 0,
        gone: Vec::new(),
        subscription: Some(subscription.clone()),
    };
    if !is_private {
        return vec![new(Vec::new(), true, request(delivery, wants_history))];
    }
    let mut groups: Vec<Group> = Vec::new();
    // First the group of those that offer all that the subscriber can request.
    for kind in Kind::ALL.into_iter().rev() {
        let request = match kind {
            Kind::BestEffort => request(Delivery::BestEffort, false),
            Kind::Reliable => request(delivery, false),
            Kind::History => request(delivery, wants_history),
        };
        match groups.iter_mut().find(|group| group.request == request) {
            Some(group) => group.kinds.push(kind),
            None => groups.push(new(vec![kind], groups.is_empty(), request)),
        }
    }
    groups
}

impl Group {
    /// Takes the objects that depend on the reader, to be dropped outside the lock: their drop
    /// waits for calls.
    fn detach(&mut self) -> Detached {
        self.full = false;
        // A publisher that is found again on another interface goes on with its count.
        let begun = self.publishers.values().filter(|publisher| publisher.counts.is_begun());
        self.gone.extend(begun.map(|publisher| (publisher.guid, publisher.counts)));
        self.gone.drain(..self.gone.len().saturating_sub(GONE_MAX));
        Detached {
            _connection: std::mem::replace(&mut self.connection, Connection::Closed),
            _publishers: std::mem::take(&mut self.publishers),
            waiting: std::mem::take(&mut self.waiting),
        }
    }
}

impl ReaderState {
    /// Opens readers if there is a way to other hosts now.
    pub(super) fn bind(self: &Arc<Self>, session: &Session) -> Result<(), Error> {
        (0..self.groups.len()).try_for_each(|number| self.bind_group(number, session))
    }

    fn bind_group(self: &Arc<Self>, number: usize, session: &Session) -> Result<(), Error> {
        let settings = {
            let mut group = lock(&self.groups[number]);
            if !group.is_needed || group.subscription.is_none() {
                return Ok(());
            }
            group.connection = Connection::Opening;
            self.settings(&group, session.host)
        };
        let listener = Box::new(self.listener(number, session));
        let reader = Reader::create(&session.participant, &settings, listener);
        let reader = reader.map_err(|error| session.endpoint_error(error))?;
        let guid = reader.guid().map_err(network_error)?;
        let mut group = lock(&self.groups[number]);
        if group.subscription.is_some() {
            group.connection = Connection::Open { reader: Arc::new(reader), guid };
        }
        Ok(())
    }

    fn listener(self: &Arc<Self>, number: usize, session: &Session) -> ReaderListener {
        ReaderListener { shared: Arc::downgrade(self), number, queue: session.queue.clone() }
    }

    /// Reports a discovered publisher on this topic that does not match, or opens the reader for it.
    /// Called by the node's thread.
    pub(super) fn compare(self: &Arc<Self>, publisher: &Endpoint, session: &Session) {
        let Some(theirs) = self.dds.compare(publisher, session.host) else { return };
        let kind = Kind::of(&theirs.qos);
        for (number, group) in self.groups.iter().enumerate() {
            let mut group = lock(group);
            if group.is_needed || !group.kinds.contains(&kind) {
                continue;
            }
            group.is_needed = true;
            drop(group);
            if let Err(error) = self.bind_group(number, session) {
                self.dds.report_unbound(&error);
            }
        }
    }

    /// Closes the readers: the way to other hosts has gone.
    pub(super) fn unbind(&self) {
        for group in &self.groups {
            let mut group = lock(group);
            let detached = group.detach();
            group.count_lost(detached.waiting.len());
            drop(group);
            drop(detached);
        }
    }

    fn settings(&self, group: &Group, host: Host) -> Settings {
        let SubscriberQos { depth, transient_local: history, .. } = self.qos;
        Settings {
            topic: self.dds.topic.clone(),
            type_name: self.dds.type_name.clone(),
            partitions: if self.dds.is_private { host.wanted(&group.kinds) } else { Vec::new() },
            user_data: self.user_data.clone(),
            reliable: group.request.delivery > Delivery::BestEffort,
            history: match group.request.delivery {
                Delivery::Awaited => History::KeepAll,
                _ => History::KeepLast(depth.max(history)),
            },
            history_late: if group.request.history { history } else { 0 },
            block_max: Duration::ZERO,
        }
    }

    /// Updates the publishers. Called by the node's thread.
    pub(super) fn refresh(self: &Arc<Self>, session: &Session) {
        for (number, group) in self.groups.iter().enumerate() {
            let (reader, waited) = {
                let group = lock(group);
                (group.connection.reader().cloned(), group.waited)
            };
            let Some(reader) = reader else { continue };
            let mut found: Vec<Endpoint> = Vec::new();
            let _ = reader.visit_matched(&mut |endpoint| found.push(endpoint));
            drop(reader);
            let mut group = lock(group);
            let Some(subscription) =
                group.subscription.clone().filter(|_| group.connection.reader().is_some())
            else {
                continue;
            };
            let is_there = |handle: &u64| found.iter().any(|each| each.handle == *handle);
            let listener = self.listener(number, session);
            for handle in group.ended(is_there) {
                listener.end(self, &mut group, handle);
            }
            group.forget(is_there);
            let declined: Vec<_> =
                group.publishers.extract_if(.., |_, it| it.is_declined()).collect();
            let was_declined = |handle| declined.iter().any(|(known, _)| *known == handle);
            for endpoint in found {
                if group.publishers.contains_key(&endpoint.handle) {
                    continue;
                }
                let discovered = Discovered::read(&endpoint, true, session.host);
                let wanted = discovered.info().filter(|theirs| self.takes(theirs));
                let route = wanted.map_or(Route::None, |theirs| {
                    // A publisher that does not wait may be reliable on the network nevertheless.
                    let waits = group.request.delivery == Delivery::Awaited
                        && theirs.qos.reliability == Reliability::Reliable;
                    self.proxy_in(&mut group, &subscription, waits).map_or_else(
                        |error| {
                            if !was_declined(endpoint.handle) {
                                self.dds.report_refused(theirs.id, error.to_string());
                            }
                            Route::Declined
                        },
                        |proxy| Route::Proxy(Box::new(proxy)),
                    )
                });
                let is_of_myelin = matches!(discovered, Discovered::OtherHost(_));
                let guid = endpoint.guid;
                let publisher = RemotePublisher {
                    guid,
                    node: discovered.info().map_or(0, |info| info.node),
                    is_reliable: discovered
                        .info()
                        .is_some_and(|info| info.qos.reliability == Reliability::Reliable),
                    lane: None,
                    listens: is_of_myelin && matches!(route, Route::Proxy(_)),
                    route,
                    is_gone: false,
                    counts: group.remember(&guid),
                    backlog: Backlog::default(),
                    waits: group.full,
                    late: None,
                };
                group.send_all(&publisher, session);
                group.publishers.insert(endpoint.handle, publisher);
            }
            group.drop_orphans(waited);
        }
    }

    /// Whether it takes the samples of a publisher that DDS has matched; reports it otherwise.
    fn takes(&self, theirs: &EndpointInfo) -> bool {
        match self.dds.mismatch(theirs) {
            Some(mismatch) => {
                self.dds.report_mismatch(theirs.id, mismatch);
                false
            }
            None => theirs.location != Location::Dds || !self.dds.is_foreign(theirs),
        }
    }

    /// The GUID of its first reader in DDS; `None` while there is none.
    pub(super) fn guid(&self) -> Option<Guid> {
        let group = lock(self.groups.first()?);
        group.connection.guid()
    }

    /// The publishers, each with its proxy.
    pub(super) fn publishers(&self) -> Vec<(Guid, EndpointId)> {
        let mut found = Vec::new();
        for group in &self.groups {
            let group = lock(group);
            let with_proxy =
                group.publishers.values().filter_map(|it| Some((it.guid, it.proxy()?.id())));
            found.extend(with_proxy);
        }
        found
    }

    /// Whether there are publishers for which there was no room.
    pub(super) fn has_declined(&self) -> bool {
        let has = |group: &Mutex<Group>| {
            lock(group).publishers.values().any(RemotePublisher::is_declined)
        };
        self.groups.iter().any(has)
    }

    /// Whether samples wait for room, or for their publisher to be known.
    pub(super) fn has_waiting(&self) -> bool {
        self.groups.iter().any(|group| !lock(group).waiting.is_empty())
    }

    /// A proxy; if there is no room for it, publishers that have gone give way.
    fn proxy_in(
        &self,
        group: &mut Group,
        subscription: &Arc<SubscriptionState>,
        reliable: bool,
    ) -> Result<shm::Proxy, Error> {
        loop {
            match self.proxy(subscription, reliable) {
                Err(Error::TooMany { .. }) if group.give_up_gone(subscription) => {}
                made => return made,
            }
        }
    }

    fn proxy(
        &self,
        subscription: &Arc<SubscriptionState>,
        reliable: bool,
    ) -> Result<shm::Proxy, Error> {
        let SubscriberQos { depth, transient_local: history, .. } = self.qos;
        let reliability = if reliable { Reliability::Reliable } else { Reliability::BestEffort };
        let qos = PublisherQos {
            depth: depth.max(history),
            reliability,
            block_max: Duration::ZERO,
            late: myelin_shm::topic::Late::Fail,
            memory_max: self.memory_max,
            ..PublisherQos::default()
        };
        self.dds.handle.node().proxy(subscription, qos)
    }

    /// Passes on all waiting samples, of all groups. Called by the node's thread. True if some had
    /// no room.
    pub(super) fn pass_on_all(self: &Arc<Self>, session: &Session) -> bool {
        let mut some_full = false;
        for group in &self.groups {
            let mut group = lock(group);
            let is_full = self.pass_on_pending(&mut group);
            some_full |= is_full;
            if !is_full && group.publishers.values().any(|publisher| publisher.is_gone) {
                session.queue.push(Task::Reader(Arc::downgrade(self)));
            }
            if is_full && !group.full {
                group.full_count = group.full_count.wrapping_add(1);
            }
            group.full = is_full;
            let kind = if is_full { FlowKind::Full } else { FlowKind::Room };
            let (reader, count) = (group.connection.guid(), group.full_count);
            for publisher in
                group.publishers.values_mut().filter(|publisher| publisher.late.is_none())
            {
                if std::mem::replace(&mut publisher.waits, is_full) != is_full {
                    publisher.send(kind, reader, count, session);
                }
            }
        }
        some_full
    }

    /// Repeats messages that these publishers may have missed. Called by the node's thread.
    pub(super) fn repeat_messages(&self, session: &Session, to: impl Fn(&Guid) -> bool) {
        for group in &self.groups {
            let group = lock(group);
            let publishers = group.publishers.values().filter(|publisher| to(&publisher.guid));
            publishers.for_each(|publisher| group.send_all(publisher, session));
        }
    }

    /// A publisher waits no longer. Called by the node's thread. True if it is one of ours.
    pub(super) fn receive_late(&self, message: &FlowMessage) -> bool {
        for group in &self.groups {
            let mut group = lock(group);
            let is_full = group.full && group.full_count == message.count;
            if group.connection.guid() != Some(message.reader) || !is_full {
                continue; // there has been room since, and the publisher knows
            }
            let mut publishers = group.publishers.values_mut();
            if let Some(publisher) = publishers.find(|publisher| publisher.guid == message.writer) {
                publisher.late.get_or_insert_default();
                return true;
            }
        }
        false
    }

    /// A publisher has large samples: takes them by the lane, if there is one. Called by the node's
    /// thread.
    pub(super) fn receive_large(self: &Arc<Self>, message: &FlowMessage, session: &Session) {
        let Some(lane) = &session.lane else { return };
        for (number, group) in self.groups.iter().enumerate() {
            let mut group = lock(group);
            let Group { connection, publishers, request, .. } = &mut *group;
            if connection.guid() != Some(message.reader) {
                continue;
            }
            let is_it = |it: &&mut RemotePublisher| {
                it.guid == message.writer && it.listens && it.lane.is_none()
            };
            let found = publishers.iter_mut().find_map(|(handle, publisher)| {
                Some(publisher).filter(is_it).map(|publisher| (*handle, publisher))
            });
            let Some((publisher, end)) = found else { continue };
            let target = LaneTarget { listener: self.listener(number, session), publisher };
            // Others drop samples for good, and a fence may be among them.
            let waits = request.delivery == Delivery::Awaited && end.is_reliable;
            let subscription = lane.subscribe(end.node, message.writer, message.reader, target);
            end.lane = Some(LaneEnd { inbox: LaneInbox::new(waits), _subscription: subscription });
        }
    }

    /// Moves waiting samples into the subscriber's queue. True if there is no room for the next.
    fn pass_on_pending(&self, group: &mut Group) -> bool {
        while let Some(received) = group.waiting.pop_front() {
            if let Passed::Not(received) = self.pass_on(group, received) {
                let bytes = received.size();
                group.waiting.push_front(received, bytes);
                return group.knows_the_next();
            }
        }
        false
    }

    /// Puts a sample into the subscriber's queue.
    fn pass_on(&self, group: &mut Group, mut received: Received) -> Passed {
        let Group { publishers, request, subscription, .. } = group;
        let is_awaited = request.delivery == Delivery::Awaited;
        let Some(publisher) = publishers.get_mut(&received.writer) else {
            return Passed::Not(received);
        };
        let Route::Proxy(proxy) = &mut publisher.route else { return Passed::On };
        if publisher.listens
            && let Body::Message(message) = received.body
        {
            received = Received::of(message, true); // its publisher was unknown
        }
        if publisher.counts.has(&received) {
            (received.number, received.body) = (None, Body::Nothing);
        }
        let is_sample = !matches!(received.body, Body::Nothing);
        let bytes = received.payload(&self.wire).map(<[u8]>::len);
        if is_sample && bytes.is_none() {
            self.dds.handle.report(Event::Corrupt { endpoint: proxy.id() });
            publisher.route = Route::None;
            return Passed::On;
        }
        // Counted before the sample can be taken.
        let lost = publisher.counts.count(&mut received);
        self.count_lost(subscription, lost, LossCause::Network, proxy.id(), is_awaited);
        let Some(bytes) = bytes else { return Passed::On };
        let published = match &mut received.body {
            Body::Lane(LaneSample { payload: Arrived::Slot(slot), .. }) => {
                proxy.writer.publish_slot(slot)
            }
            _ => proxy.writer.publish_copy(received.payload(&self.wire).expect("as above")),
        };
        match published {
            Ok(published) => {
                let reading = proxy.writer.slowest_reading();
                let bytes = bytes as u64;
                if publisher.backlog.is_due(published.sequence, reading, bytes, self.qos.depth) {
                    give_way();
                }
                let Some(late) = &mut publisher.late else { return Passed::On };
                self.report_lost(std::mem::take(&mut late.lost), proxy.id());
                late.taken += 1;
                if late.taken >= self.qos.depth / 2 {
                    publisher.late = None;
                    return Passed::CaughtUp;
                }
            }
            Err(Error::ReliableTimeout { .. }) => {
                let Some(late) = &mut publisher.late else { return Passed::Not(received) };
                *late = Late { lost: late.lost + 1, taken: 0 };
                self.count_lost(subscription, 1, LossCause::PassedOver, proxy.id(), false);
            }
            // Memory is short.
            Err(_) => {
                self.count_lost(subscription, 1, LossCause::Memory, proxy.id(), is_awaited);
            }
        }
        Passed::On
    }

    /// Whether CycloneDDS must keep a sample of this writer, because too many wait. Myelin's
    /// publishers are asked to wait; others only know CycloneDDS's own way. (While it keeps a sample,
    /// another of its threads may deliver the next one first.)
    fn is_overfull(&self, group: &Group, writer: u64) -> bool {
        group.request.delivery == Delivery::Awaited
            && !self.dds.is_private
            && group.waiting.len() >= self.qos.depth as usize
            && group.publishers.get(&writer).is_none_or(|publisher| !publisher.listens)
    }

    /// Makes a sample wait.
    fn hold_back(&self, group: &mut Group, received: Received) {
        let SubscriberQos { depth, transient_local: history, .. } = self.qos;
        if group.request.delivery != Delivery::Awaited {
            // The oldest is dropped, and is a gap in its publisher's count.
            if group.waiting.len() >= depth.max(history) as usize {
                group.waiting.pop_front();
            }
        } else if group.waiting.is_full() {
            // They were asked to wait, and go on. This sample is lost: it is a gap in its publisher's
            // count, and the other topics go on.
            return;
        }
        let bytes = received.size();
        group.waiting.push_back(received, bytes);
        group.waited += 1;
    }

    /// Counts lost samples; for a reliable publisher, reports them.
    fn count_lost(
        &self,
        subscription: &Option<Arc<SubscriptionState>>,
        samples: u64,
        cause: LossCause,
        endpoint: EndpointId,
        reliable: bool,
    ) {
        subscription.iter().for_each(|its| its.count_lost(samples, cause));
        if reliable {
            self.report_lost(samples, endpoint);
        }
    }

    fn report_lost(&self, samples: u64, endpoint: EndpointId) {
        if samples > 0 {
            self.dds.handle.report(Event::Lost { endpoint, samples });
        }
    }
}

impl Group {
    fn count_lost(&self, samples: usize) {
        let lost = |its: &Arc<SubscriptionState>| {
            its.count_lost(samples as u64, LossCause::Network);
        };
        self.subscription.iter().for_each(lost);
    }

    /// Whether the publisher of the first waiting sample is known.
    fn knows_the_next(&self) -> bool {
        let writer = self.waiting.front().map(|next| next.writer);
        writer.is_some_and(|writer| self.publishers.contains_key(&writer))
    }

    /// Drops samples of publishers that have gone. The publishers were looked up when so many had
    /// `waited`; a later sample may be from a publisher that did not exist yet.
    fn drop_orphans(&mut self, waited: u64) {
        let new = (self.waited - waited).min(self.waiting.len() as u64) as usize;
        let Group { waiting, publishers, .. } = self;
        let is_known = |next: &Received| publishers.contains_key(&next.writer);
        let gone = waiting.retain_of_first(waiting.len() - new, is_known);
        self.count_lost(gone);
    }

    /// The publishers that are not there any more.
    fn ended(&self, is_there: impl Fn(&u64) -> bool) -> Vec<u64> {
        self.publishers.keys().filter(|handle| !is_there(handle)).copied().collect()
    }

    /// Removes publishers that are not there any more, once the subscriber has had room for all that
    /// they have sent and it has acknowledged.
    fn forget(&mut self, is_there: impl Fn(&u64) -> bool) {
        let Group { publishers, gone, waiting, request, .. } = self;
        publishers.retain(|handle, publisher| {
            let is_there = is_there(handle);
            let waits = || waiting.iter().any(|next| next.writer == *handle);
            publisher.is_gone = !is_there && request.delivery == Delivery::Awaited && waits();
            let stays = is_there || publisher.is_gone;
            if !stays && publisher.counts.is_begun() {
                gone.push((publisher.guid, publisher.counts));
            }
            stays
        });
        gone.drain(..gone.len().saturating_sub(GONE_MAX));
    }

    /// Gives up the publisher that has gone and whose samples have waited longest for room at a
    /// subscriber that does not take: they are lost. False if there is none.
    fn give_up_gone(&mut self, subscription: &SubscriptionState) -> bool {
        let Group { publishers, waiting, .. } = self;
        let gives_way = |it: &RemotePublisher| {
            let is_new = |proxy: &shm::Proxy| subscription.has_yet_to_see(proxy.id());
            it.is_gone && it.proxy().is_some_and(is_new)
        };
        let gives_way = |next: &&Received| publishers.get(&next.writer).is_some_and(gives_way);
        let Some(handle) = waiting.iter().find(gives_way).map(|next| next.writer) else {
            return false;
        };
        let lost = waiting.retain_of_first(waiting.len(), |next| next.writer != handle);
        publishers.remove(&handle);
        self.count_lost(lost);
        true
    }

    /// The counts of a publisher that was here before: the link was cut, or one of the two stood
    /// still for longer than the lease. Its samples published meanwhile are lost, and count.
    fn remember(&mut self, guid: &Guid) -> Counts {
        let known = self.gone.iter().position(|(gone, _)| gone == guid);
        known.map_or_else(Counts::default, |at| self.gone.swap_remove(at).1)
    }

    /// Sends a publisher all messages that it needs.
    fn send_all(&self, publisher: &RemotePublisher, session: &Session) {
        let reader = self.connection.guid();
        publisher.send(FlowKind::Ready, reader, 0, session);
        if publisher.waits {
            publisher.send(FlowKind::Full, reader, self.full_count, session);
        }
    }
}

impl Connection {
    fn reader(&self) -> Option<&Arc<Reader>> {
        if let Connection::Open { reader, .. } = self { Some(reader) } else { None }
    }

    fn guid(&self) -> Option<Guid> {
        if let Connection::Open { guid, .. } = self { Some(*guid) } else { None }
    }
}

impl RemotePublisher {
    fn proxy(&self) -> Option<&shm::Proxy> {
        if let Route::Proxy(proxy) = &self.route { Some(proxy) } else { None }
    }

    fn is_declined(&self) -> bool {
        matches!(self.route, Route::Declined)
    }

    /// Sends it a message of the group's reader, if there is one.
    fn send(&self, kind: FlowKind, reader: Option<Guid>, count: u8, session: &Session) {
        if let Some(reader) = reader.filter(|_| self.listens) {
            session.send(FlowMessage { writer: self.guid, reader, kind, count });
        }
    }
}

/// The object that CycloneDDS calls.
#[derive(Clone)]
struct ReaderListener {
    shared: Weak<ReaderState>,
    number: usize,
    queue: Arc<TaskQueue>,
}

/// A reader, for one of its publishers: the lane's thread calls it.
#[derive(Clone)]
pub(super) struct LaneTarget {
    listener: ReaderListener,
    publisher: u64,
}

impl LaneTarget {
    /// The publisher is asked to begin.
    pub(super) fn ask(&self) {
        self.change(|_, inbox| inbox.ask());
    }

    /// A run begins, with this fence and this sample.
    pub(super) fn run(&self, run: u64, fence: u64, number: u64) {
        self.change(|counts, inbox| {
            counts.begin_lane(number);
            inbox.run(run, fence);
        });
    }

    /// The runs up to this one are over.
    pub(super) fn pause(&self, run: u64) {
        self.change(|_, inbox| inbox.pause(run));
    }

    /// It sends no more, nor what is missing.
    pub(super) fn end(&self) {
        self.change(|_, inbox| inbox.end());
    }

    /// The connection has gone.
    pub(super) fn disconnect(&self) {
        self.change(|_, inbox| inbox.disconnect());
    }

    /// A sample has come.
    pub(super) fn receive(&self, number: u64, sample: LaneSample) {
        let bytes = sample.payload.len();
        self.change(|_, inbox| inbox.sample(number, sample, bytes));
    }

    /// A slot of the subscriber's queue for a sample of so many bytes. `None`: it takes a copy.
    pub(super) fn loan(&self, bytes: usize) -> Option<SlotLoan> {
        let shared = self.listener.shared.upgrade()?;
        let mut group = lock(&shared.groups[self.listener.number]);
        match &mut group.publishers.get_mut(&self.publisher)?.route {
            Route::Proxy(proxy) => proxy.writer.loan_slot(bytes as u64).ok()?,
            _ => None,
        }
    }

    fn change(&self, change: impl FnOnce(&mut Counts, &mut LaneInbox<Message, LaneSample>)) {
        let Some(shared) = self.listener.shared.upgrade() else { return };
        let mut group = lock(&shared.groups[self.listener.number]);
        let Some(publisher) = group.publishers.get_mut(&self.publisher) else { return };
        let Some(end) = &mut publisher.lane else { return };
        change(&mut publisher.counts, &mut end.inbox);
        self.listener.pass_on_ready(&shared, &mut group, self.publisher);
    }
}

impl ReaderListener {
    /// A publisher has ended: its lane holds up nothing any more.
    fn end(&self, shared: &ReaderState, group: &mut Group, publisher: u64) {
        let its = group.publishers.get_mut(&publisher);
        if let Some(end) = its.and_then(|it| it.lane.as_mut()) {
            end.inbox.end();
            self.pass_on_ready(shared, group, publisher);
        }
    }

    /// Passes on what a publisher's lane no longer holds up.
    fn pass_on_ready(&self, shared: &ReaderState, group: &mut Group, publisher: u64) {
        loop {
            let its = group.publishers.get_mut(&publisher);
            let next = its.and_then(|it| it.lane.as_mut()).and_then(|end| end.inbox.next());
            let Some(next) = next else { return };
            self.pass_on(shared, group, Received::next(publisher, next));
        }
    }

    fn pass_on(&self, shared: &ReaderState, group: &mut Group, received: Received) {
        let passed = match group.waiting.is_empty() {
            true => shared.pass_on(group, received),
            false => Passed::Not(received),
        };
        match passed {
            Passed::On => {}
            Passed::CaughtUp => self.queue.push(Task::Full(self.shared.clone())),
            Passed::Not(received) => {
                shared.hold_back(group, received);
                self.look_again(group);
            }
        }
    }

    /// Has the node's thread look for room, or for the publisher.
    fn look_again(&self, group: &Group) {
        if group.full {
            return; // it does
        }
        self.queue.push(match group.knows_the_next() {
            true => Task::Full(self.shared.clone()),
            false => Task::Reader(self.shared.clone()),
        });
    }
}

impl Listener for ReaderListener {
    fn received(&self, message: Message) -> bool {
        let Some(shared) = self.shared.upgrade() else { return true };
        let mut group = lock(&shared.groups[self.number]);
        if matches!(group.connection, Connection::Closed) {
            return true;
        }
        let writer = message.writer();
        if shared.is_overfull(&group, writer) {
            self.look_again(&group);
            return false;
        }
        let publisher = group.publishers.get_mut(&writer).filter(|publisher| publisher.listens);
        let Some(publisher) = publisher else {
            self.pass_on(&shared, &mut group, Received::of(message, false));
            return true;
        };
        let Some(LaneEnd { inbox, .. }) = &mut publisher.lane else {
            self.pass_on(&shared, &mut group, Received::of(message, true));
            return true;
        };
        let fence = match Notice::of(message.bytes()) {
            Some(Notice::Fence { run, number }) => {
                publisher.counts.begin_lane(number);
                Some(run)
            }
            _ => None,
        };
        inbox.message(message.sequence(), fence, message);
        self.pass_on_ready(&shared, &mut group, writer);
        true
    }

    fn matched(&self, _count: u32) {
        self.queue.push(Task::Reader(self.shared.clone()));
    }

    fn incompatible(&self, policy: u32) {
        self.queue.push(Task::ReaderPolicy(self.shared.clone(), policy));
    }
}

/// How many publishers that have gone, of each group, are remembered.
const GONE_MAX: usize = 64;
