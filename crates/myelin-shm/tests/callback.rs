//! Callbacks on the wire: the samples that a function is lent.

mod hostile_peer;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

use hostile_peer::{Memory, is_asleep, topic};
use myelin_shm::Error;
use myelin_shm::callback::Callback;
use myelin_shm::dispatch::callback::{Function, Lengths};
use myelin_shm::layout::{INLINE, PUBLICATION_HEAD_BYTES};
use myelin_shm::node::{Node, NodeOptions};
use myelin_shm::topic::{PublisherQos, SubscriberQos};
use myelin_shm::waiting::wait::Wait;

const WATCHDOG: Duration = Duration::from_secs(60);

fn node() -> (tempfile::TempDir, Node) {
    let folder = tempfile::tempdir().unwrap();
    let options =
        NodeOptions { runtime_dir: Some(folder.path().to_owned()), ..NodeOptions::default() };
    (folder, Node::open(options).unwrap())
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < WATCHDOG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn payloads_are_aligned_as_the_function_asks_wherever_they_come_from() {
    let (_folder, node) = node();
    let mut publisher = node.publisher(topic(), PublisherQos::default()).unwrap();
    let subscriber = node.subscriber(topic(), SubscriberQos::default()).unwrap();
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    let (to, from) = mpsc::channel();
    let call = Box::new(move |taken: &myelin_shm::data_plane::subscription::RawSample| {
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
fn a_wrong_length_ends_the_match_and_is_reported() {
    let (_folder, node) = node();
    let mut publisher = node.publisher(topic(), PublisherQos::default()).unwrap();
    let subscriber = node.subscriber(topic(), SubscriberQos::default()).unwrap();
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    let call = Box::new(|taken: &myelin_shm::data_plane::subscription::RawSample| {
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

/// Publishers that are stopped between their sample and the wake-up (P5 and P8) leave a backlog for
/// a sleeping thread. A publisher of this process takes a part of it, and wakes the thread for the
/// rest.
#[test]
fn a_backlog_left_by_a_publish_wakes_the_callback_thread() {
    const CELLS: u64 = 29;
    // With the publishing one, so few that each take looks at all.
    const STOPPED: u64 = 3;
    const BACKLOG: u64 = STOPPED * (CELLS - 1);
    let (_folder, node) = node();
    let mut publisher = node.publisher(topic(), PublisherQos::default()).unwrap();
    let qos = SubscriberQos { depth: 100, ..SubscriberQos::default() };
    let subscriber = node.subscriber(topic(), qos).unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG) && subscriber.wait_for_match(1, WATCHDOG));
    let subscription = subscriber.reader.shared().clone();
    let stopped = [1, 2, 3].map(|id| {
        let memory = Memory::publication(id, CELLS);
        subscription.reserve(id, memory.descriptor(), Vec::new()).unwrap();
        subscription.start(id, 0);
        memory
    });
    let (here, calls_here) = (std::thread::current().id(), Arc::new(AtomicU64::new(0)));
    let its = calls_here.clone();
    let call = Box::new(move |_: &myelin_shm::data_plane::subscription::RawSample| {
        let is_here = std::thread::current().id() == here;
        its.fetch_add(u64::from(is_here), Ordering::Relaxed);
    });
    let callback = Callback::start_concurrent(subscriber, call, Lengths::Exactly(8)).unwrap();
    until("the thread's sleep", || is_asleep(&subscription));

    for memory in &stopped {
        for sequence in 0..CELLS - 1 {
            let cell = (PUBLICATION_HEAD_BYTES / 8 + sequence * 16) as usize;
            memory.set(cell + 1, 8);
            memory.set(cell + 2, INLINE);
            memory.words()[cell].store(sequence + 1, Ordering::Release);
            memory.words()[16].store(sequence + 1, Ordering::Release);
        }
    }
    publisher.writer.publish_copy(&[1; 8]).unwrap();
    let calls = calls_here.load(Ordering::Relaxed);
    assert!(calls <= 64, "{calls} calls within one publish");

    until("the backlog's end", || callback.calls() == BACKLOG + 1);
    assert_eq!(calls_here.load(Ordering::Relaxed), calls, "the rest is its thread's");
    assert_eq!((callback.panics(), callback.lost()), (0, 0));
    assert!(callback.error().is_none());
}
