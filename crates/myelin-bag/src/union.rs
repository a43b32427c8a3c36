//! The channels of several files in one: those that are equal become one.

use std::collections::BTreeMap;

use crate::ending::OwnedSchema;
use crate::error::WriteError;
use crate::format::Channel;
use crate::storage::Storage;
use crate::writer::Writer;

/// What the new file has, and the ids of the file that is being read.
#[derive(Default)]
pub(crate) struct Union {
    /// In the order of their ids, which begin with 1.
    schemas: Vec<OwnedSchema>,
    channels: Vec<Channel>,
    /// Ids in the new file by those in the old one.
    ids: BTreeMap<u16, u16>,
}

impl Union {
    /// The ids that follow are those of another file.
    pub(crate) fn begin_file(&mut self) {
        self.ids.clear();
    }

    /// The id of a channel in the new file. It is added, with its schema, if it is new.
    pub(crate) fn channel<S: Storage>(
        &mut self,
        writer: &mut Writer<S>,
        id: u16,
        channel: &Channel,
        schema: Option<&OwnedSchema>,
    ) -> Result<u16, WriteError> {
        if let Some(known) = self.ids.get(&id) {
            return Ok(*known);
        }
        let schema = match schema {
            None => 0,
            Some(schema) => match self.schemas.iter().position(|it| it == schema) {
                Some(place) => place as u16 + 1,
                None => {
                    let added = writer.add_schema(&schema.as_schema())?;
                    self.schemas.push(schema.clone());
                    added
                }
            },
        };
        let channel = Channel { schema, ..channel.clone() };
        let united = match self.channels.iter().position(|it| *it == channel) {
            Some(place) => place as u16 + 1,
            None => {
                let added = writer.add_channel(&channel)?;
                self.channels.push(channel);
                added
            }
        };
        self.ids.insert(id, united);
        Ok(united)
    }
}
