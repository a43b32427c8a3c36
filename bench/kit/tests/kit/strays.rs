//! Unexpected messages: of the warm-up, never sent, sent twice, after the last. Incoming messages
//! are scripted by sequence number; time stands still.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Samples, prepare};
use myelin_bench_kit::message::Outgoing;
use myelin_bench_kit::pingpong::END_OF_STREAM;
use myelin_bench_kit::protocol::{Done, Prepare, Role};
use myelin_bench_kit::samples::{LEAN, Record, SampleFile};
use myelin_bench_kit::{Clock, Error, Link, Publisher, RoundTrip, Subscriber};

#[test]
fn late_warm_up_messages_do_not_count() {
    let clock = Clock::virtual_at(BEGIN_NS);
    let done = ping_scripted(&clock, &[vec![0, 0], vec![1, 0], vec![2]], 1, 2).unwrap();
    assert_eq!((done.sent, done.received, done.lost), (2, 2, 0));
    assert_eq!((done.duplicates, done.corrupt), (0, 0));
}

#[test]
fn an_answer_to_an_unsent_message_is_corrupt() {
    let clock = Clock::virtual_at(BEGIN_NS);
    let done = ping_scripted(&clock, &[vec![0], vec![1, 2, 9]], 0, 2).unwrap();
    assert_eq!((done.received, done.duplicates, done.corrupt), (2, 0, 2));
}

/// Delivers lists of sequence numbers: one list for each published message, or all at once.
struct Scripted {
    lists: Vec<Vec<u8>>,
    way: Rc<RefCell<Vec<u8>>>,
    clock: Clock,
    taken: Vec<u8>,
    /// Set when nothing is left to deliver.
    stop: Arc<AtomicBool>,
}

impl Publisher for Scripted {
    fn publish(&mut self, _message: &[u8]) -> Result<(), Error> {
        if !self.lists.is_empty() {
            self.way.borrow_mut().extend(self.lists.remove(0));
        }
        Ok(())
    }
}

impl Subscriber for Scripted {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let something = !self.way.borrow().is_empty();
        if !something {
            self.clock.sleep_until(until_ns);
            self.stop.store(true, Ordering::Relaxed);
        }
        Ok(Some(something))
    }

    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let sequence = self.way.borrow_mut().remove(0);
        let sequence = if sequence == LAST { END_OF_STREAM } else { u64::from(sequence) };
        self.taken = Outgoing::new(64).stamp(sequence).to_vec();
        Ok(Some(&self.taken))
    }
}

/// A link with scripted incoming messages, and the flag that is set after the last one.
fn scripted(clock: &Clock, at_once: &[u8], lists: &[Vec<u8>]) -> (Link, Arc<AtomicBool>) {
    let way = Rc::new(RefCell::new(at_once.to_vec()));
    let stop = Arc::new(AtomicBool::new(false));
    let end = || Scripted {
        lists: lists.to_vec(),
        way: Rc::clone(&way),
        clock: clock.clone(),
        taken: Vec::new(),
        stop: Arc::clone(&stop),
    };
    let (publisher, subscriber) = (Box::new(end()), Box::new(end()));
    (Link { publisher, subscriber, clock: clock.clone() }, stop)
}

fn ping_scripted(
    clock: &Clock,
    answers: &[Vec<u8>],
    warmup_messages: u64,
    messages: u64,
) -> Result<Done, Error> {
    let (mut link, _stop) = scripted(clock, &[], answers);
    let prepare = Prepare { messages, warmup_messages, ..prepare("fake", Role::Ping) };
    let samples = Samples::new(messages);
    let mut file = SampleFile::open(&samples.path()).unwrap();
    link.ping(&prepare, &mut file, 0, &AtomicBool::new(false))
}

#[test]
fn pong_answers_all_and_counts_each_once() {
    let clock = Clock::virtual_at(BEGIN_NS);
    // Two messages of the warm-up; then 0, 1 twice, 3 before 2, and 6 beyond the file.
    let (mut link, stop) = scripted(&clock, &[0, 1, 2, 3, 3, 5, 4, 8], &[]);
    let prepare = Prepare { warmup_messages: 2, ..prepare("fake", Role::Pong) };
    let samples = Samples::new(5);
    let mut file = SampleFile::open(&samples.path()).unwrap();
    let done = link.pong(&prepare, &mut file, &stop).unwrap();
    assert_eq!((done.sent, done.received), (6, 5), "one answer for each that came");
    assert_eq!((done.duplicates, done.corrupt), (1, 0));
    let seen: Vec<(u64, u16)> =
        samples.records().iter().map(|record| (record.id, record.duplicates)).collect();
    assert_eq!(seen, [(0, 0), (1, 1), (2, 0), (3, 0)]);
}

#[test]
fn pong_stamps_the_parts_of_the_sampled_messages() {
    let clock = Clock::virtual_at(BEGIN_NS);
    let (mut link, stop) = scripted(&clock, &[0, 1, 2, 3, 4, 5, 6, 7], &[]);
    let prepare = Prepare { warmup_messages: 1, parts_every: 3, ..prepare("fake", Role::Pong) };
    let samples = Samples::new(7);
    let mut file = SampleFile::open(&samples.path()).unwrap();
    link.pong(&prepare, &mut file, &stop).unwrap();
    let stamped = |record: &Record| (record.wake_ns != 0, record.flags & LEAN == 0);
    let found: Vec<_> = samples.records().iter().map(stamped).collect();
    let expected: Vec<_> = (1..8).map(|sequence| (sequence % 3 == 0, sequence % 3 == 0)).collect();
    assert_eq!(found, expected);
    assert!(samples.records().iter().all(|record| record.take_return_ns >= BEGIN_NS));
}

#[test]
fn ping_says_goodbye_and_pong_ends_without_an_answer() {
    let clock = Clock::virtual_at(BEGIN_NS);
    let (mut link, stop) = scripted(&clock, &[0, LAST, 1], &[]);
    let prepare = Prepare { warmup_messages: 0, ..prepare("fake", Role::Pong) };
    let mut file = SampleFile::open(&Samples::new(5).path()).unwrap();
    let done = link.pong(&prepare, &mut file, &stop).unwrap();
    assert_eq!((done.sent, done.received), (1, 1));
    assert!(!stop.load(Ordering::Relaxed), "it was not told to stop");
}

/// Represents [`END_OF_STREAM`] in a script.
const LAST: u8 = u8::MAX;
const BEGIN_NS: u64 = 1_000_000_000;
