//! One thread that waits for many topics.

use std::collections::HashMap;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Mutex, MutexGuard, PoisonError, TryLockError};
use std::time::Instant;

use myelin::Key;
use pyo3::prelude::*;
use pyo3::types::{PyWeakrefMethods, PyWeakrefReference};

use crate::call::{WOKEN, call_until_closed};
use crate::errors::{closed, exception, raised};
use crate::exclusive::descriptor;
use crate::node::{left, limit, seconds};
use crate::released::{Released, released};
use crate::service::Service;
use crate::subscriber::{Subscriber, wait_of};

/// Waits for any number of subscribers, services, guard conditions and timers. One thread at a time waits.
/// Any thread may add, remove and close meanwhile, and the running wait takes that into account.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct WaitSet {
    handle: myelin::WaitSetHandle,
    /// Locked while a thread waits. If another thread closes it meanwhile, the waiting thread drops
    /// it.
    inner: Mutex<Option<Released<myelin::WaitSet>>>,
    /// Locked with the GIL, which stays held meanwhile. No Python object is made or dropped
    /// meanwhile: that may collect garbage, whose finalizers may change this set.
    members: Mutex<Members>,
    descriptor: Mutex<Option<OwnedFd>>,
}

#[derive(Default)]
struct Members {
    by_key: HashMap<Key, Member>,
    /// At this number of members, the set looks for members that have gone.
    prune_at: usize,
}

/// A set keeps its timers alive, and nothing else: closed or forgotten members go.
enum Member {
    Timer(Py<PyAny>),
    Other { weak: Py<PyWeakrefReference>, address: usize },
}

impl Member {
    fn weak(object: &Bound<'_, PyAny>) -> PyResult<Member> {
        let weak = PyWeakrefReference::new(object)?.unbind();
        Ok(Member::Other { weak, address: object.as_ptr().addr() })
    }

    fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        match self {
            Member::Timer(timer) => Some(timer.clone_ref(py)),
            Member::Other { weak, .. } => weak.bind(py).upgrade().map(Bound::unbind),
        }
    }

    fn is(&self, object: &Bound<'_, PyAny>) -> bool {
        match self {
            Member::Timer(timer) => timer.is(object),
            Member::Other { weak, address } => {
                // An address is used again after its object has gone.
                *address == object.as_ptr().addr()
                    && weak.bind(object.py()).upgrade().is_some_and(|its| its.is(object))
            }
        }
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl WaitSet {
    pub fn new(set: myelin::WaitSet) -> WaitSet {
        WaitSet {
            handle: set.handle(),
            inner: Mutex::new(Some(Released::new(set))),
            members: Mutex::default(),
            descriptor: Mutex::default(),
        }
    }

    fn check_open(&self) -> PyResult<()> {
        if self.handle.is_closed() { Err(closed("wait set")) } else { Ok(()) }
    }

    /// Notes a member. No wait has looked up its key yet: this thread has had the GIL since the key
    /// was made.
    fn insert(&self, py: Python<'_>, key: Key, member: Member) {
        let mut gone = Vec::new();
        let mut members = lock(&self.members);
        let Members { by_key, prune_at } = &mut *members;
        if by_key.len() >= *prune_at {
            let is_gone = |key: &Key, member: &mut Member| {
                !self.handle.contains(*key) || member.get(py).is_none()
            };
            gone.extend(by_key.extract_if(is_gone));
            *prune_at = 2 * by_key.len().max(32);
        }
        by_key.insert(key, member);
        drop(members);
        drop(gone);
    }

    /// The only place where a thread is inside the set.
    fn wait_in(
        &self,
        py: Python<'_>,
        set: &mut myelin::WaitSet,
        limit: std::time::Duration,
    ) -> PyResult<Vec<Py<PyAny>>> {
        let begun = Instant::now();
        loop {
            let left = left(limit, begun);
            let ready = call_until_closed(py, &WOKEN, || set.wait(left).map(<[Key]>::to_vec))?;
            let members = lock(&self.members);
            let member = |key| members.by_key.get(key).and_then(|member: &Member| member.get(py));
            let found: Vec<_> = ready.iter().filter_map(member).collect();
            drop(members);
            if !found.is_empty() || ready.is_empty() {
                return Ok(found);
            }
        }
    }
}

#[pymethods]
impl WaitSet {
    /// Watches a subscriber or a service, until it is removed, closed or no longer referenced. The
    /// owner keeps it and takes from it; the set does not keep it alive.
    fn add(&self, member: &Bound<'_, PyAny>) -> PyResult<()> {
        self.check_open()?;
        let weak = Member::weak(member)?;
        let key = if let Ok(subscriber) = member.cast::<Subscriber>() {
            subscriber.get().with(|subscriber| self.handle.add(subscriber))?
        } else if let Ok(service) = member.cast::<Service>() {
            service.get().with(|service| self.handle.add_service(service))?
        } else {
            let message = "a wait set watches subscribers and services; it makes its guards and \
                           timers itself";
            return Err(exception("WrongValue", message.to_string()));
        };
        self.insert(member.py(), key.map_err(raised)?, weak);
        Ok(())
    }

    /// A guard condition: triggering it, in any thread, ends a wait. It ends with its last reference.
    fn guard_condition(&self, py: Python<'_>) -> PyResult<Py<GuardCondition>> {
        let guard = self.handle.guard_condition().map_err(raised)?;
        let key = guard.key();
        let guard = Py::new(py, GuardCondition(guard))?;
        self.insert(py, key, Member::weak(guard.bind(py))?);
        Ok(guard)
    }

    /// A timer: ready every `period` seconds, until it is removed.
    fn timer(&self, py: Python<'_>, period: f64) -> PyResult<Py<Timer>> {
        let duration = seconds(period)?;
        let timer = Py::new(py, Timer { period })?;
        let key = self.handle.timer(duration).map_err(raised)?;
        self.insert(py, key, Member::Timer(timer.clone_ref(py).into_any()));
        Ok(timer)
    }

    /// Stops watching a member. False if it was not watched.
    fn remove(&self, member: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.check_open()?;
        let mut members = lock(&self.members);
        let is_it = |(_, other): &(&Key, &Member)| other.is(member);
        let Some((key, _)) = members.by_key.iter().find(is_it) else { return Ok(false) };
        let key = *key;
        let removed = members.by_key.remove(&key);
        drop(members);
        drop(removed);
        Ok(self.handle.remove(key))
    }

    /// Waits until something is ready, for at most `timeout` seconds (None: for ever), and returns
    /// the ready members. A subscriber with samples left is ready again. Raises `Closed` once the
    /// set is closed, by this thread or another one.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Vec<Py<PyAny>>> {
        let limit = limit(timeout)?;
        self.check_open()?;
        let mut inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(inner)) => inner.into_inner(),
            Err(TryLockError::WouldBlock) if self.handle.is_forked() => {
                return Err(raised(myelin::Error::Forked));
            }
            Err(TryLockError::WouldBlock) => {
                let message = "a thread already waits in this wait set, another thread or this one \
                               in an outer call; make one for each thread";
                return Err(exception("Busy", message.to_string()));
            }
        };
        let set = inner.as_mut().ok_or_else(|| closed("wait set"))?;
        let waited = self.wait_in(py, set, limit);
        let gone = if self.handle.is_closed() { inner.take() } else { None };
        drop(inner);
        drop(gone);
        waited
    }

    /// A descriptor for `select`, `epoll` or asyncio, for all members: when it is readable, call
    /// `wait(0)` until it returns nothing, then wait for the descriptor again.
    fn fileno(&self) -> PyResult<RawFd> {
        self.check_open()?;
        let descriptor = descriptor(&mut lock(&self.descriptor), || self.handle.descriptor());
        descriptor.map_err(raised)
    }

    /// How it waits: `adaptive`, `block`, `poll`, `predictive`.
    #[pyo3(signature = (how, *, cpu_permille=None))]
    fn set_wait(&self, how: &str, cpu_permille: Option<u16>) -> PyResult<()> {
        let wait = wait_of(how, cpu_permille)?;
        self.check_open()?;
        self.handle.set_wait(wait);
        Ok(())
    }

    /// Closes it, and ends a running wait in another thread. Its members stay as they are.
    fn close(&self, py: Python<'_>) {
        released(py, || self.handle.close());
        let gone = self.inner.try_lock().ok().and_then(|mut inner| inner.take());
        drop(gone);
        drop(lock(&self.descriptor).take());
        let members = std::mem::take(&mut *lock(&self.members));
        drop(members);
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close(py);
    }
}

/// Ends a wait of its set. Any thread may trigger it.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct GuardCondition(myelin::GuardCondition);

#[pymethods]
impl GuardCondition {
    /// Ends the running wait, or else the next one.
    fn trigger(&self) {
        self.0.trigger();
    }
}

/// Ready once every period, in seconds.
#[pyclass(frozen, get_all, weakref, module = "myelin")]
pub struct Timer {
    period: f64,
}
