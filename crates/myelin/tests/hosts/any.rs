//! Topics of another host whose type this program does not know.

use std::collections::BTreeMap;

use myelin::{Change, EndpointInfo, Location, MatchState, Node, PlainData};

use crate::support::{WATCHDOG, until};
use crate::two::{Hosts, heard};
use crate::{node, nothing_is_left};

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Pose {
    stamp_ns: u64,
    position: [f64; 3],
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Point {
    range: f32,
    ring: [u16; 2],
}

#[test]
fn a_program_reads_topics_of_another_host_whose_types_it_does_not_know() {
    let Some(hosts) = Hosts::new() else { return };
    let tool = hosts.other.run("read_unknown_types");
    let mut robot = hosts.one.run("publish_unknown_types");
    tool.ends();
    robot.say("end");
    robot.ends();
    nothing_is_left(&hosts);
}

pub(crate) fn publish_unknown_types() {
    let node = node("robot");
    let pose = node.topic::<Pose>("robot/pose").publisher().unwrap();
    let points = node.topic::<[Point]>("robot/points").publisher().unwrap();
    let scan = node.topic::<(Point, [f64])>("robot/scan").publisher().unwrap();
    let shared = node.topic::<Pose>("robot/shared").dds_type("test::Pose").dds_name("shared_pose");
    let shared = shared.publisher().unwrap();
    let note = node.topic::<[u8]>("robot/note").dds_cdr("test::Note_").dds_name("rt/note");
    let note = note.schema("ros2msg", b"int32 number\nstring text\n").publisher().unwrap();
    let matched = || [pose.matched(), points.matched(), scan.matched(), note.matched()];
    until("the tool", || matched() == [1; 4] && shared.matched() == 1);
    let here = Pose { stamp_ns: 7, position: [1.0, 2.0, 3.5] };
    let point = Point { range: 0.5, ring: [1, 65_535] };
    pose.publish_copy(&here).unwrap();
    shared.publish_copy(&here).unwrap();
    points.publish_copy(&[point; 3]).unwrap();
    let mut loan = scan.loan(2).unwrap();
    *loan.header_mut() = point;
    loan.slice_mut().fill(0.25);
    loan.publish().unwrap();
    let text = [&[0, 1, 0, 0][..], &(-3_i32).to_le_bytes(), &[5, 0, 0, 0], b"left\0"].concat();
    note.publish_copy(&text).unwrap();
    heard("end");
}

pub(crate) fn read_unknown_types() {
    // No topic opens its network.
    let node = Node::builder("tool").network(true).open().unwrap();
    let mut robot = node.discover("robot/*");
    let mut found: BTreeMap<String, EndpointInfo> = BTreeMap::new();
    until("all topics", || {
        for change in robot.changes().unwrap() {
            let Change::Found(endpoint) = change else { panic!("{change:?}") };
            assert!(matches!(endpoint.location, Location::OtherHost(_)), "{endpoint:?}");
            found.insert(endpoint.topic.clone(), endpoint);
        }
        found.len() == 5
    });
    let topics = found.values().map(|it| node.any_topic_of(it, WATCHDOG).unwrap());
    let topics: Vec<_> = topics.collect();
    let mut subscribers: Vec<_> =
        topics.iter().map(|it| it.topic().depth(8).subscriber().unwrap()).collect();
    let read = topics.iter().zip(&mut subscribers).map(|(topic, subscriber)| {
        assert!(topic.problem().is_none());
        let sample = subscriber.receive(WATCHDOG).unwrap().expect("it is published");
        topic.value(&sample).unwrap().to_json(100).unwrap()
    });
    let values: BTreeMap<_, _> = found.keys().zip(read).collect();
    let values: Vec<String> =
        values.iter().map(|(name, value)| format!("{name} {value}")).collect();
    let point = r#"{"range": 0.5, "ring": [1, 65535]}"#;
    let pose = r#"{"stamp_ns": 7, "position": [1.0, 2.0, 3.5]}"#;
    assert_eq!(values[0], r#"robot/note {"number": -3, "text": "left"}"#);
    assert_eq!(values[1], format!("robot/points [{point}, {point}, {point}]"));
    assert_eq!(values[2], format!("robot/pose {pose}"));
    assert!(values[3].contains(point) && values[3].contains("[0.25, 0.25]"), "{}", values[3]);
    assert_eq!(values[4], format!("robot/shared {pose}"));
    let graph = node.graph().unwrap();
    assert!(graph.matches.iter().all(|it| it.state == MatchState::Matched), "{graph:?}");
    assert_eq!(graph.types.iter().filter(|it| it.schema.is_some()).count(), 4);
}
