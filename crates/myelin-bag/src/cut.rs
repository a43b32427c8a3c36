//! Copies a part of a file to a new one, without decoding messages.

use crate::copy::{Copied, CopyError, Ids, write_in_order};
use crate::ending::Definitions;
use crate::format::MessageHead;
use crate::latched;
use crate::reader::{BagReader, Selection};
use crate::scanner::Item;
use crate::source::Source;
use crate::storage::Storage;
use crate::writer::{Options, Writer};

/// Writes the selected messages of a file to a new one, in order of log time, with the selected
/// channels, the attachments and the metadata. Ids of channels may change.
///
/// If the part does not begin with the file, the latched messages of ROS 2 that were published
/// before stand at its begin, with its time: a player or a viewer of the part needs them.
///
/// ```
/// # use myelin_bag::{Channel, MessageHead, Writer};
/// use myelin_bag::{BagReader, Options, Selection, cut};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("run.mcap");
/// # let mut writer = Writer::create(&path, Options::default())?;
/// # let topic = "/speed".to_owned();
/// # let channel = writer.add_channel(&Channel { topic, ..Channel::default() })?;
/// # for log_ns in 0..100 {
/// #     writer.write(&MessageHead { channel, log_ns, ..MessageHead::default() }, &[b"abcd"])?;
/// # }
/// # drop(writer);
/// let reader = BagReader::open(path)?;
/// let mut selection = Selection::default();
/// selection.channels = Some(reader.channels_of("/speed"));
/// selection.end_ns = Some(10);
/// let part = std::fs::File::create(folder.path().join("part.mcap"))?;
/// let copied = cut(&reader, &selection, part, Options::default())?;
/// assert_eq!(copied.written.statistics.messages, 10);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If the file cannot be read, or the new one cannot be written.
pub fn cut<S: Source, T: Storage>(
    from: &BagReader<S>,
    selection: &Selection,
    to: T,
    mut options: Options,
) -> Result<Copied, CopyError> {
    options.profile = from.info().profile.clone();
    let mut writer = Writer::new(to, options)?;
    let Definitions { schemas, channels } = &from.info().definitions;
    let mut ids = Ids::default();
    for (id, channel) in channels {
        if selection.channels.as_ref().is_none_or(|wanted| wanted.contains(id)) {
            ids.channel(&mut writer, *id, channel, schemas.get(&channel.schema))?;
        }
    }
    let mut copied = Copied::default();
    if let Some(start_ns) = selection.start_ns {
        for message in latched::before(from, selection.channels.as_ref(), start_ns)? {
            let Some(channel) = ids.known(message.head.channel) else { continue };
            let (log_ns, publish_ns) = (start_ns, start_ns);
            let head = MessageHead { channel, log_ns, publish_ns, ..message.head };
            writer.write(&head, &[message.data()])?;
            copied.latched += 1;
        }
    }
    let messages = vec![from.messages(selection)?];
    write_in_order(messages, &mut writer, &mut copied, |_, id| ids.known(id))?;
    from.each_extra(|item| -> Result<(), CopyError> {
        match item {
            Item::Attachment(attachment) => Ok(writer.write_attachment(&attachment)?),
            Item::Metadata { name, values } => Ok(writer.write_metadata(&name, &values)?),
            Item::Message { .. } => Ok(()),
        }
    })?;
    copied.written = writer.finish()?;
    Ok(copied)
}
