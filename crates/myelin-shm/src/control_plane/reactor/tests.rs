//! Peers that read late; and a hostile peer that greets correctly and then sends any messages in
//! any order, with any descriptors: the node drops it or tolerates it, and the honest endpoints
//! beside it go on.

use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::time::{Duration, Instant};

use proptest::prelude::*;
use rustix::net::{AddressFamily, SocketFlags, SocketType, socketpair};

use crate::control_plane::link::{Link, Received, Sent};
use crate::control_plane::message::{ControlMessage, SegmentSize};
use crate::control_plane::protocol::graph::{MatchInfo, MatchState};
use crate::control_plane::protocol::hostile::record_of;
use crate::control_plane::protocol::{Input, Pair};
use crate::control_plane::reactor::{LINKS_A_TURN, Reactor};
use crate::control_plane::registry::{ConnectOutcome, Registry, connect};
use crate::data_plane::publication::Writer;
use crate::data_plane::remote_subscriber::WakeDescriptors;
use crate::data_plane::subscription::Reader;
use crate::node::{Node, NodeOptions};
use crate::os::descriptor::NodeFd;
use crate::os::poll::Poll;
use crate::record::{Kind, Matching, NodeRecord};
use crate::topic::{EndpointId, PublisherQos, Reliability, SubscriberQos, Topic};
use crate::waiting::remote_wake_table::WakeTableDescriptors;
use crate::waiting::wake_table::WakeTable;

/// The peer's actions, most of them nearly right.
#[derive(Clone, Debug)]
struct Act {
    kind: u8,
    /// The publisher that it names.
    publisher: u8,
    subscriber: u8,
    number: u64,
    /// A choice for each descriptor that belongs to the message.
    descriptors: [u8; 6],
    /// Whether it uses a type of its own.
    other_type: bool,
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let number = prop_oneof![4 => 0..4u64, 1 => any::<u64>()];
    let act = (0..18u8, 0..5u8, 0..5u8, number, any::<[u8; 6]>(), prop::bool::weighted(0.1));
    let act = act.prop_map(|(kind, publisher, subscriber, number, descriptors, other_type)| Act {
        kind,
        publisher,
        subscriber,
        number,
        descriptors,
        other_type,
    });
    prop::collection::vec(act, 1..24)
}

fn topic(other: bool) -> Topic {
    Topic { name: "t".into(), type_name: "T".into(), type_hash: 1 + u64::from(other) }
}

const NODE: u64 = 0x66 << 24;

fn node_record(name: &str) -> NodeRecord {
    NodeRecord { name: name.to_owned(), ..NodeRecord::default() }
}

/// The hostile peer: two publishers and two subscribers, with valid memory.
struct Peer {
    link: Link,
    ids: Vec<EndpointId>,
    writer: Writer,
    reader: Reader,
    /// Wrong descriptors that it passes, among them a pipe without a reader.
    odd: [OwnedFd; 3],
}

impl Peer {
    fn meet(node: &Node, publisher: EndpointId, subscriber: EndpointId) -> Peer {
        let path = std::fs::read_dir(node.runtime_dir()).unwrap().next().unwrap().unwrap().path();
        let (ConnectOutcome::Connected(socket), _) = connect(&path).unwrap() else {
            panic!("it listens")
        };
        let mut link = Link::new(socket);
        let hello = ControlMessage::Hello { node: NODE, record: node_record("hostile") };
        assert_eq!(link.send(&hello, Vec::new()), Sent::Done);
        let (read, closed) = rustix::pipe::pipe().unwrap();
        drop(read);
        let (kept, full) = rustix::pipe::pipe().unwrap();
        let odd = [closed, full, kept];
        let (writer, _) = Writer::create(NODE | 1, &topic(false), PublisherQos::default()).unwrap();
        let qos = SubscriberQos { descriptor: true, ..SubscriberQos::default() };
        let (reader, _) =
            Reader::create(NODE | 2, &topic(false), qos, &WakeTable::create().unwrap()).unwrap();
        Peer { link, ids: vec![NODE | 1, NODE | 2, publisher, subscriber, 7], writer, reader, odd }
    }

    fn act(&mut self, act: &Act) {
        let (publisher, subscriber) =
            (self.ids[usize::from(act.publisher)], self.ids[usize::from(act.subscriber)]);
        let pair = Pair { publisher, subscriber };
        let (topic, number) = (topic(act.other_type), act.number);
        let reason = "because".to_owned();
        let reliable = number.is_multiple_of(2);
        let reliability = if reliable { Reliability::Reliable } else { Reliability::BestEffort };
        let record = |kind| {
            let mut record = record_of(kind, topic.clone());
            record.qos.reliability = reliability;
            (record.qos.transient_local, record.qos.resends) =
                (number as u32, number.is_multiple_of(3));
            if number.is_multiple_of(5) {
                record.matching = Matching::RequestedOffered;
            }
            record
        };
        let message = match act.kind {
            0 => ControlMessage::Hello { node: NODE, record: node_record("again") },
            1 => ControlMessage::Ready,
            2 => ControlMessage::Announced { endpoint: publisher, record: record(Kind::Publisher) },
            3 => {
                ControlMessage::Announced { endpoint: subscriber, record: record(Kind::Subscriber) }
            }
            4 => ControlMessage::Retracted { endpoint: publisher },
            5 => ControlMessage::Retracted { endpoint: subscriber },
            6 => ControlMessage::Offer { pair },
            7 => {
                let size = SegmentSize {
                    number: number as u32,
                    slots: 16,
                    slot_bytes: 64 << (number % 4),
                };
                ControlMessage::Segments { publisher, segments: vec![size] }
            }
            8 => ControlMessage::Accept { pair, connection: number as u32, wake_pipe: reliable },
            9 => ControlMessage::Matched { pair, start: number },
            10 => ControlMessage::Withdrawn { pair, reason },
            11 => ControlMessage::Declined { pair, reason },
            12 => ControlMessage::RequestOffer { pair },
            13 => ControlMessage::Query { from: number },
            14 => {
                let other = if reliable { subscriber } else { number };
                ControlMessage::Counted { endpoints: vec![publisher, other] }
            }
            15 => {
                let state = MatchState::Refused { reason, mismatch: None };
                let matches = vec![MatchInfo { endpoint: subscriber, other: number, state }];
                ControlMessage::MatchesReported { matches }
            }
            16 => ControlMessage::Schema {
                type_hash: number,
                encoding: "ros2msg".to_owned(),
                part: reason.into_bytes(),
                is_last: reliable,
            },
            17 => ControlMessage::QuerySchema { type_hash: number },
            _ => ControlMessage::Answered { is_complete: reliable },
        };
        let due = message.descriptors().min(act.descriptors.len());
        let passed = act.descriptors[..due].iter().enumerate();
        let passed = passed.map(|(at, choice)| Arc::new(self.descriptor(&message, at, *choice)));
        let passed = passed.collect();
        let _ = self.link.send(&message, passed);
        while let Received::Message(..) = self.link.receive() {}
    }

    /// The right one three times out of four.
    fn descriptor(&self, message: &ControlMessage, at: usize, choice: u8) -> OwnedFd {
        let own = |fd: std::os::fd::BorrowedFd<'_>| fd.try_clone_to_owned().unwrap();
        match (message, at) {
            _ if choice.is_multiple_of(4) => own(self.odd[usize::from(choice / 4 % 3)].as_fd()),
            (ControlMessage::Accept { connection, .. }, at) => {
                let passed = self.reader.shared().passed_to(*connection % 16);
                let (segment, WakeDescriptors { wake_word, table, wake_pipe }) = passed.unwrap();
                let WakeTableDescriptors { heads, ready, pipe } = table;
                let mut all = [segment, wake_word, heads, ready, pipe].into_iter().chain(wake_pipe);
                all.nth(at).unwrap()
            }
            _ => own(self.writer.shared().descriptor()),
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_messages_in_any_order_do_not_harm_other_links(acts in acts()) {
        let folder = tempfile::tempdir().unwrap();
        let folder = Some(folder.path().to_owned());
        let node = Node::open(NodeOptions { runtime_dir: folder, ..NodeOptions::default() }).unwrap();
        let reliability = Reliability::Reliable;
        let block_max = Duration::from_millis(1);
        let qos = PublisherQos { reliability, block_max, ..PublisherQos::default() };
        let mut publisher = node.publisher(topic(false), qos).unwrap();
        let qos = SubscriberQos { reliability, ..SubscriberQos::default() };
        let mut subscriber = node.subscriber(topic(false), qos).unwrap();
        prop_assert!(publisher.wait_for_match(1, Duration::from_secs(60)));
        prop_assert!(subscriber.wait_for_match(1, Duration::from_secs(60)));

        let mut peer = Peer::meet(&node, publisher.id(), subscriber.id());
        let mut sent = 0;
        for act in &acts {
            peer.act(act);
            if act.number == 0 {
                node.graph_within(Duration::ZERO).unwrap();
            }
            publisher.writer.publish_copy(&[9; 200]).unwrap();
            sent += 1;
        }
        // All honest samples arrive, and whatever the peer publishes is at most an error.
        let (mut taken, begin) = (0, Instant::now());
        while taken < sent {
            prop_assert!(begin.elapsed() < Duration::from_secs(60), "{taken} of {sent} came");
            match subscriber.reader.take() {
                Ok(Some(sample)) if sample.publisher == publisher.id() => {
                    prop_assert_eq!(sample.bytes(), &[9; 200]);
                    taken += 1 + sample.lost_before;
                }
                _ => std::thread::yield_now(),
            }
        }
        drop(peer);
        drop((publisher, subscriber));
        // The peer may have announced another type: until the node's thread has noticed its end.
        let begin = Instant::now();
        while let Err(error) = node.publisher(topic(false), PublisherQos::default()) {
            prop_assert!(begin.elapsed() < Duration::from_secs(60), "{error}");
            std::thread::yield_now();
        }
    }
}

/// A peer reads everything in its socket, and only then another message is sent to it, together
/// with waiting ones. Nothing is left for the poll to report, and the peer must get the rest
/// nevertheless.
#[test]
fn a_flush_with_another_message_also_ends_a_burst() {
    const PUBLISHERS: u64 = 2_000;
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new(folder.path(), 0, None);
    let (listener, node) = registry.enter().unwrap();
    let poll = Arc::new(Poll::new().unwrap());
    let (record, listener) = (node_record("n"), NodeFd::new(listener));
    let mut reactor = Reactor::new(node, record, registry, poll.clone(), listener);
    let publication = Arc::new(tempfile::tempfile().unwrap().into());
    for number in 1..=PUBLISHERS {
        let record = record_of(Kind::Publisher, topic(false));
        let (id, publication) = (node | number, Arc::clone(&publication));
        reactor.drive(Input::PublisherMade { id, record, publication });
    }

    let (family, kind) = (AddressFamily::UNIX, SocketType::SEQPACKET);
    let (ours, theirs) = socketpair(family, kind, SocketFlags::CLOEXEC, None).unwrap();
    let linked = reactor.open_link(ours, None).unwrap();
    reactor.drive(linked);
    let mut peer = Link::new(theirs);
    let (mut received, mut is_ready) = (0, false);
    let mut read = |peer: &mut Link| {
        let before = received;
        while let Received::Message(message, _) = peer.receive() {
            received += u64::from(matches!(message, ControlMessage::Announced { .. }));
            is_ready |= message == ControlMessage::Ready;
        }
        (received, received > before, is_ready)
    };
    let hello = ControlMessage::Hello { node: NODE, record: node_record("late") };
    assert_eq!(peer.send(&hello, Vec::new()), Sent::Done);
    let serve = |reactor: &mut Reactor, keys: &[u64]| {
        for key in keys {
            reactor.serve(*key);
        }
    };
    let mut keys = Vec::new();
    poll.wait(&mut keys, Some(Duration::ZERO));
    serve(&mut reactor, &keys);
    let (first, ..) = read(&mut peer);
    assert!((1..PUBLISHERS).contains(&first), "the socket was full: {first}");

    reactor.drive(Input::Dropped { id: node | 1 });
    loop {
        let (received, goes_on, is_ready) = read(&mut peer);
        poll.wait(&mut keys, Some(Duration::ZERO));
        serve(&mut reactor, &keys);
        if !goes_on && keys.is_empty() {
            assert_eq!((received, is_ready), (PUBLISHERS, true));
            return;
        }
    }
}

/// The node's thread has other work, and other threads wait for the lock.
#[test]
fn one_turn_accepts_a_bounded_number_of_links() {
    const LINKS: usize = LINKS_A_TURN + 10;
    let folder = tempfile::tempdir().unwrap();
    let registry = Registry::new(folder.path(), 0, None);
    let (listener, node) = registry.enter().unwrap();
    let (record, listener) = (node_record("n"), NodeFd::new(listener));
    let path = std::fs::read_dir(&registry.domain_dir).unwrap().next().unwrap().unwrap().path();
    let poll = Arc::new(Poll::new().unwrap());
    let mut reactor = Reactor::new(node, record, registry, poll, listener);
    let connected: Vec<_> = (0..LINKS).map(|_| connect(&path).unwrap()).collect();
    reactor.accept_links();
    assert_eq!(reactor.links.len(), LINKS_A_TURN);
    reactor.accept_links();
    assert_eq!(reactor.links.len(), connected.len());
}
