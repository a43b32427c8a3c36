//! Two subnets with a router between them: no multicast, so hosts are found by their addresses.

use std::time::Duration;

use crate::support::WATCHDOG;
use crate::two::{Hosts, ONE, ROUTED_OTHER, heard, say};
use crate::{node, nothing_is_left, unmatched};

/// The hosts find each other if both name each other, and if only the other host names the first,
/// which names itself to be at the ports where it is looked for.
#[test]
fn hosts_without_multicast_find_each_other_by_their_addresses() {
    let Some((hosts, _router)) = Hosts::routed() else { return };
    for peers_of_one in [ROUTED_OTHER, ONE] {
        let mut taker = hosts.one.run_with_peers("take_and_stay", peers_of_one);
        let mut publisher = hosts.other.run_with_peers("publish_and_stay", ONE);
        taker.hears("taken");
        publisher.hears("stayed");
        taker.hears("stayed");
        for mut process in [taker, publisher] {
            process.say("end");
            process.ends();
        }
        nothing_is_left(&hosts);
    }
}

pub(crate) fn publish_and_stay() {
    let node = node("publisher");
    let publisher =
        node.topic::<u64>("map").transient_local(1).reliable(WATCHDOG).publisher().unwrap();
    publisher.publish_copy(&7).unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    // Nothing is published for more than two leases.
    std::thread::sleep(LEASES);
    assert_eq!(unmatched(&publisher.events()), 0);
    say("stayed");
    heard("end");
}

pub(crate) fn take_and_stay() {
    let node = node("taker");
    let topic = node.topic::<u64>("map").transient_local(1).reliable(WATCHDOG);
    let mut subscriber = topic.subscriber().unwrap();
    assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), 7);
    say("taken");
    assert!(subscriber.receive(LEASES).unwrap().is_none());
    assert_eq!(unmatched(&subscriber.events()), 0);
    say("stayed");
    heard("end");
}

const LEASES: Duration = Duration::from_millis(2_500);
