//! Writes the messages of several files to one, in order of time.

use std::collections::{BTreeMap, BTreeSet};

use crate::copy::{Copied, CopyError, write_in_order};
use crate::ending::OwnedSchema;
use crate::error::WriteError;
use crate::format::{Channel, Metadata};
use crate::names::QOS_PROFILES;
use crate::reader::{BagReader, Selection};
use crate::scanner::Item;
use crate::source::Source;
use crate::storage::Storage;
use crate::writer::{Options, Writer};

/// Writes all messages of files to a new one, in order of log time, with their attachments and
/// metadata; what is the same in several files is written once.
///
/// Channels of the same topic, schema and encoding become one. It has the metadata of all of them;
/// where they differ, those of the first file count, but profiles of quality of service
/// (`offered_qos_profiles`) are a list, to which those of the others are added: a latched topic of
/// ROS 2 stays one.
///
/// # Errors
/// If a file cannot be read, or the new one cannot be written.
pub fn merge<S: Source, T: Storage>(
    from: &[BagReader<S>],
    to: T,
    mut options: Options,
) -> Result<Copied, CopyError> {
    let profiles: BTreeSet<_> = from.iter().map(|file| file.info().profile.as_str()).collect();
    if let ([profile], 1) = (&profiles.iter().collect::<Vec<_>>()[..], profiles.len()) {
        options.profile = (**profile).to_owned();
    }
    let mut writer = Writer::new(to, options)?;
    let mut united = United::default();
    for (file, reader) in from.iter().enumerate() {
        let definitions = &reader.info().definitions;
        for (id, channel) in &definitions.channels {
            united.add((file, *id), channel, definitions.schemas.get(&channel.schema));
        }
    }
    let ids = united.write(&mut writer)?;
    let mut copied = Copied::default();
    let messages = from.iter().map(|file| file.messages(&Selection::default()));
    let messages = messages.collect::<Result<Vec<_>, _>>()?;
    let id = |file, channel| ids.get(&(file, channel)).copied();
    write_in_order(messages, &mut writer, &mut copied, id)?;
    let mut written = BTreeSet::new();
    for file in from {
        file.each_extra(|item| -> Result<(), CopyError> {
            match item {
                Item::Attachment(it) => {
                    let crc = crc32fast::hash(it.data);
                    let key = format!("{crc} {} {} {}", it.create_ns, it.data.len(), it.name);
                    if written.insert((true, key)) {
                        writer.write_attachment(&it)?;
                    }
                }
                Item::Metadata { name, values } => {
                    if written.insert((false, format!("{name:?} {values:?}"))) {
                        writer.write_metadata(&name, &values)?;
                    }
                }
                Item::Message { .. } => {}
            }
            Ok(())
        })?;
    }
    copied.written = writer.finish()?;
    Ok(copied)
}

/// The channels of the new file.
#[derive(Default)]
struct United<'a> {
    channels: Vec<UnitedChannel<'a>>,
    /// By topic, encoding and schema.
    known: BTreeMap<(&'a str, &'a str, Option<SchemaKey<'a>>), usize>,
}

type SchemaKey<'a> = (&'a str, &'a str, &'a [u8]);

struct UnitedChannel<'a> {
    topic: &'a str,
    encoding: &'a str,
    schema: Option<&'a OwnedSchema>,
    metadata: Metadata,
    /// The files, and the ids in them.
    of: Vec<(usize, u16)>,
}

impl<'a> United<'a> {
    fn add(&mut self, of: (usize, u16), channel: &'a Channel, schema: Option<&'a OwnedSchema>) {
        let (topic, encoding) = (channel.topic.as_str(), channel.encoding.as_str());
        let known = self.known.entry((topic, encoding, schema.map(key))).or_insert_with(|| {
            let (metadata, of) = (Metadata::new(), Vec::new());
            self.channels.push(UnitedChannel { topic, encoding, schema, metadata, of });
            self.channels.len() - 1
        });
        let united = &mut self.channels[*known];
        united.of.push(of);
        unite(&mut united.metadata, &channel.metadata);
    }

    fn write<T: Storage>(
        self,
        writer: &mut Writer<T>,
    ) -> Result<BTreeMap<(usize, u16), u16>, WriteError> {
        let mut schemas = BTreeMap::new();
        let mut ids = BTreeMap::new();
        for UnitedChannel { topic, encoding, schema, metadata, of } in self.channels {
            let schema = match schema {
                None => 0,
                Some(schema) => match schemas.get(&key(schema)) {
                    Some(known) => *known,
                    None => {
                        let added = writer.add_schema(&schema.as_schema())?;
                        schemas.insert(key(schema), added);
                        added
                    }
                },
            };
            let (topic, encoding) = (topic.to_owned(), encoding.to_owned());
            let id = writer.add_channel(&Channel { schema, topic, encoding, metadata })?;
            ids.extend(of.into_iter().map(|of| (of, id)));
        }
        Ok(ids)
    }
}

fn key(schema: &OwnedSchema) -> SchemaKey<'_> {
    (&schema.encoding, &schema.name, &schema.text)
}

fn unite(to: &mut Metadata, more: &Metadata) {
    for (name, value) in more {
        match to.get_mut(name) {
            None => {
                to.insert(name.clone(), value.clone());
            }
            Some(known) if name == QOS_PROFILES && !known.contains(value.trim_end()) => {
                // Both are lists in YAML, whose items begin with a dash.
                if known.starts_with('-') && value.starts_with('-') {
                    *known = format!("{}\n{value}", known.trim_end());
                }
            }
            Some(_) => {}
        }
    }
}
