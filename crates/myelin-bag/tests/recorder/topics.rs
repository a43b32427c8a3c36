//! Which topics are recorded, and as what.

use myelin::{Node, PlainData};
use myelin_bag::{RecordedLosses, Recorder};

use crate::support::{Content, node, wait_until};

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Imu {
    stamp_ns: u64,
    acceleration: [f64; 3],
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Pose {
    x: f64,
    y: f64,
}

/// A topic as `rmw_myelin` makes it.
fn of_ros(node: &Node, name: &str) -> myelin::Publisher<[u8]> {
    let topic = node.topic::<[u8]>(name).dds_cdr("std_msgs::msg::dds_::String_");
    let topic = topic.schema("ros2msg", b"string data\n").depth(64).reliable_keep_last();
    let topic = topic.attribute("ros.depth", b"10").attribute("ros.type_hash", b"RIHS01_df66");
    topic.attribute("ros.node", b"/talker").publisher().expect("a publisher")
}

#[test]
fn topics_of_ros_stay_what_they_are() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let talker = Node::builder("talker").runtime_dir(folder.path()).open().unwrap();
    let chatter = of_ros(&talker, "rt/chatter");
    let service = of_ros(&talker, "rq/addRequest");
    let recorder = Recorder::builder(&node(folder.path())).start_file(&path).unwrap();
    let message = b"\0\x01\0\0\x06\0\0\0hello\0";
    chatter.publish_copy(message).unwrap();
    service.publish_copy(message).unwrap();
    wait_until(&recorder, "it is recorded", |it| it.messages == 1);
    let recorded = recorder.finish();
    assert_eq!(recorded.status.topics.len(), 1, "services are left out");
    assert_eq!(recorded.status.topics[0].name, "/chatter");
    assert_eq!(recorded.status.topics[0].type_name, "std_msgs/msg/String");

    let content = Content::of(&path);
    assert_eq!(content.profile, "ros2");
    let messages = content.of_topic("/chatter");
    assert_eq!(messages.len(), 1);
    assert_eq!(messages[0].1, message);
    let channel = &content.channels[&messages[0].0.channel];
    assert_eq!(channel.encoding, "cdr");
    assert_eq!(channel.metadata["topic_type_hash"], "RIHS01_df66");
    let profiles = &channel.metadata["offered_qos_profiles"];
    assert!(profiles.contains("depth: 10\n  reliability: reliable\n"), "{profiles}");
    let nodes = &content.metadata["myelin:nodes"];
    assert!(nodes.values().any(|it| it.contains("\"name\":\"talker\"")), "{nodes:?}");
    let endpoints = &content.metadata["myelin:endpoints"];
    let of_chatter = endpoints.values().find(|it| it.contains("\"publisher\"")).unwrap();
    assert!(of_chatter.contains("\"/chatter\"") && of_chatter.contains("\"/talker\""));
}

#[test]
fn a_type_that_changes_is_another_channel() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let talker = Node::builder("talker").runtime_dir(folder.path()).open().unwrap();
    let recorder =
        Recorder::builder(&node(folder.path())).topic("state").start_file(&path).unwrap();
    let imu = talker.topic::<Imu>("state").publisher().unwrap();
    imu.wait_for_match(1, std::time::Duration::MAX);
    imu.publish_copy(&Imu { stamp_ns: 7, acceleration: [1.0, 2.0, 3.0] }).unwrap();
    wait_until(&recorder, "the first type", |it| it.messages == 1);
    drop(imu);
    let other = Node::builder("other").runtime_dir(folder.path()).open().unwrap();
    let pose = other.topic::<Pose>("state").publisher().unwrap();
    pose.wait_for_match(1, std::time::Duration::MAX);
    pose.publish_copy(&Pose { x: 4.0, y: 5.0 }).unwrap();
    wait_until(&recorder, "the second type", |it| it.messages == 2);
    // And back: the first one's channel goes on.
    drop(pose);
    let imu = other.topic::<Imu>("state").publisher().unwrap();
    imu.wait_for_match(1, std::time::Duration::MAX);
    imu.publish_copy(&Imu { stamp_ns: 8, acceleration: [0.0; 3] }).unwrap();
    wait_until(&recorder, "the first type again", |it| it.messages == 3);
    recorder.finish();

    let content = Content::of(&path);
    let messages = content.of_topic("state");
    let channels: Vec<u16> = messages.iter().map(|it| it.0.channel).collect();
    assert_eq!(channels[0], channels[2]);
    assert_ne!(channels[0], channels[1]);
    let layout = |at: usize| content.channels[&channels[at]].metadata["myelin:layout"].as_str();
    assert!(layout(0).starts_with("Imu{") && layout(1).starts_with("Pose{"));
    assert_eq!(messages[1].1[4..], [4.0_f64.to_le_bytes(), 5.0_f64.to_le_bytes()].concat());
    assert_eq!(content.profile, "ros2", "plain data is CDR too");
}

#[test]
fn latched_samples_and_times_arrive() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let talker = Node::builder("talker").runtime_dir(folder.path()).open().unwrap();
    let topic = talker.topic::<Pose>("map").transient_local(2);
    let map = topic.publisher_builder().timestamps(true).open().unwrap();
    for x in [1.0, 2.0, 3.0] {
        map.publish_copy(&Pose { x, y: 0.0 }).unwrap();
    }
    let date = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH).unwrap();
    let recorder = Recorder::builder(&node(folder.path())).start_file(&path).unwrap();
    wait_until(&recorder, "the latched ones", |it| it.messages == 2);
    recorder.finish();
    let content = Content::of(&path);
    let messages = content.of_topic("map");
    assert_eq!(messages[0].1[4..12], 2.0_f64.to_le_bytes());
    let date_ns = date.as_nanos() as u64;
    for (head, _) in messages {
        // Published before the date was read, to the exactness of the two clocks, and taken after.
        assert!(head.publish_ns < date_ns + 1_000_000, "{head:?} {date_ns}");
        assert!(head.log_ns + 1_000_000 > date_ns && head.log_ns >= head.publish_ns, "{head:?}");
    }
}

#[test]
fn limits_and_counts_hold() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let talker = Node::builder("talker").runtime_dir(folder.path()).open().unwrap();
    let fast = talker.topic::<u64>("fast").depth(1_000).publisher().unwrap();
    let slow = talker.topic::<u64>("slow").depth(1_000).publisher().unwrap();
    let builder = Recorder::builder(&node(folder.path())).max_rate("fast", 0.001);
    let recorder = builder.messages_max(11).start_file(&path).unwrap();
    for number in 0..100 {
        fast.publish_copy(&number).unwrap();
    }
    wait_until(&recorder, "all but one are left out", |it| it.skipped == 99);
    for number in 0..100 {
        slow.publish_copy(&number).unwrap();
    }
    wait_until(&recorder, "there are enough", |_| recorder.is_ending());
    let recorded = recorder.finish();
    assert_eq!(recorded.end, myelin_bag::recorder::End::Count);
    assert_eq!((recorded.status.messages, recorded.status.losses), (11, RecordedLosses::default()));
    let content = Content::of(&path);
    assert_eq!((content.of_topic("fast").len(), content.of_topic("slow").len()), (1, 10));
}

#[test]
fn a_file_that_exists_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    std::fs::write(&path, "precious").unwrap();
    let error = Recorder::builder(&node(folder.path())).start_file(&path).unwrap_err();
    assert!(error.to_string().contains("exists"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"precious");
}
