//! Opens the ends of round trips and of streams.

use myelin_bench_kit::protocol::{Prepare, Reliability, Role, Workload};
use myelin_bench_kit::{Answerer, Clock, Error, Link, Receiver, RoundTrip, Stream};
use zenoh::Wait;
use zenoh::handlers::FifoChannel;
use zenoh::pubsub::Publisher;
use zenoh::qos::CongestionControl;

use crate::Variant;
use crate::inbox::{Dispatcher, Inbox, Source};
use crate::outbox::{Outbox, Pool};
use crate::peer::{Peer, failed, key};

/// Opens ping of a round trip.
pub fn open(prepare: &Prepare, variant: &Variant) -> Result<Box<dyn RoundTrip>, Error> {
    let peer = Peer::open(prepare, variant)?;
    let answers = peer
        .session
        .declare_subscriber(key(prepare, TO_PING, 0))
        .with(FifoChannel::new(prepare.depth.max(1) as usize))
        .wait()
        .map_err(|error| failed("declare a subscriber", error))?;
    let inbox = Inbox::new(&peer.session, answers);
    Ok(Box::new(Link::new(outbox(&peer, prepare, variant, TO_PONG)?, inbox)))
}

/// Pong of a round trip: answers in Zenoh's callback, like Zenoh's own `z_pong`.
pub fn open_answerer(prepare: &Prepare, variant: &Variant) -> Result<Answerer, Error> {
    let peer = Peer::open(prepare, variant)?;
    let dispatcher = Dispatcher::new(usize::MAX);
    let subscriber = dispatcher.subscriber(&peer.session, key(prepare, TO_PONG, 0))?;
    let publisher = Box::new(outbox(&peer, prepare, variant, TO_PING)?);
    let source = Source::new(&peer.session, vec![subscriber], dispatcher, None);
    Ok(Answerer { publisher, source: Box::new(source), clock: Clock::Monotonic })
}

/// Opens either end of a stream.
pub fn open_stream(prepare: &Prepare, variant: &Variant) -> Result<Stream, Error> {
    let peer = Peer::open(prepare, variant)?;
    if prepare.role == Role::Ping {
        return Ok(Stream::publisher(Box::new(outbox(&peer, prepare, variant, TO_PONG)?)));
    }
    let dispatcher = Dispatcher::new(match prepare.reliability {
        Reliability::BestEffort => prepare.depth.max(1) as usize,
        Reliability::Reliable => usize::MAX,
    });
    let subscriber = |topic| dispatcher.subscriber(&peer.session, key(prepare, TO_PONG, topic));
    let subscribers = (0..prepare.topics).map(subscriber).collect::<Result<_, Error>>()?;
    let presence = peer.matched(&[])?;
    let source = Source::new(&peer.session, subscribers, dispatcher.clone(), Some(presence));
    let receivers = vec![Receiver::Calls(Box::new(source))];
    Ok(Stream { publisher: None, receivers, clock: Clock::Monotonic })
}

/// The publishers of this process, matched.
fn outbox(
    peer: &Peer<'_>,
    prepare: &Prepare,
    variant: &Variant,
    direction: &str,
) -> Result<Outbox, Error> {
    let pool = variant.shared_memory.then(|| Pool::new(prepare)).transpose()?;
    let publishers = (0..prepare.topics).map(|topic| publisher(peer, prepare, direction, topic));
    let publishers = publishers.collect::<Result<Vec<_>, Error>>()?;
    let presence = peer.matched(&publishers)?;
    Ok(Outbox::new(&peer.session, publishers, pool, presence))
}

fn publisher(
    peer: &Peer<'_>,
    prepare: &Prepare,
    direction: &str,
    topic: u32,
) -> Result<Publisher<'static>, Error> {
    let may_wait =
        prepare.workload == Workload::Roundtrip || prepare.reliability == Reliability::Reliable;
    peer.session
        .declare_publisher(key(prepare, direction, topic))
        .congestion_control(match may_wait {
            true => CongestionControl::Block,
            false => CongestionControl::Drop,
        })
        .express(true)
        .wait()
        .map_err(|error| failed("declare a publisher", error))
}

const TO_PONG: &str = "to-pong";
const TO_PING: &str = "to-ping";
