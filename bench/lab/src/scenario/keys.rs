//! The keys of a scenario file: their names, the workloads that have them, and their limits. A key
//! of another workload is an error; it is not ignored.

use std::ops::Range;

use serde::Deserialize;
use serde::de::IntoDeserializer;
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::{Kind, SIDE_MAX, frame_of};
use crate::input_error::{InputError, Source};

/// A key, by its path from the top. All entries of a list of tables have the same path.
pub(super) struct Key {
    pub path: &'static str,
    of: Owners,
    pub rule: Rule,
}

/// The workloads that have a key, and the reason why others lack it, where that is not obvious.
#[derive(Clone, Copy)]
struct Owners(&'static [Kind], &'static str);

/// The limits of a value, or of each value of a list; its type is checked elsewhere.
#[derive(Clone, Copy)]
pub(super) enum Rule {
    Any,
    Number(f64, f64),
    /// More than zero, at most a day.
    Seconds,
    /// Messages per second, or the word for back to back.
    Rate,
    /// Width and height in pixels.
    Frame,
    /// Letters, digits, `-` and `_`, up to this many.
    Word(usize),
}

use Kind::{Flood, Image, Publish, Replay, Roundtrip, Startup, Stream};
use Rule::{Any, Frame, Number, Rate, Seconds, Word};

const fn key(path: &'static str, of: Owners, rule: Rule) -> Key {
    Key { path, of, rule }
}

pub(super) const KEYS: &[Key] = &[
    key("name", ALL, Word(64)),
    key("about", ALL, Any),
    key("workload", ALL, Any),
    key("workload.kind", ALL, Any),
    key("workload.touch", TOUCHED, Any),
    key("workload.payload_bytes", SIZED, PAYLOAD_BYTES),
    key("workload.frames", Owners(&[Image], ""), Frame),
    key("workload.arrivals", STREAMS, Any),
    key("workload.arrivals.name", STREAMS, Word(32)),
    key("workload.arrivals.jitter_percent", STREAMS, Number(0.0, 50.0)),
    // At most a tenth of the period more in each second.
    key("workload.arrivals.drift_ppm_per_s", STREAMS, Number(0.0, 1e5)),
    key("workload.arrivals.missing_one_in", STREAMS, Number(2.0, 1e6)),
    key("workload.arrivals.period_factor", STREAMS, Number(0.1, 10.0)),
    key("workload.modules", Owners(&[Stream], ""), Any),
    key("workload.modules.name", Owners(&[Stream], ""), Word(32)),
    key("workload.modules.payload_bytes", Owners(&[Stream], ""), PAYLOAD_BYTES),
    key("workload.modules.rate_hz", Owners(&[Stream], ""), Rate),
    key("workload.loads", LOADED, Any),
    key("workload.loads.name", LOADED, Word(32)),
    key("workload.loads.payload_bytes", LOADED, PAYLOAD_BYTES),
    key("workload.loads.rate_hz", LOADED, Rate),
    key("workload.loads.reliability", LOADED, Any),
    key("workload.loads.depth", LOADED, DEPTH),
    key("workload.recording", REPLAY, Any),
    key("workload.recording.file", REPLAY, Any),
    key("workload.recording.topics", REPLAY, Any),
    key("workload.recording.start_s", REPLAY, Number(0.0, 1e9)),
    key("workload.recording.end_s", REPLAY, Number(0.0, 1e9)),
    key("workload.recording.speed", REPLAY, Number(0.01, 100.0)),
    key("workload.subscribers", Owners(&[Publish], ""), Number(0.0, 4_096.0)),
    key("workload.subscribers", Owners(&[Stream, Image, Replay], ""), PROCESSES),
    key("workload.publishers", Owners(&[Stream], ""), PROCESSES),
    key("workload.topics", Owners(&[Stream, Startup], ""), Number(1.0, 1e4)),
    key("workload.reliability", ONE_WAY, Any),
    key("workload.depth", ONE_WAY, DEPTH),
    key("workload.rate_hz", RATED, Rate),
    key("workload.messages", MEASURED, MESSAGES),
    key("workload.duration_s", LIMITED, Seconds),
    key("workload.warmup_messages", MEASURED, MESSAGES),
    key("workload.warmup_s", TIMED, Seconds),
    key("workload.reply_timeout_ms", ANSWERED, Number(1.0, 60_000.0)),
    key("workload.record_every", MEASURED, Number(1.0, 1e6)),
    key("plan", ALL, Any),
    key("plan.systems", ALL, Any),
    key("plan.tunings", ALL, Any),
    key("plan.topology", ALL, Any),
    key("plan.runs", ALL, RUNS),
    key("plan.runs_max", ALL, RUNS),
    key("plan.interval_percent", ALL, Number(0.01, 100.0)),
    key("tuning", ALL, Any),
    key("tuning.ping_cpu", ALL, CPU),
    key("tuning.pong_cpu", ALL, CPU),
    key("tuning.priority", ALL, Number(1.0, 99.0)),
    key("network", ALL, Any),
    key("network.link", ALL, Any),
    key("network.rate_mbit", ALL, Number(0.01, 4e5)),
    key("network.delay_ms", ALL, Number(0.0, 1e4)),
    key("network.jitter_ms", ALL, Number(0.0, 1e4)),
    key("network.loss_percent", ALL, Number(0.0, 100.0)),
    key("network.reorder_percent", ALL, Number(0.0, 100.0)),
    // Between the size that every IPv4 host must accept (RFC 791) and the largest packet.
    key("network.mtu", ALL, Number(576.0, 65_535.0)),
    key("network.routed", ALL, Any),
    key("network.cut", ALL, Any),
    key("network.cut.at_s", ALL, Seconds),
    key("network.cut.for_s", ALL, Number(0.01, 3_600.0)),
    key("options", ALL, Any),
];

pub(super) const KINDS: [Kind; 7] = [Roundtrip, Publish, Stream, Image, Flood, Startup, Replay];
const ALL: Owners = Owners(&KINDS, "");
const STREAMS: Owners = Owners(&[Stream, Image], "");
const LOADED: Owners = Owners(&[Roundtrip, Stream, Image], "");
const REPLAY: Owners = Owners(&[Replay], "");
const ONE_WAY: Owners =
    Owners(&[Stream, Image, Flood, Startup, Replay], "only one-way workloads have it");
const ANSWERED: Owners = Owners(&[Roundtrip], "its messages have no answers");
const SIZED: Owners =
    Owners(&[Roundtrip, Publish, Stream, Flood, Startup], "it follows from frames or a recording");
const TOUCHED: Owners = Owners(
    &[Roundtrip, Publish, Stream, Flood, Replay],
    "a frame is filled and copied whole, and a start-up measures no payload",
);
const RATED: Owners = Owners(
    &[Roundtrip, Publish, Stream, Image],
    "a flood finds its highest rate, a start-up has no rate, and a recording has its own times",
);
const MEASURED: Owners = Owners(
    &[Roundtrip, Publish, Stream, Image, Flood],
    "a start-up ends with the first message, and is measured cold; a recording has its messages",
);
const LIMITED: Owners = Owners(
    &[Roundtrip, Publish, Stream, Image, Flood, Replay],
    "a start-up ends with the first message",
);
const TIMED: Owners = Owners(
    &[Roundtrip, Stream, Image, Replay],
    "use warmup_messages instead; a start-up has no warm-up",
);
const PAYLOAD_BYTES: Rule = Number(0.0, (1 << 30) as f64);
const DEPTH: Rule = Number(1.0, 1e6);
const MESSAGES: Rule = Number(0.0, 1e9);
const RUNS: Rule = Number(1.0, 1e3);
const CPU: Rule = Number(0.0, 4_095.0);
/// Number of publishers or subscribers; each is a process.
const PROCESSES: Rule = Number(1.0, 256.0);
pub(super) const SECONDS_MAX: f64 = 86_400.0;

/// Checks all keys and their values. An unknown key is reported before other mistakes.
pub(super) fn check(source: &Source, document: &DeTable<'_>) -> Result<(), InputError> {
    let written =
        document.get("workload").and_then(|it| it.get_ref().get("kind")?.get_ref().as_str());
    let kind = KINDS.into_iter().find(|kind| Some(kind.name()) == written);
    walk(document, "", kind, &mut |path, place, _| {
        let is_known = KEYS.iter().any(|key| key.path == path);
        if is_known { Ok(()) } else { Err(unknown(path, kind).at(source, place)) }
    })?;
    walk(document, "", kind, &mut |path, place, value| {
        let mut keys = KEYS.iter().filter(|key| key.path == path);
        let Some(key) = keys.clone().find(|key| key.is_of(kind)) else {
            let Owners(kinds, why) = keys.next().map_or(ALL, |key| key.of);
            let kinds = kinds.iter().map(|kind| format!("{:?}", kind.name())).collect::<Vec<_>>();
            let kinds = format!("it belongs to kind {}", kinds.join(", "));
            let text = format!("not a key of kind {:?}", written.unwrap_or_default());
            let remedy = if why.is_empty() { &*kinds } else { why };
            return Err(source
                .wrong_at(place, path, text)
                .remedy(format!("leave it out: {remedy}")));
        };
        let values = match value.get_ref() {
            DeValue::Array(values) => &values[..],
            _ => std::slice::from_ref(value),
        };
        for value in values {
            key.rule.check(value).map_err(|(fault, remedy)| {
                let text = format!("{} {fault}", &source.text()[value.span()]);
                source.wrong_at(value.span(), path, text).remedy(remedy)
            })?;
        }
        Ok(())
    })
}

/// Calls `see` with path, position and value of every key below `table`, except those below a key
/// of another workload.
fn walk<'a>(
    table: &'a DeTable<'_>,
    above: &str,
    kind: Option<Kind>,
    see: &mut impl FnMut(&str, Range<usize>, &'a Spanned<DeValue<'_>>) -> Result<(), InputError>,
) -> Result<(), InputError> {
    for (key, value) in table {
        let path = if above.is_empty() {
            key.get_ref().to_string()
        } else {
            format!("{above}.{}", key.get_ref())
        };
        see(&path, key.span(), value)?;
        if KEYS.iter().any(|key| parent(key.path) == path && key.is_of(kind)) {
            let list = value.get_ref().as_array().map_or(std::slice::from_ref(value), |list| list);
            for table in list.iter().filter_map(|entry| entry.get_ref().as_table()) {
                walk(table, &path, kind, see)?;
            }
        }
    }
    Ok(())
}

fn parent(path: &str) -> &str {
    path.rsplit_once('.').map_or("", |(parent, _)| parent)
}

fn unknown(path: &str, kind: Option<Kind>) -> InputError {
    let name = |path: &'static str| path.rsplit('.').next().unwrap_or_default();
    let beside = KEYS.iter().filter(|key| parent(key.path) == parent(path) && key.is_of(kind));
    let mut known: Vec<&str> = beside.map(|key| name(key.path)).collect();
    known.dedup();
    let list = known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
    let given = path.rsplit('.').next().unwrap_or_default();
    InputError::unknown_field(given, known.into_iter()).remedy(format!("expected one of {list}"))
}

impl Key {
    /// While the kind is unknown, every key may belong to it.
    pub(super) fn is_of(&self, kind: Option<Kind>) -> bool {
        kind.is_none_or(|kind| self.of.0.contains(&kind))
    }
}

impl Rule {
    /// What is wrong with `value`, if anything, and what to do about it.
    fn check(self, value: &Spanned<DeValue<'_>>) -> Result<(), (&'static str, String)> {
        let text = value.get_ref().as_str();
        let number = f64::deserialize(value.clone().into_deserializer()).ok();
        let within = |low: f64, high: f64| number.is_none_or(|it| (low..=high).contains(&it));
        let is_plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        let (is_right, remedy) = match self {
            Any => (true, String::new()),
            Number(low, high) => (within(low, high), format!("use {low} to {high}")),
            Seconds => (
                within(f64::MIN_POSITIVE, SECONDS_MAX),
                format!("use more than 0 and at most {SECONDS_MAX} seconds"),
            ),
            Rate => (
                within(1e-3, 1e6) && text.is_none_or(|word| word == "max"),
                "give messages a second, above 0: 0.001 to 1000000, or \"max\" for back to back"
                    .into(),
            ),
            Frame => (
                text.is_none_or(|text| frame_of(text).is_some()),
                format!("give width x height in pixels, 1x1 to {SIDE_MAX}x{SIDE_MAX}"),
            ),
            Word(longest) => (
                text.is_none_or(|it| (1..=longest).contains(&it.len()) && it.chars().all(is_plain)),
                format!(
                    "use up to {longest} letters, digits, `-` and `_`: it becomes part of file names"
                ),
            ),
        };
        let fault = if let Word(_) = self { "is not a plain word" } else { "is out of range" };
        if is_right { Ok(()) } else { Err((fault, remedy)) }
    }
}
