//! What a program passes: text, lists of text, structs that begin with their size, handles.

use std::ffi::{CStr, c_char};
use std::time::Duration;

use crate::error::{Failure, setting};

/// A struct of the header that begins with its size.
///
/// # Safety
/// It is `repr(C)`, its first member is a `usize`, its size, and zeros are a value.
pub unsafe trait Sized_: Copy {
    const NAME: &'static str;
}

macro_rules! sized {
    ($($name:ident),*) => {$(
        // SAFETY: `repr(C)`; `size` comes first; its members are numbers and pointers.
        unsafe impl $crate::input::Sized_ for $name {
            const NAME: &'static str = stringify!($name);
        }
        const _: () = assert!(std::mem::offset_of!($name, size) == 0);
    )*};
}
pub(crate) use sized;

/// The program's options, or all 0 for NULL.
///
/// # Safety
/// `from` is NULL or points to as many bytes as its first member says.
pub unsafe fn read<T: Sized_>(from: *const T) -> Result<T, Failure> {
    // SAFETY: zeros are a value.
    let mut options: T = unsafe { std::mem::zeroed() };
    if from.is_null() {
        return Ok(options);
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { size_of_program(from)? };
    let known = bytes.min(size_of::<T>());
    // SAFETY: so many bytes are there on both sides, which do not overlap.
    unsafe { std::ptr::copy_nonoverlapping(from.cast::<u8>(), (&raw mut options).cast(), known) };
    for at in known..bytes {
        // SAFETY: within the program's struct.
        if unsafe { from.cast::<u8>().add(at).read() } != 0 {
            let name = T::NAME;
            return Err(setting(format!(
                "{name} has members that this library does not know; use a newer library, or leave them 0"
            )));
        }
    }
    Ok(options)
}

/// Fills the program's struct, as far as it knows the members, except its size.
///
/// # Safety
/// `to` is NULL or points to as many bytes as its first member says.
pub unsafe fn write<T: Sized_>(to: *mut T, value: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(setting(format!("the {} is NULL; pass one to be filled", T::NAME)));
    }
    // SAFETY: as the caller promises.
    let bytes = unsafe { size_of_program(to)? };
    let (skip, known) = (size_of::<usize>(), bytes.min(size_of::<T>()));
    // SAFETY: so many bytes are there on both sides, which do not overlap.
    unsafe {
        let from = (&raw const value).cast::<u8>().add(skip);
        std::ptr::copy_nonoverlapping(from, to.cast::<u8>().add(skip), known - skip);
        std::ptr::write_bytes(to.cast::<u8>().add(known), 0, bytes - known);
    }
    Ok(())
}

unsafe fn size_of_program<T: Sized_>(of: *const T) -> Result<usize, Failure> {
    // SAFETY: the size is in front.
    let bytes = unsafe { of.cast::<usize>().read() };
    if (size_of::<usize>()..=SIZE_MAX).contains(&bytes) {
        return Ok(bytes);
    }
    let name = T::NAME;
    Err(setting(format!("{name}.size is {bytes}; set it as MYELIN_BAG_INIT({name}) does")))
}

/// Text that has to be there.
///
/// # Safety
/// NULL, or text that ends with a zero.
pub unsafe fn required<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    // SAFETY: as the caller promises.
    unsafe { optional(text, what)? }.ok_or_else(|| setting(format!("the {what} is NULL")))
}

/// # Safety
/// NULL, or text that ends with a zero.
pub unsafe fn optional<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: as the caller promises.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some).map_err(|_| setting(format!("the {what} is not UTF-8")))
}

/// A list of text.
///
/// # Safety
/// `count` texts that end with a zero, or NULL.
pub unsafe fn list<'a>(
    texts: *const *const c_char,
    count: usize,
    what: &str,
) -> Result<Vec<&'a str>, Failure> {
    if count > 0 && texts.is_null() {
        return Err(setting(format!("the list of {what}s is NULL, and has {count}")));
    }
    // SAFETY: as the caller promises.
    (0..count).map(|at| unsafe { required(*texts.add(at), what) }).collect()
}

/// The object of a handle.
///
/// # Safety
/// NULL, or a handle that is not closed.
pub unsafe fn object<'a, T>(handle: *mut T, what: &str) -> Result<&'a T, Failure> {
    // SAFETY: as the caller promises.
    unsafe { handle.as_ref() }.ok_or_else(|| setting(format!("the {what} is NULL")))
}

/// Gives an object to the program.
///
/// # Safety
/// NULL, or a place for a handle.
pub unsafe fn give<T>(to: *mut *mut T, what: &str, object: T) -> Result<(), Failure> {
    if to.is_null() {
        return Err(setting(format!("the place of the {what} is NULL")));
    }
    // SAFETY: as the caller promises.
    unsafe { to.write(Box::into_raw(Box::new(object))) };
    Ok(())
}

/// Takes it back.
///
/// # Safety
/// NULL, or a handle that is not closed and that nobody uses.
pub unsafe fn take_back<T>(handle: *mut T, what: &str) -> Result<Box<T>, Failure> {
    if handle.is_null() {
        return Err(setting(format!("the {what} is NULL")));
    }
    // SAFETY: it came from `give`.
    Ok(unsafe { Box::from_raw(handle) })
}

/// A limit in ns.
pub fn limit(ns: u64) -> Duration {
    if ns == u64::MAX { Duration::MAX } else { Duration::from_nanos(ns) }
}

/// A node of its own.
pub fn node(
    name: Option<&str>,
    default: &str,
    domain: u32,
    runtime_dir: Option<&str>,
) -> Result<myelin::Node, Failure> {
    let mut builder = myelin::Node::builder(name.unwrap_or(default));
    if domain > 0 {
        builder = builder.domain(domain - 1);
    }
    if let Some(folder) = runtime_dir {
        builder = builder.runtime_dir(folder);
    }
    Ok(builder.open()?)
}

/// No struct will ever be larger; a larger size was never set.
const SIZE_MAX: usize = 4096;
