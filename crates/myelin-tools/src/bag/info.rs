//! What is in a recording: `myelin bag info`.

use std::collections::BTreeMap;
use std::path::Path;

use myelin_bag::{BagReader, RecordedLosses};
use serde::Serialize;

use super::{loss, moment, open};
use crate::Error;
use crate::numbers::{bytes, or_dash, rate};
use crate::table::Table;
use crate::text::{counted, printable};

/// What is in a recording.
#[derive(Clone, Debug, Serialize)]
pub struct FileInfo {
    /// Its path.
    pub file: String,
    /// Its length.
    pub bytes: u64,
    /// Whether it was completed. If not, all of it was read.
    pub is_complete: bool,
    /// What it says of its contents, such as `ros2`.
    pub profile: String,
    /// What wrote it.
    pub library: String,
    /// The first and the last log time, in ns since 1970; absent without messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub start_ns: Option<u64>,
    /// See `start_ns`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub end_ns: Option<u64>,
    /// From the first to the last message.
    pub duration_s: f64,
    /// Messages of all topics.
    pub messages: u64,
    /// Chunks by their compression; `none` for no compression.
    pub chunks: BTreeMap<String, u64>,
    /// Files within the file.
    pub attachments: u32,
    /// Records of metadata.
    pub metadata: u32,
    /// Topics by name.
    pub topics: Vec<TopicInfo>,
    /// What cannot be read, in one sentence.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub damage: Option<String>,
}

/// A topic of a recording.
#[derive(Clone, Debug, Serialize)]
pub struct TopicInfo {
    /// Its name.
    pub topic: String,
    /// The name of its type.
    #[serde(rename = "type")]
    pub ty: String,
    /// How its messages are encoded.
    pub encoding: String,
    /// How many there are.
    pub messages: u64,
    /// Over the time of the whole recording; absent for less than two messages.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate_hz: Option<f64>,
    /// Bytes of its messages, unpacked.
    pub bytes: u64,
    /// Whether `bytes` comes from a part of the file's indexes.
    pub bytes_are_estimated: bool,
    /// Samples that are not in the file, as the recorder counted them; absent if it did not.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost: Option<Lost>,
}

/// Samples that are not in a recording, by cause.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct Lost {
    /// The publisher overwrote them before the recorder took them.
    pub publisher_ring: u64,
    /// The recorder could not keep them.
    pub recorder: u64,
    /// They could not be written.
    pub disk: u64,
}

impl Lost {
    fn total(self) -> u64 {
        self.publisher_ring.saturating_add(self.recorder).saturating_add(self.disk)
    }
}

impl FileInfo {
    /// Reads a file: its summary and some of its indexes, or all of it if it has none.
    ///
    /// # Errors
    /// One sentence with the path.
    pub fn read(path: &Path) -> Result<FileInfo, Error> {
        let reader = open(path)?;
        let info = reader.info();
        let statistics = &info.statistics;
        let times = (statistics.messages > 0).then_some(statistics.times);
        let duration_ns = times.map_or(0, |(start, end)| end.saturating_sub(start));
        let named = |(name, chunks): (&String, &u64)| {
            (if name.is_empty() { "none".to_owned() } else { name.clone() }, *chunks)
        };
        Ok(FileInfo {
            file: path.display().to_string(),
            bytes: info.bytes,
            is_complete: info.report.as_ref().is_none_or(|report| report.is_complete),
            profile: info.profile.clone(),
            library: info.library.clone(),
            start_ns: times.map(|(start, _)| start),
            end_ns: times.map(|(_, end)| end),
            duration_s: duration_ns as f64 * 1e-9,
            messages: statistics.messages,
            chunks: reader.compressions().iter().map(named).collect(),
            attachments: statistics.attachments,
            metadata: statistics.metadata,
            topics: topics(path, &reader, duration_ns as f64 * 1e-9)?,
            damage: loss(path, info.report.as_ref(), 0),
        })
    }

    /// It for people, as wide as `room`.
    pub fn text(&self, room: Option<usize>) -> String {
        let mut text = format!("{}\n", printable(&self.file));
        let messages = counted(self.messages, "message");
        text += &format!("  {}, {:.3} s, {messages}\n", bytes(self.bytes as f64), self.duration_s);
        for (name, ns) in [("from", self.start_ns), ("to", self.end_ns)] {
            text += &ns.map(|ns| format!("  {name:<4} {}\n", moment::text(ns))).unwrap_or_default();
        }
        let chunks = self.chunks.iter().map(|(name, chunks)| match name.as_str() {
            "none" => format!("{}, not compressed", counted(*chunks, "chunk")),
            name => format!("{}, {}", counted(*chunks, "chunk"), printable(name)),
        });
        for line in chunks {
            text += &format!("  {line}\n");
        }
        for (count, what) in [(self.attachments, "attachments"), (self.metadata, "metadata")] {
            text += &if count > 0 { format!("  {count} {what}\n") } else { String::new() };
        }
        let library = if self.library.is_empty() { "-" } else { &self.library };
        text += &format!("  written by {}", printable(library));
        text += &match self.profile.as_str() {
            "" => "\n".to_owned(),
            profile => format!(", profile {}\n", printable(profile)),
        };
        if !self.is_complete {
            text += "  not completed: `myelin bag repair` makes a whole file\n";
        }
        if let Some(damage) = &self.damage {
            text += &format!("  {}\n", printable(damage));
        }
        if self.topics.is_empty() {
            return text;
        }
        let mut table = Table::with_text(&["TOPIC", "MESSAGES", "HZ", "SIZE", "LOST", "TYPE"]);
        for topic in &self.topics {
            let about = if topic.bytes_are_estimated { "~" } else { "" };
            table.row([
                topic.topic.clone(),
                topic.messages.to_string(),
                or_dash(topic.rate_hz, rate),
                format!("{about}{}", bytes(topic.bytes as f64)),
                or_dash(topic.lost, |lost| lost.total().to_string()),
                topic.ty.clone(),
            ]);
        }
        text + "\n" + &table.text(room)
    }
}

fn topics(path: &Path, reader: &BagReader, duration_s: f64) -> Result<Vec<TopicInfo>, Error> {
    let unreadable = |error| Error::Io { what: path.display().to_string(), error };
    let sizes = reader.sizes().map_err(unreadable)?;
    let losses = reader.recorded_losses();
    let info = reader.info();
    let mut topics = BTreeMap::<(&str, &str, &str), TopicInfo>::new();
    for (id, channel) in &info.definitions.channels {
        let schema = info.definitions.schemas.get(&channel.schema);
        let ty = schema.map_or("-", |schema| &schema.name);
        let lost = losses.get(&channel.topic).map(|lost| {
            let RecordedLosses { publisher_ring, recorder, disk, .. } = *lost;
            Lost { publisher_ring, recorder, disk }
        });
        let key = (channel.topic.as_str(), ty, channel.encoding.as_str());
        let topic = topics.entry(key).or_insert_with(|| TopicInfo {
            topic: channel.topic.clone(),
            ty: ty.to_owned(),
            encoding: channel.encoding.clone(),
            messages: 0,
            rate_hz: None,
            bytes: 0,
            bytes_are_estimated: sizes.are_estimated,
            lost,
        });
        topic.messages += info.statistics.by_channel.get(id).copied().unwrap_or(0);
        topic.bytes += sizes.bytes.get(id).copied().unwrap_or(0);
    }
    let mut topics: Vec<_> = topics.into_values().collect();
    for topic in &mut topics {
        let has_rate = topic.messages > 1 && duration_s > 0.0;
        topic.rate_hz = has_rate.then(|| (topic.messages - 1) as f64 / duration_s);
    }
    Ok(topics)
}
