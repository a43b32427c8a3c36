//! What the API promises across hosts, by real CycloneDDS between two network namespaces. Each role
//! is this executable again; the test speaks with it through pipes.

mod support;
#[path = "support/hosts.rs"]
mod two;

use std::time::Duration;

use myelin::{Error, Event, Node, Publisher, Sample, Subscriber, Topic};
use support::{WATCHDOG, until};
use two::{Hosts, heard, say};

#[test]
fn the_other_side() {
    let Some(role) = two::role() else { return };
    match role.as_str() {
        "be_a_host" => two::be_a_host(),
        "publish_numbers" => publish_numbers(),
        "take_numbers" => take_numbers(),
        _ => panic!("{role}"),
    }
}

fn node(name: &str) -> Node {
    Node::builder(name).network(true).open().unwrap()
}

#[test]
fn a_sample_comes_once_by_shared_memory_and_once_by_dds() {
    let Some(hosts) = Hosts::new() else { return };
    let mut takers = [hosts.one.run("take_numbers"), hosts.other.run("take_numbers")];
    takers.iter_mut().for_each(|taker| taker.hears("ready"));
    let publisher = hosts.one.run("publish_numbers");
    takers.into_iter().for_each(two::Process::ends);
    publisher.ends();
    assert!(hosts.one.leftovers().is_empty() && hosts.other.leftovers().is_empty());
}

fn numbers(node: &Node) -> Topic<[u64]> {
    node.topic("numbers").depth(64).reliable(WATCHDOG)
}

fn publish_numbers() {
    let node = node("publisher");
    let publisher = numbers(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(2, WATCHDOG));
    for number in 0..NUMBERS {
        // Small and large: a copy in the ring, and a slot.
        let len = if number % 3 == 0 { 2_000 } else { 1 };
        let mut loan = publisher.loan(len).unwrap();
        loan.fill(number);
        loan.publish().unwrap();
    }
    until("all to have gone", || publisher.matched() == 0);
}

fn take_numbers() {
    let node = node("taker");
    let mut subscriber = numbers(&node).subscriber().unwrap();
    say("ready");
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    for number in 0..NUMBERS {
        let sample = subscriber.receive(WATCHDOG).unwrap().expect("every number comes");
        let len = if number % 3 == 0 { 2_000 } else { 1 };
        assert!(sample.len() == len && sample.iter().all(|each| *each == number), "{number}");
    }
    std::thread::sleep(Duration::from_millis(200));
    assert!(subscriber.take().unwrap().is_none(), "and none twice");
    assert_eq!((subscriber.lost(), subscriber.matched()), (0, 1));
}

const NUMBERS: u64 = 1_000;
