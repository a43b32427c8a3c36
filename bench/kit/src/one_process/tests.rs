//! Both ends in one process, over a channel: checks the counts, and that no thread is left however
//! a run ends.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver as Queue, RecvTimeoutError, Sender, channel};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::*;
use crate::driver::{Call, Publisher};
use crate::fan::SILENT;
use crate::message;
use crate::protocol::{Prepare, Role, Workload};

/// A fault at the message with this number.
#[derive(Clone, Copy, PartialEq)]
enum Mishap {
    None,
    PublishFails(u64),
    PublishPanics(u64),
    TakeFails(u64),
    TakePanics(u64),
    Damaged(u64),
    Lost(u64),
    Twice(u64),
    Stops(u64),
}

struct Into {
    queue: Sender<Vec<u8>>,
    mishap: Mishap,
    stop: &'static AtomicBool,
}

impl Publisher for Into {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let mut bytes = message.to_vec();
        let number = message::sequence(message).unwrap();
        match self.mishap {
            Mishap::PublishFails(at) if at == number => return Err(Error::new("cannot publish")),
            Mishap::PublishPanics(at) if at == number => panic!("as the test wants it"),
            Mishap::Lost(at) if at == number => return Ok(()),
            Mishap::Damaged(at) if at == number => *bytes.last_mut().unwrap() ^= 1,
            Mishap::Twice(at) if at == number => self.queue.send(bytes.clone()).unwrap(),
            Mishap::Stops(at) if at == number => self.stop.store(true, Ordering::Relaxed),
            _ => {}
        }
        // If the taking end is gone already, the message counts as lost.
        let _ = self.queue.send(bytes);
        Ok(())
    }
}

struct From {
    queue: Queue<Vec<u8>>,
    next: Option<Vec<u8>>,
    taken: Vec<u8>,
    mishap: Mishap,
}

impl Subscriber for From {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let left_ns = until_ns.saturating_sub(Clock::Monotonic.now());
        match self.queue.recv_timeout(Duration::from_nanos(left_ns)) {
            Ok(message) => self.next = Some(message),
            Err(RecvTimeoutError::Timeout) => return Ok(Some(false)),
            Err(RecvTimeoutError::Disconnected) => return Err(Error::new("nobody publishes")),
        }
        Ok(Some(true))
    }

    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        self.taken = self.next.take().expect("it was waited for");
        match (self.mishap, message::sequence(&self.taken)) {
            (Mishap::TakeFails(at), Some(number)) if at == number => Err(Error::new("cannot take")),
            (Mishap::TakePanics(at), Some(number)) if at == number => panic!("as the test wants"),
            _ => Ok(Some(&self.taken)),
        }
    }
}

/// Calls from a separate thread.
struct Threaded(From);

impl CallSource for Threaded {
    fn start(self: Box<Self>, mut call: Call) -> Result<Box<dyn Any>, Error> {
        let queue = self.0.queue;
        let thread = std::thread::spawn(move || {
            while let Ok(message) = queue.recv_timeout(Duration::from_millis(300)) {
                call(&message);
            }
        });
        Ok(Box::new(Joined(Some(thread))))
    }
}

struct Joined(Option<std::thread::JoinHandle<()>>);

impl Drop for Joined {
    fn drop(&mut self) {
        self.0.take().unwrap().join().unwrap();
    }
}

/// The result of a run of 50 messages with payloads of 64 B, and the final state of the stop flag.
struct Trial {
    result: std::thread::Result<Result<Done, Error>>,
    stopped: bool,
}

fn run(mishap: Mishap, workload: Workload, called: bool) -> Trial {
    let _alone = alone();
    let files = [tempfile::NamedTempFile::new().unwrap(), tempfile::NamedTempFile::new().unwrap()];
    let paths: Vec<PathBuf> = files.iter().map(|file| file.path().into()).collect();
    for file in &files {
        SampleFile::create(file.as_file(), 50).unwrap();
    }
    let prepare = prepare(workload, paths[1].clone());
    let stop: &'static AtomicBool = Box::leak(Box::new(AtomicBool::new(false)));
    let (queue, queued) = channel();
    let from = From { queue: queued, next: None, taken: Vec::new(), mishap };
    let receiver = match called {
        true => Receiver::Calls(Box::new(Threaded(from))),
        false => Receiver::Takes(Box::new(from)),
    };
    let stream = Stream::one_process(Box::new(Into { queue, mishap, stop }), vec![receiver]);
    let mut samples = SampleFile::open(&paths[0]).unwrap();
    let mut both = OneProcess::new(stream, &prepare).unwrap();
    let result = catch_unwind(AssertUnwindSafe(|| both.run(&prepare, &mut samples, 0, stop)));
    no_thread_is_left();
    Trial { result, stopped: stop.load(Ordering::Relaxed) }
}

fn prepare(workload: Workload, pong_samples: PathBuf) -> Prepare {
    let text = r#"{"protocol": 1, "system": "channel", "role": "ping", "run": "r", "domain": 0,
        "payload_bytes": 64, "messages": 50, "duration_ns": 0, "warmup_messages": 5,
        "rate_hz": 2000.0, "reply_timeout_ns": 1, "match_timeout_ns": 1, "record_every": 1,
        "samples": null, "directory": ".", "lock_memory": false, "seed": 1}"#;
    let plain: Prepare = serde_json::from_str(text).unwrap();
    assert_eq!(plain.role, Role::Ping);
    Prepare { workload, pong_samples: Some(pong_samples), ..plain }
}

/// Waits, because a join returns before the kernel removes a thread from its list, and a scope
/// returns even earlier. A thread that is left would stay in the list.
fn no_thread_is_left() {
    let limit = Instant::now() + Duration::from_secs(10);
    while is_there(THREAD) {
        assert!(Instant::now() < limit, "a thread is left");
        std::thread::yield_now();
    }
}

fn is_there(thread: &str) -> bool {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map_while(Result::ok);
    // A thread that ends meanwhile has no name.
    let mut names = tasks.filter_map(|task| std::fs::read_to_string(task.path().join("comm")).ok());
    names.any(|name| name.trim() == thread)
}

/// The test counts threads of this process, so only one test may run at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn counts(mishap: Mishap, workload: Workload, called: bool) -> (Done, Done) {
    let mut done = run(mishap, workload, called).result.unwrap().unwrap();
    let pong = done.pong.take().unwrap();
    (done, *pong)
}

#[test]
fn all_messages_arrive_by_take_and_by_callback() {
    for workload in [Workload::Stream, Workload::Image] {
        for called in [false, true] {
            let (ping, pong) = counts(Mishap::None, workload, called);
            assert_eq!((ping.sent, pong.received, pong.lost), (50, 50, 0));
            assert_eq!((pong.corrupt, pong.duplicates, pong.out_of_order), (0, 0, 0));
            assert!(!pong.more.contains_key(SILENT));
        }
    }
}

#[test]
fn damage_loss_and_duplicates_are_counted() {
    for called in [false, true] {
        // In the warm-up the whole message is compared, later only the stamps; with 64 B the last
        // byte is no stamp.
        let damaged = counts(Mishap::Damaged(3), Workload::Stream, called).1;
        assert_eq!((damaged.received, damaged.corrupt), (50, 1));
        let frame = counts(Mishap::Damaged(3), Workload::Image, called).1;
        assert_eq!((frame.received, frame.corrupt), (50, 1));
        let lost = counts(Mishap::Lost(54), Workload::Stream, called).1;
        assert_eq!((lost.received, lost.lost), (49, 1), "the last one");
        let twice = counts(Mishap::Twice(30), Workload::Stream, called).1;
        assert_eq!((twice.received, twice.duplicates), (50, 1));
    }
}

#[test]
fn a_failure_of_either_end_ends_both() {
    let failed = |mishap| run(mishap, Workload::Stream, false);
    let publish = failed(Mishap::PublishFails(20)).result.unwrap().unwrap_err();
    assert_eq!(publish.message, "cannot publish");
    let take = failed(Mishap::TakeFails(20));
    assert_eq!(take.result.unwrap().unwrap_err().message, "cannot take");
    assert!(take.stopped, "publishing ends early");
    let panicked = failed(Mishap::TakePanics(20));
    assert_eq!(panicked.result.unwrap().unwrap_err().message, "pong's thread has panicked");
    assert!(panicked.stopped);
    assert!(failed(Mishap::PublishPanics(20)).result.is_err(), "and the panic goes on");
}

#[test]
fn a_stop_ends_the_run_with_the_sent_messages() {
    let (ping, pong) = counts(Mishap::Stops(20), Workload::Stream, false);
    assert_eq!((ping.sent, pong.received, pong.lost), (16, 16, 0));
}

#[test]
fn a_driver_that_opens_the_wrong_ends_is_an_error() {
    let file = tempfile::NamedTempFile::new().unwrap();
    SampleFile::create(file.as_file(), 1).unwrap();
    let prepare = prepare(Workload::Stream, file.path().into());
    let (queue, queued) = channel();
    let into = || Box::new(Into { queue: queue.clone(), mishap: Mishap::None, stop: &NEVER });
    let refused = |stream| OneProcess::new(stream, &prepare).err().unwrap().into_reason().message;
    assert!(refused(Stream::publisher(into())).contains("0 receivers, not 1"));
    let from = From { queue: queued, next: None, taken: Vec::new(), mishap: Mishap::None };
    let here = Receiver::TakesHere(Box::new(from));
    let silent = Stream { publisher: None, ..Stream::one_process(into(), vec![here]) };
    assert!(refused(silent).contains("no publisher"));
    let without = Prepare { pong_samples: None, ..prepare.clone() };
    let threaded =
        |queue| Threaded(From { queue, next: None, taken: vec![], mishap: Mishap::None });
    let calls = Receiver::Calls(Box::new(threaded(channel().1)));
    let error = OneProcess::new(Stream::one_process(into(), vec![calls]), &without).err().unwrap();
    assert!(error.message.contains("no pong_samples"));
}

static NEVER: AtomicBool = AtomicBool::new(false);
