//! What sets a cell apart within its scenario, and how repeating it ended.

use myelin_bench_kit::protocol::{Reliability, Touch, Wait};
use serde::{Deserialize, Serialize};

use crate::plan::one;

/// A parameter point.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Params {
    /// Bytes of payload, beyond the 8 of the sequence number.
    pub payload_bytes: u64,
    /// Messages a second; null for back to back.
    pub rate_hz: Option<f64>,
    /// How the subscriber waits.
    pub wait: Wait,
    /// Subscribers per topic.
    pub subscribers: u32,
    /// How much of a message is written and read; absent for `stamps`, the default.
    #[serde(default, skip_serializing_if = "Touch::is_default")]
    pub touch: Touch,
    /// Of images, in pixels, for instance `1440x1080`; three bytes each.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub frame: Option<String>,
    /// Of streams and images: the name of the schedule, if the scenario names any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arrivals: Option<String>,
    /// Publishers of the topic, each a process; absent for 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub publishers: u32,
    /// Topics that messages go to in turn; absent for 1.
    #[serde(default = "one", skip_serializing_if = "is_one")]
    pub topics: u32,
    /// Of workloads that go one way: what the system was set to, whatever the scenario asks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reliability: Option<Reliability>,
    /// Of workloads that go one way: messages kept for a subscriber that lags.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// What a module of a robot sends so, for instance `localisation`; if the scenario names any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub module: Option<String>,
}

impl Params {
    /// Without what only describes a system.
    pub(crate) fn point(&self) -> Self {
        Params { wait: Wait::None, reliability: None, depth: None, ..self.clone() }
    }
}

impl Default for Params {
    /// One publisher and one subscriber of one topic, back to back.
    fn default() -> Self {
        Params {
            payload_bytes: 0,
            rate_hz: None,
            wait: Wait::None,
            subscribers: 1,
            touch: Touch::default(),
            frame: None,
            arrivals: None,
            publishers: 1,
            topics: 1,
            reliability: None,
            depth: None,
            module: None,
        }
    }
}

fn is_one(count: &u32) -> bool {
    *count == 1
}

/// How repeating a cell ended.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Repeats {
    /// The width of the median's interval asked for, in per cent of the median.
    pub asked_percent: f64,
    /// The width reached; null where there is no interval.
    pub reached_percent: Option<f64>,
    /// Whether that is narrow enough; if not, the limit of runs was reached.
    pub is_narrow: bool,
}
