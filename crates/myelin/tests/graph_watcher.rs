//! The status of a domain: rates, matches and silence, of two processes.

#[path = "../../myelin-shm/tests/itself/mod.rs"]
mod itself;
mod support;

use std::time::Duration;

use myelin::{
    Change, Counters, EndpointId, EndpointStatus, GraphWatcher, MatchState, Node, Setting,
};
use support::other_side::{FOLDER, Other, ROLE};
use support::{WATCHDOG, until};

fn published(endpoint: &EndpointStatus) -> u64 {
    match endpoint.info.counters {
        Some(Counters::Publisher { published, .. }) => published,
        other => panic!("not counted: {other:?}"),
    }
}

/// The only publisher of a topic.
fn publisher<'a>(watcher: &'a GraphWatcher, topic: &str) -> &'a EndpointStatus {
    let [publisher] = &watcher.status().topic(topic).expect("it is there").publishers[..] else {
        panic!("{:?}", watcher.status().topic(topic));
    };
    publisher
}

#[test]
fn rates_are_differences_of_counters() {
    let (_folder, node) = support::node();
    let topic = node.topic::<u64>("imu").depth(1);
    let (publisher, mut subscriber) = support::ends(&topic);
    let mut watcher = node.watch_graph("im?");
    assert!(watcher.status().topics.is_empty() && watcher.changes().is_empty());
    publisher.publish_copy(&0).unwrap();
    subscriber.take().unwrap();
    let first = watcher.update(WATCHDOG).unwrap();
    assert_eq!((first.since_ns, first.topic("imu").unwrap().rate_hz), (None, None));
    assert_eq!(watcher.changes().len(), 2);
    let before_ns = watcher.status().at_ns;
    for sample in 0..10 {
        publisher.publish_copy(&sample).unwrap();
    }
    subscriber.take().unwrap();
    let _other = node.topic::<u64>("odometry").publisher().unwrap();
    let status = watcher.update(WATCHDOG).unwrap();
    assert_eq!(status.since_ns, Some(status.at_ns - before_ns));
    let seconds = status.since_ns.unwrap() as f64 / 1e9;
    let [imu] = &status.topics[..] else { panic!("{:?}", status.topics) };
    assert_eq!((imu.rate_hz.unwrap() * seconds).round(), 10.0);
    assert_eq!((imu.lost, imu.refused, imu.types.len()), (9, 0, 1));
    assert_eq!(imu.type_name, "u64");
    assert!(imu.memory_bytes > 0);
    assert_eq!(imu.subscribers[0].lost_in_interval, 9);
    assert_eq!(imu.subscribers[0].matches[0].other, publisher.id());
    assert_eq!(imu.publishers[0].matches[0].state, MatchState::Matched);
    let of_node = &status.nodes[0];
    assert_eq!((of_node.publishers, of_node.subscribers, of_node.is_silent), (1, 1, false));
    assert!(watcher.changes().is_empty(), "the other topic is not watched");
    watcher.update(WATCHDOG).unwrap();
    let imu = watcher.status().topic("imu").unwrap();
    assert_eq!((imu.rate_hz, imu.lost), (Some(0.0), 0));
    drop(publisher);
    watcher.update(WATCHDOG).unwrap();
    assert!(matches!(watcher.changes(), [Change::Gone(gone)] if gone.is_publisher));
    assert_eq!(watcher.status().topic("imu").unwrap().rate_hz, Some(0.0), "nobody publishes");
}

#[test]
fn a_mismatch_is_counted_once_with_its_reason_on_both_sides() {
    let (folder, node) = support::node();
    let best_effort = node.topic::<u64>("imu");
    let requested = || best_effort.clone().matching(myelin::Matching::RequestedOffered);
    let _publisher = best_effort.publisher().unwrap();
    let other = Node::builder("other").runtime_dir(folder.path()).open().unwrap();
    let theirs = other.topic::<u64>("imu").matching(myelin::Matching::RequestedOffered);
    let _refused = theirs.reliable(WATCHDOG).subscriber().unwrap();
    let _matched = requested().subscriber().unwrap();
    let mut watcher = other.watch_graph("*");
    watcher.update(WATCHDOG).unwrap();
    let imu = watcher.status().topic("imu").unwrap();
    assert_eq!((imu.publishers.len(), imu.subscribers.len(), imu.refused), (1, 2, 1));
    let refused = |it: &EndpointStatus| {
        let of = it.matches.iter().filter_map(|it| match &it.state {
            MatchState::Refused { reason, mismatch } => Some((reason.clone(), mismatch.clone())),
            _ => None,
        });
        of.collect::<Vec<_>>()
    };
    let of_publisher = refused(&imu.publishers[0]);
    let of_subscribers: Vec<_> = imu.subscribers.iter().flat_map(refused).collect();
    assert_eq!(of_publisher, of_subscribers);
    let [(reason, Some(mismatch))] = &of_publisher[..] else { panic!("{of_publisher:?}") };
    assert_eq!(mismatch.setting, Setting::Reliability);
    assert!(reason.contains("best effort"), "{reason}");
}

#[test]
fn a_stopped_process_is_silent_and_keeps_what_was_known_of_it() {
    let (folder, node) = support::node();
    let mut subscriber = node.topic::<u64>("imu").subscriber().unwrap();
    let mut other = Other::start(itself::itself(), "publish_on_request", folder.path());
    let more = node.topic::<u64>("more").publisher().unwrap();
    let pid = other.0.id();
    let mut watcher = node.watch_graph("*");
    publish(&more, &mut subscriber, 5);
    watcher.update(WATCHDOG).unwrap();
    let (begun_ns, begun) = (watcher.status().at_ns, published(publisher(&watcher, "imu")));
    assert_eq!(begun, 5);
    let id = publisher(&watcher, "imu").info.id;

    other.signal("STOP");
    until("the stop", || {
        watcher.update(Duration::from_millis(20)).unwrap();
        let node = watcher.status().nodes.iter().find(|it| it.info.pid == pid).unwrap();
        node.is_stopped
    });
    let status = watcher.status();
    let stopped = status.nodes.iter().find(|it| it.info.pid == pid).unwrap();
    assert!(stopped.is_silent && stopped.threads >= Some(1) && stopped.memory_bytes > Some(0));
    assert_eq!(status.silent, [stopped.info.node]);
    let imu = publisher(&watcher, "imu");
    assert!(imu.is_silent && imu.info.id == id);
    // Its counters are read in its memory.
    assert_eq!((imu.rate_hz, published(imu), imu.matches.len()), (Some(0.0), 5, 1));
    let read_ns = imu.counted_ns.unwrap();
    assert!(read_ns > begun_ns && read_ns == status.at_ns);

    other.signal("CONT");
    publish(&more, &mut subscriber, 7);
    until("an answer", || {
        watcher.update(WATCHDOG).unwrap();
        !publisher(&watcher, "imu").is_silent
    });
    let status = watcher.status();
    let imu = publisher(&watcher, "imu");
    let seconds = (imu.counted_ns.unwrap() - read_ns) as f64 / 1e9;
    assert_eq!((published(imu), (imu.rate_hz.unwrap() * seconds).round()), (12, 7.0));
    assert!(status.silent.is_empty());

    other.0.kill().unwrap();
    until("the end", || {
        watcher.update(WATCHDOG).unwrap();
        watcher.changes().iter().any(|it| matches!(it, Change::Gone(it) if it.id == id))
    });
    let _again = Other::start(itself::itself(), "publish_on_request", folder.path());
    publish(&more, &mut subscriber, 3);
    let found = |watcher: &GraphWatcher| -> Option<EndpointId> {
        let topic = watcher.status().topic("imu")?;
        topic.publishers.first().map(|it| it.info.id)
    };
    until("the new one", || {
        watcher.update(WATCHDOG).unwrap();
        found(&watcher).is_some()
    });
    let again = publisher(&watcher, "imu");
    assert_ne!(again.info.id, id);
    assert_eq!((published(again), again.rate_hz), (3, None), "it is another publisher");
}

/// Has the other side publish.
fn publish(more: &myelin::Publisher<u64>, subscriber: &mut myelin::Subscriber<u64>, samples: u64) {
    until("the other side", || more.matched() == 1 && subscriber.matched() == 1);
    for sample in 0..samples {
        more.publish_copy(&sample).unwrap();
        assert_eq!(subscriber.receive(WATCHDOG).unwrap().as_deref(), Some(&sample));
    }
}

fn publish_on_request(node: &Node) {
    let imu = node.topic::<u64>("imu").publisher().unwrap();
    let mut more = node.topic::<u64>("more").subscriber().unwrap();
    while let Some(sample) = more.receive(WATCHDOG).unwrap() {
        imu.publish_copy(&sample).unwrap();
    }
}

#[test]
fn the_other_side() {
    let Ok(role) = std::env::var(ROLE) else { return };
    let folder = std::env::var_os(FOLDER).unwrap();
    let node = Node::builder(&role).runtime_dir(folder).open().unwrap();
    match role.as_str() {
        "publish_on_request" => publish_on_request(&node),
        _ => panic!("{role}"),
    }
}
