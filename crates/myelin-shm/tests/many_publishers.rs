//! Subscribers of many publishers, which announce samples by their ready bits.

mod itself;

use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use myelin_shm::callback::Callback;
use myelin_shm::data_plane::subscription::RawSample;
use myelin_shm::dispatch::callback::{Function, Lengths};
use myelin_shm::event::Event;
use myelin_shm::layout::{WAKE_SEGMENT_BYTES, WakeSegment};
use myelin_shm::limits::CONNECTIONS_MAX;
use myelin_shm::node::{Counters, Node, NodeOptions, Publisher, Subscriber};
use myelin_shm::os::segment::Segment;
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos, Topic};
use myelin_shm::wait_set::WaitSet;
use myelin_shm::waiting::wait::{Wait, now_ns};

/// Longer than anything takes.
const LONG: Duration = Duration::from_secs(60);
const FOLDER: &str = "MYELIN_TEST_FOLDER";
const PROCESSES: usize = 8;
/// So many that a subscriber's announcements about them do not fit into one page.
const MANY: u32 = 320;
const PUBLISHERS: usize = MANY as usize / PROCESSES;
/// For each publisher.
const SAMPLES: u64 = 20;
/// More publishers than are looked at one by one.
const SOME: usize = 6;

fn topic() -> Topic {
    Topic { name: "many".into(), type_name: "T".into(), type_hash: 1 }
}

fn open(folder: &Path) -> Node {
    let folder = Some(folder.to_owned());
    Node::open(NodeOptions { runtime_dir: folder, ..NodeOptions::default() }).unwrap()
}

fn until(what: &str, mut condition: impl FnMut() -> bool) {
    let begin = Instant::now();
    while !condition() {
        assert!(begin.elapsed() < LONG, "waited in vain for {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

fn soon() -> u64 {
    now_ns() + LONG.as_nanos() as u64
}

fn publishers(node: &Node, count: usize, qos: PublisherQos) -> Vec<Publisher> {
    (0..count).map(|_| node.publisher(topic(), qos).unwrap()).collect()
}

fn subscriber(node: &Node, descriptor: bool) -> Subscriber {
    let qos = SubscriberQos {
        reliability: Reliability::Reliable,
        publishers_max: MANY,
        descriptor,
        ..SubscriberQos::default()
    };
    node.subscriber(topic(), qos).unwrap()
}

fn reliable() -> PublisherQos {
    let (reliability, block_max) = (Reliability::Reliable, LONG);
    PublisherQos { depth: 4, reliability, block_max, ..PublisherQos::default() }
}

/// The samples received from each publisher.
#[derive(Default)]
struct Ledger(HashMap<u64, u64>);

impl Ledger {
    fn note(&mut self, taken: &RawSample) {
        let next = self.0.entry(taken.publisher).or_default();
        assert_eq!((taken.sequence, taken.lost_before), (*next, 0));
        assert_eq!(taken.bytes(), taken.sequence.to_le_bytes());
        *next += 1;
    }

    fn samples(&self) -> u64 {
        self.0.values().sum()
    }
}

/// A process with its share of the publishers, which publish on request.
struct Process(Child);

impl Process {
    fn start(folder: &Path) -> Process {
        let mut command = itself::itself();
        command.args(["--exact", "helper", "--nocapture"]).env(FOLDER, folder);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        Process(command.spawn().unwrap())
    }

    fn hears(&mut self, text: &str) {
        let mut output = BufReader::new(self.0.stdout.as_mut().unwrap());
        let mut line = String::new();
        while !line.contains(text) {
            line.clear();
            assert!(output.read_line(&mut line).unwrap() > 0, "it has ended before {text:?}");
        }
    }

    fn go(&mut self) {
        self.0.stdin.as_mut().unwrap().write_all(b"g").unwrap();
    }

    fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Not a test of its own: the other processes' code.
#[test]
fn helper() {
    let Some(folder) = std::env::var_os(FOLDER).map(PathBuf::from) else { return };
    let node = open(&folder);
    let mut publishers = publishers(&node, PUBLISHERS, reliable());
    assert!(publishers.iter().all(|publisher| publisher.wait_for_match(1, LONG)));
    println!("matched");
    let mut input = std::io::stdin();
    while input.read_exact(&mut [0]).is_ok() {
        for sample in 0..SAMPLES {
            for publisher in &mut publishers {
                let writer = &mut publisher.writer;
                let sequence = writer.shared().published();
                assert_eq!(sequence % SAMPLES, sample);
                writer.publish_copy(&sequence.to_le_bytes()).unwrap();
            }
        }
    }
}

/// A node and processes with as many publishers as are allowed, all matched.
fn all(descriptor: bool) -> (tempfile::TempDir, Node, Subscriber, Vec<Process>) {
    let folder = tempfile::tempdir().unwrap();
    let node = open(folder.path());
    let subscriber = subscriber(&node, descriptor);
    let mut processes: Vec<_> = (0..PROCESSES).map(|_| Process::start(folder.path())).collect();
    processes.iter_mut().for_each(|process| process.hears("matched"));
    assert!(subscriber.wait_for_match(MANY as usize, LONG));
    (folder, node, subscriber, processes)
}

/// Takes all samples there are.
fn drain(subscriber: &mut Subscriber, ledger: &mut Ledger) {
    while let Some(taken) = subscriber.reader.take().unwrap() {
        ledger.note(&taken);
    }
}

#[test]
fn each_sample_of_many_publishers_arrives_in_order() {
    let (_folder, node, mut subscriber, mut processes) = all(true);
    let mut ledger = Ledger::default();
    let mut in_all = 0;
    // With its descriptor, it notes whether it can sleep at each empty take.
    for way in [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive] {
        processes.iter_mut().for_each(Process::go);
        in_all += u64::from(MANY) * SAMPLES;
        while ledger.samples() < in_all {
            assert!(subscriber.reader.wait(way, soon()).unwrap(), "{way:?}");
            ledger.note(&subscriber.reader.take().unwrap().expect("the wait has said so"));
        }
        assert!(subscriber.reader.take().unwrap().is_none());
    }
    processes.iter_mut().for_each(Process::go);
    in_all += u64::from(MANY) * SAMPLES;
    while ledger.samples() < in_all {
        use rustix::event::{PollFd, PollFlags, Timespec, poll};
        let event = subscriber.reader.event().unwrap();
        let limit = Timespec { tv_sec: LONG.as_secs() as _, tv_nsec: 0 };
        assert_eq!(poll(&mut [PollFd::new(&event, PollFlags::IN)], Some(&limit)).unwrap(), 1);
        drain(&mut subscriber, &mut ledger);
    }
    let mut set = WaitSet::create(&node).unwrap();
    let key = set.add(&subscriber.reader).unwrap();
    processes.iter_mut().for_each(Process::go);
    in_all += u64::from(MANY) * SAMPLES;
    while ledger.samples() < in_all {
        assert_eq!(set.wait(Wait::Block, soon()).unwrap(), [key]);
        // Some are left: the set reports it again.
        for _ in 0..3 {
            subscriber.reader.take().unwrap().iter().for_each(|taken| ledger.note(taken));
        }
    }
    assert_eq!(ledger.0.len(), MANY as usize);
}

/// A subscriber allocates memory for existing publishers, not for the maximum.
#[test]
fn a_thousand_publishers_match_and_memory_grows_with_them() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (open(folder.path()), open(folder.path()));
    let qos = SubscriberQos { publishers_max: CONNECTIONS_MAX, ..SubscriberQos::default() };
    let mut subscriber = here.subscriber(topic(), qos).unwrap();
    let memory = || {
        let graph = here.graph().unwrap();
        let its = graph.endpoints.iter().find(|endpoint| !endpoint.is_publisher).unwrap();
        match its.counters {
            Some(Counters::Subscriber { memory_bytes, .. }) => memory_bytes,
            _ => panic!("{its:?}"),
        }
    };
    assert!(memory() <= 4 * 4096, "{}", memory());
    let mut publishers = publishers(&there, 1_000, PublisherQos::default());
    assert!(subscriber.wait_for_match(publishers.len(), LONG));
    assert!((16 * 4096..32 * 4096).contains(&memory()), "{}", memory());
    let mut ledger = Ledger::default();
    for publisher in &mut publishers {
        assert!(publisher.wait_for_match(1, LONG));
        publisher.writer.publish_copy(&0_u64.to_le_bytes()).unwrap();
    }
    until("a sample of each", || {
        drain(&mut subscriber, &mut ledger);
        ledger.samples() == publishers.len() as u64
    });
}

/// kill -9 of some while they publish: all samples of the others come, and all samples of the
/// killed ones up to some point.
#[test]
fn a_publisher_over_the_limit_matches_when_others_are_killed() {
    let (folder, _node, mut subscriber, mut processes) = all(false);
    let mut late = open(folder.path()).publisher(topic(), reliable()).unwrap();
    let mut refusals = Vec::new();
    until("the refusal", || {
        refusals.extend(late.events().into_iter().filter_map(|event| match event {
            Event::Refused { reason, .. } => Some(reason),
            _ => None,
        }));
        !refusals.is_empty()
    });
    assert!(refusals[0].contains("publishers_max") && refusals[0].contains("320"), "{refusals:?}");
    assert_eq!(late.matched(), 0);
    processes.iter_mut().for_each(Process::go);
    let mut ledger = Ledger::default();
    while ledger.samples() < 100 {
        assert!(subscriber.reader.wait(Wait::Block, soon()).unwrap());
        drain(&mut subscriber, &mut ledger);
    }
    processes.drain(..2).for_each(|mut process| process.kill());
    let survivors = PUBLISHERS * (PROCESSES - 2);
    let have_all = |ledger: &Ledger| ledger.0.values().filter(|it| **it == SAMPLES).count();
    until("what the survivors publish", || {
        drain(&mut subscriber, &mut ledger);
        have_all(&ledger) >= survivors
    });
    until("the match of the one that was refused", || {
        drain(&mut subscriber, &mut ledger);
        late.wait_for_match(1, Duration::ZERO)
    });
    late.writer.publish_copy(&0u64.to_le_bytes()).unwrap();
    until("its sample", || {
        drain(&mut subscriber, &mut ledger);
        ledger.0.contains_key(&late.id())
    });
    // Enough have gone that few are left.
    drop(processes);
    until("the end of their matches", || subscriber.matched() == 1);
    late.writer.publish_copy(&1u64.to_le_bytes()).unwrap();
    until("the last sample", || {
        drain(&mut subscriber, &mut ledger);
        ledger.0[&late.id()] == 2
    });
}

/// They come and go while they publish: many become few and many again.
#[test]
fn no_publisher_is_forgotten_when_their_number_changes() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (open(folder.path()), open(folder.path()));
    let mut subscriber = subscriber(&here, false);
    let mut ledger = Ledger::default();
    for round in 0..20 {
        let count = 2 + round % 7;
        let mut made = publishers(&there, count, reliable());
        assert!(made.iter().all(|publisher| publisher.wait_for_match(1, LONG)));
        assert!(subscriber.wait_for_match(count, LONG));
        let before = ledger.samples();
        for sample in 0..3u64 {
            for publisher in &mut made {
                publisher.writer.publish_copy(&sample.to_le_bytes()).unwrap();
            }
        }
        // Their remaining samples are read after they have gone.
        drop(made);
        while ledger.samples() < before + 3 * count as u64 {
            assert!(subscriber.reader.wait(Wait::Block, soon()).unwrap());
            drain(&mut subscriber, &mut ledger);
        }
        until("their end", || subscriber.matched() == 0);
    }
}

/// Sets a flag, also when the test fails.
struct AtTheEnd<'a>(&'a AtomicBool);

impl Drop for AtTheEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

/// A hostile publisher takes away all ready bits endlessly: the others' samples come nevertheless.
#[test]
fn a_publisher_that_clears_the_bits_does_not_silence_others() {
    let folder = tempfile::tempdir().unwrap();
    // Publishers of a single node could only harm themselves, so there would be no look for
    // overlooked ones.
    let [here, there, elsewhere] = [(); 3].map(|()| open(folder.path()));
    let mut subscriber = subscriber(&here, false);
    let mut honest = publishers(&there, SOME - 1, PublisherQos::default());
    honest.extend(publishers(&elsewhere, 1, PublisherQos::default()));
    assert!(honest.iter().all(|publisher| publisher.wait_for_match(1, LONG)));
    assert!(subscriber.wait_for_match(SOME, LONG));
    let (_, wake) = subscriber.reader.shared().descriptors();
    let wake = Segment::map_shared(wake, WAKE_SEGMENT_BYTES).unwrap();
    // SAFETY: atomics in a segment that was made for them.
    let wake: &WakeSegment = unsafe { wake.at(0) };
    let (stop, taken) = (AtomicBool::new(false), AtomicU64::new(0));
    let mut set = WaitSet::create(&here).unwrap();
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                wake.ready.iter().for_each(|word| word.store(0, Ordering::Relaxed));
            }
        });
        scope.spawn(|| {
            for sample in 0..3 * SOME as u64 {
                let writer = &mut honest[sample as usize % SOME].writer;
                writer.publish_copy(&(sample / SOME as u64).to_le_bytes()).unwrap();
                while taken.load(Ordering::Acquire) <= sample && !stop.load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
            }
        });
        let _stop = AtTheEnd(&stop);
        let mut ledger = Ledger::default();
        for way in [Some(Wait::Poll), Some(Wait::Block), None] {
            let enough = ledger.samples() + SOME as u64;
            if way.is_none() {
                set.add(&subscriber.reader).unwrap();
            }
            while ledger.samples() < enough {
                match way {
                    Some(way) => assert!(subscriber.reader.wait(way, soon()).unwrap()),
                    None => assert_eq!(set.wait(Wait::Block, soon()).unwrap().len(), 1),
                }
                drain(&mut subscriber, &mut ledger);
                taken.store(ledger.samples(), Ordering::Release);
            }
        }
    });
}

/// A hostile publisher sets all bits endlessly: that ends no wait, and keeps no take from
/// returning.
#[test]
fn endless_ready_bits_extend_neither_a_take_nor_a_wait() {
    let folder = tempfile::tempdir().unwrap();
    let node = open(folder.path());
    let mut subscriber = subscriber(&node, false);
    let publishers = publishers(&node, SOME, PublisherQos::default());
    assert!(publishers.iter().all(|publisher| publisher.wait_for_match(1, LONG)));
    assert!(subscriber.wait_for_match(SOME, LONG));
    let (_, wake) = subscriber.reader.shared().descriptors();
    let wake = Segment::map_shared(wake, WAKE_SEGMENT_BYTES).unwrap();
    // SAFETY: as above.
    let wake: &WakeSegment = unsafe { wake.at(0) };
    let stop = AtomicBool::new(false);
    std::thread::scope(|scope| {
        scope.spawn(|| {
            while !stop.load(Ordering::Relaxed) {
                wake.ready.iter().for_each(|word| word.store(u64::MAX, Ordering::Relaxed));
            }
        });
        for way in [Wait::Poll, Wait::Block, Wait::Adaptive, Wait::Predictive] {
            assert!(subscriber.reader.take().unwrap().is_none());
            assert!(!subscriber.reader.wait(way, now_ns() + 5_000_000).unwrap());
        }
        stop.store(true, Ordering::Relaxed);
    });
}

/// A publisher of this process that runs a callback itself sets no bit.
#[test]
fn callbacks_miss_nothing_of_many_publishers() {
    let folder = tempfile::tempdir().unwrap();
    let (here, there) = (open(folder.path()), open(folder.path()));
    let ledger = Arc::new(Mutex::new(Ledger::default()));
    let called = ledger.clone();
    let call = Box::new(move |taken: &RawSample| called.lock().unwrap().note(taken));
    let function = Function { call, lengths: Lengths::Such(|_| true), align: 1 };
    let exclusive = Callback::start(subscriber(&here, false), Wait::Block, function).unwrap();
    let calls = Arc::new(AtomicU64::new(0));
    let counted = calls.clone();
    let call = Box::new(move |_: &RawSample| _ = counted.fetch_add(1, Ordering::Relaxed));
    let lengths = Lengths::Such(|_| true);
    let concurrent = Callback::start_concurrent(subscriber(&here, false), call, lengths).unwrap();
    let mut made = publishers(&here, SOME, reliable());
    made.extend(publishers(&there, SOME, reliable()));
    assert!(made.iter().all(|publisher| publisher.wait_for_match(2, LONG)));
    let callbacks = [&exclusive, &concurrent];
    until("the matches", || callbacks.iter().all(|it| it.handle().matched() == 2 * SOME));
    // From several threads at once, so that some find the dispatcher taken.
    std::thread::scope(|scope| {
        for publishers in made.chunks_mut(3) {
            scope.spawn(move || {
                for sample in 0..500u64 {
                    for publisher in &mut *publishers {
                        publisher.writer.publish_copy(&sample.to_le_bytes()).unwrap();
                    }
                }
            });
        }
    });
    let in_all = 2 * SOME as u64 * 500;
    until("the calls", || {
        ledger.lock().unwrap().samples() == in_all && calls.load(Ordering::Relaxed) == in_all
    });
    assert_eq!(exclusive.panics() + concurrent.panics(), 0);
}
