//! Memory of samples and loans, as a Python buffer: a view keeps the memory.
//!
//! The stable interface has the buffer protocol only from Python 3.11 on. But its struct has been
//! the same since 3.0, `PyType_FromSpec` takes its two slots since 3.9, and its functions have
//! always been exported. So it is declared here, and works from 3.10 on.

use std::ffi::{c_char, c_int, c_void};
use std::mem::MaybeUninit;
use std::ptr::null_mut;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::exceptions::PyBufferError;
use pyo3::ffi;
use pyo3::prelude::*;

use crate::errors::{exception, wrong_value};
use crate::released::Released;
use crate::types::{Carried, Type};

/// Bytes in shared memory, or in the object itself.
pub trait Memory: Send + 'static {
    const IS_WRITABLE: bool;
    /// Whether its end never waits, so that it can come with the GIL held.
    const ENDS_AT_ONCE: bool;

    /// The address, valid until `self` is moved or dropped; and the number of bytes.
    fn bytes(&mut self) -> (*mut u8, usize);
}

/// An object's memory.
pub struct Held<M: Memory> {
    pub carried: Arc<Carried>,
    state: Mutex<State<M>>,
}

struct State<M> {
    /// In a box of its own: a small sample lies inside and is aligned to 64, and Python aligns
    /// objects to 16.
    memory: Option<Box<M>>,
    /// How many views exist.
    views: usize,
    /// Why it cannot be used any more.
    gone: Option<&'static str>,
}

impl<M: Memory> Held<M> {
    pub fn new(memory: M, carried: Arc<Carried>) -> Self {
        Held {
            carried,
            state: Mutex::new(State { memory: Some(Box::new(memory)), views: 0, gone: None }),
        }
    }

    /// Uses the memory, if it still exists. `act` makes no Python object, and no code with the lock
    /// may do so: that may collect garbage, in which there may be views.
    pub fn with<R>(&self, act: impl FnOnce(&mut M) -> R) -> PyResult<R> {
        let mut state = self.state();
        if let (None, Some(memory)) = (state.gone, &mut state.memory) {
            return Ok(act(memory));
        }
        Err(gone(state))
    }

    /// How many bytes.
    pub fn length(&self) -> PyResult<usize> {
        self.with(|memory| memory.bytes().1)
    }

    /// Fills it with bytes, which may be its own.
    pub fn fill(&self, bytes: &Bytes) -> PyResult<()> {
        let filled = self.with(|memory| {
            let (to, length) = memory.bytes();
            if bytes.length() != length {
                return Err(length);
            }
            // SAFETY: as many bytes lie there, held by the view, and the memory is ours to write.
            unsafe { bytes.pointer().copy_to(to, length) };
            Ok(())
        })?;
        filled.map_err(|length| {
            wrong_value(format!("{} bytes do not fill a loan of {length}", bytes.length()))
        })
    }

    /// Releases it, now or with its last view.
    pub fn release(&self, why: &'static str) {
        let mut state = self.state();
        if state.gone.is_none() {
            state.gone = Some(why);
        }
        let memory = if state.views == 0 { state.memory.take() } else { None };
        drop(state);
        end(memory);
    }

    /// Takes it, if there is no view of it.
    pub fn take(&self, why: &'static str) -> PyResult<M> {
        let mut state = self.state();
        if state.gone.is_some() {
            return Err(gone(state));
        }
        if state.views > 0 {
            return Err(PyBufferError::new_err(format!(
                "{} views of this loan are in use and could write to it after the publish: end \
                 them first (`del` the array, leave the function that has it), or publish a copy \
                 of the array",
                state.views
            )));
        }
        state.gone = Some(why);
        match state.memory.take() {
            Some(memory) => Ok(*memory),
            None => Err(gone(state)),
        }
    }

    fn view(&self) -> PyResult<(*mut u8, usize)> {
        let mut state = self.state();
        if let (None, Some(memory)) = (state.gone, &mut state.memory) {
            let viewed = memory.bytes();
            state.views += 1;
            return Ok(viewed);
        }
        Err(gone(state))
    }

    fn end_view(&self) {
        let mut state = self.state();
        state.views -= 1;
        let is_last = state.views == 0 && state.gone.is_some();
        let memory = if is_last { state.memory.take() } else { None };
        drop(state);
        end(memory);
    }

    fn state(&self) -> MutexGuard<'_, State<M>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<M: Memory> Drop for Held<M> {
    fn drop(&mut self) {
        let memory = self.state.get_mut().unwrap_or_else(PoisonError::into_inner).memory.take();
        end(memory);
    }
}

fn end<M: Memory>(memory: Option<Box<M>>) {
    if M::ENDS_AT_ONCE {
        drop(memory);
    } else {
        drop(memory.map(Released::new));
    }
}

fn gone<M>(state: MutexGuard<'_, State<M>>) -> PyErr {
    let why = state.gone.unwrap_or("released");
    drop(state);
    exception("Closed", format!("this has been {why} already"))
}

/// A class whose objects are buffers.
pub trait Exports: pyo3::PyClass<Frozen = pyo3::pyclass::boolean_struct::True> + Sync {
    type Of: Memory;

    fn held(&self) -> &Held<Self::Of>;
}

/// The struct, as Python declares it.
#[repr(C)]
pub struct PyBuffer {
    pub buf: *mut c_void,
    obj: *mut ffi::PyObject,
    pub len: ffi::Py_ssize_t,
    itemsize: ffi::Py_ssize_t,
    readonly: c_int,
    ndim: c_int,
    format: *mut c_char,
    shape: *mut ffi::Py_ssize_t,
    strides: *mut ffi::Py_ssize_t,
    suboffsets: *mut ffi::Py_ssize_t,
    internal: *mut c_void,
}

// Exported by every interpreter since 3.0.
unsafe extern "C" {
    fn PyObject_GetBuffer(object: *mut ffi::PyObject, view: *mut PyBuffer, flags: c_int) -> c_int;
    fn PyBuffer_Release(view: *mut PyBuffer);
}

const WRITABLE: c_int = 1;
const FORMAT: c_int = 4;
const ND: c_int = 8;
const STRIDES: c_int = 16;

/// `bf_getbuffer`.
///
/// # Safety
/// Called by Python with an object of the class `C`.
pub unsafe extern "C" fn get_buffer<C: Exports>(
    object: *mut ffi::PyObject,
    view: *mut PyBuffer,
    flags: c_int,
) -> c_int {
    // SAFETY: Python calls it with the GIL and an object of this class.
    let (py, viewed) = unsafe {
        let py = Python::assume_attached();
        (py, Borrowed::from_ptr(py, object).cast_unchecked::<C>())
    };
    let held = viewed.get().held();
    let is_refused = flags & WRITABLE != 0 && !C::Of::IS_WRITABLE;
    let bytes = match is_refused {
        true => Err(PyBufferError::new_err(
            "a sample is read-only: others read the same memory; copy it to write",
        )),
        false => held.view(),
    };
    let (pointer, length) = match bytes {
        Ok(viewed) => viewed,
        Err(error) => {
            // SAFETY: Python gives memory for a view.
            unsafe { (*view).obj = null_mut() };
            error.restore(py);
            return -1;
        }
    };
    let of_type = held.carried.of_type();
    let requests = |flag| flags & flag == flag;
    // SAFETY: as above; the format lives as long as the type, which the object holds, which the view holds.
    unsafe {
        *view = PyBuffer {
            buf: pointer.cast(),
            obj: ffi::Py_NewRef(object),
            len: length as ffi::Py_ssize_t,
            itemsize: 1,
            readonly: c_int::from(!C::Of::IS_WRITABLE),
            ndim: 1,
            format: if requests(FORMAT) {
                of_type.format().as_ptr().cast_mut()
            } else {
                null_mut()
            },
            shape: if requests(ND) { &raw mut (*view).len } else { null_mut() },
            strides: if requests(STRIDES) { &raw mut (*view).itemsize } else { null_mut() },
            suboffsets: null_mut(),
            internal: null_mut(),
        };
        if requests(ND) && !of_type.shows_bytes() {
            shape(&mut *view, of_type, requests(STRIDES));
        }
    }
    0
}

/// For more than one dimension, or for items of more than a byte.
fn shape(view: &mut PyBuffer, of_type: &Type, with_strides: bool) {
    let (mut shape, item_bytes) = of_type.shape(view.len as usize);
    let dimensions = shape.len();
    let mut strides = vec![item_bytes as isize; dimensions];
    for at in (1..dimensions).rev() {
        strides[at - 1] = strides[at] * shape[at].max(1);
    }
    shape.append(&mut strides);
    // Freed in `release_buffer`.
    let numbers = Box::leak(Box::new(shape));
    let first = numbers.as_mut_ptr();
    (view.itemsize, view.ndim) = (item_bytes as isize, dimensions as c_int);
    view.shape = first;
    // SAFETY: there are twice as many numbers as dimensions.
    view.strides = if with_strides { unsafe { first.add(dimensions) } } else { null_mut() };
    view.internal = std::ptr::from_mut(numbers).cast();
}

/// `bf_releasebuffer`.
///
/// # Safety
/// Called by Python with an object of the class `C`, and the view that [`get_buffer`] has filled
/// in.
pub unsafe extern "C" fn release_buffer<C: Exports>(
    object: *mut ffi::PyObject,
    view: *mut PyBuffer,
) {
    // SAFETY: as above; `internal` is null, or the box that `shape` has made, once.
    unsafe {
        let py = Python::assume_attached();
        if !(*view).internal.is_null() {
            drop(Box::from_raw((*view).internal.cast::<Vec<isize>>()));
        }
        Borrowed::from_ptr(py, object).cast_unchecked::<C>().get().held().end_view();
    }
}

/// Makes the objects of a class buffers.
#[macro_export]
macro_rules! exports {
    ($class:ty) => {
        pyo3::inventory::submit! {
            type Inventory = <$class as pyo3::impl_::pyclass::PyClassImpl>::Inventory;
            Inventory::new(pyo3::impl_::pyclass::PyClassItems {
                methods: &[],
                slots: &[
                    pyo3::ffi::PyType_Slot {
                        slot: pyo3::ffi::Py_bf_getbuffer,
                        pfunc: $crate::memory::get_buffer::<$class> as *mut std::ffi::c_void,
                    },
                    pyo3::ffi::PyType_Slot {
                        slot: pyo3::ffi::Py_bf_releasebuffer,
                        pfunc: $crate::memory::release_buffer::<$class> as *mut std::ffi::c_void,
                    },
                ],
            })
        }
    };
}

/// The contiguous bytes of an object. The object does not change them as long as this lives.
pub struct Bytes(Box<MaybeUninit<PyBuffer>>);

impl Bytes {
    pub fn of(object: &Bound<'_, PyAny>) -> PyResult<Bytes> {
        // Not zeroed: glibc's `calloc` does not reuse what has just been freed.
        let mut view = Box::new(MaybeUninit::uninit());
        // SAFETY: Python fills in the view, or says why not.
        match unsafe { PyObject_GetBuffer(object.as_ptr(), view.as_mut_ptr(), FORMAT | ND) } {
            0 => Ok(Bytes(view)),
            _ => Err(PyErr::fetch(object.py())),
        }
    }

    /// Whether its items are numbers. For other items, the codec finds out whether they hold
    /// pointers.
    pub fn are_plain(&self) -> bool {
        // SAFETY: filled in by Python.
        let format = unsafe { (*self.0.as_ptr()).format }.cast::<u8>();
        // SAFETY: null, or text that lives as long as the view.
        format.is_null()
            || unsafe {
                *format != 0 && *format.add(1) == 0 && b"BbcHhIiLlQqfd?".contains(&*format)
            }
    }

    pub fn pointer(&self) -> *const u8 {
        // SAFETY: filled in by Python.
        unsafe { (*self.0.as_ptr()).buf.cast() }
    }

    pub fn length(&self) -> usize {
        // SAFETY: filled in by Python.
        unsafe { (*self.0.as_ptr()).len as usize }
    }

    /// All of them, of an object that never changes.
    pub fn as_slice(&self) -> &[u8] {
        if self.length() == 0 {
            return &[];
        }
        // SAFETY: the buffer keeps its bytes, and the caller's object does not change them.
        unsafe { std::slice::from_raw_parts(self.pointer(), self.length()) }
    }
}

impl Drop for Bytes {
    fn drop(&mut self) {
        // SAFETY: filled in by Python; its owner drops it with the GIL.
        unsafe { PyBuffer_Release(self.0.as_mut_ptr()) };
    }
}

/// The methods of everything that can be read.
#[macro_export]
macro_rules! readable {
    ($class:ty) => {
        $crate::exports!($class);

        #[pymethods]
        impl $class {
            /// The payload as a Python object; `docs/reference/python.md` says for which types it
            /// is a copy.
            #[getter]
            fn value<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                slf.get().0.carried.codec(slf.py()).call_method1("value", (slf,))
            }

            /// The header, for a topic `(H, [T])`.
            #[getter]
            fn header<'py>(slf: &Bound<'py, Self>) -> PyResult<Bound<'py, PyAny>> {
                slf.get().0.carried.codec(slf.py()).call_method1("header", (slf,))
            }

            /// The payload, or its elements, as a numpy array without a copy. The array keeps the
            /// memory.
            #[pyo3(signature = (shape=None, dtype=None))]
            fn array<'py>(
                slf: &Bound<'py, Self>,
                shape: Option<Bound<'py, PyAny>>,
                dtype: Option<Bound<'py, PyAny>>,
            ) -> PyResult<Bound<'py, PyAny>> {
                let codec = slf.get().0.carried.codec(slf.py());
                codec.call_method1("array", (slf, shape, dtype))
            }

            /// A field by its path, such as `pose.position.x` or `points[3].x`, for a topic whose
            /// type was learnt. Numbers of an array are a numpy array without a copy, which keeps
            /// the memory.
            fn field<'py>(slf: &Bound<'py, Self>, path: &str) -> PyResult<Bound<'py, PyAny>> {
                slf.get().0.carried.codec(slf.py()).call_method1("field", (slf, path))
            }

            /// How many bytes it has.
            #[getter]
            fn nbytes(&self) -> PyResult<usize> {
                self.0.length()
            }

            /// How many elements it has.
            fn __len__(&self) -> PyResult<usize> {
                let elements = self.0.carried.of_type().elements_of(self.0.length()?);
                elements.ok_or_else(|| {
                    pyo3::exceptions::PyTypeError::new_err(
                        "a single value has no length; see \
                                                            `nbytes`",
                    )
                })
            }

            /// Always true, however many elements it has: `while sample := subscriber.take()`.
            fn __bool__(&self) -> bool {
                true
            }

            fn __enter__(slf: Py<Self>) -> Py<Self> {
                slf
            }
        }
    };
}
