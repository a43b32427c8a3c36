//! Discovery and matching as a state machine: `docs/explanation/shared-memory.md` section 8. An
//! [`Input`] reports what has happened; [`Action`]s are what to do about it. It has no socket, no
//! memory to map and no clock, so `simulation` runs hundreds of nodes of it in one thread.
//!
//! The driver performs the actions in order. Some actions have an outcome, which is the next input;
//! the actions that follow from it come after those already pending.
//!
//! | | |
//! |---|---|
//! | `links` | connecting, greeting, ending |
//! | `outbox` | what waits until a link has room |
//! | `offers` | the publisher's side of a match |
//! | `answers` | the subscriber's side |
//! | `matches` | the state of a match, and when it is tried again |
//! | `first_matches` | what the creation of an endpoint waits for |
//! | `graph` | the node's knowledge, for people and tools |
//! | `reports` | events for users, and warnings for people |
//! | `query` | the graph queries of this node, and its answers to others |
//! | `observe` | the memory of publishers for this node's observers |

mod answers;
mod first_matches;
pub(crate) mod graph;
#[cfg(any(test, fuzzing))]
pub(crate) mod hostile;
mod links;
mod matches;
pub(crate) mod observe;
mod offers;
mod outbox;
pub(crate) mod query;
mod reports;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use crate::control_plane::directory::{Directory, NODE_SHIFT, node_of};
use crate::control_plane::link::Credentials;
use crate::control_plane::message::{ControlMessage, SegmentSize};
use crate::control_plane::protocol::links::{Connecting, Peer};
pub use crate::control_plane::protocol::links::{PeerInfo, RefusedPeer};
pub(crate) use crate::control_plane::protocol::matches::Refusal;
use crate::control_plane::protocol::matches::{Matches, State};
use crate::control_plane::protocol::observe::{Observed, ObserverId, Observers};
use crate::control_plane::protocol::offers::LocalPublisher;
use crate::control_plane::protocol::query::Queries;
use crate::error::Error;
use crate::event::Event;
use crate::limits::ENDPOINTS_MAX;
use crate::record::{AnnouncedQos, EndpointRecord, Kind, NodeRecord, Schema, type_text};
use crate::topic::{EndpointId, Topic};
use crate::warnings::Warning;

/// A node's knowledge, and its state towards all other nodes. `D` accompanies a message's bytes:
/// descriptors.
#[derive(Debug)]
pub(crate) struct Protocol<D> {
    node: u64,
    record: NodeRecord,
    who: Credentials,
    /// By key.
    links: BTreeMap<u64, Peer>,
    /// The link to each node that has one.
    nodes: BTreeMap<u64, u64>,
    /// Nodes that we are connecting to.
    connecting: BTreeMap<u64, Connecting>,
    refused: VecDeque<RefusedPeer>,
    directory: Directory,
    publishers: BTreeMap<EndpointId, LocalPublisher<D>>,
    subscribers: BTreeMap<EndpointId, LocalSubscriber<D>>,
    observers: Observers,
    endpoints_made: u64,
    /// The schemas of this node's types, by hash.
    schemas: BTreeMap<u64, Arc<Schema>>,
    queries: Queries,
    /// Each timer with its due time.
    timers: Timers,
    now_ns: u64,
    /// Messages to this node itself: both sides of a match within one node are handled in the same
    /// way.
    to_ourselves: VecDeque<(ControlMessage, Vec<D>)>,
    actions: Vec<Action<D>>,
}

/// A subscriber of this node.
#[derive(Debug)]
struct LocalSubscriber<D> {
    ignore_own_node: bool,
    subscription: D,
    /// By publisher.
    matches: Matches,
}

type Timers = BTreeSet<(u64, Timer)>;

/// An attempt to repeat.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    /// Connecting to a node that was busy.
    Connect(u64),
    /// Making the match of an endpoint of ours with another.
    Match(EndpointId, EndpointId),
    /// Asking for the memory of a publisher.
    Observe(EndpointId),
}

/// An event that the protocol reacts to.
#[derive(Debug)]
pub(crate) enum Input<D> {
    /// A node has a socket.
    Found { node: u64 },
    /// A new link: we have connected to a node, or an unknown node to us.
    Linked { link: u64, who: Credentials, connected_to: Option<u64> },
    /// Outcome of [`Action::Connect`]: the node lives, and accepts no links for now.
    Busy { node: u64 },
    /// Outcome of [`Action::Connect`]: the node does not live, or belongs to another user.
    Gone { node: u64 },
    /// The peer of a link names its node; `owner` is the user whose socket that node has.
    Hello { link: u64, node: u64, record: NodeRecord, owner: Option<u32> },
    /// Any other message.
    Received { link: u64, message: ControlMessage, descriptors: Vec<D> },
    /// Bytes that are not a message.
    Nonsense { link: u64 },
    /// The process that we have connected to, or that has connected to us, belongs to another user.
    Stranger { who: Credentials, connected_to: Option<u64>, reason: String },
    /// A message of another version of the protocol.
    OtherVersion { link: u64, reason: String },
    /// The other side has gone.
    Ended { link: u64 },
    /// The other side does not read, and the queue for it is full.
    Overrun { link: u64 },
    /// Outcome of [`Action::Drain`], maybe some time later.
    Drained { link: u64 },
    /// A publisher of ours, with its publication segment.
    PublisherMade { id: EndpointId, record: EndpointRecord, publication: D },
    /// A subscriber of ours, with its subscription segment.
    SubscriberMade {
        id: EndpointId,
        record: EndpointRecord,
        ignore_own_node: bool,
        subscription: D,
    },
    /// An endpoint of ours is dropped.
    Dropped { id: EndpointId },
    /// A publisher of ours has another slot segment.
    Grown { publisher: EndpointId, size: SegmentSize, segment: D },
    /// A subscriber of ours has found a publisher's memory corrupt.
    Corrupt { publisher: EndpointId, subscriber: EndpointId },
    /// A proxy publishes to a subscriber of ours; no other node is informed.
    ProxyMade { publisher: EndpointId, subscriber: EndpointId, qos: AnnouncedQos },
    /// The proxy has gone.
    ProxyGone { publisher: EndpointId, subscriber: EndpointId },
    /// Outcome of [`Action::Reserve`]; it has none if the subscriber is being dropped.
    Reserved { pair: Pair, result: Result<Reservation<D>, Refusal> },
    /// Outcome of [`Action::Map`], if it failed.
    NotMapped { pair: Pair, refusal: Refusal },
    /// Outcome of [`Action::Attach`]: the first sample that is published to the subscriber.
    Attached { pair: Pair, result: Result<u64, Refusal> },
    /// Outcome of [`Action::CheckRoom`]; as `Reserved`.
    Room { pair: Pair, is_free: bool },
    /// All peers must be queried for their counters and matches.
    QueryGraph,
    /// A peer must be queried for the schema of a type.
    QuerySchema { node: u64, type_hash: u64 },
    /// Outcome of [`Action::MapCounters`], if it failed and may succeed later.
    NotCounted { endpoint: EndpointId },
    /// A new observer of ours.
    ObserverMade { observer: ObserverId, topic: Topic },
    /// An observer of ours is dropped.
    ObserverDropped { observer: ObserverId },
    /// An observer of ours needs the slot segments of a publisher from this number on.
    Observe { publisher: EndpointId, from: u32 },
    /// Outcome of [`Action::MapObserved`], if it failed and may succeed later.
    NotObserved { publisher: EndpointId },
    /// Time has passed.
    Tick,
    /// The node leaves.
    Leave,
}

/// An action for the driver.
#[derive(Debug)]
pub(crate) enum Action<D> {
    /// Connect to a node: `Linked`, `Busy` or `Gone`.
    Connect { node: u64 },
    /// Send a message; perhaps `Overrun`.
    Send { link: u64, message: ControlMessage, descriptors: Vec<D> },
    /// Report `Drained` as soon as no message waits for the other side.
    Drain { link: u64 },
    /// Close a link.
    Close { link: u64 },
    /// At the subscriber: map the publisher, and give it a connection: `Reserved`.
    Reserve { pair: Pair, descriptors: Vec<D> },
    /// At the subscriber: map further slot segments; perhaps `NotMapped`.
    Map { pair: Pair, segments: Vec<SegmentSize>, descriptors: Vec<D> },
    /// At the subscriber: it reads samples from `start` on; a proxy has done this itself.
    Begin { pair: Pair, start: Option<u64> },
    /// At the subscriber: the match has ended. If it had not begun, the connection is free.
    Release { pair: Pair, had_begun: bool },
    /// At the subscriber: is a connection free? `Room`.
    CheckRoom { pair: Pair },
    /// At the publisher: map what the subscriber has passed, and look at it from now on: `Attached`.
    Attach { pair: Pair, subscriber: RemoteInfo, connection: u32, descriptors: Vec<D> },
    /// At the publisher: remove the subscriber.
    Detach { pair: Pair },
    /// At an observer: map memory of a publisher; perhaps `NotObserved`.
    MapObserved { observer: ObserverId, publisher: EndpointId, observed: Observed<D> },
    /// At an observer: the publisher has gone.
    Unobserve { observer: ObserverId, publisher: EndpointId },
    /// Map the segment in which an endpoint of a peer counts; no descriptor came if this process can
    /// open no more files. Perhaps `NotCounted`.
    MapCounters { endpoint: EndpointId, kind: Kind, descriptor: Option<D> },
    /// An endpoint of a peer has gone: its counters are not needed any more.
    UnmapCounters { endpoint: EndpointId },
    /// Write a warning for people, unless it was written before.
    Warn(Warning),
    /// Pass an event to the user of an endpoint.
    Deliver { endpoint: EndpointId, event: Event },
}

/// A publisher and a subscriber.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct Pair {
    pub(crate) publisher: EndpointId,
    pub(crate) subscriber: EndpointId,
}

/// A subscriber's resources for a publisher that it accepts.
#[derive(Debug)]
pub(crate) struct Reservation<D> {
    /// Its number for the publisher.
    pub(crate) connection: u32,
    /// The descriptors for the publisher: [`PASSED_MIN`](super::message::PASSED_MIN), or one more.
    pub(crate) passed: Vec<D>,
}

/// The known properties of the other side of a match.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RemoteInfo {
    pub(crate) pid: u32,
    pub(crate) qos: AnnouncedQos,
}

/// This peer must not send such a message; it should be dropped.
#[derive(Debug)]
struct OutOfOrder;

impl<D: Clone> Protocol<D> {
    pub(crate) fn new(node: u64, record: NodeRecord, who: Credentials) -> Protocol<D> {
        Protocol {
            node,
            record,
            who,
            links: BTreeMap::new(),
            nodes: BTreeMap::new(),
            connecting: BTreeMap::new(),
            refused: VecDeque::new(),
            directory: Directory::default(),
            publishers: BTreeMap::new(),
            subscribers: BTreeMap::new(),
            observers: Observers::default(),
            endpoints_made: 0,
            schemas: BTreeMap::new(),
            queries: Queries::default(),
            timers: Timers::new(),
            now_ns: 0,
            to_ourselves: VecDeque::new(),
            actions: Vec::new(),
        }
    }

    /// Its id.
    pub(crate) fn node(&self) -> u64 {
        self.node
    }

    /// All known endpoints.
    pub(crate) fn directory(&self) -> &Directory {
        &self.directory
    }

    /// When a [`Input::Tick`] is due.
    pub(crate) fn due_ns(&self) -> Option<u64> {
        self.timers.first().map(|(due_ns, _)| *due_ns)
    }

    /// The actions that follow from an input.
    pub(crate) fn handle(&mut self, now_ns: u64, input: Input<D>) -> Vec<Action<D>> {
        self.now_ns = now_ns;
        match input {
            Input::Found { node } => self.connect(node),
            Input::Linked { link, who, connected_to } => self.linked(link, who, connected_to),
            Input::Busy { node } => self.busy(node),
            Input::Gone { node } => self.forget_connecting(node),
            Input::Hello { link, node, record, owner } => {
                if self.hello(link, node, record, owner).is_err() {
                    self.expel(link);
                }
            }
            Input::Received { link, message, descriptors } => {
                if self.received(link, message, descriptors).is_err() {
                    self.expel(link);
                }
            }
            Input::Nonsense { link } => self.expel(link),
            Input::Stranger { who, connected_to, reason } => {
                connected_to.into_iter().for_each(|node| self.forget_connecting(node));
                self.refuse(connected_to.unwrap_or(0), who.pid, reason);
            }
            Input::OtherVersion { link, reason } => self.refuse_peer(link, reason),
            Input::Ended { link } => self.ended(link),
            Input::Overrun { link } => self.end_link(link, true),
            Input::Drained { link } => self.drained(link),
            Input::PublisherMade { id, record, publication } => {
                self.publisher_made(id, record, publication);
            }
            Input::SubscriberMade { id, record, ignore_own_node, subscription } => {
                self.subscriber_made(id, record, ignore_own_node, subscription);
            }
            Input::Dropped { id } => self.dropped(id),
            Input::Grown { publisher, size, segment } => self.grown(publisher, size, segment),
            Input::Corrupt { publisher, subscriber } => {
                self.decline(Pair { publisher, subscriber }, Refusal::corrupt("a sample"));
            }
            Input::ProxyMade { publisher, subscriber, qos } => {
                self.proxy_made(Pair { publisher, subscriber }, qos);
            }
            Input::ProxyGone { publisher, subscriber } => {
                self.lose_publisher(Pair { publisher, subscriber }, false);
            }
            Input::Reserved { pair, result } => self.reserved(pair, result),
            Input::NotMapped { pair, refusal } => self.decline(pair, refusal),
            Input::Attached { pair, result } => self.attached(pair, result),
            Input::Room { pair, is_free } => self.room_checked(pair, is_free),
            Input::QueryGraph => self.begin_graph_query(),
            Input::QuerySchema { node, type_hash } => self.begin_schema_query(node, type_hash),
            Input::NotCounted { endpoint } => self.not_counted(endpoint),
            Input::ObserverMade { observer, topic } => self.observer_made(observer, &topic),
            Input::ObserverDropped { observer } => self.observer_dropped(observer),
            Input::Observe { publisher, from } => self.observe(publisher, from),
            Input::NotObserved { publisher } => self.not_observed(publisher),
            Input::Tick => self.try_again(),
            Input::Leave => self.leave(),
        }
        self.receive_own();
        std::mem::take(&mut self.actions)
    }

    /// An id for a new endpoint of a topic.
    ///
    /// # Errors
    /// [`Error::TypeMismatch`] as for [`check_type`](Self::check_type), [`Error::TooMany`].
    pub(crate) fn new_endpoint(&mut self, topic: &Topic) -> Result<EndpointId, Error> {
        self.check_type(topic)?;
        self.new_id()
    }

    /// The same, for a [passive](crate::record::PASSIVE) subscriber.
    ///
    /// # Errors
    /// As for [`check_observed_type`](Self::check_observed_type), and [`Error::TooMany`].
    pub(crate) fn new_passive_endpoint(&mut self, topic: &Topic) -> Result<EndpointId, Error> {
        self.check_observed_type(topic)?;
        self.new_id()
    }

    fn new_id(&mut self) -> Result<EndpointId, Error> {
        let ours = self.publishers.len() + self.subscribers.len();
        if ours >= ENDPOINTS_MAX || self.endpoints_made + 1 >= 1 << NODE_SHIFT {
            let limit = ENDPOINTS_MAX as u64;
            return Err(Error::TooMany { topic: None, what: "endpoints of one node", limit });
        }
        self.endpoints_made += 1;
        Ok(self.node | self.endpoints_made)
    }

    /// Fails if any endpoint of the topic, ours or a peer's, has another type; unless it is passive.
    pub(crate) fn check_type(&self, topic: &Topic) -> Result<(), Error> {
        let Some((id, other)) = self.directory.misfit(topic) else { return Ok(()) };
        Err(Error::TypeMismatch {
            topic: topic.name.clone(),
            ours: type_text(&topic.type_name, topic.type_hash),
            theirs: other.topic.type_text(),
            pid: self.pid_of(id),
        })
    }

    /// Fails if all known endpoints of a topic have other types: an observer also looks at a topic
    /// whose endpoints do not agree.
    pub(crate) fn check_observed_type(&self, topic: &Topic) -> Result<(), Error> {
        if self.directory.has_type(topic) { Ok(()) } else { self.check_type(topic) }
    }

    fn publisher_made(&mut self, id: EndpointId, record: EndpointRecord, publication: D) {
        let own = self.directory.insert(id, record);
        self.publishers.insert(id, LocalPublisher::new(publication));
        self.announce(id);
        self.report_misfits(id, &own);
        for subscriber in self.directory.fitting(&own) {
            self.offer(Pair { publisher: id, subscriber });
        }
        self.observe_new(id, &own);
    }

    fn subscriber_made(
        &mut self,
        id: EndpointId,
        record: EndpointRecord,
        ignore_own_node: bool,
        subscription: D,
    ) {
        let own = self.directory.insert(id, record);
        let matches = Matches::default();
        let made = LocalSubscriber { ignore_own_node, subscription, matches };
        self.subscribers.insert(id, made);
        self.announce(id);
        self.report_misfits(id, &own);
        for publisher in self.directory.fitting_of(self.node, &own) {
            self.offer(Pair { publisher, subscriber: id });
        }
    }

    fn dropped(&mut self, id: EndpointId) {
        if let Some(mut publisher) = self.publishers.remove(&id) {
            for (subscriber, each) in publisher.matches.clear(id, &mut self.timers) {
                let pair = Pair { publisher: id, subscriber };
                self.cancel_offer(pair);
                if each.state == State::Matched {
                    self.actions.push(Action::Detach { pair });
                }
            }
            self.retract(id);
        }
        if let Some(mut subscriber) = self.subscribers.remove(&id) {
            subscriber.matches.clear(id, &mut self.timers);
            self.retract(id);
        }
    }

    /// A peer announces an endpoint of its own.
    fn introduced(
        &mut self,
        link: u64,
        id: EndpointId,
        record: EndpointRecord,
    ) -> Result<(), OutOfOrder> {
        let is_new = self.directory.get(id).is_none();
        let peer = self.greeted_mut(link).ok_or(OutOfOrder)?;
        let is_theirs = node_of(id) == peer.node && id != peer.node;
        if !is_new || !is_theirs || peer.endpoints >= ENDPOINTS_MAX {
            return Err(OutOfOrder);
        }
        peer.endpoints += 1;
        let theirs = self.directory.insert(id, record);
        for (ours, mismatch) in self.directory.misfits_of(self.node, &theirs) {
            self.report_incompatible(ours, id, mismatch);
        }
        if theirs.kind == Kind::Subscriber {
            for publisher in self.directory.fitting_of(self.node, &theirs) {
                self.offer(Pair { publisher, subscriber: id });
            }
        }
        self.observe_new(id, &theirs);
        Ok(())
    }

    /// An endpoint has left or died, here or at a peer: all its matches end.
    fn forget(&mut self, id: EndpointId, died: bool) {
        let Some(endpoint) = self.directory.remove(id) else { return };
        let fitting = self.directory.fitting_of(self.node, &endpoint);
        if node_of(id) != self.node {
            self.actions.push(Action::UnmapCounters { endpoint: id });
        }
        match endpoint.kind {
            Kind::Publisher => {
                for subscriber in fitting {
                    self.lose_publisher(Pair { publisher: id, subscriber }, died);
                }
                self.observed_no_more(id, &endpoint);
            }
            Kind::Subscriber => {
                for publisher in fitting {
                    self.lose_subscriber(Pair { publisher, subscriber: id }, died);
                }
            }
        }
    }

    /// Acts on a message of a peer that has greeted, or of this node itself.
    fn act_on(
        &mut self,
        link: u64,
        message: ControlMessage,
        descriptors: Vec<D>,
    ) -> Result<(), OutOfOrder> {
        if let Some(endpoint) = message.sender() {
            self.check_sender(link, endpoint)?;
        }
        match message {
            ControlMessage::Announced { endpoint, record } => {
                self.introduced(link, endpoint, record)?;
            }
            ControlMessage::Retracted { endpoint } => {
                self.greeted_mut(link).ok_or(OutOfOrder)?.endpoints -= 1;
                self.forget(endpoint, false);
            }
            ControlMessage::Offer { pair } => self.offered(pair, descriptors)?,
            ControlMessage::RequestOffer { pair } => self.offer(pair),
            ControlMessage::Segments { publisher, segments } => {
                self.segments_came(publisher, &segments, &descriptors);
            }
            ControlMessage::Accept { pair, connection, .. } => {
                self.accepted(pair, connection, descriptors);
            }
            ControlMessage::Matched { pair, start } => self.matched(pair, start),
            ControlMessage::Withdrawn { pair, reason } => self.withdrawn(pair, reason),
            ControlMessage::Declined { pair, reason } => self.declined(pair, reason),
            ControlMessage::QuerySchema { type_hash } => {
                self.schema_query_received(link, type_hash)?;
            }
            ControlMessage::Query { from } => self.query_received(link, from)?,
            ControlMessage::Counted { endpoints } => {
                self.counted(link, &endpoints, descriptors)?;
            }
            ControlMessage::MatchesReported { .. }
            | ControlMessage::Schema { .. }
            | ControlMessage::Answered { .. } => self.answer_received(link, message)?,
            ControlMessage::Observe { publisher, from } => {
                self.observe_received(link, publisher, from)?
            }
            ControlMessage::Observed { publisher, has_ring, segments, is_last } => {
                self.observed(link, publisher, (has_ring, segments, is_last), descriptors)?;
            }
            ControlMessage::Hello { .. } | ControlMessage::Ready | ControlMessage::Leaving => {
                return Err(OutOfOrder);
            }
        }
        Ok(())
    }

    /// Fails if the endpoint is not known to be the peer's own.
    fn check_sender(&self, link: u64, id: EndpointId) -> Result<(), OutOfOrder> {
        // One of ours may have left while a message about it was in the queue.
        let is_theirs = self.link_of(id) == Some(link);
        let is_known = link == OURSELVES || self.directory.get(id).is_some();
        if is_theirs && is_known { Ok(()) } else { Err(OutOfOrder) }
    }

    /// The link to an endpoint's node.
    fn link_of(&self, id: EndpointId) -> Option<u64> {
        match node_of(id) {
            node if node == self.node => Some(OURSELVES),
            node => self.nodes.get(&node).copied(),
        }
    }

    /// The process of an endpoint.
    fn pid_of(&self, id: EndpointId) -> u32 {
        match self.link_of(id) {
            Some(OURSELVES) => self.who.pid,
            link => link.and_then(|link| self.links.get(&link)).map_or(0, Peer::pid),
        }
    }

    /// Sends a message to the node of an endpoint, which may be this node.
    fn send_to(&mut self, endpoint: EndpointId, message: ControlMessage, descriptors: Vec<D>) {
        match self.link_of(endpoint) {
            Some(OURSELVES) => self.to_ourselves.push_back((message, descriptors)),
            Some(link) => self.actions.push(Action::Send { link, message, descriptors }),
            None => {}
        }
    }

    /// Acts on the messages to this node itself, until there are none.
    fn receive_own(&mut self) {
        while let Some((message, descriptors)) = self.to_ourselves.pop_front() {
            let received = self.act_on(OURSELVES, message, descriptors);
            debug_assert!(received.is_ok(), "a message to this node is valid");
        }
    }

    fn try_again(&mut self) {
        while let Some((due_ns, timer)) = self.timers.first().copied()
            && due_ns <= self.now_ns
        {
            self.timers.pop_first();
            match timer {
                Timer::Connect(node) => self.connect(node),
                Timer::Match(ours, other) if self.publishers.contains_key(&ours) => {
                    self.offer_again(Pair { publisher: ours, subscriber: other });
                }
                Timer::Observe(publisher) => self.observe_again(publisher),
                Timer::Match(ours, other) => {
                    let pair = Pair { publisher: other, subscriber: ours };
                    self.actions.push(Action::CheckRoom { pair });
                }
            }
        }
    }
}

/// Represents the node itself where other nodes have a link.
const OURSELVES: u64 = u64::MAX;

#[cfg(test)]
mod simulation;
