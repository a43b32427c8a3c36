//! A sample in the hands of a subscriber.

use std::fmt;
use std::marker::PhantomData;
use std::ops::Deref;

use myelin_shm::data_plane::subscription::Taken;
use myelin_shm::topic::EndpointId;

use crate::payload::Payload;

/// What was published, where it was written: dereferences to the payload, `T`, `[T]` or a
/// [`HeaderSlice`](crate::HeaderSlice).
///
/// It stays as it is until its last clone is dropped; cloning copies no payload of more than 104
/// bytes. Any thread may hold or drop it, also after the subscriber is gone. Until then the
/// publisher cannot reuse its memory, so a subscriber holds at most
/// [`held_max`](crate::SubscriberBuilder::held_max) samples of more than 104 bytes.
///
/// In a child of `fork`, the payload of such a sample is zeros.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
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
    taken: Taken,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

impl<T: Payload + ?Sized> Sample<T> {
    /// `taken` must have a length that fits `T`.
    #[inline(always)]
    pub(crate) fn new(taken: Taken) -> Self {
        debug_assert!(T::fits(taken.bytes().len()));
        Sample { taken, payload: PhantomData }
    }

    /// As [`new`](Self::new), of a sample that stays another's.
    #[inline(always)]
    pub(crate) fn borrow(taken: &Taken) -> &Self {
        debug_assert!(T::fits(taken.bytes().len()));
        // SAFETY: a sample is a `Taken` and nothing else (`repr(transparent)`).
        unsafe { &*std::ptr::from_ref(taken).cast() }
    }

    /// As its bytes.
    pub(crate) fn into_bytes(self) -> Sample<[u8]> {
        Sample { taken: self.taken, payload: PhantomData }
    }

    /// How many samples its publisher published before it; of a publisher on another host, since the
    /// match.
    pub fn sequence(&self) -> u64 {
        self.taken.sequence
    }

    /// How many samples of its publisher were lost between the one taken before and this one.
    pub fn lost_before(&self) -> u64 {
        self.taken.lost_before
    }

    /// When it was published, by the clock of [`now`](crate::now): before the first subscriber could see
    /// it. `None` if its publisher does not [say so](crate::PublisherBuilder::timestamps), or is on
    /// another host: what comes from there has a time of DDS's, by the date of the sender, which runs apart
    /// from that of this host, can be set back and tells nothing of `now()`. Who keeps the hosts' dates
    /// together (PTP, chrony) puts one into the payload.
    ///
    /// ```
    /// # fn main() -> Result<(), myelin::Error> {
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
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

    /// Its publisher's endpoint id, as in [`Event`](crate::Event)s. Of a publisher on another host it is
    /// this subscriber's name for it and for this match: no other subscriber knows it. To recognise a
    /// sample elsewhere, put a number of your own into it.
    pub fn publisher(&self) -> EndpointId {
        self.taken.publisher
    }

    /// The payload's bytes, aligned to 64.
    pub fn as_bytes(&self) -> &[u8] {
        self.taken.bytes()
    }
}

/// What a subscriber takes a sample into, so that it need not move: a sample is some 250 bytes, and to move
/// one right after it was taken can take longer than the rest. See
/// [`Subscriber::take_into`](crate::Subscriber::take_into).
pub struct SampleBuffer<T: Payload + ?Sized> {
    pub(crate) taken: Taken,
    /// Whether `taken` is a sample, of a length that fits `T`.
    pub(crate) holds: bool,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

impl<T: Payload + ?Sized> SampleBuffer<T> {
    /// Holds none.
    #[inline(always)]
    pub fn new() -> Self {
        SampleBuffer { taken: Taken::empty(), holds: false, payload: PhantomData }
    }

    /// Releases the sample that it holds: it holds none.
    #[inline(always)]
    pub fn clear(&mut self) {
        self.holds = false;
        self.taken.release();
    }

    /// The sample that it holds.
    #[inline(always)]
    pub fn sample(&self) -> Option<&Sample<T>> {
        self.holds.then(|| self.held())
    }

    /// It holds one.
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
