//! A sample in the hands of a subscriber.

use std::sync::Arc;

use pyo3::prelude::*;

use crate::memory::{Exports, Held, Memory};
use crate::readable;
use crate::types::Carried;

/// What was published, where it was written: a read-only buffer. The memory is held as long as the
/// sample or a view of it (an array, a memoryview) is there.
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
    /// How many samples its publisher published before it; of one on another host, since the match.
    #[getter]
    fn sequence(&self) -> PyResult<u64> {
        self.0.with(|sample| sample.sequence())
    }

    /// How many samples of its publisher were lost between the one taken before and this one.
    #[getter]
    fn lost_before(&self) -> PyResult<u64> {
        self.0.with(|sample| sample.lost_before())
    }

    /// When it was published, in ns of `now()`; None if its publisher does not say so.
    #[getter]
    fn published_at(&self) -> PyResult<Option<u64>> {
        self.0.with(|sample| sample.published_at())
    }

    /// Its publisher's endpoint id, as in events.
    #[getter]
    fn publisher(&self) -> PyResult<u64> {
        self.0.with(|sample| sample.publisher())
    }

    /// Lets go of the memory now; of what is viewed, with the last view.
    fn release(&self) {
        self.0.release("released");
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.release();
    }

    fn __repr__(&self) -> String {
        let name = self.0.carried.of_type().told.type_name();
        self.0
            .with(|sample| format!("<Sample {} of {name}>", sample.sequence()))
            .unwrap_or_else(|_| format!("<Sample of {name}, released>"))
    }
}
