//! A node's knowledge of its domain, for people and tools.

use std::collections::BTreeSet;
use std::sync::Arc;

use crate::control_plane::directory::{Endpoint, node_of};
use crate::control_plane::protocol::matches::{Matches, State};
use crate::control_plane::protocol::query::{Answer, Counted};
use crate::control_plane::protocol::{PeerInfo, Protocol};
pub use crate::record::Counters;
use crate::record::{AnnouncedQos, Attributes, EndpointRecord, Kind, Matching, Mismatch, Schema};
use crate::topic::{EndpointId, Reliability, Topic};

/// A node's view of its domain at one moment. Information about another process comes from that
/// process. It can lie, but report no more than 16,384 endpoints and as many matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The nodes that are linked with this one, and this one, by id; with a network that is up, also
    /// those of other hosts.
    pub nodes: Vec<PeerInfo>,
    /// Their publishers and subscribers, by id; with a network that is up, also those of DDS
    /// programs.
    pub endpoints: Vec<EndpointInfo>,
    /// The states of the matches of this node's endpoints, and of those of nodes that were queried
    /// and have answered, by ids. If both endpoints of a match belong to these nodes, there are two
    /// entries, one for each side.
    pub matches: Vec<MatchInfo>,
    /// The types of the endpoints, by hash and name.
    pub types: Vec<TypeInfo>,
    /// The nodes that were queried and have not answered in time: stopped, or busy.
    pub silent: Vec<u64>,
    /// The nodes whose answers were cut off at a limit.
    pub incomplete: Vec<u64>,
}

/// Where a node or an endpoint is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Location {
    /// On this host: it is reached through shared memory.
    #[default]
    ThisHost,
    /// On another host, which has this number: it is reached through the network.
    OtherHost(u64),
    /// In a DDS program that does not use Myelin, wherever it runs.
    Dds,
}

/// What DDS knows of an endpoint that is reached through the network.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct DdsInfo {
    /// Its GUID; for a subscriber with several readers, the GUID of one of them.
    pub guid: [u8; 16],
    /// The name of its topic.
    pub topic: String,
    /// The name of its type.
    pub type_name: String,
    /// Its user data, as its program set it.
    pub user_data: Vec<u8>,
}

/// A publisher or subscriber of the domain.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct EndpointInfo {
    /// Its id; for one of a DDS program, the id that this process gave it.
    pub id: EndpointId,
    /// Its node's id; 0 for an endpoint of a DDS program.
    pub node: u64,
    /// Where it is.
    pub location: Location,
    /// Its topic; for an endpoint of a DDS program, the name in DDS.
    pub topic: String,
    /// The type's name; for an endpoint of a DDS program, the name in DDS.
    pub type_name: String,
    /// Hash of the type's layout: endpoints with different hashes do not match. 0 for an endpoint of
    /// a DDS program.
    pub type_hash: u64,
    /// Whether it publishes; otherwise it subscribes.
    pub is_publisher: bool,
    /// How many samples a subscriber can be behind, or requests to be; 0, which is unknown, for an
    /// endpoint of a DDS program.
    pub depth: u32,
    /// Whether a publisher waits for subscribers, or a subscriber requests it.
    pub reliable: bool,
    /// How many samples are kept for late subscribers, or requested by a late subscriber; for an
    /// endpoint of a DDS program at most 1, which stands for any number.
    pub transient_local: u32,
    /// All announced settings, those above included.
    pub qos: AnnouncedQos,
    /// When it matches.
    pub matching: Matching,
    /// When it was made, in nanoseconds since 1970 by the clock of the host.
    pub created_ns: u64,
    /// What else its node announces of it.
    pub attributes: Attributes,
    /// Its counters; `None` for endpoints of other hosts, and of a node that this one has not queried
    /// yet or that has never answered. Once it has answered, its counters are read from its memory:
    /// also while it is stopped, and without another query.
    pub counters: Option<Counters>,
    /// What DDS knows of it, while there is a network; `None` for endpoints of other nodes of this
    /// host.
    pub dds: Option<DdsInfo>,
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

impl EndpointInfo {
    /// As its node announces it.
    pub(crate) fn of(id: EndpointId, endpoint: &Endpoint) -> EndpointInfo {
        EndpointInfo::new(id, endpoint.to_record())
    }

    pub(crate) fn new(id: EndpointId, record: EndpointRecord) -> EndpointInfo {
        let EndpointRecord { kind, topic, qos, matching, created_ns, attributes } = record;
        let Topic { name: topic, type_name, type_hash } = topic;
        EndpointInfo {
            id,
            node: node_of(id),
            topic,
            type_name,
            type_hash,
            is_publisher: kind == Kind::Publisher,
            depth: qos.depth,
            reliable: qos.reliability == Reliability::Reliable,
            transient_local: qos.transient_local,
            qos,
            matching,
            created_ns,
            attributes,
            ..EndpointInfo::default()
        }
    }
}

impl<D: Clone> Protocol<D> {
    /// With the counters that can be read here, and the answers of others since the graph query
    /// began, if there was one.
    pub(crate) fn graph(&self, counted: &Counted, graph_query: Option<u64>) -> Graph {
        let answers: Vec<_> =
            graph_query.into_iter().flat_map(|begun| self.answers(begun)).collect();
        let mut nodes: Vec<_> = self.peers().chain([self.info()]).collect();
        nodes.sort_unstable_by_key(|peer| peer.node);
        let endpoints = self.directory.iter().map(|(id, endpoint)| EndpointInfo {
            counters: counted.get(&id).copied(),
            ..EndpointInfo::of(id, endpoint)
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
            silent: graph_query.into_iter().flat_map(|begun| self.silent(begun)).collect(),
            incomplete: answers.iter().filter_map(is_cut).collect(),
        }
    }

    /// This node.
    pub(crate) fn info(&self) -> PeerInfo {
        PeerInfo::new(self.node, self.who, self.record.clone())
    }

    /// An endpoint of this node or of another one, without its counters.
    pub(crate) fn endpoint(&self, id: EndpointId) -> Option<EndpointInfo> {
        self.directory.get(id).map(|endpoint| EndpointInfo::of(id, endpoint))
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
        // Not by all endpoints: ours are few in a large domain.
        for (endpoint, ours) in self.directory.of_node_after(self.node, self.node) {
            for (other, mismatch) in self.directory.misfits(ours) {
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
