//! A payload damaged between the stamps: only the warm-up compares every byte, and its result must
//! not be lost.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::atomic::AtomicBool;

use crate::support::{Samples, prepare};
use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_bench_kit::samples::SampleFile;
use myelin_bench_kit::{Clock, Error, Link, Publisher, RoundTrip, Subscriber};

/// Returns what is published, with one damaged byte.
struct Damaging(Rc<RefCell<Option<Vec<u8>>>>);

impl Publisher for Damaging {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let mut damaged = message.to_vec();
        damaged[100..200].fill(0);
        *self.0.borrow_mut() = Some(damaged);
        Ok(())
    }
}

struct Echo(Rc<RefCell<Option<Vec<u8>>>>, Vec<u8>, Clock);

impl Subscriber for Echo {
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(None)
    }

    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let Some(message) = self.0.borrow_mut().take() else {
            self.2.sleep_until(until_ns);
            return Ok(None);
        };
        self.1 = message;
        Ok(Some(&self.1))
    }
}

#[test]
fn damage_in_the_warm_up_makes_the_run_invalid() {
    let clock = Clock::virtual_at(1_000);
    let way = Rc::default();
    let mut link = Link {
        publisher: Box::new(Damaging(Rc::clone(&way))),
        subscriber: Box::new(Echo(way, Vec::new(), clock.clone())),
        clock,
    };
    let prepare = Prepare {
        payload_bytes: 1024,
        messages: 10,
        warmup_messages: 3,
        ..prepare("damage", Role::Ping)
    };
    let file = Samples::new(20);
    let mut samples = SampleFile::open(&file.path()).unwrap();
    let stop = AtomicBool::new(false);
    let done = link.ping(&prepare, &mut samples, 0, &stop).unwrap();
    assert_eq!((done.sent, done.received), (10, 10));
    assert_eq!(done.corrupt, 3, "each message of the warm-up");
}
