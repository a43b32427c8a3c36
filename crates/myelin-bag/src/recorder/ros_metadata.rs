//! What rosbag2 wants to know of a topic: the settings of its publishers, and the hash of its type.

use std::fmt::Write;
use std::time::Duration;

use myelin::EndpointInfo;

use crate::format::Metadata;
use crate::names::{QOS_PROFILES, TYPE_HASH};

/// The metadata of a ROS 2 topic's channel, by its endpoints.
pub(super) fn of_channel(endpoints: &[&EndpointInfo]) -> Metadata {
    let mut metadata = Metadata::new();
    let publishers: Vec<String> =
        endpoints.iter().filter(|it| it.is_publisher).map(|it| profile(it)).collect();
    metadata.insert(QOS_PROFILES.to_owned(), publishers.concat());
    if let Some(hash) = endpoints.iter().find_map(|it| type_hash(it)) {
        metadata.insert(TYPE_HASH.to_owned(), hash);
    }
    metadata
}

/// A publisher's settings, as rosbag2 writes them since ROS 2 Jazzy: an item of a YAML list.
fn profile(of: &EndpointInfo) -> String {
    let qos = &of.qos;
    let number = |name: &str| {
        let text = of.attributes.get(name).and_then(|it| std::str::from_utf8(it).ok());
        text.and_then(|text| text.parse::<u32>().ok())
    };
    // The library's depth may be larger than that of the program.
    let depth = number("ros.depth").unwrap_or(qos.depth);
    let mut text = String::new();
    let mut line = |name: &str, value: &str| {
        let begin = if text.is_empty() { '-' } else { ' ' };
        let _ = writeln!(text, "{begin} {name}: {value}");
    };
    line("history", if depth == 0 { "keep_all" } else { "keep_last" });
    line("depth", &depth.to_string());
    let is_reliable = of.reliable || qos.resends;
    line("reliability", if is_reliable { "reliable" } else { "best_effort" });
    line("durability", if qos.transient_local > 0 { "transient_local" } else { "volatile" });
    line("deadline", &time(qos.deadline));
    line("lifespan", &time(qos.lifespan));
    line("liveliness", if qos.is_alive_by_topic { "manual_by_topic" } else { "automatic" });
    line("liveliness_lease_duration", &time(qos.liveliness));
    line("avoid_ros_namespace_conventions", "false");
    text
}

/// `RIHS01_…`, as the endpoint announces it: itself, or in DDS.
fn type_hash(of: &EndpointInfo) -> Option<String> {
    let own = of.attributes.get("ros.type_hash");
    let own = own.and_then(|it| std::str::from_utf8(it).ok()).map(ToOwned::to_owned);
    own.or_else(|| {
        let user_data = String::from_utf8_lossy(&of.dds.as_ref()?.user_data).into_owned();
        let mut pairs = user_data.split(';').filter_map(|it| it.split_once('='));
        pairs.find(|(name, _)| *name == "typehash").map(|(_, hash)| hash.to_owned())
    })
}

/// As rosbag2 has it; none is the longest one.
fn time(time: Option<Duration>) -> String {
    let time = time.unwrap_or(Duration::from_nanos(i64::MAX as u64));
    format!("{{sec: {}, nsec: {}}}", time.as_secs(), time.subsec_nanos())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_are_those_that_rosbag2_reads() {
        let mut publisher = EndpointInfo::default();
        publisher.is_publisher = true;
        publisher.qos.depth = 64;
        publisher.qos.resends = true;
        publisher.qos.deadline = Some(Duration::from_millis(1500));
        publisher.attributes.insert("ros.depth", b"10").unwrap();
        publisher.attributes.insert("ros.type_hash", b"RIHS01_ab").unwrap();
        let metadata = of_channel(&[&publisher, &EndpointInfo::default()]);
        assert_eq!(metadata["topic_type_hash"], "RIHS01_ab");
        let expected = "\
- history: keep_last
  depth: 10
  reliability: reliable
  durability: volatile
  deadline: {sec: 1, nsec: 500000000}
  lifespan: {sec: 9223372036, nsec: 854775807}
  liveliness: automatic
  liveliness_lease_duration: {sec: 9223372036, nsec: 854775807}
  avoid_ros_namespace_conventions: false
";
        assert_eq!(metadata["offered_qos_profiles"], expected);
    }
}
