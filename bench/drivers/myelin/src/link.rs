//! One direction's ends.

use std::time::Duration;

use myelin_bench_kit::{Error, Publisher, Subscriber};
use myelin_shm::data_plane::publication::RawLoan;
use myelin_shm::data_plane::subscription::{Reader, Taken};
use myelin_shm::node::{self, Node};
use myelin_shm::topic::{PublisherQos, SubscriberQos, Topic};
use myelin_shm::waiting::wait::Wait;

/// Publishes from loans, or by copy.
pub struct LoanPublisher {
    publisher: node::Publisher,
    loans: bool,
    loan: Option<RawLoan>,
}

impl LoanPublisher {
    /// A publisher of `topic`, not yet matched.
    pub fn open(node: &Node, topic: Topic, loans: bool) -> Result<Self, Error> {
        LoanPublisher::with(node, topic, PublisherQos::default(), loans)
    }

    /// The same with a quality of service of its own.
    pub fn with(node: &Node, topic: Topic, qos: PublisherQos, loans: bool) -> Result<Self, Error> {
        let publisher = node.publisher(topic, qos).map_err(said)?;
        Ok(LoanPublisher { publisher, loans, loan: None })
    }

    /// Makes memory for `count` messages of `bytes` bytes.
    pub fn reserve(&mut self, count: u32, bytes: usize) -> Result<(), Error> {
        self.publisher.writer.reserve(count, bytes as u64).map_err(said)
    }

    /// Whether `count` subscribers were there in time.
    pub fn wait_for_match(&self, count: usize, limit: Duration) -> bool {
        self.publisher.wait_for_match(count, limit)
    }
}

impl Publisher for LoanPublisher {
    fn has_loans(&self) -> bool {
        self.loans
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        let loan = self.publisher.writer.loan(len as u64).map_err(said)?;
        // SAFETY: the writer is a field of ours, and lives as long as the borrow of `self`.
        Ok(unsafe { self.loan.insert(loan).bytes_mut() })
    }

    #[inline]
    fn publish_loan(&mut self) -> Result<(), Error> {
        let loan = self.loan.take().ok_or_else(|| Error::new("nothing is loaned"))?;
        self.publisher.writer.publish(loan).map(drop).map_err(said)
    }

    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.publisher.writer.publish_copy(message).map(drop).map_err(said)
    }
}

/// Takes samples one at a time.
pub struct Taker {
    subscriber: node::Subscriber,
    wait: Wait,
    taken: Taken,
    holds: bool,
}

impl Taker {
    /// A subscriber of `topic`, not yet matched.
    pub fn open(node: &Node, topic: Topic, wait: Wait) -> Result<Self, Error> {
        Taker::with(node, topic, SubscriberQos::default(), wait)
    }

    /// The same with a quality of service of its own.
    pub fn with(node: &Node, topic: Topic, qos: SubscriberQos, wait: Wait) -> Result<Self, Error> {
        let subscriber = node.subscriber(topic, qos).map_err(said)?;
        Ok(Taker { subscriber, wait, taken: Taken::empty(), holds: false })
    }

    /// Whether `count` publishers were there in time.
    pub fn wait_for_match(&self, count: usize, limit: Duration) -> bool {
        self.subscriber.wait_for_match(count, limit)
    }

    /// For a wait set.
    pub fn reader(&self) -> &Reader {
        &self.subscriber.reader
    }

    /// Takes the next sample, if there is one, and holds it.
    #[inline]
    pub fn take_and_hold(&mut self) -> Result<bool, Error> {
        self.holds = self.subscriber.reader.take_into(&mut self.taken).map_err(said)?;
        Ok(self.holds)
    }

    /// The sample it holds.
    #[inline]
    pub fn held(&self) -> Option<&[u8]> {
        self.holds.then(|| self.taken.bytes())
    }
}

impl Subscriber for Taker {
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        self.subscriber.reader.wait(self.wait, until_ns).map(Some).map_err(said)
    }

    #[inline]
    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        self.take_and_hold()?;
        Ok(self.held())
    }

    #[inline]
    fn release(&mut self) {
        self.taken.release();
        self.holds = false;
    }
}

/// The wire's errors say what to do themselves.
#[cold]
pub fn said(error: myelin_shm::Error) -> Error {
    Error::new(error.to_string())
}
