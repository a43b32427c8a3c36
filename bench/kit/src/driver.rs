//! What a driver supplies: its systems, how to open the two ends, and a daemon if it needs one.

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

    /// Memory of the middleware for a message of exactly `len` bytes: the caller's to write until
    /// [`publish_loan`](Self::publish_loan), in whole or in part. Called only if [`has_loans`](Self::has_loans).
    fn loan(&mut self, _len: usize) -> Result<&mut [u8], Error> {
        Err(Error::new("this system has no loans"))
    }

    /// Publishes the memory that [`loan`](Self::loan) gave last.
    fn publish_loan(&mut self) -> Result<(), Error> {
        Err(Error::new("this system has no loans"))
    }

    /// Publishes a copy of `message`.
    fn publish(&mut self, message: &[u8]) -> Result<(), Error>;

    /// Publishes a message as long as `message`, of which the first `filled` bytes are written: in a
    /// loan where there are loans, otherwise a copy of it all. One call of the kit's for what is
    /// three where the loan and its filling are timed apart; a driver may have a shorter way.
    #[inline]
    fn publish_filled(&mut self, message: &[u8], filled: usize) -> Result<(), Error> {
        if !self.has_loans() {
            return self.publish(message);
        }
        self.loan(message.len())?[..filled].copy_from_slice(&message[..filled]);
        self.publish_loan()
    }

    /// What is loaned or published next goes to topic `topic`, below `prepare.topics`. Called only
    /// if there are several; the first is 0.
    fn select(&mut self, _topic: u32) {}
}

/// Receives messages from the other side. Used by one thread.
pub trait Subscriber {
    /// Waits until there may be something to take, at most until the clock reads `until_ns`.
    /// `Some(false)` when the time ran out; `None` if this system waits inside
    /// [`take`](Self::take).
    fn wait(&mut self, until_ns: u64) -> Result<Option<bool>, Error>;

    /// The next message, or `None` if there is none (for a system that waits here: if none came
    /// until the clock reads `until_ns`). The bytes stay valid until
    /// [`release`](Self::release), which the kit calls before the next take.
    fn take(&mut self, until_ns: u64) -> Result<Option<&[u8]>, Error>;

    /// Gives back the sample taken last.
    fn release(&mut self) {}
}

/// Both directions of one role, matched with the other side's.
pub struct Link<P: ?Sized = dyn Publisher, S: ?Sized = dyn Subscriber> {
    /// Ping's outgoing messages, or pong's answers.
    pub publisher: Box<P>,
    /// Ping's answers, or pong's incoming messages.
    pub subscriber: Box<S>,
    /// The clock to measure with; [`Clock::Monotonic`] for every real system.
    pub clock: Clock,
}

impl<P: Publisher, S: Subscriber> Link<P, S> {
    /// Of a real system, which is measured with [`Clock::Monotonic`].
    pub fn new(publisher: P, subscriber: S) -> Self {
        let (publisher, subscriber) = (Box::new(publisher), Box::new(subscriber));
        Link { publisher, subscriber, clock: Clock::Monotonic }
    }
}

/// A [`Link`] of any kind, with the loops of a round trip. They are compiled for each kind, so that
/// between two stamps nothing is called through a table unless the link's own ends are.
pub trait RoundTrip {
    /// Sends `prepare.messages` messages (or for `prepare.duration_ns`) from `start_ns` on and records
    /// each answer. Ends early when `stop` is set, when the sample file is full, or with an error when
    /// [`LOST_IN_A_ROW_MAX`](crate::pingpong::LOST_IN_A_ROW_MAX) messages in a row stay unanswered.
    fn ping(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        start_ns: u64,
        stop: &AtomicBool,
    ) -> Result<Done, Error>;

    /// Answers every message until ping says [`GOODBYE`](crate::pingpong::GOODBYE) or `stop` is set,
    /// and records when each was taken and answered.
    fn pong(
        &mut self,
        prepare: &Prepare,
        samples: &mut SampleFile,
        stop: &AtomicBool,
    ) -> Result<Done, Error>;
}

/// Pong of a round trip where the system calls a function with each message: it answers in the call,
/// as a user of such a system would.
pub struct Answerer {
    /// Pong's answers; used by whatever thread calls.
    pub publisher: Box<dyn Publisher + Send>,
    /// What calls with ping's messages.
    pub source: Box<dyn CallSource>,
    /// The clock to measure with; [`Clock::Monotonic`] for every real system.
    pub clock: Clock,
}

/// One role's end of a publish run, matched with the other side's. Either the publisher is there or
/// the subscribers are.
pub struct Fan {
    /// Ping's; `None` for pong.
    pub publisher: Option<Box<dyn Publisher>>,
    /// Pong's: as many as `prepare.subscribers`, all on the topic ping publishes to. None for ping.
    pub subscribers: Vec<Box<dyn Subscriber>>,
    /// The clock to measure with; [`Clock::Monotonic`] for every real system.
    pub clock: Clock,
}

impl Fan {
    /// Ping's end.
    pub fn ping(publisher: Box<dyn Publisher>) -> Self {
        Fan { publisher: Some(publisher), subscribers: Vec::new(), clock: Clock::Monotonic }
    }

    /// Pong's end.
    pub fn pong(subscribers: Vec<Box<dyn Subscriber>>) -> Self {
        Fan { publisher: None, subscribers, clock: Clock::Monotonic }
    }
}

/// The receiving end of a stream.
pub enum Receiver {
    /// The kit waits and takes, in one process in a thread of its own.
    Takes(Box<dyn Subscriber + Send>),
    /// As `Takes`, of a role that is a process by itself: in the thread that has opened it.
    TakesHere(Box<dyn Subscriber>),
    /// The system calls a function with each message, in whatever thread.
    Calls(Box<dyn CallSource>),
}

/// What a [`CallSource`] calls with each message.
pub type Call = Box<dyn FnMut(&[u8]) + Send>;

/// A subscriber that calls a function.
pub trait CallSource {
    /// From now on calls `call` with each message, never twice at once. The bytes are valid during
    /// the call. What is returned keeps it so; when it has been dropped, `call` is no longer
    /// running, will not be called again, and has been dropped as well.
    fn start(self: Box<Self>, call: Call) -> Result<Box<dyn std::any::Any>, Error>;
}

/// One role's end of a stream or image run, or of any run in one process, matched.
///
/// The last thing ping publishes has the sequence number
/// [`GOODBYE`](crate::pingpong::GOODBYE): a receiving end that waits need not be woken to find that
/// it was told to stop.
pub struct Stream {
    /// Ping's; `None` for pong.
    pub publisher: Option<Box<dyn Publisher>>,
    /// Pong's; in one process, ping's: as many as `prepare.subscribers`, all on the topic that is
    /// published to.
    pub receivers: Vec<Receiver>,
    /// The clock to measure with; [`Clock::Monotonic`] for every real system.
    pub clock: Clock,
}

impl Stream {
    /// Ping's end.
    pub fn ping(publisher: Box<dyn Publisher>) -> Self {
        Stream::one_process(publisher, Vec::new())
    }

    /// Pong's end, of a process by itself.
    pub fn pong(subscriber: Box<dyn Subscriber>) -> Self {
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
    /// The daemon's processes, to be observed by the lab.
    fn pids(&self) -> Vec<u32>;
    /// Whether it still runs; an error says how it ended.
    fn check(&mut self) -> Result<(), Error>;
    /// Stops it and removes what it left behind.
    fn stop(&mut self) -> Result<(), Error>;
}

/// One middleware, in one or several configurations ("systems").
pub trait Driver: Sync {
    /// The systems this driver knows, the ones that cannot run here included.
    fn systems(&self) -> Vec<System>;

    /// Whether `prepare.options` and `prepare.payload_bytes` make sense for `prepare.system`; asked
    /// before anything runs, so that a mistake in a scenario is found at once.
    fn check(&self, _prepare: &Prepare) -> Result<(), Error> {
        Ok(())
    }

    /// Opens one role of `prepare.system` and returns when both directions are matched. Blocks at
    /// most until `prepare.match_timeout_ns` have passed.
    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error>;

    /// Pong of a round trip that answers in a call, instead of [`open`](Self::open), which is asked
    /// if there is `None`. Matched as `open` says.
    fn open_answerer(&self, _prepare: &Prepare) -> Result<Option<Answerer>, Error> {
        Ok(None)
    }

    /// Opens one role of `prepare.system` for [`Workload::Publish`]: ping's publisher, or pong's
    /// `prepare.subscribers` subscribers on the same topic. Returns when they are matched, at once
    /// for 0 subscribers. Asked only of systems whose [`System::workloads`] name it.
    ///
    /// Delivery is best effort: publishing never waits for a subscriber, and one that lags loses
    /// messages. Pong never calls [`Subscriber::wait`]; it calls [`Subscriber::take`] with 0, a time
    /// that has passed, and expects the next message or `None` at once.
    fn open_publish(&self, prepare: &Prepare) -> Result<Fan, Error> {
        Err(Error::new(format!("{}: publish is not supported by this driver", prepare.system))
            .remedy("leave the system out of plan.systems"))
    }

    /// Opens one role of `prepare.system` for all workloads that go one way, and for
    /// [`Workload::Publish`] of a system in one process: ping's publisher, pong's receivers, or in
    /// one process both. Returns when they are matched: ping's with `prepare.subscribers`, pong's
    /// with `prepare.publishers`, on each of `prepare.topics`. Asked only of systems whose
    /// [`System::workloads`] name the workload, and within what [`System::streams`] offers.
    ///
    /// With [`Reliability::BestEffort`](crate::protocol::Reliability) publishing never waits for a
    /// subscriber, and one that lags by more than `prepare.depth` messages loses some; with
    /// `Reliable` publishing waits for it.
    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        Err(Error::new(format!("{}: streams are not supported by this driver", prepare.system))
            .remedy("leave the system out of plan.systems"))
    }

    /// The clock that the processes of `prepare` measure with. Across hosts it is what the other host
    /// is told when it asks.
    fn clock(&self, _prepare: &Prepare) -> Result<Clock, Error> {
        Ok(Clock::Monotonic)
    }

    /// Remarks for the report on the role that has been opened, for instance a limit that could not
    /// be raised.
    fn notes(&self, _prepare: &Prepare) -> Vec<String> {
        Vec::new()
    }

    /// Remarks for the report on what happened until now; asked when the last message has come.
    fn notes_at_end(&self) -> Vec<String> {
        Vec::new()
    }

    /// Starts the daemon `prepare.system` needs and returns when it answers.
    fn start_daemon(&self, prepare: &Prepare) -> Result<Box<dyn Daemon>, Error> {
        Err(Error::new(format!("{} needs no daemon", prepare.system)))
    }

    /// Removes what processes of this driver or its daemon that were killed have left behind, and
    /// nothing that the living use. Asked before a session and after a run that failed.
    fn clean(&self) -> Result<(), Error> {
        Ok(())
    }
}
