//! `myelin.local-callback`: publisher and subscribers in one process. All code of this driver for
//! callbacks is here.

use std::any::Any;
use std::time::Duration;

use myelin::Sample;
use myelin_bench_kit::protocol::{Prepare, System, Topology, Transport, Wait, Workload};
use myelin_bench_kit::{Call, CallSource, Error, Receiver, Stream};

use crate::link::{LoanPublisher, said};
use crate::{VERSION, loans, node, topic, unmatched};

/// The system's name.
pub const NAME: &str = "myelin.local-callback";

/// Its description.
pub fn system() -> System {
    let about = "Myelin in one process; the subscriber is a function";
    System {
        topology: Topology::OneProcess,
        loans: true,
        workloads: vec![Workload::Stream, Workload::Image, Workload::Publish],
        ..System::new(NAME, about, VERSION, Wait::Callback, Transport::Process)
    }
}

/// A publisher, and `prepare.subscribers` subscribers for functions.
pub fn open(prepare: &Prepare) -> Result<Stream, Error> {
    let limit = Duration::from_nanos(prepare.match_timeout_ns);
    let topic = topic(&node(prepare)?, prepare, "local");
    let publisher = topic.publisher().map_err(said)?;
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
    let publisher = LoanPublisher::new(publisher, loans(prepare, 0));
    Ok(Stream::one_process(Box::new(publisher), receivers))
}

struct Source(myelin::Subscriber<[u8]>);

impl CallSource for Source {
    fn start(self: Box<Self>, mut call: Call) -> Result<Box<dyn Any>, Error> {
        let callback = self.0.on_sample(move |sample: &Sample<[u8]>| call(sample));
        Ok(Box::new(callback.map_err(said)?))
    }
}
