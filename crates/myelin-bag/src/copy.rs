//! Messages from files to a new one: what cutting and merging have in common.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;

use crate::ending::OwnedSchema;
use crate::error::WriteError;
use crate::format::{Channel, MessageHead};
use crate::limits::LOSSES_MAX;
use crate::reader::{Message, Messages, MessagesError};
use crate::scanner::Loss;
use crate::source::Source;
use crate::storage::Storage;
use crate::writer::{Writer, Written};

/// A file that could not be copied from, or to.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopyError {
    /// A file cannot be read.
    #[error(transparent)]
    Read(#[from] MessagesError),
    /// The new file cannot be written.
    #[error("the new file: {0}")]
    Write(#[from] WriteError),
}

impl From<io::Error> for CopyError {
    fn from(error: io::Error) -> Self {
        CopyError::Read(error.into())
    }
}

/// What was copied.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Copied {
    /// What was written.
    pub written: Written,
    /// Latched messages of before that stand at the begin of a part.
    pub latched: u64,
    /// The first chunks that could not be read, besides what a file lost before.
    pub losses: Vec<Loss>,
    /// Others, which are not listed.
    pub losses_more: u64,
}

/// Writes the messages of files in order of log time; of the same time, those of the first file
/// first. `id` gives the channel in the new file by the number of the file and the channel in it.
pub(crate) fn write_in_order<S: Source, T: Storage>(
    mut from: Vec<Messages<S>>,
    writer: &mut Writer<T>,
    copied: &mut Copied,
    id: impl Fn(usize, u16) -> Option<u16>,
) -> Result<(), CopyError> {
    let mut waiting: Vec<Option<Message>> = Vec::new();
    let mut order = BinaryHeap::new();
    for (file, messages) in from.iter_mut().enumerate() {
        waiting.push(next(messages, copied)?);
        order.extend(waiting[file].as_ref().map(|it| Reverse((it.head.log_ns, file))));
    }
    while let Some(Reverse((_, file))) = order.pop() {
        if let Some(message) = waiting[file].take()
            && let Some(channel) = id(file, message.head.channel)
        {
            let head = MessageHead { channel, ..message.head };
            writer.write(&head, &[message.data()])?;
        }
        waiting[file] = next(&mut from[file], copied)?;
        order.extend(waiting[file].as_ref().map(|it| Reverse((it.head.log_ns, file))));
    }
    Ok(())
}

/// The next message. What is lost before it is counted.
fn next<S: Source>(
    from: &mut Messages<S>,
    copied: &mut Copied,
) -> Result<Option<Message>, MessagesError> {
    for message in from {
        match message {
            Ok(message) => return Ok(Some(message)),
            Err(MessagesError::Lost(loss)) if copied.losses.len() < LOSSES_MAX => {
                copied.losses.push(loss);
            }
            Err(MessagesError::Lost(_)) => copied.losses_more += 1,
            Err(error) => return Err(error),
        }
    }
    Ok(None)
}

/// Ids in the new file by those in the old one.
#[derive(Default)]
pub(crate) struct Ids {
    schemas: BTreeMap<u16, u16>,
    channels: BTreeMap<u16, u16>,
}

impl Ids {
    /// The id of a channel that was added.
    pub(crate) fn known(&self, id: u16) -> Option<u16> {
        self.channels.get(&id).copied()
    }

    /// The id of a channel in the new file, to which it is added if it is not yet there.
    pub(crate) fn channel<T: Storage>(
        &mut self,
        writer: &mut Writer<T>,
        id: u16,
        channel: &Channel,
        schema: Option<&OwnedSchema>,
    ) -> Result<u16, WriteError> {
        if let Some(known) = self.channels.get(&id) {
            return Ok(*known);
        }
        let schema = match (schema, self.schemas.get(&channel.schema)) {
            (None, _) => 0,
            (_, Some(known)) => *known,
            (Some(schema), None) => {
                let added = writer.add_schema(&schema.as_schema())?;
                self.schemas.insert(channel.schema, added);
                added
            }
        };
        let added = writer.add_channel(&Channel { schema, ..channel.clone() })?;
        self.channels.insert(id, added);
        Ok(added)
    }
}
