//! `myelin-driver-myelin`: Myelin's shared-memory route with several ways to wait, callbacks and a
//! waiting thread within one process, and the route to other hosts.
//!
//! The driver uses the public API with default settings: loans of run-time size on a topic of
//! bytes, best effort. Messages of up to 104 B are published by copy, because the library copies
//! them in any case. Streams have the depth and the reliability of their scenario; a reliable
//! publisher gives up if a subscriber takes nothing for the reply timeout (`block_max`).
//!
//! Limits: a subscriber matches up to 256 publishers, a publisher up to 1,024 subscribers. The
//! library waits for one topic at a time, or by a file descriptor for each. So only the systems
//! that sleep (by epoll) and that poll (one after the other) support several topics.
//! `docs/explanation/shared-memory.md` explains the internals.
//!
//! ```text
//! main.rs     the systems between processes; round trips and publish
//! stream.rs   streams and frames, from process to process and to a waiting thread
//! topics.rs   the ends of streams of several topics
//! local.rs    callbacks in one process
//! dds.rs      to another host
//! link.rs     publisher and subscriber with the kit's interfaces
//! ```

mod dds;
mod link;
mod local;
mod stream;
mod topics;

use std::process::ExitCode;
use std::time::Duration;

use myelin::{Node, Topic, Wait};
use myelin_bench_kit::driver::Fan;
use myelin_bench_kit::protocol::{Prepare, Role, System, Topology, Touch, Transport, Workload};
use myelin_bench_kit::{Driver, Error, Link, RoundTrip, Stream, Subscriber, message, protocol};
use myelin_shm::layout::INLINE_BYTES_MAX;
use myelin_shm::leftovers;

use link::{LoanPublisher, Taker, said};

fn main() -> ExitCode {
    myelin_bench_kit::main(&Myelin)
}

struct Myelin;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// A system: its name, how its subscriber waits, and its description.
struct Kind {
    name: &'static str,
    about: &'static str,
    wait: Wait,
    tells: protocol::Wait,
    topology: Topology,
}

const KINDS: [Kind; 6] = [
    Kind {
        name: "myelin.shm-poll",
        about: "Myelin's shared-memory route; the subscriber spins",
        wait: Wait::Poll,
        tells: protocol::Wait::Poll,
        topology: Topology::TwoProcesses,
    },
    Kind {
        name: "myelin.shm-block",
        about: "Myelin's shared-memory route; the subscriber sleeps on a futex",
        wait: Wait::Block,
        tells: protocol::Wait::Block,
        topology: Topology::TwoProcesses,
    },
    Kind {
        name: "myelin.shm-adaptive",
        about: "Myelin's shared-memory route; the subscriber spins while that pays, then sleeps",
        wait: Wait::Adaptive,
        tells: protocol::Wait::Adaptive,
        topology: Topology::TwoProcesses,
    },
    Kind {
        name: "myelin.shm-predictive",
        about: "Myelin's shared-memory route; the subscriber is awake when a periodic sample is due",
        wait: Wait::Predictive,
        tells: protocol::Wait::Predictive,
        topology: Topology::TwoProcesses,
    },
    Kind {
        name: "myelin.local-wait",
        about: "Myelin in one process; a thread spins while that pays, then sleeps",
        wait: Wait::Adaptive,
        tells: protocol::Wait::Adaptive,
        topology: Topology::OneProcess,
    },
    Kind {
        name: "myelin.local-predictive",
        about: "Myelin in one process; a thread sleeps until just before a sample is due, then spins",
        wait: Wait::Predictive,
        tells: protocol::Wait::Predictive,
        topology: Topology::OneProcess,
    },
];

impl Driver for Myelin {
    fn systems(&self) -> Vec<System> {
        let system = |kind: &Kind| {
            let between = [vec![Workload::Roundtrip, Workload::Publish], Workload::streams()];
            let (transport, workloads) = match kind.topology {
                Topology::OneProcess => {
                    (Transport::Process, vec![Workload::Stream, Workload::Image])
                }
                _ => (Transport::SharedMemory, between.concat()),
            };
            System {
                topology: kind.topology,
                loans: true,
                workloads,
                streams: stream::offered(kind.topology),
                ..System::new(kind.name, kind.about, VERSION, kind.tells, transport)
            }
        };
        let others = [local::system()].into_iter().chain(dds::systems());
        KINDS.iter().map(system).chain(others).collect()
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        if dds::NAMES.contains(&prepare.system.as_str()) {
            return dds::open(prepare);
        }
        let (ours, theirs) = match prepare.role {
            Role::Ping => ("ping", "pong"),
            _ => ("pong", "ping"),
        };
        let node = node(prepare)?;
        let publisher = topic(&node, prepare, ours).publisher().map_err(said)?;
        let subscriber = topic(&node, prepare, theirs).subscriber().map_err(said)?;
        let limit = Duration::from_nanos(prepare.match_timeout_ns);
        if !publisher.wait_for_match(1, limit) || !subscriber.wait_for_match(1, limit) {
            return Err(unmatched(limit));
        }
        let publisher = LoanPublisher::new(publisher, loans(prepare, 0));
        Ok(Box::new(Link::new(publisher, Taker::new(subscriber, kind(prepare)?.wait))))
    }

    fn open_publish(&self, prepare: &Prepare) -> Result<Fan, Error> {
        let node = node(prepare)?;
        let limit = Duration::from_nanos(prepare.match_timeout_ns);
        if prepare.role == Role::Ping {
            let publisher = topic(&node, prepare, "fan").publisher().map_err(said)?;
            if !publisher.wait_for_match(prepare.subscribers as usize, limit) {
                return Err(unmatched(limit));
            }
            return Ok(Fan::publisher(Box::new(LoanPublisher::new(publisher, loans(prepare, 0)))));
        }
        let mut subscribers: Vec<Box<dyn Subscriber>> = Vec::new();
        for _ in 0..prepare.subscribers {
            let subscriber = topic(&node, prepare, "fan").subscriber().map_err(said)?;
            if !subscriber.wait_for_match(1, limit) {
                return Err(unmatched(limit));
            }
            subscribers.push(Box::new(Taker::new(subscriber, Wait::Poll)));
        }
        Ok(Fan::subscribers(subscribers))
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        if prepare.system == local::NAME {
            return local::open(prepare);
        }
        if dds::NAMES.contains(&prepare.system.as_str()) {
            return dds::open_stream(prepare);
        }
        let kind = kind(prepare)?;
        match kind.topology {
            Topology::TwoProcesses | Topology::TwoHosts => stream::open(prepare, kind.wait),
            Topology::OneProcess => stream::open_in_one_process(prepare, kind.wait),
        }
    }

    fn clean(&self) -> Result<(), Error> {
        let scan = leftovers::scan(None).map_err(said)?;
        let mut dead = scan.dead.iter();
        dead.try_for_each(|left| leftovers::remove(left).map(drop)).map_err(said)
    }
}

fn unmatched(limit: Duration) -> Error {
    Error::new(format!("the other role was not found within {limit:?}"))
        .remedy("see its log in the results folder")
}

fn kind(prepare: &Prepare) -> Result<&'static Kind, Error> {
    let known = KINDS.iter().find(|kind| kind.name == prepare.system);
    known.ok_or_else(|| Error::new(format!("no system {:?} in this driver", prepare.system)))
}

fn node(prepare: &Prepare) -> Result<Node, Error> {
    let node = Node::builder(&format!("bench-{}", prepare.run)).domain(prepare.domain);
    node.open().map_err(said)
}

/// The topic of one direction; only this run uses it.
fn topic(node: &Node, prepare: &Prepare, direction: &str) -> Topic<[u8]> {
    node.topic(&format!("bench/{}/{direction}", prepare.run))
}

/// Whether to write the messages of `topic` into loans. Messages that are copied in any case are not
/// written into loans, unless loans are measured.
fn loans(prepare: &Prepare, topic: u32) -> bool {
    let bytes = message::HEADER_BYTES as u64 + prepare.payload_bytes_of(topic);
    bytes > INLINE_BYTES_MAX as u64 || prepare.touch == Touch::Header
}
