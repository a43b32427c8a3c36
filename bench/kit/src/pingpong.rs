//! The measuring loop of a round trip: ping sends, pong answers, one message in flight.
//!
//! Besides the system under test, the path of a message includes clock reads. At ping they are
//! `publish_entry` and `take_return`, and two more with a loan; at pong `take_return`. Systems with
//! separate wait and take add `wake` at both. If a hop takes less than a microsecond, all that is a
//! fifth of it. Most messages are then lean, with only the first two reads
//! ([`Prepare::parts_every`]).
//!
//! Ping checks a message while nothing is in flight; pong checks it after the answer was sent.
//! Recording happens at the same time. Without a rate, however, ping stores a record during the
//! flight of the next message.

use std::sync::atomic::{AtomicBool, Ordering};

use crate::clock::{self, Clock};
use crate::driver::{Link, Publisher, RoundTrip, Subscriber};
use crate::error::Error;
use crate::message::{self, Outgoing};
use crate::process;
use crate::protocol::{Done, Prepare, Touch};
use crate::samples::{CORRUPT, LATE, LEAN, OUT_OF_ORDER, Record, SampleFile};
use crate::transfer::{Arrival, Arrived, Limit, Sent, Stamps, receive, send};

impl<P: Publisher + ?Sized, S: Subscriber + ?Sized> RoundTrip for Link<P, S> {
    fn ping(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        start_ns: u64,
        stop: &AtomicBool,
    ) -> Result<Done, Error> {
        let mut ping = Ping::new(self, prepare, samples);
        ping.link.clock.sleep_until(start_ns);
        ping.warm_up(stop)?;
        ping.begin_measuring();
        let limit = Limit::new(prepare, ping.done.begin_ns);
        while !stop.load(Ordering::Relaxed) && !ping.is_full() {
            let Some(intended_ns) =
                limit.next_after(|| ping.now_ns, ping.done.sent, &ping.link.clock)
            else {
                break;
            };
            ping.exchange(prepare.warmup_messages + ping.done.sent, intended_ns)?;
        }
        ping.finish()
    }

    fn pong(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        stop: &AtomicBool,
    ) -> Result<Done, Error> {
        let clock = self.clock.clone();
        let mut done = Done { begin_ns: clock.now(), ..Done::default() };
        let mut expected = 0;
        // ORDER: Relaxed, the flag carries nothing else.
        while !stop.load(Ordering::Relaxed) {
            let until = clock.now() + STOP_CHECK_NS;
            let stamps = if is_lean(expected, prepare) { Stamps::None } else { Stamps::All };
            let Some(arrival) = receive(self.subscriber.as_mut(), &clock, until, stamps)? else {
                continue;
            };
            expected = message::sequence(arrival.message).unwrap_or(0).wrapping_add(1);
            let publisher = self.publisher.as_mut();
            let is_last = !answer(publisher, &arrival, &mut done, prepare, samples, &clock)?;
            self.subscriber.release();
            if is_last {
                break;
            }
        }
        done.end_ns = clock.now();
        done.cpu_ns = done.cpu_ns.map(|before| process::cpu_ns() - before);
        Ok(done)
    }
}

/// Whether the parts of message `sequence`, counting the warm-up, are not stamped.
#[inline(always)]
fn is_lean(sequence: u64, prepare: &Prepare) -> bool {
    prepare.parts_every > 1
        && !(sequence / prepare.record_every).is_multiple_of(prepare.parts_every)
}

/// Answers a message and accounts for it; `false` for [`END_OF_STREAM`], which is not answered.
#[inline(always)]
pub(crate) fn answer<P: Publisher + ?Sized>(
    publisher: &mut P,
    arrival: &Arrival<'_>,
    done: &mut Done,
    prepare: &Prepare,
    samples: &mut SampleFile,
    clock: &Clock,
) -> Result<bool, Error> {
    let sequence = message::sequence(arrival.message).unwrap_or(0);
    if sequence == END_OF_STREAM {
        return Ok(false);
    }
    if done.cpu_ns.is_none() && sequence >= prepare.warmup_messages {
        done.cpu_ns = Some(process::cpu_ns());
    }
    let filled = match sequence < prepare.warmup_messages {
        true => arrival.message.len(),
        false => message::filled(arrival.message, prepare.touch),
    };
    send(publisher, arrival.message, filled, None)?;
    let answered = Sent { return_ns: clock.now(), cpu: clock::cpu(), ..Sent::default() };
    note_answer(done, prepare, samples, arrival, answered);
    Ok(true)
}

struct Ping<'a, P: ?Sized, S: ?Sized> {
    link: &'a mut Link<P, S>,
    prepare: &'a Prepare,
    samples: &'a mut SampleFile,
    outgoing: Outgoing,
    done: Done,
    measuring: bool,
    /// Sequence numbers that exceeded their time limit and may still be answered; ascending.
    overdue: Vec<u64>,
    newest_answered: u64,
    lost_in_a_row: u32,
    written: usize,
    /// Number of exchanges, including the warm-up.
    exchanges: u64,
    /// The previous message's record, to be stored while the next one is on its way.
    unkept: Option<Record>,
    /// Whether the next message is lean; decided while this one is on its way.
    is_lean: bool,
    /// The latest stamp.
    now_ns: u64,
}

impl<'a, P: Publisher + ?Sized, S: Subscriber + ?Sized> Ping<'a, P, S> {
    fn new(link: &'a mut Link<P, S>, prepare: &'a Prepare, samples: &'a mut SampleFile) -> Self {
        Ping {
            link,
            prepare,
            samples,
            outgoing: Outgoing::new(prepare.payload_bytes as usize),
            done: Done::default(),
            measuring: false,
            overdue: Vec::with_capacity(OVERDUE_MAX),
            newest_answered: 0,
            lost_in_a_row: 0,
            written: 0,
            exchanges: 0,
            unkept: None,
            is_lean: is_lean(0, prepare),
            now_ns: 0,
        }
    }

    /// Ends after the number of messages or the time, whichever is first.
    fn warm_up(&mut self, stop: &AtomicBool) -> Result<(), Error> {
        let end_ns = match self.prepare.warmup_ns {
            0 => u64::MAX,
            warmup_ns => self.link.clock.now() + warmup_ns,
        };
        for sequence in 0..self.prepare.warmup_messages {
            // ORDER: Relaxed, the flag carries nothing else.
            if stop.load(Ordering::Relaxed) || self.now_ns >= end_ns {
                break;
            }
            self.exchange(sequence, None)?;
        }
        Ok(())
    }

    /// Resets the counts of the warm-up, except that it saw a damaged payload.
    fn begin_measuring(&mut self) {
        self.measuring = true;
        self.overdue.clear();
        self.lost_in_a_row = 0;
        self.is_lean = is_lean(self.prepare.warmup_messages, self.prepare);
        let warmed_up = (self.prepare.warmup_ns > 0).then_some(self.done.sent);
        let corrupt = self.done.corrupt;
        // The number of exchanges that observers see.
        self.exchanges = self.prepare.warmup_messages;
        let cpu_ns = Some(process::cpu_ns());
        let begin_ns = self.link.clock.now();
        self.done = Done { begin_ns, corrupt, warmed_up, cpu_ns, ..Done::default() };
    }

    fn is_full(&self) -> bool {
        self.written + usize::from(self.unkept.is_some()) >= self.samples.capacity()
    }

    /// Sends one message and waits for its answer or its loss. Answers to earlier messages that
    /// arrive meanwhile are accounted for.
    #[inline(always)]
    fn exchange(&mut self, sequence: u64, intended_ns: Option<u64>) -> Result<(), Error> {
        let payload_bytes = self.prepare.payload_bytes as usize;
        let touch = if self.measuring { self.prepare.touch } else { Touch::Stamps };
        let bytes = self.outgoing.renew(sequence, touch);
        let filled = message::filled(bytes, touch);
        let is_lean = self.is_lean;
        let entry_ns = self.link.clock.now();
        let stamps = (!is_lean).then_some((entry_ns, &self.link.clock));
        let mut sent = send(self.link.publisher.as_mut(), bytes, filled, stamps)?;
        sent.return_ns = self.link.clock.now();
        sent.cpu = clock::cpu();
        sent.entry_ns = entry_ns;
        self.done.sent += 1;
        self.keep_up();
        self.is_lean = self::is_lean(sequence + 1, self.prepare);
        let until = sent.return_ns + self.prepare.reply_timeout_ns;
        let mut record = Record {
            intended_ns: intended_ns.unwrap_or(entry_ns),
            flags: if is_lean { LEAN } else { 0 },
            ..sent.record(sequence.saturating_sub(self.prepare.warmup_messages))
        };
        let stamps = if is_lean { Stamps::Return } else { Stamps::All };
        loop {
            let clock = &self.link.clock;
            let subscriber = self.link.subscriber.as_mut();
            let Some(arrival) = receive(subscriber, clock, until, stamps)? else {
                self.overdue(sequence)?;
                self.now_ns = until;
                break;
            };
            let holds = if self.measuring {
                message::holds(arrival.message, payload_bytes, touch)
            } else {
                message::pattern_holds(arrival.message, payload_bytes)
            };
            let arrived = arrival.arrived(holds);
            self.link.subscriber.release();
            if arrived.sequence == sequence {
                arrived.complete(&mut record);
                self.answered(sequence);
                self.now_ns = record.take_return_ns;
                break;
            }
            self.account_stray(arrived, sequence);
        }
        self.done.corrupt += u64::from(record.flags & CORRUPT != 0);
        self.exchanges += 1;
        let every = self.prepare.record_every;
        if self.measuring && (every == 1 || record.id.is_multiple_of(every)) {
            self.unkept = Some(record);
        }
        if self.prepare.rate_hz.is_some() {
            self.keep_up();
        }
        Ok(())
    }

    #[inline(always)]
    fn answered(&mut self, sequence: u64) {
        self.done.received += 1;
        self.newest_answered = sequence;
        self.lost_in_a_row = 0;
    }

    #[cold]
    fn overdue(&mut self, sequence: u64) -> Result<(), Error> {
        if self.overdue.len() < OVERDUE_MAX {
            self.overdue.push(sequence);
        }
        self.lost_in_a_row += 1;
        if self.lost_in_a_row < LOST_IN_A_ROW_MAX {
            return Ok(());
        }
        let seconds = self.prepare.reply_timeout_ns as f64 * 1e-9;
        Err(Error::new(format!(
            "pong did not answer {LOST_IN_A_ROW_MAX} messages in a row, each within {seconds} s"
        ))
        .remedy("see pong's log in the results folder; reply_timeout_ms sets the limit"))
    }

    /// Accounts for an answer other than the expected one: late, duplicate, or foreign.
    #[cold]
    fn account_stray(&mut self, arrived: Arrived, current: u64) {
        let Some(id) = arrived.sequence.checked_sub(self.prepare.warmup_messages) else {
            return; // of the warm-up
        };
        if !self.measuring || arrived.sequence == END_OF_STREAM {
            return;
        }
        self.done.corrupt += u64::from(!arrived.holds);
        if arrived.sequence > current {
            self.done.corrupt += u64::from(arrived.holds);
            return;
        }
        let late = self.overdue.binary_search(&arrived.sequence);
        let out_of_order = arrived.sequence < self.newest_answered;
        if let Ok(place) = late {
            self.overdue.remove(place);
            self.done.received += 1;
            self.done.out_of_order += u64::from(out_of_order);
            self.newest_answered = self.newest_answered.max(arrived.sequence);
            self.lost_in_a_row = 0;
        } else {
            self.done.duplicates += 1;
        }
        let every = self.prepare.record_every;
        if !id.is_multiple_of(every) || (id / every) as usize >= self.written {
            return;
        }
        if let Some(record) = self.samples.record((id / every) as usize) {
            if late.is_ok() {
                arrived.complete(record);
                record.flags |= LATE | if out_of_order { OUT_OF_ORDER } else { 0 };
            } else {
                record.duplicates = record.duplicates.saturating_add(1);
            }
        }
    }

    /// Stores the pending record. Without a rate this waits until the next message is on its way.
    /// In a pause between two messages the other side would poll in vain, which moves the cache
    /// line that is written next away from this core.
    #[inline(always)]
    fn keep_up(&mut self) {
        self.samples.beat(self.exchanges);
        let Some(record) = self.unkept.take() else {
            return;
        };
        if let Some(place) = self.samples.record(self.written) {
            *place = record;
            self.written += 1;
            self.samples.finish(self.written);
        }
    }

    /// Waits for answers on their way, then returns the counts.
    fn finish(mut self) -> Result<Done, Error> {
        self.keep_up();
        self.done.end_ns = self.link.clock.now();
        self.done.cpu_ns = self.done.cpu_ns.map(|before| process::cpu_ns() - before);
        if self.overdue.is_empty() {
            self.end_stream()?;
        }
        let grace = if self.overdue.is_empty() { DRAIN_NS } else { self.prepare.reply_timeout_ns };
        let until = self.done.end_ns + grace;
        let payload_bytes = self.prepare.payload_bytes as usize;
        let last = (self.prepare.warmup_messages + self.done.sent).saturating_sub(1);
        loop {
            let (subscriber, clock) = (self.link.subscriber.as_mut(), &self.link.clock);
            let Some(arrival) = receive(subscriber, clock, until, Stamps::All)? else {
                break;
            };
            let holds = message::holds(arrival.message, payload_bytes, self.prepare.touch);
            let arrived = arrival.arrived(holds);
            self.link.subscriber.release();
            self.account_stray(arrived, last);
        }
        self.done.lost = self.done.sent - self.done.received;
        if !self.overdue.is_empty() {
            self.end_stream()?;
        }
        Ok(self.done)
    }

    /// If this message is lost, the lab's stop ends pong a little later.
    fn end_stream(&mut self) -> Result<(), Error> {
        let last = self.outgoing.stamp(END_OF_STREAM);
        send(self.link.publisher.as_mut(), last, last.len(), None).map(drop)
    }
}

/// Accounts for an answered message at pong. Runs after the answer was sent.
#[inline(always)]
fn note_answer(
    done: &mut Done,
    prepare: &Prepare,
    samples: &mut SampleFile,
    arrival: &Arrival<'_>,
    answered: Sent,
) {
    let payload_bytes = prepare.payload_bytes as usize;
    let sequence = message::sequence(arrival.message).unwrap_or(u64::MAX);
    let Some(id) = sequence.checked_sub(prepare.warmup_messages) else {
        done.corrupt += u64::from(!message::pattern_holds(arrival.message, payload_bytes));
        return;
    };
    let arrived = arrival.arrived(message::holds(arrival.message, payload_bytes, prepare.touch));
    done.received += 1;
    done.sent += 1;
    done.corrupt += u64::from(!arrived.holds);
    let index = id / prepare.record_every;
    if index >= samples.capacity() as u64 || !id.is_multiple_of(prepare.record_every) {
        return;
    }
    let index = index as usize;
    let written = samples.written().max(index + 1);
    if let Some(place) = samples.record(index) {
        if place.publish_return_ns != 0 {
            done.received -= 1;
            done.duplicates += 1;
            place.duplicates = place.duplicates.saturating_add(1);
            return;
        }
        let mut record = answered.record(id);
        arrived.complete(&mut record);
        if arrived.is_unstamped() {
            record.take_return_ns = record.publish_return_ns;
            record.flags |= LEAN;
        }
        *place = record;
    }
    samples.finish(written);
}

/// Ping gives up after this many unanswered messages in a row.
pub const LOST_IN_A_ROW_MAX: u32 = 5;
/// Number of unanswered messages to remember, in case an answer still arrives.
const OVERDUE_MAX: usize = 4_096;
/// The sequence number of ping's last message. It needs no answer.
pub const END_OF_STREAM: u64 = u64::MAX;
/// How often a pong without messages checks whether to stop; rarely, because each check wakes a
/// core that sleeps in a slow schedule.
const STOP_CHECK_NS: u64 = 1_000_000_000;
/// How long ping listens for duplicates after its last message.
const DRAIN_NS: u64 = 2_000_000;
