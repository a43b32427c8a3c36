//! A scenario as it is written, and the checks that turn it into a [`Scenario`].

use std::collections::BTreeMap;
use std::ops::Range;

use myelin_bench_kit::protocol::DEPTH_DEFAULT;
use serde::Deserialize;
use toml::Spanned;

use super::limits::{Limits, Rate};
use super::modules::ModuleFile;
use super::network::{self, NetworkFile};
use super::stream::{ArrivalsFile, Schedules};
use super::{
    Kind, Plan, Reliability, Scenario, Topology, Touch, Tuning, TuningChoice, Workload, kind,
    modules, precision, stream,
};
use crate::input_error::{InputError, Source};

/// The tables and keys of a scenario file. What must be there is optional here and asked for by
/// `check`: a misspelt key is told before the one that is missing for it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct File {
    name: Spanned<String>,
    #[serde(default)]
    about: String,
    workload: WorkloadFile,
    plan: PlanFile,
    #[serde(default)]
    tuning: TuningFile,
    network: Option<Spanned<NetworkFile>>,
    #[serde(default)]
    options: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct WorkloadFile {
    kind: Option<Kind>,
    touch: Option<Spanned<Touch>>,
    pub(super) payload_bytes: Option<Spanned<Vec<Spanned<i64>>>>,
    frames: Option<Spanned<Vec<Spanned<String>>>>,
    arrivals: Option<Spanned<Vec<Spanned<ArrivalsFile>>>>,
    subscribers: Option<Spanned<Vec<Spanned<i64>>>>,
    publishers: Option<Spanned<Vec<Spanned<i64>>>>,
    topics: Option<Spanned<Vec<Spanned<i64>>>>,
    reliability: Option<Spanned<Reliability>>,
    depth: Option<Spanned<i64>>,
    pub(super) modules: Option<Spanned<Vec<Spanned<ModuleFile>>>>,
    #[serde(default)]
    pub(super) rate_hz: Vec<Spanned<Rate>>,
    messages: Option<Spanned<i64>>,
    duration_s: Option<Spanned<f64>>,
    warmup_messages: Option<Spanned<i64>>,
    warmup_s: Option<Spanned<f64>>,
    reply_timeout_ms: Option<Spanned<i64>>,
    record_every: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    #[serde(default)]
    systems: Vec<Spanned<String>>,
    #[serde(default)]
    tunings: Vec<Tuning>,
    topology: Option<Spanned<TopologyFile>>,
    runs: Option<Spanned<i64>>,
    runs_max: Option<Spanned<i64>>,
    interval_percent: Option<Spanned<f64>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum TopologyFile {
    Word(String),
    Words(Vec<String>),
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields)]
struct TuningFile {
    ping_cpu: Option<Spanned<i64>>,
    pong_cpu: Option<Spanned<i64>>,
    priority: Option<Spanned<i64>>,
}

impl File {
    /// Checks every value; what is left out gets its default.
    pub(super) fn check(self, source: Source) -> Result<Scenario, InputError> {
        let limits = Limits { source: &source };
        let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let length = self.name.get_ref().len();
        if !(1..=NAME_MAX).contains(&length) || !self.name.get_ref().chars().all(plain) {
            return Err(source.error(self.name.span(), "name: not a plain word").remedy(format!(
                "use up to {NAME_MAX} letters, digits, `-` and `_`: it becomes part of file names"
            )));
        }
        let workload = self.workload.check(&limits)?;
        let plan = self.plan.check(&limits, workload.kind)?;
        let network = network::check(&limits, self.network, &plan.topology, &workload)?;
        let tuning = self.tuning.check(&limits)?;
        Ok(Scenario {
            name: self.name.into_inner(),
            about: self.about,
            workload,
            plan,
            tuning,
            network,
            options: self.options,
            source,
            is_built_in: false,
        })
    }
}

impl WorkloadFile {
    fn check(self, limits: &Limits<'_>) -> Result<Workload, InputError> {
        let Some(kind) = self.kind else {
            let names = KINDS.map(|kind| format!("{:?}", kind.name())).join(", ");
            return Err(limits.missing("[workload]", "kind", &format!("use one of {names}")));
        };
        self.check_kind(limits, kind)?;
        let modules = modules::read(limits, &self)?;
        let messages = limits.optional("messages", self.messages, 0, MESSAGES_MAX, 0)?;
        let duration_s = limits.seconds("duration_s", self.duration_s)?;
        if messages == 0 && duration_s == 0.0 && kind != Kind::Startup {
            let remedy = "give messages, duration_s or both";
            return Err(limits.missing("[workload]", "messages", remedy));
        }
        let frames = stream::frames(limits, self.frames)?;
        let rate_hz = match modules.is_empty() {
            true => rates(limits, kind, self.rate_hz)?,
            false => modules.iter().map(|module| Some(module.rate_hz)).collect(),
        };
        // A number of messages is long at the rate of a sensor: 500 are 17 s at 30 Hz.
        let warmup_s = match (&self.warmup_messages, self.warmup_s) {
            (None, None) if matches!(kind, Kind::Stream | Kind::Image) => WARMUP_S,
            (_, given) => limits.seconds("warmup_s", given)?,
        };
        let (fewest, most) = match kind {
            Kind::Publish => (0, SUBSCRIBERS_MAX),
            _ => (1, PROCESSES_MAX),
        };
        Ok(Workload {
            kind,
            touch: self.touch.map(Spanned::into_inner).unwrap_or_default(),
            subscribers: Self::counts(limits, "subscribers", self.subscribers, fewest, most)?,
            publishers: Self::counts(limits, "publishers", self.publishers, 1, PROCESSES_MAX)?,
            topics: Self::counts(limits, "topics", self.topics, 1, TOPICS_MAX)?,
            reliability: self.reliability.map(Spanned::into_inner).unwrap_or_default(),
            depth: limits.optional("depth", self.depth, 1, DEPTH_MAX, DEPTH_DEFAULT.into())? as u32,
            payload_bytes: match (modules.is_empty(), frames.is_empty()) {
                (false, _) => modules.iter().map(|module| module.payload_bytes).collect(),
                (true, false) => frames.iter().map(|frame| frame.bytes()).collect(),
                (true, true) => payloads(limits, self.payload_bytes)?,
            },
            modules,
            warmup_s,
            frames,
            arrivals: Schedules { limits, rates_hz: &rate_hz }.read(self.arrivals)?,
            rate_hz,
            messages,
            duration_s,
            warmup_messages: limits.optional(
                "warmup_messages",
                self.warmup_messages,
                0,
                MESSAGES_MAX,
                // A start-up is measured cold.
                if kind == Kind::Startup { 0 } else { WARMUP_MESSAGES },
            )?,
            reply_timeout_ms: limits.optional(
                "reply_timeout_ms",
                self.reply_timeout_ms,
                1,
                60_000,
                REPLY_TIMEOUT_MS,
            )?,
            record_every: limits.optional("record_every", self.record_every, 1, 1_000_000, 1)?,
        })
    }

    /// Keys that belong to another kind are mistakes, not to be passed over.
    fn check_kind(&self, limits: &Limits<'_>, kind: Kind) -> Result<(), InputError> {
        fn place<T>(value: &Option<Spanned<T>>) -> Option<Range<usize>> {
            value.as_ref().map(Spanned::span)
        }
        let given = [
            ("subscribers", place(&self.subscribers)),
            ("publishers", place(&self.publishers)),
            ("topics", place(&self.topics)),
            ("reliability", place(&self.reliability)),
            ("depth", place(&self.depth)),
            ("modules", place(&self.modules)),
            ("reply_timeout_ms", place(&self.reply_timeout_ms)),
            ("frames", place(&self.frames)),
            ("payload_bytes", place(&self.payload_bytes)),
            ("touch", place(&self.touch)),
            ("arrivals", place(&self.arrivals)),
            ("rate_hz", self.rate_hz.first().map(Spanned::span)),
            ("messages", place(&self.messages)),
            ("duration_s", place(&self.duration_s)),
            ("warmup_messages", place(&self.warmup_messages)),
            ("warmup_s", place(&self.warmup_s)),
            ("record_every", place(&self.record_every)),
        ];
        kind::check(limits, kind, &given)?;
        if kind == Kind::Image && self.frames.as_ref().is_none_or(|them| them.get_ref().is_empty())
        {
            return Err(limits.missing("[workload]", "frames", "for instance [\"1440x1080\"]"));
        }
        if let (Some(_), Some(warmup_s)) = (&self.warmup_messages, &self.warmup_s) {
            let text = "warmup_s: warmup_messages is given as well";
            return Err(limits.source.error(warmup_s.span(), text).remedy("leave one out"));
        }
        Ok(())
    }

    /// `subscribers`, `publishers` or `topics`, each a parameter point.
    fn counts(
        limits: &Limits<'_>,
        key: &str,
        counts: Option<Spanned<Vec<Spanned<i64>>>>,
        low: i64,
        high: i64,
    ) -> Result<Vec<u32>, InputError> {
        let Some(counts) = counts else {
            return Ok(vec![1]);
        };
        let counts = counts.into_inner();
        if counts.is_empty() {
            return Err(limits.missing("[workload]", key, "name at least one number"));
        }
        each_once(
            (counts.into_iter())
                .map(|count| limits.within(key, count, low, high))
                .map(|count| count.map(|count| count as u32)),
        )
    }
}

fn payloads(
    limits: &Limits<'_>,
    sizes: Option<Spanned<Vec<Spanned<i64>>>>,
) -> Result<Vec<u64>, InputError> {
    let sizes = sizes.map(Spanned::into_inner).unwrap_or_default();
    if sizes.is_empty() {
        return Err(limits.missing("[workload]", "payload_bytes", "name at least one size"));
    }
    each_once(
        sizes.into_iter().map(|size| limits.within("payload_bytes", size, 0, PAYLOAD_BYTES_MAX)),
    )
}

fn rates(
    limits: &Limits<'_>,
    kind: Kind,
    rates: Vec<Spanned<Rate>>,
) -> Result<Vec<Option<f64>>, InputError> {
    if rates.is_empty() {
        return Ok(vec![match kind {
            Kind::Roundtrip => None,
            Kind::Publish => Some(PUBLISH_RATE_HZ),
            Kind::Stream => Some(STREAM_RATE_HZ),
            Kind::Image => Some(IMAGE_RATE_HZ),
            Kind::Flood | Kind::Startup => None,
        }]);
    }
    each_once(rates.into_iter().map(|rate| limits.rate(rate)))
}

/// A parameter point named twice is one.
fn each_once<T: PartialEq>(
    values: impl Iterator<Item = Result<T, InputError>>,
) -> Result<Vec<T>, InputError> {
    let mut kept = Vec::new();
    for value in values {
        let value = value?;
        if !kept.contains(&value) {
            kept.push(value);
        }
    }
    Ok(kept)
}

impl PlanFile {
    fn check(self, limits: &Limits<'_>, kind: Kind) -> Result<Plan, InputError> {
        if self.systems.is_empty() {
            return Err(limits.missing("[plan]", "systems", "for instance [\"os.*\"]"));
        }
        if self.tunings.is_empty() {
            return Err(limits.missing("[plan]", "tunings", "for instance [\"default\"]"));
        }
        let mut tunings = self.tunings;
        tunings.sort();
        tunings.dedup();
        let Some(runs) = self.runs else {
            return Err(limits.missing("[plan]", "runs", "for instance 5"));
        };
        let runs = limits.within("runs", runs, 1, i64::from(RUNS_MAX))? as u32;
        let topology = match self.topology {
            Some(topology) => topologies(limits, topology, kind)?,
            None => vec![Topology::TwoProcesses],
        };
        Ok(Plan {
            systems: self.systems.into_iter().map(Spanned::into_inner).collect(),
            tunings,
            topology,
            runs,
            precision: precision::check(limits, runs, self.runs_max, self.interval_percent)?,
        })
    }
}

fn topologies(
    limits: &Limits<'_>,
    wanted: Spanned<TopologyFile>,
    kind: Kind,
) -> Result<Vec<Topology>, InputError> {
    let span = wanted.span();
    let words = match wanted.into_inner() {
        TopologyFile::Word(word) if word == "any" => return Ok(ONE_HOST.to_vec()),
        TopologyFile::Word(word) => vec![word],
        TopologyFile::Words(words) => words,
    };
    let remedy =
        "use \"two-processes\", \"one-process\", a list of them, \"any\", or \"two-hosts\"";
    if words.is_empty() {
        return Err(limits.source.error(span, "topology: nothing given").remedy(remedy));
    }
    let topologies = each_once(words.into_iter().map(|word| {
        let known = TOPOLOGIES.into_iter().find(|topology| topology.name() == word);
        known.ok_or_else(|| {
            limits.source.error(span.clone(), format!("topology: unknown {word:?}")).remedy(remedy)
        })
    }))?;
    let is_across = topologies.contains(&Topology::TwoHosts);
    if is_across && topologies.len() > 1 {
        let text = "topology: \"two-hosts\" stands alone";
        let remedy = "write a scenario of its own for what is on one host";
        return Err(limits.source.error(span, text).remedy(remedy));
    }
    // Its ping looks into memory that pong writes.
    if is_across && matches!(kind, Kind::Flood | Kind::Startup) {
        let text = format!("topology: kind {:?} cannot be run across hosts", kind.name());
        let remedy = "use \"two-processes\", or kind = \"stream\" or \"roundtrip\"";
        return Err(limits.source.error(span, text).remedy(remedy));
    }
    Ok(topologies)
}

impl TuningFile {
    fn check(self, limits: &Limits<'_>) -> Result<TuningChoice, InputError> {
        let same = match (&self.ping_cpu, &self.pong_cpu) {
            (Some(ping), Some(pong)) if ping.get_ref() == pong.get_ref() => Some(pong.span()),
            _ => None,
        };
        if let Some(span) = same {
            return Err(limits
                .source
                .error(span, "tuning.pong_cpu: the same as ping_cpu")
                .remedy("`tuned` pins the two to different CPUs; use two"));
        }
        let cpu = |key, value: Option<Spanned<i64>>| match value {
            Some(cpu) => limits.within(key, cpu, 0, CPU_MAX).map(|cpu| Some(cpu as usize)),
            None => Ok(None),
        };
        Ok(TuningChoice {
            ping_cpu: cpu("ping_cpu", self.ping_cpu)?,
            pong_cpu: cpu("pong_cpu", self.pong_cpu)?,
            priority: limits.optional("priority", self.priority, 1, 99, PRIORITY)? as u32,
        })
    }
}

const KINDS: [Kind; 6] =
    [Kind::Roundtrip, Kind::Publish, Kind::Stream, Kind::Image, Kind::Flood, Kind::Startup];
const NAME_MAX: usize = 64;
const WARMUP_MESSAGES: u64 = 500;
/// Of streams and images at a rate, where neither number nor time is given.
const WARMUP_S: f64 = 1.0;
const REPLY_TIMEOUT_MS: u64 = 1_000;
const PRIORITY: u64 = 80;
/// Of kind `publish`, where none is given: as fast as a sensor is read, and slow enough to be kept.
const PUBLISH_RATE_HZ: f64 = 20_000.0;
/// Of kind `stream`, where none is given: a control loop's.
const STREAM_RATE_HZ: f64 = 100.0;
/// Of kind `image`, where none is given: a camera's.
const IMAGE_RATE_HZ: f64 = 30.0;
const ONE_HOST: [Topology; 2] = [Topology::TwoProcesses, Topology::OneProcess];
const TOPOLOGIES: [Topology; 3] = [ONE_HOST[0], ONE_HOST[1], Topology::TwoHosts];
const SUBSCRIBERS_MAX: i64 = 4_096;
/// Publishers or subscribers of a stream: each is a process.
const PROCESSES_MAX: i64 = 256;
const TOPICS_MAX: i64 = 10_000;
const DEPTH_MAX: i64 = 1_000_000;
pub(super) const PAYLOAD_BYTES_MAX: i64 = 1 << 30;
const MESSAGES_MAX: i64 = 1_000_000_000;
pub(super) const RUNS_MAX: u32 = 1_000;
const CPU_MAX: i64 = 4_095;
