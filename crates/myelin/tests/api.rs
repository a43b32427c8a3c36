//! The promises of the API, with both ends in one process.

mod support;

use std::sync::Barrier;
use std::thread;
use std::time::Duration;

use myelin::{
    Error, Event, Graph, MatchState, Matching, Mismatch, Node, PlainData, Sample, Setting, Wait,
};
use support::{WATCHDOG, ends, matched, node, until};

#[derive(Clone, Copy, Debug, PartialEq, PlainData)]
#[repr(C)]
struct Point {
    x: f64,
    y: f64,
    label: u64,
}

#[derive(Clone, Copy, PlainData)]
#[repr(C)]
struct Large {
    head: Point,
    cells: [[u16; 64]; 8],
}

#[test]
fn a_value_arrives_by_copy_and_by_loan() {
    let (_folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<Point>("point"));
    let point = Point { x: 1.5, y: -2.5, label: 7 };
    assert_eq!(publisher.publish_copy(&point).unwrap().sequence, 0);
    let mut loan = publisher.loan().unwrap();
    assert_eq!(loan.label, 0);
    loan.label = 8;
    assert_eq!(loan.label, 8);
    assert_eq!(loan.publish().unwrap().sequence, 1);

    let first = subscriber.take().unwrap().unwrap();
    assert_eq!((*first, first.sequence(), first.lost_before()), (point, 0, 0));
    let second = subscriber.take().unwrap().unwrap();
    assert_eq!((second.label, second.sequence()), (8, 1));
    assert_eq!(first.publisher(), second.publisher());
    assert!(subscriber.take().unwrap().is_none());
}

#[test]
fn a_large_value_arrives_where_it_was_written() {
    let (_folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<Large>("large"));
    let mut loan = publisher.loan().unwrap();
    loan.cells[7][63] = 9;
    loan.as_bytes_mut()[24] = 4;
    assert_eq!(loan.cells[0][0], 4);
    loan.publish().unwrap();
    let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();
    assert_eq!((sample.cells[7][63], sample.cells[0][0]), (9, 4));
    assert_eq!(sample.as_bytes().len(), size_of::<Large>());
}

#[test]
fn each_sample_of_a_slice_has_its_own_length() {
    let (_folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<[Point]>("points").depth(16));
    for length in [0, 1, 4, 5, 1000] {
        let mut loan = publisher.loan(length).unwrap();
        assert_eq!(loan.len(), length);
        for (at, point) in loan.iter_mut().enumerate() {
            *point = Point { x: at as f64, y: 0.0, label: at as u64 };
        }
        loan.publish().unwrap();
        let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();
        assert_eq!(sample.len(), length);
        assert!(sample.iter().enumerate().all(|(at, point)| point.label == at as u64));
    }
    publisher.publish_copy(&[]).unwrap();
    assert!(subscriber.receive(WATCHDOG).unwrap().unwrap().is_empty());
}

#[test]
fn a_signal_without_content_arrives() {
    let (_folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<()>("tick"));
    publisher.publish_copy(&()).unwrap();
    publisher.loan().unwrap().publish().unwrap();
    assert_eq!(subscriber.receive(WATCHDOG).unwrap().unwrap().sequence(), 0);
    assert_eq!(subscriber.receive(WATCHDOG).unwrap().unwrap().sequence(), 1);
}

#[test]
fn several_loans_are_out_at_once_and_a_dropped_one_is_discarded() {
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("image");
    let publisher = topic.publisher_builder().loans_max(3).open().unwrap();
    let (publisher, mut subscriber) = matched(publisher, topic.subscriber().unwrap());
    let mut loans: Vec<_> = (0..3).map(|_| publisher.loan(1000).unwrap()).collect();
    let error = publisher.loan(1000).unwrap_err();
    assert!(matches!(error, Error::TooManyLoans { loans: 3, .. }), "{error}");
    for (at, loan) in loans.iter_mut().enumerate() {
        loan.fill(at as u8);
    }
    drop(loans.remove(1));
    publisher.publish_copy(&[9]).unwrap();
    for loan in loans.into_iter().rev() {
        loan.publish().unwrap();
    }
    for expected in [&[9][..], &[2; 1000], &[0; 1000]] {
        assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), *expected);
    }
    assert!(subscriber.take().unwrap().is_none());
}

#[test]
fn a_payload_over_the_limit_is_refused_whatever_its_size() {
    let (_folder, node) = node();
    let builder = node.topic::<[u64]>("limited").publisher_builder();
    let publisher = builder.payload_bytes_max(64).open().unwrap();
    for length in [9, 1000, usize::MAX / 8, usize::MAX] {
        let error = publisher.loan(length).unwrap_err();
        assert!(matches!(error, Error::PayloadTooLarge { limit: 64, .. }), "{error}");
    }
    publisher.loan(8).unwrap().publish().unwrap();
    let error = publisher.publish_copy(&[0; 9]).unwrap_err();
    assert!(matches!(error, Error::PayloadTooLarge { bytes: 72, limit: 64, .. }), "{error}");
}

#[test]
fn memory_has_a_limit() {
    let (_folder, node) = node();
    let builder = node.topic::<[u8]>("image").publisher_builder();
    let publisher = builder.memory_max(1 << 20).open().unwrap();
    let error = publisher.loan(2 << 20).unwrap_err();
    assert!(matches!(error, Error::MemoryLimit { limit: 1_048_576, .. }), "{error}");
    // The default is half of the machine's memory; a large limit costs nothing.
    let publisher = node.topic::<[u8]>("image").publisher().unwrap();
    let error = publisher.loan(1 << 39).unwrap_err();
    assert!(matches!(error, Error::MemoryLimit { .. }), "{error}");
}

#[test]
fn samples_held_have_a_limit_outlive_the_subscriber_and_cross_threads() {
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("image");
    let subscriber = topic.subscriber_builder().held_max(2).open().unwrap();
    let (publisher, mut subscriber) = matched(topic.publisher().unwrap(), subscriber);
    for value in 0..3 {
        publisher.publish_copy(&[value; 5000]).unwrap();
    }
    let first = subscriber.receive(WATCHDOG).unwrap().unwrap();
    let second = subscriber.receive(WATCHDOG).unwrap().unwrap();
    let error = subscriber.take().unwrap_err();
    assert!(matches!(error, Error::TooManyHeld { held: 2, .. }), "{error}");
    drop(first);
    let third = subscriber.take().unwrap().unwrap();
    drop((subscriber, publisher, node));
    let clone = second.clone();
    drop(second);
    let checked = std::thread::spawn(move || {
        assert!(clone.iter().all(|byte| *byte == 1));
        assert!(third.iter().all(|byte| *byte == 2));
    });
    checked.join().unwrap();
}

#[test]
fn a_slow_subscriber_gets_its_number_of_lost_samples() {
    let (_folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<u32>("count").depth(4));
    for count in 0..10 {
        publisher.publish_copy(&count).unwrap();
    }
    let sample = subscriber.take().unwrap().unwrap();
    assert_eq!((*sample, sample.lost_before(), subscriber.lost()), (6, 6, 6));
}

#[test]
fn a_late_subscriber_gets_the_history() {
    let (_folder, node) = node();
    let topic = node.topic::<u32>("map").transient_local(2);
    let publisher = topic.publisher().unwrap();
    for count in 0..5 {
        publisher.publish_copy(&count).unwrap();
    }
    let mut subscriber = topic.subscriber().unwrap();
    assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), 3);
    assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), 4);
}

#[test]
fn a_reliable_publisher_gives_up_after_its_limit() {
    let (_folder, node) = node();
    let topic = node.topic::<u32>("queue").depth(2).reliable_or_fail(Duration::from_millis(1));
    let (publisher, mut subscriber) = ends(&topic);
    publisher.publish_copy(&0).unwrap();
    publisher.publish_copy(&1).unwrap();
    let error = publisher.publish_copy(&2).unwrap_err();
    assert!(matches!(error, Error::ReliableTimeout { .. }), "{error}");
    assert_eq!(*subscriber.take().unwrap().unwrap(), 0);
    publisher.publish_copy(&3).unwrap();
    assert_eq!(*subscriber.take().unwrap().unwrap(), 1);
    assert_eq!(*subscriber.take().unwrap().unwrap(), 3);
    assert_eq!(subscriber.lost(), 0);
}

#[test]
fn every_way_to_wait_ends_with_a_sample_or_at_the_limit() {
    let (_folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<u64>("count"));
    for wait in [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive] {
        subscriber.set_wait(wait);
        assert!(!subscriber.wait(Duration::ZERO).unwrap());
        assert!(subscriber.receive(Duration::from_millis(1)).unwrap().is_none());
        std::thread::scope(|scope| {
            let taker = scope.spawn(|| *subscriber.receive(Duration::MAX).unwrap().unwrap());
            publisher.publish_copy(&5).unwrap();
            assert_eq!(taker.join().unwrap(), 5);
        });
    }
}

#[test]
fn matches_come_go_and_are_events() {
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count");
    let publisher = topic.publisher().unwrap();
    assert_eq!(publisher.matched(), 0);
    assert!(!publisher.wait_for_match(1, Duration::ZERO));
    let subscriber = topic.subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG) && subscriber.wait_for_match(1, WATCHDOG));
    assert_eq!((publisher.matched(), subscriber.matched()), (1, 1));
    assert!(matches!(publisher.events()[..], [Event::Matched { .. }]));
    drop(subscriber);
    until("the end of the match", || publisher.matched() == 0);
    let events = publisher.events();
    assert!(matches!(events[..], [Event::Unmatched { died: false, .. }]), "{events:?}");
}

#[test]
fn a_silent_publisher_is_an_event_and_asserting_counts() {
    let (_folder, node) = node();
    let lease = Duration::from_millis(20);
    let topic = node.topic::<u64>("count");
    let subscriber = topic.subscriber_builder().liveliness(lease).open().unwrap();
    let (publisher, subscriber) = matched(topic.publisher().unwrap(), subscriber);
    let seen = |wanted: fn(&Event) -> bool| subscriber.events().iter().any(wanted);
    until("the loss", || seen(|event| matches!(event, Event::LivelinessLost { .. })));
    until("the return", || {
        publisher.assert_liveliness().unwrap();
        seen(|event| matches!(event, Event::LivelinessRegained { .. }))
    });
}

#[test]
fn another_type_is_an_error_that_names_both() {
    let (_folder, node) = node();
    let _publisher = node.topic::<Point>("point").publisher().unwrap();
    let error = node.topic::<[f32; 3]>("point").subscriber().unwrap_err();
    assert!(matches!(error, Error::TypeMismatch { .. }), "{error:?}");
    let text = error.to_string();
    for part in ["\"point\"", "Point", "[f32; 3]", &std::process::id().to_string()] {
        assert!(text.contains(part), "{text}");
    }
}

#[test]
fn the_same_name_with_another_layout_does_not_match() {
    mod other {
        #[derive(Clone, Copy, myelin::PlainData)]
        #[repr(C)]
        pub struct Point {
            pub y: f64,
            pub x: f64,
            pub label: u64,
        }
    }
    let (_folder, node) = node();
    let _publisher = node.topic::<Point>("point").publisher().unwrap();
    let error = node.topic::<other::Point>("point").subscriber().unwrap_err();
    assert!(matches!(error, Error::TypeMismatch { .. }), "{error:?}");
}

#[test]
fn settings_out_of_range_are_named() {
    let (_folder, node) = node();
    let named = |error: Error, field: &str| assert!(error.to_string().contains(field), "{error}");
    named(node.topic::<u8>("t").depth(0).publisher().unwrap_err(), "depth");
    named(node.topic::<u8>("t").depth(70_000).subscriber().unwrap_err(), "depth");
    named(node.topic::<u8>("t").transient_local(9).publisher().unwrap_err(), "transient_local");
    let topic = node.topic::<u8>("t");
    named(topic.subscriber_builder().held_max(0).open().unwrap_err(), "held_max");
    named(topic.publisher_builder().loans_max(0).open().unwrap_err(), "loans_max");
    named(node.topic::<u8>("").publisher().unwrap_err(), "topic");
}

#[test]
fn endpoints_keep_their_node_open_and_nothing_is_left() {
    let (folder, node) = node();
    let (publisher, mut subscriber) = ends(&node.topic::<[u8]>("image"));
    drop(node);
    publisher.publish_copy(&[1; 500]).unwrap();
    let sample: Sample<[u8]> = subscriber.receive(WATCHDOG).unwrap().unwrap();
    drop((publisher, subscriber, sample));
    until("an empty folder", || folder.path().read_dir().unwrap().next().is_none());
}

#[test]
fn endpoints_of_different_domains_do_not_match() {
    let folder = tempfile::tempdir().unwrap();
    let node =
        |domain| Node::builder("test").runtime_dir(folder.path()).domain(domain).open().unwrap();
    let (three, four) = (node(3), node(4));
    let _subscriber = four.topic::<u64>("count").subscriber().unwrap();
    let publisher = three.topic::<u64>("count").publisher().unwrap();
    let _other = three.topic::<u64>("count").subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    assert_eq!(publisher.matched(), 1);
}

#[test]
fn ignore_own_node_matches_only_other_nodes() {
    let (folder, own) = node();
    let other = Node::builder("other").runtime_dir(folder.path()).open().unwrap();
    let topic = own.topic::<u64>("count");
    let before = topic.publisher().unwrap();
    let mut subscriber = topic.subscriber_builder().ignore_own_node(true).open().unwrap();
    let witness = topic.subscriber().unwrap();
    let after = topic.publisher().unwrap();
    let theirs = other.topic::<u64>("count").publisher().unwrap();
    assert!(witness.wait_for_match(3, WATCHDOG) && subscriber.wait_for_match(1, WATCHDOG));
    assert!(theirs.wait_for_match(2, WATCHDOG));
    assert!(before.wait_for_match(1, WATCHDOG) && after.wait_for_match(1, WATCHDOG));
    for (publisher, count) in [(&before, 1), (&after, 2), (&theirs, 3)] {
        publisher.publish_copy(&count).unwrap();
    }
    assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), 3);
    assert!(subscriber.take().unwrap().is_none());
    assert_eq!((subscriber.matched(), before.matched(), after.matched()), (1, 1, 1));
}

#[test]
fn at_least_one_of_two_new_endpoints_sees_the_other() {
    let (folder, first) = node();
    let second = Node::builder("second").runtime_dir(folder.path()).open().unwrap();
    until("a link", || [&first, &second].iter().all(|it| it.graph().unwrap().nodes.len() == 2));
    for round in 0..300 {
        let topic = format!("topic {round}");
        let sees = |node: &Node, is_publisher| {
            let endpoints = node.graph().unwrap().endpoints;
            endpoints.iter().any(|it| it.topic == topic && it.is_publisher == is_publisher)
        };
        let together = Barrier::new(2);
        let (publisher, subscriber) = thread::scope(|scope| {
            let publishing = scope.spawn(|| {
                together.wait();
                let publisher = first.topic::<u64>(&topic).publisher().unwrap();
                (sees(&first, false), publisher)
            });
            together.wait();
            let subscriber = second.topic::<u64>(&topic).subscriber().unwrap();
            let subscriber = (sees(&second, true), subscriber);
            (publishing.join().unwrap(), subscriber)
        });
        assert!(publisher.0 || subscriber.0, "neither in round {round}");
    }
}

#[test]
fn a_peer_s_sample_of_a_wrong_length_is_an_error_and_ends_the_match() {
    let (folder, node) = node();
    let options = myelin_shm::node::NodeOptions {
        runtime_dir: Some(folder.path().to_owned()),
        ..Default::default()
    };
    let peer = myelin_shm::node::Node::open(options).unwrap();
    let topic = |name: &str, type_hash| myelin_shm::topic::Topic {
        name: name.to_owned(),
        type_name: "theirs".to_owned(),
        type_hash,
    };
    for length in [0, 23, 25, 48, 1000] {
        let one = topic("one", Point::LAYOUT_HASH);
        let mut one = peer.publisher(one, Default::default()).unwrap();
        let mut taker = node.topic::<Point>("one").subscriber().unwrap();
        assert!(taker.wait_for_match(1, WATCHDOG));
        one.writer.publish_copy(&vec![1; length]).unwrap();
        let error = taker.receive(WATCHDOG).unwrap_err();
        assert!(matches!(error, Error::PeerCorrupt { .. }), "{error}");
        until("the match ends", || taker.matched() == 0 && one.matched() == 0);
    }
    for length in [1, 23, 1000] {
        let many = topic("many", myelin::LayoutHash::of_slice::<Point>());
        let mut many = peer.publisher(many, Default::default()).unwrap();
        let mut taker = node.topic::<[Point]>("many").subscriber().unwrap();
        assert!(taker.wait_for_match(1, WATCHDOG));
        many.writer.publish_copy(&vec![1; length]).unwrap();
        let error = taker.receive(WATCHDOG).unwrap_err();
        assert!(matches!(error, Error::PeerCorrupt { .. }), "{error}");
    }
}

#[test]
fn members_of_a_group_match() {
    let folder = tempfile::tempdir().unwrap();
    let group = rustix::process::getegid().as_raw();
    let node = || Node::builder("test").runtime_dir(folder.path()).group(group).open().unwrap();
    let (here, there) = (node(), node());
    let publisher = here.topic::<u64>("count").publisher().unwrap();
    let mut subscriber = there.topic::<u64>("count").subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&1).unwrap();
    assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), 1);
    let error = Node::builder("test").group("no-such-group-here").open().unwrap_err();
    assert!(matches!(error, Error::Setting { field: "group", .. }), "{error}");
}

#[test]
fn types_are_send_and_sync_as_documented() {
    fn sent<T: Send>() {}
    fn shared<T: Send + Sync>() {}
    sent::<myelin::Publisher<Point>>();
    sent::<myelin::Publisher<[u8]>>();
    sent::<myelin::Subscriber<[u8]>>();
    sent::<myelin::FdSubscriber<Point>>();
    shared::<Sample<[u8]>>();
    shared::<Node>();
    shared::<myelin::Topic<[u8]>>();
    shared::<myelin::Callback>();
}

#[test]
fn a_sample_says_when_it_was_published_if_its_publisher_does() {
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("image").depth(16);
    let timed = topic.publisher_builder().timestamps(true).open().unwrap();
    let (timed, mut subscriber) = matched(timed, topic.subscriber().unwrap());
    let (to, from) = std::sync::mpsc::channel();
    let callback = topic.subscriber().unwrap();
    assert!(callback.wait_for_match(1, WATCHDOG) && timed.wait_for_match(2, WATCHDOG));
    let callback = callback.on_sample(move |sample| to.send(sample.published_at()).unwrap());
    let _callback = callback.unwrap();
    // In a cell, and in a slot.
    for bytes in [0, 8, 104, 105, 100_000] {
        let before = myelin::now();
        timed.publish_copy(&vec![7; bytes]).unwrap();
        let sample = subscriber.receive(WATCHDOG).unwrap().expect("it was published");
        let at = sample.published_at().expect("it says so");
        assert!((before..=myelin::now()).contains(&at), "{bytes} B");
        assert_eq!(sample.clone().published_at(), Some(at));
        assert_eq!(from.recv_timeout(WATCHDOG).unwrap(), Some(at), "in a callback");
        assert!(sample.len() == bytes && sample.iter().all(|byte| *byte == 7));
    }
    drop(timed);
    let (silent, mut subscriber) = ends(&node.topic::<[u8]>("silent"));
    for bytes in [8, 1_000] {
        silent.publish_copy(&vec![7; bytes]).unwrap();
        assert_eq!(subscriber.take().unwrap().unwrap().published_at(), None);
    }
}

#[test]
fn both_sides_get_an_event_for_another_message_type() {
    let (folder, node) = node();
    let other = Node::builder("other").runtime_dir(folder.path()).open().unwrap();
    let of = |node: &Node, name: &str| node.topic::<[u8]>("chatter").dds_cdr(name);
    for there in [&node, &other] {
        let publisher = of(&node, "m::Text").publisher().unwrap();
        let mut known = || {
            node.graph().unwrap().endpoints.len() == 1
                && there.graph().unwrap().endpoints.len() == 1
        };
        until("both nodes to know of it", &mut known);
        let subscriber = of(there, "m::Number").subscriber().unwrap();
        let is_told = |events: Vec<Event>, other: u64| {
            let is = |it: &Event| matches!(it, Event::Incompatible { endpoint, .. } if *endpoint == other);
            events.iter().any(is)
        };
        until("the publisher to be told", || is_told(publisher.events(), subscriber.id()));
        until("the subscriber to be told", || is_told(subscriber.events(), publisher.id()));
        drop((publisher, subscriber));
        until("both to have gone", || other.graph().unwrap().endpoints.is_empty());
    }
}

#[test]
fn the_graph_shows_what_nodes_and_endpoints_announce() {
    let (folder, node) = node();
    let other = Node::builder("camera").namespace("/front").attribute("firmware", b"\x00\xff2");
    let other = other.runtime_dir(folder.path()).open().unwrap();
    let (before, deadline) = (unix_ns(), Duration::from_millis(20));
    let topic = other
        .topic::<Point>("point")
        .depth(4)
        .transient_local(2)
        .reliable_keep_last()
        .deadline(deadline);
    let topic = topic.attribute("ros.gid", &[7; 16]).attribute("empty", b"");
    let lease = Duration::from_secs(2);
    let publisher = topic.publisher_builder().liveliness(lease).open().unwrap();
    let found = |graph: &Graph| graph.endpoints.iter().find(|it| it.id == publisher.id()).cloned();
    until("the endpoint", || found(&node.graph().unwrap()).is_some());
    let graph = node.graph().unwrap();
    let endpoint = found(&graph).unwrap();
    assert_eq!(
        (endpoint.qos.depth, endpoint.qos.transient_local, endpoint.qos.resends),
        (4, 2, true)
    );
    assert_eq!((endpoint.qos.deadline, endpoint.qos.liveliness), (Some(deadline), Some(lease)));
    assert_eq!((endpoint.qos.lifespan, endpoint.matching), (None, Matching::Exact));
    assert!((before..=unix_ns()).contains(&endpoint.created_ns));
    let attributes: Vec<_> = endpoint.attributes.iter().collect();
    assert_eq!(attributes, [("empty", &b""[..]), ("ros.gid", &[7; 16][..])]);
    let camera = graph.nodes.iter().find(|it| it.node == endpoint.node).unwrap();
    assert_eq!((&*camera.name, camera.pid), ("camera", std::process::id()));
    assert_eq!(camera.user, rustix::process::geteuid().as_raw());
    let record = &camera.record;
    assert_eq!((&*record.namespace, &*record.language), ("/front", "Rust"));
    assert!(record.program.starts_with("api-") && !record.host.is_empty(), "{record:?}");
    assert_eq!(record.version, env!("CARGO_PKG_VERSION"));
    assert_eq!(record.attributes.get("firmware"), Some(&b"\x00\xff2"[..]));
    let own = other.graph().unwrap();
    let myself = own.nodes.iter().find(|it| it.node == endpoint.node).unwrap();
    assert_eq!(myself, camera, "a node sees itself as others do");
}

#[test]
fn attributes_that_do_not_fit_are_refused_where_they_are_used() {
    let (_folder, node) = node();
    let error = node.topic::<u8>("t").attribute("large", &[0; 1_020]).publisher().unwrap_err();
    assert!(matches!(error, Error::Setting { .. }), "{error:?}");
    assert!(error.to_string().contains("1,024 bytes"), "{error}");
    let error = Node::builder("n").attribute("", b"").open().unwrap_err();
    assert!(error.to_string().contains("1 to 64 bytes"), "{error}");
}

#[test]
fn a_refused_setting_is_the_same_at_both_ends() {
    let (folder, node) = node();
    let other = Node::builder("other").runtime_dir(folder.path()).open().unwrap();
    for there in [&node, &other] {
        let publisher = node.topic::<u64>("map").publisher().unwrap();
        until("the other node to know of it", || {
            let graph = there.graph().unwrap();
            graph.endpoints.iter().any(|it| it.id == publisher.id())
        });
        let wanted =
            there.topic::<u64>("map").reliable_keep_last().matching(Matching::RequestedOffered);
        let subscriber = wanted.subscriber().unwrap();
        let mismatch = |events: Vec<Event>, of: u64| {
            events.into_iter().find_map(|event| match event {
                Event::Incompatible { endpoint, mismatch, reason, .. } if endpoint == of => {
                    assert_eq!(mismatch.as_ref().map(Mismatch::to_string), Some(reason));
                    mismatch
                }
                _ => None,
            })
        };
        let mut told = None;
        until("the publisher to be told", || {
            told = mismatch(publisher.events(), subscriber.id());
            told.is_some()
        });
        let told = told.unwrap();
        assert_eq!(told.setting, Setting::Reliability);
        assert_eq!((&*told.offered, &*told.requested), ("best effort", "reliable"));
        assert_eq!(mismatch(subscriber.events(), publisher.id()).as_ref(), Some(&told));
        for (node, endpoint) in [(&node, publisher.id()), (there, subscriber.id())] {
            let matches = node.graph().unwrap().matches;
            let state = &matches.iter().find(|it| it.endpoint == endpoint).unwrap().state;
            assert!(
                matches!(state, MatchState::Refused { mismatch: Some(it), .. } if *it == told),
                "{state:?}"
            );
        }
        assert_eq!((publisher.matched(), subscriber.matched()), (0, 0));
        let reliable = node.topic::<u64>("map").reliable_keep_last().publisher().unwrap();
        assert!(subscriber.wait_for_match(1, WATCHDOG), "one that offers it matches");
        drop((publisher, subscriber, reliable));
        until("all to have gone", || other.graph().unwrap().endpoints.is_empty());
    }
}

/// The time since 1970, in nanoseconds.
fn unix_ns() -> u64 {
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    now.unwrap().as_nanos() as u64
}
