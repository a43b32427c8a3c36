//! The recording of a replay: what a scenario says of it, and what was read from it.

use std::sync::Arc;

use myelin_bench_kit::trace::Trace;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Scenario;
use crate::input_error::{InputError, Source};

/// Which messages of which file are replayed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Recording {
    /// The MCAP file.
    pub file: String,
    /// Names of topics, or patterns with `*`; empty for all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topics: Vec<String>,
    /// Where to begin, in seconds after the first message.
    #[serde(default)]
    pub start_s: f64,
    /// Where to end, in seconds after the first message; absent for the end of the file.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub end_s: Option<f64>,
    /// The factor by which it is faster than recorded.
    #[serde(default = "as_recorded")]
    pub speed: f64,
}

/// What a recording has.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Replay {
    /// Its topics, in the order of their numbers in the trace.
    pub topics: Vec<RecordedTopic>,
    /// Number of measured messages.
    pub messages: u64,
    /// Number of messages before them.
    pub warmup_messages: u64,
    /// Duration of the measured part.
    pub seconds: f64,
    /// The messages, until the results folder has them as a file.
    #[serde(skip)]
    pub trace: Option<Arc<Trace>>,
}

/// A topic of a recording.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct RecordedTopic {
    /// Its name.
    pub name: String,
    /// Number of its measured messages.
    pub messages: u64,
    /// Mean number of bytes of a message.
    pub payload_bytes: u64,
    /// Bytes of its largest message.
    pub payload_bytes_max: u64,
}

impl Replay {
    /// Bytes of the largest message.
    pub fn payload_bytes_max(&self) -> u64 {
        self.topics.iter().map(|topic| topic.payload_bytes_max).max().unwrap_or(0)
    }
}

impl Recording {
    /// The name of the file, without its folder.
    pub fn name(&self) -> &str {
        self.file.rsplit('/').next().unwrap_or(&self.file)
    }
}

impl Scenario {
    /// A scenario that replays a recording over all systems. `duration_s` limits it.
    pub fn of_recording(
        recording: &Recording,
        duration_s: Option<f64>,
    ) -> Result<Self, InputError> {
        let is_plain = |it: char| it.is_ascii_alphanumeric() || it == '-' || it == '_';
        let name = recording.name();
        let stem = name.strip_suffix(".mcap").unwrap_or(name);
        let stem: String =
            stem.chars().take(64).map(|it| if is_plain(it) { it } else { '-' }).collect();
        let name = if stem.is_empty() { "recording" } else { &stem };
        let quoted = |text: &str| serde_json::to_string(text).expect("text serialises");
        let topics: Vec<String> = recording.topics.iter().map(|topic| quoted(topic)).collect();
        let optional = |key: &str, value: Option<f64>| {
            value.map(|value| format!("{key} = {value:?}\n")).unwrap_or_default()
        };
        let text = format!(
            "name = \"{name}\"\nabout = {about}\n[workload]\nkind = \"replay\"\n{duration}\
             [workload.recording]\nfile = {file}\ntopics = [{topics}]\nstart_s = {start:?}\n{end}\
             speed = {speed:?}\n[plan]\nsystems = [\"*\"]\ntunings = [\"default\"]\n\
             topology = \"any\"\nruns = {RUNS}\n",
            about = quoted(&format!("the messages of {}", recording.name())),
            duration = optional("duration_s", duration_s),
            file = quoted(&recording.file),
            topics = topics.join(", "),
            start = recording.start_s,
            end = optional("end_s", recording.end_s),
            speed = recording.speed,
        );
        Scenario::parse(Source::new("", &text))
    }
}

fn as_recorded() -> f64 {
    1.0
}

/// Enough for a first look; `--runs 5` gives intervals.
const RUNS: u32 = 3;
