//! Compares two files by topic: how many messages there are, which are missing, and their values.
//!
//! Both files are read once, each in order of log time. A message waits for its counterpart; of the
//! two files the one is read on whose messages wait less, so that files of different times go
//! together. What waits is bounded: see [`WAITING_BYTES_MAX`].

use std::cmp::Ordering;
use std::collections::{BTreeMap, BTreeSet, VecDeque};

use crate::compare::{Comparison, Difference, larger};
use crate::ending::Definitions;
use crate::format::MessageHead;
use crate::info::Info;
use crate::limits::WAITING_BYTES_MAX;
use crate::message_type::MessageType;
use crate::reader::{BagReader, Message, Messages, MessagesError, Selection};
use crate::source::Source;

/// How two files are compared.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct DiffOptions {
    /// By how much floats may differ; of numbers above 1, by how large a part of them.
    pub tolerance: f64,
    /// Which messages of a topic are compared with each other.
    pub pairing: Pairing,
    /// The topics; all if there are none.
    pub topics: Option<BTreeSet<String>>,
}

impl Default for DiffOptions {
    fn default() -> Self {
        DiffOptions { tolerance: 1e-6, pairing: Pairing::Auto, topics: None }
    }
}

/// Which messages of a topic are compared with each other.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Pairing {
    /// By sequence if a topic's numbers only grow in both files, and if they begin with the same
    /// number or the files are of the same time; otherwise by order. A replay is of another time,
    /// and numbers its messages anew.
    #[default]
    Auto,
    /// Those with the same sequence number.
    Sequence,
    /// The first with the first, and so on.
    Order,
}

/// What differs between two files. The first number of a pair is of the first file.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Diff {
    /// The topics of both files, by name.
    pub topics: BTreeMap<String, TopicDiff>,
    /// Chunks that could not be read, in each file.
    pub losses: [u64; 2],
}

impl Diff {
    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.losses == [0; 2] && self.topics.values().all(TopicDiff::is_same)
    }
}

/// What differs in a topic.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct TopicDiff {
    /// Whether each file has the topic.
    pub is_in: [bool; 2],
    /// The name of the type in each file; empty if there is none.
    pub types: [String; 2],
    /// Whether the schemas or the encodings differ.
    pub schemas_differ: bool,
    /// Messages.
    pub messages: [u64; 2],
    /// Sequence numbers that are left out; `None` if the numbers do not count messages.
    pub missing: [Option<u64>; 2],
    /// Pairs of messages that were compared.
    pub pairs: u64,
    /// How they were paired: by sequence, otherwise by order.
    pub by_sequence: bool,
    /// Messages without a counterpart.
    pub only_in: [u64; 2],
    /// Pairs that were too far apart to be compared.
    pub skipped: u64,
    /// Pairs that differ.
    pub different: u64,
    /// The parts that differ, by path.
    pub fields: BTreeMap<String, FieldDiff>,
    /// Why values were compared byte by byte only, if so.
    pub not_read: Option<String>,
}

/// What differs in a part of the messages of a topic.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct FieldDiff {
    /// Pairs of messages in which it differs.
    pub messages: u64,
    /// Of numbers: how far they are apart at most.
    pub largest: Option<f64>,
    /// The number of the first pair in which it differs, from 0, and the values there.
    pub first: (u64, [String; 2]),
}

impl TopicDiff {
    /// Whether nothing differs.
    pub fn is_same(&self) -> bool {
        self.is_in == [true; 2]
            && !self.schemas_differ
            && (self.only_in, self.different, self.skipped) == ([0; 2], 0, 0)
    }

    fn add(&mut self, number: u64, differences: Vec<Difference>) {
        self.different += u64::from(!differences.is_empty());
        for Difference { path, by, texts } in differences {
            if self.fields.len() >= FIELDS_MAX && !self.fields.contains_key(&path) {
                continue;
            }
            let field = self
                .fields
                .entry(path)
                .or_insert_with(|| FieldDiff { first: (number, texts), ..FieldDiff::default() });
            field.messages += 1;
            field.largest = larger(field.largest, by);
        }
    }
}

/// Compares two files.
///
/// ```
/// # use myelin_bag::{Channel, MessageHead, Options, TopicFormat, Schema, Writer};
/// use myelin_bag::{BagReader, DiffOptions, diff};
///
/// # let folder = tempfile::tempdir()?;
/// # let paths = [("a", 1.0_f32), ("b", 1.5)].map(|(name, x)| {
/// #     let path = folder.path().join(name);
/// #     let mut writer = Writer::create(&path, Options::default()).unwrap();
/// #     let format = TopicFormat::new(&Schema::layout("Speed{x: f32 @0} 4"));
/// #     let schema = writer.add_schema(&format.schema().as_schema()).unwrap();
/// #     let channel = writer.add_channel(&format.channel("/speed", schema)).unwrap();
/// #     let head = MessageHead { channel, ..MessageHead::default() };
/// #     writer.write(&head, &format.message(&x.to_le_bytes(), &mut Vec::new())).unwrap();
/// #     path
/// # });
/// let [first, second] = paths.map(|path| BagReader::open(path).unwrap());
/// let diff = diff(&first, &second, &DiffOptions::default())?;
/// assert!(!diff.is_same());
/// assert_eq!(diff.topics["/speed"].fields["x"].largest, Some(0.5));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// If one of them cannot be read.
pub fn diff<A: Source, B: Source>(
    first: &BagReader<A>,
    second: &BagReader<B>,
    options: &DiffOptions,
) -> Result<Diff, MessagesError> {
    let mut topics = Topics::new([first.info(), second.info()], options);
    let mut messages =
        (first.messages(&topics.selection(0))?, second.messages(&topics.selection(1))?);
    let mut next = [topics.next(0, &mut messages.0)?, topics.next(1, &mut messages.1)?];
    loop {
        let side = match &next {
            [None, None] => break,
            [Some(one), Some(other)] => usize::from(topics.is_later(&one.head, &other.head)),
            [one, _] => usize::from(one.is_none()),
        };
        let following = match side {
            0 => topics.next(0, &mut messages.0)?,
            _ => topics.next(1, &mut messages.1)?,
        };
        if let Some(message) = std::mem::replace(&mut next[side], following) {
            topics.take(side, message);
        }
    }
    Ok(topics.end())
}

/// The comparison, while both files are read.
struct Topics<'f> {
    options: &'f DiffOptions,
    topics: Vec<Topic<'f>>,
    channels: [BTreeMap<u16, Reading>; 2],
    /// Whether the files are of the same time.
    overlap: bool,
    /// From the time of the first file to that of the second.
    offset_ns: i128,
    waiting_bytes: usize,
    losses: [u64; 2],
}

/// How the messages of a channel are read, and the number of its topic.
struct Reading {
    topic: usize,
    ty: Result<MessageType, String>,
}

struct Topic<'f> {
    name: &'f str,
    diff: TopicDiff,
    /// Of each file, how many channels it is.
    channels: [usize; 2],
    sequences: [Sequences; 2],
    /// Whether messages are paired by sequence, once that is known.
    by_sequence: Option<bool>,
    waiting: [VecDeque<Waiting>; 2],
    waiting_bytes: [usize; 2],
    /// Messages whose counterparts were given up.
    owed: [u64; 2],
}

struct Waiting {
    /// Its sequence number, as one that never falls.
    key: u64,
    message: Message,
}

impl<'f> Topics<'f> {
    fn new(infos: [&'f Info; 2], options: &'f DiffOptions) -> Topics<'f> {
        let times = infos.map(|info| info.statistics.times);
        let overlap = times[0].0 <= times[1].1 && times[1].0 <= times[0].1;
        let offset_ns = if overlap { 0 } else { i128::from(times[1].0) - i128::from(times[0].0) };
        let mut topics = Topics {
            options,
            topics: Vec::new(),
            channels: Default::default(),
            overlap,
            offset_ns,
            waiting_bytes: 0,
            losses: [0; 2],
        };
        let mut known = BTreeMap::new();
        let mut schemas = BTreeMap::new();
        for (side, info) in infos.into_iter().enumerate() {
            let Definitions { schemas: defined, channels } = &info.definitions;
            for (id, channel) in channels {
                let name = channel.topic.as_str();
                if options.topics.as_ref().is_some_and(|wanted| !wanted.contains(name)) {
                    continue;
                }
                let number = *known.entry(name).or_insert_with(|| {
                    topics.topics.push(Topic::new(name));
                    topics.topics.len() - 1
                });
                let schema = defined.get(&channel.schema);
                let topic = &mut topics.topics[number];
                topic.channels[side] += 1;
                topic.diff.is_in[side] = true;
                topic.diff.types[side] = schema.map(|it| it.name.clone()).unwrap_or_default();
                let described = (channel.encoding.as_str(), schema);
                let first = *schemas.entry(number).or_insert(described);
                topic.diff.schemas_differ |= first != described;
                let ty = MessageType::new(channel, schema).map_err(|error| error.to_string());
                if let Err(why) = &ty {
                    topic.diff.not_read = Some(why.clone());
                }
                topics.channels[side].insert(*id, Reading { topic: number, ty });
            }
        }
        topics
    }

    fn selection(&self, side: usize) -> Selection {
        let channels = Some(self.channels[side].keys().copied().collect());
        Selection { channels, ..Selection::default() }
    }

    /// The next message of a file. What is lost before it is counted.
    fn next<S: Source>(
        &mut self,
        side: usize,
        from: &mut Messages<S>,
    ) -> Result<Option<Message>, MessagesError> {
        for message in from {
            match message {
                Ok(message) => return Ok(Some(message)),
                Err(MessagesError::Lost(_)) => self.losses[side] += 1,
                Err(error) => return Err(error),
            }
        }
        Ok(None)
    }

    /// Whether a message of the first file is later than one of the second, as both are paired.
    fn is_later(&self, one: &MessageHead, other: &MessageHead) -> bool {
        i128::from(one.log_ns) + self.offset_ns > i128::from(other.log_ns)
    }

    fn take(&mut self, side: usize, message: Message) {
        let Some(reading) = self.channels[side].get(&message.head.channel) else { return };
        let number = reading.topic;
        let topic = &mut self.topics[number];
        topic.diff.messages[side] += 1;
        let key = topic.sequences[side].next(message.head.sequence);
        if topic.diff.is_in != [true; 2] {
            topic.diff.only_in[side] += 1;
            return;
        }
        if topic.owed[side] > 0 {
            topic.owed[side] -= 1;
            return;
        }
        let message = message.alone();
        self.waiting_bytes += waiting_bytes(&message);
        topic.waiting_bytes[side] += waiting_bytes(&message);
        topic.waiting[side].push_back(Waiting { key, message });
        if topic.by_sequence.is_none() && topic.waiting.iter().all(|waiting| waiting.len() > 1) {
            topic.decide(self.options.pairing, self.overlap);
        }
        self.pair(number);
        while self.waiting_bytes > WAITING_BYTES_MAX {
            self.give_up();
        }
    }

    /// Compares what has a counterpart.
    fn pair(&mut self, number: usize) {
        let topic = &mut self.topics[number];
        let Some(by_sequence) = topic.by_sequence else { return };
        while let [Some(one), Some(other)] = [0, 1].map(|side| topic.waiting[side].front()) {
            let order = if by_sequence { one.key.cmp(&other.key) } else { Ordering::Equal };
            let pop = match order {
                Ordering::Less => [true, false],
                Ordering::Greater => [false, true],
                Ordering::Equal => [true, true],
            };
            let popped = [0, 1].map(|side| {
                let message = pop[side].then(|| topic.pop(side))??;
                self.waiting_bytes -= waiting_bytes(&message);
                Some(message)
            });
            match popped {
                [Some(one), Some(other)] => {
                    let times = (i128::from(one.head.log_ns), i128::from(other.head.log_ns));
                    if !self.overlap {
                        self.offset_ns = times.1 - times.0;
                    }
                    let types = [(0, &one), (1, &other)];
                    let types = types.map(|(side, it)| &self.channels[side][&it.head.channel].ty);
                    let found = compare(types, [&one, &other], &topic.diff, self.options.tolerance);
                    let pair = topic.diff.pairs;
                    topic.diff.pairs += 1;
                    topic.diff.add(pair, found);
                }
                [one, _] => topic.diff.only_in[usize::from(one.is_none())] += 1,
            }
        }
    }

    /// Of the topic with the most that waits, an eighth no longer does.
    fn give_up(&mut self) {
        let waiting = |topic: &Topic<'_>| topic.waiting_bytes.iter().sum::<usize>();
        let most = self.topics.iter_mut().max_by_key(|topic| waiting(topic));
        let Some(topic) = most.filter(|topic| waiting(topic) > 0) else {
            self.waiting_bytes = 0;
            return;
        };
        topic.decide(self.options.pairing, self.overlap);
        let side = usize::from(topic.waiting_bytes[1] > topic.waiting_bytes[0]);
        for _ in 0..topic.waiting[side].len().div_ceil(8) {
            let Some(message) = topic.pop(side) else { break };
            self.waiting_bytes -= waiting_bytes(&message);
            if topic.by_sequence == Some(true) {
                topic.diff.only_in[side] += 1;
            } else {
                topic.diff.skipped += 1;
                topic.owed[1 - side] += 1;
            }
        }
    }

    fn end(mut self) -> Diff {
        for number in 0..self.topics.len() {
            self.topics[number].decide(self.options.pairing, self.overlap);
            self.pair(number);
        }
        let topics = self.topics.into_iter().map(|mut topic| {
            for side in [0, 1] {
                topic.diff.only_in[side] += topic.waiting[side].len() as u64;
                // They never came.
                topic.diff.skipped -= topic.owed[1 - side];
                topic.diff.only_in[side] += topic.owed[1 - side];
                topic.diff.missing[side] = topic.sequences[side].missing();
            }
            topic.diff.by_sequence = topic.by_sequence == Some(true);
            (topic.name.to_owned(), topic.diff)
        });
        Diff { topics: topics.collect(), losses: self.losses }
    }
}

impl<'f> Topic<'f> {
    fn new(name: &'f str) -> Topic<'f> {
        Topic {
            name,
            diff: TopicDiff::default(),
            channels: [0; 2],
            sequences: Default::default(),
            by_sequence: None,
            waiting: Default::default(),
            waiting_bytes: [0; 2],
            owed: [0; 2],
        }
    }

    fn decide(&mut self, pairing: Pairing, overlap: bool) {
        let count = self.sequences.iter().all(|it| it.steps_back == 0) && self.channels == [1; 2];
        let first = |side: usize| self.waiting[side].front().map(|it| it.message.head.sequence);
        let automatic = || count && (overlap || first(0) == first(1));
        self.by_sequence.get_or_insert_with(|| match pairing {
            Pairing::Auto => automatic(),
            Pairing::Sequence => true,
            Pairing::Order => false,
        });
    }

    fn pop(&mut self, side: usize) -> Option<Message> {
        let Waiting { message, .. } = self.waiting[side].pop_front()?;
        self.waiting_bytes[side] -= waiting_bytes(&message);
        Some(message)
    }
}

/// The sequence numbers of a topic in a file.
#[derive(Default)]
struct Sequences {
    last: Option<u32>,
    /// How often they began anew.
    begins: u64,
    count: u64,
    steps_back: u64,
    missing: u64,
}

impl Sequences {
    /// A number that never falls. A sequence that wraps or begins anew goes on.
    fn next(&mut self, sequence: u32) -> u64 {
        self.count += 1;
        if let Some(last) = self.last {
            let forward = sequence.wrapping_sub(last);
            let is_forward = forward > 0 && forward < 1 << 31;
            if is_forward {
                self.missing += u64::from(forward) - 1;
            } else {
                self.steps_back += 1;
            }
            self.begins += u64::from(sequence < last);
        }
        self.last = Some(sequence);
        self.begins << 32 | u64::from(sequence)
    }

    /// `None` if they go back more often than publishers begin anew.
    fn missing(&self) -> Option<u64> {
        (self.count > 0 && self.steps_back * 100 <= self.count).then_some(self.missing)
    }
}

fn compare(
    types: [&Result<MessageType, String>; 2],
    messages: [&Message; 2],
    topic: &TopicDiff,
    tolerance: f64,
) -> Vec<Difference> {
    let [one, other] = messages.map(Message::data);
    if one == other && !topic.schemas_differ {
        return Vec::new();
    }
    let differ = |texts| vec![Difference { path: String::new(), by: None, texts }];
    let [Ok(of_one), Ok(of_other)] = types else {
        let is_same = one == other;
        let text = |data: &[u8]| format!("{} B", data.len());
        return if is_same { Vec::new() } else { differ([text(one), text(other)]) };
    };
    let is_padding = |name: &str| of_one.is_padding(name) || of_other.is_padding(name);
    let compared = match (of_one.content(one), of_other.content(other)) {
        (Ok(one), Ok(other)) => Comparison::new(tolerance, &is_padding).run(&one, &other),
        // Broken in the same way: they were compared above.
        (Err(one), Err(other)) => return differ([one, other]),
        (Err(one), Ok(_)) => return differ([one, "a value".into()]),
        (Ok(_), Err(other)) => return differ(["a value".into(), other]),
    };
    compared.unwrap_or_else(|error| differ([error, String::new()]))
}

/// What a message takes while it waits.
fn waiting_bytes(message: &Message) -> usize {
    message.data().len() + WAITING_OVERHEAD
}

const WAITING_OVERHEAD: usize = 128;
/// Paths that are listed of a topic.
const FIELDS_MAX: usize = 256;
