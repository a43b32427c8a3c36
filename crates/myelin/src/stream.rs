//! Samples for asynchronous tasks, in any runtime.

use std::marker::PhantomData;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_core::Stream;
use myelin_shm::tasks::TaskSubscriber;

use crate::dynamic::{self, DynamicType};
use crate::network::NetworkReader;
use crate::payload::Payload;
use crate::sample::Sample;
use crate::{Error, Event};

/// The samples of a topic as a `Stream`, for asynchronous tasks. Made by
/// [`Subscriber::into_stream`](crate::Subscriber::into_stream). It never ends; dropping it ends the
/// match.
///
/// It needs no particular runtime: a thread of the node wakes the tasks of all its streams. That is
/// one wake-up more than for a thread that waits by itself. To avoid it, give your reactor the
/// descriptor of a [wait set](crate::WaitSetHandle::descriptor) or of an
/// [`FdSubscriber`](crate::FdSubscriber), and take when it is readable.
///
/// An error comes as an item; the stream goes on after it. If samples come faster than a task
/// handles them, the task does not yield by itself.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// use std::pin::pin;
///
/// let topic = node.topic::<u64>("count");
/// let publisher = topic.publisher()?;
/// let mut counts = topic.subscriber()?.into_stream()?;
/// # publisher.wait_for_match(1, std::time::Duration::from_secs(60));
/// publisher.publish_copy(&42)?;
/// let next = async {
///     // With a crate of futures: `counts.next().await`.
///     std::future::poll_fn(|context| {
///         futures_core::Stream::poll_next(pin!(&mut counts), context)
///     })
///     .await
/// };
/// # let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
/// # let next = runtime.block_on(next);
/// assert_eq!(**next.expect("it never ends").as_ref().unwrap(), 42);
/// # Ok(()) }
/// ```
pub struct SampleStream<T: Payload + ?Sized> {
    /// The reader of other hosts. Ends first.
    _network: Option<Box<NetworkReader>>,
    inner: TaskSubscriber,
    dynamic: Option<Arc<DynamicType>>,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

impl<T: Payload + ?Sized> SampleStream<T> {
    pub(crate) fn new(
        inner: TaskSubscriber,
        network_reader: Option<Box<NetworkReader>>,
        dynamic: Option<Arc<DynamicType>>,
    ) -> Self {
        SampleStream { _network: network_reader, inner, dynamic, payload: PhantomData }
    }

    /// As [`Subscriber::lost`](crate::Subscriber::lost).
    pub fn lost(&self) -> u64 {
        self.inner.subscriber().reader.lost()
    }

    /// As [`Subscriber::matched`](crate::Subscriber::matched).
    pub fn matched(&self) -> usize {
        self.inner.subscriber().matched()
    }

    /// As [`Subscriber::events`](crate::Subscriber::events).
    pub fn events(&self) -> Vec<Event> {
        self.inner.subscriber().events()
    }
}

impl<T: Payload + ?Sized> Stream for SampleStream<T> {
    type Item = Result<Sample<T>, Error>;

    fn poll_next(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let SampleStream { inner, dynamic, .. } = self.get_mut();
        Poll::Ready(Some(match inner.poll_take(context.waker()) {
            Ok(None) => return Poll::Pending,
            Ok(Some(it)) if dynamic::fits::<T>(dynamic, it.bytes().len()) => Ok(Sample::new(it)),
            Ok(Some(misfit)) => {
                inner.reject(misfit.publisher);
                Err(Error::PeerCorrupt { what: "a sample's length does not fit its type" })
            }
            Err(error) => Err(error),
        }))
    }
}

impl<T: Payload + ?Sized> std::fmt::Debug for SampleStream<T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("SampleStream").field("type", &T::type_name()).finish_non_exhaustive()
    }
}
