//! What stands at the end of a file, so that readers need not read all of it. It is kept in the
//! form in which it is written, so that its size is known before each chunk.

use crate::chunk::span;
use crate::format::{
    DATA_END_BYTES, FOOTER_BYTES, MAGIC, RECORD_HEAD, Statistics, op, push_data_end,
    push_statistics, push_summary_offset,
};

/// Of what is in the file. What is not yet written, or is lost, is not in it.
#[derive(Default)]
pub(crate) struct Summary {
    pub schemas: Vec<u8>,
    pub channels: Vec<u8>,
    pub chunk_indexes: Vec<u8>,
    pub attachment_indexes: Vec<u8>,
    pub metadata_indexes: Vec<u8>,
    pub statistics: Statistics,
}

impl Summary {
    /// Counts messages of a chunk that is in the file.
    pub(crate) fn count(
        &mut self,
        counts: impl Iterator<Item = (u16, u64)>,
        times: Option<(u64, u64)>,
    ) {
        let of = &mut self.statistics;
        let before = (of.messages > 0).then_some(of.times);
        for (channel, messages) in counts {
            *of.by_channel.entry(channel).or_default() += messages;
            of.messages += messages;
        }
        if let Some((first, last)) = times {
            of.times = span(span(before, first), last).expect("it has one");
        }
    }

    /// The most bytes that [`push_end`](Summary::push_end) appends.
    pub(crate) fn end_bytes_max(&self) -> usize {
        let groups = [
            &self.schemas,
            &self.channels,
            &self.chunk_indexes,
            &self.attachment_indexes,
            &self.metadata_indexes,
        ];
        let records: usize = groups.iter().map(|records| records.len()).sum();
        let counts = self.statistics.by_channel.len() * COUNT_BYTES;
        let statistics = RECORD_HEAD + STATISTICS_FIELDS + counts;
        let offsets = (groups.len() + 1) * (RECORD_HEAD + 17);
        DATA_END_BYTES + records + statistics + offsets + FOOTER_BYTES + MAGIC.len()
    }

    /// Appends all that is behind the data of a file that has so many bytes up to here.
    pub(crate) fn push_end(&self, to: &mut Vec<u8>, at: u64) {
        let base = at - to.len() as u64;
        let position = |to: &Vec<u8>| base + to.len() as u64;
        push_data_end(to);
        let summary_at = to.len();
        let mut statistics = Vec::new();
        push_statistics(&mut statistics, &self.statistics);
        let groups = [
            (op::SCHEMA, &self.schemas),
            (op::CHANNEL, &self.channels),
            (op::STATISTICS, &statistics),
            (op::CHUNK_INDEX, &self.chunk_indexes),
            (op::ATTACHMENT_INDEX, &self.attachment_indexes),
            (op::METADATA_INDEX, &self.metadata_indexes),
        ];
        let mut offsets = Vec::new();
        for (opcode, records) in groups {
            if !records.is_empty() {
                push_summary_offset(&mut offsets, opcode, position(to), records.len() as u64);
                to.extend_from_slice(records);
            }
        }
        let (summary_start, offsets_start) = (base + summary_at as u64, position(to));
        to.extend_from_slice(&offsets);
        to.push(op::FOOTER);
        to.extend_from_slice(&20_u64.to_le_bytes());
        to.extend_from_slice(&summary_start.to_le_bytes());
        to.extend_from_slice(&offsets_start.to_le_bytes());
        let crc = crc32fast::hash(&to[summary_at..]);
        to.extend_from_slice(&crc.to_le_bytes());
        to.extend_from_slice(&MAGIC);
    }
}

/// Of a statistics record, without its map's entries.
const STATISTICS_FIELDS: usize = 8 + 2 + 4 * 4 + 16 + 4;
/// Of a statistics record, for each channel with messages.
pub(crate) const COUNT_BYTES: usize = 10;
