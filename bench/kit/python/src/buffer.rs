//! Memory that Python and the kit share. The stable interface has the buffer protocol only since
//! Python 3.11. Its struct, however, has been the same since 3.0, and its functions have always
//! been exported.

use std::ffi::{c_char, c_int, c_void};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

/// A view of an object's bytes; it keeps the object alive.
pub struct View(Box<PyBuffer>);

impl View {
    /// A view of contiguous bytes.
    pub fn of(object: &Bound<'_, PyAny>, is_writable: bool) -> PyResult<Self> {
        let mut buffer = Box::<PyBuffer>::new_uninit();
        let flags = c_int::from(is_writable) * WRITABLE;
        // SAFETY: a valid object, and memory for a view.
        if unsafe { PyObject_GetBuffer(object.as_ptr(), buffer.as_mut_ptr(), flags) } != 0 {
            return Err(PyErr::fetch(object.py()));
        }
        // SAFETY: the call has filled it in.
        let view = View(unsafe { buffer.assume_init() });
        match is_writable && view.0.readonly != 0 {
            true => Err(PyBufferError::new_err("a loan that cannot be written to")),
            false => Ok(view),
        }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        // SAFETY: this many bytes are readable while the view exists; without strides they are one
        // block.
        unsafe { std::slice::from_raw_parts(self.0.buf.cast(), self.0.len as usize) }
    }

    /// The bytes of a writable view.
    #[inline]
    pub fn bytes_mut(&mut self) -> &mut [u8] {
        assert!(self.0.readonly == 0);
        // SAFETY: see `bytes`; the driver guarantees that nobody else writes to a loan.
        unsafe { std::slice::from_raw_parts_mut(self.0.buf.cast(), self.0.len as usize) }
    }
}

impl Drop for View {
    fn drop(&mut self) {
        // SAFETY: a valid view, released once.
        Python::attach(|_| unsafe { PyBuffer_Release(&raw mut *self.0) });
    }
}

/// Bytes of the kit that Python sees during a call.
pub struct SentBuffer<'py>(Bound<'py, PyAny>);

impl<'py> SentBuffer<'py> {
    pub fn new(py: Python<'py>, bytes: &[u8]) -> PyResult<Self> {
        let (from, length) = (bytes.as_ptr().cast_mut().cast(), bytes.len() as ffi::Py_ssize_t);
        // SAFETY: the bytes are readable, and only read, until `end` or the drop.
        let object = unsafe { PyMemoryView_FromMemory(from, length, READ) };
        // SAFETY: a new reference, or NULL with an error.
        unsafe { Bound::from_owned_ptr_or_err(py, object) }.map(SentBuffer)
    }

    pub fn object(&self) -> &Bound<'py, PyAny> {
        &self.0
    }
}

impl Drop for SentBuffer<'_> {
    fn drop(&mut self) {
        // From now on Python cannot read them. A kept part would refer to memory that is gone.
        if self.0.call_method0("release").is_err() {
            eprintln!("a link's publish kept a part of the message after it returned");
            std::process::abort();
        }
    }
}

/// The layout that Python declares.
#[repr(C)]
struct PyBuffer {
    buf: *mut c_void,
    obj: *mut ffi::PyObject,
    len: ffi::Py_ssize_t,
    itemsize: ffi::Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut PyBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut PyBuffer);
    fn PyMemoryView_FromMemory(
        memory: *mut c_char,
        bytes: ffi::Py_ssize_t,
        flags: c_int,
    ) -> *mut ffi::PyObject;
}

const WRITABLE: c_int = 1;
const READ: c_int = 0x100;
