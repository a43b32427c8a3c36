//! Ping's end of a stream: for each message loan, fill, stamp, publish.
//!
//! The stamp, `publish_entry_ns`, is the clock read at the end of filling, directly before the
//! call. So a one-way time includes the publish call and everything after it. It does not include
//! loan and fill, which are timed separately.

use std::sync::Arc;

use crate::clock::{self, Clock};
use crate::driver::Publisher;
use crate::error::Error;
use crate::message::{self, HEADER_BYTES};
use crate::numbers::number;
use crate::pingpong::END_OF_STREAM;
use crate::protocol::{Prepare, Touch, Workload};
use crate::trace::Trace;
use crate::transfer::Sent;

/// A publisher and its messages.
pub(crate) struct Outgoing {
    publisher: Box<dyn Publisher>,
    content: Content,
    message_bytes: usize,
    has_loans: bool,
    /// Index of this publisher.
    index: u32,
    topics: u32,
    /// The messages of a recording; otherwise all have one size and go to each topic in turn.
    trace: Option<Arc<Trace>>,
}

enum Content {
    /// One message, with new stamps each time.
    Pattern(message::Outgoing),
    /// Memory of the size of a message, filled each time; empty if loans are filled.
    Frame(Vec<u8>),
}

impl Outgoing {
    pub(crate) fn new(
        publisher: Box<dyn Publisher>,
        prepare: &Prepare,
        trace: Option<Arc<Trace>>,
    ) -> Self {
        let payload_bytes = prepare.payload_bytes as usize;
        let (message_bytes, has_loans) = (HEADER_BYTES + payload_bytes, publisher.has_loans());
        let content = match prepare.workload {
            Workload::Image if has_loans => Content::Frame(Vec::new()),
            // Ones, because the kernel would map zeros only later.
            Workload::Image => Content::Frame(vec![1; message_bytes]),
            _ => Content::Pattern(message::Outgoing::new(payload_bytes)),
        };
        let (index, topics) = (prepare.index, prepare.topics.max(1));
        Outgoing { publisher, content, message_bytes, has_loans, index, topics, trace }
    }

    /// Publishes message `count`, counting the warm-up: as recorded, or to the next topic in turn.
    #[inline(always)]
    pub(crate) fn publish(
        &mut self,
        count: u64,
        touch: Touch,
        clock: &Clock,
    ) -> Result<Sent, Error> {
        if self.trace.is_some() {
            self.turn_to(count);
        } else if self.topics > 1 {
            self.publisher.select((count % u64::from(self.topics)) as u32);
        }
        let sequence = number(self.index, count);
        let mut sent = match self.has_loans {
            true => self.publish_loan(sequence, touch, clock)?,
            false => self.publish_own(sequence, touch, clock)?,
        };
        sent.return_ns = clock.now();
        sent.cpu = clock::cpu();
        Ok(sent)
    }

    /// Selects topic and size of message `count` of the recording.
    fn turn_to(&mut self, count: u64) {
        let recorded = self.trace.as_ref().and_then(|trace| trace.get(count));
        let (Some(recorded), Content::Pattern(pattern)) = (recorded, &mut self.content) else {
            return;
        };
        if self.topics > 1 {
            self.publisher.select(recorded.topic);
        }
        // A system may write the messages of some topics into loans, and not those of others.
        self.has_loans = self.publisher.has_loans();
        pattern.resize(recorded.bytes as usize);
        self.message_bytes = HEADER_BYTES + recorded.bytes as usize;
    }

    #[inline(always)]
    fn publish_loan(&mut self, sequence: u64, touch: Touch, clock: &Clock) -> Result<Sent, Error> {
        let before_ns = clock.now();
        let memory = self.publisher.loan(self.message_bytes)?;
        let loaned_ns = clock.now();
        match &mut self.content {
            Content::Pattern(pattern) => {
                let bytes = pattern.renew(sequence, touch);
                let filled = message::filled(bytes, touch);
                memory[..filled].copy_from_slice(&bytes[..filled]);
            }
            Content::Frame(_) => message::fill_frame(memory, sequence),
        }
        let entry_ns = clock.now();
        self.publisher.publish_loan()?;
        let (loan_ns, fill_ns) = (interval(before_ns, loaned_ns), interval(loaned_ns, entry_ns));
        Ok(Sent { entry_ns, loan_ns, fill_ns, ..Sent::default() })
    }

    #[inline(always)]
    fn publish_own(&mut self, sequence: u64, touch: Touch, clock: &Clock) -> Result<Sent, Error> {
        match &mut self.content {
            Content::Pattern(pattern) => {
                let bytes = pattern.renew(sequence, touch);
                let entry_ns = clock.now();
                self.publisher.publish(bytes)?;
                Ok(Sent { entry_ns, ..Sent::default() })
            }
            Content::Frame(frame) => {
                let before_ns = clock.now();
                message::fill_frame(frame, sequence);
                let entry_ns = clock.now();
                self.publisher.publish(frame)?;
                let fill_ns = interval(before_ns, entry_ns);
                Ok(Sent { entry_ns, fill_ns, ..Sent::default() })
            }
        }
    }

    /// Tells the receiving end that this was the last message. If it is lost, the lab's stop ends
    /// the receiving end a little later.
    pub(crate) fn end_stream(&mut self) -> Result<(), Error> {
        let header = END_OF_STREAM.to_le_bytes();
        if self.topics > 1 {
            self.publisher.select(0);
        }
        if let (Some(_), Content::Pattern(pattern)) = (&self.trace, &mut self.content) {
            // Topic 0 may not have room for a message of the last topic.
            self.has_loans = self.publisher.has_loans();
            pattern.resize(0);
            self.message_bytes = HEADER_BYTES;
        }
        if self.has_loans {
            let memory = self.publisher.loan(self.message_bytes)?;
            memory[..HEADER_BYTES].copy_from_slice(&header);
            return self.publisher.publish_loan();
        }
        match &mut self.content {
            Content::Pattern(pattern) => {
                self.publisher.publish(pattern.renew(END_OF_STREAM, Touch::Header))
            }
            Content::Frame(frame) => {
                frame[..HEADER_BYTES].copy_from_slice(&header);
                self.publisher.publish(frame)
            }
        }
    }
}

#[inline(always)]
fn interval(from_ns: u64, until_ns: u64) -> u32 {
    u32::try_from(until_ns - from_ns).unwrap_or(u32::MAX)
}
