//! How many bytes the topics of a file have, by its indexes: of a chunk with one channel that is
//! known, and of the others some are looked at.

use std::collections::BTreeMap;
use std::io;

use crate::block::Block;
use crate::format::{self, Fields, op};
use crate::source::{Source, read_full};

/// Bytes of messages with their heads, unpacked, by the id of their channel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Sizes {
    /// By the id of a channel.
    pub bytes: BTreeMap<u16, u64>,
    /// Whether not all of the file's indexes were read.
    pub are_estimated: bool,
}

impl Sizes {
    pub(crate) fn estimate(source: &impl Source, blocks: &[Block]) -> io::Result<Sizes> {
        let mut bytes = BTreeMap::<u16, u64>::new();
        let mut mixed = Vec::new();
        for block in blocks {
            match block.channels[..] {
                [only] => *bytes.entry(only).or_default() += block.unpacked_bytes,
                _ => mixed.push(block),
            }
        }
        let step = mixed.len().div_ceil(SAMPLED_MAX).max(1);
        let mut sampled = BTreeMap::<u16, (u64, u64)>::new();
        for block in mixed.iter().step_by(step) {
            for (channel, of_channel) in in_block(source, block)? {
                let (blocks, bytes) = sampled.entry(channel).or_default();
                (*blocks, *bytes) = (*blocks + 1, *bytes + of_channel);
            }
        }
        let mut of_mixed = BTreeMap::<u16, u64>::new();
        for channel in mixed.iter().flat_map(|block| block.channels.iter()) {
            *of_mixed.entry(*channel).or_default() += 1;
        }
        for (channel, (looked_at, of_channel)) in sampled {
            let all = u128::from(of_mixed.get(&channel).copied().unwrap_or(0));
            let estimated = u128::from(of_channel) * all / u128::from(looked_at);
            *bytes.entry(channel).or_default() += u64::try_from(estimated).unwrap_or(u64::MAX);
        }
        Ok(Sizes { bytes, are_estimated: step > 1 })
    }
}

/// The bytes of each channel in a chunk, by the places of its messages in the indexes behind it.
fn in_block(source: &impl Source, block: &Block) -> io::Result<BTreeMap<u16, u64>> {
    let mut indexes = vec![0; block.indexes_bytes.min(INDEXES_BYTES_MAX) as usize];
    let read = read_full(source, &mut indexes, block.at.saturating_add(block.bytes))?;
    let mut places = Vec::new();
    let mut rest = Fields(&indexes[..read]);
    while let (Some(opcode), Some(length)) = (rest.u8(), rest.u64()) {
        let fields = usize::try_from(length).ok().and_then(|bytes| rest.take(bytes));
        let index = fields.filter(|_| opcode == op::MESSAGE_INDEX).and_then(format::message_index);
        let Some((channel, entries)) = index else { break };
        places.extend(entries.map(|(_, offset)| (offset, channel)));
    }
    places.sort_unstable();
    let mut bytes = BTreeMap::new();
    for (at, (offset, channel)) in places.iter().enumerate() {
        let end = places.get(at + 1).map_or(block.unpacked_bytes, |(next, _)| *next);
        *bytes.entry(*channel).or_default() += end.saturating_sub(*offset);
    }
    Ok(bytes)
}

/// Chunks of several channels whose indexes are read.
const SAMPLED_MAX: usize = 256;
/// Of the indexes of a chunk.
const INDEXES_BYTES_MAX: u64 = 64 << 20;
