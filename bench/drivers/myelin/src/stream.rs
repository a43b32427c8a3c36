//! Streams and frames: from process to process, and to a subscriber that waits in another thread of
//! the same process.

use std::time::Duration;

use myelin_bench_kit::protocol::{self, Prepare, Role, System, Topology, Transport, Workload};
use myelin_bench_kit::{Error, Receiver, Stream};
use myelin_shm::wait::Wait;

use crate::link::{LoanPublisher, Taker};
use crate::{loans, node, topic, unmatched};

/// The system whose both ends are in one process.
pub const LOCAL_WAIT: &str = "myelin.local-wait";

/// What it is.
pub fn local_wait() -> System {
    System {
        name: LOCAL_WAIT.into(),
        about: "Myelin in one process; a thread spins while that pays, then sleeps".into(),
        version: env!("CARGO_PKG_VERSION").into(),
        wait: protocol::Wait::Adaptive,
        transport: Transport::Process,
        topology: Topology::OneProcess,
        loans: true,
        daemon: false,
        missing: None,
        payload_bytes_max: 0,
        floor: false,
        workloads: vec![Workload::Stream, Workload::Image],
    }
}

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
pub fn open_local_wait(prepare: &Prepare) -> Result<Stream, Error> {
    let (node, limit) = (node(prepare)?, Duration::from_nanos(prepare.match_timeout_ns));
    let publisher = LoanPublisher::open(&node, topic(prepare, "stream"), loans(prepare))?;
    let subscriber = Taker::open(&node, topic(prepare, "stream"), Wait::Adaptive)?;
    if !publisher.wait_for_match(1, limit) || !subscriber.wait_for_match(limit) {
        return Err(unmatched(limit));
    }
    let receivers = vec![Receiver::Takes(Box::new(subscriber))];
    Ok(Stream::one_process(Box::new(publisher), receivers))
}
