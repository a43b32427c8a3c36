//! Driver of `myelin bench` for HORUS: its topics between two processes, polled.
//!
//! ```text
//! main.rs    the system, and the functions that the kit calls
//! link.rs    the topics of one role, with the kit's interfaces; waits until both roles are there
//! bridge.rs  HORUS, through the interface of `bridge/`
//! ```
//! `bridge/` is compiled against the HORUS that `HORUS_DIR` names at build time (`build.rs`).
//! Without one, the system is listed as missing. `README.md` explains the choices and HORUS's
//! peculiarities.

#[cfg(has_horus)]
mod bridge;
#[cfg(has_horus)]
mod link;
// Unused without HORUS.
#[cfg_attr(not(has_horus), allow(dead_code))]
#[path = "../../run_folder.rs"]
mod run_folder;

use std::process::ExitCode;

#[cfg(has_horus)]
use myelin_bench_kit::Stream;
use myelin_bench_kit::protocol::{
    Prepare, Reliability, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Driver, Error, RoundTrip};

fn main() -> ExitCode {
    myelin_bench_kit::main(&Horus)
}

struct Horus;

impl Driver for Horus {
    fn systems(&self) -> Vec<System> {
        vec![System {
            name: SYSTEM.into(),
            about:
                "HORUS topic, objects of fixed size by value; the subscriber polls without limit"
                    .into(),
            version: env!("HORUS_VERSION").into(),
            wait: Wait::Poll,
            transport: Transport::SharedMemory,
            topology: Topology::TwoProcesses,
            loans: false,
            daemon: false,
            missing: missing(),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            across_hosts: false,
            floor: false,
            workloads: [Workload::roundtrip_only(), Workload::streams_of_one_size()].concat(),
            streams: Streams {
                reliability: vec![Reliability::BestEffort],
                publishers_max: 1,
                subscribers_max: SUBSCRIBERS_MAX,
                topics_max: 1,
            },
        }]
    }

    #[cfg(not(has_horus))]
    fn check(&self, _: &Prepare) -> Result<(), Error> {
        Err(absent())
    }

    #[cfg(not(has_horus))]
    fn open(&self, _: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        Err(absent())
    }

    #[cfg(has_horus)]
    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        if let Some(key) = prepare.options.keys().next() {
            return Err(Error::new(format!("{SYSTEM} has no options; remove `{key}`")).key(key));
        }
        bridge::check_size(prepare.payload_bytes)
    }

    #[cfg(has_horus)]
    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        self.check(prepare)?;
        link::open(prepare)
    }

    #[cfg(has_horus)]
    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        self.check(prepare)?;
        link::open_stream(prepare)
    }

    fn clean(&self) -> Result<(), Error> {
        run_folder::clean(FOLDER)
    }
}

/// Why it cannot run here.
fn missing() -> Option<String> {
    let missing = env!("HORUS_MISSING");
    (!missing.is_empty()).then(|| missing.to_owned())
}

#[cfg(not(has_horus))]
fn absent() -> Error {
    Error::new(missing().unwrap_or_default())
}

const SYSTEM: &str = "horus.shm";
/// Prefix of a run's folder; HORUS names the folder of a namespace so.
const FOLDER: &str = "horus_myelin_";
/// Objects are passed by value, on the stack.
const PAYLOAD_BYTES_MAX: u64 = 1 << 20;
/// HORUS registers 16 participants of a topic, including the publisher.
const SUBSCRIBERS_MAX: u32 = 15;
