//! A cell of the summary, and the table of all figures. The table lists each figure once, with its
//! type, how it follows from the runs, which direction is better, which cells have it, its meaning,
//! and, if folders are compared by it, how.
//!
//! The table determines the fields of [`Cell`] and thus the keys of `summary.json`, the columns of
//! `summary.csv`, the verdicts of comparisons, and the tables of `docs/reference/results.md`, which a
//! test compares. To add a scalar figure: list it here, list its measurement in
//! `analyse/measures.rs`, and copy its row into `docs/reference/results.md`.

use myelin_bench_kit::protocol::{Topology, Workload};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{
    ClockFigures, CutFigures, Distribution, FurtherSubscriber, LoadFigures, Params, Placement,
    ProcessUse, Repeats, TopicFigures,
};
use crate::scenario::Tuning;

/// A figure of a cell, or a value that distinguishes the cell from others.
#[derive(Debug)]
pub struct Metric {
    /// Column of `summary.csv`, and key in `summary.json` if the latter has it as such. It ends in
    /// the unit.
    pub name: &'static str,
    /// Its meaning, for the page and `docs/reference/results.md`.
    pub about: &'static str,
    /// How the figure of a cell follows from those of its runs.
    pub(crate) over_runs: OverRuns,
    pub(crate) better: Better,
    /// Which cells have it, if not all. `summary.csv` has no column for it if no cell has it.
    pub(crate) of_some: Option<fn(&Cell) -> bool>,
    pub(crate) of: fn(&Cell) -> Value,
    /// Sets the field of a number.
    pub(crate) set: Option<fn(&mut Cell, Option<f64>)>,
    /// How folders are compared by the figures of its runs, if they are.
    pub(crate) comparison: Option<Compared>,
}

/// How folders are compared by a figure of each run. Lower is better.
#[derive(Clone, Copy, Debug)]
pub struct Compared {
    /// Its heading.
    pub words: &'static str,
    /// The unit of its texts.
    pub unit: &'static str,
    /// Only for latencies: the same figure of messages across CPUs alone.
    pub(crate) across: Option<&'static str>,
    /// Whether such a cell is compared by it.
    pub(crate) is_of: fn(&Cell) -> bool,
    /// A smaller difference does not matter, however large its fraction of the whole is; for
    /// latencies the resolution of the clock counts instead.
    pub(crate) immaterial: f64,
}

impl Metric {
    /// The metric with this name. The names are constants of the program, so a missing one is a bug.
    pub(crate) fn named(name: &str) -> &'static Metric {
        let found = METRICS.iter().find(|metric| metric.name == name);
        found.unwrap_or_else(|| panic!("no metric {name}"))
    }

    /// The metrics by whose runs folders are compared, in the order of reports.
    pub(crate) fn compared() -> impl Iterator<Item = (&'static Metric, Compared)> {
        METRICS.iter().filter_map(|metric| Some((metric, metric.comparison?)))
    }
}

impl Serialize for Metric {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// How the valid runs of a cell determine a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OverRuns {
    /// A property of the cell, independent of its runs.
    Cell,
    /// A figure of single runs, which the cell as a whole does not have.
    Single,
    /// From all messages of all runs together.
    Pooled,
    /// The sum over all runs, or that sum over their total time.
    Sum,
    Mean,
    Median,
    Largest,
    /// The spread of the runs' own percentiles.
    Spread,
}

/// Which of two values is better.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Better {
    Lower,
    Higher,
    /// It depends, or neither is.
    Neither,
}

/// A value; `None` if it was not measured or was withheld.
pub(crate) enum Value {
    Text(String),
    Number(Option<f64>),
    /// Two columns.
    Interval(Option<[f64; 2]>),
    /// A column for each of its parts.
    Distribution(Option<Distribution>),
    /// No column: only its runs have it.
    OfRuns,
}

macro_rules! value {
    ($($type:ty, $found:ident => $value:expr;)*) => {
        $(impl From<$type> for Value {
            fn from($found: $type) -> Self {
                $value
            }
        })*
    };
}

value! {
    String, text => Value::Text(text);
    Option<String>, text => Value::Text(text.unwrap_or_default());
    Vec<String>, lines => Value::Text(lines.join("; "));
    bool, yes => Value::Text(yes.to_string());
    f64, number => Value::Number(Some(number));
    u32, number => Value::Number(Some(number.into()));
    u64, number => Value::Number(Some(number as f64));
    Option<f64>, number => Value::Number(number);
    Option<u64>, number => Value::Number(number.map(|it| it as f64));
    Option<[f64; 2]>, ends => Value::Interval(ends);
    Option<Distribution>, found => Value::Distribution(found);
}

macro_rules! cell {
    (
        of_runs {
            $($run:ident => $run_better:ident $run_has:ident $run_about:literal
              $(by $run_compared:ident)?;)*
        }
        figures {
            $($name:ident $(: $type:ty)? $(as $column:literal)?
              => $over:ident $better:ident $has:ident $about:literal $(by $compared:ident)?
              $(= |$cell:ident| $of:expr)?;)*
        }
        others {
            $($(#[$attribute:meta])* $other:ident: $other_type:ty;)*
        }
    ) => {
        /// One cell of the experiment, its runs pooled.
        #[derive(Clone, Debug, Default, Serialize, Deserialize, JsonSchema)]
        pub struct Cell {
            $($(
                #[doc = $about]
                #[serde(default, skip_serializing_if = "Figure::is_absent")]
                pub $name: $type,
            )?)*
            $($(#[$attribute])* pub $other: $other_type,)*
        }

        /// In the order of the columns of `summary.csv`; new ones come last.
        pub(crate) static METRICS: &[Metric] = &[
            $(Metric {
                name: stringify!($run),
                about: $run_about,
                over_runs: OverRuns::Single,
                better: Better::$run_better,
                of_some: $run_has,
                of: |_| Value::OfRuns,
                set: None,
                comparison: cell!(@optional $($run_compared)?),
            },)*
            $(Metric {
                name: cell!(@name $name $($column)?),
                about: $about,
                over_runs: OverRuns::$over,
                better: Better::$better,
                of_some: $has,
                of: cell!(@of $name $(|$cell| $of)?),
                set: cell!(@set $name $($type)?),
                comparison: cell!(@optional $($compared)?),
            },)*
        ];
    };
    (@optional) => { None };
    (@optional $some:expr) => { Some($some) };
    (@set $name:ident) => { None };
    (@set $name:ident $type:ty) => { Some(|cell, value| cell.$name = Figure::of(value)) };
    (@name $name:ident) => { stringify!($name) };
    (@name $name:ident $column:literal) => { $column };
    (@of $name:ident) => { |cell| cell.$name.clone().into() };
    (@of $name:ident |$cell:ident| $of:expr) => { |$cell| Value::from($of) };
}

// For each figure: name and, for a field, its type; how it follows from the runs, which direction
// is better, which cells have it, its meaning, how folders are compared by it, and where to find it if
// not under its name.
cell! {
    of_runs {
        p50_us => Lower ALL "median latency: round trip, one way or publish call" by P50;
        p99_us => Lower ALL "99th percentile of this latency" by P99;
        cross_p50_us => Lower ALL "like `p50_us`, of messages whose two ends ran on different CPUs";
        cross_p99_us => Lower ALL "like `p99_us`, of messages whose two ends ran on different CPUs";
        first_sample_us => Lower STARTUP "until pong has taken a message" by FIRST_SAMPLE;
    }
    figures {
        scenario: String => Cell Neither ALL "the scenario";
        system: String => Cell Neither ALL "the system";
        tuning: Tuning => Cell Neither ALL "`default`, `tuned` or `awake`" = |cell| word(cell.tuning);
        topology: Topology => Cell Neither ALL "`two-processes`, `one-process` or `two-hosts`"
            = |cell| word(cell.topology);
        payload_bytes => Cell Neither ALL "payload of a message" = |cell| cell.params.size();
        rate_hz => Cell Neither ALL "messages a second; empty: back to back, or an imported trace"
            = |cell| cell.params.rate_hz;
        wait => Cell Neither ALL "how a subscriber waits" = |cell| word(cell.params.wait);
        subscribers => Cell Neither ALL "subscribers of a topic" = |cell| cell.params.subscribers;
        runs: u32 => Cell Neither ALL "runs behind the figures";
        samples: u64 => Cell Neither ALL "samples behind the figures";
        valid: bool => Cell Neither ALL
            "whether a run was valid; if none was, the figures come from invalid runs";
        invalid_reasons: Vec<String> => Cell Neither ALL "why runs were not valid";
        round_trip_p50_interval_us: Option<[f64; 2]> as "round_trip_us_p50" => Spread Neither ALL
            "interval of this percentile over the runs";
        round_trip_p99_interval_us: Option<[f64; 2]> as "round_trip_us_p99" => Spread Neither ALL
            "interval of this percentile over the runs";
        same_cpu_share => Pooled Neither ALL "share of messages whose two ends ran on the same CPU"
            = |cell| same_cpu_share(cell);
        throughput_per_s: Option<f64> => Sum Higher ALL
            "round trips or published messages a second, back to back; with a rate: the rate \
             that each publisher reached";
        cpu_us_per_message: Option<f64> => Sum Lower ALL
            "CPU of ping, pong and daemons for each published message, from the first measured \
             message to the last" by CPU;
        cpu_percent: Option<f64> => Sum Lower ALL
            "CPU of ping, pong and daemons; 100 is one core. In one-way workloads from the first \
             measured message to the last";
        rss_bytes: Option<u64> => Largest Lower ALL "resident memory of ping, pong and daemons at the end";
        pss_bytes: Option<u64> => Largest Lower ALL
            "memory of ping, pong and daemons at the end, with shared pages divided among their \
             users; `tuned` locks all memory" by MEMORY;
        shared_bytes: Option<u64> => Largest Lower ALL "mapped shared segments, each counted once";
        voluntary_switches_per_s: Option<f64> => Sum Lower ALL "voluntary context switches of all threads";
        involuntary_switches_per_s: Option<f64> => Sum Lower ALL
            "involuntary context switches of all threads";
        page_faults: Option<f64> => Mean Lower ALL "minor and major page faults of a run";
        startup_ms: Option<f64> => Median Lower ALL
            "from the start of the later process until both ends have matched";
        sent: u64 => Sum Neither ALL "messages published";
        received: u64 => Sum Neither ALL "messages answered or taken";
        lost: Option<u64> => Sum Lower ALL "messages never answered or never taken";
        duplicates: Option<u64> => Sum Lower ALL "answers after the first one, or messages taken twice";
        out_of_order: u64 => Sum Lower ALL "answers or messages that arrived after a later one";
        corrupt: Option<u64> => Sum Lower ALL "messages whose payload differed from the sent one";
        loopback_bytes_per_byte: Option<f64> => Sum Neither ALL
            "bytes over the loopback interface for each byte of a message; proves the transport";
        loopback_packets_per_message: Option<f64> => Sum Neither ALL
            "packets over the loopback interface for each message";
        touch => Cell Neither TOUCHED "how much of a message is written and read"
            = |cell| word(cell.params.touch);
        workload: Workload => Cell Neither NOT_ROUND_TRIP
            "what the processes do; absent if all cells are round trips"
            = |cell| word(cell.workload);
        write_p50_interval_us: Option<[f64; 2]> as "write_us_p50" => Spread Neither PUBLISH
            "interval of this percentile over the runs";
        further_subscriber_ns => Pooled Lower PUBLISH
            "time that each subscriber after the first adds to the median publish call"
            = |cell| cell.further_subscriber.map(|it| it.ns);
        further_subscriber_ns => Spread Neither PUBLISH "95 % bootstrap interval of that time"
            = |cell| cell.further_subscriber.and_then(|it| it.interval_ns);
        publishers => Cell Neither ONE_WAY "publishers of a topic" = |cell| cell.params.publishers;
        topics => Cell Neither ONE_WAY "topics; messages go to each in turn"
            = |cell| cell.params.topics;
        reliability => Cell Neither ONE_WAY "reliability that the system was set to"
            = |cell| cell.params.reliability.map(word);
        depth => Cell Neither ONE_WAY "messages kept for a slow subscriber"
            = |cell| cell.params.depth.map(f64::from);
        module => Cell Neither ONE_WAY "module of a robot that this stream stands for"
            = |cell| cell.params.module.clone();
        frame => Cell Neither ONE_WAY "frame of an image stream, in pixels"
            = |cell| cell.params.frame.clone();
        arrivals => Cell Neither ONE_WAY "name of the schedule"
            = |cell| cell.params.arrivals.clone();
        receiver_cpu_percent: Option<f64> => Sum Lower ONE_WAY
            "CPU of only the receiving process, with its copies; 100 is one core";
        one_way_p50_interval_us: Option<[f64; 2]> as "one_way_us_p50" => Spread Neither ONE_WAY
            "interval of this percentile over the runs";
        one_way_p99_interval_us: Option<[f64; 2]> as "one_way_us_p99" => Spread Neither ONE_WAY
            "interval of this percentile over the runs";
        one_way_p999_interval_us: Option<[f64; 2]> as "one_way_us_p999" => Spread Neither ONE_WAY
            "interval of this percentile over the runs";
        taken_per_s: Option<f64> => Median Higher FLOOD
            "floods: messages taken a second, back to back";
        lossless_per_s: Option<f64> => Median Higher FLOOD
            "floods: the highest rate that kept its schedule and lost nothing";
        daemon_ms: Option<f64> => Median Lower WITH_DAEMON
            "from the start of the daemon until it answers";
        round_trip_us: Option<Distribution> => Pooled Lower ALL "a whole round trip";
        one_way_us: Option<Distribution> => Pooled Lower ALL
            "from the publish call until the take returns; for streams with a rate, from the \
             time the message was due";
        write_us: Option<Distribution> => Pooled Lower ALL
            "the publish call with loan and fill; for streams and images without them";
        read_us: Option<Distribution> => Pooled Lower ALL
            "the take; absent for systems that wait inside it";
        wake_us: Option<Distribution> => Pooled Lower ALL
            "from the end of publish until the waiting receiver runs";
        loan_us: Option<Distribution> => Pooled Lower ALL "getting the loan";
        fill_us: Option<Distribution> => Pooled Lower ALL "filling the loan";
        lateness_us: Option<Distribution> => Pooled Lower ALL
            "delay behind the schedule; for streams and images until the loan is requested";
        service_us: Option<Distribution> => Pooled Lower ONE_WAY
            "one way from the message’s stamp, after loan and fill; hides the delay of a \
             publisher that is held up";
        memcpy_us: Option<Distribution> => Pooled Lower ONE_WAY
            "images: copying the frame after the take";
        stream_copy_us: Option<Distribution> => Pooled Lower ONE_WAY
            "images: copying the frame again with streaming stores";
        matched_us: Option<Distribution> => Pooled Lower STARTUP
            "start-ups: until both ends have matched";
        first_sample_us: Option<Distribution> => Pooled Lower STARTUP
            "start-ups: until pong has taken a message";
        messages_asked: u64 => Cell Neither ALL "requested messages of a run; 0: no limit";
        duration_asked_s: f64 => Cell Neither ALL "requested time of a run; 0: no limit";
        same_cpu_p50_us => Pooled Lower ALL "median of messages whose two ends ran on the same CPU"
            = |cell| placement_p50(cell, true);
        cross_cpu_p50_us => Pooled Lower ALL "median of messages across CPUs"
            = |cell| placement_p50(cell, false);
        ping_cpu_percent => Sum Lower ALL "as `cpu_percent`, for the processes of this role"
            = |cell| of_role(cell, PING, |it| Some(it.cpu_percent));
        ping_user_percent => Sum Lower ALL "the part of this CPU time in user mode"
            = |cell| of_role(cell, PING, |it| it.user_percent);
        ping_rss_bytes => Largest Lower ALL
            "resident memory of the processes of this role at the end"
            = |cell| of_role(cell, PING, |it| Some(it.rss_bytes as f64));
        pong_cpu_percent => Sum Lower ALL "as `cpu_percent`, for the processes of this role"
            = |cell| of_role(cell, PONG, |it| Some(it.cpu_percent));
        pong_user_percent => Sum Lower ALL "the part of this CPU time in user mode"
            = |cell| of_role(cell, PONG, |it| it.user_percent);
        pong_rss_bytes => Largest Lower ALL
            "resident memory of the processes of this role at the end"
            = |cell| of_role(cell, PONG, |it| Some(it.rss_bytes as f64));
        daemon_cpu_percent => Sum Lower ALL "as `cpu_percent`, for the processes of this role"
            = |cell| of_role(cell, DAEMON, |it| Some(it.cpu_percent));
        daemon_user_percent => Sum Lower ALL "the part of this CPU time in user mode"
            = |cell| of_role(cell, DAEMON, |it| it.user_percent);
        daemon_rss_bytes => Largest Lower ALL
            "resident memory of the processes of this role at the end"
            = |cell| of_role(cell, DAEMON, |it| Some(it.rss_bytes as f64));
        round_trip_p999_interval_us: Option<[f64; 2]> as "round_trip_us_p999" => Spread Neither ALL
            "interval of this percentile over the runs";
        interval_level_percent: Option<f64> => Cell Neither ALL
            "in how many of a hundred cases these intervals cover the median of all such runs: \
             93.75 with five runs; with `runs_max`, of the intervals of all numbers of runs \
             together";
        notes: Vec<String> => Cell Neither ALL "remarks on the cell";
        runqueue_wait_percent: Option<f64> => Sum Lower OBSERVED
            "time that threads waited for a CPU; 100: one thread waited all the time";
        migrations_per_s: Option<f64> => Sum Lower OBSERVED "times a thread moved to another CPU";
        pss_peak_bytes: Option<u64> => Largest Lower OBSERVED "the highest PSS that was observed";
        cycles_per_message: Option<f64> => Sum Lower OBSERVED "CPU cycles for each message";
        instructions_per_message: Option<f64> => Sum Lower OBSERVED "instructions for each message";
        cache_misses_per_message: Option<f64> => Sum Lower OBSERVED "cache misses for each message";
        observation_cpu_percent: Option<f64> => Mean Lower OBSERVED
            "CPU that the observation itself used";
        interval_asked_percent => Cell Neither REPEATED "requested width of the median’s interval"
            = |cell| cell.repeats.map(|it| it.asked_percent);
        interval_reached_percent => Cell Neither REPEATED "reached width of the median’s interval"
            = |cell| cell.repeats.and_then(|it| it.reached_percent);
        interval_is_narrow => Cell Neither REPEATED "whether the reached width is narrow enough"
            = |cell| cell.repeats.map(|it| it.is_narrow.to_string());
        clock_offset_us => Cell Neither TWO_CLOCKS "how far pong’s clock was ahead of ping’s"
            = |cell| clock(cell, |it| it.offset_us);
        clock_drift_ppm => Cell Neither TWO_CLOCKS "how fast pong’s clock gained on ping’s"
            = |cell| clock(cell, |it| it.drift_ppm);
        clock_error_us => Cell Neither TWO_CLOCKS
            "bound of the error of one-way figures because of the clocks"
            = |cell| clock(cell, |it| it.error_us);
        clock_exchanges => Cell Neither TWO_CLOCKS "answered clock exchanges"
            = |cell| clock(cell, |it| it.exchanges as f64);
        clock_negative => Cell Neither TWO_CLOCKS "one-way latencies below zero"
            = |cell| clock(cell, |it| it.negative as f64);
        unsettled_runs: u32 => Sum Lower UNSETTLED "runs that never reached a steady state";
        recording => Cell Neither RECORDED "file whose messages are replayed; `topics.csv` has its topics"
            = |cell| cell.params.recording.clone();
        loss_percent => Sum Lower ALL "share of the due messages that were never answered or taken"
            = |cell| cell.loss_percent();
        jitter_us: Option<f64> => Sum Lower ONE_WAY
            "mean difference between the latencies of a message and the one before, as in RFC 3550; \
             of a single subscriber";
        imported => Cell Neither IMPORTED "whether the messages are those of an imported trace"
            = |cell| cell.params.imported.then(|| true.to_string());
        load => Cell Neither LOADED "the load beside these messages; empty: alone"
            = |cell| cell.params.load.clone();
        load_sent_per_s => Sum Higher LOADED "messages of the load published a second"
            = |cell| load(cell, |it| it.sent_per_s);
        load_received_per_s => Sum Higher LOADED "messages of the load taken a second"
            = |cell| load(cell, |it| it.received_per_s);
        load_lost => Sum Lower LOADED "messages of the load never taken"
            = |cell| load(cell, |it| Some(it.lost));
        load_cpu_us_per_message => Sum Lower LOADED
            "CPU of the two processes of the load for each of its messages"
            = |cell| load(cell, |it| it.cpu_us_per_message);
        load_one_way_us => Pooled Lower LOADED
            "one way of the load, from the time a message was due"
            = |cell| load(cell, |it| it.one_way_us);
    }
    others {
        /// The parameter point.
        params: Params;
        /// Whether the repeats reached the interval of the median that the scenario asks for;
        /// absent if it does not ask for one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        repeats: Option<Repeats>;
        /// What each subscriber beyond the first adds to the median publish call; only for publish
        /// runs with at least two subscribers, and if one subscriber was measured, too.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        further_subscriber: Option<FurtherSubscriber>;
        /// The same latencies by placement of the two ends. If more than one entry has a share
        /// above a few per cent, `round_trip_us` (or `one_way_us` of a stream) mixes different
        /// distributions.
        placements: Vec<Placement>;
        /// CPU by process and thread; mean of the runs.
        processes: Vec<ProcessUse>;
        /// Across hosts: the relation of pong's clock to ping's, and the error that it adds to
        /// `one_way_us`, `service_us` and `wake_us`. Absent if the ends share a clock, as
        /// namespaces of one machine do, or if their clocks could not be compared.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        clock: Option<ClockFigures>;
        /// The topics of a replayed recording, in the order of their names; absent for other
        /// workloads.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        by_topic: Vec<TopicFigures>;
        /// The load beside these messages; absent without one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        load: Option<LoadFigures>;
        /// The effect of a cut of the link, for each run that had one; absent if none had.
        #[serde(default, skip_serializing_if = "Vec::is_empty")]
        cuts: Vec<CutFigures>;
    }
}

impl Cell {
    /// The values that, with its parameters, identify a cell within its folder and across folders.
    pub(crate) fn key(&self) -> (&str, Workload, &str, Tuning, Topology) {
        (&self.scenario, self.workload, &self.system, self.tuning, self.topology)
    }

    /// Share of the due messages that were not taken, in per cent; `None` if none were due, or if
    /// it is not known how many were lost.
    pub(crate) fn loss_percent(&self) -> Option<f64> {
        let lost = self.lost?;
        let due = lost + self.received;
        (due > 0).then(|| 100.0 * lost as f64 / due as f64)
    }

    /// Whether messages are known to be lost.
    pub(crate) fn is_lossy(&self) -> bool {
        self.lost.is_some_and(|lost| lost > 0)
    }
}

/// The types of a cell's fields.
trait Figure: Sized {
    /// Whether it was not measured, or has its default value.
    fn is_absent(&self) -> bool {
        false
    }

    /// The field of a measured number.
    fn of(_: Option<f64>) -> Self {
        unreachable!("only numbers are measured")
    }
}

impl<T: Figure> Figure for Option<T> {
    fn is_absent(&self) -> bool {
        self.is_none()
    }

    fn of(value: Option<f64>) -> Self {
        value.map(|value| T::of(Some(value)))
    }
}

impl Figure for Workload {
    fn is_absent(&self) -> bool {
        *self == Workload::Roundtrip
    }
}

impl Figure for Topology {}
impl Figure for Tuning {}
impl Figure for String {}
impl Figure for Vec<String> {}
impl Figure for bool {}
impl Figure for [f64; 2] {}
impl Figure for Distribution {}

impl Figure for u32 {
    fn of(value: Option<f64>) -> Self {
        value.unwrap_or(0.0) as u32
    }
}

impl Figure for u64 {
    fn of(value: Option<f64>) -> Self {
        value.unwrap_or(0.0) as u64
    }
}

impl Figure for f64 {
    fn of(value: Option<f64>) -> Self {
        value.unwrap_or(0.0)
    }
}

type Has = Option<fn(&Cell) -> bool>;
const ALL: Has = None;
const TOUCHED: Has = Some(|cell| !cell.params.touch.is_default());
const NOT_ROUND_TRIP: Has = Some(|cell| cell.workload != Workload::Roundtrip);
const PUBLISH: Has = Some(|cell| cell.workload == Workload::Publish);
const ONE_WAY: Has = Some(|cell| cell.workload.is_one_way());
const FLOOD: Has = Some(is_flood);
const STARTUP: Has = Some(is_startup);
const WITH_DAEMON: Has = Some(|cell| cell.daemon_ms.is_some());
const OBSERVED: Has = Some(|cell| cell.observation_cpu_percent.is_some());
const REPEATED: Has = Some(|cell| cell.repeats.is_some());
const TWO_CLOCKS: Has = Some(|cell| cell.clock.is_some());
const IMPORTED: Has = Some(|cell| cell.params.imported);
const LOADED: Has = Some(|cell| cell.params.load.is_some());
const RECORDED: Has = Some(|cell| cell.params.recording.is_some());
const UNSETTLED: Has = Some(|cell| cell.unsettled_runs > 0);

const P50: Compared = Compared {
    words: "p50",
    unit: "µs",
    across: Some("cross_p50_us"),
    is_of: is_steady,
    immaterial: 0.0,
};
const P99: Compared = Compared { words: "p99", across: Some("cross_p99_us"), ..P50 };
const FIRST_SAMPLE: Compared =
    Compared { words: "first sample", across: None, is_of: is_startup, ..P50 };
// Per message, not per cent of a core: back to back a system uses a whole core however much it does,
// and CPU use falls if a rate is not reached. Meaningless if only the first message counts.
const CPU: Compared = Compared {
    words: "CPU",
    unit: "µs for each message",
    is_of: |cell| !is_startup(cell) && !cell.params.imported,
    ..FIRST_SAMPLE
};
// Proportional memory divides shared pages, such as those of the C library, among all processes that
// map them. So it changes when other programs start and end: by 0.13 MB between ten sessions of two
// small processes on a busy machine.
const MEMORY: Compared = Compared {
    words: "memory",
    unit: "MB (PSS)",
    is_of: |cell| !cell.params.imported,
    immaterial: 500e3,
    ..FIRST_SAMPLE
};

/// Whether its latency describes the system. The latency of a flood does not: it is the depth of a
/// queue. Neither does that of a start-up.
pub(crate) fn is_steady(cell: &Cell) -> bool {
    !is_flood(cell) && !is_startup(cell)
}

fn is_flood(cell: &Cell) -> bool {
    cell.workload == Workload::Flood
}

fn is_startup(cell: &Cell) -> bool {
    cell.workload == Workload::Startup
}

fn clock(cell: &Cell, of: fn(&ClockFigures) -> f64) -> Option<f64> {
    cell.clock.as_ref().map(of)
}

fn load<T>(cell: &Cell, of: fn(&LoadFigures) -> Option<T>) -> Option<T> {
    cell.load.as_ref().and_then(of)
}

fn same_cpu_share(cell: &Cell) -> Option<f64> {
    cell.placements.iter().find(|placement| placement.same_cpu).map(|it| it.share)
}

fn placement_p50(cell: &Cell, same_cpu: bool) -> Option<f64> {
    let placement = cell.placements.iter().find(|placement| placement.same_cpu == same_cpu);
    placement.and_then(Placement::p50)
}

/// The sum over the processes of a role; `None` if there is none, or if the value of one is
/// unknown.
fn of_role(cell: &Cell, role: Role, of: fn(&ProcessUse) -> Option<f64>) -> Option<f64> {
    let own: Vec<_> = cell.processes.iter().filter(|process| role(&process.role)).collect();
    let sum = own.iter().map(|process| of(process)).sum::<Option<f64>>();
    sum.filter(|_| !own.is_empty())
}

/// Further processes of a role are called `ping-1`, `ping-2` and so on.
type Role = fn(&str) -> bool;
const PING: Role = |name| name.split('-').next() == Some("ping");
const PONG: Role = |name| name.split('-').next() == Some("pong");
const DAEMON: Role = |name| !PING(name) && !PONG(name);

/// The JSON name of an enum value.
fn word(value: impl Serialize) -> String {
    let word = serde_json::to_value(value).ok();
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}
