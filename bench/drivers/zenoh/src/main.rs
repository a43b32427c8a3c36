//! Driver of `myelin bench` for Zenoh, peer to peer: over TCP or TLS, on the loopback interface
//! or to another host, and over shared memory.
//!
//! ```text
//! main.rs      the systems, and the functions that the kit calls
//! config.rs    Zenoh's configuration (JSON)
//! meet.rs      how pings find pongs' endpoints; removes what killed processes leave
//! peer.rs      a session, and the number of matched processes
//! link.rs      the ends of round trips and of streams
//! outbox.rs    publisher, with loans from shared memory
//! inbox.rs     subscribers: a channel for ping, a callback for pong
//! ```
//! `check/` has a round trip written without the kit; `README.md` explains the choices. Streams
//! have several publishers, subscribers and topics, best effort and reliable, without limits of our
//! own.

mod config;
mod inbox;
mod link;
mod meet;
mod outbox;
mod peer;

use std::net::SocketAddr;
use std::process::ExitCode;

use myelin_bench_kit::protocol::{
    PORTS, Prepare, Reliability, Streams, System, Transport, Wait, Workload,
};
use myelin_bench_kit::{Answerer, Driver, Error, RoundTrip, Stream};

fn main() -> ExitCode {
    // Errors of our calls are returned; Zenoh's other errors go to the log.
    zenoh::init_log_from_env_or("error");
    myelin_bench_kit::main(&Zenoh)
}

struct Zenoh;

impl Driver for Zenoh {
    fn systems(&self) -> Vec<System> {
        VARIANTS.iter().map(Variant::system).collect()
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        let pongs_max = u32::from(PORTS - 1);
        if prepare.network.is_some() && prepare.subscribers > pongs_max {
            let asked = prepare.subscribers;
            return Err(Error::new(format!("{asked} subscribers need a port each"))
                .remedy(format!("use at most {pongs_max} across hosts")));
        }
        Ok(())
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        link::open(prepare, Variant::of(prepare)?)
    }

    fn open_answerer(&self, prepare: &Prepare) -> Result<Option<Answerer>, Error> {
        link::open_answerer(prepare, Variant::of(prepare)?).map(Some)
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        link::open_stream(prepare, Variant::of(prepare)?)
    }

    fn notes_at_end(&self) -> Vec<String> {
        inbox::taken_back().into_iter().collect()
    }

    fn clean(&self) -> Result<(), Error> {
        meet::clean()
    }
}

/// A way to use the middleware that is its own system.
struct Variant {
    name: &'static str,
    about: &'static str,
    /// Whether payloads are in shared memory; they are then announced through UNIX sockets.
    shared_memory: bool,
    /// Whether TLS is over TCP.
    secure: bool,
}

const VARIANTS: [Variant; 3] = [
    Variant {
        name: "zenoh.tcp",
        about: "Zenoh, peer to peer over TCP, callbacks",
        shared_memory: false,
        secure: false,
    },
    Variant {
        name: "zenoh.tls",
        about: "zenoh.tcp with TLS; both sides show certificates",
        shared_memory: false,
        secure: true,
    },
    Variant {
        name: "zenoh.shm",
        about: "Zenoh over shared memory, written into loans, announced by UNIX socket, callbacks",
        shared_memory: true,
        secure: false,
    },
];

impl Variant {
    fn of(prepare: &Prepare) -> Result<&'static Variant, Error> {
        let variant = VARIANTS.iter().find(|variant| variant.name == prepare.system);
        variant.ok_or_else(|| Error::new(format!("zenoh has no system `{}`", prepare.system)))
    }

    /// Zenoh's endpoint at `address`.
    fn endpoint(&self, address: SocketAddr) -> String {
        format!("{}/{address}", if self.secure { "tls" } else { "tcp" })
    }

    fn system(&self) -> System {
        let transport =
            if self.shared_memory { Transport::SharedMemory } else { Transport::Loopback };
        System {
            loans: self.shared_memory,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            across_hosts: !self.shared_memory,
            secure: self.secure,
            workloads: [Workload::roundtrip_only(), Workload::streams()].concat(),
            streams: Streams {
                reliability: vec![Reliability::BestEffort, Reliability::Reliable],
                publishers_max: 0,
                subscribers_max: 0,
                topics_max: 0,
                ..Streams::default()
            },
            // A thread of Zenoh sleeps in the kernel until woken, and calls.
            ..System::new(self.name, self.about, ZENOH_VERSION, Wait::Block, transport)
        }
    }
}

/// The exact version in Cargo.toml; the crate does not report it.
const ZENOH_VERSION: &str = "1.10.2";
/// The same as the floor's, for comparison; the samples of a run fit into memory.
const PAYLOAD_BYTES_MAX: u64 = 64 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_version_is_that_of_the_manifest() {
        let manifest = include_str!("../Cargo.toml");
        assert!(manifest.contains(&format!("version = \"={ZENOH_VERSION}\"")));
    }
}
