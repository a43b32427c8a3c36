//! The messages of a stream on their way: which are delivered, when, and in which order.

use std::collections::VecDeque;
use std::sync::Arc;

use myelin_bench_kit::message::{self, HEADER_BYTES, Outgoing};
use myelin_bench_kit::protocol::{Prepare, Workload};
use myelin_bench_kit::trace::Trace;

use crate::delay::Timing;
use crate::fate::Fate;
use crate::options::Options;
use crate::simulate::corrupt;

/// A message that is about to arrive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Its sequence number.
    pub sequence: u64,
    /// When its take returns, or the call begins.
    pub due_ns: u64,
    /// Whether it arrives damaged.
    pub damaged: bool,
}

/// The way from one end to the other.
pub struct Route {
    timing: Timing,
    /// Whether messages take time.
    has_delays: bool,
    /// The topics of a recording.
    trace: Option<Arc<Trace>>,
    /// A reordered message, until another one has overtaken it.
    held: Option<Delivery>,
}

impl Route {
    /// With the delays of the options; without delays for publish runs, which simulate only the
    /// call.
    pub fn new(options: &Options, prepare: &Prepare, trace: Option<Arc<Trace>>) -> Self {
        let has_delays = prepare.workload != Workload::Publish;
        Route { timing: Timing::new(options, prepare), has_delays, trace, held: None }
    }

    /// Sends message `sequence` at `entry_ns`; adds the resulting deliveries to `to`.
    pub fn send(&mut self, sequence: u64, entry_ns: u64, to: &mut VecDeque<Delivery>) {
        let (fate, timing) = (self.timing.fate(sequence), &self.timing);
        let delay_ns =
            if self.has_delays { timing.delay_ns(sequence) } else { timing.stall_ns(sequence) };
        let recorded = self.trace.as_ref().and_then(|trace| trace.get(sequence));
        let topic_ns = recorded.map_or(0, |message| timing.options.topic_ns(message.topic));
        let due_ns = entry_ns + delay_ns + topic_ns;
        let delivery = Delivery { sequence, due_ns, damaged: fate == Fate::Corrupted };
        match fate {
            Fate::Lost => return,
            Fate::Reordered => {
                to.extend(self.held.replace(delivery));
                return;
            }
            Fate::Duplicated => to.push_back(delivery),
            Fate::Corrupted | Fate::Whole => {}
        }
        to.push_back(delivery);
        to.extend(self.held.take().map(|held| Delivery { due_ns, ..held }));
    }

    /// How much longer the publish call of message `sequence` takes.
    pub fn stall_ns(&self, sequence: u64) -> u64 {
        self.timing.stall_ns(sequence)
    }

    /// Ends the stream after the last message.
    pub fn end(&mut self, to: &mut VecDeque<Delivery>) {
        to.extend(self.held.take());
    }
}

/// Makes a message from its known contents.
pub struct Forge {
    pattern: Option<Outgoing>,
    bytes: Vec<u8>,
    message_bytes: usize,
    /// The sizes of a recording.
    trace: Option<Arc<Trace>>,
}

impl Forge {
    /// For the messages of a run.
    pub fn new(prepare: &Prepare, trace: Option<Arc<Trace>>) -> Self {
        let payload_bytes = prepare.payload_bytes as usize;
        let pattern = prepare.workload != Workload::Image;
        let pattern = pattern.then(|| Outgoing::new(payload_bytes));
        let message_bytes = HEADER_BYTES + payload_bytes;
        Forge { pattern, bytes: vec![0; message_bytes], message_bytes, trace }
    }

    /// The message that arrives.
    pub fn make(&mut self, delivery: Delivery) -> &[u8] {
        self.bytes.truncate(self.message_bytes);
        let recorded = self.trace.as_ref().and_then(|trace| trace.get(delivery.sequence));
        match &mut self.pattern {
            Some(pattern) => {
                if let Some(recorded) = recorded {
                    pattern.resize(recorded.bytes as usize);
                }
                self.bytes.clear();
                self.bytes.extend(pattern.stamp(delivery.sequence));
            }
            None => message::fill_frame(&mut self.bytes, delivery.sequence),
        }
        if delivery.damaged {
            corrupt(&mut self.bytes);
        }
        &self.bytes
    }
}
