//! Recordings that are read: their topics, their messages, and all messages of a topic as an array.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, TryLockError};

use myelin::value::{Type as ValueType, Value};
use myelin_bag::{
    Channel, Content, Message, MessageHead, MessageType, Messages, MessagesError, NoTopic,
    OpenError, Selection, Topics,
};
use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyOSError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

use crate::any::{numbers, object};
use crate::errors::{busy, closed, exception, wrong_value};
use crate::exports;
use crate::gil_cell::GilCell;
use crate::info::representation;
use crate::memory::{Bytes, Exports, Held, Memory};
use crate::numpy_types::{Sort, dtype_of, elements_of, sort_of};
use crate::player::{place_ns, time_of};
use crate::recorder::warn;
use crate::released::released;
use crate::types::{Carried, Type};

/// Reads a recording, in order of time.
#[pyclass(frozen, weakref, subclass, module = "myelin._native")]
pub struct BagReader {
    path: PathBuf,
    reader: GilCell<Option<Arc<myelin_bag::BagReader>>>,
    /// Codecs of channels whose messages were read.
    carried: Mutex<HashMap<u16, Arc<Carried>>>,
}

/// A topic of a recording.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct BagTopic {
    name: String,
    /// If it has several types, the names of all of them, with `, ` between.
    type_name: String,
    /// How its messages are encoded, such as `cdr`.
    encoding: String,
    /// How many messages it has.
    messages: u64,
    /// What else the file says of it.
    metadata: BTreeMap<String, String>,
}

representation!(BagTopic: name, type_name, encoding, messages);

/// Messages that are not in a recording, by cause.
#[pyclass(frozen, get_all, eq, module = "myelin")]
#[derive(Clone, PartialEq)]
pub struct Losses {
    /// Their publisher overwrote them before the recorder took them.
    publisher_ring: u64,
    /// The recorder had no room for them.
    recorder: u64,
    /// They could not be written.
    disk: u64,
    /// All of them.
    total: u64,
}

representation!(Losses: publisher_ring, recorder, disk, total);

impl From<myelin_bag::RecordedLosses> for Losses {
    fn from(it: myelin_bag::RecordedLosses) -> Self {
        Losses {
            publisher_ring: it.publisher_ring,
            recorder: it.recorder,
            disk: it.disk,
            total: it.total(),
        }
    }
}

/// The messages of a recording, one after the other.
#[pyclass(frozen, module = "myelin._native")]
pub struct BagMessages {
    path: PathBuf,
    reader: Arc<myelin_bag::BagReader>,
    /// No thread waits for it.
    messages: Mutex<Messages>,
    owner: Py<BagReader>,
}

/// A message of a recording: a read-only buffer of its data, as they are in the file.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct BagMessage {
    held: Held<MessageBytes>,
    topic: String,
    head: MessageHead,
}

pub struct MessageBytes(Message);

impl Memory for MessageBytes {
    const IS_WRITABLE: bool = false;
    const ENDS_AT_ONCE: bool = true;

    fn bytes(&mut self) -> (*mut u8, usize) {
        let data = self.0.data();
        (data.as_ptr().cast_mut(), data.len())
    }
}

impl Exports for BagMessage {
    type Of = MessageBytes;

    fn held(&self) -> &Held<MessageBytes> {
        &self.held
    }
}

exports!(BagMessage);

/// The rows of an array: a buffer that can be written.
#[pyclass(frozen, module = "myelin._native")]
pub struct BagRows(Held<Rows>);

pub struct Rows(Vec<u8>);

impl Memory for Rows {
    const IS_WRITABLE: bool = true;
    const ENDS_AT_ONCE: bool = true;

    fn bytes(&mut self) -> (*mut u8, usize) {
        (self.0.as_mut_ptr(), self.0.len())
    }
}

impl Exports for BagRows {
    type Of = Rows;

    fn held(&self) -> &Held<Rows> {
        &self.0
    }
}

exports!(BagRows);

/// A layout, and the parts of a sample of it.
type Sample<'a> = (&'a ValueType, [&'a [u8]; 3]);

/// How the messages of a channel are read.
#[pyclass(frozen, module = "myelin._native")]
pub struct BagType {
    ty: Result<MessageType, String>,
    /// The layout of plain data.
    layout: Option<ValueType>,
}

impl BagType {
    fn new(reader: &myelin_bag::BagReader, channel: &Channel) -> BagType {
        let schema = reader.info().definitions.schemas.get(&channel.schema);
        let ty = MessageType::new(channel, schema).map_err(|error| error.to_string());
        let layout = match channel.layout() {
            Some(text) => myelin::value::Schema::layout(text).parse().ok(),
            None => ty.as_ref().ok().and_then(|it| it.ty()).cloned(),
        };
        let is_plain = |it: &ValueType| it.encoding() == myelin::value::Encoding::Plain;
        BagType { ty, layout: layout.filter(is_plain) }
    }

    fn ty(&self) -> PyResult<&MessageType> {
        self.ty.as_ref().map_err(|error| wrong_value(error.clone()))
    }

    /// Calls with the part of a message at a path.
    fn with<R>(
        &self,
        data: &[u8],
        path: &str,
        act: impl FnOnce(&Value<'_>) -> PyResult<R>,
    ) -> PyResult<R> {
        let value = self.ty()?.value(data).and_then(|value| value.get(path));
        act(&value.map_err(|error| wrong_value(error.to_string()))?)
    }

    /// The layout, and the sample that is in a message.
    fn sample<'a>(
        &'a self,
        data: &'a [u8],
        scratch: &'a mut Vec<u8>,
    ) -> PyResult<Option<Sample<'a>>> {
        let Some(layout) = &self.layout else { return Ok(None) };
        match self.ty()?.sample(data, scratch) {
            Some(parts) => Ok(Some((layout, parts))),
            None => Err(wrong_value(format!("{} B are no message of {layout}", data.len()))),
        }
    }
}

#[pymethods]
impl BagType {
    /// The type of the buffer: bytes.
    #[getter]
    fn native(&self) -> PyResult<Type> {
        let bytes =
            myelin::Layout::scalar("u8").and_then(|it| myelin::DynamicType::slice(&it).ok());
        Type::of(bytes.ok_or_else(|| wrong_value("there are no bytes".to_owned()))?)
    }

    fn value<'py>(&self, message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let py = message.py();
        let bytes = Bytes::of(message)?;
        let data = bytes.as_slice();
        let mut scratch = Vec::new();
        if let Some((layout, parts)) = self.sample(data, &mut scratch)? {
            let is_one = parts[1].is_empty() && parts[2].is_empty();
            let whole = if is_one { Vec::new() } else { parts.concat() };
            let sample = if is_one { parts[0] } else { &whole };
            let value = Value::new(layout, sample);
            return object(py, &value.map_err(|error| wrong_value(error.to_string()))?);
        }
        match self.ty()?.content(data).map_err(wrong_value)? {
            Content::Value(value) => object(py, &value),
            _ => py.import("json")?.call_method1("loads", (PyBytes::new(py, data),)),
        }
    }

    /// A part of a message; numbers as `Numbers`.
    fn field<'py>(&self, message: &Bound<'py, PyAny>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let bytes = Bytes::of(message)?;
        self.with(bytes.as_slice(), path, |value| numbers(message.py(), &bytes, value))
    }

    /// Where the sample of plain data, or the elements of its slice, begin; their dtype; and how
    /// many there are, or None for a single value.
    fn view<'py>(
        &self,
        message: &Bound<'py, PyAny>,
    ) -> PyResult<(usize, Bound<'py, PyAny>, Option<usize>)> {
        let py = message.py();
        let bytes = Bytes::of(message)?;
        let data = bytes.as_slice();
        let mut scratch = Vec::new();
        let Some((layout, parts)) = self.sample(data, &mut scratch)? else {
            return Err(wrong_value(NO_LAYOUT.to_owned()));
        };
        let at = |part: &[u8]| (part.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize);
        let Some((element, offset)) = elements_of(layout) else {
            return Ok((at(parts[0]), dtype_of(py, layout)?, None));
        };
        let mut left = offset;
        // The part in which they are begins with them, or has all of the sample.
        let part = parts.iter().find(|part| {
            let is_before = left >= part.len();
            left -= if is_before { part.len() } else { 0 };
            !is_before
        });
        let elements = part.and_then(|part| part.get(left..)).unwrap_or(&[]);
        let begin = if elements.is_empty() { 0 } else { at(elements) };
        if data.get(begin..).is_none_or(|rest| rest.len() < elements.len()) {
            return Err(wrong_value("its elements are not in one piece".to_owned()));
        }
        Ok((begin, dtype_of(py, element)?, Some(elements.len() / element.bytes_min())))
    }
}

#[pymethods]
impl BagReader {
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<BagReader> {
        let opened = released(py, || myelin_bag::BagReader::open(&path));
        let reader = opened.map_err(|error| not_opened(&path, error))?;
        let reader = GilCell::new(Some(Arc::new(reader)));
        Ok(BagReader { path, reader, carried: Mutex::default() })
    }

    /// Its path.
    #[getter]
    fn path(&self) -> &Path {
        &self.path
    }

    /// Its topics by name.
    #[getter]
    fn topics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let reader = self.reader(py)?;
        let mut topics: BTreeMap<&str, BagTopic> = BTreeMap::new();
        for (id, channel) in &reader.info().definitions.channels {
            let messages = reader.info().statistics.by_channel.get(id).copied().unwrap_or(0);
            let type_name = type_name(&reader, channel);
            match topics.get_mut(&*channel.topic) {
                Some(topic) => {
                    topic.messages += messages;
                    if !topic.type_name.split(", ").any(|it| it == type_name) {
                        topic.type_name = format!("{}, {type_name}", topic.type_name);
                    }
                }
                None => {
                    let topic = BagTopic {
                        name: channel.topic.clone(),
                        type_name,
                        encoding: channel.encoding.clone(),
                        messages,
                        metadata: channel.metadata.clone(),
                    };
                    topics.insert(&channel.topic, topic);
                }
            }
        }
        let dict = PyDict::new(py);
        for (name, topic) in topics {
            dict.set_item(name, Py::new(py, topic)?)?;
        }
        Ok(dict)
    }

    /// When its first message was recorded, in ns since 1970; 0 without messages.
    #[getter]
    fn begin_ns(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.reader(py)?.info().statistics.times.0)
    }

    /// How long it is, in seconds.
    #[getter]
    fn duration(&self, py: Python<'_>) -> PyResult<f64> {
        let (begin, end) = self.reader(py)?.info().statistics.times;
        Ok(end.saturating_sub(begin) as f64 / 1e9)
    }

    /// What cannot be read of a broken file, a sentence each. Empty if it is complete.
    #[getter]
    fn problems(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        let reader = self.reader(py)?;
        let Some(report) = reader.report() else { return Ok(Vec::new()) };
        let mut problems: Vec<_> = report.losses.iter().map(ToString::to_string).collect();
        if report.losses_more > 0 {
            problems.push(format!("{} more parts cannot be read", report.losses_more));
        }
        if problems.is_empty() && !report.is_complete {
            problems.push("the recording was not ended: its last messages may be missing".into());
        }
        Ok(problems)
    }

    /// How many messages of a broken file cannot be read, as far as that is known.
    #[getter]
    fn lost_messages(&self, py: Python<'_>) -> PyResult<u64> {
        Ok(self.reader(py)?.report().map_or(0, |report| report.lost().known))
    }

    /// The messages that the recorder missed, by topic, as far as it wrote that to the file.
    #[getter]
    fn losses(&self, py: Python<'_>) -> PyResult<BTreeMap<String, Losses>> {
        let reader = self.reader(py)?;
        let losses = released(py, || reader.recorded_losses());
        Ok(losses.into_iter().map(|(topic, it)| (topic, it.into())).collect())
    }

    /// The messages of these topics, or of all, by time. `start` and `end` are seconds from the
    /// begin of the recording; `by` is the time that is meant, `log` or `publish`.
    #[pyo3(signature = (*topics, start=None, end=None, by="log"))]
    fn messages(
        slf: &Bound<'_, Self>,
        topics: Vec<String>,
        start: Option<f64>,
        end: Option<f64>,
        by: &str,
    ) -> PyResult<BagMessages> {
        let (py, this) = (slf.py(), slf.get());
        let reader = this.reader(py)?;
        let selection = this.selection(&reader, &topics, (start, end), by)?;
        let messages = released(py, || reader.messages(&selection));
        let messages = Mutex::new(messages.map_err(|error| os_error(&this.path, &error))?);
        let path = this.path.clone();
        Ok(BagMessages { path, reader, messages, owner: slf.clone().unbind() })
    }

    /// The rows of `array`: their bytes, and their dtype.
    #[pyo3(signature = (topic, field, start, end, by))]
    fn _rows<'py>(
        &self,
        py: Python<'py>,
        topic: &str,
        field: &str,
        start: Option<f64>,
        end: Option<f64>,
        by: &str,
    ) -> PyResult<(BagRows, Bound<'py, PyAny>)> {
        let reader = self.reader(py)?;
        let selection = self.selection(&reader, &[topic.to_owned()], (start, end), by)?;
        let channels = selection.channels.iter().flatten();
        let definitions = &reader.info().definitions;
        let types = channels.filter_map(|id| Some((*id, definitions.channels.get(id)?)));
        let types = types.map(|(id, channel)| (id, BagType::new(&reader, channel)));
        let types: HashMap<u16, BagType> = types.collect();
        let messages = released(py, || reader.messages(&selection));
        let mut messages = messages.map_err(|error| os_error(&self.path, &error))?;
        let by_channel = &reader.info().statistics.by_channel;
        let expected: u64 = types.keys().filter_map(|id| by_channel.get(id)).sum();
        let file_bytes = reader.info().bytes;
        let mut table =
            Table { types: &types, field, sort: None, bytes: Vec::new(), expected, file_bytes };
        loop {
            let step = released(py, || table.step(&mut messages));
            match step {
                Ok(true) => py.check_signals()?,
                Ok(false) => break,
                Err(RowsError::Messages(error)) => self::report(py, &self.path, error)?,
                Err(RowsError::Wrong(error)) => {
                    return Err(wrong_value(format!("{topic}: {error}")));
                }
            }
        }
        let Table { sort, bytes, .. } = table;
        let sort = match sort {
            Some(sort) => sort,
            // Without a message: of the layout, if there is one.
            None => Table::sort_of_layout(&types, field).map_err(wrong_value)?,
        };
        let dtype = sort.row(py)?;
        let carried = codec(py, BagType { ty: Err(String::new()), layout: None })?;
        Ok((BagRows(Held::new(Rows(bytes), carried)), dtype))
    }

    /// Closes the file. Messages stay valid.
    fn close(&self, py: Python<'_>) {
        drop(self.reader.replace(py, None));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close(py);
    }

    fn __repr__(&self) -> String {
        format!("<BagReader {:?}>", self.path)
    }
}

impl BagReader {
    fn reader(&self, py: Python<'_>) -> PyResult<Arc<myelin_bag::BagReader>> {
        self.reader.look(py, Clone::clone).ok_or_else(|| closed("bag reader"))
    }

    fn selection(
        &self,
        reader: &myelin_bag::BagReader,
        topics: &[String],
        (start, end): (Option<f64>, Option<f64>),
        by: &str,
    ) -> PyResult<Selection> {
        let mut selection = Selection::default();
        selection.by = time_of(by)?;
        let begin_ns = reader.info().statistics.times.0;
        let time = |seconds: f64| place_ns(begin_ns, seconds);
        selection.start_ns = start.map(time).transpose()?;
        selection.end_ns = end.map(time).transpose()?;
        if !topics.is_empty() {
            let topics = Topics { wanted: topics.to_vec(), ..Topics::default() };
            let channels = topics.channels(&reader.info().definitions);
            let missing = |error: NoTopic| no_topic(&self.path, reader, &error.pattern);
            selection.channels = Some(channels.map_err(missing)?);
        }
        Ok(selection)
    }

    fn carried(
        &self,
        py: Python<'_>,
        reader: &myelin_bag::BagReader,
        id: u16,
    ) -> PyResult<Arc<Carried>> {
        let known = || self.carried.lock().map(|it| it.get(&id).cloned()).ok().flatten();
        if let Some(carried) = known() {
            return Ok(carried);
        }
        let channel = reader.info().definitions.channels.get(&id).cloned().unwrap_or_default();
        // Without the lock: Python code runs.
        let made = codec(py, BagType::new(reader, &channel))?;
        if let Ok(mut carried) = self.carried.lock() {
            carried.insert(id, made.clone());
        }
        Ok(made)
    }
}

#[pymethods]
impl BagMessages {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<BagMessage>> {
        let mut messages = match self.messages.try_lock() {
            Ok(messages) => messages,
            Err(TryLockError::Poisoned(messages)) => messages.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(busy("iterator", false)),
        };
        loop {
            let message = match released(py, || messages.next()) {
                None => return Ok(None),
                Some(Err(error)) => {
                    report(py, &self.path, error)?;
                    continue;
                }
                Some(Ok(message)) => message,
            };
            let head = message.head;
            let channel = self.reader.info().definitions.channels.get(&head.channel);
            let topic = channel.map_or_else(String::new, |channel| channel.topic.clone());
            let carried = self.owner.get().carried(py, &self.reader, head.channel)?;
            let held = Held::new(MessageBytes(message), carried);
            return Ok(Some(BagMessage { held, topic, head }));
        }
    }
}

#[pymethods]
impl BagMessage {
    /// The name of its topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.topic
    }

    /// When it was published, in ns since 1970.
    #[getter]
    fn publish_time_ns(&self) -> u64 {
        self.head.publish_ns
    }

    /// When it was recorded, in ns since 1970.
    #[getter]
    fn log_time_ns(&self) -> u64 {
        self.head.log_ns
    }

    /// Its number in its topic, which wraps at 32 bits.
    #[getter]
    fn sequence(&self) -> u32 {
        self.head.sequence
    }

    /// How many bytes its data have.
    #[getter]
    fn nbytes(&self) -> PyResult<usize> {
        self.held.length()
    }

    /// Its value as a Python object: a dict, a list, a number, text; octets as bytes.
    #[getter]
    fn value<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().held.carried.codec(slf.py()).call_method1("value", (slf,))
    }

    /// A field by its path, such as `pose.position.x` or `points[3].x`. Numbers of an array are a
    /// numpy array without a copy, which keeps the message.
    fn field<'py>(slf: &Bound<'py, Self>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        slf.get().held.carried.codec(slf.py()).call_method1("field", (slf, path))
    }

    /// The value of plain data, or the elements of its slice, as a numpy array without a copy. The
    /// array keeps the message.
    fn array<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().held.carried.codec(slf.py()).call_method1("array", (slf,))
    }

    /// Releases the memory now; if it is viewed, with the last view.
    fn release(&self) {
        self.held.release("released");
    }

    fn __repr__(&self) -> String {
        let MessageHead { publish_ns, .. } = self.head;
        format!("<BagMessage of {:?}, published at {publish_ns} ns>", self.topic)
    }
}

/// The rows of an array, while they are read.
struct Table<'a> {
    types: &'a HashMap<u16, BagType>,
    field: &'a str,
    /// Of the first message; all others have the same.
    sort: Option<Sort>,
    bytes: Vec<u8>,
    /// How many messages the file says there are.
    expected: u64,
    file_bytes: u64,
}

enum RowsError {
    Messages(MessagesError),
    Wrong(String),
}

impl Table<'_> {
    /// Reads some messages; false at the end.
    fn step(&mut self, messages: &mut Messages) -> Result<bool, RowsError> {
        let mut bytes = 0;
        for _ in 0..STEP_MESSAGES {
            let Some(message) = messages.next() else { return Ok(false) };
            let message = message.map_err(RowsError::Messages)?;
            self.add(&message).map_err(RowsError::Wrong)?;
            bytes += message.data().len();
            if bytes > STEP_BYTES {
                break;
            }
        }
        Ok(true)
    }

    fn add(&mut self, message: &Message) -> Result<(), String> {
        let MessageHead { channel, sequence, log_ns, publish_ns } = message.head;
        let of_channel = self.types.get(&channel).ok_or("a message of another channel")?;
        let ty = of_channel.ty.as_ref().map_err(Clone::clone)?;
        let data = message.data();
        let whole = of_channel.layout.as_ref().filter(|_| self.field.is_empty());
        let (sort, value) = match whole {
            Some(layout) => {
                let mut scratch = Vec::new();
                let parts = ty.sample(data, &mut scratch);
                let [sample, ..] = parts.ok_or("a message is no sample of its type")?;
                if elements_of(layout).is_some() || sample.len() != layout.bytes_min() {
                    return Err(DIFFERENT_LENGTHS.to_owned());
                }
                // Without a slice, all of it is one part of the message.
                let begin = (sample.as_ptr() as usize).wrapping_sub(data.as_ptr() as usize);
                let value = data.get(begin..).and_then(|it| it.get(..layout.bytes_min()));
                let value = value.ok_or("a sample is not in one piece")?;
                // The type of one topic is compared once.
                let sort = match &self.sort {
                    Some(sort) if sort.is_of(layout) => None,
                    _ => Some(Sort::Plain(Box::new(layout.clone()))),
                };
                (sort, Cow::Borrowed(value))
            }
            None => {
                let value = ty.value(data).and_then(|value| value.get(self.field));
                let value = value.map_err(|error| error.to_string())?;
                let (sort, bytes) = sort_of(&value).map_err(|error| match self.field {
                    "" => NO_LAYOUT.to_owned(),
                    _ => error,
                })?;
                (Some(sort), bytes)
            }
        };
        match (&self.sort, sort) {
            (None, Some(sort)) => {
                let row = sort.row_bytes();
                let rows = self.expected.min(self.file_bytes / HEAD_BYTES_IN_FILE) as usize;
                let memory = row.saturating_mul(rows).min(self.file_bytes as usize * 2);
                let _ = self.bytes.try_reserve(memory);
                self.sort = Some(sort);
            }
            (Some(first), Some(sort)) if *first != sort => {
                return Err(match self.field {
                    "" => "its messages have several types; read them with messages()".to_owned(),
                    _ => "the field has several lengths or types; read it with messages()".into(),
                });
            }
            _ => {}
        }
        let row = self.sort.as_ref().map_or(0, Sort::row_bytes);
        if self.bytes.try_reserve(row).is_err() {
            return Err("its messages need more memory than there is".to_owned());
        }
        let begin = self.bytes.len();
        self.bytes.extend_from_slice(&publish_ns.to_le_bytes());
        self.bytes.extend_from_slice(&log_ns.to_le_bytes());
        self.bytes.extend_from_slice(&u64::from(sequence).to_le_bytes());
        self.bytes.extend_from_slice(&value);
        self.bytes.resize(begin + row, 0);
        Ok(())
    }

    fn sort_of_layout(types: &HashMap<u16, BagType>, field: &str) -> Result<Sort, String> {
        let layout = types.values().find_map(|ty| ty.layout.as_ref());
        let layout = layout.filter(|it| field.is_empty() && elements_of(it).is_none());
        let sort = layout.map(|it| Sort::Plain(Box::new(it.clone())));
        sort.ok_or_else(|| "there is no message that shows how long its rows are".to_owned())
    }
}

/// The Python object that reads the messages of a type.
fn codec(py: Python<'_>, ty: BagType) -> PyResult<Arc<Carried>> {
    let class = py.import("myelin._bag")?.getattr("MessageType")?;
    Ok(Arc::new(Carried::new(&class.call1((Py::new(py, ty)?,))?)?))
}

fn no_topic(path: &Path, reader: &myelin_bag::BagReader, name: &str) -> PyErr {
    let topics: BTreeSet<&str> = reader.info().definitions.topics().collect();
    let mut names: Vec<_> = topics.iter().take(NAMES_SHOWN).map(|it| format!("{it:?}")).collect();
    if topics.len() > NAMES_SHOWN {
        names.push(format!("{} more", topics.len() - NAMES_SHOWN));
    }
    let there = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
    exception(
        "WrongSetting",
        format!("{} has no topic {name:?}; there are {there}", path.display()),
    )
}

/// The name of the type of a channel.
fn type_name(reader: &myelin_bag::BagReader, channel: &Channel) -> String {
    let layout = channel.layout();
    let layout = layout.and_then(|text| myelin::value::Schema::layout(text).parse().ok());
    let schema = reader.info().definitions.schemas.get(&channel.schema);
    let of_schema = || schema.map_or_else(String::new, |schema| schema.name.clone());
    layout.map_or_else(of_schema, |layout| layout.to_string())
}

fn not_opened(path: &Path, error: OpenError) -> PyErr {
    match error {
        OpenError::Io(error) => os_error(path, &error),
        other => exception("BagError", format!("{}: {other}", path.display())),
    }
}

/// Python's error for one of the file system, such as `FileNotFoundError`.
pub fn os_error(path: &Path, error: &io::Error) -> PyErr {
    match error.raw_os_error() {
        Some(code) => Python::attach(|py| {
            let text = py.import("os").and_then(|os| os.call_method1("strerror", (code,)));
            match text {
                Ok(text) => PyOSError::new_err((code, text.unbind(), path.to_owned())),
                Err(error) => error,
            }
        }),
        None => exception("BagError", format!("{}: {error}", path.display())),
    }
}

/// A part that cannot be read is a warning; after everything else nothing follows.
fn report(py: Python<'_>, path: &Path, error: MessagesError) -> PyResult<()> {
    match error {
        MessagesError::Lost(loss) => warn(py, &format!("{}: {loss}", path.display())),
        MessagesError::Io(error) => Err(os_error(path, &error)),
        other => Err(exception("BagError", format!("{}: {other}", path.display()))),
    }
}

const NO_LAYOUT: &str = "only plain data have a dtype; name a field that has numbers";
const DIFFERENT_LENGTHS: &str =
    "its messages have different lengths; read them one by one with messages()";
/// What is read between two looks for Ctrl-C.
const STEP_MESSAGES: usize = 4096;
const STEP_BYTES: usize = 64 << 20;
/// The bytes of a message's record without its data.
const HEAD_BYTES_IN_FILE: u64 = 31;
const NAMES_SHOWN: usize = 8;
