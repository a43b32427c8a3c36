//! How much shared memory topics take: one takes little, and a thousand take a thousand times as
//! much.

use std::collections::BTreeMap;
use std::os::linux::fs::MetadataExt;
use std::time::Duration;

use myelin_shm::node::{Node, NodeOptions};
use myelin_shm::topic::{PublisherQos, SubscriberQos, Topic};

#[test]
fn a_thousand_topics_fit_into_64_mib() {
    let folder = tempfile::tempdir().unwrap();
    let options =
        NodeOptions { runtime_dir: Some(folder.path().to_owned()), ..NodeOptions::default() };
    let node = Node::open(options).unwrap();
    let publisher_qos = PublisherQos { depth: 10, ..PublisherQos::default() };
    let subscriber_qos = SubscriberQos { depth: 10, ..SubscriberQos::default() };
    let mut ends = Vec::new();
    for number in 0..1_000 {
        let name = format!("topic/{number}");
        let topic = Topic { name, type_name: "bytes".into(), type_hash: 0 };
        let mut publisher = node.publisher(topic.clone(), publisher_qos).unwrap();
        let mut subscriber = node.subscriber(topic, subscriber_qos).unwrap();
        assert!(publisher.wait_for_match(1, Duration::from_secs(20)));
        assert!(subscriber.wait_for_match(1, Duration::from_secs(20)));
        publisher.writer.publish_copy(&[number as u8; 64]).unwrap();
        assert_eq!(subscriber.reader.take().unwrap().unwrap().bytes(), [number as u8; 64]);
        ends.push((publisher, subscriber));
        if number == 0 {
            assert!(shared_bytes() <= 1 << 20, "{} B for one topic", shared_bytes());
        }
    }
    println!("{} KiB of shared memory for 1,000 topics", shared_bytes() >> 10);
    assert!(shared_bytes() <= 64 << 20, "{} B for 1,000 topics", shared_bytes());
}

/// The sizes of all segments that this process has a descriptor for: the owner keeps one of each.
fn shared_bytes() -> u64 {
    let mut segments = BTreeMap::new();
    for entry in std::fs::read_dir("/proc/self/fd").unwrap().flatten() {
        let is_ours = std::fs::read_link(entry.path())
            .is_ok_and(|target| target.to_string_lossy().starts_with("/memfd:myelin-"));
        if let (true, Ok(file)) = (is_ours, std::fs::metadata(entry.path())) {
            segments.insert(file.st_ino(), file.st_blocks() * 512);
        }
    }
    segments.values().sum()
}
