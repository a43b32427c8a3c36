//! One thread that waits for many topics.

use std::collections::HashMap;
use std::os::fd::{OwnedFd, RawFd};
use std::time::Instant;

use myelin::Key;
use pyo3::prelude::*;

use crate::call::call_until_closed;
use crate::errors::{exception, raised};
use crate::exclusive::{Exclusive, Wakes, descriptor};
use crate::node::{left, limit, seconds};
use crate::service::Service;
use crate::subscriber::{Subscriber, wait_of};

/// Waits for any number of subscribers, services, guards and timers. One thread at a time uses it.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct WaitSet(Exclusive<Inner>);

struct Inner {
    set: myelin::WaitSet,
    members: HashMap<Key, Py<PyAny>>,
    descriptor: Option<OwnedFd>,
}

impl WaitSet {
    pub fn new(mut set: myelin::WaitSet) -> PyResult<WaitSet> {
        let wakes = Wakes::Guard(set.guard().map_err(raised)?);
        let inner = Inner { set, members: HashMap::new(), descriptor: None };
        Ok(WaitSet(Exclusive::new(inner, wakes, "wait set")))
    }

    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> PyResult<R>) -> PyResult<R> {
        act(&mut *self.0.lock()?)
    }
}

#[pymethods]
impl WaitSet {
    /// Watches a subscriber or a service. It stays its owner's, to be taken from.
    fn add(&self, member: &Bound<'_, PyAny>) -> PyResult<()> {
        self.with(|inner| {
            let key = if let Ok(subscriber) = member.cast::<Subscriber>() {
                subscriber.get().with(|subscriber| inner.set.add(subscriber))?
            } else if let Ok(service) = member.cast::<Service>() {
                service.get().with(|service| inner.set.add_service(service))?
            } else {
                let message =
                    "a wait set watches subscribers and services; guards and timers it makes";
                return Err(exception("WrongValue", message.to_string()));
            };
            inner.members.insert(key.map_err(raised)?, member.clone().unbind());
            Ok(())
        })
    }

    /// A guard: triggering it, in any thread, ends a wait.
    fn guard(&self, py: Python<'_>) -> PyResult<Py<Guard>> {
        self.with(|inner| {
            let guard = inner.set.guard().map_err(raised)?;
            let key = guard.key();
            let guard = Py::new(py, Guard(guard))?;
            inner.members.insert(key, guard.clone_ref(py).into_any());
            Ok(guard)
        })
    }

    /// A timer: ready every `period` seconds.
    fn timer(&self, py: Python<'_>, period: f64) -> PyResult<Py<Timer>> {
        let duration = seconds(period)?;
        self.with(|inner| {
            let key = inner.set.timer(duration).map_err(raised)?;
            let timer = Py::new(py, Timer { period })?;
            inner.members.insert(key, timer.clone_ref(py).into_any());
            Ok(timer)
        })
    }

    /// Watches it no longer. False if it did not.
    fn remove(&self, member: &Bound<'_, PyAny>) -> PyResult<bool> {
        self.with(|inner| {
            let is_it = |(_, other): &(&Key, &Py<PyAny>)| other.as_ptr() == member.as_ptr();
            let Some((key, _)) = inner.members.iter().find(is_it) else { return Ok(false) };
            let key = *key;
            inner.members.remove(&key);
            Ok(inner.set.remove(key))
        })
    }

    /// Waits until something is ready, for `timeout` seconds at most (None: for ever); the members that
    /// are. Of a subscriber from which not all has been taken, it is ready again.
    #[pyo3(signature = (timeout=None))]
    fn wait(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Vec<Py<PyAny>>> {
        let limit = limit(timeout)?;
        let begun = Instant::now();
        self.with(|inner| {
            loop {
                let left = left(limit, begun);
                let (target, set) = (self.0.target(), &mut inner.set);
                let wait = || set.wait(left).map(<[Key]>::to_vec);
                let ready = call_until_closed(py, &target, wait)?;
                target.check()?;
                let members = ready.iter().filter_map(|key| inner.members.get(key));
                let members: Vec<_> = members.map(|member| member.clone_ref(py)).collect();
                if !members.is_empty() || left.is_zero() {
                    return Ok(members);
                }
            }
        })
    }

    /// A descriptor for `select`, `epoll` or asyncio, for all that it watches: when it is readable,
    /// `wait(0)` until that gives nothing, then wait for it again.
    fn fileno(&self) -> PyResult<RawFd> {
        self.with(|inner| descriptor(&mut inner.descriptor, || inner.set.descriptor()))
    }

    /// How it waits: `adaptive`, `block`, `poll`, `predictive`.
    #[pyo3(signature = (how, *, cpu_permille=None))]
    fn set_wait(&self, how: &str, cpu_permille: Option<u16>) -> PyResult<()> {
        let wait = wait_of(how, cpu_permille)?;
        self.with(|inner| {
            inner.set.set_wait(wait);
            Ok(())
        })
    }

    /// Ends it, and a wait that is under way, wherever that is. What it watched stays as it is.
    fn close(&self) {
        self.0.close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close();
    }
}

/// Ends a wait of its set. Any thread may trigger it.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Guard(myelin::Guard);

#[pymethods]
impl Guard {
    /// Ends the wait that is under way, or the next one.
    fn trigger(&self) {
        self.0.trigger();
    }
}

/// Ready once every period, in seconds.
#[pyclass(frozen, get_all, weakref, module = "myelin")]
pub struct Timer {
    period: f64,
}
