//! Topics whose type is learnt from the schema that another node announces.

mod support;

use std::time::Duration;

use myelin::{Change, Error, Event, Node, PlainData};
use support::{WATCHDOG, node, until};

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Pose {
    stamp_ns: u64,
    position: [f64; 3],
    inner: Inner,
}

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Inner {
    id: u32,
    weights: [u16; 2],
}

const POSE: Pose =
    Pose { stamp_ns: 7, position: [1.0, 2.0, 3.5], inner: Inner { id: 9, weights: [1, 65_535] } };

/// A second node, which knows no types.
fn other(folder: &tempfile::TempDir) -> Node {
    Node::builder("tool").runtime_dir(folder.path()).open().unwrap()
}

#[test]
fn a_value_of_another_node_is_read_by_its_layout() {
    let (folder, node) = node();
    let publisher = node.topic::<Pose>("pose").publisher().unwrap();
    let tool = other(&folder);
    let topic = tool.any_topic("pose", WATCHDOG).unwrap();
    assert!(topic.problem().is_none());
    let mut subscriber = topic.topic().subscriber().unwrap();
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&POSE).unwrap();
    let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();
    let pose = topic.value(&sample).unwrap();
    assert_eq!(pose.get("position[2]").unwrap().as_f64().unwrap(), 3.5);
    assert_eq!(pose.get("inner.weights[1]").unwrap().as_u64().unwrap(), 65_535);
    let error = pose.get("inner.wieghts").unwrap_err().to_string();
    assert!(error.contains("weights"), "{error}");
    assert!(topic.value(&sample[1..]).is_err(), "another length is no pose");
}

#[test]
fn a_header_and_a_slice_are_read_by_their_layout() {
    let (folder, node) = node();
    let publisher = node.topic::<(Inner, [f32])>("scan").publisher().unwrap();
    let tool = other(&folder);
    let topic = tool.any_topic("scan", WATCHDOG).unwrap();
    let mut subscriber = topic.topic().subscriber().unwrap();
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    for length in [0, 3, 1_000] {
        let header = Inner { id: length as u32, weights: [4, 5] };
        let mut loan = publisher.loan(length).unwrap();
        *loan.header_mut() = header;
        loan.slice_mut().fill(0.5);
        loan.publish().unwrap();
        let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();
        let scan = topic.value(&sample).unwrap();
        let fields = scan.fields().unwrap().map(|field| field.unwrap().0);
        let fields: Vec<_> = fields.collect();
        let [header, slice] = fields[..] else { panic!("{fields:?}") };
        assert_eq!(scan.get(header).unwrap().get("id").unwrap().as_u64().unwrap(), length as u64);
        assert_eq!(scan.get(slice).unwrap().len().unwrap(), length);
    }
}

#[test]
fn a_message_is_read_by_the_definition_that_its_publisher_announces() {
    let (folder, node) = node();
    let definition = b"int32 number\nstring text\n";
    let chatter = node.topic::<[u8]>("chatter").dds_cdr("robot_msgs::msg::dds_::Note_");
    let publisher = chatter.schema("ros2msg", definition).publisher().unwrap();
    let tool = other(&folder);
    let topic = tool.any_topic("chatter", WATCHDOG).unwrap();
    let mut subscriber = topic.topic().subscriber().unwrap();
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    let json = serde_json::json!({ "number": -3, "text": "grün" });
    publisher.publish_copy(&topic.encode_json(&json).unwrap()).unwrap();
    let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();
    let note = topic.value(&sample).unwrap();
    assert_eq!(note.get("number").unwrap().as_i64().unwrap(), -3);
    assert_eq!(note.get("text").unwrap().as_string().unwrap(), "grün");
}

#[test]
fn a_value_written_from_json_is_that_of_a_program_with_the_type() {
    let (folder, node) = node();
    let mut subscriber = node.topic::<Pose>("pose").subscriber().unwrap();
    let tool = other(&folder);
    let topic = tool.any_topic("pose", WATCHDOG).unwrap();
    let publisher = topic.topic().publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let json = serde_json::json!({
        "stamp_ns": 7,
        "position": [1, 2, 3.5],
        "inner": { "id": 9, "weights": [1, 65_535] },
    });
    publisher.publish_copy(&topic.encode_json(&json).unwrap()).unwrap();
    assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), POSE);
    let wrong = serde_json::json!({ "inner": { "weights": [1, 65_536] } });
    let error = topic.encode_json(&wrong).unwrap_err().to_string();
    assert!(error.contains("inner.weights[1]"), "{error}");
}

#[test]
fn a_schema_that_lies_is_an_error_and_its_samples_are_bytes() {
    let (folder, node) = node();
    let of = |name: &str, encoding: &str, content: &[u8]| {
        let topic = node.topic::<[u8]>(name).dds_cdr(&format!("m::{name}"));
        topic.schema(encoding, content).publisher().unwrap()
    };
    let _publishers = [
        of("unknown", "flatbuffer", b"x"),
        of("broken", "ros2msg", b"Missing[] a b c"),
        of("not_utf8", "ros2msg", &[0xff]),
        of("deep", "myelin-layout", "[".repeat(60_000).as_bytes()),
    ];
    let bare = node.topic::<[u8]>("bare").dds_cdr("m::bare").publisher().unwrap();
    let tool = other(&folder);
    for name in ["unknown", "broken", "not_utf8", "deep", "bare"] {
        let topic = tool.any_topic(name, WATCHDOG).unwrap();
        assert_eq!(topic.problem().is_some(), name != "bare", "{name}");
        assert_eq!(topic.value(&[1, 2]).unwrap().as_bytes().unwrap(), [1, 2]);
    }
    drop(bare);
}

#[test]
fn the_schema_comes_from_a_node_that_has_one() {
    let (folder, node) = node();
    let others = [other(&folder), other(&folder)];
    let of = |node: &Node, name| node.topic::<[u8]>(name).dds_cdr("m::msg::dds_::Note_");
    let with_schema = |node, name| of(node, name).schema("ros2msg", b"int32 number");
    let mut publishers = Vec::new();
    for (name, has_schema) in [("first", [true, false]), ("second", [false, true])] {
        for (node, has_schema) in others.iter().zip(has_schema) {
            let topic = if has_schema { with_schema(node, name) } else { of(node, name) };
            publishers.push(topic.publisher().unwrap());
        }
        let topic = node.any_topic(name, WATCHDOG).unwrap();
        let note = topic.encode_json(&serde_json::json!({ "number": 7 })).unwrap();
        assert_eq!(topic.value(&note).unwrap().get("number").unwrap().as_i64().unwrap(), 7);
        publishers.clear();
    }
}

#[test]
fn topics_that_cannot_be_learnt_are_named() {
    let (folder, node) = node();
    let error = node.any_topic("nothing", Duration::ZERO).unwrap_err();
    assert!(matches!(error, Error::Setting { .. }), "{error:?}");
    assert!(error.to_string().contains("\"nothing\""), "{error}");
    let of = |name: &str| node.topic::<[u8]>("two").dds_cdr(name).publisher().unwrap();
    let _both = (of("m::A"), of("m::B"));
    let tool = other(&folder);
    let error = tool.any_topic("two", WATCHDOG).unwrap_err().to_string();
    assert!(error.contains("m::A") && error.contains("m::B"), "{error}");
    for endpoint in tool.graph().unwrap().endpoints {
        assert!(tool.any_topic_of(&endpoint, WATCHDOG).is_ok());
    }
    let _service = node.service::<u8, u8>("service").unwrap();
    let graph = node.graph().unwrap();
    let of_service = graph.endpoints.iter().find(|it| it.type_name.contains("->")).unwrap();
    let error = node.any_topic_of(of_service, WATCHDOG).unwrap_err().to_string();
    assert!(error.contains("service"), "{error}");
}

#[test]
fn endpoints_are_found_as_they_come_and_go() {
    let (folder, node) = node();
    let tool = other(&folder);
    let mut cameras = tool.discover("camera/*");
    assert_eq!(cameras.changes().unwrap(), []);
    let left = node.topic::<u8>("camera/left").publisher().unwrap();
    let _imu = node.topic::<u8>("imu").publisher().unwrap();
    let mut all = Vec::new();
    until("the camera", || {
        all.extend(cameras.changes().unwrap());
        !all.is_empty()
    });
    let [Change::Found(found)] = &all[..] else { panic!("{all:?}") };
    assert_eq!((found.id, &*found.topic, found.is_publisher), (left.id(), "camera/left", true));
    assert_eq!(cameras.endpoints().count(), 1);
    let found = found.clone();
    drop(left);
    all.clear();
    until("its end", || {
        all.extend(cameras.changes().unwrap());
        !all.is_empty()
    });
    assert_eq!(all, [Change::Gone(found)]);
}

#[test]
fn a_passive_subscriber_stands_in_nobodys_way() {
    let (folder, node) = node();
    let tool = other(&folder);
    let publisher = node.topic::<Pose>("pose").publisher().unwrap();
    let topic = tool.any_topic("pose", WATCHDOG).unwrap();
    let passive = topic.topic().passive().depth(1_000).transient_local(1_000);
    let subscriber = passive.subscriber().unwrap();
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    let is_warning =
        |it: &Event| matches!(it, Event::QosReduced { .. } | Event::Incompatible { .. });
    assert!(!subscriber.events().iter().any(is_warning), "it requests what there is");
    let error = node.topic::<f64>("pose").publisher().unwrap_err();
    assert!(matches!(error, Error::TypeMismatch { .. }), "the publisher counts: {error:?}");

    drop(publisher);
    until("it has gone", || subscriber.matched() == 0);
    let of_other_type = node.topic::<f64>("pose").publisher().unwrap();
    assert!(!of_other_type.events().iter().any(is_warning));
    assert!(!subscriber.events().iter().any(is_warning));
    // Both types have passive subscribers now.
    until("there are two types", || tool.any_topic("pose", WATCHDOG).is_err());
    let found = tool.graph().unwrap().endpoints;
    let found = found.iter().find(|it| it.id == of_other_type.id()).unwrap();
    let topic = tool.any_topic_of(found, WATCHDOG).unwrap();
    assert_eq!(topic.schema().unwrap().layout(), Some("f64"));
    let second = topic.topic().passive().subscriber().unwrap();
    assert!(second.wait_for_match(1, WATCHDOG));
}
