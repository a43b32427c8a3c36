//! Driver of `myelin bench` for CycloneDDS 0.10: over UDP on the loopback interface, and over
//! iceoryx shared memory with and without loans.
//!
//! ```text
//! main.rs       the systems and what the kit calls
//! config.rs     CycloneDDS's configuration (XML)
//! link.rs, link.c   the adaptor against the DDS C API
//! roudi.rs      iceoryx's daemon: start, watch, stop
//! pools.rs      the daemon's memory pools (TOML)
//! leftovers.rs  what a killed daemon leaves on the host
//! ```
//! `check/` holds a round trip written without the kit; `bench/check/fidelity.py` compares the two.

mod config;
mod leftovers;
mod link;
mod pools;
mod roudi;

use std::process::ExitCode;

use myelin_bench_kit::protocol::{Prepare, Streams, System, Topology, Transport, Wait, Workload};
use myelin_bench_kit::{Daemon, Driver, Error, Link, Stream};

fn main() -> ExitCode {
    myelin_bench_kit::main(&CycloneDds)
}

struct CycloneDds;

impl Driver for CycloneDds {
    fn systems(&self) -> Vec<System> {
        let iceoryx = roudi::version();
        VARIANTS.iter().map(|variant| variant.system(&iceoryx)).collect()
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        let variant = Variant::of(prepare)?;
        variant.check_payload(prepare)?;
        pools::of(prepare, variant.shared_memory).map(drop)
    }

    fn open(&self, prepare: &Prepare) -> Result<Link, Error> {
        let (variant, xml) = Variant::configured(prepare)?;
        link::open(prepare, &xml, variant.shared_memory, variant.loans)
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        let (variant, xml) = Variant::configured(prepare)?;
        link::open_stream(prepare, &xml, variant.shared_memory, variant.loans)
    }

    fn start_daemon(&self, prepare: &Prepare) -> Result<Box<dyn Daemon>, Error> {
        if !Variant::of(prepare)?.shared_memory {
            return Err(Error::new(format!("{} needs no daemon", prepare.system)));
        }
        Ok(Box::new(roudi::RouDi::start(prepare)?))
    }

    fn clean(&self) -> Result<(), Error> {
        leftovers::clean()
    }
}

/// A configuration of the middleware that is a system of its own.
struct Variant {
    name: &'static str,
    about: &'static str,
    shared_memory: bool,
    loans: bool,
}

const VARIANTS: [Variant; 3] = [
    Variant {
        name: "cyclonedds.udp",
        about: "CycloneDDS, serialised, UDP on the loopback interface, waitset",
        shared_memory: false,
        loans: false,
    },
    Variant {
        name: "cyclonedds.iceoryx",
        about: "CycloneDDS over iceoryx shared memory, written into loans, read by copy, waitset",
        shared_memory: true,
        loans: true,
    },
    Variant {
        name: "cyclonedds.iceoryx-copy",
        about: "CycloneDDS over iceoryx shared memory, written from own memory, waitset",
        shared_memory: true,
        loans: false,
    },
];

impl Variant {
    fn of(prepare: &Prepare) -> Result<&'static Variant, Error> {
        let variant = VARIANTS.iter().find(|variant| variant.name == prepare.system);
        variant.ok_or_else(|| Error::new(format!("no system {}", prepare.system)))
    }

    /// The variant of a run that can be opened, and CycloneDDS's configuration for it.
    fn configured(prepare: &Prepare) -> Result<(&'static Variant, String), Error> {
        let variant = Variant::of(prepare)?;
        variant.check_payload(prepare)?;
        if variant.shared_memory && leftovers::living_daemon().is_none() {
            // CycloneDDS would wait for it for a minute and then abort the process.
            return Err(Error::new("RouDi, the daemon of iceoryx, is not running")
                .remedy("the lab starts it as the daemon role; by hand: iox-roudi"));
        }
        let xml = config::xml(prepare.domain, variant.shared_memory);
        config::write(&prepare.directory, &xml)?;
        Ok((variant, xml))
    }

    fn system(&self, iceoryx: &Result<String, String>) -> System {
        let mut version = link::version();
        let mut missing = link::missing();
        if self.shared_memory && missing.is_none() {
            match iceoryx {
                Ok(iceoryx) => version += &format!(" with iceoryx {iceoryx}"),
                Err(reason) => missing = Some(reason.clone()),
            }
        }
        System {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            version,
            wait: Wait::Block,
            transport: match self.shared_memory {
                true => Transport::SharedMemory,
                false => Transport::Loopback,
            },
            topology: Topology::TwoProcesses,
            loans: self.loans,
            daemon: self.shared_memory,
            missing,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            floor: false,
            workloads: [Workload::roundtrip_only(), Workload::streams()].concat(),
            streams: Streams::default(),
        }
    }

    fn check_payload(&self, prepare: &Prepare) -> Result<(), Error> {
        let (name, bytes, max) = (self.name, prepare.payload_bytes, PAYLOAD_BYTES_MAX);
        if bytes > max {
            return Err(Error::new(format!("{name}: at most {max} B of payload, not {bytes}")));
        }
        Ok(())
    }
}

/// The largest payload that was tried. CycloneDDS sets no limit of its own below 2 GiB; but RouDi
/// touches 16 chunks of this size, and UDP loses so many of a sample's fragments that one round
/// trip takes 0.2 s.
const PAYLOAD_BYTES_MAX: u64 = 16 << 20;
