//! Topics, services, parameters, actions and the graph: Myelin with Myelin and with another RMW, on one host
//! and on two.

use crate::host::{Host, on_own_host, takes_no_signals};
use crate::library::library;
use crate::node::{ANYWHERE, Node, Rmw, WATCHDOG};

#[test]
fn topics_on_one_host() {
    on_a_host("talk::topics_on_one_host", || topics(&Host::Same));
}

#[test]
fn topics_between_two_hosts() {
    on_a_host("talk::topics_between_two_hosts", || topics(&Host::other()));
}

#[test]
fn services_parameters_and_actions() {
    on_a_host("talk::services_parameters_and_actions", || {
        for host in [Host::Same, Host::other()] {
            let by = range(&host);
            let server = Node::start_by(&host, Rmw::Myelin, by, &["serve", "server"]);
            assert_eq!(server.line(), "ready server");
            let words = ["ask", "client", "server"];
            let client = Node::start_by(&Host::Same, Rmw::Myelin, by, &words);
            assert_eq!(client.line(), "service 20");
            assert_eq!(client.line(), "parameter 2.5");
            assert!(client.line().starts_with("action "));
            client.end();
            server.end();
        }
    });
}

/// The first ones are used immediately after they are made, and some clients, too.
#[test]
fn samples_of_hundreds_of_publishers_arrive() {
    on_a_host("talk::samples_of_hundreds_of_publishers_arrive", || {
        let server = Node::start(&Host::Same, Rmw::Myelin, &["count", "server"]);
        let client = Node::start(&Host::Same, Rmw::Myelin, &["use", "client", "260"]);
        let line = client.line();
        let missing: Vec<u32> = line.split(' ').skip(1).map(|word| word.parse().unwrap()).collect();
        // On a busy machine a wait may have been too short.
        assert!(missing.len() == 2 && missing.iter().all(|missing| *missing <= 3), "{line}");
        client.end();
        server.end();
    });
}

#[test]
fn nothing_leaves_the_host_unless_it_is_asked_for() {
    on_a_host("talk::nothing_leaves_the_host_unless_it_is_asked_for", || {
        let off = ["env", "ROS_AUTOMATIC_DISCOVERY_RANGE=OFF"];
        let start = |words| Node::start_by(&Host::Same, Rmw::Myelin, &off, words);
        let publisher = start(&["pub", "talker", "String"]);
        let subscriber = start(&["sub", "listener", "String"]);
        numbers(&subscriber, "String", 10);
        let sockets = std::fs::read_to_string("/proc/net/udp").unwrap();
        assert_eq!(sockets.lines().count(), 1, "the headline alone: {sockets}");
        takes_no_signals(subscriber.process(), "rmw_myelin");
        subscriber.end();
        publisher.end();
    });
}

/// A program of the library, without ROS 2 and without these types, reads the fields of messages by
/// the definitions that their nodes announce.
#[test]
fn a_program_that_knows_no_message_reads_all_of_them() {
    on_a_host("talk::a_program_that_knows_no_message_reads_all_of_them", || {
        let kinds = ["String", "Image", "PointCloud2", "Imu"];
        let talker =
            Node::start(&Host::Same, Rmw::Myelin, &[&["pub", "talker"][..], &kinds].concat());
        let node = myelin::Node::new("reader").unwrap();
        let mut found = node.discover("rt/*");
        let mut topics = std::collections::BTreeSet::new();
        while !kinds.iter().all(|kind| topics.contains(&format!("rt/{kind}"))) {
            std::thread::yield_now();
            for change in found.changes().unwrap() {
                let myelin::Change::Found(endpoint) = change else { panic!("{change:?}") };
                topics.insert(endpoint.topic);
            }
        }
        let read = |kind: &str| {
            let topic = node.any_topic(&format!("rt/{kind}"), WATCHDOG).unwrap();
            assert!(topic.problem().is_none(), "{:?}", topic.problem());
            let mut subscriber = topic.topic().subscriber().unwrap();
            let sample = subscriber.receive(WATCHDOG).unwrap().expect("it is published");
            let message = topic.value(&sample).unwrap();
            (message.to_json(8).unwrap(), topic.ty().to_string())
        };
        let (text, _) = read("String");
        assert!(text.starts_with("{\"data\": \""), "{text}");
        let (image, _) = read("Image");
        assert!(image.contains("\"encoding\": \"rgb8\"") && image.contains("\"stamp\""), "{image}");
        let (cloud, _) = read("PointCloud2");
        assert!(cloud.contains("\"point_step\"") && cloud.contains("\"fields\": [{"), "{cloud}");
        let (imu, _) = read("Imu");
        assert!(imu.contains("\"orientation_covariance\": ["), "{imu}");
        talker.end();
    });
}

#[test]
fn contexts_that_are_shut_down_leave_nothing_behind() {
    on_a_host("talk::contexts_that_are_shut_down_leave_nothing_behind", || {
        let node = Node::start(&Host::Same, Rmw::Myelin, &["contexts", "many", "8"]);
        assert_eq!(node.line(), "contexts 8");
        node.end();
    });
}

pub fn on_a_host(test: &str, body: impl FnOnce()) {
    if library().is_some() {
        on_own_host(test, body);
    }
}

/// Between a host and this one: a string and an image of 4.6 MB, and the graph.
fn topics(other: &Host) {
    let pairs =
        [(Rmw::Myelin, Rmw::Myelin), (Rmw::Myelin, Rmw::FastRtps), (Rmw::FastRtps, Rmw::Myelin)];
    for (here, there) in pairs {
        println!("{here:?} to {there:?}");
        let near = Host::Same;
        let start = |host, rmw, words| Node::start_by(host, rmw, range(other), words);
        let publisher = start(&near, here, &["pub", "talker", "String", "Image"]);
        let subscriber = start(other, there, &["sub", "listener", "String", "Image"]);
        numbers(&subscriber, "String", 10);
        numbers(&subscriber, "Image", 4);
        let watcher = start(&near, here, &["watch", "watcher"]);
        let all = "graph listener,talker,watcher 1";
        watcher.wait_for(all, |line| line == all);
        subscriber.end();
        let left = "graph talker,watcher 1";
        watcher.wait_for(left, |line| line == left);
        publisher.end();
        watcher.end();
    }
}

/// The setting by which nodes find those of a host.
fn range(other: &Host) -> &'static [&'static str] {
    match other {
        Host::Same => &[],
        Host::Other(_) => ANYWHERE,
    }
}

/// So many messages of a type come, whole and once each.
pub fn numbers(subscriber: &Node, kind: &str, count: usize) {
    let mut numbers: Vec<u32> = Vec::new();
    while numbers.len() < count {
        let line = subscriber.wait_for(kind, |line| line.contains(kind));
        let number = line.strip_prefix(kind).unwrap_or_else(|| panic!("{line}"));
        numbers.push(number.trim().parse().unwrap());
    }
    assert!(numbers.is_sorted_by(|one, next| one < next), "{kind}: {numbers:?}");
}
