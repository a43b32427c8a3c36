//! A run over time: where the time of its messages went, their distribution over time, the slowest
//! ones, and observations ten times a second.

use serde::{Deserialize, Serialize};

/// A part of a message's way. Some parts replace others: a system that waits inside its take has no
/// separate wake, so both are one part.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From when it was due until the loan was requested or the publish call began.
    Lateness,
    /// Getting a loan.
    Loan,
    /// Writing into the loan.
    Fill,
    /// The rest of the publish call, until it returns or the receiving end is awake, whichever is
    /// first.
    Publish,
    /// From the end of `Publish` until the receiving end's wait returns.
    Wake,
    /// From the end of `Wake` until the payload is in hand.
    Take,
    /// `Wake` and `Take` for a system that waits inside its take, or that calls the subscriber.
    WakeAndTake,
    /// Pong's whole publish call, like `Publish`; including loan and fill.
    PublishBack,
    /// `Wake` of ping.
    WakeBack,
    /// `Take` of ping.
    TakeBack,
    /// `WakeAndTake` of ping.
    WakeAndTakeBack,
}

impl Stage {
    /// In the order in which a message passes through them.
    pub const ALL: [Stage; 11] = [
        Stage::Lateness,
        Stage::Loan,
        Stage::Fill,
        Stage::Publish,
        Stage::Wake,
        Stage::Take,
        Stage::WakeAndTake,
        Stage::PublishBack,
        Stage::WakeBack,
        Stage::TakeBack,
        Stage::WakeAndTakeBack,
    ];
}

/// Where the time of a cell's messages goes, on average. A part that was not measured has no entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// Messages with all stamps, of all used runs.
    pub messages: u64,
    /// Those of them above their own 99th percentile; 0 if that is withheld.
    pub slow_messages: u64,
    /// In the order of [`Stage::ALL`].
    pub parts: Vec<StageMean>,
}

/// One part of [`Stages`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageMean {
    /// The part.
    pub stage: Stage,
    /// Whether it comes before the latency begins and is not part of it.
    pub is_before: bool,
    /// Mean over all messages, in µs; the parts of the latency add up to its mean.
    pub mean_us: f64,
    /// Mean over the messages above the 99th percentile; null if there are none.
    pub slow_us: Option<f64>,
}

/// The run of `Detail::series` over time. Time counts from the beginning of the first measured
/// message.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Number of the run within its cell, from 1.
    pub run: u32,
    /// Seconds until the beginning of the last message.
    pub duration_s: f64,
    /// When observing began, in seconds. It is negative, and the warm-up lasts from then until 0.
    /// Absent if nothing was observed over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_from_s: Option<f64>,
    /// Windows of equal length, together `duration_s`.
    pub windows: Vec<Window>,
    /// Messages by time and latency.
    pub map: HeatMap,
    /// Start and end of the time when the link between the hosts was down, in seconds from the
    /// first measured message; absent if it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_s: Option<[f64; 2]>,
}

/// A part of a run's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Messages per second that began in it.
    pub rate_per_s: f64,
    /// Latency in µs; null with fewer than ten messages beyond it.
    pub p50_us: Option<f64>,
    /// See `p50_us`.
    pub p99_us: Option<f64>,
    /// The slowest message; null if there was none.
    pub max_us: Option<f64>,
}

/// The number of messages in each field of time and latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Number of equal parts of the run.
    pub columns: u32,
    /// Fields that are not empty, by column, then by row.
    pub fields: Vec<Bin>,
}

impl HeatMap {
    /// Rows per decade of latency; row 0 begins at 1 ns.
    pub const ROWS_PER_DECADE: u32 = 12;

    /// The same map with half as many columns and rows.
    pub fn coarser(&self) -> HeatMap {
        let mut fields: Vec<Bin> = Vec::new();
        let mut halved: Vec<Bin> = self
            .fields
            .iter()
            .map(|it| Bin { column: it.column / 2, row: it.row / 2 * 2, count: it.count })
            .collect();
        halved.sort_unstable_by_key(|field| (field.column, field.row));
        for field in halved {
            match fields.last_mut().filter(|it| (it.column, it.row) == (field.column, field.row)) {
                Some(known) => known.count += field.count,
                None => fields.push(field),
            }
        }
        HeatMap { columns: self.columns.div_ceil(2), fields }
    }
}

/// A field of a [`HeatMap`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Bin {
    /// From 0.
    pub column: u16,
    /// It begins at 10^(row / [`HeatMap::ROWS_PER_DECADE`]) ns.
    pub row: u16,
    /// Number of messages.
    pub count: u32,
}

/// One of the slowest messages of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowMessage {
    /// Number of its run within the cell, from 1.
    pub run: u32,
    /// Its id within the run.
    pub id: u64,
    /// When it began, in seconds from the run's first measured message.
    pub at_s: f64,
    /// Its latency.
    pub us: f64,
    /// CPUs along its way: where publish returned, where the message was taken, and, for a round
    /// trip, where the answer was taken.
    pub cpus: Vec<u16>,
    /// Its parts in µs, in the order of [`Stage::ALL`]; empty if stamps are missing.
    pub parts: Vec<(Stage, f64)>,
    /// Observations around its end; absent if there are none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Around>,
}

/// Activity of the processes and the machine in the tenth of a second in which a slow message ended
/// (longer if an observation came late). Columns as in [`ObservedColumns`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Around {
    /// Length of that time, in seconds.
    pub span_s: f64,
    /// CPU; 100 is one core.
    pub cpu_percent: f64,
    /// Time spent waiting for a CPU.
    pub runqueue_wait_percent: f64,
    /// Context switches.
    pub switches_per_s: f64,
    /// Page faults.
    pub faults_per_s: f64,
    /// Migrations between CPUs; absent if unknown.
    pub migrations_per_s: Option<f64>,
    /// Time that the hypervisor gave to others; absent if unknown.
    pub steal_percent: Option<f64>,
}

/// One run over time: columns of the same length, with a row for each observation. Values are sums
/// over the processes. An unknown column is empty; a null was not read at that time.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedColumns {
    /// End of the row, in seconds from the beginning; it begins where the row before ends. Mostly
    /// 0.1 apart; more if an observation came late or was left out.
    pub t_s: Vec<f64>,
    /// CPU; 100 is one core.
    pub cpu_percent: Vec<f64>,
    /// Time spent waiting for a CPU, summed over threads; 100 is one thread that always waits.
    pub runqueue_wait_percent: Vec<f64>,
    /// Proportional memory.
    pub pss_bytes: Vec<Option<u64>>,
    /// Context switches of either kind.
    pub switches_per_s: Vec<f64>,
    /// Page faults, minor and major.
    pub faults_per_s: Vec<f64>,
    /// Migrations of threads to another CPU; mean since the previous reading.
    pub migrations_per_s: Vec<Option<f64>>,
    /// Time that the hypervisor gave to others, over all CPUs; mean since the previous reading.
    pub steal_percent: Vec<Option<f64>>,
}
