//! What a driver supplies: its systems, how to open the two ends, and a daemon if it needs one.

use crate::clock::Clock;
use crate::protocol::{Prepare, System};

/// Why something failed, and what the user can do about it.
#[derive(Debug, Clone, Default, thiserror::Error)]
#[error("{message}")]
pub struct Error {
    /// What went wrong, in one line.
    pub message: String,
    /// What to do about it, in one line; empty when there is nothing to say.
    pub remedy: String,
    /// The key of the scenario's `[options.<driver>]` table that is to blame; empty if none is.
    pub key: String,
}

impl Error {
    /// An error without a remedy.
    pub fn new(message: impl Into<String>) -> Self {
        Error { message: message.into(), ..Error::default() }
    }

    /// The same error with a remedy.
    #[must_use]
    pub fn remedy(mut self, remedy: impl Into<String>) -> Self {
        self.remedy = remedy.into();
        self
    }

    /// The same error, blamed on a key of the scenario's `[options.<driver>]` table.
    #[must_use]
    pub fn key(mut self, key: impl Into<String>) -> Self {
        self.key = key.into();
        self
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Self {
        Error::new(error.to_string())
    }
}

/// Sends messages to the other side. Used by one thread.
pub trait Publisher {
    /// Whether messages are written into memory loaned from the middleware.
    fn has_loans(&self) -> bool {
        false
    }

    /// Memory of the middleware for a message of exactly `len` bytes: the caller's to write until
    /// [`publish_loan`](Self::publish_loan). Called only if [`has_loans`](Self::has_loans).
    fn loan(&mut self, _len: usize) -> Result<&mut [u8], Error> {
        Err(Error::new("this system has no loans"))
    }

    /// Publishes the memory that [`loan`](Self::loan) gave last.
    fn publish_loan(&mut self) -> Result<(), Error> {
        Err(Error::new("this system has no loans"))
    }

    /// Publishes a copy of `message`.
    fn publish(&mut self, message: &[u8]) -> Result<(), Error>;
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
pub struct Link {
    /// Ping's outgoing messages, or pong's answers.
    pub publisher: Box<dyn Publisher>,
    /// Ping's answers, or pong's incoming messages.
    pub subscriber: Box<dyn Subscriber>,
    /// The clock to measure with; [`Clock::Monotonic`] for every real system.
    pub clock: Clock,
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
    fn open(&self, prepare: &Prepare) -> Result<Link, Error>;

    /// Starts the daemon `prepare.system` needs and returns when it answers.
    fn start_daemon(&self, prepare: &Prepare) -> Result<Box<dyn Daemon>, Error> {
        Err(Error::new(format!("{} needs no daemon", prepare.system)))
    }

    /// Removes what a daemon of this driver that was killed has left behind.
    fn clean(&self) -> Result<(), Error> {
        Ok(())
    }
}
