//! Looking at a topic without being known to its publishers: for tools.

use std::fmt;
use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use myelin_shm::data_plane::observer as shm_observer;
pub use myelin_shm::data_plane::observer::{Missing, ObservedHeader, ObservedPublisher};
use myelin_shm::node as shm;

use crate::dynamic::{self, DynamicType};
use crate::payload::Payload;
use crate::subscriber::until_ns;
use crate::{Error, Interrupter};

/// Looks at the samples of a topic on this host, while its publishers do nothing for it. Made by
/// [`Topic::observer`](crate::Topic::observer).
///
/// A publisher does not know its observers: they do not count as matched, it does not wait for them
/// or wake them, and it keeps no memory for them, whether they run, are stopped or die. In return
/// an observer can miss samples, and knows exactly which. It gives copies:
///
/// - A sample that was overwritten in its publisher's ring before the observer looked is counted:
///   [`ObservedHeader::overwritten_before`]. The ring has the publisher's depth.
/// - A sample of more than 104 bytes loses its payload earlier, when the publisher uses its memory
///   for another one: with a subscriber that reads in time soon after that one has read it, without
///   subscribers at the next loan. The observer still gives its header, and
///   [`ObservedSample::missing`] says so.
///
/// So rates, delays, lengths and losses are exact without payloads:
/// [`take_header`](Observer::take_header) does not even look at them.
///
/// [`receive`](Observer::receive) and [`wait`](Observer::wait) look at intervals of 1 to 100 ms,
/// which follow depth and rate of the publishers. One thread at a time uses it.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let topic = node.topic::<u64>("count");
/// let mut observer = topic.observer()?;
/// let publisher = topic.publisher()?;
/// publisher.publish_copy(&42)?;
/// assert_eq!(publisher.matched(), 0);
///
/// let sample = observer.receive(Duration::from_secs(60))?.expect("it was published");
/// assert_eq!(sample.payload(), Some(&42));
/// assert_eq!((sample.header().sequence, sample.header().length), (0, 8));
/// # Ok(()) }
/// ```
pub struct Observer<T: Payload + ?Sized> {
    inner: shm::Observer,
    /// The sample type, if it is known at run time only.
    dynamic: Option<Arc<DynamicType>>,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

/// A copy of a sample, or only its header if the payload was gone: given by an
/// [`Observer`].
pub struct ObservedSample<T: Payload + ?Sized> {
    inner: shm_observer::ObservedSample,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

impl<T: Payload + ?Sized> Observer<T> {
    pub(crate) fn new(inner: shm::Observer, dynamic: Option<Arc<DynamicType>>) -> Self {
        Observer { inner, dynamic, payload: PhantomData }
    }

    /// The next sample, if there is one. Never waits. Samples of one publisher come in order, those
    /// of several publishers in turn.
    ///
    /// # Errors
    /// [`Error::PeerCorrupt`]: a publisher wrote invalid data, and is observed no longer; the
    /// others go on. [`Error::TooMany`]: it observes 4,096 publishers already, and not this one.
    /// [`Error::Forked`].
    pub fn take(&mut self) -> Result<Option<ObservedSample<T>>, Error> {
        let mut sample = ObservedSample::new();
        Ok(self.take_into(&mut sample)?.then_some(sample))
    }

    /// The same, into the memory of an earlier sample; false if there is none.
    ///
    /// # Errors
    /// As for [`take`](Observer::take).
    pub fn take_into(&mut self, into: &mut ObservedSample<T>) -> Result<bool, Error> {
        if !self.inner.reader.take_into(&mut into.inner)? {
            return Ok(false);
        }
        let shm_observer::ObservedSample { header, missing, .. } = into.inner;
        if missing.is_none() && !dynamic::fits::<T>(&self.dynamic, header.length as usize) {
            into.inner.clear();
            self.inner.reader.reject(header.publisher);
            return Err(Error::PeerCorrupt { what: "a sample's length does not fit its type" });
        }
        Ok(true)
    }

    /// The header of the next sample, if there is one, without looking at its payload. The sample
    /// is then taken.
    ///
    /// # Errors
    /// As for [`take`](Observer::take).
    pub fn take_header(&mut self) -> Result<Option<ObservedHeader>, Error> {
        self.inner.reader.take_header()
    }

    /// Takes the next sample; waits for it for at most `limit` (`Duration::MAX`: for ever). `None`
    /// if the time is over or it was [interrupted](Observer::interrupter).
    ///
    /// # Errors
    /// As for [`take`](Observer::take).
    pub fn receive(&mut self, limit: Duration) -> Result<Option<ObservedSample<T>>, Error> {
        let mut sample = ObservedSample::new();
        let came = self.receive_by(limit, |it| Ok(it.take_into(&mut sample)?.then_some(())))?;
        Ok(came.map(|()| sample))
    }

    /// The same, of the header alone, as [`take_header`](Observer::take_header).
    ///
    /// # Errors
    /// As for [`take`](Observer::take).
    pub fn receive_header(&mut self, limit: Duration) -> Result<Option<ObservedHeader>, Error> {
        self.receive_by(limit, Self::take_header)
    }

    fn receive_by<R>(
        &mut self,
        limit: Duration,
        mut take: impl FnMut(&mut Self) -> Result<Option<R>, Error>,
    ) -> Result<Option<R>, Error> {
        let until_ns = until_ns(limit);
        loop {
            if let Some(taken) = take(self)? {
                return Ok(Some(taken));
            }
            if !self.inner.reader.wait(until_ns)? {
                return Ok(None);
            }
        }
    }

    /// Waits until there is something to take, for at most `limit` (`Duration::MAX`: for ever).
    /// False if the time is over or it was [interrupted](Observer::interrupter).
    ///
    /// # Errors
    /// [`Error::Forked`].
    pub fn wait(&mut self, limit: Duration) -> Result<bool, Error> {
        self.inner.reader.wait(until_ns(limit))
    }

    /// How long to wait before the next look, for a loop of your own: half of the time in which the
    /// fastest publisher fills its ring, and half of the time between two samples if payloads of
    /// more than 104 bytes are taken; 1 to 100 ms.
    pub fn interval(&self) -> Duration {
        self.inner.reader.interval()
    }

    /// Its publishers, with exact counts: `published - first` is the sum of `seen`, `overwritten`
    /// and the samples that have not been taken. Those that have gone since the last call are
    /// listed once more.
    pub fn publishers(&mut self) -> Vec<ObservedPublisher> {
        self.inner.reader.publishers()
    }

    /// Ends its waits from another thread: the running one, or else the next one that would block.
    pub fn interrupter(&self) -> Interrupter {
        self.inner.interrupter()
    }
}

impl<T: Payload + ?Sized> ObservedSample<T> {
    /// Room for a sample.
    pub fn new() -> Self {
        ObservedSample { inner: shm_observer::ObservedSample::new(), payload: PhantomData }
    }

    /// Its publisher, sequence, time and length, and how many were overwritten before it.
    pub fn header(&self) -> &ObservedHeader {
        &self.inner.header
    }

    /// The payload; `None` if it was gone.
    pub fn payload(&self) -> Option<&T::View> {
        let bytes = self.as_bytes()?;
        // SAFETY: `take_into` has checked the length; the bytes are a copy, aligned to 64, which is
        // enough for `T`; any bytes are a value of `T`.
        T::fits(bytes.len()).then(|| unsafe { &*T::view(bytes.as_ptr(), bytes.len()) })
    }

    /// The payload's bytes; `None` if it was gone.
    pub fn as_bytes(&self) -> Option<&[u8]> {
        self.missing().is_none().then(|| self.inner.bytes())
    }

    /// Why there is no payload; `None` if there is one.
    pub fn missing(&self) -> Option<Missing> {
        self.inner.missing
    }
}

impl<T: Payload + ?Sized> Default for ObservedSample<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Payload<View: fmt::Debug> + ?Sized> fmt::Debug for ObservedSample<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("ObservedSample")
            .field("header", self.header())
            .field("payload", &self.payload())
            .finish()
    }
}

impl<T: Payload + ?Sized> fmt::Debug for Observer<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Observer").field("type", &T::type_name()).finish_non_exhaustive()
    }
}
