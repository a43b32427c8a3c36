//! The ends of a topic over the API that users have.

use std::time::Duration;

use myelin::{Loan, Sample};
use myelin_bench_kit::{Error, Publisher, Subscriber, clock};

use crate::link::said;

/// Publishes from loans, or by copy.
pub struct Speaker {
    /// Borrows from `publisher`, and is dropped before it.
    loan: Option<Loan<'static, [u8]>>,
    publisher: Box<myelin::Publisher<[u8]>>,
    loans: bool,
}

impl Speaker {
    /// Around a publisher; `loans`: as long as messages are written into loans.
    pub fn new(publisher: myelin::Publisher<[u8]>, loans: bool) -> Self {
        Speaker { loan: None, publisher: Box::new(publisher), loans }
    }
}

impl Publisher for Speaker {
    fn has_loans(&self) -> bool {
        self.loans
    }

    #[inline]
    fn loan(&mut self, len: usize) -> Result<&mut [u8], Error> {
        // SAFETY: the publisher lives in a box of its own that is neither moved out of nor dropped
        // before the loan: `publish_loan` takes it, and fields are dropped in order.
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
pub struct Listener {
    sample: Option<Sample<[u8]>>,
    subscriber: myelin::Subscriber<[u8]>,
}

impl Listener {
    /// Around a subscriber.
    pub fn new(subscriber: myelin::Subscriber<[u8]>) -> Self {
        Listener { sample: None, subscriber }
    }
}

impl Subscriber for Listener {
    #[inline]
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error> {
        let left = Duration::from_nanos(until_ns.saturating_sub(clock::monotonic_ns()));
        self.subscriber.wait(left).map(Some).map_err(said)
    }

    #[inline]
    fn take(&mut self, _until_ns: u64) -> Result<Option<&[u8]>, Error> {
        self.sample = None;
        self.sample = self.subscriber.take().map_err(said)?;
        Ok(self.sample.as_deref())
    }

    #[inline]
    fn release(&mut self) {
        self.sample = None;
    }
}
