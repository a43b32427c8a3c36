//! Types that are known at run time only, against the corresponding Rust types.

mod support;

use std::time::Duration;

use myelin::{Client, DynamicType, Error, Event, Layout, Node, PlainData, Published};
use support::{WATCHDOG, node, until};

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Pose {
    stamp_ns: u64,
    at: [f64; 3],
}

const POSE: Pose = Pose { stamp_ns: 7, at: [1.0, 2.0, 3.0] };

fn told() -> (DynamicType, DynamicType) {
    let scalar = |name| Layout::scalar(name).unwrap();
    let (stamp, at) = (scalar("u64"), Layout::array(&scalar("f64"), 3).unwrap());
    let pose = Layout::structure("Pose", &[("stamp_ns", &stamp, 0), ("at", &at, 8)], 32, 8);
    (DynamicType::value(&pose.unwrap()), DynamicType::slice(&scalar("u32")).unwrap())
}

fn bytes(pose: &Pose) -> Vec<u8> {
    let at = pose.at.iter().flat_map(|each| each.to_ne_bytes());
    pose.stamp_ns.to_ne_bytes().into_iter().chain(at).collect()
}

#[test]
fn a_run_time_type_matches_the_rust_type_in_both_directions() {
    let (_folder, node) = node();
    let (here, rust) = (node.dynamic_topic("pose", &told().0), node.topic::<Pose>("pose"));
    let (mut as_bytes, mut as_pose) = (here.subscriber().unwrap(), rust.subscriber().unwrap());
    let (of_bytes, of_pose) = (here.publisher().unwrap(), rust.publisher().unwrap());
    assert!(of_bytes.wait_for_match(2, WATCHDOG) && of_pose.wait_for_match(2, WATCHDOG));
    for publish in [&|| of_bytes.publish_copy(&bytes(&POSE)).unwrap(), &|| {
        of_pose.publish_copy(&POSE).unwrap()
    }] as [&dyn Fn() -> Published; 2]
    {
        publish();
        assert_eq!(*as_pose.receive(WATCHDOG).unwrap().unwrap(), POSE);
        assert_eq!(*as_bytes.receive(WATCHDOG).unwrap().unwrap(), *bytes(&POSE));
    }
}

#[test]
fn another_layout_is_refused_with_both_names() {
    let (_folder, node) = node();
    let _here = node.dynamic_topic("pose", &told().0).publisher().unwrap();
    let error = node.topic::<[f32; 3]>("pose").subscriber().unwrap_err().to_string();
    assert!(error.contains("carries Pose") && error.contains("not [f32; 3]"), "{error}");
}

/// A type of 8 bytes with a name of that length.
fn named(bytes: usize) -> DynamicType {
    let scalar = Layout::scalar("u64").unwrap();
    let name = "n".repeat(bytes);
    DynamicType::value(&Layout::structure(&name, &[("x", &scalar, 0)], 8, 8).unwrap())
}

#[test]
fn a_type_may_have_a_long_name() {
    let (_folder, node) = node();
    let publisher = node.dynamic_topic("long", &named(300)).publisher().unwrap();
    let mut subscriber = node.dynamic_topic("long", &named(300)).subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&7_u64.to_ne_bytes()).unwrap();
    assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), 7_u64.to_ne_bytes());
    let error = node.dynamic_topic("long", &told().1).publisher().unwrap_err().to_string();
    assert!(error.contains("nnn..") && error.contains("[u32]"), "{error}");
    // The name of a service's topic type contains the names of both types.
    let service = node.dynamic_service("long", &named(200), &named(200)).unwrap();
    let client = node.dynamic_client("long", &named(200), &named(200)).unwrap();
    until("the client", || service.clients() == 1 && client.servers() == 1);
}

#[test]
fn a_service_s_name_is_as_long_as_a_topic_s() {
    let (_folder, node) = node();
    let (request, reply) = told();
    let longest = "n".repeat(255);
    let _service = node.dynamic_service(&longest, &request, &reply).unwrap().on_request(|asked| {
        asked.reply(&3_u32.to_ne_bytes()).unwrap();
    });
    let client = node.dynamic_client(&longest, &request, &reply).unwrap();
    assert_eq!(*client.call(&bytes(&POSE), WATCHDOG).unwrap(), 3_u32.to_ne_bytes());
}

#[test]
fn a_name_that_cannot_be_is_named_with_its_length() {
    let (_folder, node) = node();
    let (request, reply) = told();
    for name in [String::new(), "n".repeat(256), "a\nb".to_owned()] {
        let of_service = node.dynamic_service(&name, &request, &reply).err();
        let of_client = node.dynamic_client(&name, &request, &reply).err();
        let of_topic = node.topic::<u64>(&name).publisher().err();
        let errors = [("service", of_service), ("service", of_client), ("topic", of_topic)];
        for (what, error) in errors {
            let error = error.unwrap().to_string();
            let wanted = format!("a {what}'s name is {name:?} ({} bytes): a name has", name.len());
            assert!(error.contains(&wanted), "{error}");
        }
    }
    let error = Node::builder(&"n".repeat(256)).open().unwrap_err().to_string();
    assert!(error.contains("a node's name is") && error.contains("(256 bytes)"), "{error}");
}

#[test]
fn a_publisher_of_a_wrong_length_is_disconnected() {
    let (_folder, node) = node();
    let topic = node.dynamic_topic("numbers", &told().1);
    let mut subscriber = topic.subscriber().unwrap();
    let callback = topic.subscriber().unwrap().on_sample(|_| ()).unwrap();
    let publisher = topic.publisher().unwrap();
    assert!(publisher.wait_for_match(2, WATCHDOG));
    assert!(subscriber.wait_for_match(1, WATCHDOG) && callback.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&[0; 8]).unwrap();
    assert_eq!(subscriber.receive(WATCHDOG).unwrap().unwrap().len(), 8);
    until("the call for the sample that fits", || callback.calls() == 1);
    publisher.publish_copy(&[0; 7]).unwrap();
    assert!(matches!(subscriber.receive(WATCHDOG), Err(Error::PeerCorrupt { .. })));
    let is_corrupt = |event: &Event| matches!(event, Event::Corrupt { .. });
    until("the word of a corrupt peer", || subscriber.events().iter().any(is_corrupt));
    let is_refused = |error| matches!(error, Some(Error::PeerCorrupt { .. }));
    until("the callback's error", || is_refused(callback.error()));
    assert_eq!(callback.calls(), 1);
}

#[test]
fn a_service_is_called_by_the_rust_types_and_by_bytes() {
    let (_folder, node) = node();
    let (request, reply) = told();
    let service = node.dynamic_service("count", &request, &reply).unwrap();
    let _serving = service.on_request(|request| request.reply(&request[..8]).unwrap()).unwrap();
    let client: Client<Pose, [u32]> = node.client("count").unwrap();
    assert_eq!(*client.call(&POSE, WATCHDOG).unwrap(), [7, 0]);
    let client = node.dynamic_client("count", &request, &reply).unwrap();
    assert_eq!(*client.call(&bytes(&POSE), WATCHDOG).unwrap(), *bytes(&POSE)[..8].as_ref());
}

#[test]
fn a_wait_of_a_service_or_a_client_ends_when_it_is_interrupted() {
    let (_folder, node) = node();
    let (request, reply) = told();
    let mut service = node.dynamic_service("count", &request, &reply).unwrap();
    service.interrupter().interrupt();
    assert!(!service.wait(Duration::MAX).unwrap());
    let client = node.dynamic_client("count", &request, &reply).unwrap();
    client.interrupter().interrupt();
    client.wait(Duration::MAX).unwrap();
}

#[test]
fn a_service_of_a_wide_type_is_refused() {
    let (_folder, node) = node();
    let wide = wide();
    let error = node.dynamic_service("count", &wide, &told().1).unwrap_err().to_string();
    assert!(error.contains("Wide") && error.contains("16 bytes"), "{error}");
}

fn wide() -> DynamicType {
    let bytes = Layout::array(&Layout::scalar("u8").unwrap(), 32).unwrap();
    DynamicType::value(&Layout::structure("Wide", &[("bytes", &bytes, 0)], 32, 32).unwrap())
}
