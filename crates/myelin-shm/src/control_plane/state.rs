//! All that a node knows, under one lock: its links, everybody's endpoints, its own publishers and
//! subscribers. `peers` keeps the links, `matching` makes the matches.

use std::collections::{BTreeMap, VecDeque};
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::Duration;

use crate::control_plane::endpoints::{LocalPublication, LocalSubscription, Match};
use crate::control_plane::link::Descriptors;
use crate::control_plane::matching::{is_reliable, type_text};
use crate::control_plane::message::Message;
use crate::control_plane::peers::{Peer, Redial, RefusedPeer};
use crate::control_plane::qos_monitor::{Change, QosMonitor};
use crate::control_plane::registry::Registry;
use crate::data_plane::publication::PublicationShared;
use crate::data_plane::subscription::SubscriptionShared;
use crate::error::Error;
use crate::event::Event;
use crate::limits::ENDPOINTS_MAX;
use crate::os::descriptor::{NodeFd, with_more_files};
use crate::os::poll::Poll;
use crate::topic::{EndpointId, Topic};
use crate::waiting::wait::now_ns;
use crate::waiting::wake_table::WakeTableViews;

/// A node's knowledge. Whoever holds its lock calls [`apply_pending`](Self::apply_pending) before letting go.
pub(crate) struct State {
    pub(crate) node: u64,
    pub(crate) name: String,
    pub(crate) registry: Registry,
    pub(crate) poll: Arc<Poll>,
    pub(crate) listener: Option<NodeFd>,
    /// Accepting is paused until then, for want of descriptors.
    pub(crate) paused_until_ns: Option<u64>,
    /// By key.
    pub(crate) peers: BTreeMap<u64, Peer>,
    pub(crate) next_key: u64,
    pub(crate) redials: Vec<Redial>,
    pub(crate) refused: VecDeque<RefusedPeer>,
    /// Links that are to be ended by `apply_pending`.
    pub(crate) closing: Vec<u64>,
    /// Messages to ourselves.
    own_messages: VecDeque<(Message, Vec<OwnedFd>)>,
    endpoints_made: u64,
    /// Endpoints of all nodes, ours included.
    pub(crate) known: BTreeMap<EndpointId, Known>,
    pub(crate) publications: BTreeMap<EndpointId, LocalPublication>,
    pub(crate) subscriptions: BTreeMap<EndpointId, LocalSubscription>,
    /// Of the nodes that our publishers have been matched with.
    pub(crate) tables: WakeTableViews,
}

/// An endpoint, as its node tells all others.
#[derive(Clone, Debug)]
pub(crate) struct Known {
    pub(crate) topic: Topic,
    pub(crate) kind: Kind,
    /// The link to its node.
    pub(crate) via: u64,
    pub(crate) pid: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Kind {
    Publisher,
    Subscriber { reliable: bool, history: u32 },
}

impl State {
    pub(crate) fn new(
        node: u64,
        name: String,
        registry: Registry,
        poll: Arc<Poll>,
        listener: NodeFd,
    ) -> State {
        State {
            node,
            name,
            registry,
            poll,
            listener: Some(listener),
            paused_until_ns: None,
            peers: BTreeMap::new(),
            next_key: FIRST_LINK,
            redials: Vec::new(),
            refused: VecDeque::new(),
            closing: Vec::new(),
            own_messages: VecDeque::new(),
            endpoints_made: 0,
            known: BTreeMap::new(),
            publications: BTreeMap::new(),
            subscriptions: BTreeMap::new(),
            tables: WakeTableViews::default(),
        }
    }

    /// An id for a new endpoint of a topic, unless the topic has another type.
    pub(crate) fn new_endpoint(&mut self, topic: &Topic) -> Result<EndpointId, Error> {
        self.check_type(topic)?;
        let ours = self.known.values().filter(|known| known.via == OURSELVES).count();
        if ours >= ENDPOINTS_MAX || self.endpoints_made + 1 >= 1 << 24 {
            let limit = ENDPOINTS_MAX as u64;
            return Err(Error::TooMany { topic: None, what: "endpoints of one node", limit });
        }
        self.endpoints_made += 1;
        Ok(self.node | self.endpoints_made)
    }

    /// Fails if any endpoint of the topic, ours or a peer's, has another type.
    pub(crate) fn check_type(&self, topic: &Topic) -> Result<(), Error> {
        let other = self.known.values().find(|known| {
            known.topic.name == topic.name && known.topic.type_hash != topic.type_hash
        });
        other.map_or(Ok(()), |other| {
            Err(Error::TypeMismatch {
                topic: topic.name.clone(),
                ours: type_text(topic),
                theirs: type_text(&other.topic),
                pid: other.pid,
            })
        })
    }

    pub(crate) fn add_publication(&mut self, shared: Arc<PublicationShared>) {
        let (publisher, topic) = (shared.id(), shared.topic().clone());
        let progress = (shared.published(), shared.asserted());
        let monitor = QosMonitor::new(shared.qos().deadline, None, progress, now_ns());
        if monitor.is_some() {
            self.poll.wake();
        }
        let (matches, retries) = (BTreeMap::new(), BTreeMap::new());
        let publication = LocalPublication { shared, matches, retries, monitor };
        self.publications.insert(publisher, publication);
        self.tell_all(&Message::Published { publisher, topic });
        self.offer_to_all(publisher);
    }

    pub(crate) fn add_subscription(&mut self, shared: &Arc<SubscriptionShared>) {
        let (id, topic, qos) = (shared.id(), shared.topic().clone(), *shared.qos());
        let reliable = is_reliable(&qos);
        let history = qos.history;
        let subscribed =
            Message::Subscribed { subscriber: id, topic: topic.clone(), reliable, history };
        let (inbox, shared) = (shared.inbox().clone(), Arc::downgrade(shared));
        let (matches, retries) = (BTreeMap::new(), BTreeMap::new());
        let subscription = LocalSubscription { id, topic, qos, shared, inbox, matches, retries };
        self.subscriptions.insert(id, subscription);
        self.tell_all(&subscribed);
    }

    pub(crate) fn remove_publication(&mut self, publisher: EndpointId) {
        let Some(publication) = self.publications.remove(&publisher) else { return };
        publication.matches.keys().for_each(|subscriber| publication.shared.detach(*subscriber));
        self.tell_all(&Message::Unpublished { publisher });
    }

    pub(crate) fn remove_subscription(&mut self, subscriber: EndpointId) {
        if self.subscriptions.remove(&subscriber).is_some() {
            self.tell_all(&Message::Unsubscribed { subscriber });
        }
    }

    /// A subscriber of ours has a proxy: a match with nobody of this host.
    pub(crate) fn proxy_came(&mut self, publisher: EndpointId, subscriber: EndpointId) {
        let Some(subscription) = self.subscriptions.get_mut(&subscriber) else { return };
        let begun = Match { via: OURSELVES, pid: 0, complete: false, monitor: None };
        subscription.matches.insert(publisher, begun);
        self.begin_match(publisher, subscriber);
    }

    /// What stood in for a publisher of another host has gone.
    pub(crate) fn proxy_gone(&mut self, publisher: EndpointId, subscriber: EndpointId) {
        if let Some(subscription) = self.subscriptions.get_mut(&subscriber) {
            subscription.lose(publisher, false);
        }
    }

    /// What there is to tell a new peer.
    pub(crate) fn own_endpoints(&self) -> Vec<Message> {
        let ours = self.known.iter().filter(|(_, known)| known.via == OURSELVES);
        ours.map(|(id, known)| match known.kind {
            Kind::Publisher => Message::Published { publisher: *id, topic: known.topic.clone() },
            Kind::Subscriber { reliable, history } => Message::Subscribed {
                subscriber: *id,
                topic: known.topic.clone(),
                reliable,
                history,
            },
        })
        .collect()
    }

    /// Sends a message to a peer or to ourselves; a peer that does not take it is ended.
    pub(crate) fn post(&mut self, via: u64, message: Message, descriptors: Descriptors) {
        if via == OURSELVES {
            // The receiver may find that some lack; it then has run out of descriptors.
            let own = |fd: Arc<OwnedFd>| {
                Arc::try_unwrap(fd).or_else(|fd| with_more_files(|| fd.try_clone()))
            };
            let descriptors = descriptors.into_iter().map(own).collect::<Result<_, _>>();
            self.own_messages.push_back((message, descriptors.unwrap_or_default()));
        } else if let Some(peer) = self.peers.get_mut(&via) {
            let sent = peer.link.send(&message, descriptors);
            self.after_send(via, sent);
        }
    }

    /// Ends what is to be ended and passes the messages to ourselves, until there are none.
    pub(crate) fn apply_pending(&mut self) {
        loop {
            if let Some(key) = self.closing.pop() {
                self.end_link(key, true);
            } else if let Some((message, descriptors)) = self.own_messages.pop_front() {
                let handled = self.handle(OURSELVES, message, descriptors);
                debug_assert!(handled.is_ok(), "we do not send nonsense to ourselves");
            } else {
                return;
            }
        }
    }

    /// Acts on a message of a peer that has greeted, or of ourselves.
    ///
    /// # Errors
    /// It is not for this peer to say; it should be dropped.
    pub(crate) fn handle(
        &mut self,
        via: u64,
        message: Message,
        descriptors: Vec<OwnedFd>,
    ) -> Result<(), Error> {
        match message {
            Message::Published { publisher, topic } => {
                let known = self.introduce(via, publisher, topic, Kind::Publisher)?;
                self.published(publisher, known);
            }
            Message::Subscribed { subscriber, topic, reliable, history } => {
                let kind = Kind::Subscriber { reliable, history };
                let known = self.introduce(via, subscriber, topic, kind)?;
                self.subscribed(subscriber, known);
            }
            Message::Unpublished { publisher: id } | Message::Unsubscribed { subscriber: id } => {
                self.check_speaker(via, id)?;
                self.forget(id, false);
            }
            Message::Offer { publisher, subscriber } => {
                self.check_speaker(via, publisher)?;
                self.offered(publisher, subscriber, descriptors);
            }
            Message::Ask { publisher, subscriber } => {
                self.check_speaker(via, subscriber)?;
                self.offer(publisher, subscriber);
            }
            Message::Segments { publisher, segments } => {
                self.check_speaker(via, publisher)?;
                self.segments_came(publisher, &segments, descriptors);
            }
            Message::Accept { publisher, subscriber, connection, .. } => {
                self.check_speaker(via, subscriber)?;
                self.accepted(publisher, subscriber, connection, descriptors);
            }
            Message::Matched { publisher, subscriber, start } => {
                self.check_speaker(via, publisher)?;
                self.matched(publisher, subscriber, start);
            }
            Message::Withdrawn { publisher, subscriber, reason } => {
                self.check_speaker(via, publisher)?;
                self.withdrawn(publisher, subscriber, reason);
            }
            Message::Declined { publisher, subscriber, reason } => {
                self.check_speaker(via, subscriber)?;
                self.declined(publisher, subscriber, reason);
            }
            Message::Hello { .. } | Message::Ready | Message::Leaving => {
                return Err(Error::PeerCorrupt { what: "a message out of order" });
            }
        }
        Ok(())
    }

    /// When the thread has to look again without being woken.
    pub(crate) fn next_look(&self) -> Option<Duration> {
        let now_ns = now_ns();
        let redials = self.redials.iter().map(|redial| redial.due_ns);
        let sends = self.peers.values().filter_map(|peer| peer.send_again_ns);
        let retries = self.publications.values().map(|it| &it.retries);
        let retries = retries.chain(self.subscriptions.values().map(|it| &it.retries));
        let retries = retries.flat_map(|retries| retries.values().map(|retry| retry.due_ns));
        let due = redials.chain(sends).chain(retries).chain(self.paused_until_ns).min();
        let due = due.map(|due_ns| due_ns.saturating_sub(now_ns));
        let publishers = self.publications.values().filter_map(|it| it.monitor.as_ref());
        let matches = self.subscriptions.values().flat_map(|it| it.matches.values());
        let monitors = publishers.chain(matches.filter_map(|each| each.monitor.as_ref()));
        let monitor = monitors.map(QosMonitor::interval_ns).min();
        due.into_iter().chain(monitor).min().map(Duration::from_nanos)
    }

    /// Looks at all publishers that have a deadline or must show that they live.
    pub(crate) fn check_deadlines(&mut self) {
        let now_ns = now_ns();
        for (id, publication) in &mut self.publications {
            if let Some(monitor) = &mut publication.monitor {
                let progress = (publication.shared.published(), publication.shared.asserted());
                let inbox = publication.shared.inbox();
                events(monitor.look(progress, now_ns), *id).for_each(|event| inbox.push(event));
            }
        }
        for LocalSubscription { shared, matches, .. } in self.subscriptions.values_mut() {
            let Some(shared) = shared.upgrade() else { continue };
            for (id, each) in matches {
                if let (Some(monitor), Some(progress)) = (&mut each.monitor, shared.progress(*id)) {
                    events(monitor.look(progress, now_ns), *id)
                        .for_each(|event| shared.tell(event));
                }
            }
        }
    }

    fn tell_all(&mut self, message: &Message) {
        let peers = self.peers.iter().filter(|(_, peer)| peer.greeted).map(|(key, _)| *key);
        for via in peers.chain([OURSELVES]).collect::<Vec<_>>() {
            self.post(via, message.clone(), Vec::new());
        }
        // Whoever greets us from now on is told of it by `own_endpoints`.
        self.apply_pending();
    }

    /// What a peer tells about an endpoint of its own.
    fn introduce(
        &self,
        via: u64,
        id: EndpointId,
        topic: Topic,
        kind: Kind,
    ) -> Result<Known, Error> {
        let (node, pid) = match via {
            OURSELVES => (self.node, std::process::id()),
            via => {
                let peer = &self.peers[&via];
                (peer.node.unwrap_or_default(), peer.pid)
            }
        };
        let theirs = self.known.values().filter(|known| known.via == via).count();
        let is_new = id >> 24 == node >> 24 && id != node && !self.known.contains_key(&id);
        match is_new && theirs < ENDPOINTS_MAX {
            true => Ok(Known { topic, kind, via, pid }),
            false => Err(Error::PeerCorrupt { what: "an endpoint's id, or too many of them" }),
        }
    }

    /// Fails if the endpoint is not known to be the peer's own.
    fn check_speaker(&self, via: u64, id: EndpointId) -> Result<(), Error> {
        // One of ours may have left while a message about it was on its way through the queue.
        let is_theirs = self.known.get(&id).is_none_or(|known| known.via == via);
        let may_be_unknown = via == OURSELVES;
        match is_theirs && (may_be_unknown || self.known.contains_key(&id)) {
            true => Ok(()),
            false => Err(Error::PeerCorrupt { what: "a message about another's endpoint" }),
        }
    }

    /// Asks the poll for the listening socket's events, or not.
    pub(crate) fn pause_listening(&mut self, until_ns: Option<u64>) {
        self.paused_until_ns = until_ns;
        if let Some(listener) = &self.listener {
            self.poll.pause(listener.as_fd(), LISTENER, until_ns.is_some());
        }
    }
}

fn events(changes: [Option<Change>; 2], endpoint: EndpointId) -> impl Iterator<Item = Event> {
    changes.into_iter().flatten().map(move |change| match change {
        Change::Missed => Event::DeadlineMissed { endpoint },
        Change::Lost => Event::LivelinessLost { endpoint },
        Change::Regained => Event::LivelinessRegained { endpoint },
    })
}

/// Stands for the node itself where others have a link.
pub(crate) const OURSELVES: u64 = u64::MAX;
/// The listening socket's key.
pub(crate) const LISTENER: u64 = 0;
/// Key of the first link; the waker has 1.
const FIRST_LINK: u64 = 2;
