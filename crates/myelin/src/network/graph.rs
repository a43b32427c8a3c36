//! The network's part of `Node::graph`: nodes and endpoints elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use myelin_dds::{Endpoint, Guid};

use super::dds_endpoint::{DdsEndpoint, Refusal};
use super::flow_channel::FLOW_TOPIC;
use super::host::Host;
use super::reader::ReaderState;
use super::session::Session;
use super::user_data::{Discovered, EndpointUserData, NodeUserData};
use super::writer::WriterState;
use crate::{EndpointId, EndpointInfo, Graph, MatchInfo, MatchState, PeerInfo};

/// Adds nodes and endpoints of other hosts and DDS programs, and the matches of this node's endpoints
/// with them.
pub(super) fn add(
    graph: &mut Graph,
    session: &Session,
    readers: &[Arc<ReaderState>],
    writers: &[Arc<WriterState>],
) {
    let mut found = Found::default();
    session
        .visit_discovered(&mut |is_writer, endpoint| found.add(is_writer, endpoint, session.host));
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
    found.add_to(graph);
}

#[derive(Default)]
struct Found {
    nodes: BTreeMap<u64, PeerInfo>,
    /// A subscriber has several readers.
    endpoints: BTreeMap<EndpointId, EndpointInfo>,
    ids: BTreeMap<Guid, EndpointId>,
}

impl Found {
    fn add(&mut self, is_writer: bool, endpoint: Endpoint, host: Host) {
        if endpoint.topic == FLOW_TOPIC {
            let node = is_writer.then(|| NodeUserData::read(&endpoint)).flatten();
            if let Some(NodeUserData { info, .. }) = node.filter(|node| node.host != host) {
                self.nodes.insert(info.node, info);
            }
            return;
        }
        if endpoint.type_name.starts_with(BUILTIN) {
            return;
        }
        let (Discovered::OtherHost(EndpointUserData { info, .. }) | Discovered::Dds(info)) =
            Discovered::read(&endpoint, is_writer, host)
        else {
            return;
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

    /// Adds all that has no id of this host.
    fn add_to(self, graph: &mut Graph) {
        let Graph { nodes, endpoints, .. } = graph;
        let here: BTreeSet<_> = nodes.iter().map(|it| it.node).collect();
        nodes.extend(self.nodes.into_values().filter(|it| !here.contains(&it.node)));
        nodes.sort_unstable_by_key(|it| it.node);
        let here: BTreeSet<_> = endpoints.iter().map(|it| it.id).collect();
        endpoints.extend(self.endpoints.into_values().filter(|it| !here.contains(&it.id)));
        endpoints.sort_unstable_by_key(|it| it.id);
    }
}

/// The prefix of the types of CycloneDDS's own topics, which this process uses for discovery.
const BUILTIN: &str = "org::eclipse::cyclonedds::builtin::";
