//! What the API promises across hosts, by real CycloneDDS between two network namespaces. Each role
//! is this executable again; the test speaks with it through pipes.

mod support;
#[path = "support/hosts.rs"]
mod two;

use std::time::{Duration, Instant};

use myelin::{Error, Event, Node, Publisher, Subscriber, Topic};
use support::{WATCHDOG, until};
use two::{Hosts, heard, say};

#[test]
fn the_other_side() {
    let Some(role) = two::role() else { return };
    match role.as_str() {
        "be_a_host" => two::be_a_host(),
        "fork_and_go_on" => fork_and_go_on(),
        "publish_both" => publish_both(),
        "take_both" => take_both(),
        "publish_images" => publish_images(),
        "take_images" => take_images(),
        "publish_map" => publish_map(),
        "want_map" => want_map(),
        "want_no_map" => want_no_map(),
        "publish_elsewhere" => publish_elsewhere(),
        "meet_nobody" => meet_nobody(),
        "publish_through_a_cut" => publish_through_a_cut(),
        "take_through_a_cut" => take_through_a_cut(),
        "publish_until_killed" => publish_until_killed(),
        "outlive_a_publisher" => outlive_a_publisher(),
        "publish_to_the_vanished" => publish_to_the_vanished(),
        "vanish" => vanish(),
        "publish_integers" => other_type::<u64>(),
        "take_doubles" => other_type_taken(),
        "publish_in_a_hurry" => publish_in_a_hurry(),
        "take_slowly" => take_slowly(),
        "publish_of_every_kind" => publish_of_every_kind(),
        "take_of_every_kind" => take_of_every_kind(),
        "publish_and_lose" => publish_and_lose(),
        "take_and_count_losses" => take_and_count_losses(),
        _ => panic!("{role}"),
    }
}

fn node(name: &str) -> Node {
    Node::builder(name).network(true).open().unwrap()
}

/// Runs both roles, the second one on the other host and first, and sees that nothing is left.
fn run(publisher: &str, taker: &str) {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run(taker);
    taker.hears("ready");
    let publisher = hosts.one.run(publisher);
    taker.ends();
    publisher.ends();
    nothing_is_left(&hosts);
}

fn nothing_is_left(hosts: &Hosts) {
    for host in [&hosts.one, &hosts.other] {
        assert!(host.leftovers().is_empty(), "{:?}", host.leftovers());
    }
}

#[test]
fn a_sample_comes_once_by_shared_memory_and_once_by_dds() {
    let Some(hosts) = Hosts::new() else { return };
    let mut takers = [hosts.one.run("take_both"), hosts.other.run("take_both")];
    takers.iter_mut().for_each(|taker| taker.hears("ready"));
    let publisher = hosts.one.run("publish_both");
    takers.into_iter().for_each(two::Process::ends);
    publisher.ends();
    nothing_is_left(&hosts);
}

/// A topic for Myelin alone, and one for any DDS program, where nothing but the library keeps those
/// of one host apart.
fn both(node: &Node) -> [Topic<[u64]>; 2] {
    let topic = |name| node.topic(name).depth(64).reliable(WATCHDOG);
    [topic("numbers"), topic("open_numbers").dds_type("test::Numbers")]
}

fn publish_both() {
    let node = node("publisher");
    let publishers = both(&node).map(|topic| topic.publisher().unwrap());
    for publisher in &publishers {
        assert!(publisher.wait_for_match(2, WATCHDOG));
    }
    for number in 0..NUMBERS {
        for publisher in &publishers {
            // Small and large: a copy in the ring, and a slot; and a copy of one's own.
            let mut loan = publisher.loan(numbers_len(number)).unwrap();
            loan.fill(number);
            match number % 2 {
                0 => loan.publish().unwrap(),
                _ => publisher.publish_copy(&loan).unwrap(),
            };
        }
    }
    for publisher in publishers {
        until("all to have gone", || publisher.matched() == 0);
        assert_eq!(unmatched(&publisher.events()), 2);
    }
}

fn take_both() {
    let node = node("taker");
    let subscribers = both(&node).map(|topic| topic.subscriber().unwrap());
    say("ready");
    take_numbers(subscribers);
}

fn take_numbers(mut subscribers: [Subscriber<[u64]>; 2]) {
    for number in 0..NUMBERS {
        for subscriber in &mut subscribers {
            let sample = subscriber.receive(WATCHDOG).unwrap().expect("every number comes");
            let fits = sample.len() == numbers_len(number);
            assert!(fits && sample.iter().all(|each| *each == number), "{number}");
        }
    }
    std::thread::sleep(Duration::from_millis(200));
    for subscriber in &mut subscribers {
        assert!(subscriber.take().unwrap().is_none(), "and none twice");
        assert_eq!((subscriber.lost(), subscriber.matched()), (0, 1));
    }
}

fn numbers_len(number: u64) -> usize {
    if number.is_multiple_of(3) { 2_000 } else { 1 }
}

#[test]
fn large_samples_arrive_whole() {
    run("publish_images", "take_images");
}

/// The kernel's setting is not a namespace's own, so this takes the user's way to a configuration.
#[test]
fn large_samples_arrive_whole_in_the_buffer_that_a_kernel_grants_by_default() {
    let Some(hosts) = Hosts::new() else { return };
    let small = myelin_dds::Config::default().xml(0, 212_992);
    let mut taker = hosts.other.run_with("take_images", &small);
    taker.hears("ready");
    let publisher = hosts.one.run_with("publish_images", &small);
    taker.ends();
    publisher.ends();
}

fn images(node: &Node) -> Topic<[u8]> {
    node.topic("images").depth(4).reliable(WATCHDOG)
}

fn publish_images() {
    let node = node("publisher");
    let publisher = images(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    for number in 0..IMAGES {
        let mut loan = publisher.loan(IMAGE_BYTES).unwrap();
        paint(&mut loan, number);
        loan.publish().unwrap();
    }
    until("all to have gone", || publisher.matched() == 0);
}

fn take_images() {
    let node = node("taker");
    let mut subscriber = images(&node).subscriber().unwrap();
    say("ready");
    let mut expected = vec![0; IMAGE_BYTES];
    for number in 0..IMAGES {
        let sample = subscriber.receive(WATCHDOG).unwrap().expect("every image comes");
        paint(&mut expected, number);
        assert!(*sample == *expected, "image {number}, {} B", sample.len());
    }
    assert_eq!(subscriber.lost(), 0);
}

/// No two words of an image and no two images are alike.
fn paint(image: &mut [u8], number: u64) {
    for (at, word) in image.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(number << 32 | at as u64).to_le_bytes());
    }
}

#[test]
fn who_comes_later_gets_the_history_and_who_does_not_want_it_none() {
    let Some(hosts) = Hosts::new() else { return };
    let mut publisher = hosts.one.run("publish_map");
    publisher.hears("published");
    let takers = ["want_map", "want_no_map"].map(|role| hosts.other.run(role));
    takers.into_iter().for_each(two::Process::ends);
    publisher.say("end");
    publisher.ends();
}

fn publish_map() {
    let node = node("publisher");
    let publishers = maps(&node).map(|topic| topic.history(3).publisher().unwrap());
    for publisher in &publishers {
        for number in 0..10 {
            publisher.publish_copy(&[number]).unwrap();
        }
    }
    say("published");
    heard("end");
}

fn want_map() {
    let node = node("taker");
    for topic in maps(&node) {
        let mut subscriber = topic.history(3).subscriber().unwrap();
        for number in 7..10 {
            assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), [number]);
        }
        assert!(subscriber.receive(Duration::from_millis(200)).unwrap().is_none());
    }
}

fn want_no_map() {
    let node = node("taker");
    for topic in maps(&node) {
        let mut subscriber = topic.subscriber().unwrap();
        assert!(subscriber.wait_for_match(1, WATCHDOG));
        assert!(subscriber.receive(Duration::from_millis(200)).unwrap().is_none());
    }
}

/// Both sides ask for history, whatever else they are.
fn maps(node: &Node) -> [Topic<[u8]>; 3] {
    [
        node.topic("map").reliable(WATCHDOG),
        node.topic("map_best_effort").best_effort(),
        node.topic::<[u8]>("open_map").reliable(WATCHDOG).dds_type("test::Map"),
    ]
}

#[test]
fn domains_do_not_see_each_other() {
    let Some(hosts) = Hosts::new() else { return };
    let mut publisher = hosts.one.run("publish_elsewhere");
    publisher.hears("ready");
    hosts.other.run("meet_nobody").ends();
    publisher.say("end");
    publisher.ends();
}

fn publish_elsewhere() {
    let node = |domain| Node::builder("publisher").network(true).domain(domain).open().unwrap();
    let (here, there) = (node(0), node(1));
    let secret = here.topic::<u64>("secret").publisher().unwrap();
    let _known = there.topic::<u64>("known").publisher().unwrap();
    say("ready");
    heard("end");
    assert_eq!(secret.matched(), 0);
}

fn meet_nobody() {
    let node = Node::builder("taker").network(true).domain(1).open().unwrap();
    let secret = node.topic::<u64>("secret").subscriber().unwrap();
    let known = node.topic::<u64>("known").subscriber().unwrap();
    assert!(known.wait_for_match(1, WATCHDOG), "that host is found");
    assert!(!secret.wait_for_match(1, Duration::from_secs(1)));
}

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

fn stream(node: &Node) -> Topic<[u64]> {
    node.topic("stream").depth(4_000).reliable(Duration::from_secs(1))
}

/// At 100 Hz until the test has mended the link, then the last one.
fn publish_through_a_cut() {
    let node = node("publisher");
    let publisher = stream(&node).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let mended = std::thread::spawn(|| heard("mended"));
    for number in 0.. {
        publisher.publish_copy(&[number; 500]).unwrap();
        if number == 50 {
            say("under way");
        }
        if mended.is_finished() {
            break;
        }
        std::thread::sleep(Duration::from_millis(10));
    }
    publisher.publish_copy(&[]).unwrap();
    until("all to have gone", || publisher.matched() == 0);
}

fn take_through_a_cut() {
    let node = node("taker");
    let mut subscriber = stream(&node).subscriber().unwrap();
    say("ready");
    let mut number = 0;
    while let Some(sample) = subscriber.receive(WATCHDOG).unwrap() {
        if sample.is_empty() {
            assert!(number > 400, "there was a stream during the cut");
            assert_eq!(subscriber.lost(), 0);
            return;
        }
        assert!(sample.len() == 500 && sample.iter().all(|each| *each == number), "{number}");
        number += 1;
    }
    panic!("nothing came after {number}");
}

#[test]
fn a_subscriber_goes_on_with_the_publisher_that_comes_after_a_kill() {
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

fn publish_until_killed() {
    let node = node("publisher");
    let publisher = node.topic::<u64>("alive").reliable(WATCHDOG).publisher().unwrap();
    for number in 0.. {
        publisher.publish_copy(&number).unwrap();
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn outlive_a_publisher() {
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
    // The dead are missed after CycloneDDS's ten seconds.
    until("both to be missed", || subscriber.matched() == 0);
    let events = subscriber.events();
    for endpoint in [first, second] {
        assert!(events.contains(&Event::Matched { endpoint, pid: 0 }));
        assert!(events.contains(&Event::Unmatched { endpoint, pid: 0, died: false }));
    }
}

#[test]
fn a_host_that_vanishes_is_missed_and_holds_nobody_up() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("vanish");
    taker.hears("ready");
    let mut publisher = hosts.one.run("publish_to_the_vanished");
    taker.hears("heard");
    let Hosts { one: _one, other } = hosts;
    taker.kill();
    drop(other);
    publisher.say("vanished");
    publisher.ends();
}

fn publish_to_the_vanished() {
    let node = node("publisher");
    let limit = Duration::from_millis(500);
    let publisher = node.topic::<u64>("gone").depth(4).reliable(limit).publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&0).unwrap();
    heard("vanished");
    let mut timed_out = 0;
    until("the host to be missed", || {
        let begin = Instant::now();
        match publisher.publish_copy(&1) {
            Ok(_) => std::thread::sleep(Duration::from_millis(10)),
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

fn vanish() {
    let node = node("taker");
    let mut subscriber =
        node.topic::<u64>("gone").depth(4).reliable(WATCHDOG).subscriber().unwrap();
    say("ready");
    subscriber.receive(WATCHDOG).unwrap().unwrap();
    say("heard");
    heard("never");
}

#[test]
fn another_type_is_told_of_on_both_sides() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_doubles");
    let mut publisher = hosts.one.run("publish_integers");
    taker.hears("told");
    publisher.hears("told");
    for mut side in [taker, publisher] {
        side.say("end");
        side.ends();
    }
}

fn other_type<T: myelin::PlainData>() {
    let node = node("publisher");
    let publisher = node.topic::<T>("mixed").publisher().unwrap();
    told_of_another_type(|| publisher.events(), "f64", "u64");
    assert_eq!(publisher.matched(), 0);
}

fn other_type_taken() {
    let node = node("taker");
    let subscriber = node.topic::<f64>("mixed").reliable(WATCHDOG).subscriber().unwrap();
    told_of_another_type(|| subscriber.events(), "u64", "f64");
    assert_eq!(subscriber.matched(), 0);
}

fn told_of_another_type(events: impl Fn() -> Vec<Event>, theirs: &str, ours: &str) {
    let mut all = Vec::new();
    until("the word of another type", || {
        all.extend(events());
        !all.is_empty()
    });
    let [Event::Incompatible { endpoint, pid: 0, reason }] = &all[..] else { panic!("{all:?}") };
    assert_ne!(*endpoint, 0);
    assert!(reason.contains(theirs) && reason.contains(ours), "{reason}");
    say("told");
    heard("end");
    assert!(events().is_empty(), "once");
}

#[test]
fn a_slow_subscriber_holds_up_its_publisher_and_nobody_else() {
    run("publish_in_a_hurry", "take_slowly");
}

fn publish_in_a_hurry() {
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

fn take_slowly() {
    let node = node("taker");
    let mut slow = node.topic::<u64>("slow").depth(2).reliable(WATCHDOG).subscriber().unwrap();
    let mut fast = node.topic::<u64>("fast").depth(64).reliable(WATCHDOG).subscriber().unwrap();
    say("ready");
    // Nothing is taken of the slow topic until all of the fast one is here.
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

#[test]
fn whatever_each_side_asks_for_they_match() {
    run("publish_of_every_kind", "take_of_every_kind");
}

/// Every setting of one side.
fn kinds(node: &Node, name: &str) -> [Topic<u64>; 4] {
    let topic = |history| node.topic::<u64>(name).depth(8).history(history);
    [topic(0), topic(4), topic(0).reliable(WATCHDOG), topic(4).reliable(WATCHDOG)]
}

fn publish_of_every_kind() {
    let node = node("publisher");
    let all: Vec<Publisher<u64>> = (0..4)
        .map(|kind| kinds(&node, &format!("kind/{kind}"))[kind].publisher().unwrap())
        .collect();
    assert!(all.iter().all(|publisher| publisher.wait_for_match(4, WATCHDOG)));
    until("all to have gone", || {
        all.iter().enumerate().for_each(|(kind, publisher)| {
            let _ = publisher.publish_copy(&(kind as u64)).unwrap();
        });
        std::thread::sleep(Duration::from_millis(10));
        all.iter().all(|publisher| publisher.matched() == 0)
    });
}

fn take_of_every_kind() {
    let node = node("taker");
    let all: Vec<(u64, Subscriber<u64>)> = (0..4)
        .flat_map(|kind| {
            let topics = kinds(&node, &format!("kind/{kind}"));
            topics.map(|topic| (kind, topic.subscriber().unwrap()))
        })
        .collect();
    say("ready");
    for (kind, mut subscriber) in all {
        assert!(subscriber.wait_for_match(1, WATCHDOG));
        assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), kind);
        assert_eq!(subscriber.matched(), 1);
    }
}

#[test]
fn what_best_effort_loses_on_the_way_is_counted_and_what_is_too_large_is_told() {
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

fn publish_and_lose() {
    let node = node("publisher");
    let publisher = node.topic::<[u8]>("lossy").publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let first = std::thread::spawn(|| heard("publish"));
    while !first.is_finished() {
        publisher.publish_copy(&[0]).unwrap();
        std::thread::sleep(Duration::from_millis(10));
    }
    for _ in 0..LOST {
        publisher.publish_copy(&[1]).unwrap();
    }
    assert_eq!(publisher.events().len(), 1, "the match");
    let rmem_max = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
    let large = vec![0; rmem_max.trim().parse::<usize>().unwrap() + 1];
    for _ in 0..2 {
        publisher.publish_copy(&large).unwrap();
    }
    let events = publisher.events();
    let [Event::BufferTooSmall { bytes, remedy, .. }] = &events[..] else { panic!("{events:?}") };
    assert!(*bytes == large.len() as u64 && remedy.contains("net.core.rmem_max"), "{remedy}");
    say("published");
    heard("mended");
    until("all to have gone", || {
        publisher.publish_copy(&[2]).unwrap();
        std::thread::sleep(Duration::from_millis(10));
        publisher.matched() == 0
    });
}

fn take_and_count_losses() {
    let node = node("taker");
    let mut subscriber = node.topic::<[u8]>("lossy").subscriber().unwrap();
    say("ready");
    subscriber.receive(WATCHDOG).unwrap().expect("the first");
    assert_eq!(subscriber.lost(), 0);
    say("first");
    while *subscriber.receive(WATCHDOG).unwrap().expect("some come after the cut") != [2] {}
    // The two large ones and all small ones after the cut; perhaps some that were under way.
    assert!(subscriber.lost() >= LOST + 2, "{}", subscriber.lost());
}

#[test]
fn a_child_of_fork_lets_go_of_the_network_and_the_parent_keeps_it() {
    let Some(hosts) = Hosts::new() else { return };
    let mut forked = hosts.one.run("fork_and_go_on");
    forked.hears("forked");
    let taker = hosts.other.run("take_both");
    let publisher = hosts.one.run("publish_both");
    publisher.ends();
    taker.ends();
    forked.ends();
}

/// The second one of those that take both.
fn fork_and_go_on() {
    let node = node("forks");
    let ends = both(&node).map(|topic| (topic.publisher().unwrap(), topic.subscriber().unwrap()));
    // SAFETY: the child drops what it has inherited, and `_exit`s.
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

fn unmatched(events: &[Event]) -> usize {
    events.iter().filter(|event| matches!(event, Event::Unmatched { pid: _, .. })).count()
}

const NUMBERS: u64 = 1_000;
const IMAGES: u64 = 20;
const IMAGE_BYTES: usize = 10 << 20;
const LOST: u64 = 20;
