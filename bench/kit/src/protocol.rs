//! The line protocol between lab and driver: one JSON object a line.
//!
//! `driver describe` prints a [`Description`] and ends. `driver check` reads one `prepare` and says
//! `ready` with nothing in it, or why the scenario cannot work. `driver clean` removes what killed
//! processes of the driver have left behind. `driver run` reads [`Command`]s from
//! standard input and writes [`Event`]s to standard output:
//!
//! ```text
//! lab                            driver
//!  │ {"prepare": {...}}            │   opens the middleware, waits until matched, pre-faults
//!  │ ────────────────────────────▶ │
//!  │ ◀──────────────── {"ready": } │
//!  │ {"start": {"at_ns": T}}       │   ping: warm-up, then measures; pong: answers or takes
//!  │ ────────────────────────────▶ │
//!  │ ◀───────────────── {"done": } │   ping, when its messages are spent
//!  │ "stop"                        │   pong, daemon: end; ping: leave
//!  │ ────────────────────────────▶ │
//!  │ ◀───────────────── {"done": } │   pong, daemon
//! ```
//! Of a system in one process there is only ping. `{"error": {...}}` may come instead of any answer; the driver then ends with a non-zero exit
//! status. End of input means `stop`: a driver never outlives its lab. Standard error is for
//! people and goes into the run's log.

mod clocks;
mod system;
pub(crate) mod writer;

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use crate::clock::Calibration;
use crate::error::Reason;
pub use clocks::{Exchange, Keeping, Ptp};
pub use system::{Description, Reliability, Streams, System, Topology, Transport, Wait};

/// Version of this protocol; lab and driver must agree.
pub const PROTOCOL: u32 = 1;

/// What the processes of a run do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Workload {
    /// Ping writes, pong answers with the same payload, ping takes the answer.
    #[default]
    Roundtrip,
    /// Ping publishes and is not answered; pong holds the subscribers and polls them. In one process
    /// the subscribers are callbacks, and the publish call lasts until all have been called.
    Publish,
    /// Ping publishes by a schedule and is not answered; the other end takes each message as its
    /// system waits, or is called with it. One way.
    Stream,
    /// As `Stream`, with frames of a camera: filled, then stamped, then published; the other end
    /// copies each frame by `memcpy` and by streaming stores, timed apart from the way.
    Image,
    /// Ping publishes back to back; then it searches for the highest rate of which nothing is lost.
    Flood,
    /// Ping publishes as soon as its end has matched, until pong has taken something.
    Startup,
}

impl Workload {
    /// As it is written in scenarios and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Workload::Roundtrip => "roundtrip",
            Workload::Publish => "publish",
            Workload::Stream => "stream",
            Workload::Image => "image",
            Workload::Flood => "flood",
            Workload::Startup => "startup",
        }
    }

    /// Whether messages go one way, by [`Driver::open_stream`](crate::Driver::open_stream).
    pub fn is_one_way(self) -> bool {
        !matches!(self, Workload::Roundtrip | Workload::Publish)
    }

    /// All that a system does whose ends are streams, besides round trips.
    pub fn streams() -> Vec<Workload> {
        vec![Workload::Stream, Workload::Image, Workload::Flood, Workload::Startup]
    }

    /// What a driver can run that says nothing else.
    pub fn roundtrip_only() -> Vec<Workload> {
        vec![Workload::Roundtrip]
    }
}

/// How much of a message is written before it is published, and read after it was taken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Touch {
    /// All of it is written; a stamp in every KiB is renewed and checked for each message.
    #[default]
    Stamps,
    /// Into a loan only the sequence number is written, and only it and the length are checked.
    /// The warm-up is as with `Stamps`. A system without loans copies what it always copies.
    Header,
}

impl Touch {
    /// As it is written in scenarios and on the wire.
    pub fn name(self) -> &'static str {
        match self {
            Touch::Stamps => "stamps",
            Touch::Header => "header",
        }
    }

    /// Whether this is what a scenario means that does not say.
    pub fn is_default(&self) -> bool {
        *self == Touch::default()
    }
}

/// The part a process plays in a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Publishes and measures; waits for the answer if it is to be answered.
    Ping,
    /// Answers with the same bytes, or takes what its subscribers get.
    Pong,
    /// Supervises the daemon of the middleware.
    Daemon,
    /// Across hosts only, one process on each: that of index 0, on ping's host, asks that of index
    /// 1, on pong's, what its clock reads, until it is told to stop.
    Clock,
}

/// Everything a driver needs to know for one run.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Prepare {
    /// [`PROTOCOL`].
    pub protocol: u32,
    /// Which of the driver's systems.
    pub system: String,
    /// Which part to play.
    pub role: Role,
    /// Name of the run, unique on this host; letters, digits and `-`. Names topics and sockets.
    pub run: String,
    /// A small number that separates this run from other users of the middleware (DDS domain).
    pub domain: u32,
    /// Bytes of payload in a message, beyond the 8 of its sequence number.
    pub payload_bytes: u64,
    /// Messages to measure; 0 for no limit.
    pub messages: u64,
    /// Time to measure for, in nanoseconds; 0 for no limit.
    pub duration_ns: u64,
    /// Messages to exchange before measuring; at most, where `warmup_ns` is given.
    pub warmup_messages: u64,
    /// Of round trips: time to exchange messages for before measuring; 0 for no limit. The first
    /// that is measured has the number `warmup_messages` in any case.
    #[serde(default)]
    pub warmup_ns: u64,
    /// Messages a second; `None` for as fast as answers come.
    pub rate_hz: Option<f64>,
    /// How long an answer may take before its message counts as lost, in nanoseconds.
    pub reply_timeout_ns: u64,
    /// How long the two sides may take to find each other, in nanoseconds.
    pub match_timeout_ns: u64,
    /// Keeps the record of every n-th message only; 1 keeps all.
    pub record_every: u64,
    /// Of round trips: the parts of a message (loan, fill, wake, take of pong) are stamped in every
    /// n-th record only, and the others bear [`LEAN`](crate::samples::LEAN); 1 stamps all.
    #[serde(default = "all")]
    pub parts_every: u64,
    /// The sample file, already of its full size; `None` for a daemon.
    pub samples: Option<PathBuf>,
    /// A folder of this run in which configuration files may be written.
    pub directory: PathBuf,
    /// Locks all memory and pre-faults the stack.
    pub lock_memory: bool,
    /// For whatever is random.
    pub seed: u64,
    /// What the two roles do.
    #[serde(default)]
    pub workload: Workload,
    /// How much of a message is written and read.
    #[serde(default)]
    pub touch: Touch,
    /// How the schedule of a stream departs from its rate.
    #[serde(default)]
    pub arrivals: Arrivals,
    /// The frame of an image run; `payload_bytes` is its size. `None` for other workloads.
    #[serde(default)]
    pub frame: Option<Frame>,
    /// One process only: the sample file of the receiving end, which is pong's where there are two.
    #[serde(default)]
    pub pong_samples: Option<PathBuf>,
    /// One process only: the CPU on which the thread named `pong` takes; `None` leaves it where the
    /// lab has put ping's process. The thread begins with the run.
    #[serde(default)]
    pub pong_cpu: Option<u32>,
    /// One process only: `SCHED_FIFO` with this priority for that thread; `None` leaves its class.
    #[serde(default)]
    pub pong_fifo: Option<u32>,
    /// Subscribers of each topic that ping publishes to. For [`Workload::Publish`] 0 or more, all of
    /// them pong's; in one process, ping's. For streams each is the pong of a process of its own:
    /// ping waits until so many have matched.
    #[serde(default = "one")]
    pub subscribers: u32,
    /// Of streams: publishers of each topic, each the ping of a process of its own. Pong waits until
    /// so many have matched.
    #[serde(default = "one")]
    pub publishers: u32,
    /// Which of the processes of this role, from 0.
    #[serde(default)]
    pub index: u32,
    /// Of streams: topics between ping and pong; messages go to them in turn.
    #[serde(default = "one")]
    pub topics: u32,
    /// Of streams: what becomes of a message for which a subscriber has no room.
    #[serde(default)]
    pub reliability: Reliability,
    /// Of streams: how many messages of a topic are kept for a subscriber that lags (history
    /// depth, KEEP_LAST).
    #[serde(default = "depth_default")]
    pub depth: u32,
    /// Of [`Workload::Flood`] and [`Workload::Startup`], ping alone: the sample file of pong, whose
    /// [`exchanges`](crate::samples::SampleFile::exchanges) are what it has taken.
    #[serde(default)]
    pub heard: Option<PathBuf>,
    /// The way to the other process where it is on another host; `None` where it is on this one.
    #[serde(default)]
    pub network: Option<Network>,
    /// The scenario's `[options.<driver>]` table.
    #[serde(default)]
    pub options: serde_json::Map<String, serde_json::Value>,
}

impl Prepare {
    /// Where a configuration file goes: `name` in the run's folder, of which two roles across hosts
    /// have each their own.
    pub fn file(&self, name: &str) -> PathBuf {
        self.directory.join(self.file_prefix().to_owned() + name)
    }

    /// What the names of such files begin with.
    pub(crate) fn file_prefix(&self) -> &'static str {
        match (&self.network, self.role) {
            (None, _) => "",
            (Some(_), Role::Ping) => "ping-",
            (Some(_), _) => "pong-",
        }
    }
}

/// The way between two hosts, seen from one of them. All addresses are of one family.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Network {
    /// The interface of this host that leads to the other.
    pub interface: String,
    /// Its address.
    pub own: IpAddr,
    /// The other host's address.
    pub peer: IpAddr,
    /// The first of [`PORTS`] ports, TCP and UDP, that are this run's on both hosts.
    pub port: u16,
}

/// How many ports a run across hosts has.
pub const PORTS: u16 = 16;

fn all() -> u64 {
    1
}

fn one() -> u32 {
    1
}

fn depth_default() -> u32 {
    DEPTH_DEFAULT
}

/// [`Prepare::depth`] where nothing is said.
pub const DEPTH_DEFAULT: u32 = 16;

/// An uncompressed camera frame, rgb8: three bytes a pixel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Frame {
    /// Pixels in a row.
    pub width: u32,
    /// Rows.
    pub height: u32,
}

impl Frame {
    /// Its size.
    pub fn bytes(self) -> u64 {
        3 * u64::from(self.width) * u64::from(self.height)
    }
}

/// How the schedule of a stream departs from its rate. Everything is drawn from the run's seed
/// before the run, so two systems with one seed see the same schedule.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Arrivals {
    /// Each message is moved by a normally distributed time with this standard deviation, in per
    /// cent of the period, cut off at half a period.
    pub jitter_percent: f64,
    /// The period grows by this much over a second, in parts per million of itself: a publisher
    /// whose clock drifts.
    pub drift_ppm_per_s: f64,
    /// One message in so many is not sent, drawn at random; 0 for none.
    pub missing_one_in: u32,
    /// From the middle of the run on the period is this times as long; 1 or 0 for no change.
    pub period_factor: f64,
}

/// Lab to driver.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Command {
    /// Open everything.
    Prepare(Box<Prepare>),
    /// Begin.
    Start {
        /// When, on `CLOCK_MONOTONIC`.
        at_ns: u64,
    },
    /// End.
    Stop,
}

/// Driver to lab.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Event {
    /// Both directions are matched (ping, pong), or the daemon answers.
    Ready(Ready),
    /// The role has done its part.
    Done(Done),
    /// It could not.
    Error(Reason),
}

/// What a driver says when it is ready.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Ready {
    /// Further processes to observe (a daemon's).
    #[serde(default)]
    pub pids: Vec<u32>,
    /// When both directions were matched, on `CLOCK_MONOTONIC`; 0 if the driver does not say.
    #[serde(default)]
    pub matched_ns: u64,
    /// Of [`Workload::Startup`], pong alone: when the first message was taken, on
    /// `CLOCK_MONOTONIC`; 0 otherwise.
    #[serde(default)]
    pub first_ns: u64,
    /// The clock as this process finds it; absent for a daemon.
    #[serde(default)]
    pub clock: Option<Calibration>,
    /// Remarks for the report, for instance a limit that could not be raised.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The counts of a run, kept by the driver for every message, recorded or not.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Done {
    /// Messages published, the warm-up not included.
    pub sent: u64,
    /// Messages of the warm-up; absent where they are as many as the lab said.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub warmed_up: Option<u64>,
    /// Messages answered (ping) or taken (pong), each counted once.
    pub received: u64,
    /// Messages never answered. At the receiving end of a stream: those missing below the highest
    /// number that came; in one process, of all that were sent.
    pub lost: u64,
    /// Answers beyond the first to the same message.
    pub duplicates: u64,
    /// Answers that came after the answer to a later message.
    pub out_of_order: u64,
    /// Messages whose payload was not as sent.
    pub corrupt: u64,
    /// When measuring began and ended, on the driver's clock.
    pub begin_ns: u64,
    /// See `begin_ns`.
    pub end_ns: u64,
    /// CPU time of this process, all threads, from the first measured message to the last, in
    /// nanoseconds; absent if the driver does not know it.
    #[serde(default)]
    pub cpu_ns: Option<u64>,
    /// Further counts of this driver, by name.
    #[serde(default)]
    pub more: BTreeMap<String, u64>,
    /// Remarks for the report that are known at the end alone, for instance why messages were lost.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub notes: Vec<String>,
    /// Of [`Role::Clock`] with index 0: what it has asked, in order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub exchanges: Vec<Exchange>,
    /// Of [`Role::Clock`]: how the clocks of its host were kept, before it asked or answered, and
    /// after.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub keeping: Vec<Keeping>,
    /// One process only: the counts of the receiving end, which pong has where there are two. Its
    /// `cpu_ns` is absent: ping's is that of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pong: Option<Box<Done>>,
}
