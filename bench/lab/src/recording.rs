//! Reads a recording as a workload: names, sizes and times of its messages, not their contents.
//!
//! A message is due when it was published, but not before the recording began, as samples that a
//! publisher kept may be much older, and not after it was recorded, as another host's clock may be
//! ahead. The warm-up is the first part of the recording, with one more message of each topic: its
//! largest. So no topic is cold.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use myelin_bag::{BagReader, MessageHead, MessagesError, OpenError, Selection, Topics};
use myelin_bench_kit::trace::{MESSAGES_MAX, TOPICS_MAX, Trace, TraceMessage};

use crate::input_error::InputError;
use crate::scenario::{Kind, RecordedTopic, Recording, Replay, Scenario};

/// Reads the recording of a replay, and sets the values of the workload that follow from it.
/// Returns remarks for the report. Does nothing for other workloads.
pub fn load(scenario: &mut Scenario) -> Result<Vec<String>, InputError> {
    let Some(recording) = &scenario.workload.recording else {
        return Ok(Vec::new());
    };
    let path = scenario.source.beside(&recording.file);
    let at = |key: &str| scenario.source.place(&format!("workload.recording.{key}"));
    let wrong = |key: &str, error: InputError| error.at(&scenario.source, at(key));
    let limit_s = scenario.workload.duration_s;
    let read = Read::of(&path, recording, limit_s).map_err(|(key, error)| wrong(key, error))?;
    let Read { topics, messages, is_cut, mut notes } = read;
    let shown = path.display();
    if messages.is_empty() {
        let text = format!("{shown}: no messages of these topics between start and end");
        return Err(
            wrong("file", InputError::new(text)).remedy("`myelin bag info` shows what it has")
        );
    }
    let warmup_ns = (scenario.workload.warmup_s * 1e9) as u64;
    let replay = replay(topics, &messages, recording.speed, [warmup_ns, (limit_s * 1e9) as u64]);
    let replay = replay.map_err(|error| wrong("file", InputError::new(error.to_string())))?;
    let bytes: u64 = replay.topics.iter().map(|topic| topic.messages * topic.payload_bytes).sum();
    let workload = &mut scenario.workload;
    workload.payload_bytes = vec![bytes / replay.messages.max(1)];
    let rate_hz = replay.messages as f64 / replay.seconds;
    workload.rate_hz = vec![Some((rate_hz * 10.0).round().max(1.0) / 10.0)];
    workload.topics = vec![replay.topics.len() as u32];
    let name = &scenario.name;
    let more = messages.len() as u64 - replay.messages;
    if more > 0 || is_cut {
        let seconds = replay.seconds;
        notes.push(format!(
            "`{name}`: the recording is longer; its first {seconds:.1} s are replayed"
        ));
    }
    workload.replay = Some(replay);
    debug_assert!(workload.kind == Kind::Replay);
    Ok(notes)
}

/// A message of the recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Recorded {
    at_ns: u64,
    topic: u32,
    bytes: u32,
}

/// What was read of a file.
#[derive(Debug, Default)]
struct Read {
    /// Names.
    topics: Vec<String>,
    /// In the order of time.
    messages: Vec<Recorded>,
    /// Whether there are messages behind them.
    is_cut: bool,
    notes: Vec<String>,
}

impl Read {
    /// Reads the messages that `recording` selects, as many as are needed for `limit_s` of replay.
    /// An error comes with the key that it is about.
    fn of(
        path: &Path,
        recording: &Recording,
        limit_s: f64,
    ) -> Result<Self, (&'static str, InputError)> {
        let shown = path.display();
        let reader = open(path).map_err(|error| ("file", error))?;
        let mut read = Read::default();
        let channels = &reader.info().definitions.channels;
        let names = channels.values().map(|channel| channel.topic.as_str());
        let names = chosen(names, &recording.topics).map_err(|error| ("topics", error))?;
        let numbers: BTreeMap<&str, u32> = names.iter().copied().zip(0..).collect();
        let topic_of: BTreeMap<u16, u32> = (channels.iter())
            .filter_map(|(id, channel)| Some((*id, *numbers.get(channel.topic.as_str())?)))
            .collect();
        read.topics = names.iter().map(|name| (*name).to_owned()).collect();
        if let Some(report) = reader.report().filter(|report| !report.is_lossless()) {
            let first = report.losses.first().map(|loss| format!(" ({loss})")).unwrap_or_default();
            let text =
                format!("{shown}: damaged{first}; the messages that can be read are replayed");
            read.notes.push(text);
        }
        let mut selection = Selection::default();
        // The begin of the recording is that of all its messages.
        let all = reader.messages(&selection).map(|mut all| all.find_map(Result::ok));
        let unread = |error: std::io::Error| ("file", InputError::new(format!("{shown}: {error}")));
        let Some(first) = all.map_err(unread)? else {
            return Ok(read);
        };
        let begin_ns = first.head.log_ns;
        let after = |seconds: f64| begin_ns.saturating_add((seconds * 1e9) as u64);
        let (from_ns, end_ns) = (after(recording.start_s), recording.end_s.map(after));
        selection.channels = Some(topic_of.keys().copied().collect());
        selection.start_ns = Some(from_ns);
        let mut lost = 0u64;
        let mut until_ns = end_ns;
        for message in reader.messages(&selection).map_err(unread)? {
            let message = match message {
                Ok(message) => message,
                Err(MessagesError::Lost(_)) => {
                    lost += 1;
                    continue;
                }
                Err(error) => {
                    read.notes.push(format!("{shown}: {error}; the messages before are replayed"));
                    break;
                }
            };
            let head = message.head;
            let at_ns = at_ns(&head, begin_ns);
            if at_ns < from_ns {
                continue;
            }
            if read.messages.is_empty() {
                let limit_ns = (limit_s * recording.speed * 1e9) as u64;
                let limit_ns = at_ns.saturating_add(limit_ns);
                until_ns = Some(end_ns.unwrap_or(u64::MAX).min(limit_ns));
            }
            let until_ns = until_ns.unwrap_or(u64::MAX);
            // Those that were published before may have been recorded a little later.
            if head.log_ns >= until_ns.saturating_add(RECORDED_LATE_NS) {
                read.is_cut = end_ns.is_none_or(|end_ns| until_ns < end_ns);
                break;
            }
            if at_ns >= until_ns {
                read.is_cut |= end_ns.is_none_or(|end_ns| until_ns < end_ns);
                continue;
            }
            if read.messages.len() == RECORDED_MAX {
                read.is_cut = true;
                break;
            }
            let bytes = u32::try_from(message.data().len()).unwrap_or(u32::MAX);
            read.messages.push(Recorded { at_ns, topic: topic_of[&head.channel], bytes });
        }
        if lost > 0 && read.notes.is_empty() {
            let text = format!("{shown}: {lost} damaged chunks; the messages in them are left out");
            read.notes.push(text);
        }
        read.messages.sort_by_key(|message| message.at_ns);
        Ok(read)
    }
}

fn open(path: &Path) -> Result<BagReader, InputError> {
    BagReader::open(path).map_err(|error| {
        let remedy = match error {
            OpenError::Io(_) => "name a recording that can be read",
            _ => "name a recording that `myelin record` or another program wrote as MCAP",
        };
        InputError::new(format!("{}: {error}", path.display())).remedy(remedy)
    })
}

/// When a message is due; see the module.
fn at_ns(head: &MessageHead, begin_ns: u64) -> u64 {
    match head.publish_ns {
        0 => head.log_ns,
        publish_ns => publish_ns.clamp(begin_ns, head.log_ns.max(begin_ns)),
    }
}

/// The topics that the patterns select, each once, in the order of their names; without patterns all
/// except the recorder's own. Each pattern must match at least one.
fn chosen<'a>(
    names: impl Iterator<Item = &'a str>,
    patterns: &[String],
) -> Result<Vec<&'a str>, InputError> {
    let names: BTreeSet<&str> = names.collect();
    if names.len() > TOPICS_MAX as usize {
        let text = format!("{} topics are too many", names.len());
        return Err(InputError::new(text).remedy(format!("select at most {TOPICS_MAX}")));
    }
    let topics = Topics { wanted: patterns.to_vec(), ..Topics::default() };
    let chosen = topics.choose_of_robot(names.iter().copied()).map_err(|error| {
        // Names are from the file, and may have what a terminal would obey.
        let known: Vec<String> = names.iter().map(|it| it.escape_debug().to_string()).collect();
        InputError::unknown("topic", &error.pattern, known.iter().map(String::as_str))
            .remedy("`myelin bag info` shows the topics of a recording")
    })?;
    Ok(chosen.into_iter().collect())
}

/// The replay of `messages`, which are not empty, `speed` times as fast, with this warm-up and at
/// most this duration. Topics without a message are left out.
fn replay(
    names: Vec<String>,
    messages: &[Recorded],
    speed: f64,
    [warmup_ns, duration_ns]: [u64; 2],
) -> Result<Replay, myelin_bench_kit::Error> {
    let first_ns = messages[0].at_ns;
    let due = |message: &Recorded| ((message.at_ns - first_ns) as f64 / speed) as u64;
    let measured: Vec<(u64, &Recorded)> = messages
        .iter()
        .map(|message| (due(message), message))
        .take_while(|(due_ns, _)| *due_ns < duration_ns)
        .collect();
    let mut topics: Vec<RecordedTopic> =
        names.into_iter().map(|name| RecordedTopic { name, ..RecordedTopic::default() }).collect();
    for (_, message) in &measured {
        let topic = &mut topics[message.topic as usize];
        topic.messages += 1;
        topic.payload_bytes += u64::from(message.bytes);
        topic.payload_bytes_max = topic.payload_bytes_max.max(message.bytes.into());
    }
    let mut numbers = Vec::new();
    let mut next = 0;
    for topic in &mut topics {
        topic.payload_bytes /= topic.messages.max(1);
        numbers.push(next);
        next += u32::from(topic.messages > 0);
    }
    topics.retain(|topic| topic.messages > 0);
    let message = |due_ns: u64, topic: u32, bytes: u32| TraceMessage {
        due_ns,
        topic,
        bytes,
        ..TraceMessage::default()
    };
    let mut all: Vec<TraceMessage> = Vec::new();
    if warmup_ns > 0 {
        let early = measured.iter().take_while(|(due_ns, _)| *due_ns < warmup_ns);
        all.extend(
            early.map(|(due_ns, it)| message(*due_ns, numbers[it.topic as usize], it.bytes)),
        );
        let step_ns = warmup_ns / topics.len() as u64;
        let largest = topics.iter().zip(0..).map(|(topic, number)| {
            message(u64::from(number) * step_ns, number, topic.payload_bytes_max as u32)
        });
        all.extend(largest);
        all.sort_by_key(|message| message.due_ns);
    }
    let warmup_messages = all.len();
    let room = MESSAGES_MAX.saturating_sub(warmup_messages);
    let measured = &measured[..measured.len().min(room)];
    all.extend(
        measured
            .iter()
            .map(|(due_ns, it)| message(warmup_ns + due_ns, numbers[it.topic as usize], it.bytes)),
    );
    let last_ns = measured.last().map_or(0, |(due_ns, _)| *due_ns);
    // The last message ends the replay one mean distance early.
    let distance_ns = last_ns / (measured.len() as u64 - 1).max(1);
    Ok(Replay {
        messages: measured.len() as u64,
        warmup_messages: warmup_messages as u64,
        seconds: (last_ns + distance_ns.max(1)) as f64 * 1e-9,
        trace: Some(Arc::new(Trace::new(topics.len() as u32, warmup_messages, warmup_ns, all)?)),
        topics,
    })
}

/// A recorder writes a message at most this long after it was published.
const RECORDED_LATE_NS: u64 = 1_000_000_000;
/// Leaves room for the warm-up.
const RECORDED_MAX: usize = MESSAGES_MAX / 2;

/// The file of a trace in the results folder, relative to it.
pub(crate) fn trace_file(scenario: &str) -> PathBuf {
    Path::new("recordings").join(format!("{scenario}.trace"))
}

#[cfg(test)]
mod tests;
