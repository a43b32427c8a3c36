//! What an analysis yields and every report is made from.
//!
//! [`Summary`] is the stable file `summary.json`; units are in the names, absent means not
//! measured, null means withheld for want of samples. [`Analysis`] adds what only the plots and
//! the per-second tables need.

mod clock;
mod course;
mod cut;
mod detail;
mod observed;
mod params;

use myelin_bench_kit::protocol::{Topology, Transport, Wait, Workload};
use serde::{Deserialize, Serialize};

use crate::machine::Machine;
pub use clock::{ClockFigures, ClockSource};
pub use course::{Around, Course, Field, HeatMap, SlowMessage, Stage, StageMean, Stages, Window};
pub use cut::CutFigures;
pub use detail::{
    Analysis, CurvePoint, Detail, Percentile, Pinned, RUN_QUANTILES, RunPoint, Second,
};
pub use observed::{ObservedColumns, ObservedFigures};
pub use params::{Params, Repeats};

/// `summary.json`.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Summary {
    /// Version of this layout: [`SCHEMA`].
    pub schema: u32,
    /// The machine the figures were measured on.
    pub host: Machine,
    /// The command that repeats the measurement.
    pub command: String,
    /// Every system that was asked for.
    pub systems: Vec<SystemInfo>,
    /// One entry per scenario × system × tuning × parameter point, in plan order.
    pub cells: Vec<Cell>,
    /// What a reader must know: tunings left out, limits not raised, an interrupted plan.
    pub notes: Vec<String>,
    /// What of the results folder could not be read or was not its own: file, reason and remedy.
    /// The rest of the summary is of what is whole. Absent if everything is.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub damage: Vec<String>,
}

impl Summary {
    /// Whether every planned cell has a valid run.
    pub fn all_valid(&self) -> bool {
        self.cells.iter().all(|cell| cell.valid)
    }
}

/// A system as it was found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct SystemInfo {
    /// For instance `cyclonedds.udp`.
    pub name: String,
    /// In one line.
    pub about: String,
    /// Of the middleware; may be empty.
    pub version: String,
    /// How its subscriber waits.
    pub wait: Wait,
    /// What its messages travel over.
    pub transport: Transport,
    /// Where its ends live.
    #[serde(default)]
    pub topology: Topology,
    /// Whether it writes into loaned memory.
    pub loans: bool,
    /// Whether it is a bare primitive of the operating system.
    pub floor: bool,
    /// Why it did not run, and what to install; null if it did.
    pub missing: Option<String>,
}

/// One cell of the experiment, its runs pooled.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Cell {
    /// Name of the scenario.
    pub scenario: String,
    /// What its processes do; absent for round trips.
    #[serde(default, skip_serializing_if = "is_roundtrip")]
    pub workload: Workload,
    /// Name of the system.
    pub system: String,
    /// `default`, `tuned` or `awake`.
    pub tuning: String,
    /// `two-processes`, `one-process` or `two-hosts`.
    pub topology: String,
    /// The parameter point.
    pub params: Params,
    /// Messages a run was asked for; 0 for no limit.
    pub messages_asked: u64,
    /// Seconds a run was asked for; 0 for no limit.
    pub duration_asked_s: f64,
    /// Runs the figures come from.
    pub runs: u32,
    /// Round trips, publish calls, or messages taken, that the figures come from.
    pub samples: u64,
    /// Publish entry at ping until its take of the answer returns: a whole round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<Distribution>,
    /// Publish entry at ping until pong's take returns. Of streams with a rate from the time the
    /// message was due, so that whatever holds ping up counts for every message that had to wait
    /// for it; of other workloads that go one way as `service_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_us: Option<Distribution>,
    /// Of workloads that go one way: from the message's stamp, taken after loan and fill, until the
    /// payload is in hand or the callback is entered. What a closed loop would report: the naive
    /// figure, which a publisher that is held up leaves as it was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub service_us: Option<Distribution>,
    /// The publish call of ping, with loan and fill where the system has loans; of streams and
    /// images without them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_us: Option<Distribution>,
    /// The take of ping, or of the receiving end of a stream; absent for systems that wait inside it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub read_us: Option<Distribution>,
    /// Pong's publish return until ping's wait returns, or of a stream ping's until pong's; absent
    /// for systems that wait inside take.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wake_us: Option<Distribution>,
    /// Round trips, or messages published, a second, back to back; at a rate, the rate reached, of
    /// each publisher.
    pub throughput_per_s: f64,
    /// Of floods: messages taken a second while ping published back to back; median of the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub taken_per_s: Option<f64>,
    /// Of floods: the highest rate found at which nothing was lost and the schedule was kept;
    /// median of the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lossless_per_s: Option<f64>,
    /// CPU of ping, pong and daemons for each message published, from the first measured to the last.
    pub cpu_us_per_message: f64,
    /// CPU of ping, pong and daemons while measuring; 100 is one core. Of streams and images from
    /// the first measured message to the last, by the processes' own CPU clocks.
    pub cpu_percent: f64,
    /// As `cpu_percent`, of the receiving end's process alone, copies of frames included; of streams
    /// and images in two processes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub receiver_cpu_percent: Option<f64>,
    /// Of ping, pong and daemons together, at the end of the run; largest run.
    pub rss_bytes: u64,
    /// As `rss_bytes`, shared pages divided among those that map them.
    pub pss_bytes: u64,
    /// Shared segments the processes have mapped, each counted once; largest run.
    pub shared_bytes: u64,
    /// Ping, pong and daemons, all threads.
    pub voluntary_switches_per_s: f64,
    /// Ping, pong and daemons, all threads.
    pub involuntary_switches_per_s: f64,
    /// While measuring, ping, pong and daemons, minor and major; mean of the runs.
    pub page_faults: f64,
    /// From the start of the later process until both directions matched; median of the runs.
    pub startup_ms: f64,
    /// Of startup runs: from the start of the later process until both ends had matched; over runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub matched_us: Option<Distribution>,
    /// Of startup runs: from the start of the later process until pong had taken a message; over
    /// runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub first_sample_us: Option<Distribution>,
    /// Of systems with a daemon: from its start until it answers, before the processes are started;
    /// median of the runs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub daemon_ms: Option<f64>,
    /// Messages published.
    pub sent: u64,
    /// Messages answered; of a publish run, those taken, by all subscribers together.
    pub received: u64,
    /// Messages never answered; of a publish run, those that were to be taken and were not.
    pub lost: u64,
    /// Answers beyond the first; of a publish run, messages taken again.
    pub duplicates: u64,
    /// Answers that came after the answer to a later message, or messages taken so.
    pub out_of_order: u64,
    /// Messages whose payload was not as sent.
    pub corrupt: u64,
    /// Whether the figures may be used. If false they come from invalid runs.
    pub valid: bool,
    /// What was wrong with runs of this cell, `run N: …`. May be non-empty for a valid cell whose
    /// figures come from the other runs.
    pub invalid_reasons: Vec<String>,

    /// In how many of a hundred cases the intervals of this cell cover the median of the runs' own
    /// percentiles; absent with fewer than 5 runs, which have no interval.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub interval_level_percent: Option<f64>,
    /// Interval over runs of `round_trip_us.p50`: that of the median of the runs' own, and
    /// `round_trip_us.p50` itself; absent with fewer than 5 runs, and where a run has nothing beyond
    /// the percentile.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_p50_interval_us: Option<[f64; 2]>,
    /// As `round_trip_p50_interval_us`, of `round_trip_us.p99`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_p99_interval_us: Option<[f64; 2]>,
    /// As `round_trip_p50_interval_us`, of `round_trip_us.p999`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_p999_interval_us: Option<[f64; 2]>,
    /// As `round_trip_p50_interval_us`, of `write_us.p50`; of publish runs alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub write_p50_interval_us: Option<[f64; 2]>,
    /// As `round_trip_p50_interval_us`, of `one_way_us.p50`; of streams and images alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_p50_interval_us: Option<[f64; 2]>,
    /// As `one_way_p50_interval_us`, of `one_way_us.p99`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_p99_interval_us: Option<[f64; 2]>,
    /// As `one_way_p50_interval_us`, of `one_way_us.p999`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_p999_interval_us: Option<[f64; 2]>,
    /// Whether the repeats have made the interval of the median as narrow as the scenario asks;
    /// absent if it does not ask.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeats: Option<Repeats>,
    /// Runs, of those the figures come from, whose latency went on drifting until their end.
    #[serde(default)]
    pub unsettled_runs: u32,
    /// What each subscriber beyond the first adds to the median publish call; of publish runs with
    /// two subscribers or more, if one alone was measured too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub further_subscriber: Option<FurtherSubscriber>,
    /// The same latencies apart by where the two sides ran. More than one entry with a share above
    /// a few per cent means that `round_trip_us`, or `one_way_us` of a stream, mixes unlike things.
    pub placements: Vec<Placement>,
    /// Send lateness behind the schedule, of streams and images until the loan is asked for; absent
    /// without a rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lateness_us: Option<Distribution>,
    /// Getting the loan and filling it; absent without loans, except that a frame is filled in
    /// either case. Parts of `write_us`, but of streams and images before it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub loan_us: Option<Distribution>,
    /// See `loan_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fill_us: Option<Distribution>,
    /// Of images: copying the frame with `memcpy`, after it was taken: no part of the way.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub memcpy_us: Option<Distribution>,
    /// Of images: copying the frame once more with streaming stores, after `memcpy_us`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stream_copy_us: Option<Distribution>,
    /// CPU by process and thread; mean of the runs.
    pub processes: Vec<ProcessUse>,
    /// Bytes over the loopback interface for each byte of payload and header sent, both ways;
    /// the transport's proof together with `loopback_packets_per_message`.
    pub loopback_bytes_per_byte: f64,
    /// Packets over the loopback interface for each message sent, both ways.
    pub loopback_packets_per_message: f64,
    /// What was observed over time; its figures stand beside the others in the file.
    #[serde(flatten)]
    pub observed: ObservedFigures,
    /// Across hosts: how pong's clock stood to ping's, and how wrong `one_way_us`, `service_us` and
    /// `wake_us` may be because of it; absent where the ends share a clock, as namespaces of one
    /// machine do, and where theirs could not be compared.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub clock: Option<ClockFigures>,
    /// What a cut of the link did, in each run that had one; absent where none had.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuts: Vec<CutFigures>,
    /// Remarks on this cell, for instance `SCHED_FIFO left out: …`.
    pub notes: Vec<String>,
}

/// The slope of the median publish call from one subscriber to several.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct FurtherSubscriber {
    /// (p50 here − p50 at one subscriber) / (subscribers − 1).
    pub ns: f64,
    /// 95 % bootstrap interval over runs of the difference of the medians of the runs' own; null with
    /// fewer than 5 runs of either.
    pub interval_ns: Option<[f64; 2]>,
}

fn is_roundtrip(workload: &Workload) -> bool {
    *workload == Workload::Roundtrip
}

/// A distribution in microseconds. A percentile is null with fewer than ten samples beyond it, and
/// where one of several runs alone reaches it; a median with fewer than ten samples.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Smallest.
    pub min: f64,
    /// Arithmetic mean.
    pub mean: f64,
    /// Median.
    pub p50: Option<f64>,
    /// 90th percentile.
    pub p90: Option<f64>,
    /// 99th percentile.
    pub p99: Option<f64>,
    /// 99.9th percentile.
    pub p999: Option<f64>,
    /// Largest.
    pub max: f64,
}

/// Messages whose two sides ran on the same CPU, or on different ones.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Placement {
    /// Whether ping and pong took the message on the same CPU; of a stream, whether it was
    /// published and taken on one.
    pub same_cpu: bool,
    /// Part of all messages, 0 to 1.
    pub share: f64,
    /// The round trips of this placement; absent of streams and images.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub round_trip_us: Option<Distribution>,
    /// The one-way latencies of this placement; of streams and images alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub one_way_us: Option<Distribution>,
}

impl Placement {
    /// What is compared of this placement.
    pub fn latency(&self) -> Option<&Distribution> {
        self.round_trip_us.as_ref().or(self.one_way_us.as_ref())
    }

    /// Its median; `None` where that was withheld.
    pub fn p50(&self) -> Option<f64> {
        self.latency()?.p50
    }
}

/// CPU of one process of a cell.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ProcessUse {
    /// `ping`, `pong` or the daemon's name.
    pub role: String,
    /// All threads, while measuring; 100 is one core.
    pub cpu_percent: f64,
    /// Part of it in user mode; the split is sampled by the kernel's tick, and null where runs were
    /// too short for it.
    pub user_percent: Option<f64>,
    /// Resident set at the end; largest run.
    pub rss_bytes: u64,
    /// Gave up the CPU itself, all threads.
    pub voluntary_switches_per_s: f64,
    /// Was made to, all threads.
    pub involuntary_switches_per_s: f64,
    /// How many threads; largest run. 0 in a file of an earlier version.
    #[serde(default)]
    pub thread_count: u32,
    /// Threads by name, busiest first: CPU in per cent of a core.
    pub threads: Vec<ThreadUse>,
}

/// CPU of one thread.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct ThreadUse {
    /// As in `/proc/PID/task/TID/comm`.
    pub name: String,
    /// 100 is one core.
    pub cpu_percent: f64,
}

/// [`Summary::schema`]. Of 1 intervals were bootstraps, which were called 95 % and had less.
pub const SCHEMA: u32 = 2;
