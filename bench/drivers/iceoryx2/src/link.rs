//! Opens one role: node, services, ports; returns when the other role's ports exist, too.

use std::fmt::Debug;
use std::rc::Rc;
use std::time::Duration;

use iceoryx2::port::listener::Listener;
use iceoryx2::port::notifier::Notifier;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::subscriber::Subscriber;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::{Node, NodeBuilder, PortFactory, ServiceName, SignalHandlingMode, ipc};
use iceoryx2::service::port_factory::{event, publish_subscribe};
use myelin_bench_kit::protocol::{Prepare, Role, Wait};
use myelin_bench_kit::{Error, Link, RoundTrip, clock, message};

use crate::place::{self, Place};
use crate::ports::{Blocking, Inbox, Outbox, Polling};

/// Opens `prepare.role`; with [`Wait::Block`] there is also an event service for each direction.
pub fn open(prepare: &Prepare, wait: Wait) -> Result<Box<dyn RoundTrip>, Error> {
    let until_ns = clock::monotonic_ns().saturating_add(prepare.match_timeout_ns);
    let message_bytes = message::HEADER_BYTES + prepare.payload_bytes as usize;
    let chunks = DIRECTIONS * Shape::ROUNDTRIP.chunks();
    place::check_room(chunks * (message_bytes as u64 + CHUNK_OVERHEAD_BYTES))?;
    let place = Rc::new(Place::enter(&prepare.run)?);
    let Some(opened) = Opened::new(prepare, wait, message_bytes, &place)? else {
        return Err(Error::new(format!("iceoryx2 has no way to wait by {wait:?}")));
    };
    await_match(prepare, until_ns, || opened.is_matched())?;
    opened.connect()?;
    Ok(opened.into_link(place, absent(prepare.role)))
}

/// Everything of one role. The first service of a direction is that from ping to pong.
struct Opened {
    topics: [Topic; 2],
    events: Option<[event::PortFactory<ipc::Service>; 2]>,
    publisher: Publisher<ipc::Service, [u8], ()>,
    subscriber: Subscriber<ipc::Service, [u8], ()>,
    notifier: Option<Notifier<ipc::Service>>,
    listener: Option<Listener<ipc::Service>>,
}

/// The publish-subscribe service of one direction.
pub type Topic = publish_subscribe::PortFactory<ipc::Service, [u8], ()>;

impl Opened {
    /// `None` for a wait that iceoryx2 does not have.
    fn new(
        prepare: &Prepare,
        wait: Wait,
        message_bytes: usize,
        place: &Place,
    ) -> Result<Option<Self>, Error> {
        let has_events = match wait {
            Wait::Poll => false,
            Wait::Block => true,
            _ => return Ok(None),
        };
        // One role at a time: two that create the same service at the same time may get errors.
        let _gate = place.gate()?;
        let node = new_node(place)?;
        let (outgoing, incoming) = if prepare.role == Role::Ping { (0, 1) } else { (1, 0) };
        let [to_pong, to_ping] = DIRECTION_NAMES.map(|direction| service_name(prepare, direction));
        let (to_pong, to_ping) = (to_pong?, to_ping?);
        let shape = &Shape::ROUNDTRIP;
        let topics = [topic(&node, &to_pong, shape)?, topic(&node, &to_ping, shape)?];
        // The subscriber first: when the other side finds our publisher, it finds our subscriber,
        // too.
        let subscriber = topics[incoming]
            .subscriber_builder()
            .create()
            .map_err(|error| failed("its subscriber", error))?;
        let mut opened = (None, None, None);
        if has_events {
            let events = [event(&node, &to_pong, shape)?, event(&node, &to_ping, shape)?];
            let listener = events[incoming].listener_builder().create();
            opened.0 = Some(listener.map_err(|error| failed("its listener", error))?);
            let notifier = events[outgoing].notifier_builder().create();
            opened.1 = Some(notifier.map_err(|error| failed("its notifier", error))?);
            opened.2 = Some(events);
        }
        let publisher = topics[outgoing]
            .publisher_builder()
            .initial_max_slice_len(message_bytes)
            .max_loaned_samples(LOANED)
            .create()
            .map_err(|error| failed("its publisher", error))?;
        let (listener, notifier, events) = opened;
        Ok(Some(Opened { topics, events, publisher, subscriber, notifier, listener }))
    }

    /// Whether the services count both ends of both directions.
    fn is_matched(&self) -> bool {
        let (shape, mut events) = (&Shape::ROUNDTRIP, self.events.iter().flatten());
        self.topics.iter().all(|topic| shape.has_ends(topic))
            && events.all(|event| shape.has_event_ends(event))
    }

    /// iceoryx2 connects ports at their next use. This does it before the first message.
    fn connect(&self) -> Result<(), Error> {
        let connect = || -> Result<(), _> {
            self.publisher.update_connections()?;
            self.subscriber.update_connections()
        };
        connect().map_err(|error| failed("the connection", error))
    }

    fn into_link(self, place: Rc<Place>, other: &'static str) -> Box<dyn RoundTrip> {
        let inbox = Inbox::new(vec![self.subscriber], &place);
        let outbox = Outbox::new(vec![self.publisher], self.notifier, other, place);
        match self.listener {
            None => Box::new(Link::new(outbox, Polling::new(inbox))),
            Some(listener) => Box::new(Link::new(outbox, Blocking::new(inbox, listener))),
        }
    }
}

/// A node with its files in `place`.
pub fn new_node(place: &Place) -> Result<Node<ipc::Service>, Error> {
    NodeBuilder::new()
        .config(&place.config()?)
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create::<ipc::Service>()
        .map_err(|error| failed("its node", error))
}

/// Waits until both ends exist, at most until the clock reads `until_ns`.
pub fn await_match(
    prepare: &Prepare,
    until_ns: u64,
    is_matched: impl Fn() -> bool,
) -> Result<(), Error> {
    while !is_matched() {
        if clock::monotonic_ns() >= until_ns {
            return Err(timeout(prepare));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
    Ok(())
}

/// The number of ends of a topic, and how much it keeps for a slow subscriber.
#[derive(Clone, Copy, Debug)]
pub struct Shape {
    /// Publishers of a topic.
    pub publishers: usize,
    /// Subscribers of a topic.
    pub subscribers: usize,
    /// Topics that share an event service.
    pub topics: usize,
    /// Length of a subscriber's queue.
    pub depth: usize,
    /// Whether the oldest message is dropped if the queue is full.
    pub overflows: bool,
}

impl Shape {
    /// For a direction of a round trip: one publisher, one subscriber, and the smallest numbers
    /// that suffice. Safe overflow stays on, which is iceoryx2's default. With one message in
    /// flight nothing overflows, and without it a publisher would wait for a reader that has died.
    pub const ROUNDTRIP: Shape =
        Shape { publishers: 1, subscribers: 1, topics: 1, depth: BUFFERED, overflows: true };

    /// Whether a topic has all its publishers and subscribers.
    pub fn has_ends(&self, topic: &Topic) -> bool {
        let ports = topic.dynamic_config();
        ports.number_of_publishers() == self.publishers
            && ports.number_of_subscribers() == self.subscribers
    }

    /// Whether an event service has all its notifiers and listeners.
    pub fn has_event_ends(&self, event: &event::PortFactory<ipc::Service>) -> bool {
        let ports = event.dynamic_config();
        ports.number_of_notifiers() == self.publishers
            && ports.number_of_listeners() == self.subscribers
    }

    /// Number of messages for which iceoryx2 reserves memory, for each publisher of a topic.
    pub fn chunks(&self) -> u64 {
        self.subscribers as u64 * (self.depth + BORROWED) as u64 + LOANED as u64
    }
}

/// The error if the other role does not come.
fn timeout(prepare: &Prepare) -> Error {
    let who = absent(prepare.role);
    let seconds = prepare.match_timeout_ns as f64 * 1e-9;
    Error::new(format!("{who} did not connect within {seconds} s"))
        .remedy(format!("see {who}'s log in the results folder"))
}

/// A topic with this shape.
pub fn topic(node: &Node<ipc::Service>, name: &ServiceName, shape: &Shape) -> Result<Topic, Error> {
    node.service_builder(name)
        .publish_subscribe::<[u8]>()
        .max_publishers(shape.publishers)
        .max_subscribers(shape.subscribers)
        .max_nodes(shape.publishers + shape.subscribers)
        .subscriber_max_buffer_size(shape.depth)
        .subscriber_max_borrowed_samples(BORROWED)
        .history_size(0)
        .enable_safe_overflow(shape.overflows)
        .open_or_create()
        .map_err(|error| failed("a publish-subscribe service", error))
}

/// An event service for topics with this shape, with an event for each.
pub fn event(
    node: &Node<ipc::Service>,
    name: &ServiceName,
    shape: &Shape,
) -> Result<event::PortFactory<ipc::Service>, Error> {
    node.service_builder(name)
        .event()
        .max_notifiers(shape.publishers)
        .max_listeners(shape.subscribers)
        .max_nodes(shape.publishers + shape.subscribers)
        .event_id_max_value(shape.topics - 1)
        .open_or_create()
        .map_err(|error| failed("an event service", error))
}

/// The name of a direction's services.
pub fn service_name(prepare: &Prepare, direction: &str) -> Result<ServiceName, Error> {
    let name = format!("{}/{}/{direction}", prepare.system, prepare.run);
    ServiceName::new(&name).map_err(|error| failed("a service's name", error))
}

/// The name of the other role.
pub fn absent(role: Role) -> &'static str {
    if role == Role::Ping { "pong" } else { "ping" }
}

/// The error if iceoryx2 refuses a call.
pub fn failed(what: &str, error: impl Debug) -> Error {
    Error::new(format!("iceoryx2 could not create {what}: {error:?}"))
        .remedy("do two runs have the same name? is there space left in /tmp and /dev/shm?")
}

/// From ping to pong first.
pub const DIRECTION_NAMES: [&str; 2] = ["ping-to-pong", "pong-to-ping"];
const DIRECTIONS: u64 = 2;
/// Length of a subscriber's queue.
const BUFFERED: usize = 2;
/// Messages that a subscriber holds: the kit releases one before it takes the next.
const BORROWED: usize = 1;
/// Messages that a publisher holds.
pub const LOANED: usize = 1;
/// More than iceoryx2's header and alignment take.
pub const CHUNK_OVERHEAD_BYTES: u64 = 256;
/// Pause between two checks whether the other role has come.
const LOOK_AGAIN: Duration = Duration::from_micros(200);
