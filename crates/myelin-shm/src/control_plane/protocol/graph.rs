//! A node's knowledge of its domain, for people and tools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::control_plane::directory::node_of;
use crate::control_plane::protocol::matches::{Matches, State};
use crate::control_plane::protocol::query::{Answer, Counted};
use crate::control_plane::protocol::{PeerInfo, Protocol};
pub use crate::record::Counters;
use crate::record::{AnnouncedQos, Attributes, Kind, Matching, Mismatch, Schema};
use crate::topic::{EndpointId, Reliability};

/// A node's view of its domain at one moment. Information about another process comes from that
/// process. It can lie, but report no more than 16,384 endpoints and as many matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The nodes that are linked with this one, and this one, by id.
    pub nodes: Vec<PeerInfo>,
    /// Their publishers and subscribers, by id.
    pub endpoints: Vec<EndpointInfo>,
    /// The states of the matches of this node's endpoints, and of those of nodes that were queried
    /// and have answered, by ids. If both endpoints of a match belong to these nodes, there are two
    /// entries, one for each side.
    pub matches: Vec<MatchInfo>,
    /// The types of the endpoints, by hash and name.
    pub types: Vec<TypeInfo>,
    /// Endpoints on other hosts, and of DDS programs, by id; empty without a network that is up.
    /// Their depth, their matches with each other and their counters are unknown.
    pub remote_endpoints: Vec<RemoteEndpointInfo>,
    /// The nodes that were queried and have not answered in time: stopped, or busy.
    pub silent: Vec<u64>,
    /// The nodes whose answers were cut off at a limit.
    pub incomplete: Vec<u64>,
}

/// A publisher or subscriber of the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointInfo {
    /// Its id.
    pub id: EndpointId,
    /// Its node's id.
    pub node: u64,
    /// Its topic.
    pub topic: String,
    /// The type's name.
    pub type_name: String,
    /// Hash of the type's layout: endpoints with different hashes do not match.
    pub type_hash: u64,
    /// Whether it publishes; otherwise it subscribes.
    pub is_publisher: bool,
    /// How many samples a subscriber can be behind, or requests to be.
    pub depth: u32,
    /// Whether a publisher waits for subscribers, or a subscriber requests it.
    pub reliable: bool,
    /// How many samples are kept for late subscribers, or requested by a late subscriber.
    pub history: u32,
    /// All announced settings, those above included.
    pub qos: AnnouncedQos,
    /// When it matches.
    pub matching: Matching,
    /// When it was made, in nanoseconds since 1970 by the clock of the host.
    pub created_ns: u64,
    /// What else its node announces of it.
    pub attributes: Attributes,
    /// Its counters; `None` if its node was not queried or has not answered.
    pub counters: Option<Counters>,
    /// Its GUID in DDS, for an endpoint of this node while there is a network; for a subscriber
    /// with several readers, the GUID of one of them.
    pub dds_guid: Option<[u8; 16]>,
}

/// The type of a topic of the domain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// Hash of its layout.
    pub hash: u64,
    /// Its name; endpoints that match may have different names for a type.
    pub name: String,
    /// How its samples are to be read; `None` if no node has reported it. For plain data it is a
    /// [layout](Schema::layout), such as `Imu{stamp_ns: u64 @0, gyro: [f32; 3] @8} 24`.
    pub schema: Option<Arc<Schema>>,
}

/// An endpoint that is reached through the network, as far as it announces itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteEndpointInfo {
    /// Its id: for Myelin's endpoints the id on their host, for a DDS program's the id that this
    /// process gave it.
    pub id: EndpointId,
    /// Names the host of a Myelin program; `None` for other DDS programs, wherever they run.
    pub host: Option<u64>,
    /// The topic; for DDS programs and topics made for them, the name in DDS.
    pub topic: String,
    /// The type, for people.
    pub type_name: String,
    /// Whether it publishes; otherwise it subscribes.
    pub is_publisher: bool,
    /// Whether it is reliable, or requests it; `None`: unknown.
    pub reliable: Option<bool>,
    /// Whether it keeps or requests samples for late subscribers; `None`: unknown.
    pub keeps_history: Option<bool>,
    /// Its GUID in DDS; for a subscriber with several readers, the GUID of one of them.
    pub guid: [u8; 16],
    /// Its user data in DDS.
    pub user_data: Vec<u8>,
    /// Its deadline, if it has one. Here and below, a publisher offers the value and a subscriber
    /// requests it.
    pub deadline: Option<Duration>,
    /// How long its samples are valid, if not for ever.
    pub lifespan: Option<Duration>,
    /// Its liveliness lease, if it has one.
    pub liveliness: Option<Duration>,
    /// Whether only its program asserts liveliness, for this endpoint alone.
    pub is_alive_by_topic: bool,
}

/// A match of an endpoint of this node, and its state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MatchInfo {
    /// The endpoint of this node.
    pub endpoint: EndpointId,
    /// The other side.
    pub other: EndpointId,
    /// Its state.
    pub state: MatchState,
}

/// The state of a match.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum MatchState {
    /// The two sides are connecting.
    Pending,
    /// Samples flow.
    Matched,
    /// There is no match.
    Refused {
        /// Why, and what to do.
        reason: String,
        /// The setting that differs; `None`: one side lacks something.
        mismatch: Option<Mismatch>,
    },
}

impl<D: Clone> Protocol<D> {
    /// With the counters of this node's endpoints, by id, and the answers of others since the
    /// graph query began, if there was one.
    pub(crate) fn graph(&self, counted: &Counted, graph_query: Option<u64>) -> Graph {
        let ours = PeerInfo::new(self.node, self.who, self.record.clone());
        let answers: Vec<_> =
            graph_query.into_iter().flat_map(|begun| self.answers(begun)).collect();
        let of_answers = answers.iter().flat_map(|(_, answer)| &answer.counted);
        let counters: BTreeMap<_, _> = counted.iter().chain(of_answers).copied().collect();
        let mut nodes: Vec<_> = self.peers().chain([ours]).collect();
        nodes.sort_unstable_by_key(|peer| peer.node);
        let endpoints = self.directory.iter().map(|(id, endpoint)| EndpointInfo {
            id,
            node: node_of(id),
            topic: endpoint.topic.name.to_string(),
            type_name: endpoint.topic.type_name().to_owned(),
            type_hash: endpoint.topic.type_hash(),
            is_publisher: endpoint.kind == Kind::Publisher,
            depth: endpoint.qos().depth,
            reliable: endpoint.qos().reliability == Reliability::Reliable,
            history: endpoint.qos().history,
            qos: *endpoint.qos(),
            matching: endpoint.settings.matching,
            created_ns: endpoint.created_ns,
            attributes: endpoint.attributes(),
            counters: counters.get(&id).copied(),
            dds_guid: None,
        });
        let endpoints = endpoints.collect();
        let mut matches = self.own_matches();
        matches.extend(answers.iter().flat_map(|(_, answer)| answer.matches.iter().cloned()));
        matches.sort_unstable_by_key(|each| (each.endpoint, each.other));
        let is_cut = |(node, answer): &(u64, &Answer)| (!answer.is_complete).then_some(*node);
        Graph {
            nodes,
            endpoints,
            matches,
            types: self.types(&answers),
            remote_endpoints: Vec::new(),
            silent: graph_query.into_iter().flat_map(|begun| self.silent(begun)).collect(),
            incomplete: answers.iter().filter_map(is_cut).collect(),
        }
    }

    /// The states of the matches of this node's endpoints, by ids.
    pub(super) fn own_matches(&self) -> Vec<MatchInfo> {
        let offers = self.publishers.iter().map(|(id, it)| (*id, &it.matches));
        let answers = self.subscribers.iter().map(|(id, it)| (*id, &it.matches));
        let mut matches: Vec<_> = offers.chain(answers).flat_map(made).collect();
        matches.extend(self.misfits());
        matches.sort_unstable_by_key(|each| (each.endpoint, each.other));
        matches
    }

    /// The types of all endpoints. This node's schema of a type takes precedence over
    /// others'.
    fn types(&self, answers: &[(u64, &Answer)]) -> Vec<TypeInfo> {
        let named =
            self.directory.iter().map(|(_, it)| (it.topic.type_hash(), it.topic.type_name()));
        let received =
            |hash| answers.iter().find_map(|(_, answer)| answer.schemas.get(&hash)).cloned();
        let info = |(hash, name): (u64, &str)| TypeInfo {
            hash,
            name: name.to_owned(),
            schema: self.schemas.get(&hash).cloned().or_else(|| received(hash)),
        };
        named.collect::<BTreeSet<_>>().into_iter().map(info).collect()
    }

    /// Endpoints on a topic of ours that cannot match.
    fn misfits(&self) -> Vec<MatchInfo> {
        let mut misfits = Vec::new();
        for (other, theirs) in self.directory.iter() {
            for (endpoint, mismatch) in self.directory.misfits_of(self.node, theirs) {
                let reason = mismatch.to_string();
                let state = MatchState::Refused { reason, mismatch: Some(mismatch) };
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
            State::Refused { reason, .. } => {
                MatchState::Refused { reason: reason.clone(), mismatch: None }
            }
        };
        MatchInfo { endpoint, other, state }
    })
}
