//! Splits, and the space on the disk.

use std::path::PathBuf;

use myelin::{Node, Publisher};
use myelin_bag::Recorder;
use myelin_bag::recorder::{End, FileOptions, Files, Recorded};

use crate::support::{Content, node, wait_until};

fn bytes(of: &Node, topic: &str) -> Publisher<[u8]> {
    of.topic::<[u8]>(topic).depth(1_000).publisher().expect("a publisher")
}

#[test]
fn each_file_begins_with_the_latched_samples() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let talker = Node::builder("talker").runtime_dir(folder.path()).open().unwrap();
    let data = bytes(&talker, "data");
    let map = talker.topic::<u64>("map").transient_local(2).publisher().unwrap();
    for number in [1, 2, 3] {
        map.publish_copy(&number).unwrap();
    }
    let mut options = FileOptions::default();
    options.split_bytes = Some(300_000);
    let files = Files::create(&path, options).unwrap();
    let recorder = Recorder::builder(&node(folder.path())).start(files).unwrap();
    wait_until(&recorder, "the latched ones", |it| it.messages == 2);
    for _ in 0..7 {
        data.publish_copy(&[7; 100_000]).unwrap();
    }
    wait_until(&recorder, "most", |it| it.messages == 9);
    // The newest one comes in the place of the oldest one.
    map.publish_copy(&4).unwrap();
    wait_until(&recorder, "a new map", |it| it.messages == 10);
    for _ in 0..3 {
        data.publish_copy(&[7; 100_000]).unwrap();
    }
    let Recorded { status, .. } = recorder.finish();
    let files: Vec<PathBuf> = status.progress.files.clone();
    let names: Vec<_> = files.iter().map(|it| it.file_name().unwrap().to_str().unwrap()).collect();
    let expected: Vec<_> = (0..files.len()).map(|it| format!("run_{it:04}.mcap")).collect();
    assert_eq!(names, expected);
    assert!(files.len() >= 4, "{names:?}");
    let (mut data, mut repeated) = (0, 0);
    for (number, file) in files.iter().enumerate() {
        let content = Content::of(file);
        assert!(content.is_complete);
        data += content.of_topic("data").len();
        let maps: Vec<u64> = content.of_topic("map").iter().map(|it| value(&it.1)).collect();
        let latched = &maps[..2];
        match number {
            0 => assert_eq!(latched, [2, 3]),
            _ if number + 1 < files.len() => assert_eq!(latched, [2, 3]),
            _ => assert_eq!(latched, [3, 4]),
        }
        if number > 0 {
            repeated += 2;
            // They come first, at the time at which the file begins.
            assert!(content.messages[..2].iter().all(|it| it.0.log_ns == it.0.publish_ns));
            assert_eq!(content.messages[1].0.log_ns, content.messages[2].0.log_ns);
            assert!(content.metadata["myelin:repeated"].contains_key("map"));
        }
        assert_eq!(content.metadata["myelin:recording"]["part"], number.to_string());
        assert!(std::fs::metadata(file).unwrap().len() < 310_000);
    }
    assert_eq!((data, status.messages, status.repeated), (10, 13, repeated));
}

/// Behind a CDR header.
fn value(data: &[u8]) -> u64 {
    u64::from_le_bytes(data[4..12].try_into().unwrap())
}

#[test]
fn the_space_that_is_to_stay_free_ends_a_recording() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let talker = Node::builder("talker").runtime_dir(folder.path()).open().unwrap();
    let data = bytes(&talker, "data");
    let mut options = FileOptions::default();
    options.keep_free_bytes = Some(u64::MAX);
    let files = Files::create(&path, options).unwrap();
    let recorder = Recorder::builder(&node(folder.path())).start(files).unwrap();
    data.publish_copy(&[1; 10]).unwrap();
    wait_until(&recorder, "it ends by itself", |_| recorder.is_ending());
    let recorded = recorder.finish();
    let End::LittleSpace(why) = recorded.end else { panic!("{:?}", recorded.end) };
    assert!(why.contains("are to stay free"), "{why}");
    assert_eq!(recorded.status.losses.total(), 0);
    let content = Content::of(&path);
    assert!(content.is_complete);
    assert_eq!(content.of_topic("data").len(), 1, "it takes what was published before");
}
