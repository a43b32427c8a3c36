//! Shared by the tests: a node in a folder of its own, a watchdog, conditions.
#![allow(dead_code, reason = "each test file uses its own part")]

pub mod other_side;

use std::time::{Duration, Instant};

use myelin::{Node, Payload, Publisher, Subscriber, Topic};
use tempfile::TempDir;

/// A node that no other test sees. The folder is removed with the returned guard.
pub fn node() -> (TempDir, Node) {
    let folder = tempfile::tempdir().unwrap();
    let node = Node::builder("test").runtime_dir(folder.path()).open().unwrap();
    (folder, node)
}

/// Both ends of a topic, matched.
pub fn ends<T: Payload + ?Sized>(topic: &Topic<T>) -> (Publisher<T>, Subscriber<T>) {
    matched(topic.publisher().unwrap(), topic.subscriber().unwrap())
}

/// Both, once they are matched.
pub fn matched<T: Payload + ?Sized>(
    publisher: Publisher<T>,
    subscriber: Subscriber<T>,
) -> (Publisher<T>, Subscriber<T>) {
    assert!(publisher.wait_for_match(1, WATCHDOG) && subscriber.wait_for_match(1, WATCHDOG));
    (publisher, subscriber)
}

/// Waits for a condition; fails the test if it does not come true.
pub fn until(what: &str, is_so: impl FnMut() -> bool) {
    within(WATCHDOG, what, is_so);
}

/// Like [`until`], for events that come within a second: well before the ten that other causes
/// take.
pub fn soon(what: &str, is_so: impl FnMut() -> bool) {
    within(Duration::from_secs(6), what, is_so);
}

fn within(limit: Duration, what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < limit, "waited in vain for: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

/// Nothing in these tests takes nearly so long.
pub const WATCHDOG: Duration = Duration::from_secs(60);
