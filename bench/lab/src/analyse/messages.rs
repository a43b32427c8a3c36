//! Each message of a run at both its ends, and the quantities that reports derive from it.
//!
//! ```text
//!  ping                                                   the end that takes it
//!  intended ─ lateness ─ loan ─ fill ─ stamp ─ publish ─┐
//!  │                                     │              └ wake ─ take ─ payload in hand ─ memcpy ─ copy
//!  │                                     └── service ────────────────── payload in hand
//!  └── one way ──────────────────────────────────────────────────────── payload in hand
//!
//!  parts of the latency
//!  round trip   [lateness]  loan ─ fill ─ publish ─ wake ─ take ─ publish back ─ wake back ─ take back
//!  stream        lateness ─ loan ─ fill ─ publish ─ wake ─ take
//!  image        [lateness ─ loan ─ fill]  publish ─ wake ─ take
//! ```
//! The one-way latency of a stream counts from when the message was due. So a stall counts for
//! every message that it delayed, not only for the message during which it began (the coordinated
//! omission of closed loops; Tene, "How NOT to Measure Latency", 2013). A frame is not due before
//! it is filled.
//!
//! Parts in brackets come before the latency begins. The other parts add up to the latency. Stamps
//! can overlap, as a receiver may be awake before publish returns; a part then ends where the next
//! begins. Lean messages have no parts. The clocks of two hosts agree only within an error, so a
//! receiver may seem to be awake before the message was sent. Its wake is then negative, and the
//! latency may be, too.

use std::borrow::Cow;

use myelin_bench_kit::protocol::Done;
use myelin_bench_kit::samples::{LEAN, Record};

use super::distribution::{Unsorted, add_lost};
use crate::record::RunSamples;
use crate::scenario::Kind;
use crate::summary::{Second, Stage};

/// A message and its taking by one subscriber; with several subscribers, one for each.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Message<'a> {
    /// Record of the publisher; for round trips it includes the taking of the answer.
    pub ping: &'a Record,
    /// Record of the end that took it; `None` if no subscriber did.
    pub pong: Option<&'a Record>,
    /// Whether its latency counts. If most messages have no stamps in their path, only those count.
    pub is_counted: bool,
    /// Whether it is the first of the messages that share a publish call, one for each subscriber.
    pub is_first: bool,
}

/// Which quantities the messages of a run have.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Measured {
    pub kind: Kind,
    /// Whether there is a schedule.
    pub has_rate: bool,
    /// Whether messages are written into loans, and whether filling is timed separately.
    pub has_loans: bool,
    pub has_fills: bool,
    /// Whether stamps of the two ends can be compared.
    pub crosses_ends: bool,
    /// Whether CPU numbers of the two ends belong to one machine.
    pub is_one_machine: bool,
    /// Whether only sending and taking are known, as in the trace of an application.
    pub is_imported: bool,
}

/// The messages of one run, in the order of their ids.
#[derive(Clone, Debug)]
pub(crate) struct Messages<'a> {
    pub all: Vec<Message<'a>>,
    /// Those of them whose time is divided into parts.
    pub(super) divided: Vec<Message<'a>>,
    pub measured: Measured,
}

/// The quantities of the messages of a run in ns, each without the messages that do not have it.
/// Start-ups have none: they have one figure per run.
#[derive(Clone, Debug, Default)]
pub(super) struct Quantities {
    // Of every taking of a message; a quantity of two ends has the name of its method of `Message`.
    pub latency: Vec<i64>,
    /// The latencies whose two ends were on one CPU, and those whose ends were on two.
    pub same_cpu: Vec<i64>,
    pub cross_cpu: Vec<i64>,
    pub one_way: Vec<i64>,
    pub service: Vec<i64>,
    pub read: Vec<i64>,
    pub wake: Vec<i64>,
    pub memcpy: Vec<i64>,
    pub stream_copy: Vec<i64>,
    // Of every published message; once, even if several subscribers take it.
    pub write: Vec<i64>,
    pub lateness: Vec<i64>,
    pub loan: Vec<i64>,
    pub fill: Vec<i64>,
}

/// A quantity of a message in ns; `None` where it is not measured.
type Quantity<'a> = fn(&Message<'a>, &Measured) -> Option<i64>;

/// Number of parts.
pub(super) const STAGES: usize = Stage::ALL.len();

impl<'a> Messages<'a> {
    pub(crate) fn of(samples: &'a RunSamples, measured: Measured) -> Self {
        let all = match measured.kind {
            Kind::Roundtrip => by_index(samples),
            _ => by_id(samples),
        };
        let any = |of: fn(&Record) -> u32| samples.ping.iter().any(|ping| of(ping) != 0);
        let (any_loan, any_fill) = (any(|it| it.loan_ns), any(|it| it.fill_ns));
        let [has_loans, has_fills] = match measured.kind {
            // A publish call is not timed in parts.
            Kind::Publish => [false; 2],
            // A system with loans may do without them for small messages.
            Kind::Roundtrip => [measured.has_loans && (any_loan || any_fill); 2],
            // A frame is always filled.
            _ => [any_loan, any_fill],
        };
        let measured = Measured { has_loans, has_fills, ..measured };
        let is_divided = |message: &&Message<'_>| message.divided(&measured).is_some();
        Messages { divided: all.iter().filter(is_divided).copied().collect(), all, measured }
    }

    /// All quantities, in one pass over the messages.
    pub(super) fn quantities(&self) -> Quantities {
        let (mut found, of) = (Quantities::default(), &self.measured);
        if of.kind == Kind::Startup {
            return found;
        }
        found.latency.reserve(self.all.len());
        found.write.reserve(self.all.len());
        let (is_one_way, is_image) = (of.kind.is_one_way(), of.kind == Kind::Image);
        for message in &self.all {
            if let Some(latency_ns) = message.latency(of) {
                found.latency.push(latency_ns);
                match message.is_same_cpu(of) {
                    Some(true) => found.same_cpu.push(latency_ns),
                    Some(false) => found.cross_cpu.push(latency_ns),
                    None => {}
                }
            }
            add(&mut found.one_way, message.one_way(of));
            if let Some(awaited) = message.awaited(of) {
                found.read.push(span(awaited.wake_ns, awaited.take_return_ns));
                add(&mut found.wake, message.wake(of));
            }
            if is_one_way {
                add(&mut found.service, message.service(of));
            }
            if is_image {
                add(&mut found.memcpy, message.memcpy(of));
                add(&mut found.stream_copy, message.stream_copy(of));
            }
            if message.is_first {
                add(&mut found.write, message.write(of));
                add(&mut found.lateness, message.lateness(of));
                add(&mut found.loan, message.loan(of));
                add(&mut found.fill, message.fill(of));
            }
        }
        found
    }

    /// The messages that arrived, with their latencies, including those that do not count. Empty
    /// for floods, whose latency is the depth of a queue.
    pub(super) fn ended(&self) -> impl Iterator<Item = (&Message<'a>, i64)> {
        let all = if self.measured.kind == Kind::Flood { &[] } else { self.all.as_slice() };
        all.iter().filter_map(|it| Some((it, it.whole_ns(&self.measured)?)))
    }

    /// The latencies that count, in the order of sending. Empty for floods.
    pub(super) fn in_order<'q>(&self, quantities: &'q Quantities) -> Cow<'q, [i64]> {
        if self.measured.kind == Kind::Flood {
            return Cow::default();
        }
        let begin_ns = |message: &Message<'_>| message.begin_ns(&self.measured);
        // Only several publishers number their messages in another order than they send them.
        if self.all.is_sorted_by_key(begin_ns) {
            return quantities.latency.as_slice().into();
        }
        let counted = self.ended().filter(|(message, _)| message.is_counted);
        let mut found: Vec<(u64, i64)> = counted.map(|(it, ns)| (begin_ns(it), ns)).collect();
        found.sort_by_key(|(begin_ns, _)| *begin_ns);
        found.into_iter().map(|(_, latency_ns)| latency_ns).collect()
    }

    /// For each part of [`Stage::ALL`]: `None` if it was not measured, otherwise whether it comes
    /// before the latency begins. The whole is `None` if the time is not divided. A part that is 0
    /// for all messages was not measured, unless every message passes through it.
    pub(super) fn parts(&self) -> Option<[Option<bool>; STAGES]> {
        let Measured { kind, has_rate, has_loans, has_fills, .. } = self.measured;
        if !self.measured.is_divided() {
            return None;
        }
        // Whether a message was waited for inside its take, and whether one was apart from it: at
        // pong, and at ping for its answer.
        let (mut there, mut back) = ([false; 2], [false; 2]);
        for message in &self.divided {
            if let Some(pong) = message.pong {
                there[usize::from(waits_apart(pong))] |= is_stamped(pong);
            }
            if is_taken(message.ping) {
                back[usize::from(waits_apart(message.ping))] |= is_stamped(message.ping);
            }
        }
        let any = |stage: Stage| {
            let mut parts = self.divided.iter().filter_map(|it| it.parts(&self.measured));
            parts.any(|parts| parts[stage as usize] > 0)
        };
        Some(Stage::ALL.map(|stage| {
            let is_measured = match stage {
                Stage::Lateness => has_rate,
                Stage::Loan => has_loans && any(stage),
                Stage::Fill => has_fills && any(stage),
                Stage::Publish => true,
                Stage::Wake | Stage::Take => there[1],
                Stage::WakeAndTake => there[0],
                Stage::PublishBack => kind == Kind::Roundtrip,
                Stage::WakeBack | Stage::TakeBack => back[1],
                Stage::WakeAndTakeBack => back[0],
            };
            let is_before = match kind {
                Kind::Image => stage <= Stage::Fill,
                Kind::Stream | Kind::Replay => !has_rate && stage <= Stage::Fill,
                _ => stage == Stage::Lateness,
            };
            is_measured.then_some(is_before)
        }))
    }

    /// One row for each second of a run of round trips, as RoundtripPing prints them; none if all
    /// are of one second.
    pub(super) fn seconds(&self, record_every: u64) -> Vec<Second> {
        let Some(first) = self.all.first() else { return Vec::new() };
        let begin_ns = first.ping.publish_entry_ns;
        let second = |it: &&Message<'_>| (it.ping.publish_entry_ns - begin_ns) / 1_000_000_000;
        let answered = || self.all.iter().filter(|it| is_taken(it.ping));
        if answered().next().map(|it| second(&it)) == answered().next_back().map(|it| second(&it)) {
            return Vec::new();
        }
        let answered: Vec<&Message<'a>> = answered().collect();
        let row = |rows: &[&Message<'a>]| {
            let of = |quantity: Quantity<'a>| {
                let found = rows.iter().filter_map(|it| quantity(it, &self.measured));
                Unsorted::of([found.collect::<Vec<i64>>()].iter()).distribution()
            };
            Some(Second {
                second: second(&rows[0]) as u32 + 1,
                count: rows.len() as u64 * record_every,
                round_trip_us: of(Message::latency)?,
                write_us: of(Message::write)?,
                read_us: of(Message::read),
            })
        };
        answered.chunk_by(|a, b| second(a) == second(b)).filter_map(row).collect()
    }
}

impl Quantities {
    /// Adds those of the lost messages to each latency. A publish call ends without its message
    /// being taken, and a flood is measured by what it loses.
    pub(super) fn add_lost(&mut self, kind: Kind, counts: &Done) {
        let lost = match kind {
            Kind::Roundtrip | Kind::Stream | Kind::Image | Kind::Replay => counts.lost,
            Kind::Publish | Kind::Flood | Kind::Startup => 0,
        };
        let Quantities { latency, same_cpu, cross_cpu, one_way, service, .. } = self;
        for latencies in [latency, same_cpu, cross_cpu, one_way, service] {
            add_lost(latencies, lost, counts.received);
        }
    }
}

impl Measured {
    /// For two ends on one machine; `has_loans` says whether the system offers loans.
    pub(crate) fn new(kind: Kind, has_rate: bool, has_loans: bool) -> Self {
        let (crosses_ends, is_one_machine, is_imported) = (true, true, false);
        let has_fills = has_loans;
        Measured { kind, has_rate, has_loans, has_fills, crosses_ends, is_one_machine, is_imported }
    }

    fn knows_cpus(&self) -> bool {
        self.is_one_machine && !self.is_imported
    }

    /// Whether latencies count from when the message was due.
    fn is_from_due(&self) -> bool {
        self.has_rate && matches!(self.kind, Kind::Stream | Kind::Replay | Kind::Flood)
    }

    /// Whether the time of a message is divided into parts.
    fn is_divided(&self) -> bool {
        let is_of =
            matches!(self.kind, Kind::Roundtrip | Kind::Stream | Kind::Image | Kind::Replay);
        self.crosses_ends && !self.is_imported && is_of
    }
}

impl<'a> Message<'a> {
    /// When the message began, on the clock of the run.
    pub(super) fn begin_ns(&self, of: &Measured) -> u64 {
        if of.is_from_due() { self.ping.intended_ns } else { self.ping.publish_entry_ns }
    }

    /// When its latency ends; `None` if it did not arrive.
    pub(super) fn end_ns(&self, of: &Measured) -> Option<u64> {
        match of.kind {
            Kind::Roundtrip => Some(self.ping.take_return_ns).filter(|_| is_taken(self.ping)),
            Kind::Publish => Some(self.ping.publish_return_ns),
            Kind::Startup => None,
            _ => Some(self.pong?.take_return_ns).filter(|_| of.crosses_ends),
        }
    }

    pub(super) fn whole_ns(&self, of: &Measured) -> Option<i64> {
        Some(span(self.begin_ns(of), self.end_ns(of)?))
    }

    /// The latency that percentiles describe: round trip, publish call, or one way.
    pub(crate) fn latency(&self, of: &Measured) -> Option<i64> {
        self.whole_ns(of).filter(|_| self.is_counted)
    }

    /// From the stamp, or from when the message was due, until its payload is in hand.
    pub(crate) fn one_way(&self, of: &Measured) -> Option<i64> {
        let is_known = of.crosses_ends && (of.kind != Kind::Roundtrip || is_taken(self.ping));
        let pong = self.pong.filter(|pong| is_known && is_stamped(pong))?;
        Some(span(self.begin_ns(of), pong.take_return_ns))
    }

    /// Like [`Message::one_way`], but always from the stamp.
    pub(crate) fn service(&self, of: &Measured) -> Option<i64> {
        let is_apart = of.crosses_ends && of.kind.is_one_way() && !of.is_imported;
        let pong = self.pong.filter(|_| is_apart)?;
        Some(span(self.ping.publish_entry_ns, pong.take_return_ns))
    }

    /// Duration of the publish call.
    pub(crate) fn write(&self, of: &Measured) -> Option<i64> {
        let call_ns = span(self.ping.publish_entry_ns, self.ping.publish_return_ns);
        Some(call_ns).filter(|_| self.is_counted && !of.is_imported)
    }

    /// The record of the end that waited for the message, or for the answer of a round trip.
    fn awaited(&self, of: &Measured) -> Option<&'a Record> {
        let ended = match of.kind {
            Kind::Roundtrip => Some(self.ping).filter(|ping| is_taken(ping)),
            _ => self.pong,
        };
        ended.filter(|record| waits_apart(record))
    }

    /// Duration of the take, without the wait.
    pub(crate) fn read(&self, of: &Measured) -> Option<i64> {
        let awaited = self.awaited(of)?;
        Some(span(awaited.wake_ns, awaited.take_return_ns))
    }

    /// From the end of publish until the wait returns; negative if the wait returned earlier.
    pub(crate) fn wake(&self, of: &Measured) -> Option<i64> {
        let awaited = self.awaited(of).filter(|_| of.crosses_ends)?;
        let published = if of.kind == Kind::Roundtrip { self.pong? } else { self.ping };
        Some(span(published.publish_return_ns, awaited.wake_ns))
    }

    /// Delay behind the schedule. Stamps of one-way messages come after loan and fill, which do not
    /// count as lateness.
    pub(crate) fn lateness(&self, of: &Measured) -> Option<i64> {
        let Record { loan_ns, fill_ns, .. } = *self.ping;
        let before_ns = if of.kind.is_one_way() { loan_ns as i64 + fill_ns as i64 } else { 0 };
        let late_ns = span(self.ping.intended_ns, self.ping.publish_entry_ns) - before_ns;
        of.has_rate.then_some(late_ns)
    }

    /// Duration of getting a loan.
    pub(crate) fn loan(&self, of: &Measured) -> Option<i64> {
        (of.has_loans && is_stamped(self.ping)).then_some(self.ping.loan_ns.into())
    }

    /// Duration of filling the loan.
    pub(crate) fn fill(&self, of: &Measured) -> Option<i64> {
        (of.has_fills && is_stamped(self.ping)).then_some(self.ping.fill_ns.into())
    }

    /// Duration of the taker's `memcpy` of a frame.
    pub(crate) fn memcpy(&self, of: &Measured) -> Option<i64> {
        let taken = self.pong.filter(|_| of.kind == Kind::Image)?.as_taken();
        Some(taken.memcpy_ns.into())
    }

    /// Duration of the taker's copy of a frame with streaming stores.
    pub(crate) fn stream_copy(&self, of: &Measured) -> Option<i64> {
        let taken = self.pong.filter(|_| of.kind == Kind::Image)?.as_taken();
        Some(taken.stream_copy_ns.into())
    }

    /// Whether its two ends ran on one CPU.
    fn is_same_cpu(&self, of: &Measured) -> Option<bool> {
        let pong = self.pong.filter(|_| of.knows_cpus() && of.kind != Kind::Publish)?;
        let cpu =
            if of.kind == Kind::Roundtrip { self.ping.take_cpu } else { self.ping.publish_cpu };
        Some(cpu == pong.take_cpu)
    }

    /// CPUs on which publish returned, on which the message was taken and, for a round trip, on
    /// which the answer was taken.
    pub(super) fn cpus(&self, of: &Measured) -> Vec<u16> {
        if of.is_imported {
            return Vec::new();
        }
        let answer = (of.kind == Kind::Roundtrip).then_some(self.ping.take_cpu);
        let taken = self.pong.map(|pong| pong.take_cpu);
        [Some(self.ping.publish_cpu), taken, answer].into_iter().flatten().collect()
    }

    /// The record of the end that took it, if the time of the message is divided into parts.
    fn divided(&self, of: &Measured) -> Option<&'a Record> {
        let is_whole = |pong: &&Record| is_taken(self.ping) && is_stamped(pong);
        match of.kind {
            Kind::Roundtrip if !is_stamped(self.ping) => None,
            Kind::Roundtrip => self.pong.filter(is_whole).filter(|_| of.is_divided()),
            _ => self.pong.filter(|_| of.is_divided()),
        }
    }

    /// Its parts, in the order of [`Stage::ALL`]; `None` if stamps are missing.
    pub(super) fn parts(&self, of: &Measured) -> Option<[i64; STAGES]> {
        let (ping, pong) = (self.ping, self.divided(of)?);
        if of.kind != Kind::Roundtrip {
            return Some(self.one_way_parts(of, pong));
        }
        let mut path = NetworkPath::new(ping.publish_entry_ns);
        path.before(Stage::Lateness, ping.intended_ns, ping.publish_entry_ns);
        if of.has_loans {
            let loaned_ns = ping.publish_entry_ns + u64::from(ping.loan_ns);
            path.until(Stage::Loan, loaned_ns);
            path.until(Stage::Fill, loaned_ns + u64::from(ping.fill_ns));
        }
        path.travel(ping.publish_return_ns, pong, [Stage::Publish, Stage::Wake, Stage::Take]);
        let back = [Stage::PublishBack, Stage::WakeBack, Stage::TakeBack];
        path.travel(pong.publish_return_ns, ping, back);
        Some(path.parts)
    }

    fn one_way_parts(&self, of: &Measured, pong: &Record) -> [i64; STAGES] {
        let ping = self.ping;
        let stamp_ns = ping.publish_entry_ns;
        let filling_ns = stamp_ns.saturating_sub(u64::from(ping.fill_ns));
        let loaning_ns = filling_ns.saturating_sub(u64::from(ping.loan_ns));
        let mut path = NetworkPath::new(self.begin_ns(of));
        if of.is_from_due() {
            path.until(Stage::Lateness, loaning_ns);
            path.until(Stage::Loan, filling_ns);
            path.until(Stage::Fill, stamp_ns);
        } else {
            path.before(Stage::Lateness, ping.intended_ns, loaning_ns);
            path.before(Stage::Loan, loaning_ns, filling_ns);
            path.before(Stage::Fill, filling_ns, stamp_ns);
        }
        path.travel(ping.publish_return_ns, pong, [Stage::Publish, Stage::Wake, Stage::Take]);
        path.parts
    }
}

/// Joins round trips: record i of both ends is of the same message.
fn by_index(samples: &RunSamples) -> Vec<Message<'_>> {
    let any_lean = samples.ping.iter().any(|ping| !is_stamped(ping));
    let pong = samples.pong.iter().map(Some).chain(std::iter::repeat(None));
    let message = |(ping, pong)| Message {
        ping,
        pong: Option::filter(pong, |pong| is_taken(pong)),
        is_counted: !(any_lean && is_stamped(ping)),
        is_first: true,
    };
    samples.ping.iter().zip(pong).map(message).collect()
}

/// Joins one-way messages by id; either end may lack records that the other has. Messages that were
/// taken without having been sent are dropped; no valid run has any.
fn by_id(samples: &RunSamples) -> Vec<Message<'_>> {
    let mut taken: Vec<&Record> = samples.pong.iter().filter(|pong| is_taken(pong)).collect();
    taken.sort_by_key(|pong| pong.id);
    let mut all = Vec::with_capacity(taken.len().max(samples.ping.len()));
    let mut rest = taken.as_slice();
    for ping in &samples.ping {
        let before = rest.partition_point(|pong| pong.id < ping.id);
        let own = rest[before..].partition_point(|pong| pong.id == ping.id);
        let (pongs, later) = rest[before..].split_at(own);
        let message = |pong, is_first| Message { ping, pong, is_counted: true, is_first };
        all.push(message(pongs.first().copied(), true));
        all.extend(pongs.iter().skip(1).map(|pong| message(Some(pong), false)));
        rest = later;
    }
    all
}

/// Whether the record is of a message that arrived.
pub(super) fn is_taken(record: &Record) -> bool {
    record.take_return_ns != 0
}

/// Whether this end stamped the parts of the message.
pub(crate) fn is_stamped(record: &Record) -> bool {
    record.flags & LEAN == 0
}

/// Whether the system's wait returns before its take.
fn waits_apart(record: &Record) -> bool {
    record.wake_ns != 0
}

/// Divides the time between two stamps.
struct NetworkPath {
    at_ns: u64,
    parts: [i64; STAGES],
}

impl NetworkPath {
    fn new(begin_ns: u64) -> Self {
        NetworkPath { at_ns: begin_ns, parts: [0; STAGES] }
    }

    fn before(&mut self, stage: Stage, from_ns: u64, until_ns: u64) {
        self.parts[stage as usize] = span(from_ns, until_ns).max(0);
    }

    /// Adds a part between stamps of one clock, which may overlap.
    fn until(&mut self, stage: Stage, until_ns: u64) {
        self.across(stage, until_ns.max(self.at_ns));
    }

    /// Adds a part between stamps of two clocks; nothing is cut off.
    fn across(&mut self, stage: Stage, until_ns: u64) {
        self.parts[stage as usize] = span(self.at_ns, until_ns);
        self.at_ns = until_ns;
    }

    /// Adds publish call, wake and take of one direction.
    fn travel(&mut self, published_ns: u64, taken: &Record, [publish, wake, take]: [Stage; 3]) {
        let awake_ns = if waits_apart(taken) { taken.wake_ns } else { taken.take_return_ns };
        self.until(publish, published_ns.min(awake_ns));
        if waits_apart(taken) {
            self.across(wake, awake_ns);
            self.across(take, taken.take_return_ns);
        } else if take == Stage::Take {
            self.across(Stage::WakeAndTake, taken.take_return_ns);
        } else {
            self.across(Stage::WakeAndTakeBack, taken.take_return_ns);
        }
    }
}

/// Like `Vec::extend`, which takes an iterator and three times as long.
#[inline]
fn add(column: &mut Vec<i64>, value: Option<i64>) {
    if let Some(value) = value {
        column.push(value);
    }
}

fn span(from_ns: u64, until_ns: u64) -> i64 {
    until_ns as i64 - from_ns as i64
}

#[cfg(test)]
mod tests;
