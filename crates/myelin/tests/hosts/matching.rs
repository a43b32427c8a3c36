//! Which endpoints find each other: by domain, type and quality of service.

use std::time::Duration;

use myelin::{
    EndpointId, EndpointInfo, Event, Location, MatchState, Matching, Node, PeerInfo, Publisher,
    Reliability, Setting, Subscriber, Topic,
};

use crate::support::{WATCHDOG, until};
use crate::two::{Hosts, heard, say};
use crate::{node, run};

#[test]
fn endpoints_of_different_domains_do_not_match() {
    let Some(hosts) = Hosts::new() else { return };
    let mut publisher = hosts.one.run("publish_elsewhere");
    publisher.hears("ready");
    hosts.other.run("meet_nobody").ends();
    publisher.say("end");
    publisher.ends();
}

#[test]
fn a_host_only_publisher_matches_only_on_its_host() {
    let Some(hosts) = Hosts::new() else { return };
    let mut publisher = hosts.one.run("publish_on_its_host");
    publisher.hears("ready");
    hosts.other.run("miss_what_stays_there").ends();
    publisher.say("end");
    publisher.ends();
}

pub(crate) fn publish_on_its_host() {
    let node = node("publisher");
    let builder = node.topic::<u64>("here").publisher_builder();
    let here = builder.this_host_only(true).open().unwrap();
    let everywhere = node.topic::<u64>("everywhere").publisher().unwrap();
    let mut subscriber = node.topic::<u64>("here").subscriber().unwrap();
    here.publish_copy(&7).unwrap();
    assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), 7);
    say("ready");
    assert!(everywhere.wait_for_match(1, WATCHDOG));
    heard("end");
    assert_eq!(here.matched(), 1, "its neighbour");
}

pub(crate) fn miss_what_stays_there() {
    let node = node("taker");
    let here = node.topic::<u64>("here").subscriber().unwrap();
    let everywhere = node.topic::<u64>("everywhere").subscriber().unwrap();
    assert!(everywhere.wait_for_match(1, WATCHDOG), "that host is found");
    assert!(!here.wait_for_match(1, Duration::from_millis(500)), "but for its neighbour");
}

pub(crate) fn publish_elsewhere() {
    let node = |domain| Node::builder("publisher").network(true).domain(domain).open().unwrap();
    let (here, there) = (node(0), node(1));
    let secret = here.topic::<u64>("secret").publisher().unwrap();
    let _known = there.topic::<u64>("known").publisher().unwrap();
    say("ready");
    heard("end");
    assert_eq!(secret.matched(), 0);
}

pub(crate) fn meet_nobody() {
    let node = Node::builder("taker").network(true).domain(1).open().unwrap();
    let secret = node.topic::<u64>("secret").subscriber().unwrap();
    let known = node.topic::<u64>("known").subscriber().unwrap();
    assert!(known.wait_for_match(1, WATCHDOG), "that host is found");
    assert!(!secret.wait_for_match(1, Duration::from_secs(1)));
}

#[test]
fn another_type_is_reported_on_both_sides() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_doubles");
    let mut publisher = hosts.one.run("publish_integers");
    taker.hears("told");
    publisher.hears("told");
    for mut side in [taker, publisher] {
        side.say("end");
        side.ends();
    }
}

pub(crate) fn other_type<T: myelin::PlainData>() {
    let node = node("publisher");
    let publisher = node.topic::<T>("mixed").publisher().unwrap();
    told_of_another_type(|| publisher.events(), "f64", "u64");
    assert_eq!(publisher.matched(), 0);
}

pub(crate) fn other_type_taken() {
    let node = node("taker");
    let subscriber = node.topic::<f64>("mixed").reliable(WATCHDOG).subscriber().unwrap();
    told_of_another_type(|| subscriber.events(), "u64", "f64");
    assert_eq!(subscriber.matched(), 0);
}

fn told_of_another_type(events: impl Fn() -> Vec<Event>, theirs: &str, ours: &str) {
    let mut all = Vec::new();
    until("the word of another type", || {
        all.extend(events());
        !all.is_empty()
    });
    let [Event::Incompatible { endpoint, pid: 0, mismatch: Some(mismatch), reason }] = &all[..]
    else {
        panic!("{all:?}")
    };
    assert_eq!(mismatch.setting, Setting::Type);
    assert_ne!(*endpoint, 0);
    assert!(reason.contains(theirs) && reason.contains(ours), "{reason}");
    say("told");
    heard("end");
    assert!(events().is_empty(), "once");
}

#[test]
fn endpoints_of_other_hosts_and_their_matches_are_in_the_graph() {
    let Some(hosts) = Hosts::new() else { return };
    let mut publisher = hosts.one.run("publish_shown");
    let mut taker = hosts.other.run("take_shown");
    for side in [&mut publisher, &mut taker] {
        side.hears("seen");
    }
    for mut side in [publisher, taker] {
        side.say("end");
        side.ends();
    }
}

pub(crate) fn publish_shown() {
    let node = Node::builder("publisher").network(true).namespace("/one");
    let node = node.attribute("firmware", b"2.4").open().unwrap();
    let builder =
        node.topic::<u64>("shown/é_2").transient_local(4).depth(6).attribute("frame", b"map");
    let publisher = builder.publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let (taker, _) = see_the_other_side(&node, publisher.id(), "taker");
    assert!(!taker.is_publisher && taker.reliable && !taker.qos.resends);
    assert_eq!(taker.qos.deadline, Some(WATCHDOG));
}

pub(crate) fn take_shown() {
    let node = node("taker");
    let topic = node.topic::<u64>("shown/é_2").reliable(WATCHDOG);
    let subscriber = topic.deadline(WATCHDOG).subscriber().unwrap();
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    let (publisher, its_node) = see_the_other_side(&node, subscriber.id(), "publisher");
    assert!(publisher.is_publisher && publisher.qos.reliability == Reliability::BestEffort);
    assert_eq!((publisher.depth, publisher.transient_local), (6, 4));
    assert_eq!(publisher.attributes.get("frame"), Some(&b"map"[..]));
    assert_eq!(its_node.record.namespace, "/one");
    assert_eq!(its_node.record.attributes.get("firmware"), Some(&b"2.4"[..]));
}

/// The endpoint of the other side and its node, as the graph shows them.
fn see_the_other_side(node: &Node, own: EndpointId, name: &str) -> (EndpointInfo, PeerInfo) {
    let graph = node.graph_within(WATCHDOG).unwrap();
    assert!(graph.silent.is_empty(), "nobody else is on this host");
    let [match_with] = &graph.matches[..] else { panic!("{graph:?}") };
    assert_eq!((match_with.endpoint, &match_with.state), (own, &MatchState::Matched));
    let [here, there] = &graph.nodes[..] else { panic!("{graph:?}") };
    let (here, there) =
        if here.location == Location::ThisHost { (here, there) } else { (there, here) };
    let names = (here.name.as_str(), there.name.as_str(), there.record.name.as_str());
    assert_eq!(names, (node.name(), name, name));
    assert!(there.pid != 0 && !there.record.host.is_empty() && !there.record.program.is_empty());
    let [one, other] = &graph.endpoints[..] else { panic!("{graph:?}") };
    let (ours, theirs) = if one.id == own { (one, other) } else { (other, one) };
    assert_eq!((ours.location, theirs.location), (Location::ThisHost, there.location));
    assert_eq!((theirs.id, theirs.node), (match_with.other, there.node));
    assert_eq!((&theirs.topic, &theirs.type_name), (&ours.topic, &ours.type_name));
    assert!(theirs.created_ns > 0 && theirs.type_hash == ours.type_hash);
    let [our_dds, their_dds] = [ours, theirs].map(|it| it.dds.as_ref().unwrap());
    assert_eq!((&our_dds.topic, &our_dds.type_name), (&their_dds.topic, &their_dds.type_name));
    assert!(our_dds.guid != their_dds.guid && their_dds.user_data.is_empty());
    say("seen");
    heard("end");
    (theirs.clone(), there.clone())
}

#[test]
fn a_refusal_has_the_same_typed_reason_on_both_hosts() {
    let Some(hosts) = Hosts::new() else { return };
    let mut publisher = hosts.one.run("publish_less_than_requested");
    let mut taker = hosts.other.run("take_more_than_offered");
    for side in [&mut publisher, &mut taker] {
        side.hears("refused");
    }
    for mut side in [publisher, taker] {
        side.say("end");
        side.ends();
    }
}

/// The topics of the test: one of Myelin only, and one of which DDS decides.
fn strict(node: &Node) -> [Topic<u64>; 2] {
    let topic = |name| node.topic::<u64>(name).matching(Matching::RequestedOffered);
    [topic("strict"), topic("shared").dds_type("test::U64")]
}

pub(crate) fn publish_less_than_requested() {
    let node = node("publisher");
    let publishers = strict(&node).map(|topic| topic.publisher().unwrap());
    let events = publishers.each_ref().map(|it| wait_for_event(|| it.events()));
    refused(&node, events, publishers.each_ref().map(|it| it.id()));
    assert!(publishers.iter().all(|it| it.matched() == 0));
}

pub(crate) fn take_more_than_offered() {
    let node = node("taker");
    let subscribers = strict(&node).map(|topic| topic.transient_local(1).subscriber().unwrap());
    let events = subscribers.each_ref().map(|it| wait_for_event(|| it.events()));
    refused(&node, events, subscribers.each_ref().map(|it| it.id()));
    assert!(subscribers.iter().all(|it| it.matched() == 0));
}

fn wait_for_event(events: impl Fn() -> Vec<Event>) -> Event {
    let mut all = Vec::new();
    until("an event", || {
        all.extend(events());
        !all.is_empty()
    });
    let [event] = &all[..] else { panic!("{all:?}") };
    event.clone()
}

/// Event and graph have the same reason, of the same other endpoint.
fn refused(node: &Node, events: [Event; 2], own: [EndpointId; 2]) {
    let graph = node.graph().unwrap();
    for (event, own) in events.into_iter().zip(own) {
        let Event::Incompatible { endpoint, pid: 0, mismatch: Some(mismatch), reason } = event
        else {
            panic!("{event:?}")
        };
        let told = (mismatch.setting, &*mismatch.offered, &*mismatch.requested);
        assert_eq!(told, (Setting::Durability, "volatile", "transient local"));
        let of_graph = graph.matches.iter().find(|it| it.endpoint == own).expect("it is refused");
        let state = MatchState::Refused { reason, mismatch: Some(mismatch) };
        assert_eq!((of_graph.other, &of_graph.state), (endpoint, &state));
        assert!(graph.endpoints.iter().any(|it| it.id == endpoint && it.id != own));
    }
    say("refused");
    heard("end");
}

#[test]
fn all_combinations_of_settings_match() {
    run("publish_of_every_kind", "take_of_every_kind");
}

/// Every setting of one side.
fn kinds(node: &Node, name: &str) -> [Topic<u64>; 5] {
    let topic = |history| node.topic::<u64>(name).depth(8).transient_local(history);
    let reliable = |history| topic(history).reliable(WATCHDOG);
    [topic(0), topic(4), reliable(0), reliable(4), topic(0).reliable_keep_last()]
}

pub(crate) fn publish_of_every_kind() {
    let node = node("publisher");
    let all: Vec<Publisher<u64>> = (0..5)
        .map(|kind| kinds(&node, &format!("kind/{kind}"))[kind].publisher().unwrap())
        .collect();
    assert!(all.iter().all(|publisher| publisher.wait_for_match(5, WATCHDOG)));
    until("all to have gone", || {
        all.iter().enumerate().for_each(|(kind, publisher)| {
            let _ = publisher.publish_copy(&(kind as u64)).unwrap();
        });
        std::thread::sleep(Duration::from_millis(10));
        all.iter().all(|publisher| publisher.matched() == 0)
    });
}

pub(crate) fn take_of_every_kind() {
    let node = node("taker");
    let waits = |kind: u64| [2, 3].contains(&kind);
    let all: Vec<(u64, bool, Subscriber<u64>)> = (0..5)
        .flat_map(|kind| {
            let topics = (0..).zip(kinds(&node, &format!("kind/{kind}")));
            topics.map(move |(its, topic)| {
                let is_reduced = waits(its) && !waits(kind);
                (kind, is_reduced, topic.subscriber().unwrap())
            })
        })
        .collect();
    say("ready");
    for (kind, is_reduced, mut subscriber) in all {
        assert!(subscriber.wait_for_match(1, WATCHDOG));
        assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), kind);
        assert_eq!(subscriber.matched(), 1);
        let events = subscriber.events();
        let is_told = events.iter().any(|event| matches!(event, Event::QosReduced { .. }));
        assert_eq!(is_told, is_reduced, "publisher of kind {kind}: {events:?}");
    }
}
