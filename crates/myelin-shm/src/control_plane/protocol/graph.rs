//! What a node knows, for people and tools.

use crate::control_plane::directory::{Kind, node_of};
use crate::control_plane::protocol::matches::{Matches, State};
use crate::control_plane::protocol::{PeerInfo, Protocol};
use crate::topic::{EndpointId, Reliability};

/// All that a node knows of its domain at one moment. What is said of another process is what that
/// process says of itself; it can lie, but tell of no more than 16,384 endpoints.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The nodes that are linked with this one, and this one, by id.
    pub nodes: Vec<PeerInfo>,
    /// Their publishers and subscribers, by id.
    pub endpoints: Vec<EndpointInfo>,
    /// How far the matches of this node's endpoints are. Two endpoints of this node have two entries,
    /// one for each side.
    pub matches: Vec<MatchInfo>,
}

/// A publisher or subscriber of the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EndpointInfo {
    /// Its id.
    pub id: EndpointId,
    /// Its node's id.
    pub node: u64,
    /// Its topic.
    pub topic: String,
    /// The type's name.
    pub type_name: String,
    /// Hash of the type's layout: endpoints with different ones do not match.
    pub type_hash: u64,
    /// Whether it publishes; otherwise it subscribes.
    pub is_publisher: bool,
    /// How many samples a subscriber can be behind, or wants to.
    pub depth: u32,
    /// Whether a publisher waits for subscribers, or a subscriber asks for it.
    pub reliable: bool,
    /// How many samples are kept for those that come later, or wanted of before.
    pub history: u32,
}

/// A match of an endpoint of this node, as far as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchInfo {
    /// The endpoint of this node.
    pub endpoint: EndpointId,
    /// The other side.
    pub other: EndpointId,
    /// How far it is.
    pub state: MatchState,
}

/// How far a match is.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchState {
    /// The two sides are at it.
    Pending,
    /// Samples flow.
    Matched,
    /// There is none.
    Refused {
        /// Why, and what to do.
        reason: String,
    },
}

impl<D: Clone> Protocol<D> {
    pub(crate) fn graph(&self) -> Graph {
        let ours = PeerInfo { node: self.node, name: self.name.clone(), pid: self.pid };
        let mut nodes: Vec<_> = self.peers().chain([ours]).collect();
        nodes.sort_unstable_by_key(|peer| peer.node);
        let endpoints = self.directory.iter().map(|(id, endpoint)| EndpointInfo {
            id,
            node: node_of(id),
            topic: endpoint.topic.name.clone(),
            type_name: endpoint.topic.type_name.clone(),
            type_hash: endpoint.topic.type_hash,
            is_publisher: endpoint.kind == Kind::Publisher,
            depth: endpoint.qos.depth,
            reliable: endpoint.qos.reliability == Reliability::Reliable,
            history: endpoint.qos.history,
        });
        let endpoints = endpoints.collect();
        let offers = self.publishers.iter().map(|(id, it)| (*id, &it.matches));
        let answers = self.subscribers.iter().map(|(id, it)| (*id, &it.matches));
        let mut matches: Vec<_> = offers.chain(answers).flat_map(made).collect();
        matches.extend(self.misfits());
        matches.sort_unstable_by_key(|each| (each.endpoint, each.other));
        Graph { nodes, endpoints, matches }
    }

    /// Endpoints on a topic of ours that have another type.
    fn misfits(&self) -> Vec<MatchInfo> {
        let mut misfits = Vec::new();
        for (other, theirs) in self.directory.iter().filter(|(id, _)| node_of(*id) != self.node) {
            for endpoint in self.directory.misfits_of(self.node, &theirs.topic, theirs.kind.other())
            {
                let Some(own) = self.directory.get(endpoint) else { continue };
                let reason = super::mismatch(&own.topic, &theirs.topic);
                let state = MatchState::Refused { reason };
                misfits.push(MatchInfo { endpoint, other, state });
            }
        }
        misfits
    }
}

fn made((endpoint, matches): (EndpointId, &Matches)) -> impl Iterator<Item = MatchInfo> {
    matches.iter().map(move |(other, each)| {
        let state = match &each.state {
            State::Queued | State::Offered | State::Accepted => MatchState::Pending,
            State::Matched => MatchState::Matched,
            State::Refused { reason, .. } => MatchState::Refused { reason: reason.clone() },
        };
        MatchInfo { endpoint, other, state }
    })
}
