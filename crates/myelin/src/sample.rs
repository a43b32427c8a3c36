//! A sample held by a subscriber.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use myelin_shm::data_plane::subscription::RawSample;
use myelin_shm::topic::EndpointId;

use crate::payload::Payload;

/// A sample where its publisher wrote it: dereferences to the payload, `T`, `[T]` or a
/// [`HeaderSlice`](crate::HeaderSlice).
///
/// It does not change until its last clone is dropped. A clone copies the payload only if it has at
/// most 104 bytes. Any thread may hold or drop it, also after the subscriber is gone. Until then
/// the publisher cannot reuse its memory, so a subscriber holds at most
/// [`held_max`](crate::SubscriberBuilder::held_max) samples of more than 104 bytes.
///
/// In a child of `fork`, the payload of such a sample is zeros.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let topic = node.topic::<[u8]>("image");
/// let (publisher, mut subscriber) = (topic.publisher()?, topic.subscriber()?);
/// # publisher.wait_for_match(1, std::time::Duration::from_secs(60));
/// publisher.publish_copy(&[7; 1000])?;
///
/// let sample = subscriber.receive(std::time::Duration::MAX)?.expect("there is no time limit");
/// assert_eq!(sample.len(), 1000);
/// let other_thread = sample.clone();
/// let sum = std::thread::spawn(move || other_thread.iter().map(|byte| u32::from(*byte)).sum::<u32>());
/// assert_eq!(sum.join().unwrap(), 7000);
/// # Ok(()) }
/// ```
#[repr(transparent)]
pub struct Sample<T: Payload + ?Sized> {
    taken: RawSample,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

impl<T: Payload + ?Sized> Sample<T> {
    /// `taken` must have a length that fits `T`.
    #[inline(always)]
    pub(crate) fn new(taken: RawSample) -> Self {
        debug_assert!(T::fits(taken.bytes().len()));
        Sample { taken, payload: PhantomData }
    }

    /// Like [`new`](Self::new), for a sample that its owner keeps.
    #[inline(always)]
    pub(crate) fn borrow(taken: &RawSample) -> &Self {
        debug_assert!(T::fits(taken.bytes().len()));
        // SAFETY: a sample is a `RawSample` and nothing else (`repr(transparent)`).
        unsafe { &*std::ptr::from_ref(taken).cast() }
    }

    /// The same sample as bytes.
    pub(crate) fn into_bytes(self) -> Sample<[u8]> {
        Sample { taken: self.taken, payload: PhantomData }
    }

    /// How many samples its publisher published before it. For a publisher on another host: since
    /// the match.
    pub fn sequence(&self) -> u64 {
        self.taken.sequence
    }

    /// How many samples of the same publisher were lost between the previously taken one and this
    /// one.
    pub fn lost_before(&self) -> u64 {
        self.taken.lost_before
    }

    /// When it was published, by the clock of [`now`](crate::now), taken before the first
    /// subscriber could see it. `None` if the publisher does not [add
    /// timestamps](crate::PublisherBuilder::timestamps), or is on another host: DDS then gives a
    /// time by the sender's date, which drifts against this host's, can be set back and cannot be
    /// compared with `now()`. If the hosts' dates are synchronised (PTP, chrony), put one into the
    /// payload.
    ///
    /// ```
    /// # fn main() -> Result<(), myelin::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// let topic = node.topic::<u64>("count");
    /// let publisher = topic.publisher_builder().timestamps(true).open()?;
    /// let mut subscriber = topic.subscriber()?;
    /// # publisher.wait_for_match(1, std::time::Duration::from_secs(60));
    /// publisher.publish_copy(&42)?;
    /// if let Some(published_at) = subscriber.take()?.expect("just now").published_at() {
    ///     println!("{} ns ago", myelin::now() - published_at);
    /// }
    /// # Ok(()) }
    /// ```
    pub fn published_at(&self) -> Option<u64> {
        Some(self.taken.published_ns).filter(|time_ns| *time_ns != 0)
    }

    /// The endpoint id of its publisher, as in [`Event`](crate::Event)s. For a publisher on another
    /// host, the id is this subscriber's name for it in this match; no other subscriber knows it.
    /// To recognise a sample elsewhere, put a number of your own into it.
    pub fn publisher(&self) -> EndpointId {
        self.taken.publisher
    }

    /// The payload's bytes, aligned to 64.
    pub fn as_bytes(&self) -> &[u8] {
        self.taken.bytes()
    }
}

/// Room for a taken sample, so that the sample need not move: it has some 250 bytes, and moving it
/// right after the take can take longer than all the rest. See
/// [`Subscriber::take_into`](crate::Subscriber::take_into).
pub struct SampleBuffer<T: Payload + ?Sized> {
    pub(crate) taken: RawSample,
    /// Whether `taken` is a sample whose length fits `T`.
    pub(crate) holds: bool,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

impl<T: Payload + ?Sized> SampleBuffer<T> {
    /// An empty buffer.
    #[inline(always)]
    pub fn new() -> Self {
        SampleBuffer { taken: RawSample::empty(), holds: false, payload: PhantomData }
    }

    /// Releases the sample, if there is one. The buffer is empty then.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.holds = false;
        self.taken.release();
    }

    /// The sample in the buffer, if there is one.
    #[inline(always)]
    pub fn sample(&self) -> Option<&Sample<T>> {
        self.holds.then(|| self.held())
    }

    /// Marks that the buffer has a sample now.
    #[inline(always)]
    pub(crate) fn held(&self) -> &Sample<T> {
        Sample::borrow(&self.taken)
    }
}

impl<T: Payload + ?Sized> From<Sample<T>> for SampleBuffer<T> {
    fn from(sample: Sample<T>) -> Self {
        SampleBuffer { taken: sample.taken, holds: true, payload: PhantomData }
    }
}

impl<T: Payload + ?Sized> Default for SampleBuffer<T> {
    fn default() -> Self {
        Self::new()
    }
}

impl<T: Payload<View: fmt::Debug> + ?Sized> fmt::Debug for SampleBuffer<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_tuple("SampleBuffer").field(&self.sample()).finish()
    }
}

impl<T: Payload + ?Sized> Deref for Sample<T> {
    type Target = T::View;

    #[inline(always)]
    fn deref(&self) -> &T::View {
        let bytes = self.taken.bytes();
        // SAFETY: `new` has checked the length; the bytes are aligned to 64, which is enough for
        // `T`; any bytes are a value of `T`; nobody writes to them while `self.taken` lives.
        unsafe { &*T::view(bytes.as_ptr(), bytes.len()) }
    }
}

impl<T: Payload + ?Sized> AsRef<T::View> for Sample<T> {
    fn as_ref(&self) -> &T::View {
        self
    }
}

impl<T: Payload + ?Sized> Clone for Sample<T> {
    fn clone(&self) -> Self {
        Sample { taken: self.taken.clone(), payload: PhantomData }
    }
}

impl<T: Payload<View: fmt::Debug> + ?Sized> fmt::Debug for Sample<T> {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_struct("Sample")
            .field("sequence", &self.sequence())
            .field("lost_before", &self.lost_before())
            .field("payload", &&**self)
            .finish_non_exhaustive()
    }
}
