//! The publishing side of a topic.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::call::{Target, call, call_until_closed, wait_until_closed};
use crate::errors::{closed, raised, wrong_value};
use crate::gil_cell::GilCell;
use crate::info::{Event, Published, events};
use crate::loan::Loan;
use crate::node::limit;
use crate::released::{Released, released};
use crate::types::Carried;

/// Publishes samples of a topic. Threads may share it; they take turns.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Publisher {
    inner: GilCell<Option<Released<myelin::SharedPublisher<[u8]>>>>,
    /// Shared with its loans.
    is_closed: Arc<AtomicBool>,
    id: u64,
    carried: Arc<Carried>,
}

impl Publisher {
    pub fn new(publisher: myelin::Publisher<[u8]>, carried: &Arc<Carried>) -> Publisher {
        let id = publisher.id();
        let inner = GilCell::new(Some(Released::new(publisher.shared())));
        Publisher { inner, is_closed: Arc::default(), id, carried: carried.clone() }
    }

    fn publisher(&self, py: Python<'_>) -> PyResult<myelin::SharedPublisher<[u8]>> {
        let publisher = self.inner.look(py, |inner| inner.as_ref().map(|inner| (**inner).clone()));
        publisher.ok_or_else(|| closed("publisher"))
    }

    fn with<R>(
        &self,
        py: Python<'_>,
        act: impl FnOnce(&myelin::SharedPublisher<[u8]>) -> Result<R, myelin::Error>,
    ) -> PyResult<R> {
        let publisher = self.publisher(py)?;
        // Dropped there, too: it may be the last reference.
        call_until_closed(py, &self.target(), move || act(&publisher))
    }

    fn target(&self) -> Target<'_> {
        Target { is_closed: &self.is_closed, what: "publisher", is_woken: false }
    }
}

#[pymethods]
impl Publisher {
    /// Publishes a copy of `value`: a buffer, or an object of the topic's type.
    fn publish(&self, py: Python<'_>, value: &Bound<'_, PyAny>) -> PyResult<Published> {
        let bytes = self.carried.pack(value)?;
        let (from, length) = (bytes.pointer(), bytes.length());
        let published = if length <= INLINE_BYTES_MAX {
            let mut copy = [0; INLINE_BYTES_MAX];
            // SAFETY: so many bytes lie there, held by the view; the copy has room.
            unsafe { from.copy_to_nonoverlapping(copy.as_mut_ptr(), length) };
            self.with(py, |publisher| publisher.publish_copy(&copy[..length]))?
        } else {
            self.with(py, |publisher| {
                let mut loan = publisher.loan(length)?;
                let to = loan.as_bytes_mut().as_mut_ptr();
                // SAFETY: so many bytes lie there, held by the view; the loan is ours and as long.
                // If another thread writes to them meanwhile, the copy is torn, like any copy in
                // Python.
                unsafe { from.copy_to_nonoverlapping(to, length) };
                loan.publish()
            })?
        };
        Ok(Published::from(published))
    }

    /// Memory for the next sample, in place: give a number of elements, or their shape, or nothing
    /// for a topic of one value.
    #[pyo3(signature = (*shape))]
    fn loan(&self, py: Python<'_>, shape: &Bound<'_, PyTuple>) -> PyResult<Loan> {
        let bytes = self.carried.of_type().bytes_of(elements(shape)?)?;
        let publisher = self.publisher(py)?;
        // It neither waits nor calls a function.
        let loan = released(py, move || publisher.loan(bytes)).map_err(raised)?;
        Ok(Loan::new(loan, &self.carried, &self.is_closed))
    }

    /// Allocates memory for `count` samples of `length` elements, so that the first loans need not.
    #[pyo3(signature = (count, length=None))]
    fn reserve(&self, py: Python<'_>, count: u32, length: Option<usize>) -> PyResult<()> {
        let bytes = self.carried.of_type().bytes_of(length)?;
        self.with(py, |publisher| publisher.reserve(count, bytes))
    }

    /// Its endpoint id, as in events, samples and graphs.
    #[getter]
    fn id(&self) -> u64 {
        self.id
    }

    /// How many subscribers it is matched with now.
    #[getter]
    fn matched(&self, py: Python<'_>) -> PyResult<usize> {
        self.with(py, |publisher| Ok(publisher.matched()))
    }

    /// Waits until it is matched with so many, for at most `timeout` seconds (None: for ever).
    /// False if the time is over.
    #[pyo3(signature = (subscribers=1, timeout=None))]
    fn wait_for_match(
        &self,
        py: Python<'_>,
        subscribers: usize,
        timeout: Option<f64>,
    ) -> PyResult<bool> {
        let limit = limit(timeout)?;
        let publisher = self.publisher(py)?;
        let is_matched = wait_until_closed(py, &self.target(), move || {
            Ok(publisher.wait_for_match(subscribers, limit).then_some(()))
        })?;
        Ok(is_matched.is_some())
    }

    /// Tells subscribers with a liveliness lease that it is alive.
    fn assert_liveliness(&self, py: Python<'_>) -> PyResult<()> {
        self.with(py, |publisher| publisher.assert_liveliness())
    }

    /// The events of its matches since the last call.
    fn events(&self, py: Python<'_>) -> PyResult<Vec<Event>> {
        Ok(events(self.with(py, |publisher| Ok(publisher.events()))?))
    }

    /// Ends it, and a publish or another call of it that waits. Loans that are out keep it until they end.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.is_closed.store(true, Ordering::Relaxed);
        let inner = self.inner.replace(py, None).map(Released::into_inner);
        // Its drop may wait until other hosts have acknowledged its samples; signals end that wait.
        call(py, || {
            drop(inner);
            Ok(())
        })
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
        self.close(py)
    }
}

/// How many elements a shape has: nothing, a number, several numbers, or a tuple of numbers.
pub fn elements(shape: &Bound<'_, PyTuple>) -> PyResult<Option<usize>> {
    let numbers: Vec<usize> = match shape.len() {
        0 => return Ok(None),
        1 => match shape.get_item(0)?.cast_into::<PyTuple>() {
            Ok(inner) => inner.extract()?,
            Err(_) => return shape.get_item(0)?.extract().map(Some),
        },
        _ => shape.extract()?,
    };
    let product = numbers.iter().try_fold(1_usize, |all, each| all.checked_mul(*each));
    product.map(Some).ok_or_else(|| wrong_value("a shape of more elements than a number".into()))
}

/// The largest payload that lies in the ring itself.
const INLINE_BYTES_MAX: usize = 104;
