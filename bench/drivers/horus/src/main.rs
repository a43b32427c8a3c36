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

use std::process::ExitCode;

#[cfg(has_horus)]
use myelin_bench_kit::Stream;
use myelin_bench_kit::protocol::{Prepare, Streams, System, Transport, Wait, Workload};
use myelin_bench_kit::run_folder::RunFolders;
use myelin_bench_kit::{Driver, Error, RoundTrip};

fn main() -> ExitCode {
    myelin_bench_kit::main(&Horus)
}

struct Horus;

impl Driver for Horus {
    fn systems(&self) -> Vec<System> {
        let about =
            "HORUS topic, objects of fixed size by value; the subscriber polls without limit";
        let version = env!("HORUS_VERSION");
        vec![System {
            missing: missing(),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            workloads: [Workload::roundtrip_only(), Workload::streams_of_one_size()].concat(),
            streams: Streams { subscribers_max: SUBSCRIBERS_MAX, ..Streams::default() },
            ..System::new(SYSTEM, about, version, Wait::Poll, Transport::SharedMemory)
        }]
    }

    #[cfg(not(has_horus))]
    fn open(&self, _: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        Err(Error::new(missing().unwrap_or_default()))
    }

    #[cfg(has_horus)]
    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        bridge::check_size(prepare.payload_bytes)
    }

    #[cfg(has_horus)]
    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        link::open(prepare)
    }

    #[cfg(has_horus)]
    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        link::open_stream(prepare)
    }

    fn clean(&self) -> Result<(), Error> {
        FOLDERS.clean()
    }
}

/// Why it cannot run here.
fn missing() -> Option<String> {
    let missing = env!("HORUS_MISSING");
    (!missing.is_empty()).then(|| missing.to_owned())
}

const SYSTEM: &str = "horus.shm";
/// HORUS names the folder of a namespace so.
const FOLDERS: RunFolders = RunFolders::in_memory("horus_myelin_");
/// Objects are passed by value, on the stack.
const PAYLOAD_BYTES_MAX: u64 = 1 << 20;
/// HORUS registers 16 participants of a topic, including the publisher.
const SUBSCRIBERS_MAX: u32 = 15;
