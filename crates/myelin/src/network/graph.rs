//! The network's part of `Node::graph`: endpoints elsewhere.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use myelin_dds::{Endpoint, Guid};

use super::dds_endpoint::id_of;
use super::flow_channel::FLOW_TOPIC;
use super::host::{EndpointUserData, Host, name_of};
use super::reader::ReaderState;
use super::session::Session;
use super::writer::WriterState;
use crate::{EndpointId, Graph, MatchInfo, MatchState, RemoteEndpointInfo};

/// Adds endpoints of other hosts and DDS programs, and the matches of this node's endpoints with them.
pub(super) fn add(
    graph: &mut Graph,
    session: &Session,
    readers: &[Arc<ReaderState>],
    writers: &[Arc<WriterState>],
) {
    let mut found = Found::default();
    session
        .visit_discovered(&mut |is_writer, endpoint| found.add(is_writer, endpoint, session.host));
    graph.remote_endpoints = found.endpoints.into_values().collect();
    let own = |id: EndpointId, graph: &mut Graph, guid: Option<Guid>| {
        if let Ok(at) = graph.endpoints.binary_search_by_key(&id, |it| it.id) {
            graph.endpoints[at].dds_guid = guid;
        }
    };
    for reader in readers {
        let endpoint = reader.dds.observer.id();
        own(endpoint, graph, reader.guid());
        let publishers = reader.publishers();
        // For its subscriber, a publisher elsewhere is its proxy.
        let proxies: BTreeSet<_> = publishers.iter().map(|(_, proxy)| *proxy).collect();
        graph.matches.retain(|each| each.endpoint != endpoint || !proxies.contains(&each.other));
        graph.matches.extend(matched(
            endpoint,
            publishers.iter().map(|(guid, _)| guid),
            &found.ids,
        ));
    }
    for writer in writers {
        let readers = writer.readers();
        own(writer.dds.observer.id(), graph, writer.guid());
        graph.matches.extend(matched(writer.dds.observer.id(), readers.iter(), &found.ids));
    }
    graph.matches.sort_unstable_by_key(|each| (each.endpoint, each.other));
}

#[derive(Default)]
struct Found {
    /// A subscriber has several readers.
    endpoints: BTreeMap<EndpointId, RemoteEndpointInfo>,
    ids: BTreeMap<Guid, EndpointId>,
}

impl Found {
    fn add(&mut self, is_publisher: bool, endpoint: Endpoint, host: Host) {
        let data = EndpointUserData::decode(&endpoint.user_data);
        let is_here = data.as_ref().is_some_and(|data| data.host == host);
        let is_of_the_way = endpoint.topic == FLOW_TOPIC || endpoint.type_name.starts_with(BUILTIN);
        if is_here || is_of_the_way {
            return;
        }
        let Endpoint { guid, topic, type_name, reliable, transient_local, user_data, .. } =
            endpoint;
        let id = data.as_ref().map_or_else(|| id_of(guid), |data| data.endpoint);
        self.ids.insert(guid, id);
        let reported = RemoteEndpointInfo {
            id,
            host: data.as_ref().map(|data| data.host.0),
            topic: name_of(&topic).unwrap_or(topic),
            type_name: data.as_ref().map_or(type_name, |data| data.type_text.clone()),
            is_publisher,
            reliable: data.map(|data| data.reliable).or(reliable),
            keeps_history: transient_local,
            guid,
            user_data,
            deadline: endpoint.deadline,
            lifespan: endpoint.lifespan,
            liveliness: endpoint.lease,
            is_alive_by_topic: endpoint.by_topic.unwrap_or(false),
        };
        let known = self.endpoints.entry(id).or_insert(reported);
        if transient_local == Some(true) {
            known.keeps_history = transient_local;
        }
    }
}

/// The matches of an endpoint with the endpoints of these names.
fn matched<'a>(
    endpoint: EndpointId,
    others: impl Iterator<Item = &'a Guid>,
    ids: &BTreeMap<Guid, EndpointId>,
) -> impl Iterator<Item = MatchInfo> {
    let others: BTreeSet<_> = others.filter_map(|guid| ids.get(guid)).copied().collect();
    others.into_iter().map(move |other| MatchInfo { endpoint, other, state: MatchState::Matched })
}

/// The prefix of the types of CycloneDDS's own topics, which this process uses for discovery.
const BUILTIN: &str = "org::eclipse::cyclonedds::builtin::";
