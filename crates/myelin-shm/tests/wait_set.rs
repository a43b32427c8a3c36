//! One thread that waits for many subscribers, guards and timers.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, Instant};

use myelin_shm::Error;
use myelin_shm::layout::{ReadyTable, SETS_MAX};
use myelin_shm::node::{Node, NodeOptions, Publisher, Subscriber};
use myelin_shm::os::segment::Segment;
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos, Topic};
use myelin_shm::wait_set::{Key, WaitSet, WaitSetHandle};
use myelin_shm::waiting::interrupt::Interrupter;
use myelin_shm::waiting::wait::{NEVER, Wait, now_ns};

const WAYS: [Wait; 4] = [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive];
/// Longer than any test takes.
const LONG: Duration = Duration::from_secs(60);

struct Domain(tempfile::TempDir);

impl Domain {
    fn new() -> Domain {
        Domain(tempfile::tempdir().unwrap())
    }

    fn node(&self) -> Node {
        let folder = Some(self.0.path().to_owned());
        Node::open(NodeOptions { runtime_dir: folder, ..NodeOptions::default() }).unwrap()
    }
}

fn topic(number: usize) -> Topic {
    Topic { name: format!("t{number}"), type_name: "T".into(), type_hash: 1 }
}

fn publisher(node: &Node, number: usize) -> Publisher {
    node.publisher(topic(number), PublisherQos::default()).unwrap()
}

fn subscriber(node: &Node, number: usize) -> Subscriber {
    node.subscriber(topic(number), SubscriberQos::default()).unwrap()
}

fn matched(publisher: &Publisher) {
    assert!(publisher.wait_for_match(1, LONG));
}

fn ready(set: &mut WaitSet) -> Vec<Key> {
    set.wait(Wait::Block, 0).unwrap().to_vec()
}

fn soon() -> u64 {
    now_ns() + LONG.as_nanos() as u64
}

fn drain(subscriber: &mut Subscriber) -> u64 {
    let mut taken = 0;
    while subscriber.reader.take().unwrap().is_some() {
        taken += 1;
    }
    taken
}

#[test]
fn a_member_is_ready_while_it_has_samples() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let mut subscribers: Vec<_> = (0..100).map(|number| subscriber(&here, number)).collect();
    let mut publishers: Vec<_> = (0..100).map(|number| publisher(&there, number)).collect();
    // Both sides are matched: all samples published from then on are for them.
    publishers.iter().for_each(matched);
    assert!(subscribers.iter().all(|subscriber| subscriber.wait_for_match(1, LONG)));
    let mut set = WaitSet::create(&here).unwrap();
    let add = |subscriber: &Subscriber| set.add(&subscriber.reader).unwrap();
    let keys: Vec<_> = subscribers.iter().map(add).collect();
    assert!(ready(&mut set).is_empty());
    for round in 0..3 {
        for number in [7, 64, 99] {
            publishers[number].writer.publish_copy(&[round]).unwrap();
            publishers[number].writer.publish_copy(&[round]).unwrap();
        }
        assert_eq!(ready(&mut set), [keys[7], keys[64], keys[99]]);
        assert_eq!(ready(&mut set), [keys[7], keys[64], keys[99]]);
        assert!(subscribers[7].reader.take().unwrap().is_some());
        assert_eq!(drain(&mut subscribers[64]), 2);
        assert_eq!(ready(&mut set), [keys[7], keys[99]]);
        assert_eq!(drain(&mut subscribers[7]), 1);
        assert_eq!(drain(&mut subscribers[99]), 2);
        assert!(ready(&mut set).is_empty());
    }
}

#[test]
fn samples_from_before_the_wait_are_reported() {
    let domain = Domain::new();
    let node = domain.node();
    let qos = PublisherQos { transient_local: 2, ..PublisherQos::default() };
    let mut early = node.publisher(topic(0), qos).unwrap();
    early.writer.publish_copy(&[1]).unwrap();
    let qos = SubscriberQos { transient_local: 2, ..SubscriberQos::default() };
    let mut late = node.subscriber(topic(0), qos).unwrap();
    let mut set = WaitSet::create(&node).unwrap();
    let key = set.add(&late.reader).unwrap();
    matched(&early);
    assert_eq!(set.wait(Wait::Block, soon()).unwrap(), [key]);
    assert_eq!(drain(&mut late), 1);
}

#[test]
fn every_way_of_waiting_ends_with_the_sample() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let mut subscribers: Vec<_> = (0..3).map(|number| subscriber(&here, number)).collect();
    let mut publishers: Vec<_> = (0..3).map(|number| publisher(&there, number)).collect();
    publishers.iter().for_each(matched);
    let mut set = WaitSet::create(&here).unwrap();
    let add = |subscriber: &Subscriber| set.add(&subscriber.reader).unwrap();
    let keys: Vec<_> = subscribers.iter().map(add).collect();
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for sample in 0..400 {
                publishers[sample % 3].writer.publish_copy(&[0; 8]).unwrap();
                while taken.load(Ordering::Acquire) <= sample as u64 {
                    std::thread::yield_now();
                }
            }
        });
        for sample in 0..400 {
            let reported = set.wait(WAYS[sample / 100], soon()).unwrap().to_vec();
            assert!(reported.contains(&keys[sample % 3]), "sample {sample}: {reported:?}");
            assert_eq!(drain(&mut subscribers[sample % 3]), 1);
            taken.fetch_add(1, Ordering::Release);
        }
    });
}

#[test]
fn a_guard_ends_the_current_or_the_next_wait() {
    let domain = Domain::new();
    let mut set = WaitSet::create(&domain.node()).unwrap();
    let (guard, other) = (set.guard_condition().unwrap(), set.guard_condition().unwrap());
    guard.trigger();
    guard.trigger();
    assert_eq!(ready(&mut set), [guard.key()]);
    assert!(ready(&mut set).is_empty(), "once");
    for way in WAYS {
        std::thread::scope(|scope| {
            scope.spawn(|| other.clone().trigger());
            assert_eq!(set.wait(way, NEVER).unwrap(), [other.key()]);
        });
    }
    drop(other);
    assert!(ready(&mut set).is_empty());
    assert!(set.remove(guard.key()) && !set.remove(guard.key()));
    guard.trigger();
    assert!(ready(&mut set).is_empty());
}

#[test]
fn a_signal_handler_ends_a_wait() {
    static GUARD: std::sync::OnceLock<myelin_shm::wait_set::GuardCondition> =
        std::sync::OnceLock::new();
    extern "C" fn handle(_: libc::c_int) {
        GUARD.get().unwrap().trigger();
    }
    let domain = Domain::new();
    let mut set = WaitSet::create(&domain.node()).unwrap();
    let key = GUARD.get_or_init(|| set.guard_condition().unwrap()).key();
    // SAFETY: the handler loads, stores and makes a futex call. The thread is this one, which waits
    // for the other's end.
    let this = unsafe {
        libc::signal(libc::SIGUSR1, handle as *const () as libc::sighandler_t);
        libc::pthread_self()
    };
    std::thread::scope(|scope| {
        // SAFETY: as above.
        scope.spawn(move || assert_eq!(unsafe { libc::pthread_kill(this, libc::SIGUSR1) }, 0));
        assert_eq!(set.wait(Wait::Block, NEVER).unwrap(), [key]);
    });
}

#[test]
fn a_timer_is_ready_once_a_period() {
    let domain = Domain::new();
    let mut set = WaitSet::create(&domain.node()).unwrap();
    assert!(matches!(set.timer(Duration::ZERO), Err(Error::Setting { .. })));
    let period = Duration::from_millis(3);
    let (begin, often) = (Instant::now(), set.timer(period).unwrap());
    let seldom = set.timer(LONG).unwrap();
    for (round, way) in WAYS.into_iter().chain(WAYS).enumerate() {
        assert_eq!(set.wait(way, soon()).unwrap(), [often]);
        assert!(begin.elapsed() >= period * (round as u32 + 1), "round {round}");
    }
    assert!(set.remove(often) && set.remove(seldom) && !set.remove(often));
    assert!(set.wait(Wait::Block, now_ns() + 10_000_000).unwrap().is_empty());
}

#[test]
fn invalid_members_are_refused() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let (ours, theirs) = (subscriber(&here, 0), subscriber(&there, 0));
    let (set, other) = (WaitSet::create(&here).unwrap(), WaitSet::create(&here).unwrap());
    let error = set.add(&theirs.reader).unwrap_err().to_string();
    assert!(error.contains("t0") && error.contains("another node"), "{error}");
    let key = set.add(&ours.reader).unwrap();
    let error = other.add(&ours.reader).unwrap_err().to_string();
    assert!(error.contains("in a wait set already"), "{error}");
    assert!(set.add(&ours.reader).is_err());
    assert!(set.remove(key));
    other.add(&ours.reader).unwrap();
    drop(other);
    set.add(&ours.reader).unwrap();
}

/// The last one is woken, too, and only by its own members.
#[test]
fn a_node_has_a_thousand_wait_sets() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let (mut ours, mut theirs) = (subscriber(&here, 0), publisher(&there, 0));
    matched(&theirs);
    let more = |_: usize| WaitSet::create(&here);
    let mut sets: Vec<WaitSet> = (0..SETS_MAX).map(more).collect::<Result<_, _>>().unwrap();
    assert!(sets.len() >= 1024);
    let full = more(0).unwrap_err();
    assert!(matches!(full, Error::TooMany { limit: 1024, .. }), "{full}");
    assert!(full.to_string().contains("wait sets and executors of one node"), "{full}");
    for at in [0, 1, SETS_MAX / 16, SETS_MAX - 1] {
        let set = &mut sets[at];
        let key = set.add(&ours.reader).unwrap();
        assert!(ready(set).is_empty());
        std::thread::scope(|scope| {
            scope.spawn(|| theirs.writer.publish_copy(&[0]).unwrap());
            assert_eq!(set.wait(Wait::Block, NEVER).unwrap(), [key]);
        });
        assert_eq!(drain(&mut ours), 1);
        assert!(set.remove(key));
    }
    sets.pop();
    sets.push(more(0).unwrap());
}

/// Each of these changes wakes a sleeping wait, which goes on with the change.
#[test]
fn a_wait_takes_up_what_another_thread_changes() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let (mut ours, mut theirs) = (subscriber(&here, 0), publisher(&there, 0));
    matched(&theirs);
    assert!(ours.wait_for_match(1, LONG));
    for way in WAYS {
        let mut set = WaitSet::create(&here).unwrap();
        let handle = set.handle().clone();
        let (to, from) = std::sync::mpsc::channel();
        std::thread::scope(|scope| {
            scope.spawn(move || {
                while let Ok(ready) = set.wait(way, NEVER) {
                    to.send(ready.to_vec()).unwrap();
                }
            });
            let key = handle.add(&ours.reader).unwrap();
            theirs.writer.publish_copy(&[1]).unwrap();
            assert_eq!(from.recv().unwrap(), [key]);
            // No sample is taken: the member is reported endlessly until it is removed.
            assert!(handle.remove(key) && !handle.remove(key));
            let guard = handle.guard_condition().unwrap();
            guard.trigger();
            while from.recv().unwrap() != [guard.key()] {}
            let timer = handle.timer(Duration::from_millis(1)).unwrap();
            assert_eq!(from.recv().unwrap(), [timer]);
            assert!(handle.remove(timer));
            handle.close();
            while from.recv().is_ok() {}
        });
        assert_eq!(drain(&mut ours), 1);
        assert!(handle.is_closed());
        assert!(matches!(handle.add(&ours.reader), Err(Error::Closed { what: "wait set" })));
        assert!(matches!(handle.guard_condition(), Err(Error::Closed { .. })));
        assert!(matches!(handle.timer(LONG), Err(Error::Closed { .. })));
        assert!(matches!(handle.descriptor(), Err(Error::Closed { .. })));
    }
}

/// A removed member goes into another set at once, although the first set has not looked since; no
/// sample of it is lost between them.
#[test]
fn a_member_moves_from_set_to_set_while_both_are_waited_in() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let (mut ours, mut theirs) = (subscriber(&here, 0), publisher(&there, 0));
    matched(&theirs);
    let (to, from) = std::sync::mpsc::channel();
    let sets: Vec<_> = (0..3).map(|_| WaitSet::create(&here).unwrap()).collect();
    let handles: Vec<_> = sets.iter().map(|set| set.handle().clone()).collect();
    std::thread::scope(|scope| {
        for (at, mut set) in sets.into_iter().enumerate() {
            let to = to.clone();
            scope.spawn(move || {
                while let Ok(ready) = set.wait(Wait::Block, NEVER) {
                    ready.iter().for_each(|key| to.send((at, *key)).unwrap());
                }
            });
        }
        for round in 0..600 {
            let at = round % handles.len();
            let key = handles[at].add(&ours.reader).unwrap();
            theirs.writer.publish_copy(&[0]).unwrap();
            while from.recv_timeout(LONG).expect("nobody has told") != (at, key) {}
            // A set reports it as long as it is there, even if we are slow.
            while drain(&mut ours) == 0 {}
            assert!(handles[at].remove(key));
        }
        handles.iter().for_each(WaitSetHandle::close);
    });
}

/// Seeded: members, guards and timers come and go, while one thread waits and others publish.
/// Members that stay are reported up to the last sample.
#[test]
fn members_come_and_go_at_random_while_a_thread_waits() {
    const TOPICS: usize = 6;
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let mut subscribers: Vec<_> = (0..TOPICS).map(|at| subscriber(&here, at)).collect();
    let mut publishers: Vec<_> = (0..TOPICS).map(|at| publisher(&there, at)).collect();
    publishers.iter().for_each(matched);
    let mut set = WaitSet::create(&here).unwrap();
    let (handle, stop) = (set.handle().clone(), AtomicBool::new(false));
    let reports = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let mut seed = 7;
            while !stop.load(Ordering::Relaxed) {
                publishers[random(&mut seed, TOPICS)].writer.publish_copy(&[0; 8]).unwrap();
            }
        });
        scope.spawn(|| {
            while let Ok(ready) = set.wait(Wait::Adaptive, NEVER) {
                reports.fetch_add(ready.len() as u64, Ordering::Relaxed);
            }
        });
        let (mut seed, mut keys, mut others) = (1, vec![None; TOPICS], Vec::new());
        let mut brief = Vec::new();
        for _ in 0..6_000 {
            match random(&mut seed, 8) {
                0 => others.push(handle.timer(Duration::from_micros(300)).unwrap()),
                1 => {
                    let guard = handle.guard_condition().unwrap();
                    guard.trigger();
                    others.push(guard.key());
                }
                2 if !others.is_empty() => {
                    let key = others.swap_remove(random(&mut seed, others.len()));
                    handle.remove(key);
                }
                3 if brief.len() < 4 => {
                    let new = subscriber(&here, random(&mut seed, TOPICS));
                    handle.add(&new.reader).unwrap();
                    brief.push(new);
                }
                4 => drop(brief.pop()),
                _ => {
                    let at = random(&mut seed, TOPICS);
                    drain(&mut subscribers[at]);
                    keys[at] = match keys[at] {
                        None => Some(handle.add(&subscribers[at].reader).unwrap()),
                        Some(key) => {
                            assert!(handle.remove(key));
                            None
                        }
                    };
                }
            }
        }
        stop.store(true, Ordering::Relaxed);
        handle.close();
    });
    assert!(reports.into_inner() > 0);
    // All of them have been dropped.
    let mut set = WaitSet::create(&here).unwrap();
    let keys: Vec<_> = subscribers.iter().map(|it| set.add(&it.reader).unwrap()).collect();
    subscribers.iter_mut().for_each(|it| _ = drain(it));
    publishers.iter_mut().for_each(|it| _ = it.writer.publish_copy(&[0]).unwrap());
    assert_eq!(ready(&mut set), keys);
}

fn random(seed: &mut u64, below: usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    (*seed >> 33) as usize % below
}

/// Far more members come and go than a node can have at once, although no thread ever waits; and
/// the set has not learnt of any.
#[test]
fn members_that_go_leave_nothing_behind() {
    let domain = Domain::new();
    let node = domain.node();
    let mut set = WaitSet::create(&node).unwrap();
    for _ in 0..40_000 {
        drop(set.guard_condition().unwrap());
    }
    for _ in 0..300 {
        let brief = subscriber(&node, 0);
        set.add(&brief.reader).unwrap();
    }
    let kept = set.guard_condition().unwrap();
    kept.trigger();
    assert_eq!(ready(&mut set), [kept.key()]);
}

#[test]
fn a_dropped_member_or_callback_is_not_watched_any_more() {
    let domain = Domain::new();
    let node = domain.node();
    let mut publisher = publisher(&node, 0);
    let mut set = WaitSet::create(&node).unwrap();
    for _ in 0..200 {
        let mut brief = subscriber(&node, 0);
        let key = set.add(&brief.reader).unwrap();
        assert!(publisher.wait_for_match(1, LONG));
        publisher.writer.publish_copy(&[1]).unwrap();
        while !set.wait(Wait::Block, soon()).unwrap().contains(&key) {}
        assert!(brief.reader.take().unwrap().is_some());
        drop(brief);
        assert!(!ready(&mut set).contains(&key));
        assert!(!set.remove(key), "it has been forgotten");
    }
}

/// Its reader waits alone in between; the set learns of later samples.
#[test]
fn a_member_can_be_waited_for_by_itself() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let (mut ours, mut theirs) = (subscriber(&here, 0), publisher(&there, 0));
    matched(&theirs);
    let mut set = WaitSet::create(&here).unwrap();
    let key = set.add(&ours.reader).unwrap();
    let round = AtomicU64::new(0);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            for sample in 0..200 {
                theirs.writer.publish_copy(&[0]).unwrap();
                while round.load(Ordering::Acquire) <= sample {
                    std::thread::yield_now();
                }
            }
        });
        for sample in 0..200 {
            if sample % 2 == 0 {
                assert!(ours.reader.wait(Wait::Block, soon()).unwrap());
            } else {
                assert_eq!(set.wait(Wait::Block, soon()).unwrap(), [key]);
            }
            assert_eq!(drain(&mut ours), 1);
            round.fetch_add(1, Ordering::Release);
        }
    });
}

#[test]
fn a_wait_set_continues_with_the_successor_of_a_publisher() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let mut ours = subscriber(&here, 0);
    let mut set = WaitSet::create(&here).unwrap();
    let key = set.add(&ours.reader).unwrap();
    for _ in 0..20 {
        let mut theirs = publisher(&there, 0);
        matched(&theirs);
        theirs.writer.publish_copy(&[1]).unwrap();
        drop(theirs);
        while drain(&mut ours) == 0 {
            assert_eq!(set.wait(Wait::Block, soon()).unwrap(), [key]);
        }
    }
}

/// Several publishers in threads of their own, two sets in two threads on words that they share: no
/// set sleeps while a sample is there.
#[test]
fn no_wake_up_is_lost_among_many() {
    const TOPICS: usize = 30;
    const SAMPLES: u64 = 60_000;
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let qos = SubscriberQos { reliability: Reliability::Reliable, ..SubscriberQos::default() };
    let open = |number| here.subscriber(topic(number), qos).unwrap();
    let mut subscribers: Vec<_> = (0..TOPICS).map(open).collect();
    let qos = PublisherQos {
        reliability: Reliability::Reliable,
        block_max: LONG,
        late: myelin_shm::topic::Late::Fail,
        ..PublisherQos::default()
    };
    let open = |number| there.publisher(topic(number), qos).unwrap();
    let mut publishers: Vec<_> = (0..TOPICS).map(open).collect();
    publishers.iter().for_each(matched);
    let (left, right) = subscribers.split_at_mut(TOPICS / 2);
    let taken = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for (seed, some) in publishers.chunks_mut(TOPICS / 3).enumerate() {
            scope.spawn(move || {
                let mut random = seed as u64 + 1;
                for _ in 0..SAMPLES / 3 {
                    random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                    let at = (random >> 33) as usize % some.len();
                    some[at].writer.publish_copy(&[0; 8]).unwrap();
                }
            });
        }
        for (half, way) in [(left, Wait::Block), (right, Wait::Adaptive)] {
            let (here, taken) = (&here, &taken);
            scope.spawn(move || {
                let mut set = WaitSet::create(here).unwrap();
                let add = |subscriber: &Subscriber| set.add(&subscriber.reader).unwrap();
                let keys: Vec<_> = half.iter().map(add).collect();
                while taken.load(Ordering::Relaxed) < SAMPLES {
                    // The other thread may take the last sample.
                    let reported = set.wait(way, now_ns() + 200_000_000).unwrap().to_vec();
                    let mut some = 0;
                    for (key, subscriber) in keys.iter().zip(&mut *half) {
                        if reported.contains(key) {
                            some += drain(subscriber);
                        }
                    }
                    taken.fetch_add(some, Ordering::Relaxed);
                    if reported.is_empty() {
                        let forgotten: u64 = half.iter_mut().map(drain).sum();
                        assert_eq!(forgotten, 0, "they lay there while the set slept");
                    }
                }
            });
        }
    });
}

/// A hostile publisher takes away the bits of all others and resets the wake words; samples of an
/// honest one arrive nevertheless.
#[test]
fn a_publisher_that_clears_the_table_does_not_silence_others() {
    let domain = Domain::new();
    let (here, there, hostile) = (domain.node(), domain.node(), domain.node());
    let (mut ours, mut theirs) = (subscriber(&here, 0), publisher(&there, 0));
    let quiet = publisher(&hostile, 0);
    matched(&theirs);
    matched(&quiet);
    let mut set = WaitSet::create(&here).unwrap();
    let key = set.add(&ours.reader).unwrap();
    let (_, wake_descriptors) = ours.reader.shared().passed_to(0).unwrap();
    let table = Segment::map_shared(wake_descriptors.table.ready.as_fd(), 1).unwrap();
    // SAFETY: atomics and padding in a segment that was made for one.
    let table: &ReadyTable = unsafe { table.at(0) };
    let (stop, taken) = (AtomicBool::new(false), AtomicU64::new(0));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                table.ready.iter().for_each(|word| word.store(0, Ordering::Relaxed));
                table.wakes.iter().for_each(|wakes| wakes.store(0, Ordering::Relaxed));
            }
        });
        scope.spawn(|| {
            for sample in 0..20 {
                theirs.writer.publish_copy(&[0; 8]).unwrap();
                while taken.load(Ordering::Acquire) <= sample {
                    std::thread::yield_now();
                }
            }
        });
        for _ in 0..20 {
            while drain(&mut ours) == 0 {
                assert_eq!(set.wait(Wait::Block, soon()).unwrap(), [key]);
            }
            taken.fetch_add(1, Ordering::Release);
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// A hostile publisher reports endlessly that there is something, and there is nothing.
#[test]
fn a_table_that_never_stops_does_not_extend_a_wait() {
    let domain = Domain::new();
    let node = domain.node();
    let ours = subscriber(&node, 0);
    let mut set = WaitSet::create(&node).unwrap();
    set.add(&ours.reader).unwrap();
    let (_, wake_descriptors) = ours.reader.shared().passed_to(0).unwrap();
    let table = Segment::map_shared(wake_descriptors.table.ready.as_fd(), 1).unwrap();
    // SAFETY: atomics and padding in a segment that was made for one.
    let table: &ReadyTable = unsafe { table.at(0) };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                table.ready.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
                for wakes in &table.wakes {
                    wakes.fetch_add(1, Ordering::Relaxed);
                }
            }
        });
        for way in WAYS {
            assert!(set.wait(way, now_ns() + 5_000_000).unwrap().is_empty());
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// The set or the descriptor may report a sample: both report the next one.
#[test]
fn a_member_may_have_a_descriptor_too() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let qos = SubscriberQos { descriptor: true, ..SubscriberQos::default() };
    let (mut ours, mut theirs) = (here.subscriber(topic(0), qos).unwrap(), publisher(&there, 0));
    matched(&theirs);
    let mut set = WaitSet::create(&here).unwrap();
    let key = set.add(&ours.reader).unwrap();
    drain(&mut ours);
    while !ready(&mut set).is_empty() {}
    for _ in 0..100 {
        theirs.writer.publish_copy(&[1]).unwrap();
        let event = ours.reader.event().unwrap();
        let mut polled = [rustix::event::PollFd::new(&event, rustix::event::PollFlags::IN)];
        assert_eq!(rustix::event::poll(&mut polled, None).unwrap(), 1);
        assert_eq!(set.wait(Wait::Block, soon()).unwrap(), [key]);
        assert_eq!(drain(&mut ours), 1);
    }
}

fn is_readable(descriptor: &OwnedFd, limit: Duration) -> bool {
    let limit = rustix::event::Timespec { tv_sec: limit.as_secs() as i64, tv_nsec: 0 };
    let mut polled = [rustix::event::PollFd::new(descriptor, rustix::event::PollFlags::IN)];
    rustix::event::poll(&mut polled, Some(&limit)).unwrap() == 1
}

/// Waits without blocking until there is nothing to report.
fn settle(set: &mut WaitSet, subscriber: &mut Subscriber) {
    while !ready(set).is_empty() {
        drain(subscriber);
    }
}

#[test]
fn its_descriptor_is_readable_while_something_is_ready() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let (mut ours, mut theirs) = (subscriber(&here, 0), publisher(&there, 0));
    matched(&theirs);
    assert!(ours.wait_for_match(1, LONG));
    let mut set = WaitSet::create(&here).unwrap();
    let descriptor = set.descriptor().unwrap();
    let (key, guard) = (set.add(&ours.reader).unwrap(), set.guard_condition().unwrap());
    assert!(is_readable(&descriptor, Duration::ZERO), "nobody has looked");
    for round in 0..50 {
        settle(&mut set, &mut ours);
        assert!(!is_readable(&descriptor, Duration::ZERO), "round {round}");
        theirs.writer.publish_copy(&[1]).unwrap();
        theirs.writer.publish_copy(&[2]).unwrap();
        assert!(is_readable(&descriptor, LONG));
        assert_eq!(ready(&mut set), [key]);
        assert!(ours.reader.take().unwrap().is_some());
        assert!(is_readable(&descriptor, Duration::ZERO), "one is left");
        assert_eq!(ready(&mut set), [key]);
        settle(&mut set, &mut ours);
        guard.trigger();
        assert!(is_readable(&descriptor, LONG));
        assert_eq!(ready(&mut set), [guard.key()]);
        // A blocking wait is like any other.
        std::thread::scope(|scope| {
            scope.spawn(|| guard.trigger());
            assert_eq!(set.wait(WAYS[round % 4], NEVER).unwrap(), [guard.key()]);
        });
    }
    settle(&mut set, &mut ours);
    let tick = set.timer(Duration::from_millis(2)).unwrap();
    for _ in 0..5 {
        while ready(&mut set).is_empty() {
            assert!(is_readable(&descriptor, LONG));
        }
    }
    assert!(set.remove(tick));
    while !ready(&mut set).is_empty() {}
    assert!(!is_readable(&descriptor, Duration::ZERO));
}

/// All sets of a node share the pipe: a set that empties it wakes the others.
#[test]
fn descriptors_of_several_sets_do_not_take_each_others_wake_ups() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let mut publishers: Vec<_> = (0..3).map(|number| publisher(&there, number)).collect();
    let mut sets: Vec<_> = (0..3)
        .map(|number| {
            let (ours, set) = (subscriber(&here, number), WaitSet::create(&here).unwrap());
            set.add(&ours.reader).unwrap();
            let descriptor = set.descriptor().unwrap();
            (ours, set, descriptor)
        })
        .collect();
    publishers.iter().for_each(matched);
    assert!(sets.iter().all(|(ours, ..)| ours.wait_for_match(1, LONG)));
    for round in 0..300 {
        for (ours, set, _) in &mut sets {
            settle(set, ours);
        }
        publishers[round % 3].writer.publish_copy(&[1]).unwrap();
        publishers[(round + 1) % 3].writer.publish_copy(&[1]).unwrap();
        // The others look first.
        for turn in 2..5 {
            let at = (round + turn) % 3;
            let (ours, set, descriptor) = &mut sets[at];
            assert!(at == (round + 2) % 3 || is_readable(descriptor, LONG), "round {round}");
            let mut taken = 0;
            while taken == 0 && at != (round + 2) % 3 {
                assert!(is_readable(descriptor, LONG), "round {round}");
                taken += if ready(set).is_empty() { 0 } else { drain(ours) };
            }
            settle(set, ours);
        }
    }
}

/// A hostile publisher takes bits, reads other publishers' bytes from the pipe, and fills it.
#[test]
fn a_publisher_that_empties_the_pipe_does_not_silence_others() {
    let domain = Domain::new();
    let (here, there, hostile) = (domain.node(), domain.node(), domain.node());
    let (mut ours, mut theirs) = (subscriber(&here, 0), publisher(&there, 0));
    let quiet = publisher(&hostile, 0);
    matched(&theirs);
    matched(&quiet);
    assert!(ours.wait_for_match(2, LONG));
    let mut set = WaitSet::create(&here).unwrap();
    set.add(&ours.reader).unwrap();
    let descriptor = set.descriptor().unwrap();
    let (_, wake_descriptors) = ours.reader.shared().passed_to(0).unwrap();
    let table = Segment::map_shared(wake_descriptors.table.ready.as_fd(), 1).unwrap();
    // SAFETY: atomics and padding in a segment that was made for one.
    let table: &ReadyTable = unsafe { table.at(0) };
    let path = format!("/proc/self/fd/{}", wake_descriptors.table.pipe.as_raw_fd());
    let open = |write| {
        let flags = if write { rustix::fs::OFlags::WRONLY } else { rustix::fs::OFlags::RDONLY };
        let flags = flags | rustix::fs::OFlags::NONBLOCK;
        rustix::fs::open(&path, flags, rustix::fs::Mode::empty()).unwrap()
    };
    let (reading, writing, stop) = (open(false), open(true), AtomicBool::new(false));
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                table.ready.iter().for_each(|word| word.store(0, Ordering::Relaxed));
                let _ = rustix::io::read(&reading, &mut [0; 4096]);
            }
            for _ in 0..100 {
                let _ = rustix::io::write(&writing, &[1; 4096]);
            }
        });
        for _ in 0..10 {
            settle(&mut set, &mut ours);
            theirs.writer.publish_copy(&[0; 8]).unwrap();
            let mut taken = 0;
            while taken == 0 {
                assert!(is_readable(&descriptor, LONG), "it never comes");
                taken += if ready(&mut set).is_empty() { 0 } else { drain(&mut ours) };
            }
        }
        stop.store(true, Ordering::Relaxed);
    });
    // A full pipe is emptied, and the next sample makes it readable again.
    settle(&mut set, &mut ours);
    settle(&mut set, &mut ours);
    theirs.writer.publish_copy(&[0; 8]).unwrap();
    assert!(is_readable(&descriptor, LONG));
}

#[test]
fn a_wait_of_one_subscriber_is_ended_by_its_interrupter() {
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let (mut ours, mut theirs) = (subscriber(&here, 0), publisher(&there, 0));
    matched(&theirs);
    assert!(ours.wait_for_match(1, LONG));
    let interrupter = ours.reader.shared().interrupter();
    for way in WAYS.into_iter().chain(WAYS) {
        // Before the wait: only the next wait ends.
        interrupter.interrupt();
        interrupter.interrupt();
        assert!(!ours.reader.wait(way, NEVER).unwrap());
        std::thread::scope(|scope| {
            scope.spawn(|| interrupter.clone().interrupt());
            assert!(!ours.reader.wait(way, NEVER).unwrap());
        });
        theirs.writer.publish_copy(&[1]).unwrap();
        assert!(ours.reader.wait(way, soon()).unwrap(), "not interrupted any more");
        assert_eq!(drain(&mut ours), 1);
    }
    drop(ours);
    interrupter.interrupt(); // the subscriber has gone
}

/// The handler runs in the waiting thread, at any moment of the wait; waits go on after a handler
/// (`SA_RESTART`, as set by `signal`).
#[test]
fn a_signal_handler_ends_a_wait_of_one_subscriber() {
    static INTERRUPTER: std::sync::OnceLock<Interrupter> = std::sync::OnceLock::new();
    extern "C" fn handle(_: libc::c_int) {
        INTERRUPTER.get().unwrap().interrupt();
    }
    let domain = Domain::new();
    let (here, there) = (domain.node(), domain.node());
    let (mut ours, theirs) = (subscriber(&here, 0), publisher(&there, 0));
    matched(&theirs);
    INTERRUPTER.get_or_init(|| ours.reader.shared().interrupter());
    // SAFETY: the handler loads, stores and makes a futex call. The thread is this one, which waits
    // for the other's end.
    let this = unsafe {
        libc::signal(libc::SIGUSR2, handle as *const () as libc::sighandler_t);
        libc::pthread_self()
    };
    for round in 0..200 {
        std::thread::scope(|scope| {
            // SAFETY: as above.
            scope.spawn(move || assert_eq!(unsafe { libc::pthread_kill(this, libc::SIGUSR2) }, 0));
            assert!(!ours.reader.wait(WAYS[1 + round % 3], NEVER).unwrap());
        });
    }
}

/// In a child of `fork` a set gives an error, and nothing of the parent is touched.
#[test]
fn a_forked_child_gets_an_error() {
    let domain = Domain::new();
    let node = domain.node();
    let mut set = WaitSet::create(&node).unwrap();
    let guard = set.guard_condition().unwrap();
    // SAFETY: the child makes two calls that neither lock nor allocate, and ends.
    let child = unsafe { libc::fork() };
    if child == 0 {
        guard.trigger();
        let is_told = matches!(set.wait(Wait::Block, NEVER), Err(Error::Forked));
        // SAFETY: it ends without the parent's destructors and exit handlers.
        unsafe { libc::_exit(i32::from(!is_told)) };
    }
    let mut status = -1;
    // SAFETY: the child is ours and `status` outlives the call.
    assert_eq!(unsafe { libc::waitpid(child, &raw mut status, 0) }, child);
    assert_eq!(status, 0);
    assert!(ready(&mut set).is_empty(), "the child's call");
}
