//! The interface of a driver: its systems, how to open the two ends, and a daemon if it needs one.

use std::sync::atomic::AtomicBool;

use crate::clock::Clock;
use crate::error::Error;
#[cfg(doc)]
use crate::protocol::Workload;
use crate::protocol::{Done, Prepare, System};
use crate::samples::SampleFile;

/// Sends messages to the other side. Used by one thread.
pub trait Publisher {
    /// Whether messages are written into memory loaned from the middleware.
    fn has_loans(&self) -> bool {
        false
    }

    /// Loans memory of the middleware for a message of exactly `len` bytes. The caller may write to
    /// it, in whole or in part, until [`publish_loan`](Self::publish_loan). Called only if
    /// [`has_loans`](Self::has_loans).
    fn loan(&mut self, _len: usize) -> Result<&mut [u8], Error> {
        Err(Error::new("this system has no loans"))
    }

    /// Publishes the memory of the last [`loan`](Self::loan).
    fn publish_loan(&mut self) -> Result<(), Error> {
        Err(Error::new("this system has no loans"))
    }

    /// Publishes a copy of `message`.
    fn publish(&mut self, message: &[u8]) -> Result<(), Error>;

    /// Publishes a message as long as `message`, of which the first `filled` bytes are written:
    /// into a loan if there are loans, otherwise as a copy of the whole. The kit calls this once
    /// instead of the three calls with separate timing; a driver may have a shorter way.
    #[inline]
    fn publish_filled(&mut self, message: &[u8], filled: usize) -> Result<(), Error> {
        if !self.has_loans() {
            return self.publish(message);
        }
        self.loan(message.len())?[..filled].copy_from_slice(&message[..filled]);
        self.publish_loan()
    }

    /// Selects the topic, below `prepare.topics`, for the next loan or publish. Called only if
    /// there are several; the first is 0.
    fn select(&mut self, _topic: u32) {}
}

/// Receives messages from the other side. Used by one thread.
pub trait Subscriber {
    /// Waits until there may be a message, at most until the clock reads `until_ns`. `Some(false)`
    /// if the time ran out; `None` if this system waits inside [`take`](Self::take).
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error>;

    /// The next message; `None` if there is none. A system that waits here returns `None` if none
    /// came until the clock reads `until_ns`. The bytes stay valid until
    /// [`release`](Self::release), which the kit calls before the next take.
    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error>;

    /// Returns the last taken sample to the middleware.
    fn release(&mut self) {}
}

/// Both directions of one role, matched with the other side.
pub struct Link<P: ?Sized = dyn Publisher, S: ?Sized = dyn Subscriber> {
    /// Sends ping's messages, or pong's answers.
    pub publisher: Box<P>,
    /// Receives ping's answers, or pong's messages.
    pub subscriber: Box<S>,
    /// The clock of the measurement; [`Clock::Monotonic`] for every real system.
    pub clock: Clock,
}

impl<P: Publisher, S: Subscriber> Link<P, S> {
    /// A link of a real system, with [`Clock::Monotonic`].
    pub fn new(publisher: P, subscriber: S) -> Self {
        let (publisher, subscriber) = (Box::new(publisher), Box::new(subscriber));
        Link { publisher, subscriber, clock: Clock::Monotonic }
    }
}

/// A [`Link`] of any type, with the loops of a round trip. They are compiled for each type, so that
/// between two stamps there are no dynamic calls unless the link's own ends are dynamic.
pub trait RoundTrip {
    /// Sends `prepare.messages` messages (or for `prepare.duration_ns`) from `start_ns` on and
    /// records each answer. Ends early if `stop` is set or the sample file is full. Fails if
    /// [`LOST_IN_A_ROW_MAX`](crate::pingpong::LOST_IN_A_ROW_MAX) messages in a row stay unanswered.
    fn ping(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        start_ns: u64,
        stop: &AtomicBool,
    ) -> Result<Done, Error>;

    /// Answers every message until ping sends [`END_OF_STREAM`](crate::pingpong::END_OF_STREAM) or `stop` is
    /// set; records when each was taken and answered.
    fn pong(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        stop: &AtomicBool,
    ) -> Result<Done, Error>;
}

/// Pong of a round trip in a system that calls a function with each message. It answers within the
/// call, as a user of such a system would.
pub struct Answerer {
    /// Sends pong's answers; used by the thread that calls.
    pub publisher: Box<dyn Publisher + Send>,
    /// Calls with ping's messages.
    pub source: Box<dyn CallSource>,
    /// The clock of the measurement; [`Clock::Monotonic`] for every real system.
    pub clock: Clock,
}

/// One role's end of a publish run, matched with the other side. It has either the publisher or the
/// subscribers.
pub struct Fan {
    /// Ping's publisher; `None` for pong.
    pub publisher: Option<Box<dyn Publisher>>,
    /// Pong's `prepare.subscribers` subscribers, all on ping's topic. Empty for ping.
    pub subscribers: Vec<Box<dyn Subscriber>>,
    /// The clock of the measurement; [`Clock::Monotonic`] for every real system.
    pub clock: Clock,
}

impl Fan {
    /// Ping's end.
    pub fn publisher(publisher: Box<dyn Publisher>) -> Self {
        Fan { publisher: Some(publisher), subscribers: Vec::new(), clock: Clock::Monotonic }
    }

    /// Pong's end.
    pub fn subscribers(subscribers: Vec<Box<dyn Subscriber>>) -> Self {
        Fan { publisher: None, subscribers, clock: Clock::Monotonic }
    }
}

/// The receiving end of a stream.
pub enum Receiver {
    /// The kit waits and takes; in one process in a separate thread.
    Takes(Box<dyn Subscriber + Send>),
    /// Like `Takes`, for a role with its own process: the kit takes in the thread that opened it.
    TakesHere(Box<dyn Subscriber>),
    /// The system calls a function with each message, in any thread.
    Calls(Box<dyn CallSource>),
}

/// The function that a [`CallSource`] calls with each message.
pub type Call = Box<dyn FnMut(&[u8]) + Send>;

/// A subscriber that calls a function.
pub trait CallSource {
    /// From now on calls `call` with each message; calls never overlap. The bytes are valid during
    /// the call. Calls continue as long as the returned value exists. After it was dropped, `call`
    /// is not running, will not be called again, and has been dropped as well.
    fn start(self: Box<Self>, call: Call) -> Result<Box<dyn std::any::Any>, Error>;
}

/// One role's end of a stream or image run, or of any run in one process, matched.
///
/// The last message of ping has the sequence number [`END_OF_STREAM`](crate::pingpong::END_OF_STREAM). So a
/// waiting receiving end need not be woken just to stop.
pub struct Stream {
    /// Ping's publisher; `None` for pong.
    pub publisher: Option<Box<dyn Publisher>>,
    /// Pong's receivers; in one process ping's `prepare.subscribers` receivers, all on the topic of
    /// the publisher.
    pub receivers: Vec<Receiver>,
    /// The clock of the measurement; [`Clock::Monotonic`] for every real system.
    pub clock: Clock,
}

impl Stream {
    /// Ping's end.
    pub fn publisher(publisher: Box<dyn Publisher>) -> Self {
        Stream::one_process(publisher, Vec::new())
    }

    /// Pong's end, in its own process.
    pub fn subscriber(subscriber: Box<dyn Subscriber>) -> Self {
        let receivers = vec![Receiver::TakesHere(subscriber)];
        Stream { publisher: None, receivers, clock: Clock::Monotonic }
    }

    /// Both ends in one process.
    pub fn one_process(publisher: Box<dyn Publisher>, receivers: Vec<Receiver>) -> Self {
        Stream { publisher: Some(publisher), receivers, clock: Clock::Monotonic }
    }
}

/// A daemon that the driver has started and that answers.
pub trait Daemon {
    /// The daemon's processes, for the lab to observe.
    fn pids(&self) -> Vec<u32>;
    /// Checks that it still runs; an error says how it ended.
    fn check(&mut self) -> Result<(), Error>;
    /// Stops it and removes what it left behind.
    fn stop(&mut self) -> Result<(), Error>;
}

/// One middleware, in one or several configurations ("systems").
pub trait Driver: Sync {
    /// All systems of this driver, including those that cannot run here.
    fn systems(&self) -> Vec<System>;

    /// The system `name`; `None` if this driver has none. Called by each process of a run.
    fn system(&self, name: &str) -> Option<System> {
        self.systems().into_iter().find(|system| system.name == name)
    }

    /// Whether a scenario's options may have `key`.
    fn has_option(&self, _key: &str) -> bool {
        false
    }

    /// Checks what is particular to this driver: the values of `prepare.options`, and limits that
    /// [`System`] cannot express. The kit has checked the rest. Called before anything runs, so that a
    /// mistake in a scenario is found at once, and before each opening.
    fn check(&self, _prepare: &Prepare) -> Result<(), Error> {
        Ok(())
    }

    /// Opens one role of `prepare.system` and returns when both directions are matched. Blocks at
    /// most for `prepare.match_timeout_ns`.
    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error>;

    /// Opens pong of a round trip that answers within a call. If it returns `None`,
    /// [`open`](Self::open) is used instead. Matches like `open`.
    fn open_answerer(&self, _prepare: &Prepare) -> Result<Option<Answerer>, Error> {
        Ok(None)
    }

    /// Opens one role of `prepare.system` for [`Workload::Publish`]: ping's publisher, or pong's
    /// `prepare.subscribers` subscribers on the same topic. Returns when they are matched; at once
    /// for 0 subscribers. Called only for systems whose [`System::workloads`] contain it.
    ///
    /// Delivery is best effort: publishing never waits for a subscriber, and a slow subscriber
    /// loses messages. Pong never calls [`Subscriber::wait`]; it calls [`Subscriber::take`] with 0,
    /// a time in the past, and expects the next message or `None` at once.
    fn open_publish(&self, prepare: &Prepare) -> Result<Fan, Error> {
        Err(Error::new(format!("{}: publish is not supported by this driver", prepare.system))
            .remedy("leave the system out of plan.systems"))
    }

    /// Opens one role of `prepare.system` for all one-way workloads, and for [`Workload::Publish`]
    /// of a system in one process: ping's publisher, pong's receivers, or in one process both.
    /// Returns when they are matched on each of `prepare.topics`: ping's publisher with
    /// `prepare.subscribers` subscribers, pong's receivers with `prepare.publishers` publishers.
    /// Called only for systems whose [`System::workloads`] contain the workload, and within the
    /// limits of [`System::streams`].
    ///
    /// With [`Reliability::BestEffort`](crate::protocol::Reliability) publishing never waits for a
    /// subscriber, and a subscriber that is more than `prepare.depth` messages behind loses some.
    /// With `Reliable` publishing waits for it.
    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        Err(Error::new(format!("{}: streams are not supported by this driver", prepare.system))
            .remedy("leave the system out of plan.systems"))
    }

    /// The clock of the processes of `prepare`. Across hosts, the other host reads this clock.
    fn clock(&self, _prepare: &Prepare) -> Result<Clock, Error> {
        Ok(Clock::Monotonic)
    }

    /// Remarks for the report on the opened role, for instance a limit that could not be raised.
    fn notes(&self, _prepare: &Prepare) -> Vec<String> {
        Vec::new()
    }

    /// Remarks for the report on what happened during the run; called after the last message.
    fn notes_at_end(&self) -> Vec<String> {
        Vec::new()
    }

    /// Starts the daemon of `prepare.system` and returns when it answers.
    fn start_daemon(&self, prepare: &Prepare) -> Result<Box<dyn Daemon>, Error> {
        Err(Error::new(format!("{} needs no daemon", prepare.system)))
    }

    /// Removes what killed processes of this driver or its daemon have left behind, and nothing
    /// that live processes use. Called before a session and after a failed run.
    fn clean(&self) -> Result<(), Error> {
        Ok(())
    }
}
