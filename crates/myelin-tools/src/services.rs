//! The services of a domain: `myelin service list`, `info` and `call`.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use myelin::value::{Kind, Type, Value, encode_json};
use myelin::{AnyTopic, EndpointInfo, Graph, Matching};
use serde::Serialize;

use crate::document::{leaves, type_at};
use crate::follow::owner;
use crate::names::{is_match, is_pattern, nearest};
use crate::session::{Place, Session};
use crate::table::Table;
use crate::text::printable;
use crate::{Error, ros, select};

/// What an endpoint does for a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Role {
    /// The service, as people write it.
    pub service: String,
    /// Whether it belongs to a server; otherwise to a client.
    pub is_server: bool,
    /// Whether it carries requests; otherwise replies.
    pub is_of_requests: bool,
}

/// A service.
#[derive(Clone, Debug, Default, Serialize)]
pub struct ServiceInfo {
    /// Its name.
    pub service: String,
    /// The names of its types: more than one do not match.
    pub types: Vec<String>,
    /// The nodes that serve it.
    pub servers: Vec<String>,
    /// The nodes that call it.
    pub clients: Vec<String>,
    /// The fields of a request, each `path: type`; `None` if no node has described them.
    pub request: Option<Vec<String>>,
    /// The fields of a reply.
    pub reply: Option<Vec<String>>,
}

/// The services of a graph, by name.
pub fn all(graph: &Graph) -> Vec<ServiceInfo> {
    let mut services = BTreeMap::<String, (BTreeSet<String>, [BTreeSet<String>; 2])>::new();
    for endpoint in &graph.endpoints {
        let Some(role) = role(endpoint) else { continue };
        let (types, nodes) = services.entry(role.service).or_default();
        types.insert(type_name(endpoint));
        let label = match endpoint.node {
            0 => "a DDS program".to_owned(),
            _ => owner(graph, endpoint.id).label(),
        };
        nodes[usize::from(!role.is_server)].insert(label);
    }
    let info = |(service, (types, [servers, clients])): (_, (BTreeSet<_>, [BTreeSet<_>; 2]))| {
        ServiceInfo {
            service,
            types: types.into_iter().collect(),
            servers: servers.into_iter().collect(),
            clients: clients.into_iter().collect(),
            request: None,
            reply: None,
        }
    };
    services.into_iter().map(info).collect()
}

/// The services that a name or pattern means, without their fields.
///
/// # Errors
/// [`Error::NotFound`] with the nearest name.
pub fn meant(
    graph: &Graph,
    typed: &str,
    session: &Session,
    place: &Place,
) -> Result<Vec<ServiceInfo>, Error> {
    let services = all(graph);
    let bare = |name: &str| name.strip_prefix('/').unwrap_or(name).to_owned();
    let is_exact = services.iter().any(|it| it.service == typed);
    let is_meant = |it: &ServiceInfo| match is_pattern(typed) {
        true => is_match(typed, &it.service) || is_match(typed, &bare(&it.service)),
        false => it.service == typed || !is_exact && bare(&it.service) == typed,
    };
    let near = nearest(typed, services.iter().map(|it| &*it.service));
    let near = near.map(|it| format!("; did you mean {:?}?", printable(it))).unwrap_or_default();
    let meant: Vec<_> = services.iter().filter(|it| is_meant(it)).cloned().collect();
    if meant.is_empty() {
        let text =
            format!("there is no service {typed:?}{near}; `myelin service list` lists them.");
        return Err(select::not_found(text, session, place));
    }
    Ok(meant)
}

/// Adds the fields of requests and replies.
pub fn describe(info: &mut ServiceInfo, graph: &Graph) {
    let types = endpoint_of(graph, &info.service, true).map(|it| types_of(graph, it));
    if let Some([request, reply]) = types {
        info.request = request.as_deref().map(fields);
        info.reply = reply.as_deref().map(fields);
    }
}

/// The services as a table.
pub fn table(services: &[ServiceInfo]) -> Table {
    let mut table = Table::with_text(&["service", "servers", "clients", "type"]);
    for it in services {
        let types = it.types.join(", ");
        let [servers, clients] = [&it.servers, &it.clients].map(|it| it.len().to_string());
        table.row([it.service.clone(), servers, clients, types]);
        match (it.servers.len(), it.types.len()) {
            (0, _) => table.note("no server"),
            (1, 1) => {}
            (1, _) => table.note("several types: those that differ do not match"),
            _ => table.note("several servers: each gets all requests"),
        }
    }
    table
}

impl ServiceInfo {
    /// For people.
    pub fn text(&self) -> String {
        let mut text = format!("{}\n", printable(&self.service));
        let mut say = |key: &str, values: &[String]| {
            for value in values {
                text += &format!("  {key:<9}{}\n", printable(value));
            }
        };
        say("type", &self.types);
        say("server", &self.servers);
        say("client", &self.clients);
        if self.servers.is_empty() {
            text += "  problem: no server\n";
        }
        for (title, fields) in [("request", &self.request), ("reply", &self.reply)] {
            match fields {
                Some(fields) if fields.is_empty() => text += &format!("  {title}: empty\n"),
                Some(fields) => {
                    text += &format!("  {title}:\n");
                    fields.iter().for_each(|it| text += &format!("    {}\n", printable(it)));
                }
                None => text += &format!("  {title}: no node has described its fields\n"),
            }
        }
        text
    }
}

/// A call of a service: its reply as JSON.
///
/// # Errors
/// [`Error::NotFound`]: no such service, or no server answers within `limit`. [`Error::BadInput`]:
/// the request does not fit its type. [`Error::Failed`]: a type is not known.
pub fn call(
    session: &Session,
    place: &Place,
    graph: &Graph,
    typed: &str,
    request: &serde_json::Value,
    limit: Duration,
) -> Result<String, Error> {
    let found = meant(graph, typed, session, place)?;
    let [service] = &found[..] else {
        let names: Vec<_> = found.iter().map(|it| &*it.service).collect();
        let text = format!("{typed:?} means several services: {}; name one", names.join(", "));
        return Err(Error::BadInput(text));
    };
    let name = &service.service;
    let Some(server) = endpoint_of(graph, name, true).filter(|_| !service.servers.is_empty())
    else {
        return Err(Error::NotFound(format!("the service {name:?} has no server")));
    };
    let [Some(request_type), Some(reply_type)] = types_of(graph, server) else {
        return Err(Error::Failed(format!(
            "the types of the service {name:?} are not known: its server {} announces no fields \
             of {}; call it from a program that has the types",
            owner(graph, server.id).label(),
            type_name(server)
        )));
    };
    let bytes = encode_json(&request_type, request)
        .map_err(|error| Error::BadInput(format!("the request: {error}")))?;
    let reply = match ros::is_of_service(server) && !server.type_name.contains(ARROW) {
        true => call_ros(session, graph, server, &bytes, limit)?,
        false => {
            let client = session.node().any_client(server, graph)?;
            match client.client().call(&bytes, limit) {
                Ok(reply) => reply.to_vec(),
                Err(
                    error @ (myelin::Error::NoServer { .. } | myelin::Error::ReplyTimeout { .. }),
                ) => return Err(Error::NotFound(error.to_string())),
                Err(error) => return Err(error.into()),
            }
        }
    };
    Ok(Value::new(&reply_type, &reply)?.to_json(usize::MAX)?)
}

/// A call of a service of ROS 2: a message on the topic of requests, with the client and a number in
/// front; the reply comes on a topic of this client.
fn call_ros(
    session: &Session,
    graph: &Graph,
    server: &EndpointInfo,
    request: &[u8],
    limit: Duration,
) -> Result<Vec<u8>, Error> {
    let begin_ns = myelin::now();
    let left = || limit.saturating_sub(Duration::from_nanos(myelin::now() - begin_ns));
    let service = ros_service(server).unwrap_or_default();
    let no_reply = |what: &str| Error::NotFound(format!("{service}: {what} within {limit:?}"));
    let is_reply = |it: &&EndpointInfo| it.is_publisher && it.topic == format!("rr{service}Reply");
    let Some(replies) = graph.endpoints.iter().find(is_reply) else {
        return Err(Error::NotFound(format!("{service}: its server announces no replies")));
    };
    let topic = |of: &EndpointInfo| -> Result<_, Error> {
        let topic = AnyTopic::from_graph(session.node(), of, graph)?.topic();
        let topic = topic.depth(DEPTH).reliable_keep_last();
        Ok(topic.matching(Matching::RequestedOffered))
    };
    let publisher = topic(server)?.publisher()?;
    let id = publisher.id();
    let mut own = replies.clone();
    own.topic = format!("{} {id:016x}", replies.topic);
    let mut subscriber = topic(&own)?.subscriber()?;
    if !publisher.wait_for_match(1, left()) || !subscriber.wait_for_match(1, left()) {
        return Err(no_reply("no server is matched"));
    }
    let (header, body) = request.split_at(ENCAPSULATION_BYTES.min(request.len()));
    let numbered = [&id.to_le_bytes()[..], &1_i64.to_le_bytes()].concat();
    publisher.publish_copy(&[header, &numbered[..], body].concat())?;
    loop {
        let Some(sample) = subscriber.receive(left())? else {
            return Err(no_reply("no reply came"));
        };
        let Some((header, rest)) = sample.split_at_checked(ENCAPSULATION_BYTES) else { continue };
        let Some((number, body)) = rest.split_at_checked(numbered.len()) else { continue };
        if number == numbered {
            return Ok([header, body].concat());
        }
    }
}

/// What an endpoint does for a service; `None` for one of a topic.
pub fn role(endpoint: &EndpointInfo) -> Option<Role> {
    let is_publisher = endpoint.is_publisher;
    let role = |service: &str, is_of_requests: bool| Role {
        service: service.to_owned(),
        is_server: is_publisher != is_of_requests,
        is_of_requests,
    };
    if !ros::is_of_service(endpoint) {
        return None;
    }
    let topic = &*endpoint.topic;
    if !endpoint.type_name.contains(ARROW) {
        let service = ros_service(endpoint)?;
        return Some(role(service, topic.starts_with("rq")));
    }
    if let Some(service) = topic.strip_suffix("/request") {
        return Some(role(service, true));
    }
    let (service, _) = topic.rsplit_once("/reply/")?;
    Some(role(service, false))
}

/// The name of a service of ROS 2, with its slash, from a topic such as `rq/addRequest`. That of one
/// client's replies has the client behind it.
fn ros_service(endpoint: &EndpointInfo) -> Option<&str> {
    let topic = endpoint.topic.split(' ').next()?;
    let requests = topic.strip_prefix("rq").and_then(|it| it.strip_suffix("Request"));
    requests.or_else(|| topic.strip_prefix("rr")?.strip_suffix("Reply"))
}

/// The type of a service as people write it.
fn type_name(endpoint: &EndpointInfo) -> String {
    let name = ros::type_name(endpoint);
    let halves = ["_Request", "_Response"];
    halves.iter().find_map(|it| name.strip_suffix(it)).unwrap_or(&name).to_owned()
}

/// The subscriber to the requests of a service, or a publisher of them.
fn endpoint_of<'g>(graph: &'g Graph, service: &str, is_server: bool) -> Option<&'g EndpointInfo> {
    let wanted = Role { service: service.to_owned(), is_server, is_of_requests: true };
    graph.endpoints.iter().find(|it| role(it).is_some_and(|it| it == wanted))
}

/// The types of requests and replies, as far as nodes have described them.
fn types_of(graph: &Graph, server: &EndpointInfo) -> [Option<Arc<Type>>; 2] {
    let described = |ty: Option<Arc<Type>>| ty.filter(|it| is_described(it));
    if server.type_name.contains(ARROW) {
        let types = myelin::service_types(server, graph).map_or([None, None], |it| it.map(Some));
        return types.map(described);
    }
    let reply_type = server.type_name.replace("_Request_", "_Response_");
    let is_reply = |it: &&EndpointInfo| it.type_name == reply_type;
    let reply = graph.endpoints.iter().find(is_reply);
    [Some(server), reply].map(|it| described(crate::info::type_of(graph, it?).ok()))
}

/// Whether all of its fields are known.
fn is_described(ty: &Type) -> bool {
    match ty.kind() {
        Kind::Opaque { .. } => false,
        Kind::Array { element, .. } | Kind::Sequence { element, .. } => is_described(element),
        Kind::Struct { fields, .. } => fields.iter().all(|it| is_described(&it.ty)),
        _ => true,
    }
}

fn fields(ty: &Type) -> Vec<String> {
    let with_type = |path: &String| type_at(ty, path).map(|ty| (path.clone(), ty.to_string()));
    let fields = leaves(ty).into_iter().filter_map(|path| with_type(&path).ok());
    let fields = fields.filter(|(path, ty)| !path.is_empty() || ty != "()");
    fields.map(|(path, ty)| if path.is_empty() { ty } else { format!("{path}: {ty}") }).collect()
}

/// Between the types of request and reply of a service of Myelin.
const ARROW: &str = " -> ";
/// As ROS 2 has it for services.
const DEPTH: u32 = 10;
/// In front of a message in CDR.
const ENCAPSULATION_BYTES: usize = 4;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn endpoints_have_roles() {
        let of = |topic: &str, ty: &str, is_publisher: bool| {
            let mut endpoint = EndpointInfo::default();
            (endpoint.topic, endpoint.type_name) = (topic.to_owned(), ty.to_owned());
            endpoint.is_publisher = is_publisher;
            role(&endpoint).map(|it| (it.service, it.is_server, it.is_of_requests))
        };
        let is = |service: &str, is_server, is_of_requests| {
            Some((service.to_owned(), is_server, is_of_requests))
        };
        assert_eq!(of("plan/request", "A -> B", false), is("plan", true, true));
        assert_eq!(of("plan/request", "A -> B", true), is("plan", false, true));
        assert_eq!(of("plan/reply/00ff", "A -> B", true), is("plan", true, false));
        assert_eq!(of("plan/reply/00ff", "A -> B", false), is("plan", false, false));
        let ty = "CDR a::srv::dds_::Add_Request_";
        assert_eq!(of("rq/ns/addRequest", ty, false), is("/ns/add", true, true));
        assert_eq!(of("rr/ns/addReply 00ab", ty, false), is("/ns/add", false, false));
        assert_eq!(of("plan/request", "A", false), None);
    }
}
