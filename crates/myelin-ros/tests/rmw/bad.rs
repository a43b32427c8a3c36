//! Faults in ROS 2's daily life: they are reported, and the network is used if there is one.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::iter;
use std::process::Command;

use myelin::{Node as Library, Publisher, Topic};

use crate::host::{ANOTHER_USER, Host, OWN_SHARED_MEMORY};
use crate::node::{Node, Rmw};
use crate::talk::{numbers, on_a_host};

#[test]
fn without_a_shared_dev_shm_the_network_is_the_way() {
    on_a_host("bad::without_a_shared_dev_shm_the_network_is_the_way", || {
        other_way(&OWN_SHARED_MEMORY);
    });
}

#[test]
fn between_two_users_the_network_is_the_way() {
    on_a_host("bad::between_two_users_the_network_is_the_way", || {
        other_way(&[&ANOTHER_USER[..], &["env", "ROS_LOG_DIR=/tmp", "HOME=/tmp"]].concat());
    });
}

/// For a node that is started by a command, and a node without a command.
fn other_way(by: &[&str]) {
    let publisher = Node::start_by(&Host::Same, Rmw::Myelin, by, &["pub", "talker", "String"]);
    let subscriber = Node::start(&Host::Same, Rmw::Myelin, &["sub", "listener", "String"]);
    numbers(&subscriber, "String", 10);
    let watcher = Node::start(&Host::Same, Rmw::Myelin, &["watch", "watcher"]);
    let all = "graph listener,talker,watcher 1";
    watcher.wait_for(all, |line| line == all);
    for node in [watcher, subscriber, publisher] {
        node.end();
    }
}

#[test]
fn nodes_talk_though_dev_shm_is_full() {
    on_a_host("bad::nodes_talk_though_dev_shm_is_full", || {
        let logs = tempfile::tempdir().unwrap();
        let logs = format!("ROS_LOG_DIR={}", logs.path().display());
        let start = |words| Node::start_by(&Host::Same, Rmw::Myelin, &["env", &logs], words);
        // ROS 2's tracing has pages there, and crashes without them.
        let first = start(&["watch", "first"]);
        first.line();
        let mount = Command::new("mount").args(["-o", "remount,size=1m", "/dev/shm"]).status();
        assert!(mount.unwrap().success());
        let mut all = File::create("/dev/shm/all").unwrap();
        let full = iter::repeat_with(|| all.write_all(&[0; 4096])).find_map(Result::err).unwrap();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        // Messages are elsewhere in memory, and sockets take no room.
        let publisher = start(&["pub", "talker", "Image"]);
        let subscriber = start(&["sub", "listener", "Image"]);
        numbers(&subscriber, "Image", 3);
        for node in [subscriber, publisher, first] {
            node.end();
        }
    });
}

#[test]
fn services_of_another_rmw_do_not_match_and_a_warning_says_so() {
    on_a_host("bad::services_of_another_rmw_do_not_match_and_a_warning_says_so", || {
        let server = Node::start(&Host::Same, Rmw::Myelin, &["serve", "server"]);
        let client = Node::start(&Host::Same, Rmw::FastRtps, &["ask", "client", "server"]);
        let said = server.logged("uses another DDS implementation");
        assert!(said.contains("turn"), "{said}");
        assert_eq!(server.line(), "ready server");
        client.kill();
        server.end();
    });
}

#[test]
fn another_type_is_reported() {
    on_a_host("bad::another_type_is_reported", || {
        let publisher = Node::start(&Host::Same, Rmw::Myelin, &["pub", "talker", "String"]);
        let odd = Node::start(&Host::Same, Rmw::Myelin, &["sub", "odd", "Imu:String"]);
        odd.logged("Incompatible type on topic 'String'");
        publisher.end();
        odd.end();
    });
}

#[test]
fn unreadable_attributes_are_reported_once_and_end_no_node() {
    on_a_host("bad::unreadable_attributes_are_reported_once_and_end_no_node", || {
        let watcher = Node::start(&Host::Same, Rmw::Myelin, &["watch", "watcher"]);
        let graph = |line: &str| {
            watcher.wait_for(line, |seen| seen == line);
        };
        graph("graph watcher 0");
        let library = Library::builder("odd").domain(0).open().unwrap();
        let open = |topic: &str, attributes: &[(&str, &[u8])]| -> Publisher<[u8]> {
            let topic = library.topic::<[u8]>(topic).depth(1);
            let with =
                |topic: Topic<[u8]>, (name, value): &(&str, &[u8])| topic.attribute(name, value);
            attributes.iter().fold(topic, with).publisher().unwrap()
        };
        let node = |name: &[u8]| open("ros_nodes", &[("ros.node", name)]);
        let _good = node(b"/good");
        graph("graph good,watcher 0");
        let cut = "x".repeat(900);
        // Latin-1, no name, a name that ROS 2 does not allow, a zero, and one that is too long.
        let names =
            [&b"/caf\xe9"[..], b"", b"watcher", b"/a//b", b"/a b", b"/a\0b", cut.as_bytes()];
        let odd: Vec<_> = names
            .into_iter()
            .map(|name| {
                let odd = node(name);
                assert!(watcher.logged("cannot be read").contains("ros.node"));
                odd
            })
            .collect();
        // The rest of the endpoint counts: it publishes, and has no node.
        let facts = [
            ("ros.depth", &b"-1"[..]),
            ("ros.depth", b""),
            ("ros.depth", b"1 2"),
            ("ros.type_hash", b"\xff\xff"),
            ("ros.topic", b"\n"),
        ];
        let mut with_facts = Vec::new();
        for (name, value) in facts {
            with_facts.push(open("rt/String", &[(name, value), ("ros.node", b"/good")]));
            assert!(watcher.logged("cannot be read").contains(name));
            graph(&format!("graph good,watcher {}", with_facts.len()));
        }
        // No type that there is, no endpoint of a node that there is: these are no error.
        let unknown = [("ros.type_hash", &b"RIHS99_x"[..]), ("ros.sense", b"\xff")];
        with_facts.push(open("rt/String", &unknown));
        graph("graph good,watcher 6");
        let _ghost = open("rt/String", &[("ros.node", b"/ghost")]);
        let _last = node(b"/last");
        graph("graph good,last,watcher 6");
        drop((odd, with_facts));
        graph("graph good,last,watcher 0");
        let again = watcher.log_lines().filter(|line| line.contains("cannot be read"));
        assert_eq!(again.count(), 0);
        watcher.end();
    });
}

#[test]
fn a_missing_interface_is_reported() {
    on_a_host("bad::a_missing_interface_is_reported", || {
        let by = ["env", "MYELIN_INTERFACE=eth9", "ROS_AUTOMATIC_DISCOVERY_RANGE=SUBNET"];
        let node = Node::start_by(&Host::Same, Rmw::Myelin, &by, &["watch", "watcher"]);
        let said = node.logged("interface eth9 does not exist");
        assert!(said.contains("this host has lo (127.0.0.1)"), "{said}");
        node.end();
    });
}
