//! Callbacks on the wire: what a function is lent.

use std::sync::mpsc;
use std::time::Duration;

use myelin_shm::Error;
use myelin_shm::callback::{Callback, Function, Lengths};
use myelin_shm::node::{Node, NodeOptions};
use myelin_shm::topic::{PublisherQos, SubscriberQos, Topic};
use myelin_shm::wait::Wait;

const WATCHDOG: Duration = Duration::from_secs(60);

fn node() -> (tempfile::TempDir, Node) {
    let folder = tempfile::tempdir().unwrap();
    let options = NodeOptions { folder: Some(folder.path().to_owned()), ..NodeOptions::default() };
    (folder, Node::open(options).unwrap())
}

fn topic() -> Topic {
    Topic { name: "test".into(), type_name: "bytes".into(), type_hash: 7 }
}

#[test]
fn payloads_are_aligned_as_the_function_asks_wherever_they_come_from() {
    let (_folder, node) = node();
    let mut publisher = node.publisher(topic(), PublisherQos::default()).unwrap();
    let subscriber = node.subscriber(topic(), SubscriberQos::default()).unwrap();
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    let (to, from) = mpsc::channel();
    let call = Box::new(move |taken: &myelin_shm::subscription::Taken| {
        let address = taken.bytes().as_ptr().addr();
        to.send((address.is_multiple_of(64), taken.bytes().to_vec(), taken.clone())).unwrap();
    });
    let function = Function { call, lengths: Lengths::Such(|_| true), align: 64 };
    let _callback = Callback::start(subscriber, Wait::Block, function).unwrap();
    let bytes: Vec<u8> = (0..200).collect();
    for (begin, length) in [(0, 64), (1, 64), (3, 104), (5, 0), (7, 150)] {
        let payload = &bytes[begin..begin + length];
        publisher.writer.publish_copy(payload).unwrap();
        let (is_aligned, seen, clone) = from.recv_timeout(WATCHDOG).unwrap();
        assert!(is_aligned, "{begin} {length}");
        assert_eq!((seen.as_slice(), clone.bytes()), (payload, payload));
    }
}

#[test]
fn a_length_that_does_not_fit_ends_the_match_and_is_told() {
    let (_folder, node) = node();
    let mut publisher = node.publisher(topic(), PublisherQos::default()).unwrap();
    let subscriber = node.subscriber(topic(), SubscriberQos::default()).unwrap();
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    let call = Box::new(|taken: &myelin_shm::subscription::Taken| {
        assert_eq!(taken.bytes().len(), 8);
    });
    let function = Function { call, lengths: Lengths::Exactly(8), align: 8 };
    let callback = Callback::start(subscriber, Wait::Block, function).unwrap();
    publisher.writer.publish_copy(&[1; 8]).unwrap();
    publisher.writer.publish_copy(&[1; 9]).unwrap();
    let begin = std::time::Instant::now();
    let error = loop {
        match callback.error() {
            Some(error) => break error,
            None => assert!(begin.elapsed() < WATCHDOG),
        }
    };
    assert!(matches!(error, Error::PeerCorrupt { .. }), "{error}");
    assert_eq!((callback.calls(), callback.panics()), (1, 0));
}
