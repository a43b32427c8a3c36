//! The creation of an endpoint waits until each other node has announced its endpoints, has been
//! informed of the new endpoint, and has made its matches with it, or refused them. The endpoint
//! then reaches all endpoints that existed.
//!
//! A node that does not answer in time is late. No creation waits for it until it has answered
//! everything that it was late with.

use crate::control_plane::directory::node_of;
use crate::control_plane::protocol::Protocol;
use crate::control_plane::protocol::links::{Greeted, Peer};
use crate::control_plane::protocol::matches::State;
use crate::topic::EndpointId;

impl<D: Clone> Protocol<D> {
    /// Whether the creation of an endpoint of ours still has to wait for a node that is not late.
    pub(crate) fn is_awaiting(&self, id: EndpointId) -> bool {
        self.unanswered(id).any(|link| self.links[&link].late.is_empty())
    }

    /// Ends the creation of an endpoint: nodes that have not answered are late.
    pub(crate) fn stop_awaiting(&mut self, id: EndpointId) {
        for link in self.unanswered(id).collect::<Vec<_>>() {
            let late = &mut self.links.get_mut(&link).expect("an unanswered link is open").late;
            // A peer that has answered with this endpoint has done so with all that have gone.
            late.retain(|id| self.directory.get(*id).is_some());
            if late.back() != Some(&id) {
                late.push_back(id);
            }
        }
    }

    /// Called before a creation: nodes that have answered meanwhile are not late any more.
    pub(super) fn forgive(&mut self) {
        for link in self.links.keys().copied().collect::<Vec<_>>() {
            while let Some(id) = self.links[&link].late.front()
                && self.has_answered(link, *id)
            {
                self.links.get_mut(&link).expect("an unanswered link is open").late.pop_front();
            }
        }
    }

    /// Whether a node has done everything that the creation of an endpoint of ours waits for.
    pub(super) fn has_answered(&self, link: u64, id: EndpointId) -> bool {
        let Some(peer) = self.links[&link].greeted() else { return false };
        self.knows(peer, id) && self.unmatched(id).all(|other| node_of(other) != peer.node)
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
