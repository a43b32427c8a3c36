//! Writes all that can be read of a file to a new one, which is complete.

use std::io;

use crate::copy::Ids;
use crate::ending::Definitions;
use crate::error::WriteError;
use crate::format::MessageHead;
use crate::scanner::{Item, Report, Scanner};
use crate::source::Source;
use crate::storage::Storage;
use crate::writer::{Options, Writer, Written};

/// A repair that could not be done.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RepairError {
    /// The old file cannot be read.
    #[error("the file cannot be read: {0}")]
    Read(#[source] io::Error),
    /// The new file cannot be written.
    #[error("the new file: {0}")]
    Write(#[from] WriteError),
}

/// What a repair did.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Repaired {
    /// What was read, and what was lost.
    pub report: Report,
    /// What was written.
    pub written: Written,
}

impl Repaired {
    /// Whether the new file has all that was written to the old one.
    pub fn is_lossless(&self) -> bool {
        self.report.is_lossless() && self.written.lost.is_empty()
    }
}

/// Writes all messages, attachments and metadata of a file to a new one. Ids of channels may change.
///
/// # Errors
/// If the old file cannot be read, or the new one cannot be written.
pub fn repair<S: Source, T: Storage>(
    mut from: Scanner<S>,
    to: T,
    mut options: Options,
) -> Result<Repaired, RepairError> {
    options.profile = from.profile().to_owned();
    let mut writer = Writer::new(to, options)?;
    let mut ids = Ids::default();
    while let Some(item) = from.next().map_err(RepairError::Read)? {
        match item {
            Item::Message { head, channel, schema, data } => {
                let channel = ids.channel(&mut writer, head.channel, channel, schema)?;
                writer.write(&MessageHead { channel, ..head }, &[data])?;
            }
            Item::Attachment(attachment) => writer.write_attachment(&attachment)?,
            Item::Metadata { name, values } => writer.write_metadata(&name, &values)?,
        }
    }
    let Definitions { schemas, channels } = from.definitions();
    for (id, channel) in channels {
        ids.channel(&mut writer, *id, channel, schemas.get(&channel.schema))?;
    }
    let written = writer.finish()?;
    Ok(Repaired { report: from.report().clone(), written })
}
