//! Memory for one sample, which the user owns until it is published or discarded.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use pyo3::prelude::*;

use crate::call::{NEVER, Target, call_until_closed};
use crate::info::Published;
use crate::memory::{Exports, Held, Memory};
use crate::readable;
use crate::types::Carried;

/// Memory for one sample: a writable buffer. `publish` hands it to the subscribers without a copy.
/// A loan that is dropped, or reaches the end of its `with`, is discarded.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Loan(pub Held<myelin::SharedLoan<[u8]>>, Arc<AtomicBool>);

impl Memory for myelin::SharedLoan<[u8]> {
    const IS_WRITABLE: bool = true;
    const ENDS_AT_ONCE: bool = false;

    fn bytes(&mut self) -> (*mut u8, usize) {
        let bytes = self.as_bytes_mut();
        (bytes.as_mut_ptr(), bytes.len())
    }
}

impl Exports for Loan {
    type Of = myelin::SharedLoan<[u8]>;

    fn held(&self) -> &Held<Self::Of> {
        &self.0
    }
}

impl Loan {
    pub fn new(
        loan: myelin::SharedLoan<[u8]>,
        carried: &Arc<Carried>,
        is_closed: &Arc<AtomicBool>,
    ) -> Loan {
        Loan(Held::new(loan, carried.clone()), is_closed.clone())
    }
}

readable!(Loan);
writable!(Loan);

#[pymethods]
impl Loan {
    /// Hands it to the subscribers without a copy.
    fn publish(&self, py: Python<'_>) -> PyResult<Published> {
        let loan = self.0.take("published")?;
        // A closed loan has nothing to end.
        let is_closed = if self.1.load(Ordering::Relaxed) { &NEVER } else { &*self.1 };
        let target = Target { is_closed, what: "publisher", is_woken: false };
        let published = call_until_closed(py, &target, || loan.publish());
        published.map(Published::from)
    }
}

/// The methods of everything that can be written.
#[macro_export]
macro_rules! writable {
    ($class:ty) => {
        #[pymethods]
        impl $class {
            #[setter]
            fn set_value(slf: &Bound<'_, Self>, value: &Bound<'_, PyAny>) -> PyResult<()> {
                let held = &slf.get().0;
                held.fill(&held.carried.pack(value)?)
            }

            #[setter]
            fn set_header(slf: &Bound<'_, Self>, header: &Bound<'_, PyAny>) -> PyResult<()> {
                let codec = slf.get().0.carried.codec(slf.py());
                codec.call_method1("set_header", (slf, header)).map(|_| ())
            }

            /// Gives the memory back without publishing it.
            fn discard(&self) {
                self.0.release("discarded");
            }

            fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
                self.discard();
            }
        }
    };
}
use writable;
