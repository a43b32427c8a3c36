//! Which topics are recorded.

use myelin::pattern::is_match;
use myelin::{EndpointInfo, ros};

/// Which topics are recorded, and how. Patterns have `*` and `?`, as in
/// [`Node::discover`](myelin::Node::discover). A topic of ROS 2 is meant by its name there, with or
/// without the `/` in front.
#[derive(Clone, Debug, Default)]
pub(super) struct Selection {
    /// Names; with no names and no types, all topics.
    pub topics: Vec<String>,
    pub types: Vec<String>,
    pub exclude: Vec<String>,
    /// Topics of services, too.
    pub services: bool,
    /// Topics whose reliable publishers wait for the recorder.
    pub reliable: Vec<String>,
    /// At most so many messages a second.
    pub max_rate_hz: Vec<(String, f64)>,
}

impl Selection {
    pub(super) fn is_wanted(&self, endpoint: &EndpointInfo) -> bool {
        let is_named = |it: &String| it.as_str() == name(endpoint) || *it == endpoint.topic;
        let is_internal =
            endpoint.topic == NODES_TOPIC || (ros::is_of_service(endpoint) && !self.services);
        if is_internal && !self.topics.iter().any(is_named) {
            return false;
        }
        let type_name = ros::type_name(endpoint);
        let is_of_type = |it: &String| is_match(it, &type_name) || *it == endpoint.type_name;
        let is_all = self.topics.is_empty() && self.types.is_empty();
        let is_selected =
            is_all || means_any(&self.topics, endpoint) || self.types.iter().any(is_of_type);
        is_selected && !means_any(&self.exclude, endpoint)
    }

    pub(super) fn is_reliable(&self, endpoint: &EndpointInfo) -> bool {
        means_any(&self.reliable, endpoint)
    }

    /// The least of those that mean it.
    pub(super) fn max_rate_hz(&self, endpoint: &EndpointInfo) -> Option<f64> {
        let of_it = self.max_rate_hz.iter().filter(|(pattern, _)| means(pattern, endpoint));
        of_it.map(|(_, rate)| *rate).reduce(f64::min)
    }
}

/// The name of its topic in the recording.
pub(super) fn name(endpoint: &EndpointInfo) -> &str {
    ros::topic_name(endpoint)
}

fn means_any(patterns: &[String], endpoint: &EndpointInfo) -> bool {
    patterns.iter().any(|pattern| means(pattern, endpoint))
}

/// Whether a pattern means the topic of an endpoint.
fn means(pattern: &str, endpoint: &EndpointInfo) -> bool {
    let (shown, raw) = (name(endpoint), endpoint.topic.as_str());
    let bare = if shown == raw { shown } else { shown.trim_start_matches('/') };
    [shown, raw, bare].iter().any(|name| is_match(pattern, name))
}

/// On it, nodes of `rmw_myelin` announce themselves, and nothing is published.
const NODES_TOPIC: &str = "ros_nodes";

#[cfg(test)]
mod tests {
    use super::*;

    fn endpoint(topic: &str, type_name: &str) -> EndpointInfo {
        let mut endpoint = EndpointInfo::default();
        (endpoint.topic, endpoint.type_name) = (topic.to_owned(), type_name.to_owned());
        endpoint
    }

    fn list(of: &[&str]) -> Vec<String> {
        of.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn topics_are_named_by_name_type_and_pattern() {
        let image = "CDR sensor_msgs::msg::dds_::Image_";
        let left = endpoint("rt/camera/left", image);
        let imu = endpoint("imu", "Imu");
        let service = endpoint("rq/addRequest", "CDR a::srv::dds_::Add_Request_");
        let nodes = endpoint("ros_nodes", "u8");
        let wanted = |selection: &Selection| {
            [&left, &imu, &service, &nodes].map(|it| selection.is_wanted(it))
        };
        let all = Selection::default();
        assert_eq!(wanted(&all), [true, true, false, false]);
        let selection = Selection { services: true, ..all.clone() };
        assert_eq!(wanted(&selection), [true, true, true, false]);
        for name in ["/camera/left", "camera/left", "rt/camera/left", "camera/*", "/*/lef?"] {
            let selection = Selection { topics: list(&[name]), ..all.clone() };
            assert_eq!(wanted(&selection), [true, false, false, false], "{name}");
        }
        let selection = Selection { types: list(&["sensor_msgs/*"]), ..all.clone() };
        assert_eq!(wanted(&selection), [true, false, false, false]);
        let selection =
            Selection { types: list(&["*/Image"]), topics: list(&["imu"]), ..all.clone() };
        assert_eq!(wanted(&selection), [true, true, false, false]);
        let selection = Selection { exclude: list(&["camera/*"]), ..all.clone() };
        assert_eq!(wanted(&selection), [false, true, false, false]);
        let selection = Selection { topics: list(&["rq/addRequest"]), ..all };
        assert_eq!(wanted(&selection), [false, false, true, false]);
    }

    #[test]
    fn the_lowest_rate_counts() {
        let max_rate_hz = vec![("*".to_owned(), 10.0), ("imu".to_owned(), 5.0)];
        let selection = Selection { max_rate_hz, ..Selection::default() };
        assert_eq!(selection.max_rate_hz(&endpoint("imu", "Imu")), Some(5.0));
        assert_eq!(selection.max_rate_hz(&endpoint("map", "Map")), Some(10.0));
        assert_eq!(Selection::default().max_rate_hz(&endpoint("map", "Map")), None);
    }
}
