//! A run over time: where the time of its messages went, how they lay over time, the slowest, and what
//! was observed meanwhile, ten times a second.

use serde::{Deserialize, Serialize};

/// A part of a message's way. Those of a way that is not divided further stand together: a system
/// that waits inside its take has no wake of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stage {
    /// From when it was due until the loan was asked for, or the publish call entered.
    Lateness,
    /// Getting a loan.
    Loan,
    /// Writing it.
    Fill,
    /// The rest of the publish call, until it returns or the receiving end is awake, whichever is
    /// first.
    Publish,
    /// From there until the receiving end's wait returns.
    Wake,
    /// From there until the payload is in hand.
    Take,
    /// `Wake` and `Take`, of a system that waits inside its take, or calls the subscriber.
    WakeAndTake,
    /// Pong's whole publish call, as `Publish`; loan and fill included.
    PublishBack,
    /// `Wake` of ping.
    WakeBack,
    /// `Take` of ping.
    TakeBack,
    /// `WakeAndTake` of ping.
    WakeAndTakeBack,
}

impl Stage {
    /// In the order in which a message goes through them.
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

/// Where the time of a cell's messages goes, in the mean. What is not measured has no entry.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stages {
    /// Messages all of whose stamps are known, of all runs that are used.
    pub messages: u64,
    /// Those of them above their own 99th percentile; 0 where that is withheld.
    pub slow_messages: u64,
    /// In the order of [`Stage::ALL`].
    pub parts: Vec<StageMean>,
}

/// One part of [`Stages`].
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct StageMean {
    /// Which.
    pub stage: Stage,
    /// Whether it passes before the latency begins, and is no part of it.
    pub is_before: bool,
    /// Mean of all messages, in µs; the parts of the latency add up to its mean.
    pub mean_us: f64,
    /// Mean of the messages above the 99th percentile; null where there are none.
    pub slow_us: Option<f64>,
}

/// One run over time: the run of `Detail::series`. Time counts from the first measured message's
/// begin.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Timeline {
    /// Number of the run within its cell, from 1.
    pub run: u32,
    /// Until the last message's begin, in seconds.
    pub duration_s: f64,
    /// When observing began, in seconds: negative, and warm-up from then until 0; absent where
    /// nothing was observed over time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub observed_from_s: Option<f64>,
    /// Of equal length, together `duration_s`.
    pub windows: Vec<Window>,
    /// Messages by time and latency.
    pub map: HeatMap,
    /// From when until when the link between the hosts was down, in seconds from the first measured
    /// message; absent if it never was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cut_s: Option<[f64; 2]>,
}

/// A part of a run's time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Window {
    /// Messages a second that began in it.
    pub rate_per_s: f64,
    /// Latency in µs; null with fewer than ten beyond it.
    pub p50_us: Option<f64>,
    /// As `p50_us`.
    pub p99_us: Option<f64>,
    /// The slowest; null if there was none.
    pub max_us: Option<f64>,
}

/// How many messages fell into each field of time and latency.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct HeatMap {
    /// Parts of equal length that the run is cut into.
    pub columns: u32,
    /// Fields that are not empty, by column, then by row.
    pub fields: Vec<Bin>,
}

impl HeatMap {
    /// Rows of a decade of latency; row 0 begins at 1 ns.
    pub const ROWS_PER_DECADE: u32 = 12;

    /// The same with half as many columns and rows.
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
    /// Messages.
    pub count: u32,
}

/// One of the slowest messages of a cell.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct SlowMessage {
    /// Number of its run within the cell, from 1.
    pub run: u32,
    /// Its number within the run.
    pub id: u64,
    /// When it began, in seconds from the run's first measured message.
    pub at_s: f64,
    /// Its latency.
    pub us: f64,
    /// CPUs, in the order of the way: where publish returned, where the message was taken, and, of
    /// a round trip, where the answer was.
    pub cpus: Vec<u16>,
    /// Its parts in µs, in the order of [`Stage::ALL`]; empty where stamps are missing.
    pub parts: Vec<(Stage, f64)>,
    /// What was observed around its end; absent where nothing was.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub around: Option<Around>,
}

/// What the processes and the machine did in the tenth of a second (or more, if a look came late)
/// in which a slow message ended. Columns as in [`ObservedColumns`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Around {
    /// How long the look spans, in seconds.
    pub span_s: f64,
    /// CPU; 100 is one core.
    pub cpu_percent: f64,
    /// Waiting for a CPU.
    pub runqueue_wait_percent: f64,
    /// Context switches.
    pub switches_per_s: f64,
    /// Page faults.
    pub faults_per_s: f64,
    /// Absent where not known.
    pub migrations_per_s: Option<f64>,
    /// Time the hypervisor gave to others; absent where not known.
    pub steal_percent: Option<f64>,
}

/// One run over time: columns of the same length, a row for each look. Processes are added up. A
/// column of what is not known at all is empty; a null was not read then.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ObservedColumns {
    /// When a row ends, in seconds from the beginning; it begins where the row before it ends.
    /// Mostly 0.1 apart; more where a look was late or left out.
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
    /// Threads that went on on another CPU; the mean since the reading before.
    pub migrations_per_s: Vec<Option<f64>>,
    /// Time the hypervisor gave to others, of all CPUs; the mean since the reading before.
    pub steal_percent: Vec<Option<f64>>,
}
