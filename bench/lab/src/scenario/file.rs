//! A scenario as it is written, and the checks that turn it into a [`Scenario`].

use std::collections::BTreeMap;
use std::ops::Range;

use serde::Deserialize;
use toml::Spanned;

use super::{Kind, Plan, Scenario, Topology, Touch, Tuning, TuningChoice, Workload};
use crate::input_error::{InputError, Source};

/// The tables and keys of a scenario file.
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
    #[serde(default)]
    options: BTreeMap<String, serde_json::Map<String, serde_json::Value>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct WorkloadFile {
    kind: Kind,
    touch: Option<Spanned<Touch>>,
    payload_bytes: Vec<Spanned<i64>>,
    subscribers: Option<Spanned<Vec<Spanned<i64>>>>,
    #[serde(default)]
    rate_hz: Vec<Spanned<Rate>>,
    messages: Option<Spanned<i64>>,
    duration_s: Option<Spanned<f64>>,
    warmup_messages: Option<Spanned<i64>>,
    reply_timeout_ms: Option<Spanned<i64>>,
    record_every: Option<Spanned<i64>>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Rate {
    Hertz(f64),
    Word(String),
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct PlanFile {
    systems: Vec<Spanned<String>>,
    tunings: Vec<Tuning>,
    topology: Topology,
    runs: Spanned<i64>,
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
        let plan = self.plan.check(&limits)?;
        let tuning = self.tuning.check(&limits)?;
        Ok(Scenario {
            name: self.name.into_inner(),
            about: self.about,
            workload,
            plan,
            tuning,
            options: self.options,
            source,
        })
    }
}

impl WorkloadFile {
    fn check(self, limits: &Limits<'_>) -> Result<Workload, InputError> {
        if self.payload_bytes.is_empty() {
            return Err(limits.missing("[workload]", "payload_bytes", "name at least one size"));
        }
        self.check_kind(limits)?;
        let messages = limits.optional("messages", self.messages, 0, MESSAGES_MAX, 0)?;
        let duration_s = limits.seconds("duration_s", self.duration_s)?;
        if messages == 0 && duration_s == 0.0 {
            return Err(limits.missing(
                "[workload]",
                "messages",
                "give messages, duration_s or both",
            ));
        }
        Ok(Workload {
            kind: self.kind,
            touch: self.touch.map(Spanned::into_inner).unwrap_or_default(),
            subscribers: match self.subscribers {
                None => vec![1],
                Some(counts) => each_once(
                    (counts.into_inner().into_iter())
                        .map(|count| limits.within("subscribers", count, 0, SUBSCRIBERS_MAX))
                        .map(|count| count.map(|count| count as u32)),
                )?,
            },
            payload_bytes: each_once(
                (self.payload_bytes.into_iter())
                    .map(|size| limits.within("payload_bytes", size, 0, PAYLOAD_BYTES_MAX)),
            )?,
            rate_hz: match self.rate_hz.is_empty() {
                true => vec![(self.kind == Kind::Publish).then_some(PUBLISH_RATE_HZ)],
                false => each_once(self.rate_hz.into_iter().map(|rate| limits.rate(rate)))?,
            },
            messages,
            duration_s,
            warmup_messages: limits.optional(
                "warmup_messages",
                self.warmup_messages,
                0,
                MESSAGES_MAX,
                WARMUP_MESSAGES,
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

    /// Keys that belong to the other kind are mistakes, not to be passed over.
    fn check_kind(&self, limits: &Limits<'_>) -> Result<(), InputError> {
        let misplaced = |place: Range<usize>, key: &str, remedy: &str| {
            let kind = self.kind.name();
            Err(limits
                .source
                .error(place, format!("{key}: not a key of kind \"{kind}\""))
                .remedy(remedy))
        };
        match (self.kind, &self.subscribers, &self.reply_timeout_ms) {
            (Kind::Roundtrip, Some(counts), _) => {
                misplaced(counts.span(), "subscribers", "leave it out, or use kind = \"publish\"")
            }
            (Kind::Publish, Some(counts), _) if counts.get_ref().is_empty() => {
                Err(limits.missing("[workload]", "subscribers", "name at least one number"))
            }
            (Kind::Publish, _, Some(limit)) => {
                misplaced(limit.span(), "reply_timeout_ms", "leave it out: nothing is answered")
            }
            _ => Ok(()),
        }
    }
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
    fn check(self, limits: &Limits<'_>) -> Result<Plan, InputError> {
        if self.systems.is_empty() {
            return Err(limits.missing("[plan]", "systems", "for instance [\"os.*\"]"));
        }
        if self.tunings.is_empty() {
            return Err(limits.missing("[plan]", "tunings", "for instance [\"default\"]"));
        }
        let mut tunings = self.tunings;
        tunings.sort();
        tunings.dedup();
        Ok(Plan {
            systems: self.systems.into_iter().map(Spanned::into_inner).collect(),
            tunings,
            topology: self.topology,
            runs: limits.within("runs", self.runs, 1, i64::from(RUNS_MAX))? as u32,
        })
    }
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

/// Range checks that know the place of what they check.
struct Limits<'a> {
    source: &'a Source,
}

impl Limits<'_> {
    fn within(
        &self,
        key: &str,
        value: Spanned<i64>,
        low: i64,
        high: i64,
    ) -> Result<u64, InputError> {
        let found = *value.get_ref();
        if (low..=high).contains(&found) {
            return Ok(found as u64);
        }
        Err(self.bad(value.span(), key, found, &format!("use {low} to {high}")))
    }

    fn optional(
        &self,
        key: &str,
        value: Option<Spanned<i64>>,
        low: i64,
        high: i64,
        otherwise: u64,
    ) -> Result<u64, InputError> {
        value.map_or(Ok(otherwise), |value| self.within(key, value, low, high))
    }

    fn seconds(&self, key: &str, value: Option<Spanned<f64>>) -> Result<f64, InputError> {
        let Some(value) = value else {
            return Ok(0.0);
        };
        let found = *value.get_ref();
        if found > 0.0 && found <= SECONDS_MAX {
            return Ok(found);
        }
        let remedy = format!("use more than 0 and at most {SECONDS_MAX} seconds");
        Err(self.bad(value.span(), key, found, &remedy))
    }

    fn rate(&self, rate: Spanned<Rate>) -> Result<Option<f64>, InputError> {
        let remedy =
            "give messages a second, above 0: 0.001 to 1000000, or \"max\" for back to back";
        match rate.get_ref() {
            Rate::Word(word) if word == "max" => Ok(None),
            Rate::Word(word) => Err(self.bad(rate.span(), "rate_hz", format!("{word:?}"), remedy)),
            Rate::Hertz(hertz) if (1e-3..=1e6).contains(hertz) => Ok(Some(*hertz)),
            Rate::Hertz(hertz) => Err(self.bad(rate.span(), "rate_hz", hertz, remedy)),
        }
    }

    fn bad(
        &self,
        span: Range<usize>,
        key: &str,
        found: impl std::fmt::Display,
        remedy: &str,
    ) -> InputError {
        self.source.error(span, format!("{key}: {found} is out of range")).remedy(remedy)
    }

    fn missing(&self, table: &str, key: &str, remedy: &str) -> InputError {
        self.source.error(self.source.find(table), format!("{key}: nothing given")).remedy(remedy)
    }
}

const NAME_MAX: usize = 64;
const WARMUP_MESSAGES: u64 = 500;
const REPLY_TIMEOUT_MS: u64 = 1_000;
const PRIORITY: u64 = 80;
/// Of kind `publish`, where none is given: as fast as a sensor is read, and slow enough to be kept.
const PUBLISH_RATE_HZ: f64 = 20_000.0;
const SUBSCRIBERS_MAX: i64 = 4_096;
const PAYLOAD_BYTES_MAX: i64 = 1 << 30;
const MESSAGES_MAX: i64 = 1_000_000_000;
const SECONDS_MAX: f64 = 86_400.0;
const RUNS_MAX: u32 = 1_000;
const CPU_MAX: i64 = 4_095;
