//! Recordings that are read.

use std::collections::{BTreeSet, HashMap};
use std::ffi::{CString, c_char};
use std::ptr::null;
use std::sync::Arc;

use myelin_bag::{BagReader, Message, MessageType, Messages, Selection, Time, Topics};

use crate::error::{
    Failure, MYELIN_BAG_NOTHING, MYELIN_BAG_OK, c_string, content, enter, myelin_bag_code, of_file,
    setting,
};
use crate::input::{self, sized};

/// A recording that is read.
pub struct myelin_bag_reader {
    reader: Arc<BagReader>,
    topics: Arc<Vec<Topic>>,
    problems: Vec<CString>,
}

/// Messages of a recording, one after the other.
pub struct myelin_bag_messages {
    messages: Messages,
    topics: Arc<Vec<Topic>>,
    /// By channel: its topic, and how its messages are read.
    channels: HashMap<u16, (usize, Option<MessageType>)>,
    current: Option<Message>,
    /// Parts of a sample that are not in the file.
    scratch: Vec<u8>,
    /// A sample that is not in one piece in the file.
    sample: Vec<u8>,
}

struct Topic {
    channel: u16,
    name: CString,
    type_name: CString,
    type_hash: u64,
    encoding: CString,
    schema_name: CString,
    schema_encoding: CString,
    schema: Vec<u8>,
    messages: u64,
}

/// A time of messages.
#[repr(i32)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(dead_code, reason = "for the header alone")]
pub enum myelin_bag_time {
    /// When they were recorded, by which files are indexed.
    MYELIN_BAG_LOG = 0,
    /// When they were published.
    MYELIN_BAG_PUBLISH = 1,
}

/// A topic of a recording; one with several types stands there several times. Texts are valid until
/// the reader is closed.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_bag_topic {
    /// sizeof(struct myelin_bag_topic): MYELIN_BAG_INIT(myelin_bag_topic).
    pub size: usize,
    pub name: *const c_char,
    pub type_name: *const c_char,
    /// Of plain data: the layout hash of its type, as in myelin_payload_hash(). Otherwise 0.
    pub type_hash: u64,
    /// How many messages it has.
    pub messages: u64,
    /// How its messages are encoded, such as `cdr`.
    pub encoding: *const c_char,
    /// The schema of its messages.
    pub schema_name: *const c_char,
    pub schema_encoding: *const c_char,
    pub schema: *const u8,
    pub schema_bytes: usize,
}

/// Which messages are read.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_bag_selection {
    /// sizeof(struct myelin_bag_selection): MYELIN_BAG_INIT(myelin_bag_selection).
    pub size: usize,
    /// Names or patterns of topics; none: all.
    pub topics: *const *const c_char,
    pub topic_count: usize,
    /// Not before this time, in ns since 1970.
    pub start_ns: u64,
    /// Before this time; 0: no end.
    pub end_ns: u64,
    /// enum myelin_bag_time: the time that is meant, and the order.
    pub by: i32,
}

/// A message. Its pointers are valid until the next call with these messages.
#[repr(C)]
#[derive(Clone, Copy)]
pub struct myelin_bag_message {
    /// sizeof(struct myelin_bag_message): MYELIN_BAG_INIT(myelin_bag_message).
    pub size: usize,
    /// The index of its topic.
    pub topic: usize,
    /// Its number in its topic, which wraps at 32 bits.
    pub sequence: u64,
    /// When it was recorded and published, in ns since 1970.
    pub log_ns: u64,
    pub publish_ns: u64,
    /// The data, as they are in the file.
    pub data: *const u8,
    pub data_bytes: usize,
    /// The sample, as its publisher published it: of plain data the memory of the struct. It need not
    /// be aligned: copy it by memcpy.
    pub sample: *const u8,
    pub sample_bytes: usize,
}

sized!(myelin_bag_topic, myelin_bag_selection, myelin_bag_message);

/// Opens a file. A broken one is read as far as possible: see `myelin_bag_reader_problem_at`.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bag_reader_open(
    path: *const c_char,
    reader: *mut *mut myelin_bag_reader,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let path = input::required(path, "path")?;
        let opened = BagReader::open(path).map_err(|error| of_file(path, error))?;
        input::give(reader, "reader", myelin_bag_reader::new(opened))?;
        Ok(MYELIN_BAG_OK)
    })
}

/// The topic with this number, from 0 on; MYELIN_BAG_NOTHING after the last.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bag_reader_topic_at(
    reader: *mut myelin_bag_reader,
    index: usize,
    topic: *mut myelin_bag_topic,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        match input::object(reader, "reader")?.topics.get(index) {
            Some(it) => input::write(topic, it.fields()).map(|()| MYELIN_BAG_OK),
            None => Ok(MYELIN_BAG_NOTHING),
        }
    })
}

/// The times of the first and the last message, in ns since 1970; 0 without messages.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bag_reader_times(
    reader: *mut myelin_bag_reader,
    begin_ns: *mut u64,
    end_ns: *mut u64,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let (begin, end) = input::object(reader, "reader")?.reader.info().statistics.times;
        for (to, value) in [(begin_ns, begin), (end_ns, end)] {
            if !to.is_null() {
                to.write(value);
            }
        }
        Ok(MYELIN_BAG_OK)
    })
}

/// What cannot be read of a broken file: the sentence with this number, from 0 on, valid until the
/// reader is closed. MYELIN_BAG_NOTHING after the last.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bag_reader_problem_at(
    reader: *mut myelin_bag_reader,
    index: usize,
    problem: *mut *const c_char,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let reader = input::object(reader, "reader")?;
        let Some(text) = reader.problems.get(index) else { return Ok(MYELIN_BAG_NOTHING) };
        if problem.is_null() {
            return Err(setting("the place of the problem is NULL"));
        }
        problem.write(text.as_ptr());
        Ok(MYELIN_BAG_OK)
    })
}

/// Messages by time; with NULL all of them. Close them; they stay valid without the reader.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bag_reader_messages(
    reader: *mut myelin_bag_reader,
    selection: *const myelin_bag_selection,
    messages: *mut *mut myelin_bag_messages,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let reader = input::object(reader, "reader")?;
        let wanted = input::read(selection)?;
        let names = input::list(wanted.topics, wanted.topic_count, "topic")?;
        let mut selection = Selection::default();
        selection.start_ns = Some(wanted.start_ns);
        selection.end_ns = (wanted.end_ns > 0).then_some(wanted.end_ns);
        selection.by = match wanted.by {
            0 => Time::Log,
            1 => Time::Publish,
            other => return Err(setting(format!("the time is {other}; use MYELIN_BAG_LOG"))),
        };
        if !names.is_empty() {
            selection.channels = Some(reader.channels(&names)?);
        }
        input::give(messages, "messages", reader.messages(&selection)?)?;
        Ok(MYELIN_BAG_OK)
    })
}

/// The next message; MYELIN_BAG_NOTHING at the end. MYELIN_BAG_ERROR_CONTENT says that a part cannot
/// be read; the messages behind it follow.
///
/// # Safety
/// Pointers are NULL or valid; one thread at a time uses the messages.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bag_messages_next(
    messages: *mut myelin_bag_messages,
    message: *mut myelin_bag_message,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        let Some(messages) = messages.as_mut() else {
            return Err(setting("the messages are NULL"));
        };
        match messages.next()? {
            Some(fields) => input::write(message, fields).map(|()| MYELIN_BAG_OK),
            None => Ok(MYELIN_BAG_NOTHING),
        }
    })
}

/// Closes messages.
///
/// # Safety
/// Nobody uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bag_messages_close(
    messages: *mut myelin_bag_messages,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe { input::take_back(messages, "messages").map(|_| MYELIN_BAG_OK) })
}

/// Closes a file.
///
/// # Safety
/// Nobody uses the handle.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_bag_reader_close(
    reader: *mut myelin_bag_reader,
) -> myelin_bag_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe { input::take_back(reader, "reader").map(|_| MYELIN_BAG_OK) })
}

impl myelin_bag_reader {
    fn new(reader: BagReader) -> myelin_bag_reader {
        let channels = reader.info().definitions.channels.keys();
        let mut topics: Vec<_> = channels.map(|id| Topic::new(&reader, *id)).collect();
        topics.sort_by(|one, other| one.name.cmp(&other.name));
        let mut problems = Vec::new();
        if let Some(report) = reader.report() {
            problems.extend(report.losses.iter().map(|it| c_string(&it.to_string())));
            if problems.is_empty() && !report.is_complete {
                problems.push(c_string("the recording was not ended"));
            }
        }
        myelin_bag_reader { reader: Arc::new(reader), topics: Arc::new(topics), problems }
    }

    fn channels(&self, names: &[&str]) -> Result<BTreeSet<u16>, Failure> {
        let wanted = names.iter().map(|name| (*name).to_owned()).collect();
        let topics = Topics { wanted, ..Topics::default() };
        topics.channels(&self.reader.info().definitions).map_err(|error| {
            let there = self.topics.iter().take(NAMES_SHOWN);
            let there: Vec<_> = there.map(|it| it.name.to_string_lossy()).collect();
            let there = there.join(", ");
            setting(format!("there is no topic {:?}; there are {there}", error.pattern))
        })
    }

    fn messages(&self, selection: &Selection) -> Result<myelin_bag_messages, Failure> {
        let definitions = &self.reader.info().definitions;
        let channels = self.topics.iter().enumerate().filter_map(|(at, topic)| {
            let channel = definitions.channels.get(&topic.channel)?;
            let schema = definitions.schemas.get(&channel.schema);
            Some((topic.channel, (at, MessageType::new(channel, schema).ok())))
        });
        Ok(myelin_bag_messages {
            messages: self.reader.messages(selection)?,
            topics: self.topics.clone(),
            channels: channels.collect(),
            current: None,
            scratch: Vec::new(),
            sample: Vec::new(),
        })
    }
}

impl myelin_bag_messages {
    fn next(&mut self) -> Result<Option<myelin_bag_message>, Failure> {
        self.current = None;
        let Some(message) = self.messages.next().transpose()? else { return Ok(None) };
        let message = self.current.insert(message);
        let head = message.head;
        let Some((topic, ty)) = self.channels.get(&head.channel) else {
            return Err(content("a message of an unknown channel"));
        };
        debug_assert!(*topic < self.topics.len());
        let data = message.data();
        let parts = ty.as_ref().and_then(|ty| ty.sample(data, &mut self.scratch));
        let parts = parts.unwrap_or([data, &[], &[]]);
        let sample = match parts {
            [whole, [], []] => whole,
            parts => {
                self.sample.clear();
                parts.iter().for_each(|part| self.sample.extend_from_slice(part));
                &self.sample
            }
        };
        Ok(Some(myelin_bag_message {
            size: 0,
            topic: *topic,
            sequence: head.sequence.into(),
            log_ns: head.log_ns,
            publish_ns: head.publish_ns,
            data: data.as_ptr(),
            data_bytes: data.len(),
            sample: sample.as_ptr(),
            sample_bytes: sample.len(),
        }))
    }
}

impl Topic {
    fn new(reader: &BagReader, id: u16) -> Topic {
        let info = reader.info();
        let channel = info.definitions.channels.get(&id).cloned().unwrap_or_default();
        let schema = info.definitions.schemas.get(&channel.schema).cloned().unwrap_or_default();
        let layout = channel.layout();
        let ty = layout.and_then(|text| myelin::DynamicType::from_layout(text).ok());
        Topic {
            channel: id,
            name: c_string(&channel.topic),
            type_name: c_string(ty.as_ref().map_or(&*schema.name, |it| it.type_name())),
            type_hash: ty.map_or(0, |it| it.hash()),
            encoding: c_string(&channel.encoding),
            schema_name: c_string(&schema.name),
            schema_encoding: c_string(&schema.encoding),
            schema: schema.text,
            messages: info.statistics.by_channel.get(&id).copied().unwrap_or(0),
        }
    }

    fn fields(&self) -> myelin_bag_topic {
        myelin_bag_topic {
            size: 0,
            name: self.name.as_ptr(),
            type_name: self.type_name.as_ptr(),
            type_hash: self.type_hash,
            messages: self.messages,
            encoding: self.encoding.as_ptr(),
            schema_name: self.schema_name.as_ptr(),
            schema_encoding: self.schema_encoding.as_ptr(),
            schema: if self.schema.is_empty() { null() } else { self.schema.as_ptr() },
            schema_bytes: self.schema.len(),
        }
    }
}

const NAMES_SHOWN: usize = 8;
