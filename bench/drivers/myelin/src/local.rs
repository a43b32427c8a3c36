//! `myelin.local-callback`: publisher and subscribers in one process, over the API that users have.
//! All that this driver knows of callbacks is here.

use std::any::Any;
use std::time::Duration;

use myelin::{Loan, Node, Sample};
use myelin_bench_kit::protocol::{Prepare, Streams, System, Topology, Transport, Wait, Workload};
use myelin_bench_kit::{Call, CallSource, Error, Publisher, Receiver, Stream};

use crate::link::said;
use crate::{loans, unmatched};

/// The system's name.
pub const NAME: &str = "myelin.local-callback";

/// What it is.
pub fn system() -> System {
    System {
        name: NAME.into(),
        about: "Myelin in one process; the subscriber is a function".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        wait: Wait::Callback,
        transport: Transport::Process,
        topology: Topology::OneProcess,
        loans: true,
        daemon: false,
        missing: None,
        payload_bytes_max: 0,
        across_hosts: false,
        floor: false,
        workloads: vec![Workload::Stream, Workload::Image, Workload::Publish],
        streams: Streams::default(),
    }
}

/// A publisher and `prepare.subscribers` subscribers to be given functions.
pub fn open(prepare: &Prepare) -> Result<Stream, Error> {
    let limit = Duration::from_nanos(prepare.match_timeout_ns);
    let node = Node::builder(&format!("bench-{}", prepare.run)).domain(prepare.domain).open();
    let topic = node.map_err(said)?.topic::<[u8]>(&format!("bench/{}/local", prepare.run));
    let publisher = Box::new(topic.publisher().map_err(said)?);
    let mut receivers = Vec::new();
    for _ in 0..prepare.subscribers {
        let subscriber = topic.subscriber().map_err(said)?;
        if !subscriber.wait_for_match(1, limit) {
            return Err(unmatched(limit));
        }
        receivers.push(Receiver::Calls(Box::new(Source(subscriber))));
    }
    if !publisher.wait_for_match(receivers.len(), limit) {
        return Err(unmatched(limit));
    }
    let speaker = Speaker { loan: None, publisher, loans: loans(prepare) };
    Ok(Stream::one_process(Box::new(speaker), receivers))
}

struct Source(myelin::Subscriber<[u8]>);

impl CallSource for Source {
    fn start(self: Box<Self>, mut call: Call) -> Result<Box<dyn Any>, Error> {
        let callback = self.0.on_sample(move |sample: &Sample<[u8]>| call(sample));
        Ok(Box::new(callback.map_err(said)?))
    }
}

struct Speaker {
    /// Borrows from `publisher`, and is dropped before it.
    loan: Option<Loan<'static, [u8]>>,
    publisher: Box<myelin::Publisher<[u8]>>,
    loans: bool,
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
