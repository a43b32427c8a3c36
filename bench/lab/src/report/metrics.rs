//! Every figure of a cell, once: what it is, its unit, how the runs make it, which way is better.
//!
//! From [`METRICS`] follow the columns of `summary.csv`, the keys of `summary.json` that a test knows,
//! and the table of `docs/results.md`; [`PAGE`], [`COMPARED`] and [`PLOTTED`] say which of them stand
//! in the summary table of the page, in comparisons of folders and in plots. Whoever adds a figure
//! adds it to `summary::Cell`, computes it in `analyse`, and lists it here.

use myelin_bench_kit::protocol::Workload;
use serde::Serialize;

use super::entry::Entry;
use super::words;
use crate::summary::{
    Cell, ClockFigures, Distribution, Percentile, Placement, ProcessUse, RunPoint,
};

/// A figure of a cell, or what tells it from others.
pub(crate) struct Metric {
    /// Column of `summary.csv`, and key in `summary.json` where that has it as such. The unit is in it.
    pub name: &'static str,
    /// For `docs/results.md`, which has more of it than reports need.
    #[cfg_attr(not(test), allow(dead_code))]
    about: &'static str,
    #[cfg_attr(not(test), allow(dead_code))]
    over_runs: OverRuns,
    #[cfg_attr(not(test), allow(dead_code))]
    better: Better,
    /// Which cells have it, if not all. If none has, `summary.csv` has no such column.
    of_some: Option<fn(&Cell) -> bool>,
    of: fn(&Cell) -> Value,
}

/// How the valid runs of a cell make a figure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum OverRuns {
    /// It is the cell's, whatever the runs.
    Cell,
    /// Of all messages of all runs together.
    Pooled,
    /// What all runs add up to, or that over the time of all.
    Sum,
    Mean,
    Median,
    Largest,
    /// How the runs' own percentiles lie.
    Spread,
}

/// Which of two figures is the better one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Better {
    Lower,
    Higher,
    /// It depends, or there is none.
    Neither,
}

/// `None` is not measured, or withheld.
enum Value {
    Text(String),
    Number(Option<f64>),
    /// Two columns.
    Interval(Option<[f64; 2]>),
    /// A column for each of [`PERCENTILES`].
    Distribution(Option<Distribution>),
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

impl Metric {
    /// By its name; one that does not exist is a mistake in a table of this file.
    pub(super) fn named(name: &str) -> &'static Metric {
        let found = METRICS.iter().find(|metric| metric.name == name);
        found.unwrap_or_else(|| panic!("no metric {name}"))
    }

    /// Its columns in `summary.csv`.
    pub(super) fn columns(&self) -> Vec<String> {
        let with = |ends: &[&str]| ends.iter().map(|end| format!("{}_{end}", self.name)).collect();
        match (self.of)(&Cell::default()) {
            Value::Text(_) | Value::Number(_) => vec![self.name.to_owned()],
            Value::Interval(_) => with(&["low", "high"]),
            Value::Distribution(_) => with(&PERCENTILES.map(|(percentile, _)| percentile)),
        }
    }

    /// What stands in [`Metric::columns`]; empty is not measured, or withheld.
    pub(super) fn fields(&self, cell: &Cell) -> Vec<String> {
        let optional = |value: Option<f64>| value.map(|it| it.to_string()).unwrap_or_default();
        match (self.of)(cell) {
            Value::Text(text) => vec![text],
            Value::Number(value) => vec![optional(value)],
            Value::Interval(ends) => [0, 1].map(|end| optional(ends.map(|it| it[end]))).into(),
            Value::Distribution(found) => {
                PERCENTILES.map(|(_, percentile)| optional(found.and_then(percentile))).into()
            }
        }
    }

    /// Whether any of these cells has it.
    pub(super) fn is_of(&self, cells: &[Cell]) -> bool {
        self.of_some.is_none_or(|has| cells.iter().any(has))
    }

    /// As a table writes it, the median of a distribution; `None` if it was not measured.
    pub(super) fn text(&self, cell: &Cell) -> Option<String> {
        match (self.of)(cell) {
            Value::Text(text) => Some(text),
            Value::Number(value) => value.map(|value| self.written(value)),
            Value::Interval(ends) => ends.map(words::interval_us),
            Value::Distribution(found) => found.map(|it| words::us_or_dash(it.p50)),
        }
    }

    /// The 99th percentile of a distribution.
    pub(super) fn p99(&self, cell: &Cell) -> Option<f64> {
        match (self.of)(cell) {
            Value::Distribution(found) => found?.p99,
            _ => None,
        }
    }

    /// By the unit that its name ends in.
    fn written(&self, value: f64) -> String {
        let ends = |end: &str| self.name.ends_with(end);
        match () {
            () if ends("_us") || ends("us_per_message") => words::us(value),
            () if ends("_percent") => words::cpu_percent(value),
            () if ends("_share") => words::share_percent(value),
            () if ends("_bytes") => words::bytes(value as u64),
            () if ends("_per_s") || ends("_ms") || ends("_faults") => words::amount(value),
            () => words::count(value as u64),
        }
    }
}

macro_rules! metrics {
    ($($name:ident $over:ident $better:ident $has:ident $about:literal
       $(= |$cell:ident| $of:expr)?;)*) => {
        &[$(Metric {
            name: stringify!($name),
            about: $about,
            over_runs: OverRuns::$over,
            better: Better::$better,
            of_some: $has,
            of: metrics!(@of $name $(|$cell| $of)?),
        }),*]
    };
    (@of $name:ident) => { |cell| cell.$name.clone().into() };
    (@of $name:ident |$cell:ident| $of:expr) => { |$cell| Value::from($of) };
}

// In the order of `summary.csv`, where new ones come last: name, how the runs make it, which way is
// better, which cells have it, what it is, and where it is to be had if not under its name.
#[rustfmt::skip]
pub(super) static METRICS: &[Metric] = metrics! {
    scenario Cell Neither ALL "the scenario";
    system Cell Neither ALL "the system";
    tuning Cell Neither ALL "`default`, `tuned` or `awake`";
    topology Cell Neither ALL "`two-processes`, `one-process` or `two-hosts`";
    payload_bytes Cell Neither ALL "payload of a message" = |cell| cell.params.payload_bytes;
    rate_hz Cell Neither ALL "messages a second; none is back to back" = |cell| cell.params.rate_hz;
    wait Cell Neither ALL "how a subscriber waits" = |cell| word(cell.params.wait);
    subscribers Cell Neither ALL "subscribers of a topic" = |cell| cell.params.subscribers;
    runs Cell Neither ALL "runs that the figures come from";
    samples Cell Neither ALL "samples that the figures come from";
    valid Cell Neither ALL "whether a run was valid; if not, the figures are of invalid ones";
    invalid_reasons Cell Neither ALL "what was wrong with runs that were not";
    round_trip_us_p50 Spread Neither ALL "interval over runs of this percentile"
        = |cell| cell.round_trip_p50_interval_us;
    round_trip_us_p99 Spread Neither ALL "interval over runs of this percentile"
        = |cell| cell.round_trip_p99_interval_us;
    same_cpu_share Pooled Neither ALL "messages whose two sides ran on one CPU"
        = |cell| same_cpu_share(cell);
    throughput_per_s Sum Higher ALL "round trips, or messages published, back to back; at a \
         rate, the rate reached by each publisher";
    cpu_us_per_message Sum Lower ALL "CPU of ping, pong and daemons for each message published, \
         from the first measured to the last";
    cpu_percent Sum Lower ALL "CPU of ping, pong and daemons; 100 is one core. Of what goes one \
         way from the first measured message to the last";
    rss_bytes Largest Lower ALL "memory of ping, pong and daemons at the end";
    pss_bytes Largest Lower ALL "the same, shared pages divided among their users";
    shared_bytes Largest Lower ALL "shared segments mapped, each counted once";
    voluntary_switches_per_s Sum Lower ALL "threads gave up the CPU";
    involuntary_switches_per_s Sum Lower ALL "threads were made to";
    page_faults Mean Lower ALL "page faults of a run, minor and major";
    startup_ms Median Lower ALL "from the start of the later process until both ends had matched";
    sent Sum Neither ALL "messages published";
    received Sum Neither ALL "messages answered, or taken";
    lost Sum Lower ALL "messages never answered, or never taken";
    duplicates Sum Lower ALL "answers beyond the first, or messages taken again";
    out_of_order Sum Lower ALL "answers, or messages, that came after a later one";
    corrupt Sum Lower ALL "messages whose payload was not as sent";
    loopback_bytes_per_byte Sum Neither ALL
        "bytes over the loopback interface for each byte of a message: the transport’s proof";
    loopback_packets_per_message Sum Neither ALL
        "packets over the loopback interface for each message";
    touch Cell Neither TOUCHED "how much of a message is written and read"
        = |cell| word(cell.params.touch);
    workload Cell Neither NOT_ROUND_TRIP "what the processes do; none where all are round trips"
        = |cell| word(cell.workload);
    write_us_p50 Spread Neither PUBLISH "interval over runs of this percentile"
        = |cell| cell.write_p50_interval_us;
    further_subscriber_ns Pooled Lower PUBLISH
        "what each subscriber beyond the first adds to the median publish call"
        = |cell| cell.further_subscriber.map(|it| it.ns);
    further_subscriber_ns Spread Neither PUBLISH "95 % bootstrap interval of it"
        = |cell| cell.further_subscriber.and_then(|it| it.interval_ns);
    publishers Cell Neither ONE_WAY "publishers of a topic" = |cell| cell.params.publishers;
    topics Cell Neither ONE_WAY "topics that messages go to in turn" = |cell| cell.params.topics;
    reliability Cell Neither ONE_WAY "what the system was set to"
        = |cell| cell.params.reliability.map(word);
    depth Cell Neither ONE_WAY "messages kept for a subscriber that lags"
        = |cell| cell.params.depth.map(f64::from);
    module Cell Neither ONE_WAY "the module of a robot that sends so"
        = |cell| cell.params.module.clone();
    frame Cell Neither ONE_WAY "of images, in pixels" = |cell| cell.params.frame.clone();
    arrivals Cell Neither ONE_WAY "the schedule by name" = |cell| cell.params.arrivals.clone();
    receiver_cpu_percent Sum Lower ONE_WAY
        "as `cpu_percent`, of the receiving process alone, its copies included";
    one_way_us_p50 Spread Neither ONE_WAY "interval over runs of this percentile"
        = |cell| cell.one_way_p50_interval_us;
    one_way_us_p99 Spread Neither ONE_WAY "interval over runs of this percentile"
        = |cell| cell.one_way_p99_interval_us;
    one_way_us_p999 Spread Neither ONE_WAY "interval over runs of this percentile"
        = |cell| cell.one_way_p999_interval_us;
    taken_per_s Median Higher FLOOD "of floods: messages taken, back to back";
    lossless_per_s Median Higher FLOOD
        "of floods: the highest rate at which nothing was lost and the schedule was kept";
    daemon_ms Median Lower WITH_DAEMON "from the start of the daemon until it answers";
    round_trip_us Pooled Lower ALL "a whole round trip";
    one_way_us Pooled Lower ALL "from the publish call until the take returns; of streams with a \
         rate from the time the message was due";
    write_us Pooled Lower ALL
        "the publish call, with loan and fill; of streams and images without them";
    read_us Pooled Lower ALL "the take; none of systems that wait inside it";
    wake_us Pooled Lower ALL "from the end of publish until the one who waits for it runs";
    loan_us Pooled Lower ALL "getting the loan";
    fill_us Pooled Lower ALL "filling it";
    lateness_us Pooled Lower ALL
        "behind the schedule; of streams and images until the loan is asked for";
    service_us Pooled Lower ONE_WAY "one way from the message’s stamp, after loan and fill: what \
         a publisher that is held up does not show";
    memcpy_us Pooled Lower ONE_WAY "of images: copying the frame, after it was taken";
    stream_copy_us Pooled Lower ONE_WAY "the same with streaming stores, after it";
    matched_us Pooled Lower STARTUP "of start-ups: until both ends had matched";
    first_sample_us Pooled Lower STARTUP "of start-ups: until pong had taken a message";
    messages_asked Cell Neither ALL "messages of a run; 0 is no limit";
    duration_asked_s Cell Neither ALL "time of a run; 0 is no limit";
    same_cpu_p50_us Pooled Lower ALL "median of messages on one CPU"
        = |cell| placement_p50(cell, true);
    cross_cpu_p50_us Pooled Lower ALL "median of messages across CPUs"
        = |cell| placement_p50(cell, false);
    ping_cpu_percent Sum Lower ALL "as `cpu_percent`, of the processes of this role"
        = |cell| of_role(cell, PING, |it| Some(it.cpu_percent));
    ping_user_percent Sum Lower ALL "the part of it in user mode"
        = |cell| of_role(cell, PING, |it| it.user_percent);
    ping_rss_bytes Largest Lower ALL "their memory at the end"
        = |cell| of_role(cell, PING, |it| Some(it.rss_bytes as f64));
    pong_cpu_percent Sum Lower ALL "as `cpu_percent`, of the processes of this role"
        = |cell| of_role(cell, PONG, |it| Some(it.cpu_percent));
    pong_user_percent Sum Lower ALL "the part of it in user mode"
        = |cell| of_role(cell, PONG, |it| it.user_percent);
    pong_rss_bytes Largest Lower ALL "their memory at the end"
        = |cell| of_role(cell, PONG, |it| Some(it.rss_bytes as f64));
    daemon_cpu_percent Sum Lower ALL "as `cpu_percent`, of the processes of this role"
        = |cell| of_role(cell, DAEMON, |it| Some(it.cpu_percent));
    daemon_user_percent Sum Lower ALL "the part of it in user mode"
        = |cell| of_role(cell, DAEMON, |it| it.user_percent);
    daemon_rss_bytes Largest Lower ALL "their memory at the end"
        = |cell| of_role(cell, DAEMON, |it| Some(it.rss_bytes as f64));
    round_trip_us_p999 Spread Neither ALL "interval over runs of this percentile"
        = |cell| cell.round_trip_p999_interval_us;
    interval_level_percent Cell Neither ALL "in how many of a hundred cases these intervals \
         cover the median of the runs’ own: 93.75 with five runs";
    notes Cell Neither ALL "remarks on the cell";
    runqueue_wait_percent Sum Lower OBSERVED "threads waited for a CPU; 100 is one that always does"
        = |cell| cell.observed.runqueue_wait_percent;
    migrations_per_s Sum Lower OBSERVED "threads went on on another CPU"
        = |cell| cell.observed.migrations_per_s;
    pss_peak_bytes Largest Lower OBSERVED "the most memory that was seen"
        = |cell| cell.observed.pss_peak_bytes;
    cycles_per_message Sum Lower OBSERVED "core cycles" = |cell| cell.observed.cycles_per_message;
    instructions_per_message Sum Lower OBSERVED "instructions"
        = |cell| cell.observed.instructions_per_message;
    cache_misses_per_message Sum Lower OBSERVED "cache misses"
        = |cell| cell.observed.cache_misses_per_message;
    observation_cpu_percent Mean Lower OBSERVED "CPU that observing took"
        = |cell| cell.observed.observation_cpu_percent;
    interval_asked_percent Cell Neither REPEATED "width of the median’s interval asked for"
        = |cell| cell.repeats.map(|it| it.asked_percent);
    interval_reached_percent Cell Neither REPEATED "width reached"
        = |cell| cell.repeats.and_then(|it| it.reached_percent);
    interval_is_narrow Cell Neither REPEATED "whether that is narrow enough"
        = |cell| cell.repeats.map(|it| it.is_narrow.to_string());
    clock_offset_us Cell Neither TWO_CLOCKS "what pong’s clock was ahead by"
        = |cell| clock(cell, |it| it.offset_us);
    clock_drift_ppm Cell Neither TWO_CLOCKS "what it gained"
        = |cell| clock(cell, |it| it.drift_ppm);
    clock_error_us Cell Neither TWO_CLOCKS "how wrong one-way figures may be for it"
        = |cell| clock(cell, |it| it.error_us);
    clock_exchanges Cell Neither TWO_CLOCKS "how often it was asked"
        = |cell| clock(cell, |it| it.exchanges as f64);
    clock_negative Cell Neither TWO_CLOCKS "one-way latencies below zero"
        = |cell| clock(cell, |it| it.negative as f64);
    unsettled_runs Sum Lower UNSETTLED "runs that never settled";
};

type Has = Option<fn(&Cell) -> bool>;
const ALL: Has = None;
const TOUCHED: Has = Some(|cell| !cell.params.touch.is_default());
const NOT_ROUND_TRIP: Has = Some(|cell| cell.workload != Workload::Roundtrip);
const PUBLISH: Has = Some(|cell| cell.workload == Workload::Publish);
const ONE_WAY: Has = Some(|cell| cell.workload.is_one_way());
const FLOOD: Has = Some(is_flood);
const STARTUP: Has = Some(is_startup);
const WITH_DAEMON: Has = Some(|cell| cell.daemon_ms.is_some());
const OBSERVED: Has = Some(|cell| cell.observed.observation_cpu_percent.is_some());
const REPEATED: Has = Some(|cell| cell.repeats.is_some());
const TWO_CLOCKS: Has = Some(|cell| cell.clock.is_some());
const UNSETTLED: Has = Some(|cell| cell.unsettled_runs > 0);

fn is_flood(cell: &Cell) -> bool {
    cell.workload == Workload::Flood
}

fn is_startup(cell: &Cell) -> bool {
    cell.workload == Workload::Startup
}

fn clock(cell: &Cell, of: fn(&ClockFigures) -> f64) -> Option<f64> {
    cell.clock.as_ref().map(of)
}

fn same_cpu_share(cell: &Cell) -> Option<f64> {
    cell.placements.iter().find(|placement| placement.same_cpu).map(|it| it.share)
}

fn placement_p50(cell: &Cell, same_cpu: bool) -> Option<f64> {
    let placement = cell.placements.iter().find(|placement| placement.same_cpu == same_cpu);
    placement.and_then(Placement::p50)
}

/// The sum over the processes of a role; `None` if there is none or one does not know.
fn of_role(cell: &Cell, role: Role, of: fn(&ProcessUse) -> Option<f64>) -> Option<f64> {
    let own: Vec<_> = cell.processes.iter().filter(|process| role(&process.role)).collect();
    let sum = own.iter().map(|process| of(process)).sum::<Option<f64>>();
    sum.filter(|_| !own.is_empty())
}

/// Of several that play a role the others are called `ping-1`, `ping-2` and so on.
type Role = fn(&str) -> bool;
const PING: Role = |name| name.split('-').next() == Some("ping");
const PONG: Role = |name| name.split('-').next() == Some("pong");
const DAEMON: Role = |name| !PING(name) && !PONG(name);

/// The name of an enum as JSON has it.
fn word(value: impl Serialize) -> String {
    let word = serde_json::to_value(value).ok();
    word.and_then(|word| word.as_str().map(str::to_owned)).unwrap_or_default()
}

type Part = fn(Distribution) -> Option<f64>;
const PERCENTILES: [(&str, Part); 7] = [
    ("min", |distribution| Some(distribution.min)),
    ("mean", |distribution| Some(distribution.mean)),
    ("p50", |distribution| distribution.p50),
    ("p90", |distribution| distribution.p90),
    ("p99", |distribution| distribution.p99),
    ("p999", |distribution| distribution.p999),
    ("max", |distribution| Some(distribution.max)),
];

/// A column of the summary table of the page.
pub(super) struct PageColumn {
    pub head: &'static str,
    pub about: &'static str,
    pub shows: Shows,
    /// Whether only what goes one way has it.
    pub is_one_way: bool,
    /// What else a reader may ask of the figure.
    pub title: Option<fn(&Cell) -> String>,
}

/// What stands in a column.
pub(super) enum Shows {
    /// By its name.
    Metric(&'static str),
    /// `None` if it was not measured.
    Text(fn(&Entry) -> Option<String>),
}

impl PageColumn {
    const fn new(head: &'static str, about: &'static str, shows: Shows) -> Self {
        PageColumn { head, about, shows, is_one_way: false, title: None }
    }

    const fn one_way(self) -> Self {
        PageColumn { is_one_way: true, ..self }
    }

    const fn titled(self, title: fn(&Cell) -> String) -> Self {
        PageColumn { title: Some(title), ..self }
    }
}

/// The summary table, behind the percentiles of the latency.
pub(super) static PAGE: &[PageColumn] = &[
    column(
        "write_us",
        "write µs",
        "write access: the publish call of ping, with loan and fill unless they stand apart; median",
    ),
    column(
        "read_us",
        "read µs",
        "read access: the take of ping, or of a stream's receiver; median",
    ),
    column(
        "wake_us",
        "wake µs",
        "from the end of publish until the one who waits for it runs; median",
    ),
    column(
        "throughput_per_s",
        "per second",
        "round trips, publish calls or messages taken a second, or the rate reached",
    ),
    column("lost", "lost", "messages never answered, or never taken").titled(|cell| {
        format!(
            "sent {}, duplicates {}, out of order {}, corrupt {}",
            cell.sent, cell.duplicates, cell.out_of_order, cell.corrupt
        )
    }),
    column("cpu_us_per_message", "CPU µs/msg", "CPU of ping, pong and daemons for each message")
        .titled(|cell| format!("{} % of a core", words::cpu_percent(cell.cpu_percent))),
    column(
        "voluntary_switches_per_s",
        "switches/s",
        "voluntary context switches a second, all threads",
    )
    .titled(|cell| format!("and {:.0} involuntary", cell.involuntary_switches_per_s)),
    column("page_faults", "faults", "page faults while measuring"),
    column(
        "pss_bytes",
        "PSS",
        "memory of ping, pong and daemons, shared pages counted once; tuned locks all of it",
    )
    .titled(|cell| format!("RSS, shared pages counted for each: {}", words::bytes(cell.rss_bytes))),
    column("shared_bytes", "shared", "shared segments mapped, each counted once"),
    column(
        "startup_ms",
        "start ms",
        "from the start of the later process until both directions matched",
    ),
    text_column("runs × n", "runs, and figures in each of them", |entry| {
        let (runs, samples) = (entry.cell.runs, entry.cell.samples);
        Some(format!("{runs} × {}", words::count(samples / u64::from(runs.max(1)))))
    }),
    text_column(
        "naive p99.9 µs",
        "from the stamp instead of the time the message was due: what a publisher that is held up \
         does not show; of streams with a rate",
        |entry| {
            let cell = entry.cell;
            let has_rate = cell.workload == Workload::Stream && cell.params.rate_hz.is_some();
            let naive = cell.service_us.filter(|_| has_rate)?;
            Some(words::us_or_dash(naive.p999))
        },
    )
    .one_way(),
    text_column(
        "late p99 µs",
        "behind the schedule when the loan is asked for; 99th percentile",
        |entry| Some(words::us_or_dash(entry.cell.lateness_us?.p99)),
    )
    .one_way(),
    column("lateness_us", "late µs", "behind the schedule when the loan is asked for; median")
        .one_way(),
    column("loan_us", "loan µs", "getting the loan, before the stamp; median").one_way(),
    column("fill_us", "fill µs", "filling it, before the stamp; median").one_way(),
    column(
        "memcpy_us",
        "memcpy µs",
        "the receiver's memcpy of the frame, after it was taken; median",
    )
    .one_way(),
    column(
        "stream_copy_us",
        "streaming µs",
        "the receiver's streaming copy of the frame, after memcpy; median",
    )
    .one_way(),
    column(
        "cpu_percent",
        "CPU %",
        "of a core: ping, pong and daemons, from the first measured message to the last",
    )
    .one_way(),
    column(
        "receiver_cpu_percent",
        "receiver %",
        "of a core: the receiving process alone, its copies included",
    )
    .one_way(),
    text_column("lost %", "of the messages that were to be taken", |entry| {
        entry.loss_percent().map(words::percent)
    })
    .one_way(),
    text_column(
        "QoS, depth",
        "what the system was set to: reliability, and messages kept for one who lags",
        |entry| Some(words::qos(&entry.cell.params)),
    )
    .one_way(),
];

const fn column(metric: &'static str, head: &'static str, about: &'static str) -> PageColumn {
    PageColumn::new(head, about, Shows::Metric(metric))
}

const fn text_column(
    head: &'static str,
    about: &'static str,
    of: fn(&Entry) -> Option<String>,
) -> PageColumn {
    PageColumn::new(head, about, Shows::Text(of))
}

/// A figure that each run has of its own, by which folders are compared. Lower is better.
#[derive(Debug)]
pub struct Compared {
    /// As JSON names it, with its unit.
    pub name: &'static str,
    /// As a heading.
    pub words: &'static str,
    /// The unit of what [`Compared::text`] writes.
    pub unit: &'static str,
    /// Whether it is a latency of messages, which depends on where the two ends ran.
    pub(crate) is_latency: bool,
    /// Of one run; of messages across cores alone, if the flag says so.
    pub(crate) of: fn(&RunPoint, bool) -> Option<f64>,
    /// Whether cells of this kind have it.
    pub(crate) is_of: fn(&Entry) -> bool,
    /// A difference up to this is none, whatever part of the whole it is; of latencies a step of the
    /// clock instead.
    immaterial: f64,
}

impl Compared {
    /// A value without its unit.
    pub fn text(&self, value: f64) -> String {
        match self.name {
            "pss_bytes" => words::megabytes(value as u64),
            _ => words::us(value),
        }
    }

    /// A difference up to this is none, whatever part of the whole it is.
    pub(crate) fn immaterial(&self, clock_step_ns: u64) -> f64 {
        if self.is_latency { clock_step_ns as f64 / 1e3 } else { self.immaterial }
    }
}

impl Serialize for Compared {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.name)
    }
}

/// In the order of reports.
pub static COMPARED: [Compared; 5] = [
    latency("p50_us", "p50", |run, across| run.latency(Percentile::P50, across)),
    latency("p99_us", "p99", |run, across| run.latency(Percentile::P99, across)),
    Compared {
        name: "first_sample_us",
        words: "first sample",
        of: |run, _| run.first_sample_us,
        is_of: |entry| is_startup(entry.cell),
        ..ANY
    },
    // Not per cent of a core: that is as much as there is back to back, however much is done with
    // it, and falls where a rate is not reached. It means nothing where only the first message counts.
    Compared {
        name: "cpu_us_per_message",
        words: "CPU",
        unit: "µs for each message",
        of: |run, _| run.cpu_us_per_message,
        is_of: |entry| !is_startup(entry.cell),
        ..ANY
    },
    // Proportional memory shares out the pages of the C library and the like among all who map them,
    // so it moves when other programs start and end: by 0.13 MB between ten sessions of two small
    // processes on a busy machine.
    Compared {
        name: "pss_bytes",
        words: "memory",
        unit: "MB (PSS)",
        of: |run, _| run.pss_bytes.map(|bytes| bytes as f64),
        immaterial: 500e3,
        ..ANY
    },
];

const ANY: Compared = Compared {
    name: "",
    words: "",
    unit: "µs",
    is_latency: false,
    of: |_, _| None,
    is_of: |_| true,
    immaterial: 0.0,
};

/// Of cells whose latency says something; that of a flood is the depth of a queue.
const fn latency(
    name: &'static str,
    words: &'static str,
    of: fn(&RunPoint, bool) -> Option<f64>,
) -> Compared {
    Compared { name, words, is_latency: true, of, is_of: |entry| entry.is_steady(), ..ANY }
}

/// A figure that plots draw against a parameter.
pub(super) struct Plotted {
    /// As the page's scripts name it.
    pub key: &'static str,
    pub of: fn(&Entry) -> Option<f64>,
    /// Whether it stands there as null where it is not known.
    pub is_always: bool,
    /// As published reports name it.
    pub published: Option<&'static str>,
}

/// In the order of the page's document.
pub(super) static PLOTTED: &[Plotted] = &[
    drawn("p50", |entry| plotted(entry)?.p50).published("latency_us"),
    drawn("p99", |entry| plotted(entry)?.p99),
    drawn("p999", |entry| plotted(entry)?.p999),
    drawn("cpu", |entry| Some(entry.cell.cpu_percent)).always().published("cpu_percent"),
    drawn("memory", memory_mb).always().published("memory_MB"),
    drawn("lost", |entry| entry.loss_percent()).always().published("loss_percent"),
    drawn("taken", |entry| flood(entry)?.taken_per_s),
    drawn("lossless", |entry| flood(entry)?.lossless_per_s),
    drawn("bytes", |entry| {
        let bytes = entry.cell.params.payload_bytes as f64 / 1e6;
        flood(entry)?.taken_per_s.map(|rate| rate * bytes)
    }),
    drawn("cpu_us", |entry| Some(entry.cell.cpu_us_per_message)),
];

impl Plotted {
    const fn always(self) -> Self {
        Plotted { is_always: true, ..self }
    }

    const fn published(self, metric: &'static str) -> Self {
        Plotted { published: Some(metric), ..self }
    }
}

const fn drawn(key: &'static str, of: fn(&Entry) -> Option<f64>) -> Plotted {
    Plotted { key, of, is_always: false, published: None }
}

fn flood<'a>(entry: &Entry<'a>) -> Option<&'a Cell> {
    Some(entry.cell).filter(|cell| is_flood(cell))
}

/// The latency; of a flood it is the depth of a queue.
fn plotted<'a>(entry: &Entry<'a>) -> Option<&'a Distribution> {
    entry.latency().filter(|_| !is_flood(entry.cell))
}

/// No process is without memory: at zero nobody has looked.
pub(super) fn memory_mb(entry: &Entry) -> Option<f64> {
    (entry.cell.pss_bytes > 0).then(|| entry.cell.pss_bytes as f64 / 1e6)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of figures as `docs/results.md` has it.
    fn markdown() -> String {
        let row = |metric: &Metric| {
            let columns = match (metric.of)(&Cell::default()) {
                Value::Distribution(_) => format!("`{}_…`", metric.name),
                _ => format!("`{}`", metric.columns().join("`, `")),
            };
            let over = match metric.over_runs {
                OverRuns::Cell => String::new(),
                over => format!("{over:?}").to_lowercase(),
            };
            let better = match metric.better {
                Better::Neither => String::new(),
                better => format!("{better:?}").to_lowercase(),
            };
            format!("| {columns} | {} | {over} | {better} |\n", metric.about)
        };
        let head = "| column | what | of the runs | better |\n|---|---|---|---|\n";
        head.to_owned() + &METRICS.iter().map(row).collect::<String>()
    }

    #[test]
    fn the_guide_has_every_figure() {
        let kept = include_str!("../../../../docs/results.md");
        let table = markdown();
        assert!(kept.contains(&table), "keep this in docs/results.md:\n{table}");
    }

    #[test]
    fn tables_name_figures_that_exist() {
        for column in PAGE {
            if let Shows::Metric(name) = column.shows {
                assert_eq!(Metric::named(name).name, name);
            }
        }
    }

    /// A figure that is no parameter and of no role has the same name in the summary.
    #[test]
    fn the_summary_has_every_figure_by_its_name() {
        let keys =
            include_str!("../summary.rs").to_owned() + include_str!("../summary/observed.rs");
        for metric in METRICS.iter().filter(|it| it.over_runs != OverRuns::Cell) {
            let is_derived = DERIVED.iter().any(|part| metric.name.contains(part));
            let is_key = keys.contains(&format!("pub {}:", metric.name));
            assert!(is_key || is_derived, "{}", metric.name);
        }
    }

    /// Parts of names of what lies deeper in the summary.
    const DERIVED: [&str; 7] =
        ["_cpu_", "ping_", "pong_", "daemon_", "clock_", "further_subscriber", "_us_p"];
}
