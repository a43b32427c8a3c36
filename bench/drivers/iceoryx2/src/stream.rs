//! Opens one role of a stream: the one service from ping to pong, and ping's or pong's ports.

use std::rc::Rc;

use iceoryx2::port::update_connections::UpdateConnections;
use iceoryx2::prelude::ipc;
use iceoryx2::service::port_factory::event;
use myelin_bench_kit::protocol::{Prepare, Role, Wait};
use myelin_bench_kit::{Error, Stream, clock, message};

use crate::link::{
    CHUNK_OVERHEAD_BYTES, CHUNKS, DIRECTION_NAMES, LOANED, Topic, absent, await_match, event,
    failed, has_both_ends, has_both_event_ends, new_node, service_name, topic,
};
use crate::place::{self, Place};
use crate::ports::{Blocking, Inbox, Outbox, Polling};

/// Opens `prepare.role`; unless it polls, there is an event as well.
pub fn open(prepare: &Prepare, wait: Wait) -> Result<Stream, Error> {
    let until_ns = clock::monotonic_ns().saturating_add(prepare.match_timeout_ns);
    let message_bytes = message::HEADER_BYTES + prepare.payload_bytes as usize;
    place::check_room(CHUNKS * (message_bytes as u64 + CHUNK_OVERHEAD_BYTES))?;
    let place = Rc::new(Place::enter(&prepare.run)?);
    let services = Services::new(prepare, wait, &place)?;
    match prepare.role {
        Role::Ping => open_ping(services, prepare, message_bytes, place, until_ns),
        _ => open_pong(services, prepare, &place, until_ns),
    }
}

fn open_ping(
    services: Services,
    prepare: &Prepare,
    message_bytes: usize,
    place: Rc<Place>,
    until_ns: u64,
) -> Result<Stream, Error> {
    let gate = place.gate()?;
    let publisher = services.topic.publisher_builder().initial_max_slice_len(message_bytes);
    let publisher = publisher.max_loaned_samples(LOANED).create();
    let publisher = publisher.map_err(|error| failed("its publisher", error))?;
    let notifier = services.event.as_ref().map(|event| event.notifier_builder().create());
    let notifier = notifier.transpose().map_err(|error| failed("its notifier", error))?;
    drop(gate);
    await_match(prepare, until_ns, || services.is_matched())?;
    publisher.update_connections().map_err(|error| failed("the connection", error))?;
    let other = absent(prepare.role);
    Ok(Stream::ping(Box::new(Outbox::new(publisher, notifier, other, place))))
}

fn open_pong(
    services: Services,
    prepare: &Prepare,
    place: &Rc<Place>,
    until_ns: u64,
) -> Result<Stream, Error> {
    let gate = place.gate()?;
    let subscriber = services.topic.subscriber_builder().create();
    let subscriber = subscriber.map_err(|error| failed("its subscriber", error))?;
    let listener = services.event.as_ref().map(|event| event.listener_builder().create());
    let listener = listener.transpose().map_err(|error| failed("its listener", error))?;
    drop(gate);
    await_match(prepare, until_ns, || services.is_matched())?;
    subscriber.update_connections().map_err(|error| failed("the connection", error))?;
    let inbox = Inbox::new(subscriber, place);
    Ok(match listener {
        None => Stream::pong(Box::new(Polling::new(inbox))),
        Some(listener) => Stream::pong(Box::new(Blocking::new(inbox, listener))),
    })
}

/// What both roles open.
struct Services {
    topic: Topic,
    event: Option<event::PortFactory<ipc::Service>>,
}

impl Services {
    fn new(prepare: &Prepare, wait: Wait, place: &Place) -> Result<Self, Error> {
        // Ping and pong one after the other, as for a link.
        let _gate = place.gate()?;
        let node = new_node(place)?;
        let name = service_name(prepare, DIRECTION_NAMES[0])?;
        let event = (wait != Wait::Poll).then(|| event(&node, &name)).transpose()?;
        Ok(Services { topic: topic(&node, &name)?, event })
    }

    /// Whether the services count both ends.
    fn is_matched(&self) -> bool {
        has_both_ends(&self.topic) && self.event.as_ref().is_none_or(has_both_event_ends)
    }
}
