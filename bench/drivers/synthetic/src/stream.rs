//! Streams on the virtual clock: publishing takes the injected time. In two processes pong knows
//! the schedule and its start; it computes when each message was sent and takes it when it is due.
//! In one process the publisher calls the receivers at that time, on the real clock as well. A
//! stall blocks the publisher, as in a middleware that blocks, and so delays the following
//! messages.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use myelin_bench_kit::due::DueTimes;
use myelin_bench_kit::pingpong::END_OF_STREAM;
use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_bench_kit::trace::Trace;
use myelin_bench_kit::{CallSlots, Clock, Error, Publisher, Stream, Subscriber, clock, message};

use crate::fan::Speaker;
use crate::options::{Options, Time};
use crate::route::{Delivery, Forge, Route};
use crate::simulate::pass_until;

/// Checks that the options are valid for a stream between two processes.
pub fn check(options: &Options) -> Result<(), Error> {
    match options.clock {
        Time::Virtual => Ok(()),
        Time::Real => Err(Error::new("clock: streams are simulated only on the virtual clock")
            .remedy("clock = \"virtual\"")
            .key("clock")),
    }
}

/// Opens one role of a stream between two processes.
pub fn open(options: &Options, prepare: &Prepare) -> Result<Stream, Error> {
    let clock = Clock::virtual_at(clock::monotonic_ns());
    Ok(match prepare.role {
        Role::Ping => {
            let publisher = Speaker::new(options, prepare, clock.clone());
            Stream { clock, ..Stream::publisher(Box::new(publisher)) }
        }
        _ => {
            let trace = Trace::of(prepare)?;
            let listener = Listener::new(options, prepare, trace, clock.clone());
            Stream { clock, ..Stream::subscriber(Box::new(listener)) }
        }
    })
}

/// Opens both ends of a system that calls, for any workload it has.
pub fn open_calls(options: &Options, prepare: &Prepare) -> Stream {
    let clock = options.clock();
    let (slots, receivers) = CallSlots::new(prepare.subscribers);
    let caller = Caller {
        clock: clock.clone(),
        route: Route::new(options, prepare, None),
        forge: Forge::new(prepare, None),
        call_ns: options.call_ns(prepare),
        arriving: VecDeque::new(),
        slots,
    };
    Stream { clock, ..Stream::one_process(Box::new(caller), receivers) }
}

/// Takes the messages that it knows were published.
struct Listener {
    clock: Clock,
    due: Option<DueTimes>,
    /// When the schedule began; known once the run has begun.
    origin_ns: Option<u64>,
    /// When the publish call of the previous message returned.
    free_ns: u64,
    call_ns: u64,
    read_ns: u64,
    sequence: u64,
    route: Route,
    forge: Forge,
    arriving: VecDeque<Delivery>,
}

impl Listener {
    fn new(options: &Options, prepare: &Prepare, trace: Option<Arc<Trace>>, clock: Clock) -> Self {
        Listener {
            clock,
            due: DueTimes::new(prepare, trace.clone()),
            origin_ns: None,
            free_ns: 0,
            call_ns: options.call_ns(prepare),
            read_ns: options.read_ns,
            sequence: 0,
            route: Route::new(options, prepare, trace.clone()),
            forge: Forge::new(prepare, trace),
            arriving: VecDeque::new(),
        }
    }

    fn next(&mut self) -> Option<Delivery> {
        let origin_ns = *self.origin_ns.get_or_insert_with(|| self.clock.now());
        while self.arriving.is_empty() {
            match self.due.as_mut()?.next() {
                Some(offset_ns) => {
                    let entry_ns = self.free_ns.max(origin_ns + offset_ns);
                    let stall_ns = self.route.stall_ns(self.sequence);
                    self.free_ns = entry_ns + self.call_ns + stall_ns;
                    self.route.send(self.sequence, entry_ns, &mut self.arriving);
                    self.sequence += 1;
                }
                None => {
                    self.route.end(&mut self.arriving);
                    self.arriving.push_back(end_of_stream(self.free_ns));
                    self.due = None;
                }
            }
        }
        self.arriving.front().copied()
    }
}

impl Subscriber for Listener {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let Some(next) = self.next() else {
            // After all messages; the real clock must advance, too, for the stop to arrive.
            std::thread::sleep(NAP);
            self.clock.sleep_until(until_ns);
            return Ok(Some(false));
        };
        let in_time = next.due_ns <= until_ns;
        self.clock.sleep_until(until_ns.min(next.due_ns.saturating_sub(self.read_ns)));
        Ok(Some(in_time))
    }

    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let Some(delivery) = self.arriving.pop_front() else {
            return Ok(None);
        };
        self.clock.sleep_until(delivery.due_ns);
        Ok(Some(self.forge.make(delivery)))
    }
}

/// Publishes by calling the receivers.
struct Caller {
    clock: Clock,
    route: Route,
    forge: Forge,
    call_ns: u64,
    arriving: VecDeque<Delivery>,
    slots: CallSlots,
}

impl Publisher for Caller {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let entry_ns = self.clock.now();
        let sequence = message::sequence(message).ok_or_else(|| Error::new("no sequence"))?;
        if sequence == END_OF_STREAM {
            self.route.end(&mut self.arriving);
            self.arriving.push_back(end_of_stream(entry_ns));
        } else {
            self.route.send(sequence, entry_ns, &mut self.arriving);
        }
        while let Some(delivery) = self.arriving.pop_front() {
            pass_until(&self.clock, delivery.due_ns);
            let as_sent = delivery.sequence == sequence && !delivery.damaged;
            let arriving = if as_sent { message } else { self.forge.make(delivery) };
            self.slots.call(arriving);
        }
        let stall_ns = self.route.stall_ns(sequence);
        pass_until(&self.clock, entry_ns + self.call_ns + stall_ns);
        Ok(())
    }
}

fn end_of_stream(due_ns: u64) -> Delivery {
    Delivery { sequence: END_OF_STREAM, due_ns, damaged: false }
}

/// Pause between two checks after all messages.
const NAP: Duration = Duration::from_millis(1);
