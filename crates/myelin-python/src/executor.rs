//! Functions that are called with the samples and requests of many, in one thread or in a few.

use std::os::fd::{OwnedFd, RawFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use myelin::cancel;
use pyo3::prelude::*;

use crate::call::call_until_closed;
use crate::errors::{exception, raised};
use crate::exclusive::{Exclusive, Wakes, descriptor};
use crate::node::{left, limit, seconds};
use crate::released::released;
use crate::sample::Sample;
use crate::service::{Request, Service};
use crate::subscriber::{Subscriber, wait_of};

/// Calls functions with the samples of subscribers, with requests, and at intervals. Run in one thread it
/// calls no two of them at once; run on several, none twice at once. One thread at a time uses it, but any
/// may stop it.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Executor {
    inner: Exclusive<Inner>,
    shared: Arc<Shared>,
}

struct Inner {
    executor: myelin::Executor,
    descriptor: Option<OwnedFd>,
}

/// What it has in common with its functions.
struct Shared {
    /// Ends a run.
    stop: myelin::Guard,
    is_stopped: AtomicBool,
    is_run: AtomicBool,
    /// What a function has raised, the first one.
    raised: Mutex<Option<PyErr>>,
}

impl Shared {
    fn call<A>(&self, function: &Py<PyAny>, argument: A)
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        // Of an interpreter that is going nobody is called.
        let _ = Python::try_attach(|py| {
            let called = function.bind(py).call1(argument);
            let Err(error) = called.and_then(|_| py.check_signals()) else { return };
            let mut first = self.raised.lock().unwrap_or_else(PoisonError::into_inner);
            if first.is_some() {
                error.write_unraisable(py, Some(function.bind(py)));
            } else {
                *first = Some(error);
            }
            drop(first);
            if self.is_run.load(Ordering::SeqCst) {
                self.stop.trigger();
            }
        });
    }
}

/// What an executor calls, to be removed.
#[pyclass(frozen, module = "myelin")]
pub struct Called(myelin::Key);

impl Executor {
    pub fn new(executor: myelin::Executor) -> Executor {
        let stop = executor.stop_guard();
        let inner = Inner { executor, descriptor: None };
        let shared = Shared {
            stop: stop.clone(),
            is_stopped: AtomicBool::new(false),
            is_run: AtomicBool::new(false),
            raised: Mutex::default(),
        };
        let inner = Exclusive::new(inner, Wakes::Guard(stop), "executor");
        Executor { inner, shared: Arc::new(shared) }
    }

    fn with<R>(&self, act: impl FnOnce(&mut Inner) -> PyResult<R>) -> PyResult<R> {
        act(&mut *self.inner.lock()?)
    }

    /// Raises what a function has raised.
    fn check(&self) -> PyResult<()> {
        let raised = self.shared.raised.lock().unwrap_or_else(PoisonError::into_inner).take();
        raised.map_or(Ok(()), Err)
    }
}

#[pymethods]
impl Executor {
    /// Calls `function` with each sample. The subscriber itself is used up.
    fn on_sample(
        &self,
        py: Python<'_>,
        subscriber: &Bound<'_, Subscriber>,
        function: Py<PyAny>,
    ) -> PyResult<Called> {
        self.with(|inner| {
            let (subscriber, carried) = subscriber.get().hand_over()?;
            let shared = self.shared.clone();
            let call = move |sample: &myelin::Sample<[u8]>| {
                shared.call(&function, (Sample::new(sample.clone(), &carried),));
            };
            let executor = &mut inner.executor;
            released(py, || executor.on_sample(subscriber, call)).map(Called).map_err(raised)
        })
    }

    /// Calls `function` with each request. The service itself is used up.
    fn on_request(
        &self,
        py: Python<'_>,
        service: &Bound<'_, Service>,
        function: Py<PyAny>,
    ) -> PyResult<Called> {
        self.with(|inner| {
            let (service, request, reply) = service.get().hand_over()?;
            let shared = self.shared.clone();
            let call = move |asked| {
                if let Some(asked) = Request::new(asked, &request, &reply) {
                    shared.call(&function, (asked,));
                }
            };
            let executor = &mut inner.executor;
            released(py, || executor.on_request(service, call)).map(Called).map_err(raised)
        })
    }

    /// Calls `function` every `period` seconds, the first time one period from now. Periods that pass
    /// while something else is called count as one.
    fn on_timer(&self, period: f64, function: Py<PyAny>) -> PyResult<Called> {
        let period = seconds(period)?;
        let shared = self.shared.clone();
        let call = move || shared.call(&function, ());
        self.with(|inner| inner.executor.on_timer(period, call).map(Called).map_err(raised))
    }

    /// Calls it no more, and drops its function and its subscriber. False if it was not there.
    fn remove(&self, py: Python<'_>, called: &Bound<'_, Called>) -> PyResult<bool> {
        let key = called.get().0;
        self.with(|inner| {
            let executor = &mut inner.executor;
            Ok(released(py, || executor.remove(key)))
        })
    }

    /// Calls until it is stopped, in this thread and in so many more that there are `threads`. What a
    /// function raises ends it, and is raised here.
    #[pyo3(signature = (threads=1))]
    fn run(&self, py: Python<'_>, threads: usize) -> PyResult<()> {
        if threads == 0 {
            let message = "threads is 0: it is at least 1".to_string();
            return Err(exception("WrongSetting", message));
        }
        self.with(|inner| {
            let (target, executor) = (self.inner.target(), &mut inner.executor);
            while !self.shared.is_stopped.swap(false, Ordering::SeqCst) {
                self.shared.is_run.store(true, Ordering::SeqCst);
                let run = call_until_closed(py, &target, || match threads {
                    1 => executor.run(),
                    threads => run_beside(executor, threads, &self.shared.stop),
                });
                self.shared.is_run.store(false, Ordering::SeqCst);
                self.check()?;
                run?;
                target.check()?;
            }
            Ok(())
        })
    }

    /// Waits for something to call, for `timeout` seconds at most (None: for ever), and calls all that is
    /// due. False if it was stopped. What a function raises is raised here, once all have been called.
    #[pyo3(signature = (timeout=None))]
    fn turn(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = limit(timeout)?;
        let begun = Instant::now();
        self.with(|inner| {
            loop {
                let left = left(limit, begun);
                let (target, executor) = (self.inner.target(), &mut inner.executor);
                let turned = call_until_closed(py, &target, || executor.turn(left));
                self.check()?;
                let is_over = turned? || left.is_zero();
                target.check()?;
                if self.shared.is_stopped.swap(false, Ordering::SeqCst) {
                    return Ok(false);
                }
                if is_over {
                    return Ok(true);
                }
            }
        })
    }

    /// Ends the run or the turn that is under way, after the calls that are, or else the next one. Any
    /// thread, and a function that it calls.
    fn stop(&self) {
        self.shared.is_stopped.store(true, Ordering::SeqCst);
        self.shared.stop.trigger();
    }

    /// A descriptor for `select`, `epoll` or asyncio: when it is readable, `turn(0)`.
    fn fileno(&self) -> PyResult<RawFd> {
        self.with(|inner| descriptor(&mut inner.descriptor, || inner.executor.descriptor()))
    }

    /// How it waits: `adaptive`, `block`, `poll`, `predictive`.
    #[pyo3(signature = (how, *, cpu_permille=None))]
    fn set_wait(&self, how: &str, cpu_permille: Option<u16>) -> PyResult<()> {
        let wait = wait_of(how, cpu_permille)?;
        self.with(|inner| {
            inner.executor.set_wait(wait);
            Ok(())
        })
    }

    /// Ends it, with its subscribers and services, and a run or turn that is under way, wherever that is.
    fn close(&self) {
        self.inner.close();
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close();
    }
}

/// Runs it on threads of its own, while this one waits for them and looks for signals.
fn run_beside(
    executor: &mut myelin::Executor,
    threads: usize,
    stop: &myelin::Guard,
) -> Result<(), myelin::Error> {
    let (caller, is_over) = (std::thread::current(), AtomicBool::new(false));
    std::thread::scope(|scope| {
        let running = scope.spawn(|| {
            let run = executor.run_on(threads);
            is_over.store(true, Ordering::Release);
            caller.unpark();
            run
        });
        while !is_over.load(Ordering::Acquire) && !running.is_finished() {
            if cancel::is_cancelled() {
                stop.trigger();
            }
            std::thread::park_timeout(cancel::slice(PATIENCE));
        }
        running.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}

/// Without signals to look for.
const PATIENCE: Duration = Duration::from_secs(1);
