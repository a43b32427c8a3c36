//! The systems of this driver and how each is assembled.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::rc::Rc;

use myelin_bench_kit::protocol::{
    Prepare, Reliability, Role, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Driver, Error, Link, Publisher, RoundTrip, Stream, Subscriber};

use crate::call;
use crate::datagram::{self, DatagramPublisher, DatagramSubscriber};
use crate::eventfd::{self, Listen, Signal};
use crate::futex::{Futex, SpinFutex};
use crate::limit::TimeLimit;
use crate::network_path::NetworkPath;
use crate::oneway::{OneWayPublisher, OneWaySubscriber};
use crate::peer::{Ends, Peer};
use crate::segment::{self, Lane, Layout};
use crate::slots::{self, SlotCounters, SlotPublisher, SlotSubscriber};
use crate::spin::Spin;
use crate::stream::{self, StreamPublisher, StreamSubscriber};

/// The driver of the operating system's primitives.
pub struct Os;

impl Driver for Os {
    fn systems(&self) -> Vec<System> {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let about = "a call of the receiver's function: the floor of every callback";
        let callback = System {
            topology: Topology::OneProcess,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            floor: true,
            workloads: vec![Workload::Stream, Workload::Image, Workload::Publish],
            ..System::new(CALLBACK, about, &release, Wait::Callback, Transport::Process)
        };
        MECHANISMS.iter().map(|it| it.system(&release)).chain([callback]).collect()
    }

    /// The depth of a stream is memory, which is faulted in before the run.
    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        let (depth, message_bytes) = (prepare.depth, prepare.message_bytes());
        let slots = u64::from(depth.max(1)).next_power_of_two();
        if prepare.workload.is_one_way()
            && slots.saturating_mul(message_bytes as u64) > LANE_BYTES_MAX
        {
            return Err(Error::new(format!("depth: {depth} messages of {message_bytes} B"))
                .remedy(format!("use at most {LANE_BYTES_MAX} B in all")));
        }
        Ok(())
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        Mechanism::open(prepare)?.round_trip()
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        if prepare.system == CALLBACK {
            return Ok(call::open(prepare.subscribers));
        }
        Mechanism::open(prepare)?.stream()
    }
}

/// `os.tcp` through what this function makes of a connection, for a driver that encrypts. The clones of a stream
/// share it; reads and writes return after a slice of time ([`limit`](crate::limit)).
pub struct Encrypted<S>(pub fn(OwnedFd, &Prepare) -> Result<S, Error>);

impl<S: Read + Write + AsFd + Clone + 'static> Encrypted<S> {
    /// The description of the system `name`.
    pub fn system(&self, name: &str, about: &str) -> System {
        let tcp = Os.system(TCP).expect("it is one of its mechanisms");
        System { name: name.into(), about: about.into(), secure: true, ..tcp }
    }

    /// Opens a side of a round trip.
    pub fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        self.connect(prepare)?.round_trip()
    }

    /// Opens a side of a stream.
    pub fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        self.connect(prepare)?.stream()
    }

    fn connect(&self, prepare: &Prepare) -> Result<Opened, Error> {
        connect(
            prepare,
            |_| stream::tcp(),
            Some(stream::tcp_across),
            |side, ends| {
                // Both ends are one socket.
                let [socket, _] = exactly(ends)?;
                let stream = self.0(socket, prepare)?;
                Ok(over_bytes(side, stream.clone(), stream, TimeLimit::of_socket()))
            },
        )
    }
}

/// What a side has opened, by the workload.
enum Opened {
    RoundTrip(Box<dyn RoundTrip>),
    Stream(Stream),
}

impl Opened {
    fn round_trip(self) -> Result<Box<dyn RoundTrip>, Error> {
        match self {
            Opened::RoundTrip(link) => Ok(link),
            Opened::Stream(_) => Err(Error::new("a round trip has both directions")),
        }
    }

    fn stream(self) -> Result<Stream, Error> {
        match self {
            Opened::Stream(stream) => Ok(stream),
            Opened::RoundTrip(_) => Err(Error::new("a stream has one direction")),
        }
    }
}

/// One system: its name, and how it is assembled.
struct Mechanism {
    name: &'static str,
    about: &'static str,
    wait: Wait,
    transport: Transport,
    /// Makes both sides' ends, ping's first, with memory for these lanes. Runs in pong.
    make: Make,
    /// Makes this side's ends with the other side on another host; only for systems that support
    /// it.
    across: Option<MakeOwn>,
    /// Opens one side on its ends.
    open: Open,
    /// Slots support both; for queues of the kernel, the kernel determines it.
    reliability: &'static [Reliability],
}

/// Everything that this process needs to open its side.
struct Side<'a> {
    prepare: &'a Prepare,
    peer: Rc<Peer>,
}

type Open = fn(&Side<'_>, Ends) -> Result<Opened, Error>;
type Make = fn(&[Layout; 2]) -> Result<[Ends; 2], Error>;
type MakeOwn = fn(&NetworkPath<'_>) -> Result<Ends, Error>;

const MECHANISMS: &[Mechanism] = &[
    in_memory(
        "os.spin",
        "shared memory; both sides spin on the cache line: the hard floor",
        Wait::Poll,
        |side, ends| over_slots(side, &ends, Spin, Spin),
    ),
    in_memory(
        "os.spin-futex",
        "shared memory; spins for 50 us, then sleeps on a futex; a wake-up only for sleepers",
        Wait::Adaptive,
        |side, ends| over_slots(side, &ends, SpinFutex, SpinFutex),
    ),
    in_memory(
        "os.futex",
        "shared memory; sleeps on a futex and wakes for each message",
        Wait::Block,
        |side, ends| over_slots(side, &ends, Futex, Futex),
    ),
    Mechanism {
        make: memory_and_eventfds,
        ..in_memory(
            "os.eventfd",
            "shared memory; sleeps on an eventfd and writes one for each message",
            Wait::Block,
            over_eventfds,
        )
    },
    in_kernel(
        "os.pipe",
        "a pipe for each direction",
        |_| stream::pipes(),
        |side, ends| over_stream(side, ends, TimeLimit::of_thread()?),
    ),
    in_kernel("os.unix-stream", "a pair of UNIX stream sockets", |_| stream::unix(), over_sockets),
    in_kernel(
        "os.unix-dgram",
        "UNIX datagram sockets; one datagram per 65000 B",
        |_| datagram::unix(),
        over_datagrams,
    ),
    Mechanism {
        transport: Transport::Loopback,
        across: Some(datagram::udp_across),
        reliability: &[Reliability::BestEffort],
        ..in_kernel(
            "os.udp",
            "UDP sockets; one datagram per 65000 B, paced so that the buffer does not overflow",
            |_| datagram::udp(),
            over_datagrams,
        )
    },
    Mechanism {
        transport: Transport::Loopback,
        across: Some(stream::tcp_across),
        ..in_kernel(TCP, "TCP sockets with TCP_NODELAY", |_| stream::tcp(), over_sockets)
    },
];

const fn in_memory(name: &'static str, about: &'static str, wait: Wait, open: Open) -> Mechanism {
    Mechanism {
        name,
        about,
        wait,
        transport: Transport::SharedMemory,
        make: memory,
        across: None,
        open,
        reliability: &[Reliability::BestEffort, Reliability::Reliable],
    }
}

const fn in_kernel(name: &'static str, about: &'static str, make: Make, open: Open) -> Mechanism {
    Mechanism {
        transport: Transport::Kernel,
        make,
        reliability: &[Reliability::Reliable],
        ..in_memory(name, about, Wait::Block, open)
    }
}

impl Mechanism {
    fn open(prepare: &Prepare) -> Result<Opened, Error> {
        let found = MECHANISMS.iter().find(|mechanism| mechanism.name == prepare.system);
        let mechanism =
            found.ok_or_else(|| Error::new(format!("os has no system `{}`", prepare.system)))?;
        connect(prepare, mechanism.make, mechanism.across, mechanism.open)
    }

    fn system(&self, kernel_release: &str) -> System {
        // A datagram's parts are counted by the size that all messages have.
        let has_parts = ["os.udp", "os.unix-dgram"].contains(&self.name);
        let one_way = if has_parts { Workload::streams_of_one_size() } else { Workload::streams() };
        System {
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            across_hosts: self.across.is_some(),
            floor: true,
            workloads: [Workload::roundtrip_only(), one_way].concat(),
            streams: Streams { reliability: self.reliability.to_vec(), ..Streams::default() },
            ..System::new(self.name, self.about, kernel_release, self.wait, self.transport)
        }
    }
}

/// Connects this side to the other and opens it; returns when both are ready.
fn connect(
    prepare: &Prepare,
    make: Make,
    across: Option<MakeOwn>,
    open: impl FnOnce(&Side<'_>, Ends) -> Result<Opened, Error>,
) -> Result<Opened, Error> {
    let (peer, ends) = match (&prepare.network, across) {
        (Some(network), Some(make)) => {
            Peer::meet_across(prepare, &NetworkPath::new(prepare, network)?, make)
        }
        _ => Peer::meet(prepare, || make(&Layout::both(prepare))),
    }?;
    let side = Side { prepare, peer: Rc::new(peer) };
    let opened = open(&side, ends)?;
    side.peer.both_ready(prepare)?;
    Ok(opened)
}

fn memory(layouts: &[Layout; 2]) -> Result<[Ends; 2], Error> {
    let pongs = segment::create(layouts)?;
    Ok([vec![pongs.try_clone()?], vec![pongs]])
}

/// Ends: memory, ping's eventfd, pong's.
fn memory_and_eventfds(layouts: &[Layout; 2]) -> Result<[Ends; 2], Error> {
    let mut sides = memory(layouts)?;
    for _ in 0..2 {
        let eventfd = eventfd::create()?;
        sides[0].push(eventfd.try_clone()?);
        sides[1].push(eventfd);
    }
    Ok(sides)
}

/// In a stream ping's outgoing lane carries the messages; in the other one, pong reports what it has
/// released.
fn over_slots(
    side: &Side<'_>,
    memory: &[OwnedFd],
    wake: impl slots::Wake + 'static,
    wait: impl slots::Wait + 'static,
) -> Result<Opened, Error> {
    let Side { prepare, peer } = side;
    let memory = memory.first().ok_or_else(too_few_ends)?;
    let [to_pong, to_ping] = Lane::map(memory, &Layout::both(prepare))?;
    let is_ping = prepare.role == Role::Ping;
    if prepare.workload.is_one_way() {
        return Ok(Opened::Stream(if is_ping {
            let is_reliable = prepare.reliability == Reliability::Reliable;
            let patience_ns = is_reliable.then_some(prepare.reply_timeout_ns);
            Stream::publisher(Box::new(OneWayPublisher::new(
                to_pong,
                to_ping,
                wake,
                peer,
                patience_ns,
            )))
        } else {
            Stream::subscriber(Box::new(OneWaySubscriber::new(to_pong, to_ping, wait, peer)))
        }));
    }
    let (outgoing, incoming) = if is_ping { (to_pong, to_ping) } else { (to_ping, to_pong) };
    let counters = Rc::new(SlotCounters::default());
    Ok(Opened::RoundTrip(Box::new(Link::new(
        SlotPublisher::new(outgoing, wake, &counters),
        SlotSubscriber::new(incoming, wait, &counters, peer),
    ))))
}

fn over_eventfds(side: &Side<'_>, ends: Ends) -> Result<Opened, Error> {
    let [memory, pings, pongs] = exactly(ends)?;
    let (ours, theirs) = match side.prepare.role {
        Role::Ping => (pings, pongs),
        _ => (pongs, pings),
    };
    let listen = Listen { eventfd: ours, limit: TimeLimit::of_thread()? };
    over_slots(side, &[memory], Signal(theirs), listen)
}

fn over_sockets(side: &Side<'_>, ends: Ends) -> Result<Opened, Error> {
    over_stream(side, ends, TimeLimit::of_socket())
}

fn over_stream(side: &Side<'_>, ends: Ends, limit: TimeLimit) -> Result<Opened, Error> {
    let [reading, writing] = exactly(ends)?.map(File::from);
    Ok(over_bytes(side, reading, writing, limit))
}

fn over_bytes(
    side: &Side<'_>,
    reading: impl Read + AsFd + 'static,
    writing: impl Write + 'static,
    limit: TimeLimit,
) -> Opened {
    let has_lengths = side.prepare.workload == Workload::Replay;
    let patience_ns = match side.prepare.network {
        None => side.prepare.reply_timeout_ns,
        Some(_) => side.prepare.reply_timeout_ns.max(INTERRUPTED_NS_MAX),
    };
    let message_bytes = side.prepare.message_bytes();
    by_workload(
        side.prepare,
        StreamPublisher::new(writing, &side.peer, patience_ns, has_lengths),
        StreamSubscriber::new(reading, &side.peer, limit, message_bytes, has_lengths),
    )
}

fn over_datagrams(side: &Side<'_>, ends: Ends) -> Result<Opened, Error> {
    let [reading, writing] = exactly(ends)?;
    let Side { prepare, peer } = side;
    let burst = datagram::burst(&reading, prepare.network.is_some())?;
    let burst = peer.agree(prepare, burst)?;
    let patience_ns = if prepare.network.is_some() { 0 } else { prepare.reply_timeout_ns };
    Ok(by_workload(
        prepare,
        DatagramPublisher::new(writing, peer, patience_ns, burst),
        DatagramSubscriber::new(reading, peer, prepare.message_bytes(), burst),
    ))
}

/// Both ends in a round trip, this role's in a stream.
fn by_workload(
    prepare: &Prepare,
    publisher: impl Publisher + 'static,
    subscriber: impl Subscriber + 'static,
) -> Opened {
    match (prepare.workload.is_one_way(), prepare.role) {
        (false, _) => Opened::RoundTrip(Box::new(Link::new(publisher, subscriber))),
        (true, Role::Ping) => Opened::Stream(Stream::publisher(Box::new(publisher))),
        (true, _) => Opened::Stream(Stream::subscriber(Box::new(subscriber))),
    }
}

fn exactly<const N: usize>(ends: Ends) -> Result<[OwnedFd; N], Error> {
    ends.try_into().map_err(|_| too_few_ends())
}

fn too_few_ends() -> Error {
    Error::new("pong did not send as many file descriptors as ping needs")
        .remedy("raise `ulimit -n` if it is low")
}

/// How long a writer waits for a connection to another host that takes nothing: a network may come
/// back, and TCP retries at doubling intervals.
const INTERRUPTED_NS_MAX: u64 = 60_000_000_000;
const CALLBACK: &str = "os.call";
const TCP: &str = "os.tcp";
/// Limit for the messages of a stream's depth, whose memory is faulted in before the run.
const LANE_BYTES_MAX: u64 = 4 << 30;
/// Far below what a message's offsets can hold; eight messages of this size fit into memory.
const PAYLOAD_BYTES_MAX: u64 = 64 * 1024 * 1024;
