//! Looks at a running domain, and makes rows of it.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use myelin::{
    Counters, EndpointId, EndpointStatus, GraphStatus, GraphWatcher, Lateness, Location,
    MatchState, MatchStatus, NodeStatus, Reliability, TopicStatus,
};

use super::snapshot::{EndpointRow, Latency, Losses, MatchRow, NodeRow, Snapshot, TopicRow};
use crate::nodes::{self, NodeLine};
use crate::session::Session;
use crate::text::printable;
use crate::{Error, ros};

/// The domain, at each call of [`look`](Looker::look) as it is then.
pub struct Looker {
    session: Session,
    watcher: GraphWatcher,
    /// The counters of endpoints at earlier looks.
    earlier: HashMap<EndpointId, Earlier>,
}

/// What an endpoint had counted at earlier looks.
#[derive(Clone, Copy, Default)]
struct Earlier {
    counted_ns: u64,
    published_bytes: u64,
    /// The beginning of the window that is shown, and of the next one.
    lateness: [(u64, Lateness); 2],
}

/// What it has counted since.
#[derive(Clone, Copy, Default)]
struct Since {
    bytes_per_s: Option<f64>,
    lateness: Lateness,
}

impl Looker {
    /// Looks through this session.
    pub fn new(session: Session) -> Looker {
        let watcher = session.node().watch_graph("*");
        Looker { session, watcher, earlier: HashMap::new() }
    }

    /// The session.
    pub fn session(&self) -> &Session {
        &self.session
    }

    /// What is there now. Nodes have `limit` to answer.
    ///
    /// # Errors
    /// Those of [`GraphWatcher::update`].
    pub fn look(&mut self, limit: Duration) -> Result<Snapshot, Error> {
        let status = self.watcher.update(limit)?;
        let mut before = std::mem::take(&mut self.earlier);
        let mut since = HashMap::new();
        for topic in &status.topics {
            for endpoint in topic.publishers.iter().chain(&topic.subscribers) {
                let id = endpoint.info.id;
                let mut earlier = before.remove(&id).unwrap_or_default();
                since.insert(id, earlier.advance(endpoint));
                self.earlier.insert(id, earlier);
            }
        }
        Ok(rows(status, &since))
    }
}

impl Earlier {
    fn advance(&mut self, endpoint: &EndpointStatus) -> Since {
        let Some(now_ns) = endpoint.counted_ns else { return Since::default() };
        let passed_ns = now_ns.saturating_sub(std::mem::replace(&mut self.counted_ns, now_ns));
        match endpoint.info.counters {
            Some(Counters::Publisher { published_bytes, .. }) => {
                let before = std::mem::replace(&mut self.published_bytes, published_bytes);
                let bytes = published_bytes.saturating_sub(before) as f64;
                let is_known = passed_ns > 0 && passed_ns < now_ns;
                let bytes_per_s = is_known.then(|| bytes * 1e9 / passed_ns as f64);
                Since { bytes_per_s, ..Since::default() }
            }
            Some(Counters::Subscriber { lateness, .. }) => {
                let [_, (next_ns, next)] = self.lateness;
                if now_ns.saturating_sub(next_ns) > WINDOW_NS {
                    self.lateness = [(next_ns, next), (now_ns, lateness)];
                }
                let [(_, begin), _] = self.lateness;
                Since { lateness: lateness.since(&begin), ..Since::default() }
            }
            None => Since::default(),
        }
    }
}

fn rows(status: &GraphStatus, since: &HashMap<EndpointId, Since>) -> Snapshot {
    let names = Names::new(status);
    // Those of services have a name on the wire only.
    let has_name = |it: &&TopicStatus| {
        let mut endpoints = it.publishers.iter().chain(&it.subscribers);
        endpoints.next().is_some_and(|first| !ros::is_of_service(&first.info))
    };
    let mut topics: Vec<_> =
        status.topics.iter().filter(has_name).map(|it| topic_row(it, &names, since)).collect();
    topics.sort_by(|one, two| (&one.name, &one.wire_name).cmp(&(&two.name, &two.wire_name)));
    Snapshot {
        at_ns: status.at_ns,
        interval_s: status.since_ns.map(|ns| ns as f64 / 1e9),
        topics,
        nodes: nodes::all(status).into_iter().map(node_row).collect(),
    }
}

/// The names of nodes, printable, as people write them.
struct Names {
    of_endpoints: HashMap<EndpointId, String>,
    of_nodes: HashMap<u64, String>,
}

impl Names {
    fn new(status: &GraphStatus) -> Names {
        let of_node =
            |it: &NodeStatus| (it.info.node, printable(&nodes::own_name(it)).into_owned());
        let of_endpoint = |it: &EndpointStatus| {
            let name = ros::node_name(&it.info.attributes)?;
            Some((it.info.id, printable(&name).into_owned()))
        };
        Names {
            of_endpoints: nodes::endpoints(status).filter_map(of_endpoint).collect(),
            of_nodes: status.nodes.iter().map(of_node).collect(),
        }
    }

    fn of(&self, endpoint: EndpointId, node: u64) -> String {
        let name = self.of_endpoints.get(&endpoint).or_else(|| self.of_nodes.get(&node));
        name.cloned().unwrap_or_else(|| "DDS program".to_owned())
    }
}

fn topic_row(topic: &TopicStatus, names: &Names, since: &HashMap<EndpointId, Since>) -> TopicRow {
    let of = |endpoint: &EndpointStatus| since.get(&endpoint.info.id).copied().unwrap_or_default();
    let rows = |endpoints: &[EndpointStatus]| -> Vec<EndpointRow> {
        endpoints.iter().map(|it| endpoint_row(it, names, &of(it))).collect()
    };
    let (publishers, subscribers) = (rows(&topic.publishers), rows(&topic.subscribers));
    let known: Vec<_> = publishers.iter().filter_map(|it| it.bytes_per_s).collect();
    let infos = || topic.publishers.iter().chain(&topic.subscribers).map(|it| &it.info);
    let types: BTreeSet<_> = infos().map(|it| ros::type_name(it)).collect();
    let types: Vec<_> = types.iter().map(|it| printable(it)).collect();
    TopicRow {
        name: printable(infos().next().map_or(&*topic.name, ros::topic_name)).into_owned(),
        wire_name: printable(&topic.name).into_owned(),
        type_name: types.join(", "),
        rate_hz: topic.rate_hz,
        bytes_per_s: (!known.is_empty()).then(|| known.iter().sum()),
        latency_us: latency(topic.subscribers.iter().map(|it| of(it).lateness)),
        lost: topic.lost,
        lost_total: subscribers.iter().map(|it| it.lost_total).sum(),
        held: subscribers.iter().map(|it| it.held).sum(),
        memory_bytes: topic.memory_bytes,
        refused: topic.refused,
        publishers,
        subscribers,
    }
}

fn endpoint_row(endpoint: &EndpointStatus, names: &Names, since: &Since) -> EndpointRow {
    let info = &endpoint.info;
    let reliability = match info.qos.reliability {
        Reliability::Reliable => "reliable",
        Reliability::BestEffort => "best effort",
    };
    let mut row = EndpointRow {
        id: info.id,
        node: info.node,
        node_name: names.of(info.id, info.node),
        elsewhere: match info.location {
            Location::ThisHost => None,
            Location::OtherHost(host) => Some(format!("host {host:x}")),
            _ => Some("DDS".to_owned()),
        },
        rate_hz: endpoint.rate_hz,
        bytes_per_s: since.bytes_per_s,
        lost: endpoint.lost_in_interval,
        qos: format!("{reliability}, depth {}", info.depth),
        latency_us: latency([since.lateness].into_iter()),
        matches: endpoint.matches.iter().map(|it| match_row(it, names)).collect(),
        ..EndpointRow::default()
    };
    match info.counters {
        Some(Counters::Publisher { memory_bytes, refused_loans, .. }) => {
            (row.memory_bytes, row.refused_loans) = (memory_bytes, refused_loans);
        }
        Some(Counters::Subscriber {
            lost,
            lost_overwritten: overwritten,
            lost_passed_over: passed_over,
            lost_network: network,
            lost_memory: memory,
            held,
            memory_bytes,
            ..
        }) => {
            (row.lost_total, row.held, row.memory_bytes) = (lost, held, memory_bytes);
            row.losses = Losses { overwritten, passed_over, network, memory };
        }
        None => {}
    }
    row
}

/// Of all subscribers together; `None`: nothing was measured.
fn latency(of: impl Iterator<Item = Lateness>) -> Option<Latency> {
    let mut all = Lateness::default();
    for each in of {
        all.max_ns = all.max_ns.max(each.max_ns);
        for (sum, count) in all.buckets.iter_mut().zip(each.buckets) {
            *sum = sum.saturating_add(count);
        }
    }
    let us = |percent| Some(all.percentile_ns(percent)? as f64 / 1e3);
    Some(Latency { p50: us(50.0)?, p99: us(99.0)? })
}

fn match_row(status: &MatchStatus, names: &Names) -> MatchRow {
    let refusal = match &status.state {
        MatchState::Refused { reason, .. } => Some(printable(reason).into_owned()),
        _ => None,
    };
    let is_matched = status.state == MatchState::Matched;
    let node_name = names.of(status.other, status.node);
    MatchRow { other: status.other, node_name, is_matched, refusal }
}

fn node_row(line: NodeLine) -> NodeRow {
    let shown = |text: &str| printable(text).into_owned();
    NodeRow {
        node: u64::from_str_radix(&line.id, 16).unwrap_or_default(),
        name: shown(&line.node),
        pid: line.pid,
        cpu_percent: line.cpu_percent,
        memory_bytes: line.memory_bytes,
        threads: line.threads,
        publishers: line.publishers,
        subscribers: line.subscribers,
        is_silent: line.is_silent,
        is_stopped: line.is_stopped,
        program: shown(&line.program),
        library: shown(&format!("{} {}", line.language, line.version)),
        host: shown(&line.host),
        user: line.user,
    }
}

/// A latency is of the last one or two such times. About ten samples a second are measured.
const WINDOW_NS: u64 = 10_000_000_000;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn latencies_of_all_subscribers_are_one() {
        let of = |bucket: usize, count| {
            let mut lateness = Lateness::default();
            lateness.buckets[bucket] = count;
            lateness.max_ns = 128 << bucket;
            lateness
        };
        assert_eq!(latency([Lateness::default()].into_iter()), None);
        let Latency { p50, p99 } = latency([of(3, 90), of(10, 10)].into_iter()).unwrap();
        assert!((0.5..1.1).contains(&p50) && (65.0..132.0).contains(&p99), "{p50} {p99}");
    }
}
