//! A sample held by a subscriber.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::memory::{Exports, Held, Memory};
use crate::readable;
use crate::types::Carried;

/// A sample where its publisher wrote it: a read-only buffer. The memory stays valid as long as the
/// sample or a view of it (an array, a memoryview) exists.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Sample(Held<myelin::Sample<[u8]>>);

impl Memory for myelin::Sample<[u8]> {
    const IS_WRITABLE: bool = false;
    const ENDS_AT_ONCE: bool = true;

    fn bytes(&mut self) -> (*mut u8, usize) {
        let bytes = self.as_bytes();
        (bytes.as_ptr().cast_mut(), bytes.len())
    }
}

impl Exports for Sample {
    type Of = myelin::Sample<[u8]>;

    fn held(&self) -> &Held<Self::Of> {
        &self.0
    }
}

impl Sample {
    pub fn new(sample: myelin::Sample<[u8]>, carried: &Arc<Carried>) -> Sample {
        Sample(Held::new(sample, carried.clone()))
    }
}

readable!(Sample);

#[pymethods]
impl Sample {
    /// How many samples its publisher published before it; for a publisher on another host: since
    /// the match.
    #[getter]
    fn sequence(&self) -> PyResult<u64> {
        self.0.with(|sample| sample.sequence())
    }

    /// How many samples of the same publisher were lost between the previously taken one and this
    /// one.
    #[getter]
    fn lost_before(&self) -> PyResult<u64> {
        self.0.with(|sample| sample.lost_before())
    }

    /// When it was published, in ns of `now()`; None if its publisher adds no timestamps.
    #[getter]
    fn published_at(&self) -> PyResult<Option<u64>> {
        self.0.with(|sample| sample.published_at())
    }

    /// Its publisher's endpoint id, as in events.
    #[getter]
    fn publisher(&self) -> PyResult<u64> {
        self.0.with(|sample| sample.publisher())
    }

    /// Releases the memory now; if it is viewed, with the last view.
    fn release(&self) {
        self.0.release("released");
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.release();
    }

    fn __repr__(&self) -> String {
        let name = self.0.carried.of_type().dynamic_type.type_name();
        self.0
            .with(|sample| format!("<Sample {} of {name}>", sample.sequence()))
            .unwrap_or_else(|_| format!("<Sample of {name}, released>"))
    }
}
