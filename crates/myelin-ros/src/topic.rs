//! Topics of ROS 2 messages: Myelin's topics of bytes, with ROS 2's names, encoding and settings.

use std::marker::PhantomData;
use std::ops::{Deref, DerefMut, Range};
use std::time::Duration;

use myelin::{Callback, Node, Published, PublisherBuilder, SubscriberBuilder};

use crate::Error;
use crate::cdr::{self, EncodeError};
use crate::message::{Bulk, Message};
use crate::names::{dds_topic, dds_type};

/// Makes topics of ROS 2 messages of a [`Node`].
pub trait RosNode {
    /// The topic that ROS 2 nodes know as `name`, with ROS 2's default settings: reliable, the 10
    /// newest samples, nothing for late joiners. A publisher waits up to a second for reliable
    /// subscribers that are further behind; then it passes them over.
    ///
    /// # Errors
    /// [`Error::Name`] if ROS 2 would not take the name or the type's.
    fn ros_topic<M: Message>(&self, name: &str) -> Result<Topic<M>, Error>;
}

impl RosNode for Node {
    fn ros_topic<M: Message>(&self, name: &str) -> Result<Topic<M>, Error> {
        let topic = self.topic::<[u8]>(&dds_topic(name)?).dds_cdr(&dds_type(M::TYPE)?);
        let topic = topic.depth(DEFAULT_DEPTH).reliable(BLOCK_MAX);
        Ok(Topic { bytes: topic, message: PhantomData })
    }
}

/// A topic of ROS 2 messages. Made by [`RosNode::ros_topic`].
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `publisher` or `subscriber`"]
pub struct Topic<M: Message> {
    bytes: myelin::Topic<[u8]>,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Topic<M> {
    /// ROS 2's settings for sensors: best effort, the 5 newest samples. Such a subscriber takes
    /// from any publisher. ROS 2 subscribers with default settings, which are reliable, do not
    /// match such a publisher.
    pub fn sensor_data(self) -> Self {
        self.with(|topic| topic.best_effort().depth(SENSOR_DEPTH))
    }

    /// Any other setting of [`myelin::Topic`]: `topic.with(|topic| topic.transient_local(1).depth(4))`.
    pub fn with(self, set: impl FnOnce(myelin::Topic<[u8]>) -> myelin::Topic<[u8]>) -> Self {
        Topic { bytes: set(self.bytes), ..self }
    }

    /// Makes a publisher with these settings.
    ///
    /// # Errors
    /// As for [`myelin::Topic::publisher`].
    pub fn publisher(&self) -> Result<Publisher<M>, Error> {
        Ok(Publisher { bytes: self.bytes.publisher()?, message: PhantomData })
    }

    /// Makes a subscriber with these settings.
    ///
    /// # Errors
    /// As for [`myelin::Topic::publisher`].
    pub fn subscriber(&self) -> Result<Subscriber<M>, Error> {
        Ok(Subscriber { bytes: self.bytes.subscriber()?, message: PhantomData })
    }

    /// Makes a publisher with settings that only publishers have:
    /// `topic.publisher_with(|builder| builder.memory_max(1 << 30))`.
    ///
    /// # Errors
    /// As for [`myelin::Topic::publisher`].
    pub fn publisher_with(
        &self,
        set: impl FnOnce(PublisherBuilder<[u8]>) -> PublisherBuilder<[u8]>,
    ) -> Result<Publisher<M>, Error> {
        let bytes = set(self.bytes.publisher_builder()).open()?;
        Ok(Publisher { bytes, message: PhantomData })
    }

    /// Makes a subscriber with settings that only subscribers have:
    /// `topic.subscriber_with(|builder| builder.held_max(4))`.
    ///
    /// # Errors
    /// As for [`myelin::Topic::publisher`].
    pub fn subscriber_with(
        &self,
        set: impl FnOnce(SubscriberBuilder<[u8]>) -> SubscriberBuilder<[u8]>,
    ) -> Result<Subscriber<M>, Error> {
        let bytes = set(self.bytes.subscriber_builder()).open()?;
        Ok(Subscriber { bytes, message: PhantomData })
    }

    /// The topic as a topic of bytes, whose samples are messages in CDR: for a subscriber in an
    /// epoll loop, or to forward messages unchanged.
    pub fn into_bytes(self) -> myelin::Topic<[u8]> {
        self.bytes
    }
}

/// Publishes messages. Dereferences to the publisher of their bytes, for its other calls.
#[derive(Debug)]
pub struct Publisher<M: Message> {
    bytes: myelin::Publisher<[u8]>,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Publisher<M> {
    /// Writes `message` straight into a loan and publishes it: one copy.
    ///
    /// # Errors
    /// [`Error::Encode`]; as for [`myelin::Publisher::publish_copy`].
    pub fn publish(&self, message: &M::View<'_>) -> Result<Published, Error> {
        let bytes = cdr::encoded_bytes(message).map_err(encode_error::<M>)?;
        let mut loan = self.bytes.loan(bytes)?;
        cdr::encode(message, &mut loan).map_err(encode_error::<M>)?;
        Ok(loan.publish()?)
    }
}

impl<M: Bulk> Publisher<M> {
    /// Memory for a message with all its fields except `data`, which you fill in place: no copy.
    /// `data` must be empty in `message`; the loan has the size that the other fields give
    /// ([`Bulk::data_bytes`]). It contains zeros, or bytes of an earlier sample.
    ///
    /// # Errors
    /// As for [`publish`](Publisher::publish).
    pub fn loan(&self, message: &M::View<'_>) -> Result<Loan<'_>, Error> {
        let data_bytes = usize::try_from(M::data_bytes(message)).unwrap_or(usize::MAX);
        let encode = |bytes: &mut [u8]| {
            cdr::encode_with_hole(message, bytes, Some(data_bytes)).map_err(encode_error::<M>)
        };
        let (bytes, data) = encode(&mut [])?;
        let mut loan = self.bytes.loan(bytes)?;
        encode(&mut loan)?;
        Ok(Loan { loan, data })
    }
}

impl<M: Message> Deref for Publisher<M> {
    type Target = myelin::Publisher<[u8]>;

    fn deref(&self) -> &Self::Target {
        &self.bytes
    }
}

/// A message in shared memory whose `data` the user fills: dereferences to it. Made by
/// [`Publisher::loan`]; if it is dropped instead of published, it is discarded.
#[derive(Debug)]
pub struct Loan<'p> {
    loan: myelin::Loan<'p, [u8]>,
    data: Range<usize>,
}

impl Loan<'_> {
    /// Publishes it.
    ///
    /// # Errors
    /// As for [`myelin::Loan::publish`].
    pub fn publish(self) -> Result<Published, Error> {
        Ok(self.loan.publish()?)
    }
}

impl Deref for Loan<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.loan[self.data.clone()]
    }
}

impl DerefMut for Loan<'_> {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.loan[self.data.clone()]
    }
}

/// Takes messages. Dereferences to the subscriber of their bytes, for its other calls.
#[derive(Debug)]
pub struct Subscriber<M: Message> {
    bytes: myelin::Subscriber<[u8]>,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Subscriber<M> {
    /// The next sample, if there is one. Never waits.
    ///
    /// # Errors
    /// As for [`myelin::Subscriber::take`].
    pub fn take(&mut self) -> Result<Option<Sample<M>>, Error> {
        Ok(self.bytes.take()?.map(Sample::new))
    }

    /// Takes the next sample; waits for it for at most `limit` (`Duration::MAX`: for ever).
    ///
    /// # Errors
    /// As for [`take`](Subscriber::take).
    pub fn receive(&mut self, limit: Duration) -> Result<Option<Sample<M>>, Error> {
        Ok(self.bytes.receive(limit)?.map(Sample::new))
    }

    /// Calls `call` with every sample from now on, until the returned handle is dropped.
    /// [`Callback`] says when and in which thread.
    ///
    /// # Errors
    /// As for [`myelin::Subscriber::on_sample`].
    pub fn on_sample<F>(self, mut call: F) -> Result<Callback, Error>
    where
        F: FnMut(&Sample<M>) + Send + 'static,
        M: 'static,
    {
        Ok(self.bytes.on_sample(move |sample| call(Sample::borrow(sample)))?)
    }
}

impl<M: Message> Deref for Subscriber<M> {
    type Target = myelin::Subscriber<[u8]>;

    fn deref(&self) -> &Self::Target {
        &self.bytes
    }
}

impl<M: Message> DerefMut for Subscriber<M> {
    fn deref_mut(&mut self) -> &mut Self::Target {
        &mut self.bytes
    }
}

/// A message where its publisher wrote it. Dereferences to the sample of its bytes, which are CDR.
#[derive(Debug)]
#[repr(transparent)]
pub struct Sample<M: Message> {
    bytes: myelin::Sample<[u8]>,
    message: PhantomData<fn() -> M>,
}

impl<M: Message> Sample<M> {
    fn new(bytes: myelin::Sample<[u8]>) -> Self {
        Sample { bytes, message: PhantomData }
    }

    fn borrow(bytes: &myelin::Sample<[u8]>) -> &Self {
        // SAFETY: this is a sample of bytes and nothing else (`repr(transparent)`).
        unsafe { &*std::ptr::from_ref(bytes).cast() }
    }

    /// Reads the message. Its strings and its `data` are borrowed from the sample, not copied.
    ///
    /// # Errors
    /// [`Error::Decode`] if the publisher has written something else.
    pub fn decode(&self) -> Result<M::View<'_>, Error> {
        cdr::decode(&self.bytes).map_err(|source| Error::Decode { message: M::TYPE, source })
    }
}

impl<M: Message> Deref for Sample<M> {
    type Target = myelin::Sample<[u8]>;

    fn deref(&self) -> &Self::Target {
        &self.bytes
    }
}

impl<M: Message> Clone for Sample<M> {
    fn clone(&self) -> Self {
        Sample::new(self.bytes.clone())
    }
}

fn encode_error<M: Message>(source: EncodeError) -> Error {
    Error::Encode { message: M::TYPE, source }
}

/// `rmw_qos_profile_default` and `rmw_qos_profile_sensor_data`, in `rmw/qos_profiles.h`.
const DEFAULT_DEPTH: u32 = 10;
const SENSOR_DEPTH: u32 = 5;
/// Enough for an image to reach a slow reader, and short enough to notice that there is one.
const BLOCK_MAX: Duration = Duration::from_secs(1);
