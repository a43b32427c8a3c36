//! Code that runs without the GIL.

use std::mem::ManuallyDrop;

use pyo3::prelude::*;

/// Runs `act` without the GIL. It must not touch a Python object.
pub fn released<R>(py: Python<'_>, act: impl FnOnce() -> R) -> R {
    let act = Here(act);
    let result = py.detach(move || {
        let whole = act;
        Here((whole.0)())
    });
    result.0
}

/// A value that does not leave its thread.
struct Here<T>(T);

// SAFETY: `detach` calls its closure in the calling thread, so the value goes to no other thread.
unsafe impl<T> Send for Here<T> {}

/// A value that is dropped without the GIL: its drop takes locks, which may be held by a callback
/// that waits for the GIL.
pub struct Released<T>(ManuallyDrop<T>);

impl<T> Released<T> {
    pub fn new(inner: T) -> Self {
        Released(ManuallyDrop::new(inner))
    }

    pub fn into_inner(self) -> T {
        let mut whole = ManuallyDrop::new(self);
        // SAFETY: `whole` is not dropped, so this is the only take.
        unsafe { ManuallyDrop::take(&mut whole.0) }
    }
}

impl<T> std::ops::Deref for Released<T> {
    type Target = T;

    fn deref(&self) -> &T {
        &self.0
    }
}

impl<T> std::ops::DerefMut for Released<T> {
    fn deref_mut(&mut self) -> &mut T {
        &mut self.0
    }
}

impl<T> Drop for Released<T> {
    fn drop(&mut self) {
        // SAFETY: dropped once.
        let inner = unsafe { ManuallyDrop::take(&mut self.0) };
        let mut inner = Some(inner);
        // While the interpreter shuts down, no thread can get the GIL.
        let _ = Python::try_attach(|py| released(py, || drop(inner.take())));
    }
}
