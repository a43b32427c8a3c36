//! Functions called with samples of many topics, in the thread that runs the executor.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Barrier, mpsc};
use std::time::Duration;

use myelin::{Error, Node, Order};

const LONG: Duration = Duration::from_secs(60);

fn node(folder: &tempfile::TempDir) -> Node {
    Node::builder("test").runtime_dir(folder.path()).open().unwrap()
}

fn publish(publisher: &myelin::Publisher<u32>, mut samples: std::ops::Range<u32>) {
    samples.try_for_each(|sample| publisher.publish_copy(&sample).map(drop)).unwrap();
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

/// One sample of each topic comes before the second of any, whichever has more.
#[test]
fn functions_take_turns() {
    for threads in [0, 1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (node(&folder), node(&folder));
        let mut executor = here.executor().unwrap();
        let (to, from) = mpsc::channel();
        let publishers = ["a", "b", "c"].map(|name| {
            let topic = there.topic::<u32>(name).depth(64);
            let publisher = topic.publisher().unwrap();
            let subscriber = here.topic::<u32>(name).depth(64).subscriber().unwrap();
            assert!(publisher.wait_for_match(1, LONG) && subscriber.wait_for_match(1, LONG));
            let (to, stop) = (to.clone(), executor.stop_guard());
            let call = move |sample: &myelin::Sample<u32>| {
                to.send(name).unwrap();
                if **sample == LAST {
                    stop.trigger();
                }
            };
            executor.on_sample(subscriber, call).unwrap();
            publisher
        });
        const LAST: u32 = 63;
        publish(&publishers[0], 0..LAST + 1);
        publish(&publishers[1], 0..5);
        publishers[2].publish_copy(&0).unwrap();
        match threads {
            0 => while executor.turn(LONG).unwrap() {},
            threads => executor.run_on(threads).unwrap(),
        }
        let called: Vec<_> = from.try_iter().collect();
        assert_eq!(called.len(), 64 + 5 + 1);
        if threads < 2 {
            assert_eq!(called[..8], ["a", "b", "c", "a", "b", "a", "b", "a"]);
        } else {
            assert!(called.iter().position(|name| *name == "c").unwrap() < 8, "{called:?}");
        }
    }
}

/// A topic that gets its first sample while another one has many has the next turn but one.
#[test]
fn a_topic_gets_its_turn_during_a_backlog() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let open = |name: &str| {
        let publisher = there.topic::<u32>(name).depth(64).publisher().unwrap();
        let subscriber = here.topic::<u32>(name).depth(64).subscriber().unwrap();
        assert!(publisher.wait_for_match(1, LONG) && subscriber.wait_for_match(1, LONG));
        (publisher, subscriber)
    };
    let ((much, many), (little, few)) = (open("much"), open("little"));
    let mut executor = here.executor().unwrap();
    let stop = executor.stop_guard();
    let called = Arc::new(AtomicU64::new(0));
    let seen = called.clone();
    let call = move |_: &myelin::Sample<u32>| {
        if called.fetch_add(1, Ordering::Relaxed) == 20 {
            little.publish_copy(&0).unwrap();
        }
    };
    executor.on_sample(many, call).unwrap();
    executor.on_sample(few, move |_| stop.trigger()).unwrap();
    publish(&much, 0..64);
    executor.run().unwrap();
    let called = seen.load(Ordering::Relaxed);
    assert!((21..=22).contains(&called), "{called} of 64 had been called");
}

/// Timers are checked between two calls with samples; and samples have their turn, even if a timer
/// is always due.
#[test]
fn a_timer_is_late_by_one_call_at_most() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let publisher = there.topic::<u32>("t").depth(64).publisher().unwrap();
    let subscriber = here.topic::<u32>("t").depth(64).subscriber().unwrap();
    assert!(publisher.wait_for_match(1, LONG) && subscriber.wait_for_match(1, LONG));
    let mut executor = here.executor().unwrap();
    let (to, from) = mpsc::channel();
    let (sampled, stop) = (to.clone(), executor.stop_guard());
    let call = move |sample: &myelin::Sample<u32>| {
        sampled.send("sample").unwrap();
        std::thread::sleep(Duration::from_millis(2)); // the timer's next period has passed
        if **sample == 39 {
            stop.trigger();
        }
    };
    executor.on_sample(subscriber, call).unwrap();
    executor.on_timer(Duration::from_millis(1), move || to.send("timer").unwrap()).unwrap();
    publish(&publisher, 0..40);
    executor.run().unwrap();
    let called: Vec<_> = from.try_iter().collect();
    let samples: Vec<usize> = (0..called.len()).filter(|at| called[*at] == "sample").collect();
    assert_eq!(samples.len(), 40);
    assert!(samples.windows(2).all(|pair| pair[1] == pair[0] + 2), "{called:?}");
}

/// The call that stops is the last one, and samples that it has not been called with are still
/// there.
#[test]
fn a_stop_ends_it_after_one_call_and_nothing_is_lost() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let of_order = |order| [0, 1, 3].map(|threads| (threads, order));
    for (threads, order) in [Order::RoundRobin, Order::OldestFirst].into_iter().flat_map(of_order) {
        let name = format!("t{threads}/{order:?}");
        let publisher = there.topic::<u32>(&name).depth(64).publisher().unwrap();
        let subscriber = here.topic::<u32>(&name).depth(64).subscriber().unwrap();
        assert!(publisher.wait_for_match(1, LONG) && subscriber.wait_for_match(1, LONG));
        let mut executor = here.executor().unwrap();
        executor.set_order(order);
        let (stop, (to, from)) = (executor.stop_guard(), mpsc::channel());
        let call = move |sample: &myelin::Sample<u32>| {
            to.send(**sample).unwrap();
            stop.trigger();
        };
        executor.on_sample(subscriber, call).unwrap();
        publish(&publisher, 0..50);
        for sample in 0..50 {
            match threads {
                0 => assert!(!executor.turn(LONG).unwrap()),
                threads => executor.run_on(threads).unwrap(),
            }
            assert_eq!(from.try_iter().collect::<Vec<_>>(), [sample], "{threads} threads");
        }
    }
}

/// From inside its functions, in one thread and in several: the executor goes on with the change.
#[test]
fn functions_change_their_executor() {
    for threads in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let node = node(&folder);
        let publisher = node.topic::<u32>("t").publisher().unwrap();
        let mut executor = node.executor().unwrap();
        let (handle, (to, from)) = (executor.handle(), mpsc::channel());
        let own = Arc::new(std::sync::OnceLock::new());
        let its = own.clone();
        // Once: it adds a subscriber and a service, and removes itself.
        let once = executor.on_timer(Duration::from_millis(1), move || {
            let (stop, to) = (handle.stop_guard(), to.clone());
            let subscriber = node.topic::<u32>("t").subscriber().unwrap();
            handle.on_sample(subscriber, move |_| stop.trigger()).unwrap();
            handle.on_request(node.service::<u8, u8>("s").unwrap(), |_| ()).unwrap();
            handle.set_wait(myelin::Wait::Block);
            handle.descriptor().unwrap();
            assert!(handle.remove(*its.wait()) && !handle.remove(*its.wait()));
            to.send(()).unwrap();
        });
        own.set(once.unwrap()).unwrap();
        let stop = executor.stop_guard();
        let (matched, is_matched) = mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                assert!(publisher.wait_for_match(1, LONG));
                publisher.publish_copy(&1).unwrap();
                matched.send(publisher).unwrap();
            });
            executor.run_on(threads).unwrap();
        });
        drop(is_matched);
        assert_eq!(from.try_iter().count(), 1, "it has removed itself");
        assert!(from.recv().is_err(), "its function is gone");
        drop(stop);
    }
}

/// From another thread. A removed function is not running any more when the call returns.
#[test]
fn another_thread_changes_an_executor_that_runs() {
    for threads in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let node = node(&folder);
        let mut executor = node.executor().unwrap();
        let handle = executor.handle();
        std::thread::scope(|scope| {
            let run = scope.spawn(move || executor.run_on(threads));
            for _ in 0..200 {
                let is_alive = Arc::new(AtomicU64::new(0));
                let (its, (to, from)) = (is_alive.clone(), mpsc::channel());
                let timer = handle.on_timer(Duration::from_micros(20), move || {
                    assert_eq!(its.load(Ordering::SeqCst), 0, "it is called after its removal");
                    std::thread::yield_now();
                    let _ = to.send(());
                    assert_eq!(its.load(Ordering::SeqCst), 0, "it is called after its removal");
                });
                from.recv_timeout(LONG).expect("it is never called");
                assert!(handle.remove(timer.unwrap()));
                is_alive.store(1, Ordering::SeqCst);
                assert!(Arc::strong_count(&is_alive) == 1, "its function is gone");
            }
            handle.close();
            assert!(matches!(run.join().unwrap(), Err(Error::Closed { what: "executor" })));
        });
        assert!(matches!(handle.on_timer(LONG, || ()), Err(Error::Closed { what: "executor" })));
    }
}

#[test]
fn a_function_closes_its_executor() {
    for threads in [0, 1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let node = node(&folder);
        let mut executor = node.executor().unwrap();
        let (handle, (to, from)) = (executor.handle(), mpsc::channel());
        executor
            .on_timer(Duration::from_millis(1), move || {
                handle.close();
                to.send(()).unwrap();
            })
            .unwrap();
        let ended = match threads {
            0 => executor.turn(LONG).map(|_| ()),
            threads => executor.run_on(threads),
        };
        assert!(matches!(ended, Err(Error::Closed { .. })), "{ended:?}");
        assert_eq!(from.into_iter().count(), 1, "its function is gone");
        assert!(matches!(executor.run(), Err(Error::Closed { .. })));
    }
}

/// Two functions remove each other at once, each in a call: neither waits for ever.
#[test]
fn functions_that_remove_each_other_do_not_wait_for_ever() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    for _ in 0..20 {
        let mut executor = node.executor().unwrap();
        let (handle, keys) = (executor.handle(), Arc::new(std::sync::OnceLock::new()));
        let barrier = Arc::new(Barrier::new(2));
        let removed = Arc::new(AtomicU64::new(0));
        let add = |other: usize| {
            let (handle, keys, barrier, removed) =
                (handle.clone(), keys.clone(), barrier.clone(), removed.clone());
            let call = move || {
                let keys: &[myelin::Key; 2] = keys.wait();
                barrier.wait();
                assert!(handle.remove(keys[other]));
                if removed.fetch_add(1, Ordering::SeqCst) == 1 {
                    handle.stop_guard().trigger();
                }
            };
            executor.on_timer(Duration::from_millis(1), call).unwrap()
        };
        keys.set([add(1), add(0)]).unwrap();
        executor.run_on(3).unwrap();
    }
}

/// Seeded: functions come, go, close and stop, from inside and from other threads.
#[test]
fn a_storm_of_changes_while_it_runs() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let over = AtomicU64::new(0);
    for (threads, order) in [
        (1, Order::RoundRobin),
        (3, Order::RoundRobin),
        (1, Order::OldestFirst),
        (3, Order::OldestFirst),
    ] {
        let mut executor = here.executor().unwrap();
        executor.set_order(order);
        over.store(0, Ordering::SeqCst);
        let called = Arc::new(AtomicU64::new(0));
        let handle = executor.handle();
        std::thread::scope(|scope| {
            let run = scope.spawn(move || {
                loop {
                    match executor.run_on(threads) {
                        Ok(()) => {} // a stop: run again
                        Err(Error::Closed { .. }) => return,
                        Err(error) => panic!("{error}"),
                    }
                }
            });
            scope.spawn(|| {
                let topics = ["a", "b", "c"].map(|name| there.topic::<u32>(name));
                let publishers = topics.map(|topic| topic.publisher().unwrap());
                while over.load(Ordering::SeqCst) == 0 {
                    publishers.iter().for_each(|it| publish(it, 0..1));
                    std::thread::yield_now();
                }
            });
            let changers: Vec<_> = (1..=2u64)
                .map(|seed| {
                    let (handle, called, here) = (handle.clone(), called.clone(), &here);
                    scope.spawn(move || {
                        let (mut seed, mut keys) = (seed, Vec::new());
                        for _ in 0..700 {
                            let (its, count) = (handle.clone(), called.clone());
                            match random(&mut seed, 5) {
                                0 | 1 if keys.len() < 12 => {
                                    let name = ["a", "b", "c"][random(&mut seed, 3)];
                                    let subscriber = here.topic::<u32>(name).subscriber().unwrap();
                                    let call = move |_: &myelin::Sample<u32>| {
                                        count.fetch_add(1, Ordering::Relaxed);
                                        its.set_wait(myelin::Wait::Adaptive);
                                    };
                                    keys.push(handle.on_sample(subscriber, call).unwrap());
                                }
                                2 => {
                                    let own = Arc::new(std::sync::OnceLock::new());
                                    let key = own.clone();
                                    let call = move || {
                                        count.fetch_add(1, Ordering::Relaxed);
                                        its.remove(*key.wait());
                                    };
                                    let added = handle.on_timer(Duration::from_micros(200), call);
                                    own.set(added.unwrap()).unwrap();
                                }
                                3 => handle.stop_guard().trigger(),
                                _ if !keys.is_empty() => {
                                    let at = random(&mut seed, keys.len());
                                    assert!(handle.remove(keys.swap_remove(at)));
                                }
                                _ => {}
                            }
                        }
                    })
                })
                .collect();
            changers.into_iter().for_each(|it| it.join().unwrap());
            handle.close();
            run.join().unwrap();
            over.store(1, Ordering::SeqCst);
        });
        assert!(called.load(Ordering::Relaxed) > 0);
    }
}

fn random(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize % below
}

/// More than a ROS process with many nodes has, each with its timers, guards and subscribers, all
/// at once.
#[test]
fn a_node_has_many_executors() {
    let folder = tempfile::tempdir().unwrap();
    let node = node(&folder);
    let publisher = node.topic::<u32>("t").publisher().unwrap();
    let (to, from) = mpsc::channel();
    let mut executors: Vec<_> = (0..200).map(|_| node.executor().unwrap()).collect();
    for (number, executor) in executors.iter_mut().enumerate() {
        for _ in 0..3 {
            let (to, subscriber) = (to.clone(), node.topic::<u32>("t").subscriber().unwrap());
            executor.on_sample(subscriber, move |_| to.send(number).unwrap()).unwrap();
            executor.on_timer(LONG, || ()).unwrap();
        }
    }
    assert!(publisher.wait_for_match(600, LONG));
    let stops: Vec<_> = executors.iter().map(|executor| executor.stop_guard()).collect();
    std::thread::scope(|scope| {
        for mut executor in executors {
            scope.spawn(move || executor.run().unwrap());
        }
        publisher.publish_copy(&1).unwrap();
        let mut called: Vec<_> = (0..600).map(|_| from.recv_timeout(LONG).unwrap()).collect();
        stops.iter().for_each(|stop| stop.trigger());
        called.sort_unstable();
        assert_eq!(called, Vec::from_iter((0..600).map(|number| number / 3)));
    });
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

/// An error of a take ends the turn; the next one goes on with the others.
#[test]
fn an_error_of_one_function_does_not_stop_the_others() {
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
    assert!(executor.turn(LONG).unwrap());
    assert!(matches!(executor.turn(LONG), Err(Error::TooManyHeld { .. })));
    small_out.publish_copy(&6).unwrap();
    while from.try_iter().all(|sample| sample != 6) {
        assert!(matches!(executor.turn(LONG), Ok(true) | Err(Error::TooManyHeld { .. })));
    }
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
    samples_stay_in_order(Order::RoundRobin);
    samples_stay_in_order(Order::OldestFirst);
}

fn samples_stay_in_order(order: Order) {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let mut executor = here.executor().unwrap();
    executor.set_order(order);
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
    // In a thread that the executor has started.
    let panics = || {
        if std::thread::current().name().is_some_and(|name| name.starts_with("executor-")) {
            panic!("on purpose");
        }
    };
    executor.on_timer(Duration::from_millis(1), panics).unwrap();
    let run = std::panic::AssertUnwindSafe(|| executor.run_on(3));
    let panic = std::panic::catch_unwind(run).unwrap_err();
    assert_eq!(panic.downcast_ref(), Some(&"on purpose"));
}

const ROUNDS: u64 = 300;
