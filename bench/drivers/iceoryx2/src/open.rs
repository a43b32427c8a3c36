//! Opens one role: node, services, ports; returns when the other side's ports exist, too. A round trip has
//! a service for each direction; a stream has one for each topic, from ping to pong. Unless the subscriber
//! polls, there is an event service for each direction.

use std::fmt::Debug;
use std::rc::Rc;
use std::time::Duration;

use iceoryx2::port::BackpressureAction;
use iceoryx2::port::listener::Listener;
use iceoryx2::port::publisher::Publisher;
use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::{
    BackpressureStrategy, Node, NodeBuilder, PortFactory, ServiceName, SignalHandlingMode, ipc,
};
use iceoryx2::service::port_factory::{event, publish_subscribe};
use myelin_bench_kit::protocol::{Prepare, Reliability, Role, Wait};
use myelin_bench_kit::{Error, clock, message};

use crate::place::{self, Place};
use crate::ports::{Inbox, Outbox};

/// What a role has opened.
pub struct Ports {
    /// If it publishes.
    pub outbox: Option<Outbox>,
    /// If it takes; with the listener that wakes it.
    pub inbox: Option<(Inbox, Option<Listener<ipc::Service>>)>,
}

/// Opens the role of `prepare`.
pub fn open(prepare: &Prepare, wait: Wait) -> Result<Ports, Error> {
    let until_ns = prepare.match_until_ns();
    let shape = Shape::of(prepare);
    place::check_room(shape.bytes(prepare))?;
    let place = Rc::new(Place::enter(&prepare.run)?);
    // One process after the other: two that create the same service at the same time may get errors.
    let gate = place.gate()?;
    let node = NodeBuilder::new()
        .config(&place.config()?)
        .signal_handling_mode(SignalHandlingMode::Disabled)
        .create::<ipc::Service>()
        .map_err(|error| failed("its node", error))?;
    let has_events = wait != Wait::Poll;
    let directions: Vec<_> = DIRECTIONS[..shape.directions]
        .iter()
        .map(|name| Direction::new(&node, prepare, name, &shape, has_events))
        .collect::<Result<_, _>>()?;
    let (outgoing, incoming) = match prepare.role {
        Role::Ping => (0, shape.directions - 1),
        _ => (shape.directions - 1, 0),
    };
    // The subscriber first: when the other side finds our publisher, it finds our subscriber, too.
    let (mut subscribers, mut listener) = (Vec::new(), None);
    if prepare.subscribes() {
        for topic in &directions[incoming].topics {
            let subscriber = topic.subscriber_builder().create();
            subscribers.push(subscriber.map_err(|error| failed("a subscriber", error))?);
        }
        let new = directions[incoming].event.as_ref().map(|it| it.listener_builder().create());
        listener = new.transpose().map_err(|error| failed("its listener", error))?;
    }
    let (mut publishers, mut notifier) = (Vec::new(), None);
    if prepare.publishes() {
        let new = directions[outgoing].event.as_ref().map(|it| it.notifier_builder().create());
        notifier = new.transpose().map_err(|error| failed("its notifier", error))?;
        for (topic, index) in directions[outgoing].topics.iter().zip(0..) {
            publishers.push(publisher(topic, prepare, index)?);
        }
    }
    drop(gate);
    await_match(&directions, &shape, prepare, until_ns)?;
    // iceoryx2 connects ports at their next use. This does it before the first message.
    let connect = || -> Result<(), _> {
        publishers.iter().try_for_each(UpdateConnections::update_connections)?;
        subscribers.iter().try_for_each(UpdateConnections::update_connections)
    };
    connect().map_err(|error| failed("the connection", error))?;
    let inbox = prepare.subscribes().then(|| (Inbox::new(subscribers, &place), listener));
    let other = absent(prepare.role);
    let outbox = prepare.publishes().then(|| Outbox::new(publishers, notifier, other, place));
    Ok(Ports { outbox, inbox })
}

/// A publisher of topic `index`. A reliable one of a stream retries until there is room, and gives up if a
/// subscriber takes nothing for the reply timeout.
fn publisher(
    topic: &Topic,
    prepare: &Prepare,
    index: u32,
) -> Result<Publisher<ipc::Service, [u8], ()>, Error> {
    let mut builder = topic
        .publisher_builder()
        .initial_max_slice_len(message_bytes(prepare, index))
        .max_loaned_samples(LOANED);
    if prepare.workload.is_one_way() {
        let patience = Duration::from_nanos(prepare.reply_timeout_ns);
        // Both only affect a service without safe overflow.
        builder = builder
            .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
            .set_backpressure_handler(move |full| match full.elapsed_time < patience {
                true => BackpressureAction::Retry,
                false => BackpressureAction::DiscardDataAndFail,
            });
    }
    builder.create().map_err(|error| failed("a publisher", error))
}

/// Bytes of the largest message of `topic`.
fn message_bytes(prepare: &Prepare, topic: u32) -> usize {
    message::HEADER_BYTES + prepare.payload_bytes_of(topic) as usize
}

type Topic = publish_subscribe::PortFactory<ipc::Service, [u8], ()>;

/// The services of a direction. All its topics share one event service, with an event for each.
struct Direction {
    topics: Vec<Topic>,
    event: Option<event::PortFactory<ipc::Service>>,
}

impl Direction {
    fn new(
        node: &Node<ipc::Service>,
        prepare: &Prepare,
        direction: &str,
        shape: &Shape,
        has_events: bool,
    ) -> Result<Self, Error> {
        let name = |suffix: String| {
            let name = format!("{}/{}/{direction}{suffix}", prepare.system, prepare.run);
            ServiceName::new(&name).map_err(|error| failed("a service's name", error))
        };
        let event = || {
            node.service_builder(&name(String::new())?)
                .event()
                .max_notifiers(shape.publishers)
                .max_listeners(shape.subscribers)
                .max_nodes(shape.publishers + shape.subscribers)
                .event_id_max_value(shape.topics as usize - 1)
                .open_or_create()
                .map_err(|error| failed("an event service", error))
        };
        let topic = |index: u32| {
            node.service_builder(&name(if index == 0 {
                String::new()
            } else {
                format!("/{index}")
            })?)
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
        };
        let topics = (0..shape.topics).map(topic).collect::<Result<_, _>>()?;
        Ok(Direction { topics, event: has_events.then(event).transpose()? })
    }
}

/// Waits until the services count all ends, at most until the clock reads `until_ns`.
fn await_match(
    directions: &[Direction],
    shape: &Shape,
    prepare: &Prepare,
    until_ns: u64,
) -> Result<(), Error> {
    // Earlier services are complete and not checked again.
    let mut topics = directions.iter().flat_map(|it| &it.topics).peekable();
    let mut events = directions.iter().flat_map(|it| &it.event).peekable();
    loop {
        while topics.next_if(|topic| shape.has_ends(topic)).is_some() {}
        while events.next_if(|event| shape.has_event_ends(event)).is_some() {}
        if topics.peek().is_none() && events.peek().is_none() {
            return Ok(());
        }
        if clock::monotonic_ns() >= until_ns {
            let (who, seconds) = (absent(prepare.role), prepare.match_timeout_ns as f64 * 1e-9);
            return Err(Error::new(format!("{who} did not connect within {seconds} s"))
                .remedy(format!("see {who}'s log in the results folder")));
        }
        std::thread::sleep(LOOK_AGAIN);
    }
}

/// The number of ends of a topic, and how much it keeps for a slow subscriber.
struct Shape {
    directions: usize,
    topics: u32,
    publishers: usize,
    subscribers: usize,
    /// Length of a subscriber's queue.
    depth: usize,
    /// Whether the oldest message is dropped if the queue is full: iceoryx2's safe overflow, its default.
    overflows: bool,
}

impl Shape {
    fn of(prepare: &Prepare) -> Self {
        if prepare.workload.is_one_way() {
            return Shape {
                directions: 1,
                topics: prepare.topics,
                publishers: prepare.publishers as usize,
                subscribers: prepare.subscribers as usize,
                depth: prepare.depth as usize,
                overflows: prepare.reliability == Reliability::BestEffort,
            };
        }
        // With one message in flight nothing overflows, and without safe overflow a publisher would wait for
        // a reader that has died.
        let (publishers, subscribers, depth) = (1, 1, ROUND_TRIP_DEPTH);
        Shape { directions: 2, topics: 1, publishers, subscribers, depth, overflows: true }
    }

    fn has_ends(&self, topic: &Topic) -> bool {
        let ports = topic.dynamic_config();
        ports.number_of_publishers() == self.publishers
            && ports.number_of_subscribers() == self.subscribers
    }

    fn has_event_ends(&self, event: &event::PortFactory<ipc::Service>) -> bool {
        let ports = event.dynamic_config();
        ports.number_of_notifiers() == self.publishers
            && ports.number_of_listeners() == self.subscribers
    }

    /// Shared memory that iceoryx2 reserves for the messages of a run.
    fn bytes(&self, prepare: &Prepare) -> u64 {
        let chunks = self.subscribers as u64 * (self.depth + BORROWED) as u64 + LOANED as u64;
        let chunks = chunks.saturating_mul((self.directions * self.publishers) as u64);
        let bytes = |topic| message_bytes(prepare, topic) as u64 + CHUNK_OVERHEAD_BYTES;
        let of_each = (0..self.topics).map(bytes).fold(0, u64::saturating_add);
        chunks.saturating_mul(of_each)
    }
}

/// The name of the other role.
fn absent(role: Role) -> &'static str {
    if role == Role::Ping { "pong" } else { "ping" }
}

/// The error if iceoryx2 refuses a call.
fn failed(what: &str, error: impl Debug) -> Error {
    Error::new(format!("iceoryx2 could not create {what}: {error:?}"))
        .remedy("do two runs have the same name? is there space left in /tmp and /dev/shm?")
}

const DIRECTIONS: [&str; 2] = ["ping-to-pong", "pong-to-ping"];
/// Length of a subscriber's queue in round trips.
const ROUND_TRIP_DEPTH: usize = 2;
/// Messages that a subscriber holds: the kit releases one before it takes the next.
const BORROWED: usize = 1;
/// Messages that a publisher holds.
const LOANED: usize = 1;
/// More than iceoryx2's header and alignment take.
const CHUNK_OVERHEAD_BYTES: u64 = 256;
/// Pause between two checks whether the other role has come.
const LOOK_AGAIN: Duration = Duration::from_micros(200);
