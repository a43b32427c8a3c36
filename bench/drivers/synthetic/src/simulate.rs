//! Ping's two ends: a published message returns to the same process, later or never.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use myelin_bench_kit::pingpong::END_OF_STREAM;
use myelin_bench_kit::protocol::Prepare;
use myelin_bench_kit::{Clock, Error, Link, Publisher, Subscriber, message};

use crate::delay::Timing;
use crate::fate::Fate;
use crate::options::Options;

/// Opens ping's side of a run.
pub fn open(options: Options, prepare: &Prepare) -> Link {
    let clock = options.clock();
    let in_flight = Rc::new(RefCell::new(InFlight::default()));
    let publisher = Sender {
        in_flight: Rc::clone(&in_flight),
        clock: clock.clone(),
        timing: Timing::new(&options, prepare),
        reply_timeout_ns: prepare.reply_timeout_ns,
    };
    let subscriber =
        Receiver { in_flight, clock: clock.clone(), read_ns: options.read_ns, taken: None };
    Link { publisher: Box::new(publisher), subscriber: Box::new(subscriber), clock }
}

/// Answers in flight.
#[derive(Default)]
struct InFlight {
    /// In the order in which they are delivered.
    answers: VecDeque<Answer>,
    /// The answer to the newest reordered message, until another one has overtaken it.
    held: Option<Answer>,
}

impl InFlight {
    fn next(&self) -> Option<&Answer> {
        self.answers.front().or(self.held.as_ref())
    }

    fn pop(&mut self) -> Option<Answer> {
        self.answers.pop_front().or_else(|| self.held.take())
    }
}

#[derive(Clone)]
struct Answer {
    due_ns: u64,
    bytes: Vec<u8>,
}

struct Sender {
    in_flight: Rc<RefCell<InFlight>>,
    clock: Clock,
    timing: Timing,
    reply_timeout_ns: u64,
}

impl Publisher for Sender {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let entry_ns = self.clock.now();
        let sequence = message::sequence(message).ok_or_else(|| Error::new("no sequence"))?;
        if sequence == END_OF_STREAM {
            return Ok(()); // meant for pong, which receives nothing
        }
        let due_ns = entry_ns + self.timing.delay_ns(sequence);
        self.deliver(
            self.timing.fate(sequence),
            Answer { due_ns, bytes: message.to_vec() },
            entry_ns,
        );
        pass_until(&self.clock, entry_ns + self.timing.options.write_ns);
        Ok(())
    }
}

impl Sender {
    fn deliver(&self, fate: Fate, mut answer: Answer, entry_ns: u64) {
        let mut in_flight = self.in_flight.borrow_mut();
        match fate {
            Fate::Lost => return,
            Fate::Reordered => {
                // After the time limit of this message, within that of the next or of the end.
                answer.due_ns = entry_ns + self.reply_timeout_ns + self.reply_timeout_ns / 2;
                let earlier = in_flight.held.replace(answer);
                in_flight.answers.extend(earlier);
                return;
            }
            Fate::Corrupted => corrupt(&mut answer.bytes),
            Fate::Duplicated => in_flight.answers.push_back(answer.clone()),
            Fate::Whole => {}
        }
        let due_ns = answer.due_ns;
        in_flight.answers.push_back(answer);
        let overtaken = in_flight.held.take();
        in_flight.answers.extend(overtaken.map(|held| Answer { due_ns, ..held }));
    }
}

/// Damages a message detectably: in the payload's first stamp or, without one, in the length.
pub(crate) fn corrupt(message: &mut Vec<u8>) {
    match message.get_mut(message::HEADER_BYTES..message::HEADER_BYTES + 8) {
        Some(stamp) => stamp[0] ^= 1,
        None => message.push(0),
    }
}

struct Receiver {
    in_flight: Rc<RefCell<InFlight>>,
    clock: Clock,
    read_ns: u64,
    taken: Option<Answer>,
}

impl Subscriber for Receiver {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let due_ns = self.in_flight.borrow().next().map(|answer| answer.due_ns);
        match due_ns.filter(|due_ns| *due_ns <= until_ns) {
            Some(due_ns) => pass_until(&self.clock, due_ns - self.read_ns),
            None => self.clock.sleep_until(until_ns),
        }
        Ok(Some(due_ns.is_some_and(|due_ns| due_ns <= until_ns)))
    }

    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        self.taken = self.in_flight.borrow_mut().pop();
        if let Some(answer) = &self.taken {
            pass_until(&self.clock, answer.due_ns);
        }
        Ok(self.taken.as_ref().map(|answer| answer.bytes.as_slice()))
    }

    fn release(&mut self) {
        self.taken = None;
    }
}

/// Lets time pass exactly: the virtual clock jumps, the real one is polled.
pub(crate) fn pass_until(clock: &Clock, at_ns: u64) {
    match clock {
        Clock::Virtual(_) => clock.sleep_until(at_ns),
        Clock::Monotonic | Clock::Shifted(_) => {
            while clock.now() < at_ns {
                std::hint::spin_loop();
            }
        }
    }
}

/// How often pong, which receives no end of the stream, checks whether to stop.
const STOP_CHECK_NS: u64 = 5_000_000;

/// Pong's subscriber: nothing ever arrives, and waiting costs nothing.
pub struct Silence;

impl Subscriber for Silence {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        Clock::Monotonic.sleep_until(until_ns.min(Clock::Monotonic.now() + STOP_CHECK_NS));
        Ok(Some(false))
    }

    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        Ok(None)
    }
}

/// Pong's publisher: without messages there are no answers.
pub struct Mute;

impl Publisher for Mute {
    fn publish(&mut self, _message: &[u8]) -> Result<(), Error> {
        Err(Error::new("the synthetic pong does not answer"))
    }
}
