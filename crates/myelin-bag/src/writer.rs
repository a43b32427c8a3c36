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
//! With [`Options::compression`] threads of low priority compress the chunks, large messages are
//! copied too, and a chunk is written when it is compressed and all before it are written.
//!
//! Space for a chunk *and* for the end of the file is reserved before the chunk is begun. So a full
//! disk costs the chunk that has no space, and the file is still completed.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::IoSlice;
use std::path::Path;

use myelin_value::Schema;

use crate::chunk::{Body, Chunk, Index};
use crate::compression::Compression;
use crate::error::WriteError;
use crate::format::{
    Attachment, Channel, MAGIC, MESSAGE_HEAD, MessageHead, Metadata, RECORD_HEAD, Statistics,
    attachment_head, message_head, push_attachment_index, push_channel, push_chunk_index,
    push_header, push_metadata, push_metadata_index, push_schema,
};
use crate::packing::{Packed, Packing};
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
    /// How chunks are compressed.
    pub compression: Compression,
    /// So many threads compress; 0 for half of the CPUs, at most four.
    pub compression_threads: usize,
    /// Bytes of messages that these threads may have, or one message of more.
    pub compression_bytes_max: usize,
    /// What happens to a message when they have so many: it is lost, with [`WriteError::Behind`],
    /// or [`Writer::write`] waits for them. If nobody waits for them, they run when nothing else
    /// wants a CPU (`SCHED_IDLE`), so that they hold up no publisher.
    pub drops_when_behind: bool,
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
            compression: Compression::None,
            compression_threads: 0,
            compression_bytes_max: 64 << 20,
            drops_when_behind: false,
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
    /// With compression: chunks on their way to the file.
    packing: Option<Packing>,
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
        let is_packed = options.compression != Compression::None;
        let packing = if is_packed { Some(Packing::start(&options)?) } else { None };
        let mut writer = Writer {
            storage,
            options,
            end: 0,
            reserved: 0,
            chunk: Chunk::default(),
            packing,
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
            return self.write_large(message, &head, data);
        }
        let records_bytes = self.chunk.records.len() + MESSAGE_HEAD + bytes;
        if records_bytes > self.options.chunk_bytes.min(CHUNK_BYTES_MAX) {
            self.make_room(self.chunk.records.len())?;
            self.end_chunk()?;
        }
        self.chunk.push_message(message, &head, data);
        Ok(())
    }

    /// Writes what is in memory to the file, and waits until it is compressed. Messages before it
    /// survive the end of this process.
    ///
    /// # Errors
    /// If it cannot be written. Then the messages in memory are counted as lost.
    pub fn flush(&mut self) -> Result<(), WriteError> {
        self.end_chunk()?;
        while self.write_packed(true)? {}
        Ok(())
    }

    /// Like [`flush`](Writer::flush), but waits for no thread: what is compressed is written, and
    /// what was in no chunk yet is given to the threads, if they have room.
    ///
    /// # Errors
    /// If it cannot be written. Then the messages in memory are counted as lost.
    pub fn advance(&mut self) -> Result<(), WriteError> {
        while self.write_packed(false)? {}
        let bytes = self.chunk.records.len();
        if self.packing.as_ref().is_none_or(|packing| packing.has_room(bytes)) {
            self.end_chunk()?;
        }
        Ok(())
    }

    /// Writes the chunk, or gives it to the threads.
    fn end_chunk(&mut self) -> Result<(), WriteError> {
        if self.chunk.is_empty() {
            return Ok(());
        }
        if let Some(packing) = &mut self.packing {
            let next = packing.chunk();
            packing.push(std::mem::replace(&mut self.chunk, next));
            return Ok(());
        }
        let mut chunk = std::mem::take(&mut self.chunk);
        let written = self.write_chunk(&mut chunk, None);
        chunk.clear();
        self.chunk = chunk;
        written
    }

    /// Makes sure that the threads may have so many bytes more.
    fn make_room(&mut self, bytes: usize) -> Result<(), WriteError> {
        while self.write_packed(false)? {}
        while self.packing.as_ref().is_some_and(|packing| !packing.has_room(bytes)) {
            if self.options.drops_when_behind {
                return Err(WriteError::Behind);
            }
            self.write_packed(true)?;
        }
        Ok(())
    }

    /// Writes a chunk that was compressed. Returns whether there was one.
    fn write_packed(&mut self, waits: bool) -> Result<bool, WriteError> {
        let Some(next) = self.packing.as_mut().and_then(|packing| packing.next(waits)) else {
            return Ok(false);
        };
        let Packed { mut chunk, records, crc } = match next {
            Ok(packed) => packed,
            Err(counts) => {
                self.count_lost(counts);
                self.end();
                let error = std::io::Error::other("a thread that compresses failed");
                return Err(WriteError::Io(error));
            }
        };
        self.write_chunk(&mut chunk, Some((records.as_deref(), crc)))?;
        if let Some(packing) = &mut self.packing {
            packing.recycle(chunk);
        }
        Ok(true)
    }

    /// Writes a chunk: as it is, or as a thread returned it, with its checksum. If that fails, its
    /// messages are lost.
    fn write_chunk(
        &mut self,
        chunk: &mut Chunk,
        packed: Option<(Option<&[u8]>, u32)>,
    ) -> Result<(), WriteError> {
        let definitions = chunk.schemas.len() + chunk.channels.len();
        let written = if chunk.index.messages() == 0 {
            // A chunk without messages helps nobody: the definitions stand for themselves.
            self.append(&mut [IoSlice::new(&chunk.records)], definitions)
        } else {
            let crc = match packed {
                Some((_, crc)) => crc,
                None => self.checksum(&[&chunk.records]),
            };
            let packed = packed.and_then(|(records, _)| records);
            let body = Body {
                parts: &[packed.unwrap_or(&chunk.records)],
                compression: if packed.is_some() { self.options.compression.name() } else { "" },
                uncompressed_bytes: chunk.records.len() as u64,
                crc,
            };
            self.write_framed(&mut chunk.index, &body, definitions)
        };
        if written.is_err() {
            self.count_lost(chunk.index.counts());
            return written;
        }
        self.summary.schemas.append(&mut chunk.schemas);
        self.summary.channels.append(&mut chunk.channels);
        self.summary.statistics.schemas += chunk.schemas_count;
        self.summary.statistics.channels += u32::from(chunk.channels_count);
        Ok(())
    }

    /// Writes a chunk of one message.
    fn write_large(
        &mut self,
        message: &MessageHead,
        head: &[u8; MESSAGE_HEAD],
        data: &[&[u8]],
    ) -> Result<(), WriteError> {
        let bytes = head.len() + data.iter().map(|part| part.len()).sum::<usize>();
        self.make_room(self.chunk.records.len() + bytes)?;
        self.end_chunk()?;
        if let Some(packing) = &mut self.packing {
            let mut chunk = Chunk::default();
            chunk.records.reserve_exact(bytes);
            chunk.push_message(message, head, data);
            packing.push(chunk);
            return Ok(());
        }
        let mut index = std::mem::take(&mut self.large);
        index.push(message, 0);
        let mut parts: Vec<&[u8]> = Vec::with_capacity(data.len() + 1);
        parts.push(head);
        parts.extend_from_slice(data);
        let body = Body {
            parts: &parts,
            compression: "",
            uncompressed_bytes: bytes as u64,
            crc: self.checksum(&parts),
        };
        let written = self.write_framed(&mut index, &body, 0);
        index.clear();
        self.large = index;
        written
    }

    /// Of a chunk's records, if it is wanted.
    fn checksum(&self, records: &[&[u8]]) -> u32 {
        if self.options.has_checksums { checksum(records) } else { 0 }
    }

    /// Writes a chunk of these records, of which so many bytes are definitions.
    fn write_framed(
        &mut self,
        index: &mut Index,
        body: &Body<'_>,
        definitions: usize,
    ) -> Result<(), WriteError> {
        let (mut head, mut tail) = (std::mem::take(&mut self.head), std::mem::take(&mut self.tail));
        head.clear();
        tail.clear();
        let place = index.frame(self.end, body, &mut head, &mut tail);
        let before = self.summary.chunk_indexes.len();
        push_chunk_index(&mut self.summary.chunk_indexes, &place);
        let around = [&head[..]].into_iter().chain(body.parts.iter().copied()).chain([&tail[..]]);
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
        self.chunk.records.len() + self.packing.as_ref().map_or(0, Packing::bytes)
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
        let appended = self.reserve(needed).and_then(|()| self.append_reserved(parts));
        if appended.is_err() {
            self.end();
        }
        appended
    }

    /// After a write failed: what is in memory is lost.
    fn end(&mut self) {
        if self.state != State::Open {
            return;
        }
        self.state = State::Ended;
        let mut counts: Vec<_> = self.chunk.index.counts().collect();
        self.chunk.clear();
        counts.extend(self.packing.iter_mut().flat_map(Packing::abandon));
        self.count_lost(counts);
    }

    fn reserve(&mut self, needed: u64) -> Result<(), WriteError> {
        if needed <= self.reserved {
            return Ok(());
        }
        let more = needed.next_multiple_of(self.options.reserve_bytes.max(1));
        // What is reserved already is not gone through again.
        let from = self.reserved.max(self.end);
        let is_there = self.storage.reserve(from, more);
        let (until, is_there) = match is_there {
            Ok(()) => (more, Ok(())),
            // What a failed call reserved is freed first: it may be what is missing.
            Err(_) => (needed, self.storage.reserve(from, needed)),
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

    fn count_lost(&mut self, counts: impl IntoIterator<Item = (u16, u64)>) {
        for (channel, messages) in counts {
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
