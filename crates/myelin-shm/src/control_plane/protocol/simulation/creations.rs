//! Users that make an endpoint wait as the node's code does. When the wait returns, the endpoint
//! reaches all matching endpoints whose creation had returned before, unless a node was late.

use std::collections::BTreeSet;

use super::Mutant;
use super::checks::is_refused;
use super::world::{Node, World};
use crate::control_plane::directory::node_of;
use crate::control_plane::protocol::Pair;
use crate::topic::EndpointId;

#[derive(Default)]
pub(super) struct Creations {
    under_way: Vec<Creation>,
    /// Endpoints whose creation has returned while no node was late.
    usable: BTreeSet<EndpointId>,
    /// How many of these have found an existing endpoint.
    pub(super) found: u64,
}

struct Creation {
    node: u64,
    endpoint: EndpointId,
    until_ns: u64,
    /// The endpoints that it has to reach, unless they go.
    expected: Vec<EndpointId>,
    is_certain: bool,
}

impl World {
    /// Begins the creation of an endpoint by a user: messages from others are read first.
    pub(super) fn begin_creation(&mut self, node: u64, endpoint: EndpointId) {
        let is_certain = self.receives(node);
        while is_certain && (self.accept(node) || self.read(node)) {}
        let others = self.creations.usable.iter().copied();
        let expected = others.filter(|other| self.know_each_other(node, *other)).collect();
        let until_ns = self.now_ns + LIMIT_NS;
        let made = Creation { node, endpoint, until_ns, expected, is_certain };
        self.creations.under_way.push(made);
    }

    /// Some of a node's creations may return now.
    pub(super) fn return_from_creations(&mut self, node: u64) {
        let is_mutant = self.mutant == Some(Mutant::WaitsForNobody);
        let under_way = &mut self.creations.under_way;
        for creation in under_way.extract_if(.., |it| it.node == node).collect::<Vec<_>>() {
            let Creation { endpoint, until_ns, is_certain, .. } = creation;
            let protocol = &mut self.nodes.get_mut(&node).expect("it lives").protocol;
            let is_late = until_ns <= self.now_ns;
            let is_over = is_late || is_mutant || !protocol.is_awaiting(endpoint);
            if !is_over {
                self.creations.under_way.push(creation);
                continue;
            }
            let is_anybody_late = protocol.links.values().any(|peer| peer.late.is_some());
            protocol.stop_awaiting(endpoint);
            if is_certain && !is_late && !is_anybody_late {
                self.check_creation(&creation);
                self.creations.usable.insert(endpoint);
            }
        }
    }

    pub(super) fn forget_creation(&mut self, endpoint: EndpointId) {
        self.creations.usable.remove(&endpoint);
        self.creations.under_way.retain(|creation| creation.endpoint != endpoint);
    }

    fn check_creation(&mut self, creation: &Creation) {
        let own = creation.endpoint;
        for other in creation.expected.iter().copied() {
            let ours = &self.nodes[&creation.node];
            let Some(theirs) = self.nodes.get(&node_of(other)) else { continue };
            let is_publisher = ours.memory.publishers.contains_key(&own);
            let (publisher, subscriber) = if is_publisher { (own, other) } else { (other, own) };
            let (offering, asking) = if is_publisher { (ours, theirs) } else { (theirs, ours) };
            let made = offering.memory.publishers.get(&publisher);
            let made = made.zip(asking.memory.subscribers.get(&subscriber));
            let Some((offer, _)) = made.filter(|(offer, request)| offer.fits(request)) else {
                continue;
            };
            let is_attached = offer.attached.contains_key(&subscriber);
            let offers = &offering.protocol.publishers[&publisher].matches;
            let answers = &asking.protocol.subscribers[&subscriber].matches;
            let is_refused = is_refused(offers, subscriber) || is_refused(answers, publisher);
            let pair = Pair { publisher, subscriber };
            assert!(is_attached || is_refused, "{pair:x?}: the new one does not reach the other");
            self.creations.found += u64::from(is_attached);
        }
    }

    /// Both nodes have announced their endpoints to each other.
    fn know_each_other(&self, node: u64, other: EndpointId) -> bool {
        let has_announced_all = |one: u64, of: u64| {
            let Some(Node { protocol, .. }) = self.nodes.get(&one) else { return false };
            let peer = protocol.nodes.get(&of).and_then(|link| protocol.links.get(link));
            peer.and_then(|peer| peer.greeted()).is_some_and(|peer| protocol.knows(peer, one))
        };
        let its = node_of(other);
        its != node && has_announced_all(node, its) && has_announced_all(its, node)
    }
}

/// How long a creation waits.
const LIMIT_NS: u64 = 20_000_000;
