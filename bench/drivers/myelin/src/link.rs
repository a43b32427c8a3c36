//! A topic's ends with the kit's interfaces, over the public API.

use std::time::Duration;

use myelin::{Loan, SampleBuffer, Wait};
use myelin_bench_kit::{Error, Publisher, Subscriber, clock};

/// Publishes from loans, or by copy.
pub struct LoanPublisher {
    /// Borrows from `publisher`, and is dropped before it.
    loan: Option<Loan<'static, [u8]>>,
    publisher: Box<myelin::Publisher<[u8]>>,
    loans: bool,
}

impl LoanPublisher {
    /// A publisher; with `loans` messages are written into loans.
    pub fn new(publisher: myelin::Publisher<[u8]>, loans: bool) -> Self {
        LoanPublisher { loan: None, publisher: Box::new(publisher), loans }
    }
}

impl Publisher for LoanPublisher {
    fn has_loans(&self) -> bool {
        self.loans
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        // SAFETY: the publisher lives in its own box, which is neither moved out of nor dropped
        // before the loan: `publish_loan` takes the loan, and fields are dropped in order.
        let publisher = unsafe { &*std::ptr::from_ref(&*self.publisher) };
        let loan = self.loan.insert(publisher.loan(len).map_err(said)?);
        Ok(&mut loan[..])
    }

    #[inline]
    fn publish_loan(&mut self) -> Result<(), Error> {
        let loan = self.loan.take().ok_or_else(|| Error::new("nothing is loaned"))?;
        loan.publish().map(drop).map_err(said)
    }

    #[inline]
    fn publish(&mut self, message: &[u8]) -> Result<(), Error> {
        self.publisher.publish_copy(message).map(drop).map_err(said)
    }
}

/// Takes samples one at a time.
pub struct Taker {
    subscriber: myelin::Subscriber<[u8]>,
    sample: SampleBuffer<[u8]>,
    polls: bool,
}

impl Taker {
    /// A subscriber, set to this way of waiting.
    pub fn new(mut subscriber: myelin::Subscriber<[u8]>, wait: Wait) -> Self {
        subscriber.set_wait(wait);
        Taker { subscriber, sample: SampleBuffer::new(), polls: wait == Wait::Poll }
    }

    /// The subscriber.
    pub fn subscriber(&self) -> &myelin::Subscriber<[u8]> {
        &self.subscriber
    }

    /// Takes the next sample, if there is one, and keeps it.
    #[inline]
    pub fn take_and_hold(&mut self) -> Result<bool, Error> {
        self.subscriber.take_into(&mut self.sample).map(|sample| sample.is_some()).map_err(said)
    }

    /// The kept sample.
    #[inline]
    pub fn held(&self) -> Option<&[u8]> {
        self.sample.sample().map(|sample| &sample[..])
    }
}

impl Subscriber for Taker {
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        // A polling end reads no clock if the sample arrives soon.
        if self.polls && self.subscriber.wait(SOON).map_err(said)? {
            return Ok(Some(true));
        }
        self.subscriber.wait(left(until_ns)).map(Some).map_err(said)
    }

    #[inline]
    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        self.take_and_hold()?;
        Ok(self.held())
    }

    #[inline]
    fn release(&mut self) {
        self.sample.clear();
    }
}

/// The time until `until_ns`.
pub fn left(until_ns: u64) -> Duration {
    Duration::from_nanos(until_ns.saturating_sub(clock::monotonic_ns()))
}

/// Converts an error of the library, whose messages already say what to do.
#[cold]
pub fn said(error: myelin::Error) -> Error {
    Error::new(error.to_string())
}

const SOON: Duration = Duration::from_millis(1);
