//! Cut links, killed processes, vanished hosts, children of `fork`.

use std::time::{Duration, Instant};

use myelin::{Error, Event, Node, Topic};

use crate::delivery::{all_is_taken_once, both, take_numbers};
use crate::support::{WATCHDOG, soon, until};
use crate::two::{Hosts, heard, say};
use crate::{node, unmatched};

#[test]
fn a_cut_of_five_seconds_loses_nothing_within_the_depth() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_through_a_cut");
    taker.hears("ready");
    let mut publisher = hosts.one.run("publish_through_a_cut");
    publisher.hears("under way");
    hosts.link(false);
    std::thread::sleep(Duration::from_secs(5));
    hosts.link(true);
    publisher.say("mended");
    taker.ends();
    publisher.ends();
}

/// A node that considers no other dead during a cut.
fn patient(name: &str) -> Node {
    Node::builder(name).network(true).lease(WATCHDOG).open().unwrap()
}

fn stream(node: &Node) -> Topic<[u64]> {
    node.topic("stream").depth(4_000).reliable(Duration::from_secs(1))
}

/// At 100 Hz until the test has mended the link, then the last one.
pub(crate) fn publish_through_a_cut() {
    let node = patient("publisher");
    let publisher = stream(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let mended = std::thread::spawn(|| heard("mended"));
    let begin = Instant::now();
    for number in 0.. {
        publisher.publish_copy(&[number; 500]).unwrap();
        if number == 50 {
            say("under way");
        }
        if mended.is_finished() {
            break;
        }
        // As many as are due, however late this thread is woken.
        std::thread::sleep((PERIOD * number as u32).saturating_sub(begin.elapsed()));
    }
    publisher.publish_copy(&[]).unwrap();
    until("all to have gone", || publisher.matched() == 0);
}

const PERIOD: Duration = Duration::from_millis(10);

pub(crate) fn take_through_a_cut() {
    let node = patient("taker");
    let mut subscriber = stream(&node).subscriber().unwrap();
    say("ready");
    let mut number = 0;
    while let Some(sample) = subscriber.receive(WATCHDOG).unwrap() {
        if sample.is_empty() {
            assert!(number > 150, "there was a stream during the cut: {number}");
            assert_eq!(subscriber.lost(), 0);
            return;
        }
        assert!(sample.len() == 500 && sample.iter().all(|each| *each == number), "{number}");
        number += 1;
    }
    panic!("nothing came after {number}");
}

#[test]
fn a_subscriber_continues_with_the_publisher_after_a_kill() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("outlive_a_publisher");
    taker.hears("ready");
    let first = hosts.one.run("publish_until_killed");
    taker.hears("heard");
    first.kill();
    let second = hosts.one.run("publish_until_killed");
    taker.hears("heard again");
    second.kill();
    taker.ends();
}

pub(crate) fn publish_until_killed() {
    let node = node("publisher");
    let publisher = node.topic::<u64>("alive").reliable(WATCHDOG).publisher().unwrap();
    for number in 0.. {
        publisher.publish_copy(&number).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn outlive_a_publisher() {
    let node = node("taker");
    let mut subscriber = node.topic::<u64>("alive").reliable(WATCHDOG).subscriber().unwrap();
    say("ready");
    let first = subscriber.receive(WATCHDOG).unwrap().unwrap().publisher();
    say("heard");
    let second = loop {
        let publisher = subscriber.receive(WATCHDOG).unwrap().unwrap().publisher();
        if publisher != first {
            break publisher;
        }
    };
    say("heard again");
    soon("both to be missed", || subscriber.matched() == 0);
    let events = subscriber.events();
    for endpoint in [first, second] {
        assert!(events.contains(&Event::Matched { endpoint, pid: 0 }));
        assert!(events.contains(&Event::Unmatched { endpoint, pid: 0, died: false }));
    }
}

/// It has room for one publisher, and keeps the last image of the first camera.
#[test]
fn a_subscriber_with_a_held_sample_gets_samples_of_a_restarted_publisher() {
    let Some(hosts) = Hosts::new() else { return };
    let mut viewer = hosts.other.run("view");
    viewer.hears("ready");
    let first = hosts.one.run("film");
    viewer.hears("holds an image");
    first.kill();
    let second = hosts.one.run("film");
    viewer.ends();
    second.kill();
}

fn film_topic(node: &Node) -> Topic<[u8]> {
    node.topic("film")
}

pub(crate) fn film() {
    let node = node("camera");
    let publisher = film_topic(&node).publisher().unwrap();
    loop {
        publisher.publish_copy(&[7; 1_000]).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
}

pub(crate) fn view() {
    let node = node("viewer");
    let builder = film_topic(&node).subscriber_builder().publishers_max(1);
    let mut viewer = builder.open().unwrap();
    say("ready");
    let image = viewer.receive(WATCHDOG).unwrap().unwrap();
    say("holds an image");
    until("the next camera's image", || {
        viewer.take().unwrap().is_some_and(|next| next.publisher() != image.publisher())
    });
    assert!(image.iter().all(|byte| *byte == 7));
}

#[test]
fn a_vanished_host_is_reported_and_blocks_no_publisher() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("vanish");
    taker.hears("ready");
    let mut publisher = hosts.one.run("publish_to_the_vanished");
    taker.hears("heard");
    hosts.link(false);
    taker.kill();
    publisher.say("vanished");
    publisher.ends();
}

/// Together with its only interface.
#[test]
fn a_host_that_vanishes_with_its_link_is_reported() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("vanish");
    taker.hears("ready");
    let mut publisher = hosts.one.run("publish_to_the_vanished_link");
    taker.hears("heard");
    hosts.disconnect();
    taker.kill();
    publisher.say("vanished");
    publisher.ends();
}

pub(crate) fn publish_to_the_vanished_link() {
    let node = node("publisher");
    let limit = Duration::from_millis(500);
    let publisher = node.topic::<u64>("gone").depth(4).reliable(limit).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&0).unwrap();
    heard("vanished");
    soon("the host to be missed", || publisher.matched() == 0);
    assert_eq!(unmatched(&publisher.events()), 1);
    for number in 0..100 {
        publisher.publish_copy(&number).unwrap();
    }
}

pub(crate) fn publish_to_the_vanished() {
    let node = node("publisher");
    let limit = Duration::from_millis(500);
    let publisher = node.topic::<u64>("gone").depth(4).reliable_or_fail(limit).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&0).unwrap();
    heard("vanished");
    let mut timed_out = 0;
    soon("the host to be missed", || {
        let begin = Instant::now();
        match publisher.publish_copy(&1) {
            Ok(_) => {}
            Err(Error::ReliableTimeout { waited, .. }) => {
                assert!(waited == limit && begin.elapsed() >= limit);
                timed_out += 1;
            }
            Err(error) => panic!("{error}"),
        }
        publisher.matched() == 0
    });
    assert!(timed_out > 0, "it was full before");
    assert_eq!(unmatched(&publisher.events()), 1);
    publisher.publish_copy(&2).unwrap();
}

pub(crate) fn vanish() {
    let node = node("taker");
    let mut subscriber =
        node.topic::<u64>("gone").depth(4).reliable(WATCHDOG).subscriber().unwrap();
    say("ready");
    subscriber.receive(WATCHDOG).unwrap().unwrap();
    say("heard");
    heard("never");
}

#[test]
fn a_forked_child_closes_its_network_and_the_parent_keeps_it() {
    let Some(hosts) = Hosts::new() else { return };
    let mut forked = hosts.one.run("fork_and_go_on");
    forked.hears("forked");
    let taker = hosts.other.run("take_both");
    all_is_taken_once(hosts.one.run("publish_both"), [forked, taker]);
}

/// The second of the processes that take both.
pub(crate) fn fork_and_go_on() {
    let node = node("forks");
    let ends = both(&node).map(|topic| (topic.publisher().unwrap(), topic.subscriber().unwrap()));
    // SAFETY: the child drops inherited objects, and `_exit`s.
    let child = unsafe { libc::fork() };
    if child == 0 {
        let [(first, _), _] = &ends;
        let forked = matches!(first.publish_copy(&[1]), Err(Error::Forked));
        drop((ends, node));
        // SAFETY: it ends the child.
        unsafe { libc::_exit(i32::from(!forked)) };
    }
    let mut status = -1;
    // SAFETY: the pointer is valid.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0, "the child has ended well");
    let [(first, subscriber), (second, other)] = ends;
    drop((first, second));
    say("forked");
    take_numbers([subscriber, other]);
}
