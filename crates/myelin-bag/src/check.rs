//! Looks whether everything in a file agrees: lengths, indexes, statistics, times, definitions.
//!
//! First all messages are read. If nothing is lost, a second pass compares what the file says of
//! them in several places, which readers that seek rely on.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;

use crate::chunk::span;
use crate::compression::unpack;
use crate::ending::{Definitions, Ending, Header, OpenError, Summary};
use crate::format::{self, ChunkIndex, Fields, MAGIC, RECORD_HEAD, Statistics, op, record_head};
use crate::limits::{LOSSES_MAX, RECORD_BYTES_MAX};
use crate::scanner::{Loss, Report, Scanner};
use crate::source::{Source, WINDOW_BYTES, Window};

/// What a check found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Checked {
    /// What was read.
    pub report: Report,
    /// The first things that are wrong, in the order in which they were found.
    pub findings: Vec<Finding>,
    /// Others, which are not listed.
    pub findings_more: u64,
}

impl Checked {
    /// Whether the file is right. It may have findings that only some readers mind.
    pub fn is_right(&self) -> bool {
        self.findings_more == 0 && self.findings.iter().all(|finding| !finding.problem.is_error())
    }
}

/// Something that is wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Finding {
    /// The place in the file.
    pub at: u64,
    /// What is wrong there.
    pub problem: Problem,
}

/// What is wrong.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[expect(missing_docs, reason = "their texts say it")]
pub enum Problem {
    #[error("{0}")]
    Loss(Loss),
    #[error("the file was not completed: it has no summary, or a broken one; repair it")]
    Incomplete,
    #[error("the file has no summary: readers have to read all of it")]
    NoSummary,
    #[error("the first record is no header")]
    NoHeader,
    #[error("the statistics count {said} for {what}, and the file has {found}")]
    Count { what: &'static str, said: u64, found: u64 },
    #[error(
        "the statistics count {said} for the messages of channel {channel}, and the file has {found}"
    )]
    ChannelCount { channel: u16, said: u64, found: u64 },
    #[error("the statistics say that messages are of {said:?}, and they are of {found:?}")]
    Times { said: (u64, u64), found: (u64, u64) },
    #[error("a chunk says that its messages are of {said:?}, and they are of {found:?}")]
    ChunkTimes { said: (u64, u64), found: (u64, u64) },
    #[error("the index of channel {0} does not agree with the messages in its chunk")]
    MessageIndex(u16),
    #[error("the messages of channel {0} in a chunk have no index")]
    NoMessageIndex(u16),
    #[error("the summary's index of the chunk at byte {0} does not agree with the chunk")]
    ChunkIndex(u64),
    #[error("the summary has no index of this chunk")]
    NoChunkIndex,
    #[error("{what} {id} is defined in two ways")]
    Redefined { what: &'static str, id: u16 },
    #[error("channel {channel} has schema {schema}, which is not defined")]
    NoSchema { channel: u16, schema: u16 },
    #[error("channel {0} has no schema: rosbag2 and PlotJuggler refuse it")]
    Schemaless(u16),
    #[error("the checksum of the data section is wrong")]
    DataChecksum,
    #[error("a schema has id 0, which stands for no schema")]
    SchemaZero,
    #[error("schema {0} has no encoding")]
    SchemaWithoutEncoding(u16),
    #[error("{what} {id} is defined in the summary only")]
    OnlyInSummary { what: &'static str, id: u16 },
    #[error("the summary lacks {what} {id}, which has messages")]
    NotInSummary { what: &'static str, id: u16 },
    #[error("the summary has several indexes of the chunk at byte {0}")]
    ChunkIndexTwice(u64),
    #[error("the summary has several records of statistics")]
    StatisticsTwice,
    #[error("{what} {id} is defined more than once")]
    DefinedTwice { what: &'static str, id: u16 },
    #[error("the messages of channel {0} in a chunk have several indexes")]
    MessageIndexTwice(u16),
    #[error("messages that are older than one before them: {0}, the first here")]
    Unordered(u64),
    #[error("messages in no chunk, which readers that use indexes miss: {0}, the first here")]
    OutsideChunks(u64),
    #[error("the header does not say what wrote the file")]
    NoLibrary,
    #[error("the header has profile {0:?}, which others do not know")]
    UnknownProfile(String),
}

impl Problem {
    /// Whether the file is wrong. If not, only some readers mind.
    pub fn is_error(&self) -> bool {
        use Problem::*;
        !matches!(
            self,
            NoSummary
                | NoMessageIndex(_)
                | Schemaless(_)
                | DefinedTwice { .. }
                | MessageIndexTwice(_)
                | Unordered(_)
                | OutsideChunks(_)
                | NoLibrary
                | UnknownProfile(_)
        )
    }
}

/// Such as `error at byte 4096: the summary has no index of this chunk`.
impl fmt::Display for Finding {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        let severity = if self.problem.is_error() { "error" } else { "warning" };
        match &self.problem {
            Problem::Loss(loss) => write!(to, "{severity}: {loss}"),
            problem => write!(to, "{severity} at byte {}: {problem}", self.at),
        }
    }
}

/// Reads all of a file, and looks whether everything in it agrees.
///
/// # Errors
/// If it is no MCAP file, or cannot be read.
pub fn check(source: impl Source) -> Result<Checked, OpenError> {
    let mut window = Window::new(source)?;
    let header = Header::read(&mut window)?;
    let ending = Ending::read(&mut window)?;
    let mut scanner = Scanner::with_ending(window, header.clone(), ending.clone());
    while scanner.next()?.is_some() {}
    let mut checked = Checked { report: scanner.report().clone(), ..Checked::default() };
    let definitions = scanner.definitions().clone();
    let mut window = scanner.into_window();
    for loss in checked.report.losses.clone() {
        checked.find(loss.at, Problem::Loss(loss));
    }
    let (data_end, summary) = match ending {
        Ending::Complete { data_end, summary } => (data_end, summary),
        Ending::Cut => (window.source_bytes(), None),
    };
    if !checked.report.is_complete {
        checked.find(window.source_bytes(), Problem::Incomplete);
    } else if summary.is_none() {
        checked.find(data_end, Problem::NoSummary);
    }
    checked.header(&header);
    checked.definitions(&definitions);
    if !checked.report.losses.is_empty() {
        return Ok(checked); // What follows would be found because of them.
    }
    let mut second = SecondPass { checked, definitions, ..SecondPass::default() };
    second.read(&mut window, data_end)?;
    if let Some(summary) = summary {
        second.compare(&summary, data_end);
    }
    Ok(second.checked)
}

impl Checked {
    fn find(&mut self, at: u64, problem: Problem) {
        if self.findings.len() >= LOSSES_MAX {
            self.findings_more += 1;
        } else {
            self.findings.push(Finding { at, problem });
        }
    }

    fn header(&mut self, header: &Header) {
        let at = MAGIC.len() as u64;
        if header.library.is_empty() {
            self.find(at, Problem::NoLibrary);
        }
        if !["", "ros1", "ros2"].contains(&header.profile.as_str()) {
            let shown = header.profile.chars().take(PROFILE_SHOWN).collect();
            self.find(at, Problem::UnknownProfile(shown));
        }
    }

    fn definitions(&mut self, definitions: &Definitions) {
        for (id, schema) in &definitions.schemas {
            if *id == 0 {
                self.find(0, Problem::SchemaZero);
            } else if schema.encoding.is_empty() {
                self.find(0, Problem::SchemaWithoutEncoding(*id));
            }
        }
        for (id, channel) in &definitions.channels {
            let (channel, schema) = (*id, channel.schema);
            if schema == 0 {
                self.find(0, Problem::Schemaless(channel));
            } else if !definitions.schemas.contains_key(&schema) {
                self.find(0, Problem::NoSchema { channel, schema });
            }
        }
    }
}

/// Compares chunks, indexes and definitions.
#[derive(Default)]
struct SecondPass {
    checked: Checked,
    /// What the summary should say of the chunk that begins there.
    chunks: BTreeMap<u64, ChunkSeen>,
    definitions: Definitions,
    /// The ids of schemas and channels in the data, and not only in the summary.
    schemas: BTreeSet<u16>,
    channels: BTreeSet<u16>,
    latest_ns: u64,
    /// Messages that are older than one before, and those in no chunk; and the first of each.
    unordered: Option<(u64, u64)>,
    outside: Option<(u64, u64)>,
}

struct ChunkSeen {
    times: (u64, u64),
    bytes: u64,
    compression: String,
    compressed_bytes: u64,
    uncompressed_bytes: u64,
    message_indexes: BTreeMap<u16, u64>,
    message_indexes_bytes: u64,
    /// Log times and offsets of messages whose index was not yet read.
    entries: BTreeMap<u16, Vec<(u64, u64)>>,
}

impl SecondPass {
    fn read(&mut self, window: &mut Window<impl Source>, data_end: u64) -> io::Result<()> {
        let mut at = MAGIC.len() as u64;
        let mut is_first = true;
        let mut unpacked = Vec::new();
        let mut chunk: Option<(u64, ChunkSeen)> = None;
        while at < data_end {
            let head = window.get(at, RECORD_HEAD as u64)?.and_then(|head| head.first_chunk());
            let Some((opcode, bytes)) = head.map(record_head) else { break };
            let next = at.saturating_add(RECORD_HEAD as u64).saturating_add(bytes);
            if std::mem::take(&mut is_first) && opcode != op::HEADER {
                self.checked.find(at, Problem::NoHeader);
            }
            let has_fields = matches!(
                opcode,
                op::CHUNK
                    | op::MESSAGE_INDEX
                    | op::SCHEMA
                    | op::CHANNEL
                    | op::MESSAGE
                    | op::DATA_END
            );
            if opcode != op::MESSAGE_INDEX
                && let Some((start, seen)) = chunk.take()
            {
                self.end_chunk(start, seen);
            }
            if has_fields && bytes <= RECORD_BYTES_MAX {
                let Some(fields) = window.get(at + RECORD_HEAD as u64, bytes)? else { break };
                match opcode {
                    op::CHUNK => {
                        let seen = self.chunk(fields, &mut unpacked, next - at, at);
                        chunk = seen.map(|seen| (at, seen));
                    }
                    op::MESSAGE_INDEX => self.message_index(fields, next - at, at, &mut chunk),
                    op::MESSAGE => {
                        count(&mut self.outside, at);
                        if let Some((head, _)) = format::message(fields) {
                            self.order(head.log_ns, at);
                        }
                    }
                    op::DATA_END => {
                        let crc = Fields(fields).u32().unwrap_or(0);
                        if crc != 0 && crc != checksum(window, at)? {
                            self.checked.find(at, Problem::DataChecksum);
                        }
                    }
                    _ => self.definition(opcode, fields, at),
                }
            }
            if opcode == op::DATA_END {
                break;
            }
            at = next;
        }
        if let Some((start, seen)) = chunk {
            self.end_chunk(start, seen);
        }
        if let Some((first, messages)) = self.unordered {
            self.checked.find(first, Problem::Unordered(messages));
        }
        if let Some((first, messages)) = self.outside.filter(|_| !self.chunks.is_empty()) {
            self.checked.find(first, Problem::OutsideChunks(messages));
        }
        Ok(())
    }

    fn order(&mut self, log_ns: u64, at: u64) {
        if log_ns < self.latest_ns {
            count(&mut self.unordered, at);
        }
        self.latest_ns = self.latest_ns.max(log_ns);
    }

    fn chunk(
        &mut self,
        fields: &[u8],
        unpacked: &mut Vec<u8>,
        bytes: u64,
        at: u64,
    ) -> Option<ChunkSeen> {
        let (head, records) = format::chunk(fields)?;
        let compressed_bytes = records.len() as u64;
        let records = match head.compression {
            "" => records,
            name => {
                unpack(name, records, head.uncompressed_bytes, unpacked).ok()?;
                unpacked
            }
        };
        let mut entries = BTreeMap::<u16, Vec<(u64, u64)>>::new();
        let mut times = None;
        let mut rest = Fields(records);
        while !rest.0.is_empty() {
            let offset = (records.len() - rest.0.len()) as u64;
            let (opcode, length) = (rest.u8()?, rest.u64()?);
            let fields = rest.take(usize::try_from(length).ok()?)?;
            match opcode {
                op::MESSAGE => {
                    let (head, _) = format::message(fields)?;
                    times = span(times, head.log_ns);
                    self.order(head.log_ns, at);
                    entries.entry(head.channel).or_default().push((head.log_ns, offset));
                }
                op::SCHEMA | op::CHANNEL => self.definition(opcode, fields, at),
                _ => {}
            }
        }
        let found = times.unwrap_or((0, 0));
        if head.times != found {
            self.checked.find(at, Problem::ChunkTimes { said: head.times, found });
        }
        if head.uncompressed_bytes != records.len() as u64 {
            let (said, found) = (head.uncompressed_bytes, records.len() as u64);
            self.checked.find(at, Problem::Count { what: "uncompressed bytes", said, found });
        }
        Some(ChunkSeen {
            times: head.times,
            bytes,
            compression: head.compression.to_owned(),
            compressed_bytes,
            uncompressed_bytes: head.uncompressed_bytes,
            message_indexes: BTreeMap::new(),
            message_indexes_bytes: 0,
            entries,
        })
    }

    fn message_index(
        &mut self,
        fields: &[u8],
        bytes: u64,
        at: u64,
        chunk: &mut Option<(u64, ChunkSeen)>,
    ) {
        let Some((channel, said)) = format::message_index(fields) else { return };
        let mut said: Vec<_> = said.collect();
        let Some((_, seen)) = chunk else {
            return self.checked.find(at, Problem::MessageIndex(channel));
        };
        seen.message_indexes_bytes += bytes;
        if said.is_empty() {
            return; // Some writers have one for each channel of the file.
        }
        if seen.message_indexes.insert(channel, at).is_some() {
            return self.checked.find(at, Problem::MessageIndexTwice(channel));
        }
        let mut found = seen.entries.remove(&channel).unwrap_or_default();
        said.sort_unstable();
        found.sort_unstable();
        if said != found {
            self.checked.find(at, Problem::MessageIndex(channel));
        }
    }

    fn end_chunk(&mut self, start: u64, mut seen: ChunkSeen) {
        for channel in std::mem::take(&mut seen.entries).into_keys() {
            self.checked.find(start, Problem::NoMessageIndex(channel));
        }
        self.chunks.insert(start, seen);
    }

    /// A definition may be repeated, but it has to be the same.
    fn definition(&mut self, opcode: u8, fields: &[u8], at: u64) {
        let problem = if opcode == op::SCHEMA {
            format::schema(fields).and_then(|(id, schema)| {
                if !self.schemas.insert(id) {
                    self.checked.find(at, Problem::DefinedTwice { what: "schema", id });
                }
                let known = self.definitions.schemas.get(&id)?;
                let is_same = known.as_schema() == schema;
                (!is_same).then_some(Problem::Redefined { what: "schema", id })
            })
        } else {
            format::channel(fields).and_then(|(id, channel)| {
                if !self.channels.insert(id) {
                    self.checked.find(at, Problem::DefinedTwice { what: "channel", id });
                }
                let is_same = self.definitions.channels.get(&id)? == &channel;
                (!is_same).then_some(Problem::Redefined { what: "channel", id })
            })
        };
        if let Some(problem) = problem {
            self.checked.find(at, problem);
        }
    }

    /// What the summary says, with what was found.
    fn compare(&mut self, summary: &Summary, at: u64) {
        let mut without_index: BTreeMap<_, _> = self.chunks.iter().collect();
        let mut problems = Vec::new();
        for fields in &summary.chunk_indexes {
            let Some(index) = format::chunk_index(fields) else { continue };
            let seen = without_index.remove(&index.start);
            if seen.is_none() && self.chunks.contains_key(&index.start) {
                problems.push((at, Problem::ChunkIndexTwice(index.start)));
            } else if !seen.is_some_and(|seen| seen.agrees(&index)) {
                problems.push((at, Problem::ChunkIndex(index.start)));
            }
        }
        if !summary.chunk_indexes.is_empty() {
            problems.extend(without_index.keys().map(|start| (**start, Problem::NoChunkIndex)));
        }
        for (at, problem) in problems {
            self.checked.find(at, problem);
        }
        self.summary_definitions(&summary.definitions, !summary.chunk_indexes.is_empty(), at);
        if summary.statistics_count > 1 {
            self.checked.find(at, Problem::StatisticsTwice);
        }
        if let Some(said) = &summary.statistics {
            self.statistics(said, at);
        }
    }

    fn summary_definitions(&mut self, summary: &Definitions, has_indexes: bool, at: u64) {
        let of_schemas = summary.schemas.keys().filter(|id| !self.schemas.contains(id));
        let of_schemas = of_schemas.map(|id| Problem::OnlyInSummary { what: "schema", id: *id });
        let of_channels = summary.channels.keys().filter(|id| !self.channels.contains(id));
        let of_channels = of_channels.map(|id| Problem::OnlyInSummary { what: "channel", id: *id });
        let mut problems: Vec<_> = of_schemas.chain(of_channels).collect();
        let used = self.checked.report.read.by_channel.keys().filter(|_| has_indexes);
        for id in used {
            let schema = self.definitions.channels.get(id).map_or(0, |channel| channel.schema);
            if !summary.channels.contains_key(id) {
                problems.push(Problem::NotInSummary { what: "channel", id: *id });
            } else if schema != 0 && !summary.schemas.contains_key(&schema) {
                problems.push(Problem::NotInSummary { what: "schema", id: schema });
            }
        }
        for problem in problems {
            self.checked.find(at, problem);
        }
    }

    fn statistics(&mut self, said: &Statistics, at: u64) {
        let found = self.checked.report.read.clone();
        let counts: [(_, u64, u64); 6] = [
            ("messages", said.messages, found.messages),
            ("schemas", said.schemas.into(), found.schemas.into()),
            ("channels", said.channels.into(), found.channels.into()),
            ("attachments", said.attachments.into(), found.attachments.into()),
            ("records of metadata", said.metadata.into(), found.metadata.into()),
            ("chunks", said.chunks.into(), found.chunks.into()),
        ];
        for (what, said, found) in counts {
            if said != found {
                self.checked.find(at, Problem::Count { what, said, found });
            }
        }
        if said.times != found.times {
            self.checked.find(at, Problem::Times { said: said.times, found: found.times });
        }
        let channels = said.by_channel.keys().chain(found.by_channel.keys());
        let channels: std::collections::BTreeSet<_> = channels.copied().collect();
        for channel in channels {
            let of = |counts: &BTreeMap<u16, u64>| counts.get(&channel).copied().unwrap_or(0);
            let (said, found) = (of(&said.by_channel), of(&found.by_channel));
            if said != found {
                self.checked.find(at, Problem::ChannelCount { channel, said, found });
            }
        }
    }
}

/// Counts one more, whose place is kept if it is the first.
fn count(counted: &mut Option<(u64, u64)>, at: u64) {
    let (_, messages) = counted.get_or_insert((at, 0));
    *messages += 1;
}

/// The checksum of all up to a place.
fn checksum(window: &mut Window<impl Source>, end: u64) -> io::Result<u32> {
    let (mut hasher, mut at) = (crc32fast::Hasher::new(), 0);
    while at < end {
        let part = window.up_to(at, (end - at).min(WINDOW_BYTES))?;
        if part.is_empty() {
            break;
        }
        hasher.update(part);
        at += part.len() as u64;
    }
    Ok(hasher.finalize())
}

impl ChunkSeen {
    fn agrees(&self, index: &ChunkIndex) -> bool {
        let mut said = index.message_indexes.clone();
        // Of channels without messages in the chunk: see above.
        said.retain(|channel, _| self.message_indexes.contains_key(channel));
        index.times == self.times
            && index.bytes == self.bytes
            && said == self.message_indexes
            && index.message_indexes_bytes == self.message_indexes_bytes
            && index.compression == self.compression
            && index.compressed_bytes == self.compressed_bytes
            && index.uncompressed_bytes == self.uncompressed_bytes
    }
}

/// Characters of a profile in a finding.
const PROFILE_SHOWN: usize = 40;
