//! `touch = "header"`: after the warm-up, ping and pong write only the sequence number into a loan.
//! Nothing here takes real time.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use crate::support::{Samples, prepare};
use myelin_bench_kit::message::{HEADER_BYTES, Outgoing, pattern_holds};
use myelin_bench_kit::pingpong::END_OF_STREAM;
use myelin_bench_kit::protocol::{Prepare, Role, Touch};
use myelin_bench_kit::samples::SampleFile;
use myelin_bench_kit::{Clock, Error, Link, Publisher, RoundTrip, Subscriber};

#[test]
fn ping_writes_only_the_number_after_the_warm_up() {
    let way = Way::default();
    let samples = Samples::new(3);
    let mut file = SampleFile::open(&samples.path()).unwrap();
    let prepare = touch_header(Role::Ping);
    let mut link = link(&way);
    let stop = AtomicBool::new(false);
    let done = link.ping(&prepare, &mut file, 0, &stop).unwrap();
    assert_eq!((done.sent, done.received, done.corrupt), (3, 3, 0));
    let sent = way.sent.borrow();
    assert!(sent[..2].iter().all(|message| pattern_holds(message, 64)));
    assert!(sent[2..5].iter().all(|message| is_stale(message)));
    assert_eq!(samples.records().len(), 3);
}

#[test]
fn pong_answers_with_only_the_touched_part() {
    let way = Way::default();
    for number in [0, 1, 2, 3, END_OF_STREAM] {
        way.coming.borrow_mut().push_back(Outgoing::new(64).stamp(number).to_vec());
    }
    let samples = Samples::new(3);
    let mut file = SampleFile::open(&samples.path()).unwrap();
    let (mut link, stop) = (link(&way), AtomicBool::new(false));
    let done = link.pong(&touch_header(Role::Pong), &mut file, &stop).unwrap();
    assert_eq!((done.received, done.corrupt), (2, 0));
    let sent = way.sent.borrow();
    assert!(sent[..2].iter().all(|message| pattern_holds(message, 64)));
    assert!(sent[2..].iter().all(|message| message.len() == 72 && is_stale(message)));
    assert_eq!(sent.len(), 4);
}

fn is_stale(message: &[u8]) -> bool {
    message[HEADER_BYTES..].iter().all(|byte| *byte == STALE)
}

fn touch_header(role: Role) -> Prepare {
    Prepare { touch: Touch::Header, warmup_messages: 2, messages: 3, ..prepare("fake", role) }
}

/// Published messages, and messages to take: the same, unless the test changes them.
#[derive(Clone, Default)]
struct Way {
    sent: Rc<RefCell<Vec<Vec<u8>>>>,
    coming: Rc<RefCell<VecDeque<Vec<u8>>>>,
}

struct End {
    way: Way,
    clock: Clock,
    bytes: Vec<u8>,
}

fn link(way: &Way) -> Link {
    let clock = Clock::virtual_at(1);
    let end = || Box::new(End { way: way.clone(), clock: clock.clone(), bytes: Vec::new() });
    Link { publisher: end(), subscriber: end(), clock: clock.clone() }
}

impl Publisher for End {
    fn has_loans(&self) -> bool {
        true
    }

    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        self.bytes = vec![STALE; len];
        Ok(&mut self.bytes)
    }

    fn publish_loan(&mut self) -> Result<(), Error> {
        self.way.sent.borrow_mut().push(self.bytes.clone());
        self.way.coming.borrow_mut().push_back(self.bytes.clone());
        Ok(())
    }

    fn publish(&mut self, _message: &[u8]) -> Result<(), Error> {
        panic!("this system has loans")
    }
}

impl Subscriber for End {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let something = !self.way.coming.borrow().is_empty();
        if !something {
            self.clock.sleep_until(until_ns);
        }
        Ok(Some(something))
    }

    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let next = self.way.coming.borrow_mut().pop_front();
        Ok(next.map(|message| {
            self.bytes = message;
            self.bytes.as_slice()
        }))
    }
}

const STALE: u8 = 0xEE;
