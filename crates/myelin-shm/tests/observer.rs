//! Observers read publishers that do not know them: each sample is given or counted, payloads are
//! whole, and the publishers do nothing for it.

#[path = "itself/mod.rs"]
mod itself;

use std::collections::BTreeMap;
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use itself::itself;
use myelin_shm::data_plane::observer::{Missing, ObservedPublisher, ObservedSample};
use myelin_shm::node::{Node, NodeOptions, Observer, Publisher};
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos, Topic};
use myelin_shm::waiting::wait::{NEVER, now_ns};

fn open(folder: &Path) -> Node {
    let folder = Some(folder.to_owned());
    Node::open(NodeOptions { runtime_dir: folder, ..NodeOptions::default() }).unwrap()
}

fn topic() -> Topic {
    Topic { name: "t".into(), type_name: "bytes".into(), type_hash: 7 }
}

fn publisher(node: &Node, depth: u32) -> Publisher {
    node.publisher(topic(), PublisherQos { depth, ..PublisherQos::default() }).unwrap()
}

/// Takes the next sample, however long it takes.
fn next(observer: &mut Observer, into: &mut ObservedSample) {
    while !observer.reader.take_into(into).unwrap() {
        assert!(observer.reader.wait(NEVER).unwrap());
    }
}

/// All headers that there are now.
fn headers(observer: &mut Observer) -> Vec<(u64, u64)> {
    std::iter::from_fn(|| observer.reader.take_header().unwrap())
        .map(|header| (header.sequence, header.overwritten_before))
        .collect()
}

/// Waits until there are so many publishers.
fn wait_for(observer: &mut Observer, publishers: usize) {
    while observer.reader.publishers().len() < publishers {
        std::thread::yield_now();
    }
}

fn counts(it: &ObservedPublisher) -> (u64, u64, u64) {
    (it.published - it.first, it.seen, it.overwritten)
}

#[test]
fn an_observer_gets_samples_of_publishers_that_do_not_know_it() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [open(folder.path()), open(folder.path())];
    let mut before = publisher(&one, 8);
    before.writer.publish_copy(b"early").unwrap();
    before.writer.publish_copy(b"kept").unwrap();
    let mut observer = other.observer(topic(), 1).unwrap();
    let mut own = publisher(&other, 8);
    let mut sample = ObservedSample::new();
    next(&mut observer, &mut sample);
    let header = sample.header;
    assert_eq!((sample.bytes(), header.sequence, header.length), (&b"kept"[..], 1, 4));
    assert_eq!(header.publisher, before.id());
    own.writer.publish_copy(&[7; 4000]).unwrap();
    next(&mut observer, &mut sample);
    assert_eq!((sample.bytes(), sample.missing), (&[7; 4000][..], None));
    assert_eq!((sample.header.publisher, sample.header.sequence), (own.id(), 0));
    assert_eq!(sample.bytes().as_ptr().addr() % 64, 0);
    assert!(!observer.reader.take_into(&mut sample).unwrap());
    assert_eq!((before.matched(), own.matched()), (0, 0));
    let publishers = observer.reader.publishers();
    let first: BTreeMap<_, _> = publishers.iter().map(|it| (it.publisher, it.first)).collect();
    assert_eq!(first, BTreeMap::from([(before.id(), 1), (own.id(), 0)]));
    assert!(one.graph().unwrap().endpoints.iter().all(|it| it.id != header.publisher + 1));
}

#[test]
fn every_sample_is_given_or_counted_as_overwritten() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [open(folder.path()), open(folder.path())];
    let mut observer = other.observer(topic(), 0).unwrap();
    let mut publisher = publisher(&one, 4);
    wait_for(&mut observer, 1);
    let mut publish = |samples: u64| {
        (0..samples).for_each(|_| _ = publisher.writer.publish_copy(&[1]).unwrap());
    };
    publish(3);
    assert_eq!(headers(&mut observer), [(0, 0), (1, 0), (2, 0)]);
    publish(5); // there are five cells
    assert_eq!(headers(&mut observer).len(), 5);
    publish(100);
    assert_eq!(headers(&mut observer), [(104, 96), (105, 0), (106, 0), (107, 0)]);
    assert_eq!(counts(&observer.reader.publishers()[0]), (108, 12, 96));
}

#[test]
fn a_payload_whose_slot_is_used_again_is_reported_with_its_header() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [open(folder.path()), open(folder.path())];
    let mut observer = other.observer(topic(), 0).unwrap();
    let mut publisher = publisher(&one, 8);
    for length in [1000, 1001, 1002] {
        publisher.writer.publish_copy(&vec![7; length]).unwrap();
    }
    // Nobody reads, so all three were in one slot, and only the last one still is.
    let mut sample = ObservedSample::new();
    let mut seen = Vec::new();
    while seen.len() < 3 {
        next(&mut observer, &mut sample);
        seen.push((sample.header.length, sample.missing, sample.bytes().len()));
    }
    let reused = Some(Missing::Reused);
    assert_eq!(seen, [(1000, reused, 0), (1001, reused, 0), (1002, None, 1002)]);
    // A loan takes the slot.
    publisher.writer.publish_copy(&[7; 1000]).unwrap();
    let loan = publisher.writer.loan(1000).unwrap();
    next(&mut observer, &mut sample);
    assert_eq!((sample.missing, sample.header.sequence), (reused, 3));
    // SAFETY: it is this writer's.
    unsafe { publisher.writer.discard(loan) };
    let publishers = observer.reader.publishers();
    assert_eq!(counts(&publishers[0]), (4, 4, 0));
    assert_eq!(publishers[0].without_payload, 3);
}

#[test]
fn a_sample_that_a_subscriber_holds_keeps_its_payload_for_observers() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(folder.path());
    let mut publisher = publisher(&node, 64);
    let mut subscriber = node.subscriber(topic(), SubscriberQos::default()).unwrap();
    let mut observer = node.observer(topic(), 0).unwrap();
    publisher.writer.publish_copy(&[9; 1000]).unwrap();
    let held = subscriber.reader.take().unwrap().unwrap();
    for _ in 0..40 {
        publisher.writer.publish_copy(&[7; 1000]).unwrap();
        drop(subscriber.reader.take().unwrap());
    }
    let mut sample = ObservedSample::new();
    next(&mut observer, &mut sample);
    assert_eq!((sample.bytes(), sample.missing), (held.bytes(), None));
    next(&mut observer, &mut sample);
    assert_eq!((sample.header.sequence, sample.missing), (1, Some(Missing::Reused)));
}

#[test]
fn slot_segments_that_come_later_are_mapped() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [open(folder.path()), open(folder.path())];
    let mut observer = other.observer(topic(), 0).unwrap();
    let mut publisher = publisher(&one, 8);
    let mut sample = ObservedSample::new();
    for length in (1..40).map(|number| number * 5_000) {
        publisher.writer.publish_copy(&vec![length as u8; length]).unwrap();
        next(&mut observer, &mut sample);
        assert_eq!((sample.bytes(), sample.missing), (&vec![length as u8; length][..], None));
    }
}

/// A message's payload begins 4 bytes later in its slot.
#[test]
fn messages_are_copied_with_their_alignment() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(folder.path());
    let topic = Topic::of_messages("m".into(), "std_msgs::msg::dds_::String_");
    let mut publisher = node.publisher(topic.clone(), PublisherQos::default()).unwrap();
    let mut observer = node.observer(topic, 0).unwrap();
    let mut sample = ObservedSample::new();
    for length in (105..140).chain([4000, 4097]) {
        let payload: Vec<u8> = (0..length).map(|at| at as u8).collect();
        publisher.writer.publish_copy(&payload).unwrap();
        next(&mut observer, &mut sample);
        assert_eq!((sample.bytes(), sample.missing), (&payload[..], None));
        assert_eq!(sample.bytes()[4..].as_ptr().addr() % 8, 0);
    }
}

/// The payload is the sequence, again and again.
fn fill(payload: &mut [u8], sequence: u64) {
    for word in payload.chunks_exact_mut(8) {
        word.copy_from_slice(&sequence.to_ne_bytes());
    }
}

#[test]
fn payloads_are_whole_whatever_the_publisher_does_meanwhile() {
    for (depth, bytes, is_read) in [(2, 64, false), (8, 4096, false), (8, 4096, true)] {
        let folder = tempfile::tempdir().unwrap();
        let [one, other] = [open(folder.path()), open(folder.path())];
        let mut observer = other.observer(topic(), 0).unwrap();
        let mut publisher = publisher(&one, depth);
        let mut subscriber =
            is_read.then(|| one.subscriber(topic(), SubscriberQos::default()).unwrap());
        wait_for(&mut observer, 1);
        let has_ended = AtomicBool::new(false);
        let (published, whole) = std::thread::scope(|scope| {
            let publishing = scope.spawn(|| {
                for sequence in 0..SAMPLES {
                    let mut loan = publisher.writer.loan(bytes).unwrap();
                    // SAFETY: the writer lives.
                    fill(unsafe { loan.bytes_mut() }, sequence);
                    // SAFETY: it is this writer's.
                    unsafe { publisher.writer.publish(loan) }.unwrap();
                    if let Some(subscriber) = &mut subscriber {
                        drop(subscriber.reader.take().unwrap());
                    }
                }
                has_ended.store(true, Ordering::Release);
                SAMPLES
            });
            let (mut sample, mut expected, mut whole) = (ObservedSample::new(), 0, 0);
            loop {
                let was_over = has_ended.load(Ordering::Acquire);
                if !observer.reader.take_into(&mut sample).unwrap() {
                    if was_over {
                        break;
                    }
                    continue;
                }
                let header = sample.header;
                assert_eq!(header.sequence, expected + header.overwritten_before);
                expected = header.sequence + 1;
                assert_eq!(header.length, bytes);
                if sample.missing.is_none() {
                    let mut payload = vec![0; bytes as usize];
                    fill(&mut payload, header.sequence);
                    assert!(sample.bytes() == payload, "sample {} is torn", header.sequence);
                    whole += 1;
                }
            }
            (publishing.join().unwrap(), whole)
        });
        let counted = observer.reader.publishers()[0];
        assert_eq!(counted.seen + counted.overwritten, published);
        assert_eq!(counted.seen - counted.without_payload, whole);
        assert!(whole > 0);
        println!("depth {depth}, {bytes} B: {counted:?}, {whole} whole");
    }
}

/// Also a reliable publisher, which waits for its subscribers.
#[test]
fn a_publisher_neither_waits_nor_grows_for_an_observer() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [open(folder.path()), open(folder.path())];
    let qos = PublisherQos {
        depth: 4,
        reliability: Reliability::Reliable,
        block_max: Duration::MAX,
        ..PublisherQos::default()
    };
    let mut alone = one.publisher(Topic { name: "alone".into(), ..topic() }, qos).unwrap();
    let mut observed = one.publisher(topic(), qos).unwrap();
    let observers: Vec<_> = (0..50).map(|_| other.observer(topic(), 0).unwrap()).collect();
    for publisher in [&mut alone, &mut observed] {
        for number in 0..1_000 {
            publisher.writer.publish_copy(&vec![1; 64 + number % 2 * 4000]).unwrap();
        }
    }
    assert_eq!(observed.matched(), 0);
    assert_eq!(observed.writer.slot_counts(), alone.writer.slot_counts());
    drop(observers);
}

#[test]
fn the_ring_of_a_publisher_that_has_left_is_read_to_its_end() {
    let folder = tempfile::tempdir().unwrap();
    let [one, other] = [open(folder.path()), open(folder.path())];
    let mut observer = other.observer(topic(), 0).unwrap();
    let mut publisher = publisher(&one, 8);
    wait_for(&mut observer, 1);
    (0..20).for_each(|_| _ = publisher.writer.publish_copy(&[1]).unwrap());
    let id = publisher.id();
    drop(publisher);
    while observer.reader.wait(NEVER).unwrap() {
        headers(&mut observer);
        if let [gone] = observer.reader.publishers()[..]
            && gone.has_gone
        {
            assert_eq!((gone.publisher, counts(&gone)), (id, (20, 8, 12)));
            break;
        }
    }
    assert!(observer.reader.publishers().is_empty());
}

#[test]
fn a_wait_ends_by_an_interrupt_and_at_its_limit() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(folder.path());
    let mut observer = node.observer(topic(), 0).unwrap();
    assert!(!observer.reader.wait(now_ns() + 1_000_000).unwrap());
    let interrupter = observer.interrupter();
    let thread = std::thread::spawn(move || observer.reader.wait(NEVER).unwrap());
    interrupter.interrupt();
    assert!(!thread.join().unwrap());
}

#[test]
fn another_type_is_an_error() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(folder.path());
    let _publisher = publisher(&node, 8);
    let error = node.observer(Topic { type_hash: 8, ..topic() }, 0).unwrap_err();
    assert!(matches!(error, myelin_shm::Error::TypeMismatch { .. }), "{error}");
}

/// A publisher is killed while an observer reads it, and an observer while its publisher publishes.
#[test]
fn a_killed_process_on_either_side_changes_nothing_for_the_other() {
    if let Ok(folder) = std::env::var(PUBLISHES) {
        let node = open(Path::new(&folder));
        let mut publisher = publisher(&node, 64);
        while publisher.writer.publish_copy(&[1; 256]).is_ok() {
            std::thread::yield_now();
        }
        return;
    }
    if let Ok(folder) = std::env::var(OBSERVES) {
        let node = open(Path::new(&folder));
        let mut observer = node.observer(topic(), 0).unwrap();
        let mut sample = ObservedSample::new();
        loop {
            next(&mut observer, &mut sample);
            std::fs::write(Path::new(&folder).join("seen"), "").unwrap();
        }
    }
    let folder = tempfile::tempdir().unwrap();
    let start = |role: &str| {
        let mut command = itself();
        command.args(["--exact", "a_killed_process_on_either_side_changes_nothing_for_the_other"]);
        command.env(role, folder.path()).spawn().unwrap()
    };
    let kill = |mut child: std::process::Child| {
        child.kill().unwrap();
        assert_eq!(child.wait().unwrap().signal(), Some(9));
    };
    let node = open(folder.path());
    let mut observer = node.observer(topic(), 0).unwrap();
    let publishing = start(PUBLISHES);
    let mut sample = ObservedSample::new();
    for _ in 0..100 {
        next(&mut observer, &mut sample);
    }
    kill(publishing);
    let gone = loop {
        assert!(observer.reader.wait(NEVER).unwrap());
        while observer.reader.take_into(&mut sample).unwrap() {}
        if let Some(gone) = observer.reader.publishers().iter().find(|it| it.has_gone) {
            break *gone;
        }
    };
    assert_eq!(gone.seen + gone.overwritten, gone.published - gone.first);
    drop(observer);

    let mut publisher = publisher(&node, 8);
    let observing = start(OBSERVES);
    let mut publish = |is_over: &dyn Fn() -> bool| {
        while !is_over() {
            publisher.writer.publish_copy(&[1; 256]).unwrap();
            std::thread::yield_now();
        }
    };
    let seen = folder.path().join("seen");
    publish(&|| seen.exists());
    let before = publisher.writer.slot_counts();
    let pid = rustix::process::Pid::from_child(&observing);
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    for _ in 0..10_000 {
        publisher.writer.publish_copy(&[1; 256]).unwrap();
    }
    assert_eq!((publisher.writer.slot_counts(), publisher.matched()), (before, 0));
    kill(observing);
    for _ in 0..10_000 {
        publisher.writer.publish_copy(&[1; 256]).unwrap();
    }
    assert_eq!((publisher.writer.slot_counts(), publisher.matched()), (before, 0));
}

const SAMPLES: u64 = 30_000;
const PUBLISHES: &str = "MYELIN_TEST_PUBLISHES";
const OBSERVES: &str = "MYELIN_TEST_OBSERVES";
