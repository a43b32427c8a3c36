//! A user's function.

use std::sync::Arc;

use pyo3::ffi;
use pyo3::prelude::*;
use pyo3::{PyTraverseError, PyVisit};

use crate::gil_cell::GilCell;

/// A user's function, until it is taken away. The object that ends its calls owns it, and shows it
/// to the garbage collector; its callers share it.
#[derive(Clone, Default)]
pub struct Function(Arc<GilCell<Option<Py<PyAny>>>>);

impl Function {
    pub fn new(function: Py<PyAny>) -> Function {
        Function(Arc::new(GilCell::new(Some(function))))
    }

    /// The function, if it still exists.
    #[inline]
    pub fn get<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyAny>> {
        self.0.look(py, |function| function.as_ref().map(|function| function.bind(py).clone()))
    }

    /// Sets another function, or none. The caller drops the previous one.
    pub fn replace(&self, py: Python<'_>, function: Option<Py<PyAny>>) -> Option<Py<PyAny>> {
        self.0.replace(py, function)
    }

    pub fn traverse(&self, visit: &PyVisit<'_>) -> Result<(), PyTraverseError> {
        // SAFETY: the collector has the GIL, and only counts.
        let py = unsafe { Python::assume_attached() };
        self.0.look(py, |function| visit.call(function))
    }
}

/// A class whose objects are closed when they are garbage in a cycle, before the cycle is taken
/// apart. Threads that call their functions find all objects of these functions intact until then.
pub trait Closes: pyo3::PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync {
    fn close_garbage(&self, py: Python<'_>);
}

/// `tp_finalize`.
///
/// # Safety
/// Called by Python with an object of the class `C`.
pub unsafe extern "C" fn finalize<C: Closes>(object: *mut ffi::PyObject) {
    // SAFETY: Python calls it with the GIL and an object of this class.
    let (py, object) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, object).cast_unchecked::<C>())
    };
    // An exception may be pending in the code that has made the garbage.
    let passing = PyErr::take(py);
    object.get().close_garbage(py);
    if let Some(error) = passing {
        error.restore(py);
    }
}

/// Makes a class close its objects when they are garbage.
#[macro_export]
macro_rules! finalized {
    ($class:ty) => {
        pyo3::inventory::submit! {
            type Inventory = <$class as pyo3::impl_::pyclass::PyClassImpl>::Inventory;
            Inventory::new(pyo3::impl_::pyclass::PyClassItems {
                methods: &[],
                slots: &[pyo3::ffi::PyType_Slot {
                    slot: pyo3::ffi::Py_tp_finalize,
                    pfunc: $crate::function::finalize::<$class> as *mut std::ffi::c_void,
                }],
            })
        }
    };
}
