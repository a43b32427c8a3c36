//! Names as ROS 2 writes them, for the topics of `rmw_myelin` and of DDS programs.
//!
//! | | on the wire | in ROS 2 |
//! |---|---|---|
//! | topic | `rt/chatter` | `/chatter` |
//! | type | `CDR std_msgs::msg::dds_::String_` | `std_msgs/msg/String` |

use std::borrow::Cow;

use myelin_shm::topic::{Topic, message_type};

use crate::{AnyTopic, Attributes, EndpointInfo, Error, Graph, Location, Node};

/// Gives the endpoints of DDS programs the type that Myelin's endpoints of the same type have, so that
/// they are compared, and read by a schema that a node of Myelin has reported.
pub fn unite_types(graph: &mut Graph) {
    for endpoint in &mut graph.endpoints {
        if endpoint.location == Location::Dds && message_type(&endpoint.type_name).is_none() {
            let of_messages = Topic::of_messages(endpoint.topic.clone(), &endpoint.type_name);
            endpoint.type_name = of_messages.type_name;
            endpoint.type_hash = of_messages.type_hash;
        }
    }
}

/// The topic of an endpoint of a graph whose types are [united](unite_types), also of a DDS program.
///
/// # Errors
/// Those of [`AnyTopic::from_graph`].
pub fn any_topic(node: &Node, endpoint: &EndpointInfo, graph: &Graph) -> Result<AnyTopic, Error> {
    let mut found = endpoint.clone();
    if found.location == Location::Dds {
        // A topic of messages is the same wherever its endpoints are.
        found.location = Location::ThisHost;
    }
    AnyTopic::from_graph(node, &found, graph)
}

/// The topic of an endpoint, as people write it.
pub fn topic_name(endpoint: &EndpointInfo) -> &str {
    match endpoint.topic.strip_prefix("rt") {
        Some(name) if name.starts_with('/') && carries_messages(endpoint) => name,
        _ => &endpoint.topic,
    }
}

/// The type of an endpoint, as people write it.
pub fn type_name(endpoint: &EndpointInfo) -> Cow<'_, str> {
    let name = message_type(&endpoint.type_name).unwrap_or(&endpoint.type_name);
    let of_ros = name.split_once("::dds_::").and_then(|(package, message)| {
        Some(format!("{}/{}", package.replace("::", "/"), message.strip_suffix('_')?))
    });
    of_ros.map_or(Cow::Borrowed(name), Cow::Owned)
}

/// The name of a node of ROS 2, with its namespace, by what it announces of itself or of an endpoint.
pub fn node_name(attributes: &Attributes) -> Option<String> {
    attributes.get("ros.node").map(|name| String::from_utf8_lossy(name).into_owned())
}

/// Whether a topic belongs to a service.
pub fn is_of_service(endpoint: &EndpointInfo) -> bool {
    let is_of_ros = endpoint.topic.starts_with("rq/") || endpoint.topic.starts_with("rr/");
    endpoint.type_name.contains(" -> ") || is_of_ros && carries_messages(endpoint)
}

fn carries_messages(endpoint: &EndpointInfo) -> bool {
    endpoint.location == Location::Dds || message_type(&endpoint.type_name).is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_those_of_ros_2() {
        let of = |topic: &str, ty: &str| {
            let mut endpoint = EndpointInfo::default();
            (endpoint.topic, endpoint.type_name) = (topic.to_owned(), ty.to_owned());
            (
                topic_name(&endpoint).to_owned(),
                type_name(&endpoint).into_owned(),
                is_of_service(&endpoint),
            )
        };
        let expected = |name: &str, ty: &str, service| (name.to_owned(), ty.to_owned(), service);
        assert_eq!(
            of("rt/a/chatter", "CDR std_msgs::msg::dds_::String_"),
            expected("/a/chatter", "std_msgs/msg/String", false)
        );
        assert_eq!(of("rt/chatter", "Imu"), expected("rt/chatter", "Imu", false));
        assert_eq!(of("rtx", "CDR X"), expected("rtx", "X", false));
        assert!(of("rq/addRequest", "CDR a::srv::dds_::Add_Request_").2);
        assert!(of("add", "Goal -> f64").2);
    }
}
