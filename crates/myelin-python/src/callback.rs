//! A function that is called with every sample.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::call::{Target, call, raise_in_callback, wait_until_closed};
use crate::errors::{closed, raised};
use crate::finalized;
use crate::function::{Closes, Function};
use crate::gil_cell::GilCell;
use crate::info::{Event, events};
use crate::node::limit;
use crate::released::Released;
use crate::sample::Sample;
use crate::types::Carried;

/// A function that is called with every sample: inside the publish for a publisher of this process,
/// otherwise in a thread of its own. Exceptions go to `sys.unraisablehook`, except
/// `KeyboardInterrupt` and `SystemExit`, which the publish raises. Keep the handle: dropping it
/// ends the calls.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Callback {
    inner: GilCell<Option<Arc<Released<myelin::Callback>>>>,
    is_closed: AtomicBool,
    function: Function,
}

impl Callback {
    pub fn start(
        py: Python<'_>,
        subscriber: myelin::Subscriber<[u8]>,
        function: Py<PyAny>,
        concurrent: bool,
        carried: &Arc<Carried>,
    ) -> PyResult<Py<Callback>> {
        let carried = carried.clone();
        Callback::of(py, function, |function| {
            let call = move |sample: &myelin::Sample<[u8]>| {
                let sample = Sample::new(sample.clone(), &carried);
                call_with(&function, sample);
            };
            match concurrent {
                true => subscriber.on_sample_concurrent(call),
                false => subscriber.on_sample(call),
            }
        })
    }

    /// A handle that is closed at the latest when Python ends: no call may begin after that.
    pub fn of(
        py: Python<'_>,
        function: Py<PyAny>,
        start: impl FnOnce(Function) -> Result<myelin::Callback, myelin::Error>,
    ) -> PyResult<Py<Callback>> {
        let function = Function::new(function);
        let started = call(py, || start(function.clone()))?;
        let inner = GilCell::new(Some(Arc::new(Released::new(started))));
        let callback = Callback { inner, is_closed: AtomicBool::new(false), function };
        let callback = Py::new(py, callback)?;
        py.import("myelin._callbacks")?.call_method1("keep", (&callback,))?;
        Ok(callback)
    }

    fn with<R>(&self, py: Python<'_>, act: impl FnOnce(&myelin::Callback) -> R) -> PyResult<R> {
        Ok(act(&*self.inner(py)?))
    }

    fn inner(&self, py: Python<'_>) -> PyResult<Arc<Released<myelin::Callback>>> {
        self.inner.look(py, Option::clone).ok_or_else(|| closed("callback"))
    }

    fn end(&self, py: Python<'_>) {
        self.is_closed.store(true, Ordering::Relaxed);
        let inner = self.inner.replace(py, None);
        // No call begins any more, even if another thread is just about to call it.
        drop(self.function.replace(py, None));
        drop(inner);
    }
}

/// Calls `function` with `argument`, if the function still exists.
pub fn call_with<A>(function: &Function, argument: A)
where
    A: pyo3::PyClass + Into<PyClassInitializer<A>>,
{
    // While the interpreter shuts down, there are no calls.
    Python::try_attach(|py| {
        let Some(function) = function.get(py) else { return };
        if let Err(error) = Bound::new(py, argument).and_then(|it| function.call1((it,))) {
            raise_in_callback(py, error, &function);
        }
    });
}

#[pymethods]
impl Callback {
    /// How many calls have ended so far.
    #[getter]
    fn calls(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |callback| callback.calls())
    }

    /// How many samples were lost so far.
    #[getter]
    fn lost(&self, py: Python<'_>) -> PyResult<u64> {
        self.with(py, |callback| callback.lost())
    }

    /// Raises the latest error of a take, once. The calls go on after it.
    fn check(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |callback| callback.error())?.map_or(Ok(()), |error| Err(raised(error)))
    }

    /// How many publishers it is matched with now.
    #[getter]
    fn matched(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |callback| callback.matched())
    }

    /// Waits until it is matched with so many, for at most `timeout` seconds (None: for ever).
    #[pyo3(signature = (publishers=1, timeout=None))]
    fn wait_for_match(
        &self,
        py: Python<'_>,
        publishers: usize,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        let limit = limit(timeout)?;
        let callback = self.inner(py)?;
        let target = Target { is_closed: &self.is_closed, what: "callback", is_woken: false };
        let is_matched = wait_until_closed(py, &target, || {
            Ok(callback.wait_for_match(publishers, limit).then_some(()))
        })?;
        Ok(is_matched.is_some())
    }

    /// The events of its matches since the last call.
    fn events(&self, py: Python<'_>) -> PyResult<Vec<Event>> {
        Ok(events(self.with(py, |callback| callback.events())?))
    }

    /// Ends the calls, and waits for a running call, unless the caller is inside it.
    fn close(&self, py: Python<'_>) {
        self.end(py);
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        self.function.traverse(&visit)
    }

    fn __clear__(&self) {
        Python::attach(|py| self.end(py));
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.end(py);
    }
}

impl Closes for Callback {
    fn close_garbage(&self, py: Python<'_>) {
        self.end(py);
    }
}

finalized!(Callback);
