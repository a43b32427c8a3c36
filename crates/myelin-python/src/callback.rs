//! A function that is called with every sample.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use pyo3::prelude::*;

use crate::errors::{closed, raised};
use crate::info::{Event, events};
use crate::node::{limit, slices};
use crate::released::{Released, released};
use crate::sample::Sample;
use crate::types::Carried;

/// A function that is called with every sample: inside the publish of a publisher of this process, else by
/// a thread of its own. What it raises goes to `sys.unraisablehook`. Keep the handle: its end ends the
/// calls.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Callback(Mutex<Option<Arc<Released<myelin::Callback>>>>);

impl Callback {
    pub fn start(
        py: Python<'_>,
        subscriber: myelin::Subscriber<[u8]>,
        function: Py<PyAny>,
        concurrent: bool,
        carried: &Arc<Carried>,
    ) -> PyResult<Py<Callback>> {
        let carried = carried.clone();
        let call = move |sample: &myelin::Sample<[u8]>| {
            let sample = Sample::new(sample.clone(), &carried);
            call_with(&function, |_| Ok(sample));
        };
        let started = released(py, || match concurrent {
            true => subscriber.on_sample_concurrent(call),
            false => subscriber.on_sample(call),
        });
        Callback::of(py, started.map_err(raised)?)
    }

    /// A handle that is closed when Python ends, if not before: no call may begin then.
    pub fn of(py: Python<'_>, callback: myelin::Callback) -> PyResult<Py<Callback>> {
        let inner = Some(Arc::new(Released::new(callback)));
        let callback = Py::new(py, Callback(Mutex::new(inner)))?;
        py.import("myelin._callbacks")?.call_method1("keep", (&callback,))?;
        Ok(callback)
    }

    /// The lock is not held in `act`, which may let go of the GIL: nobody waits for it with the GIL.
    fn with<R>(&self, act: impl FnOnce(&myelin::Callback) -> R) -> PyResult<R> {
        let inner = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        let inner = inner.ok_or_else(|| closed("callback"))?;
        Ok(act(&inner))
    }
}

/// Calls `function` with what `argument` makes. What it raises goes to `sys.unraisablehook`.
pub fn call_with<A>(function: &Py<PyAny>, argument: impl FnOnce(Python<'_>) -> PyResult<A>)
where
    A: pyo3::PyClass + Into<PyClassInitializer<A>>,
{
    // Of an interpreter that is going there are no calls.
    Python::try_attach(|py| {
        let called =
            argument(py).and_then(|it| Py::new(py, it)).and_then(|it| function.call1(py, (it,)));
        if let Err(error) = called {
            error.write_unraisable(py, Some(function.bind(py)));
        }
    });
}

#[pymethods]
impl Callback {
    /// Calls that have ended so far.
    #[getter]
    fn calls(&self) -> PyResult<u64> {
        self.with(|callback| callback.calls())
    }

    /// Samples lost so far.
    #[getter]
    fn lost(&self) -> PyResult<u64> {
        self.with(|callback| callback.lost())
    }

    /// Raises the latest error of taking, once; the calls go on after it.
    fn check(&self) -> PyResult<()> {
        self.with(|callback| callback.error())?.map_or(Ok(()), |error| Err(raised(error)))
    }

    /// How many publishers it is matched with now.
    #[getter]
    fn matched(&self) -> PyResult<usize> {
        self.with(|callback| callback.matched())
    }

    /// Waits until it is matched with so many, for `timeout` seconds at most (None: for ever).
    #[pyo3(signature = (publishers=1, timeout=None))]
    fn wait_for_match(
        &self,
        py: Python<'_>,
        publishers: usize,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        let limit = limit(timeout)?;
        slices(py, limit, |slice| {
            self.with(|callback| released(py, || callback.wait_for_match(publishers, slice)))
        })
    }

    /// What has happened to its matches since the last call.
    fn events(&self) -> PyResult<Vec<Event>> {
        Ok(events(self.with(|callback| callback.events())?))
    }

    /// Ends the calls, and waits for the one that is under way, unless that is the caller.
    fn close(&self, py: Python<'_>) {
        let Some(mut inner) = self.0.lock().unwrap_or_else(PoisonError::into_inner).take() else {
            return;
        };
        // Another thread may be in `wait_for_match`.
        while let Err(shared) = Arc::try_unwrap(inner) {
            released(py, || std::thread::sleep(Duration::from_millis(1)));
            inner = shared;
        }
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close(py);
    }
}
