//! Reads all messages of a file in the order of the file, whatever state it is in.
//!
//! A file that was cut ends where it was cut: the complete messages before it are read, also those
//! of the last chunk if it is not compressed. Behind a damaged place the next chunk is looked for.
//! What could not be read is a [`Loss`].

use std::collections::BTreeMap;
use std::fmt;
use std::io;

use crate::block::{Compressions, add_chunk};
use crate::chunk::span;
use crate::compression::unpack;
use crate::ending::{Definitions, Ending, Header, OpenError, OwnedSchema, Summary};
use crate::format::{self, Attachment, CHUNK_FIELDS, Channel, MAGIC, MessageHead, Metadata, op};
use crate::format::{RECORD_HEAD, Statistics, record_head};
use crate::limits::{DEFINITION_BYTES_MAX, LOSSES_MAX, RECORD_BYTES_MAX};
use crate::source::{Source, WINDOW_BYTES, Window};

/// What is next in a file.
#[derive(Debug)]
#[non_exhaustive]
pub enum Item<'a> {
    /// A message.
    Message {
        /// All but its data.
        head: MessageHead,
        /// Its channel.
        channel: &'a Channel,
        /// The channel's schema, if it has one.
        schema: Option<&'a OwnedSchema>,
        /// The data, as they are in the file.
        data: &'a [u8],
    },
    /// A file within the file.
    Attachment(Attachment<'a>),
    /// Metadata of the file.
    Metadata {
        /// Its name.
        name: String,
        /// Its values.
        values: Metadata,
    },
}

/// A part of a file that cannot be read.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Loss {
    /// Where it begins; in a compressed chunk, where that begins.
    pub at: u64,
    /// How many bytes it has. Of a file that was cut: how many are missing, as far as that is known.
    pub bytes: u64,
    /// How many messages were in it, if that is known.
    pub messages: Option<u64>,
    /// What is wrong.
    pub cause: Cause,
}

/// Why a part of a file cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Cause {
    /// It was cut, or what wrote it was killed.
    #[error("the file ends here, within a record")]
    Ends,
    /// The bytes are no records.
    #[error("these are no records of MCAP")]
    NoRecord,
    /// The fields of a record are broken.
    #[error("the fields of a record are broken")]
    BadFields,
    /// A chunk or an attachment was changed after it was written.
    #[error("the checksum of a chunk or an attachment is wrong")]
    Checksum,
    /// A compressed chunk cannot be unpacked.
    #[error("a chunk cannot be unpacked: {0}")]
    Packed(String),
    /// The definition of a message's channel was lost.
    #[error("a message of channel {0}, which is not defined")]
    UnknownChannel(u16),
    /// A record of more bytes than a reader takes into memory.
    #[error("a record of {0} B")]
    TooLarge(u64),
}

/// Such as `byte 4096: the file ends here, within a record (120 B)`.
impl fmt::Display for Loss {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "byte {}: {} ({} B", self.at, self.cause, self.bytes)?;
        match self.messages {
            Some(1) => to.write_str(", 1 message)"),
            Some(messages) => write!(to, ", {messages} messages)"),
            None => to.write_str(")"),
        }
    }
}

/// What was found in a file. It is complete when the scanner has no more items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Report {
    /// What was read. `schemas` and `channels` are those that are defined.
    pub read: Statistics,
    /// What the summary says there is, if there is one.
    pub expected: Option<Statistics>,
    /// Whether the file was completed.
    pub is_complete: bool,
    /// The first losses, in the order of the file.
    pub losses: Vec<Loss>,
    /// Losses that are not listed.
    pub losses_more: u64,
}

/// How many messages were lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LostMessages {
    /// As many are known.
    pub known: u64,
    /// Whether that is all.
    pub is_exact: bool,
}

impl Report {
    /// How many messages of the file could not be read. With a summary it is exact.
    pub fn lost(&self) -> LostMessages {
        if let Some(expected) = &self.expected {
            let known = expected.messages.saturating_sub(self.read.messages);
            return LostMessages { known, is_exact: true };
        }
        let known = self.losses.iter().filter_map(|loss| loss.messages).sum();
        let is_exact = self.losses_more == 0 && self.losses.iter().all(|it| it.messages.is_some());
        LostMessages { known, is_exact: is_exact && self.is_complete }
    }

    /// How many messages of each channel could not be read, by the summary.
    pub fn lost_by_channel(&self) -> BTreeMap<u16, u64> {
        let expected = self.expected.iter().flat_map(|it| &it.by_channel);
        let lost = expected.map(|(id, messages)| {
            let read = self.read.by_channel.get(id).copied().unwrap_or(0);
            (*id, messages.saturating_sub(read))
        });
        lost.filter(|(_, messages)| *messages > 0).collect()
    }

    /// Whether all that was written can be read.
    pub fn is_lossless(&self) -> bool {
        self.losses.is_empty() && self.losses_more == 0 && self.lost().known == 0
    }

    fn count(&mut self, head: &MessageHead) {
        let before = (self.read.messages > 0).then_some(self.read.times);
        self.read.times = span(before, head.log_ns).expect("it has one");
        self.read.messages += 1;
        *self.read.by_channel.entry(head.channel).or_default() += 1;
    }
}

/// Reads a file from its begin to its end.
///
/// ```
/// # use myelin_bag::{Channel, MessageHead, Options, Schema, Writer};
/// use myelin_bag::{Item, Scanner};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("run.mcap");
/// # let mut writer = Writer::create(&path, Options::default())?;
/// # let topic = "/speed".to_owned();
/// # let channel = writer.add_channel(&Channel { topic, ..Channel::default() })?;
/// # writer.write(&MessageHead { channel, ..MessageHead::default() }, &[b"abcd"])?;
/// # drop(writer);
/// let mut scanner = Scanner::new(std::fs::File::open(path)?)?;
/// while let Some(item) = scanner.next()? {
///     if let Item::Message { channel, data, .. } = item {
///         assert_eq!((channel.topic.as_str(), data), ("/speed", &b"abcd"[..]));
///     }
/// }
/// assert!(scanner.report().is_lossless());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct Scanner<S> {
    window: Window<S>,
    /// Where the next record that is in no chunk begins.
    at: u64,
    /// Where the data end: the summary is behind, or nothing.
    data_end: u64,
    chunk: Option<OpenChunk>,
    /// The records of a compressed chunk.
    unpacked: Vec<u8>,
    tally: Tally,
    header: Header,
    definitions: Definitions,
    report: Report,
    place: ItemPlace,
    compressions: Compressions,
}

/// A chunk whose records are being read.
struct OpenChunk {
    /// Its records are in the file, or unpacked in memory.
    is_in_file: bool,
    /// Where the next record begins, and where the last one ends.
    at: u64,
    end: u64,
    /// Of the chunk's record, in the file.
    start: u64,
    /// How many bytes are missing, if the file ends within it.
    missing: Option<u64>,
}

/// Where an item is in the file.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ItemPlace {
    /// Its record begins and ends there; in a packed chunk, the chunk's record.
    pub at: u64,
    pub end: u64,
    /// Where the chunk begins that it is in, if it is in one.
    pub chunk: Option<u64>,
    pub is_packed: bool,
}

/// Messages of the last chunk, by its records and by its indexes.
#[derive(Default)]
struct Tally {
    read: u64,
    indexed: u64,
    /// Of the chunk.
    loss: Option<usize>,
}

/// A record that was checked.
struct Found {
    opcode: u8,
    is_in_file: bool,
    /// Its fields.
    at: u64,
    bytes: u64,
}

impl<S: Source> Scanner<S> {
    /// Begins to read a file.
    ///
    /// # Errors
    /// If it is no MCAP file.
    pub fn new(source: S) -> Result<Self, OpenError> {
        let mut window = Window::new(source)?;
        let header = Header::read(&mut window)?;
        let ending = Ending::read(&mut window)?;
        Ok(Scanner::with_ending(window, header, ending))
    }

    pub(crate) fn with_ending(window: Window<S>, header: Header, ending: Ending) -> Self {
        let mut report = Report::default();
        let (mut definitions, mut data_end) = (Definitions::default(), window.source_bytes());
        if let Ending::Complete { data_end: end, summary } = ending {
            let Summary { definitions: known, statistics, .. } = *summary.unwrap_or_default();
            (report.is_complete, report.expected) = (true, statistics);
            (definitions, data_end) = (known, end);
        }
        Scanner {
            window,
            at: MAGIC.len() as u64,
            data_end,
            chunk: None,
            unpacked: Vec::new(),
            tally: Tally::default(),
            header,
            definitions,
            report,
            place: ItemPlace { at: 0, end: 0, chunk: None, is_packed: false },
            compressions: Compressions::new(),
        }
    }

    /// The next message or metadata; `None` at the end.
    ///
    /// # Errors
    /// Those of the file system.
    #[expect(clippy::should_implement_trait, reason = "its items borrow from it")]
    pub fn next(&mut self) -> io::Result<Option<Item<'_>>> {
        let found = loop {
            if self.chunk.is_some() {
                if let Some(found) = self.next_in_chunk()? {
                    break found;
                }
            } else if self.at < self.data_end {
                if let Some(found) = self.next_in_file()? {
                    break found;
                }
            } else {
                self.end_tally();
                self.report.read.schemas = self.definitions.schemas.len() as u16;
                self.report.read.channels = self.definitions.channels.len() as u32;
                return Ok(None);
            }
        };
        self.place = self.place_of(&found);
        let fields = fields_of(&mut self.window, &self.unpacked, &found)?;
        if found.opcode == op::ATTACHMENT {
            return Ok(format::attachment(fields).map(|(it, _)| Item::Attachment(it)));
        }
        if found.opcode == op::METADATA {
            return Ok(format::metadata(fields).map(|(name, values)| {
                let name = name.to_owned();
                Item::Metadata { name, values }
            }));
        }
        let Definitions { schemas, channels } = &self.definitions;
        Ok(format::message(fields).map(|(head, data)| {
            let channel = &channels[&head.channel];
            Item::Message { head, channel, schema: schemas.get(&channel.schema), data }
        }))
    }

    /// What was read and lost so far.
    pub fn report(&self) -> &Report {
        &self.report
    }

    /// The schemas and channels that are known so far; with a summary, all of them.
    pub fn definitions(&self) -> &Definitions {
        &self.definitions
    }

    /// What the file's header says of its contents, such as `ros2`.
    pub fn profile(&self) -> &str {
        &self.header.profile
    }

    /// Where the last item is.
    pub(crate) fn place(&self) -> ItemPlace {
        self.place
    }

    /// The chunks so far, by their compression.
    pub(crate) fn compressions(&self) -> &Compressions {
        &self.compressions
    }

    fn place_of(&self, found: &Found) -> ItemPlace {
        let chunk = self.chunk.as_ref().map(|chunk| chunk.start);
        let is_packed = !found.is_in_file;
        let (at, end) = match chunk.filter(|_| is_packed) {
            Some(start) => (start, self.at),
            None => (found.at - RECORD_HEAD as u64, found.at + found.bytes),
        };
        ItemPlace { at, end, chunk, is_packed }
    }

    /// What is behind the end of the items, to look at it again.
    pub(crate) fn into_window(self) -> Window<S> {
        self.window
    }

    /// A record that is in no chunk.
    fn next_in_file(&mut self) -> io::Result<Option<Found>> {
        let at = self.at;
        let Some((opcode, bytes)) = self.record_at(at, self.data_end)? else {
            return self.find_chunk(at, Cause::Ends);
        };
        if opcode == op::CHUNK {
            self.end_tally();
            return self.open_chunk(at, bytes);
        }
        let fields_at = at + RECORD_HEAD as u64;
        let end = fields_at.checked_add(bytes).filter(|end| *end <= self.data_end);
        let Some(end) = end else {
            let may_be_cut = (op::HEADER..=op::DATA_END).contains(&opcode);
            return self.find_chunk(at, if may_be_cut { Cause::Ends } else { Cause::NoRecord });
        };
        if opcode == 0 {
            return self.find_chunk(at, Cause::NoRecord);
        }
        self.at = end;
        let found = Found { opcode, is_in_file: true, at: fields_at, bytes };
        match opcode {
            op::MESSAGE | op::SCHEMA | op::CHANNEL | op::ATTACHMENT | op::METADATA => {
                self.accept(found)
            }
            op::MESSAGE_INDEX => {
                let index = self.fields(&found)?.and_then(format::message_index);
                let entries = index.map_or(0, |(_, entries)| entries.len());
                self.tally.indexed += entries as u64;
                Ok(None)
            }
            op::DATA_END => {
                self.at = self.data_end; // What is behind it repeats what was before.
                Ok(None)
            }
            _ => Ok(None),
        }
    }

    /// Opcode and length of the record at this place; `None` if less than its head is there.
    fn record_at(&mut self, at: u64, end: u64) -> io::Result<Option<(u8, u64)>> {
        let bytes = RECORD_HEAD as u64;
        let is_there = at.checked_add(bytes).is_some_and(|head_end| head_end <= end);
        let head = if is_there { self.window.get(at, bytes)? } else { None };
        Ok(head.and_then(|head| head.first_chunk()).map(record_head))
    }

    fn open_chunk(&mut self, at: u64, bytes: u64) -> io::Result<Option<Found>> {
        let Some(place) = ChunkPlace::read(&mut self.window, at, self.data_end)? else {
            let is_cut = at + CHUNK_HEAD_MAX > self.data_end;
            return self.find_chunk(at, if is_cut { Cause::Ends } else { Cause::NoRecord });
        };
        let ChunkPlace { records_at, records_bytes, .. } = place;
        let end = records_at.saturating_add(records_bytes);
        let missing = end.checked_sub(self.data_end).filter(|missing| *missing > 0);
        let missing = missing.map(|missing| if bytes == UNFINISHED { 0 } else { missing });
        self.at = end.min(self.data_end);
        self.tally = Tally::default();
        self.report.read.chunks += 1;
        add_chunk(&mut self.compressions, &place.compression);
        let opened = match (place.compression.as_str(), missing) {
            ("", None) => self.check_sum(&place),
            ("", Some(_)) => Ok(()),
            (_, None) => self.unpack(&place)?,
            (_, Some(_)) => Err(Cause::Ends),
        };
        if let Err(cause) = opened {
            self.tally.loss = self.lose(at, end - at, None, cause);
            return Ok(None);
        }
        let is_in_file = place.compression.is_empty();
        let (at, end) =
            if is_in_file { (records_at, self.at) } else { (0, self.unpacked.len() as u64) };
        self.chunk = Some(OpenChunk { is_in_file, at, end, start: place.start, missing });
        Ok(None)
    }

    /// Compares the checksum of records in the file, before any of them is used.
    fn check_sum(&mut self, place: &ChunkPlace) -> Result<(), Cause> {
        if place.crc == 0 {
            return Ok(());
        }
        let mut hasher = crc32fast::Hasher::new();
        let (mut at, mut left) = (place.records_at, place.records_bytes);
        while left > 0 {
            let part = self.window.up_to(at, left.min(WINDOW_BYTES)).unwrap_or_default();
            if part.is_empty() {
                break;
            }
            hasher.update(part);
            (at, left) = (at + part.len() as u64, left - part.len() as u64);
        }
        if hasher.finalize() == place.crc { Ok(()) } else { Err(Cause::Checksum) }
    }

    fn unpack(&mut self, place: &ChunkPlace) -> io::Result<Result<(), Cause>> {
        if place.records_bytes > RECORD_BYTES_MAX {
            return Ok(Err(Cause::TooLarge(place.records_bytes)));
        }
        let Some(packed) = self.window.get(place.records_at, place.records_bytes)? else {
            return Ok(Err(Cause::Ends));
        };
        let bytes = place.uncompressed_bytes;
        if let Err(why) = unpack(&place.compression, packed, bytes, &mut self.unpacked) {
            return Ok(Err(Cause::Packed(why)));
        }
        let is_right = place.crc == 0 || crc32fast::hash(&self.unpacked) == place.crc;
        Ok(if is_right { Ok(()) } else { Err(Cause::Checksum) })
    }

    /// A record in the open chunk. Closes the chunk where it ends, or where it is broken.
    fn next_in_chunk(&mut self) -> io::Result<Option<Found>> {
        let chunk = self.chunk.as_ref().expect("asked before");
        let OpenChunk { is_in_file, at, end, start, missing } = *chunk;
        let head = if is_in_file {
            self.record_at(at, end)?
        } else {
            self.unpacked[at as usize..].first_chunk().map(record_head)
        };
        let fields_at = at + RECORD_HEAD as u64;
        let found = head.and_then(|(opcode, bytes)| {
            let is_allowed = matches!(opcode, op::SCHEMA | op::CHANNEL | op::MESSAGE | 0x10..);
            let next = fields_at.checked_add(bytes).filter(|next| *next <= end);
            next.filter(|_| is_allowed).map(|next| (opcode, bytes, next))
        });
        let Some((opcode, bytes, next)) = found else {
            self.chunk = None;
            if at < end || missing.is_some() {
                let cause = if missing.is_some() { Cause::Ends } else { Cause::NoRecord };
                let from = if is_in_file { at } else { start };
                let bytes = (end - at).saturating_add(missing.unwrap_or(0));
                self.tally.loss = self.lose(from, bytes, None, cause);
            }
            return Ok(None);
        };
        self.chunk.as_mut().expect("asked before").at = next;
        self.accept(Found { opcode, is_in_file, at: fields_at, bytes })
    }

    /// Takes a record in, if it is whole. Returns it if it is an item.
    fn accept(&mut self, found: Found) -> io::Result<Option<Found>> {
        let Found { opcode, bytes, .. } = found;
        let start = self.chunk.as_ref().filter(|it| !it.is_in_file).map(|it| it.start);
        let at = start.unwrap_or(found.at - RECORD_HEAD as u64);
        let is_message = opcode == op::MESSAGE;
        let may_be_large = is_message || opcode == op::ATTACHMENT;
        let messages = is_message.then_some(1);
        if bytes > (if may_be_large { RECORD_BYTES_MAX } else { DEFINITION_BYTES_MAX }) {
            self.lose(at, bytes, messages, Cause::TooLarge(bytes));
            return Ok(None);
        }
        let fields = fields_of(&mut self.window, &self.unpacked, &found)?;
        let known = match opcode {
            op::SCHEMA | op::CHANNEL => self.definitions.add(opcode, fields).map(|()| None),
            op::METADATA => format::metadata(fields).map(|_| None),
            op::ATTACHMENT => match format::attachment(fields) {
                Some((_, false)) => {
                    self.lose(at, bytes + RECORD_HEAD as u64, None, Cause::Checksum);
                    return Ok(None);
                }
                attachment => attachment.map(|_| None),
            },
            op::MESSAGE => format::message(fields).map(|(head, _)| Some(head)),
            _ => Some(None),
        };
        let cause = match known {
            None => Cause::BadFields,
            Some(Some(head)) if !self.definitions.channels.contains_key(&head.channel) => {
                Cause::UnknownChannel(head.channel)
            }
            Some(Some(head)) => {
                self.report.count(&head);
                self.tally.read += 1;
                return Ok(Some(found));
            }
            Some(None) if matches!(opcode, op::METADATA | op::ATTACHMENT) => {
                let Statistics { metadata, attachments, .. } = &mut self.report.read;
                *(if opcode == op::METADATA { metadata } else { attachments }) += 1;
                return Ok(Some(found));
            }
            Some(None) => return Ok(None),
        };
        self.tally.read += u64::from(is_message);
        self.lose(at, bytes + RECORD_HEAD as u64, messages, cause);
        Ok(None)
    }

    fn fields(&mut self, found: &Found) -> io::Result<Option<&[u8]>> {
        if found.bytes > DEFINITION_BYTES_MAX {
            return Ok(None);
        }
        self.window.get(found.at, found.bytes)
    }

    /// Goes to the next chunk behind a broken place.
    fn find_chunk(&mut self, at: u64, cause: Cause) -> io::Result<Option<Found>> {
        let mut from = at + 1;
        let next = loop {
            let part = self.window.up_to(from, (self.data_end - from).min(SEARCHED_BYTES))?;
            if part.is_empty() {
                break None;
            }
            let part_bytes = part.len() as u64;
            let Some(candidate) = part.iter().position(|byte| *byte == op::CHUNK) else {
                from += part_bytes;
                continue;
            };
            let candidate = from + candidate as u64;
            let place = ChunkPlace::read(&mut self.window, candidate, self.data_end)?;
            if place.is_some_and(|place| place.records_bytes != UNFINISHED) {
                break Some(candidate);
            }
            from = candidate + 1;
        };
        self.at = next.unwrap_or(self.data_end);
        let cause = if next.is_some() { Cause::NoRecord } else { cause };
        self.lose(at, self.at - at, None, cause);
        Ok(None)
    }

    /// Notes a loss. Returns its number, if it is listed.
    fn lose(&mut self, at: u64, bytes: u64, messages: Option<u64>, cause: Cause) -> Option<usize> {
        let number = self.report.losses.len();
        if number >= LOSSES_MAX {
            self.report.losses_more += 1;
            return None;
        }
        self.report.losses.push(Loss { at, bytes, messages, cause });
        Some(number)
    }

    /// At the end of a chunk and its indexes: how many messages of it were lost.
    fn end_tally(&mut self) {
        let Tally { read, indexed, loss } = std::mem::take(&mut self.tally);
        if let Some(loss) = loss.filter(|_| indexed > 0) {
            self.report.losses[loss].messages = Some(indexed.saturating_sub(read));
        }
    }
}

/// The fields of a record that was found; empty if the file became shorter since.
fn fields_of<'a>(
    window: &'a mut Window<impl Source>,
    unpacked: &'a [u8],
    found: &Found,
) -> io::Result<&'a [u8]> {
    if found.is_in_file {
        return Ok(window.get(found.at, found.bytes)?.unwrap_or_default());
    }
    Ok(&unpacked[found.at as usize..][..found.bytes as usize])
}

/// Where the records of a chunk are.
struct ChunkPlace {
    start: u64,
    records_at: u64,
    records_bytes: u64,
    uncompressed_bytes: u64,
    crc: u32,
    compression: String,
}

impl ChunkPlace {
    /// `None` if there is no chunk here: its two lengths do not agree.
    fn read(window: &mut Window<impl Source>, start: u64, end: u64) -> io::Result<Option<Self>> {
        let bytes = end.saturating_sub(start).min(CHUNK_HEAD_MAX);
        let Some((head, fields)) = window.up_to(start, bytes)?.split_first_chunk() else {
            return Ok(None);
        };
        let (opcode, length) = record_head(head);
        let Some((chunk, _)) = format::chunk(fields).filter(|_| opcode == op::CHUNK) else {
            return Ok(None);
        };
        let fields_bytes = (CHUNK_FIELDS + chunk.compression.len()) as u64;
        let records_at = start + RECORD_HEAD as u64 + fields_bytes;
        let is_unfinished = length == UNFINISHED && chunk.compression.is_empty();
        let agrees = chunk.records_bytes.checked_add(fields_bytes) == Some(length);
        Ok((agrees || is_unfinished).then(|| ChunkPlace {
            start,
            records_at,
            records_bytes: if is_unfinished { UNFINISHED } else { chunk.records_bytes },
            uncompressed_bytes: chunk.uncompressed_bytes,
            crc: chunk.crc,
            compression: chunk.compression.to_owned(),
        }))
    }
}

/// Of a chunk: in front of its records, with the longest name of a compression that is looked at.
const CHUNK_HEAD_MAX: u64 = (RECORD_HEAD + CHUNK_FIELDS + 32) as u64;
/// The length of a chunk that the `mcap` crate did not complete.
const UNFINISHED: u64 = u64::MAX;
/// Of a broken place, at once.
const SEARCHED_BYTES: u64 = 1 << 16;
