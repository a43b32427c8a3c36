//! A trace in CSV: a header that names the columns, and a line for each message and subscriber.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashMap};
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use csv::ByteRecord;
use myelin_bench_kit::samples::{OUT_OF_ORDER, Record};

use crate::input_error::InputError;
use crate::lists::{count, plural};

/// What a file has.
#[derive(Debug)]
pub(super) struct TraceFile {
    /// In the order of their first messages.
    pub topics: Vec<TopicTrace>,
    /// Columns that say nothing to us.
    pub ignored: Vec<String>,
}

/// The messages of one topic.
#[derive(Debug, Default)]
pub(super) struct TopicTrace {
    /// `None` if the file names no topics.
    pub name: Option<String>,
    pub subscribers: u32,
    /// Messages that were published, with those of which only the number is known.
    pub sent: u64,
    /// Each published message that the file has, by id; an id is the sequence number if there is one.
    pub ping: Vec<Record>,
    /// Each taken message and subscriber, in the order of taking.
    pub pong: Vec<Record>,
    /// Messages that a subscriber took again.
    pub duplicates: u64,
    pub out_of_order: u64,
    /// Whether there are sequence numbers.
    pub is_numbered: bool,
    /// Whether the file shows which messages were lost.
    pub knows_lost: bool,
    /// The least and the largest; `None` if the file has no sizes.
    bytes: Option<[u64; 2]>,
}

impl TopicTrace {
    pub(super) fn first_ns(&self) -> u64 {
        self.ping.first().map_or(u64::MAX, |first| first.publish_entry_ns)
    }

    /// From the first message until one mean distance after the last, so that the number of messages
    /// over it is their rate.
    pub(super) fn span_ns(&self) -> [u64; 2] {
        let begin_ns = self.first_ns();
        let last_ns = self.ping.last().map_or(begin_ns, |last| last.publish_entry_ns);
        let span_ns = last_ns - begin_ns;
        [begin_ns, last_ns + span_ns / self.sent.saturating_sub(1).max(1)]
    }

    /// The size that all messages have.
    pub(super) fn one_size(&self) -> Option<u64> {
        self.bytes.filter(|[least, most]| least == most).map(|[bytes, _]| bytes)
    }

    /// Remarks for the report.
    pub(super) fn notes(&self) -> Vec<String> {
        let sizes = self.bytes.filter(|[least, most]| least < most);
        let sizes = sizes.map(|ends| {
            let [least, most] = ends.map(count);
            format!("messages of different sizes: {least} to {most} B")
        });
        let blind = (!self.knows_lost).then(|| {
            "lost messages are not known: the trace has no `sequence`, and every message has a \
             receive time"
                .to_owned()
        });
        sizes.into_iter().chain(blind).collect()
    }
}

/// Reads a file.
pub(super) fn read(path: &Path) -> Result<TraceFile, InputError> {
    let fails = |error: &dyn std::fmt::Display| {
        InputError::new(format!("{}: {error}", path.display()))
            .remedy("name a CSV file that can be read")
    };
    let mut file = BufReader::new(File::open(path).map_err(|error| fails(&error))?);
    let delimiter = delimiter(file.fill_buf().map_err(|error| fails(&error))?);
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .flexible(true)
        .trim(csv::Trim::All)
        .from_reader(file);
    let mut place = Place { path, line: 1 };
    let mut record = ByteRecord::new();
    let mut next = |record: &mut ByteRecord| reader.read_byte_record(record);
    if !next(&mut record).map_err(|error| fails(&error))? {
        return Err(place.wrong("the file is empty", HEADER));
    }
    let columns = Columns::of(&record, &place)?;
    let mut topics: Vec<(Option<String>, Vec<Row>)> = Vec::new();
    let mut known: HashMap<Vec<u8>, usize> = HashMap::new();
    let mut subscribers = Names::default();
    let mut rows = 0;
    while next(&mut record).map_err(|error| fails(&error))? {
        place.line = record.position().map_or(0, csv::Position::line);
        rows += 1;
        if rows > ROWS_MAX {
            let text = format!("more than {} messages", count(ROWS_MAX));
            return Err(place.wrong(&text, "give each part of the trace a file of its own"));
        }
        let row = columns.row(&record, &place, &mut subscribers)?;
        let topic = columns.topic.and_then(|at| record.get(at)).unwrap_or_default();
        let index = match known.get(topic) {
            Some(index) => *index,
            None => {
                if topics.len() == NAMES_MAX {
                    let text = format!("topic: more than {}", plural(NAMES_MAX, "topic"));
                    return Err(place.wrong(&text, "leave some out"));
                }
                let name = columns.topic.map(|at| columns.name(&record, at, &place));
                topics.push((name.transpose()?, Vec::new()));
                known.insert(topic.to_vec(), topics.len() - 1);
                topics.len() - 1
            }
        };
        topics[index].1.push(row);
    }
    if topics.is_empty() {
        return Err(
            place.wrong("there are no messages below the header", "write one line for each")
        );
    }
    let is_taken = |row: &Row| row.received_ns.is_some();
    if !topics.iter().flat_map(|(_, rows)| rows).any(is_taken) {
        let remedy = "leave the receive time empty for lost messages alone";
        return Err(place.wrong("no message has a receive time", remedy));
    }
    let of = |(name, rows)| topic(name, rows, &columns, &place);
    Ok(TraceFile {
        topics: topics.into_iter().map(of).collect::<Result<_, _>>()?,
        ignored: columns.ignored,
    })
}

/// The character between the fields of the header.
fn delimiter(begin: &[u8]) -> u8 {
    let header = begin.split(|byte| *byte == b'\n').next().unwrap_or_default();
    let mut others = b";\t".iter().copied();
    match header.contains(&b',') {
        true => b',',
        false => others.find(|it| header.contains(it)).unwrap_or(b','),
    }
}

/// Where an error is.
struct Place<'a> {
    path: &'a Path,
    line: u64,
}

impl Place<'_> {
    fn wrong(&self, what: &str, remedy: &str) -> InputError {
        self.wrong_at(self.line, what, remedy)
    }

    fn wrong_at(&self, line: u64, what: &str, remedy: &str) -> InputError {
        InputError::new(format!("{}:{line}: {what}", self.path.display())).remedy(remedy)
    }
}

/// A line.
#[derive(Clone, Copy, Debug)]
struct Row {
    line: u64,
    sent_ns: u64,
    received_ns: Option<u64>,
    bytes: Option<u64>,
    /// 0 if the file names no subscribers; `None` if a lost message names none.
    subscriber: Option<u16>,
    sequence: Option<u64>,
}

/// Numbers for names.
#[derive(Default)]
struct Names(HashMap<Vec<u8>, u16>);

impl Names {
    /// The number of a name; `None` if there are too many.
    fn number(&mut self, name: &[u8]) -> Option<u16> {
        if let Some(known) = self.0.get(name) {
            return Some(*known);
        }
        let number = Some(self.0.len()).filter(|number| *number < NAMES_MAX)? as u16;
        self.0.insert(name.to_vec(), number);
        Some(number)
    }
}

/// The columns of a file, by their places.
struct Columns {
    /// As the header has them.
    names: Vec<String>,
    sent: (usize, Unit),
    received: (usize, Unit),
    bytes: Option<usize>,
    topic: Option<usize>,
    subscriber: Option<usize>,
    sequence: Option<usize>,
    ignored: Vec<String>,
}

/// A unit of time: its name, and the digits from it down to nanoseconds.
type Unit = (&'static str, usize);

const UNITS: [Unit; 4] = [("ns", 0), ("us", 3), ("ms", 6), ("s", 9)];

impl Columns {
    fn of(header: &ByteRecord, place: &Place) -> Result<Self, InputError> {
        let mut names = Vec::new();
        for field in header {
            let Ok(name) = std::str::from_utf8(field) else {
                return Err(place.wrong("the header is not UTF-8", "save the file as UTF-8"));
            };
            names.push(name.trim_start_matches('\u{feff}').trim().to_lowercase());
        }
        let mut taken = vec![false; names.len()];
        let mut one = |accepts: &dyn Fn(&str) -> bool| -> Result<Option<usize>, InputError> {
            let places: Vec<usize> = (0..names.len()).filter(|at| accepts(&names[*at])).collect();
            places.iter().for_each(|at| taken[*at] = true);
            match places[..] {
                [first, second, ..] => {
                    let text = format!("columns `{}` and `{}`", names[first], names[second]);
                    Err(place.wrong(&text, "keep one of them"))
                }
                _ => Ok(places.first().copied()),
            }
        };
        let sent = one(&|name| unit_of(name, "sent").is_some())?;
        let received = one(&|name| unit_of(name, "received").is_some())?;
        let bytes = one(&|name| ["bytes", "size", "size_bytes", "payload_bytes"].contains(&name))?;
        let topic = one(&|name| name == "topic")?;
        let subscriber = one(&|name| name == "subscriber")?;
        let sequence = one(&|name| name == "sequence")?;
        let time = |found: Option<usize>, what: &str| match found {
            Some(at) => Ok((at, unit_of(&names[at], what).expect("it was found by its unit"))),
            None => {
                let wanted = format!("{what}_ns");
                let unknown =
                    InputError::unknown("column", &wanted, names.iter().map(String::as_str));
                Err(place.wrong(&unknown.to_string(), HEADER))
            }
        };
        let ignored = names.iter().zip(&taken).filter(|(_, taken)| !**taken);
        Ok(Columns {
            sent: time(sent, "sent")?,
            received: time(received, "received")?,
            bytes,
            topic,
            subscriber,
            sequence,
            ignored: ignored.map(|(name, _)| name.escape_debug().to_string()).collect(),
            names,
        })
    }

    fn row(
        &self,
        record: &ByteRecord,
        place: &Place,
        subscribers: &mut Names,
    ) -> Result<Row, InputError> {
        if record.len() != self.names.len() {
            let (fields, columns) = (record.len(), self.names.len());
            let text = format!(
                "{}, but the header has {}",
                plural(fields, "field"),
                plural(columns, "column")
            );
            return Err(place.wrong(&text, "quote fields that contain the delimiter"));
        }
        let sent = self.time(record, self.sent, place)?;
        let Some(sent_ns) = sent else {
            return Err(self.wrong(self.sent.0, "it is empty", "a message needs its time", place));
        };
        let received_ns = self.time(record, self.received, place)?;
        if let Some(received_ns) = received_ns {
            self.check_latency(sent_ns, received_ns, place)?;
        }
        let subscriber = match self.subscriber {
            None => Some(0),
            Some(at) if record[at].is_empty() && received_ns.is_none() => None,
            Some(at) => {
                self.name(record, at, place)?;
                let number = subscribers.number(&record[at]);
                let remedy = "leave some out";
                let text = format!("more than {}", plural(NAMES_MAX, "subscriber"));
                Some(number.ok_or_else(|| self.wrong(at, &text, remedy, place))?)
            }
        };
        let number = |at: Option<usize>| at.map(|at| self.number(record, at, place)).transpose();
        Ok(Row {
            line: place.line,
            sent_ns,
            received_ns,
            bytes: number(self.bytes)?,
            subscriber,
            sequence: number(self.sequence)?,
        })
    }

    /// Both times must be of one clock: then a message takes some time, and not very long.
    fn check_latency(
        &self,
        sent_ns: u64,
        received_ns: u64,
        place: &Place,
    ) -> Result<(), InputError> {
        let at = self.received.0;
        if received_ns < sent_ns {
            let early_us = (sent_ns - received_ns) as f64 / 1e3;
            let text = format!("{early_us} µs before it was sent");
            let remedy = "both times must be of one clock: correct the offset between the two in \
                          the file, or synchronise the hosts (PTP) and trace again";
            return Err(self.wrong(at, &text, remedy, place));
        }
        if received_ns - sent_ns > LATENCY_NS_MAX {
            let late_s = (received_ns - sent_ns) / 1_000_000_000;
            let text = format!("{} s after it was sent", count(late_s));
            let remedy = "both times must be of one clock, for instance CLOCK_MONOTONIC, and in the \
                          units that the header names";
            return Err(self.wrong(at, &text, remedy, place));
        }
        Ok(())
    }

    fn text<'r>(
        &self,
        record: &'r ByteRecord,
        at: usize,
        place: &Place,
    ) -> Result<&'r str, InputError> {
        let text = std::str::from_utf8(&record[at]);
        text.map_err(|_| self.wrong(at, "it is not UTF-8", "save the file as UTF-8", place))
    }

    /// A time in nanoseconds; `None` if the field is empty.
    fn time(
        &self,
        record: &ByteRecord,
        (at, unit): (usize, Unit),
        place: &Place,
    ) -> Result<Option<u64>, InputError> {
        let text = self.text(record, at, place)?;
        if text.is_empty() {
            return Ok(None);
        }
        let remedy = format!("write a time from 0 on in {}, such as 1250 or 1250.5", unit.0);
        let wrong = || self.wrong(at, &format!("{text:?} is not a time"), &remedy, place);
        nanoseconds(text, unit.1).map(Some).ok_or_else(wrong)
    }

    fn number(&self, record: &ByteRecord, at: usize, place: &Place) -> Result<u64, InputError> {
        let text = self.text(record, at, place)?;
        let wrong = |_| {
            let what = format!("{text:?} is not a whole number from 0 on");
            self.wrong(at, &what, "give each message one, or leave out the column", place)
        };
        text.parse().map_err(wrong)
    }

    fn name(&self, record: &ByteRecord, at: usize, place: &Place) -> Result<String, InputError> {
        let text = self.text(record, at, place)?;
        let is_name =
            (1..=NAME_BYTES_MAX).contains(&text.len()) && !text.contains(char::is_control);
        let remedy = format!("use 1 to {NAME_BYTES_MAX} bytes without control characters");
        let wrong = || self.wrong(at, &format!("{text:?} is not a name"), &remedy, place);
        is_name.then(|| text.to_owned()).ok_or_else(wrong)
    }

    fn wrong(&self, at: usize, what: &str, remedy: &str, place: &Place) -> InputError {
        place.wrong(&format!("{}: {what}", self.names[at]), remedy)
    }
}

/// The unit of a column of times, such as `sent_us`.
fn unit_of(name: &str, what: &str) -> Option<Unit> {
    let unit = name.strip_prefix(what)?.strip_prefix('_')?;
    UNITS.into_iter().find(|(known, _)| *known == unit)
}

/// A decimal number of a unit, so many digits above nanoseconds; exact, and what is below a
/// nanosecond is cut off.
fn nanoseconds(text: &str, digits: usize) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|it| it.is_ascii_digit());
    if !is_digits(whole) || !is_digits(part) {
        return None;
    }
    let part: Cow<str> = match part.get(..digits) {
        Some(part) => part.into(),
        None => format!("{part:0<digits$}").into(),
    };
    let part: u64 = if part.is_empty() { 0 } else { part.parse().ok()? };
    let whole = whole.parse::<u64>().ok()?.checked_mul(10u64.pow(digits as u32))?;
    // Times are handled as signed numbers.
    whole.checked_add(part).filter(|ns| i64::try_from(*ns).is_ok())
}

/// Puts the rows of a topic together to messages.
fn topic(
    name: Option<String>,
    mut rows: Vec<Row>,
    columns: &Columns,
    place: &Place,
) -> Result<TopicTrace, InputError> {
    // A trace is often written where messages are taken, in that order.
    rows.sort_by_key(|row| (row.sent_ns, row.sequence));
    let mut made =
        TopicTrace { name, is_numbered: columns.sequence.is_some(), ..Default::default() };
    made.sent = match made.is_numbered {
        true => check_numbers(&rows, place)?,
        false => 0,
    };
    let mut takers: Vec<u16> = rows.iter().filter_map(|row| row.subscriber).collect();
    takers.sort_unstable();
    takers.dedup();
    made.subscribers = takers.len().max(1) as u32;
    made.knows_lost = made.is_numbered
        || made.subscribers > 1
        || rows.iter().any(|row| row.received_ns.is_none());
    // A record without a time of taking is one of a lost message.
    let shift_ns = u64::from(rows.iter().any(|row| row.received_ns == Some(0)));
    let mut taken: Vec<(u16, Record)> = Vec::new();
    let mut index = 0;
    for same in rows.chunk_by(|a, b| a.sent_ns == b.sent_ns && a.sequence == b.sequence) {
        // Without numbers, the messages of one moment are told apart by how often each subscriber
        // has one.
        let mut seen: BTreeMap<Option<u16>, u64> = BTreeMap::new();
        let mut messages = 0;
        for row in same {
            let copies = seen.entry(row.subscriber).or_default();
            let place = if made.is_numbered { 0 } else { *copies };
            let id = row.sequence.unwrap_or(index + place);
            if place == messages {
                let at_ns = row.sent_ns + shift_ns;
                let (intended_ns, publish_entry_ns) = (at_ns, at_ns);
                made.ping.push(Record { id, intended_ns, publish_entry_ns, ..Record::default() });
                messages += 1;
            }
            if let (Some(received_ns), Some(subscriber)) = (row.received_ns, row.subscriber) {
                let take_return_ns = received_ns + shift_ns;
                taken.push((subscriber, Record { id, take_return_ns, ..Record::default() }));
                *copies += 1;
            } else if !made.is_numbered {
                *copies += 1;
            }
        }
        index += messages;
    }
    if !made.is_numbered {
        made.sent = index;
    }
    let sizes = rows.iter().filter_map(|row| row.bytes);
    made.bytes = sizes.fold(None, |ends: Option<[u64; 2]>, bytes| {
        let [least, most] = ends.unwrap_or([bytes; 2]);
        Some([least.min(bytes), most.max(bytes)])
    });
    made.take(taken);
    Ok(made)
}

/// Whether numbers grow with time. Returns the number of messages, with those that the file lacks.
fn check_numbers(rows: &[Row], place: &Place) -> Result<u64, InputError> {
    let number = |row: &Row| row.sequence.unwrap_or(0);
    for pair in rows.windows(2) {
        let [before, after] = [&pair[0], &pair[1]];
        let (first, second) = (number(before), number(after));
        if first == second && before.sent_ns != after.sent_ns {
            let text =
                format!("sequence: {second} was sent at another time on line {}", before.line);
            let remedy = "a number is of one message: give each publisher a topic, and each run of \
                          the application a file";
            return Err(place.wrong_at(after.line, &text, remedy));
        }
        if second < first {
            let text = format!(
                "sequence: {second} was sent after {first}, which is on line {}",
                before.line
            );
            let remedy = "numbers must grow with the time of sending: give each publisher a topic, \
                          and each run of the application a file";
            return Err(place.wrong_at(after.line, &text, remedy));
        }
        if second - first > GAP_MAX {
            let lost = count(second - first - 1);
            let text = format!("sequence: {lost} numbers are missing before {second}");
            let remedy = "number the messages of a topic one by one";
            return Err(place.wrong_at(after.line, &text, remedy));
        }
    }
    let ends = rows.first().zip(rows.last());
    Ok(ends.map_or(0, |(first, last)| number(last) - number(first) + 1))
}

impl TopicTrace {
    /// Adds what subscribers took, and counts what came again or late.
    fn take(&mut self, mut taken: Vec<(u16, Record)>) {
        taken.sort_by_key(|(subscriber, record)| (record.take_return_ns, record.id, *subscriber));
        let mut highest: BTreeMap<u16, u64> = BTreeMap::new();
        let mut first: HashMap<(u16, u64), usize> = HashMap::new();
        for (subscriber, mut record) in taken {
            if self.is_numbered {
                if let Some(known) = first.get(&(subscriber, record.id)) {
                    let known = &mut self.pong[*known];
                    known.duplicates = known.duplicates.saturating_add(1);
                    self.duplicates += 1;
                    continue;
                }
                first.insert((subscriber, record.id), self.pong.len());
            }
            let highest = highest.entry(subscriber).or_insert(record.id);
            if record.id < *highest {
                record.flags |= OUT_OF_ORDER;
                self.out_of_order += 1;
            }
            *highest = record.id.max(*highest);
            self.pong.push(record);
        }
    }
}

const HEADER: &str = "the first line must name the columns: sent_ns,received_ns (or _us, _ms, _s), \
                      and if there are any: bytes, topic, subscriber, sequence";
/// The limit of a measured run, too: its records have 256 MB at each end.
const ROWS_MAX: u64 = 4_000_000;
/// Of topics and of subscribers of a file.
const NAMES_MAX: usize = 256;
const NAME_BYTES_MAX: usize = 128;
/// A day. Times of two different clocks are further apart.
const LATENCY_NS_MAX: u64 = 86_400_000_000_000;
/// Of numbers between a message and the next.
const GAP_MAX: u64 = 1_000_000;
