//! Who took part: the nodes and the endpoints of the recorded topics, for the metadata.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use myelin::{EndpointId, EndpointInfo, Graph, Location, PeerInfo, ros};
use serde_json::{Value, json};

use crate::format::Metadata;
use crate::names::{ENDPOINTS, NODES};

/// Nodes and endpoints by their ids, with those that have gone.
#[derive(Default)]
pub(super) struct Records(Mutex<Inner>);

#[derive(Default)]
struct Inner {
    nodes: BTreeMap<u64, Record>,
    endpoints: BTreeMap<u64, Record>,
}

struct Record {
    value: Value,
    gone_ns: Option<u64>,
}

impl Records {
    /// Takes in a graph, and its endpoints that are wanted.
    pub(super) fn update(&self, graph: &Graph, wanted: &[&EndpointInfo], now_ns: u64) {
        let mut inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let nodes = graph.nodes.iter().filter(|node| wanted.iter().any(|it| it.node == node.node));
        let nodes: BTreeMap<_, _> = nodes.map(|it| (it.node, it)).collect();
        let endpoints: BTreeMap<_, _> = wanted.iter().map(|it| (it.id, *it)).collect();
        keep_up(&mut inner.nodes, &nodes, now_ns, node_value);
        keep_up(&mut inner.endpoints, &endpoints, now_ns, endpoint_value);
    }

    /// Whether an endpoint was there, and is not any more.
    pub(super) fn is_gone(&self, endpoint: EndpointId) -> bool {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        inner.endpoints.get(&endpoint).is_some_and(|it| it.gone_ns.is_some())
    }

    /// The records, by name.
    pub(super) fn metadata(&self) -> Vec<(&'static str, Metadata)> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let text = |records: &BTreeMap<u64, Record>| -> Metadata {
            records.iter().map(|(id, record)| (format!("{id:016x}"), record.text())).collect()
        };
        vec![(NODES, text(&inner.nodes)), (ENDPOINTS, text(&inner.endpoints))]
    }
}

impl Record {
    fn text(&self) -> String {
        let mut value = self.value.clone();
        if let (Some(gone_ns), Some(fields)) = (self.gone_ns, value.as_object_mut()) {
            fields.insert("gone_ns".to_owned(), gone_ns.into());
        }
        value.to_string()
    }
}

fn keep_up<T>(
    records: &mut BTreeMap<u64, Record>,
    now: &BTreeMap<u64, &T>,
    now_ns: u64,
    value: impl Fn(&T) -> Value,
) {
    for (id, record) in records.iter_mut() {
        record.gone_ns = match now.contains_key(id) {
            true => None,
            false => record.gone_ns.or(Some(now_ns)),
        };
    }
    for (id, it) in now {
        if records.len() < RECORDS_MAX {
            records.entry(*id).or_insert_with(|| Record { value: value(it), gone_ns: None });
        }
    }
}

fn node_value(node: &PeerInfo) -> Value {
    let record = &node.record;
    json!({
        "name": node.name,
        "namespace": record.namespace,
        "program": record.program,
        "host": record.host,
        "pid": node.pid,
        "language": record.language,
        "version": record.version,
    })
}

fn endpoint_value(endpoint: &EndpointInfo) -> Value {
    let location = match endpoint.location {
        Location::ThisHost => "this host",
        Location::OtherHost(_) => "other host",
        Location::Dds => "dds",
        _ => "elsewhere",
    };
    let nanoseconds = |it: std::time::Duration| u64::try_from(it.as_nanos()).unwrap_or(u64::MAX);
    let qos = &endpoint.qos;
    json!({
        "kind": if endpoint.is_publisher { "publisher" } else { "subscriber" },
        "topic": ros::topic_name(endpoint),
        "type": ros::type_name(endpoint),
        "type_hash": format!("{:016x}", endpoint.type_hash),
        "node": format!("{:016x}", endpoint.node),
        "ros_node": ros::node_name(&endpoint.attributes),
        "location": location,
        "created_ns": endpoint.created_ns,
        "depth": qos.depth,
        "reliable": endpoint.reliable || qos.resends,
        "transient_local": qos.transient_local,
        "deadline_ns": qos.deadline.map(nanoseconds),
        "lifespan_ns": qos.lifespan.map(nanoseconds),
        "liveliness_ns": qos.liveliness.map(nanoseconds),
    })
}

/// Of nodes and of endpoints each; programs can come and go for days.
const RECORDS_MAX: usize = 16_384;
