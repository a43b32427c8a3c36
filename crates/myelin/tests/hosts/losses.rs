//! Too much data for a subscriber or for the link.

use std::time::Duration;

use myelin::{Counters, Event, Node, Policy, Threads, Topic};

use crate::late::LONG_LEASE;
use crate::support::{WATCHDOG, until};
use crate::two::{Hosts, heard, say};
use crate::{NUMBERS, node, run};

#[test]
fn a_slow_subscriber_delays_only_its_publisher() {
    run("publish_in_a_hurry", "take_slowly");
}

pub(crate) fn publish_in_a_hurry() {
    let node = node("publisher");
    let slow = node.topic::<u64>("slow").depth(2).reliable(WATCHDOG).publisher().unwrap();
    let fast = node.topic::<u64>("fast").depth(64).reliable(WATCHDOG).publisher().unwrap();
    assert!(slow.wait_for_match(1, WATCHDOG) && fast.wait_for_match(1, WATCHDOG));
    let other = std::thread::spawn(move || {
        for number in 0..NUMBERS {
            fast.publish_copy(&number).unwrap();
        }
        fast
    });
    for number in 0..NUMBERS {
        slow.publish_copy(&number).unwrap();
    }
    say("published");
    let fast = other.join().unwrap();
    until("all to have gone", || slow.matched() == 0 && fast.matched() == 0);
}

pub(crate) fn take_slowly() {
    let node = node("taker");
    let mut slow = node.topic::<u64>("slow").depth(2).reliable(WATCHDOG).subscriber().unwrap();
    let mut fast = node.topic::<u64>("fast").depth(64).reliable(WATCHDOG).subscriber().unwrap();
    say("ready");
    // Nothing of the slow topic is taken until all samples of the fast one are here.
    assert!(slow.wait(WATCHDOG).unwrap());
    for number in 0..NUMBERS {
        assert_eq!(*fast.receive(WATCHDOG).unwrap().expect("it goes on"), number);
    }
    for number in 0..NUMBERS {
        let sample = slow.receive(WATCHDOG).unwrap().expect("the publisher has waited");
        assert_eq!(*sample, number);
    }
    assert_eq!((slow.lost(), fast.lost()), (0, 0));
}

/// Nothing else gives the subscriber a turn while the sockets have more: the process was stopped
/// while the burst came.
#[test]
fn a_subscriber_on_the_receivers_core_takes_a_burst() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run_with("take_on_one_core", LONG_LEASE);
    taker.hears("ready");
    let mut publisher = hosts.one.run_with("publish_at_once", LONG_LEASE);
    publisher.hears("matched");
    taker.hears("matched");
    taker.stop();
    publisher.say("stopped");
    publisher.hears("published");
    taker.signal(libc::SIGCONT);
    taker.ends();
    publisher.ends();
}

fn at_once(node: &Node) -> Topic<u64> {
    node.topic("at_once").depth(8).best_effort()
}

pub(crate) fn publish_at_once() {
    let node = node("publisher");
    let publisher = at_once(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    say("matched");
    heard("stopped");
    for number in 0..AT_ONCE {
        publisher.publish_copy(&number).unwrap();
    }
    say("published");
    until("all to have gone", || publisher.matched() == 0);
}

pub(crate) fn take_on_one_core() {
    let Some(threads) = share_one_core() else {
        println!("not judged: SCHED_FIFO is not permitted");
        take_on(&node("taker"));
        return;
    };
    let node = Node::builder("taker").network(true).threads(threads).open().unwrap();
    assert_eq!(take_on(&node), 0, "lost");
}

/// Takes a burst, to its last sample; returns how many were lost.
fn take_on(node: &Node) -> u64 {
    let mut subscriber = at_once(node).subscriber().unwrap();
    say("ready");
    assert!(subscriber.wait_for_match(1, WATCHDOG));
    say("matched");
    loop {
        let number = *subscriber.receive(WATCHDOG).unwrap().expect("the last one comes");
        if number == AT_ONCE - 1 {
            break;
        }
    }
    subscriber.lost()
}

/// This thread gets its current core and a realtime priority, and so do the threads of a node that
/// is opened with the result: none of them runs before another waits or yields. `None` where that
/// is not permitted.
fn share_one_core() -> Option<Threads> {
    let parameter = libc::sched_param { sched_priority: PRIORITY.into() };
    // SAFETY: no preconditions.
    let core = usize::try_from(unsafe { libc::sched_getcpu() }).unwrap();
    // SAFETY: an empty set is all zeros; the calls write to nothing but it; 0 is this thread.
    let is_alone = unsafe {
        let mut cores: libc::cpu_set_t = std::mem::zeroed();
        libc::CPU_SET(core, &mut cores);
        libc::sched_setaffinity(0, size_of_val(&cores), &raw const cores) == 0
            && libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameter) == 0
    };
    is_alone.then(|| Threads {
        cpus: vec![core],
        policy: Policy::Fifo(PRIORITY),
        ..Threads::default()
    })
}

const PRIORITY: u8 = 1;
/// Eight times the depth.
const AT_ONCE: u64 = 64;

/// CycloneDDS's own question comes with the heartbeat, ten seconds later: a burst that waits for it
/// at each window takes minutes, and is not published within the watchdog's minute. So all
/// acknowledgements that the publisher waits for are answers to its own questions; some of these
/// may be lost.
#[test]
fn a_burst_waits_for_no_heartbeat() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_a_burst");
    taker.hears("ready");
    let mut publisher = hosts.one.run_with("publish_a_burst", RARE_HEARTBEATS);
    BURST_DEPTHS.iter().for_each(|_| publisher.hears("published"));
    publisher.ends();
    taker.ends();
}

const RARE_HEARTBEATS: &str = r#"<CycloneDDS><Domain><Internal>
    <HeartbeatInterval min="10 s" minsched="10 s" max="10 s">10 s</HeartbeatInterval>
    <PreEmptiveAckDelay>0 ms</PreEmptiveAckDelay>
</Internal></Domain></CycloneDDS>"#;

pub(crate) fn publish_a_burst() {
    let node = node("publisher");
    for depth in BURST_DEPTHS {
        let publisher = burst(&node, depth).publisher().unwrap();
        assert!(publisher.wait_for_match(1, WATCHDOG));
        for number in 0..NUMBERS {
            publisher.publish_copy(&number).unwrap();
        }
        say("published");
        until("all to have gone", || publisher.matched() == 0);
    }
}

pub(crate) fn take_a_burst() {
    let node = node("taker");
    let subscribers = BURST_DEPTHS.map(|depth| burst(&node, depth).depth(64).subscriber().unwrap());
    say("ready");
    for mut subscriber in subscribers {
        for number in 0..NUMBERS {
            assert_eq!(*subscriber.receive(WATCHDOG).unwrap().expect("it goes on"), number);
        }
        assert_eq!(subscriber.lost(), 0);
    }
}

fn burst(node: &Node, depth: u32) -> Topic<u64> {
    node.topic(&format!("burst/{depth}")).depth(depth).reliable_or_fail(WATCHDOG / 2)
}

const BURST_DEPTHS: [u32; 3] = [1, 8, 64];

#[test]
fn network_losses_are_counted_and_too_large_samples_reported() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_and_count_losses");
    taker.hears("ready");
    let mut publisher = hosts.one.run("publish_and_lose");
    taker.hears("first");
    hosts.link(false);
    publisher.say("publish");
    publisher.hears("published");
    hosts.link(true);
    publisher.say("mended");
    taker.ends();
    publisher.ends();
}

/// A sample of [`lossy`]: when it was published, and how many came before it.
fn lossy_sample(when: u8, number: &mut u64, bytes: usize) -> Vec<u8> {
    let mut sample = vec![when; bytes];
    sample[1..9].copy_from_slice(&number.to_ne_bytes());
    *number += 1;
    sample
}

/// Deep enough that nothing is lost on a host.
fn lossy(node: &Node) -> Topic<[u8]> {
    node.topic("lossy").depth(8_192).best_effort()
}

pub(crate) fn publish_and_lose() {
    let node = node("publisher");
    let publisher = lossy(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let first = std::thread::spawn(|| heard("publish"));
    let mut number = 0;
    while !first.is_finished() {
        publisher.publish_copy(&lossy_sample(0, &mut number, 9)).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..LOST {
        publisher.publish_copy(&lossy_sample(1, &mut number, 9)).unwrap();
    }
    assert_eq!(publisher.events().len(), 1, "the match");
    let rmem_max = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
    let bytes = rmem_max.trim().parse::<usize>().unwrap() + 1;
    for _ in 0..2 {
        publisher.publish_copy(&lossy_sample(1, &mut number, bytes)).unwrap();
    }
    let events = publisher.events();
    let [Event::BufferTooSmall { bytes: reported, remedy, .. }] = &events[..] else {
        panic!("{events:?}")
    };
    assert!(*reported == bytes as u64 && remedy.contains("net.core.rmem_max"), "{remedy}");
    say("published");
    heard("mended");
    until("all to have gone", || {
        publisher.publish_copy(&lossy_sample(2, &mut number, 9)).unwrap();
        std::thread::sleep(Duration::from_millis(10));
        publisher.matched() == 0
    });
}

pub(crate) fn take_and_count_losses() {
    let node = node("taker");
    let mut subscriber = lossy(&node).subscriber().unwrap();
    say("ready");
    let mut take = || {
        let sample = subscriber.receive(WATCHDOG).unwrap().expect("it goes on");
        (sample[0], u64::from_ne_bytes(sample[1..9].try_into().unwrap()), subscriber.lost())
    };
    let (_, first, lost) = take();
    assert_eq!(lost, 0);
    say("first");
    let (mut taken, mut last) = (1, (0, first, 0));
    while last.0 != 2 {
        (taken, last) = (taken + 1, take());
    }
    // The two large ones and all small ones of the cut; maybe some that were under way. No more is
    // counted, and no less: in the subscriber, and in the counters that tools read.
    let (_, number, lost) = last;
    let missing = number - first + 1 - taken;
    assert!(missing >= LOST + 2, "{missing}");
    assert_eq!(lost, missing);
    let graph = node.graph_within(WATCHDOG).unwrap();
    let own = graph.endpoints.iter().find(|it| it.id == subscriber.id()).unwrap();
    let Some(Counters::Subscriber { lost, lost_network, lost_overwritten, .. }) = own.counters
    else {
        panic!("{own:?}")
    };
    assert_eq!((lost, lost_network, lost_overwritten), (missing, missing, 0));
}

const LOST: u64 = 20;
