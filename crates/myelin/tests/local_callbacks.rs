//! Callbacks that publishers of the same process run inside their publish.

mod support;

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use myelin::{Callback, Error, Node, Publisher, Sample, Topic};
use support::{WATCHDOG, ends, matched, node, until};

/// A callback of the topic that is matched with `publishers`.
fn callback<F>(topic: &Topic<u64>, publishers: usize, call: F) -> Callback
where
    F: FnMut(&Sample<u64>) + Send + 'static,
{
    let subscriber = topic.subscriber_builder().publishers_max(64).open().unwrap();
    assert!(subscriber.wait_for_match(publishers, WATCHDOG));
    subscriber.on_sample(call).unwrap()
}

fn publisher(topic: &Topic<u64>, subscribers: usize) -> Publisher<u64> {
    let publisher = topic.publisher().unwrap();
    assert!(
        publisher.wait_for_match(subscribers, std::time::Duration::from_secs(3)),
        "{:?}",
        publisher.events()
    );
    publisher
}

#[test]
fn publish_returns_when_all_have_been_called_in_order_in_its_thread() {
    let (_folder, node) = node();
    let topic = node.topic("count");
    let publisher = topic.publisher().unwrap();
    let calls: Arc<Mutex<Vec<_>>> = Arc::default();
    let _callbacks: Vec<_> = (0..3)
        .map(|number| {
            let its = calls.clone();
            let call = move |sample: &Sample<u64>| {
                its.lock().unwrap().push((number, **sample, thread::current().id()));
            };
            callback(&topic, 1, call)
        })
        .collect();
    let here = thread::current().id();
    for count in 0..1_000 {
        publisher.publish_copy(&count).unwrap();
        let expected: Vec<_> = (0..3).map(|number| (number, count, here)).collect();
        assert_eq!(std::mem::take(&mut *calls.lock().unwrap()), expected);
    }
}

#[test]
fn nodes_of_one_process_match_like_one_node() {
    let (folder, first) = node();
    let second = Node::builder("second").runtime_dir(folder.path()).open().unwrap();
    let publisher = first.topic::<u64>("count").publisher().unwrap();
    let called_by = Arc::new(Mutex::new(None));
    let its = called_by.clone();
    let callback = callback(&second.topic("count"), 1, move |_| {
        *its.lock().unwrap() = Some(thread::current().id());
    });
    publisher.publish_copy(&0).unwrap();
    until("the first call", || callback.calls() == 1);
    publisher.publish_copy(&1).unwrap();
    assert_eq!((callback.calls(), *called_by.lock().unwrap()), (2, Some(thread::current().id())));
}

#[test]
fn a_callback_gets_the_loan_in_place_and_a_clone_keeps_it() {
    let (_folder, node) = node();
    let (publisher, subscriber) = ends(&node.topic::<[u8]>("image"));
    let kept: Arc<Mutex<Vec<Sample<[u8]>>>> = Arc::default();
    let its = kept.clone();
    let _callback = subscriber
        .on_sample(move |sample| {
            assert_eq!(sample.lost_before(), 0);
            if sample.sequence().is_multiple_of(100) {
                its.lock().unwrap().push(sample.clone());
            }
        })
        .unwrap();
    for count in 0..1_000u64 {
        let mut loan = publisher.loan(100_000).unwrap();
        loan.fill(count as u8);
        loan.publish().unwrap();
    }
    drop(publisher);
    let kept = kept.lock().unwrap();
    assert_eq!(kept.len(), 10);
    for sample in &*kept {
        assert!(sample.iter().all(|byte| *byte == sample.sequence() as u8));
    }
}

#[test]
fn a_sample_that_is_not_kept_frees_its_memory_at_once() {
    let (_folder, node) = node();
    // Room for a few slots of 64 KiB.
    let topic = node.topic::<[u8]>("image");
    let (publisher, subscriber) = matched(
        topic.publisher_builder().memory_max(1 << 20).open().unwrap(),
        topic.subscriber_builder().held_max(1).open().unwrap(),
    );
    let callback = subscriber.on_sample(|_| {}).unwrap();
    for _ in 0..1_000 {
        publisher.publish_copy(&[1; 65_536]).unwrap();
    }
    assert_eq!((callback.calls(), callback.lost()), (1_000, 0));
}

#[test]
fn publishers_of_several_threads_never_run_it_at_once_and_lose_nothing() {
    const PUBLISHERS: usize = 4;
    const EACH: u64 = 5_000;
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count").reliable(WATCHDOG);
    let publishers: Vec<_> = (0..PUBLISHERS).map(|_| topic.publisher().unwrap()).collect();
    let (running, overlaps) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicU32::new(0)));
    let next: Arc<Mutex<[u64; PUBLISHERS]>> = Arc::default();
    let (is_running, overlapping, its) = (running.clone(), overlaps.clone(), next.clone());
    let callback = callback(&topic, PUBLISHERS, move |sample| {
        overlapping
            .fetch_add(u32::from(is_running.swap(true, Ordering::AcqRel)), Ordering::Relaxed);
        let (from, count) = ((**sample >> 32) as usize, **sample & 0xffff_ffff);
        let mut next = its.lock().unwrap();
        assert_eq!(next[from], count);
        next[from] += 1;
        drop(next);
        is_running.store(false, Ordering::Release);
    });
    thread::scope(|scope| {
        for (number, publisher) in publishers.into_iter().enumerate() {
            scope.spawn(move || {
                for count in 0..EACH {
                    publisher.publish_copy(&((number as u64) << 32 | count)).unwrap();
                }
                publisher
            });
        }
    });
    until("all calls", || *next.lock().unwrap() == [EACH; PUBLISHERS]);
    assert_eq!((overlaps.load(Ordering::Relaxed), callback.panics(), callback.lost()), (0, 0, 0));
}

#[test]
fn a_callback_may_publish_to_its_own_topic() {
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count").depth(100);
    let again = topic.publisher().unwrap();
    let first = topic.publisher().unwrap();
    let seen: Arc<Mutex<BTreeSet<u64>>> = Arc::default();
    let (its, depth) = (seen.clone(), AtomicU32::new(0));
    let callback = callback(&topic, 2, move |sample| {
        assert_eq!(depth.fetch_add(1, Ordering::Relaxed), 0, "not within itself");
        if **sample < 50 {
            again.publish_copy(&(**sample + 1)).unwrap();
        }
        its.lock().unwrap().insert(**sample);
        depth.fetch_sub(1, Ordering::Relaxed);
    });
    first.publish_copy(&0).unwrap();
    until("a chain of calls", || seen.lock().unwrap().len() == 51);
    assert_eq!((callback.panics(), callback.lost()), (0, 0));
}

#[test]
fn a_callback_that_uses_its_calling_publisher_gets_an_error() {
    thread_local! {
        static PUBLISHER: RefCell<Option<Publisher<u64>>> = const { RefCell::new(None) };
    }
    let publish = |count: u64| {
        PUBLISHER.with(|publisher| publisher.borrow().as_ref().unwrap().publish_copy(&count))
    };
    let (_folder, node) = node();
    let topic = node.topic("count");
    PUBLISHER.set(Some(topic.publisher().unwrap()));
    let outcome: Arc<Mutex<Option<Error>>> = Arc::default();
    let its = outcome.clone();
    let _callback = callback(&topic, 1, move |_| *its.lock().unwrap() = publish(1).err());
    assert_eq!(publish(0).unwrap().sequence, 0);
    let outcome = outcome.lock().unwrap().take();
    assert!(matches!(outcome, Some(Error::Reentered)), "{outcome:?}");
    assert_eq!(publish(2).unwrap().sequence, 1, "nothing was published in between");
}

#[test]
fn a_panic_ends_neither_the_publish_nor_the_other_calls() {
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("image").reliable(WATCHDOG);
    let publisher = topic.publisher().unwrap();
    let callbacks: Vec<_> = (0..3)
        .map(|number| {
            let subscriber = topic.subscriber().unwrap();
            assert!(subscriber.wait_for_match(1, WATCHDOG));
            let call = move |sample: &Sample<[u8]>| {
                if number == 1 && sample.sequence().is_multiple_of(2) {
                    // The message of `panic!` would look like this test's failure.
                    std::panic::resume_unwind(Box::new("odd"));
                }
            };
            subscriber.on_sample(call).unwrap()
        })
        .collect();
    for count in 0..100 {
        publisher.publish_copy(&[count; 1_000]).unwrap();
    }
    until("all calls", || callbacks.iter().all(|callback| callback.calls() == 100));
    let panics: Vec<_> = callbacks.iter().map(Callback::panics).collect();
    assert_eq!(panics, [0, 50, 0]);
    assert!(callbacks.iter().all(|callback| callback.error().is_none()), "nothing stays held");
}

#[test]
fn a_callback_may_make_and_drop_others() {
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count").reliable(WATCHDOG);
    let publisher = topic.publisher().unwrap();
    let made: Arc<Mutex<Vec<Callback>>> = Arc::default();
    let (its, its_topic) = (made.clone(), topic.clone());
    let calls = Arc::new(AtomicU64::new(0));
    let its_calls = calls.clone();
    let maker = callback(&topic, 1, move |sample| match **sample {
        0 => {
            let (subscriber, calls) = (its_topic.subscriber().unwrap(), its_calls.clone());
            let count = move |_: &Sample<u64>| {
                calls.fetch_add(1, Ordering::Relaxed);
            };
            its.lock().unwrap().push(subscriber.on_sample(count).unwrap());
        }
        100 => its.lock().unwrap().clear(),
        _ => {}
    });
    publisher.publish_copy(&0).unwrap();
    assert!(made.lock().unwrap()[0].wait_for_match(1, WATCHDOG));
    for count in 1..100 {
        publisher.publish_copy(&count).unwrap();
    }
    until("its calls", || calls.load(Ordering::Relaxed) == 99);
    for count in 100..200 {
        publisher.publish_copy(&count).unwrap();
    }
    until("the end of the match", || publisher.matched() == 1);
    // One more if it was its own thread's turn, which does not wait for the maker.
    assert!((99..=100).contains(&calls.load(Ordering::Relaxed)));
    assert_eq!((maker.calls(), maker.panics()), (200, 0));
}

#[test]
fn earlier_samples_are_delivered_first() {
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count").transient_local(4);
    let publisher = topic.publisher().unwrap();
    for count in 0..4 {
        publisher.publish_copy(&count).unwrap();
    }
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let its = seen.clone();
    let callback = callback(&topic, 1, move |sample| its.lock().unwrap().push(**sample));
    publisher.publish_copy(&4).unwrap();
    until("five calls", || callback.calls() == 5);
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3, 4]);
}

#[test]
fn a_thousand_topics() {
    let (_folder, node) = node();
    let calls = Arc::new(AtomicU64::new(0));
    let ends: Vec<_> = (0..1_000)
        .map(|number| {
            let topic = node.topic::<u64>(&format!("topic/{number}"));
            let (publisher, calls) = (topic.publisher().unwrap(), calls.clone());
            let callback = callback(&topic, 1, move |sample| {
                assert_eq!(**sample, number);
                calls.fetch_add(1, Ordering::Relaxed);
            });
            (publisher, callback)
        })
        .collect();
    for (number, (publisher, _)) in ends.iter().enumerate() {
        publisher.publish_copy(&(number as u64)).unwrap();
    }
    until("all calls", || calls.load(Ordering::Relaxed) == 1_000);
    assert!(ends.iter().all(|(_, callback)| callback.panics() == 0));
}

#[test]
fn a_waiting_thread_gets_the_same_samples_without_a_copy() {
    let (_folder, node) = node();
    let topic = node.topic::<[u8]>("image").reliable(WATCHDOG);
    let (publisher, mut waiting) = ends(&topic);
    let called = topic.subscriber().unwrap();
    assert!(called.wait_for_match(1, WATCHDOG) && publisher.wait_for_match(2, WATCHDOG));
    let callback = called.on_sample(|sample| assert_eq!(sample.len(), 10_000)).unwrap();
    let counts = thread::scope(|scope| {
        let taking = scope.spawn(|| {
            let last = |_| waiting.receive(WATCHDOG).unwrap().unwrap()[9_999];
            (0..100).map(last).collect::<Vec<u8>>()
        });
        for count in 0..100 {
            publisher.publish_copy(&[count; 10_000]).unwrap();
        }
        taking.join().unwrap()
    });
    assert!(counts.into_iter().eq(0..100));
    assert_eq!((callback.calls(), callback.panics()), (100, 0));
}

#[test]
fn publishers_come_and_go_while_others_publish() {
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count").reliable(WATCHDOG);
    let steady = topic.publisher().unwrap();
    let sum = Arc::new(AtomicU64::new(0));
    let its = sum.clone();
    let callback = callback(&topic, 1, move |sample| {
        its.fetch_add(**sample, Ordering::Relaxed);
    });
    let mut expected = 0;
    thread::scope(|scope| {
        let others = scope.spawn(|| {
            for count in 0..50 {
                publisher(&topic, 1).publish_copy(&count).unwrap();
            }
        });
        for count in 0..20_000 {
            steady.publish_copy(&count).unwrap();
            expected += count;
        }
        others.join().unwrap();
        expected += (0..50).sum::<u64>();
    });
    until("all calls", || callback.calls() == 20_050);
    assert_eq!((sum.load(Ordering::Relaxed), callback.lost(), callback.panics()), (expected, 0, 0));
}

#[test]
fn a_concurrent_callback_is_run_by_several_publishers_at_once() {
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count").depth(100);
    let publishers = [topic.publisher().unwrap(), topic.publisher().unwrap()];
    let subscriber = topic.subscriber().unwrap();
    assert!(subscriber.wait_for_match(2, WATCHDOG));
    // The first call waits until there is another at the same time.
    let (calls, met) = (AtomicU32::new(0), AtomicBool::new(false));
    let callback = subscriber.on_sample_concurrent(move |_| {
        met.fetch_or(calls.fetch_add(1, Ordering::SeqCst) > 0, Ordering::SeqCst);
        until("another call", || met.load(Ordering::SeqCst));
        calls.fetch_sub(1, Ordering::SeqCst);
    });
    let callback = callback.unwrap();
    thread::scope(|scope| {
        for publisher in publishers {
            scope.spawn(move || {
                for count in 0..100 {
                    publisher.publish_copy(&count).unwrap();
                }
            });
        }
    });
    until("all calls", || callback.calls() == 200);
    assert_eq!((callback.panics(), callback.lost()), (0, 0));
}

#[test]
fn a_publish_runs_a_concurrent_callback_a_bounded_number_of_times() {
    const BACKLOG: u64 = 1_000;
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count").depth(BACKLOG as u32).transient_local(BACKLOG as u32);
    let early = topic.publisher().unwrap();
    for count in 0..BACKLOG {
        early.publish_copy(&count).unwrap();
    }
    let publisher = topic.publisher().unwrap();
    let subscriber = topic.subscriber().unwrap();
    assert!(subscriber.wait_for_match(2, WATCHDOG));
    let here = thread::current().id();
    let (entered, has_entered) = mpsc::channel();
    let (go_on, may_go_on) = mpsc::channel::<()>();
    let (first, may_go_on) = (AtomicBool::new(true), Mutex::new(may_go_on));
    let (seen, calls_here) = (Arc::<Mutex<Vec<u64>>>::default(), Arc::new(AtomicU64::new(0)));
    let (its, its_calls_here) = (seen.clone(), calls_here.clone());
    let callback = subscriber.on_sample_concurrent(move |sample| {
        // The callback's own thread stops at the first sample of the backlog.
        if first.swap(false, Ordering::Relaxed) {
            entered.send(thread::current().id()).unwrap();
            let _ = may_go_on.lock().unwrap().recv();
        }
        its_calls_here.fetch_add(u64::from(thread::current().id() == here), Ordering::Relaxed);
        its.lock().unwrap().push(**sample);
    });
    // If this test fails, the callback may go on before it is dropped.
    let (callback, go_on) = (callback.unwrap(), go_on);
    assert_ne!(has_entered.recv_timeout(WATCHDOG).unwrap(), here);

    publisher.publish_copy(&BACKLOG).unwrap();
    let calls = calls_here.load(Ordering::Relaxed);
    assert!((1..=64).contains(&calls), "{calls} calls within one publish");

    drop(go_on);
    until("the backlog's end", || callback.calls() == BACKLOG + 1);
    assert_eq!(calls_here.load(Ordering::Relaxed), calls, "the rest is its thread's");
    let mut seen = std::mem::take(&mut *seen.lock().unwrap());
    seen.sort_unstable();
    assert!(seen.into_iter().eq(0..=BACKLOG));
    assert_eq!((callback.panics(), callback.lost()), (0, 0));
}

#[test]
fn a_concurrent_callback_may_publish_to_its_own_topic_and_drop_itself() {
    let (_folder, node) = node();
    let topic = node.topic::<u64>("count");
    let first = topic.publisher().unwrap();
    let again = Mutex::new((0..3).map(|_| topic.publisher().unwrap()).collect::<Vec<_>>());
    let subscriber = topic.subscriber().unwrap();
    assert!(subscriber.wait_for_match(4, WATCHDOG));
    let seen: Arc<Mutex<Vec<u64>>> = Arc::default();
    let handle: Arc<Mutex<Option<Callback>>> = Arc::default();
    let (its, its_handle) = (seen.clone(), handle.clone());
    let callback = subscriber.on_sample_concurrent(move |sample| {
        its.lock().unwrap().push(**sample);
        let publisher = again.lock().unwrap().pop();
        match publisher {
            Some(publisher) => drop(publisher.publish_copy(&(**sample + 1)).unwrap()),
            None => drop(its_handle.lock().unwrap().take()),
        }
    });
    *handle.lock().unwrap() = Some(callback.unwrap());
    first.publish_copy(&0).unwrap();
    // The callback's thread may be just about to begin, and take it.
    until("all calls", || seen.lock().unwrap().len() == 4);
    assert_eq!(*seen.lock().unwrap(), [0, 1, 2, 3], "each within the one before");
    until("the end of the match", || first.matched() == 0);
    first.publish_copy(&4).unwrap();
    assert_eq!(seen.lock().unwrap().len(), 4);
}
