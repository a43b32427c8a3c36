//! A function that is called with every sample.

use myelin_shm::callback as shm;

use crate::network::NetworkReader;
use crate::{Error, Event};

/// A function that is called with every sample. Made by
/// [`Subscriber::on_sample`](crate::Subscriber::on_sample).
///
/// For samples of this process, the function is called inside the publish, in the publisher's
/// thread: no thread has to wake up. For samples of other processes, the callback has its own
/// thread, which waits as set by [`Subscriber::set_wait`](crate::Subscriber::set_wait). (While this
/// process has a publisher, too, the thread sleeps in the kernel.)
///
/// The function never runs twice at once, and samples of one publisher come in order. If another
/// thread is running callbacks of the topic, or if the function publishes to its own topic, the
/// publisher does not wait: the callback's thread makes the call. Callbacks of a topic run one
/// after the other inside a publish, in the order in which they were made, and the publish lasts
/// until they have returned.
///
/// A function that may run several times at once is set by
/// [`Subscriber::on_sample_concurrent`](crate::Subscriber::on_sample_concurrent).
///
/// In the function you may publish, and make and drop publishers, subscribers and callbacks,
/// including this one. Do not wait there for another sample of the same topic.
///
/// A panic of the function is contained: it is counted and the next sample is delivered.
///
/// Dropping the handle ends the calls and waits for a running call. A drop inside a callback does
/// not wait, but no further call begins. Any thread may use the handle.
#[must_use = "dropping it stops the calls"]
pub struct Callback {
    /// The reader of other hosts, if the node has a network. Ends first.
    _network: Option<Box<NetworkReader>>,
    inner: shm::Callback,
}

impl Callback {
    pub(crate) fn new(inner: shm::Callback, network_reader: Option<Box<NetworkReader>>) -> Self {
        Callback { _network: network_reader, inner }
    }

    /// How many calls have returned or panicked so far.
    pub fn calls(&self) -> u64 {
        self.inner.calls()
    }

    /// How many calls have panicked so far.
    pub fn panics(&self) -> u64 {
        self.inner.panics()
    }

    /// How many samples were lost so far, as in [`Subscriber::lost`](crate::Subscriber::lost).
    pub fn lost(&self) -> u64 {
        self.inner.lost()
    }

    /// The latest error of a take, once. The calls go on after it. Most likely the function keeps
    /// too many samples ([`Error::TooManyHeld`]).
    pub fn error(&self) -> Option<Error> {
        self.inner.error()
    }

    /// How many publishers the subscriber is matched with now.
    pub fn matched(&self) -> usize {
        self.inner.handle().matched()
    }

    /// Waits until it is matched with at least `publishers`, for at most `limit`. False if the time
    /// is over.
    pub fn wait_for_match(&self, publishers: usize, limit: std::time::Duration) -> bool {
        self.inner.handle().wait_for_match(publishers, limit)
    }

    /// The events of the subscriber's matches since the last call, oldest first. At most 1,024 are
    /// kept, and at most 32 until the first call; beyond that the oldest are dropped.
    pub fn events(&self) -> Vec<Event> {
        self.inner.handle().events()
    }
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.inner, to)
    }
}
