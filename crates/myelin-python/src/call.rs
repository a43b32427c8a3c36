//! A call of the library, without the GIL. Python's signal handlers run while it waits, and end it
//! if they raise. If a callback inside it raises an exception that ends the program, the call
//! raises that exception.
//!
//! Myelin installs no signal handler. A wait of the main thread looks for signals several times a
//! second, and at once after a system-level handler has run in that thread, because that ends its
//! sleep in the kernel.

use std::cell::{Cell, OnceCell};
use std::ptr::null;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicUsize, Ordering};
use std::time::Duration;

use myelin::cancel;
use pyo3::exceptions::PyException;
use pyo3::prelude::*;

use crate::errors::{closed, raised};
use crate::released::released;

/// The object that a call uses, and the effect of its close.
#[derive(Clone, Copy)]
pub struct Target<'a> {
    pub is_closed: &'a AtomicBool,
    /// Its name for messages.
    pub what: &'static str,
    /// Whether a close wakes the call. If not, the call checks several times a second whether the
    /// object is closed.
    pub is_woken: bool,
}

/// A running call.
struct Call<'a> {
    target: &'a Target<'a>,
    raised: OnceCell<Box<PyErr>>,
}

/// Restores the previous innermost call when it is dropped.
struct Innermost<'a> {
    current: &'a Cell<*const Call<'static>>,
    outer: *const Call<'static>,
}

/// Runs `act` without the GIL. It must not touch a Python object.
pub fn call<R>(py: Python<'_>, act: impl FnOnce() -> Result<R, myelin::Error>) -> PyResult<R> {
    call_until_closed(py, &Target { is_closed: &NEVER, what: "", is_woken: false }, act)
}

/// Like `call`, until `target` is closed.
#[inline(always)]
pub fn call_until_closed<R>(
    py: Python<'_>,
    target: &Target<'_>,
    act: impl FnOnce() -> Result<R, myelin::Error>,
) -> PyResult<R> {
    let call = Call { target, raised: OnceCell::new() };
    let result = CURRENT.with(|current| {
        let outer = current.replace((&raw const call).cast());
        let _innermost = Innermost { current, outer };
        released(py, act)
    });
    match call.raised.into_inner() {
        None => result.map_err(|error| target.failed(error)),
        Some(raised) => {
            // Its drop may wait for a thread that waits for the GIL.
            released(py, || drop(result));
            Err(*raised)
        }
    }
}

/// Like `call_until_closed`, for a wait: `None` if there is nothing to wait for any more.
pub fn wait_until_closed<R>(
    py: Python<'_>,
    target: &Target<'_>,
    wait: impl FnOnce() -> Result<Option<R>, myelin::Error>,
) -> PyResult<Option<R>> {
    let got = call_until_closed(py, target, wait)?;
    if got.is_none() {
        target.check()?;
    }
    Ok(got)
}

impl Target<'_> {
    /// Fails with `Closed` if the object is closed.
    pub fn check(&self) -> PyResult<()> {
        if self.is_closed() { Err(closed(self.what)) } else { Ok(()) }
    }

    fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    #[cold]
    fn failed(&self, error: myelin::Error) -> PyErr {
        if self.is_closed() { closed(self.what) } else { raised(error) }
    }
}

impl Call<'_> {
    fn is_over(&self) -> bool {
        self.raised.get().is_some() || self.target.is_closed()
    }
}

impl Drop for Innermost<'_> {
    #[inline]
    fn drop(&mut self) {
        self.current.set(self.outer);
    }
}

/// Handles an exception that a callback has raised. An exception that ends the program
/// (`KeyboardInterrupt`, `SystemExit`) is raised by the call that runs the callback. All others,
/// and those in a thread of the library, go to `sys.unraisablehook`.
pub fn raise_in_callback(py: Python<'_>, error: PyErr, function: &Bound<'_, PyAny>) {
    if !error.is_instance_of::<PyException>(py)
        && let Some(call) = innermost()
        && call.raised.get().is_none()
    {
        let _ = call.raised.set(Box::new(error));
    } else {
        error.write_unraisable(py, Some(function));
    }
}

/// Makes the library's waits check for signals. `main`: the identity of Python's main thread.
pub fn install(main: usize) {
    MAIN.store(main, Ordering::Relaxed);
    // SAFETY: `in_child` only stores.
    unsafe { libc::pthread_atfork(None, None, Some(in_child)) };
    cancel::install(cancel::Checks { interval, is_cancelled });
}

/// The identity of this thread, the same as Python's `threading.get_ident`.
pub fn this_thread() -> usize {
    // SAFETY: no preconditions.
    unsafe { libc::pthread_self() as usize }
}

/// How many forks lie between the first process and this one.
pub fn forks() -> u32 {
    FORKS.load(Ordering::Relaxed)
}

/// The thread that forks is the child's main thread.
extern "C" fn in_child() {
    MAIN.store(this_thread(), Ordering::Relaxed);
    FORKS.fetch_add(1, Ordering::Relaxed);
}

fn interval() -> Option<Duration> {
    (!innermost()?.target.is_woken || is_main()).then_some(SLICE)
}

fn is_cancelled() -> bool {
    let Some(call) = innermost() else { return false };
    if !call.is_over() && is_main() {
        // While the interpreter shuts down, there are no handlers.
        let checked = Python::try_attach(|py| py.check_signals());
        if let Some(Err(error)) = checked {
            let _ = call.raised.set(Box::new(error));
        }
    }
    call.is_over()
}

/// The innermost call of this thread; none in a thread of the library.
fn innermost<'a>() -> Option<&'a Call<'a>> {
    // SAFETY: it exists as long as `call_of`, in which the caller runs; the lifetime does not leave
    // it.
    unsafe { CURRENT.get().cast::<Call<'a>>().as_ref() }
}

/// Whether Python runs signal handlers in this thread.
fn is_main() -> bool {
    this_thread() == MAIN.load(Ordering::Relaxed)
}

thread_local! {
    static CURRENT: Cell<*const Call<'static>> = const { Cell::new(null()) };
}

/// The target of calls that the library itself ends with `Closed` when their object is closed.
pub const WOKEN: Target<'static> = Target { is_closed: &NEVER, what: "", is_woken: true };
/// For objects that are never closed.
pub static NEVER: AtomicBool = AtomicBool::new(false);
static MAIN: AtomicUsize = AtomicUsize::new(0);
static FORKS: AtomicU32 = AtomicU32::new(0);

/// How long a signal of another thread, or a close that wakes no call, waits at most. It costs an
/// idle program 0.05 % of a core: a timer and a thread switch take some 30 µs on a virtual machine.
const SLICE: Duration = Duration::from_millis(70);
