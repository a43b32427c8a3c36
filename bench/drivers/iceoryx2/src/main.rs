//! Driver of `myelin bench` for iceoryx2: zero-copy publish-subscribe between two processes, either
//! polled or woken by its events.
//!
//! ```text
//! main.rs   the systems, and the functions that the kit calls
//! link.rs   node, services and ports of one role; waits until both roles are there
//! stream.rs the same for streams, which have one direction
//! ports.rs  publisher and subscribers with the kit's interfaces
//! place.rs  the files of a run, and their removal
//! ```
//! iceoryx2 has no daemon and starts no threads.

mod link;
mod place;
mod ports;
mod stream;

use std::process::ExitCode;

use iceoryx2::prelude::{LogLevel, set_log_level};
use iceoryx2_bb_elementary::package_version::PackageVersion;
use myelin_bench_kit::protocol::{
    Prepare, Reliability, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Driver, Error, RoundTrip, Stream};

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
        VARIANTS.iter().map(|variant| variant.system(&version)).collect()
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        Variant::of(prepare)?;
        if let Some(key) = prepare.options.keys().next() {
            return Err(Error::new(format!("iceoryx2 has no options; remove `{key}`")).key(key));
        }
        if prepare.payload_bytes > PAYLOAD_BYTES_MAX {
            let (asked, max) = (prepare.payload_bytes, PAYLOAD_BYTES_MAX);
            let text = format!("payload of {asked} B; this driver carries up to {max} B");
            return Err(Error::new(text));
        }
        Ok(())
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        self.check(prepare)?;
        link::open(prepare, Variant::of(prepare)?.wait)
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        self.check(prepare)?;
        stream::open(prepare, Variant::of(prepare)?.wait)
    }

    fn clean(&self) -> Result<(), Error> {
        place::clean()
    }
}

/// A way to use the middleware that is its own system.
struct Variant {
    name: &'static str,
    about: &'static str,
    wait: Wait,
}

const VARIANTS: [Variant; 2] = [
    Variant {
        name: "iceoryx2.poll",
        about: "iceoryx2, zero-copy, written into loans; the subscriber polls without limit",
        wait: Wait::Poll,
    },
    Variant {
        name: "iceoryx2.event",
        about: "iceoryx2, zero-copy, written into loans; an event wakes the subscriber",
        wait: Wait::Block,
    },
];

impl Variant {
    fn of(prepare: &Prepare) -> Result<&'static Variant, Error> {
        let variant = VARIANTS.iter().find(|variant| variant.name == prepare.system);
        variant.ok_or_else(|| Error::new(format!("iceoryx2 has no system `{}`", prepare.system)))
    }

    fn system(&self, version: &str) -> System {
        System {
            name: self.name.into(),
            about: self.about.into(),
            version: version.into(),
            wait: self.wait,
            transport: Transport::SharedMemory,
            topology: Topology::TwoProcesses,
            loans: true,
            daemon: false,
            missing: place::missing(),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            across_hosts: false,
            floor: false,
            workloads: [Workload::roundtrip_only(), Workload::streams()].concat(),
            streams: Streams {
                reliability: vec![Reliability::BestEffort, Reliability::Reliable],
                publishers_max: PEERS_MAX,
                subscribers_max: PEERS_MAX,
                topics_max: TOPICS_MAX,
            },
        }
    }
}

/// The same as the floor's, for comparison; the chunks of a run fit into memory.
const PAYLOAD_BYTES_MAX: u64 = 64 * 1024 * 1024;
/// Tested with this number.
const PEERS_MAX: u32 = 32;
/// Tested with this number. A service takes some milliseconds to make, and both roles wait for the
/// last: 1,000 need a `match_timeout_ms` of more than 10 s; in a debug build on a busy machine they
/// took 44 s.
const TOPICS_MAX: u32 = 1000;
