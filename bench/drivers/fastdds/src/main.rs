//! Driver of `myelin bench` for eProsima Fast DDS 2.9: over UDP, on the loopback interface or to
//! another host, over its shared memory transport, and by data sharing with loans at both ends.
//!
//! ```text
//! main.rs        the systems and what the kit calls
//! config.rs      Fast DDS's configuration (XML profiles)
//! link.rs, link.cpp    the adaptor against the DDS API
//! endpoints.cpp  participant, writers, readers; matching; proof of the transport
//! listeners.hpp  what Fast DDS calls back
//! octets.hpp     the type of a run
//! leftovers.rs   what killed processes leave on the host
//! ```
//! `README.md` says what each system is given and why, and what its limits are. `check/` holds a
//! round trip written without the kit.

mod config;
mod leftovers;
mod link;

use std::process::ExitCode;

use config::{History, Profiles};
use link::Settings;
use myelin_bench_kit::protocol::{
    Prepare, Reliability, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Driver, Error, RoundTrip, Stream};

fn main() -> ExitCode {
    myelin_bench_kit::main(&FastDds)
}

struct FastDds;

impl Driver for FastDds {
    fn systems(&self) -> Vec<System> {
        VARIANTS.iter().map(Variant::system).collect()
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        Variant::of(prepare)?.check(prepare)
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        let variant = Variant::of(prepare)?;
        let (xml, settings) = variant.configured(prepare)?;
        link::open(prepare, &xml, settings, variant.loans())
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        let variant = Variant::of(prepare)?;
        let (xml, settings) = variant.configured(prepare)?;
        link::open_stream(prepare, &xml, settings, variant.loans())
    }

    fn clean(&self) -> Result<(), Error> {
        leftovers::clean()
    }
}

/// A configuration of the middleware that is a system of its own.
struct Variant {
    name: &'static str,
    about: &'static str,
    route: config::Route,
}

const VARIANTS: [Variant; 3] = [
    Variant {
        name: "fastdds.udp",
        about: "Fast DDS, serialised, UDP, sleeping",
        route: config::Route::Udp,
    },
    Variant {
        name: "fastdds.shm",
        about: "Fast DDS, serialised, its shared memory transport, sleeping",
        route: config::Route::SharedMemory,
    },
    Variant {
        name: "fastdds.datasharing",
        about: "Fast DDS, data sharing: loaned, written and read in place, sleeping",
        route: config::Route::DataSharing,
    },
];

impl Variant {
    fn of(prepare: &Prepare) -> Result<&'static Variant, Error> {
        let variant = VARIANTS.iter().find(|variant| variant.name == prepare.system);
        variant.ok_or_else(|| Error::new(format!("no system {}", prepare.system)))
    }

    fn loans(&self) -> bool {
        self.route == config::Route::DataSharing
    }

    fn system(&self) -> System {
        System {
            name: self.name.to_owned(),
            about: self.about.to_owned(),
            version: link::version(),
            wait: Wait::Block,
            transport: match self.route {
                config::Route::Udp => Transport::Loopback,
                _ => Transport::SharedMemory,
            },
            topology: Topology::TwoProcesses,
            loans: self.loans(),
            daemon: false,
            missing: link::missing(),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            across_hosts: self.route == config::Route::Udp,
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

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        let (name, bytes, max) = (self.name, prepare.payload_bytes, PAYLOAD_BYTES_MAX);
        if bytes > max {
            return Err(Error::new(format!("{name}: at most {max} B of payload, not {bytes}"))
                .remedy("set workload.payload_bytes to less, or leave the system out"));
        }
        if let Some(key) = prepare.options.keys().next() {
            return Err(Error::new(format!("options.fastdds.{key}: no such option"))
                .key(key)
                .remedy("this driver has no options: remove the key"));
        }
        let bytes = profiles(self.route, prepare).history_bytes();
        if bytes > HISTORY_BYTES_MAX {
            return Err(Error::new(format!(
                "{name}: depth {} of {} topics takes {bytes} B of memory at either end, more than \
                 {HISTORY_BYTES_MAX}",
                prepare.depth, prepare.topics
            ))
            .remedy("a smaller workload.depth, fewer topics or less payload"));
        }
        Ok(())
    }

    /// Fast DDS's configuration for a run that can be opened, also left in the run's folder.
    fn configured(&self, prepare: &Prepare) -> Result<(String, Settings), Error> {
        self.check(prepare)?;
        let xml = profiles(self.route, prepare).xml();
        config::write(&prepare.file(config::FILE), &xml)?;
        let data_sharing = self.route == config::Route::DataSharing;
        let settings = Settings {
            shared_memory: self.route != config::Route::Udp,
            data_sharing,
            copies: data_sharing && overtakes(prepare),
        };
        Ok((xml, settings))
    }
}

/// Whether the publisher goes on without pause and without heed of the subscriber. By data sharing
/// it then overwrites what the subscriber is just reading in place. So the subscriber copies, and
/// Fast DDS looks whether the copy is whole.
fn overtakes(prepare: &Prepare) -> bool {
    matches!(prepare.workload, Workload::Flood | Workload::Startup)
        && prepare.reliability == Reliability::BestEffort
}

fn profiles(route: config::Route, prepare: &Prepare) -> Profiles {
    let history = match (prepare.workload.is_one_way(), prepare.reliability) {
        (false, _) => History::RoundTrip,
        (true, Reliability::BestEffort) => History::BestEffort { depth: prepare.depth },
        (true, Reliability::Reliable) => History::Reliable { depth: prepare.depth },
    };
    Profiles {
        route,
        history,
        message_bytes: prepare.payload_bytes + HEADER_BYTES,
        publishers: prepare.publishers,
        subscribers: prepare.subscribers,
        topics: prepare.topics,
        network: prepare.network.clone(),
    }
}

/// The kit's sequence number in front of the payload.
const HEADER_BYTES: u64 = 8;
/// The largest payload that was tried.
const PAYLOAD_BYTES_MAX: u64 = 16 << 20;
/// Processes of a role that were tried.
const PROCESSES_MAX: u32 = 16;
/// Topics that were tried.
const TOPICS_MAX: u32 = 1000;
/// What the histories of one end may take, so that a mistaken depth does not fill the memory.
const HISTORY_BYTES_MAX: u64 = 2 << 30;
