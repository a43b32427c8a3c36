//! Functions that are called with samples or requests.

use std::ffi::{CStr, c_char, c_void};

use myelin::Callback;

use crate::error::{Failure, MYELIN_OK, enter, myelin_code};
use crate::{handle, text};

/// A function that Myelin calls. Any thread may use the handle.
pub enum myelin_callback {}

/// The context of the program's function, and the function that releases it.
pub struct Context {
    pointer: *mut c_void,
    release: Option<unsafe extern "C" fn(*mut c_void)>,
}

// SAFETY: the header says that the functions may run in any thread.
unsafe impl Send for Context {}

impl Context {
    pub fn new(
        pointer: *mut c_void,
        release: Option<unsafe extern "C" fn(*mut c_void)>,
    ) -> Context {
        Context { pointer, release }
    }

    pub fn pointer(&self) -> *mut c_void {
        self.pointer
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(release) = self.release {
            // SAFETY: the program's function, called once.
            unsafe { release(self.pointer) };
        }
    }
}

/// Checks the arguments of every function that sets a callback: the function, and the place for the
/// handle.
///
/// # Safety
/// `callback` is NULL or valid.
pub unsafe fn prepare<F>(
    call: Option<F>,
    callback: *mut *mut myelin_callback,
) -> Result<F, Failure> {
    let call = call.ok_or_else(|| Failure::setting("call is NULL; pass a function"))?;
    // SAFETY: as the caller promises.
    unsafe { text::put(callback, std::ptr::null_mut(), "callback")? };
    Ok(call)
}

/// Gives the program the handle of a callback that has begun.
///
/// # Safety
/// `callback` has been prepared.
pub unsafe fn give(
    begun: Callback,
    callback: *mut *mut myelin_callback,
) -> Result<myelin_code, Failure> {
    let handle = handle::to_pointer(handle::insert(Box::new(begun))?);
    // SAFETY: as the caller promises.
    unsafe { callback.write(handle) };
    Ok(MYELIN_OK)
}

/// Ends the calls, and waits for a running call; from inside a callback it does not wait.
///
/// # Safety
/// No other thread uses the handle meanwhile.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_callback_close(callback: *mut myelin_callback) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        drop(handle::remove::<Callback>(handle::of_pointer(callback))?);
        Ok(MYELIN_OK)
    })
}

/// How many calls have returned so far.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_callback_calls(
    callback: *mut myelin_callback,
    calls: *mut u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        text::put(calls, of(callback)?.calls(), "calls")?;
        Ok(MYELIN_OK)
    })
}

/// How many samples were lost so far.
///
/// # Safety
/// Pointers are NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_callback_lost(
    callback: *mut myelin_callback,
    samples: *mut u64,
) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe {
        text::put(samples, of(callback)?.lost(), "samples")?;
        Ok(MYELIN_OK)
    })
}

/// The latest error of a take, once: its code, and its message as the message of this call.
/// MYELIN_OK if there was none. Most likely the function keeps too many samples.
///
/// # Safety
/// `callback` is NULL or valid.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_callback_error(callback: *mut myelin_callback) -> myelin_code {
    // SAFETY: as the caller promises.
    enter(|| unsafe { of(callback)?.error().map_or(Ok(MYELIN_OK), |error| Err(error.into())) })
}

/// Reports that a function of the program, called by Myelin, has thrown `what`. The report goes
/// where Myelin writes its own warnings: to stderr, or to the program's `tracing` subscriber. For
/// wrappers in languages with exceptions. They must catch all exceptions: none may be thrown
/// through Myelin. `function` names the function that set it. Any thread.
///
/// # Safety
/// Both are NULL or end with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_report_exception(function: *const c_char, what: *const c_char) {
    let text = |text: *const c_char| match text.is_null() {
        true => "?".into(),
        // SAFETY: it ends with a zero.
        false => unsafe { CStr::from_ptr(text) }.to_string_lossy(),
    };
    let _ = enter(|| {
        let reason = format!("it threw: {}; the function stays registered", text(what));
        myelin::report_failure("", &text(function), &reason);
        Ok(MYELIN_OK)
    });
}

unsafe fn of<'a>(callback: *mut myelin_callback) -> Result<&'a Callback, Failure> {
    // SAFETY: as the caller promises.
    unsafe { handle::get::<Callback>(handle::of_pointer(callback)) }
}
