//! Both systems end to end, without the kit's loops. Tests that need LibXR are skipped, with a
//! message, if it is not built in; then the driver's own message is tested.

use std::any::Any;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use myelin_bench_kit::message::{self, Outgoing, pattern_holds};
use myelin_bench_kit::protocol::{Prepare, Topology, Touch, Wait, Workload};
use myelin_bench_kit::{
    CallSource, Driver, Error, Publisher, Receiver, Stream, Subscriber, check, clock,
};
use myelin_driver_libxr::driver;
use serde_json::json;

#[test]
fn both_systems_are_described_in_any_case() {
    let systems = driver().systems();
    let names: Vec<_> = systems.iter().map(|system| system.name.as_str()).collect();
    assert_eq!(names, ["libxr.callback", "libxr.sync"]);
    assert_eq!((systems[0].wait, systems[1].wait), (Wait::Callback, Wait::Block));
    assert!(systems.iter().all(|system| system.topology == Topology::OneProcess));
    assert!(!systems.iter().any(|system| system.workloads.contains(&Workload::Roundtrip)));
    for system in systems {
        assert_eq!(system.missing.is_none(), is_built_in(), "{system:?}");
        assert_eq!(system.version.is_empty(), !is_built_in(), "{system:?}");
    }
}

#[test]
fn without_libxr_the_remedy_is_given() {
    let Some(missing) = missing() else {
        return println!("skipped: LibXR is built in");
    };
    assert!(missing.contains("LIBXR_DIR") && missing.contains("install"), "{missing}");
    let prepare = prepare("libxr.sync", "absent", 64, 1);
    assert_eq!(check(&driver(), &prepare).unwrap_err().message, missing);
}

#[test]
fn callbacks_get_every_message_in_order_and_intact() {
    if !is_built_in() {
        return;
    }
    for payload_bytes in [0, 12, 64, 65536, 230_400, 4_665_600, 16 << 20] {
        let run = format!("callback-{payload_bytes}");
        let stream = open("libxr.callback", &run, payload_bytes, 3);
        let (mut publisher, sources) = callbacks(stream);
        let heard: Vec<_> =
            sources.into_iter().map(|source| Heard::by(source, payload_bytes)).collect();
        for sequence in 0..messages(payload_bytes) {
            send(&mut *publisher, payload_bytes, sequence);
            // The publish call lasts until all have been called.
            for heard in &heard {
                assert_eq!(heard.next.load(Ordering::Relaxed), sequence + 1, "{payload_bytes} B");
            }
        }
    }
}

#[test]
fn copied_messages_arrive() {
    if !is_built_in() {
        return;
    }
    let (mut publisher, mut sources) = callbacks(open("libxr.callback", "by-copy", 1024, 1));
    let heard = Heard::by(sources.remove(0), 1024);
    let mut outgoing = Outgoing::new(1024);
    publisher.publish(outgoing.stamp(0)).unwrap();
    assert_eq!(heard.next.load(Ordering::Relaxed), 1);
    assert!(publisher.loan(1024).unwrap_err().message.contains("1032 B"));
}

#[test]
fn a_callback_is_not_called_after_its_handle_was_dropped() {
    if !is_built_in() {
        return;
    }
    let (mut publisher, mut sources) = callbacks(open("libxr.callback", "dropped", 64, 2));
    let stays = Heard::by(sources.remove(0), 64);
    let goes = Heard::by(sources.remove(0), 64);
    let next = Arc::clone(&goes.next);
    send(&mut *publisher, 64, 0);
    drop(goes);
    send(&mut *publisher, 64, 1);
    assert_eq!((next.load(Ordering::Relaxed), stays.next.load(Ordering::Relaxed)), (1, 2));
    assert_eq!(Arc::strong_count(&next), 1, "the function has been dropped");
}

#[test]
fn a_handle_may_be_dropped_in_another_thread_at_any_time() {
    if !is_built_in() {
        return;
    }
    let (mut publisher, sources) = callbacks(open("libxr.callback", "dropped-elsewhere", 64, 200));
    let over = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&over);
    let elsewhere = Elsewhere(sources);
    let dropping = std::thread::spawn(move || {
        for source in elsewhere.sources() {
            let alive = Arc::new(Mutex::new(true));
            let seen = Arc::clone(&alive);
            let call = move |_: &[u8]| assert!(*seen.lock().unwrap(), "called after the drop");
            let handle = source.start(Box::new(call)).unwrap();
            std::thread::yield_now();
            drop(handle);
            *alive.lock().unwrap() = false;
            assert_eq!(Arc::strong_count(&alive), 1, "the function has been dropped");
        }
        flag.store(true, Ordering::Relaxed);
    });
    let mut sequence = 0;
    while !over.load(Ordering::Relaxed) && !dropping.is_finished() {
        send(&mut *publisher, 64, sequence);
        sequence += 1;
    }
    dropping.join().unwrap();
}

#[test]
fn a_waiting_subscriber_gets_intact_messages_in_order() {
    if !is_built_in() {
        return;
    }
    for payload_bytes in [0, 64, 65536, 230_400, 4_665_600] {
        let run = format!("sync-{payload_bytes}");
        let mut stream = open("libxr.sync", &run, payload_bytes, 1);
        let (mut publisher, mut subscriber) = (stream.publisher.take().unwrap(), taken(stream));
        let over = Arc::new(AtomicBool::new(false));
        let flag = Arc::clone(&over);
        let taking = std::thread::spawn(move || {
            let (mut next, mut count) = (0, 0);
            while count < messages(payload_bytes) {
                let message = subscriber.take(clock::monotonic_ns() + SECOND_NS).unwrap();
                let message = message.expect("a message within a second");
                let sequence = message::sequence(message).unwrap();
                assert!(sequence >= next, "{sequence} after {next}");
                assert!(pattern_holds(message, payload_bytes as usize), "{payload_bytes} B");
                // A taken message does not change, whether or not others are published meanwhile.
                std::thread::yield_now();
                assert_eq!(message::sequence(message), Some(sequence));
                (next, count) = (sequence + 1, count + 1);
                subscriber.release();
            }
            flag.store(true, Ordering::Relaxed);
        });
        let mut sequence = 0;
        // Messages are lost while no thread waits, so more are sent than taken.
        while !over.load(Ordering::Relaxed) && !taking.is_finished() {
            send(&mut *publisher, payload_bytes, sequence);
            sequence += 1;
            std::thread::yield_now();
        }
        taking.join().unwrap();
    }
}

#[test]
fn a_wait_without_a_message_ends_at_its_time_limit() {
    if !is_built_in() {
        return;
    }
    let mut subscriber = taken(open("libxr.sync", "in-vain", 64, 1));
    assert_eq!(subscriber.wait(0).unwrap(), None, "it waits inside take");
    assert_eq!(subscriber.take(0).unwrap(), None);
    let begin = Instant::now();
    assert_eq!(subscriber.take(clock::monotonic_ns() + 20_000_000).unwrap(), None);
    assert!(begin.elapsed() >= Duration::from_millis(19), "{:?}", begin.elapsed());
}

#[test]
fn every_size_that_check_accepts_can_be_opened() {
    if !is_built_in() {
        return;
    }
    let error = check(&driver(), &prepare("libxr.callback", "sizes", 1001, 1)).unwrap_err();
    assert!(error.message.contains("1001 B"), "{error}");
    let sizes = error.remedy.strip_prefix("choose one of ").unwrap().split(';').next().unwrap();
    let sizes: Vec<u64> = sizes.split(", ").map(|size| size.parse().unwrap()).collect();
    assert!(sizes.is_sorted() && sizes.contains(&4_665_600), "{sizes:?}");
    for payload_bytes in sizes {
        let run = format!("size-{payload_bytes}");
        let (mut publisher, mut sources) =
            callbacks(open("libxr.callback", &run, payload_bytes, 1));
        let heard = Heard::by(sources.remove(0), payload_bytes);
        send(&mut *publisher, payload_bytes, 0);
        assert_eq!(heard.next.load(Ordering::Relaxed), 1);
    }
}

#[test]
fn a_name_with_the_crc32_of_another_is_refused() {
    if !is_built_in() {
        return;
    }
    let first = open("libxr.callback", "plumless", 64, 1);
    for run in ["plumless", "buckeroo"] {
        let error = refusal(&prepare("libxr.callback", run, 64, 1));
        assert!(error.message.contains("CRC32"), "{error}");
    }
    drop(first);
}

/// The progress of a callback.
struct Heard {
    /// The sequence number of its last call plus one.
    next: Arc<AtomicU64>,
    _handle: Box<dyn Any>,
}

impl Heard {
    /// Registers a callback that expects the next message, undamaged.
    fn by(source: Box<dyn CallSource>, payload_bytes: u64) -> Self {
        let next = Arc::new(AtomicU64::new(0));
        let heard = Arc::clone(&next);
        let call = move |message: &[u8]| {
            assert_eq!(message::sequence(message), Some(heard.load(Ordering::Relaxed)));
            assert!(pattern_holds(message, payload_bytes as usize));
            heard.fetch_add(1, Ordering::Relaxed);
        };
        Heard { next, _handle: source.start(Box::new(call)).unwrap() }
    }
}

/// Fills a loan with message `sequence` and publishes it.
fn send(publisher: &mut dyn Publisher, payload_bytes: u64, sequence: u64) {
    assert!(publisher.has_loans());
    let mut outgoing = Outgoing::new(payload_bytes as usize);
    let message = outgoing.renew(sequence, Touch::Stamps);
    publisher.loan(message.len()).unwrap().copy_from_slice(message);
    publisher.publish_loan().unwrap();
}

fn callbacks(stream: Stream) -> (Box<dyn Publisher>, Vec<Box<dyn CallSource>>) {
    let sources = stream.receivers.into_iter().map(|receiver| match receiver {
        Receiver::Calls(source) => source,
        _ => panic!("a callback was asked for"),
    });
    (stream.publisher.expect("ping publishes"), sources.collect())
}

/// Sources for another thread.
struct Elsewhere(Vec<Box<dyn CallSource>>);

// SAFETY: LibXR's sources are not tied to a thread; only the trait does not promise that.
unsafe impl Send for Elsewhere {}

impl Elsewhere {
    fn sources(self) -> Vec<Box<dyn CallSource>> {
        self.0
    }
}

fn taken(stream: Stream) -> Box<dyn Subscriber + Send> {
    assert_eq!(stream.receivers.len(), 1);
    match stream.receivers.into_iter().next() {
        Some(Receiver::Takes(subscriber)) => subscriber,
        _ => panic!("a subscriber that waits was asked for"),
    }
}

fn open(system: &str, run: &str, payload_bytes: u64, subscribers: u32) -> Stream {
    let prepare = prepare(system, run, payload_bytes, subscribers);
    check(&driver(), &prepare).unwrap();
    driver().open_stream(&prepare).unwrap_or_else(|error| panic!("{error}"))
}

fn refusal(prepare: &Prepare) -> Error {
    match driver().open_stream(prepare) {
        Ok(_) => panic!("{} was opened", prepare.run),
        Err(error) => error,
    }
}

fn prepare(system: &str, run: &str, payload_bytes: u64, subscribers: u32) -> Prepare {
    serde_json::from_value(json!({
        "protocol": 1, "system": system, "role": "ping", "run": run, "domain": 0,
        "payload_bytes": payload_bytes, "messages": 10, "duration_ns": 0, "warmup_messages": 0,
        "rate_hz": 100.0, "reply_timeout_ns": SECOND_NS, "match_timeout_ns": SECOND_NS,
        "record_every": 1, "samples": null, "directory": "/nonexistent", "lock_memory": false,
        "seed": 1, "workload": "stream", "subscribers": subscribers,
    }))
    .expect("a prepare")
}

fn is_built_in() -> bool {
    if let Some(missing) = missing() {
        println!("skipped: {missing}");
        return false;
    }
    true
}

fn missing() -> Option<String> {
    driver().systems().remove(0).missing
}

/// Fewer messages if they take long to check.
fn messages(payload_bytes: u64) -> u64 {
    if payload_bytes > 1 << 20 { 2 } else { 20 }
}

const SECOND_NS: u64 = 1_000_000_000;
