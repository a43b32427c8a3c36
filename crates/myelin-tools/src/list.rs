//! The topics of a domain: `myelin topic list`.

use std::collections::BTreeSet;

use myelin::{Graph, Location, MatchState};
use serde::Serialize;

use crate::ros;
use crate::select::Selected;
use crate::table::Table;
use crate::text::printable;

/// A topic, in one line.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TopicLine {
    /// Its name, as people write it.
    pub topic: String,
    /// Its name in Myelin, or in DDS.
    pub wire_name: String,
    /// The types of its endpoints; more than one do not match.
    pub types: Vec<String>,
    /// How many publish.
    pub publishers: usize,
    /// How many subscribe.
    pub subscribers: usize,
    /// How many pairs of publisher and subscriber are refused; `myelin topic info` says why.
    pub refused: usize,
    /// The hosts of its endpoints; `DDS` for programs without Myelin.
    pub hosts: Vec<String>,
    /// Whether it belongs to a service.
    pub is_of_service: bool,
}

/// The lines of the selected topics, by name.
pub fn lines(graph: &Graph, selected: &Selected<'_>) -> Vec<TopicLine> {
    let host_of = |endpoint: &myelin::EndpointInfo| match endpoint.location {
        Location::Dds => "DDS".to_owned(),
        _ => {
            let node = graph.nodes.iter().find(|node| node.node == endpoint.node);
            node.map(|node| printable(&node.record.host).into_owned()).unwrap_or_default()
        }
    };
    let line = |((shown, raw), endpoints): (&(&str, &str), &Vec<&myelin::EndpointInfo>)| {
        let ids: BTreeSet<u64> = endpoints.iter().map(|it| it.id).collect();
        let types: BTreeSet<_> = endpoints.iter().map(|it| ros::type_name(it)).collect();
        let hosts: BTreeSet<_> = endpoints.iter().map(|it| host_of(it)).collect();
        TopicLine {
            topic: (*shown).to_owned(),
            wire_name: (*raw).to_owned(),
            types: types.into_iter().map(|it| it.into_owned()).collect(),
            publishers: endpoints.iter().filter(|it| it.is_publisher).count(),
            subscribers: endpoints.iter().filter(|it| !it.is_publisher).count(),
            refused: refusals(graph).filter(|(one, _, _)| ids.contains(one)).count(),
            hosts: hosts.into_iter().filter(|it| !it.is_empty()).collect(),
            is_of_service: ros::is_of_service(endpoints[0]),
        }
    };
    selected.iter().map(line).collect()
}

/// Each refused pair once, in order of ids, with the reason.
pub fn refusals(graph: &Graph) -> impl Iterator<Item = (u64, u64, &str)> {
    let mut seen = BTreeSet::new();
    graph.matches.iter().filter_map(move |it| {
        let MatchState::Refused { reason, .. } = &it.state else { return None };
        let pair = (it.endpoint.min(it.other), it.endpoint.max(it.other));
        seen.insert(pair).then_some((pair.0, pair.1, reason.as_str()))
    })
}

/// The lines as a table.
pub fn table(lines: &[TopicLine], with_hosts: bool) -> Table {
    let mut header = vec!["topic", "pub", "sub"];
    let is_refused = lines.iter().any(|it| it.refused > 0);
    header.extend(is_refused.then_some("refused"));
    header.extend(with_hosts.then_some("hosts"));
    header.push("type");
    let mut table = Table::with_text(&header);
    for line in lines {
        let mut row =
            vec![line.topic.clone(), line.publishers.to_string(), line.subscribers.to_string()];
        row.extend(is_refused.then(|| line.refused.to_string()));
        row.extend(with_hosts.then(|| line.hosts.join(" ")));
        row.push(line.types.join(" | "));
        table.row(row);
    }
    table
}
