//! Streams and frames: from process to process, and to a subscriber that waits in another thread of
//! the same process.

use std::time::{Duration, Instant};

use myelin::{Node, Topic, Wait};
use myelin_bench_kit::protocol::{Prepare, Reliability, Role, Streams, Topology};
use myelin_bench_kit::{Error, Receiver, Stream, message};
use myelin_shm::limits::{CONNECTIONS_MAX, SUBSCRIBERS_MAX};
use myelin_shm::topic::SubscriberQos;

use crate::link::{LoanPublisher, Taker, said};
use crate::topics::{PublishedTopics, TakenTopics};
use crate::{loans, node, topic, unmatched};

/// What streams support.
pub fn offered(topology: Topology) -> Streams {
    let reliability = vec![Reliability::BestEffort, Reliability::Reliable];
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
    let topics = (0..prepare.topics).map(|index| topic_of(&node, prepare, index));
    if prepare.role == Role::Ping {
        let open = |topic: Topic<[u8]>| topic.publisher().map_err(said);
        let publishers = topics.map(open).collect::<Result<Vec<_>, _>>()?;
        // A publisher of a thousand topics is used once a second, so the warm-up does not reach all
        // of them.
        for (publisher, topic) in publishers.iter().zip(0..) {
            let message_bytes = message::HEADER_BYTES + prepare.payload_bytes_of(topic) as usize;
            publisher.reserve(RESERVED, message_bytes).map_err(said)?;
        }
        let subscribers = prepare.subscribers as usize;
        if !publishers.iter().all(|publisher| publisher.wait_for_match(subscribers, left())) {
            return Err(unmatched(limit));
        }
        let with_loans = |(publisher, topic)| LoanPublisher::new(publisher, loans(prepare, topic));
        let mut publishers: Vec<_> = publishers.into_iter().zip(0..).map(with_loans).collect();
        return Ok(match publishers.len() {
            1 => Stream::publisher(Box::new(publishers.remove(0))),
            _ => Stream::publisher(Box::new(PublishedTopics::new(publishers))),
        });
    }
    let open = |topic| subscriber(&topic, prepare);
    let subscribers = topics.map(open).collect::<Result<Vec<_>, _>>()?;
    let publishers = prepare.publishers as usize;
    if !subscribers.iter().all(|subscriber| subscriber.wait_for_match(publishers, left())) {
        return Err(unmatched(limit));
    }
    let take = |subscriber| Taker::new(subscriber, wait);
    let mut takers: Vec<_> = subscribers.into_iter().map(take).collect();
    Ok(match takers.len() {
        1 => Stream::subscriber(Box::new(takers.remove(0))),
        _ => Stream::subscriber(Box::new(TakenTopics::new(&node, takers, wait)?)),
    })
}

/// Opens both ends in one process.
pub fn open_in_one_process(prepare: &Prepare, wait: Wait) -> Result<Stream, Error> {
    let (node, limit) = (node(prepare)?, Duration::from_nanos(prepare.match_timeout_ns));
    let topic = topic_of(&node, prepare, 0);
    let publisher = topic.publisher().map_err(said)?;
    let subscriber = subscriber(&topic, prepare)?;
    if !publisher.wait_for_match(1, limit) || !subscriber.wait_for_match(1, limit) {
        return Err(unmatched(limit));
    }
    let receivers = vec![Receiver::Takes(Box::new(Taker::new(subscriber, wait)))];
    Ok(Stream::one_process(Box::new(LoanPublisher::new(publisher, loans(prepare, 0))), receivers))
}

fn topic_of(node: &Node, prepare: &Prepare, index: u32) -> Topic<[u8]> {
    let topic = match index {
        0 => topic(node, prepare, "stream"),
        _ => topic(node, prepare, &format!("stream/{index}")),
    };
    with_qos(topic, prepare)
}

/// A topic with the depth and the reliability of the scenario.
pub fn with_qos(topic: Topic<[u8]>, prepare: &Prepare) -> Topic<[u8]> {
    let topic = topic.depth(prepare.depth);
    match prepare.reliability {
        Reliability::BestEffort => topic.best_effort(),
        Reliability::Reliable => {
            topic.reliable_or_fail(Duration::from_nanos(prepare.reply_timeout_ns))
        }
    }
}

/// A subscriber for the run's number of publishers.
pub fn subscriber(
    topic: &Topic<[u8]>,
    prepare: &Prepare,
) -> Result<myelin::Subscriber<[u8]>, Error> {
    let usual = SubscriberQos::default().publishers_max;
    let builder = topic.subscriber_builder().publishers_max(prepare.publishers.max(usual));
    builder.open().map_err(said)
}

/// One sample being written, one being read, one just read.
const RESERVED: u32 = 3;
/// Tested with this number. The time to match grows with the square: 0.2 s for 100, 8 s for 1,000
/// in a debug build on a busy machine.
const TOPICS_MAX: u32 = 1000;
