//! Building blocks of the workloads: when to send, how to send a message, how to receive one.

use crate::clock::{self, Clock};
use crate::driver::{Publisher, Subscriber};
use crate::error::Error;
use crate::message;
use crate::protocol::Prepare;
use crate::samples::{CORRUPT, Record};

/// When to send the next message, and when to stop.
pub(crate) struct Limit {
    begin_ns: u64,
    messages: u64,
    end_ns: u64,
    period_ns: Option<f64>,
}

impl Limit {
    pub(crate) fn new(prepare: &Prepare, begin_ns: u64) -> Self {
        Limit {
            begin_ns,
            messages: if prepare.messages == 0 { u64::MAX } else { prepare.messages },
            end_ns: match prepare.duration_ns {
                0 => u64::MAX,
                duration => begin_ns + duration,
            },
            period_ns: prepare.rate_hz.map(|rate| 1e9 / rate),
        }
    }

    /// `None` at the end; otherwise waits until message `sent` is due and returns that time, if
    /// there is a schedule. A schedule that was missed is caught up with, not shifted.
    #[inline(always)]
    pub(crate) fn next(&self, sent: u64, clock: &Clock) -> Option<Option<u64>> {
        self.next_after(|| clock.now(), sent, clock)
    }

    /// Like [`Self::next`]; without a schedule, `now_ns` is the current time.
    #[inline(always)]
    pub(crate) fn next_after(
        &self,
        now_ns: impl FnOnce() -> u64,
        sent: u64,
        clock: &Clock,
    ) -> Option<Option<u64>> {
        if sent >= self.messages {
            return None;
        }
        let Some(period_ns) = self.period_ns else {
            return (now_ns() < self.end_ns).then_some(None);
        };
        let intended_ns = self.begin_ns + (sent as f64 * period_ns) as u64;
        if intended_ns >= self.end_ns {
            return None;
        }
        clock.sleep_until(intended_ns);
        Some(Some(intended_ns))
    }
}

/// The stamps of a publish call.
#[derive(Clone, Copy, Default)]
pub(crate) struct Sent {
    pub(crate) entry_ns: u64,
    pub(crate) loan_ns: u32,
    pub(crate) fill_ns: u32,
    pub(crate) return_ns: u64,
    pub(crate) cpu: u16,
}

impl Sent {
    #[inline(always)]
    pub(crate) fn record(&self, id: u64) -> Record {
        Record {
            id,
            publish_entry_ns: self.entry_ns,
            publish_return_ns: self.return_ns,
            loan_ns: self.loan_ns,
            fill_ns: self.fill_ns,
            publish_cpu: self.cpu,
            ..Record::default()
        }
    }
}

/// Publishes `message`, through a loan if the system has loans, of which the first `filled` bytes
/// are written. With `stamps` (the time before, and a clock) loan and filling are timed separately.
#[inline(always)]
pub(crate) fn send<P: Publisher + ?Sized>(
    publisher: &mut P,
    message: &[u8],
    filled: usize,
    stamps: Option<(u64, &Clock)>,
) -> Result<Sent, Error> {
    let mut sent = Sent::default();
    let Some((before_ns, clock)) = stamps.filter(|_| publisher.has_loans()) else {
        return publisher.publish_filled(message, filled).map(|()| sent);
    };
    let memory = publisher.loan(message.len())?;
    let loaned_ns = clock.now();
    memory[..filled].copy_from_slice(&message[..filled]);
    let filled_ns = clock.now();
    publisher.publish_loan()?;
    sent.loan_ns = u32::try_from(loaned_ns - before_ns).unwrap_or(u32::MAX);
    sent.fill_ns = u32::try_from(filled_ns - loaned_ns).unwrap_or(u32::MAX);
    Ok(sent)
}

/// A taken message; borrowed until it is released.
pub(crate) struct Arrival<'a> {
    pub(crate) message: &'a [u8],
    pub(crate) wake_ns: u64,
    pub(crate) return_ns: u64,
}

impl Arrival<'_> {
    #[inline(always)]
    pub(crate) fn arrived(&self, holds: bool) -> Arrived {
        Arrived {
            sequence: message::sequence(self.message).unwrap_or(u64::MAX),
            wake_ns: self.wake_ns,
            return_ns: self.return_ns,
            cpu: clock::cpu(),
            holds,
        }
    }
}

/// What remains of an arrival after its sample was released.
#[derive(Clone, Copy)]
pub(crate) struct Arrived {
    pub(crate) sequence: u64,
    wake_ns: u64,
    return_ns: u64,
    cpu: u16,
    pub(crate) holds: bool,
}

impl Arrived {
    /// Whether it was received without stamps.
    #[inline(always)]
    pub(crate) fn is_unstamped(&self) -> bool {
        self.return_ns == 0
    }

    #[inline(always)]
    pub(crate) fn complete(&self, record: &mut Record) {
        record.wake_ns = self.wake_ns;
        record.take_return_ns = self.return_ns;
        record.take_cpu = self.cpu;
        record.flags |= if self.holds { 0 } else { CORRUPT };
    }
}

/// Which clock reads to make when receiving a message. Each also prevents the processor from
/// running ahead.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stamps {
    /// After the wait and after the take.
    All,
    /// After the take.
    Return,
    None,
}

/// The next message, or `None` if none arrived until `until_ns`. A stamp that was not taken is 0.
#[inline(always)]
pub(crate) fn receive<'a, S: Subscriber + ?Sized>(
    subscriber: &'a mut S,
    clock: &Clock,
    until_ns: u64,
    stamps: Stamps,
) -> Result<Option<Arrival<'a>>, Error> {
    // The loop ends with the borrow of the sample, which the borrow checker cannot track through a
    // returned reference; hence the pointer.
    let subscriber: *mut S = subscriber;
    loop {
        // SAFETY: `subscriber` comes from a unique borrow that lives for 'a. No sample of it is
        // held when the loop repeats, as the only path that holds one returns.
        let subscriber = unsafe { &mut *subscriber };
        let wake_ns = match subscriber.wait(until_ns)? {
            Some(true) if stamps == Stamps::All => clock.now(),
            None | Some(true) => 0,
            Some(false) => return Ok(None),
        };
        if let Some(message) = subscriber.take(until_ns)? {
            let return_ns = if stamps == Stamps::None { 0 } else { clock.now() };
            return Ok(Some(Arrival { message, wake_ns, return_ns }));
        }
        if clock.now() >= until_ns {
            return Ok(None);
        }
    }
}
