//! Functions that are called with samples of many topics, in the thread that runs the executor.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use myelin::{Error, Node};

const LONG: Duration = Duration::from_secs(60);

fn node(folder: &tempfile::TempDir) -> Node {
    Node::builder("test").folder(folder.path()).open().unwrap()
}

#[test]
fn samples_of_all_topics_come_in_its_thread_until_it_is_stopped() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let publishers: Vec<_> = (0..20u64)
        .map(|number| there.topic::<u64>(&format!("t{number}")).publisher().unwrap())
        .collect();
    let mut executor = here.executor().unwrap();
    let (to, from) = mpsc::channel();
    for number in 0..20u64 {
        let subscriber = here.topic(&format!("t{number}")).depth(128).subscriber().unwrap();
        let to = to.clone();
        let call = move |sample: &myelin::Sample<u64>| {
            to.send((number, **sample, std::thread::current().id())).unwrap();
        };
        executor.on_sample(subscriber, call).unwrap();
    }
    assert!(publishers.iter().all(|publisher| publisher.wait_for_match(1, LONG)));
    let stop = executor.stop_guard();
    let thread = std::thread::spawn(move || executor.run().map(|()| executor));
    for round in 0..50 {
        for (number, publisher) in publishers.iter().enumerate() {
            publisher.publish_copy(&round).unwrap();
            assert_eq!(from.recv().unwrap(), (number as u64, round, thread.thread().id()));
        }
    }
    stop.trigger();
    let mut executor = thread.join().unwrap().unwrap();
    // It can be run again, by another thread.
    publishers[3].publish_copy(&7).unwrap();
    assert!(executor.turn(LONG).unwrap());
    assert_eq!(from.recv().unwrap(), (3, 7, std::thread::current().id()));
}

#[test]
fn nobody_waits_for_who_has_more_than_a_turn() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let much = there.topic::<u32>("much").depth(1000).publisher().unwrap();
    let little = there.topic::<u32>("little").publisher().unwrap();
    let mut executor = here.executor().unwrap();
    let (to, from) = mpsc::channel();
    for name in ["much", "little"] {
        let (to, topic) = (to.clone(), here.topic::<u32>(name).depth(1000));
        let call = move |_: &myelin::Sample<u32>| to.send(name).unwrap();
        let subscriber = topic.subscriber().unwrap();
        assert!(subscriber.wait_for_match(1, LONG));
        executor.on_sample(subscriber, call).unwrap();
    }
    assert!(much.wait_for_match(1, LONG) && little.wait_for_match(1, LONG));
    for number in 0..500 {
        much.publish_copy(&number).unwrap();
    }
    little.publish_copy(&0).unwrap();
    let mut called = 0;
    while called < 500 {
        assert!(executor.turn(LONG).unwrap());
        let names: Vec<_> = from.try_iter().collect();
        called += names.len();
        if names.contains(&"little") {
            assert!(called < 200, "after {called}");
            return;
        }
    }
    panic!("little has had no turn");
}

#[test]
fn timers_and_removals() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    let mut executor = node.executor().unwrap();
    let (to, from) = mpsc::channel();
    let fast = to.clone();
    let fast = executor.on_timer(Duration::from_millis(1), move || fast.send("fast").unwrap());
    let subscriber = node.topic::<u64>("t").subscriber().unwrap();
    let sampled = to.clone();
    let sampled = executor.on_sample(subscriber, move |_| sampled.send("sample").unwrap()).unwrap();
    let (publisher, stop) = (node.topic::<u64>("t").publisher().unwrap(), executor.stop_guard());
    assert!(publisher.wait_for_match(1, LONG));
    for _ in 0..3 {
        while from.try_recv() != Ok("fast") {
            assert!(executor.turn(LONG).unwrap());
        }
    }
    assert!(executor.remove(fast.unwrap()) && !executor.remove(stop.key()));
    from.try_iter().for_each(drop);
    publisher.publish_copy(&1).unwrap();
    assert!(executor.turn(LONG).unwrap());
    assert_eq!(from.try_iter().collect::<Vec<_>>(), ["sample"]);
    assert!(executor.remove(sampled) && !executor.remove(sampled));
    publisher.publish_copy(&2).unwrap();
    stop.trigger();
    assert!(!executor.turn(LONG).unwrap());
    assert!(from.try_iter().next().is_none());
}

/// What a take says is said by the turn, after everything else has been called.
#[test]
fn an_error_of_one_keeps_nobody_else_from_being_called() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    let large = node.topic::<[u8]>("large");
    let (large_out, small_out) =
        (large.publisher().unwrap(), node.topic::<u8>("small").publisher().unwrap());
    let large = large.subscriber_builder().held_max(1).open().unwrap();
    let small = node.topic::<u8>("small").subscriber().unwrap();
    let mut executor = node.executor().unwrap();
    let (mut kept, (to, from)) = (Vec::new(), mpsc::channel());
    executor.on_sample(large, move |sample| kept.push(sample.clone())).unwrap();
    executor.on_sample(small, move |sample| to.send(**sample).unwrap()).unwrap();
    assert!(large_out.wait_for_match(1, LONG) && small_out.wait_for_match(1, LONG));
    for _ in 0..2 {
        large_out.publish_copy(&[1; 1000]).unwrap();
    }
    small_out.publish_copy(&5).unwrap();
    assert!(matches!(executor.turn(LONG), Err(Error::TooManyHeld { .. })));
    assert_eq!(from.recv().unwrap(), 5);
}

/// Two functions that wait for each other can only return if they are called at the same time.
#[test]
fn several_threads_call_different_functions_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let mut executor = here.executor().unwrap();
    let stop = executor.stop_guard();
    let (barrier, met) = (Arc::new(Barrier::new(2)), Arc::new(AtomicU64::new(0)));
    let publishers = ["left", "right"].map(|name| {
        let publisher = there.topic::<u64>(name).reliable(LONG).publisher().unwrap();
        let subscriber = here.topic::<u64>(name).reliable(LONG).subscriber().unwrap();
        let (barrier, met, stop) = (barrier.clone(), met.clone(), stop.clone());
        let call = move |_: &myelin::Sample<u64>| {
            barrier.wait();
            if met.fetch_add(1, Ordering::Relaxed) + 1 == 2 * ROUNDS {
                stop.trigger();
            }
        };
        assert!(publisher.wait_for_match(1, LONG) && subscriber.wait_for_match(1, LONG));
        executor.on_sample(subscriber, call).unwrap();
        publisher
    });
    std::thread::scope(|scope| {
        for publisher in publishers {
            scope.spawn(move || (0..ROUNDS).for_each(|round| drop(publisher.publish_copy(&round))));
        }
        executor.run_on(3).unwrap();
    });
    assert_eq!(met.load(Ordering::Relaxed), 2 * ROUNDS);
}

#[test]
fn no_function_is_called_twice_at_once_and_samples_stay_in_order() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let mut executor = here.executor().unwrap();
    let (stop, left) = (executor.stop_guard(), Arc::new(AtomicU64::new(4 * ROUNDS)));
    let publishers: Vec<_> = (0..4)
        .map(|number| {
            let topic = format!("t{number}");
            let publisher = there.topic::<u64>(&topic).reliable(LONG).publisher().unwrap();
            let subscriber = here.topic::<u64>(&topic).reliable(LONG).subscriber().unwrap();
            assert!(publisher.wait_for_match(1, LONG) && subscriber.wait_for_match(1, LONG));
            let (mut next, left, stop) = (0, left.clone(), stop.clone());
            let call = move |sample: &myelin::Sample<u64>| {
                assert_eq!(**sample, next);
                next += 1;
                if left.fetch_sub(1, Ordering::Relaxed) == 1 {
                    stop.trigger();
                }
            };
            executor.on_sample(subscriber, call).unwrap();
            publisher
        })
        .collect();
    let ticks = Arc::new(AtomicU64::new(0));
    let count = ticks.clone();
    let tick = move || {
        count.fetch_add(1, Ordering::Relaxed);
    };
    executor.on_timer(Duration::from_micros(100), tick).unwrap();
    std::thread::scope(|scope| {
        for publisher in publishers {
            scope.spawn(move || {
                for round in 0..ROUNDS {
                    publisher.publish_copy(&round).unwrap();
                }
                publisher
            });
        }
        executor.run_on(3).unwrap();
    });
    assert_eq!(left.load(Ordering::Relaxed), 0);
}

#[test]
fn an_error_or_a_panic_ends_all_threads() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    let topic = node.topic::<[u8]>("large");
    let publisher = topic.publisher().unwrap();
    let subscriber = topic.subscriber_builder().held_max(1).open().unwrap();
    assert!(publisher.wait_for_match(1, LONG) && subscriber.wait_for_match(1, LONG));
    let mut executor = node.executor().unwrap();
    let mut kept = Vec::new();
    executor.on_sample(subscriber, move |sample| kept.push(sample.clone())).unwrap();
    for _ in 0..2 {
        publisher.publish_copy(&[1; 1000]).unwrap();
    }
    assert!(matches!(executor.run_on(3), Err(Error::TooManyHeld { .. })));
    let mut executor = node.executor().unwrap();
    executor.on_timer(Duration::from_millis(1), || panic!("on purpose")).unwrap();
    let run = std::panic::AssertUnwindSafe(|| executor.run_on(3));
    assert!(std::panic::catch_unwind(run).is_err());
}

const ROUNDS: u64 = 300;
