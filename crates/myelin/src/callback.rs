//! A function that is called with every sample.

use myelin_shm::dispatch::callback as shm;

use crate::network::Inlet;
use crate::{Error, Event};

/// A function that is called with every sample. Made by
/// [`Subscriber::on_sample`](crate::Subscriber::on_sample).
///
/// What a publisher of this process publishes, the function is called with inside the publish, by
/// the publisher's thread: no thread has to wake up. What other processes publish, a thread of the
/// callback's own takes, waiting as [`Subscriber::set_wait`](crate::Subscriber::set_wait) says (as
/// long as there is a publisher in this process too, it sleeps in the kernel).
///
/// The function is never called twice at once, and samples of a publisher come in order. If another
/// thread is just running callbacks of the topic, or if the function itself publishes to its own
/// topic, no publisher waits for that: the callback's thread makes the call. Callbacks of a topic run
/// one after the other inside a publish, in the order they were made, and the publish lasts as long
/// as they do.
///
/// One that may run several times at once is made by
/// [`Subscriber::on_sample_concurrent`](crate::Subscriber::on_sample_concurrent).
///
/// In the function you may publish, make and drop publishers, subscribers and callbacks, this one
/// included. Do not wait there for another sample of the same topic.
///
/// A panic of the function is contained: it is counted and the next sample is delivered.
///
/// Dropping the handle ends the calls and waits for the one that is under way; dropped by a callback,
/// it does not wait, but no further call begins. Any thread may use the handle.
#[must_use = "dropping it stops the calls"]
pub struct Callback {
    /// The way from other hosts, of a node with a network. Ends first.
    _inlet: Option<Box<Inlet>>,
    inner: shm::Callback,
}

impl Callback {
    pub(crate) fn new(inner: shm::Callback, inlet: Option<Box<Inlet>>) -> Self {
        Callback { _inlet: inlet, inner }
    }

    /// Calls that have returned or panicked so far.
    pub fn calls(&self) -> u64 {
        self.inner.calls()
    }

    /// Calls that have panicked so far.
    pub fn panics(&self) -> u64 {
        self.inner.panics()
    }

    /// Samples lost so far, as [`Subscriber::lost`](crate::Subscriber::lost).
    pub fn lost(&self) -> u64 {
        self.inner.lost()
    }

    /// The latest error of taking, once. The calls go on after it: most likely the function keeps too
    /// many samples ([`Error::TooManyHeld`]).
    pub fn error(&self) -> Option<Error> {
        self.inner.error()
    }

    /// How many publishers the subscriber is matched with now.
    pub fn matched(&self) -> usize {
        self.inner.observer().matched()
    }

    /// Waits until it is matched with at least `publishers`, for `limit` at most. False if they have
    /// not come by then.
    pub fn wait_for_match(&self, publishers: usize, limit: std::time::Duration) -> bool {
        self.inner.observer().wait_for_match(publishers, limit)
    }

    /// What has happened to the subscriber's matches since the last call, oldest first; at most
    /// 1,024, of more the oldest go.
    pub fn events(&self) -> Vec<Event> {
        self.inner.observer().events()
    }
}

impl std::fmt::Debug for Callback {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(&self.inner, to)
    }
}
