//! The order in which an executor calls functions that are due.

use std::os::fd::AsRawFd;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::time::Duration;

use myelin::{Executor, Node, Order, Publisher, Subscriber};

const LONG: Duration = Duration::from_secs(60);
const ORDERS: [Order; 2] = [Order::RoundRobin, Order::OldestFirst];

fn node(folder: &tempfile::TempDir) -> Node {
    Node::builder("test").runtime_dir(folder.path()).open().unwrap()
}

/// A publisher of `there` with timestamps, and a subscriber of `here`.
fn matched(there: &Node, here: &Node, name: &str) -> (Publisher<u32>, Subscriber<u32>) {
    let topic = there.topic::<u32>(name).depth(64);
    let publisher = topic.publisher_builder().timestamps(true).open().unwrap();
    let subscriber = here.topic::<u32>(name).depth(64).subscriber().unwrap();
    assert!(publisher.wait_for_match(1, LONG) && subscriber.wait_for_match(1, LONG));
    (publisher, subscriber)
}

/// No two samples have the same time.
fn publish(publisher: &Publisher<u32>, sample: u32) {
    let now = myelin::now();
    publisher.publish_copy(&sample).unwrap();
    while myelin::now() == now {}
}

fn run(executor: &mut Executor, threads: usize) {
    match threads {
        0 => while executor.turn(LONG).unwrap() {},
        threads => executor.run_on(threads).unwrap(),
    }
}

/// Three topics that always have more samples, of which one has no timestamps and one has several
/// publishers, and a timer: each is called until the last one has been called often enough.
#[test]
fn nothing_starves_beside_floods() {
    for order in ORDERS {
        for threads in [0, 1, 3] {
            let folder = tempfile::tempdir().unwrap();
            let (here, there) = (node(&folder), node(&folder));
            let mut executor = here.executor().unwrap();
            executor.set_order(order);
            let calls: Arc<[AtomicU64; 4]> = Arc::default();
            let called = |which: usize| {
                let (calls, stop) = (calls.clone(), executor.stop_guard());
                move || {
                    calls[which].fetch_add(1, Ordering::Relaxed);
                    let count = |which: usize| calls[which].load(Ordering::Relaxed);
                    let is_done = (0..3).all(|topic| count(topic) >= 300) && count(3) >= 5;
                    let is_hopeless = (0..3).any(|topic| count(topic) > 3_000_000);
                    if is_done || is_hopeless {
                        stop.trigger();
                    }
                }
            };
            for which in 0..3 {
                let (publisher, subscriber) = matched(&there, &here, &format!("t{which}"));
                let topic = there.topic::<u32>(&format!("t{which}")).depth(64);
                let mut publishers = vec![publisher];
                match which {
                    1 => publishers[0] = topic.publisher().unwrap(),
                    2 => publishers.extend((0..6).map(|_| topic.publisher().unwrap())),
                    _ => {}
                }
                assert!(subscriber.wait_for_match(publishers.len(), LONG));
                let flood = move || {
                    publishers.iter().for_each(|it| _ = it.publish_copy(&0).unwrap());
                };
                (0..64).for_each(|_| flood());
                let called = called(which);
                let call = move |_: &myelin::Sample<u32>| {
                    flood(); // one is taken, one or more come
                    called();
                };
                executor.on_sample(subscriber, call).unwrap();
            }
            executor.on_timer(Duration::from_micros(500), called(3)).unwrap();
            run(&mut executor, threads);
            let calls = calls.each_ref().map(|calls| calls.load(Ordering::Relaxed));
            let is_fair = calls[..3].iter().all(|calls| *calls >= 300) && calls[3] >= 5;
            assert!(is_fair, "{order:?}, {threads} threads: {calls:?}");
            if order == Order::RoundRobin && threads == 1 {
                let (least, most) = (calls[..3].iter().min(), calls[..3].iter().max());
                assert!(most.unwrap() - least.unwrap() <= 1, "{calls:?}");
            }
        }
    }
}

/// Two topics, one with two publishers and one with twelve, published to in random order.
#[test]
fn the_oldest_sample_of_all_topics_and_publishers_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let mut executor = here.executor().unwrap();
    executor.set_order(Order::OldestFirst);
    let (to, from) = mpsc::channel();
    let mut publishers = Vec::new();
    for (name, more) in [("few", 1), ("many", 11)] {
        let (publisher, subscriber) = matched(&there, &here, name);
        publishers.push(publisher);
        let topic = there.topic::<u32>(name).depth(64);
        let another = |_| topic.publisher_builder().timestamps(true).open().unwrap();
        publishers.extend((0..more).map(another));
        assert!(subscriber.wait_for_match(more + 1, LONG));
        let (to, stop) = (to.clone(), executor.stop_guard());
        let call = move |sample: &myelin::Sample<u32>| {
            to.send(**sample).unwrap();
            if **sample == 199 {
                stop.trigger();
            }
        };
        executor.on_sample(subscriber, call).unwrap();
    }
    let mut seed = 1u64;
    for sample in 0..200 {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        publish(&publishers[(seed >> 33) as usize % publishers.len()], sample);
    }
    executor.run().unwrap();
    assert_eq!(from.try_iter().collect::<Vec<_>>(), Vec::from_iter(0..200));
}

/// A sample published while others wait comes after them, and before later ones. With turns it has
/// the next turn but one: `executor.rs`.
#[test]
fn a_newer_sample_comes_after_a_backlog() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (node(&folder), node(&folder));
    let mut executor = here.executor().unwrap();
    executor.set_order(Order::OldestFirst);
    let ((much, many), (little, few)) =
        (matched(&there, &here, "much"), matched(&there, &here, "little"));
    let (stop, (to, from)) = (executor.stop_guard(), mpsc::channel());
    (0..20).for_each(|sample| publish(&much, sample));
    let of_few = to.clone();
    executor.on_sample(few, move |_| of_few.send("few").unwrap()).unwrap();
    let call = move |sample: &myelin::Sample<u32>| {
        to.send("many").unwrap();
        match **sample {
            10 => {
                publish(&little, 0);
                publish(&much, 100);
            }
            100 => stop.trigger(),
            _ => {}
        }
    };
    executor.on_sample(many, call).unwrap();
    executor.run().unwrap();
    let called: Vec<_> = from.try_iter().collect();
    assert_eq!(called, [vec!["many"; 20], vec!["few", "many"]].concat());
}

/// A timer counts from its due time: after earlier samples, and before later ones.
#[test]
fn a_timer_takes_part_by_its_due_time() {
    for threads in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (node(&folder), node(&folder));
        let mut executor = here.executor().unwrap();
        executor.set_order(Order::OldestFirst);
        let (publisher, subscriber) = matched(&there, &here, "t");
        let called = Arc::new(Mutex::new(Vec::new()));
        let (sampled, stop) = (called.clone(), executor.stop_guard());
        let call = move |sample: &myelin::Sample<u32>| {
            sampled.lock().unwrap().push(**sample);
            if **sample == 9 {
                stop.trigger();
            }
        };
        executor.on_sample(subscriber, call).unwrap();
        (0..5).for_each(|sample| publish(&publisher, sample));
        let timed = called.clone();
        const PERIOD: Duration = Duration::from_millis(100);
        executor.on_timer(PERIOD, move || timed.lock().unwrap().push(77)).unwrap();
        let due = myelin::now() + PERIOD.as_nanos() as u64;
        while myelin::now() < due {
            std::thread::sleep(Duration::from_millis(1));
        }
        (5..10).for_each(|sample| publish(&publisher, sample));
        executor.run_on(threads).unwrap();
        let called = called.lock().unwrap();
        if threads == 1 {
            assert_eq!(**called, [0, 1, 2, 3, 4, 77, 5, 6, 7, 8, 9]);
            continue;
        }
        // While one thread calls with a sample, another one may begin with the timer.
        let (timer, samples): (Vec<u32>, Vec<u32>) = called.iter().partition(|it| **it == 77);
        assert_eq!(samples, [0, 1, 2, 3, 4, 5, 6, 7, 8, 9]);
        assert!(timer.len() <= 1, "{called:?}");
    }
}

/// In a user's epoll: the descriptor stays readable as long as there is something.
#[test]
fn turns_by_a_descriptor_take_everything() {
    for order in ORDERS {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (node(&folder), node(&folder));
        let mut executor = here.executor().unwrap();
        executor.set_order(order);
        let descriptor = executor.descriptor().unwrap();
        let (to, from) = mpsc::channel();
        let mut publishers = Vec::new();
        for (name, samples) in [("a", 10), ("b", 3)] {
            let (publisher, subscriber) = matched(&there, &here, name);
            let to = to.clone();
            executor.on_sample(subscriber, move |sample| to.send(**sample).unwrap()).unwrap();
            publishers.push((publisher, samples));
        }
        for round in 0..3 {
            for (publisher, samples) in &publishers {
                (0..*samples).for_each(|sample| publish(publisher, sample));
            }
            let mut called = 0;
            while called < 13 {
                let mut poll =
                    libc::pollfd { fd: descriptor.as_raw_fd(), events: libc::POLLIN, revents: 0 };
                // SAFETY: one structure, which lives.
                let ready = unsafe { libc::poll(&raw mut poll, 1, 60_000) };
                assert_eq!(ready, 1, "{order:?}, round {round}: {called} of 13 were called");
                assert!(executor.turn(Duration::ZERO).unwrap());
                called += from.try_iter().count();
            }
        }
    }
}

/// It goes on with the samples and timers that were due.
#[test]
fn the_order_changes_while_it_runs() {
    for threads in [1, 3] {
        let folder = tempfile::tempdir().unwrap();
        let (here, there) = (node(&folder), node(&folder));
        let mut executor = here.executor().unwrap();
        let (handle, stop) = (executor.handle(), executor.stop_guard());
        let left = Arc::new(AtomicU64::new(2 * 64));
        let ticks = Arc::new(AtomicU64::new(0));
        for name in ["a", "b"] {
            let (publisher, subscriber) = matched(&there, &here, name);
            (0..64).for_each(|sample| publish(&publisher, sample));
            let (handle, stop) = (handle.clone(), stop.clone());
            let (left, ticks, mut next) = (left.clone(), ticks.clone(), 0);
            let call = move |sample: &myelin::Sample<u32>| {
                assert_eq!(**sample, next);
                next += 1;
                handle.set_order(ORDERS[next as usize / 2 % 2]);
                let left = left.fetch_sub(1, Ordering::Relaxed) - 1;
                if left == 0 && ticks.load(Ordering::Relaxed) > 0 {
                    stop.trigger();
                }
            };
            executor.on_sample(subscriber, call).unwrap();
            drop(publisher);
        }
        let (stop, left) = (executor.stop_guard(), left.clone());
        let tick = move || {
            ticks.fetch_add(1, Ordering::Relaxed);
            if left.load(Ordering::Relaxed) == 0 {
                stop.trigger();
            }
        };
        executor.on_timer(Duration::from_micros(100), tick).unwrap();
        executor.run_on(threads).unwrap();
    }
}
