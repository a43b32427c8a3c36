//! The memory of this node's publishers and subscribers: performs the protocol's decisions about
//! their matches, and watches deadlines and liveliness.

use std::collections::BTreeMap;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, Weak};

use crate::control_plane::link::Descriptors;
use crate::control_plane::message::{PASSED_MIN, SegmentSize};
use crate::control_plane::protocol::observe::{Observed, ObserverId};
use crate::control_plane::protocol::query::Counted;
use crate::control_plane::protocol::{Action, Input, Pair, Refusal, RemoteInfo, Reservation};
use crate::control_plane::qos_monitor::{Change, Monitors, QosMonitor};
use crate::counters::MappedCounters;
use crate::data_plane::observer::ObserverState;
use crate::data_plane::publication::{Detached, PublicationState, RemoteSubscriber};
use crate::data_plane::remote_subscriber::WakeDescriptors;
use crate::data_plane::subscription::SubscriptionState;
use crate::error::Error;
use crate::event::{Event, Inbox};
use crate::limits::COUNTERS_MAX;
use crate::os::descriptor::duplicate;
use crate::record::Kind;
use crate::topic::{EndpointId, Reliability};
use crate::waiting::remote_wake_table::{RemoteWakeTables, WakeTableDescriptors};
use crate::waiting::wait::now_ns;

/// This node's publishers and subscribers.
#[derive(Default)]
pub(crate) struct Endpoints {
    publications: BTreeMap<EndpointId, Arc<PublicationState>>,
    subscriptions: BTreeMap<EndpointId, LocalSubscription>,
    observers: BTreeMap<ObserverId, Arc<ObserverState>>,
    /// The counters of peers' endpoints, since this node has queried their nodes.
    counters: BTreeMap<EndpointId, MappedCounters>,
    /// Monitors of publishers, by the endpoint that gets the events: the publisher itself or a
    /// subscriber.
    monitors: Monitors,
    /// The wake tables of the nodes that our publishers have been matched with.
    tables: RemoteWakeTables,
    /// Removed subscribers that their publishers have not noticed yet, and when to wake these
    /// publishers again.
    detached: Vec<(Arc<PublicationState>, Detached)>,
    wake_again_ns: Option<u64>,
}

/// A subscriber of this node. It ends when its reader and all samples have been dropped, so this
/// struct does not keep it alive.
struct LocalSubscription {
    shared: Weak<SubscriptionState>,
    inbox: Arc<Inbox>,
}

impl Endpoints {
    pub(crate) fn add_publication(&mut self, shared: Arc<PublicationState>) {
        let (id, progress) = (shared.id(), (shared.published(), shared.asserted()));
        let monitor = QosMonitor::new(shared.qos().deadline, None, progress, now_ns());
        self.monitors.watch((id, id), monitor);
        self.publications.insert(id, shared);
    }

    pub(crate) fn add_subscription(&mut self, shared: &Arc<SubscriptionState>) {
        let (inbox, weak) = (shared.inbox().clone(), Arc::downgrade(shared));
        self.subscriptions.insert(shared.id(), LocalSubscription { shared: weak, inbox });
    }

    pub(crate) fn add_observer(&mut self, id: ObserverId, state: Arc<ObserverState>) {
        self.observers.insert(id, state);
    }

    pub(crate) fn remove_observer(&mut self, id: ObserverId) {
        self.observers.remove(&id);
    }

    /// Removes a dropped endpoint; the protocol knows already.
    pub(crate) fn remove(&mut self, id: EndpointId) {
        self.publications.remove(&id);
        self.subscriptions.remove(&id);
        self.monitors.forget_all_of(id);
    }

    /// Performs an action that concerns endpoints, and returns the result.
    pub(crate) fn perform(&mut self, action: Action<Arc<OwnedFd>>) -> Option<Input<Arc<OwnedFd>>> {
        match action {
            Action::Reserve { pair, descriptors } => {
                let result = reserve(&*self.subscription(pair)?, pair, descriptors);
                Some(Input::Reserved { pair, result: result.map_err(|error| (&error).into()) })
            }
            Action::Map { pair, segments, descriptors } => {
                let refused = self.map(pair, &segments, &descriptors).err()?;
                Some(Input::NotMapped { pair, refusal: (&refused).into() })
            }
            Action::CheckRoom { pair } => {
                let is_free = self.subscription(pair)?.has_room_for(pair.publisher);
                Some(Input::Room { pair, is_free })
            }
            Action::Attach { pair, subscriber, connection, descriptors } => {
                let result = self.attach(pair, subscriber, connection, descriptors);
                Some(Input::Attached { pair, result: result.map_err(|error| (&error).into()) })
            }
            Action::Begin { pair, start } => self.begin(pair, start),
            Action::Release { pair, had_begun } => self.release(pair, had_begun),
            Action::Detach { pair } => {
                let publication = self.publications.get(&pair.publisher)?;
                if let Some(detached) = publication.detach(pair.subscriber) {
                    self.detached.push((publication.clone(), detached));
                    self.wake_again_ns = Some(now_ns() + WAKE_AGAIN_NS);
                }
                None
            }
            Action::Deliver { endpoint, event } => {
                self.deliver(endpoint, event);
                None
            }
            Action::MapObserved { observer, publisher, observed } => {
                let state = self.observers.get(&observer)?;
                let is_last = observed.is_last;
                let mapped = map_observed(state, publisher, observed);
                if is_last {
                    state.answered(publisher);
                }
                let error = mapped.err()?;
                let is_full = matches!(error, Error::TooMany { .. });
                if Refusal::from(&error).may_pass && !is_full {
                    return Some(Input::NotObserved { publisher });
                }
                state.failed(error);
                None
            }
            Action::Unobserve { observer, publisher } => {
                self.observers.get(&observer)?.unobserve(publisher);
                None
            }
            Action::MapCounters { endpoint, kind, descriptor } => {
                let error = self.map_counters(endpoint, kind, descriptor).err()?;
                let may_pass = Refusal::from(&error).may_pass;
                may_pass.then_some(Input::NotCounted { endpoint })
            }
            Action::UnmapCounters { endpoint } => {
                self.counters.remove(&endpoint);
                None
            }
            Action::Warn(_)
            | Action::Connect { .. }
            | Action::Send { .. }
            | Action::Drain { .. }
            | Action::Close { .. } => {
                unreachable!("this action does not concern the memory of an endpoint")
            }
        }
    }

    /// The counters of the publishers and subscribers, and of those of peers that are mapped.
    pub(crate) fn counted(&self) -> Counted {
        let publishers = self.publications.iter().map(|(id, shared)| (*id, shared.counters()));
        let alive = |(id, it): (&EndpointId, &LocalSubscription)| Some((*id, it.shared.upgrade()?));
        let subscribers = self.subscriptions.iter().filter_map(alive);
        let subscribers = subscribers.map(|(id, shared)| (id, shared.counters()));
        let theirs = self.counters.iter().map(|(id, mapped)| (*id, mapped.read()));
        publishers.chain(subscribers).chain(theirs).collect()
    }

    fn map_counters(
        &mut self,
        endpoint: EndpointId,
        kind: Kind,
        descriptor: Option<Arc<OwnedFd>>,
    ) -> Result<(), Error> {
        if self.counters.contains_key(&endpoint) {
            return Ok(());
        }
        if self.counters.len() == COUNTERS_MAX {
            let (topic, limit) = (None, COUNTERS_MAX as u64);
            return Err(Error::TooMany { topic, what: "endpoints with counters", limit });
        }
        let fd = own(descriptor.ok_or(Error::TooManyFiles)?)?;
        self.counters.insert(endpoint, MappedCounters::map(endpoint, kind, fd)?);
        Ok(())
    }

    /// When [`do_due`](Self::do_due) has work.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.monitors.due_ns().into_iter().chain(self.wake_again_ns).min()
    }

    /// Checks the publishers whose deadlines and liveliness are due, and wakes publishers that wait
    /// for a subscriber that has gone.
    pub(crate) fn do_due(&mut self, now_ns: u64) {
        if self.wake_again_ns.is_some_and(|due_ns| due_ns <= now_ns) {
            self.detached.retain(|(publication, detached)| !detached.is_noticed(publication));
            let again_ns = now_ns + WAKE_AGAIN_NS;
            self.wake_again_ns = (!self.detached.is_empty()).then_some(again_ns);
        }
        self.check_deadlines(now_ns);
    }

    fn check_deadlines(&mut self, now_ns: u64) {
        for (watcher, publisher) in self.monitors.take_due(now_ns) {
            let progress = match self.publications.get(&watcher) {
                Some(publication) => Some((publication.published(), publication.asserted())),
                None => {
                    let shared = self.subscriptions.get(&watcher).map(|it| it.shared.upgrade());
                    shared.flatten().and_then(|shared| shared.progress(publisher))
                }
            };
            let Some(progress) = progress else { continue };
            for change in self.monitors.look((watcher, publisher), progress, now_ns) {
                self.deliver(watcher, silence(change, publisher));
            }
        }
    }

    /// `None`: it is being dropped, and the protocol will learn of it in a moment.
    fn subscription(&self, pair: Pair) -> Option<Arc<SubscriptionState>> {
        self.subscriptions.get(&pair.subscriber)?.shared.upgrade()
    }

    fn map(
        &self,
        pair: Pair,
        segments: &[SegmentSize],
        descriptors: &[Arc<OwnedFd>],
    ) -> Result<(), Error> {
        let Some(shared) = self.subscription(pair) else { return Ok(()) };
        if descriptors.len() != segments.len() {
            return Err(Error::TooManyFiles);
        }
        for (size, fd) in segments.iter().zip(descriptors) {
            let fd = duplicate(fd.as_fd(), "mapping a publisher's slots")?;
            let SegmentSize { number, slots, slot_bytes } = *size;
            shared.connections.map_segment(pair.publisher, number, slot_bytes, slots, fd)?;
        }
        // A publisher of this node publishes only after this, so no subscriber waits for its
        // segment.
        if !self.publications.contains_key(&pair.publisher) {
            shared.look_again();
        }
        Ok(())
    }

    fn attach(
        &mut self,
        pair: Pair,
        RemoteInfo { pid, qos }: RemoteInfo,
        connection: u32,
        mut descriptors: Descriptors,
    ) -> Result<u64, Error> {
        let publication = self
            .publications
            .get(&pair.publisher)
            .expect("only an existing publisher makes an offer");
        let wake_pipe = if descriptors.len() > PASSED_MIN { descriptors.pop() } else { None };
        let [subscription, wake_word, heads, ready, pipe] = exactly::<PASSED_MIN>(descriptors)?;
        let wake_pipe = wake_pipe.map(own).transpose()?;
        let wake_descriptors = WakeDescriptors {
            wake_word,
            table: WakeTableDescriptors { heads, ready, pipe },
            wake_pipe,
        };
        let view = RemoteSubscriber::map(
            pair.subscriber,
            pid,
            publication.topic(),
            qos.reliability == Reliability::Reliable,
            qos.transient_local,
            connection,
            pair.publisher,
            subscription,
            wake_descriptors,
            &mut self.tables,
        )?;
        publication.attach(view)
    }

    fn begin(&mut self, pair: Pair, start: Option<u64>) -> Option<Input<Arc<OwnedFd>>> {
        let shared = self.subscription(pair)?;
        let Pair { publisher, subscriber } = pair;
        start.into_iter().for_each(|start| shared.start(publisher, start));
        let progress = shared.progress(publisher).unwrap_or_default();
        let qos = shared.qos();
        let monitor = QosMonitor::new(qos.deadline, qos.liveliness, progress, now_ns());
        self.monitors.watch((subscriber, publisher), monitor);
        None
    }

    fn release(&mut self, pair: Pair, had_begun: bool) -> Option<Input<Arc<OwnedFd>>> {
        self.monitors.forget((pair.subscriber, pair.publisher));
        let shared = self.subscription(pair)?;
        match had_begun {
            true => shared.publisher_gone(pair.publisher),
            false => shared.connections.publisher_never_came(pair.publisher),
        }
        None
    }

    /// Passes an event to the user, and ends a wait for it if necessary.
    fn deliver(&self, endpoint: EndpointId, event: Event) {
        if let Some(publication) = self.publications.get(&endpoint) {
            publication.inbox().push(event);
        } else if let Some(subscription) = self.subscriptions.get(&endpoint) {
            match subscription.shared.upgrade() {
                Some(shared) => shared.deliver(event),
                None => subscription.inbox.push(event),
            }
        }
    }
}

fn reserve(
    shared: &SubscriptionState,
    pair: Pair,
    descriptors: Descriptors,
) -> Result<Reservation<Arc<OwnedFd>>, Error> {
    let [publication] = exactly(descriptors)?;
    let connection = shared.reserve(pair.publisher, publication, Vec::new())?;
    let passed = shared.passed_to(connection);
    let passed = passed.inspect_err(|_| shared.connections.publisher_never_came(pair.publisher))?;
    let (subscription, WakeDescriptors { wake_word, table, wake_pipe }) = passed;
    let WakeTableDescriptors { heads, ready, pipe } = table;
    let passed = [subscription, wake_word, heads, ready, pipe].into_iter().chain(wake_pipe);
    Ok(Reservation { connection, passed: passed.map(Arc::new).collect() })
}

fn map_observed(
    state: &ObserverState,
    publisher: EndpointId,
    observed: Observed<Arc<OwnedFd>>,
) -> Result<(), Error> {
    let Observed { created_ns, has_ring, segments, descriptors, .. } = observed;
    if descriptors.len() != usize::from(has_ring) + segments.len() {
        return Err(Error::TooManyFiles);
    }
    let own = |fd: &Arc<OwnedFd>| duplicate(fd.as_fd(), "mapping a publisher for an observer");
    let (ring, slots) = descriptors.split_at(usize::from(has_ring));
    for fd in ring {
        state.map_ring(publisher, created_ns, own(fd)?)?;
    }
    for (size, fd) in segments.iter().zip(slots) {
        let SegmentSize { number, slots, slot_bytes } = *size;
        state.map_segment(publisher, number, slot_bytes, slots, own(fd)?)?;
    }
    Ok(())
}

/// The descriptors of a message; they are missing only if this process could open no more.
fn exactly<const N: usize>(descriptors: Descriptors) -> Result<[OwnedFd; N], Error> {
    let descriptors = descriptors.into_iter().map(own).collect::<Result<Vec<_>, _>>()?;
    descriptors.try_into().map_err(|_| Error::TooManyFiles)
}

/// A descriptor that is ours alone; a descriptor of this node may be shared.
fn own(fd: Arc<OwnedFd>) -> Result<OwnedFd, Error> {
    let own = Arc::try_unwrap(fd).or_else(|fd| fd.try_clone());
    own.map_err(|error| Error::system("passing memory on", error))
}

fn silence(change: Change, endpoint: EndpointId) -> Event {
    match change {
        Change::Missed => Event::DeadlineMissed { endpoint },
        Change::Lost => Event::LivelinessLost { endpoint },
        Change::Regained => Event::LivelinessRegained { endpoint },
    }
}

const WAKE_AGAIN_NS: u64 = 1_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data_plane::subscription::Reader;
    use crate::data_plane::writer::Writer;
    use crate::topic::{PublisherQos, SubscriberQos, Topic};
    use crate::waiting::wake_table::WakeTable;

    #[test]
    fn a_match_that_was_never_complete_leaves_its_connection_free() {
        let topic = Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 };
        let qos = SubscriberQos { publishers_max: 1, ..SubscriberQos::default() };
        let (mut reader, shared) =
            Reader::create(1, &topic, qos, &WakeTable::create().unwrap()).unwrap();
        let mut endpoints = Endpoints::default();
        endpoints.add_subscription(&shared);
        for publisher in 2..5 {
            let (mut writer, publication) =
                Writer::create(publisher, &topic, PublisherQos::default()).unwrap();
            writer.publish_copy(&[1]).unwrap();
            let pair = Pair { publisher, subscriber: 1 };
            let descriptors = vec![publication.shared_descriptor()];
            let reserved = endpoints.perform(Action::Reserve { pair, descriptors });
            let Some(Input::Reserved { result: Ok(Reservation { connection: 0, .. }), .. }) =
                reserved
            else {
                panic!("{reserved:?}")
            };
            assert!(endpoints.perform(Action::Release { pair, had_begun: false }).is_none());
            assert!(reader.take().unwrap().is_none());
        }
        assert!(shared.inbox().drain().is_empty(), "it was not matched");
    }
}
