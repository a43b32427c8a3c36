//! Waits that check whether to go on: the case of a binding to a language that runs signal handlers
//! in the waiting thread.

mod support;

use std::cell::Cell;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use myelin::{Error, Wait, cancel};
use support::WATCHDOG;

thread_local! {
    /// How many checks until this thread's waits are cancelled; `None`: they do not check.
    static LEFT: Cell<Option<u32>> = const { Cell::new(None) };
    /// Set by a check of this thread.
    static IS_ASKED: Cell<Option<&'static AtomicBool>> = const { Cell::new(None) };
}

fn interval() -> Option<Duration> {
    LEFT.get().map(|_| Duration::from_millis(1))
}

fn is_cancelled() -> bool {
    if let Some(is_asked) = IS_ASKED.get() {
        is_asked.store(true, Ordering::Relaxed);
    }
    LEFT.set(LEFT.get().map(|left| left.saturating_sub(1)));
    LEFT.get() == Some(0)
}

/// Waits, and is cancelled at the third check.
fn cancelled<R>(wait: impl FnOnce() -> R) -> R {
    cancel::install(cancel::Checks { interval, is_cancelled });
    LEFT.set(Some(3));
    let result = wait();
    assert_eq!(LEFT.replace(None), Some(0), "it was cancelled");
    result
}

#[test]
fn a_subscriber_s_wait_is_cancelled() {
    let (_folder, node) = support::node();
    let mut subscriber = node.topic::<u64>("t").subscriber().unwrap();
    for wait in [Wait::Adaptive, Wait::Block, Wait::Poll, Wait::Predictive] {
        subscriber.set_wait(wait);
        assert!(!cancelled(|| subscriber.wait(Duration::MAX)).unwrap(), "{wait:?}");
        assert!(cancelled(|| subscriber.receive(WATCHDOG)).unwrap().is_none(), "{wait:?}");
    }
    assert!(!cancelled(|| subscriber.wait_for_match(1, Duration::MAX)));
}

#[test]
fn a_wait_set_s_wait_is_cancelled() {
    let (_folder, node) = support::node();
    let subscriber = node.topic::<u64>("t").subscriber().unwrap();
    let mut set = node.wait_set().unwrap();
    set.add(&subscriber).unwrap();
    for wait in [Wait::Adaptive, Wait::Poll] {
        set.set_wait(wait);
        assert_eq!(cancelled(|| set.wait(Duration::MAX).map(<[_]>::len)).unwrap(), 0, "{wait:?}");
    }
}

#[test]
fn calls_and_services_are_cancelled() {
    let (_folder, node) = support::node();
    let mut service = node.service::<u64, u64>("s").unwrap();
    let client = node.client::<u64, u64>("nobody").unwrap();
    assert!(cancelled(|| service.receive(Duration::MAX)).unwrap().is_none());
    assert!(!cancelled(|| client.wait_for_service(Duration::MAX)).unwrap());
    let called = cancelled(|| client.call(&1, Duration::MAX));
    assert!(matches!(called, Err(Error::NoServer { .. })), "{called:?}");
}

#[test]
fn a_publish_that_waits_is_cancelled_and_publishes_nothing() {
    let (_folder, node) = support::node();
    let topic = node.topic::<u64>("t").depth(1).reliable(WATCHDOG);
    let (publisher, mut subscriber) = support::ends(&topic);
    publisher.publish_copy(&1).unwrap();
    let published = cancelled(|| publisher.publish_copy(&2));
    assert!(matches!(published, Err(Error::ReliableTimeout { .. })), "{published:?}");
    assert_eq!(subscriber.take().unwrap().as_deref(), Some(&1));
    publisher.publish_copy(&3).unwrap();
    assert_eq!(subscriber.take().unwrap().as_deref(), Some(&3));
}

/// A publisher of several threads: one thread waits for the subscriber, the next one for the first
/// thread.
#[test]
fn a_publish_behind_one_that_waits_is_cancelled() {
    static FIRST_WAITS: AtomicBool = AtomicBool::new(false);
    cancel::install(cancel::Checks { interval, is_cancelled });
    let (_folder, node) = support::node();
    let topic = node.topic::<u64>("t").depth(1).reliable(WATCHDOG);
    let (publisher, mut subscriber) = support::ends(&topic);
    let publisher = publisher.shared();
    publisher.publish_copy(&1).unwrap();
    std::thread::scope(|scope| {
        let first = scope.spawn(|| {
            IS_ASKED.set(Some(&FIRST_WAITS));
            LEFT.set(Some(u32::MAX));
            publisher.publish_copy(&2)
        });
        support::until("the first to wait", || FIRST_WAITS.load(Ordering::Relaxed));
        let second = cancelled(|| publisher.publish_copy(&3));
        assert!(matches!(second, Err(Error::ReliableTimeout { .. })), "{second:?}");
        assert!(!first.is_finished());
        publisher.assert_liveliness().unwrap();
        assert_eq!(subscriber.take().unwrap().as_deref(), Some(&1));
        first.join().unwrap().unwrap();
    });
    assert_eq!(subscriber.take().unwrap().as_deref(), Some(&2));
    assert!(subscriber.take().unwrap().is_none());
}

#[test]
fn checks_without_cancellation_have_no_effect() {
    let (_folder, node) = support::node();
    let (publisher, mut subscriber) = support::ends(&node.topic::<u64>("t"));
    let publisher = publisher.shared();
    cancel::install(cancel::Checks { interval, is_cancelled });
    LEFT.set(Some(u32::MAX));
    for wait in [Wait::Adaptive, Wait::Block, Wait::Poll, Wait::Predictive] {
        subscriber.set_wait(wait);
        let (begun, limit) = (Instant::now(), Duration::from_millis(20));
        assert!(subscriber.receive(limit).unwrap().is_none(), "{wait:?}");
        assert!(begun.elapsed() >= limit, "{wait:?}");
        std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(5));
                publisher.publish_copy(&7).unwrap();
            });
            assert_eq!(subscriber.receive(Duration::MAX).unwrap().as_deref(), Some(&7), "{wait:?}");
        });
    }
    let checks = u32::MAX - LEFT.replace(None).unwrap();
    assert!(checks > 0);
}
