//! A subscriber in an epoll loop, level- and edge-triggered.

mod support;

use std::os::fd::{AsFd, AsRawFd};

use myelin::FdSubscriber;
use rustix::event::{Timespec, epoll};
use support::{WATCHDOG, node, until};

#[test]
fn the_descriptor_is_readable_when_there_is_a_sample_and_only_then() {
    for edge in [epoll::EventFlags::empty(), epoll::EventFlags::ET] {
        let (_folder, node) = node();
        let topic = node.topic::<u64>("count").reliable(WATCHDOG);
        let mut subscriber = topic.subscriber_with_fd().unwrap();
        let publisher = topic.publisher().unwrap();
        assert!(publisher.wait_for_match(1, WATCHDOG) && subscriber.wait_for_match(1, WATCHDOG));
        assert_eq!(subscriber.as_fd().as_raw_fd(), subscriber.as_raw_fd());
        let queue = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
        let data = epoll::EventData::new_u64(7);
        epoll::add(&queue, &subscriber, data, epoll::EventFlags::IN | edge).unwrap();

        assert!(subscriber.take().unwrap().is_none());
        assert!(!is_ready(&queue, 0), "nothing has been published");
        let sender = std::thread::spawn(move || {
            for count in 0..COUNTS {
                publisher.publish_copy(&count).unwrap();
            }
            publisher
        });
        let mut expected = 0;
        while expected < COUNTS {
            assert!(is_ready(&queue, WATCHDOG.as_secs()), "a wake-up is missing");
            expected = take_all(&mut subscriber, expected);
        }
        let publisher = sender.join().unwrap();
        // One wake-up may be left, from a write that came after its sample had been taken.
        let _ = is_ready(&queue, 0);
        assert!(subscriber.take().unwrap().is_none());
        assert!(!is_ready(&queue, 0), "all has been taken");
        drop(publisher);
        until("the end of the match", || subscriber.matched() == 0);
        assert!(subscriber.take().unwrap().is_none());
    }
}

/// One fast and one slow subscriber, as in docs/reference/library.md. A publisher that is overtaken
/// between counting the wake word up and writing to the descriptor leaves it readable once, not for
/// ever.
#[test]
fn two_topics_in_one_epoll_have_few_spurious_wake_ups() {
    let (_folder, node) = node();
    let queue = epoll::create(epoll::CreateFlags::CLOEXEC).unwrap();
    let mut topics = ["fast", "slow"].map(|name| {
        let topic = node.topic::<u64>(name).depth(1_000);
        let (subscriber, publisher) =
            (topic.subscriber_with_fd().unwrap(), topic.publisher().unwrap());
        assert!(publisher.wait_for_match(1, WATCHDOG) && subscriber.wait_for_match(1, WATCHDOG));
        let data = epoll::EventData::new_u64(7);
        epoll::add(&queue, &subscriber, data, epoll::EventFlags::IN).unwrap();
        (subscriber, Some(publisher))
    });
    let senders = [(0, COUNTS, 200), (1, COUNTS / 50, 10_000)].map(|(at, count, pause_us)| {
        let publisher = topics[at].1.take().unwrap();
        std::thread::spawn(move || {
            for count in 0..count {
                publisher.publish_copy(&count).unwrap();
                std::thread::sleep(std::time::Duration::from_micros(pause_us));
            }
            publisher
        })
    });
    let (mut expected, mut in_vain, mut in_a_row) = ([0; 2], 0, 0);
    while expected != [COUNTS, COUNTS / 50] {
        assert!(is_ready(&queue, WATCHDOG.as_secs()), "a wake-up is missing");
        let before = expected;
        for (at, (subscriber, _)) in topics.iter_mut().enumerate() {
            expected[at] = take_all(subscriber, expected[at]);
        }
        let was_in_vain = before == expected;
        in_vain += u32::from(was_in_vain);
        // One for each publisher, for the sample that was just taken.
        in_a_row = if was_in_vain { in_a_row + 1 } else { 0 };
        assert!(in_a_row <= 2, "it spins: {in_vain} wake-ups in vain");
    }
    for sender in senders {
        drop(sender.join().unwrap());
    }
    println!("{in_vain} wake-ups in vain for {} samples", COUNTS + COUNTS / 50);
}

fn take_all(subscriber: &mut FdSubscriber<u64>, mut expected: u64) -> u64 {
    while let Some(sample) = subscriber.take().unwrap() {
        assert_eq!(*sample, expected);
        expected += 1;
    }
    expected
}

fn is_ready(queue: &impl AsFd, limit_s: u64) -> bool {
    let mut events = Vec::with_capacity(4);
    let limit = Timespec { tv_sec: limit_s as i64, tv_nsec: 0 };
    let buffer = rustix::buffer::spare_capacity(&mut events);
    epoll::wait(queue, buffer, Some(&limit)).unwrap();
    events.iter().any(|event: &epoll::Event| event.data.u64() == 7)
}

const COUNTS: u64 = 10_000;
