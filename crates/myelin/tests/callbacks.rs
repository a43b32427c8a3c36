//! Functions called with every sample.

mod support;

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, mpsc};

use myelin::{Callback, Error, Event, Sample, Wait};
use support::{WATCHDOG, ends, matched, node, until};

#[test]
fn every_sample_is_delivered_in_order_whatever_the_wait() {
    let (_folder, node) = node();
    for wait in [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive] {
        let topic = node.topic::<u64>("count").reliable(WATCHDOG);
        let (publisher, mut subscriber) = ends(&topic);
        subscriber.set_wait(wait);
        let (to, from) = mpsc::channel();
        let callback = subscriber.on_sample(move |sample| to.send(**sample).unwrap()).unwrap();
        for count in 0..1_000 {
            publisher.publish_copy(&count).unwrap();
        }
        let all: Vec<u64> = from.iter().take(1_000).collect();
        assert!(all.iter().copied().eq(0..1_000));
        until("the last count", || callback.calls() == 1_000);
        assert_eq!((callback.panics(), callback.lost()), (0, 0));
        assert!(callback.error().is_none());
    }
}

#[test]
fn a_panic_is_contained_and_counted() {
    let (_folder, node) = node();
    let (publisher, subscriber) = ends(&node.topic::<u64>("count"));
    let (to, from) = mpsc::channel();
    let callback = subscriber.on_sample(move |sample: &Sample<u64>| {
        if **sample == 1 {
            // The message of `panic!` would look like this test's failure.
            std::panic::resume_unwind(Box::new("odd"));
        }
        to.send(**sample).unwrap();
    });
    let callback = callback.unwrap();
    for count in 0..3 {
        publisher.publish_copy(&count).unwrap();
    }
    assert_eq!(from.iter().take(2).collect::<Vec<_>>(), [0, 2]);
    until("three calls", || callback.calls() == 3);
    assert_eq!(callback.panics(), 1);
}

#[test]
fn dropping_the_handle_waits_for_the_call_and_ends_the_thread() {
    let (_folder, node) = node();
    let (publisher, subscriber) = ends(&node.topic::<u64>("count"));
    let (entered, has_entered) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let finished = Arc::new(AtomicBool::new(false));
    let its = finished.clone();
    let callback = subscriber.on_sample(move |_| {
        entered.send(()).unwrap();
        may_go_on.recv().unwrap();
        its.store(true, Ordering::Release);
    });
    let publishing = std::thread::spawn(move || {
        publisher.publish_copy(&0).unwrap();
        publisher
    });
    has_entered.recv_timeout(WATCHDOG).unwrap();
    let dropper = std::thread::spawn(move || drop(callback.unwrap()));
    go_on.send(()).unwrap();
    dropper.join().unwrap();
    let publisher = publishing.join().unwrap();
    assert!(finished.load(Ordering::Acquire));
    assert!(has_entered.recv_timeout(WATCHDOG).is_err(), "the function is dropped");
    until("the end of the match", || publisher.matched() == 0);
}

#[test]
fn a_function_may_drop_its_own_handle() {
    let (_folder, node) = node();
    let (publisher, subscriber) = ends(&node.topic::<u64>("count"));
    let handle: Arc<Mutex<Option<Callback>>> = Arc::default();
    let its = handle.clone();
    let callback = subscriber.on_sample(move |_| drop(its.lock().unwrap().take())).unwrap();
    *handle.lock().unwrap() = Some(callback);
    publisher.publish_copy(&0).unwrap();
    until("the end of the match", || publisher.matched() == 0);
    assert!(handle.lock().unwrap().is_none());
}

#[test]
fn too_many_held_samples_are_reported_and_calls_resume_after_release() {
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("image");
    let subscriber = topic.subscriber_builder().held_max(2).open().unwrap();
    let (publisher, subscriber) = matched(topic.publisher().unwrap(), subscriber);
    let kept: Arc<Mutex<Vec<Sample<[u8]>>>> = Arc::default();
    let its = kept.clone();
    let callback =
        subscriber.on_sample(move |sample| its.lock().unwrap().push(sample.clone())).unwrap();
    for value in 0..3 {
        publisher.publish_copy(&[value; 1000]).unwrap();
    }
    let mut error = None;
    until("the error", || {
        error = callback.error();
        error.is_some()
    });
    assert!(matches!(error, Some(Error::TooManyHeld { held: 2, .. })), "{error:?}");
    kept.lock().unwrap().clear();
    until("the third sample", || kept.lock().unwrap().first().is_some_and(|it| it[0] == 2));
}

#[test]
fn events_are_seen_through_the_handle() {
    let (_folder, node) = node();
    let (publisher, subscriber) = ends(&node.topic::<u64>("count"));
    let callback = subscriber.on_sample(|_| {}).unwrap();
    assert_eq!(callback.matched(), 1);
    assert!(matches!(callback.events()[..], [Event::Matched { .. }]));
    drop(publisher);
    until("the end of the match", || callback.matched() == 0);
    assert!(matches!(callback.events()[..], [Event::Unmatched { died: false, .. }]));
}

#[test]
fn two_callbacks_play_ping_pong() {
    let (_folder, node) = node();
    let (there, there_taker) = ends(&node.topic::<u64>("there"));
    let (back, mut back_taker) = ends(&node.topic::<u64>("back"));
    let _pong = there_taker
        .on_sample(move |sample| {
            back.publish_copy(&(**sample + 1)).unwrap();
        })
        .unwrap();
    for count in 0..1_000 {
        there.publish_copy(&count).unwrap();
        assert_eq!(*back_taker.receive(WATCHDOG).unwrap().unwrap(), count + 1);
    }
}
