//! Published samples arrive: once, whole, also for late subscribers.

use std::time::Duration;

use myelin::{Event, Node, Subscriber, Topic};

use crate::support::{WATCHDOG, until};
use crate::two;
use crate::two::{Hosts, heard, say};
use crate::{NUMBERS, node, nothing_is_left, run, unmatched};

#[test]
fn a_sample_comes_once_by_shared_memory_and_once_by_dds() {
    let Some(hosts) = Hosts::new() else { return };
    let mut takers = [hosts.one.run("take_both"), hosts.other.run("take_both")];
    takers.iter_mut().for_each(|taker| taker.hears("ready"));
    all_is_taken_once(hosts.one.run("publish_both"), takers);
    nothing_is_left(&hosts);
}

/// The last sample is published once both have all others: a duplicate would come before it.
pub(crate) fn all_is_taken_once(mut publisher: two::Process, mut takers: [two::Process; 2]) {
    takers.iter_mut().for_each(|taker| taker.hears("taken"));
    publisher.say("taken by both");
    takers.into_iter().for_each(two::Process::ends);
    publisher.ends();
}

#[test]
fn a_keep_last_publisher_does_not_wait() {
    let Some(hosts) = Hosts::new() else { return };
    let mut taker = hosts.other.run("take_the_last");
    let mut publisher = hosts.one.run("publish_and_keep_the_last");
    taker.hears("ready");
    publisher.hears("published");
    taker.say("take");
    taker.ends();
    publisher.say("end");
    publisher.ends();
}

pub(crate) fn publish_and_keep_the_last() {
    let node = node("publisher");
    let topics = both(&node).map(|topic| topic.depth(4).reliable_keep_last());
    let publishers = topics.map(|topic| topic.publisher().unwrap());
    for publisher in &publishers {
        assert!(publisher.wait_for_match(1, WATCHDOG));
        for number in 0..NUMBERS {
            publisher.publish_copy(&[number]).unwrap();
        }
        assert!(publisher.wait_for_acknowledgements(WATCHDOG));
    }
    say("published");
    heard("end");
}

/// Takes nothing before everything was published.
pub(crate) fn take_the_last() {
    let node = node("taker");
    let topics = both(&node).map(|topic| topic.depth(4).reliable_keep_last());
    let subscribers = topics.map(|topic| topic.subscriber().unwrap());
    say("ready");
    heard("take");
    for mut subscriber in subscribers {
        let newest = NUMBERS - 4..NUMBERS;
        assert_eq!(subscriber.receive(WATCHDOG).unwrap().unwrap()[0], newest.start);
        assert!(newest.skip(1).all(|number| subscriber.take().unwrap().unwrap()[0] == number));
        assert!(subscriber.take().unwrap().is_none());
        assert!(subscriber.events().iter().all(|event| !matches!(event, Event::Unmatched { .. })));
    }
}

/// A topic only for Myelin, and one for any DDS program, where only the library keeps the endpoints
/// of one host apart.
pub(crate) fn both(node: &Node) -> [Topic<[u64]>; 2] {
    let topic = |name| node.topic(name).depth(64).reliable(WATCHDOG);
    [topic("numbers"), topic("open_numbers").dds_type("test::Numbers")]
}

pub(crate) fn publish_both() {
    let node = node("publisher");
    let publishers = both(&node).map(|topic| topic.publisher().unwrap());
    for publisher in &publishers {
        assert!(publisher.wait_for_match(2, WATCHDOG));
    }
    for number in 0..=NUMBERS {
        if number == NUMBERS {
            heard("taken by both");
        }
        for publisher in &publishers {
            // Small and large: a copy in the ring, and a slot; and a copy of the program's own.
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

pub(crate) fn take_both() {
    let node = node("taker");
    let subscribers = both(&node).map(|topic| topic.subscriber().unwrap());
    say("ready");
    take_numbers(subscribers);
}

pub(crate) fn take_numbers(mut subscribers: [Subscriber<[u64]>; 2]) {
    for number in 0..=NUMBERS {
        if number == NUMBERS {
            say("taken");
        }
        for subscriber in &mut subscribers {
            let sample = subscriber.receive(WATCHDOG).unwrap().expect("every number comes");
            let fits = sample.len() == numbers_len(number);
            assert!(fits && sample.iter().all(|each| *each == number), "{number}, {}", sample[0]);
        }
    }
    for subscriber in &mut subscribers {
        assert!(subscriber.take().unwrap().is_none(), "and none twice");
        assert_eq!((subscriber.lost(), subscriber.matched()), (0, 1));
    }
}

fn numbers_len(number: u64) -> usize {
    if number.is_multiple_of(3) { 2_000 } else { 1 }
}

#[test]
fn a_matched_best_effort_subscriber_gets_the_first_sample() {
    let Some(hosts) = Hosts::new() else { return };
    for _ in 0..5 {
        let mut taker = hosts.other.run("be_greeted");
        taker.hears("ready");
        let publisher = hosts.one.run("greet");
        taker.ends();
        publisher.ends();
    }
}

pub(crate) fn greet() {
    let node = node("publisher");
    let publisher = node.topic::<u64>("hello").publisher().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    for number in 0..5 {
        publisher.publish_copy(&number).unwrap();
    }
}

pub(crate) fn be_greeted() {
    let node = node("taker");
    let mut subscriber = node.topic::<u64>("hello").subscriber().unwrap();
    say("ready");
    for number in 0..5 {
        assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), number);
    }
}

#[test]
fn large_samples_arrive_whole() {
    run("publish_images", "take_images");
}

/// The kernel's setting does not belong to a namespace, so this uses a configuration, as a user
/// would.
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

pub(crate) fn publish_images() {
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

pub(crate) fn take_images() {
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

#[test]
fn best_effort_frames_of_any_length_arrive_as_they_were_published() {
    run("publish_frames", "take_frames");
}

/// Large frames of whole words are sent from their place.
pub(crate) fn publish_frames() {
    let node = node("publisher");
    let frames = node.topic::<[u8]>("frames").best_effort().publisher().unwrap();
    let mut taken = node.topic::<u64>("taken").reliable(WATCHDOG).subscriber().unwrap();
    assert!(frames.wait_for_match(1, WATCHDOG) && taken.wait_for_match(1, WATCHDOG));
    for (number, bytes) in (0..).zip(FRAME_BYTES) {
        until("a frame to arrive", || {
            let mut loan = frames.loan(bytes).unwrap();
            loan.fill(number as u8);
            paint(&mut loan, number);
            loan.publish().unwrap();
            let answer = taken.receive(Duration::from_secs(1)).unwrap();
            answer.is_some_and(|answer| *answer == number)
        });
    }
    let loan = frames.loan(HUGE_BYTES).unwrap();
    assert_eq!(frames.matched(), 1, "it is sent");
    without_memory_for(HUGE_BYTES, || loan.publish().unwrap());
    drop(frames);
    until("the other side to have gone", || taken.matched() == 0);
}

pub(crate) fn take_frames() {
    let node = node("taker");
    let mut frames = node.topic::<[u8]>("frames").best_effort().subscriber().unwrap();
    let taken = node.topic::<u64>("taken").reliable(WATCHDOG).publisher().unwrap();
    say("ready");
    let mut next = 0;
    while next < FRAME_BYTES.len() {
        let frame = frames.receive(WATCHDOG).unwrap().expect("frames come");
        let Some(number) = FRAME_BYTES.iter().position(|bytes| *bytes == frame.len()) else {
            panic!("a frame of {} B", frame.len());
        };
        let mut expected = vec![number as u8; frame.len()];
        paint(&mut expected, number as u64);
        assert!(*frame == *expected, "frame of {} B", frame.len());
        taken.publish_copy(&(number as u64)).unwrap();
        next = number + 1;
    }
    until("the publisher to have gone", || frames.matched() == 0);
}

/// Sizes around the limit for sending from their place, with and without padding, and of many
/// datagrams.
const FRAME_BYTES: [usize; 10] =
    [1_000, 65_484, 65_536, 131_056, 131_060, 131_064, 194_992, 300_001, 1 << 20, 3_000_000];
/// A copy of it would fail.
const HUGE_BYTES: usize = 64 << 20;

/// Limits the process to less than half of `bytes` more private memory; shared memory does not
/// count.
fn without_memory_for<R>(bytes: usize, act: impl FnOnce() -> R) -> R {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let data = status.lines().find_map(|line| line.strip_prefix("VmData:")).unwrap();
    let data_kib: u64 = data.trim().trim_end_matches(" kB").parse().unwrap();
    let mut limit = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
    // SAFETY: the kernel writes where it is told to.
    assert_eq!(unsafe { libc::getrlimit(libc::RLIMIT_DATA, &mut limit) }, 0);
    let set = |bytes| {
        let limit = libc::rlimit { rlim_cur: bytes, ..limit };
        // SAFETY: the kernel reads what is there.
        assert_eq!(unsafe { libc::setrlimit(libc::RLIMIT_DATA, &limit) }, 0);
    };
    set((data_kib << 10) + bytes as u64 / 2);
    let result = act();
    set(limit.rlim_cur);
    result
}

/// All words of an image and all images are different.
fn paint(image: &mut [u8], number: u64) {
    for (at, word) in image.chunks_exact_mut(8).enumerate() {
        word.copy_from_slice(&(number << 32 | at as u64).to_le_bytes());
    }
}

#[test]
fn only_late_subscribers_with_history_get_the_history() {
    let Some(hosts) = Hosts::new() else { return };
    let mut publisher = hosts.one.run("publish_map");
    publisher.hears("published");
    let takers = ["want_map", "want_no_map"].map(|role| hosts.other.run(role));
    takers.into_iter().for_each(two::Process::ends);
    publisher.say("end");
    publisher.ends();
}

pub(crate) fn publish_map() {
    let node = node("publisher");
    let publishers = maps(&node).map(|topic| topic.transient_local(3).publisher().unwrap());
    for publisher in &publishers {
        for number in 0..10 {
            publisher.publish_copy(&[number]).unwrap();
        }
    }
    say("published");
    heard("end");
}

pub(crate) fn want_map() {
    let node = node("taker");
    for topic in maps(&node) {
        let mut subscriber = topic.transient_local(3).subscriber().unwrap();
        for number in 7..10 {
            assert_eq!(*subscriber.receive(WATCHDOG).unwrap().unwrap(), [number]);
        }
        assert!(subscriber.receive(Duration::from_millis(200)).unwrap().is_none());
    }
}

pub(crate) fn want_no_map() {
    let node = node("taker");
    for topic in maps(&node) {
        let mut subscriber = topic.subscriber().unwrap();
        assert!(subscriber.wait_for_match(1, WATCHDOG));
        assert!(subscriber.receive(Duration::from_millis(200)).unwrap().is_none());
    }
}

/// Both sides set history, with all other settings.
fn maps(node: &Node) -> [Topic<[u8]>; 3] {
    [
        node.topic("map").reliable(WATCHDOG),
        node.topic("map_best_effort").best_effort(),
        node.topic::<[u8]>("open_map").reliable(WATCHDOG).dds_type("test::Map"),
    ]
}

const IMAGES: u64 = 20;
const IMAGE_BYTES: usize = 10 << 20;
