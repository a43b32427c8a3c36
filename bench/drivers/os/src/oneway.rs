//! Slots for streams. As nobody answers, what the reader has released cannot travel in answers: it
//! stands in the first slot of the lane that leads back, which carries no messages, and the writer
//! looks there when it knows of no free slot. A writer that finds none drops its message.
//!
//! Happens-before: the reader reads, then stores the count it has released (release); the writer
//! loads the count (acquire) and only then writes the slot again. The rest is as in `slots`.

use std::rc::Rc;
use std::sync::atomic::Ordering;

use myelin_bench_kit::{Error, Publisher, Subscriber};

use crate::peer::Peer;
use crate::segment::Lane;
use crate::slots::{Books, SlotPublisher, SlotSubscriber, Wait, Wake};

/// Writes messages into a lane.
pub struct OneWayPublisher<W> {
    publisher: SlotPublisher<W>,
    books: Rc<Books>,
    back: Lane,
}

impl<W: Wake> OneWayPublisher<W> {
    /// Writes into `lane`; the reader's count comes through `back`.
    pub fn new(lane: Lane, back: Lane, wake: W) -> Self {
        let books = Rc::new(Books::default());
        OneWayPublisher { publisher: SlotPublisher::new(lane, wake, &books), books, back }
    }
}

impl<W: Wake> Publisher for OneWayPublisher<W> {
    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        if self.publisher.is_full() {
            // ORDER: acquire pairs with the release in `release`: the reader has read. Nonsense
            // makes every slot look occupied and nothing worse.
            let released = self.back.header(0).released.load(Ordering::Acquire);
            self.books.acknowledged.set(released);
        }
        self.publisher.publish(message)
    }
}

/// Reads messages from a lane, in place.
pub struct OneWaySubscriber<W> {
    subscriber: SlotSubscriber<W>,
    books: Rc<Books>,
    back: Lane,
}

impl<W: Wait> OneWaySubscriber<W> {
    /// Reads from `lane`; says through `back` what it has released.
    pub fn new(lane: Lane, back: Lane, wait: W, peer: &Rc<Peer>) -> Self {
        let books = Rc::new(Books::default());
        OneWaySubscriber { subscriber: SlotSubscriber::new(lane, wait, &books, peer), books, back }
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
        // ORDER: release pairs with the acquire in `publish`: what was read comes before.
        self.back.header(0).released.store(self.books.released.get(), Ordering::Release);
    }
}
