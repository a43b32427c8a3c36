//! Several files, broken files, and those of another writer.

use std::collections::BTreeMap;
use std::io::Cursor;

use myelin_bag::player::PlayError;
use myelin_bag::{Player, Recording, Schema};

use crate::robot::{MS, Robot, SECOND, collect, cut, next, next_numbers, numbers};

#[test]
fn splits_are_played_as_one_recording() {
    let robot = Robot::new();
    // In time: a, then b and c in turn.
    let parts: [(&str, &[u64]); 3] =
        [("b.mcap", &[3, 5]), ("c.mcap", &[4, 6]), ("a.mcap", &[1, 2])];
    for (name, all) in parts {
        let mut file = robot.file(name);
        let topic = file.topic("number", &Schema::layout("u64"), None);
        for number in all {
            file.write(&topic, number * 20 * SECOND, &number.to_ne_bytes());
        }
        file.finish();
    }
    std::fs::write(robot.folder.path().join("notes.txt"), "no recording").unwrap();
    let recording = Recording::open([robot.folder.path()]).unwrap();
    assert_eq!(recording.topics().len(), 1);
    assert_eq!(recording.topics()[0].messages, 6);
    let times = recording.times(myelin_bag::Time::Publish).unwrap();
    assert_eq!(times, (20 * SECOND, 120 * SECOND + 500));
    let (_callback, samples) = collect(&robot.node.topic::<u64>("number"));
    let played = Player::builder(&robot.player).rate(1e6).open(recording).unwrap().run().unwrap();
    assert_eq!(played.messages, 6);
    assert_eq!(next_numbers(&samples, 6), [1, 2, 3, 4, 5, 6]);
}

#[test]
fn without_times_of_publication_those_of_the_record_count() {
    let robot = Robot::new();
    let mut file = robot.file("run.mcap");
    let topic = file.topic("number", &Schema::layout("u64"), None);
    for number in [2_u64, 1, 0] {
        let mut head = myelin_bag::MessageHead::default();
        (head.channel, head.log_ns) = (topic.id, 10_000 * SECOND + number * MS);
        let message = [&[0, 1, 0, 0], &number.to_ne_bytes()[..]].concat();
        file.writer.write(&head, &[&message]).unwrap();
    }
    let recording = Recording::open([file.finish()]).unwrap();
    assert!(recording.lacks_publish_times().unwrap());
    let (_callback, samples) = collect(&robot.node.topic::<u64>("number"));
    let mut player = Player::builder(&robot.player).open(recording).unwrap();
    assert_eq!(player.control().status().begin_ns, 10_000 * SECOND);
    player.run().unwrap();
    assert_eq!(next_numbers(&samples, 3), [0, 1, 2]);
}

/// Each part has its latched samples at its begin, so that it can be played alone.
#[test]
fn latched_samples_of_further_parts_are_played_once() {
    let robot = Robot::new();
    for (name, at, is_further) in [("0.mcap", 1, false), ("1.mcap", 2, true)] {
        let mut file = robot.file(name);
        let map = file.topic("map", &Schema::layout("u64"), None);
        let mut head = myelin_bag::MessageHead::default();
        (head.channel, head.log_ns, head.publish_ns) = (map.id, at * SECOND, at * SECOND);
        file.writer.write(&head, &[&[0, 1, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0]]).unwrap();
        let number = file.topic("number", &Schema::layout("u64"), None);
        file.write(&number, at * SECOND + 1, &at.to_ne_bytes());
        if is_further {
            let repeated = [("map".to_owned(), "[1000000000]".to_owned())].into();
            file.writer.write_metadata("myelin:repeated", &repeated).unwrap();
        }
        file.finish();
    }
    let (_map, maps) = collect(&robot.node.topic::<u64>("map"));
    let play = |path: std::path::PathBuf| {
        let builder = Player::builder(&robot.player).rate(1e6);
        builder.open(Recording::open([path]).unwrap()).unwrap().run().unwrap().messages
    };
    assert_eq!(play(robot.folder.path().to_owned()), 3);
    assert_eq!(next_numbers(&maps, 1), [9]);
    assert_eq!(play(robot.folder.path().join("1.mcap")), 2);
    assert_eq!(next_numbers(&maps, 1), [9]);
    assert!(maps.try_recv().is_err());
}

#[test]
fn a_file_that_was_cut_is_played_as_far_as_it_goes() {
    let robot = Robot::new();
    let path = numbers(&robot, "run.mcap", 100);
    cut(&path, |bytes| bytes / 3);
    let recording = Recording::open([&path]).unwrap();
    let [(_, report)] = recording.reports().collect::<Vec<_>>()[..] else { panic!("a report") };
    let kept = report.read.messages;
    assert!(!report.is_complete && (1..100).contains(&kept), "{report:?}");
    let (_callback, samples) = collect(&robot.node.topic::<u64>("number"));
    let played = Player::builder(&robot.player).open(recording).unwrap().run().unwrap();
    assert_eq!(played.messages, kept);
    assert_eq!(next_numbers(&samples, kept as usize), (0..kept).collect::<Vec<_>>());
}

#[test]
fn what_is_no_recording_is_refused_by_name() {
    let robot = Robot::new();
    let of = |name: &str, content: &[u8]| {
        let path = robot.folder.path().join(name);
        std::fs::write(&path, content).unwrap();
        Recording::open([path]).err().expect("it is none").to_string()
    };
    assert!(of("a.mcap", b"text").contains("a.mcap: this is not an MCAP file"));
    assert!(of("b.mcap", b"").contains("b.mcap: "));
    let empty = tempfile::tempdir().unwrap();
    let error = Recording::open([empty.path()]).err().unwrap();
    assert!(matches!(error, PlayError::NoFile { .. }), "{error}");
    let error = Recording::open([empty.path().join("none.mcap")]).err().unwrap().to_string();
    assert!(error.contains("none.mcap: "), "{error}");
}

/// Written by the crate `mcap`, in compressed chunks: CDR of ROS 2, and JSON without a schema.
#[test]
fn a_file_of_another_writer_is_played() {
    let robot = Robot::new();
    let mut content = Cursor::new(Vec::new());
    let mut writer = mcap::Writer::new(&mut content).unwrap();
    let schema = writer.add_schema("std_msgs/msg/Int32", "ros2msg", b"int32 data\n").unwrap();
    let cdr = writer.add_channel(schema, "/count", "cdr", &BTreeMap::new()).unwrap();
    let json = writer.add_channel(0, "status", "json", &BTreeMap::new()).unwrap();
    let message = |number: u8| [0, 1, 0, 0, number, 0, 0, 0];
    for number in 0..50_u8 {
        let time = SECOND + u64::from(number) * MS / 10;
        let (channel_id, sequence) = (cdr, number.into());
        let head = mcap::records::MessageHeader {
            channel_id,
            sequence,
            log_time: time,
            publish_time: time,
        };
        writer.write_to_known_channel(&head, &message(number)).unwrap();
        let head = mcap::records::MessageHeader { channel_id: json, ..head };
        writer.write_to_known_channel(&head, format!("{{\"n\": {number}}}").as_bytes()).unwrap();
    }
    writer.finish().unwrap();
    drop(writer);
    let path = robot.folder.path().join("other.mcap");
    std::fs::write(&path, content.into_inner()).unwrap();

    let count = robot.node.topic::<[u8]>("rt/count").dds_cdr("std_msgs::msg::dds_::Int32_");
    let (_count, counts) = collect(&count);
    let (_status, statuses) = collect(&robot.node.topic::<[u8]>("status"));
    let recording = Recording::open([&path]).unwrap();
    let played = Player::builder(&robot.player).open(recording).unwrap().run().unwrap();
    assert_eq!((played.messages, played.unfit), (100, 0));
    assert_eq!(next(&counts, 50), (0..50).map(message).collect::<Vec<_>>());
    assert_eq!(next(&statuses, 50)[49], b"{\"n\": 49}");
}

/// Written by `mcap-ros2-support`, and by `rosbags` as `ros2 bag` does.
#[test]
fn files_of_python_are_played() {
    let robot = Robot::new();
    let Some(mut python) = crate::support::python("write_others.py") else { return };
    crate::support::output(python.arg(robot.folder.path()));
    let chatter = robot.node.topic::<[u8]>("rt/chatter").dds_cdr("std_msgs::msg::dds_::String_");
    let (_chatter, words) = collect(&chatter);
    let count = robot.node.topic::<[u8]>("rt/count").dds_cdr("std_msgs::msg::dds_::Int32_");
    let (_count, counts) = collect(&count);

    let files = [robot.folder.path().join("support.mcap"), robot.folder.path().join("bag")];
    let recording = Recording::open(&files).unwrap();
    let mut player = Player::builder(&robot.player).open(recording).unwrap();
    let played = player.run().unwrap();
    assert_eq!((played.messages, played.unfit), (40, 0));
    let word = |number: usize| {
        let text = format!("word {number}\0");
        [&[0, 1, 0, 0], &(text.len() as u32).to_le_bytes()[..], text.as_bytes()].concat()
    };
    let starts = next(&words, 20).into_iter().zip((0..20).map(word));
    assert!(starts.into_iter().all(|(is, should)| is.starts_with(&should)));
    let number = |number: u8| [0, 1, 0, 0, number, 0, 0, 0];
    assert_eq!(next(&counts, 20), (0..20).map(number).collect::<Vec<_>>());
    // Its metadata say that it is latched: a late joiner gets the last.
    let (_late, late) = collect(&count.transient_local(1));
    assert_eq!(next(&late, 1), [number(19)]);
}
