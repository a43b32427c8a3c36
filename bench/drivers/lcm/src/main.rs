//! Driver of `myelin bench` for LCM 1.3: UDP multicast that stays on the loopback interface.
//!
//! ```text
//! main.rs           the system and what the kit calls
//! link.rs, link.c   the adaptor against liblcm, and how both sides find each other
//! loopback.c        keeps LCM's sockets on the loopback interface
//! ```
//! `README.md` says what was chosen, why, and what limits there are.

mod link;

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::process::ExitCode;

use myelin_bench_kit::protocol::{
    Prepare, Reliability, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Driver, Error, RoundTrip, Stream};

fn main() -> ExitCode {
    myelin_bench_kit::main(&Lcm)
}

struct Lcm;

impl Driver for Lcm {
    fn systems(&self) -> Vec<System> {
        vec![System {
            name: UDPM.to_owned(),
            about: "LCM: UDP multicast on the loopback interface, copied out in the handler".into(),
            version: link::version(),
            wait: Wait::Block,
            transport: Transport::Loopback,
            topology: Topology::TwoProcesses,
            loans: false,
            daemon: false,
            missing: link::missing().or_else(no_route),
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            across_hosts: false,
            floor: false,
            workloads: [Workload::roundtrip_only(), Workload::streams()].concat(),
            streams: Streams {
                reliability: vec![Reliability::BestEffort],
                publishers_max: PROCESSES_MAX,
                subscribers_max: PROCESSES_MAX,
                topics_max: TOPICS_MAX,
            },
        }]
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        if prepare.system != UDPM {
            return Err(Error::new(format!("no system {}", prepare.system)));
        }
        if let Some(key) = prepare.options.keys().next() {
            return Err(Error::new(format!("options.lcm.{key}: there is no such option"))
                .remedy("leave it out: this driver has no options")
                .key(key));
        }
        let bytes = prepare.payload_bytes;
        if bytes > PAYLOAD_BYTES_MAX {
            return Err(Error::new(format!(
                "{UDPM}: at most {PAYLOAD_BYTES_MAX} B of payload, not {bytes}"
            )));
        }
        if prepare.depth == 0 || i32::try_from(prepare.depth).is_err() {
            // To LCM, 0 is no limit.
            return Err(Error::new(format!("{UDPM}: a depth of {} cannot be", prepare.depth))
                .remedy("workload.depth: at least 1"));
        }
        if prepare.reliability == Reliability::Reliable {
            return Err(Error::new(format!("{UDPM}: nothing is repeated and nobody waits"))
                .remedy("workload.reliability: \"best-effort\""));
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

/// LCM refuses to start on a host that has no route to its group, be it one that it will not take.
fn no_route() -> Option<String> {
    let socket = UdpSocket::bind("0.0.0.0:0").ok()?;
    let error = socket.connect(GROUP).err()?;
    (error.kind() == ErrorKind::NetworkUnreachable).then(|| {
        "no route for multicast: ip route add 239.255.76.67 dev lo (as root, until the next start)"
            .to_owned()
    })
}

const UDPM: &str = "lcm.udpm";
/// LCM's default; which port matters only to the run.
const GROUP: &str = "239.255.76.67:7667";
/// LCM keeps 16 MiB of messages that are not complete (its MAX_FRAG_BUF_TOTAL_SIZE), so a larger
/// one is dropped as it comes; 64 KiB of that for whatever else is under way.
const PAYLOAD_BYTES_MAX: u64 = (16 << 20) - 65_536;
/// Processes of a role: they know each other by a bit (see `match` in link.c).
const PROCESSES_MAX: u32 = 64;
/// Channels that were tried; LCM sets no limit, but looks through all of them for each packet that
/// names one for the first time.
const TOPICS_MAX: u32 = 1024;
