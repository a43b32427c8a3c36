//! Large samples between nodes, which go by TCP.

use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::time::{Duration, Instant};

use myelin::{Event, Node, Publisher, Subscriber, Topic};
use rustix::net::sockopt;

use crate::support::{WATCHDOG, until};
use crate::two::{Hosts, heard, say};
use crate::{node, nothing_is_left};

#[test]
fn samples_of_all_sizes_come_once_and_in_order() {
    let Some(hosts) = Hosts::new() else { return };
    let mut takers = ["take_mixed"; 2].map(|role| hosts.other.run(role));
    takers.iter_mut().for_each(|taker| taker.hears("ready"));
    let mut publisher = hosts.one.run("publish_mixed");
    publisher.hears("by TCP");
    takers.into_iter().for_each(crate::two::Process::ends);
    publisher.ends();
    nothing_is_left(&hosts);
}

/// Then DDS serves both.
#[test]
fn a_subscriber_without_the_lane_gets_each_sample_beside_one_with_it() {
    let Some(hosts) = Hosts::new() else { return };
    let mut takers =
        ["take_mixed", "take_mixed_without_the_lane"].map(|role| hosts.other.run(role));
    takers.iter_mut().for_each(|taker| taker.hears("ready"));
    let mut publisher = hosts.one.run("publish_mixed");
    publisher.hears("by UDP");
    takers.into_iter().for_each(crate::two::Process::ends);
    publisher.ends();
}

fn mixed(node: &Node) -> [Topic<[u8]>; 2] {
    [
        node.topic("mixed").depth(8).reliable(WATCHDOG),
        node.topic("rt/mixed").depth(8).reliable(WATCHDOG).dds_cdr("test::Mixed"),
    ]
}

pub(crate) fn publish_mixed() {
    let node = node("publisher");
    let publishers = mixed(&node).map(|topic| topic.publisher().unwrap());
    let mut is_by_tcp = true;
    for publisher in &publishers {
        assert!(publisher.wait_for_match(2, WATCHDOG));
        let before = sent_by_tcp();
        // The lane begins with the first large sample, and DDS serves the next ones.
        let mut next = 0;
        while next < MIXED || (next < MIXED_MAX && sent_by_tcp() - before < ENOUGH_BYTES) {
            publish(publisher, next..next + 2);
            next += 2;
        }
        publisher.publish_copy(&[0; LAST_BYTES]).unwrap();
        is_by_tcp &= sent_by_tcp() - before >= ENOUGH_BYTES;
    }
    say(if is_by_tcp { "by TCP" } else { "by UDP" });
    until("all to have gone", || publishers.iter().all(|publisher| publisher.matched() == 0));
}

fn take_mixed_at(node: &Node) {
    let mut subscribers = mixed(node).map(|topic| topic.subscriber().unwrap());
    say("ready");
    for subscriber in &mut subscribers {
        for number in 0.. {
            let found = subscriber.receive(WATCHDOG).unwrap().expect("every sample comes");
            if found.len() == LAST_BYTES {
                break;
            }
            assert!(
                *found == *sample(number),
                "{} instead of {number}, {:?}, {:?}",
                number_of(&found),
                subscriber.events(),
                node.endpoint(subscriber.id()).unwrap().and_then(|it| it.counters)
            );
        }
        assert_eq!(subscriber.lost(), 0);
    }
}

pub(crate) fn take_mixed() {
    take_mixed_at(&node("taker"));
}

pub(crate) fn take_mixed_without_the_lane() {
    take_mixed_at(&Node::builder("taker").network(true).bulk_lane(false).open().unwrap());
}

/// Every second one is large, each is different.
fn sample(number: u64) -> Vec<u8> {
    let bytes = if number.is_multiple_of(2) { LARGE_BYTES } else { 100 };
    let mut sample = [&[0, 1, 0, 0, 0, 0, 0, 0][..], &number.to_le_bytes()].concat();
    sample.resize(bytes, number as u8);
    sample
}

fn number_of(sample: &[u8]) -> u64 {
    u64::from_le_bytes(sample[8..16].try_into().unwrap())
}

fn publish(publisher: &Publisher<[u8]>, numbers: std::ops::Range<u64>) {
    numbers.for_each(|number| _ = publisher.publish_copy(&sample(number)).unwrap());
}

fn take(subscriber: &mut Subscriber<[u8]>, numbers: std::ops::Range<u64>) {
    for number in numbers {
        let found = subscriber.receive(WATCHDOG).unwrap().unwrap_or_else(|| panic!("no {number}"));
        assert!(*found == *sample(number), "{} instead of {number}", number_of(&found));
    }
}

/// How many bytes this host has sent in segments of TCP, at least.
pub(crate) fn sent_by_tcp() -> usize {
    let text = std::fs::read_to_string("/proc/self/net/snmp").unwrap();
    let mut lines = text.lines().filter_map(|line| line.strip_prefix("Tcp: "));
    let (names, values) = (lines.next().unwrap(), lines.next().unwrap());
    let mut pairs = names.split(' ').zip(values.split(' '));
    let (_, segments) = pairs.find(|(name, _)| *name == "OutSegs").unwrap();
    segments.parse::<usize>().unwrap() * SEGMENT_BYTES
}

/// Else they would fill its queue, and commands would stand behind them.
#[test]
fn large_samples_go_no_faster_than_a_slow_cable() {
    let Some(hosts) = Hosts::new() else { return };
    hosts.limit(CABLE_MBIT);
    let mut taker = hosts.other.run("take_at_its_pace");
    taker.hears("ready");
    hosts.one.run("publish_at_the_pace_of_the_cable").ends();
    taker.ends();
}

fn paced(node: &Node) -> Topic<[u8]> {
    node.topic("paced").depth(4).reliable(WATCHDOG)
}

pub(crate) fn publish_at_the_pace_of_the_cable() {
    let node = Node::builder("publisher").network(true).bulk_lane_dscp(DSCP).open().unwrap();
    let publisher = paced(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let mut next = 0;
    let mut publish_next = || {
        publish(&publisher, next..next + 2);
        next += 2;
    };
    let cable = CABLE_MBIT * 125_000;
    // It measures the rate, and tries a faster one from time to time.
    until("a limit", || {
        publish_next();
        connections().iter().any(|socket| (cable / 2..cable).contains(&pace(socket)))
    });
    let marks = connections().iter().map(|it| sockopt::ip_tos(it).unwrap()).collect::<Vec<_>>();
    assert!(marks.iter().all(|mark| *mark == DSCP << 2), "{marks:?}");
    publisher.publish_copy(&[0; LAST_BYTES]).unwrap();
    until("the other side to have gone", || publisher.matched() == 0);
}

pub(crate) fn take_at_its_pace() {
    let node = node("taker");
    let mut subscriber = paced(&node).subscriber().unwrap();
    say("ready");
    for number in 0.. {
        let found = subscriber.receive(WATCHDOG).unwrap().expect("every sample comes");
        if found.len() == LAST_BYTES {
            break;
        }
        assert!(*found == *sample(number), "{} instead of {number}", number_of(&found));
    }
    assert_eq!(subscriber.lost(), 0);
}

/// The limit of a socket, in bytes per second.
fn pace(socket: &OwnedFd) -> u64 {
    let (mut rate, mut size) = (0_u64, size_of::<u64>() as libc::socklen_t);
    let (level, option) = (libc::SOL_SOCKET, libc::SO_MAX_PACING_RATE);
    let result = {
        let rate = (&raw mut rate).cast();
        // SAFETY: the kernel writes an integer of this size.
        unsafe { libc::getsockopt(socket.as_raw_fd(), level, option, rate, &raw mut size) }
    };
    assert_eq!(result, 0);
    rate
}

#[test]
fn what_the_lane_drops_is_counted() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("count_large_losses");
    taker.hears("ready");
    let mut publisher = hosts.one.run("lose_large_samples");
    publisher.hears("on the lane");
    taker.stop();
    publisher.say("stopped");
    publisher.hears("published");
    taker.signal(libc::SIGCONT);
    taker.ends();
    publisher.ends();
}

fn lossy(node: &Node) -> Topic<[u8]> {
    node.topic("lossy").depth(2).best_effort()
}

fn patient(name: &str) -> Node {
    Node::builder(name).network(true).lease(10 * WATCHDOG).open().unwrap()
}

pub(crate) fn lose_large_samples() {
    let node = patient("publisher");
    let publisher = lossy(&node).publisher().unwrap();
    let mut taken = node.topic::<u64>("taken").reliable(WATCHDOG).subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG) && taken.wait_for_match(1, WATCHDOG));
    let mut next = 0;
    let mut publish_next = || {
        publisher.publish_copy(&sample(2 * next)).unwrap();
        next += 1;
        2 * (next - 1)
    };
    until("a sample by the lane", || {
        publish_next();
        taken.receive(Duration::from_millis(20)).unwrap();
        sent_by_tcp() > LARGE_BYTES
    });
    say("on the lane");
    heard("stopped");
    (0..LOSSY).for_each(|_| _ = publish_next());
    say("published");
    // The losses are counted with the next one that comes.
    until("a later sample to arrive", || {
        let last = publish_next();
        let answer = taken.receive(Duration::from_millis(100)).unwrap();
        answer.is_some_and(|answer| *answer + 10 >= last)
    });
    drop(publisher);
    until("the other side to have gone", || taken.matched() == 0);
}

pub(crate) fn count_large_losses() {
    let node = patient("taker");
    let mut subscriber = lossy(&node).subscriber().unwrap();
    let taken = node.topic::<u64>("taken").reliable(WATCHDOG).publisher().unwrap();
    say("ready");
    let (mut first, mut last, mut count) = (None, 0, 0);
    until("the publisher to have gone", || {
        while let Some(found) = subscriber.receive(Duration::from_millis(1)).unwrap() {
            let number = number_of(&found);
            assert!(*found == *sample(number) && (first.is_none() || number > last));
            first.get_or_insert(number);
            (last, count) = (number, count + 1);
            taken.publish_copy(&number).unwrap();
        }
        first.is_some() && subscriber.matched() == 0
    });
    let sent = (last - first.unwrap()) / 2 + 1;
    assert!(subscriber.lost() > 0, "{count} of {sent}");
    assert_eq!(count + subscriber.lost(), sent);
}

/// A fault of TCP alone: DDS goes on, and brings what the lane has not.
#[test]
fn a_connection_that_breaks_loses_nothing_reliable() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_broken");
    taker.hears("ready");
    hosts.one.run("publish_broken").ends();
    taker.ends();
}

fn broken(node: &Node) -> Topic<[u8]> {
    node.topic("broken").depth(16).reliable(WATCHDOG)
}

pub(crate) fn publish_broken() {
    let node = node("publisher");
    let publisher = broken(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    for round in 0..ROUNDS {
        let first = round * MIXED;
        // The lane begins with the first large sample.
        publish(&publisher, first..first + 1);
        until("a connection", || !connections().is_empty());
        publish(&publisher, first + 1..first + MIXED / 2);
        for socket in connections() {
            let _ = rustix::net::shutdown(&socket, rustix::net::Shutdown::Both);
        }
        publish(&publisher, first + MIXED / 2..first + MIXED);
    }
}

pub(crate) fn take_broken() {
    let node = node("taker");
    let mut subscriber = broken(&node).subscriber().unwrap();
    say("ready");
    take(&mut subscriber, 0..ROUNDS * MIXED);
    assert_eq!(subscriber.lost(), 0);
    until("the publisher to have gone", || subscriber.matched() == 0);
}

/// The connected sockets of TCP in this process.
fn connections() -> Vec<OwnedFd> {
    let numbers = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers = numbers.filter_map(|entry| entry.unwrap().file_name().to_str()?.parse().ok());
    let open = |number: i32| {
        // SAFETY: a number that was open a moment ago, for one call that fails if it is not.
        let copy = unsafe { libc::fcntl(number, libc::F_DUPFD_CLOEXEC, 0) };
        // SAFETY: it is new, and ours.
        (copy >= 0).then(|| unsafe { OwnedFd::from_raw_fd(copy) })
    };
    let is_tcp = |socket: &OwnedFd| {
        sockopt::socket_protocol(socket).is_ok_and(|it| it == Some(rustix::net::ipproto::TCP))
            && rustix::net::getpeername(socket).is_ok()
    };
    numbers.filter_map(open).filter(is_tcp).collect()
}

#[test]
fn a_cut_that_is_mended_loses_nothing_reliable() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_patiently");
    taker.hears("ready");
    let mut publisher = hosts.one.run("publish_patiently");
    publisher.hears("half");
    hosts.link(false);
    publisher.say("cut");
    publisher.hears("held up");
    hosts.link(true);
    publisher.ends();
    taker.ends();
}

fn patiently(node: &Node) -> Topic<[u8]> {
    node.topic("patiently").depth(4).reliable(WATCHDOG)
}

pub(crate) fn publish_patiently() {
    let node = patient("publisher");
    let publisher = patiently(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publish(&publisher, 0..MIXED);
    say("half");
    heard("cut");
    // Its window fills, and then it waits.
    let watch = std::thread::spawn(move || {
        publish(&publisher, MIXED..3 * MIXED);
        drop(publisher);
    });
    let begun = Instant::now();
    while begun.elapsed() < Duration::from_millis(300) {
        assert!(!watch.is_finished(), "it is held up");
        std::thread::yield_now();
    }
    say("held up");
    watch.join().unwrap();
}

pub(crate) fn take_patiently() {
    let node = patient("taker");
    let mut subscriber = patiently(&node).subscriber().unwrap();
    say("ready");
    take(&mut subscriber, 0..3 * MIXED);
    assert_eq!(subscriber.lost(), 0);
}

#[test]
fn after_a_cut_longer_than_the_lease_the_lane_goes_on() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_before_and_after_a_cut");
    taker.hears("ready");
    let mut publisher = hosts.one.run("publish_until_missed_and_again");
    taker.hears("half");
    hosts.link(false);
    publisher.say("cut");
    publisher.hears("missed");
    taker.hears("missed");
    hosts.link(true);
    publisher.say("mended");
    taker.ends();
    publisher.ends();
}

fn cut_off(node: &Node) -> Topic<[u8]> {
    node.topic("cut off").depth(4).reliable(WATCHDOG)
}

pub(crate) fn publish_until_missed_and_again() {
    let node = node("publisher");
    let publisher = cut_off(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publish(&publisher, 0..MIXED);
    heard("cut");
    let mut next = MIXED;
    while publisher.matched() > 0 {
        publish(&publisher, next..next + 1);
        next += 1;
    }
    say("missed");
    heard("mended");
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let (first, before) = (next, sent_by_tcp());
    while next < first + MIXED || sent_by_tcp() - before < ENOUGH_BYTES {
        assert!(next < first + MIXED_MAX, "they go by UDP");
        publish(&publisher, next..next + 2);
        next += 2;
    }
    publisher.publish_copy(&[0; LAST_BYTES]).unwrap();
    until("the other side to have gone", || publisher.matched() == 0);
}

pub(crate) fn take_before_and_after_a_cut() {
    let node = node("taker");
    let mut subscriber = cut_off(&node).subscriber().unwrap();
    say("ready");
    take(&mut subscriber, 0..MIXED);
    assert_eq!(subscriber.lost(), 0);
    say("half");
    until("the publisher to be missed", || subscriber.matched() == 0);
    say("missed");
    let found = subscriber.receive(WATCHDOG).unwrap().expect("it goes on");
    let first = number_of(&found);
    drop(found);
    // What went out during the cut; what is published to nobody, such as the last one, is not lost.
    let lost = subscriber.lost();
    assert!(lost + 1 >= (first - MIXED).min(2), "{lost} lost before {first}");
    assert!(MIXED + lost <= first, "{lost} lost before {first}");
    for number in first + 1.. {
        let found = subscriber.receive(WATCHDOG).unwrap().expect("every sample comes");
        if found.len() == LAST_BYTES {
            break;
        }
        assert!(*found == *sample(number), "{} instead of {number}", number_of(&found));
    }
    assert_eq!(subscriber.lost(), lost);
}

#[test]
fn a_stopped_subscriber_holds_up_no_other_of_large_samples() {
    let Some(hosts) = Hosts::new() else { return };
    let mut takers =
        ["take_large_in_time", "take_large_with_a_stop"].map(|role| hosts.other.run(role));
    takers.iter_mut().for_each(|taker| taker.hears("ready"));
    let mut publisher = hosts.one.run("publish_large_past_the_stopped");
    publisher.hears("on the lane");
    let [in_time, mut stopped] = takers;
    stopped.stop();
    publisher.say("stopped");
    publisher.hears("published");
    in_time.ends();
    stopped.signal(libc::SIGCONT);
    stopped.hears("counted");
    publisher.ends();
    stopped.ends();
}

fn past(node: &Node) -> Topic<[u8]> {
    node.topic("past").depth(4).reliable(Duration::from_millis(200))
}

pub(crate) fn publish_large_past_the_stopped() {
    let node = patient("publisher");
    let publisher = past(&node).publisher().unwrap();
    let mut counted = node.topic::<u64>("counted").reliable(WATCHDOG).subscriber().unwrap();
    assert!(publisher.wait_for_match(2, WATCHDOG) && counted.wait_for_match(1, WATCHDOG));
    publish(&publisher, 0..MIXED);
    assert!(sent_by_tcp() > LARGE_BYTES);
    say("on the lane");
    heard("stopped");
    publish(&publisher, MIXED..3 * MIXED);
    let events = publisher.events();
    assert!(events.iter().any(|event| matches!(event, Event::PassedOver { .. })), "{events:?}");
    say("published");
    // The losses are counted with the next one that comes.
    let mut next = 3 * MIXED;
    until("the stopped one to take again", || {
        publish(&publisher, next..next + 1);
        next += 1;
        counted.receive(Duration::from_millis(20)).unwrap().is_some()
    });
}

pub(crate) fn take_large_in_time() {
    let node = patient("taker");
    let mut subscriber = past(&node).subscriber().unwrap();
    say("ready");
    take(&mut subscriber, 0..3 * MIXED);
    assert_eq!(subscriber.lost(), 0);
}

pub(crate) fn take_large_with_a_stop() {
    let node = patient("taker");
    let mut subscriber = past(&node).subscriber().unwrap();
    let counted = node.topic::<u64>("counted").reliable(WATCHDOG).publisher().unwrap();
    say("ready");
    let (mut last, mut count) = (0, 0);
    while last < 3 * MIXED {
        let found = subscriber.receive(WATCHDOG).unwrap().expect("it goes on");
        let number = number_of(&found);
        assert!(*found == *sample(number) && (count == 0 || number > last), "{number}");
        (last, count) = (number, count + 1);
    }
    assert!(subscriber.lost() > 0);
    assert_eq!(count + subscriber.lost(), last + 1);
    counted.publish_copy(&count).unwrap();
    say("counted");
}

#[test]
fn a_publisher_that_is_killed_leaves_no_torn_sample() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_until_killed");
    taker.hears("ready");
    let publisher = hosts.one.run("publish_large_until_killed");
    taker.hears("takes");
    publisher.kill();
    taker.ends();
}

fn killed(node: &Node) -> Topic<[u8]> {
    node.topic("killed").depth(8).best_effort()
}

pub(crate) fn publish_large_until_killed() {
    let node = node("publisher");
    let publisher = killed(&node).publisher().unwrap();
    for number in 0.. {
        let mut image = sample(number);
        image.resize(IMAGE_BYTES, number as u8);
        publisher.publish_copy(&image).unwrap();
    }
}

pub(crate) fn take_until_killed() {
    let node = node("taker");
    let mut subscriber = killed(&node).subscriber().unwrap();
    say("ready");
    let mut count = 0;
    until("the publisher to be missed", || {
        while let Some(image) = subscriber.receive(Duration::from_millis(10)).unwrap() {
            let number = number_of(&image);
            assert_eq!(image.len(), IMAGE_BYTES);
            assert!(image[16..].iter().all(|byte| *byte == number as u8), "{number} is torn");
            count += 1;
            if count == 5 {
                say("takes");
            }
        }
        count > 0 && subscriber.matched() == 0
    });
}

const MIXED: u64 = 100;
const MIXED_MAX: u64 = 300;
const ENOUGH_BYTES: usize = 50 * LARGE_BYTES;
const LAST_BYTES: usize = 17;
const LOSSY: u64 = 100;
const ROUNDS: u64 = 3;
const CABLE_MBIT: u64 = 100;
const DSCP: u8 = 8;
const LARGE_BYTES: usize = 200_000;
const IMAGE_BYTES: usize = 2 << 20;
/// On a link of this size of packets, at least.
const SEGMENT_BYTES: usize = 1_448;
