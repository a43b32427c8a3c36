//! `myelin.dds`: the route to other hosts, and `myelin.dds-secure`: the same with a keystore. On one host each process keeps its sockets in its own
//! folder, so that the library sees two hosts.
//!
//! Round trips are reliable, like those of the other systems over UDP: a best-effort sample of
//! several megabytes always loses some fragment. Streams follow their scenario.

use std::os::fd::IntoRawFd;
use std::path::{Path, PathBuf};
use std::time::Duration;

use myelin::{Node, Policy, Threads, Wait};
use myelin_bench_kit::protocol::{
    self, Prepare, Reliability, Role, Streams, System, Transport, Workload,
};
use myelin_bench_kit::{Error, Link, RoundTrip, Stream};

use crate::link::{LoanPublisher, Taker, said};
use crate::{VERSION, loans, stream, topic, unmatched};

/// The systems' names.
pub const NAMES: [&str; 2] = [NAME, SECURE];
const NAME: &str = "myelin.dds";
const SECURE: &str = "myelin.dds-secure";

/// Their descriptions.
pub fn systems() -> [System; 2] {
    let about = "Myelin's route to other hosts, through CycloneDDS; the subscriber sleeps";
    let secure = "myelin.dds with a keystore: DDS Security, and TLS for bulk";
    [system(NAME, about), System { secure: true, ..system(SECURE, secure) }]
}

fn system(name: &str, about: &str) -> System {
    System {
        loans: true,
        missing: missing(),
        payload_bytes_max: PAYLOAD_BYTES_MAX,
        across_hosts: true,
        workloads: [Workload::roundtrip_only(), Workload::streams()].concat(),
        streams: Streams {
            reliability: vec![Reliability::BestEffort, Reliability::Reliable],
            publishers_max: PEERS_MAX,
            subscribers_max: PEERS_MAX,
            ..Streams::default()
        },
        ..System::new(name, about, VERSION, protocol::Wait::Block, Transport::Loopback)
    }
}

/// Why CycloneDDS cannot be used. A measuring process asks for the systems, too; it does not load a
/// library that it may not need.
fn missing() -> Option<String> {
    let describes = std::env::args().nth(1).is_some_and(|verb| verb == "describe");
    describes.then(myelin_dds::load)?.err().map(|error| error.to_string())
}

/// Opens one side of a round trip.
pub fn open(prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
    let (ours, theirs) = match prepare.role {
        Role::Ping => ("ping", "pong"),
        _ => ("pong", "ping"),
    };
    let node = node(prepare)?;
    let reply = Duration::from_nanos(prepare.reply_timeout_ns);
    let topic = |name| topic(&node, prepare, name).depth(ROUNDTRIP_DEPTH).reliable_or_fail(reply);
    let publisher = topic(ours).publisher().map_err(said)?;
    let subscriber = topic(theirs).subscriber().map_err(said)?;
    let limit = Duration::from_nanos(prepare.match_timeout_ns);
    if !publisher.wait_for_match(1, limit) || !subscriber.wait_for_match(1, limit) {
        return Err(unmatched(limit));
    }
    let publisher = LoanPublisher::new(publisher, loans(prepare, 0));
    Ok(Box::new(Link::new(publisher, Taker::new(subscriber, Wait::Block))))
}

/// Opens one role of a stream.
pub fn open_stream(prepare: &Prepare) -> Result<Stream, Error> {
    let limit = Duration::from_nanos(prepare.match_timeout_ns);
    let node = node(prepare)?;
    let topic = stream::with_qos(topic(&node, prepare, "stream"), prepare);
    if prepare.role == Role::Ping {
        let publisher = topic.publisher().map_err(said)?;
        if !publisher.wait_for_match(prepare.subscribers as usize, limit) {
            return Err(unmatched(limit));
        }
        return Ok(Stream::publisher(Box::new(LoanPublisher::new(publisher, loans(prepare, 0)))));
    }
    let subscriber = stream::subscriber(&topic, prepare)?;
    if !subscriber.wait_for_match(prepare.publishers as usize, limit) {
        return Err(unmatched(limit));
    }
    Ok(Stream::subscriber(Box::new(Taker::new(subscriber, Wait::Block))))
}

fn node(prepare: &Prepare) -> Result<Node, Error> {
    let node = Node::builder(&format!("bench-{}", prepare.run)).domain(prepare.domain);
    let node = match &prepare.network {
        Some(way) => node.interface(&way.own.to_string()).peers([way.peer.to_string()]),
        None => node.interface("lo").peers(["127.0.0.1"]).runtime_dir(own_folder(prepare)?),
    };
    let node = match prepare.enclave.as_deref().and_then(in_keystore) {
        Some((keystore, enclave)) => node.keystore(keystore).enclave(&enclave),
        None => node,
    };
    node.network(true).lease(LEASE).threads(threads()).open().map_err(said)
}

/// The keystore of an enclave's folder, and the enclave's name.
fn in_keystore(folder: &Path) -> Option<(&Path, String)> {
    let keystore = folder.parent()?.parent()?;
    Some((keystore, format!("/{}", folder.file_name()?.to_str()?)))
}

/// Settings of the node's threads. A tuned process has a realtime policy. CycloneDDS's own threads
/// inherit it if CycloneDDS is used directly, but a node must request it for its threads.
fn threads() -> Threads {
    let mut parameters = libc::sched_param { sched_priority: 0 };
    // SAFETY: 0 is this thread; the kernel writes to valid parameters.
    let (policy, read) =
        unsafe { (libc::sched_getscheduler(0), libc::sched_getparam(0, &mut parameters)) };
    let policy = match policy & !libc::SCHED_RESET_ON_FORK {
        libc::SCHED_FIFO if read == 0 => Policy::Fifo(parameters.sched_priority as u8),
        _ => Policy::Usual,
    };
    Threads { policy, ..Threads::default() }
}

/// A private folder of this process in the run's folder, with a name short enough for a socket in
/// it. No other process needs to find it.
fn own_folder(prepare: &Prepare) -> Result<PathBuf, Error> {
    let path = prepare.directory.join(format!("{:?}-{}", prepare.role, prepare.index));
    let opened = std::fs::create_dir_all(&path).and_then(|()| std::fs::File::open(&path));
    let folder = opened.map_err(|error| Error::new(format!("{}: {error}", path.display())))?;
    // Stays open until the process ends.
    Ok(PathBuf::from(format!("/proc/self/fd/{}", folder.into_raw_fd())))
}

/// Messages of DDS have less than 4 GiB; a link carries this much in a few seconds.
const PAYLOAD_BYTES_MAX: u64 = 1 << 30;
/// CycloneDDS's lease: longer than the cuts of scenarios, like that of the other systems over DDS.
const LEASE: Duration = Duration::from_secs(10);
/// Samples kept in a reliable round trip, as in the other systems over DDS.
const ROUNDTRIP_DEPTH: u32 = 16;
/// Without multicast this many processes of a host find each other (`myelin-dds`).
const PEERS_MAX: u32 = 15;
