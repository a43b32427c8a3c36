//! Which publisher serves which subscriber: the steps of `docs/shared-memory.md` section 8, from the
//! publisher's side and the subscriber's. Both sides of a match within one node go the same way;
//! their messages pass through a queue instead of a socket.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;

use crate::control_plane::endpoints::{Match, Retry};
use crate::control_plane::link::Descriptors;
use crate::control_plane::message::{Message, PASSED_MIN, SegmentSize};
use crate::control_plane::qos_monitor::QosMonitor;
use crate::control_plane::state::{Kind, Known, State};
use crate::data_plane::publication::{PublicationShared, RemoteSubscriber, SlotSegment};
use crate::data_plane::remote_subscriber::Waking;
use crate::data_plane::subscription::SubscriptionShared;
use crate::error::Error;
use crate::event::Event;
use crate::limits::MESSAGE_SEGMENTS_MAX;
use crate::os::descriptor::duplicate;
use crate::topic::{EndpointId, Reliability, SubscriberQos, Topic};
use crate::waiting::wait::now_ns;
use crate::waiting::wake_table::{PassedTable, WakeTableViews};

impl State {
    /// A publisher has appeared: here, or at a peer.
    pub(crate) fn published(&mut self, id: EndpointId, known: Known) {
        for subscription in self.subscriptions.values() {
            if let Some(reason) = mismatch(&subscription.topic, &known.topic) {
                subscription.inbox.push(incompatible(id, known.pid, reason));
            }
        }
        self.known.insert(id, known);
    }

    /// A subscriber has appeared: its publishers here make an offer.
    pub(crate) fn subscribed(&mut self, id: EndpointId, known: Known) {
        let mut fitting = Vec::new();
        for (publisher, publication) in &self.publications {
            let topic = publication.shared.topic();
            if let Some(reason) = mismatch(topic, &known.topic) {
                publication.shared.inbox().push(incompatible(id, known.pid, reason));
            } else if topic.name == known.topic.name {
                fitting.push(*publisher);
            }
        }
        self.known.insert(id, known);
        for publisher in fitting {
            self.offer(publisher, id);
        }
    }

    /// Offers a publisher of ours to all subscribers that fit.
    pub(crate) fn offer_to_all(&mut self, publisher: EndpointId) {
        let topic = self.publications[&publisher].shared.topic().clone();
        let is_subscriber = |known: &Known| matches!(known.kind, Kind::Subscriber { .. });
        let same = self.known.iter().filter(|(_, known)| known.topic.name == topic.name);
        let subscribers: Vec<_> =
            same.filter(|(_, known)| is_subscriber(known)).map(|(id, _)| *id).collect();
        for subscriber in subscribers {
            self.offer(publisher, subscriber);
        }
    }

    /// Offers a publisher of ours to a subscriber, unless it has been done or they do not fit.
    pub(crate) fn offer(&mut self, publisher: EndpointId, subscriber: EndpointId) {
        let Some(known) = self.known.get(&subscriber) else { return };
        let Some(publication) = self.publications.get_mut(&publisher) else { return };
        let (topic, is_subscriber) =
            (publication.shared.topic(), matches!(known.kind, Kind::Subscriber { .. }));
        let fits = topic.name == known.topic.name && topic.type_hash == known.topic.type_hash;
        if publication.matches.contains_key(&subscriber) || !fits || !is_subscriber {
            return;
        }
        let descriptor = duplicate(publication.shared.descriptor(), "passing a publisher on");
        let descriptor = match descriptor {
            Ok(descriptor) => Arc::new(descriptor),
            Err(error) => {
                publication.shared.inbox().push(refusal(subscriber, known.pid, &error));
                Retry::note(&mut publication.retries, subscriber, &error);
                self.poll.wake();
                return;
            }
        };
        let via = known.via;
        let begun = Match { via, pid: known.pid, complete: false, monitor: None };
        publication.matches.insert(subscriber, begun);
        // The match is entered before the segments are listed: one that is made meanwhile is sent
        // by `grown` once we let go of the state, perhaps for the second time.
        let segments = publication.shared.segments();
        self.post(via, Message::Offer { publisher, subscriber }, vec![descriptor]);
        self.send_segments(via, publisher, &segments);
    }

    /// The arena of a publisher of ours has grown.
    pub(crate) fn grown(&mut self, publisher: EndpointId, segment: SlotSegment) {
        let Some(publication) = self.publications.get(&publisher) else { return };
        let mut links: Vec<_> = publication.matches.values().map(|each| each.via).collect();
        links.sort_unstable();
        links.dedup();
        for via in links {
            self.send_segments(via, publisher, std::slice::from_ref(&segment));
        }
    }

    fn send_segments(&mut self, via: u64, publisher: EndpointId, segments: &[SlotSegment]) {
        for some in segments.chunks(MESSAGE_SEGMENTS_MAX) {
            let size = |segment: &SlotSegment| SegmentSize {
                number: segment.number,
                slots: segment.slots,
                slot_bytes: segment.slot_bytes,
            };
            let segments = some.iter().map(size).collect();
            let descriptors = some.iter().map(|segment| segment.fd.clone()).collect();
            self.post(via, Message::Segments { publisher, segments }, descriptors);
        }
    }

    /// At the subscriber: a publisher offers itself.
    pub(crate) fn offered(
        &mut self,
        publisher: EndpointId,
        subscriber: EndpointId,
        descriptors: Vec<OwnedFd>,
    ) {
        let Some(known) = self.known.get(&publisher) else { return };
        let (via, pid) = (known.via, known.pid);
        let Some(subscription) = self.subscriptions.get_mut(&subscriber) else { return };
        if subscription.matches.contains_key(&publisher) {
            return;
        }
        // None: it is being dropped and will be unsubscribed in a moment.
        let Some(shared) = subscription.shared.upgrade() else { return };
        match accept(&shared, publisher, descriptors) {
            Ok((connection, descriptors)) => {
                let begun = Match { via, pid, complete: false, monitor: None };
                subscription.matches.insert(publisher, begun);
                subscription.retries.remove(&publisher);
                let wake_end = descriptors.len() == PASSED_MIN + 1;
                let accept = Message::Accept { publisher, subscriber, connection, wake_end };
                self.post(via, accept, descriptors);
            }
            Err(error) => {
                subscription.inbox.push(refusal(publisher, pid, &error));
                Retry::note(&mut subscription.retries, publisher, &error);
                self.poll.wake();
                let reason = error.to_string();
                self.post(via, Message::Declined { publisher, subscriber, reason }, Vec::new());
            }
        }
    }

    /// At the subscriber: a publisher has further slot segments.
    pub(crate) fn segments_came(
        &mut self,
        publisher: EndpointId,
        segments: &[SegmentSize],
        descriptors: Vec<OwnedFd>,
    ) {
        // One of this node publishes only when we are done, so nobody waits for its segment.
        let is_ours = self.publications.contains_key(&publisher);
        let matched = self.subscriptions.values().filter(|it| it.matches.contains_key(&publisher));
        let mut failed = Vec::new();
        for subscription in matched {
            let Some(shared) = subscription.shared.upgrade() else { continue };
            match add_segments(&shared, publisher, segments, &descriptors) {
                Err(error) => failed.push((subscription.id, error)),
                Ok(()) if is_ours => {}
                Ok(()) => shared.look_again(),
            }
        }
        for (subscriber, error) in failed {
            self.decline(publisher, subscriber, &error);
        }
    }

    /// At the publisher: a subscriber has accepted the offer.
    pub(crate) fn accepted(
        &mut self,
        publisher: EndpointId,
        subscriber: EndpointId,
        connection: u32,
        descriptors: Vec<OwnedFd>,
    ) {
        let Some(known) = self.known.get(&subscriber) else { return };
        let Some(publication) = self.publications.get_mut(&publisher) else { return };
        let Some(begun) = publication.matches.get_mut(&subscriber) else { return };
        if begun.complete {
            return;
        }
        let (via, pid) = (begun.via, begun.pid);
        let (shared, tables) = (&publication.shared, &mut self.tables);
        let view = view(shared, subscriber, known, connection, descriptors, tables);
        match view.and_then(|view| publication.shared.attach(view)) {
            Ok(start) => {
                begun.complete = true;
                publication.retries.remove(&subscriber);
                publication.shared.inbox().push(Event::Matched { endpoint: subscriber, pid });
                self.post(via, Message::Matched { publisher, subscriber, start }, Vec::new());
            }
            Err(error) => {
                publication.matches.remove(&subscriber);
                publication.shared.inbox().push(refusal(subscriber, pid, &error));
                Retry::note(&mut publication.retries, subscriber, &error);
                self.poll.wake();
                let reason = error.to_string();
                self.post(via, Message::Withdrawn { publisher, subscriber, reason }, Vec::new());
            }
        }
    }

    /// At the subscriber: the publisher looks at it now.
    pub(crate) fn matched(&mut self, publisher: EndpointId, subscriber: EndpointId, start: u64) {
        let Some(subscription) = self.subscriptions.get_mut(&subscriber) else { return };
        let Some(begun) = subscription.matches.get_mut(&publisher) else { return };
        let Some(shared) = subscription.shared.upgrade() else { return };
        if !begun.complete {
            shared.start(publisher, start);
            self.begin_match(publisher, subscriber);
        }
    }

    /// At the subscriber: samples flow from now on.
    pub(crate) fn begin_match(&mut self, publisher: EndpointId, subscriber: EndpointId) {
        let Some(subscription) = self.subscriptions.get_mut(&subscriber) else { return };
        let Some(begun) = subscription.matches.get_mut(&publisher) else { return };
        let Some(shared) = subscription.shared.upgrade() else { return };
        begun.complete = true;
        let progress = shared.progress(publisher).unwrap_or_default();
        let SubscriberQos { deadline, liveliness, .. } = subscription.qos;
        begun.monitor = QosMonitor::new(deadline, liveliness, progress, now_ns());
        let pid = begun.pid;
        if begun.monitor.is_some() {
            self.poll.wake();
        }
        subscription.inbox.push(Event::Matched { endpoint: publisher, pid });
        for reason in reductions(&subscription.qos, shared.offered(publisher)) {
            subscription.inbox.push(Event::QosReduced { endpoint: publisher, pid, reason });
        }
    }

    /// A subscriber of ours ends its match with a publisher.
    pub(crate) fn decline(&mut self, publisher: EndpointId, subscriber: EndpointId, error: &Error) {
        let Some(subscription) = self.subscriptions.get_mut(&subscriber) else { return };
        let Some(via) = subscription.matches.get(&publisher).map(|each| each.via) else { return };
        let pid = subscription.matches[&publisher].pid;
        subscription.inbox.push(refusal(publisher, pid, error));
        Retry::note(&mut subscription.retries, publisher, error);
        self.poll.wake();
        subscription.lose(publisher, false);
        let reason = error.to_string();
        self.post(via, Message::Declined { publisher, subscriber, reason }, Vec::new());
    }

    /// At the publisher: the subscriber's side has ended the match, or not begun it.
    pub(crate) fn declined(
        &mut self,
        publisher: EndpointId,
        subscriber: EndpointId,
        reason: String,
    ) {
        let Some(publication) = self.publications.get_mut(&publisher) else { return };
        if let Some(pid) = publication.matches.get(&subscriber).map(|each| each.pid) {
            publication.shared.inbox().push(incompatible(subscriber, pid, reason));
            publication.lose(subscriber, false);
        }
    }

    /// At the subscriber: the publisher's side has not begun the match after all.
    pub(crate) fn withdrawn(
        &mut self,
        publisher: EndpointId,
        subscriber: EndpointId,
        reason: String,
    ) {
        let Some(subscription) = self.subscriptions.get_mut(&subscriber) else { return };
        if let Some(pid) = subscription.matches.get(&publisher).map(|each| each.pid) {
            subscription.inbox.push(incompatible(publisher, pid, reason));
            subscription.lose(publisher, false);
        }
    }

    /// An endpoint has left or died, here or at a peer: all its matches end.
    pub(crate) fn forget(&mut self, endpoint: EndpointId, died: bool) {
        let Some(known) = self.known.remove(&endpoint) else { return };
        match known.kind {
            Kind::Publisher => {
                for subscription in self.subscriptions.values_mut() {
                    subscription.retries.remove(&endpoint);
                    subscription.lose(endpoint, died);
                }
            }
            Kind::Subscriber { .. } => {
                for publication in self.publications.values_mut() {
                    publication.retries.remove(&endpoint);
                    publication.lose(endpoint, died);
                }
            }
        }
    }

    /// Makes the matches that have failed, and may be possible by now.
    pub(crate) fn match_again(&mut self) {
        let now_ns = now_ns();
        let (mut asks, mut offers) = (Vec::new(), Vec::new());
        for (subscriber, subscription) in &mut self.subscriptions {
            let Some(shared) = subscription.shared.upgrade() else { continue };
            let has_room = |publisher| shared.has_room_for(publisher);
            let due = Retry::due(&mut subscription.retries, now_ns, has_room);
            asks.extend(due.into_iter().map(|publisher| (publisher, *subscriber)));
        }
        for (publisher, publication) in &mut self.publications {
            let has_room = |_| publication.shared.has_room();
            let due = Retry::due(&mut publication.retries, now_ns, has_room);
            offers.extend(due.into_iter().map(|subscriber| (*publisher, subscriber)));
        }
        for (publisher, subscriber) in asks {
            if let Some(via) = self.known.get(&publisher).map(|known| known.via) {
                self.post(via, Message::Ask { publisher, subscriber }, Vec::new());
            }
        }
        for (publisher, subscriber) in offers {
            self.offer(publisher, subscriber);
        }
    }
}

/// What a subscriber asks for and a publisher of this depth, which is reliable or not, does not offer.
fn reductions(qos: &SubscriberQos, offered: Option<(u64, bool)>) -> Vec<String> {
    let Some((depth, reliable)) = offered else { return Vec::new() };
    let mut reasons = Vec::new();
    if u64::from(qos.depth) > depth {
        reasons.push(format!(
            "the subscriber asks for a depth of {}, the publisher has {depth}: further behind, samples \
             are lost; set the publisher's depth to {0}",
            qos.depth
        ));
    }
    if is_reliable(qos) && !reliable {
        reasons.push(
            "the subscriber asks for reliability, the publisher is best effort and does not wait for \
             it; make the publisher reliable"
                .to_owned(),
        );
    }
    reasons
}

/// Why two endpoints do not match, if they are on one topic and do not.
fn mismatch(ours: &Topic, theirs: &Topic) -> Option<String> {
    (ours.name == theirs.name && ours.type_hash != theirs.type_hash).then(|| {
        format!(
            "it has {} on topic {:?}, not {}; use the same type on both sides, or another topic \
             name",
            type_text(theirs),
            ours.name,
            type_text(ours)
        )
    })
}

/// A topic's type, for people.
pub(crate) fn type_text(topic: &Topic) -> String {
    format!("{} (layout {:016x})", topic.type_name, topic.type_hash)
}

fn incompatible(endpoint: EndpointId, pid: u32, reason: String) -> Event {
    Event::Incompatible { endpoint, pid, reason }
}

/// The event for a match that ended with an error on our side.
fn refusal(endpoint: EndpointId, pid: u32, error: &Error) -> Event {
    match error {
        Error::PeerCorrupt { .. } => Event::Corrupt { endpoint },
        error => incompatible(endpoint, pid, error.to_string()),
    }
}

fn accept(
    shared: &SubscriptionShared,
    publisher: EndpointId,
    descriptors: Vec<OwnedFd>,
) -> Result<(u32, Descriptors), Error> {
    let [publication] = exactly(descriptors)?;
    let connection = shared.reserve(publisher, publication, Vec::new())?;
    let passed = shared.passed_to(connection);
    let passed = passed.inspect_err(|_| shared.publisher_never_came(publisher))?;
    let (subscription, Waking { bell, table, wake_end }) = passed;
    let PassedTable { heads, ready, pipe } = table;
    let passed = [subscription, bell, heads, ready, pipe].into_iter().chain(wake_end);
    Ok((connection, passed.map(Arc::new).collect()))
}

fn add_segments(
    shared: &SubscriptionShared,
    publisher: EndpointId,
    segments: &[SegmentSize],
    descriptors: &[OwnedFd],
) -> Result<(), Error> {
    if descriptors.len() != segments.len() {
        return Err(Error::TooManyFiles);
    }
    for (size, fd) in segments.iter().zip(descriptors) {
        let fd = duplicate(fd.as_fd(), "mapping a publisher's slots")?;
        shared.map_segment(publisher, size.number, size.slot_bytes, size.slots, fd)?;
    }
    Ok(())
}

fn view(
    publication: &PublicationShared,
    subscriber: EndpointId,
    known: &Known,
    connection: u32,
    mut descriptors: Vec<OwnedFd>,
    tables: &mut WakeTableViews,
) -> Result<RemoteSubscriber, Error> {
    let Kind::Subscriber { reliable, history } = known.kind else {
        return Err(Error::PeerCorrupt { what: "an answer of a publisher" });
    };
    let wake_end = if descriptors.len() > PASSED_MIN { descriptors.pop() } else { None };
    let [subscription, bell, heads, ready, pipe] = exactly::<PASSED_MIN>(descriptors)?;
    let waking = Waking { bell, table: PassedTable { heads, ready, pipe }, wake_end };
    RemoteSubscriber::map(
        subscriber,
        known.pid,
        publication.topic(),
        reliable,
        history,
        connection,
        publication.id(),
        subscription,
        waking,
        tables,
    )
}

/// The descriptors of a message; they lack only if this process could open no more.
fn exactly<const N: usize>(descriptors: Vec<OwnedFd>) -> Result<[OwnedFd; N], Error> {
    descriptors.try_into().map_err(|_| Error::TooManyFiles)
}

/// Whether a subscriber's settings ask publishers to wait for it.
pub(crate) fn is_reliable(qos: &SubscriberQos) -> bool {
    qos.reliability == Reliability::Reliable
}
