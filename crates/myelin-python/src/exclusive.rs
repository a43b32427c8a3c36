//! Objects that one thread at a time uses, until they are closed.

use std::ops::{Deref, DerefMut};
use std::os::fd::{AsRawFd, OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, TryLockError};

use myelin::Interrupter;
use pyo3::prelude::*;

use crate::call::{Target, forks, this_thread, wait_until_closed};
use crate::errors::{busy, closed, raised};
use crate::released::Released;

/// The descriptor of an object, made at the first request and then kept.
pub fn descriptor(
    kept: &mut Option<OwnedFd>,
    make: impl FnOnce() -> Result<OwnedFd, myelin::Error>,
) -> Result<RawFd, myelin::Error> {
    let descriptor = match kept.take() {
        Some(descriptor) => descriptor,
        None => make()?,
    };
    Ok(kept.insert(descriptor).as_raw_fd())
}

/// An object that a thread can wait on. Any thread may close it, also while another one uses it:
/// the user then returns from its wait and drops it. So no thread waits for its lock; in a child of
/// `fork` the lock may be held by a thread that does not exist. The GIL is held wherever the lock
/// is taken or released, which orders both with a close.
pub struct Exclusive<T> {
    inner: Mutex<Option<Released<T>>>,
    /// Ends a wait.
    pub interrupter: Interrupter,
    is_closing: AtomicBool,
    /// The thread that uses it, or the last that did.
    owner: AtomicUsize,
    forks: u32,
    /// Its name for messages.
    what: &'static str,
}

/// The object in use by the caller, until this is dropped.
pub struct Used<'a, T> {
    exclusive: &'a Exclusive<T>,
    /// `None` once the object is dropped.
    guard: Option<MutexGuard<'a, Option<Released<T>>>>,
}

impl<T> Exclusive<T> {
    pub fn new(inner: T, interrupter: Interrupter, what: &'static str) -> Self {
        let inner = Mutex::new(Some(Released::new(inner)));
        let (is_closing, owner) = (AtomicBool::new(false), AtomicUsize::new(0));
        Exclusive { inner, interrupter, is_closing, owner, forks: forks(), what }
    }

    #[inline]
    pub fn lock(&self) -> PyResult<Used<'_, T>> {
        let Some(guard) = self.try_lock() else { return Err(self.refusal()) };
        let used = Used { exclusive: self, guard: Some(guard) };
        if self.is_closing() {
            return Err(self.closed());
        }
        self.owner.store(this_thread(), Ordering::Relaxed);
        Ok(used)
    }

    #[inline]
    pub fn with<R>(&self, act: impl FnOnce(&mut T) -> R) -> PyResult<R> {
        Ok(act(&mut *self.lock()?))
    }

    /// The target for a call that uses it.
    pub fn target(&self) -> Target<'_> {
        Target { is_closed: &self.is_closing, what: self.what, is_woken: true }
    }

    /// Waits without the GIL, at most until it is closed.
    pub fn wait<R>(
        &self,
        py: Python<'_>,
        wait: impl FnOnce(&mut T) -> Result<Option<R>, myelin::Error>,
    ) -> PyResult<Option<R>> {
        self.wait_for(py, &self.target(), wait)
    }

    /// Like `wait`, for a wait that the interrupter does not end.
    pub fn look<R>(
        &self,
        py: Python<'_>,
        wait: impl FnOnce(&mut T) -> Result<Option<R>, myelin::Error>,
    ) -> PyResult<Option<R>> {
        self.wait_for(py, &Target { is_woken: false, ..self.target() }, wait)
    }

    fn wait_for<R>(
        &self,
        py: Python<'_>,
        target: &Target<'_>,
        wait: impl FnOnce(&mut T) -> Result<Option<R>, myelin::Error>,
    ) -> PyResult<Option<R>> {
        let mut used = self.lock()?;
        let inner = &mut *used;
        wait_until_closed(py, target, || wait(inner))
    }

    pub fn is_closing(&self) -> bool {
        self.is_closing.load(Ordering::Relaxed)
    }

    /// Ends the running wait, or else the next one.
    pub fn interrupt(&self) -> PyResult<()> {
        if self.is_closing() {
            return Err(self.closed());
        }
        self.interrupter.interrupt();
        Ok(())
    }

    #[cold]
    pub fn closed(&self) -> PyErr {
        closed(self.what)
    }

    /// Closes it, and ends a running wait. Never waits.
    pub fn close(&self) {
        if !self.is_closing.swap(true, Ordering::Relaxed) {
            self.interrupter.interrupt();
            self.end();
        }
    }

    /// Drops it, unless a thread uses it, which then drops it.
    #[cold]
    fn end(&self) {
        let inner = self.try_lock().and_then(|mut guard| guard.take());
        drop(inner);
    }

    #[cold]
    fn refusal(&self) -> PyErr {
        match self.forks == forks() {
            true => busy(self.what, self.owner.load(Ordering::Relaxed) == this_thread()),
            false => raised(myelin::Error::Forked),
        }
    }

    #[inline]
    fn try_lock(&self) -> Option<MutexGuard<'_, Option<Released<T>>>> {
        match self.inner.try_lock() {
            Ok(guard) => Some(guard),
            Err(TryLockError::Poisoned(guard)) => Some(guard.into_inner()),
            Err(TryLockError::WouldBlock) => None,
        }
    }
}

impl<T> Used<'_, T> {
    /// Gives it to the caller; it is closed for all others.
    pub fn take(mut self) -> T {
        self.exclusive.is_closing.store(true, Ordering::Relaxed);
        let guard = self.guard.as_mut().expect("taken away by `drop` alone");
        guard.take().expect("not closed").into_inner()
    }
}

impl<T> Deref for Used<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        let guard = self.guard.as_ref().expect("taken away by `drop` alone");
        guard.as_ref().expect("not closed")
    }
}

impl<T> DerefMut for Used<'_, T> {
    fn deref_mut(&mut self) -> &mut T {
        let guard = self.guard.as_mut().expect("taken away by `drop` alone");
        guard.as_mut().expect("not closed")
    }
}

impl<T> Drop for Used<'_, T> {
    #[inline]
    fn drop(&mut self) {
        drop(self.guard.take());
        if self.exclusive.is_closing() {
            self.exclusive.end();
        }
    }
}
