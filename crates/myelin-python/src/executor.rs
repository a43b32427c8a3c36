//! Executors: functions called with the samples and requests of many topics, in one or a few
//! threads.

use std::collections::HashMap;
use std::os::fd::{OwnedFd, RawFd};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, TryLockError};

use myelin::Key;
use pyo3::gc::{PyTraverseError, PyVisit};
use pyo3::prelude::*;

use crate::call::{WOKEN, call_until_closed};
use crate::errors::{closed, exception, raised};
use crate::exclusive::descriptor;
use crate::node::{limit, seconds};
use crate::released::{Released, released};
use crate::sample::Sample;
use crate::service::{Request, Service};
use crate::subscriber::{Subscriber, wait_of};

/// Calls functions with the samples of subscribers, with requests, and at intervals. Run in one
/// thread, it never calls two of them at once; run on several, it never calls the same one twice at
/// once. One thread at a time runs it. Any thread, and its functions, may add, remove, stop and
/// close meanwhile.
#[pyclass(frozen, weakref, module = "myelin")]
pub struct Executor {
    handle: myelin::ExecutorHandle,
    /// Locked while it runs. If another thread closes it meanwhile, the running thread drops it.
    inner: Mutex<Option<Released<myelin::Executor>>>,
    descriptor: Mutex<Option<OwnedFd>>,
    shared: Arc<Shared>,
    /// The functions, for the garbage collector.
    functions: Mutex<HashMap<Key, Arc<Function>>>,
}

/// State shared with its functions.
struct Shared {
    /// Ends a run.
    stop: myelin::GuardCondition,
    /// The first exception that a function has raised.
    raised: Mutex<Option<PyErr>>,
}

/// A function of the program, until it is removed. Locked with the GIL, and never while it is
/// called.
struct Function(Mutex<Option<Py<PyAny>>>);

impl Function {
    fn get(&self, py: Python<'_>) -> Option<Py<PyAny>> {
        lock(&self.0).as_ref().map(|function| function.clone_ref(py))
    }

    /// Takes the function; the caller drops it and must have the GIL.
    fn take(&self) -> Option<Py<PyAny>> {
        lock(&self.0).take()
    }
}

impl Shared {
    fn call<A>(&self, function: &Function, argument: A)
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        // While the interpreter shuts down, no function is called.
        let _ = Python::try_attach(|py| {
            let Some(function) = function.get(py) else { return };
            let Err(error) = function.bind(py).call1(argument) else { return };
            self.stop.trigger();
            let mut first = lock(&self.raised);
            if first.is_none() {
                *first = Some(error);
            } else {
                drop(first);
                error.write_unraisable(py, Some(function.bind(py)));
            }
        });
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A function that an executor calls, to remove it.
#[pyclass(frozen, module = "myelin")]
pub struct Called {
    key: Key,
    executor: Arc<Shared>,
}

impl Executor {
    pub fn new(executor: myelin::Executor) -> Executor {
        let shared = Shared { stop: executor.stop_guard(), raised: Mutex::default() };
        Executor {
            handle: executor.handle(),
            inner: Mutex::new(Some(Released::new(executor))),
            descriptor: Mutex::default(),
            shared: Arc::new(shared),
            functions: Mutex::default(),
        }
    }

    fn check_open(&self) -> PyResult<()> {
        if self.handle.is_closed() { Err(closed("executor")) } else { Ok(()) }
    }

    /// Adds a function by `add`, which gets the code to call.
    fn add(
        &self,
        function: Py<PyAny>,
        add: impl FnOnce(Arc<Function>) -> Result<Key, myelin::Error>,
    ) -> PyResult<Called> {
        let function = Arc::new(Function(Mutex::new(Some(function))));
        let key = add(function.clone()).map_err(raised)?;
        lock(&self.functions).insert(key, function);
        Ok(Called { key, executor: self.shared.clone() })
    }

    fn run_by<R>(
        &self,
        py: Python<'_>,
        run: impl FnOnce(&mut myelin::Executor) -> Result<R, myelin::Error>,
    ) -> PyResult<R> {
        self.check_open()?;
        let mut inner = match self.inner.try_lock() {
            Ok(inner) => inner,
            Err(TryLockError::Poisoned(inner)) => inner.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(self.busy()),
        };
        let executor = inner.as_mut().ok_or_else(|| closed("executor"))?;
        let ran = call_until_closed(py, &WOKEN, || run(executor));
        let gone = if self.handle.is_closed() { inner.take() } else { None };
        drop(inner);
        drop(gone);
        let Some(raised) = lock(&self.shared.raised).take() else { return ran };
        if let Err(signal) = ran
            && !signal.is_instance_of::<pyo3::exceptions::PyException>(py)
        {
            raised.write_unraisable(py, None);
            return Err(signal);
        }
        Err(raised)
    }

    fn busy(&self) -> PyErr {
        if self.handle.is_forked() {
            return raised(myelin::Error::Forked);
        }
        let message = match self.handle.is_called() {
            true => {
                "run and turn cannot be called by a function of the same executor; return instead"
            }
            false => {
                "this executor is already running, in another thread or in an outer call of \
                      this one"
            }
        };
        exception("Busy", message.to_string())
    }

    /// The program's functions, to be dropped by the caller, who has the GIL and no lock.
    fn take_functions(&self) -> Vec<Py<PyAny>> {
        let functions = std::mem::take(&mut *lock(&self.functions));
        functions.into_values().filter_map(|function| function.take()).collect()
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
        self.check_open()?;
        let (subscriber, carried) = subscriber.get().hand_over()?;
        let shared = self.shared.clone();
        self.add(function, |function| {
            let call = move |sample: &myelin::Sample<[u8]>| {
                shared.call(&function, (Sample::new(sample.clone(), &carried),));
            };
            released(py, || self.handle.on_sample(subscriber, call))
        })
    }

    /// Calls `function` with each request. The service itself is used up.
    fn on_request(
        &self,
        py: Python<'_>,
        service: &Bound<'_, Service>,
        function: Py<PyAny>,
    ) -> PyResult<Called> {
        self.check_open()?;
        let (service, request, reply) = service.get().hand_over()?;
        let shared = self.shared.clone();
        self.add(function, |function| {
            let call = move |received| {
                if let Some(received) = Request::new(received, &request, &reply) {
                    shared.call(&function, (received,));
                }
            };
            released(py, || self.handle.on_request(service, call))
        })
    }

    /// Calls `function` every `period` seconds, the first time one period from now. Periods that
    /// pass during other calls count as one.
    fn on_timer(&self, py: Python<'_>, period: f64, function: Py<PyAny>) -> PyResult<Called> {
        let period = seconds(period)?;
        let shared = self.shared.clone();
        self.add(function, |function| {
            let call = move || shared.call(&function, ());
            released(py, || self.handle.on_timer(period, call))
        })
    }

    /// Stops calling a function, and drops it and its subscriber. When this returns, a running call
    /// in another thread has ended; a function may remove itself. False if it was not there.
    fn remove(&self, py: Python<'_>, called: &Bound<'_, Called>) -> bool {
        let Called { key, executor } = called.get();
        if !Arc::ptr_eq(executor, &self.shared) {
            return false;
        }
        let is_removed = released(py, || self.handle.remove(*key));
        let function = lock(&self.functions).remove(key);
        drop(function.and_then(|function| function.take()));
        is_removed
    }

    /// Calls functions until it is stopped, in this thread and additional ones, `threads` in total.
    /// An exception of a function ends the run after that call, and is raised here; `Closed` if it
    /// is closed meanwhile.
    #[pyo3(signature = (threads=1))]
    fn run(&self, py: Python<'_>, threads: usize) -> PyResult<()> {
        if threads == 0 {
            let message = "threads is 0; use at least 1".to_string();
            return Err(exception("WrongSetting", message));
        }
        self.run_by(py, |executor| executor.run_on(threads))
    }

    /// Waits for something to call, for at most `timeout` seconds (None: for ever), and calls each
    /// function that is due once. False if it was stopped. An exception of a function ends the turn
    /// after that call, and is raised here.
    #[pyo3(signature = (timeout=None))]
    fn turn(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<bool> {
        let limit = limit(timeout)?;
        self.run_by(py, |executor| executor.turn(limit))
    }

    /// Ends the running `run` or `turn` after the running call, or else the next one. Any thread,
    /// and a function that it calls.
    fn stop(&self) {
        self.shared.stop.trigger();
    }

    /// A descriptor for `select`, `epoll` or asyncio: when it is readable, `turn(0)`.
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

    /// The order in which functions are called: `round_robin`, or `oldest_first`, by the time of
    /// publication. It takes effect from the next call on.
    fn set_order(&self, order: &str) -> PyResult<()> {
        let order = match order {
            "round_robin" => myelin::Order::RoundRobin,
            "oldest_first" => myelin::Order::OldestFirst,
            _ => {
                let message = format!("order is {order:?}; use round_robin or oldest_first");
                return Err(exception("WrongSetting", message));
            }
        };
        self.check_open()?;
        self.handle.set_order(order);
        Ok(())
    }

    /// Closes it, with its subscribers and services. A running `run` or `turn` raises `Closed`
    /// after the running calls. Outside its functions, this waits for these calls.
    fn close(&self, py: Python<'_>) {
        released(py, || self.handle.close());
        let gone = self.inner.try_lock().ok().and_then(|mut inner| inner.take());
        drop(gone);
        drop(lock(&self.descriptor).take());
        drop(self.take_functions());
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        // A holder of one of these locks has the GIL, and this thread has it, so the locks are
        // free.
        let Ok(functions) = self.functions.try_lock() else { return Ok(()) };
        for function in functions.values() {
            if let Ok(function) = function.0.try_lock() {
                visit.call(&*function)?;
            }
        }
        Ok(())
    }

    fn __clear__(&self) {
        drop(self.take_functions());
    }

    fn __enter__(slf: Py<Self>) -> Py<Self> {
        slf
    }

    fn __exit__(&self, py: Python<'_>, _kind: Py<PyAny>, _value: Py<PyAny>, _trace: Py<PyAny>) {
        self.close(py);
    }
}
