//! Recordings: messages of an MCAP file, whose bytes lie in the chunk that was read.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use myelin_bag::{MessageHead, MessageType, MessagesError, Selection, Time};
use pyo3::exceptions::{PyKeyError, PyOSError, PyRuntimeWarning, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::any::{numbers, object};
use crate::errors::wrong_value;
use crate::memory::{Bytes, Exports, Held, Memory};
use crate::readable;
use crate::types::{Carried, Type};

/// A recording: an MCAP file of `myelin record`, `ros2 bag` or another program.
#[pyclass(frozen, subclass, module = "myelin._native")]
pub struct BagReader(myelin_bag::BagReader);

/// How the messages of a channel are read.
#[pyclass(frozen, module = "myelin._native")]
pub struct BagType(Result<MessageType, String>);

/// Messages of a recording, in order of time.
#[pyclass(frozen, module = "myelin")]
pub struct BagMessages {
    messages: Mutex<myelin_bag::Messages>,
    channels: BTreeMap<u16, (String, Arc<Carried>)>,
}

/// A message of a recording: a read-only buffer. The chunk that it is in stays in memory as long as
/// the message or a view of it (an array, a memoryview) exists.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct BagMessage(Held<myelin_bag::Message>, MessageHead, String);

impl Memory for myelin_bag::Message {
    const IS_WRITABLE: bool = false;
    const ENDS_AT_ONCE: bool = true;

    fn bytes(&mut self) -> (*mut u8, usize) {
        let data = self.data();
        (data.as_ptr().cast_mut(), data.len())
    }
}

impl Exports for BagMessage {
    type Of = myelin_bag::Message;

    fn held(&self) -> &Held<Self::Of> {
        &self.0
    }
}

readable!(BagMessage);

#[pymethods]
impl BagReader {
    /// Opens a file. Of a broken one all is read, and `lost_messages` says what is missing.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<BagReader> {
        let opened = py.detach(|| myelin_bag::BagReader::open(&path));
        opened.map(BagReader).map_err(|error| match error {
            myelin_bag::OpenError::Io(error) => error.into(),
            other => PyValueError::new_err(format!("{}: {other}", path.display())),
        })
    }

    /// The topics: of each the name of its type, and the number of messages.
    #[getter]
    fn topics(&self) -> BTreeMap<String, (String, u64)> {
        let info = self.0.info();
        let mut topics = BTreeMap::new();
        for (id, channel) in &info.definitions.channels {
            let schema = info.definitions.schemas.get(&channel.schema);
            let ty = schema.map(|schema| schema.name.clone()).unwrap_or_default();
            let (_, messages) = topics.entry(channel.topic.clone()).or_insert((ty, 0));
            *messages += info.statistics.by_channel.get(id).copied().unwrap_or(0);
        }
        topics
    }

    /// The log time of the first message, in ns since 1970; None without messages.
    #[getter]
    fn start_ns(&self) -> Option<u64> {
        let statistics = &self.0.info().statistics;
        (statistics.messages > 0).then_some(statistics.times.0)
    }

    /// The log time of the last message, in ns since 1970; None without messages.
    #[getter]
    fn end_ns(&self) -> Option<u64> {
        let statistics = &self.0.info().statistics;
        (statistics.messages > 0).then_some(statistics.times.1)
    }

    /// Messages of a broken file that cannot be read, as far as that is known.
    #[getter]
    fn lost_messages(&self) -> u64 {
        self.0.report().map_or(0, |report| report.lost().known)
    }

    fn _messages(
        &self,
        py: Python<'_>,
        topics: Option<Vec<String>>,
        start_ns: Option<u64>,
        end_ns: Option<u64>,
        by: &str,
        make: &Bound<'_, PyAny>,
    ) -> PyResult<BagMessages> {
        let mut selection = Selection::default();
        (selection.start_ns, selection.end_ns) = (start_ns, end_ns);
        selection.by = match by {
            "log" => Time::Log,
            "publish" => Time::Publish,
            _ => return Err(PyValueError::new_err("by is 'log' or 'publish'")),
        };
        let definitions = &self.0.info().definitions;
        if let Some(topics) = topics {
            let mut channels = std::collections::BTreeSet::new();
            for topic in topics {
                let of_topic = self.0.channels_of(&topic);
                if of_topic.is_empty() {
                    return Err(PyKeyError::new_err(format!("there is no topic {topic:?}")));
                }
                channels.extend(of_topic);
            }
            selection.channels = Some(channels);
        }
        let mut channels = BTreeMap::new();
        for (id, channel) in &definitions.channels {
            if selection.channels.as_ref().is_none_or(|chosen| chosen.contains(id)) {
                let ty = MessageType::new(channel, definitions.schemas.get(&channel.schema));
                let ty = BagType(ty.map_err(|error| error.to_string()));
                let carried = Carried::new(&make.call1((ty,))?)?;
                channels.insert(*id, (channel.topic.clone(), Arc::new(carried)));
            }
        }
        let messages = py.detach(|| self.0.messages(&selection))?;
        Ok(BagMessages { messages: Mutex::new(messages), channels })
    }

    fn __repr__(&self) -> String {
        let statistics = &self.0.info().statistics;
        format!("<BagReader of {} messages>", statistics.messages)
    }
}

#[pymethods]
impl BagType {
    /// Messages are rows of bytes.
    #[getter]
    fn native(&self) -> PyResult<Type> {
        let byte = myelin::Layout::scalar("u8").expect("it is a number");
        Type::of(myelin::DynamicType::slice(&byte).expect("a slice of bytes"))
    }

    /// A message as a Python object of its own.
    fn value<'py>(&self, message: &Bound<'py, PyAny>) -> PyResult<Bound<'py, PyAny>> {
        let bytes = Bytes::of(message)?;
        let ty = self.readable()?;
        // SAFETY: the buffer keeps its bytes, which nobody changes.
        let data = unsafe { slice(&bytes) };
        if ty.ty().is_none() {
            let text = PyBytes::new(message.py(), data);
            return message.py().import("json")?.call_method1("loads", (text,));
        }
        let value = ty.value(data).map_err(|error| wrong_value(error.to_string()))?;
        object(message.py(), &value)
    }

    /// A part of a message; numbers as `Numbers`.
    fn field<'py>(&self, message: &Bound<'py, PyAny>, path: &str) -> PyResult<Bound<'py, PyAny>> {
        let bytes = Bytes::of(message)?;
        let ty = self.readable()?;
        // SAFETY: the buffer keeps its bytes, which nobody changes.
        let value = ty.value(unsafe { slice(&bytes) }).and_then(|value| value.get(path));
        let value = value.map_err(|error| wrong_value(error.to_string()))?;
        match numbers(&value, &bytes) {
            Some(numbers) => Ok(Bound::new(message.py(), numbers)?.into_any()),
            None => object(message.py(), &value),
        }
    }
}

impl BagType {
    fn readable(&self) -> PyResult<&MessageType> {
        self.0.as_ref().map_err(|why| wrong_value(format!("{why}; take bytes(message)")))
    }
}

/// The bytes of a buffer.
///
/// # Safety
/// Nobody changes them while they are used.
unsafe fn slice(bytes: &Bytes) -> &[u8] {
    if bytes.length() == 0 {
        return &[];
    }
    // SAFETY: the buffer keeps its bytes as long as `bytes` lives.
    unsafe { std::slice::from_raw_parts(bytes.pointer(), bytes.length()) }
}

#[pymethods]
impl BagMessages {
    fn __iter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __next__(&self, py: Python<'_>) -> PyResult<Option<BagMessage>> {
        loop {
            let next =
                py.detach(|| self.messages.lock().unwrap_or_else(PoisonError::into_inner).next());
            match next {
                None => return Ok(None),
                Some(Ok(message)) => {
                    let head = message.head;
                    let Some((topic, carried)) = self.channels.get(&head.channel) else { continue };
                    let held = Held::new(message, carried.clone());
                    return Ok(Some(BagMessage(held, head, topic.clone())));
                }
                Some(Err(MessagesError::Lost(loss))) => {
                    let text = std::ffi::CString::new(loss.to_string())?;
                    PyErr::warn(py, &py.get_type::<PyRuntimeWarning>(), &text, 1)?;
                }
                Some(Err(error)) => return Err(PyOSError::new_err(error.to_string())),
            }
        }
    }
}

#[pymethods]
impl BagMessage {
    /// The topic.
    #[getter]
    fn topic(&self) -> &str {
        &self.2
    }

    /// Its number in the topic, which wraps at 2³².
    #[getter]
    fn sequence(&self) -> u32 {
        self.1.sequence
    }

    /// When it was recorded, in ns since 1970.
    #[getter]
    fn log_time_ns(&self) -> u64 {
        self.1.log_ns
    }

    /// When it was published, in ns since 1970.
    #[getter]
    fn publish_time_ns(&self) -> u64 {
        self.1.publish_ns
    }

    /// Releases the memory now; if it is viewed, with the last view.
    fn release(&self) {
        self.0.release("released");
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.release();
    }

    fn __repr__(&self) -> String {
        format!("<BagMessage {} of {:?}>", self.1.sequence, self.2)
    }
}
