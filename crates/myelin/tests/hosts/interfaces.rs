//! Network interfaces that come late, go, and come back changed.

use std::time::Duration;

use myelin::{Error, NetworkState, Node, Threads};

use crate::support::{WATCHDOG, soon, until};
use crate::two::{Hosts, LINK, ONE, heard, say};
use crate::{node, nothing_is_left};

/// With only a loopback, and without any interface.
#[test]
fn a_node_works_without_a_network_and_uses_a_new_interface() {
    for loopback in ["up", "down"] {
        let Some(hosts) = Hosts::apart() else { return };
        for host in [&hosts.one, &hosts.other] {
            host.ip(&["link", "set", "lo", loopback]);
        }
        let mut taker = hosts.other.run("work_alone_then_take");
        let mut publisher = hosts.one.run("work_alone_then_publish");
        taker.hears("alone");
        publisher.hears("alone");
        hosts.connect();
        taker.ends();
        publisher.ends();
        nothing_is_left(&hosts);
    }
}

/// A publisher and a subscriber of one process are matched, and a sample comes.
fn work_alone(node: &Node) {
    let topic = node.topic::<u64>("local").reliable(WATCHDOG);
    let (publisher, mut subscriber) = (topic.publisher().unwrap(), topic.subscriber().unwrap());
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&7).unwrap();
    assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), 7);
    let state = node.network();
    let NetworkState::Waiting { reason } = &state else { panic!("{state:?}") };
    assert!(reason.contains("no network interface"), "{reason}");
}

pub(crate) fn work_alone_then_publish() {
    // Two nodes of one domain share the open resources.
    let nodes = ["publisher", "second"].map(node);
    nodes.iter().for_each(work_alone);
    let publishers: Vec<_> = nodes
        .iter()
        .zip(["first", "second"])
        .map(|(node, name)| node.topic::<u64>(name).reliable(WATCHDOG).publisher().unwrap())
        .collect();
    say("alone");
    for publisher in &publishers {
        assert!(publisher.wait_for_match(1, WATCHDOG));
        publisher.publish_copy(&1).unwrap();
    }
    for node in &nodes {
        let state = node.network();
        let NetworkState::Up { interface, address } = &state else { panic!("{state:?}") };
        assert_eq!((interface.as_str(), address.unwrap().to_string().as_str()), (LINK, ONE));
    }
    for publisher in &publishers {
        until("all to have gone", || publisher.matched() == 0);
    }
}

pub(crate) fn work_alone_then_take() {
    let node = node("taker");
    work_alone(&node);
    let mut subscribers = ["first", "second"]
        .map(|name| node.topic::<u64>(name).reliable(WATCHDOG).subscriber().unwrap());
    say("alone");
    for subscriber in &mut subscribers {
        assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), 1);
    }
}

#[test]
fn samples_from_before_the_network_are_history_for_late_subscribers() {
    let Some(hosts) = Hosts::apart() else { return };
    let mut publisher = hosts.one.run("publish_map_early");
    publisher.hears("published");
    hosts.connect();
    hosts.other.run("take_map_late").ends();
    // The same again, on another interface.
    hosts.disconnect();
    hosts.connect();
    hosts.other.run("take_map_late").ends();
    publisher.say("end");
    publisher.ends();
}

pub(crate) fn publish_map_early() {
    let node = node("publisher");
    let topic = node.topic::<[u8]>("map").transient_local(3);
    let publishers = [topic.clone().reliable(WATCHDOG), topic.best_effort()]
        .map(|topic| topic.publisher().unwrap());
    for number in 0..100 {
        for publisher in &publishers {
            publisher.publish_copy(&vec![number; 1 + usize::from(number)]).unwrap();
        }
    }
    say("published");
    heard("end");
}

pub(crate) fn take_map_late() {
    let node = node("taker");
    let mut subscriber =
        node.topic::<[u8]>("map").transient_local(3).reliable(WATCHDOG).subscriber().unwrap();
    for _ in 0..2 * 3 {
        let map = subscriber.receive(WATCHDOG).unwrap().expect("all that is kept");
        let number = map[0];
        assert!((97..100).contains(&number) && *map == vec![number; 1 + usize::from(number)]);
    }
    assert!(subscriber.receive(Duration::from_millis(200)).unwrap().is_none());
}

#[test]
fn a_requested_network_interface_is_waited_for() {
    let Some(hosts) = Hosts::apart() else { return };
    let mut waiter = hosts.one.run("wait_for_the_named");
    waiter.hears("waiting");
    hosts.connect();
    let mut there = hosts.other.run("be_there");
    waiter.ends();
    there.say("end");
    there.ends();
}

pub(crate) fn wait_for_the_named() {
    let open = |interface: &str| Node::builder("waiter").network(true).interface(interface).open();
    for never in ["", "no/name", "a-name-that-is-too-long"] {
        assert!(matches!(open(never), Err(Error::Setting { field: "interface", .. })), "{never}");
    }
    let node = open(LINK).unwrap();
    let publisher = node.topic::<u64>("there").publisher().unwrap();
    let state = node.network();
    let NetworkState::Waiting { reason } = &state else { panic!("{state:?}") };
    assert!(
        reason.contains(LINK) && reason.contains("does not exist; this host has lo ("),
        "{reason}"
    );
    // Another interface is another way into the same domain.
    let other = open("lo").unwrap();
    let error = other.topic::<u64>("there").publisher().unwrap_err().to_string();
    assert!(error.contains("another interface"), "{error}");
    say("waiting");
    assert!(publisher.wait_for_match(1, WATCHDOG));
}

pub(crate) fn be_there() {
    let node = node("there");
    let _subscriber = node.topic::<u64>("there").subscriber().unwrap();
    heard("end");
}

#[test]
fn a_returning_interface_is_used_again_with_a_new_address() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_for_long");
    let mut publisher = hosts.one.run("publish_for_long");
    let mut flows = || {
        taker.say("on");
        taker.hears("taken");
    };
    flows();
    // Another address, as DHCP gives it; then the address and the interface go for a while.
    hosts.one.address("del", ONE);
    hosts.one.address("add", "10.77.0.9");
    flows();
    hosts.other.address("del", "10.77.0.2");
    hosts.other.address("add", "10.77.0.2");
    flows();
    hosts.disconnect();
    hosts.connect();
    flows();
    // A cut that is longer than the lease.
    hosts.link(false);
    taker.say("missed?");
    taker.hears("missed");
    hosts.link(true);
    taker.say("on");
    taker.hears("taken");
    taker.say("end");
    taker.ends();
    publisher.say("end");
    publisher.ends();
    nothing_is_left(&hosts);
}

pub(crate) fn publish_for_long() {
    let node = node("publisher");
    let publisher = node.topic::<u64>("stream").depth(8).reliable(WATCHDOG).publisher().unwrap();
    let end = std::thread::spawn(|| heard("end"));
    for number in 0.. {
        publisher.publish_copy(&number).unwrap();
        std::thread::sleep(Duration::from_millis(5));
        if end.is_finished() {
            break;
        }
    }
    // Every interface that went has ended its matches.
    let events = publisher.events();
    assert!(crate::unmatched(&events) >= 3, "{events:?}");
    drop((publisher, node));
    // Nothing of CycloneDDS is left, though its interfaces have gone.
    soon("its threads to end", || threads_of_cyclonedds().is_empty());
}

/// The names of CycloneDDS's threads, including those left over.
fn threads_of_cyclonedds() -> Vec<String> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    let names =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("comm")).ok());
    let is_its = |name: &String| {
        let name = name.trim();
        name.starts_with("recv") || matches!(name, "tev" | "gc" | "myelin-close")
    };
    names.filter(is_its).collect()
}

pub(crate) fn take_for_long() {
    let node = node("taker");
    let mut subscriber =
        node.topic::<u64>("stream").depth(8).reliable(WATCHDOG).subscriber().unwrap();
    let mut said = String::new();
    loop {
        said.clear();
        std::io::stdin().read_line(&mut said).unwrap();
        if said.trim() == "end" {
            return;
        }
        if said.trim() == "missed?" {
            soon("the publisher to be missed", || subscriber.matched() == 0);
            say("missed");
            continue;
        }
        // Samples taken before the interface went do not count.
        while subscriber.take().unwrap().is_some() {}
        let _ = subscriber.events();
        let mut newest = *subscriber.receive(WATCHDOG).unwrap().expect("it goes on");
        for _ in 0..100 {
            let next = *subscriber.receive(WATCHDOG).unwrap().expect("it goes on");
            assert!(next > newest);
            newest = next;
        }
        say("taken");
    }
}

#[test]
fn network_threads_have_the_settings_of_the_node() {
    let Some(hosts) = Hosts::new() else { return };
    hosts.one.run("run_on_one_cpu").ends();
}

pub(crate) fn run_on_one_cpu() {
    let cpus = rustix::thread::sched_getaffinity(None).unwrap();
    let cpu = (0..rustix::thread::CpuSet::MAX_CPU).rfind(|cpu| cpus.is_set(*cpu)).unwrap();
    let threads = Threads { name: "robot".to_owned(), cpus: vec![cpu], ..Threads::default() };
    let node = Node::builder("robot").network(true).threads(threads).open().unwrap();
    let _publisher = node.topic::<u64>("count").publisher().unwrap();
    // Each thread sets its name when it begins to run.
    for name in ["robot-node", "robot-network", "recv", "recvUC", "dq.builtins", "tev", "gc"] {
        until(name, || threads_and_cpus().contains(&(name.to_owned(), cpu.to_string())));
    }
}

fn threads_and_cpus() -> Vec<(String, String)> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap();
    // One may have ended meanwhile.
    let statuses =
        tasks.filter_map(|task| std::fs::read_to_string(task.ok()?.path().join("status")).ok());
    let field = |status: &str, name: &str| {
        let line = status.lines().find_map(|line| line.strip_prefix(name));
        line.expect("the kernel tells it").trim().to_owned()
    };
    statuses.map(|status| (field(&status, "Name:"), field(&status, "Cpus_allowed_list:"))).collect()
}
