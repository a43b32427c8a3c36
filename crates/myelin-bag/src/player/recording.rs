//! One or several files that are played as one, in order of time.

use std::cmp::{Ordering, Reverse};
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, VecDeque};
use std::path::{Path, PathBuf};

use super::error::PlayError;
use crate::ending::OwnedSchema;
use crate::format::{Channel, MessageHead, Metadata};
use crate::names::{ENDPOINTS, REPEATED};
use crate::qos::PublisherRecord;
use crate::reader::{BagReader, Message, MessagesError, Selection, Time};
use crate::scanner::{Item, Report};

/// One or several files, such as the splits of one recording. Their messages come in order of time;
/// of equal times, in the order of the files, and within a file in its own order.
///
/// ```no_run
/// let recording = myelin_bag::Recording::open(["run_0.mcap", "run_1.mcap"])?;
/// for topic in recording.topics() {
///     println!("{}: {} messages", topic.name, topic.messages);
/// }
/// # Ok::<(), myelin_bag::player::PlayError>(())
/// ```
pub struct Recording {
    files: Vec<PlayedFile>,
    topics: Vec<RecordedTopic>,
}

struct PlayedFile {
    path: PathBuf,
    reader: BagReader,
    /// Its channels: indexes of topics.
    topics: BTreeMap<u16, usize>,
    /// Topics whose latched samples Myelin's recorder has put at its begin once more, as it is a
    /// further part of a recording.
    repeated: BTreeSet<usize>,
}

/// A topic of a recording.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct RecordedTopic {
    /// Its name in the files, such as `/chatter`.
    pub name: String,
    /// How its messages are encoded, such as `cdr`.
    pub encoding: String,
    /// The schema of its messages.
    pub schema: Option<OwnedSchema>,
    /// What else the files say of it.
    pub metadata: Metadata,
    /// How many messages it has.
    pub messages: u64,
    /// What Myelin's recorder knows of its publishers.
    pub(super) publishers: Vec<PublisherRecord>,
}

impl Recording {
    /// Opens files. A folder stands for all files `*.mcap` in it.
    ///
    /// # Errors
    /// A file that cannot be read at all; a folder without files.
    pub fn open(paths: impl IntoIterator<Item = impl AsRef<Path>>) -> Result<Recording, PlayError> {
        let mut recording = Recording { files: Vec::new(), topics: Vec::new() };
        for path in paths {
            for path in files_of(path.as_ref())? {
                let opened = BagReader::open(&path);
                let reader =
                    opened.map_err(|error| PlayError::Open { path: path.clone(), error })?;
                recording.add(path, reader)?;
            }
        }
        recording.files.sort_by_key(|file| file.begin_ns());
        Ok(recording)
    }

    fn add(&mut self, path: PathBuf, reader: BagReader) -> Result<(), PlayError> {
        let mut topics = BTreeMap::new();
        let info = reader.info();
        for (id, channel) in &info.definitions.channels {
            let schema = info.definitions.schemas.get(&channel.schema);
            let messages = info.statistics.by_channel.get(id).copied().unwrap_or(0);
            let is_it = |it: &RecordedTopic| it.is_of(channel, schema);
            let at = self.topics.iter().position(is_it).unwrap_or_else(|| {
                self.topics.push(RecordedTopic::new(channel, schema));
                self.topics.len() - 1
            });
            self.topics[at].messages += messages;
            topics.insert(*id, at);
        }
        let (mut publishers, mut repeated) = (Vec::new(), BTreeSet::new());
        let read = reader.each_extra(|extra| -> std::io::Result<()> {
            let Item::Metadata { name, values } = extra else { return Ok(()) };
            match &*name {
                ENDPOINTS => {
                    let read = |(id, text): (&String, &String)| PublisherRecord::read(id, text);
                    publishers.extend(values.iter().filter_map(read));
                }
                REPEATED => repeated.extend(values.into_keys()),
                _ => {}
            }
            Ok(())
        });
        read.map_err(|error| PlayError::Open { path: path.clone(), error: error.into() })?;
        for (name, publisher) in publishers {
            for topic in self.topics.iter_mut().filter(|it| it.name == name) {
                // The next part of a recording has it again.
                if !topic.publishers.contains(&publisher) {
                    topic.publishers.push(publisher.clone());
                }
            }
        }
        let of_file = topics.values().copied();
        let repeated = of_file.filter(|at| repeated.contains(&self.topics[*at].name)).collect();
        self.files.push(PlayedFile { path, reader, topics, repeated });
        Ok(())
    }

    /// The topics. Two of one name differ in type or encoding.
    pub fn topics(&self) -> &[RecordedTopic] {
        &self.topics
    }

    /// What could not be read of the files that have no summary, such as one that was cut.
    pub fn reports(&self) -> impl Iterator<Item = (&Path, &Report)> {
        self.files.iter().filter_map(|file| Some((&*file.path, file.reader.report()?)))
    }

    /// The length of all files.
    pub fn bytes(&self) -> u64 {
        self.files.iter().map(|file| file.reader.info().bytes).sum()
    }

    /// The times of the first and of the last message, in ns since 1970.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn times(&self, by: Time) -> Result<(u64, u64), PlayError> {
        let all = (0..self.topics.len()).collect();
        let mut begin_ns = 0;
        for message in self.messages(&all, None, None, by)? {
            match message {
                Ok((time_ns, ..)) => {
                    begin_ns = time_ns;
                    break;
                }
                Err(PlayError::Lost { .. }) => {}
                Err(error) => return Err(error),
            }
        }
        let end_ns = self.files.iter().map(|it| it.reader.info().statistics.times.1).max();
        Ok((begin_ns, end_ns.unwrap_or(0).max(begin_ns)))
    }

    /// Whether it has no times of publication that make sense, as some programs write 0: its first is
    /// long before the first record.
    ///
    /// # Errors
    /// A file that cannot be read.
    pub fn lacks_publish_times(&self) -> Result<bool, PlayError> {
        let recorded = self.files.iter().filter(|it| it.reader.info().statistics.messages > 0);
        let Some(log_ns) = recorded.map(PlayedFile::begin_ns).min() else { return Ok(false) };
        Ok(self.times(Time::Publish)?.0.saturating_add(NONSENSE_NS) < log_ns)
    }

    /// Messages of some topics with their times, from `start_ns` on and before `end_ns`.
    pub(super) fn messages(
        &self,
        topics: &BTreeSet<usize>,
        start_ns: Option<u64>,
        end_ns: Option<u64>,
        by: Time,
    ) -> Result<Messages<'_>, PlayError> {
        let mut selection = Selection::default();
        (selection.start_ns, selection.end_ns, selection.by) = (start_ns, end_ns, by);
        let mut messages = Messages {
            recording: self,
            topics: topics.clone(),
            selection,
            opened: 0,
            sources: Vec::new(),
            next: BinaryHeap::new(),
            lost: VecDeque::new(),
        };
        messages.open_up_to(0)?;
        Ok(messages)
    }
}

impl RecordedTopic {
    fn new(channel: &Channel, schema: Option<&OwnedSchema>) -> RecordedTopic {
        let Channel { topic, encoding, metadata, .. } = channel.clone();
        let (schema, publishers) = (schema.cloned(), Vec::new());
        RecordedTopic { name: topic, encoding, schema, metadata, messages: 0, publishers }
    }

    fn is_of(&self, channel: &Channel, schema: Option<&OwnedSchema>) -> bool {
        (&self.name, &self.encoding) == (&channel.topic, &channel.encoding)
            && self.schema.as_ref() == schema
    }

    /// The name of its type; empty if it has none.
    pub fn type_name(&self) -> &str {
        self.schema.as_ref().map_or("", |schema| &schema.name)
    }
}

impl PlayedFile {
    fn failed(&self, error: MessagesError) -> PlayError {
        let path = self.path.clone();
        match error {
            MessagesError::Lost(loss) => PlayError::Lost { path, loss },
            error => PlayError::Read { path, error },
        }
    }

    /// Whether a message is there once more, so that the file can be played alone.
    fn is_repeated(&self, head: &MessageHead) -> bool {
        let is_at_begin = head.log_ns == self.begin_ns() && head.publish_ns == head.log_ns;
        is_at_begin && self.topics.get(&head.channel).is_some_and(|at| self.repeated.contains(at))
    }

    /// No message was recorded earlier.
    fn begin_ns(&self) -> u64 {
        self.reader.info().statistics.times.0
    }
}

/// A file, or those in a folder, in the order of their names.
fn files_of(path: &Path) -> Result<Vec<PathBuf>, PlayError> {
    if !path.is_dir() {
        return Ok(vec![path.to_owned()]);
    }
    let open =
        |error: std::io::Error| PlayError::Open { path: path.to_owned(), error: error.into() };
    let mut files = Vec::new();
    for entry in std::fs::read_dir(path).map_err(open)? {
        let file = entry.map_err(open)?.path();
        if file.extension().is_some_and(|it| it == "mcap") && file.is_file() {
            files.push(file);
        }
    }
    files.sort();
    if files.is_empty() {
        return Err(PlayError::NoFile { path: path.to_owned() });
    }
    Ok(files)
}

/// Messages of all files, in order of time.
pub(super) struct Messages<'r> {
    recording: &'r Recording,
    topics: BTreeSet<usize>,
    selection: Selection,
    /// So many files were opened, in the order of their begins: of many splits, few are in memory.
    opened: usize,
    /// By the number of the file; `None` if it has no more messages.
    sources: Vec<Option<FileMessages>>,
    /// The next message of each file, by its time.
    next: BinaryHeap<Next>,
    /// What cannot be read, to be reported.
    lost: VecDeque<PlayError>,
}

type FileMessages = crate::reader::Messages;

/// The least time is the greatest of these, for the heap.
struct Next {
    order: Reverse<(u64, usize)>,
    message: Message,
}

impl Messages<'_> {
    /// Opens the files that may have messages up to this time; one more if none is open.
    fn open_up_to(&mut self, time_ns: u64) -> Result<(), PlayError> {
        while let Some(file) = self.recording.files.get(self.opened) {
            let begins_later = file.begin_ns().saturating_sub(TRANSPORT_NS) > time_ns;
            if begins_later && !self.next.is_empty() {
                break;
            }
            let channels = file.topics.iter().filter(|(_, topic)| self.topics.contains(topic));
            let channels: BTreeSet<u16> = channels.map(|(id, _)| *id).collect();
            let source = match channels.is_empty() {
                true => None,
                false => {
                    let mut selection = self.selection.clone();
                    selection.channels = Some(channels);
                    let messages = file.reader.messages(&selection);
                    Some(messages.map_err(|error| file.failed(error.into()))?)
                }
            };
            self.sources.push(source);
            self.opened += 1;
            self.advance(self.opened - 1)?;
        }
        Ok(())
    }

    /// Reads the next message of a file.
    fn advance(&mut self, number: usize) -> Result<(), PlayError> {
        let file = &self.recording.files[number];
        let Some(source) = &mut self.sources[number] else { return Ok(()) };
        loop {
            match source.next() {
                Some(Ok(message)) if number > 0 && file.is_repeated(&message.head) => {}
                Some(Ok(message)) => {
                    let order = Reverse((self.selection.by.of(&message.head), number));
                    self.next.push(Next { order, message });
                    return Ok(());
                }
                Some(Err(error @ MessagesError::Lost(_))) => {
                    self.lost.push_back(file.failed(error));
                }
                Some(Err(error)) => return Err(file.failed(error)),
                None => {
                    self.sources[number] = None;
                    return Ok(());
                }
            }
        }
    }

    fn read(&mut self) -> Result<Option<(u64, usize, Message)>, PlayError> {
        if let Some(lost) = self.lost.pop_front() {
            return Err(lost);
        }
        let now_ns = self.next.peek().map_or(0, |next| next.order.0.0);
        self.open_up_to(now_ns)?;
        let Some(Next { order: Reverse((time_ns, number)), message }) = self.next.pop() else {
            return Ok(None);
        };
        self.advance(number)?;
        let topic = self.recording.files[number].topics[&message.head.channel];
        Ok(Some((time_ns, topic, message)))
    }
}

impl Iterator for Messages<'_> {
    /// The time, the topic's index, and the message. After [`PlayError::Lost`] it goes on.
    type Item = Result<(u64, usize, Message), PlayError>;

    fn next(&mut self) -> Option<Self::Item> {
        self.read().transpose()
    }
}

impl Ord for Next {
    fn cmp(&self, other: &Self) -> Ordering {
        self.order.cmp(&other.order)
    }
}

impl PartialOrd for Next {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl PartialEq for Next {
    fn eq(&self, other: &Self) -> bool {
        self.order == other.order
    }
}

impl Eq for Next {}

/// No message is on its way for so long.
const NONSENSE_NS: u64 = 3_600_000_000_000;
/// A message may be published so long before it is recorded.
const TRANSPORT_NS: u64 = 10_000_000_000;
