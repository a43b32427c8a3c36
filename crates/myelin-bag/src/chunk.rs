//! A chunk while it is made: its records, and where the messages are in them.

use std::collections::BTreeMap;

use crate::format::{
    ChunkHead, ChunkIndex, MESSAGE_HEAD, MessageHead, push_chunk_head, push_message_index,
};

/// Small messages are copied into it, until it is written.
#[derive(Default)]
pub(crate) struct Chunk {
    /// Definitions and messages, in order of arrival.
    pub records: Vec<u8>,
    /// The records of schemas and of channels in it, again: the summary repeats them.
    pub schemas: Vec<u8>,
    pub channels: Vec<u8>,
    /// How many they are.
    pub schemas_count: u16,
    pub channels_count: u16,
    pub index: Index,
}

impl Chunk {
    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn push_schema(&mut self, record: &[u8]) {
        self.records.extend_from_slice(record);
        self.schemas.extend_from_slice(record);
        self.schemas_count += 1;
    }

    pub(crate) fn push_channel(&mut self, record: &[u8]) {
        self.records.extend_from_slice(record);
        self.channels.extend_from_slice(record);
        self.channels_count += 1;
    }

    pub(crate) fn push_message(
        &mut self,
        message: &MessageHead,
        head: &[u8; MESSAGE_HEAD],
        data: &[&[u8]],
    ) {
        self.index.push(message, self.records.len() as u64);
        self.records.extend_from_slice(head);
        for part in data {
            self.records.extend_from_slice(part);
        }
    }

    pub(crate) fn clear(&mut self) {
        self.records.clear();
        self.schemas.clear();
        self.channels.clear();
        (self.schemas_count, self.channels_count) = (0, 0);
        self.index.clear();
    }
}

/// The records of a chunk as they are written.
pub(crate) struct Body<'a> {
    /// One after the other.
    pub parts: &'a [&'a [u8]],
    /// How they are compressed; empty if they are not.
    pub compression: &'static str,
    pub uncompressed_bytes: u64,
    /// Of the uncompressed records; 0 if there is none.
    pub crc: u32,
}

/// Where the messages of a chunk are in its records.
#[derive(Default)]
pub(crate) struct Index {
    /// By the id of the channel. The lists stay allocated from chunk to chunk.
    entries: Vec<Vec<(u64, u64)>>,
    /// Channels that have entries.
    touched: Vec<u16>,
    messages: u64,
    times: Option<(u64, u64)>,
}

impl Index {
    pub(crate) fn push(&mut self, message: &MessageHead, offset: u64) {
        let channel = usize::from(message.channel);
        if self.entries.len() <= channel {
            self.entries.resize_with(channel + 1, Vec::new);
        }
        if self.entries[channel].is_empty() {
            self.touched.push(message.channel);
        }
        self.entries[channel].push((message.log_ns, offset));
        self.messages += 1;
        self.times = span(self.times, message.log_ns);
    }

    pub(crate) fn messages(&self) -> u64 {
        self.messages
    }

    /// The least and the largest log time.
    pub(crate) fn times(&self) -> Option<(u64, u64)> {
        self.times
    }

    /// How many messages each channel has.
    pub(crate) fn counts(&self) -> impl Iterator<Item = (u16, u64)> + '_ {
        self.touched.iter().map(|id| (*id, self.entries[usize::from(*id)].len() as u64))
    }

    /// Writes what is in front of the chunk's records to `head`, and what is behind to `tail`.
    /// Returns the chunk's index for the summary.
    pub(crate) fn frame(
        &mut self,
        start: u64,
        body: &Body<'_>,
        head: &mut Vec<u8>,
        tail: &mut Vec<u8>,
    ) -> ChunkIndex<'static> {
        let times = self.times.unwrap_or((0, 0));
        let Body { parts, compression, uncompressed_bytes, crc } = *body;
        let records_bytes = parts.iter().map(|part| part.len() as u64).sum();
        push_chunk_head(
            head,
            &ChunkHead { times, uncompressed_bytes, crc, compression, records_bytes },
        );
        let bytes = head.len() as u64 + records_bytes;
        let mut message_indexes = BTreeMap::new();
        self.touched.sort_unstable();
        for channel in &self.touched {
            let entries = &mut self.entries[usize::from(*channel)];
            entries.sort(); // They nearly always are sorted, which takes one pass.
            message_indexes.insert(*channel, start + bytes + tail.len() as u64);
            push_message_index(tail, *channel, entries);
        }
        ChunkIndex {
            times,
            start,
            bytes,
            message_indexes,
            message_indexes_bytes: tail.len() as u64,
            compression,
            compressed_bytes: records_bytes,
            uncompressed_bytes,
        }
    }

    pub(crate) fn clear(&mut self) {
        for channel in self.touched.drain(..) {
            self.entries[usize::from(channel)].clear();
        }
        self.messages = 0;
        self.times = None;
    }
}

/// The span of times that has one more in it.
pub(crate) fn span(times: Option<(u64, u64)>, ns: u64) -> Option<(u64, u64)> {
    times.map_or(Some((ns, ns)), |(first, last)| Some((first.min(ns), last.max(ns))))
}
