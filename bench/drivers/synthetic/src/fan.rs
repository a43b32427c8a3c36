//! Publish runs: publishing takes the injected time. Each subscriber knows what was published and
//! takes it, except for the messages to lose.

use myelin_bench_kit::message::Outgoing;
use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_bench_kit::{Clock, Error, Fan, Publisher, Subscriber, message};

use crate::delay::Timing;
use crate::fate::Fate;
use crate::options::Options;
use crate::simulate::pass_until;

/// Checks that the options are valid for a publish run.
pub fn check(options: &Options, prepare: &Prepare) -> Result<(), Error> {
    let answered = [
        (options.reorder_every, "reorder_every"),
        (options.corrupt_every, "corrupt_every"),
        (options.stall_every, "stall_every"),
    ];
    if let Some((_, key)) = answered.iter().find(|(every, _)| *every > 0) {
        let text = format!("{key}: it is not simulated for publish runs");
        return Err(Error::new(text).remedy("use lose_every or duplicate_every").key(*key));
    }
    if options.drift_percent > 0.0 {
        let text = "drift_percent: it is not simulated for publish runs";
        return Err(Error::new(text).remedy("leave it out").key("drift_percent"));
    }
    match prepare.messages {
        0 => Err(Error::new("messages: a simulated publish run needs a number of messages")),
        _ => Ok(()),
    }
}

/// Opens one role.
pub fn open(options: &Options, prepare: &Prepare) -> Fan {
    if prepare.role == Role::Ping {
        let clock = options.clock();
        let publisher = Box::new(Speaker::new(options, prepare, clock.clone()));
        return Fan { clock, ..Fan::publisher(publisher) };
    }
    let listener = |_| -> Box<dyn Subscriber> { Box::new(Listener::new(options, prepare)) };
    Fan::subscribers((0..prepare.subscribers).map(listener).collect())
}

/// Publishes without a receiver, and takes the injected time; longer for a stalled message.
pub(crate) struct Speaker {
    clock: Clock,
    call_ns: u64,
    timing: Timing,
}

impl Speaker {
    pub(crate) fn new(options: &Options, prepare: &Prepare, clock: Clock) -> Self {
        Speaker { clock, call_ns: options.call_ns(prepare), timing: Timing::new(options, prepare) }
    }
}

impl Publisher for Speaker {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let entry_ns = self.clock.now();
        let stall_ns = message::sequence(message).map_or(0, |it| self.timing.stall_ns(it));
        pass_until(&self.clock, entry_ns + self.call_ns + stall_ns);
        Ok(())
    }
}

struct Listener {
    next: u64,
    /// Whether `next` is a duplicate, to be taken once more.
    again: bool,
    end: u64,
    outgoing: Outgoing,
    timing: Timing,
}

impl Listener {
    fn new(options: &Options, prepare: &Prepare) -> Self {
        Listener {
            next: 0,
            again: false,
            end: prepare.warmup_messages + prepare.messages,
            outgoing: Outgoing::new(prepare.payload_bytes as usize),
            timing: Timing::new(options, prepare),
        }
    }
}

impl Subscriber for Listener {
    fn wait(&mut self, _until_ns: u64) -> Result<Option<bool>, Error> {
        Ok(Some(self.next < self.end))
    }

    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        while self.next < self.end && self.timing.fate(self.next) == Fate::Lost {
            self.next += 1;
        }
        if self.next == self.end {
            return Ok(None);
        }
        let taken = self.next;
        self.again = self.timing.fate(self.next) == Fate::Duplicated && !self.again;
        self.next += u64::from(!self.again);
        Ok(Some(self.outgoing.stamp(taken)))
    }
}
