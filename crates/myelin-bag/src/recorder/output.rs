//! Where a recording goes: to one file, to files that are split, or to another place of your own.

use std::path::PathBuf;

use crate::ending::OwnedSchema;
use crate::error::WriteError;
use crate::format::{Channel, MessageHead, Metadata};
use crate::storage::Storage;
use crate::topic_format::TopicFormat;
use crate::writer::{Options, Writer};

/// Takes the messages of a recording. Topics have numbers, in the order in which they are added.
///
/// It may consist of parts, such as files that can be read on their own: then each begins with the
/// latched samples of its topics.
pub trait Output: Send {
    /// Adds a topic, before its first message.
    ///
    /// # Errors
    /// If it cannot be written. Then its messages are refused.
    fn add_topic(&mut self, topic: &RecordedTopic) -> Result<(), WriteError>;

    /// Writes a message. It may stay in memory until [`flush`](Output::flush).
    ///
    /// # Errors
    /// If it or messages before it cannot be written. They are [lost](Output::lost); but
    /// [`WriteError::Behind`] is about this message alone, and is counted by the caller.
    fn write(&mut self, message: &Message<'_>) -> Result<(), WriteError>;

    /// Writes what is in memory.
    ///
    /// # Errors
    /// As for [`write`](Output::write).
    fn flush(&mut self) -> Result<(), WriteError>;

    /// Writes what is in memory, as far as that needs no waiting for other threads; about once a
    /// second.
    ///
    /// # Errors
    /// As for [`write`](Output::write).
    fn advance(&mut self) -> Result<(), WriteError> {
        self.flush()
    }

    /// Writes records of metadata by name, before the end.
    ///
    /// # Errors
    /// If they cannot be written.
    fn write_records(&mut self, records: &[(&str, Metadata)]) -> Result<(), WriteError>;

    /// Whether there may be several parts.
    fn has_parts(&self) -> bool {
        false
    }

    /// Whether a new part is due before a message of so many bytes.
    fn is_part_due(&mut self, _log_ns: u64, _bytes: u64) -> bool {
        false
    }

    /// Begins the next part, after [`finish`](Output::finish).
    ///
    /// # Errors
    /// If it cannot be begun.
    fn begin_part(&mut self) -> Result<(), WriteError> {
        Ok(())
    }

    /// Completes the part, with these records of metadata by name.
    ///
    /// # Errors
    /// If the end cannot be written.
    fn finish(&mut self, records: &[(&str, Metadata)]) -> Result<(), WriteError>;

    /// How many messages of each topic could not be written, without repeated ones.
    fn lost(&self) -> Vec<u64>;

    /// Looks at the disk, some times a second. A reason to end the recording, if there is one.
    fn check(&mut self) -> Option<String> {
        None
    }

    /// How far it is.
    fn progress(&self) -> Progress;
}

/// A topic of a recording, with one type.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RecordedTopic {
    /// Its name; that of ROS 2 for a topic of ROS 2.
    pub name: String,
    /// The name of its type.
    pub type_name: String,
    /// How its samples are written.
    pub format: TopicFormat,
    /// What is added to the metadata of its channel.
    pub metadata: Metadata,
}

/// A message of a recording.
#[derive(Clone, Copy, Debug)]
#[non_exhaustive]
pub struct Message<'a> {
    /// The number of its topic.
    pub topic: usize,
    /// Its number at its publisher.
    pub sequence: u32,
    /// When it was recorded, in ns since 1970.
    pub log_ns: u64,
    /// When it was published, in ns since 1970.
    pub publish_ns: u64,
    /// Whether it was written before, and begins a further part.
    pub is_repeated: bool,
    /// Its data: these parts one after the other.
    pub data: &'a [&'a [u8]],
}

/// How far an output is.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Progress {
    /// The files, the oldest first; those that were removed are left out.
    pub files: Vec<PathBuf>,
    /// The bytes of all files, those that were removed included.
    pub bytes: u64,
    /// How many parts were removed to keep space free.
    pub removed: u64,
    /// Bytes that are free on the disk, if it is one.
    pub free_bytes: Option<u64>,
}

/// An output of one part: all goes to one [`Storage`].
pub struct OneFile<S: Storage> {
    state: State<S>,
    topics: Vec<RecordedTopic>,
    /// The ids of their channels in the file; 0: it has none.
    channels: Vec<u16>,
    schemas: Vec<(OwnedSchema, u16)>,
    /// Messages that did not reach a writer, by topic.
    refused: Vec<u64>,
    /// Messages for which there was no room at the threads that compress, by topic.
    behind: Vec<u64>,
    /// What the writer had lost of repeated messages.
    repeated: Vec<u64>,
    /// Whether only repeated messages have come.
    is_fresh: bool,
    /// Of a file that is complete.
    finished: Finished,
}

#[derive(Default)]
struct Finished {
    bytes: u64,
    lost: Vec<u64>,
}

enum State<S: Storage> {
    /// Nothing is written: the profile depends on the topics.
    Empty(S, Options),
    Open(Box<Writer<S>>),
    Ended,
}

impl<S: Storage> OneFile<S> {
    /// Writes to this storage, which is empty. If [`Options::profile`] is empty and all topics that
    /// are known at the first message are of CDR, the profile is `ros2`.
    pub fn new(storage: S, options: Options) -> OneFile<S> {
        OneFile {
            state: State::Empty(storage, options),
            topics: Vec::new(),
            channels: Vec::new(),
            schemas: Vec::new(),
            refused: Vec::new(),
            behind: Vec::new(),
            repeated: Vec::new(),
            is_fresh: true,
            finished: Finished::default(),
        }
    }

    /// Bytes that are written, and those that are in memory.
    pub fn bytes(&self) -> u64 {
        match &self.state {
            State::Open(writer) => writer.bytes() + writer.bytes_in_memory() as u64,
            State::Empty(..) => 0,
            State::Ended => self.finished.bytes,
        }
    }

    /// Whether it has messages that were not repeated.
    pub(super) fn has_messages(&self) -> bool {
        !self.is_fresh
    }

    fn begin(&mut self) -> Result<&mut Writer<S>, WriteError> {
        if let State::Empty(..) = self.state {
            let State::Empty(storage, mut options) =
                std::mem::replace(&mut self.state, State::Ended)
            else {
                unreachable!("the line above")
            };
            let is_cdr = |it: &RecordedTopic| it.format.channel("", 0).encoding == "cdr";
            if options.profile.is_empty() && self.topics.iter().all(is_cdr) {
                options.profile = ROS_PROFILE.to_owned();
            }
            self.state = State::Open(Box::new(Writer::new(storage, options)?));
            for number in 0..self.topics.len() {
                // Its messages are refused.
                let _ = self.add_channel(number);
            }
        }
        match &mut self.state {
            State::Open(writer) => Ok(writer),
            _ => Err(WriteError::Ended),
        }
    }

    fn add_channel(&mut self, number: usize) -> Result<(), WriteError> {
        let State::Open(writer) = &mut self.state else { return Err(WriteError::Ended) };
        let topic = &self.topics[number];
        let schema = topic.format.schema();
        let known = self.schemas.iter().find(|(it, _)| it == schema).map(|(_, id)| *id);
        let id = match known {
            Some(id) => id,
            None => {
                let id = writer.add_schema(&schema.as_schema())?;
                self.schemas.push((schema.clone(), id));
                id
            }
        };
        let mut channel: Channel = topic.format.channel(&topic.name, id);
        channel.metadata.extend(topic.metadata.clone());
        self.channels[number] = writer.add_channel(&channel)?;
        Ok(())
    }

    /// By topic, with those of repeated messages.
    fn all_lost(&self) -> Vec<u64> {
        let State::Open(writer) = &self.state else { return self.finished.lost.clone() };
        let of = |id: &u16| writer.lost().get(id).copied().unwrap_or(0);
        self.channels.iter().map(of).collect()
    }
}

impl<S: Storage + Send> Output for OneFile<S> {
    fn add_topic(&mut self, topic: &RecordedTopic) -> Result<(), WriteError> {
        self.topics.push(topic.clone());
        self.channels.push(0);
        self.refused.push(0);
        self.behind.push(0);
        match self.state {
            State::Open(_) => self.add_channel(self.topics.len() - 1),
            _ => Ok(()),
        }
    }

    fn write(&mut self, message: &Message<'_>) -> Result<(), WriteError> {
        let Message { topic, sequence, log_ns, publish_ns, is_repeated, data } = *message;
        let begun = self.begin().map(|_| ());
        if self.is_fresh && !is_repeated {
            // Those before are complete, or lost: they do not count.
            let _ = self.flush();
            (self.is_fresh, self.repeated) = (false, self.all_lost());
        }
        let channel = self.channels[topic];
        let State::Open(writer) = &mut self.state else {
            self.refused[topic] += u64::from(!is_repeated);
            return Err(begun.err().unwrap_or(WriteError::Ended));
        };
        if channel == 0 {
            self.refused[topic] += u64::from(!is_repeated);
            return Err(WriteError::TooMany("channel"));
        }
        let written = writer.write(&MessageHead { channel, sequence, log_ns, publish_ns }, data);
        if !is_repeated && matches!(written, Err(WriteError::Behind)) {
            self.behind[topic] += 1;
        }
        written
    }

    fn flush(&mut self) -> Result<(), WriteError> {
        match &mut self.state {
            State::Open(writer) => writer.flush(),
            _ => Ok(()),
        }
    }

    fn advance(&mut self) -> Result<(), WriteError> {
        match &mut self.state {
            State::Open(writer) => writer.advance(),
            _ => Ok(()),
        }
    }

    fn write_records(&mut self, records: &[(&str, Metadata)]) -> Result<(), WriteError> {
        let writer = self.begin()?;
        records.iter().try_for_each(|(name, values)| writer.write_metadata(name, values))
    }

    fn finish(&mut self, records: &[(&str, Metadata)]) -> Result<(), WriteError> {
        self.begin()?;
        let flushed = self.flush();
        self.finished.lost = self.all_lost();
        let State::Open(mut writer) = std::mem::replace(&mut self.state, State::Ended) else {
            return Err(WriteError::Ended);
        };
        for (name, values) in records {
            // A full disk has space for the first ones.
            let _ = writer.write_metadata(name, values);
        }
        self.finished.bytes = writer.bytes();
        self.finished.bytes = writer.finish()?.bytes;
        flushed
    }

    fn lost(&self) -> Vec<u64> {
        let mut lost = self.all_lost();
        lost.resize(self.topics.len(), 0);
        // While it is fresh, all are repeated ones.
        let none = if self.is_fresh { lost.clone() } else { Vec::new() };
        let repeated = if self.is_fresh { &none } else { &self.repeated };
        for (lost, repeated) in lost.iter_mut().zip(repeated) {
            *lost -= repeated;
        }
        let more = self.refused.iter().zip(&self.behind);
        lost.iter().zip(more).map(|(lost, (refused, behind))| lost + refused - behind).collect()
    }

    fn progress(&self) -> Progress {
        Progress { bytes: self.bytes(), ..Progress::default() }
    }
}

/// The profile of files for ROS 2's programs.
const ROS_PROFILE: &str = "ros2";
