//! The receiving side of a topic: by polling, waiting, iteration, callbacks, or asyncio.

use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, RawFd};
use std::sync::Arc;

use myelin::Wait;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::callback::Callback;
use crate::errors::exception;
use crate::exclusive::Exclusive;
use crate::function::Function;
use crate::info::{Event, events};
use crate::node::limit;
use crate::sample::Sample;
use crate::samples;
use crate::types::Carried;

/// Takes samples of a topic. One thread at a time uses it.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Subscriber {
    inner: Exclusive<Inner>,
    /// Called when it is closed, while its descriptor still exists; set by a task that waits for
    /// the descriptor.
    on_close: Function,
    carried: Arc<Carried>,
}

pub enum Inner {
    Plain(myelin::Subscriber<[u8]>),
    WithDescriptor(myelin::FdSubscriber<[u8]>),
}

impl Deref for Inner {
    type Target = myelin::Subscriber<[u8]>;

    fn deref(&self) -> &Self::Target {
        match self {
            Inner::Plain(subscriber) => subscriber,
            Inner::WithDescriptor(subscriber) => subscriber,
        }
    }
}

impl DerefMut for Inner {
    fn deref_mut(&mut self) -> &mut Self::Target {
        match self {
            Inner::Plain(subscriber) => subscriber,
            Inner::WithDescriptor(subscriber) => subscriber,
        }
    }
}

impl Subscriber {
    pub fn new(inner: Inner, carried: &Arc<Carried>) -> Subscriber {
        let interrupter = inner.interrupter();
        let inner = Exclusive::new(inner, interrupter, "subscriber");
        Subscriber { inner, on_close: Function::default(), carried: carried.clone() }
    }

    /// Gives the subscriber to a caller of functions; it is used up.
    pub fn hand_over(&self) -> PyResult<(myelin::Subscriber<[u8]>, Arc<Carried>)> {
        let inner = self.inner.lock()?;
        if matches!(*inner, Inner::WithDescriptor(_)) {
            let message = "a subscriber with a descriptor has no callback; make one without";
            return Err(exception("WrongSetting", message.to_string()));
        }
        match inner.take() {
            Inner::Plain(subscriber) => Ok((subscriber, self.carried.clone())),
            Inner::WithDescriptor(_) => Err(self.inner.closed()),
        }
    }

    fn sample(&self, sample: myelin::Sample<[u8]>) -> Sample {
        Sample::new(sample, &self.carried)
    }

    pub fn with<R>(&self, act: impl FnOnce(&mut Inner) -> R) -> PyResult<R> {
        self.inner.with(act)
    }
}

samples!(Subscriber, Sample);

#[pymethods]
impl Subscriber {
    /// Its samples for `async for`; make it with `descriptor=True`.
    fn __aiter__<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
        slf.get().fileno()?;
        slf.py().import("myelin._asyncio")?.call_method1("Samples", (slf,))
    }

    /// The descriptor for `select`, `epoll` or asyncio; make it with `descriptor=True`. Take until
    /// nothing is left, then wait for it again.
    fn fileno(&self) -> PyResult<RawFd> {
        self.with(|subscriber| match subscriber {
            Inner::WithDescriptor(subscriber) => Ok(subscriber.as_raw_fd()),
            Inner::Plain(_) => Err(exception(
                "WrongSetting",
                "this subscriber has no descriptor; make it by topic.subscriber(descriptor=True)"
                    .to_string(),
            )),
        })?
    }

    /// Calls `function` with every sample from now on, until the returned callback is closed. The
    /// subscriber itself is used up.
    #[pyo3(signature = (function, *, concurrent=false))]
    fn on_sample(
        &self,
        py: Python<'_>,
        function: Py<PyAny>,
        concurrent: bool,
    ) -> PyResult<Py<Callback>> {
        let (subscriber, carried) = self.hand_over()?;
        Callback::start(py, subscriber, function, concurrent, &carried)
    }

    /// How it waits: `adaptive`, `block`, `poll`, `predictive`.
    #[pyo3(signature = (how, *, cpu_permille=None))]
    fn set_wait(&self, how: &str, cpu_permille: Option<u16>) -> PyResult<()> {
        let wait = wait_of(how, cpu_permille)?;
        self.with(|subscriber| subscriber.set_wait(wait))
    }

    /// Whether there are published samples that have not been taken. While a sample's memory is
    /// being mapped, `take` returns None, and this is True.
    #[getter]
    fn has_unread(&self) -> PyResult<bool> {
        self.with(|subscriber| subscriber.has_unread())
    }

    /// How many samples were lost so far, because it was further behind than its depth.
    #[getter]
    fn lost(&self) -> PyResult<u64> {
        self.with(|subscriber| subscriber.lost())
    }

    /// How many publishers it is matched with now.
    #[getter]
    fn matched(&self) -> PyResult<usize> {
        self.with(|subscriber| subscriber.matched())
    }

    /// Waits until it is matched with so many, for at most `timeout` seconds (None: for ever).
    /// False if the time is over.
    #[pyo3(signature = (publishers=1, timeout=None))]
    fn wait_for_match(
        &self,
        py: Python<'_>,
        publishers: usize,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        let limit = limit(timeout)?;
        let is_matched = self.inner.look(py, |subscriber| {
            Ok(subscriber.wait_for_match(publishers, limit).then_some(()))
        })?;
        Ok(is_matched.is_some())
    }

    /// The events of its matches since the last call.
    fn events(&self) -> PyResult<Vec<Event>> {
        Ok(events(self.with(|subscriber| subscriber.events())?))
    }

    /// Its endpoint id, as in events, samples and graphs.
    #[getter]
    fn id(&self) -> PyResult<u64> {
        self.with(|subscriber| subscriber.id())
    }

    /// Sets a function that its close calls once, or none.
    fn _on_close(&self, py: Python<'_>, function: Option<Py<PyAny>>) {
        drop(self.on_close.replace(py, function));
    }

    /// Closes it, and ends a running wait in any thread. Samples that are held stay valid.
    fn close(&self, py: Python<'_>) {
        if let Some(function) = self.on_close.replace(py, None)
            && let Err(error) = function.call0(py)
        {
            error.write_unraisable(py, Some(function.bind(py)));
        }
        self.inner.close();
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.on_close.traverse(&visit)
    }

    fn __clear__(&self) {
        Python::attach(|py| drop(self.on_close.replace(py, None)));
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close(py);
    }
}

/// A way of waiting by its name.
pub fn wait_of(how: &str, cpu_permille: Option<u16>) -> PyResult<Wait> {
    match (how, cpu_permille) {
        ("adaptive", None) => Ok(Wait::Adaptive),
        ("block", None) => Ok(Wait::Block),
        ("poll", None) => Ok(Wait::Poll),
        ("predictive", None) => Ok(Wait::Predictive),
        ("predictive", Some(cpu_permille)) => Ok(Wait::PredictiveWithin { cpu_permille }),
        _ => Err(exception(
            "WrongSetting",
            format!(
                "wait is {how:?}; use adaptive, block, poll or predictive (predictive with \
                 cpu_permille)"
            ),
        )),
    }
}
