//! A recording of what is played equals the recording.

use std::collections::BTreeMap;
use std::path::Path;

use myelin::{FixedString, Node, PlainData};
use myelin_bag::player::Played;
use myelin_bag::{BagReader, Player, Recorder, Recording, Selection, Time};

use crate::robot::{Robot, collect, next_numbers, wait_for};

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Pose {
    stamp_ns: u64,
    at: [f32; 2],
}

/// It becomes a `sensor_msgs/msg/Image` in the file.
#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Frame {
    stamp_ns: u64,
    width: u32,
    height: u32,
    encoding: FixedString<12>,
}

/// By topic: encodings, schemas, and the times and bytes of the messages.
type Content = BTreeMap<String, (String, String, Vec<(u64, Vec<u8>)>)>;

fn content(path: &Path) -> Content {
    let reader = BagReader::open(path).unwrap();
    let mut selection = Selection::default();
    selection.by = Time::Publish;
    let mut content = Content::new();
    for message in reader.messages(&selection).unwrap() {
        let message = message.unwrap();
        let definitions = &reader.info().definitions;
        let channel = &definitions.channels[&message.head.channel];
        if channel.topic == "/myelin/losses" {
            continue;
        }
        let schema = definitions.schemas[&channel.schema].name.clone();
        let of_topic = content.entry(channel.topic.clone()).or_insert_with(|| {
            (
                format!("{} {:?}", channel.encoding, channel.metadata.get("myelin:layout")),
                schema,
                vec![],
            )
        });
        of_topic.2.push((message.head.publish_ns, message.data().to_vec()));
    }
    content
}

/// Records what happens meanwhile: so many messages.
fn record<R>(node: &Node, path: &Path, messages: u64, meanwhile: impl FnOnce() -> R) -> R {
    let recorder = Recorder::builder(node).start_file(path).unwrap();
    let result = meanwhile(); // with the publishers
    wait_for("the messages", || recorder.status().messages >= messages);
    let recorded = recorder.finish();
    assert_eq!(recorded.status.losses.total(), 0, "{:?}", recorded.problems);
    result
}

fn play(robot: &Robot, path: &Path) -> (Player, Played) {
    let recording = Recording::open([path]).unwrap();
    let mut player = Player::builder(&robot.player).open(recording).unwrap();
    assert!(player.refused().is_empty(), "{:?}", player.refused());
    // The recorder subscribes to each of its topics.
    let topics = player.topics().count();
    assert!(player.wait_for_subscribers(None, topics, crate::robot::WATCHDOG));
    let played = player.run().unwrap();
    (player, played)
}

#[test]
fn a_recording_of_a_recording_has_the_same_types_and_bytes() {
    let robot = Robot::new();
    let recorder = Node::builder("recorder").runtime_dir(robot.folder.path()).open().unwrap();
    let [first, second] = ["first.mcap", "second.mcap"].map(|name| robot.folder.path().join(name));
    let ros = robot.node.topic::<[u8]>("rt/chatter").dds_cdr("std_msgs::msg::dds_::String_");
    let ros = ros.schema("ros2msg", b"string data\n").depth(64);
    // As rmw_myelin does.
    let ros = ros.matching(myelin::Matching::RequestedOffered);
    record(&recorder, &first, 31, || {
        let node = &robot.node;
        let poses = node.topic::<Pose>("pose").depth(64).publisher_builder().timestamps(true);
        let poses = poses.open().unwrap();
        let images = node.topic::<(Frame, [u8])>("image").depth(64).publisher().unwrap();
        let map = node.topic::<u64>("map").transient_local(1).publisher().unwrap();
        let ros = ros.publisher().unwrap();
        let matched = || [images.matched(), poses.matched(), map.matched(), ros.matched()];
        wait_for("the recorder", || matched() == [1; 4]);
        map.publish_copy(&7).unwrap();
        for number in 0..10_u8 {
            poses.publish_copy(&Pose { stamp_ns: number.into(), at: [0.5, 1.5] }).unwrap();
            let mut image = images.loan(12).unwrap();
            let encoding = FixedString::new("rgb8").unwrap();
            *image.header_mut() = Frame { stamp_ns: 5, width: 2, height: 2, encoding };
            image.slice_mut().fill(number);
            image.publish().unwrap();
            let text = [0, 1, 0, 0, 2, 0, 0, 0, b'a' + number, 0];
            ros.publish_copy(&text).unwrap();
        }
        (poses, images, map, ros) // until they are recorded
    });
    let before = content(&first);
    assert_eq!(before.len(), 4);
    assert_eq!(before["image"].1, "sensor_msgs/msg/Image");

    let (player, played) = record(&recorder, &second, 31, || play(&robot, &first));
    assert_eq!((played.messages, played.unfit), (31, 0));
    let after = content(&second);
    let without_times = |content: &Content| -> Vec<_> {
        let bytes = |all: &[(u64, Vec<u8>)]| all.iter().map(|it| it.1.clone()).collect::<Vec<_>>();
        let topics = content.iter();
        topics.map(|(name, it)| (name.clone(), it.0.clone(), it.1.clone(), bytes(&it.2))).collect()
    };
    assert_eq!(without_times(&before), without_times(&after));
    // What was latched is latched again.
    let (_late, samples) = collect(&robot.node.topic::<u64>("map").transient_local(1));
    assert_eq!(next_numbers(&samples, 1), [7]);
    drop(player);
}

/// To be read by people, as that of [`crate::lateness`].
#[test]
#[ignore = "it measures, for 10 s"]
fn times_of_a_recording_of_a_recording() {
    let robot = Robot::new();
    let recorder = Node::builder("recorder").runtime_dir(robot.folder.path()).open().unwrap();
    let first = crate::robot::numbers(&robot, "first.mcap", 3_000);
    let second = robot.folder.path().join("second.mcap");
    let (_player, played) = record(&recorder, &second, 3_000, || play(&robot, &first));
    let times = |path: &Path| content(path)["number"].2.iter().map(|it| it.0).collect::<Vec<_>>();
    let (before, after) = (times(&first), times(&second));
    let begin = (before[0], after[0]);
    let offsets =
        before.iter().zip(&after).map(|(one, other)| (one - begin.0).abs_diff(other - begin.1));
    let mut offsets: Vec<u64> = offsets.collect();
    offsets.sort_unstable();
    let at = |percent: usize| offsets[offsets.len() * percent / 100 - 1] as f64 / 1e3;
    let lateness = played.lateness.unwrap();
    println!(
        "times differ by p50 {:.1} p99 {:.1} max {:.1} us; played late by p50 {:.1} p99 {:.1} max \
         {:.1} us",
        at(50),
        at(99),
        at(100),
        lateness.p50_ns as f64 / 1e3,
        lateness.p99_ns as f64 / 1e3,
        lateness.max_ns as f64 / 1e3
    );
}
