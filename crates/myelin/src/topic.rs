//! A topic: a name, a type and settings from which publishers and subscribers are made.

use std::ffi::OsStr;
use std::marker::PhantomData;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use myelin_shm::limits::NAME_BYTES_MAX;
use myelin_shm::record::{Attributes, Matching, PASSIVE, RecordOptions, Schema};
use myelin_shm::topic::{Late, PublisherQos, Reliability, SubscriberQos};

use crate::dynamic::DynamicType;
use crate::network::{Dds, Encoding, Spec};
use crate::node::Node;
use crate::observer::Observer;
use crate::payload::Payload;
use crate::publisher::Publisher;
use crate::subscriber::{FdSubscriber, Subscriber};
use crate::{Error, LayoutHash};

/// A topic of a node: its name, the type `T` of its samples, and the settings that both sides have.
/// Settings of one side only are in [`publisher_builder`](Topic::publisher_builder) and
/// [`subscriber_builder`](Topic::subscriber_builder). Settings are checked when an endpoint is
/// made.
///
/// Each side chooses its own settings. A publisher's depth bounds its subscribers', and a reliable
/// publisher waits only for subscribers that are reliable, too.
///
/// ```
/// # fn main() -> Result<(), myelin::Error> {
/// # use std::time::Duration;
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
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
    /// Whether its publishers add timestamps; `None`: as the environment says.
    timestamps: Option<bool>,
    dds: Dds,
    /// The sample type, if it is known at run time only.
    dynamic: Option<Arc<DynamicType>>,
    /// Whether its publishers publish on this host only.
    this_host_only: bool,
    matching: Matching,
    /// The lease that its publishers offer.
    liveliness: Option<Duration>,
    /// Settings that are announced, and used by nobody here.
    lifespan: Option<Duration>,
    is_alive_by_topic: bool,
    attributes: Vec<(String, Vec<u8>)>,
    /// How the samples are to be read, if not as plain data.
    schema: Option<Schema>,
    payload: PhantomData<fn() -> PhantomData<T>>,
}

impl<T: Payload + ?Sized> Topic<T> {
    pub(crate) fn new(node: Node, name: &str) -> Self {
        let publisher = PublisherQos { memory_max: memory_max(), ..PublisherQos::default() };
        let subscriber = SubscriberQos::default();
        let (name, dds) = (name.to_string(), Dds::default());
        Topic {
            node,
            name,
            publisher,
            subscriber,
            timestamps: None,
            dds,
            dynamic: None,
            this_host_only: false,
            matching: Matching::default(),
            liveliness: None,
            lifespan: None,
            is_alive_by_topic: false,
            attributes: Vec::new(),
            schema: None,
            payload: PhantomData,
        }
    }

    /// Sets the run-time type; `T` is the view of its bytes.
    pub(crate) fn of(self, dynamic_type: &DynamicType) -> Self {
        Topic { dynamic: Some(Arc::new(dynamic_type.clone())), ..self }
    }

    /// The topic's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// How many samples a subscriber can be behind without a loss: 1 to 65,535, by default 8. Each
    /// sample of the depth costs a publisher 128 B. It also needs as many slots as its subscribers
    /// are behind. The lesser of both sides counts; a subscriber that requests more than its
    /// publisher offers gets [`Event::QosReduced`](crate::Event).
    pub fn depth(mut self, samples: u32) -> Self {
        (self.publisher.depth, self.subscriber.depth) = (samples, samples);
        self
    }

    /// No loss for subscribers that keep up: when the depth is full, a publisher waits for the
    /// slowest reliable subscriber, for at most `limit`. Then it passes over the late subscriber.
    /// Only that subscriber loses samples ([`Subscriber::lost`], [`Event::Lost`](crate::Event));
    /// all others get every sample. The publisher does not wait for it again until it has read half
    /// of the depth, and reports it ([`Published::passed_over`](crate::Published),
    /// [`Event::PassedOver`](crate::Event)).
    pub fn reliable(self, limit: Duration) -> Self {
        self.reliable_with(limit, Late::PassOver)
    }

    /// Like [`reliable`](Topic::reliable), but no subscriber is passed over: after `limit`
    /// publishing fails with [`Error::ReliableTimeout`] and no subscriber gets the sample. One
    /// stopped subscriber stops all.
    pub fn reliable_or_fail(self, limit: Duration) -> Self {
        self.reliable_with(limit, Late::Fail)
    }

    fn reliable_with(mut self, limit: Duration, late: Late) -> Self {
        self.publisher.reliability = Reliability::Reliable;
        (self.publisher.block_max, self.publisher.late) = (limit, late);
        self.subscriber.reliability = Reliability::Reliable;
        self
    }

    /// The default: a publisher never waits. A subscriber that is further behind than the depth
    /// loses the oldest samples and can read how many ([`Subscriber::lost`]).
    pub fn best_effort(mut self) -> Self {
        self.publisher.reliability = Reliability::BestEffort;
        self.subscriber.reliability = Reliability::BestEffort;
        self
    }

    /// ROS 2's `KEEP_LAST`, reliable. On this host it is the same as
    /// [`best_effort`](Topic::best_effort). Samples lost on the way to and from other hosts are
    /// sent again, as long as they are among the newest `depth`. No publisher waits: a subscriber
    /// that is further behind loses the oldest samples.
    pub fn reliable_keep_last(mut self) -> Self {
        self.dds.resends = true;
        self.best_effort()
    }

    /// How many of the newest samples a publisher keeps for late subscribers, and how many of them
    /// a subscriber requests. By default 0; at most the depth.
    pub fn transient_local(mut self, samples: u32) -> Self {
        (self.publisher.transient_local, self.subscriber.transient_local) = (samples, samples);
        self
    }

    /// A publisher intends to publish at least once in `period`. If it does not, a subscriber gets
    /// [`Event::DeadlineMissed`](crate::Event). By default there is no deadline.
    pub fn deadline(mut self, period: Duration) -> Self {
        (self.publisher.deadline, self.subscriber.deadline) = (Some(period), Some(period));
        self
    }

    /// Which settings of the other side match; by default all do. With
    /// [`Matching::RequestedOffered`] a subscriber is matched only with publishers that offer at
    /// least what it requests, as in DDS and ROS 2; otherwise both sides get
    /// [`Event::Incompatible`](crate::Event), with the setting. It concerns endpoints on this host;
    /// matches with other hosts always follow DDS.
    ///
    /// ```
    /// # let folder = tempfile::tempdir().unwrap();
    /// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
    /// use myelin::{Event, Matching, Setting};
    ///
    /// let publisher = node.topic::<f64>("map").publisher()?;
    /// let wanted = node.topic::<f64>("map").transient_local(1).matching(Matching::RequestedOffered);
    /// let subscriber = wanted.subscriber()?;
    /// let [Event::Incompatible { mismatch: Some(mismatch), .. }] = &subscriber.events()[..] else {
    ///     panic!("the publisher keeps no history")
    /// };
    /// assert_eq!(mismatch.setting, Setting::Durability);
    /// assert_eq!((publisher.matched(), subscriber.matched()), (0, 0));
    /// # Ok::<(), myelin::Error>(())
    /// ```
    pub fn matching(mut self, matching: Matching) -> Self {
        self.matching = matching;
        self
    }

    /// Settings of ROS 2 that the library does not apply, for others to see, and for
    /// [`Matching::RequestedOffered`]: how long a sample is valid, and whether only the program
    /// asserts liveliness, for an endpoint alone.
    #[doc(hidden)]
    pub fn announced_only(mut self, lifespan: Option<Duration>, is_alive_by_topic: bool) -> Self {
        (self.lifespan, self.is_alive_by_topic) = (lifespan, is_alive_by_topic);
        self
    }

    /// A named byte string of the endpoints that others see in the [graph](crate::Node::graph), for
    /// programs that know what it means. An endpoint has at most 32, with at most 1,024 bytes in
    /// all, names included; a name has at most 64 bytes.
    pub fn attribute(mut self, name: &str, value: &[u8]) -> Self {
        self.attributes.push((name.to_string(), value.to_vec()));
        self
    }

    /// For subscribers of tools that take whatever the topic has: one may have another type than other
    /// endpoints, and settings beyond those of publishers, and nobody is warned or refused for it.
    #[doc(hidden)]
    pub fn passive(self) -> Self {
        self.attribute(PASSIVE, b"")
    }

    /// The samples' type for other DDS programs: the name of a DDS type whose little-endian CDR
    /// serialisation is the bytes of `T`. For `[T]` it is a type with one field, a `sequence` of
    /// such elements. `docs/explanation/dds.md` says which IDL types qualify.
    ///
    /// The topic then meets every DDS program with a topic of this name and type, not only
    /// Myelin's. It has an effect only on a node with a [`network`](crate::NodeBuilder::network).
    pub fn dds_type(mut self, name: &str) -> Self {
        self.dds.encoding = Encoding::Typed(name.to_string());
        self
    }

    /// The topic's name among DDS programs, if it differs: letters, digits, `_` and `/`, such as
    /// `rt/chatter` for ROS 2's `/chatter`. It has an effect with [`dds_type`](Topic::dds_type) or
    /// [`dds_cdr`](Topic::dds_cdr).
    pub fn dds_name(mut self, name: &str) -> Self {
        self.dds.name = Some(name.to_string());
        self
    }

    /// User data of the endpoints in DDS, in front of Myelin's own: text of the form `key=value;`,
    /// such as ROS 2's `typehash=…;`. By default it is empty.
    pub fn dds_user_data(mut self, text: &str) -> Self {
        self.dds.user_data = text.to_string();
        self
    }

    /// Meets other DDS programs of one DDS implementation only, given by its number in RTPS. This is for
    /// messages whose meaning depends on the implementation, such as ROS 2's services: each RMW has
    /// its own form. CycloneDDS is 0x0110, Fast DDS 0x010f. By default it meets all.
    pub fn dds_vendor(mut self, number: u16) -> Self {
        self.dds.vendor = Some(number);
        self
    }

    /// Makes a publisher with these settings. On return it is matched with the subscribers that
    /// exist on this host, except those of processes that do not answer within
    /// [`match_limit`](crate::NodeBuilder::match_limit), 20 ms by default. Later subscribers are
    /// matched when they come; [`Publisher::wait_for_match`] waits for them.
    ///
    /// # Errors
    /// [`Error::TypeMismatch`] if the topic is known to carry another type; [`Error::Setting`];
    /// [`Error::NoMemory`], [`Error::TooManyFiles`]; [`Error::Forked`].
    pub fn publisher(&self) -> Result<Publisher<T>, Error> {
        self.describe()?;
        let (topic, options) = (self.wire_topic(), self.record_options()?);
        let of_environment = || timestamps_from(std::env::var_os(TIMESTAMPS_VARIABLE).as_deref());
        let timestamps = self.timestamps.map_or_else(of_environment, Ok)?;
        let qos = PublisherQos { timestamps, ..self.publisher };
        let inner = self.node.inner.publisher_with(topic, qos, options)?;
        let network = self.node.network.as_ref().filter(|_| !self.this_host_only);
        let network_writer =
            network.map(|network| network.writer(&self.spec(), &inner)).transpose()?;
        Ok(Publisher::new(inner, network_writer))
    }

    /// Settings for a publisher, including those that only publishers have.
    pub fn publisher_builder(&self) -> PublisherBuilder<T> {
        PublisherBuilder(self.clone())
    }

    /// Makes a subscriber with these settings. It gets the samples published from the match on, and
    /// the [`history`](Topic::transient_local) before. On return it is matched with the publishers that
    /// exist on this host, with the same exception as for a [`publisher`](Topic::publisher).
    ///
    /// # Errors
    /// As for [`publisher`](Topic::publisher).
    pub fn subscriber(&self) -> Result<Subscriber<T>, Error> {
        self.describe()?;
        let (topic, options) = (self.wire_topic(), self.record_options()?);
        let inner = self.node.inner.subscriber_with(topic, self.subscriber, options)?;
        let network = self.node.network.as_ref();
        let network_reader =
            network.map(|network| network.reader(&self.spec(), &inner)).transpose()?;
        let dynamic = self.dynamic.clone().filter(|dynamic_type| !dynamic_type.fits_all());
        Ok(Subscriber::new(inner, network_reader, dynamic))
    }

    /// Makes an observer: it looks at the samples of the publishers on this host without being known
    /// to them, for tools. It sees samples of publishers that come later from their first one on,
    /// and of others from now on and the [`history`](Topic::transient_local) before, as far as the ring
    /// has it. The other settings have no effect. On return it sees the publishers that exist,
    /// with the same exception as for a [`publisher`](Topic::publisher).
    ///
    /// # Errors
    /// [`Error::TypeMismatch`] if the topic is known to carry other types only; [`Error::Setting`];
    /// [`Error::Forked`].
    pub fn observer(&self) -> Result<Observer<T>, Error> {
        let inner = self.node.inner.observer(self.wire_topic(), self.subscriber.transient_local)?;
        let dynamic = self.dynamic.clone().filter(|dynamic_type| !dynamic_type.fits_all());
        Ok(Observer::new(inner, dynamic))
    }

    /// Like [`SubscriberBuilder::open_with_fd`], with these settings.
    ///
    /// # Errors
    /// As for [`publisher`](Topic::publisher).
    pub fn subscriber_with_fd(&self) -> Result<FdSubscriber<T>, Error> {
        self.subscriber_builder().open_with_fd()
    }

    /// Settings for a subscriber, including those that only subscribers have.
    pub fn subscriber_builder(&self) -> SubscriberBuilder<T> {
        SubscriberBuilder(self.clone())
    }

    fn record_options(&self) -> Result<RecordOptions, Error> {
        let mut attributes = Attributes::default();
        for (name, value) in &self.attributes {
            attributes.insert(name, value)?;
        }
        Ok(RecordOptions {
            matching: self.matching,
            resends: self.dds.resends,
            liveliness: self.liveliness,
            is_alive_by_topic: self.is_alive_by_topic,
            lifespan: self.lifespan,
            attributes,
        })
    }

    fn spec(&self) -> Spec {
        Spec {
            topic: self.wire_topic(),
            dds: self.dds.clone(),
            shape: self.dynamic.as_ref().map_or(T::SHAPE, |dynamic_type| dynamic_type.shape()),
            publisher: self.publisher,
            subscriber: self.subscriber,
        }
    }

    /// Registers the schema of the type, which graphs show.
    fn describe(&self) -> Result<(), Error> {
        let schema = || match (&self.schema, &self.dynamic) {
            (Some(schema), _) => schema.clone(),
            (None, None) => Schema::of_layout(T::layout()),
            (None, Some(dynamic_type)) => Schema::of_layout(dynamic_type.layout().to_owned()),
        };
        // The bytes of a message say nothing of its fields.
        if self.schema.is_none() && matches!(self.dds.encoding, Encoding::Message(_)) {
            return Ok(());
        }
        self.node.inner.describe(self.wire_topic().type_hash, schema)
    }

    fn wire_topic(&self) -> myelin_shm::topic::Topic {
        let (type_name, type_hash) = match &self.dynamic {
            None => (T::type_name(), T::layout_hash()),
            Some(dynamic_type) => (dynamic_type.type_name().to_string(), dynamic_type.hash()),
        };
        let name = self.name.clone();
        let mut topic = match &self.dds.encoding {
            Encoding::Message(of) => myelin_shm::topic::Topic::of_messages(name, of),
            _ => myelin_shm::topic::Topic { name, type_name, type_hash },
        };
        // Endpoints compare the hash, not the name.
        topic.type_name = fitting(topic.type_name);
        topic
    }
}

/// A name that fits: a longer name keeps its beginning and its end, with its hash in between, so
/// that different names stay different.
pub(crate) fn fitting(name: String) -> String {
    if name.len() <= NAME_BYTES_MAX {
        return name;
    }
    let hash = LayoutHash::of_bytes(name.as_bytes());
    let head = &name[..name.floor_char_boundary(HEAD_BYTES)];
    let tail = &name[name.ceil_char_boundary(name.len() - TAIL_BYTES)..];
    format!("{head}..{hash:016x}..{tail}")
}

/// How many bytes of a name that is too long are kept of its beginning, and of its end.
const HEAD_BYTES: usize = 160;
const TAIL_BYTES: usize = NAME_BYTES_MAX - HEAD_BYTES - 20;

/// Settings for a publisher: those of its topic, and those that only publishers have. Made by
/// [`Topic::publisher_builder`].
///
/// ```
/// # let folder = tempfile::tempdir().unwrap();
/// # let node = myelin::Node::builder("doc").runtime_dir(folder.path()).open()?;
/// let topic = node.topic::<[u8]>("image").depth(4);
/// let publisher = topic.publisher_builder().memory_max(256 << 20).open()?;
/// let subscriber = topic.subscriber_builder().held_max(2).open()?;
/// # Ok::<(), myelin::Error>(())
/// ```
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `open`"]
pub struct PublisherBuilder<T: Payload + ?Sized>(Topic<T>);

impl<T: Payload + ?Sized> PublisherBuilder<T> {
    /// How many loans of more than 104 bytes it may have at once: 1 to 4,096, by default 8. One
    /// more fails with [`Error::TooManyLoans`].
    pub fn loans_max(mut self, loans: u32) -> Self {
        self.0.publisher.loans_max = loans;
        self
    }

    /// The largest payload, in bytes; by default 2⁴⁰ − 1.
    pub fn payload_bytes_max(mut self, bytes: u64) -> Self {
        self.0.publisher.payload_bytes_max = bytes;
        self
    }

    /// How much shared memory it may use for payloads, in bytes; by default half of the machine's
    /// memory. Memory is allocated as it is used: see `docs/reference/library.md`.
    pub fn memory_max(mut self, bytes: u64) -> Self {
        self.0.publisher.memory_max = bytes;
        self
    }

    /// Whether samples carry the time when they were published
    /// ([`Sample::published_at`](crate::Sample::published_at)). By default they do if
    /// `MYELIN_TIMESTAMPS` is 1. Otherwise they do not, because each publish would have to read the
    /// clock.
    pub fn timestamps(mut self, enabled: bool) -> Self {
        self.0.timestamps = Some(enabled);
        self
    }

    /// Offers that it publishes or [asserts its liveliness](Publisher::assert_liveliness) at least
    /// once in `lease`. Others see it, and a subscriber with [`Matching::RequestedOffered`] that
    /// requests a lease is matched only if the offered one is not longer. By default it offers none.
    pub fn liveliness(mut self, lease: Duration) -> Self {
        self.0.liveliness = Some(lease);
        self
    }

    /// Whether it publishes only to subscribers on this host, even on a node with a
    /// [`network`](crate::NodeBuilder::network). By default it also publishes to other hosts.
    pub fn this_host_only(mut self, only: bool) -> Self {
        self.0.this_host_only = only;
        self
    }

    /// Makes the publisher.
    ///
    /// # Errors
    /// As for [`Topic::publisher`].
    pub fn open(&self) -> Result<Publisher<T>, Error> {
        self.0.publisher()
    }
}

/// Settings for a subscriber: those of its topic, and those that only subscribers have. Made by
/// [`Topic::subscriber_builder`]; see [`PublisherBuilder`] for an example.
#[derive(Clone, Debug)]
#[must_use = "nothing happens before `open`"]
pub struct SubscriberBuilder<T: Payload + ?Sized>(Topic<T>);

impl<T: Payload + ?Sized> SubscriberBuilder<T> {
    /// How many samples of more than 104 bytes it may hold at once: 1 to 4,096, by default 16. One
    /// more fails with [`Error::TooManyHeld`].
    pub fn held_max(mut self, samples: u32) -> Self {
        self.0.subscriber.held_max = samples;
        self
    }

    /// How many publishers it may be matched with: 1 to 4,096, by default 16. Memory is allocated
    /// only for publishers that exist.
    pub fn publishers_max(mut self, publishers: u32) -> Self {
        self.0.subscriber.publishers_max = publishers;
        self
    }

    /// Matches only publishers of other nodes, not those of its own node.
    pub fn ignore_own_node(mut self, ignore: bool) -> Self {
        self.0.subscriber.ignore_own_node = ignore;
        self
    }

    /// How much shared memory samples from other hosts may use, in bytes; by default half of the
    /// machine's memory.
    pub fn memory_max(mut self, bytes: u64) -> Self {
        self.0.publisher.memory_max = bytes; // of the proxies of remote publishers
        self
    }

    /// Gives an [`Event::LivelinessLost`](crate::Event) for a publisher that has neither published
    /// nor called [`Publisher::assert_liveliness`] for `lease`. By default there is no lease. The
    /// end of a publisher's process is noticed at once in either case.
    pub fn liveliness(mut self, lease: Duration) -> Self {
        self.0.subscriber.liveliness = Some(lease);
        self
    }

    /// Makes the subscriber.
    ///
    /// # Errors
    /// As for [`Topic::publisher`].
    pub fn open(&self) -> Result<Subscriber<T>, Error> {
        self.0.subscriber()
    }

    /// Makes a subscriber with a file descriptor for an epoll loop. A publisher then makes a system
    /// call whenever the subscriber had run out of samples before.
    ///
    /// # Errors
    /// As for [`Topic::publisher`].
    pub fn open_with_fd(&self) -> Result<FdSubscriber<T>, Error> {
        let mut topic = self.0.clone();
        topic.subscriber.descriptor = true;
        topic.subscriber().map(FdSubscriber::new)
    }
}

impl Topic<[u8]> {
    /// Like [`dds_type`](Topic::dds_type), for samples that already are complete CDR messages:
    /// their first four bytes are the encapsulation header of RTPS (`00 01 00 00`: plain,
    /// little-endian), and the rest is serialised as the type `name` demands. On the same host,
    /// too, a sample is this message. Endpoints are matched by the type's name; other endpoints of
    /// the topic may have another type, as in DDS. The library does not look into a sample: it
    /// sends the bytes that were published.
    pub fn dds_cdr(mut self, name: &str) -> Self {
        self.dds.encoding = Encoding::Message(name.to_string());
        self
    }

    /// How the samples are to be read by programs that were not compiled with their type, such as
    /// `ros2msg` with the definition of a ROS 2 message. Other nodes find it in
    /// [`TypeInfo::schema`](crate::TypeInfo). The first schema of a type in a node counts; one of
    /// more than 64 KiB is not sent. By default samples are plain data, and a message has none.
    pub fn schema(mut self, encoding: &str, content: &[u8]) -> Self {
        self.schema = Some(Schema { encoding: encoding.into(), content: content.into() });
        self
    }
}

impl<T: Payload + ?Sized> Clone for Topic<T> {
    fn clone(&self) -> Self {
        let (node, name, dds) = (self.node.clone(), self.name.clone(), self.dds.clone());
        let (dynamic, attributes) = (self.dynamic.clone(), self.attributes.clone());
        Topic { node, name, dds, dynamic, attributes, schema: self.schema.clone(), ..*self }
    }
}

impl<T: Payload + ?Sized> std::fmt::Debug for Topic<T> {
    fn fmt(&self, to: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        to.debug_struct("Topic")
            .field("name", &self.name)
            .field("type", &self.wire_topic().type_name)
            .field("publisher", &self.publisher)
            .field("subscriber", &self.subscriber)
            .finish_non_exhaustive()
    }
}

/// Whether a publisher adds timestamps that does not say so itself.
fn timestamps_from(variable: Option<&OsStr>) -> Result<bool, Error> {
    match variable.map(OsStr::as_encoded_bytes) {
        None | Some(b"" | b"0") => Ok(false),
        Some(b"1") => Ok(true),
        Some(_) => Err(Error::Setting {
            topic: None,
            field: TIMESTAMPS_VARIABLE,
            value: format!("{:?}", variable.unwrap_or_default()),
            remedy: "set it to 1 for publishers that add timestamps, or to 0, or unset it",
        }),
    }
}

const TIMESTAMPS_VARIABLE: &str = "MYELIN_TIMESTAMPS";

/// Half of the machine's memory, in bytes.
fn memory_max() -> u64 {
    static BYTES: OnceLock<u64> = OnceLock::new();
    *BYTES.get_or_init(|| {
        let machine = rustix::system::sysinfo();
        // One factor is a `c_ulong`, the other an `unsigned int`; their product is the memory.
        machine.totalram as u64 / 2 * u64::from(machine.mem_unit)
    })
}

#[cfg(test)]
mod tests {
    use super::{NAME_BYTES_MAX, fitting, timestamps_from};

    #[test]
    fn timestamps_come_from_the_environment() {
        let of = |text: &str| timestamps_from(Some(text.as_ref())).map_err(|it| it.to_string());
        assert!(!timestamps_from(None).unwrap() && !of("").unwrap() && !of("0").unwrap());
        assert!(of("1").unwrap());
        let error = of("yes").unwrap_err();
        assert!(error.contains("MYELIN_TIMESTAMPS") && error.contains("yes"), "{error}");
    }

    #[test]
    fn a_long_name_is_shortened_and_stays_unique() {
        let of = |text: &str, times| fitting(text.repeat(times));
        assert_eq!(of("n", NAME_BYTES_MAX), "n".repeat(NAME_BYTES_MAX));
        assert_eq!(of("n", 256).len(), NAME_BYTES_MAX);
        assert_ne!(of("n", 256), of("n", 257));
        assert_eq!(of("n", 256), of("n", 256));
        assert!(of("grüß", 100).len() <= NAME_BYTES_MAX);
        let name = fitting(format!("{}/reply/7", "n".repeat(NAME_BYTES_MAX)));
        assert!(name.starts_with("nnn") && name.ends_with("n/reply/7"), "{name}");
        // Processes of other versions shorten the name in the same way.
        assert!(of("n", 256).contains("n..512dc65af22aa725..n"), "{}", of("n", 256));
    }

    #[test]
    fn the_default_memory_limit_is_about_half_of_the_memory() {
        let text = std::fs::read_to_string("/proc/meminfo").unwrap();
        let line = text.lines().find(|line| line.starts_with("MemTotal:")).unwrap();
        let total = 1024 * line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap();
        assert!(super::memory_max().abs_diff(total / 2) < total / 10);
    }
}
