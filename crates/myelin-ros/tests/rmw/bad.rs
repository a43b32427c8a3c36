//! What goes wrong in ROS 2's daily life: it is said, and the network is the way where there is one.

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
fn a_full_dev_shm_is_said() {
    on_a_host("bad::a_full_dev_shm_is_said", || {
        let small = [
            "unshare",
            "--mount",
            "sh",
            "-ec",
            r#"mount -o remount,size=2m /dev/shm; exec "$@""#,
            "sh",
        ];
        let publisher =
            Node::start_by(&Host::Same, Rmw::Myelin, &small, &["pub", "talker", "Image"]);
        println!("{}", publisher.logged("shm"));
    });
}
