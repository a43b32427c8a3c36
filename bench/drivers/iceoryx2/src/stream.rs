//! Opens one role of a stream: a service for each topic from ping to pong, and ping's or pong's
//! ports. Best effort is iceoryx2's safe overflow: the oldest sample of a full queue is dropped.
//! Reliable is a queue that does not overflow and a publisher that retries until there is room. It
//! gives up if a subscriber takes nothing for the reply timeout.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::port::{BackpressureAction, publisher, subscriber};
use iceoryx2::prelude::{BackpressureStrategy, ipc};
use iceoryx2::service::port_factory::event;
use myelin_bench_kit::protocol::{Prepare, Reliability, Role, Wait};
use myelin_bench_kit::{Error, Stream, clock, message};

use crate::link::{
    CHUNK_OVERHEAD_BYTES, DIRECTION_NAMES, LOANED, Shape, Topic, absent, await_match, event,
    failed, new_node, service_name, topic,
};
use crate::place::{self, Place};
use crate::ports::{Blocking, Inbox, Outbox, Polling};

/// Opens `prepare.role`; unless it polls, there is also an event service.
pub fn open(prepare: &Prepare, wait: Wait) -> Result<Stream, Error> {
    let until_ns = clock::monotonic_ns().saturating_add(prepare.match_timeout_ns);
    let shape = shape(prepare);
    let chunk_bytes = |topic| message_bytes(prepare, topic) as u64 + CHUNK_OVERHEAD_BYTES;
    let chunks_bytes: u64 = (0..prepare.topics).map(chunk_bytes).fold(0, u64::saturating_add);
    let chunks = u64::from(prepare.publishers) * shape.chunks();
    place::check_room(chunks.saturating_mul(chunks_bytes))?;
    let place = Rc::new(Place::enter(&prepare.run)?);
    let services = Services::new(prepare, wait, &place, shape)?;
    match prepare.role {
        Role::Ping => open_ping(services, prepare, place, until_ns),
        _ => open_pong(services, prepare, &place, until_ns),
    }
}

/// Bytes of the largest message of `topic`.
fn message_bytes(prepare: &Prepare, topic: u32) -> usize {
    message::HEADER_BYTES + prepare.payload_bytes_of(topic) as usize
}

fn shape(prepare: &Prepare) -> Shape {
    Shape {
        publishers: prepare.publishers as usize,
        subscribers: prepare.subscribers as usize,
        topics: prepare.topics as usize,
        depth: prepare.depth as usize,
        overflows: prepare.reliability == Reliability::BestEffort,
    }
}

fn open_ping(
    services: Services,
    prepare: &Prepare,
    place: Rc<Place>,
    until_ns: u64,
) -> Result<Stream, Error> {
    let gate = place.gate()?;
    let patience = Duration::from_nanos(prepare.reply_timeout_ns);
    let publisher = |(topic, index)| {
        let bytes: usize = message_bytes(prepare, index);
        new_publisher(topic, bytes, patience)
    };
    let publishers: Vec<_> =
        services.topics.iter().zip(0..).map(publisher).collect::<Result<_, _>>()?;
    let notifier = services.event.as_ref().map(|event| event.notifier_builder().create());
    let notifier = notifier.transpose().map_err(|error| failed("its notifier", error))?;
    drop(gate);
    services.await_match(prepare, until_ns)?;
    for publisher in &publishers {
        publisher.update_connections().map_err(|error| failed("the connection", error))?;
    }
    let other = absent(prepare.role);
    Ok(Stream::ping(Box::new(Outbox::new(publishers, notifier, other, place))))
}

fn new_publisher(
    topic: &Topic,
    message_bytes: usize,
    patience: Duration,
) -> Result<publisher::Publisher<ipc::Service, [u8], ()>, Error> {
    topic
        .publisher_builder()
        .initial_max_slice_len(message_bytes)
        .max_loaned_samples(LOANED)
        // Both only affect a service without safe overflow.
        .backpressure_strategy(BackpressureStrategy::RetryUntilDelivered)
        .set_backpressure_handler(move |full| match full.elapsed_time < patience {
            true => BackpressureAction::Retry,
            false => BackpressureAction::DiscardDataAndFail,
        })
        .create()
        .map_err(|error| failed("a publisher", error))
}

fn open_pong(
    services: Services,
    prepare: &Prepare,
    place: &Rc<Place>,
    until_ns: u64,
) -> Result<Stream, Error> {
    let gate = place.gate()?;
    let subscriber = |topic: &Topic| topic.subscriber_builder().create();
    let subscribers: Result<Vec<_>, _> = services.topics.iter().map(subscriber).collect();
    let subscribers: Vec<subscriber::Subscriber<_, _, _>> =
        subscribers.map_err(|error| failed("a subscriber", error))?;
    let listener = services.event.as_ref().map(|event| event.listener_builder().create());
    let listener = listener.transpose().map_err(|error| failed("its listener", error))?;
    drop(gate);
    services.await_match(prepare, until_ns)?;
    for subscriber in &subscribers {
        subscriber.update_connections().map_err(|error| failed("the connection", error))?;
    }
    let inbox = Inbox::new(subscribers, place);
    Ok(match listener {
        None => Stream::pong(Box::new(Polling::new(inbox))),
        Some(listener) => Stream::pong(Box::new(Blocking::new(inbox, listener))),
    })
}

/// The services that both roles open.
struct Services {
    topics: Vec<Topic>,
    event: Option<event::PortFactory<ipc::Service>>,
    shape: Shape,
}

impl Services {
    fn new(prepare: &Prepare, wait: Wait, place: &Place, shape: Shape) -> Result<Self, Error> {
        // One process after the other, as for a link.
        let _gate = place.gate()?;
        let node = new_node(place)?;
        let name = service_name(prepare, DIRECTION_NAMES[0])?;
        let event = (wait != Wait::Poll).then(|| event(&node, &name, &shape)).transpose()?;
        let new_topic = |index: u32| {
            let name = match index {
                0 => name,
                _ => service_name(prepare, &format!("{}/{index}", DIRECTION_NAMES[0]))?,
            };
            topic(&node, &name, &shape)
        };
        let topics = (0..prepare.topics).map(new_topic).collect::<Result<_, _>>()?;
        Ok(Services { topics, event, shape })
    }

    /// Waits until the services count all ends.
    fn await_match(&self, prepare: &Prepare, until_ns: u64) -> Result<(), Error> {
        // Earlier services are complete and not checked again.
        let next = Cell::new(0);
        await_match(prepare, until_ns, || {
            while self.topics.get(next.get()).is_some_and(|topic| self.shape.has_ends(topic)) {
                next.set(next.get() + 1);
            }
            let mut events = self.event.iter();
            next.get() == self.topics.len() && events.all(|event| self.shape.has_event_ends(event))
        })
    }
}
