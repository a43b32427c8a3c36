//! The receiving side of a topic: by polling, waiting, callbacks, or an epoll loop.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, RawFd};
use std::sync::Arc;
use std::time::Duration;

use myelin_shm::callback as shm_callback;
use myelin_shm::data_plane::subscription::{RawSample, Reader};
use myelin_shm::dispatch::callback::{Function, Lengths};
use myelin_shm::node as shm;
pub use myelin_shm::waiting::interrupt::Interrupter;
use myelin_shm::waiting::wait;

use crate::callback::Callback;
use crate::dynamic::{self, DynamicType};
use crate::network::NetworkReader;
use crate::payload::Payload;
use crate::sample::{Sample, SampleBuffer};
#[cfg(feature = "stream")]
use crate::stream::SampleStream;
use crate::{EndpointId, Error, Event, GuardCondition, Wait};

/// Takes samples of a topic. Made by [`Topic::subscriber`](crate::Topic::subscriber).
///
/// One thread at a time uses it; it can be sent to another thread. Taking neither allocates nor
/// locks nor makes a system call. It takes from its publishers in turn; samples of one publisher
/// come in order. When it is dropped, samples that are held stay valid.
pub struct Subscriber<T: Payload + ?Sized> {
    /// The reader of other hosts, if the node has a network. Ends first.
    network_reader: Option<Box<NetworkReader>>,
    inner: shm::Subscriber,
    wait: Wait,
    /// The sample type, if it is known at run time only.
    dynamic: Option<Arc<DynamicType>>,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

impl<T: Payload + ?Sized> Subscriber<T> {
    pub(crate) fn new(
        inner: shm::Subscriber,
        network_reader: Option<NetworkReader>,
        dynamic: Option<Arc<DynamicType>>,
    ) -> Self {
        let network_reader = network_reader.map(Box::new);
        Subscriber { network_reader, inner, wait: Wait::default(), dynamic, payload: PhantomData }
    }

    /// The lengths that a sample of its type can have, and its alignment.
    fn lengths(&self) -> (Lengths, usize) {
        let dynamic_type = self
            .dynamic
            .as_ref()
            .map(|dynamic_type| (dynamic_type.lengths(), dynamic_type.align()));
        dynamic_type.unwrap_or((T::LENGTHS, T::ALIGN))
    }

    /// The next sample, if there is one. Never waits.
    ///
    /// # Errors
    /// [`Error::TooManyHeld`]: the sample stays where it is, and can be taken once another is
    /// dropped. [`Error::PeerCorrupt`]: its publisher wrote invalid data; other publishers are not
    /// affected. [`Error::Forked`].
    #[inline(always)]
    pub fn take(&mut self) -> Result<Option<Sample<T>>, Error> {
        let taken = self.inner.reader.take()?;
        if let Some(misfit) =
            taken.as_ref().filter(|it| !dynamic::fits::<T>(&self.dynamic, it.bytes().len()))
        {
            return Err(self.reject(misfit.publisher));
        }
        Ok(taken.map(Sample::new))
    }

    /// Like [`take`](Subscriber::take), directly into a buffer, so that the sample is not moved.
    /// The buffer's previous sample is released first.
    ///
    /// ```
    /// # fn main() -> Result<(), myelin::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// # let topic = node.topic::<u64>("count");
    /// # let (publisher, mut subscriber) = (topic.publisher()?, topic.subscriber()?);
    /// # publisher.wait_for_match(1, std::time::Duration::from_secs(60));
    /// # publisher.publish_copy(&7)?;
    /// let mut buffer = myelin::SampleBuffer::new();
    /// while let Some(count) = subscriber.take_into(&mut buffer)? {
    ///     assert_eq!(**count, 7);
    /// }
    /// # Ok(()) }
    /// ```
    ///
    /// # Errors
    /// As [`take`](Subscriber::take).
    #[inline(always)]
    pub fn take_into<'a>(
        &mut self,
        buffer: &'a mut SampleBuffer<T>,
    ) -> Result<Option<&'a Sample<T>>, Error> {
        Ok(self.fill(buffer)?.then(|| buffer.held()))
    }

    /// Makes the next take find the sample that has been there longest; returns since when, in ns.
    pub(crate) fn turn_to_oldest(&mut self) -> Option<u64> {
        self.inner.reader.turn_to_oldest()
    }

    /// Whether there is one now.
    #[inline(always)]
    fn fill(&mut self, buffer: &mut SampleBuffer<T>) -> Result<bool, Error> {
        buffer.holds = false;
        if !self.inner.reader.take_into(&mut buffer.taken)? {
            return Ok(false);
        }
        if !dynamic::fits::<T>(&self.dynamic, buffer.taken.bytes().len()) {
            return Err(self.reject(buffer.taken.publisher));
        }
        buffer.holds = true;
        Ok(true)
    }

    /// Ends the match with a publisher whose sample does not fit the type.
    #[cold]
    fn reject(&mut self, publisher: EndpointId) -> Error {
        self.inner.reader.reject(publisher);
        Error::PeerCorrupt { what: "a sample's length does not fit its type" }
    }

    /// Waits until there is a sample to take, for at most `limit` (`Duration::MAX`: for ever).
    /// False if the time is over.
    ///
    /// With a [`deadline`](crate::Topic::deadline) or
    /// [`liveliness`](crate::SubscriberBuilder::liveliness) the wait also ends, once for each
    /// event, when a publisher falls silent: for an [`Event::DeadlineMissed`],
    /// [`Event::LivelinessLost`] or [`Event::Unmatched`] that has not been taken yet. It also ends
    /// when it is [interrupted](Subscriber::interrupter).
    ///
    /// # Errors
    /// [`Error::Forked`].
    #[inline]
    pub fn wait(&mut self, limit: Duration) -> Result<bool, Error> {
        Ok(self.comes_soon() || self.inner.reader.wait(self.wait, until_ns(limit))?)
    }

    /// A polling wait looks for a while before it reads the clock.
    #[inline(always)]
    fn comes_soon(&mut self) -> bool {
        self.wait == Wait::Poll && self.inner.reader.comes_soon()
    }

    /// Ends this subscriber's waits from another thread: [`wait`](Subscriber::wait) then returns
    /// false, [`receive`](Subscriber::receive) `None`.
    ///
    /// ```
    /// # fn main() -> Result<(), myelin::Error> {
    /// # use std::time::Duration;
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// let mut subscriber = node.topic::<u64>("count").subscriber()?;
    /// let interrupter = subscriber.interrupter();
    /// let thread = std::thread::spawn(move || subscriber.receive(Duration::MAX).map(|_| ()));
    /// interrupter.interrupt(); // also from a signal handler
    /// thread.join().expect("no panic")?;
    /// # Ok(()) }
    /// ```
    pub fn interrupter(&self) -> Interrupter {
        self.inner.reader.shared().interrupter()
    }

    /// Takes the next sample; waits for it for at most `limit` (`Duration::MAX`: for ever). `None`
    /// if the time is over, or if the [`wait`](Subscriber::wait) has ended because a publisher fell
    /// silent or because it was [interrupted](Subscriber::interrupter).
    ///
    /// # Errors
    /// As for [`take`](Subscriber::take).
    #[inline]
    pub fn receive(&mut self, limit: Duration) -> Result<Option<Sample<T>>, Error> {
        self.comes_soon();
        self.receive_by(limit, Self::take)
    }

    /// Like [`receive`](Subscriber::receive), directly into a buffer, as
    /// [`take_into`](Subscriber::take_into).
    ///
    /// # Errors
    /// As for [`take`](Subscriber::take).
    #[inline]
    pub fn receive_into<'a>(
        &mut self,
        buffer: &'a mut SampleBuffer<T>,
        limit: Duration,
    ) -> Result<Option<&'a Sample<T>>, Error> {
        self.comes_soon();
        let came = self.receive_by(limit, |it| Ok(it.fill(buffer)?.then_some(())))?;
        Ok(came.map(|()| buffer.held()))
    }

    #[inline(always)]
    fn receive_by<R>(
        &mut self,
        limit: Duration,
        mut take: impl FnMut(&mut Self) -> Result<Option<R>, Error>,
    ) -> Result<Option<R>, Error> {
        if let Some(sample) = take(self)? {
            return Ok(Some(sample));
        }
        let until_ns = until_ns(limit);
        while self.inner.reader.wait(self.wait, until_ns)? {
            if let Some(sample) = take(self)? {
                return Ok(Some(sample));
            }
            // The sample was overwritten in between, or never existed: a publisher may be hostile.
            if until_ns != wait::NEVER && wait::now_ns() >= until_ns {
                break;
            }
        }
        Ok(None)
    }

    pub(crate) fn handle(&self) -> &shm::EndpointHandle {
        &self.inner
    }

    pub(crate) fn reader(&self) -> &Reader {
        &self.inner.reader
    }

    /// How [`wait`](Subscriber::wait), [`receive`](Subscriber::receive) and callbacks wait; by
    /// default [`Wait::Adaptive`].
    pub fn set_wait(&mut self, wait: Wait) {
        self.wait = wait;
    }

    /// Its samples as a `Stream` from now on, for asynchronous tasks: see [`SampleStream`]. The
    /// node's first stream starts a thread, which ends with the last stream.
    ///
    /// # Errors
    /// [`Error::TooMany`]: the streams of a node use one of its wait sets. [`Error::System`] if no
    /// further thread can be started.
    #[cfg(feature = "stream")]
    pub fn into_stream(self) -> Result<SampleStream<T>, Error> {
        let inner = myelin_shm::tasks::TaskSubscriber::new(self.inner)?;
        Ok(SampleStream::new(inner, self.network_reader, self.dynamic))
    }

    /// Calls `call` with every sample from now on, until the returned handle is dropped.
    /// [`Callback`] says when and in which thread. A sample is lent for the length of the call; to
    /// keep it, clone it.
    ///
    /// # Errors
    /// [`Error::System`] if no further thread can be started.
    ///
    /// ```
    /// # fn main() -> Result<(), myelin::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// let topic = node.topic::<u64>("count");
    /// let (publisher, subscriber) = (topic.publisher()?, topic.subscriber()?);
    /// # publisher.wait_for_match(1, std::time::Duration::from_secs(60));
    /// let (to, from) = std::sync::mpsc::channel();
    /// let callback = subscriber.on_sample(move |sample| to.send(**sample).unwrap())?;
    /// publisher.publish_copy(&42)?;
    /// assert_eq!(from.recv().unwrap(), 42);
    /// drop(callback); // no call is under way afterwards
    /// # Ok(()) }
    /// ```
    pub fn on_sample<F>(self, mut call: F) -> Result<Callback, Error>
    where
        F: FnMut(&Sample<T>) + Send + 'static,
        T: 'static,
    {
        let call = Box::new(move |taken: &RawSample| call(Sample::borrow(taken)));
        let (lengths, align) = self.lengths();
        let function = Function { call, lengths, align };
        let callback = shm_callback::Callback::start(self.inner, self.wait, function)?;
        Ok(Callback::new(callback, self.network_reader))
    }

    /// Like [`on_sample`](Subscriber::on_sample), for a function that may run several times at
    /// once: each publisher of this process calls it in its own thread, without waiting for others,
    /// also from inside the function. Samples then come in no particular order. Samples of other
    /// processes are delivered by the callback's thread, which sleeps in the kernel. A publish also
    /// delivers samples that other publishers have left, at most 64 times, and leaves the rest to
    /// that thread.
    ///
    /// # Errors
    /// As for [`on_sample`](Subscriber::on_sample).
    pub fn on_sample_concurrent<F>(self, call: F) -> Result<Callback, Error>
    where
        F: Fn(&Sample<T>) + Send + Sync + 'static,
        T: 'static,
    {
        let call = Box::new(move |taken: &RawSample| call(Sample::borrow(taken)));
        let (lengths, _) = self.lengths();
        let callback = shm_callback::Callback::start_concurrent(self.inner, call, lengths)?;
        Ok(Callback::new(callback, self.network_reader))
    }

    /// Whether there are published samples that have not been taken. A sample in new memory cannot
    /// be taken before a thread of the node has mapped that memory. Until then `take` returns
    /// `None`, a wait goes on, and this is true. If you learn of a publisher's end by other means
    /// than an [event](Self::events), such as the end of its process, take until nothing is unread.
    /// An [`Event::Unmatched`] comes when everything can be taken.
    pub fn has_unread(&mut self) -> bool {
        self.inner.reader.has_unread()
    }

    /// How many samples were lost so far, from all publishers, because the subscriber was further
    /// behind than its depth. They are counted when the next sample is taken.
    /// [`Sample::lost_before`] says where.
    pub fn lost(&self) -> u64 {
        self.inner.reader.lost()
    }

    /// How many publishers it is matched with now.
    pub fn matched(&self) -> usize {
        self.inner.matched()
    }

    /// Waits until it is matched with at least `publishers`, for at most `limit`. False if the time
    /// is over.
    pub fn wait_for_match(&self, publishers: usize, limit: Duration) -> bool {
        self.inner.wait_for_match(publishers, limit)
    }

    /// Its id in graphs and in the other side's events.
    pub fn id(&self) -> EndpointId {
        self.handle().id()
    }

    /// The events of its matches since the last call, oldest first. At most 1,024 are
    /// kept, and at most 32 until the first call; beyond that the oldest are dropped.
    pub fn events(&self) -> Vec<Event> {
        self.inner.events()
    }

    /// Calls `call` from now on whenever [`events`](Self::events) has something new, and once soon
    /// for events that exist already. A thread of the node (`myelin-events`) calls it, one such
    /// function at a time. It holds no lock of the library, so `call` may call anything of this
    /// library. The calls end with the subscriber.
    ///
    /// A second call replaces the first. When it returns, or when the subscriber has been dropped,
    /// the previous function is not running any more. Only inside such a function or a callback
    /// they do not wait for it. So do not hold a lock then that the function takes. A panic of the
    /// function is contained and reported once.
    ///
    /// [`trigger_on_event`](Self::trigger_on_event) wakes a wait set without this thread.
    ///
    /// # Errors
    /// [`Error::Forked`]; [`Error::System`] if no further thread can be started.
    pub fn on_event(&self, call: impl Fn() + Send + Sync + 'static) -> Result<(), Error> {
        self.handle().listen(&self.inner.reader.shared().topic().name, Box::new(call))
    }

    /// Triggers the guard from now on whenever [`events`](Self::events) has something new. A second
    /// call replaces the first.
    pub fn trigger_on_event(&self, guard: &GuardCondition) {
        let guard = guard.clone();
        self.handle().on_event(Box::new(move |_| guard.trigger()));
    }
}

impl<T: Payload + ?Sized> std::fmt::Debug for Subscriber<T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Subscriber")
            .field("type", &T::type_name())
            .field("wait", &self.wait)
            .finish_non_exhaustive()
    }
}

/// A [`Subscriber`] with a file descriptor, for an epoll loop. Made by
/// [`Topic::subscriber_with_fd`](crate::Topic::subscriber_with_fd).
///
/// The descriptor is readable when there may be a sample, or an event. Take until nothing is left,
/// then wait for the descriptor again; level- and edge-triggered both work. The descriptor is an
/// epoll itself: poll it or add it to another epoll, and do nothing else with it. A take that finds
/// nothing costs a system call.
pub struct FdSubscriber<T: Payload + ?Sized>(Subscriber<T>);

impl<T: Payload + ?Sized> FdSubscriber<T> {
    pub(crate) fn new(subscriber: Subscriber<T>) -> Self {
        FdSubscriber(subscriber)
    }
}

impl<T: Payload + ?Sized> AsFd for FdSubscriber<T> {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.inner.reader.event().expect("`subscriber_with_fd` asks for a descriptor")
    }
}

impl<T: Payload + ?Sized> AsRawFd for FdSubscriber<T> {
    fn as_raw_fd(&self) -> RawFd {
        self.as_fd().as_raw_fd()
    }
}

impl<T: Payload + ?Sized> Deref for FdSubscriber<T> {
    type Target = Subscriber<T>;

    fn deref(&self) -> &Subscriber<T> {
        &self.0
    }
}

impl<T: Payload + ?Sized> DerefMut for FdSubscriber<T> {
    fn deref_mut(&mut self) -> &mut Subscriber<T> {
        &mut self.0
    }
}

impl<T: Payload + ?Sized> std::fmt::Debug for FdSubscriber<T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_tuple("FdSubscriber").field(&self.0).finish()
    }
}

/// The time `limit` from now on the monotonic clock; [`wait::NEVER`] if it is centuries away.
#[doc(hidden)]
pub fn until_ns(limit: Duration) -> u64 {
    match u64::try_from(limit.as_nanos()) {
        Ok(limit_ns) => wait::now_ns().saturating_add(limit_ns),
        Err(_) => wait::NEVER,
    }
}
