//! No lock of the library is held while code of the user runs: publishers that threads share.

mod support;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, OnceLock, mpsc};
use std::thread;
use std::time::Duration;

use myelin::{Callback, Error, Sample, SharedPublisher, Topic};
use support::{WATCHDOG, node, until};

/// Whether it ends before the watchdog does. A thread that hangs is left behind.
fn ends(what: &str, run: impl FnOnce() + Send + 'static) {
    let (to, from) = mpsc::channel();
    let thread = thread::spawn(move || {
        run();
        to.send(()).unwrap();
    });
    match from.recv_timeout(WATCHDOG) {
        Err(mpsc::RecvTimeoutError::Timeout) => panic!("{what} hangs"),
        _ => thread.join().unwrap(),
    }
}

/// A shared publisher of the topic, and a callback of it.
fn shared(
    topic: &Topic<[u8]>,
    call: impl FnMut(&Sample<[u8]>) + Send + 'static,
) -> (SharedPublisher<[u8]>, Callback) {
    let publisher = topic.publisher().unwrap().shared();
    let subscriber = topic.subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    (publisher, subscriber.on_sample(call).unwrap())
}

/// Two threads publish `bytes` bytes, each to a topic whose function publishes to the other's.
fn cross(bytes: usize) {
    const ROUNDS: u64 = 20;
    let (_folder, node) = node();
    let publishers: [Arc<OnceLock<SharedPublisher<[u8]>>>; 2] = Default::default();
    // Until both functions run, at the first call.
    let both = Arc::new(Barrier::new(2));
    let topics = ["a", "b"].map(|name| node.topic::<[u8]>(name).depth(64));
    let mut callbacks = Vec::new();
    for (at, topic) in topics.iter().enumerate() {
        let (other, both) = (publishers[1 - at].clone(), both.clone());
        let mut is_first = true;
        let (publisher, callback) = shared(topic, move |sample| {
            if sample[0] == 1 {
                return;
            }
            if std::mem::take(&mut is_first) {
                both.wait();
            }
            let mut loan = other.get().unwrap().loan(bytes).unwrap();
            loan.fill(1);
            loan.publish().unwrap();
            other.get().unwrap().publish_copy(&[1]).unwrap();
            drop(other.get().unwrap().loan(1_000).unwrap());
        });
        publishers[at].set(publisher).unwrap();
        callbacks.push(callback);
    }
    thread::scope(|scope| {
        for publisher in &publishers {
            scope.spawn(|| {
                for _ in 0..ROUNDS {
                    publisher.get().unwrap().publish_copy(&vec![0; bytes]).unwrap();
                }
            });
        }
    });
    until("all calls", || callbacks.iter().all(|callback| callback.calls() == 3 * ROUNDS));
    let ended =
        callbacks.iter().all(|it| it.panics() == 0 && it.lost() == 0 && it.error().is_none());
    assert!(ended);
}

#[test]
fn threads_that_publish_on_each_others_topics_do_not_wait_for_each_other() {
    ends("crossing in the ring", || cross(8));
    ends("crossing in slots", || cross(1_000));
}

#[test]
fn a_callback_may_use_the_shared_publisher_that_runs_it() {
    ends("a publisher in its own callback", || {
        let (_folder, node) = node();
        let its: Arc<OnceLock<SharedPublisher<[u8]>>> = Arc::default();
        let (to, from) = mpsc::channel();
        let of_callback = its.clone();
        let (publisher, callback) = shared(&node.topic("count"), move |sample| {
            let publisher = of_callback.get().unwrap();
            to.send(sample.to_vec()).unwrap();
            if sample.len() < 1_000 {
                publisher.publish_copy(&vec![sample[0] + 1; sample.len() * 10]).unwrap();
                drop(publisher.loan(500).unwrap());
                publisher.reserve(2, 500).unwrap();
                publisher.assert_liveliness().unwrap();
            }
        });
        its.set(publisher.clone()).unwrap();
        assert_eq!(publisher.publish_copy(&[0]).unwrap().sequence, 0);
        for count in 0..4 {
            let sample = from.recv_timeout(WATCHDOG).unwrap();
            assert_eq!(sample, vec![count; 10_usize.pow(u32::from(count))], "in order");
        }
        until("the calls to end", || callback.calls() == 4);
        assert_eq!((callback.panics(), callback.lost()), (0, 0));
        drop(callback);
        drop(its);
    });
}

#[test]
fn samples_of_threads_that_share_a_publisher_come_in_order_and_once() {
    const SAMPLES: u64 = 500;
    let (_folder, node) = node();
    let (next, wrong) = (Arc::new(AtomicU64::new(0)), Arc::new(AtomicU64::new(0)));
    let (its_next, its_wrong) = (next.clone(), wrong.clone());
    let topic = node.topic("count").depth(16).reliable(WATCHDOG);
    let (publisher, callback) = shared(&topic, move |sample| {
        let expected = its_next.fetch_add(1, Ordering::Relaxed);
        its_wrong.fetch_add(u64::from(sample.sequence() != expected), Ordering::Relaxed);
    });
    thread::scope(|scope| {
        for length in [8, 100, 200, 10_000] {
            let publisher = publisher.clone();
            scope.spawn(move || {
                (0..SAMPLES).for_each(|_| _ = publisher.publish_copy(&vec![0; length]).unwrap());
            });
        }
    });
    until("all calls", || callback.calls() == 4 * SAMPLES);
    assert_eq!((wrong.load(Ordering::Relaxed), callback.lost()), (0, 0));
}

#[test]
fn a_publish_that_waits_for_a_subscriber_leaves_the_others_their_publisher() {
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("slow").depth(1).reliable(WATCHDOG);
    let publisher = topic.publisher().unwrap().shared();
    let mut subscriber = topic.subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&[0]).unwrap();
    let waiting: Vec<_> = (1..3)
        .map(|count| {
            let publisher = publisher.clone();
            thread::spawn(move || publisher.publish_copy(&[count]).map(|it| it.sequence))
        })
        .collect();
    ends("a call beside a publish that waits", move || {
        let take = |subscriber: &mut myelin::Subscriber<[u8]>| {
            let sample = subscriber.receive(WATCHDOG).unwrap().unwrap();
            drop(sample);
        };
        // Other calls, whether the two wait already or not.
        for _ in 0..20 {
            drop(publisher.loan(1_000).unwrap());
            publisher.assert_liveliness().unwrap();
            assert_eq!(publisher.matched(), 1);
            thread::sleep(Duration::from_millis(1));
        }
        assert!(waiting.iter().all(|thread| !thread.is_finished()), "the ring is full");
        (0..3).for_each(|_| take(&mut subscriber));
        let mut published: Vec<_> =
            waiting.into_iter().map(|it| it.join().unwrap().unwrap()).collect();
        published.sort_unstable();
        assert_eq!(published, [1, 2]);
    });
}

#[test]
fn a_publish_that_has_waited_too_long_gives_its_loan_back() {
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("slow").depth(1).reliable_or_fail(Duration::from_millis(1));
    let publisher = topic.publisher_builder().loans_max(1).open().unwrap().shared();
    let subscriber = topic.subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    publisher.publish_copy(&[0]).unwrap();
    for _ in 0..3 {
        let outcome = publisher.loan(1_000).unwrap().publish();
        assert!(matches!(outcome, Err(Error::ReliableTimeout { .. })), "{outcome:?}");
    }
    drop(subscriber);
    publisher.loan(1_000).unwrap().publish().unwrap();
}

/// Of a publisher that is not shared: its callback may drop a loan of it.
#[test]
fn a_loan_that_is_dropped_in_its_publishers_callback_is_not_lost() {
    use std::cell::RefCell;
    thread_local!(static LOAN: RefCell<Option<myelin::Loan<'static, [u8]>>> = RefCell::new(None));
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("image");
    let publisher = topic.publisher_builder().loans_max(1).open().unwrap();
    let publisher: &'static myelin::Publisher<[u8]> = Box::leak(Box::new(publisher));
    let subscriber = topic.subscriber().unwrap();
    assert!(publisher.wait_for_match(1, WATCHDOG));
    let callback = subscriber.on_sample(|_| LOAN.with(|loan| drop(loan.take()))).unwrap();
    for count in 0..3 {
        LOAN.set(Some(publisher.loan(1_000).expect("the one loan is free")));
        publisher.publish_copy(&[count]).unwrap();
        assert!(LOAN.with(|loan| loan.borrow().is_none()), "the callback ran in the publish");
    }
    drop(callback);
}
