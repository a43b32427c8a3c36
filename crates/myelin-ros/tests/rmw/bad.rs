//! What goes wrong in ROS 2's daily life: it is said, and the network is the way where there is one.

use std::fs::File;
use std::io::{ErrorKind, Write};
use std::iter;
use std::process::Command;

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

/// Of a node that is started by a command, and one that is not.
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
        // ROS 2's tracing has pages there, and dies without them.
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
fn services_of_another_rmw_are_not_met_and_that_is_said() {
    on_a_host("bad::services_of_another_rmw_are_not_met_and_that_is_said", || {
        let server = Node::start(&Host::Same, Rmw::Myelin, &["serve", "server"]);
        let client = Node::start(&Host::Same, Rmw::FastRtps, &["ask", "client", "server"]);
        let said = server.logged("is of another DDS implementation");
        assert!(said.contains("turn"), "{said}");
        assert_eq!(server.line(), "ready server");
        client.kill();
        server.end();
    });
}

#[test]
fn another_type_is_said() {
    on_a_host("bad::another_type_is_said", || {
        let publisher = Node::start(&Host::Same, Rmw::Myelin, &["pub", "talker", "String"]);
        let odd = Node::start(&Host::Same, Rmw::Myelin, &["sub", "odd", "Imu:String"]);
        odd.logged("Incompatible type on topic 'String'");
        publisher.end();
        odd.end();
    });
}
