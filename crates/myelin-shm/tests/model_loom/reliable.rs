//! P1 against T7 and T8: a waiting publisher is woken, and does not overwrite unread samples.

use std::time::Duration;

use loom::thread;
use myelin_shm::Step;
use myelin_shm::data_plane::publication::{PublicationState, Writer};
use myelin_shm::data_plane::subscription::Reader;
use myelin_shm::topic::{Late, PublisherQos, Reliability, SubscriberQos};

use crate::endpoints::{pair, subscriber};
use crate::{Kept, PREEMPTIONS, explore, mutant};

/// A publisher with room for one sample, and its subscriber. In a model no time passes, so it waits
/// as long as necessary.
fn reliable() -> (Writer, Reader) {
    let publisher = PublisherQos {
        depth: 1,
        reliability: Reliability::Reliable,
        block_max: Duration::from_secs(1),
        late: Late::Fail,
        ..PublisherQos::default()
    };
    let subscriber = SubscriberQos { reliability: Reliability::Reliable, ..subscriber(0) };
    let (mut writer, mut reader) = pair(publisher, subscriber);
    assert!(reader.take().unwrap().is_none());
    writer.publish_copy(&[0]).unwrap();
    (writer, reader)
}

/// Takes the next `samples` samples.
fn take(reader: &mut Reader, from: u64, samples: u64) {
    for sequence in from..from + samples {
        let taken = loop {
            match reader.take().unwrap() {
                Some(taken) => break taken,
                None => thread::yield_now(),
            }
        };
        assert_eq!((taken.sequence, taken.lost_before), (sequence, 0), "written over");
    }
}

/// The ring is full; the publisher goes on to sample `last`, the subscriber takes all of them.
fn waits(last: u64) {
    let (mut writer, mut reader) = reliable();
    let reader = thread::spawn(move || {
        take(&mut reader, 0, last + 1);
        reader
    });
    for sequence in 1..=last {
        assert_eq!(writer.publish_copy(&[1]).unwrap().sequence, sequence);
    }
    drop(reader.join().unwrap());
}

/// The ring is full; the subscriber takes one sample and stays.
fn takes_one() {
    let (mut writer, mut reader) = reliable();
    let reader = thread::spawn(move || {
        take(&mut reader, 0, 1);
        reader
    });
    writer.publish_copy(&[1]).unwrap();
    drop(reader.join().unwrap());
}

/// The ring is full; the subscriber goes.
fn leaves() {
    let (mut writer, reader) = reliable();
    let reader = thread::spawn(move || drop(reader));
    writer.publish_copy(&[1]).unwrap();
    writer.publish_copy(&[2]).unwrap();
    reader.join().unwrap();
}

/// The ring is full and the subscriber dead; the node's thread removes it, and wakes the publisher
/// once or until it has noticed.
fn dies(is_woken_again: bool) {
    let (writer, reader) = reliable();
    let (mut writer, reader) = (Kept::new(writer), Kept::new(reader));
    let shared: std::sync::Arc<PublicationState> = writer.shared().clone();
    let node = thread::spawn(move || {
        if let Some(detached) = shared.detach(2) {
            while is_woken_again && !detached.is_noticed(&shared) {
                thread::yield_now();
            }
        }
    });
    writer.publish_copy(&[1]).unwrap();
    node.join().unwrap();
    drop(reader);
}

#[test]
fn a_publisher_that_waits_for_room_is_woken() {
    explore("reliable: waits", PREEMPTIONS, 100, || waits(2));
    explore("reliable: takes one", PREEMPTIONS, 20, takes_one);
}

#[test]
fn a_waiting_publisher_is_woken_by_a_leaving_subscriber() {
    explore("reliable: leaves", PREEMPTIONS, 20, leaves);
}

#[test]
fn a_publisher_waiting_for_a_dead_subscriber_is_woken() {
    explore("reliable: dies", PREEMPTIONS, 20, || dies(true));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_in_which_detach_wakes_once() {
    explore("reliable: woken once", PREEMPTIONS, 1, || dies(false));
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_t8() {
    mutant(Step::T8, takes_one);
}

#[test]
#[should_panic(expected = "deadlock")]
fn mutant_without_the_fence_of_p1() {
    mutant(Step::P1, takes_one);
}
