//! Driver of `myelin bench` for iceoryx2: zero-copy publish-subscribe between two processes, either
//! polled or woken by its events.
//!
//! ```text
//! main.rs   the systems, and the functions that the kit calls
//! open.rs   node, services and ports of one role; waits until both roles are there
//! ports.rs  publisher and subscribers with the kit's interfaces
//! place.rs  the files of a run
//! ```
//! `README.md` explains the settings and limits.

mod open;
mod place;
mod ports;

use std::process::ExitCode;

use iceoryx2::prelude::{LogLevel, set_log_level};
use iceoryx2_bb_elementary::package_version::PackageVersion;
use myelin_bench_kit::protocol::{
    Prepare, Reliability, Streams, System, Transport, Wait, Workload,
};
use myelin_bench_kit::{Driver, Error, Link, RoundTrip, Stream};

use open::Ports;
use ports::{Blocking, Polling};

fn main() -> ExitCode {
    // Errors are returned anyway; iceoryx2 would print them again, and also expected ones, such as
    // a peer that is gone.
    set_log_level(LogLevel::Fatal);
    myelin_bench_kit::main(&Iceoryx2)
}

struct Iceoryx2;

impl Driver for Iceoryx2 {
    fn systems(&self) -> Vec<System> {
        let version = PackageVersion::get();
        let version = format!("{}.{}.{}", version.major(), version.minor(), version.patch());
        let system = |(name, wait, about): &(&str, Wait, &str)| System {
            loans: true,
            missing: place::missing(),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            workloads: [Workload::roundtrip_only(), Workload::streams()].concat(),
            streams: Streams {
                reliability: vec![Reliability::BestEffort, Reliability::Reliable],
                publishers_max: PEERS_MAX,
                subscribers_max: PEERS_MAX,
                topics_max: TOPICS_MAX,
                ..Streams::default()
            },
            ..System::new(name, about, &version, *wait, Transport::SharedMemory)
        };
        SYSTEMS.iter().map(system).collect()
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        let Ports { outbox: Some(outbox), inbox: Some((inbox, listener)) } = opened(prepare)?
        else {
            return Err(Error::new("a round trip has both directions"));
        };
        Ok(match listener {
            None => Box::new(Link::new(outbox, Polling::new(inbox))),
            Some(listener) => Box::new(Link::new(outbox, Blocking::new(inbox, listener))),
        })
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        match opened(prepare)? {
            Ports { outbox: Some(outbox), .. } => Ok(Stream::publisher(Box::new(outbox))),
            Ports { inbox: Some((inbox, None)), .. } => {
                Ok(Stream::subscriber(Box::new(Polling::new(inbox))))
            }
            Ports { inbox: Some((inbox, Some(listener))), .. } => {
                Ok(Stream::subscriber(Box::new(Blocking::new(inbox, listener))))
            }
            _ => Err(Error::new("a stream has one direction")),
        }
    }

    fn clean(&self) -> Result<(), Error> {
        place::RUNS.clean()
    }
}

fn opened(prepare: &Prepare) -> Result<Ports, Error> {
    let system = SYSTEMS.iter().find(|(name, ..)| *name == prepare.system);
    let (_, wait, _) = system.ok_or_else(|| Error::new("no such system"))?;
    open::open(prepare, *wait)
}

/// Name, how the subscriber waits, and description.
const SYSTEMS: [(&str, Wait, &str); 2] = [
    (
        "iceoryx2.poll",
        Wait::Poll,
        "iceoryx2, zero-copy, written into loans; the subscriber polls without limit",
    ),
    (
        "iceoryx2.event",
        Wait::Block,
        "iceoryx2, zero-copy, written into loans; an event wakes the subscriber",
    ),
];

/// The same as the floor's, for comparison; the chunks of a run fit into memory.
const PAYLOAD_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Tested with this number.
const PEERS_MAX: u32 = 32;
/// Tested with this number. A service takes some milliseconds to make, and both roles wait for the
/// last: 1,000 need a `match_timeout_ms` of more than 10 s; in a debug build on a busy machine they
/// took 44 s.
const TOPICS_MAX: u32 = 1000;
