//! MCAP's records in bytes: <https://mcap.dev/spec>. Nothing here knows about files.
//!
//! | | |
//! |---|---|
//! | file | magic, records, magic |
//! | record | opcode `u8`, length `u64`, so many bytes of fields |
//! | text, bytes, map | length in bytes `u32`, then the content |
//!
//! All numbers are little-endian.

use std::collections::BTreeMap;

use myelin_value::Schema;

use crate::names::LAYOUT;

/// At the begin and at the end of a file.
pub(crate) const MAGIC: [u8; 8] = *b"\x89MCAP0\r\n";
/// In front of the fields of each record: its opcode and its length.
pub(crate) const RECORD_HEAD: usize = 9;
/// Fields of a message, without its data.
pub(crate) const MESSAGE_FIELDS: usize = 22;
/// Fields of a chunk, without its compression's name and its records.
pub(crate) const CHUNK_FIELDS: usize = 40;
/// The record at the end of the data section.
pub(crate) const DATA_END_BYTES: usize = RECORD_HEAD + 4;
/// The last record of a file.
pub(crate) const FOOTER_BYTES: usize = RECORD_HEAD + 20;
/// Behind an attachment's data.
pub(crate) const CHECKSUM_BYTES: usize = 4;
/// In front of a message's data.
pub(crate) const MESSAGE_HEAD: usize = RECORD_HEAD + MESSAGE_FIELDS;

/// Opcodes.
pub(crate) mod op {
    pub(crate) const HEADER: u8 = 0x01;
    pub(crate) const FOOTER: u8 = 0x02;
    pub(crate) const SCHEMA: u8 = 0x03;
    pub(crate) const CHANNEL: u8 = 0x04;
    pub(crate) const MESSAGE: u8 = 0x05;
    pub(crate) const CHUNK: u8 = 0x06;
    pub(crate) const MESSAGE_INDEX: u8 = 0x07;
    pub(crate) const CHUNK_INDEX: u8 = 0x08;
    pub(crate) const ATTACHMENT: u8 = 0x09;
    pub(crate) const ATTACHMENT_INDEX: u8 = 0x0a;
    pub(crate) const STATISTICS: u8 = 0x0b;
    pub(crate) const METADATA: u8 = 0x0c;
    pub(crate) const METADATA_INDEX: u8 = 0x0d;
    pub(crate) const SUMMARY_OFFSET: u8 = 0x0e;
    pub(crate) const DATA_END: u8 = 0x0f;
}

/// Names of a channel or of a metadata record, and their values.
pub type Metadata = BTreeMap<String, String>;

/// A topic in a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Channel {
    /// The id of its schema; 0 is a channel without one, which rosbag2 and PlotJuggler refuse.
    pub schema: u16,
    /// The name of the topic.
    pub topic: String,
    /// How its messages are encoded, such as `cdr`.
    pub encoding: String,
    /// What else is known of it, such as `offered_qos_profiles`.
    pub metadata: Metadata,
}

impl Channel {
    /// The layout of its plain data, if Myelin wrote it as CDR.
    pub fn layout(&self) -> Option<&str> {
        self.metadata.get(LAYOUT).map(String::as_str)
    }
}

/// All of a message but its data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MessageHead {
    /// The id of its channel.
    pub channel: u16,
    /// Its number in the channel, which wraps.
    pub sequence: u32,
    /// When it was recorded, in ns since 1970. Readers sort and seek by it.
    pub log_ns: u64,
    /// When it was published, in ns since 1970.
    pub publish_ns: u64,
}

/// A file within the file, such as the description of the robot.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attachment<'a> {
    /// When it was recorded, in ns since 1970.
    pub log_ns: u64,
    /// When it was made, in ns since 1970; 0 if that is not known.
    pub create_ns: u64,
    /// Its name, such as `robot.urdf`.
    pub name: &'a str,
    /// What it is, such as `text/xml`.
    pub media_type: &'a str,
    /// Its contents.
    pub data: &'a [u8],
}

/// All of a chunk but its records.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkHead<'a> {
    /// The least and the largest [`MessageHead::log_ns`] in it; zeros without messages.
    pub times: (u64, u64),
    pub uncompressed_bytes: u64,
    /// Of the uncompressed records; 0 if there is none.
    pub crc: u32,
    pub compression: &'a str,
    /// As they are in the file.
    pub records_bytes: u64,
}

/// Where a chunk is, in the summary.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ChunkIndex<'a> {
    pub times: (u64, u64),
    /// Of the chunk's record.
    pub start: u64,
    pub bytes: u64,
    /// Where the message index of each channel is.
    pub message_indexes: BTreeMap<u16, u64>,
    /// Of all of them.
    pub message_indexes_bytes: u64,
    pub compression: &'a str,
    pub compressed_bytes: u64,
    pub uncompressed_bytes: u64,
}

/// What a file contains.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[expect(missing_docs, reason = "their names say it")]
pub struct Statistics {
    pub messages: u64,
    pub schemas: u16,
    pub channels: u32,
    pub attachments: u32,
    pub metadata: u32,
    pub chunks: u32,
    /// The least and the largest [`MessageHead::log_ns`]; zeros without messages.
    pub times: (u64, u64),
    /// Messages by the id of their channel.
    pub by_channel: BTreeMap<u16, u64>,
}

/// The last record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Footer {
    /// 0 if there is no summary.
    pub summary_start: u64,
    pub offsets_start: u64,
    /// From the begin of the summary up to this number; 0 if there is none.
    pub crc: u32,
}

/// Appends a record; `fields` appends its fields.
pub(crate) fn push_record(to: &mut Vec<u8>, opcode: u8, fields: impl FnOnce(&mut Vec<u8>)) {
    to.push(opcode);
    let length_at = to.len();
    to.extend_from_slice(&[0; 8]);
    fields(to);
    let bytes = (to.len() - length_at - 8) as u64;
    to[length_at..length_at + 8].copy_from_slice(&bytes.to_le_bytes());
}

pub(crate) fn push_header(to: &mut Vec<u8>, profile: &str, library: &str) {
    push_record(to, op::HEADER, |to| {
        push_text(to, profile);
        push_text(to, library);
    });
}

pub(crate) fn push_schema(to: &mut Vec<u8>, id: u16, schema: &Schema) {
    push_record(to, op::SCHEMA, |to| {
        to.extend_from_slice(&id.to_le_bytes());
        push_text(to, schema.name);
        push_text(to, schema.encoding);
        push_bytes(to, schema.text);
    });
}

pub(crate) fn push_channel(to: &mut Vec<u8>, id: u16, channel: &Channel) {
    push_record(to, op::CHANNEL, |to| {
        to.extend_from_slice(&id.to_le_bytes());
        to.extend_from_slice(&channel.schema.to_le_bytes());
        push_text(to, &channel.topic);
        push_text(to, &channel.encoding);
        push_metadata_map(to, &channel.metadata);
    });
}

/// All of a message's record but its data, of which there are so many bytes.
pub(crate) fn message_head(head: &MessageHead, data_bytes: usize) -> [u8; MESSAGE_HEAD] {
    let mut to = [0; MESSAGE_HEAD];
    to[0] = op::MESSAGE;
    to[1..9].copy_from_slice(&((MESSAGE_FIELDS + data_bytes) as u64).to_le_bytes());
    to[9..11].copy_from_slice(&head.channel.to_le_bytes());
    to[11..15].copy_from_slice(&head.sequence.to_le_bytes());
    to[15..23].copy_from_slice(&head.log_ns.to_le_bytes());
    to[23..31].copy_from_slice(&head.publish_ns.to_le_bytes());
    to
}

/// All of a chunk's record but its records.
pub(crate) fn push_chunk_head(to: &mut Vec<u8>, head: &ChunkHead) {
    let fields_bytes = (CHUNK_FIELDS + head.compression.len()) as u64;
    to.push(op::CHUNK);
    push_u64s(to, [fields_bytes + head.records_bytes, head.times.0, head.times.1]);
    push_u64s(to, [head.uncompressed_bytes]);
    to.extend_from_slice(&head.crc.to_le_bytes());
    push_text(to, head.compression);
    push_u64s(to, [head.records_bytes]);
}

/// Where the messages of a channel are in a chunk: their log times, and offsets in its records.
pub(crate) fn push_message_index(to: &mut Vec<u8>, channel: u16, entries: &[(u64, u64)]) {
    push_record(to, op::MESSAGE_INDEX, |to| {
        to.extend_from_slice(&channel.to_le_bytes());
        to.extend_from_slice(&((entries.len() * 16) as u32).to_le_bytes());
        for (log_ns, offset) in entries {
            push_u64s(to, [*log_ns, *offset]);
        }
    });
}

pub(crate) fn push_chunk_index(to: &mut Vec<u8>, index: &ChunkIndex) {
    push_record(to, op::CHUNK_INDEX, |to| {
        push_u64s(to, [index.times.0, index.times.1, index.start, index.bytes]);
        push_numbers_map(to, &index.message_indexes);
        push_u64s(to, [index.message_indexes_bytes]);
        push_text(to, index.compression);
        push_u64s(to, [index.compressed_bytes, index.uncompressed_bytes]);
    });
}

pub(crate) fn push_statistics(to: &mut Vec<u8>, of: &Statistics) {
    push_record(to, op::STATISTICS, |to| {
        push_u64s(to, [of.messages]);
        to.extend_from_slice(&of.schemas.to_le_bytes());
        for count in [of.channels, of.attachments, of.metadata, of.chunks] {
            to.extend_from_slice(&count.to_le_bytes());
        }
        push_u64s(to, [of.times.0, of.times.1]);
        push_numbers_map(to, &of.by_channel);
    });
}

pub(crate) fn push_metadata(to: &mut Vec<u8>, name: &str, values: &Metadata) {
    push_record(to, op::METADATA, |to| {
        push_text(to, name);
        push_metadata_map(to, values);
    });
}

pub(crate) fn push_metadata_index(to: &mut Vec<u8>, start: u64, bytes: u64, name: &str) {
    push_record(to, op::METADATA_INDEX, |to| {
        push_u64s(to, [start, bytes]);
        push_text(to, name);
    });
}

/// All of an attachment's record but its data and the checksum behind them.
pub(crate) fn attachment_head(of: &Attachment) -> Vec<u8> {
    let mut fields = Vec::new();
    push_u64s(&mut fields, [of.log_ns, of.create_ns]);
    push_text(&mut fields, of.name);
    push_text(&mut fields, of.media_type);
    push_u64s(&mut fields, [of.data.len() as u64]);
    let mut head = vec![op::ATTACHMENT];
    push_u64s(&mut head, [(fields.len() + of.data.len() + CHECKSUM_BYTES) as u64]);
    head.extend_from_slice(&fields);
    head
}

pub(crate) fn push_attachment_index(to: &mut Vec<u8>, start: u64, bytes: u64, of: &Attachment) {
    push_record(to, op::ATTACHMENT_INDEX, |to| {
        push_u64s(to, [start, bytes, of.log_ns, of.create_ns, of.data.len() as u64]);
        push_text(to, of.name);
        push_text(to, of.media_type);
    });
}

/// Where the records of an opcode are in the summary.
pub(crate) fn push_summary_offset(to: &mut Vec<u8>, opcode: u8, start: u64, bytes: u64) {
    push_record(to, op::SUMMARY_OFFSET, |to| {
        to.push(opcode);
        push_u64s(to, [start, bytes]);
    });
}

/// Without a checksum of the data: it would be one more pass over all of it.
pub(crate) fn push_data_end(to: &mut Vec<u8>) {
    push_record(to, op::DATA_END, |to| to.extend_from_slice(&[0; 4]));
}

fn push_u64s<const N: usize>(to: &mut Vec<u8>, numbers: [u64; N]) {
    for number in numbers {
        to.extend_from_slice(&number.to_le_bytes());
    }
}

fn push_bytes(to: &mut Vec<u8>, bytes: &[u8]) {
    to.extend_from_slice(&(bytes.len() as u32).to_le_bytes());
    to.extend_from_slice(bytes);
}

fn push_text(to: &mut Vec<u8>, text: &str) {
    push_bytes(to, text.as_bytes());
}

fn push_metadata_map(to: &mut Vec<u8>, map: &Metadata) {
    let bytes: usize = map.iter().map(|(name, value)| 8 + name.len() + value.len()).sum();
    to.extend_from_slice(&(bytes as u32).to_le_bytes());
    for (name, value) in map {
        push_text(to, name);
        push_text(to, value);
    }
}

fn push_numbers_map(to: &mut Vec<u8>, map: &BTreeMap<u16, u64>) {
    to.extend_from_slice(&((map.len() * 10) as u32).to_le_bytes());
    for (key, value) in map {
        to.extend_from_slice(&key.to_le_bytes());
        push_u64s(to, [*value]);
    }
}

/// The fields of a record, taken one after the other; `None` where they end too early.
#[derive(Clone, Copy)]
pub(crate) struct Fields<'a>(pub &'a [u8]);

impl<'a> Fields<'a> {
    pub(crate) fn take(&mut self, bytes: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(bytes)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    pub(crate) fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_le_bytes)
    }

    pub(crate) fn u16(&mut self) -> Option<u16> {
        self.array().map(u16::from_le_bytes)
    }

    pub(crate) fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_le_bytes)
    }

    pub(crate) fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_le_bytes)
    }

    pub(crate) fn bytes(&mut self) -> Option<&'a [u8]> {
        let bytes = self.u32()?;
        self.take(bytes as usize)
    }

    pub(crate) fn text(&mut self) -> Option<&'a str> {
        std::str::from_utf8(self.bytes()?).ok()
    }

    fn metadata(&mut self) -> Option<Metadata> {
        let mut pairs = Fields(self.bytes()?);
        let mut map = Metadata::new();
        while !pairs.0.is_empty() {
            map.insert(pairs.text()?.to_owned(), pairs.text()?.to_owned());
        }
        Some(map)
    }

    fn numbers(&mut self) -> Option<BTreeMap<u16, u64>> {
        let mut pairs = Fields(self.bytes()?);
        let mut map = BTreeMap::new();
        while !pairs.0.is_empty() {
            map.insert(pairs.u16()?, pairs.u64()?);
        }
        Some(map)
    }
}

/// The opcode and the number of bytes of the fields, by the head of a record.
pub(crate) fn record_head(head: &[u8; RECORD_HEAD]) -> (u8, u64) {
    let [opcode, bytes @ ..] = *head;
    (opcode, u64::from_le_bytes(bytes))
}

/// Profile and library.
pub(crate) fn header(fields: &[u8]) -> Option<(&str, &str)> {
    let mut fields = Fields(fields);
    Some((fields.text()?, fields.text()?))
}

pub(crate) fn schema(fields: &[u8]) -> Option<(u16, Schema<'_>)> {
    let mut fields = Fields(fields);
    let (id, name, encoding) = (fields.u16()?, fields.text()?, fields.text()?);
    Some((id, Schema { encoding, name, text: fields.bytes()? }))
}

pub(crate) fn channel(fields: &[u8]) -> Option<(u16, Channel)> {
    let mut fields = Fields(fields);
    let (id, schema) = (fields.u16()?, fields.u16()?);
    let (topic, encoding) = (fields.text()?.to_owned(), fields.text()?.to_owned());
    Some((id, Channel { schema, topic, encoding, metadata: fields.metadata()? }))
}

/// A message, and its data.
pub(crate) fn message(fields: &[u8]) -> Option<(MessageHead, &[u8])> {
    let mut fields = Fields(fields);
    let (channel, sequence) = (fields.u16()?, fields.u32()?);
    let (log_ns, publish_ns) = (fields.u64()?, fields.u64()?);
    Some((MessageHead { channel, sequence, log_ns, publish_ns }, fields.0))
}

/// A chunk, and as many of its records as there are.
pub(crate) fn chunk(fields: &[u8]) -> Option<(ChunkHead<'_>, &[u8])> {
    let mut fields = Fields(fields);
    let times = (fields.u64()?, fields.u64()?);
    let (uncompressed_bytes, crc, compression) = (fields.u64()?, fields.u32()?, fields.text()?);
    let records_bytes = fields.u64()?;
    Some((ChunkHead { times, uncompressed_bytes, crc, compression, records_bytes }, fields.0))
}

/// The channel, and its entries: log time and offset.
pub(crate) fn message_index(
    fields: &[u8],
) -> Option<(u16, impl ExactSizeIterator<Item = (u64, u64)>)> {
    let mut fields = Fields(fields);
    let channel = fields.u16()?;
    let (entries, rest) = fields.bytes()?.as_chunks::<16>();
    let pair = |entry: &[u8; 16]| {
        let number = u128::from_le_bytes(*entry);
        (number as u64, (number >> 64) as u64)
    };
    rest.is_empty().then(|| (channel, entries.iter().map(pair)))
}

pub(crate) fn chunk_index(fields: &[u8]) -> Option<ChunkIndex<'_>> {
    let mut fields = Fields(fields);
    Some(ChunkIndex {
        times: (fields.u64()?, fields.u64()?),
        start: fields.u64()?,
        bytes: fields.u64()?,
        message_indexes: fields.numbers()?,
        message_indexes_bytes: fields.u64()?,
        compression: fields.text()?,
        compressed_bytes: fields.u64()?,
        uncompressed_bytes: fields.u64()?,
    })
}

pub(crate) fn statistics(fields: &[u8]) -> Option<Statistics> {
    let mut fields = Fields(fields);
    Some(Statistics {
        messages: fields.u64()?,
        schemas: fields.u16()?,
        channels: fields.u32()?,
        attachments: fields.u32()?,
        metadata: fields.u32()?,
        chunks: fields.u32()?,
        times: (fields.u64()?, fields.u64()?),
        by_channel: fields.numbers()?,
    })
}

/// An attachment, and whether its checksum is right.
pub(crate) fn attachment(fields: &[u8]) -> Option<(Attachment<'_>, bool)> {
    let (summed, crc) = fields.split_last_chunk::<CHECKSUM_BYTES>()?;
    let crc = u32::from_le_bytes(*crc);
    let mut rest = Fields(summed);
    let (log_ns, create_ns) = (rest.u64()?, rest.u64()?);
    let (name, media_type, bytes) = (rest.text()?, rest.text()?, rest.u64()?);
    let data = rest.take(usize::try_from(bytes).ok()?)?;
    let is_right = crc == 0 || crc == crc32fast::hash(summed);
    Some((Attachment { log_ns, create_ns, name, media_type, data }, is_right))
}

pub(crate) fn metadata(fields: &[u8]) -> Option<(&str, Metadata)> {
    let mut fields = Fields(fields);
    Some((fields.text()?, fields.metadata()?))
}

pub(crate) fn footer(fields: &[u8]) -> Option<Footer> {
    let mut fields = Fields(fields);
    let (summary_start, offsets_start) = (fields.u64()?, fields.u64()?);
    Some(Footer { summary_start, offsets_start, crc: fields.u32()? })
}
