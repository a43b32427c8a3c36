//! Every message that was published is in the file or counted, by its cause.

use std::time::{Duration, Instant};

use myelin_bag::recorder::{End, OneFile};
use myelin_bag::{Options, RecordedLosses, Recorder};

use crate::support::{Content, Disk, Publisher, node, wait_until};

/// Those of messages of bytes: behind a CDR header, and a length.
fn numbers(content: &Content, topic: &str) -> Vec<u64> {
    let number = |data: &[u8]| u64::from_le_bytes(data[8..16].try_into().expect("8 bytes"));
    content.of_topic(topic).iter().map(|(_, data)| number(data)).collect()
}

#[test]
fn a_disk_that_stalls_loses_exactly_what_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(usize::MAX, true);
    let builder = Recorder::builder(&node(folder.path())).topic("data").buffer_bytes(1 << 20);
    let recorder = builder.start(OneFile::new(disk.clone(), Options::default())).unwrap();
    let mut publisher = Publisher::start(folder.path(), "data", 16);
    publisher.wait_for_match(1);
    publisher.publish(3, 100_000);
    wait_until(&recorder, "the first ones are written", |it| it.messages == 3);

    // Large ones wait at the disk; the buffer fills, then the ring.
    disk.close();
    publisher.publish(30, 100_000);
    wait_until(&recorder, "the buffer is full", |it| it.buffered_bytes > 1 << 20);
    publisher.publish(1_000, 100_000);
    publisher.publish(1_000, 50);
    disk.open();
    publisher.publish(5, 100_000);
    let recorded = recorder.finish();
    let content = Content::read(disk.bytes().as_slice());
    assert!(content.is_complete);
    let (losses, numbers) = (recorded.status.losses, numbers(&content, "data"));
    assert_eq!(numbers.len() as u64 + losses.total(), 2_038, "{losses:?}");
    assert_eq!(numbers.len() as u64, recorded.status.messages);
    assert_eq!(losses.disk, 0);
    assert!(losses.recorder > 1_900, "{losses:?}");
    assert!(numbers.is_sorted() && numbers[..3] == [0, 1, 2], "{numbers:?}");
    assert_eq!(recorded.end, End::Stopped);

    // The file has the totals, in a channel and in its metadata.
    let total = |at: usize| losses_of(&content, at);
    assert_eq!(total(usize::MAX), losses);
    let text = &content.metadata["myelin:losses"]["data"];
    assert!(text.contains(&format!("\"recorder\":{}", losses.recorder)), "{text}");
}

/// The losses in the message at this place, or in the last one.
fn losses_of(content: &Content, at: usize) -> RecordedLosses {
    let messages = content.of_topic(RecordedLosses::TOPIC);
    let data = &messages[at.min(messages.len() - 1)].1;
    let number = |at: usize| u64::from_le_bytes(data[at..at + 8].try_into().unwrap());
    // A header, the length of the name, `data` and its end.
    assert_eq!(data[8..13], *b"data\0");
    let mut losses = RecordedLosses::default();
    (losses.publisher_ring, losses.recorder, losses.disk) = (number(20), number(28), number(36));
    losses
}

#[test]
fn a_full_disk_ends_the_recording_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(3_000_000, false);
    let builder = Recorder::builder(&node(folder.path())).topic("data");
    let recorder = builder.start(OneFile::new(disk.clone(), Options::default())).unwrap();
    let mut publisher = Publisher::start(folder.path(), "data", 1_000);
    publisher.wait_for_match(1);
    publisher.publish(50, 100_000);
    publisher.publish(100, 20);
    disk.open();
    wait_until(&recorder, "it ends by itself", |_| recorder.is_ending());
    let recorded = recorder.finish();
    let content = Content::read(disk.bytes().as_slice());
    assert!(content.is_complete);
    let (losses, numbers) = (recorded.status.losses, numbers(&content, "data"));
    assert_eq!(numbers.len() as u64 + losses.total(), 150, "{losses:?}");
    assert!(losses.disk > 0 && losses.recorder == 0, "{losses:?}");
    assert!((20..30).contains(&numbers.len()), "{numbers:?}");
    let End::Failed(why) = recorded.end else { panic!("{:?}", recorded.end) };
    assert!(why.contains("the disk is full"), "{why}");
    let text = &content.metadata["myelin:losses"]["data"];
    assert!(text.contains(&format!("\"disk\":{}", losses.disk)), "{text}");
}

#[test]
fn what_is_discarded_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let disk = Disk::new(usize::MAX, false);
    let builder = Recorder::builder(&node(folder.path())).topic("data");
    let recorder = builder.start(OneFile::new(disk.clone(), Options::default())).unwrap();
    let mut publisher = Publisher::start(folder.path(), "data", 100);
    publisher.wait_for_match(1);
    publisher.publish(60, 100_000);
    wait_until(&recorder, "the disk is waited for", |it| {
        disk.is_waiting() && it.buffered_bytes > 5_000_000
    });
    recorder.discard();
    disk.open();
    let recorded = recorder.finish();
    let content = Content::read(disk.bytes().as_slice());
    assert!(content.is_complete);
    let (losses, written) = (recorded.status.losses, numbers(&content, "data").len() as u64);
    assert_eq!(written + losses.total(), 60, "{losses:?}");
    assert!(losses.recorder > 0, "{losses:?}");
}

/// A publisher that overwrites its ring while nobody takes.
#[test]
fn the_ring_of_a_publisher_is_a_cause_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let recorder = Recorder::builder(&node(folder.path())).start_file(&path).unwrap();
    let mut publisher = Publisher::start(folder.path(), "data", 1);
    publisher.wait_for_match(1);
    publisher.publish(20_000, 20);
    drop(publisher);
    let begin = Instant::now();
    while recorder.status().messages == 0 && begin.elapsed() < Duration::from_secs(60) {
        std::thread::yield_now();
    }
    let recorded = recorder.finish();
    let content = Content::of(&path);
    let losses = recorded.status.losses;
    assert_eq!(numbers(&content, "data").len() as u64 + losses.publisher_ring, 20_000);
    assert!(losses.publisher_ring > 0 && losses.recorder + losses.disk == 0, "{losses:?}");
}

/// A publisher that comes later does not wait until it is found.
#[test]
fn what_a_new_publisher_published_before_it_was_found_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("run.mcap");
    let recorder = Recorder::builder(&node(folder.path())).start_file(&path).unwrap();
    let mut publisher = Publisher::start(folder.path(), "data", 100);
    publisher.publish(50, 20);
    publisher.wait_for_match(1);
    publisher.publish(50, 20);
    wait_until(&recorder, "all is known", |it| it.messages + it.losses.total() == 100);
    let recorded = recorder.finish();
    let losses = recorded.status.losses;
    assert_eq!(numbers(&Content::of(&path), "data").len() as u64 + losses.total(), 100);
    assert_eq!(losses.total(), losses.publisher_ring);
}
