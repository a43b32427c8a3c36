//! Reads a file in order of time, with the memory of a few chunks.
//!
//! A complete file is read by its summary: only chunks that have selected messages are read. Of a
//! broken file, and of one without indexes, all of it is read once when it is opened.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet, BinaryHeap, HashMap};
use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::{Arc, OnceLock};

use crate::block::{self, Block, Compressions, Indexed, Records};
use crate::ending::{Definitions, Ending, Header, OpenError};
use crate::format::{self, MESSAGE_HEAD, MessageHead, RECORD_HEAD, op, record_head};
use crate::info::Info;
use crate::limits::{CHUNKS_BYTES_MAX, DEFINITION_BYTES_MAX, OVERLAPPING_MAX, RECORD_BYTES_MAX};
use crate::recorded_losses::RecordedLosses;
use crate::scanner::{Item, Loss, Report, Scanner};
use crate::sizes::Sizes;
use crate::source::{Source, Window, read_full};

/// Reads a finished or broken file, in order of time.
///
/// ```
/// # use myelin_bag::{Channel, MessageHead, Options, Writer};
/// use myelin_bag::{BagReader, Selection};
///
/// # let folder = tempfile::tempdir()?;
/// # let path = folder.path().join("run.mcap");
/// # let mut writer = Writer::create(&path, Options::default())?;
/// # let topic = "/speed".to_owned();
/// # let channel = writer.add_channel(&Channel { topic, ..Channel::default() })?;
/// # for log_ns in [20, 10] {
/// #     writer.write(&MessageHead { channel, log_ns, ..MessageHead::default() }, &[b"abcd"])?;
/// # }
/// # drop(writer);
/// let reader = BagReader::open(path)?;
/// let mut selection = Selection::default();
/// selection.channels = Some(reader.channels_of("/speed"));
/// let mut times = Vec::new();
/// for message in reader.messages(&selection)? {
///     let message = message?;
///     assert_eq!(message.data(), b"abcd");
///     times.push(message.head.log_ns);
/// }
/// assert_eq!(times, [10, 20]);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct BagReader<S = File> {
    source: Arc<S>,
    info: Info,
    blocks: Arc<[Block]>,
    /// The least and the largest time of publication in each block, once that is known.
    publish: OnceLock<Vec<(u64, u64)>>,
    /// Where the records of attachments and metadata begin, and how many bytes they have.
    extras: Vec<(u64, u64)>,
    compressions: Compressions,
    /// Bytes of the messages of each channel, if all of the file was read.
    bytes_by_channel: Option<BTreeMap<u16, u64>>,
}

/// Which messages are read, and in which order.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Selection {
    /// The ids of channels; all by default.
    pub channels: Option<BTreeSet<u16>>,
    /// Not before this time.
    pub start_ns: Option<u64>,
    /// Before this time, which is not included.
    pub end_ns: Option<u64>,
    /// The time that is meant, and the order.
    pub by: Time,
}

/// A time of messages.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Time {
    /// [`MessageHead::log_ns`], by which files are indexed.
    #[default]
    Log,
    /// [`MessageHead::publish_ns`]. No file has an index of it, so all chunks are read once more
    /// before the first message; of a chunk with one large message only its begin.
    Publish,
}

impl Time {
    /// This time of a message.
    pub fn of(self, head: &MessageHead) -> u64 {
        match self {
            Time::Log => head.log_ns,
            Time::Publish => head.publish_ns,
        }
    }
}

/// A message. Its data are not copied: it shares the chunk that they are in.
#[derive(Clone, Debug)]
pub struct Message {
    /// All but its data.
    pub head: MessageHead,
    chunk: Arc<Vec<u8>>,
    at: usize,
    bytes: usize,
}

impl Message {
    /// The data, as they are in the file.
    pub fn data(&self) -> &[u8] {
        &self.chunk[self.at..][..self.bytes]
    }

    /// It without the rest of its chunk, if that is much larger: for one that is kept for long.
    pub fn alone(self) -> Message {
        if self.chunk.len() / 2 <= self.bytes {
            return self;
        }
        let chunk = Arc::new(self.data().to_vec());
        Message { chunk, at: 0, ..self }
    }
}

/// What [`Messages`] can meet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum MessagesError {
    /// A chunk cannot be read. The messages behind it follow.
    #[error("{0}")]
    Lost(Loss),
    /// The file system refused. Nothing follows.
    #[error("the file cannot be read: {0}")]
    Io(#[from] io::Error),
    /// The order of time needs more memory than it may take. Nothing follows.
    #[error("more than {OVERLAPPING_MAX} messages are in chunks whose times overlap")]
    Overlapping,
}

impl BagReader<File> {
    /// Opens a file. A broken one, and one without a summary, is read once.
    ///
    /// # Errors
    /// If it cannot be opened, or is no MCAP file.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, OpenError> {
        BagReader::new(File::open(path)?)
    }
}

impl<S: Source> BagReader<S> {
    /// Opens whatever has the bytes of a file.
    ///
    /// # Errors
    /// If it cannot be read, or is no MCAP file.
    pub fn new(source: S) -> Result<Self, OpenError> {
        let source = Arc::new(source);
        let mut window = Window::new(source.clone())?;
        let header = Header::read(&mut window)?;
        let ending = Ending::read(&mut window)?;
        let mut info = Info::of_header(window.source_bytes(), &header);
        if let Ending::Complete { summary: Some(summary), .. } = &ending
            && let Some(Indexed { blocks, compressions }) = block::indexed(summary)
        {
            info.definitions = summary.definitions.clone();
            info.statistics = summary.statistics.clone().unwrap_or_default();
            let mut extras = summary.extras.clone();
            extras.sort_unstable();
            return Ok(BagReader {
                source,
                info,
                blocks: blocks.into(),
                publish: OnceLock::new(),
                extras,
                compressions,
                bytes_by_channel: None,
            });
        }
        let mut scanner = Scanner::with_ending(window, header, ending);
        let scanned = block::scanned(&mut scanner)?;
        info.scanned(&scanner);
        Ok(BagReader {
            source,
            info,
            blocks: scanned.blocks.into(),
            publish: scanned.publish.into(),
            extras: scanned.extras,
            compressions: scanner.compressions().clone(),
            bytes_by_channel: Some(scanned.bytes_by_channel),
        })
    }

    /// Its definitions and statistics.
    pub fn info(&self) -> &Info {
        &self.info
    }

    /// What was lost, if all of the file was read when it was opened.
    pub fn report(&self) -> Option<&Report> {
        self.info.report.as_ref()
    }

    /// How many chunks there are, by the name of their compression, which is empty for none.
    pub fn compressions(&self) -> &BTreeMap<String, u64> {
        &self.compressions
    }

    /// How many bytes the messages of each channel have, unpacked.
    ///
    /// # Errors
    /// Those of the file system.
    pub fn sizes(&self) -> io::Result<Sizes> {
        match &self.bytes_by_channel {
            Some(bytes) => Ok(Sizes { bytes: bytes.clone(), are_estimated: false }),
            None => Sizes::estimate(&self.source, &self.blocks),
        }
    }

    /// What the recorder lost, by topic, as far as it wrote that to the file.
    pub fn recorded_losses(&self) -> BTreeMap<String, RecordedLosses> {
        RecordedLosses::read(&self.source, &self.blocks, &self.info.definitions)
    }

    /// The ids of the channels of a topic.
    pub fn channels_of(&self, topic: &str) -> BTreeSet<u16> {
        let channels = self.info.definitions.channels.iter();
        channels.filter(|(_, channel)| channel.topic == topic).map(|(id, _)| *id).collect()
    }

    /// The selected messages, by time; those of the same time in the order of the file.
    ///
    /// # Errors
    /// Those of the file system, if the times of publication have to be found first.
    pub fn messages(&self, selection: &Selection) -> io::Result<Messages<S>> {
        let publish = match selection.by {
            Time::Log => None,
            Time::Publish => Some(self.publish_times()?),
        };
        let times = |number: usize| publish.map_or(self.blocks[number].log, |all| all[number]);
        let mut pending = Vec::new();
        for (number, block) in self.blocks.iter().enumerate() {
            let (first, last) = times(number);
            let is_in_time = selection.start_ns.is_none_or(|start| last >= start)
                && selection.end_ns.is_none_or(|end| first < end);
            let has_channel = block.channels.is_empty()
                || selection
                    .channels
                    .as_ref()
                    .is_none_or(|ids| block.channels.iter().any(|id| ids.contains(id)));
            if is_in_time && has_channel {
                pending.push((first, number));
            }
        }
        pending.sort_unstable_by(|one, other| other.cmp(one));
        Ok(Messages {
            source: self.source.clone(),
            blocks: self.blocks.clone(),
            filter: Filter::new(selection, &self.info.definitions),
            pending,
            open: HashMap::new(),
            next: BinaryHeap::new(),
            loaded_bytes: 0,
            entries: 0,
            failed: Vec::new(),
            has_ended: false,
        })
    }

    /// Calls for each attachment and each record of metadata, in the order of the file, until it
    /// returns an error.
    ///
    /// # Errors
    /// Those of the file system, and those of the call.
    pub fn each_extra<E: From<io::Error>>(
        &self,
        mut each: impl FnMut(Item<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        for (at, bytes) in &self.extras {
            let is_there = at.checked_add(*bytes).is_some_and(|end| end <= self.info.bytes);
            if !is_there || *bytes > RECORD_BYTES_MAX {
                continue;
            }
            let mut record = vec![0; *bytes as usize];
            let read = read_full(&self.source, &mut record, *at)?;
            let Some((head, fields)) = record[..read].split_first_chunk::<RECORD_HEAD>() else {
                continue;
            };
            match record_head(head).0 {
                op::ATTACHMENT => {
                    if let Some((attachment, true)) = format::attachment(fields) {
                        each(Item::Attachment(attachment))?;
                    }
                }
                op::METADATA if *bytes <= DEFINITION_BYTES_MAX => {
                    if let Some((name, values)) = format::metadata(fields) {
                        each(Item::Metadata { name: name.to_owned(), values })?;
                    }
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn publish_times(&self) -> io::Result<&[(u64, u64)]> {
        if let Some(known) = self.publish.get() {
            return Ok(known);
        }
        let times = self.blocks.iter().map(|block| {
            // What is lost comes first.
            Ok(block.publish_times(&self.source)?.unwrap_or((0, u64::MAX)))
        });
        let times = times.collect::<io::Result<Vec<_>>>()?;
        Ok(self.publish.get_or_init(|| times))
    }
}

/// The messages of a file, by time. It keeps a few chunks in memory: those whose times overlap, up
/// to [`CHUNKS_BYTES_MAX`].
pub struct Messages<S = File> {
    source: Arc<S>,
    blocks: Arc<[Block]>,
    filter: Filter,
    /// The begin in time of blocks that are not yet open, and their numbers; the last is first.
    pending: Vec<(u64, usize)>,
    open: HashMap<usize, OpenBlock>,
    /// For each open block, the time of its next message and its number.
    next: BinaryHeap<Reverse<(u64, usize)>>,
    loaded_bytes: usize,
    /// Messages of open blocks.
    entries: usize,
    /// What was lost, and is not yet returned.
    failed: Vec<MessagesError>,
    has_ended: bool,
}

/// A block with messages that were not yet returned.
struct OpenBlock {
    /// `None` if the memory was needed for others.
    chunk: Option<Arc<Vec<u8>>>,
    /// Times and places of its messages, and how many were returned.
    entries: Vec<(u64, u32)>,
    returned: usize,
}

impl<S: Source> Iterator for Messages<S> {
    type Item = Result<Message, MessagesError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            if let Some(error) = self.failed.pop() {
                return Some(Err(error));
            }
            if self.has_ended {
                return None;
            }
            let now = self.next.peek().map(|Reverse((time, _))| *time);
            if let Some((_, number)) =
                self.pending.pop_if(|(start, _)| now.is_none_or(|now| *start <= now))
            {
                self.open_block(number);
                continue;
            }
            let Reverse((_, number)) = self.next.pop()?;
            if let Some(message) = self.take(number) {
                return Some(Ok(message));
            }
        }
    }
}

impl<S: Source> Messages<S> {
    fn open_block(&mut self, number: usize) {
        let Some(records) = self.load(number) else { return };
        let mut entries = Vec::new();
        let filter = &self.filter;
        let read = records.each_message(|head, at| {
            if let (Some(time), Ok(at)) = (filter.time_of(&head), u32::try_from(at)) {
                entries.push((time, at));
            }
        });
        if let Err(cause) = read {
            let loss = block::loss(&self.blocks[number], cause);
            self.failed.push(MessagesError::Lost(loss));
        }
        entries.sort_unstable(); // They nearly always are sorted.
        let Some((first, _)) = entries.first() else { return };
        self.entries += entries.len();
        if self.entries > OVERLAPPING_MAX {
            self.end(MessagesError::Overlapping);
            return;
        }
        self.next.push(Reverse((*first, number)));
        self.loaded_bytes += records.bytes.len();
        let chunk = Some(Arc::new(records.bytes));
        self.open.insert(number, OpenBlock { chunk, entries, returned: 0 });
        self.free_memory(number);
    }

    /// The next message of an open block.
    fn take(&mut self, number: usize) -> Option<Message> {
        if self.open.get(&number)?.chunk.is_none() {
            match self.load(number) {
                Some(records) => {
                    self.loaded_bytes += records.bytes.len();
                    self.open.get_mut(&number)?.chunk = Some(Arc::new(records.bytes));
                    self.free_memory(number);
                }
                None => {
                    self.close(number);
                    return None;
                }
            }
        }
        let block = self.open.get_mut(&number)?;
        let chunk = block.chunk.clone()?;
        let (_, at) = block.entries[block.returned];
        block.returned += 1;
        match block.entries.get(block.returned) {
            Some((time, _)) => self.next.push(Reverse((*time, number))),
            None => self.close(number),
        }
        let at = at as usize;
        let (head, fields) = chunk.get(at..)?.split_first_chunk()?;
        let (_, bytes) = record_head(head);
        // It was checked when the block was opened; the file may have changed since.
        let fields = fields.get(..usize::try_from(bytes).ok()?)?;
        let (head, data) = format::message(fields)?;
        let bytes = data.len();
        Some(Message { head, at: at + MESSAGE_HEAD, bytes, chunk })
    }

    fn close(&mut self, number: usize) {
        if let Some(block) = self.open.remove(&number) {
            self.entries -= block.entries.len();
            self.loaded_bytes -= block.chunk.map_or(0, |chunk| chunk.len());
        }
    }

    /// Forgets the chunks that are needed last, if there are too many.
    fn free_memory(&mut self, keep: usize) {
        while self.loaded_bytes > CHUNKS_BYTES_MAX {
            let loaded = self
                .open
                .iter_mut()
                .filter(|(number, block)| **number != keep && block.chunk.is_some());
            let last = loaded.max_by_key(|(_, block)| block.entries[block.returned].0);
            let Some((_, block)) = last else { return };
            self.loaded_bytes -= block.chunk.take().map_or(0, |chunk| chunk.len());
        }
    }

    fn load(&mut self, number: usize) -> Option<Records> {
        let block = &self.blocks[number];
        match block.load(&self.source) {
            Ok(Ok(records)) => return Some(records),
            Ok(Err(cause)) => {
                self.failed.push(MessagesError::Lost(block::loss(block, cause)));
            }
            Err(error) => self.end(error.into()),
        }
        None
    }

    fn end(&mut self, error: MessagesError) {
        self.has_ended = true;
        self.failed.push(error);
    }
}

/// Which messages of a block are wanted.
struct Filter {
    /// By the id of a channel.
    channels: Vec<bool>,
    start_ns: u64,
    /// `None`: no end.
    end_ns: Option<u64>,
    by: Time,
}

impl Filter {
    fn new(selection: &Selection, definitions: &Definitions) -> Filter {
        let mut channels = vec![false; usize::from(u16::MAX) + 1];
        for id in definitions.channels.keys() {
            let wanted = selection.channels.as_ref();
            channels[usize::from(*id)] = wanted.is_none_or(|wanted| wanted.contains(id));
        }
        let (start_ns, end_ns) = (selection.start_ns.unwrap_or(0), selection.end_ns);
        Filter { channels, start_ns, end_ns, by: selection.by }
    }

    /// Its time, if it is wanted.
    fn time_of(&self, head: &MessageHead) -> Option<u64> {
        let time = self.by.of(head);
        let is_in_time = time >= self.start_ns && self.end_ns.is_none_or(|end| time < end);
        (is_in_time && self.channels[usize::from(head.channel)]).then_some(time)
    }
}
