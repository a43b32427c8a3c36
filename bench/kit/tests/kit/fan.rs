//! The counts and records of the two roles of a publish run. Time stands still unless the test
//! advances it.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::support::{Samples, prepare};
use myelin_bench_kit::fan::{self, SILENT};
use myelin_bench_kit::message::{HEADER_BYTES, Outgoing, pattern_holds, sequence};
use myelin_bench_kit::protocol::{Done, Prepare, Role, System, Touch, Workload};
use myelin_bench_kit::samples::{Record, SampleFile};
use myelin_bench_kit::{Clock, Driver, Error, Fan, Publisher, RoundTrip, Subscriber};

#[test]
fn every_publish_call_is_timed_and_recorded() {
    let prepare = Prepare { messages: 5, ..publish(Role::Ping) };
    let (done, records, sent) = ping(&prepare, 10, false);
    assert_eq!((done.sent, done.received, done.lost), (5, 0, 0));
    assert_eq!(sent.len() as u64, 5 + prepare.warmup_messages);
    assert_eq!(records.iter().map(|record| record.id).collect::<Vec<_>>(), [0, 1, 2, 3, 4]);
    for record in &records {
        assert_eq!(record.publish_return_ns - record.publish_entry_ns, WRITE_NS);
        assert_eq!(record.intended_ns, record.publish_entry_ns);
        assert_eq!((record.take_return_ns, record.loan_ns, record.fill_ns), (0, 0, 0));
    }
}

#[test]
fn a_schedule_is_kept_and_every_second_record_too() {
    let (messages, rate_hz) = (6, Some(1e6));
    let prepare = Prepare { messages, rate_hz, record_every: 2, ..publish(Role::Ping) };
    let (done, records, _) = ping(&prepare, 10, true);
    assert_eq!(done.sent, 6);
    assert_eq!(records.iter().map(|record| record.id).collect::<Vec<_>>(), [0, 2, 4]);
    for record in &records {
        assert_eq!(record.intended_ns, done.begin_ns + record.id * 1000);
        assert_eq!(record.publish_entry_ns, record.intended_ns);
    }
}

#[test]
fn a_full_sample_file_ends_the_run() {
    let prepare = Prepare { messages: 50, ..publish(Role::Ping) };
    let (done, records, _) = ping(&prepare, 3, false);
    assert_eq!((done.sent, records.len()), (3, 3));
}

#[test]
fn only_the_touched_part_of_a_loan_is_written() {
    for (touch, whole) in [(Touch::Stamps, true), (Touch::Header, false)] {
        let prepare = Prepare { messages: 3, touch, ..publish(Role::Ping) };
        let (_, _, sent) = ping(&prepare, 10, true);
        let (warm_up, measured) = sent.split_at(prepare.warmup_messages as usize);
        assert!(warm_up.iter().all(|message| pattern_holds(message, 64)), "{touch:?}");
        assert!(measured.iter().all(|message| pattern_holds(message, 64) == whole), "{touch:?}");
        let numbers: Vec<_> = sent.iter().map(|message| sequence(message).unwrap()).collect();
        assert_eq!(numbers, (0..sent.len() as u64).collect::<Vec<_>>());
        let untouched = measured.iter().all(|m| m[HEADER_BYTES..].iter().all(|b| *b == STALE));
        assert_eq!(untouched, !whole);
    }
}

#[test]
fn messages_are_counted_per_subscriber() {
    // Two messages of the warm-up; then 1 is missed, 2 comes twice, and 3 comes late, after 4.
    let done = pong(&[&[0, 1, 2, 4, 4, 6, 5], &[2, 3, 4, 5, 6], &[1], &[]]).unwrap();
    assert_eq!(done.received, 4 + 5);
    assert_eq!((done.duplicates, done.out_of_order, done.corrupt), (1, 1, 0));
    assert_eq!(done.more[SILENT], 1);
    assert!(done.cpu_ns.is_some());
}

#[test]
fn damage_is_counted_and_a_goodbye_is_not() {
    let clock = Clock::virtual_at(BEGIN_NS);
    let damaged = |number: u64| {
        let mut message = Outgoing::new(64).stamp(number).to_vec();
        message[HEADER_BYTES] ^= 1;
        message
    };
    let messages = vec![damaged(0), damaged(3), vec![1, 2], Outgoing::new(64).stamp(4).to_vec()];
    let stop = Arc::new(AtomicBool::new(false));
    let ear = Ear { messages, stop: Arc::clone(&stop), taken: Vec::new() };
    let mut fan = Fan { clock, ..Fan::subscribers(vec![Box::new(ear)]) };
    let done = fan::pong(&mut fan, &publish(Role::Pong), &stop).unwrap();
    assert_eq!((done.received, done.corrupt), (2, 3));
}

#[test]
fn pong_without_subscribers_ends_when_stopped() {
    let prepare = Prepare { subscribers: 0, ..publish(Role::Pong) };
    let stop = AtomicBool::new(true);
    let done = fan::pong(&mut Fan::subscribers(Vec::new()), &prepare, &stop).unwrap();
    assert_eq!((done.received, done.more[SILENT], done.cpu_ns), (0, 0, None));
}

#[test]
fn a_driver_that_opens_the_wrong_ends_is_an_error() {
    let prepare = Prepare { subscribers: 2, ..publish(Role::Pong) };
    let stop = AtomicBool::new(true);
    let error = fan::pong(&mut Fan::subscribers(Vec::new()), &prepare, &stop).unwrap_err();
    assert!(error.message.contains("0 subscribers, not 2"), "{error}");
    let samples = Samples::new(1);
    let mut file = SampleFile::open(&samples.path()).unwrap();
    let mut fan = Fan::subscribers(Vec::new());
    let error = fan::ping(&mut fan, &prepare, &mut file, 0, &AtomicBool::new(false)).unwrap_err();
    assert!(error.message.contains("no publisher"), "{error}");
}

#[test]
fn publish_runs_need_a_driver_that_supports_them() {
    struct Plain;
    impl Driver for Plain {
        fn systems(&self) -> Vec<System> {
            Vec::new()
        }
        fn open(&self, _prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
            Err(Error::new("not asked"))
        }
    }
    let error = Plain.open_publish(&publish(Role::Ping)).err().unwrap();
    assert!(error.message.contains("not supported by this driver"), "{error}");
}

/// A publisher that keeps its messages and takes [`WRITE_NS`] for each.
struct Mouth {
    clock: Clock,
    loans: bool,
    loan: Vec<u8>,
    sent: Rc<RefCell<Vec<Vec<u8>>>>,
}

impl Publisher for Mouth {
    fn has_loans(&self) -> bool {
        self.loans
    }

    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        self.loan = vec![STALE; len];
        Ok(&mut self.loan)
    }

    fn publish_loan(&mut self) -> Result<(), Error> {
        let loan = std::mem::take(&mut self.loan);
        self.publish(&loan)
    }

    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.clock.sleep_until(self.clock.now() + WRITE_NS);
        self.sent.borrow_mut().push(message.to_vec());
        Ok(())
    }
}

/// A subscriber with scripted messages, last first; it stops the run after the last one.
struct Ear {
    messages: Vec<Vec<u8>>,
    stop: Arc<AtomicBool>,
    taken: Vec<u8>,
}

impl Subscriber for Ear {
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        panic!("pong polls")
    }

    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        assert_eq!(until_ns, 0, "pong does not wait");
        let Some(message) = self.messages.pop() else {
            self.stop.store(true, Ordering::Relaxed);
            return Ok(None);
        };
        self.taken = message;
        Ok(Some(&self.taken))
    }
}

fn publish(role: Role) -> Prepare {
    Prepare { workload: Workload::Publish, warmup_messages: 2, ..prepare("fake", role) }
}

fn ping(prepare: &Prepare, capacity: u64, loans: bool) -> (Done, Vec<Record>, Vec<Vec<u8>>) {
    let (clock, sent) = (Clock::virtual_at(BEGIN_NS), Rc::default());
    let mouth = Mouth { clock: clock.clone(), loans, loan: Vec::new(), sent: Rc::clone(&sent) };
    let mut fan = Fan { clock, ..Fan::publisher(Box::new(mouth)) };
    let samples = Samples::new(capacity);
    let mut file = SampleFile::open(&samples.path()).unwrap();
    let done = fan::ping(&mut fan, prepare, &mut file, 0, &AtomicBool::new(false)).unwrap();
    let sent = sent.take();
    (done, samples.records(), sent)
}

/// Runs pong with a subscriber for each list of sequence numbers.
fn pong(lists: &[&[u64]]) -> Result<Done, Error> {
    let clock = Clock::virtual_at(BEGIN_NS);
    let stop = Arc::new(AtomicBool::new(false));
    let ear = |list: &&[u64]| -> Box<dyn Subscriber> {
        let message = |number: &u64| Outgoing::new(64).stamp(*number).to_vec();
        let messages = list.iter().rev().map(message).collect();
        Box::new(Ear { messages, stop: Arc::clone(&stop), taken: Vec::new() })
    };
    let prepare = Prepare { subscribers: lists.len() as u32, ..publish(Role::Pong) };
    let mut fan = Fan { clock, ..Fan::subscribers(lists.iter().map(ear).collect()) };
    fan::pong(&mut fan, &prepare, &stop)
}

const BEGIN_NS: u64 = 1_000_000;
const WRITE_NS: u64 = 300;
/// The contents of a loan before anything is written.
const STALE: u8 = 0xEE;
