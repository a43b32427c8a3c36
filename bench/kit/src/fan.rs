//! The measuring loop of a publish run: ping publishes without answers, pong polls all subscribers
//! in turn and takes everything they receive.
//!
//! Between the two stamps of a record there is only the publish call, including loan and fill if
//! the system has loans. These are not timed separately, so the bench adds just one clock read,
//! half of it at each end (see `docs/explanation/measurement.md`). Pong counts and records nothing.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::clock::{self, Clock};
use crate::driver::{Fan, Publisher, Subscriber};
use crate::error::Error;
use crate::message::{self, Outgoing};
use crate::process;
use crate::protocol::{Done, Prepare, Touch};
use crate::samples::SampleFile;
use crate::transfer::{Limit, Sent, send};

/// Publishes `prepare.messages` messages (or for `prepare.duration_ns`) from `start_ns` on, and
/// records each call. Ends early if `stop` is set or the sample file is full.
pub fn ping(
    fan: &mut Fan,
    prepare: &Prepare,
    samples: &mut SampleFile,
    start_ns: u64,
    stop: &AtomicBool,
) -> Result<Done, Error> {
    let clock = fan.clock.clone();
    let publisher = fan.publisher.as_deref_mut();
    let publisher = publisher.ok_or_else(|| Error::new("this driver opened no publisher"))?;
    let mut outgoing = Outgoing::new(prepare.payload_bytes as usize);
    clock.sleep_until(start_ns);
    // ORDER: Relaxed, the flag carries nothing else; the same in the loops below.
    for sequence in 0..prepare.warmup_messages {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        publish(publisher, &mut outgoing, sequence, Touch::Stamps, &clock)?;
        samples.beat(sequence + 1);
    }
    let cpu_before_ns = process::cpu_ns();
    let mut done = Done { begin_ns: clock.now(), ..Done::default() };
    let limit = Limit::new(prepare, done.begin_ns);
    let mut written = 0;
    while !stop.load(Ordering::Relaxed) && written < samples.capacity() {
        let Some(intended_ns) = limit.next(done.sent, &clock) else {
            break;
        };
        let sequence = prepare.warmup_messages + done.sent;
        let sent = publish(publisher, &mut outgoing, sequence, prepare.touch, &clock)?;
        let id = done.sent;
        done.sent += 1;
        samples.beat(prepare.warmup_messages + done.sent);
        if id.is_multiple_of(prepare.record_every)
            && let Some(place) = samples.record(written)
        {
            *place = sent.record(id);
            place.intended_ns = intended_ns.unwrap_or(sent.entry_ns);
            written += 1;
            samples.finish(written);
        }
    }
    done.end_ns = clock.now();
    done.cpu_ns = Some(process::cpu_ns() - cpu_before_ns);
    Ok(done)
}

/// Takes messages until `stop` is set and no more arrive. Missing messages are not an error.
/// [`SILENT`] of the counts is the number of subscribers that never took anything.
pub fn pong(fan: &mut Fan, prepare: &Prepare, stop: &AtomicBool) -> Result<Done, Error> {
    let (found, asked) = (fan.subscribers.len(), prepare.subscribers as usize);
    if found != asked {
        return Err(Error::new(format!("this driver opened {found} subscribers, not {asked}")));
    }
    let clock = fan.clock.clone();
    let mut subscribers = Subscribers::new(fan, prepare);
    subscribers.done.begin_ns = clock.now();
    // ORDER: Relaxed, the flag carries nothing else.
    while !stop.load(Ordering::Relaxed) {
        if asked == 0 {
            std::thread::park_timeout(STOP_CHECK);
        } else if !subscribers.take_from_each()? {
            std::hint::spin_loop();
        }
    }
    subscribers.drain(&clock)?;
    let mut done = subscribers.done;
    done.end_ns = clock.now();
    done.cpu_ns = done.cpu_ns.map(|before| process::cpu_ns() - before);
    let silent = subscribers.next.iter().filter(|next| **next == 0).count();
    done.more.insert(SILENT.into(), silent as u64);
    Ok(done)
}

/// One publish call between its two stamps.
#[inline(always)]
fn publish(
    publisher: &mut dyn Publisher,
    outgoing: &mut Outgoing,
    sequence: u64,
    touch: Touch,
    clock: &Clock,
) -> Result<Sent, Error> {
    let bytes = outgoing.renew(sequence, touch);
    let filled = message::filled(bytes, touch);
    let entry_ns = clock.now();
    let mut sent = send(publisher, bytes, filled, None)?;
    sent.return_ns = clock.now();
    sent.entry_ns = entry_ns;
    sent.cpu = clock::cpu();
    Ok(sent)
}

/// All subscribers of a run.
struct Subscribers<'a> {
    subscribers: &'a mut [Box<dyn Subscriber>],
    /// For each subscriber, the highest sequence number taken plus one; 0 if there is none.
    next: Vec<u64>,
    expected: Expected,
    done: Done,
}

impl<'a> Subscribers<'a> {
    fn new(fan: &'a mut Fan, prepare: &'a Prepare) -> Self {
        let next = vec![0; fan.subscribers.len()];
        let expected = Expected::of(prepare);
        Subscribers { subscribers: &mut fan.subscribers, next, expected, done: Done::default() }
    }

    /// Takes one message from each subscriber that has one; returns whether any had.
    #[inline(always)]
    fn take_from_each(&mut self) -> Result<bool, Error> {
        let mut any = false;
        for (subscriber, next) in self.subscribers.iter_mut().zip(&mut self.next) {
            if let Some(message) = subscriber.take(0)? {
                note(&mut self.done, &self.expected, message, next);
                subscriber.release();
                any = true;
            }
        }
        Ok(any)
    }

    /// The last messages may still be on their way.
    fn drain(&mut self, clock: &Clock) -> Result<(), Error> {
        let (mut quiet_since_ns, end_ns) = (clock.now(), clock.now() + DRAIN_NS_MAX);
        while clock.now() < end_ns && clock.now() < quiet_since_ns + QUIET_NS {
            if self.take_from_each()? {
                quiet_since_ns = clock.now();
            } else {
                clock.sleep_until(clock.now() + QUIET_NS / 10);
            }
        }
        Ok(())
    }
}

/// The expected properties of messages.
#[derive(Clone, Copy)]
pub(crate) struct Expected {
    warmup_messages: u64,
    payload_bytes: usize,
    touch: Touch,
}

impl Expected {
    pub(crate) fn of(prepare: &Prepare) -> Self {
        Expected {
            warmup_messages: prepare.warmup_messages,
            payload_bytes: prepare.payload_bytes as usize,
            touch: prepare.touch,
        }
    }
}

/// Accounts for a message of one subscriber, whose next expected sequence number is `next`.
#[inline(always)]
pub(crate) fn note(done: &mut Done, expected: &Expected, message: &[u8], next: &mut u64) {
    let payload_bytes = expected.payload_bytes;
    let Some(sequence) = message::sequence(message).filter(|number| *number < u64::MAX) else {
        done.corrupt += 1;
        return;
    };
    let newest = sequence >= *next;
    let again = sequence + 1 == *next;
    *next = (*next).max(sequence + 1);
    if sequence < expected.warmup_messages {
        done.corrupt += u64::from(!message::pattern_holds(message, payload_bytes));
        return;
    }
    if done.cpu_ns.is_none() {
        done.cpu_ns = Some(process::cpu_ns());
    }
    done.corrupt += u64::from(!message::holds(message, payload_bytes, expected.touch));
    done.duplicates += u64::from(again);
    done.received += u64::from(!again);
    done.out_of_order += u64::from(!newest && !again);
}

/// In pong's `more`: subscribers that took nothing at all, not even in the warm-up.
pub const SILENT: &str = "silent_subscribers";
/// If nothing arrives for this long, pong has everything.
pub(crate) const QUIET_NS: u64 = 2_000_000;
/// How long pong continues to take at most after it was stopped.
const DRAIN_NS_MAX: u64 = 1_000_000_000;
/// How often a pong without subscribers checks whether to stop.
const STOP_CHECK: Duration = Duration::from_millis(100);
