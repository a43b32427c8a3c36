//! A recorder: it writes the samples of topics to a file while they are published.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use myelin_bag::recorder::{End, FileOptions, Files, RecorderError, Status};
use pyo3::IntoPyObjectExt;
use pyo3::prelude::*;

use crate::bag::{Losses, os_error};
use crate::call::forks;
use crate::errors::{closed, exception, raised};
use crate::gil_cell::GilCell;
use crate::info::representation;
use crate::node::{Node, limit, seconds};
use crate::released::{Released, released};

/// Records topics, from when it is made until it is closed.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Recorder {
    path: PathBuf,
    inner: GilCell<State>,
    forks: u32,
}

enum State {
    Records(Released<myelin_bag::Recorder>),
    /// Another call closes it.
    Closes,
    Closed(Box<Status>, Option<String>),
}

/// How a recording goes.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct RecorderStatus {
    /// How long it has run, in seconds.
    elapsed: f64,
    /// Its messages.
    messages: u64,
    /// The bytes of their samples.
    bytes: u64,
    /// Messages that were left out because of a limit of their topic's rate.
    skipped: u64,
    /// Messages that were published and are not in the recording.
    losses: Py<Losses>,
    /// Bytes of samples that are not written yet.
    buffered_bytes: u64,
    /// The bytes of its files.
    file_bytes: u64,
    /// The files, the oldest first.
    files: Vec<PathBuf>,
    /// In the order in which they were found.
    topics: Vec<Py<RecordedTopic>>,
    /// Why it has ended by itself; None if it has not.
    ended: Option<String>,
}

/// A topic that is recorded.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct RecordedTopic {
    name: String,
    type_name: String,
    /// How many are there now.
    publishers: u64,
    /// In the recording.
    messages: u64,
    bytes: u64,
    skipped: u64,
    losses: Py<Losses>,
}

representation!(RecorderStatus: elapsed, messages, bytes, losses, ended);
representation!(RecordedTopic: name, type_name, publishers, messages, losses);

#[pymethods]
impl Recorder {
    /// Starts to record to a new file. `topics` and `types` are names or patterns with `*` and `?`;
    /// without both, all topics are recorded. Without a node it opens one of its own.
    #[new]
    #[pyo3(signature = (
        path, topics=None, *, types=None, exclude=None, reliable=None, max_rate=None, services=false,
        messages_max=None, buffer_bytes=None, split_bytes=None, split_time=None, keep_free_bytes=None,
        delete_oldest=false, node=None
    ))]
    #[expect(clippy::too_many_arguments, reason = "named in Python")]
    fn new(
        py: Python<'_>,
        path: PathBuf,
        topics: Option<Vec<String>>,
        types: Option<Vec<String>>,
        exclude: Option<Vec<String>>,
        reliable: Option<Vec<String>>,
        max_rate: Option<std::collections::BTreeMap<String, f64>>,
        services: bool,
        messages_max: Option<u64>,
        buffer_bytes: Option<u64>,
        split_bytes: Option<u64>,
        split_time: Option<f64>,
        keep_free_bytes: Option<u64>,
        delete_oldest: bool,
        node: Option<Bound<'_, Node>>,
    ) -> PyResult<Recorder> {
        let node = node_or_own(py, node.as_ref(), "recorder")?;
        let mut builder = myelin_bag::Recorder::builder(&node).services(services);
        for pattern in topics.iter().flatten() {
            builder = builder.topic(pattern);
        }
        for pattern in types.iter().flatten() {
            builder = builder.of_type(pattern);
        }
        for pattern in exclude.iter().flatten() {
            builder = builder.exclude(pattern);
        }
        for pattern in reliable.iter().flatten() {
            builder = builder.reliable(pattern);
        }
        for (pattern, hz) in max_rate.iter().flatten() {
            if hz.is_nan() || *hz <= 0.0 {
                let message =
                    format!("max_rate of {pattern:?} is {hz}; use a number of Hz above 0");
                return Err(exception("WrongSetting", message));
            }
            builder = builder.max_rate(pattern, *hz);
        }
        if let Some(messages) = messages_max {
            builder = builder.messages_max(messages);
        }
        if let Some(bytes) = buffer_bytes {
            builder = builder.buffer_bytes(bytes);
        }
        let mut options = FileOptions::default();
        options.split_bytes = split_bytes;
        options.split_time = split_time.map(seconds).transpose()?;
        options.keep_free_bytes = keep_free_bytes;
        options.delete_oldest = delete_oldest;
        let started = released(py, || {
            let files = Files::create(&path, options)?;
            builder.start(files)
        });
        let recorder = started.map_err(|error| not_started(&path, error))?;
        let inner = GilCell::new(State::Records(Released::new(recorder)));
        Ok(Recorder { path, inner, forks: forks() })
    }

    /// How it goes; after `close`, how it went.
    fn status(&self, py: Python<'_>) -> PyResult<RecorderStatus> {
        self.check_process()?;
        enum Now {
            Status(Box<Status>, Option<String>),
            Closes,
        }
        // The status takes locks, each for a moment, of threads that never wait for the GIL.
        let now = self.inner.look(py, |state| match state {
            State::Records(recorder) => Now::Status(Box::new(recorder.status()), None),
            State::Closes => Now::Closes,
            State::Closed(status, ended) => Now::Status(status.clone(), ended.clone()),
        });
        match now {
            Now::Status(status, ended) => RecorderStatus::new(py, *status, ended),
            Now::Closes => Err(closed("recorder")),
        }
    }

    /// What the user should know and has not got yet, a sentence each. Empty after `close`, which
    /// gives the rest as warnings.
    fn problems(&self, py: Python<'_>) -> Vec<String> {
        self.inner.look(py, |state| match state {
            State::Records(recorder) => recorder.problems(),
            _ => Vec::new(),
        })
    }

    /// Whether it records. False after `close`, and when it has ended by itself: it has as many
    /// messages as were wanted, or the disk is full.
    #[getter]
    fn is_recording(&self, py: Python<'_>) -> bool {
        self.inner.look(py, |state| match state {
            State::Records(recorder) => !recorder.is_ending(),
            _ => false,
        })
    }

    /// Waits until it has ended by itself, for at most `timeout` seconds (None: for ever). False if
    /// the time is over.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let (limit, begun) = (limit(timeout)?, Instant::now());
        self.check_process()?;
        while self.is_recording(py) {
            if begun.elapsed() >= limit {
                return Ok(false);
            }
            pause(py, limit.saturating_sub(begun.elapsed()))?;
        }
        Ok(true)
    }

    /// Ends the recording: takes what was published before, waits until all is written, and returns
    /// what is in the recording and what is not. A second call returns the same.
    fn close(&self, py: Python<'_>) -> PyResult<RecorderStatus> {
        self.check_process()?;
        let is_open = self.inner.look(py, |state| match state {
            State::Records(recorder) => {
                recorder.end();
                true
            }
            _ => false,
        });
        if !is_open {
            return self.status(py);
        }
        let is_finished = || {
            self.inner.look(py, |state| match state {
                State::Records(recorder) => recorder.is_finished(),
                _ => true,
            })
        };
        while !is_finished() {
            pause(py, Duration::MAX)?;
        }
        match self.inner.replace(py, State::Closes) {
            State::Records(recorder) => {
                let recorded = released(py, || recorder.into_inner().finish());
                let ended = match recorded.end {
                    End::Stopped => None,
                    End::Count => Some("it has as many messages as were wanted".to_owned()),
                    End::LittleSpace(why) | End::Failed(why) => Some(why),
                    _ => Some("it has ended".to_owned()),
                };
                let closed = State::Closed(Box::new(recorded.status), ended);
                drop(self.inner.replace(py, closed));
                for problem in recorded.problems {
                    warn(py, &format!("{}: {problem}", self.path.display()))?;
                }
            }
            // Another thread was faster.
            other => drop(self.inner.replace(py, other)),
        }
        self.status(py)
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(
        &self,
        py: Python<'_>,
        _kind: Py<PyAny>,
        _value: Py<PyAny>,
        _trace: Py<PyAny>,
    ) -> PyResult<()> {
        // In a child of `fork` it is the parent's.
        if self.check_process().is_err() { Ok(()) } else { self.close(py).map(drop) }
    }

    fn __repr__(&self) -> String {
        format!("<Recorder {:?}>", self.path)
    }
}

impl Recorder {
    fn check_process(&self) -> PyResult<()> {
        if self.forks == forks() { Ok(()) } else { Err(raised(myelin::Error::Forked)) }
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        if self.forks != forks() {
            // Its threads do not exist in this process, so that nobody could wait for them.
            Python::try_attach(|py| std::mem::forget(self.inner.replace(py, State::Closes)));
        }
    }
}

impl RecorderStatus {
    fn new(py: Python<'_>, status: Status, ended: Option<String>) -> PyResult<RecorderStatus> {
        let topics = status.topics.into_iter().map(|it| {
            let topic = RecordedTopic {
                name: it.name,
                type_name: it.type_name,
                publishers: it.publishers,
                messages: it.messages,
                bytes: it.bytes,
                skipped: it.skipped,
                losses: Py::new(py, Losses::from(it.losses))?,
            };
            Py::new(py, topic)
        });
        Ok(RecorderStatus {
            elapsed: status.elapsed.as_secs_f64(),
            messages: status.messages,
            bytes: status.bytes,
            skipped: status.skipped,
            losses: Py::new(py, Losses::from(status.losses))?,
            buffered_bytes: status.buffered_bytes,
            file_bytes: status.progress.bytes,
            files: status.progress.files,
            topics: topics.collect::<PyResult<_>>()?,
            ended,
        })
    }
}

/// The node, or one of its own.
pub fn node_or_own(
    py: Python<'_>,
    node: Option<&Bound<'_, Node>>,
    name: &str,
) -> PyResult<Released<myelin::Node>> {
    match node {
        Some(node) => node.get().node(py),
        None => {
            let builder = myelin::Node::builder(name).announced_as(None, "Python");
            released(py, || builder.open()).map(Released::new).map_err(raised)
        }
    }
}

/// A moment without the GIL; then Python's signal handlers run.
pub fn pause(py: Python<'_>, at_most: Duration) -> PyResult<()> {
    released(py, || std::thread::sleep(at_most.min(LOOK)));
    py.check_signals()
}

pub fn warn(py: Python<'_>, text: &str) -> PyResult<()> {
    let text = std::ffi::CString::new(text.replace('\0', " "))?;
    PyErr::warn(py, &py.get_type::<pyo3::exceptions::PyRuntimeWarning>(), &text, 1)
}

fn not_started(path: &std::path::Path, error: RecorderError) -> PyErr {
    match error {
        RecorderError::Library(error) => raised(error),
        RecorderError::Write(myelin_bag::WriteError::Io(error)) => os_error(path, &error),
        other => exception("BagError", format!("{}: {other}", path.display())),
    }
}

const LOOK: Duration = Duration::from_millis(5);
