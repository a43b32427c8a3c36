//! The accounting of a stream's receiving end: checks, counts and records each taken message.
//!
//! Before the copies of an image run only the clock is read. Checking and recording come after
//! them, outside of every timed interval.

use std::sync::Arc;

use crate::clock::{self, Clock};
use crate::copies::Copies;
use crate::message;
use crate::numbers::{self, PROBES};
use crate::pingpong::END_OF_STREAM;
use crate::process;
use crate::protocol::{Done, Prepare, Touch, Workload};
use crate::samples::{CORRUPT, OUT_OF_ORDER, Record, SampleFile, Taken};
use crate::sequence_window::{Came, SequenceWindow};
use crate::trace::Trace;

/// The meaning of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Accounted {
    /// A message of the run.
    Message,
    /// The last message of the last ping that was still publishing.
    EndOfStream,
}

/// The accounting of one receiving end; see the module.
pub(crate) struct Accounting {
    clock: Clock,
    samples: SampleFile,
    /// Only for image runs.
    copies: Option<Copies>,
    lanes: Lanes,
    done: Done,
    written: usize,
    /// All taken messages: of the warm-up, measured ones, and those of a flood's search.
    taken: u64,
    /// Number of pings that have not sent their last message.
    publishing: u32,
    /// Whether the CPU time from the first measured message on is counted here.
    counts_cpu: bool,
    warmup_messages: u64,
    payload_bytes: usize,
    /// The messages of a recording, which have their own sizes.
    trace: Option<Arc<Trace>>,
    /// Bytes of the warm-up that are still to be compared in full.
    whole_bytes: usize,
    record_every: u64,
    /// Records that the sample file has room for, for each publisher.
    places: usize,
    touch: Touch,
}

impl Accounting {
    pub(crate) fn new(
        prepare: &Prepare,
        trace: Option<Arc<Trace>>,
        samples: SampleFile,
        clock: Clock,
    ) -> Self {
        let message_bytes = message::HEADER_BYTES + prepare.payload_bytes as usize;
        let is_image = prepare.workload == Workload::Image;
        Accounting {
            done: Done { begin_ns: clock.now(), ..Done::default() },
            clock,
            places: samples.room() / prepare.publishers.max(1) as usize,
            samples,
            copies: is_image.then(|| Copies::new(message_bytes)),
            lanes: Lanes::new(prepare, trace.clone()),
            written: 0,
            taken: 0,
            publishing: prepare.publishers.max(1),
            counts_cpu: prepare.pong_samples.is_none(),
            warmup_messages: prepare.warmup_messages,
            payload_bytes: prepare.payload_bytes as usize,
            trace,
            whole_bytes: WHOLE_BYTES,
            record_every: prepare.record_every,
            touch: prepare.touch,
        }
    }

    /// Accounts for a message that was taken, or with which the system called, at `return_ns`.
    #[inline(always)]
    pub(crate) fn account(&mut self, message: &[u8], wake_ns: u64, return_ns: u64) -> Accounted {
        let cpu = clock::cpu();
        let number = message::sequence(message).unwrap_or(u64::MAX - 1);
        if number == END_OF_STREAM {
            self.publishing = self.publishing.saturating_sub(1);
            return if self.publishing == 0 { Accounted::EndOfStream } else { Accounted::Message };
        }
        let copied_ns = match &mut self.copies {
            Some(copies) => copies.time(message, &self.clock),
            None => (0, 0),
        };
        self.taken += 1;
        self.samples.beat(self.taken);
        let (publisher, count) = numbers::split(number);
        let Some(count) = count.checked_sub(self.warmup_messages) else {
            self.warm_up(message, number);
            return Accounted::Message;
        };
        if count >= PROBES {
            self.probe();
            return Accounted::Message;
        }
        let payload_bytes = self.payload_bytes_of(number);
        let holds = message::holds(message, payload_bytes, self.touch);
        let came = self.count(number, holds);
        let record = Taken {
            id: number - self.warmup_messages,
            wake_ns,
            take_return_ns: return_ns,
            memcpy_ns: copied_ns.0,
            stream_copy_ns: copied_ns.1,
            take_cpu: cpu,
            flags: if holds { 0 } else { CORRUPT }
                | if came == Came::Late { OUT_OF_ORDER } else { 0 },
            ..Taken::default()
        };
        self.keep(record.into(), publisher, count, came);
        Accounted::Message
    }

    /// Bytes that the payload of message `number` should have.
    #[inline(always)]
    fn payload_bytes_of(&self, number: u64) -> usize {
        match &self.trace {
            None => self.payload_bytes,
            // No message has as many as one that was never sent.
            Some(trace) => trace.get(number).map_or(usize::MAX >> 1, |sent| sent.bytes as usize),
        }
    }

    /// Compares the first messages in full, and only the stamps of the others. Otherwise a
    /// subscriber that compares more slowly than messages arrive would begin the measured part with
    /// a backlog.
    #[cold]
    fn warm_up(&mut self, message: &[u8], number: u64) {
        let payload_bytes = self.payload_bytes_of(number);
        let holds = match self.copies {
            _ if self.whole_bytes == 0 => message::stamps_hold(message, payload_bytes),
            Some(_) => message::frame_holds(message, payload_bytes),
            None => message::pattern_holds(message, payload_bytes),
        };
        self.whole_bytes = self.whole_bytes.saturating_sub(message.len());
        self.done.corrupt += u64::from(!holds);
        self.lanes.note(number, holds);
    }

    /// The measured part of a flood is over once its search begins.
    fn probe(&mut self) {
        if self.done.end_ns == 0 {
            self.end();
        }
    }

    #[inline(always)]
    fn count(&mut self, number: u64, holds: bool) -> Came {
        if self.done.cpu_ns.is_none() && self.counts_cpu {
            self.done.cpu_ns = Some(process::cpu_ns());
        }
        self.done.corrupt += u64::from(!holds);
        let came = self.lanes.note(number, holds);
        self.done.received += u64::from(came != Came::Again);
        self.done.duplicates += u64::from(came == Came::Again);
        self.done.out_of_order += u64::from(came == Came::Late);
        came
    }

    #[inline(always)]
    fn keep(&mut self, record: Record, publisher: usize, count: u64, came: Came) {
        // A division would cost more than everything else here.
        let place = match self.record_every {
            1 => count,
            every if count.is_multiple_of(every) => count / every,
            _ => return,
        } as usize;
        if place >= self.places {
            return;
        }
        // A damaged number may name a publisher that does not exist.
        let index = publisher.wrapping_mul(self.places).wrapping_add(place);
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

    fn end(&mut self) {
        self.done.end_ns = self.clock.now();
        self.done.cpu_ns = self.done.cpu_ns.map(|before| process::cpu_ns() - before);
    }

    /// Ends the accounting and returns the counts.
    pub(crate) fn close(mut self) -> Done {
        let begun = self.lanes.begun(self.warmup_messages);
        self.done.lost = begun.saturating_sub(self.done.received);
        if self.done.end_ns == 0 {
            self.end();
        }
        self.done
    }
}

/// Bytes of the warm-up that a receiving end compares in full, in addition to the first message:
/// some 10 ms.
const WHOLE_BYTES: usize = 16 << 20;

/// Which messages have arrived, by publisher and topic: order exists only within a topic of a
/// publisher.
struct Lanes {
    lanes: Vec<SequenceWindow>,
    publishers: usize,
    topics: u64,
    /// The topics of a recording's messages; otherwise they go to each in turn.
    trace: Option<Arc<Trace>>,
}

impl Lanes {
    fn new(prepare: &Prepare, trace: Option<Arc<Trace>>) -> Self {
        let publishers = prepare.publishers.max(1) as usize;
        let topics = prepare.topics.max(1) as usize;
        let lanes = (0..publishers * topics).map(|_| SequenceWindow::new()).collect();
        Lanes { lanes, publishers, topics: topics as u64, trace }
    }

    /// `holds` says whether the message is undamaged.
    #[inline(always)]
    fn note(&mut self, number: u64, holds: bool) -> Came {
        let (publisher, count) = numbers::split(number);
        if publisher >= self.publishers {
            return Came::Newest;
        }
        let (lane, place) = match self.topics {
            _ if self.trace.is_some() => match self.recorded(count) {
                Some(found) => found,
                None => return Came::Newest,
            },
            1 => (publisher, count),
            topics => (publisher * topics as usize + (count % topics) as usize, count / topics),
        };
        let window = &mut self.lanes[lane];
        // The number of a damaged message may be damaged, too; it must not make others seem late.
        let is_likely = place - window.next().min(place) < GAP_MAX;
        if holds || is_likely { window.note(place) } else { Came::Newest }
    }

    /// The lane of message `count` of a recording, and its place there.
    fn recorded(&self, count: u64) -> Option<(usize, u64)> {
        let message = self.trace.as_ref()?.get(count)?;
        Some((message.topic as usize, message.place.into()))
    }

    /// The number of messages up to the highest of each lane, without those of the warm-up.
    fn begun(&self, warmup_messages: u64) -> u64 {
        if let Some(trace) = &self.trace {
            let begun: u64 = self.lanes.iter().map(SequenceWindow::next).sum();
            let reached = |topic: u32| self.lanes[topic as usize].next() > 0;
            let warm = trace.warm_up().iter().filter(|message| reached(message.topic));
            return begun.saturating_sub(warm.count() as u64);
        }
        let begun = |(lane, window): (usize, &SequenceWindow)| {
            let topic = lane as u64 % self.topics;
            let warm_ups = warmup_messages.saturating_sub(topic).div_ceil(self.topics);
            window.next().saturating_sub(warm_ups)
        };
        self.lanes.iter().enumerate().map(begun).sum()
    }
}

/// Number of messages in a row that are never lost; a damaged message with a larger gap is not
/// trusted.
const GAP_MAX: u64 = 1 << 20;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::numbers::number;

    fn lanes(publishers: usize, topics: u64) -> Lanes {
        let lanes = (0..publishers * topics as usize).map(|_| SequenceWindow::new()).collect();
        Lanes { lanes, publishers, topics, trace: None }
    }

    #[test]
    fn order_is_checked_per_topic_and_publisher() {
        let mut lanes = lanes(2, 3);
        for (publisher, count, came) in [
            (0, 4, Came::Newest),
            (0, 2, Came::Newest),
            (1, 1, Came::Newest),
            (0, 1, Came::Late),
            (0, 4, Came::Again),
            (1, 4, Came::Newest),
            (1, 1, Came::Again),
        ] {
            assert_eq!(lanes.note(number(publisher, count), true), came, "{publisher} {count}");
        }
        assert_eq!(lanes.note(number(7, 0), true), Came::Newest, "there is no such publisher");
    }

    #[test]
    fn counts_exclude_the_warm_up() {
        for (topics, warm_ups) in [(1, 0), (1, 5), (3, 0), (3, 5), (7, 2)] {
            let mut lanes = lanes(2, topics);
            for count in 0..20 {
                lanes.note(number(0, count), true);
                lanes.note(number(1, count), true);
            }
            assert_eq!(lanes.begun(warm_ups), 2 * (20 - warm_ups), "{topics} {warm_ups}");
        }
    }
}
