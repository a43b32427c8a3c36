//! Clients of services whose types a program learns when it meets them.

use std::sync::Arc;

use myelin_value::{Schema, Type};

use super::{Client, ServiceTypes};
use crate::dynamic::DynamicType;
use crate::network::Shape;
use crate::{EndpointInfo, Error, Graph, Node};

/// A client of a service whose types the program does not know: requests and replies are bytes, and
/// their types read and write the fields. Made by [`Node::any_client`].
///
/// ```
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// # let _serving = node.service::<[u64; 2], u64>("add")?.on_request(|request| {
/// #     request.reply(&(request[0] + request[1])).unwrap();
/// # })?;
/// use myelin::value::{Value, encode_json};
///
/// let graph = node.graph_within(Duration::from_secs(1))?;
/// let is_server = |it: &&myelin::EndpointInfo| it.topic == "add/request" && !it.is_publisher;
/// let server = graph.endpoints.iter().find(is_server).expect("it is there");
/// let any = node.any_client(server, &graph)?;
/// let request = encode_json(any.request_type().unwrap(), &serde_json::json!([3, 4]))?;
/// let reply = any.client().call(&request, Duration::from_secs(60))?;
/// assert_eq!(Value::new(any.reply_type().unwrap(), &reply)?.as_u64()?, 7);
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct AnyClient {
    client: Client<[u8], [u8]>,
    types: Option<[Arc<Type>; 2]>,
}

impl Node {
    /// A client of the service whose requests a subscriber takes, with the types that a graph has of
    /// it, such as that of [`graph_within`](Node::graph_within).
    ///
    /// # Errors
    /// [`Error::Setting`] if the endpoint does not belong to a service of Myelin; a service of ROS 2
    /// has topics of messages. As for [`client`](Node::client).
    pub fn any_client(&self, server: &EndpointInfo, graph: &Graph) -> Result<AnyClient, Error> {
        let service = server.topic.strip_suffix("/request").filter(|_| !server.is_publisher);
        let service = service.filter(|_| server.type_name.contains(ARROW));
        let Some(service) = service else {
            return Err(Error::Setting {
                topic: None,
                field: "the service",
                value: format!("{:?}, which is no topic of requests", server.topic),
                remedy: "name the subscriber of a topic such as \"plan/request\"",
            });
        };
        let of = |hash| DynamicType::learnt(&server.type_name, hash, None, Shape::Bytes);
        let requests = of(server.type_hash);
        let types =
            ServiceTypes { request: of(0), replies: requests.clone().of_replies(), requests };
        let client = Client::create(self, service, Some(&types))?;
        Ok(AnyClient { client, types: service_types(server, graph) })
    }
}

/// The types of request and reply of the service that an endpoint belongs to, as a graph has them.
/// `None` if no node has described them.
pub fn service_types(server: &EndpointInfo, graph: &Graph) -> Option<[Arc<Type>; 2]> {
    let of_type = graph.types.iter().find(|it| it.hash == server.type_hash)?;
    halves(of_type.schema.as_ref()?.layout()?)
}

impl AnyClient {
    /// The client, whose requests and replies are bytes.
    pub fn client(&self) -> &Client<[u8], [u8]> {
        &self.client
    }

    /// The type of a request; `None` if no node has described it.
    pub fn request_type(&self) -> Option<&Type> {
        self.types.as_ref().map(|[request, _]| &**request)
    }

    /// The type of a reply; `None` if no node has described it.
    pub fn reply_type(&self) -> Option<&Type> {
        self.types.as_ref().map(|[_, reply]| &**reply)
    }
}

/// The types of request and reply in the layout of a service.
fn halves(layout: &str) -> Option<[Arc<Type>; 2]> {
    let parse = |half: &str| Schema::layout(half).parse().ok().map(Arc::new);
    // The name of a type may contain an arrow, too.
    let at = layout.match_indices(ARROW).map(|(at, _)| at);
    at.take(ARROWS_MAX).find_map(|at| {
        let reply = &layout[at + ARROW.len()..];
        Some([parse(&layout[..at])?, parse(reply)?])
    })
}

/// Between the types of request and reply.
const ARROW: &str = " -> ";
/// How many arrows of a layout are tried.
const ARROWS_MAX: usize = 16;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_service_has_two_types() {
        let [request, reply] = halves("Goal{x: f64 @0} 8 -> [u32]").unwrap();
        assert_eq!((request.bytes(), reply.bytes()), (Some(8), None));
        let [request, _] = halves("A -> B{x: u8 @0} 1 -> ()").unwrap();
        assert_eq!(request.bytes(), Some(1));
        assert!(halves("u8").is_none());
        assert!(halves("u8 -> Name").is_none());
    }
}
