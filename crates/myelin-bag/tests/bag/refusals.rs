//! What a writer refuses.

use crate::support::{Disk, add_channels, options};
use myelin_bag::{Channel, MessageHead, Options, WriteError, Writer};

#[test]
fn ids_that_the_writer_did_not_give_are_refused() {
    let mut writer = Writer::new(Disk::new(usize::MAX), options()).expect("endless space");
    let orphan = Channel { schema: 1, topic: "/a".into(), ..Channel::default() };
    let error = writer.add_channel(&orphan).expect_err("there is no schema");
    assert_eq!(error.to_string(), "there is no schema 1 in this file");
    add_channels(&mut writer);
    for channel in [0, 5] {
        let head = MessageHead { channel, ..MessageHead::default() };
        let error = writer.write(&head, &[b"data"]).expect_err("there is no channel");
        assert_eq!(error.to_string(), format!("there is no channel {channel} in this file"));
    }
    let written = writer.finish().expect("endless space");
    assert_eq!((written.statistics.messages, written.lost.len()), (0, 0));
}

#[test]
fn a_file_has_at_most_65535_channels() {
    let mut writer = Writer::new(Disk::new(usize::MAX), Options::default()).expect("endless space");
    for _ in 0..u16::MAX {
        writer.add_channel(&Channel::default()).expect("there are ids");
    }
    let error = writer.add_channel(&Channel::default()).expect_err("there are no ids");
    assert_eq!(error.to_string(), "a file has at most 65,535 channels");
}

#[test]
fn a_file_that_exists_is_not_overwritten() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("run.mcap");
    std::fs::write(&path, "precious").expect("space");
    let error = Writer::create(&path, options()).err().expect("it exists");
    assert!(
        matches!(&error, WriteError::Io(error) if error.kind() == std::io::ErrorKind::AlreadyExists)
    );
    assert_eq!(std::fs::read(&path).expect("it is there"), b"precious");
}
