//! Values guarded by the GIL.

use std::cell::UnsafeCell;

use pyo3::prelude::*;

/// A value that is read and changed with the GIL, while no Python code runs.
#[derive(Default)]
pub struct GilCell<T>(UnsafeCell<T>);

// SAFETY: the GIL is the lock; the value may go to the thread that has it.
unsafe impl<T: Send> Sync for GilCell<T> {}

impl<T> GilCell<T> {
    pub fn new(value: T) -> Self {
        GilCell(UnsafeCell::new(value))
    }

    /// `look` runs no Python code, and does not release the GIL.
    #[inline]
    pub fn look<R>(&self, _py: Python<'_>, look: impl FnOnce(&T) -> R) -> R {
        // SAFETY: with the GIL, which is held until `look` returns; nothing changes it meanwhile.
        look(unsafe { &*self.0.get() })
    }

    /// The caller drops the previous value, which may run Python code.
    #[inline]
    pub fn replace(&self, _py: Python<'_>, value: T) -> T {
        // SAFETY: with the GIL, and nothing reads it meanwhile; nothing is dropped here.
        unsafe { self.0.get().replace(value) }
    }
}
