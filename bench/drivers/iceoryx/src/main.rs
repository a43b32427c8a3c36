//! Driver of `myelin bench` for iceoryx 2.0 ("classic"): zero copy by loans, with a subscriber that
//! is polled without limit, and with one that sleeps on a WaitSet.
//!
//! ```text
//! main.rs             the systems, what they need of RouDi, and what the kit calls
//! link.rs, link.cpp   the adaptor against iceoryx's C++ API
//! ```
//! RouDi, its pools and what it leaves behind are the crate `myelin-bench-roudi`'s. `README.md`
//! says what was chosen, why, and what limits there are.

mod link;

use std::process::ExitCode;

use myelin_bench_kit::protocol::{
    Prepare, Reliability, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Daemon, Driver, Error, RoundTrip, Stream};
use myelin_bench_roudi::{self as roudi, Need, RouDi};

fn main() -> ExitCode {
    myelin_bench_kit::main(&Iceoryx)
}

struct Iceoryx;

impl Driver for Iceoryx {
    fn systems(&self) -> Vec<System> {
        let roudi = roudi::version();
        [(POLL, Wait::Poll), (WAITSET, Wait::Block)]
            .map(|(name, wait)| system(name, wait, &roudi))
            .into()
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        waits(prepare)?;
        check_limits(prepare)?;
        need(prepare).pools(prepare).map(drop)
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        link::open(prepare, ready(prepare)?)
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        link::open_stream(prepare, ready(prepare)?)
    }

    fn start_daemon(&self, prepare: &Prepare) -> Result<Box<dyn Daemon>, Error> {
        check_limits(prepare)?;
        Ok(Box::new(RouDi::start(prepare, &need(prepare).pools(prepare)?)?))
    }

    fn clean(&self) -> Result<(), Error> {
        roudi::clean()
    }
}

fn system(name: &str, wait: Wait, roudi: &Result<String, String>) -> System {
    let about = match wait {
        Wait::Poll => "iceoryx: shared memory, loans, subscriber polled without limit",
        _ => "iceoryx: shared memory, loans, WaitSet",
    };
    System {
        name: name.to_owned(),
        about: about.to_owned(),
        version: roudi.clone().unwrap_or_default(),
        wait,
        transport: Transport::SharedMemory,
        topology: Topology::TwoProcesses,
        loans: true,
        daemon: true,
        missing: link::missing().or_else(|| roudi.clone().err()),
        payload_bytes_max: PAYLOAD_BYTES_MAX,
        across_hosts: false,
        floor: false,
        workloads: [Workload::roundtrip_only(), Workload::streams()].concat(),
        streams: Streams {
            reliability: vec![Reliability::BestEffort, Reliability::Reliable],
            publishers_max: PROCESSES_MAX,
            subscribers_max: PROCESSES_MAX,
            topics_max: TOPICS_MAX,
        },
    }
}

/// Whether the system of a run sleeps on a WaitSet.
fn waits(prepare: &Prepare) -> Result<bool, Error> {
    match prepare.system.as_str() {
        POLL => Ok(false),
        WAITSET => Ok(true),
        other => Err(Error::new(format!("no system {other}"))),
    }
}

/// As [`waits`], of a run that can be opened.
fn ready(prepare: &Prepare) -> Result<bool, Error> {
    let waits = waits(prepare)?;
    check_limits(prepare)?;
    if roudi::living_daemon().is_none() {
        return Err(Error::new("RouDi, the daemon of iceoryx, is not running")
            .remedy("the lab starts it as the daemon role; by hand: iox-roudi"));
    }
    Ok(waits)
}

/// What iceoryx has a compiled-in limit for.
fn check_limits(prepare: &Prepare) -> Result<(), Error> {
    let (name, bytes) = (&prepare.system, prepare.payload_bytes);
    if bytes > PAYLOAD_BYTES_MAX {
        let max = PAYLOAD_BYTES_MAX;
        return Err(Error::new(format!("{name}: at most {max} B of payload, not {bytes}")));
    }
    if !prepare.workload.is_one_way() {
        return Ok(());
    }
    if !(1..=DEPTH_MAX).contains(&prepare.depth) {
        return Err(Error::new(format!(
            "{name}: a subscriber keeps 1 to {DEPTH_MAX} samples, not {}",
            prepare.depth
        ))
        .remedy(format!("workload.depth: at most {DEPTH_MAX}")));
    }
    let ports = publisher_ports(prepare);
    if ports > PUBLISHER_PORTS_MAX {
        return Err(Error::new(format!(
            "{name}: {} publishers of {} topics for {} subscribers are {ports} publishers of \
             iceoryx, which has {PUBLISHER_PORTS_MAX}",
            prepare.publishers, prepare.topics, prepare.subscribers
        ))
        .remedy("fewer topics, publishers or subscribers"));
    }
    Ok(())
}

/// iceoryx's publishers in a stream: each ping's, one a topic, and what either side finds the other
/// by (see `match` in link.cpp).
fn publisher_ports(prepare: &Prepare) -> u64 {
    let [pings, pongs, topics] =
        [prepare.publishers, prepare.subscribers, prepare.topics].map(u64::from);
    pings * topics + 2 * pings * pongs
}

/// What a run needs of RouDi's pools.
fn need(prepare: &Prepare) -> Need {
    let chunks = match prepare.workload.is_one_way() {
        false => ROUND_TRIP_CHUNKS,
        true => stream_chunks(prepare),
    };
    Need { driver: "iceoryx", around_bytes: 0, chunks, shared_memory: true }
}

/// Chunks that a stream can hold at once, on each topic: what the subscribers' queues keep, the one
/// that each subscriber has taken, and for each publisher the one on loan and the last one, kept for
/// reuse. Of one publisher each queue keeps the same last samples, more or fewer of them, so further
/// subscribers need no more chunks for their queues.
fn stream_chunks(prepare: &Prepare) -> u32 {
    let [pings, pongs, topics, depth] =
        [prepare.publishers, prepare.subscribers, prepare.topics, prepare.depth].map(u64::from);
    let of_a_topic = pings.min(pongs) * depth + pongs + 2 * pings;
    let all = topics.saturating_mul(of_a_topic).saturating_add(CHUNKS_TO_SPARE);
    u32::try_from(all).unwrap_or(u32::MAX)
}

const POLL: &str = "iceoryx.poll";
const WAITSET: &str = "iceoryx.waitset";
/// The largest payload that was tried. iceoryx's limit is 4 GiB, RouDi's memory comes first.
const PAYLOAD_BYTES_MAX: u64 = 64 << 20;
/// Samples that a subscriber can keep (iceoryx's MAX_SUBSCRIBER_QUEUE_CAPACITY, compiled in).
const DEPTH_MAX: u32 = 256;
/// Subscribers that a WaitSet is given.
const TOPICS_MAX: u32 = 128;
/// Processes of a role. iceoryx has 300 in all, and the publishers below.
const PROCESSES_MAX: u32 = 64;
/// iceoryx's MAX_PUBLISHERS is 512, of which RouDi's introspection takes some.
const PUBLISHER_PORTS_MAX: u64 = 500;
/// A direction of a round trip holds at most the 5 messages after whose loss the kit gives up, one
/// on loan, and one that iceoryx's publisher keeps for reuse: 7, twice, and two to spare.
const ROUND_TRIP_CHUNKS: u32 = 16;
const CHUNKS_TO_SPARE: u64 = 2;
