//! Writes a recording.
//!
//! Everything is written once, in order, with its size known before: a chunk's head, then its
//! records, then its index, in one call. So a file that ends anywhere has all messages that were
//! written completely, and [`Scanner`](crate::Scanner) finds them.
//!
//! | message | its way |
//! |---|---|
//! | up to [`Options::small_bytes_max`] | copied into the chunk, which is written when it is full or by [`Writer::flush`] |
//! | larger | a chunk of its own, gathered from where its parts lie, without a copy |
//!
//! Space for a chunk *and* for the end of the file is reserved before the chunk is begun. So a full
//! disk costs the chunk that has no space, and the file is still completed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::IoSlice;
use std::path::Path;

use myelin_value::Schema;

use crate::chunk::{Chunk, Index};
use crate::error::WriteError;
use crate::format::{
    Attachment, Channel, MAGIC, MESSAGE_HEAD, MessageHead, Metadata, RECORD_HEAD, Statistics,
    attachment_head, message_head, push_attachment_index, push_channel, push_chunk_index,
    push_header, push_metadata, push_metadata_index, push_schema,
};
use crate::storage::{Storage, write_all};
use crate::summary::{COUNT_BYTES, Summary};

/// How a recording is written.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Options {
    /// The profile of the file: `ros2` if all of it is of ROS 2, or empty.
    pub profile: String,
    /// Bytes of a chunk of small messages. It is memory, and what a killed recorder loses.
    pub chunk_bytes: usize,
    /// The largest message that is copied into a chunk with others.
    pub small_bytes_max: usize,
    /// Whether chunks have a checksum. It takes one more pass over the data.
    pub has_checksums: bool,
    /// Space that is kept for metadata at the end of a full disk: losses, for example.
    pub end_bytes: u64,
    /// Space is reserved in steps of so many bytes, if there is enough.
    pub reserve_bytes: u64,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            profile: String::new(),
            chunk_bytes: 1 << 20,
            small_bytes_max: 32 << 10,
            has_checksums: false,
            end_bytes: 64 << 10,
            reserve_bytes: 16 << 20,
        }
    }
}

/// What is in a file, and what is not.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Written {
    /// The length of the file.
    pub bytes: u64,
    /// What the file contains.
    pub statistics: Statistics,
    /// Messages that were given to the writer and are not in the file, by the id of their channel.
    pub lost: BTreeMap<u16, u64>,
}

/// Writes one file.
///
/// ```
/// use myelin_bag::{Channel, MessageHead, Options, Schema, Writer};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("run.mcap");
/// let mut writer = Writer::create(&path, Options::default())?;
/// let schema = writer.add_schema(&Schema::new("ros2msg", "robot/msg/Speed", "float64 x\n"))?;
/// let channel = writer.add_channel(&Channel {
///     schema,
///     topic: "/speed".into(),
///     encoding: "cdr".into(),
///     ..Channel::default()
/// })?;
/// let sample = 1.5_f64.to_le_bytes();
/// let head = MessageHead { channel, sequence: 1, log_ns: 2_000, publish_ns: 1_000 };
/// writer.write(&head, &[&myelin_bag::CDR_HEADER, &sample])?;
/// let written = writer.finish()?;
/// assert_eq!(written.statistics.messages, 1);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// If it is dropped, it finishes the file as far as it can.
pub struct Writer<S: Storage = File> {
    storage: S,
    options: Options,
    /// How far the file is written. All records up to here are complete.
    end: u64,
    /// Up to where space is reserved.
    reserved: u64,
    chunk: Chunk,
    /// The index of a large message; kept so that it allocates once.
    large: Index,
    /// What is in front of a chunk's records and behind them; kept likewise.
    head: Vec<u8>,
    tail: Vec<u8>,
    summary: Summary,
    lost: BTreeMap<u16, u64>,
    schemas: u16,
    channels: u16,
    state: State,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Open,
    /// A write failed: no more chunks.
    Ended,
    Finished,
}

impl Writer<File> {
    /// Begins a file. There must be none of this name.
    ///
    /// A process that has a limit of its files' size (`RLIMIT_FSIZE`) should ignore SIGXFSZ, so
    /// that the limit is an error and not its end.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn create(path: impl AsRef<Path>, options: Options) -> Result<Self, WriteError> {
        let file = File::options().write(true).create_new(true).open(&path)?;
        Writer::new(file, options).inspect_err(|_| {
            let _ = std::fs::remove_file(&path);
        })
    }
}

impl<S: Storage> Writer<S> {
    /// Begins a recording in an empty storage.
    ///
    /// # Errors
    /// If its first bytes cannot be written.
    pub fn new(storage: S, options: Options) -> Result<Self, WriteError> {
        let mut writer = Writer {
            storage,
            options,
            end: 0,
            reserved: 0,
            chunk: Chunk::default(),
            large: Index::default(),
            head: Vec::new(),
            tail: Vec::new(),
            summary: Summary::default(),
            lost: BTreeMap::new(),
            schemas: 0,
            channels: 0,
            // Until it has begun: a file without a header cannot be finished.
            state: State::Finished,
        };
        let mut begin = MAGIC.to_vec();
        push_header(&mut begin, &writer.options.profile, LIBRARY);
        writer.append(&mut [IoSlice::new(&begin)], 0)?;
        writer.state = State::Open;
        Ok(writer)
    }

    /// Adds the schema of some channels, and returns its id.
    ///
    /// # Errors
    /// If there are too many, or it is too long.
    pub fn add_schema(&mut self, schema: &Schema) -> Result<u16, WriteError> {
        check_length("schema", [schema.name.len(), schema.encoding.len(), schema.text.len()])?;
        let id = self.schemas.checked_add(1).ok_or(WriteError::TooMany("schema"))?;
        self.schemas = id;
        let mut record = Vec::new();
        push_schema(&mut record, id, schema);
        self.chunk.push_schema(&record);
        Ok(id)
    }

    /// Adds a channel, and returns its id.
    ///
    /// # Errors
    /// If there are too many, it is too long, or its schema is not of this file.
    pub fn add_channel(&mut self, channel: &Channel) -> Result<u16, WriteError> {
        check_length("channel", [channel.topic.len(), channel.encoding.len()])?;
        check_length("channel", [metadata_bytes(&channel.metadata)])?;
        if channel.schema > self.schemas {
            return Err(WriteError::Unknown { what: "schema", id: channel.schema });
        }
        // Ids begin with 1: some readers take 0 for none, as it is for schemas.
        let id = self.channels.checked_add(1).ok_or(WriteError::TooMany("channel"))?;
        self.channels = id;
        let mut record = Vec::new();
        push_channel(&mut record, id, channel);
        self.chunk.push_channel(&record);
        Ok(id)
    }

    /// Writes a message, whose data are these parts one after the other. After a small message it
    /// may not yet be in the file: see [`flush`](Writer::flush).
    ///
    /// # Errors
    /// If a chunk cannot be written. Then its messages are counted as [lost](Writer::lost), and so
    /// are all that follow.
    pub fn write(&mut self, message: &MessageHead, data: &[&[u8]]) -> Result<(), WriteError> {
        if message.channel == 0 || message.channel > self.channels {
            return Err(WriteError::Unknown { what: "channel", id: message.channel });
        }
        let bytes = data.iter().map(|part| part.len()).sum::<usize>();
        let written = self.write_known(message, data, bytes);
        if written.is_err() {
            *self.lost.entry(message.channel).or_default() += 1;
        }
        written
    }

    fn write_known(
        &mut self,
        message: &MessageHead,
        data: &[&[u8]],
        bytes: usize,
    ) -> Result<(), WriteError> {
        if self.state != State::Open {
            return Err(WriteError::Ended);
        }
        let head = message_head(message, bytes);
        if bytes > self.options.small_bytes_max {
            self.flush()?;
            return self.write_large(message, &head, data);
        }
        let records_bytes = self.chunk.records.len() + MESSAGE_HEAD + bytes;
        if records_bytes > self.options.chunk_bytes.min(CHUNK_BYTES_MAX) {
            self.flush()?;
        }
        self.chunk.push_message(message, &head, data);
        Ok(())
    }

    /// Writes what is in memory to the file. Messages before it survive the end of this process.
    ///
    /// # Errors
    /// If it cannot be written. Then the messages in memory are counted as lost.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        let written = self.write_chunk(&mut chunk);
        if written.is_err() {
            self.count_lost(&chunk.index);
        }
        chunk.clear();
        self.chunk = chunk;
        written
    }

    fn write_chunk(&mut self, chunk: &mut Chunk) -> Result<(), WriteError> {
        let definitions = chunk.schemas.len() + chunk.channels.len();
        if chunk.index.messages() == 0 {
            // A chunk without messages helps nobody: the definitions stand for themselves.
            self.append(&mut [IoSlice::new(&chunk.records)], definitions)?;
        } else {
            self.write_framed(&mut chunk.index, &[&chunk.records], definitions)?;
        }
        self.summary.schemas.append(&mut chunk.schemas);
        self.summary.channels.append(&mut chunk.channels);
        self.summary.statistics.schemas = self.schemas;
        self.summary.statistics.channels = self.channels.into();
        Ok(())
    }

    fn write_large(
        &mut self,
        message: &MessageHead,
        head: &[u8],
        data: &[&[u8]],
    ) -> Result<(), WriteError> {
        let mut index = std::mem::take(&mut self.large);
        index.push(message, 0);
        let mut records = Vec::with_capacity(data.len() + 1);
        records.push(head);
        records.extend_from_slice(data);
        let written = self.write_framed(&mut index, &records, 0);
        index.clear();
        self.large = index;
        written
    }

    /// Writes a chunk of these records, of which so many bytes are definitions.
    fn write_framed(
        &mut self,
        index: &mut Index,
        records: &[&[u8]],
        definitions: usize,
    ) -> Result<(), WriteError> {
        let bytes = records.iter().map(|part| part.len() as u64).sum();
        let crc = if self.options.has_checksums { checksum(records) } else { 0 };
        let (mut head, mut tail) = (std::mem::take(&mut self.head), std::mem::take(&mut self.tail));
        head.clear();
        tail.clear();
        let place = index.frame(self.end, bytes, crc, &mut head, &mut tail);
        let before = self.summary.chunk_indexes.len();
        push_chunk_index(&mut self.summary.chunk_indexes, &place);
        let around = [&head[..]].into_iter().chain(records.iter().copied()).chain([&tail[..]]);
        let mut parts: Vec<_> = around.map(IoSlice::new).collect();
        let counts = place.message_indexes.len() * COUNT_BYTES;
        let written = self.append(&mut parts, definitions + counts);
        drop(parts);
        (self.head, self.tail) = (head, tail);
        if let Err(error) = written {
            self.summary.chunk_indexes.truncate(before);
            return Err(error);
        }
        self.summary.statistics.chunks += 1;
        self.summary.count(index.counts(), index.times());
        Ok(())
    }

    /// Writes a record of metadata. It is possible after a write failed, too: there is space for
    /// [`Options::end_bytes`] of it.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_metadata(&mut self, name: &str, values: &Metadata) -> Result<(), WriteError> {
        check_length("metadata", [name.len(), metadata_bytes(values)])?;
        if self.state == State::Open {
            self.flush()?;
        }
        let mut record = Vec::new();
        push_metadata(&mut record, name, values);
        let before = self.summary.metadata_indexes.len();
        let bytes = record.len() as u64;
        push_metadata_index(&mut self.summary.metadata_indexes, self.end, bytes, name);
        let kept = if self.state == State::Open { self.options.end_bytes } else { 0 };
        let written = self.append_keeping(&mut [IoSlice::new(&record)], 0, kept);
        match written {
            Ok(()) => self.summary.statistics.metadata += 1,
            Err(_) => self.summary.metadata_indexes.truncate(before),
        }
        written
    }

    /// Writes a file within the file. Its data are not copied.
    ///
    /// # Errors
    /// If it cannot be written.
    pub fn write_attachment(&mut self, attachment: &Attachment) -> Result<(), WriteError> {
        check_length("attachment", [attachment.name.len(), attachment.media_type.len()])?;
        if self.state != State::Open {
            return Err(WriteError::Ended);
        }
        self.flush()?;
        let head = attachment_head(attachment);
        let crc = checksum(&[&head[RECORD_HEAD..], attachment.data]).to_le_bytes();
        let before = self.summary.attachment_indexes.len();
        let bytes = (head.len() + attachment.data.len() + crc.len()) as u64;
        let indexes = &mut self.summary.attachment_indexes;
        push_attachment_index(indexes, self.end, bytes, attachment);
        let parts = [&head[..], attachment.data, &crc];
        let written = self.append(&mut parts.map(IoSlice::new), 0);
        match written {
            Ok(()) => self.summary.statistics.attachments += 1,
            Err(_) => self.summary.attachment_indexes.truncate(before),
        }
        written
    }

    /// What is in the file so far.
    pub fn statistics(&self) -> &Statistics {
        &self.summary.statistics
    }

    /// Messages that were given to [`write`](Writer::write) and will not be in the file, by the id
    /// of their channel.
    pub fn lost(&self) -> &BTreeMap<u16, u64> {
        &self.lost
    }

    /// The length of the file, so far.
    pub fn bytes(&self) -> u64 {
        self.end
    }

    /// Bytes of messages in memory, which are not yet in the file.
    pub fn bytes_in_memory(&self) -> usize {
        self.chunk.records.len()
    }

    /// Completes the file. A disk that was full before is no error here: see [`Written::lost`].
    ///
    /// # Errors
    /// If the end of the file cannot be written. Its messages can still be read.
    pub fn finish(mut self) -> Result<Written, WriteError> {
        self.complete()?;
        let (statistics, lost) = (self.summary.statistics.clone(), std::mem::take(&mut self.lost));
        Ok(Written { bytes: self.end, statistics, lost })
    }

    fn complete(&mut self) -> Result<(), WriteError> {
        // Its losses are counted, and the end has its space.
        let flushed = if self.state == State::Open { self.flush() } else { Ok(()) };
        self.state = State::Finished;
        let mut end = Vec::new();
        self.summary.push_end(&mut end, self.end);
        // Without a reservation: that is what it was made for.
        self.append_reserved(&mut [IoSlice::new(&end)])?;
        self.storage.truncate(self.end)?;
        match flushed {
            Err(WriteError::Full(_)) | Ok(()) => Ok(()),
            Err(other) => Err(other),
        }
    }

    /// Appends records, if there is space for them and for the end of the file. They make the end
    /// so much longer, besides what was added to the summary.
    fn append(&mut self, parts: &mut [IoSlice<'_>], end_more: usize) -> Result<(), WriteError> {
        self.append_keeping(parts, end_more, self.options.end_bytes)
    }

    fn append_keeping(
        &mut self,
        parts: &mut [IoSlice<'_>],
        end_more: usize,
        kept: u64,
    ) -> Result<(), WriteError> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        let needed = self.end + bytes;
        let needed = needed + (self.summary.end_bytes_max() + end_more) as u64 + kept;
        self.reserve(needed).and_then(|()| self.append_reserved(parts)).inspect_err(|_| {
            if self.state == State::Open {
                self.state = State::Ended;
            }
        })
    }

    fn reserve(&mut self, needed: u64) -> Result<(), WriteError> {
        if needed <= self.reserved {
            return Ok(());
        }
        let more = needed.next_multiple_of(self.options.reserve_bytes.max(1));
        let is_there = self.storage.reserve(self.end, more);
        let (until, is_there) = match is_there {
            Ok(()) => (more, Ok(())),
            // What a failed call reserved is freed first: it may be what is missing.
            Err(_) => (needed, self.storage.reserve(self.end, needed)),
        };
        is_there.map_err(WriteError::of)?;
        self.reserved = until;
        Ok(())
    }

    fn append_reserved(&mut self, parts: &mut [IoSlice<'_>]) -> Result<(), WriteError> {
        let bytes = parts.iter().map(|part| part.len() as u64).sum::<u64>();
        if let Err(error) = write_all(&mut self.storage, parts, self.end) {
            // Frees what was written in part, also for the end of the file.
            let _ = self.storage.truncate(self.end);
            self.reserved = self.end;
            return Err(WriteError::of(error));
        }
        self.end += bytes;
        Ok(())
    }

    fn count_lost(&mut self, index: &Index) {
        for (channel, messages) in index.counts() {
            *self.lost.entry(channel).or_default() += messages;
        }
    }
}

impl<S: Storage> Drop for Writer<S> {
    fn drop(&mut self) {
        if self.state != State::Finished {
            let _ = self.complete();
        }
    }
}

fn checksum(parts: &[&[u8]]) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    for part in parts {
        hasher.update(part);
    }
    hasher.finalize()
}

fn check_length(
    what: &'static str,
    lengths: impl IntoIterator<Item = usize>,
) -> Result<(), WriteError> {
    let is_too_long = |bytes| u32::try_from(bytes).is_err();
    if lengths.into_iter().any(is_too_long) { Err(WriteError::TooLong(what)) } else { Ok(()) }
}

fn metadata_bytes(of: &Metadata) -> usize {
    of.iter().map(|(name, value)| 8 + name.len() + value.len()).sum()
}

/// In the header of each file.
const LIBRARY: &str = concat!("myelin ", env!("CARGO_PKG_VERSION"));
/// Of a small chunk: the index of one channel has less than 4 GiB.
const CHUNK_BYTES_MAX: usize = 1 << 30;
