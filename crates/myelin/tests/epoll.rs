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
        assert!(!is_ready(&queue, 0), "all has been taken");
        drop(publisher);
        until("the end of the match", || subscriber.matched() == 0);
        assert!(subscriber.take().unwrap().is_none());
    }
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
