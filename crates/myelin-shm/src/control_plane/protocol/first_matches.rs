//! What the creation of an endpoint waits for: that each node that answers has told what it has, has been
//! told of the endpoint, and has made its matches with it, or refused them. Who uses the endpoint then
//! reaches all that were there.
//!
//! A node that does not answer in time is silent. It is not waited for again until it says something.

use crate::control_plane::directory::node_of;
use crate::control_plane::protocol::matches::State;
use crate::control_plane::protocol::{Protocol, links::Peer};
use crate::topic::EndpointId;

impl<D: Clone> Protocol<D> {
    /// Whether the creation of an endpoint of ours has to wait for a node that is not silent.
    pub(crate) fn is_awaiting(&self, id: EndpointId) -> bool {
        self.awaited(id).any(|link| !self.links[&link].is_silent)
    }

    /// The nodes that the creation of an endpoint has waited for in vain are silent.
    pub(crate) fn stop_awaiting(&mut self, id: EndpointId) {
        for link in self.awaited(id).collect::<Vec<_>>() {
            self.links.get_mut(&link).expect("it is one of ours").is_silent = true;
        }
    }

    /// Links to the nodes that have not answered all.
    fn awaited(&self, id: EndpointId) -> impl Iterator<Item = u64> {
        let links = self.links.iter().filter(move |(_, peer)| !Peer::has_answered(peer, id));
        let links = links.map(|(link, _)| *link);
        links.chain(self.unmatched(id).filter_map(|other| self.nodes.get(&node_of(other)).copied()))
    }

    /// Endpoints of other nodes that an endpoint of ours will be matched with, or refused by, and is not yet.
    fn unmatched(&self, id: EndpointId) -> impl Iterator<Item = EndpointId> {
        let publisher = self.publishers.get(&id).map(|ours| &ours.matches);
        let matches = publisher.or(self.subscribers.get(&id).map(|ours| &ours.matches));
        let own = matches.and_then(|matches| Some((matches, self.directory.get(id)?)));
        own.into_iter().flat_map(move |(matches, own)| {
            let others = self.directory.fitting(&own.topic, own.kind.other()).into_iter();
            others.filter(move |other| {
                let state = matches.get(*other).map(|each| &each.state);
                let is_settled = matches!(state, Some(State::Matched | State::Refused { .. }));
                !is_settled && node_of(*other) != self.node
            })
        })
    }
}
