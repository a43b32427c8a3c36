//! Slots for streams. Streams have no answers that could carry the reader's released count. So the
//! count is in the first slot of the returning lane, which carries no messages, and the writer
//! reads it if it knows of no free slot. Without a free slot a best-effort writer drops its
//! message: the newest is lost. A reliable one checks again, without pause or after a nap, until
//! there is a free slot.
//!
//! Happens-before: the reader reads, then stores the count it has released (release); the writer
//! loads the count (acquire) and only then writes the slot again. The rest is as in `slots`.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use myelin_bench_kit::{Clock, Error, Publisher, Subscriber};

use crate::limit::Patience;
use crate::peer::Peer;
use crate::segment::Lane;
use crate::slots::{SlotCounters, SlotPublisher, SlotSubscriber, Wait, Wake};

/// Writes messages into a lane.
pub struct OneWayPublisher<W> {
    publisher: SlotPublisher<W>,
    counters: Rc<SlotCounters>,
    back: Lane,
    peer: Rc<Peer>,
    /// How long to wait for a slow reader; `None` to drop messages instead.
    patience_ns: Option<u64>,
}

impl<W: Wake> OneWayPublisher<W> {
    /// Writes into `lane`; reads the reader's count from `back`. With `patience_ns` a message waits
    /// at most this long for a free slot.
    pub fn new(lane: Lane, back: Lane, wake: W, peer: &Rc<Peer>, patience_ns: Option<u64>) -> Self {
        let counters = Rc::new(SlotCounters::default());
        let publisher = SlotPublisher::new(lane, wake, &counters);
        OneWayPublisher { publisher, counters, back, peer: Rc::clone(peer), patience_ns }
    }

    /// Whether, by the reader's count, there is no free slot.
    #[inline]
    fn is_full(&self) -> bool {
        // ORDER: acquire pairs with the release in `release`: the reader has read. Invalid values
        // only make every slot look occupied.
        let released = self.back.header(0).released.load(Ordering::Acquire);
        self.counters.acknowledged.set(released);
        self.publisher.is_full()
    }

    fn await_slot(&self, patience_ns: u64) -> Result<(), Error> {
        let mut patience = Patience::new(patience_ns);
        while self.is_full() {
            if patience.has_run_out() {
                return Err(self.peer.stuck());
            }
            self.peer.check_alive()?;
            for _ in 0..LOOKS {
                if !self.is_full() {
                    return Ok(());
                }
                std::hint::spin_loop();
            }
            if !W::SPINS {
                Clock::Monotonic.sleep_until(Clock::Monotonic.now() + NAP_NS);
            }
        }
        Ok(())
    }
}

impl<W: Wake> Publisher for OneWayPublisher<W> {
    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        if self.publisher.is_full()
            && self.is_full()
            && let Some(patience_ns) = self.patience_ns
        {
            self.await_slot(patience_ns)?;
        }
        self.publisher.publish(message)
    }
}

/// Reads messages from a lane, in place.
pub struct OneWaySubscriber<W> {
    subscriber: SlotSubscriber<W>,
    counters: Rc<SlotCounters>,
    back: Lane,
}

impl<W: Wait> OneWaySubscriber<W> {
    /// Reads from `lane`; stores its released count in `back`.
    pub fn new(lane: Lane, back: Lane, wait: W, peer: &Rc<Peer>) -> Self {
        let counters = Rc::new(SlotCounters::default());
        OneWaySubscriber {
            subscriber: SlotSubscriber::new(lane, wait, &counters, peer),
            counters,
            back,
        }
    }
}

impl<W: Wait> Subscriber for OneWaySubscriber<W> {
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        self.subscriber.wait(until_ns)
    }

    #[inline]
    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error> {
        self.subscriber.take(until_ns)
    }

    #[inline]
    fn release(&mut self) {
        self.subscriber.release();
        // ORDER: release pairs with the acquire in `publish`: reading comes before.
        self.back.header(0).released.store(self.counters.released.get(), Ordering::Release);
    }
}

/// Checks of a waiting writer between two reads of the clock.
const LOOKS: u32 = 1024;
/// Pause between the checks of a writer that does not spin.
const NAP_NS: u64 = 50_000;
