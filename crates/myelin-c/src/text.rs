//! Text from and to the program.

use std::ffi::{CStr, CString, c_char};
use std::time::Duration;

use crate::error::Failure;

/// # Safety
/// `text` is NULL or ends with a zero, and outlives the result.
///
/// # Errors
/// NULL, or text that is not UTF-8; `what` names it.
pub unsafe fn required<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    // SAFETY: as the caller promises.
    let text = unsafe { optional(text, what)? };
    text.ok_or_else(|| Failure::setting(format_args!("{what} is NULL; pass a text")))
}

/// Like [`required`], but NULL gives `None`.
///
/// # Safety
/// As [`required`].
///
/// # Errors
/// Text that is not UTF-8.
pub unsafe fn optional<'a>(text: *const c_char, what: &str) -> Result<Option<&'a str>, Failure> {
    if text.is_null() {
        return Ok(None);
    }
    // SAFETY: it ends with a zero.
    let text = unsafe { CStr::from_ptr(text) }.to_str();
    text.map(Some)
        .map_err(|_| Failure::setting(format_args!("{what} is not UTF-8; pass UTF-8 text")))
}

/// Text for the program.
pub fn c_string(text: &str) -> CString {
    CString::new(text.replace('\0', "\\0")).unwrap_or_default()
}

/// Where a text lies that its owner keeps for the program; NULL for none.
pub fn pointer(text: &Option<CString>) -> *const c_char {
    text.as_ref().map_or(std::ptr::null(), |text| text.as_ptr())
}

/// A limit in nanoseconds; `UINT64_MAX` (`MYELIN_FOREVER`) is no limit, nor are 292 years, C++'s
/// largest duration.
#[inline]
pub fn duration(ns: u64) -> Duration {
    if ns >= i64::MAX as u64 { Duration::MAX } else { Duration::from_nanos(ns) }
}

/// The program's bytes.
///
/// # Safety
/// `data` points to `bytes` bytes that nobody changes meanwhile, or `bytes` is 0.
///
/// # Errors
/// NULL.
#[inline]
pub unsafe fn bytes<'a>(data: *const std::ffi::c_void, bytes: usize) -> Result<&'a [u8], Failure> {
    match (bytes, data.is_null()) {
        (0, _) => Ok(&[]),
        (_, true) => Err(no_data(bytes)),
        // SAFETY: as the caller promises.
        _ => Ok(unsafe { std::slice::from_raw_parts(data.cast(), bytes) }),
    }
}

#[cold]
#[inline(never)]
fn no_data(bytes: usize) -> Failure {
    Failure::setting(format_args!("the data is NULL, of {bytes} B; pass the bytes"))
}

/// Writes a result to the program.
///
/// # Safety
/// `to` is NULL or can be written to.
///
/// # Errors
/// NULL; `what` names it.
pub unsafe fn put<T>(to: *mut T, value: T, what: &str) -> Result<(), Failure> {
    if to.is_null() {
        return Err(Failure::setting(format_args!("{what} is NULL; pass a pointer to the result")));
    }
    // SAFETY: as the caller promises.
    unsafe { to.write(value) };
    Ok(())
}
