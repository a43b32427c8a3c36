//! A name, a type and settings, of which publishers and subscribers are made.

use std::marker::PhantomData;
use std::sync::OnceLock;
use std::time::Duration;

use myelin_shm::node::Node;
use myelin_shm::topic::{PublisherQos, Reliability, SubscriberQos};

use crate::Error;
use crate::payload::Payload;
use crate::publisher::Publisher;
use crate::subscriber::{FdSubscriber, Subscriber};

/// A topic of a node: its name, the type `T` of its samples, and the settings of the endpoints to
/// be made of it. Settings are checked when an endpoint is made.
///
/// Each side chooses its own settings; a publisher's depth bounds its subscribers', and a reliable
/// publisher waits for those subscribers alone that are reliable too.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").folder(folder.path()).open()?;
/// let commands = node.topic::<[f32; 6]>("joints").depth(64).reliable(Duration::from_millis(100));
/// let publisher = commands.publisher()?;
/// let mut subscriber = commands.subscriber()?;
/// # publisher.wait_for_match(1, Duration::from_secs(60));
/// publisher.publish_copy(&[0.5; 6])?;
/// assert_eq!(*subscriber.receive(Duration::MAX)?.unwrap(), [0.5; 6]);
/// # Ok(()) }
/// ```
#[must_use = "nothing happens before `publisher` or `subscriber`"]
pub struct Topic<T: Payload + ?Sized> {
    node: Node,
    name: String,
    publisher: PublisherQos,
    subscriber: SubscriberQos,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

impl<T: Payload + ?Sized> Topic<T> {
    pub(crate) fn new(node: Node, name: &str) -> Self {
        let publisher = PublisherQos { memory_max: memory_max(), ..PublisherQos::default() };
        let subscriber = SubscriberQos::default();
        Topic { node, name: name.to_string(), publisher, subscriber, payload: PhantomData }
    }

    /// Its name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many of the newest samples a subscriber can be behind without a loss: 1 to 65,535, by
    /// default 8. It costs a publisher 128 B a sample, and as many slots as subscribers are behind.
    pub fn depth(mut self, samples: u32) -> Self {
        (self.publisher.depth, self.subscriber.depth) = (samples, samples);
        self
    }

    /// No loss: a publisher waits for the slowest reliable subscriber when the depth is full, for
    /// `limit` at most; then publishing is an [`Error::ReliableTimeout`].
    pub fn reliable(mut self, limit: Duration) -> Self {
        self.publisher.reliability = Reliability::Reliable;
        self.publisher.block_max = limit;
        self.subscriber.reliability = Reliability::Reliable;
        self
    }

    /// The default: a publisher never waits; a subscriber that is further behind than the depth
    /// loses the oldest samples and is told how many ([`Subscriber::lost`]).
    pub fn best_effort(mut self) -> Self {
        self.publisher.reliability = Reliability::BestEffort;
        self.subscriber.reliability = Reliability::BestEffort;
        self
    }

    /// How many of the newest samples a publisher keeps for subscribers that come later, and how
    /// many a subscriber wants of them. By default 0; at most the depth.
    pub fn history(mut self, samples: u32) -> Self {
        (self.publisher.history, self.subscriber.history) = (samples, samples);
        self
    }

    /// A publisher means to publish at least once in `period`; a subscriber gets an
    /// [`Event::DeadlineMissed`](crate::Event) for one that does not. By default there is none.
    pub fn deadline(mut self, period: Duration) -> Self {
        (self.publisher.deadline, self.subscriber.deadline) = (Some(period), Some(period));
        self
    }

    /// A subscriber gets an [`Event::LivelinessLost`](crate::Event) for a publisher that has neither
    /// published nor called [`Publisher::assert_liveliness`] for `lease`. By default there is none;
    /// a publisher whose process ends is noticed at once either way.
    pub fn liveliness(mut self, lease: Duration) -> Self {
        self.subscriber.liveliness = Some(lease);
        self
    }

    /// How many samples of more than 104 bytes a subscriber may hold at once: 1 to 4,096, by
    /// default 16. One more is an [`Error::TooManyHeld`].
    pub fn held_max(mut self, samples: u32) -> Self {
        self.subscriber.held_max = samples;
        self
    }

    /// How many publishers a subscriber may be matched with: 1 to 64, by default 16.
    pub fn publishers_max(mut self, publishers: u32) -> Self {
        self.subscriber.publishers_max = publishers;
        self
    }

    /// How many loans of more than 104 bytes a publisher may have out at once: 1 to 4,096, by
    /// default 8. One more is an [`Error::TooManyLoans`].
    pub fn loans_max(mut self, loans: u32) -> Self {
        self.publisher.loans_max = loans;
        self
    }

    /// The largest payload of a publisher, in bytes; by default 2⁴⁰ − 1.
    pub fn payload_bytes_max(mut self, bytes: u64) -> Self {
        self.publisher.payload_bytes_max = bytes;
        self
    }

    /// How much shared memory a publisher may take for payloads, in bytes; by default half of the
    /// machine's memory. It takes what is in use: see `docs/library.md`.
    pub fn memory_max(mut self, bytes: u64) -> Self {
        self.publisher.memory_max = bytes;
        self
    }

    /// Makes a publisher with these settings. It is matched with subscribers as they come, on its
    /// own; [`Publisher::wait_for_match`] waits for them.
    ///
    /// # Errors
    /// [`Error::TypeMismatch`] if the topic is known to carry another type; [`Error::Setting`];
    /// [`Error::NoMemory`], [`Error::TooManyFiles`]; [`Error::Forked`].
    pub fn publisher(&self) -> Result<Publisher<T>, Error> {
        let inner = self.node.publisher(self.wire_topic(), self.publisher)?;
        Ok(Publisher::new(inner))
    }

    /// Makes a subscriber with these settings. It gets what is published from the match on, and the
    /// [`history`](Topic::history) before.
    ///
    /// # Errors
    /// As [`publisher`](Topic::publisher).
    pub fn subscriber(&self) -> Result<Subscriber<T>, Error> {
        let qos = SubscriberQos { descriptor: false, ..self.subscriber };
        Ok(Subscriber::new(self.node.subscriber(self.wire_topic(), qos)?))
    }

    /// Makes a subscriber with a file descriptor for an epoll loop. Publishers then pay a system
    /// call each time it has run out of samples before.
    ///
    /// # Errors
    /// As [`publisher`](Topic::publisher).
    pub fn subscriber_with_fd(&self) -> Result<FdSubscriber<T>, Error> {
        let qos = SubscriberQos { descriptor: true, ..self.subscriber };
        Ok(FdSubscriber::new(Subscriber::new(self.node.subscriber(self.wire_topic(), qos)?)))
    }

    fn wire_topic(&self) -> myelin_shm::topic::Topic {
        myelin_shm::topic::Topic {
            name: self.name.clone(),
            type_name: T::type_name(),
            type_hash: T::layout_hash(),
        }
    }
}

impl<T: Payload + ?Sized> Clone for Topic<T> {
    fn clone(&self) -> Self {
        Topic { node: self.node.clone(), name: self.name.clone(), ..*self }
    }
}

impl<T: Payload + ?Sized> std::fmt::Debug for Topic<T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Topic")
            .field("name", &self.name)
            .field("type", &T::type_name())
            .field("publisher", &self.publisher)
            .field("subscriber", &self.subscriber)
            .finish_non_exhaustive()
    }
}

/// Half of the machine's memory, in bytes.
fn memory_max() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let machine = rustix::system::sysinfo();
        // One is a `c_ulong`, the other an `unsigned int`; their product is the memory.
        machine.totalram as u64 / 2 * u64::from(machine.mem_unit)
    })
}

#[cfg(test)]
mod tests {
    #[test]
    fn half_of_the_memory_is_a_likely_figure() {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap();
        let line = text.lines().find(|line| line.starts_with("MemTotal:")).unwrap();
        let total = 1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        assert!(super::memory_max().abs_diff(total / 2) < total / 10);
    }
}
