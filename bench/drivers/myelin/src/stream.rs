//! Streams and frames: from process to process, and to a subscriber that waits in another thread of
//! the same process.

use std::time::Duration;

use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_bench_kit::{Error, Receiver, Stream};
use myelin_shm::wait::Wait;

use crate::link::{LoanPublisher, Taker};
use crate::{loans, node, topic, unmatched};

/// Opens one role of a system between processes.
pub fn open(prepare: &Prepare, wait: Wait) -> Result<Stream, Error> {
    let (node, limit) = (node(prepare)?, Duration::from_nanos(prepare.match_timeout_ns));
    if prepare.role == Role::Ping {
        let publisher = LoanPublisher::open(&node, topic(prepare, "stream"), loans(prepare))?;
        return match publisher.wait_for_match(1, limit) {
            true => Ok(Stream::ping(Box::new(publisher))),
            false => Err(unmatched(limit)),
        };
    }
    let subscriber = Taker::open(&node, topic(prepare, "stream"), wait)?;
    match subscriber.wait_for_match(limit) {
        true => Ok(Stream::pong(Box::new(subscriber))),
        false => Err(unmatched(limit)),
    }
}

/// Opens both ends in one process.
pub fn open_in_one_process(prepare: &Prepare, wait: Wait) -> Result<Stream, Error> {
    let (node, limit) = (node(prepare)?, Duration::from_nanos(prepare.match_timeout_ns));
    let publisher = LoanPublisher::open(&node, topic(prepare, "stream"), loans(prepare))?;
    let subscriber = Taker::open(&node, topic(prepare, "stream"), wait)?;
    if !publisher.wait_for_match(1, limit) || !subscriber.wait_for_match(limit) {
        return Err(unmatched(limit));
    }
    let receivers = vec![Receiver::Takes(Box::new(subscriber))];
    Ok(Stream::one_process(Box::new(publisher), receivers))
}
