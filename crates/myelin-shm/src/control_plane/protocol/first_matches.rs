//! The creation of an endpoint waits until each other node has announced its endpoints, has been
//! informed of the new endpoint, and has made its matches with it, or refused them. The endpoint
//! then reaches all endpoints that existed.
//!
//! A node that does not answer in time is late. No creation waits for it until something shows that
//! it runs again: a message, or room in its socket. Everything that a creation waits for ends with a
//! message from the node, unless our announcement still waits for that room.

use crate::control_plane::directory::node_of;
use crate::control_plane::protocol::Protocol;
use crate::control_plane::protocol::links::{Greeted, Late, Peer};
use crate::control_plane::protocol::matches::State;
use crate::topic::EndpointId;

impl<D: Clone> Protocol<D> {
    /// Whether the creation of an endpoint of ours still has to wait for a node that is not late.
    pub(crate) fn is_awaiting(&self, id: EndpointId) -> bool {
        self.unanswered(id).any(|link| self.links[&link].late.is_none())
    }

    /// Ends the creation of an endpoint: nodes that have not answered are late.
    pub(crate) fn stop_awaiting(&mut self, id: EndpointId) {
        for link in self.unanswered(id).collect::<Vec<_>>() {
            let peer = self.links.get_mut(&link).expect("an unanswered link is open");
            let is_full = peer.greeted().is_some_and(|peer| peer.outbox.is_draining());
            peer.late.get_or_insert(if is_full { Late::Full } else { Late::Silent });
        }
    }

    /// Links to the nodes that have not answered, some twice.
    fn unanswered(&self, id: EndpointId) -> impl Iterator<Item = u64> {
        let knows = move |peer: &Peer| peer.greeted().is_some_and(|peer| self.knows(peer, id));
        let links = self.links.iter().filter(move |(_, peer)| !knows(peer)).map(|(link, _)| *link);
        links.chain(self.unmatched(id).filter_map(|other| self.nodes.get(&node_of(other)).copied()))
    }

    /// Whether a node has announced its endpoints, and been informed of an endpoint of ours, unless
    /// that endpoint has gone.
    pub(super) fn knows(&self, peer: &Greeted, id: EndpointId) -> bool {
        let is_announced = peer.outbox.has_announced(id) || self.directory.get(id).is_none();
        peer.has_announced_all && is_announced && !peer.outbox.is_draining()
    }

    /// Endpoints of other nodes that will match or refuse an endpoint of ours, and have not yet
    /// done so.
    fn unmatched(&self, id: EndpointId) -> impl Iterator<Item = EndpointId> {
        let publisher = self.publishers.get(&id).map(|ours| &ours.matches);
        let matches = publisher.or(self.subscribers.get(&id).map(|ours| &ours.matches));
        let own = matches.and_then(|matches| Some((matches, self.directory.get(id)?)));
        own.into_iter().flat_map(move |(matches, own)| {
            let others = self.directory.fitting(own).into_iter();
            others.filter(move |other| {
                let state = matches.get(*other).map(|each| &each.state);
                let is_settled = matches!(state, Some(State::Matched | State::Refused { .. }));
                !is_settled && node_of(*other) != self.node
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::control_plane::message::ControlMessage;
    use crate::control_plane::protocol::Input;
    use crate::control_plane::protocol::hostile::{LINK, Met};

    #[test]
    fn a_late_peer_is_waited_for_again_when_it_sends_a_message() {
        let mut met = Met::new();
        met.receives(ControlMessage::Ready);
        for _ in 0..3 {
            let id = met.makes_publisher();
            assert!(met.protocol.is_awaiting(id));
            met.protocol.stop_awaiting(id);
            met.handle(Input::Dropped { id });
            let next = met.makes_publisher();
            assert!(!met.protocol.is_awaiting(next), "it may be stopped");
            met.receives(ControlMessage::Ready);
            assert!(met.protocol.is_awaiting(next));
        }
    }

    #[test]
    fn a_late_peer_is_waited_for_again_when_its_full_socket_has_room() {
        let mut met = Met::with_peer_that_reads(false);
        met.receives(ControlMessage::Ready);
        let first = met.makes_publisher();
        assert!(met.protocol.is_awaiting(first));
        met.protocol.stop_awaiting(first);
        let next = met.makes_publisher();
        assert!(!met.protocol.is_awaiting(next));
        met.handle(Input::Drained { link: LINK });
        assert!(met.protocol.is_awaiting(next));
    }
}
