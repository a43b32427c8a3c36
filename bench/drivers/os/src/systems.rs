//! The systems of this driver and how each is assembled.

use std::os::fd::OwnedFd;
use std::rc::Rc;

use myelin_bench_kit::protocol::{
    Prepare, Reliability, Role, Streams, System, Topology, Transport, Wait, Workload,
};
use myelin_bench_kit::{Driver, Error, Link, Publisher, RoundTrip, Stream, Subscriber, message};

use crate::call;
use crate::datagram::{self, DatagramPublisher, DatagramSubscriber};
use crate::eventfd::{self, Listen, Ring};
use crate::futex::{Futex, SpinFutex};
use crate::limit::TimeLimit;
use crate::oneway::{OneWayPublisher, OneWaySubscriber};
use crate::peer::{Ends, Peer};
use crate::segment::{self, Lane, Layout};
use crate::slots::{self, Books, SlotPublisher, SlotSubscriber};
use crate::spin::Spin;
use crate::stream::{self, StreamPublisher, StreamSubscriber};
use crate::way::Way;

/// The driver of the operating system's primitives.
pub struct Os;

impl Driver for Os {
    fn systems(&self) -> Vec<System> {
        let release = rustix::system::uname().release().to_string_lossy().into_owned();
        let mut systems: Vec<System> =
            MECHANISMS.iter().map(|mechanism| mechanism.system(&release)).collect();
        systems.push(callback(&release));
        systems
    }

    fn check(&self, prepare: &Prepare) -> Result<(), Error> {
        if prepare.system != CALLBACK {
            Mechanism::of(prepare)?;
        }
        if let Some(key) = prepare.options.keys().next() {
            return Err(Error::new(format!("os has no options; remove `{key}`")).key(key));
        }
        if prepare.payload_bytes > PAYLOAD_BYTES_MAX {
            let (asked, max) = (prepare.payload_bytes, PAYLOAD_BYTES_MAX);
            return Err(Error::new(format!("payload of {asked} B; os carries up to {max} B")));
        }
        let message_bytes = message::HEADER_BYTES + prepare.payload_bytes as usize;
        let slots = u64::from(prepare.depth.max(1)).next_power_of_two();
        let is_one_way = prepare.workload.is_one_way();
        if is_one_way
            && (prepare.depth == 0 || slots.saturating_mul(message_bytes as u64) > LANE_BYTES_MAX)
        {
            return Err(Error::new(format!(
                "depth: {} messages of {message_bytes} B",
                prepare.depth
            ))
            .remedy(format!("use at least 1, and at most {LANE_BYTES_MAX} B in all")));
        }
        Ok(())
    }

    fn open(&self, prepare: &Prepare) -> Result<Box<dyn RoundTrip>, Error> {
        self.check(prepare)?;
        let mechanism = Mechanism::of(prepare)?;
        let (side, ends) = mechanism.meet(prepare)?;
        let opened = (mechanism.open)(&side, ends)?;
        side.peer.both_ready(prepare)?;
        Ok(opened)
    }

    fn open_stream(&self, prepare: &Prepare) -> Result<Stream, Error> {
        self.check(prepare)?;
        if prepare.system == CALLBACK {
            return Ok(call::open(prepare.subscribers));
        }
        let mechanism = Mechanism::of(prepare)?;
        if !mechanism.reliability.contains(&prepare.reliability) {
            let (name, asked) = (mechanism.name, prepare.reliability.name());
            let offered = mechanism.reliability[0].name();
            return Err(Error::new(format!("{name} is not {asked}"))
                .remedy(format!("reliability = {offered:?}, or leave it out of plan.systems")));
        }
        let (side, ends) = mechanism.meet(prepare)?;
        let stream = (mechanism.one_way)(&side, ends)?;
        side.peer.both_ready(prepare)?;
        Ok(stream)
    }
}

/// `os.call`, which has no other side to connect to.
fn callback(kernel_release: &str) -> System {
    System {
        name: CALLBACK.into(),
        about: "a call of the receiver's function: the floor of every callback".into(),
        version: kernel_release.into(),
        wait: Wait::Callback,
        transport: Transport::Process,
        topology: Topology::OneProcess,
        loans: false,
        daemon: false,
        missing: None,
        payload_bytes_max: PAYLOAD_BYTES_MAX,
        across_hosts: false,
        floor: true,
        workloads: vec![Workload::Stream, Workload::Image, Workload::Publish],
        streams: Streams::default(),
    }
}

/// One system: its name, and how it is assembled.
struct Mechanism {
    name: &'static str,
    about: &'static str,
    wait: Wait,
    transport: Transport,
    /// Makes both sides' ends, ping's first, with memory for these lanes. Runs in pong.
    make: fn(&[Layout; 2]) -> Result<[Ends; 2], Error>,
    /// Makes this side's ends with the other side on another host; only for systems that support
    /// it.
    across: Option<MakeOwn>,
    /// Opens one side on its ends.
    open: Open,
    /// Like `open`, for streams from ping to pong.
    one_way: fn(&Side<'_>, Ends) -> Result<Stream, Error>,
    /// Slots support both; for queues of the kernel, the kernel determines it.
    reliability: &'static [Reliability],
}

const EITHER: &[Reliability] = &[Reliability::BestEffort, Reliability::Reliable];
const BEST_EFFORT: &[Reliability] = &[Reliability::BestEffort];
const RELIABLE: &[Reliability] = &[Reliability::Reliable];

/// Everything that this process needs to open its side.
struct Side<'a> {
    prepare: &'a Prepare,
    message_bytes: usize,
    peer: Rc<Peer>,
}

impl Side<'_> {
    fn layouts(&self) -> [Layout; 2] {
        Layout::both(self.prepare, self.message_bytes)
    }
}

type Open = fn(&Side<'_>, Ends) -> Result<Box<dyn RoundTrip>, Error>;
type MakeOwn = fn(&Way<'_>) -> Result<Ends, Error>;

const MECHANISMS: &[Mechanism] = &[
    Mechanism {
        name: "os.spin",
        about: "shared memory; both sides spin on the cache line: the hard floor",
        wait: Wait::Poll,
        transport: Transport::SharedMemory,
        make: memory,
        across: None,
        open: |side, ends| over_slots(side, &ends, Spin, Spin),
        one_way: |side, ends| one_way_over_slots(side, &ends, Spin, Spin),
        reliability: EITHER,
    },
    Mechanism {
        name: "os.spin-futex",
        about: "shared memory; spins for 50 us, then sleeps on a futex; a wake-up only for \
                sleepers",
        wait: Wait::Adaptive,
        transport: Transport::SharedMemory,
        make: memory,
        across: None,
        open: |side, ends| over_slots(side, &ends, SpinFutex, SpinFutex),
        one_way: |side, ends| one_way_over_slots(side, &ends, SpinFutex, SpinFutex),
        reliability: EITHER,
    },
    Mechanism {
        name: "os.futex",
        about: "shared memory; sleeps on a futex and wakes for each message",
        wait: Wait::Block,
        transport: Transport::SharedMemory,
        make: memory,
        across: None,
        open: |side, ends| over_slots(side, &ends, Futex, Futex),
        one_way: |side, ends| one_way_over_slots(side, &ends, Futex, Futex),
        reliability: EITHER,
    },
    Mechanism {
        name: "os.eventfd",
        about: "shared memory; sleeps on an eventfd and writes one for each message",
        wait: Wait::Block,
        transport: Transport::SharedMemory,
        make: memory_and_eventfds,
        across: None,
        open: over_eventfds,
        one_way: one_way_over_eventfds,
        reliability: EITHER,
    },
    Mechanism {
        name: "os.pipe",
        about: "a pipe for each direction",
        wait: Wait::Block,
        transport: Transport::Kernel,
        make: |_| stream::pipes(),
        across: None,
        open: |side, ends| Ok(Box::new(over_stream(side, ends, TimeLimit::of_thread()?)?)),
        one_way: |side, ends| one_way_of(side, over_stream(side, ends, TimeLimit::of_thread()?)?),
        reliability: RELIABLE,
    },
    Mechanism {
        name: "os.unix-stream",
        about: "a pair of UNIX stream sockets",
        wait: Wait::Block,
        transport: Transport::Kernel,
        make: |_| stream::unix(),
        across: None,
        open: |side, ends| Ok(Box::new(over_stream(side, ends, TimeLimit::of_socket())?)),
        one_way: |side, ends| one_way_of(side, over_stream(side, ends, TimeLimit::of_socket())?),
        reliability: RELIABLE,
    },
    Mechanism {
        name: "os.unix-dgram",
        about: "UNIX datagram sockets; one datagram per 65000 B",
        wait: Wait::Block,
        transport: Transport::Kernel,
        make: |_| datagram::unix(),
        across: None,
        open: |side, ends| Ok(Box::new(over_datagrams(side, ends)?)),
        one_way: |side, ends| one_way_of(side, over_datagrams(side, ends)?),
        reliability: RELIABLE,
    },
    Mechanism {
        name: "os.udp",
        about: "UDP sockets; one datagram per 65000 B, paced so that the buffer does not overflow",
        wait: Wait::Block,
        transport: Transport::Loopback,
        make: |_| datagram::udp(),
        across: Some(datagram::udp_across),
        open: |side, ends| Ok(Box::new(over_datagrams(side, ends)?)),
        one_way: |side, ends| one_way_of(side, over_datagrams(side, ends)?),
        reliability: BEST_EFFORT,
    },
    Mechanism {
        name: "os.tcp",
        about: "TCP sockets with TCP_NODELAY",
        wait: Wait::Block,
        transport: Transport::Loopback,
        make: |_| stream::tcp(),
        across: Some(stream::tcp_across),
        open: |side, ends| Ok(Box::new(over_stream(side, ends, TimeLimit::of_socket())?)),
        one_way: |side, ends| one_way_of(side, over_stream(side, ends, TimeLimit::of_socket())?),
        reliability: RELIABLE,
    },
];

impl Mechanism {
    fn of(prepare: &Prepare) -> Result<&'static Self, Error> {
        let found = MECHANISMS.iter().find(|mechanism| mechanism.name == prepare.system);
        found.ok_or_else(|| Error::new(format!("os has no system `{}`", prepare.system)))
    }

    /// Connects this side to the other; returns it with its ends.
    fn meet<'a>(&self, prepare: &'a Prepare) -> Result<(Side<'a>, Ends), Error> {
        let message_bytes = message::HEADER_BYTES + prepare.payload_bytes as usize;
        let (peer, ends) = match (&prepare.network, self.across) {
            (None, _) => Peer::meet(prepare, || (self.make)(&Layout::both(prepare, message_bytes))),
            (Some(network), Some(make)) => {
                Peer::meet_across(prepare, &Way::new(prepare, network)?, make)
            }
            (Some(_), None) => Err(Error::new(format!("{} cannot reach other hosts", self.name))
                .remedy("leave it out of plan.systems")),
        }?;
        Ok((Side { prepare, message_bytes, peer: Rc::new(peer) }, ends))
    }

    fn system(&self, kernel_release: &str) -> System {
        // A datagram's parts are counted by the size that all messages have.
        let has_parts = ["os.udp", "os.unix-dgram"].contains(&self.name);
        let one_way = match has_parts {
            true => Workload::streams_of_one_size(),
            false => Workload::streams(),
        };
        System {
            name: self.name.into(),
            about: self.about.into(),
            version: kernel_release.into(),
            wait: self.wait,
            transport: self.transport,
            loans: false,
            topology: Topology::TwoProcesses,
            daemon: false,
            missing: None,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            across_hosts: self.across.is_some(),
            floor: true,
            workloads: [Workload::roundtrip_only(), one_way].concat(),
            streams: Streams { reliability: self.reliability.to_vec(), ..Streams::default() },
        }
    }
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

fn over_slots(
    side: &Side<'_>,
    memory: &[OwnedFd],
    wake: impl slots::Wake + 'static,
    wait: impl slots::Wait + 'static,
) -> Result<Box<dyn RoundTrip>, Error> {
    let memory = memory.first().ok_or_else(too_few_ends)?;
    let [to_pong, to_ping] = Lane::map(memory, &side.layouts())?;
    let (outgoing, incoming) = match side.prepare.role {
        Role::Ping => (to_pong, to_ping),
        _ => (to_ping, to_pong),
    };
    let books = Rc::new(Books::default());
    Ok(Box::new(Link::new(
        SlotPublisher::new(outgoing, wake, &books),
        SlotSubscriber::new(incoming, wait, &books, &side.peer),
    )))
}

/// Ping's outgoing lane carries the messages; in the other one, pong reports what it has released.
fn one_way_over_slots(
    side: &Side<'_>,
    memory: &[OwnedFd],
    wake: impl slots::Wake + 'static,
    wait: impl slots::Wait + 'static,
) -> Result<Stream, Error> {
    let memory = memory.first().ok_or_else(too_few_ends)?;
    let [to_pong, back] = Lane::map(memory, &side.layouts())?;
    Ok(match side.prepare.role {
        Role::Ping => {
            let is_reliable = side.prepare.reliability == Reliability::Reliable;
            let patience_ns = is_reliable.then_some(side.prepare.reply_timeout_ns);
            let peer = &side.peer;
            Stream::ping(Box::new(OneWayPublisher::new(to_pong, back, wake, peer, patience_ns)))
        }
        _ => Stream::pong(Box::new(OneWaySubscriber::new(to_pong, back, wait, &side.peer))),
    })
}

fn over_eventfds(side: &Side<'_>, ends: Ends) -> Result<Box<dyn RoundTrip>, Error> {
    let [memory, pings, pongs] = exactly(ends)?;
    let (ours, theirs) = match side.prepare.role {
        Role::Ping => (pings, pongs),
        _ => (pongs, pings),
    };
    let listen = Listen { eventfd: ours, limit: TimeLimit::of_thread()? };
    over_slots(side, &[memory], Ring(theirs), listen)
}

fn one_way_over_eventfds(side: &Side<'_>, ends: Ends) -> Result<Stream, Error> {
    let [memory, pings, pongs] = exactly(ends)?;
    let (ours, theirs) = match side.prepare.role {
        Role::Ping => (pings, pongs),
        _ => (pongs, pings),
    };
    let listen = Listen { eventfd: ours, limit: TimeLimit::of_thread()? };
    one_way_over_slots(side, &[memory], Ring(theirs), listen)
}

fn over_stream(
    side: &Side<'_>,
    ends: Ends,
    limit: TimeLimit,
) -> Result<Link<StreamPublisher, StreamSubscriber>, Error> {
    let [reading, writing] = exactly(ends)?;
    let has_lengths = side.prepare.workload == Workload::Replay;
    let patience_ns = match side.prepare.network {
        None => side.prepare.reply_timeout_ns,
        Some(_) => side.prepare.reply_timeout_ns.max(INTERRUPTED_NS_MAX),
    };
    Ok(Link::new(
        StreamPublisher::new(writing, &side.peer, patience_ns, has_lengths),
        StreamSubscriber::new(reading, &side.peer, limit, side.message_bytes, has_lengths),
    ))
}

fn over_datagrams(
    side: &Side<'_>,
    ends: Ends,
) -> Result<Link<DatagramPublisher, DatagramSubscriber>, Error> {
    let [reading, writing] = exactly(ends)?;
    let Side { prepare, message_bytes, peer } = side;
    let burst = datagram::burst(&reading, prepare.network.is_some())?;
    let burst = peer.agree(prepare, burst)?;
    let patience_ns = if prepare.network.is_some() { 0 } else { prepare.reply_timeout_ns };
    Ok(Link::new(
        DatagramPublisher::new(writing, peer, patience_ns, burst),
        DatagramSubscriber::new(reading, peer, *message_bytes, burst),
    ))
}

/// The half of a link that `side` has in a stream.
fn one_way_of(
    side: &Side<'_>,
    link: Link<impl Publisher + 'static, impl Subscriber + 'static>,
) -> Result<Stream, Error> {
    Ok(match side.prepare.role {
        Role::Ping => Stream::ping(link.publisher),
        _ => Stream::pong(link.subscriber),
    })
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
/// Limit for the messages of a stream's depth, whose memory is faulted in before the run.
const LANE_BYTES_MAX: u64 = 4 << 30;
/// Far below what a message's offsets can hold; eight messages of this size fit into memory.
const PAYLOAD_BYTES_MAX: u64 = 64 * 1024 * 1024;
