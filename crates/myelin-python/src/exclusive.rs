//! What one thread at a time uses, until it is closed.

use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};

use pyo3::prelude::*;

use crate::errors::{busy, closed, raised};
use crate::released::{Released, released};
use crate::signals::Wakes;

/// The lock of an object of this name: nobody waits for another thread that is in it.
pub fn alone<'a, T>(inner: &'a Mutex<T>, what: &str) -> PyResult<MutexGuard<'a, T>> {
    match inner.try_lock() {
        Ok(guard) => Ok(guard),
        Err(TryLockError::Poisoned(guard)) => Ok(guard.into_inner()),
        Err(TryLockError::WouldBlock) => Err(busy(what)),
    }
}

/// The descriptor that is kept, made when it is first asked for.
pub fn descriptor(
    kept: &mut Option<OwnedFd>,
    make: impl FnOnce() -> Result<OwnedFd, myelin::Error>,
) -> PyResult<RawFd> {
    let descriptor = match kept.take() {
        Some(descriptor) => descriptor,
        None => make().map_err(raised)?,
    };
    Ok(kept.insert(descriptor).as_raw_fd())
}

/// What can be waited on, and closed by another thread while it is.
pub struct Exclusive<T> {
    inner: Mutex<Option<Released<T>>>,
    /// Ends a wait.
    pub wakes: Wakes,
    is_closing: AtomicBool,
    is_interrupted: AtomicBool,
    /// Its name for messages.
    what: &'static str,
}

impl<T> Exclusive<T> {
    pub fn new(inner: T, wakes: Wakes, what: &'static str) -> Self {
        let inner = Mutex::new(Some(Released::new(inner)));
        let (is_closing, is_interrupted) = (AtomicBool::new(false), AtomicBool::new(false));
        Exclusive { inner, wakes, is_closing, is_interrupted, what }
    }

    pub fn lock(&self) -> PyResult<MutexGuard<'_, Option<Released<T>>>> {
        let guard = alone(&self.inner, self.what)?;
        if guard.is_none() || self.is_closing() {
            return Err(self.closed());
        }
        Ok(guard)
    }

    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        Ok(act(self.lock()?.as_mut().ok_or_else(|| self.closed())?))
    }

    /// It is the caller's, and closed for all others.
    pub fn take(&self, mut guard: MutexGuard<'_, Option<Released<T>>>) -> PyResult<T> {
        let inner = guard.take().ok_or_else(|| self.closed())?;
        self.is_closing.store(true, Ordering::SeqCst);
        Ok(inner.into_inner())
    }

    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::SeqCst)
    }

    /// Ends the wait that is under way, or else the next one.
    pub fn interrupt(&self) -> PyResult<()> {
        if self.is_closing() {
            return Err(self.closed());
        }
        self.is_interrupted.store(true, Ordering::SeqCst);
        self.wakes.wake();
        Ok(())
    }

    /// Whether a wait is to end for an interrupt, once.
    pub fn take_interrupt(&self) -> bool {
        self.is_interrupted.swap(false, Ordering::SeqCst)
    }

    pub fn closed(&self) -> PyErr {
        closed(self.what)
    }

    /// Ends it, and a wait that is under way in another thread.
    pub fn close(&self, py: Python<'_>) {
        self.is_closing.store(true, Ordering::SeqCst);
        self.wakes.wake();
        drop(released(py, || self.inner.lock().unwrap_or_else(PoisonError::into_inner).take()));
    }
}
