//! Streams and frames: from process to process, and to a subscriber that waits in another thread of
//! the same process.

use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::{self, Prepare, Role, Streams, Topology};
use myelin_bench_kit::{Error, Receiver, Stream, message};
use myelin_shm::limits::{CONNECTIONS_MAX, SUBSCRIBERS_MAX};
use myelin_shm::topic::{Late, PublisherQos, Reliability, SubscriberQos, Topic};
use myelin_shm::waiting::wait::Wait;

use crate::link::{LoanPublisher, Taker};
use crate::topics::{PublishedTopics, TakenTopics};
use crate::{loans, node, topic, unmatched};

/// What streams can be.
pub fn offered(topology: Topology) -> Streams {
    let reliability = vec![protocol::Reliability::BestEffort, protocol::Reliability::Reliable];
    let alone = Streams { reliability, ..Streams::default() };
    if topology == Topology::OneProcess {
        return alone;
    }
    Streams {
        publishers_max: CONNECTIONS_MAX,
        subscribers_max: SUBSCRIBERS_MAX as u32,
        topics_max: TOPICS_MAX,
        ..alone
    }
}

/// Opens one role of a system between processes.
pub fn open(prepare: &Prepare, wait: Wait) -> Result<Stream, Error> {
    let (node, limit) = (node(prepare)?, Duration::from_nanos(prepare.match_timeout_ns));
    let end = Instant::now() + limit;
    let left = || end.saturating_duration_since(Instant::now());
    let topics = (0..prepare.topics).map(|index| topic_of(prepare, index));
    if prepare.role == Role::Ping {
        let qos = publisher_qos(prepare);
        let open = |topic| LoanPublisher::with(&node, topic, qos, loans(prepare));
        let mut publishers = topics.map(open).collect::<Result<Vec<_>, _>>()?;
        // In a thousand topics each has its turn once a second: the warm-up alone does not do it.
        let message_bytes = message::HEADER_BYTES + prepare.payload_bytes as usize;
        for publisher in &mut publishers {
            publisher.reserve(RESERVED, message_bytes)?;
        }
        let subscribers = prepare.subscribers as usize;
        if !publishers.iter().all(|publisher| publisher.wait_for_match(subscribers, left())) {
            return Err(unmatched(limit));
        }
        return Ok(match publishers.len() {
            1 => Stream::ping(Box::new(publishers.remove(0))),
            _ => Stream::ping(Box::new(PublishedTopics::new(publishers))),
        });
    }
    let qos = subscriber_qos(prepare);
    let takers = topics.map(|topic| Taker::with(&node, topic, qos, wait));
    let mut takers = takers.collect::<Result<Vec<_>, _>>()?;
    let publishers = prepare.publishers as usize;
    if !takers.iter().all(|taker| taker.wait_for_match(publishers, left())) {
        return Err(unmatched(limit));
    }
    Ok(match takers.len() {
        1 => Stream::pong(Box::new(takers.remove(0))),
        _ => Stream::pong(Box::new(TakenTopics::new(&node, takers, wait)?)),
    })
}

/// Opens both ends in one process.
pub fn open_in_one_process(prepare: &Prepare, wait: Wait) -> Result<Stream, Error> {
    let (node, limit) = (node(prepare)?, Duration::from_nanos(prepare.match_timeout_ns));
    let (to, qos) = (topic_of(prepare, 0), publisher_qos(prepare));
    let publisher = LoanPublisher::with(&node, to.clone(), qos, loans(prepare))?;
    let subscriber = Taker::with(&node, to, subscriber_qos(prepare), wait)?;
    if !publisher.wait_for_match(1, limit) || !subscriber.wait_for_match(1, limit) {
        return Err(unmatched(limit));
    }
    let receivers = vec![Receiver::Takes(Box::new(subscriber))];
    Ok(Stream::one_process(Box::new(publisher), receivers))
}

fn topic_of(prepare: &Prepare, index: u32) -> Topic {
    match index {
        0 => topic(prepare, "stream"),
        _ => topic(prepare, &format!("stream/{index}")),
    }
}

fn publisher_qos(prepare: &Prepare) -> PublisherQos {
    PublisherQos {
        depth: prepare.depth,
        reliability: reliability(prepare),
        block_max: Duration::from_nanos(prepare.reply_timeout_ns),
        late: Late::Fail,
        ..PublisherQos::default()
    }
}

fn subscriber_qos(prepare: &Prepare) -> SubscriberQos {
    let default = SubscriberQos::default();
    SubscriberQos {
        depth: prepare.depth,
        reliability: reliability(prepare),
        publishers_max: prepare.publishers.max(default.publishers_max),
        ..default
    }
}

fn reliability(prepare: &Prepare) -> Reliability {
    match prepare.reliability {
        protocol::Reliability::BestEffort => Reliability::BestEffort,
        protocol::Reliability::Reliable => Reliability::Reliable,
    }
}

/// One that is written, one that is read, one that has just been read.
const RESERVED: u32 = 3;
/// Tried with so many. The time to match grows with the square: 0.2 s for 100, 8 s for 1,000 in a
/// debug build on a busy machine.
const TOPICS_MAX: u32 = 1000;
