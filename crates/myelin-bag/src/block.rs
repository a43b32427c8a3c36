//! The parts of a file that have messages, each small enough to be in memory, with the times and
//! channels in it. They come from the summary's indexes, or from reading all of the file.

use std::collections::{BTreeMap, BTreeSet};
use std::io;

use crate::chunk::span;
use crate::compression::unpack;
use crate::ending::Summary;
use crate::format::{self, ChunkIndex, MESSAGE_HEAD, MessageHead, RECORD_HEAD, op, record_head};
use crate::limits::RECORD_BYTES_MAX;
use crate::scanner::{Cause, Item, Loss, Scanner};
use crate::source::{Source, read_full};

/// How many chunks there are by the name of their compression, which is empty for none.
pub(crate) type Compressions = BTreeMap<String, u64>;

/// A part of a file with messages.
#[derive(Clone, Debug)]
pub(crate) struct Block {
    /// Where it begins, and how many bytes it has in the file.
    pub at: u64,
    pub bytes: u64,
    /// Whether it is the record of a chunk; otherwise records one after the other.
    pub is_chunk: bool,
    /// The least and the largest log time.
    pub log: (u64, u64),
    /// The channels in it; empty if that is not known.
    pub channels: Box<[u16]>,
    /// Of a chunk by the summary: its records, unpacked, and the message indexes behind it.
    pub unpacked_bytes: u64,
    pub indexes_bytes: u64,
}

/// The records of a block: a part of these bytes.
pub(crate) struct Records {
    pub bytes: Vec<u8>,
    pub from: usize,
}

/// Blocks in the order of the file, and the least and the largest time of publication in each.
#[derive(Default)]
pub(crate) struct Scanned {
    pub blocks: Vec<Block>,
    pub publish: Vec<(u64, u64)>,
    /// Where the records of attachments and metadata begin, and how many bytes they have.
    pub extras: Vec<(u64, u64)>,
    /// Bytes of the messages of each channel.
    pub bytes_by_channel: BTreeMap<u16, u64>,
}

/// The blocks of a file by its summary.
pub(crate) struct Indexed {
    pub blocks: Vec<Block>,
    pub compressions: Compressions,
}

impl Block {
    /// Reads and unpacks its records.
    pub(crate) fn load(&self, source: &impl Source) -> io::Result<Result<Records, Cause>> {
        if self.bytes > RECORD_BYTES_MAX + CHUNK_HEAD_MAX {
            return Ok(Err(Cause::TooLarge(self.bytes)));
        }
        let is_there = self.at.checked_add(self.bytes).is_some_and(|end| {
            // Before memory is taken for it.
            source.bytes().is_ok_and(|bytes| end <= bytes)
        });
        if !is_there {
            return Ok(Err(Cause::Ends));
        }
        let mut bytes = vec![0; self.bytes as usize];
        if read_full(source, &mut bytes, self.at)? < bytes.len() {
            return Ok(Err(Cause::Ends));
        }
        if !self.is_chunk {
            return Ok(Ok(Records { bytes, from: 0 }));
        }
        Ok(open_chunk(bytes))
    }

    /// The head of a message that fills all of a chunk that is not packed, by the chunk's begin.
    fn only_message(&self, source: &impl Source) -> io::Result<Option<MessageHead>> {
        let mut begin = [0; ONLY_BYTES];
        let bytes = read_full(source, &mut begin, self.at)?;
        let message = begin[..bytes].get(RECORD_HEAD..).and_then(|fields| {
            let (chunk, records) = format::chunk(fields)?;
            let (head, fields) = records.split_first_chunk()?;
            let of_chunk = chunk.records_bytes.checked_sub(RECORD_HEAD as u64)?;
            let is_alone = record_head(head) == (op::MESSAGE, of_chunk);
            format::message(fields).filter(|_| is_alone && chunk.compression.is_empty())
        });
        Ok(message.map(|(head, _)| head))
    }

    /// The least and the largest time of publication of its messages.
    pub(crate) fn publish_times(&self, source: &impl Source) -> io::Result<Option<(u64, u64)>> {
        if self.is_chunk
            && self.bytes > LARGE_BYTES
            && let Some(head) = self.only_message(source)?
        {
            return Ok(Some((head.publish_ns, head.publish_ns)));
        }
        let mut times = None;
        if let Ok(records) = self.load(source)? {
            let _ = records.each_message(|head, _| times = span(times, head.publish_ns));
        }
        Ok(times)
    }
}

impl Records {
    /// Calls for each message with its head and the place of its record.
    pub(crate) fn each_message(
        &self,
        mut each: impl FnMut(MessageHead, usize),
    ) -> Result<(), Cause> {
        let mut at = self.from;
        while at < self.bytes.len() {
            let rest = &self.bytes[at..];
            let (head, rest) = rest.split_first_chunk().ok_or(Cause::NoRecord)?;
            let (opcode, bytes) = record_head(head);
            let bytes = usize::try_from(bytes).ok().filter(|bytes| *bytes <= rest.len());
            let bytes = bytes.ok_or(Cause::NoRecord)?;
            if opcode == op::MESSAGE {
                let (head, _) = format::message(&rest[..bytes]).ok_or(Cause::BadFields)?;
                each(head, at);
            }
            at += RECORD_HEAD + bytes;
        }
        Ok(())
    }
}

/// The records of a chunk, by its record.
fn open_chunk(bytes: Vec<u8>) -> Result<Records, Cause> {
    let (head, fields) = bytes.split_first_chunk().ok_or(Cause::NoRecord)?;
    let (opcode, length) = record_head(head);
    if opcode != op::CHUNK || length != fields.len() as u64 {
        return Err(Cause::NoRecord);
    }
    let (chunk, records) = format::chunk(fields).ok_or(Cause::BadFields)?;
    if chunk.records_bytes != records.len() as u64 {
        return Err(Cause::NoRecord);
    }
    let crc = chunk.crc;
    let from = bytes.len() - records.len();
    let opened = if chunk.compression.is_empty() {
        Records { from, bytes }
    } else {
        let mut unpacked = Vec::new();
        unpack(chunk.compression, records, chunk.uncompressed_bytes, &mut unpacked)
            .map_err(Cause::Packed)?;
        Records { from: 0, bytes: unpacked }
    };
    if crc != 0 && crc32fast::hash(&opened.bytes[opened.from..]) != crc {
        return Err(Cause::Checksum);
    }
    Ok(opened)
}

/// The blocks of a file by its summary; `None` if that does not tell where all messages are.
pub(crate) fn indexed(summary: &Summary) -> Option<Indexed> {
    let statistics = summary.statistics.as_ref()?;
    if statistics.chunks as usize != summary.chunk_indexes.len()
        || (statistics.messages > 0 && statistics.chunks == 0)
    {
        return None;
    }
    let mut blocks = Vec::with_capacity(summary.chunk_indexes.len());
    let mut compressions = Compressions::new();
    for fields in &summary.chunk_indexes {
        let index = format::chunk_index(fields)?;
        let ChunkIndex { times, start, bytes, compression, .. } = index;
        if compression.is_empty() && bytes > BLOCK_BYTES_MAX {
            return None; // It is read in parts.
        }
        add_chunk(&mut compressions, compression);
        blocks.push(Block {
            at: start,
            bytes,
            is_chunk: true,
            log: times,
            channels: index.message_indexes.into_keys().collect(),
            unpacked_bytes: index.uncompressed_bytes,
            indexes_bytes: index.message_indexes_bytes,
        });
    }
    blocks.sort_by_key(|block| block.at);
    Some(Indexed { blocks, compressions })
}

/// Counts one more chunk. Of the names that a file makes up only some are kept.
pub(crate) fn add_chunk(to: &mut Compressions, compression: &str) {
    let is_known = to.len() < COMPRESSIONS_MAX || to.contains_key(compression);
    *to.entry(if is_known { compression } else { "other" }.to_owned()).or_default() += 1;
}

/// Reads all of a file.
pub(crate) fn scanned<S: Source>(scanner: &mut Scanner<S>) -> io::Result<Scanned> {
    let mut open = OpenBlock::default();
    let mut scanned = Scanned::default();
    while let Some(item) = scanner.next()? {
        let head = match item {
            Item::Message { head, data, .. } => {
                let bytes = scanned.bytes_by_channel.entry(head.channel).or_default();
                *bytes += (MESSAGE_HEAD + data.len()) as u64;
                Some(head)
            }
            Item::Attachment(_) | Item::Metadata { .. } => None,
        };
        let place = scanner.place();
        let Some(head) = head else {
            scanned.extras.push((place.at, place.end - place.at));
            continue;
        };
        let report = scanner.report();
        let losses = report.losses.len() as u64 + report.losses_more;
        let key = (place.chunk, losses * u64::from(!place.is_packed));
        let is_full = place.end - open.at > BLOCK_BYTES && !place.is_packed;
        if open.key != Some(key) || is_full {
            std::mem::take(&mut open).end(&mut scanned);
            open = OpenBlock {
                key: Some(key),
                at: place.at,
                is_chunk: place.is_packed,
                ..OpenBlock::default()
            };
        }
        open.end = place.end;
        open.log = span(open.log, head.log_ns);
        open.publish = span(open.publish, head.publish_ns);
        open.channels.insert(head.channel);
    }
    open.end(&mut scanned);
    Ok(scanned)
}

/// A block to which messages are added.
#[derive(Default)]
struct OpenBlock {
    /// Its chunk, and the number of losses before.
    key: Option<(Option<u64>, u64)>,
    at: u64,
    end: u64,
    is_chunk: bool,
    log: Option<(u64, u64)>,
    publish: Option<(u64, u64)>,
    channels: BTreeSet<u16>,
}

impl OpenBlock {
    fn end(self, to: &mut Scanned) {
        let OpenBlock { at, end, is_chunk, log, publish, channels, .. } = self;
        let (Some(log), Some(publish)) = (log, publish) else { return };
        let channels = channels.into_iter().collect();
        let (unpacked_bytes, indexes_bytes) = (0, 0);
        let bytes = end - at;
        to.blocks.push(Block { at, bytes, is_chunk, log, channels, unpacked_bytes, indexes_bytes });
        to.publish.push(publish);
    }
}

/// What is lost with a block.
pub(crate) fn loss(block: &Block, cause: Cause) -> Loss {
    Loss { at: block.at, bytes: block.bytes, messages: None, cause }
}

/// Messages that are read at once, if they are in no packed chunk; a larger one is alone.
const BLOCK_BYTES: u64 = 4 << 20;
/// A chunk of more bytes is read in parts, except a packed one.
const BLOCK_BYTES_MAX: u64 = 512 << 20;
/// Names of compressions that are kept.
const COMPRESSIONS_MAX: usize = 8;
/// From so many bytes on, a chunk is likely to have one message.
const LARGE_BYTES: u64 = 32 << 10;
/// The begin of a chunk, with the head of its first message.
const ONLY_BYTES: usize = 256;
/// In front of a chunk's records.
const CHUNK_HEAD_MAX: u64 = 1 << 10;
