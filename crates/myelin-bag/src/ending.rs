//! The begin and the end of a file: what it says of itself, whether it is complete, and the summary.

use std::collections::BTreeMap;
use std::io;

use myelin_value::Schema;

use crate::format::{
    self, Channel, FOOTER_BYTES, Fields, MAGIC, RECORD_HEAD, Statistics, op, record_head,
};
use crate::limits::DEFINITION_BYTES_MAX;
use crate::source::{Source, Window};

/// A file that cannot be read at all.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// The file system refused.
    #[error(transparent)]
    Io(#[from] io::Error),
    /// It does not begin as MCAP does.
    #[error("this is not an MCAP file: it does not begin with MCAP's magic")]
    NotMcap,
}

/// What a file says of itself; empty if that is broken.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Header {
    pub profile: String,
    pub library: String,
}

impl Header {
    pub(crate) fn read(window: &mut Window<impl Source>) -> Result<Header, OpenError> {
        let at = MAGIC.len() as u64;
        if window.get(0, at)? != Some(&MAGIC) {
            return Err(OpenError::NotMcap);
        }
        let head = window.get(at, RECORD_HEAD as u64)?.and_then(|head| head.first_chunk());
        let Some((op::HEADER, bytes)) = head.map(record_head) else { return Ok(Header::default()) };
        let fields = window.up_to(at + RECORD_HEAD as u64, bytes.min(HEADER_BYTES_MAX))?;
        let header = format::header(fields).map(|(profile, library)| {
            let (profile, library) = (profile.to_owned(), library.to_owned());
            Header { profile, library }
        });
        Ok(header.unwrap_or_default())
    }
}

/// The schemas and the channels of a file, by their ids.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Definitions {
    /// Schemas by their ids.
    pub schemas: BTreeMap<u16, OwnedSchema>,
    /// Channels by their ids.
    pub channels: BTreeMap<u16, Channel>,
}

impl Definitions {
    /// The topics of the channels; one with several channels comes several times.
    pub fn topics(&self) -> impl Iterator<Item = &str> {
        self.channels.values().map(|channel| &*channel.topic)
    }
}

/// A schema that was read from a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OwnedSchema {
    /// The language of the text, such as `ros2msg`.
    pub encoding: String,
    /// The name of the type.
    pub name: String,
    /// The description itself.
    pub text: Vec<u8>,
}

impl OwnedSchema {
    /// It as the parser takes it.
    pub fn as_schema(&self) -> Schema<'_> {
        Schema::new(&self.encoding, &self.name, &self.text)
    }
}

impl Definitions {
    /// Takes in a record of a schema or a channel; of two with one id the first counts. `None` if
    /// it is broken.
    pub(crate) fn add(&mut self, opcode: u8, fields: &[u8]) -> Option<()> {
        if opcode == op::SCHEMA {
            let (id, Schema { encoding, name, text }) = format::schema(fields)?;
            self.schemas.entry(id).or_insert_with(|| OwnedSchema {
                encoding: encoding.to_owned(),
                name: name.to_owned(),
                text: text.to_owned(),
            });
        } else {
            let (id, channel) = format::channel(fields)?;
            self.channels.entry(id).or_insert(channel);
        }
        Some(())
    }
}

/// What is behind the data of a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Ending {
    /// The file ends anywhere, or its summary is broken.
    Cut,
    /// The file was completed. Its data ends here, and the summary may have been left out.
    Complete { data_end: u64, summary: Option<Box<Summary>> },
}

/// The summary of a file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Summary {
    pub definitions: Definitions,
    pub statistics: Option<Statistics>,
    /// Records of statistics; the last counts.
    pub statistics_count: u64,
    /// The fields of the chunk indexes.
    pub chunk_indexes: Vec<Vec<u8>>,
    /// Where the records of attachments and metadata begin, and how many bytes they have.
    pub extras: Vec<(u64, u64)>,
}

impl Ending {
    pub(crate) fn read(window: &mut Window<impl Source>) -> io::Result<Ending> {
        let tail_bytes = (FOOTER_BYTES + MAGIC.len()) as u64;
        let bytes = window.source_bytes();
        let Some(footer_at) = bytes.checked_sub(tail_bytes) else { return Ok(Ending::Cut) };
        let Some(tail) = window.get(footer_at, tail_bytes)? else { return Ok(Ending::Cut) };
        let (head, rest) = tail.split_at(RECORD_HEAD);
        let (fields, magic) = rest.split_at(FOOTER_BYTES - RECORD_HEAD);
        let is_footer = head == [op::FOOTER, 20, 0, 0, 0, 0, 0, 0, 0] && magic == MAGIC;
        let Some(footer) = format::footer(fields).filter(|_| is_footer) else {
            return Ok(Ending::Cut);
        };
        if footer.summary_start == 0 {
            return Ok(Ending::Complete { data_end: footer_at, summary: None });
        }
        let start = footer.summary_start;
        let has_place = (MAGIC.len() as u64..=footer_at).contains(&start)
            && footer_at - start <= DEFINITION_BYTES_MAX;
        if !has_place {
            return Ok(Ending::Cut);
        }
        // Up to the footer's checksum.
        let summed = footer_at + (FOOTER_BYTES - 4) as u64 - start;
        let Some(summed) = window.get(start, summed)? else { return Ok(Ending::Cut) };
        if footer.crc != 0 && crc32fast::hash(summed) != footer.crc {
            return Ok(Ending::Cut);
        }
        let summary = Summary::parse(&summed[..(footer_at - start) as usize]);
        Ok(summary.map_or(Ending::Cut, |summary| Ending::Complete {
            data_end: start,
            summary: Some(Box::new(summary)),
        }))
    }
}

impl Summary {
    fn parse(bytes: &[u8]) -> Option<Summary> {
        let mut summary = Summary::default();
        let mut rest = Fields(bytes);
        while !rest.0.is_empty() {
            let (opcode, length) = (rest.u8()?, rest.u64()?);
            let fields = rest.take(usize::try_from(length).ok()?)?;
            match opcode {
                op::SCHEMA | op::CHANNEL => summary.definitions.add(opcode, fields)?,
                op::STATISTICS => {
                    summary.statistics = Some(format::statistics(fields)?);
                    summary.statistics_count += 1;
                }
                op::CHUNK_INDEX => summary.chunk_indexes.push(fields.to_owned()),
                op::ATTACHMENT_INDEX | op::METADATA_INDEX => {
                    let mut fields = Fields(fields);
                    summary.extras.push((fields.u64()?, fields.u64()?));
                }
                _ => {}
            }
        }
        Some(summary)
    }
}

/// Of a header's fields that are read.
const HEADER_BYTES_MAX: u64 = 1 << 16;
