//! The line protocol between lab and driver: one JSON object per line.
//!
//! `driver describe` prints a [`Description`] and ends. `driver check` reads one `prepare` and
//! answers with an empty `ready`, or with the reason why the scenario cannot work. `driver clean`
//! removes what killed processes of the driver have left behind. `driver run` reads [`Command`]s
//! from standard input and writes [`Event`]s to standard output:
//!
//! ```text
//! lab                            driver
//!  │ {"prepare": {...}}            │   opens the middleware, waits until matched, pre-faults
//!  │ ────────────────────────────▶ │
//!  │ ◀──────────────── {"ready": } │
//!  │ {"start": {"at_ns": T}}       │   ping: warm-up, then measures; pong: answers or takes
//!  │ ────────────────────────────▶ │
//!  │ ◀───────────────── {"done": } │   ping, after its last message
//!  │ "stop"                        │   pong, daemon: end; ping: leave
//!  │ ────────────────────────────▶ │
//!  │ ◀───────────────── {"done": } │   pong, daemon
//! ```
//! A system in one process has only ping. `{"error": {...}}` may replace any answer; the driver
//! then ends with a non-zero exit status. End of input means `stop`, so a driver never outlives its
//! lab. Standard error is for people and goes into the run's log.

mod clocks;
mod system;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::fmt;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::clock::{self, Calibration};
use crate::error::Reason;
use crate::message::HEADER_BYTES;
pub use clocks::{ClockDiscipline, Exchange, Ptp};
pub use system::{Description, Reliability, Streams, System, Topology, Transport, Wait};

/// Version of this protocol; lab and driver must agree.
pub const PROTOCOL: u32 = 1;

/// What the processes of a run do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Ping writes, pong answers with the same payload, ping takes the answer.
    #[default]
    Roundtrip,
    /// Ping publishes without answers; pong has the subscribers and polls them. In one process the
    /// subscribers are callbacks, and the publish call lasts until all have been called.
    Publish,
    /// Ping publishes by a schedule without answers. The other end takes each message in its
    /// system's way of waiting, or is called with it. One way.
    Stream,
    /// Like `Stream`, with camera frames: filled, then stamped, then published. The other end
    /// copies each frame by `memcpy` and by streaming stores, which is timed separately.
    Image,
    /// Ping publishes back to back; then it searches for the highest rate without loss.
    Flood,
    /// Ping publishes as soon as its end has matched, until pong has taken a message.
    Startup,
    /// Like `Stream`, with the messages of a recording: each at its time, on its topic, with its
    /// size ([`Prepare::recording`]).
    Replay,
}

impl Workload {
    /// The name in scenarios and in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Roundtrip => "roundtrip",
            Workload::Publish => "publish",
            Workload::Stream => "stream",
            Workload::Image => "image",
            Workload::Flood => "flood",
            Workload::Startup => "startup",
            Workload::Replay => "replay",
        }
    }

    /// Whether messages go one way; such workloads use
    /// [`Driver::open_stream`](crate::Driver::open_stream).
    pub fn is_one_way(self) -> bool {
        !matches!(self, Workload::Roundtrip | Workload::Publish)
    }

    /// Whether ping publishes without taking.
    pub fn has_one_direction(self) -> bool {
        self.is_one_way() || self == Workload::Publish
    }

    /// The one-way workloads of a system whose messages may have any size.
    pub fn streams() -> Vec<Workload> {
        [Workload::streams_of_one_size(), vec![Workload::Replay]].concat()
    }

    /// The one-way workloads of a system whose messages all have the size of
    /// [`Prepare::payload_bytes`].
    pub fn streams_of_one_size() -> Vec<Workload> {
        vec![Workload::Stream, Workload::Image, Workload::Flood, Workload::Startup]
    }

    /// The workloads of a driver that does not name any.
    pub fn roundtrip_only() -> Vec<Workload> {
        vec![Workload::Roundtrip]
    }
}

/// How much of a message is written before publishing and read after taking.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Touch {
    /// The whole message is written; for each message the stamps, one per KiB, are renewed and
    /// checked.
    #[default]
    Stamps,
    /// Only the sequence number is written into a loan, and only it and the length are checked. The
    /// warm-up is as with `Stamps`. A system without loans copies the whole message as always.
    Header,
}

impl Touch {
    /// The name in scenarios and in the protocol.
    pub fn name(self) -> &'static str {
        match self {
            Touch::Stamps => "stamps",
            Touch::Header => "header",
        }
    }

    /// Whether it is the default of scenarios.
    pub fn is_default(&self) -> bool {
        *self == Touch::default()
    }
}

/// The role of a process in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Publishes and measures; waits for the answer if there is one.
    Ping,
    /// Answers with the same bytes, or takes the messages of its subscribers.
    Pong,
    /// Supervises the daemon of the middleware.
    Daemon,
    /// Across hosts only, one process on each host. Index 0, on ping's host, reads the clock of
    /// index 1, on pong's host, until it is stopped.
    Clock,
}

/// The order for a driver: everything it needs to know for one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prepare {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Name of the system.
    pub system: String,
    /// The role of this process.
    pub role: Role,
    /// Name of the run, unique on this host, for topics and sockets; letters, digits and `-`.
    pub run: String,
    /// A small number that separates this run from other users of the middleware (DDS domain).
    pub domain: u32,
    /// Bytes of payload in a message, in addition to the 8 of its sequence number; of the largest
    /// one if they have several sizes.
    pub payload_bytes: u64,
    /// Messages to measure; 0 for no limit.
    pub messages: u64,
    /// Time to measure for, in nanoseconds; 0 for no limit.
    pub duration_ns: u64,
    /// Messages to exchange before measuring; an upper limit if `warmup_ns` is given.
    pub warmup_messages: u64,
    /// Time to exchange messages before measuring, for round trips; 0 for no limit. The first
    /// measured message has the number `warmup_messages` in any case.
    #[serde(default)]
    pub warmup_ns: u64,
    /// Messages per second; `None` for back to back.
    pub rate_hz: Option<f64>,
    /// An answer that takes longer counts as lost; in nanoseconds.
    pub reply_timeout_ns: u64,
    /// Time limit for the two sides to find each other, in nanoseconds.
    pub match_timeout_ns: u64,
    /// Only every n-th record is stored; 1 stores all.
    pub record_every: u64,
    /// For round trips: only every n-th record has stamps of the message's parts (loan, fill, wake,
    /// take of pong); the others have the flag [`LEAN`](crate::samples::LEAN). 1 stamps all.
    #[serde(default = "all")]
    pub parts_every: u64,
    /// The sample file, which has its full size already; `None` for a daemon.
    pub samples: Option<PathBuf>,
    /// Whether the sample file is a ring, for a stream without end: its capacity is a power of two,
    /// and newer records replace older ones.
    #[serde(default, skip_serializing_if = "is_not")]
    pub ring: bool,
    /// The run's folder, for configuration files.
    pub directory: PathBuf,
    /// Whether to lock all memory and pre-fault the stack.
    pub lock_memory: bool,
    /// Seed of random numbers.
    pub seed: u64,
    /// What the two roles do.
    #[serde(default)]
    pub workload: Workload,
    /// How much of a message is written and read.
    #[serde(default)]
    pub touch: Touch,
    /// How the schedule of a stream deviates from an even rate.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// The frame of an image run; `payload_bytes` is its size. `None` for other workloads.
    #[serde(default)]
    pub frame: Option<Frame>,
    /// The messages of [`Workload::Replay`]; `None` for other workloads.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recording: Option<Recording>,
    /// Only in one process: the sample file of the receiving end.
    #[serde(default)]
    pub pong_samples: Option<PathBuf>,
    /// Only in one process: the CPU of the taking thread named `pong`; `None` leaves it where the
    /// lab has placed ping's process. The thread starts with the run.
    #[serde(default)]
    pub pong_cpu: Option<u32>,
    /// Only in one process: the `SCHED_FIFO` priority of that thread; `None` leaves its class.
    #[serde(default)]
    pub pong_fifo: Option<u32>,
    /// Subscribers of each topic that ping publishes to. For [`Workload::Publish`] there may be 0
    /// or more, all in pong's process, or in ping's if that is the only one. For streams each is
    /// the pong of its own process, and ping waits until all have matched.
    #[serde(default = "one")]
    pub subscribers: u32,
    /// Publishers of each topic, for streams. Each is the ping of its own process, and pong waits
    /// until all have matched.
    #[serde(default = "one")]
    pub publishers: u32,
    /// Index among the processes of this role, from 0.
    #[serde(default)]
    pub index: u32,
    /// Topics between ping and pong, for streams; messages are sent to them in turn.
    #[serde(default = "one")]
    pub topics: u32,
    /// What happens to a message for which a subscriber has no room; for streams.
    #[serde(default)]
    pub reliability: Reliability,
    /// How many messages of a topic are kept for a slow subscriber, for streams (history depth,
    /// KEEP_LAST).
    #[serde(default = "depth_default")]
    pub depth: u32,
    /// For ping of [`Workload::Flood`] and [`Workload::Startup`]: the sample file of pong, whose
    /// [`exchanges`](crate::samples::SampleFile::exchanges) are the messages that it has taken.
    #[serde(default)]
    pub taken_counter: Option<PathBuf>,
    /// The network to the other process, if that is on another host; `None` on one host.
    #[serde(default)]
    pub network: Option<Network>,
    /// The identity of this process, for a system that is [`secure`](System::secure); the kit writes
    /// it to [`enclave`](Self::enclave).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<Identity>,
    /// The folder of this identity in a keystore; set by the kit, in the driver's process only.
    #[serde(skip)]
    pub enclave: Option<PathBuf>,
    /// The scenario's `[options.<driver>]` table.
    #[serde(default)]
    pub options: serde_json::Map<String, serde_json::Value>,
}

impl Prepare {
    /// Bytes of the largest message: payload and sequence number.
    pub fn message_bytes(&self) -> usize {
        HEADER_BYTES.saturating_add(self.payload_bytes as usize)
    }

    /// Whether this role publishes: always in a round trip, otherwise only ping.
    pub fn publishes(&self) -> bool {
        self.role == Role::Ping || !self.workload.has_one_direction()
    }

    /// Whether this role takes: always in a round trip, otherwise only pong.
    pub fn subscribes(&self) -> bool {
        self.role != Role::Ping || !self.workload.has_one_direction()
    }

    /// Processes of the other side, which this one must match.
    pub fn others(&self) -> u32 {
        match (self.workload.has_one_direction(), self.role) {
            (false, _) => 1,
            (true, Role::Ping) => self.subscribers,
            (true, _) => self.publishers,
        }
    }

    /// When matching must be over, on `CLOCK_MONOTONIC`, if it begins now.
    pub fn match_until_ns(&self) -> u64 {
        clock::monotonic_ns().saturating_add(self.match_timeout_ns)
    }

    /// Bytes of the largest payload of `topic`.
    pub fn payload_bytes_of(&self, topic: u32) -> u64 {
        let recorded = self.recording.as_ref().map(|recording| &recording.payload_bytes);
        let of_topic = recorded.and_then(|bytes| bytes.get(topic as usize));
        of_topic.copied().unwrap_or(self.payload_bytes)
    }

    /// The path of a configuration file `name` in the run's folder. Across hosts each of two roles
    /// has its own.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(self.file_prefix().to_owned() + name)
    }

    /// The prefix of such files' names.
    pub(crate) fn file_prefix(&self) -> &'static str {
        match (&self.network, self.role) {
            (None, _) => "",
            (Some(_), Role::Ping) => "ping-",
            (Some(_), _) => "pong-",
        }
    }
}

/// The files of an enclave of a keystore in the layout of SROS 2, by name, each with its text: the
/// certificates in PEM (`cert.pem`, `identity_ca.cert.pem`, …), the private key (`key.pem`), and the
/// signed documents of DDS Security.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Identity(pub BTreeMap<String, String>);

/// The names alone: one of the files is a private key.
impl fmt::Debug for Identity {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        to.debug_set().entries(self.0.keys()).finish()
    }
}

/// The network between two hosts, from the view of one. All addresses are of one family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The interface of this host that leads to the other.
    pub interface: String,
    /// Address of this host.
    pub own: IpAddr,
    /// The other host's address.
    pub peer: IpAddr,
    /// The first of [`PORTS`] TCP and UDP ports that belong to this run on both hosts.
    pub port: u16,
}

/// Number of ports of a run across hosts.
pub const PORTS: u16 = 16;

fn is_not(flag: &bool) -> bool {
    !flag
}

fn all() -> u64 {
    1
}

fn one() -> u32 {
    1
}

fn depth_default() -> u32 {
    DEPTH_DEFAULT
}

/// The default of [`Prepare::depth`].
pub const DEPTH_DEFAULT: u32 = 16;

/// An uncompressed camera frame, rgb8: three bytes per pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
pub struct Frame {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Frame {
    /// Its size in bytes.
    pub fn bytes(self) -> u64 {
        3 * u64::from(self.width) * u64::from(self.height)
    }
}

/// The messages of a recording.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Recording {
    /// The file of its [`Trace`](crate::trace::Trace).
    pub trace: PathBuf,
    /// Bytes of the largest payload of each topic.
    pub payload_bytes: Vec<u64>,
}

/// How the schedule of a stream deviates from an even rate. It is derived from the run's seed
/// beforehand, so two systems with the same seed get the same schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(feature = "schema", derive(schemars::JsonSchema))]
#[serde(default, deny_unknown_fields)]
pub struct Arrivals {
    /// Standard deviation of a normally distributed shift of each message, in per cent of the
    /// period, cut off at half a period.
    pub jitter_percent: f64,
    /// Growth of the period per second, in parts per million of itself: a publisher whose clock
    /// drifts.
    pub drift_ppm_per_s: f64,
    /// One in this many messages, chosen at random, is not sent; 0 for none.
    pub missing_one_in: u32,
    /// Factor of the period from the middle of the run on; 1 or 0 for no change.
    pub period_factor: f64,
}

/// Messages from lab to driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Open everything.
    Prepare(Box<Prepare>),
    /// Begin.
    Start {
        /// Start time on `CLOCK_MONOTONIC`.
        at_ns: u64,
    },
    /// End.
    Stop,
}

/// Messages from driver to lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Both directions are matched (ping, pong), or the daemon answers.
    Ready(Ready),
    /// The role has finished.
    Done(Done),
    /// The role has failed.
    Error(Reason),
}

/// The message of a driver that is ready.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ready {
    /// Further processes to observe (a daemon's).
    #[serde(default)]
    pub pids: Vec<u32>,
    /// When both directions were matched, on `CLOCK_MONOTONIC`; 0 if unknown.
    #[serde(default)]
    pub matched_ns: u64,
    /// When pong of [`Workload::Startup`] took the first message, on `CLOCK_MONOTONIC`; 0
    /// otherwise.
    #[serde(default)]
    pub first_ns: u64,
    /// The clock's costs as measured by this process; absent for a daemon.
    #[serde(default)]
    pub clock: Option<Calibration>,
    /// Remarks for the report, for instance a limit that could not be raised.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The counts of a run. The driver counts every message, recorded or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Messages published, without the warm-up.
    pub sent: u64,
    /// Messages of the warm-up; absent if it was the ordered number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmed_up: Option<u64>,
    /// Messages answered (ping) or taken (pong), each counted once.
    pub received: u64,
    /// Messages never answered. At the receiving end of a stream: those missing below the highest
    /// number that arrived; in one process, those missing of all that were sent.
    pub lost: u64,
    /// Additional answers to the same message.
    pub duplicates: u64,
    /// Answers that arrived after the answer to a later message.
    pub out_of_order: u64,
    /// Messages whose payload was damaged.
    pub corrupt: u64,
    /// When measuring began, on the driver's clock.
    pub begin_ns: u64,
    /// When measuring ended.
    pub end_ns: u64,
    /// CPU time of all threads of this process from the first measured message to the last, in
    /// nanoseconds; absent if unknown.
    #[serde(default)]
    pub cpu_ns: Option<u64>,
    /// Further counts of this driver, by name.
    #[serde(default)]
    pub more: BTreeMap<String, u64>,
    /// Remarks for the report that are only known at the end, for instance why messages were lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// For [`Role::Clock`] with index 0: its exchanges, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
    /// For [`Role::Clock`]: how the clocks of its host were synchronised, before and after its
    /// exchanges.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub clock_discipline: Vec<ClockDiscipline>,
    /// Only in one process: the counts of the receiving end. Its `cpu_ns` is absent, as ping's
    /// covers the whole process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pong: Option<Box<Done>>,
}
