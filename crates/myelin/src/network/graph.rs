//! The network's part of `Node::graph`: nodes and endpoints elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use myelin_dds::{Endpoint, Guid};

use super::dds_endpoint::{DdsEndpoint, Refusal};
use super::denied::Denied;
use super::flow_channel::FLOW_TOPIC;
use super::host::Host;
use super::reader::ReaderState;
use super::schema_channel::{SCHEMA_TOPIC, Schemas};
use super::session::Session;
use super::user_data::{Discovered, EndpointUserData, NodeUserData};
use super::writer::WriterState;
use crate::{EndpointId, EndpointInfo, Graph, Location, MatchInfo, MatchState, PeerInfo, TypeInfo};

/// Adds nodes and endpoints of other hosts and DDS programs, and the matches of this node's endpoints
/// with them.
pub(super) fn add(
    graph: &mut Graph,
    session: &Session,
    schemas: &Schemas,
    readers: &[Arc<ReaderState>],
    writers: &[Arc<WriterState>],
) {
    let found = Found::of(session);
    for reader in readers {
        let endpoint = reader.dds.info.id;
        let publishers = reader.publishers();
        // For its subscriber, a publisher elsewhere is its proxy.
        let proxies: BTreeSet<_> = publishers.iter().map(|(_, proxy)| *proxy).collect();
        graph.matches.retain(|each| each.endpoint != endpoint || !proxies.contains(&each.other));
        let matched = publishers.into_iter().map(|(guid, _)| guid);
        found.add_matches(graph, &reader.dds, reader.guid(), matched);
    }
    for writer in writers {
        found.add_matches(graph, &writer.dds, writer.guid(), writer.readers().into_iter());
    }
    graph.matches.sort_unstable_by_key(|each| (each.endpoint, each.other));
    found.add_to(graph, schemas);
}

/// The types of other hosts whose schemas their nodes send.
pub(super) fn announced_schemas(session: &Session) -> BTreeSet<u64> {
    Found::of(session).with_schema
}

#[derive(Default)]
struct Found {
    nodes: BTreeMap<u64, PeerInfo>,
    /// A subscriber has several readers.
    endpoints: BTreeMap<EndpointId, EndpointInfo>,
    ids: BTreeMap<Guid, EndpointId>,
    /// The types whose schemas the nodes of other hosts send.
    with_schema: BTreeSet<u64>,
}

impl Found {
    fn of(session: &Session) -> Found {
        let (mut found, host) = (Found::default(), session.host);
        for (is_writer, endpoint) in session.discovered() {
            found.add(is_writer, &endpoint, host);
        }
        found
    }

    fn add(&mut self, is_writer: bool, endpoint: &Endpoint, host: Host) {
        if FLOW_TOPIC.contains(&endpoint.topic.as_str()) {
            let node = is_writer.then(|| NodeUserData::read(&endpoint.user_data)).flatten();
            if let Some(NodeUserData { mut info, .. }) = node.filter(|node| node.host != host) {
                Denied::read(&endpoint.user_data).add_to(&mut info.record.attributes);
                self.nodes.insert(info.node, info);
            }
            return;
        }
        if SCHEMA_TOPIC.contains(&endpoint.topic.as_str())
            || endpoint.type_name.starts_with(BUILTIN)
        {
            return;
        }
        let info = match Discovered::read(endpoint, is_writer, host) {
            Discovered::OtherHost(EndpointUserData { info, has_schema, .. }) => {
                self.with_schema.extend(has_schema.then_some(info.type_hash));
                info
            }
            Discovered::Dds(info) => info,
            Discovered::ThisHost | Discovered::Unreadable(_) => return,
        };
        self.ids.insert(endpoint.guid, info.id);
        self.endpoints.entry(info.id).or_insert(info);
    }

    /// The matches of an endpoint of this node with endpoints of these names, and the refused ones.
    fn add_matches(
        &self,
        graph: &mut Graph,
        own: &DdsEndpoint,
        guid: Option<Guid>,
        matched: impl Iterator<Item = Guid>,
    ) {
        let endpoint = own.info.id;
        if let Ok(at) = graph.endpoints.binary_search_by_key(&endpoint, |it| it.id) {
            graph.endpoints[at].dds = own.info.dds.clone().zip(guid).map(|(mut dds, guid)| {
                dds.guid = guid;
                dds
            });
        }
        let matched: BTreeSet<_> = matched.filter_map(|guid| self.ids.get(&guid)).collect();
        let state = |other: &EndpointId| match own.refusal(*other) {
            _ if matched.contains(other) => Some(MatchState::Matched),
            Some(Refusal { reason, mismatch }) => Some(MatchState::Refused { reason, mismatch }),
            None => None,
        };
        let states = self.endpoints.keys().filter_map(|other| Some((*other, state(other)?)));
        graph.matches.extend(states.map(|(other, state)| MatchInfo { endpoint, other, state }));
    }

    /// Adds all that has no id of this host, and the types of other hosts.
    fn add_to(self, graph: &mut Graph, schemas: &Schemas) {
        let Graph { nodes, endpoints, types, .. } = graph;
        let here: BTreeSet<_> = nodes.iter().map(|it| it.node).collect();
        nodes.extend(self.nodes.into_values().filter(|it| !here.contains(&it.node)));
        nodes.sort_unstable_by_key(|it| it.node);
        let here: BTreeSet<_> = endpoints.iter().map(|it| it.id).collect();
        let elsewhere = self.endpoints.into_values().filter(|it| !here.contains(&it.id));
        let of_types = |it: TypeInfo| ((it.hash, it.name), it.schema);
        let mut by_name: BTreeMap<_, _> = std::mem::take(types).into_iter().map(of_types).collect();
        for endpoint in elsewhere {
            if let Location::OtherHost(_) = endpoint.location {
                by_name.entry((endpoint.type_hash, endpoint.type_name.clone())).or_default();
            }
            endpoints.push(endpoint);
        }
        endpoints.sort_unstable_by_key(|it| it.id);
        types.extend(by_name.into_iter().map(|((hash, name), of_host)| TypeInfo {
            hash,
            name,
            schema: of_host.or_else(|| schemas.get(hash)),
        }));
    }
}

/// The prefix of the types of CycloneDDS's own topics, which this process uses for discovery.
const BUILTIN: &str = "org::eclipse::cyclonedds::builtin::";
