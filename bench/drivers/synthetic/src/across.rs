//! Across hosts: messages really travel, over TCP, and the receiving end adds the injected delays,
//! in real time.
//!
//! A round trip lasts until its delay has passed since it was published, or slightly longer if the
//! actual round trip took longer. A message of a stream is held for its delay after it arrived, and
//! its fate is decided then; its one-way time is the delay plus the actual way. Pong's host has the
//! clock of `clock_offset_us` and `clock_drift_ppm`, so the result of comparing the two clocks can
//! be checked against the truth.

use std::cell::Cell;
use std::collections::{BTreeMap, VecDeque};
use std::net::TcpStream;
use std::rc::Rc;

use myelin_bench_kit::pingpong::END_OF_STREAM;
use myelin_bench_kit::protocol::{Network, Prepare, Role, Workload};
use myelin_bench_kit::{Clock, Error, Link, Publisher, RoundTrip, Stream, Subscriber, message};

use crate::delay::Timing;
use crate::options::Options;
use crate::route::{Delivery, Route};
use crate::simulate::{corrupt, pass_until};
use crate::wire::{self, Inbox};

/// Checks that the options and the run are valid across hosts.
pub fn check(options: &Options, prepare: &Prepare) -> Result<(), Error> {
    let faults = [
        (options.lose_every, "lose_every"),
        (options.reorder_every, "reorder_every"),
        (options.duplicate_every, "duplicate_every"),
        (options.corrupt_every, "corrupt_every"),
    ];
    let fault = faults.iter().find(|(every, _)| *every > 0);
    if let (Workload::Roundtrip, Some((_, key))) = (prepare.workload, fault) {
        let text = format!("{key}: it is not simulated for round trips across hosts");
        return Err(Error::new(text).remedy("use a stream, or topology two-processes").key(*key));
    }
    if prepare.workload == Workload::Publish {
        let text = "publish runs are not simulated across hosts";
        return Err(Error::new(text).remedy("use topology two-processes"));
    }
    if prepare.subscribers > 1 {
        let text =
            format!("subscribers: {}, but across hosts only one is simulated", prepare.subscribers);
        return Err(Error::new(text).remedy("subscribers = 1"));
    }
    Ok(())
}

/// Opens one role of a round trip.
pub fn open(
    options: Options,
    prepare: &Prepare,
    network: &Network,
) -> Result<Box<dyn RoundTrip>, Error> {
    let clock = options.clock_across(prepare)?;
    let stream = wire::meet(prepare, network)?;
    let inbox = inbox(&stream, prepare)?;
    if prepare.role != Role::Ping {
        let publisher = Box::new(Answers { stream });
        let subscriber = Box::new(Held::new(inbox, clock.clone(), 0, Hold::Not));
        return Ok(Box::new(Link { publisher, subscriber, clock }));
    }
    let due = Rc::new(Cell::new((END_OF_STREAM, 0)));
    let hold = Hold::Until(Rc::clone(&due));
    let subscriber = Box::new(Held::new(inbox, clock.clone(), options.read_ns, hold));
    let (timing, call_ns) = (Timing::new(&options, prepare), options.write_ns);
    let sender = Sender { stream, clock: clock.clone(), timing, due, call_ns };
    Ok(Box::new(Link { publisher: Box::new(sender), subscriber, clock }))
}

/// Opens one role of a stream.
pub fn open_stream(
    options: &Options,
    prepare: &Prepare,
    network: &Network,
) -> Result<Stream, Error> {
    let clock = options.clock_across(prepare)?;
    let stream = wire::meet(prepare, network)?;
    if prepare.role == Role::Ping {
        let sender = Sender {
            stream,
            clock: clock.clone(),
            timing: Timing::new(options, prepare),
            due: Rc::default(),
            call_ns: options.call_ns(prepare),
        };
        return Ok(Stream { clock, ..Stream::publisher(Box::new(sender)) });
    }
    let hold = Hold::Routed(Box::new(Route::new(options, prepare, None)));
    let held = Held::new(inbox(&stream, prepare)?, clock.clone(), options.read_ns, hold);
    Ok(Stream { clock, ..Stream::subscriber(Box::new(held)) })
}

fn inbox(stream: &TcpStream, prepare: &Prepare) -> Result<Inbox, Error> {
    let message_bytes = message::HEADER_BYTES as u64 + prepare.payload_bytes;
    Ok(Inbox::new(stream.try_clone()?, message_bytes))
}

/// Ping's end: sends, and takes the injected time.
struct Sender {
    stream: TcpStream,
    clock: Clock,
    timing: Timing,
    /// For round trips: the last sent message, and when its answer may be taken.
    due: Rc<Cell<(u64, u64)>>,
    call_ns: u64,
}

impl Publisher for Sender {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let entry_ns = self.clock.now();
        let sequence = message::sequence(message).ok_or_else(|| Error::new("no sequence"))?;
        self.due.set((sequence, entry_ns + self.timing.delay_ns(sequence)));
        wire::send(&self.stream, message)?;
        pass_until(&self.clock, entry_ns + self.call_ns);
        Ok(())
    }
}

/// Pong's publisher of a round trip.
struct Answers {
    stream: TcpStream,
}

impl Publisher for Answers {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        wire::send(&self.stream, message)
    }
}

/// When an arrived message may be taken.
enum Hold {
    /// At once.
    Not,
    /// The answer to this message at that time; others at once.
    Until(Rc<Cell<(u64, u64)>>),
    /// After its delay, unless it is lost.
    Routed(Box<Route>),
}

/// Takes arrived messages when they are due.
struct Held {
    inbox: Inbox,
    clock: Clock,
    read_ns: u64,
    hold: Hold,
    /// In the order of delivery.
    arriving: VecDeque<Delivery>,
    /// Arrived messages by number, as long as they may still be delivered.
    bodies: BTreeMap<u64, Vec<u8>>,
    taken: Vec<u8>,
}

impl Held {
    fn new(inbox: Inbox, clock: Clock, read_ns: u64, hold: Hold) -> Self {
        let (arriving, bodies) = Default::default();
        Held { inbox, clock, read_ns, hold, arriving, bodies, taken: Vec::new() }
    }

    fn hear(&mut self, bytes: Vec<u8>) {
        let now_ns = self.clock.now();
        let sequence = message::sequence(&bytes).unwrap_or(0);
        let at = |due_ns| Delivery { sequence, due_ns, damaged: false };
        match &mut self.hold {
            Hold::Not => self.arriving.push_back(at(now_ns)),
            Hold::Until(due) => {
                let (awaited, due_ns) = due.get();
                let due_ns = if awaited == sequence { due_ns.max(now_ns) } else { now_ns };
                self.arriving.push_back(at(due_ns));
            }
            Hold::Routed(route) if sequence == END_OF_STREAM => {
                route.end(&mut self.arriving);
                self.arriving.push_back(at(now_ns));
            }
            Hold::Routed(route) => route.send(sequence, now_ns, &mut self.arriving),
        }
        self.bodies.insert(sequence, bytes);
    }
}

impl Subscriber for Held {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        loop {
            let due_ns = self.arriving.front().map(|next| next.due_ns - self.read_ns);
            let now_ns = self.clock.now();
            if let Some(due_ns) = due_ns.filter(|due_ns| *due_ns <= now_ns + SPIN_NS) {
                pass_until(&self.clock, due_ns);
                return Ok(Some(true));
            }
            if now_ns >= until_ns {
                return Ok(Some(false));
            }
            // The delay of a message that arrives meanwhile counts from its arrival.
            let awake_ns = due_ns.map_or(until_ns, |due_ns| until_ns.min(due_ns - SPIN_NS));
            if let Some(bytes) = self.inbox.next(&self.clock, awake_ns)? {
                self.hear(bytes);
            }
        }
    }

    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let Some(delivery) = self.arriving.pop_front() else {
            return Ok(None);
        };
        let body = self.bodies.get(&delivery.sequence);
        self.taken.clone_from(body.ok_or_else(|| Error::new("delivered, but never received"))?);
        // A duplicate may be delivered right after it. Older messages are dropped, including lost
        // ones.
        let before = delivery.sequence.saturating_sub(BODIES_MAX);
        self.bodies = self.bodies.split_off(&before);
        if delivery.damaged {
            corrupt(&mut self.taken);
        }
        pass_until(&self.clock, delivery.due_ns);
        Ok(Some(&self.taken))
    }
}

/// The last part of a wait is spun, because a sleep ends late.
const SPIN_NS: u64 = 100_000;
/// A message is reordered by fewer places.
const BODIES_MAX: u64 = 16;
