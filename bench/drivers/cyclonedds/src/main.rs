//! Driver of `myelin bench` for CycloneDDS 0.10: over UDP, on the loopback interface or to another
//! host, and over iceoryx shared memory with and without loans.
//!
//! ```text
//! main.rs       the systems and what the kit calls
//! config.rs     CycloneDDS's configuration (XML)
//! link.rs, link.c   the adaptor against the DDS C API
//! match.c       waits for the other side
//! ```
//! iceoryx's daemon, its pools and what it leaves behind are the crate `myelin-bench-roudi`'s.
//!
//! Limits: a domain has room for 120 participants, of which those that start at once need twice as
//! many as they are; hence [`PEERS_MAX`] publishers and as many subscribers. Over iceoryx a stream
//! is best effort alone: CycloneDDS 0.10 leaves iceoryx to discard the oldest of a full queue,
//! whatever the reliability, and takes KEEP_ALL off shared memory. Its queues have room for 256
//! samples, and one thread of a process waits for at most 127 readers.
//!
//! `udp` is CycloneDDS with the receive buffer it asks for by itself (1 MiB), `udp-tuned` with the
//! largest the kernel grants. On a virtual machine with two cores (`net.core.rmem_max` of 4 MiB) 20
//! reliable messages of 10 MiB took 19 s with the former, nearly all of it for fragments sent
//! again, and 0.8 s with the latter.
//!
//! `check/` holds a round trip written without the kit; `bench/check/fidelity.py` compares the two.

mod config;
mod link;

use std::process::ExitCode;

use config::Config;
use myelin_bench_kit::protocol::{
    Prepare, Reliability, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Daemon, Driver, Error, RoundTrip, Stream};
use myelin_bench_roudi::{self as roudi, Need, RouDi};

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
        variant.check_depth(prepare)?;
        variant.need(prepare).pools(prepare).map(drop)
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        let (variant, xml) = Variant::configured(prepare)?;
        link::open(prepare, &xml, variant.shared_memory, variant.loans)
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        let (variant, xml) = Variant::configured(prepare)?;
        link::open_stream(prepare, &xml, variant.shared_memory, variant.loans)
    }

    fn notes(&self, prepare: &Prepare) -> Vec<String> {
        let Ok(variant) = Variant::of(prepare) else { return Vec::new() };
        if variant.shared_memory {
            return Vec::new();
        }
        let mut notes = vec![config::buffer_note(&variant.config(prepare))];
        if prepare.workload.is_one_way() && prepare.reliability == Reliability::Reliable {
            notes.push(FULL_READER.to_owned());
        }
        notes
    }

    fn start_daemon(&self, prepare: &Prepare) -> Result<Box<dyn Daemon>, Error> {
        let variant = Variant::of(prepare)?;
        if !variant.shared_memory {
            return Err(Error::new(format!("{} needs no daemon", prepare.system)));
        }
        let pools = variant.need(prepare).pools(prepare)?;
        Ok(Box::new(RouDi::start(prepare, &pools)?))
    }

    fn clean(&self) -> Result<(), Error> {
        roudi::clean()
    }
}

/// A configuration of the middleware that is a system of its own.
struct Variant {
    name: &'static str,
    about: &'static str,
    shared_memory: bool,
    loans: bool,
    /// Larger buffers and fragments than CycloneDDS has by default.
    tuned: bool,
}

const VARIANTS: [Variant; 4] = [
    Variant {
        name: "cyclonedds.udp",
        about: "CycloneDDS, serialised, UDP, waitset",
        shared_memory: false,
        loans: false,
        tuned: false,
    },
    Variant {
        name: "cyclonedds.udp-tuned",
        about: "the same with the largest receive buffer the kernel grants and large fragments",
        shared_memory: false,
        loans: false,
        tuned: true,
    },
    Variant {
        name: "cyclonedds.iceoryx",
        about: "CycloneDDS over iceoryx shared memory, written into loans, read by copy, waitset",
        shared_memory: true,
        loans: true,
        tuned: false,
    },
    Variant {
        name: "cyclonedds.iceoryx-copy",
        about: "CycloneDDS over iceoryx shared memory, written from own memory, waitset",
        shared_memory: true,
        loans: false,
        tuned: false,
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
        variant.check_depth(prepare)?;
        if variant.shared_memory && roudi::living_daemon().is_none() {
            // CycloneDDS would wait for it for a minute and then abort the process.
            return Err(Error::new("RouDi, the daemon of iceoryx, is not running")
                .remedy("the lab starts it as the daemon role; by hand: iox-roudi"));
        }
        let xml = config::xml(&variant.config(prepare));
        config::write(&prepare.file(config::FILE), &xml)?;
        Ok((variant, xml))
    }

    fn config(&self, prepare: &Prepare) -> Config {
        Config::of(prepare, self.shared_memory, self.tuned)
    }

    /// What a run needs of RouDi's pools.
    fn need(&self, prepare: &Prepare) -> Need {
        Need {
            driver: "cyclonedds",
            around_bytes: AROUND_BYTES,
            chunks: chunks(prepare),
            shared_memory: self.shared_memory,
        }
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
            across_hosts: !self.shared_memory,
            floor: false,
            workloads: [Workload::roundtrip_only(), Workload::streams()].concat(),
            streams: Streams {
                reliability: match self.shared_memory {
                    true => vec![Reliability::BestEffort],
                    false => vec![Reliability::BestEffort, Reliability::Reliable],
                },
                publishers_max: PEERS_MAX,
                subscribers_max: PEERS_MAX,
                topics_max: if self.shared_memory { SHARED_TOPICS_MAX } else { 0 },
            },
        }
    }

    fn check_depth(&self, prepare: &Prepare) -> Result<(), Error> {
        let (name, depth) = (self.name, prepare.depth);
        let max = if self.shared_memory { SHARED_DEPTH_MAX } else { i32::MAX as u32 };
        if prepare.workload.is_one_way() && !(1..=max).contains(&depth) {
            return Err(Error::new(format!("depth: {depth} for {name}"))
                .remedy(format!("from 1 to {max}; with UDP there is no such limit")));
        }
        Ok(())
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
/// Publishers of a topic, and subscribers: together they fit into a domain.
const PEERS_MAX: u32 = config::PROCESSES_MAX / 4;
/// Topics over iceoryx: below what CycloneDDS 0.10 attaches to iceoryx's listener in a process.
const SHARED_TOPICS_MAX: u32 = 100;
/// iceoryx 2 cuts a queue off there, and a reader may hold one sample less.
const SHARED_DEPTH_MAX: u32 = 255;
/// For the report.
const FULL_READER: &str = "reliable: a reader that has `depth` samples to take holds up the \
                           receiving thread of CycloneDDS, 10 ms at a time";

/// Chunks of the pool a run gets by itself. Of a stream: what the queues of iceoryx and the histories
/// of the readers keep, which of one publisher are the same last samples for all subscribers; the one
/// that each subscriber has in its hands; and for each publisher the one on loan and the one that
/// iceoryx keeps for reuse.
fn chunks(prepare: &Prepare) -> u32 {
    if !prepare.workload.is_one_way() {
        return CHUNKS;
    }
    let [pings, pongs, topics, depth] =
        [prepare.publishers, prepare.subscribers, prepare.topics, prepare.depth].map(u64::from);
    let of_a_topic = pings.min(pongs) * 2 * depth + pongs + 2 * pings;
    let all = topics.saturating_mul(of_a_topic);
    u32::try_from(all).unwrap_or(u32::MAX).max(CHUNKS)
}

/// Chunks of a round trip. A direction holds at most the 5 messages after whose loss the kit gives
/// up, one on loan, and one that iceoryx's publisher keeps for reuse: 7, twice, and two to spare.
/// RouDi touches every page of its pools, so more would only be memory.
const CHUNKS: u32 = 16;

/// CycloneDDS's header in a chunk (its `iceoryx_header`), and the padding that iceoryx reserves
/// between it and a message of alignment 8:
///
/// ```text
/// │ iceoryx 40 B │ CycloneDDS 56 B │ padding 8 B │ message, rounded up to 8 B │
/// ```
const AROUND_BYTES: u64 = 56 + 8;
