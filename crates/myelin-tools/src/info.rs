//! Everything that the records of a domain say of a topic: `myelin topic info`.

use std::fmt::Write;
use std::sync::Arc;
use std::time::Duration;

use myelin::{
    Counters, EndpointInfo, Graph, Location, MatchState, Matching, Reliability, TypeInfo,
};
use myelin_value::{Kind, Schema, Type};
use serde::Serialize;

use crate::document::Format;
use crate::select::Selected;
use crate::text::{counted, printable};
use crate::{numbers, protobuf, ros};

/// A topic.
#[derive(Clone, Debug, Serialize)]
pub struct TopicInfo {
    /// Its name, as people write it.
    pub topic: String,
    /// Its name in Myelin, or in DDS.
    pub wire_name: String,
    /// The types of its endpoints; more than one do not match.
    pub types: Vec<TypeLine>,
    /// Those who publish.
    pub publishers: Vec<EndpointLine>,
    /// Those who subscribe.
    pub subscribers: Vec<EndpointLine>,
}

/// A type of a topic.
#[derive(Clone, Debug, Serialize)]
pub struct TypeLine {
    /// Its name.
    pub name: String,
    /// The hash of its layout, in hexadecimal digits.
    pub hash: String,
    /// The encoding of its schema; `None` if no node has reported one.
    pub encoding: Option<String>,
    /// Its fields in order, each `path: type`; empty if they cannot be read.
    pub fields: Vec<String>,
    /// Why the fields cannot be read.
    pub problem: Option<String>,
}

/// A publisher or subscriber.
#[derive(Clone, Debug, Serialize)]
pub struct EndpointLine {
    /// Its id, in hexadecimal digits.
    pub id: String,
    /// The name of its node.
    pub node: String,
    /// Its process; 0 if it is not visible from here.
    pub pid: u32,
    /// The program.
    pub program: String,
    /// The host; `DDS` for a program without Myelin.
    pub host: String,
    /// The name of its type.
    pub type_name: String,
    /// How many samples a subscriber can be behind.
    pub depth: u32,
    /// Whether a publisher waits for late subscribers, or a subscriber requests it.
    pub waits: bool,
    /// Whether samples that are lost on the network are sent again.
    pub reliable: bool,
    /// How many samples are kept for late subscribers.
    pub transient_local: u32,
    /// The deadline.
    pub deadline_ms: Option<f64>,
    /// The lease of liveliness.
    pub liveliness_ms: Option<f64>,
    /// Whether DDS's rules decide about its matches.
    pub requested_offered: bool,
    /// What it counts.
    #[serde(flatten)]
    pub counts: Counts,
    /// Whether its counters are known.
    pub has_answered: bool,
    /// Its matches.
    pub matches: Vec<MatchLine>,
}

/// The counters of an endpoint, so far. `None`: it is of the other kind, or they are not known.
#[derive(Clone, Debug, Default, Serialize)]
pub struct Counts {
    /// Samples published.
    pub published: Option<u64>,
    /// Bytes published.
    pub published_bytes: Option<u64>,
    /// Loans and publishes that failed because there was no memory.
    pub refused_loans: Option<u64>,
    /// Samples taken.
    pub taken: Option<u64>,
    /// Samples lost, for any cause.
    pub lost: Option<u64>,
    /// Samples lost because newer ones overwrote them.
    pub lost_overwritten: Option<u64>,
    /// Samples lost because a reliable publisher waited no longer.
    pub lost_passed_over: Option<u64>,
    /// Samples lost on the network.
    pub lost_network: Option<u64>,
    /// Samples lost because there was no memory for them.
    pub lost_memory: Option<u64>,
    /// Samples held now.
    pub held: Option<u64>,
    /// Bytes of its shared memory.
    pub memory_bytes: Option<u64>,
}

/// A match of an endpoint.
#[derive(Clone, Debug, Serialize)]
pub struct MatchLine {
    /// The id of the other endpoint, in hexadecimal digits.
    pub other: String,
    /// The node of the other endpoint.
    pub node: String,
    /// `matched`, `pending` or `refused`.
    pub state: &'static str,
    /// Why it is refused, and what to do.
    pub reason: Option<String>,
}

/// What a graph knows of the selected topics, by name.
pub fn topics(graph: &Graph, selected: &Selected<'_>) -> Vec<TopicInfo> {
    let info = |((shown, raw), endpoints): (&(&str, &str), &Vec<&EndpointInfo>)| {
        let lines = |publish: bool| {
            let of_kind = endpoints.iter().filter(move |it| it.is_publisher == publish);
            of_kind.map(|it| endpoint_line(graph, it)).collect()
        };
        TopicInfo {
            topic: (*shown).to_owned(),
            wire_name: (*raw).to_owned(),
            types: type_lines(graph, endpoints),
            publishers: lines(true),
            subscribers: lines(false),
        }
    };
    selected.iter().map(info).collect()
}

/// The type of an endpoint by the schema that a graph has of it, and how its samples are read.
///
/// # Errors
/// One sentence: there is no schema, or why it cannot be read.
pub fn type_of(graph: &Graph, endpoint: &EndpointInfo) -> Result<Arc<Type>, String> {
    let Some(schema) = schema_of(graph, endpoint) else {
        return Err(match endpoint.location {
            Location::Dds => "DDS announces no schema".to_owned(),
            _ => "no node has reported its schema".to_owned(),
        });
    };
    let name = ros::type_name(endpoint);
    let parsed = Schema::new(&schema.encoding, &name, &schema.content).parse();
    parsed.map(Arc::new).map_err(|error| error.to_string())
}

/// How the samples of an endpoint are read; bytes if nothing is known.
pub fn format_of(graph: &Graph, endpoint: &EndpointInfo) -> Format {
    match (type_of(graph, endpoint), schema_of(graph, endpoint)) {
        (Ok(ty), _) => Format::of_type(&ty),
        (Err(_), Some(schema)) if &*schema.encoding == protobuf::ENCODING => {
            let message = protobuf::message(&ros::type_name(endpoint), &schema.content);
            message.map_or(Format::Bytes, Format::Protobuf)
        }
        (Err(_), Some(schema)) => Format::of_encoding(&schema.encoding),
        (Err(_), None) => Format::Bytes,
    }
}

/// The schema that a graph has of an endpoint's type.
pub(crate) fn schema_of<'g>(
    graph: &'g Graph,
    endpoint: &EndpointInfo,
) -> Option<&'g myelin::Schema> {
    let is_same = |it: &&TypeInfo| it.hash == endpoint.type_hash && it.schema.is_some();
    graph.types.iter().find(is_same)?.schema.as_deref()
}

fn type_lines(graph: &Graph, endpoints: &[&EndpointInfo]) -> Vec<TypeLine> {
    let mut lines: Vec<TypeLine> = Vec::new();
    for endpoint in endpoints {
        let (name, hash) = (ros::type_name(endpoint), format!("{:016x}", endpoint.type_hash));
        if lines.iter().any(|it| it.name == name && it.hash == hash) {
            continue;
        }
        let ty = type_of(graph, endpoint);
        let encoding = schema_of(graph, endpoint).map(|schema| printable(&schema.encoding).into());
        let mut fields = Vec::new();
        let problem = match (ty, schema_of(graph, endpoint)) {
            (Ok(ty), _) => {
                push_fields(&ty, "", 0, &mut fields);
                None
            }
            (Err(_), Some(schema)) if &*schema.encoding == protobuf::ENCODING => {
                let message = protobuf::message(&name, &schema.content);
                message.map(|it| fields = protobuf::fields(&it)).err()
            }
            (Err(problem), _) => Some(problem),
        };
        lines.push(TypeLine { name: name.into_owned(), hash, encoding, fields, problem });
    }
    lines
}

/// A line for each field; those of a struct below it, further to the right.
fn push_fields(ty: &Type, name: &str, depth: usize, to: &mut Vec<String>) {
    let mut inner = ty;
    while let Kind::Array { element, .. } | Kind::Sequence { element, .. } = inner.kind() {
        inner = element;
    }
    let space = "  ".repeat(depth);
    if !name.is_empty() {
        to.push(format!("{space}{name}: {}", type_text(ty)));
    }
    if to.len() >= FIELDS_MAX {
        return;
    }
    if let Kind::Struct { fields, .. } = inner.kind() {
        for field in fields {
            push_fields(&field.ty, &field.name, depth + usize::from(!name.is_empty()), to);
        }
    } else if name.is_empty() {
        to.push(type_text(ty));
    }
}

/// A type, with the bounds that its name leaves out.
fn type_text(ty: &Type) -> String {
    match ty.kind() {
        Kind::String { bound: Some(bound) } => format!("string, at most {bound} B"),
        Kind::Sequence { element, bound: Some(bound) } => {
            format!("[{}], at most {bound}", type_text(element))
        }
        _ => ty.to_string(),
    }
}

fn endpoint_line(graph: &Graph, endpoint: &EndpointInfo) -> EndpointLine {
    let node = graph.nodes.iter().find(|node| node.node == endpoint.node);
    let qos = &endpoint.qos;
    let ms = |time: Option<Duration>| time.map(|time| time.as_secs_f64() * 1e3);
    let host = match endpoint.location {
        Location::Dds => "DDS".to_owned(),
        _ => node.map(|it| it.record.host.clone()).unwrap_or_default(),
    };
    EndpointLine {
        id: format!("{:x}", endpoint.id),
        node: node_name(graph, endpoint),
        pid: node.map_or(0, |it| it.pid),
        program: node.map(|it| it.record.program.clone()).unwrap_or_default(),
        host,
        type_name: ros::type_name(endpoint).into_owned(),
        depth: endpoint.depth,
        waits: qos.reliability == Reliability::Reliable,
        reliable: qos.is_reliable(),
        transient_local: endpoint.transient_local,
        deadline_ms: ms(qos.deadline),
        liveliness_ms: ms(qos.liveliness),
        requested_offered: endpoint.matching == Matching::RequestedOffered,
        counts: endpoint.counters.map(Counts::from).unwrap_or_default(),
        has_answered: endpoint.counters.is_some(),
        matches: match_lines(graph, endpoint),
    }
}

/// The name of an endpoint's node; for one of `rmw_myelin`, that of its ROS 2 node.
fn node_name(graph: &Graph, endpoint: &EndpointInfo) -> String {
    if let Some(name) = ros::node_name(&endpoint.attributes) {
        return name;
    }
    let node = graph.nodes.iter().find(|node| node.node == endpoint.node);
    node.map(|it| it.name.clone()).unwrap_or_else(|| "(a DDS program)".to_owned())
}

fn match_lines(graph: &Graph, endpoint: &EndpointInfo) -> Vec<MatchLine> {
    let mut lines: Vec<MatchLine> = Vec::new();
    for it in &graph.matches {
        let other = match endpoint.id {
            id if id == it.endpoint => it.other,
            id if id == it.other => it.endpoint,
            _ => continue,
        };
        let (state, reason) = match &it.state {
            MatchState::Matched => ("matched", None),
            MatchState::Refused { reason, .. } => ("refused", Some(reason.clone())),
            _ => ("pending", None),
        };
        let id = format!("{other:x}");
        // Both sides report a match, and may be at different states.
        if lines.iter().any(|line| line.other == id) {
            continue;
        }
        let of_other = graph.endpoints.iter().find(|it| it.id == other);
        let node = of_other.map(|it| node_name(graph, it)).unwrap_or_default();
        lines.push(MatchLine { other: id, node, state, reason });
    }
    lines
}

impl TopicInfo {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = printable(&self.topic).into_owned();
        if self.wire_name != self.topic {
            let _ = write!(text, "  (in DDS {})", printable(&self.wire_name));
        }
        text.push('\n');
        for ty in &self.types {
            let encoding = ty.encoding.as_deref().unwrap_or("no schema");
            let (name, hash) = (printable(&ty.name), &ty.hash);
            let _ = writeln!(text, "  type {name}  ({encoding}, {hash})");
            for field in &ty.fields {
                let _ = writeln!(text, "    {}", printable(field));
            }
            if let Some(problem) = &ty.problem {
                let _ = writeln!(text, "    fields unknown: {}", printable(problem));
            }
        }
        if self.types.len() > 1 {
            text += "  Endpoints of different types do not match.\n";
        }
        for (what, endpoints) in
            [("publisher", &self.publishers), ("subscriber", &self.subscribers)]
        {
            let _ = writeln!(text, "  {}", counted(endpoints.len(), what));
            endpoints.iter().for_each(|it| it.push_text(&mut text, self.types.len() > 1));
        }
        text
    }
}

impl EndpointLine {
    fn push_text(&self, to: &mut String, with_type: bool) {
        let _ = write!(to, "    {}", printable(&self.node));
        if self.pid != 0 {
            let _ = write!(to, "  process {} ({})", self.pid, printable(&self.program));
        }
        let _ = writeln!(to, "  on {}", printable(&self.host));
        if with_type {
            let _ = writeln!(to, "      type {}", printable(&self.type_name));
        }
        let mut qos = match self.depth {
            0 => "depth unknown".to_owned(),
            depth => format!("depth {depth}"),
        };
        qos += match (self.waits, self.reliable) {
            (true, _) => ", reliable (waits for late subscribers)",
            (false, true) => ", reliable on the network",
            (false, false) => ", best effort",
        };
        if self.transient_local > 0 {
            let _ = write!(qos, ", transient local {}", self.transient_local);
        }
        for (name, time) in [("deadline", self.deadline_ms), ("liveliness", self.liveliness_ms)] {
            if let Some(ms) = time {
                let _ = write!(qos, ", {name} {ms} ms");
            }
        }
        let _ = writeln!(to, "      {qos}");
        if let Some(counts) = self.counts.text() {
            let _ = writeln!(to, "      {counts}");
        }
        for it in &self.matches {
            let _ = write!(to, "      {} {}", it.state, printable(&it.node));
            match &it.reason {
                Some(reason) => _ = writeln!(to, ": {}", printable(reason)),
                None => to.push('\n'),
            }
        }
    }
}

impl From<Counters> for Counts {
    fn from(counters: Counters) -> Counts {
        match counters {
            Counters::Publisher {
                published, published_bytes, refused_loans, memory_bytes, ..
            } => Counts {
                published: Some(published),
                published_bytes: Some(published_bytes),
                refused_loans: Some(refused_loans),
                memory_bytes: Some(memory_bytes),
                ..Counts::default()
            },
            Counters::Subscriber {
                taken,
                lost,
                lost_overwritten,
                lost_passed_over,
                lost_network,
                lost_memory,
                held,
                memory_bytes,
                ..
            } => Counts {
                taken: Some(taken),
                lost: Some(lost),
                lost_overwritten: Some(lost_overwritten),
                lost_passed_over: Some(lost_passed_over),
                lost_network: Some(lost_network),
                lost_memory: Some(lost_memory),
                held: Some(held),
                memory_bytes: Some(memory_bytes),
                ..Counts::default()
            },
        }
    }
}

impl Counts {
    /// For people, causes of losses only where there are some; `None` if nothing is known.
    fn text(&self) -> Option<String> {
        let mut parts = Vec::new();
        let mut push = |what: &str, count: Option<u64>| {
            parts.extend(count.map(|count| format!("{what} {count}")));
        };
        push("published", self.published);
        push("refused loans", self.refused_loans.filter(|it| *it > 0));
        push("taken", self.taken);
        push("lost", self.lost);
        push("overwritten", self.lost_overwritten.filter(|it| *it > 0));
        push("passed over", self.lost_passed_over.filter(|it| *it > 0));
        push("lost on the network", self.lost_network.filter(|it| *it > 0));
        push("without memory", self.lost_memory.filter(|it| *it > 0));
        push("holds", self.held);
        parts.extend(
            self.memory_bytes.map(|bytes| format!("memory {}", numbers::bytes(bytes as f64))),
        );
        (!parts.is_empty()).then(|| parts.join(", "))
    }
}

/// Of a type with very many parts only so many are listed.
const FIELDS_MAX: usize = 1024;
