//! What a recorder lost, as it wrote that to a topic of its own. Each message has the totals of a
//! topic so far, so the last chunks with such messages are enough.

use std::collections::BTreeMap;

use myelin_value::Value;

use crate::block::Block;
use crate::ending::Definitions;
use crate::format::{MESSAGE_HEAD, RECORD_HEAD, record_head};
use crate::message_type::MessageType;
use crate::source::Source;

/// Samples of a topic that are not in the file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedLosses {
    /// The publisher overwrote them before the recorder took them.
    pub publisher_ring: u64,
    /// The recorder took them, and could not keep them.
    pub recorder: u64,
    /// They could not be written.
    pub disk: u64,
}

impl RecordedLosses {
    /// The topic that has them.
    pub const TOPIC: &'static str = "/myelin/losses";

    /// All of them.
    pub fn total(&self) -> u64 {
        self.publisher_ring.saturating_add(self.recorder).saturating_add(self.disk)
    }

    pub(crate) fn read(
        source: &impl Source,
        blocks: &[Block],
        definitions: &Definitions,
    ) -> BTreeMap<String, RecordedLosses> {
        let mut losses = BTreeMap::new();
        for (id, channel) in &definitions.channels {
            if channel.topic != RecordedLosses::TOPIC {
                continue;
            }
            let schema = definitions.schemas.get(&channel.schema);
            let Ok(ty) = MessageType::new(channel, schema) else { continue };
            let with_channel = blocks.iter().rev().filter(|block| block.channels.contains(id));
            for block in with_channel.take(CHUNKS_MAX) {
                let Ok(Ok(records)) = block.load(source) else { continue };
                let _ = records.each_message(|head, at| {
                    let data = message_data(&records.bytes[at..]);
                    if head.channel == *id
                        && let Some((topic, of_topic)) = data.and_then(|data| one(&ty, data))
                        && (losses.len() < TOPICS_MAX || losses.contains_key(&topic))
                    {
                        let known: &mut RecordedLosses = losses.entry(topic).or_default();
                        *known = known.most(of_topic);
                    }
                });
            }
        }
        losses
    }

    /// Totals only grow.
    fn most(self, other: RecordedLosses) -> RecordedLosses {
        RecordedLosses {
            publisher_ring: self.publisher_ring.max(other.publisher_ring),
            recorder: self.recorder.max(other.recorder),
            disk: self.disk.max(other.disk),
        }
    }
}

fn message_data(record: &[u8]) -> Option<&[u8]> {
    let (head, fields) = record.split_first_chunk::<RECORD_HEAD>()?;
    let fields = fields.get(..usize::try_from(record_head(head).1).ok()?)?;
    fields.get(MESSAGE_HEAD - RECORD_HEAD..)
}

/// The topic, and its losses.
fn one(ty: &MessageType, data: &[u8]) -> Option<(String, RecordedLosses)> {
    let value = ty.value(data).ok()?;
    let number = |of: &Value<'_>, name| of.get(name).and_then(|it| it.as_u64()).ok();
    let losses = RecordedLosses {
        publisher_ring: number(&value, "publisher_ring")?,
        recorder: number(&value, "recorder")?,
        disk: number(&value, "disk")?,
    };
    Some((value.get("topic").ok()?.as_string().ok()?, losses))
}

/// The last message of each topic is at the end of the file.
const CHUNKS_MAX: usize = 8;
const TOPICS_MAX: usize = 65_536;
