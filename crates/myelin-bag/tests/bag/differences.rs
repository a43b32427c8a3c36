//! What differs between two files.

use myelin_bag::{
    BagReader, Channel, Diff, DiffOptions, MessageHead, OwnedSchema, Pairing, Schema, TopicFormat,
    Writer, diff,
};

use crate::support::{Disk, options};

/// A message of a topic: sequence, log time, data.
type Sent = (&'static str, u32, u64, Vec<u8>);

/// A file of topics with this schema, whose messages are written by this encoding.
fn file(schema: &OwnedSchema, channel: &Channel, messages: &[Sent]) -> Vec<u8> {
    let disk = Disk::new(usize::MAX);
    let mut writer = Writer::new(disk.clone(), options()).expect("endless space");
    let schema = writer.add_schema(&schema.as_schema()).expect("endless space");
    let mut ids = std::collections::BTreeMap::new();
    for (topic, sequence, log_ns, data) in messages {
        let id = *ids.entry(*topic).or_insert_with(|| {
            let channel = Channel { schema, topic: (*topic).into(), ..channel.clone() };
            writer.add_channel(&channel).expect("endless space")
        });
        let (sequence, log_ns) = (*sequence, *log_ns);
        let head = MessageHead { channel: id, sequence, log_ns, publish_ns: log_ns };
        writer.write(&head, &[data]).expect("endless space");
    }
    writer.finish().expect("endless space");
    disk.bytes()
}

const POSE: &str = "Pose{id: u32 @0, at: [f64; 2] @8} 24";

fn pose(id: u32, x: f64, y: f64) -> Vec<u8> {
    let (id, x, y) = (id.to_le_bytes(), x.to_le_bytes(), y.to_le_bytes());
    // The hole between them means nothing.
    [&[0, 1, 0, 0][..], &id, &[id[0]; 4], &x, &y].concat()
}

fn poses(messages: &[Sent]) -> Vec<u8> {
    let format = TopicFormat::new(&Schema::layout(POSE));
    file(format.schema(), &format.channel("", 0), messages)
}

fn compared(one: &[u8], other: &[u8], pairing: Pairing) -> Diff {
    let [one, other] = [one, other].map(|it| BagReader::new(it).expect("a file of MCAP"));
    let mut options = DiffOptions::default();
    options.pairing = pairing;
    diff(&one, &other, &options).expect("memory can be read")
}

#[test]
fn a_file_is_the_same_as_itself_and_as_its_replay() {
    let sent: Vec<Sent> = (0..500)
        .map(|at| (["/a", "/b"][at as usize % 2], at / 2 + 17, u64::from(at), pose(at, 0.5, 1.0)))
        .collect();
    let bytes = poses(&sent);
    assert!(compared(&bytes, &bytes, Pairing::Auto).is_same());
    // Later, numbered anew, and with other bytes in the hole.
    let replay: Vec<Sent> = sent
        .iter()
        .map(|(topic, sequence, time, data)| {
            let mut data = data.clone();
            data[8] = 0xee;
            (*topic, sequence - 16, time + 1_000_000, data)
        })
        .collect();
    let diff = compared(&bytes, &poses(&replay), Pairing::Auto);
    assert!(diff.is_same(), "{diff:?}");
    assert_eq!(diff.topics["/a"].pairs, 250);
    assert!(!diff.topics["/a"].by_sequence);
}

#[test]
fn lost_messages_and_other_values_are_found() {
    let one: Vec<Sent> =
        (1..=100).map(|at| ("/a", at, u64::from(at), pose(at, 1000.0, 2.0))).collect();
    let mut other = one.clone();
    other[9].3 = pose(10, 1000.0 + 1e-4, 2.0); // Within the tolerance.
    other[19].3 = pose(20, 1000.0, 2.5);
    other[29].3 = pose(30, 1003.0, f64::NAN);
    other[39].3 = pose(99, 1000.0, 2.0);
    other.drain(50..55);
    let diff = compared(&poses(&one), &poses(&other), Pairing::Auto);
    let topic = &diff.topics["/a"];
    assert!(topic.by_sequence && !topic.is_same());
    assert_eq!((topic.messages, topic.missing), ([100, 95], [Some(0), Some(5)]));
    assert_eq!((topic.pairs, topic.only_in, topic.different), (95, [5, 0], 3));
    let paths: Vec<_> = topic.fields.keys().collect();
    assert_eq!(paths, ["at[]", "id"]);
    assert_eq!(topic.fields["id"].largest, Some(59.0));
    assert_eq!(topic.fields["id"].first, (39, ["40".into(), "99".into()]));
    assert_eq!(topic.fields["at[]"].messages, 2);
    assert!(topic.fields["at[]"].largest.is_some_and(f64::is_nan));
    // A message that came twice.
    let mut twice = one.clone();
    twice.insert(50, twice[49].clone());
    let diff = compared(&poses(&one), &poses(&twice), Pairing::Auto);
    assert_eq!((diff.topics["/a"].pairs, diff.topics["/a"].only_in), (100, [0, 1]));
    // By order the rest is shifted.
    let diff = compared(&poses(&one), &poses(&other), Pairing::Order);
    assert_eq!((diff.topics["/a"].pairs, diff.topics["/a"].only_in), (95, [5, 0]));
    assert!(diff.topics["/a"].different > 40);
}

#[test]
fn topics_of_one_file_and_other_types_are_found() {
    let one = poses(&[("/a", 1, 1, pose(1, 0.0, 0.0)), ("/b", 1, 2, pose(1, 0.0, 0.0))]);
    let format = TopicFormat::new(&Schema::layout("Pose{id: u32 @0, y: f64 @8} 16"));
    let mut data = pose(1, 0.0, 0.0);
    data.truncate(20);
    let sent = [("/a", 1, 1, data.clone()), ("/c", 1, 1, data)];
    let other = file(format.schema(), &format.channel("", 0), &sent);
    let diff = compared(&one, &other, Pairing::Auto);
    let is_in = diff.topics.iter().map(|(name, it)| (name.as_str(), it.is_in));
    let expected = [("/a", [true; 2]), ("/b", [true, false]), ("/c", [false, true])];
    assert_eq!(is_in.collect::<Vec<_>>(), expected);
    let topic = &diff.topics["/a"];
    assert!(topic.schemas_differ);
    let paths: Vec<_> = topic.fields.keys().collect();
    assert_eq!(paths, ["at", "y"]);
    assert_eq!(diff.topics["/b"].only_in, [1, 0]);
}

#[test]
fn messages_without_a_reader_are_compared_as_bytes() {
    let schema = OwnedSchema { encoding: "protobuf".into(), name: "A".into(), text: Vec::new() };
    let channel = Channel { encoding: "protobuf".into(), ..Channel::default() };
    let one = [("/a", 1, 1, vec![1, 2]), ("/a", 2, 2, vec![3])];
    let other = [("/a", 1, 1, vec![1, 2]), ("/a", 2, 2, vec![4, 4])];
    let diff =
        compared(&file(&schema, &channel, &one), &file(&schema, &channel, &other), Pairing::Auto);
    let topic = &diff.topics["/a"];
    assert!(topic.not_read.as_ref().is_some_and(|why| why.contains("protobuf")));
    assert_eq!((topic.pairs, topic.different), (2, 1));
    assert_eq!(topic.fields[""].first.1, ["1 B".to_owned(), "2 B".to_owned()]);
}

#[test]
fn json_is_compared() {
    let schema = OwnedSchema { encoding: "jsonschema".into(), ..OwnedSchema::default() };
    let channel = Channel { encoding: "json".into(), ..Channel::default() };
    let of = |text: &str| {
        file(&schema, &channel, &[("/a", 1, 1, text.into()), ("/a", 2, 2, text.into())])
    };
    let one = of(r#"{"a": [{"x": 1.0}, {"x": 2}], "b": "same", "c": null}"#);
    let near = of(r#"{"a": [{"x": 1.0000000001}, {"x": 2}], "b": "same", "c": null}"#);
    assert!(compared(&one, &near, Pairing::Auto).is_same());
    let far = of(r#"{"a": [{"x": 1.5}, {"x": 3}], "b": "other"}"#);
    let diff = compared(&one, &far, Pairing::Auto);
    let fields = &diff.topics["/a"].fields;
    assert_eq!(fields.keys().collect::<Vec<_>>(), ["a[].x", "b", "c"]);
    assert_eq!(fields["a[].x"].largest, Some(1.0));
    assert_eq!(fields["c"].first, (0, ["null".into(), "nothing".into()]));
}

/// One file has a topic of which the other has lost nearly all.
#[test]
fn a_topic_that_ends_early_does_not_stop_the_others() {
    let mut one: Vec<Sent> = Vec::new();
    let mut other: Vec<Sent> = Vec::new();
    for at in 1..=400 {
        one.push(("/a", at, u64::from(at) * 10, pose(at, 1.0, 1.0)));
        one.push(("/b", at, u64::from(at) * 10, pose(at, 1.0, 1.0)));
        other.push(("/a", at, 1_000_000 + u64::from(at) * 5, pose(at, 1.0, 1.0)));
        if at < 10 {
            other.push(("/b", at, 1_000_000 + u64::from(at) * 5, pose(at, 1.0, 1.0)));
        }
    }
    let diff = compared(&poses(&one), &poses(&other), Pairing::Auto);
    assert!(diff.topics["/a"].is_same() && diff.topics["/a"].by_sequence);
    assert_eq!((diff.topics["/b"].pairs, diff.topics["/b"].only_in), (9, [391, 0]));
}
