//! Publisher and subscriber over a [`Lane`]; a [`Wake`] and its [`Wait`] define how the reader
//! notices a message.
//!
//! Happens-before: the writer fills the slot, then passes its turn (release); the reader sees the
//! turn (acquire), then reads. On the way back, the reader reads, counts the message as released,
//! and sends that count with its next message in the other lane (release). The writer takes that
//! message (acquire) and only then writes the slot again. A writer that knows of no free slot drops
//! its message, like any full queue; in a round trip that takes four overdue answers.

use std::cell::Cell;
use std::rc::Rc;
use std::sync::atomic::Ordering;

use myelin_bench_kit::{Error, Publisher, Subscriber};

use crate::handover::Turn;
use crate::peer::Peer;
use crate::segment::Lane;

/// The writer's half of a mechanism.
pub trait Wake {
    /// Whether a writer that waits for a free slot spins; otherwise it naps.
    const SPINS: bool = false;

    /// Passes message `count` and ensures that the reader notices it.
    fn pass(&mut self, turn: &Turn, count: u32) -> Result<(), Error>;
}

/// The reader's half of a mechanism.
pub trait Wait {
    /// Waits for message `count`; false if the clock reads `until_ns` first.
    fn wait(&mut self, turn: &Turn, count: u32, until_ns: u64) -> Result<bool, Error>;
}

/// The progress of this side's two lanes. The lanes of one side belong to one thread.
#[derive(Default)]
pub struct SlotCounters {
    /// Count of the last incoming message that this side has released.
    pub(crate) released: Cell<u32>,
    /// Count of the last outgoing message that the other side has reported as released.
    pub(crate) acknowledged: Cell<u32>,
}

/// Writes messages into a lane.
pub struct SlotPublisher<W> {
    lane: Lane,
    wake: W,
    counters: Rc<SlotCounters>,
    /// Count of the last message passed.
    count: u32,
}

impl<W: Wake> SlotPublisher<W> {
    /// Writes into `lane`; this side's subscriber shares `counters`.
    pub fn new(lane: Lane, wake: W, counters: &Rc<SlotCounters>) -> Self {
        SlotPublisher { lane, wake, counters: Rc::clone(counters), count: 0 }
    }
}

impl<W: Wake> Publisher for SlotPublisher<W> {
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        let bytes = message.len();
        if !self.lane.takes(bytes) {
            let most = self.lane.message_bytes();
            return Err(Error::new(format!("message of {bytes} B in slots of {most} B")));
        }
        if self.is_full() {
            return Ok(()); // every slot may still be read: this message is lost
        }
        let count = self.count.wrapping_add(1);
        // SAFETY: both sides are at least `bytes` long. The reader has released the slot's last
        // message, `count - slots`, which happened before we took its answer; it reads the slot
        // again only after the turn is passed. `message` may lie in the other lane, never in this
        // one.
        unsafe {
            let slot = self.lane.message(count);
            std::ptr::copy_nonoverlapping(message.as_ptr(), slot, bytes);
        }
        let header = self.lane.header(count);
        // ORDER: Relaxed, published by the release that passes the turn.
        header.released.store(self.counters.released.get(), Ordering::Relaxed);
        if let Some(length) = self.lane.length(count) {
            // ORDER: Relaxed, as above.
            length.store(bytes as u32, Ordering::Relaxed);
        }
        self.count = count;
        self.wake.pass(&header.turn, count)
    }
}

impl<W> SlotPublisher<W> {
    /// Whether the slot of the next message may still be read, as far as this side knows.
    #[inline(always)]
    pub fn is_full(&self) -> bool {
        self.count.wrapping_add(1).wrapping_sub(self.counters.acknowledged.get())
            > self.lane.capacity()
    }
}

/// Reads messages from a lane, in place.
pub struct SlotSubscriber<W> {
    lane: Lane,
    wait: W,
    counters: Rc<SlotCounters>,
    peer: Rc<Peer>,
    /// Count of the next or the current message.
    count: u32,
    holds: bool,
}

impl<W: Wait> SlotSubscriber<W> {
    /// Reads from `lane`; this side's publisher shares `counters`.
    pub fn new(lane: Lane, wait: W, counters: &Rc<SlotCounters>, peer: &Rc<Peer>) -> Self {
        let (counters, peer) = (Rc::clone(counters), Rc::clone(peer));
        SlotSubscriber { lane, wait, counters, peer, count: 1, holds: false }
    }
}

impl<W: Wait> Subscriber for SlotSubscriber<W> {
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let turn = &self.lane.header(self.count).turn;
        let has_come = self.wait.wait(turn, self.count, until_ns)?;
        if !has_come {
            self.peer.check_alive()?;
        }
        Ok(Some(has_come))
    }

    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        let header = self.lane.header(self.count);
        if !header.turn.has_come(self.count) {
            return Ok(None);
        }
        // ORDER: Relaxed, made visible by the acquire in `has_come`. Invalid values from the other
        // side only make every slot look occupied.
        self.counters.acknowledged.set(header.released.load(Ordering::Relaxed));
        self.holds = true;
        let most = self.lane.message_bytes();
        // ORDER: Relaxed, as above. A length that is too large is cut.
        let length = self.lane.length(self.count).map(|it| it.load(Ordering::Relaxed) as usize);
        let bytes = length.unwrap_or(most).min(most);
        // SAFETY: at least `bytes` mapped and initialised bytes, written before the turn was passed.
        // The writer does not touch them until it knows of `release`, and the borrow ends before
        // that is called.
        let message = unsafe { std::slice::from_raw_parts(self.lane.message(self.count), bytes) };
        Ok(Some(message))
    }

    fn release(&mut self) {
        if !std::mem::take(&mut self.holds) {
            return;
        }
        self.counters.released.set(self.count);
        self.count = self.count.wrapping_add(1);
    }
}
