//! Driver of `myelin bench` for ZeroMQ: PUB and SUB over UNIX sockets (`ipc://`).
//!
//! ```text
//! main.rs           the system and what the kit calls
//! link.rs, link.c   the adaptor against libzmq
//! ```
//! `README.md` says what was chosen, why, and what limits there are. `check/` holds a round trip
//! written without the kit.

mod link;

use std::process::ExitCode;

use myelin_bench_kit::protocol::{
    Prepare, Reliability, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Driver, Error, RoundTrip, Stream};

fn main() -> ExitCode {
    myelin_bench_kit::main(&ZeroMq)
}

struct ZeroMq;

impl Driver for ZeroMq {
    fn systems(&self) -> Vec<System> {
        vec![System {
            name: IPC.to_owned(),
            about: "ZeroMQ: PUB and SUB over a UNIX socket, messages filled in place".to_owned(),
            version: link::version(),
            wait: Wait::Block,
            transport: Transport::Kernel,
            topology: Topology::TwoProcesses,
            loans: true,
            daemon: false,
            missing: link::missing(),
            payload_bytes_max: 0,
            across_hosts: false,
            floor: false,
            workloads: [Workload::roundtrip_only(), Workload::streams()].concat(),
            streams: Streams {
                reliability: vec![Reliability::BestEffort, Reliability::Reliable],
                publishers_max: 0,
                subscribers_max: 0,
                topics_max: 0,
            },
        }]
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        if prepare.system != IPC {
            return Err(Error::new(format!("no system {}", prepare.system)));
        }
        if let Some(key) = prepare.options.keys().next() {
            return Err(Error::new(format!("options.zeromq.{key}: there is no such option"))
                .remedy("leave it out: this driver has no options")
                .key(key));
        }
        if prepare.depth == 0 || i32::try_from(prepare.depth).is_err() {
            // To ZeroMQ, 0 is no limit.
            return Err(Error::new(format!("{IPC}: a depth of {} cannot be", prepare.depth))
                .remedy("workload.depth: at least 1"));
        }
        Ok(())
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        self.check(prepare)?;
        link::open(prepare)
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        self.check(prepare)?;
        link::open_stream(prepare)
    }
}

const IPC: &str = "zeromq.ipc";
