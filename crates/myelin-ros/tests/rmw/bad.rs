//! Faults in ROS 2's daily life: they are reported, and the network is used if there is one.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::iter;
use std::process::Command;

use myelin::{Node as Library, Publisher};

use crate::host::{ANOTHER_USER, Host, OWN_SHARED_MEMORY};
use crate::node::{Node, Rmw, WATCHDOG};
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

/// A process's announcement of its nodes, as in `ros_graph`: its version, then its gid, its
/// enclave, the number of nodes, and their names.
fn told(version: u32, gid: u8, nodes: u32, name: &[u8]) -> Vec<u8> {
    let text = |text: &[u8]| [&(text.len() as u32 + 1).to_le_bytes(), text, &[0]].concat();
    let mut bytes = vec![0, 1, 0, 0];
    bytes.extend(version.to_le_bytes());
    bytes.extend([gid; 16]);
    for part in [text(b"/"), nodes.to_le_bytes().to_vec(), text(b"/"), text(name)] {
        // Numbers lie at multiples of their size, counted from behind the first four bytes.
        bytes.resize(bytes.len().next_multiple_of(4), 0);
        bytes.extend(part);
    }
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes.extend([0; 4]); // no endpoints
    bytes
}

#[test]
fn an_unreadable_message_is_reported_once_and_ends_no_node() {
    on_a_host("bad::an_unreadable_message_is_reported_once_and_ends_no_node", || {
        let watcher = Node::start(&Host::Same, Rmw::Myelin, &["watch", "watcher"]);
        watcher.wait_for("itself", |line| line == "graph watcher 0");
        let library = Library::builder("odd").domain(0).open().unwrap();
        let open = || {
            let topic = library.topic::<[u8]>("ros_graph").depth(1);
            let publisher: Publisher<[u8]> = topic.publisher().unwrap();
            assert!(publisher.wait_for_match(1, WATCHDOG));
            publisher
        };
        let publishers: Vec<_> = (0..4).map(|_| open()).collect();
        let [good, other_version, odd_name, large] = &publishers[..] else { unreachable!() };
        let graph = |line: &str| {
            watcher.wait_for(line, |seen| seen == line);
        };
        good.publish_copy(&told(1, 1, 1, b"good")).unwrap();
        graph("graph good,watcher 0");
        other_version.publish_copy(&told(9, 2, 1, b"other")).unwrap();
        assert!(watcher.logged("cannot be read").contains("another version"));
        // Latin-1.
        odd_name.publish_copy(&told(1, 3, 1, b"caf\xe9")).unwrap();
        assert!(watcher.logged("cannot be read").contains("not UTF-8"));
        // A message that claims more nodes than it has room for: each takes more memory than it has
        // bytes.
        let mut bytes = told(1, 4, 12_000_000, b"");
        bytes.resize(150_000_000, 0);
        large.publish_copy(&bytes).unwrap();
        assert!(watcher.logged("cannot be read").contains("too large"));
        // One message for each of them.
        other_version.publish_copy(&told(9, 2, 1, b"other")).unwrap();
        odd_name.publish_copy(&told(1, 3, 1, b"caf\xe9")).unwrap();
        bytes.truncate(12_000_000);
        bytes[36..40].copy_from_slice(&900_000_u32.to_le_bytes());
        large.publish_copy(&bytes).unwrap();
        good.publish_copy(&told(1, 1, 1, b"better")).unwrap();
        graph("graph better,watcher 0");
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
