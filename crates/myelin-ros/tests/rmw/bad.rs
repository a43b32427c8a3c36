//! What goes wrong in ROS 2's daily life: it is said, and the network is the way where there is one.

use std::io::{ErrorKind, Write};
use std::process::Command;

use crate::host::Host;
use crate::node::{Node, Rmw};
use crate::talk::{numbers, on_a_host};

#[test]
fn without_a_shared_dev_shm_the_network_is_the_way() {
    on_a_host("bad::without_a_shared_dev_shm_the_network_is_the_way", || {
        let own = [
            "unshare",
            "--mount",
            "sh",
            "-ec",
            r#"mount -t tmpfs tmpfs /dev/shm; exec "$@""#,
            "sh",
        ];
        other_way(&own);
    });
}

#[test]
fn between_two_users_the_network_is_the_way() {
    on_a_host("bad::between_two_users_the_network_is_the_way", || {
        // Who may read root's folders all the same: that is where the programs are.
        let user = [
            "setpriv",
            "--reuid=65534",
            "--regid=65534",
            "--clear-groups",
            "--inh-caps=-all,+dac_read_search",
            "--ambient-caps=-all,+dac_read_search",
            "env",
            "ROS_LOG_DIR=/tmp",
            "HOME=/tmp",
        ];
        other_way(&user);
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
        Command::new("mount").args(["-o", "remount,size=16m", "/dev/shm"]).status().unwrap();
        // The messages' memory is not there, and the nodes' sockets take no room.
        let mut all = std::fs::File::create("/dev/shm/all").unwrap();
        let full =
            std::iter::repeat_with(|| all.write_all(&[0; 1 << 20])).find_map(Result::err).unwrap();
        assert_eq!(full.kind(), ErrorKind::StorageFull);
        let by = ["env", &logs, "ROS_AUTOMATIC_DISCOVERY_RANGE=OFF"];
        let start = |words| Node::start_by(&Host::Same, Rmw::Myelin, &by, words);
        let publisher = start(&["pub", "talker", "Image"]);
        let subscriber = start(&["sub", "listener", "Image"]);
        numbers(&subscriber, "Image", 3);
        subscriber.end();
        publisher.end();
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
