//! What a node knows, for people and tools.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use crate::control_plane::directory::{Kind, node_of};
use crate::control_plane::protocol::matches::{Matches, State};
use crate::control_plane::protocol::query::{Answer, Counted};
use crate::control_plane::protocol::{PeerInfo, Protocol};
use crate::topic::{EndpointId, Reliability};

/// All that a node knows of its domain at one moment. What is said of another process is what that
/// process says of itself; it can lie, but tell of no more than 16,384 endpoints and as many matches.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// The nodes that are linked with this one, and this one, by id.
    pub nodes: Vec<PeerInfo>,
    /// Their publishers and subscribers, by id.
    pub endpoints: Vec<EndpointInfo>,
    /// How far the matches are of this node's endpoints, and of those of nodes that were asked and have
    /// answered, by the ids. Two endpoints of these have two entries, one for each side.
    pub matches: Vec<MatchInfo>,
    /// The types of the endpoints, by hash and name.
    pub types: Vec<TypeInfo>,
    /// Endpoints on other hosts, and of DDS programs, by id; without a network that is up there are none.
    /// Nobody tells of their depth, their matches among themselves and what they have counted.
    pub remote_endpoints: Vec<RemoteEndpointInfo>,
    /// The nodes that were asked and have not answered in time: stopped, or busy.
    pub silent: Vec<u64>,
    /// The nodes that have more to tell than they may.
    pub incomplete: Vec<u64>,
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
    /// What it has counted; `None` of a node that was not asked or has not answered.
    pub counters: Option<Counters>,
    /// What names it in DDS, of this node's while there is a network; of a subscriber with several readers,
    /// one of them.
    pub dds_guid: Option<[u8; 16]>,
}

/// What an endpoint has counted since it was made. The words are read while it goes on, one after the
/// other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counters {
    /// A publisher.
    Publisher {
        /// Samples it has published.
        published: u64,
        /// Bytes of the shared memory it has made: ring and slots.
        memory_bytes: u64,
    },
    /// A subscriber.
    Subscriber {
        /// Samples it has lost, on the way from other hosts too; a loss is counted when the next sample
        /// is taken.
        lost: u64,
        /// Samples in slots that its user holds now; those of up to 104 B are copies, and not counted.
        held: u64,
        /// Bytes of the shared memory it has made: what it announces.
        memory_bytes: u64,
    },
}

/// A type that a topic of the domain carries.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TypeInfo {
    /// Hash of its layout.
    pub hash: u64,
    /// Its name; endpoints that match may call a type differently.
    pub name: String,
    /// Names, types and offsets of its fields, as `Imu{stamp_ns: u64 @0, gyro: [f32; 3] @8} 24`; `None`
    /// if nobody has told. `docs/reference/library.md` has the grammar.
    pub layout: Option<Arc<str>>,
}

/// An endpoint that the network leads to, as far as it tells.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemoteEndpointInfo {
    /// Its id: of Myelin's the one it has there, of a DDS program's what this process calls it.
    pub id: EndpointId,
    /// Names the host of a Myelin program; `None` of other DDS programs, wherever they are.
    pub host: Option<u64>,
    /// The topic; of DDS programs and topics made for them the name that it has among these.
    pub topic: String,
    /// The type, for people.
    pub type_name: String,
    /// Whether it publishes; otherwise it subscribes.
    pub is_publisher: bool,
    /// Whether it is reliable, or asks for it; `None`: not known.
    pub reliable: Option<bool>,
    /// Whether there is something for those that come later, or asked for; `None`: not known.
    pub keeps_history: Option<bool>,
    /// What names it in DDS; of a subscriber with several readers, one of them.
    pub guid: [u8; 16],
    /// What it tells of itself in DDS.
    pub user_data: Vec<u8>,
    /// Its deadline, if it has one; here and below of publishers what they promise, of subscribers what
    /// they ask for.
    pub deadline: Option<Duration>,
    /// How long its samples are of use, if they are not for ever.
    pub lifespan: Option<Duration>,
    /// How often it says that it is alive, if it has to.
    pub liveliness: Option<Duration>,
    /// Whether only its program says so, for this endpoint alone.
    pub is_alive_by_topic: bool,
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
    /// With the counters of this node's endpoints, by id, and what others have told since the survey
    /// began, if there was one.
    pub(crate) fn graph(&self, counted: &Counted, survey: Option<u64>) -> Graph {
        let ours = PeerInfo { node: self.node, name: self.name.clone(), pid: self.pid };
        let answers: Vec<_> = survey.into_iter().flat_map(|begun| self.answers(begun)).collect();
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
            depth: endpoint.qos.depth,
            reliable: endpoint.qos.reliability == Reliability::Reliable,
            history: endpoint.qos.history,
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
            silent: survey.into_iter().flat_map(|begun| self.silent(begun)).collect(),
            incomplete: answers.iter().filter_map(is_cut).collect(),
        }
    }

    /// How far the matches of this node's endpoints are, by the ids.
    pub(super) fn own_matches(&self) -> Vec<MatchInfo> {
        let offers = self.publishers.iter().map(|(id, it)| (*id, &it.matches));
        let answers = self.subscribers.iter().map(|(id, it)| (*id, &it.matches));
        let mut matches: Vec<_> = offers.chain(answers).flat_map(made).collect();
        matches.extend(self.misfits());
        matches.sort_unstable_by_key(|each| (each.endpoint, each.other));
        matches
    }

    /// The types of all endpoints. This node's word for a layout comes before others'.
    fn types(&self, answers: &[(u64, &Answer)]) -> Vec<TypeInfo> {
        let named =
            self.directory.iter().map(|(_, it)| (it.topic.type_hash(), it.topic.type_name()));
        let told = |hash| answers.iter().find_map(|(_, answer)| answer.layouts.get(&hash)).cloned();
        let info = |(hash, name): (u64, &str)| TypeInfo {
            hash,
            name: name.to_owned(),
            layout: self.layouts.get(&hash).cloned().or_else(|| told(hash)),
        };
        named.collect::<BTreeSet<_>>().into_iter().map(info).collect()
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
