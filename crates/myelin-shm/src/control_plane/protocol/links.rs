//! The links to other nodes: connecting and being connected to, greeting, and ending. `outbox` has
//! the messages that wait for a peer.
//!
//! The node that has connected greets first. The other one answers with its own greeting, or closes
//! the link if there will be another one: of two links between two nodes the one that the lower id
//! has made stays. Only greetings pass before that is decided, so no message is sent twice or lost.

use crate::control_plane::directory::{NODE_SHIFT, node_of};
use crate::control_plane::link::Credentials;
use crate::control_plane::message::ControlMessage;
use crate::control_plane::protocol::graph::Location;
use crate::control_plane::protocol::observe::Requests;
use crate::control_plane::protocol::outbox::{BURST_MESSAGES, Next, Outbox};
use crate::control_plane::protocol::query::Query;
use crate::control_plane::protocol::{Action, OutOfOrder, Pair, Protocol, Timer};
use crate::event::Event;
use crate::limits::LINKS_MAX;
use crate::record::{Kind, NodeRecord};
use crate::topic::EndpointId;

/// The other side of a link.
#[derive(Debug)]
pub(super) struct Peer {
    who: Credentials,
    stage: Stage,
    /// Whether it has sent that it leaves.
    is_leaving: bool,
    /// Set when the creation of an endpoint of ours has ended without its answer, until it is known
    /// to run.
    pub(super) late: Option<Late>,
}

/// A peer that has not answered in time, and when it was last known to be behind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Late {
    /// Its socket was full, so that it runs if there is room.
    Full,
    /// Only a message shows that it runs: its socket may have room while it is stopped.
    Silent,
}

#[derive(Debug)]
enum Stage {
    /// We have connected to this node, and greeted.
    Connected { node: u64 },
    /// It has connected to us, and has not greeted yet.
    Accepted,
    /// Both sides have greeted, and this link stays.
    Greeted(Greeted),
}

#[derive(Debug)]
pub(super) struct Greeted {
    pub(super) node: u64,
    record: Box<NodeRecord>,
    /// How many endpoints it has announced.
    pub(super) endpoints: usize,
    /// Whether it has announced all endpoints that it had when we met.
    pub(super) has_announced_all: bool,
    /// Whether we have connected to it.
    by_us: bool,
    pub(super) outbox: Outbox,
    pub(super) query: Box<Query>,
    pub(super) requests: Requests,
}

/// A node that we are connecting to.
#[derive(Debug, Default)]
pub(super) struct Connecting {
    attempts: u32,
    due_ns: Option<u64>,
}

/// A peer that could not be linked.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedPeer {
    /// Its process; 0 if it is in a process namespace that is not visible here.
    pub pid: u32,
    /// Why, and what to do.
    pub reason: String,
}

/// Another node of the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct PeerInfo {
    /// Its id.
    pub node: u64,
    /// Where it is.
    pub location: Location,
    /// Its name.
    pub name: String,
    /// Its process; 0 if it is in a process namespace that is not visible here.
    pub pid: u32,
    /// The user that its process runs as.
    pub user: u32,
    /// What it announces of itself, its name included.
    pub record: NodeRecord,
}

impl PeerInfo {
    pub(crate) fn new(node: u64, who: Credentials, record: NodeRecord) -> PeerInfo {
        let Credentials { pid, uid: user } = who;
        let (location, name) = (Location::ThisHost, record.name.clone());
        PeerInfo { node, location, name, pid, user, record }
    }
}

impl Peer {
    pub(super) fn greeted_mut(&mut self) -> Option<&mut Greeted> {
        match &mut self.stage {
            Stage::Greeted(greeted) => Some(greeted),
            _ => None,
        }
    }

    pub(super) fn greeted(&self) -> Option<&Greeted> {
        match &self.stage {
            Stage::Greeted(greeted) => Some(greeted),
            _ => None,
        }
    }

    pub(super) fn pid(&self) -> u32 {
        self.who.pid
    }
}

impl<D: Clone> Protocol<D> {
    /// The nodes that have greeted.
    pub(crate) fn peers(&self) -> impl Iterator<Item = PeerInfo> {
        self.links.values().filter_map(|peer| {
            let Greeted { node, record, .. } = peer.greeted()?;
            Some(PeerInfo::new(*node, peer.who, (**record).clone()))
        })
    }

    pub(super) fn greeted(&self) -> impl Iterator<Item = &Greeted> {
        self.links.values().filter_map(Peer::greeted)
    }

    pub(super) fn greeted_mut(&mut self, link: u64) -> Option<&mut Greeted> {
        self.links.get_mut(&link).and_then(Peer::greeted_mut)
    }

    /// Peers that could not be linked; the newest.
    pub(crate) fn refused(&self) -> impl Iterator<Item = &RefusedPeer> {
        self.refused.iter()
    }

    /// Connects to a node, unless there is a link to it.
    pub(super) fn connect(&mut self, node: u64) {
        if node == self.node || self.nodes.contains_key(&node) {
            return self.forget_connecting(node);
        }
        if self.connecting.len() < LINKS_MAX || self.connecting.contains_key(&node) {
            let connecting = self.connecting.entry(node).or_default();
            if let Some(due_ns) = connecting.due_ns.take() {
                self.timers.remove(&(due_ns, Timer::Connect(node)));
            }
            self.actions.push(Action::Connect { node });
        }
    }

    /// A node accepts no links for now: it may be stopped, or descriptors may be short. We try again
    /// as long as it has a socket.
    pub(super) fn busy(&mut self, node: u64) {
        let Some(connecting) = self.connecting.get_mut(&node) else { return };
        let pause_ns = (CONNECT_NS_MIN << connecting.attempts.min(16)).min(CONNECT_NS_MAX);
        connecting.attempts += 1;
        connecting.due_ns = Some(self.now_ns + pause_ns);
        self.timers.extend(connecting.due_ns.map(|due_ns| (due_ns, Timer::Connect(node))));
    }

    pub(super) fn forget_connecting(&mut self, node: u64) {
        if let Some(Connecting { due_ns: Some(due_ns), .. }) = self.connecting.remove(&node) {
            self.timers.remove(&(due_ns, Timer::Connect(node)));
        }
    }

    pub(super) fn linked(&mut self, link: u64, who: Credentials, connected_to: Option<u64>) {
        connected_to.into_iter().for_each(|node| self.forget_connecting(node));
        let is_known = connected_to.is_some_and(|node| self.nodes.contains_key(&node));
        if is_known {
            return self.actions.push(Action::Close { link });
        }
        if self.links.len() >= LINKS_MAX {
            self.actions.push(Action::Close { link });
            let reason = format!(
                "this node has links to {LINKS_MAX} others, the limit; put fewer nodes into one \
                 domain, for example one node per process"
            );
            return self.warn_of_peer(who.pid, reason);
        }
        let stage = connected_to.map_or(Stage::Accepted, |node| Stage::Connected { node });
        self.links.insert(link, Peer { who, stage, is_leaving: false, late: None });
        if let Some(node) = connected_to {
            self.nodes.insert(node, link);
            self.greet(link);
        }
    }

    fn greet(&mut self, link: u64) {
        self.send(link, ControlMessage::Hello { node: self.node, record: self.record.clone() });
    }

    /// Sends a message at once.
    pub(super) fn send(&mut self, link: u64, message: ControlMessage) {
        self.actions.push(Action::Send { link, message, descriptors: Vec::new() });
    }

    pub(super) fn hello(
        &mut self,
        link: u64,
        node: u64,
        record: NodeRecord,
        owner: Option<u32>,
    ) -> Result<(), OutOfOrder> {
        let Some(peer) = self.links.get(&link) else { return Ok(()) };
        let is_node = node != self.node && node != 0 && node.trailing_zeros() >= NODE_SHIFT;
        let by_us = match peer.stage {
            Stage::Connected { node: expected } if expected == node => true,
            Stage::Accepted if is_node && !self.is_impostor(peer.who, node, owner) => false,
            _ => return Err(OutOfOrder),
        };
        if !by_us {
            if !self.shall_stay(node) {
                self.end_link(link, false);
                return Ok(());
            }
            self.nodes.insert(node, link);
            self.greet(link);
        }
        let greeted = Greeted {
            node,
            record: Box::new(record),
            endpoints: 0,
            has_announced_all: false,
            by_us,
            outbox: Outbox::new(self.node),
            query: Box::default(),
            requests: Requests::default(),
        };
        let peer = self.links.get_mut(&link).expect("the link is open");
        (peer.stage, peer.late) = (Stage::Greeted(greeted), None);
        self.send_burst(link);
        Ok(())
    }

    /// Whether the process at the other end of a link does not own the node that it claims to be.
    /// Ids are not secret, and a process that is accepted as a node makes that node's other link
    /// end.
    fn is_impostor(&self, who: Credentials, node: u64, owner: Option<u32>) -> bool {
        let known = self.nodes.get(&node).map(|link| self.links[link].who);
        known.is_some_and(|known| known != who) || owner.is_some_and(|owner| owner != who.uid)
    }

    /// Whether a link by `node` must stay; if so, ends the previous link.
    fn shall_stay(&mut self, node: u64) -> bool {
        let Some(before) = self.nodes.get(&node).copied() else { return true };
        let by_us = match &self.links[&before].stage {
            Stage::Connected { .. } => true,
            Stage::Greeted(greeted) => greeted.by_us,
            Stage::Accepted => false,
        };
        if by_us && self.node < node {
            return false;
        }
        // Our link gives way; or the node has connected before, and the end of that link is on its
        // way.
        self.end_link(before, true);
        true
    }

    /// A message that is not a greeting.
    pub(super) fn received(
        &mut self,
        link: u64,
        message: ControlMessage,
        descriptors: Vec<D>,
    ) -> Result<(), OutOfOrder> {
        let Some(peer) = self.links.get_mut(&link) else { return Ok(()) };
        peer.late = None;
        match message {
            ControlMessage::Leaving => peer.is_leaving = true,
            ControlMessage::Ready => peer.greeted_mut().ok_or(OutOfOrder)?.has_announced_all = true,
            message if peer.greeted().is_some() => self.act_on(link, message, descriptors)?,
            _ => return Err(OutOfOrder),
        }
        Ok(())
    }

    pub(super) fn ended(&mut self, link: u64) {
        let died = self.links.get(&link).is_some_and(|peer| !peer.is_leaving);
        self.end_link(link, died);
    }

    /// Ends a link and everything that came through it.
    pub(super) fn end_link(&mut self, link: u64, died: bool) {
        let Some(peer) = self.links.remove(&link) else { return };
        self.actions.push(Action::Close { link });
        let (Stage::Connected { node } | Stage::Greeted(Greeted { node, .. })) = peer.stage else {
            return;
        };
        self.nodes.remove(&node);
        for endpoint in self.endpoints_of(node) {
            self.forget(endpoint, died);
        }
    }

    /// Ends the link to a peer that sends invalid messages.
    pub(super) fn expel(&mut self, link: u64) {
        let node = self.links.get(&link).and_then(Peer::greeted).map(|greeted| greeted.node);
        for endpoint in node.map_or_else(Vec::new, |node| self.endpoints_of(node)) {
            for ours in self.matched_with(endpoint) {
                let event = Event::Corrupt { endpoint };
                self.deliver(ours, event);
            }
        }
        self.end_link(link, false);
    }

    fn endpoints_of(&self, node: u64) -> Vec<EndpointId> {
        self.directory.of_node_after(node, node).map(|(id, _)| id).collect()
    }

    /// Endpoints of ours that are matched with another node's endpoint, or about to be.
    fn matched_with(&self, other: EndpointId) -> Vec<EndpointId> {
        let Some(theirs) = self.directory.get(other) else { return Vec::new() };
        let mut ours = self.directory.fitting_of(self.node, theirs);
        match theirs.kind {
            Kind::Publisher => {
                ours.retain(|id| {
                    self.subscribers.get(id).is_some_and(|it| it.matches.is_active(other))
                });
                ours
            }
            Kind::Subscriber => {
                ours.retain(|id| {
                    self.publishers.get(id).is_some_and(|it| it.matches.is_active(other))
                });
                ours
            }
        }
    }

    /// Ends the link to a peer of another version and informs all endpoints here.
    pub(super) fn refuse_peer(&mut self, link: u64, reason: String) {
        let Some(peer) = self.links.get(&link) else { return };
        let pid = peer.pid();
        let node = match &peer.stage {
            Stage::Connected { node } | Stage::Greeted(Greeted { node, .. }) => *node,
            Stage::Accepted => 0,
        };
        if node == 0 {
            self.greet(link); // lets the other side learn our version
        }
        self.refuse(node, pid, reason);
        self.end_link(link, false);
    }

    /// Sends farewell to all peers and closes all links.
    pub(super) fn leave(&mut self) {
        self.nodes.clear();
        for link in std::mem::take(&mut self.links).into_keys() {
            self.send(link, ControlMessage::Leaving);
            self.actions.push(Action::Close { link });
        }
    }

    /// Announces a new endpoint of ours to all peers.
    pub(super) fn announce(&mut self, id: EndpointId) {
        for link in self.links.keys().copied().collect::<Vec<_>>() {
            let Some(peer) = self.greeted_mut(link) else { continue };
            if !peer.outbox.has_announced(id) {
                self.send_burst(link);
            } else if let Some(message) = self.announcement(id) {
                // Another thread's endpoint with a higher id was announced first.
                self.send(link, message);
            }
        }
    }

    /// An endpoint of ours has gone: informs all peers that know the endpoint.
    pub(super) fn retract(&mut self, id: EndpointId) {
        let knows = |peer: &Peer| peer.greeted().is_some_and(|it| it.outbox.has_announced(id));
        let links = self.links.iter().filter(|(_, peer)| knows(peer)).map(|(link, _)| *link);
        for link in links.collect::<Vec<_>>() {
            self.send(link, ControlMessage::Retracted { endpoint: id });
        }
        self.forget(id, false);
    }

    /// Offers a publisher of ours on a link, when it is its turn.
    pub(super) fn offer_by(&mut self, link: u64, pair: Pair) {
        debug_assert_eq!(node_of(pair.publisher), self.node);
        if let Some(peer) = self.greeted_mut(link) {
            peer.outbox.add_offer(pair);
            self.send_burst(link);
        }
    }

    /// Cancels an offer, if it still waits for its turn.
    pub(super) fn cancel_offer(&mut self, pair: Pair) {
        let link = self.link_of(pair.subscriber);
        if let Some(peer) = link.and_then(|link| self.greeted_mut(link)) {
            peer.outbox.cancel_offer(pair);
        }
    }

    pub(super) fn drained(&mut self, link: u64) {
        let Some(peer) = self.links.get_mut(&link) else { return };
        peer.late.take_if(|late| *late == Late::Full);
        if let Some(greeted) = peer.greeted_mut() {
            greeted.outbox.set_draining(false);
            self.send_burst(link);
        }
    }

    /// Sends the next burst of what waits for a peer, unless one is on its way.
    pub(super) fn send_burst(&mut self, link: u64) {
        let mut sent = 0;
        while sent < BURST_MESSAGES {
            let Some(peer) = self.links.get_mut(&link).and_then(Peer::greeted_mut) else { return };
            if peer.outbox.is_draining() {
                return;
            }
            let (directory, node) = (&self.directory, self.node);
            let endpoint_after = |id| Some(directory.of_node_after(node, id).next()?.0);
            let alone = |message| (message, Vec::new());
            let next = match peer.outbox.next(endpoint_after) {
                None => break,
                Some(Next::Offer(pair)) => {
                    sent += self.make_offer(pair);
                    continue;
                }
                Some(Next::Message(message)) => Some(alone(message)),
                Some(Next::Endpoint(id)) => self.announcement(id).map(alone),
                Some(Next::Reply(reply)) => Some(self.next_part(link, reply)),
                Some(Next::Segments(from)) => self.next_segments(link, from),
            };
            if let Some((message, descriptors)) = next {
                self.actions.push(Action::Send { link, message, descriptors });
                sent += 1;
            }
        }
        if sent > 0 {
            self.greeted_mut(link).expect("the link has greeted").outbox.set_draining(true);
            self.actions.push(Action::Drain { link });
        }
    }

    fn announcement(&self, id: EndpointId) -> Option<ControlMessage> {
        let record = self.directory.get(id)?.to_record();
        Some(ControlMessage::Announced { endpoint: id, record })
    }
}

const CONNECT_NS_MIN: u64 = 1_000_000;
const CONNECT_NS_MAX: u64 = 1_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::control_plane::protocol::Input;

    #[test]
    fn a_link_over_the_limit_is_closed_and_reported() {
        let mut protocol = Protocol::<()>::new(
            1 << NODE_SHIFT,
            NodeRecord::default(),
            Credentials { pid: 1, uid: 0 },
        );
        let mut linked = |link: usize| {
            let who = Credentials { pid: 7, uid: 0 };
            protocol.handle(0, Input::Linked { link: link as u64, who, connected_to: None })
        };
        for link in 0..LINKS_MAX {
            assert!(linked(link).is_empty());
        }
        let actions = linked(LINKS_MAX);
        let [Action::Close { link }, Action::Warn(warning)] = &actions[..] else {
            panic!("{actions:?}")
        };
        assert_eq!(*link, LINKS_MAX as u64);
        assert!(warning.sides.contains("process 7") && warning.reason.contains("1024 others"));
    }
}
