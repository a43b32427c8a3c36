//! Looking at a topic without being known to its publishers.

use std::sync::Arc;

use myelin::Missing;
use pyo3::prelude::*;

use crate::errors::raised;
use crate::exclusive::Exclusive;
use crate::memory::{Exports, Held, Memory};
use crate::node::limit;
use crate::types::Carried;
use crate::{readable, samples};

/// Looks at the samples of a topic on this host, while its publishers do nothing for it. One thread
/// at a time uses it.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Observer {
    inner: Exclusive<myelin::Observer<[u8]>>,
    carried: Arc<Carried>,
}

/// What an observer knows of a sample without its payload.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct ObservedHeader {
    /// Its publisher's endpoint id.
    publisher: u64,
    /// How many samples its publisher published before it.
    sequence: u64,
    /// When it was published, in ns of `now()`; None if its publisher adds no timestamps.
    published_at: Option<u64>,
    /// How many bytes the payload has.
    length: u64,
    /// How many samples of the same publisher, between the previous one and this one, were
    /// overwritten before the observer looked.
    overwritten_before: u64,
}

/// A publisher of an observer, and what was seen of it.
#[pyclass(frozen, get_all, module = "myelin")]
pub struct ObservedPublisher {
    /// Its endpoint id.
    publisher: u64,
    /// The first sample that counts.
    first: u64,
    /// Samples that it has published.
    published: u64,
    /// Samples that were given, with or without payload.
    seen: u64,
    /// Samples that were overwritten before the observer looked.
    overwritten: u64,
    /// Samples, among those seen, whose payload was gone.
    without_payload: u64,
    /// Whether it has left or died, and everything is read.
    has_gone: bool,
}

/// A copy of a sample: a read-only buffer, or only the header if the payload was gone.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct ObservedSample(
    Held<myelin::ObservedSample<[u8]>>,
    myelin::ObservedHeader,
    Option<Missing>,
);

impl Memory for myelin::ObservedSample<[u8]> {
    const IS_WRITABLE: bool = false;
    const ENDS_AT_ONCE: bool = true;

    fn bytes(&mut self) -> (*mut u8, usize) {
        let bytes = self.as_bytes().unwrap_or_default();
        (bytes.as_ptr().cast_mut(), bytes.len())
    }
}

impl Exports for ObservedSample {
    type Of = myelin::ObservedSample<[u8]>;

    fn held(&self) -> &Held<Self::Of> {
        &self.0
    }
}

readable!(ObservedSample);

impl From<myelin::ObservedHeader> for ObservedHeader {
    fn from(header: myelin::ObservedHeader) -> ObservedHeader {
        let myelin::ObservedHeader {
            publisher,
            sequence,
            published_ns,
            length,
            overwritten_before,
            ..
        } = header;
        let published_at = (published_ns != 0).then_some(published_ns);
        ObservedHeader { publisher, sequence, published_at, length, overwritten_before }
    }
}

impl From<myelin::ObservedPublisher> for ObservedPublisher {
    fn from(it: myelin::ObservedPublisher) -> ObservedPublisher {
        let myelin::ObservedPublisher { publisher, first, published, seen, overwritten, .. } = it;
        let (without_payload, has_gone) = (it.without_payload, it.has_gone);
        ObservedPublisher {
            publisher,
            first,
            published,
            seen,
            overwritten,
            without_payload,
            has_gone,
        }
    }
}

impl Observer {
    pub fn new(inner: myelin::Observer<[u8]>, carried: &Arc<Carried>) -> Observer {
        let interrupter = inner.interrupter();
        let inner = Exclusive::new(inner, interrupter, "observer");
        Observer { inner, carried: carried.clone() }
    }

    fn sample(&self, sample: myelin::ObservedSample<[u8]>) -> ObservedSample {
        let (header, missing) = (*sample.header(), sample.missing());
        let held = Held::new(sample, self.carried.clone());
        match missing {
            None => {}
            Some(Missing::Reused) => held.release("used by its publisher for another sample"),
            Some(_) => held.release("freed by its publisher"),
        }
        ObservedSample(held, header, missing)
    }
}

#[pymethods]
impl ObservedHeader {
    fn __repr__(&self) -> String {
        let ObservedHeader { publisher, sequence, length, overwritten_before, .. } = self;
        format!(
            "ObservedHeader(publisher={publisher:#x}, sequence={sequence}, length={length}, \
             overwritten_before={overwritten_before})"
        )
    }
}

#[pymethods]
impl ObservedPublisher {
    fn __repr__(&self) -> String {
        let ObservedPublisher { publisher, published, seen, overwritten, .. } = self;
        format!(
            "ObservedPublisher(publisher={publisher:#x}, published={published}, seen={seen}, \
             overwritten={overwritten})"
        )
    }
}

#[pymethods]
impl ObservedSample {
    /// How many samples its publisher published before it.
    #[getter]
    fn sequence(&self) -> u64 {
        self.1.sequence
    }

    /// How many samples of the same publisher, between the previous one and this one, were
    /// overwritten before the observer looked.
    #[getter]
    fn overwritten_before(&self) -> u64 {
        self.1.overwritten_before
    }

    /// When it was published, in ns of `now()`; None if its publisher adds no timestamps.
    #[getter]
    fn published_at(&self) -> Option<u64> {
        Some(self.1.published_ns).filter(|time_ns| *time_ns != 0)
    }

    /// Its publisher's endpoint id.
    #[getter]
    fn publisher(&self) -> u64 {
        self.1.publisher
    }

    /// How many bytes its payload has, also if the payload was gone.
    #[getter]
    fn length(&self) -> u64 {
        self.1.length
    }

    /// Why there is no payload: `reused`, `unmapped`. None if there is one.
    #[getter]
    fn missing(&self) -> Option<&'static str> {
        self.2.map(|missing| match missing {
            Missing::Reused => "reused",
            _ => "unmapped",
        })
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.0.release("released");
    }

    fn __repr__(&self) -> String {
        let name = self.0.carried.of_type().dynamic_type.type_name();
        match self.missing() {
            None => format!("<ObservedSample {} of {name}>", self.1.sequence),
            Some(why) => format!("<ObservedSample {} of {name}, {why}>", self.1.sequence),
        }
    }
}

samples!(Observer, ObservedSample);

#[pymethods]
impl Observer {
    /// The header of the next sample, if there is one, without looking at its payload. The sample
    /// is then taken.
    fn take_header(&self) -> PyResult<Option<ObservedHeader>> {
        let taken = self.inner.with(|observer| observer.take_header())?.map_err(raised)?;
        Ok(taken.map(ObservedHeader::from))
    }

    /// Like `receive`, of the header alone.
    #[pyo3(signature = (timeout=None))]
    fn receive_header(
        &self,
        py: Python<'_>,
        timeout: Option<f64>,
    ) -> PyResult<Option<ObservedHeader>> {
        let limit = limit(timeout)?;
        let got = self.inner.wait(py, |observer| observer.receive_header(limit))?;
        Ok(got.map(ObservedHeader::from))
    }

    /// How long to wait before the next look, in seconds, for a loop of your own.
    #[getter]
    fn interval(&self) -> PyResult<f64> {
        self.inner.with(|observer| observer.interval().as_secs_f64())
    }

    /// Its publishers with exact counts; those that have gone since the last call once more.
    fn publishers(&self) -> PyResult<Vec<ObservedPublisher>> {
        let publishers = self.inner.with(|observer| observer.publishers())?;
        Ok(publishers.into_iter().map(ObservedPublisher::from).collect())
    }

    /// Closes it, and ends a running wait in any thread.
    fn close(&self) {
        self.inner.close();
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close();
    }
}
