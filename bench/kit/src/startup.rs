//! From nothing to the first message: the publisher publishes from the moment its end has matched until the subscriber
//! has taken a message. If a middleware reports a match too early, first messages are lost; the
//! measured time includes that.

use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use crate::clock::{self, Clock};
use crate::driver::{Publisher, Receiver, Stream, Subscriber};
use crate::error::Error;
use crate::outgoing::Outgoing;
use crate::protocol::{Done, Prepare, Role};
use crate::samples::SampleFile;
use crate::stream::the_one;
use crate::transfer::{Stamps, receive};

/// One end after its part; kept until the lab stops the process.
pub(crate) struct Started {
    /// When the subscriber took the first message; 0 for the publisher.
    pub(crate) first_ns: u64,
    /// Messages that the publisher has published or the subscriber has taken.
    pub(crate) messages: u64,
    _kept: Box<dyn Any>,
}

impl Started {
    /// The counts of a run that is already over when it begins.
    pub(crate) fn done(&self, role: Role) -> Done {
        let now_ns = clock::monotonic_ns();
        let (sent, received) = match role {
            Role::Ping => (self.messages, 0),
            _ => (0, self.messages),
        };
        Done { sent, received, begin_ns: now_ns, end_ns: now_ns, ..Done::default() }
    }
}

/// Runs `prepare.role`; `samples` is the file of this role.
pub(crate) fn start(
    stream: Stream,
    prepare: &Prepare,
    samples: &SampleFile,
) -> Result<Started, Error> {
    let until_ns = clock::monotonic_ns().saturating_add(prepare.match_timeout_ns);
    match prepare.role {
        Role::Ping => {
            let publisher = stream.publisher;
            let none = || Error::new("this driver opened no publisher");
            ping(publisher.ok_or_else(none)?, &stream.clock, prepare, until_ns)
        }
        _ => pong(the_one(stream.receivers)?, &stream.clock, samples, until_ns),
    }
}

fn ping(
    publisher: Box<dyn Publisher>,
    clock: &Clock,
    prepare: &Prepare,
    until_ns: u64,
) -> Result<Started, Error> {
    let path = prepare.taken_counter.as_ref();
    let path = path.ok_or_else(|| Error::new("protocol: no `taken_counter` for a start-up"))?;
    let taken = SampleFile::look(path)?;
    let mut outgoing = Outgoing::new(publisher, prepare, None);
    let mut messages = 0;
    while taken.exchanges() == 0 {
        if clock::monotonic_ns() > until_ns {
            return Err(silence(prepare));
        }
        outgoing.publish(messages, prepare.touch, clock)?;
        messages += 1;
        clock.sleep_until(clock.now() + AGAIN_NS);
    }
    Ok(Started { first_ns: 0, messages, _kept: Box::new(outgoing) })
}

fn pong(
    receiver: Receiver,
    clock: &Clock,
    samples: &SampleFile,
    until_ns: u64,
) -> Result<Started, Error> {
    let (first_ns, kept): (u64, Box<dyn Any>) = match receiver {
        Receiver::Takes(subscriber) => {
            let mut subscriber: Box<dyn Subscriber> = subscriber;
            (take(subscriber.as_mut(), clock, until_ns)?, Box::new(subscriber))
        }
        Receiver::TakesHere(mut subscriber) => {
            (take(subscriber.as_mut(), clock, until_ns)?, Box::new(subscriber))
        }
        Receiver::Calls(source) => {
            let first = Arc::new(AtomicU64::new(0));
            let (its_first, its_clock) = (Arc::clone(&first), clock.clone());
            let calling = source.start(Box::new(move |_| {
                // ORDER: Relaxed, the number carries nothing else.
                let _ = its_first.compare_exchange(
                    0,
                    its_clock.now(),
                    Ordering::Relaxed,
                    Ordering::Relaxed,
                );
            }))?;
            // ORDER: Relaxed, see above.
            while first.load(Ordering::Relaxed) == 0 && clock::monotonic_ns() < until_ns {
                std::thread::sleep(LOOK_AGAIN);
            }
            (first.load(Ordering::Relaxed), calling)
        }
    };
    if first_ns == 0 {
        return Err(Error::new("no message arrived although both ends had matched"));
    }
    samples.beat(1);
    Ok(Started { first_ns, messages: 1, _kept: kept })
}

/// When the first message was taken; 0 if none arrived in time.
fn take(subscriber: &mut dyn Subscriber, clock: &Clock, until_ns: u64) -> Result<u64, Error> {
    let arrival = receive(subscriber, clock, until_ns, Stamps::Return)?;
    let first_ns = arrival.map_or(0, |arrival| arrival.return_ns);
    subscriber.release();
    Ok(first_ns)
}

fn silence(prepare: &Prepare) -> Error {
    let seconds = prepare.match_timeout_ns as f64 * 1e-9;
    Error::new(format!("pong took no message for {seconds:.0} s although both ends had matched"))
}

/// Interval at which the publisher publishes.
const AGAIN_NS: u64 = 200_000;
const LOOK_AGAIN: Duration = Duration::from_micros(100);
