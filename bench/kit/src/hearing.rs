//! The books of a stream's receiving end: what is done with each message once it has been taken,
//! and what is recorded of it.
//!
//! The only thing that happens before the copies of an image run is that the clock has been read;
//! checking and recording follow, outside every interval that is timed.

use crate::clock::{self, Clock};
use crate::copies::Copies;
use crate::message;
use crate::pingpong::GOODBYE;
use crate::process;
use crate::protocol::{Done, Prepare, Touch, Workload};
use crate::samples::{CORRUPT, OUT_OF_ORDER, Record, SampleFile};
use crate::seen::{Came, Seen};

/// What a message meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Heard {
    /// One of the run.
    Message,
    /// It was the last thing ping publishes.
    Goodbye,
}

/// See the module.
pub(crate) struct Hearing {
    clock: Clock,
    samples: SampleFile,
    /// Of image runs.
    copies: Option<Copies>,
    seen: Seen,
    done: Done,
    written: usize,
    /// Whether the CPU time from the first measured message on is counted here.
    counts_cpu: bool,
    warmup_messages: u64,
    payload_bytes: usize,
    record_every: u64,
    touch: Touch,
}

impl Hearing {
    pub(crate) fn new(prepare: &Prepare, samples: SampleFile, clock: Clock) -> Self {
        let message_bytes = message::HEADER_BYTES + prepare.payload_bytes as usize;
        let is_image = prepare.workload == Workload::Image;
        Hearing {
            done: Done { begin_ns: clock.now(), ..Done::default() },
            clock,
            samples,
            copies: is_image.then(|| Copies::new(message_bytes)),
            seen: Seen::new(),
            written: 0,
            counts_cpu: prepare.pong_samples.is_none(),
            warmup_messages: prepare.warmup_messages,
            payload_bytes: prepare.payload_bytes as usize,
            record_every: prepare.record_every,
            touch: prepare.touch,
        }
    }

    /// Books a message that was taken, or that the system calls with, at `return_ns`.
    #[inline(always)]
    pub(crate) fn hear(&mut self, message: &[u8], wake_ns: u64, return_ns: u64) -> Heard {
        let cpu = clock::cpu();
        let sequence = message::sequence(message).unwrap_or(u64::MAX - 1);
        if sequence == GOODBYE {
            return Heard::Goodbye;
        }
        let copied_ns = match &mut self.copies {
            Some(copies) => copies.time(message, &self.clock),
            None => (0, 0),
        };
        let Some(id) = sequence.checked_sub(self.warmup_messages) else {
            self.warm_up(message, sequence);
            return Heard::Message;
        };
        let holds = message::holds(message, self.payload_bytes, self.touch);
        let came = self.count(sequence, holds);
        let record = Record {
            id,
            wake_ns,
            take_return_ns: return_ns,
            loan_ns: copied_ns.0,
            fill_ns: copied_ns.1,
            take_cpu: cpu,
            flags: if holds { 0 } else { CORRUPT }
                | if came == Came::Late { OUT_OF_ORDER } else { 0 },
            ..Record::default()
        };
        self.keep(record, came);
        Heard::Message
    }

    #[cold]
    fn warm_up(&mut self, message: &[u8], sequence: u64) {
        let holds = match self.copies {
            Some(_) => message::frame_holds(message, self.payload_bytes),
            None => message::pattern_holds(message, self.payload_bytes),
        };
        self.done.corrupt += u64::from(!holds);
        self.seen.note(sequence);
    }

    #[inline(always)]
    fn count(&mut self, sequence: u64, holds: bool) -> Came {
        if self.done.cpu_ns.is_none() && self.counts_cpu {
            self.done.cpu_ns = Some(process::cpu_ns());
        }
        self.done.corrupt += u64::from(!holds);
        // The number of a damaged message may be damaged: it must not make others seem late.
        let is_likely = sequence - self.seen.next().min(sequence) < GAP_MAX;
        let came = if holds || is_likely { self.seen.note(sequence) } else { Came::Newest };
        self.done.received += u64::from(came != Came::Again);
        self.done.duplicates += u64::from(came == Came::Again);
        self.done.out_of_order += u64::from(came == Came::Late);
        came
    }

    #[inline(always)]
    fn keep(&mut self, record: Record, came: Came) {
        // A division is more than all the rest costs.
        let index = match self.record_every {
            1 => record.id,
            every if record.id.is_multiple_of(every) => record.id / every,
            _ => return,
        } as usize;
        let Some(place) = self.samples.record(index) else {
            return;
        };
        if came == Came::Again {
            place.duplicates = place.duplicates.saturating_add(1);
            return;
        }
        *place = record;
        self.written = self.written.max(index + 1);
        self.samples.finish(self.written);
    }

    /// Closes the books.
    pub(crate) fn close(mut self) -> Done {
        let begun = self.seen.next().saturating_sub(self.warmup_messages);
        self.done.lost = begun.saturating_sub(self.done.received);
        self.done.end_ns = self.clock.now();
        self.done.cpu_ns = self.done.cpu_ns.map(|before| process::cpu_ns() - before);
        self.done
    }
}

/// More messages than this are never lost in a row, as far as damaged ones are concerned.
const GAP_MAX: u64 = 1 << 20;
