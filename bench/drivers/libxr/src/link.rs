//! The Rust side of `link.cpp`; without LibXR at build time, the reason why there is none.

use std::ffi::{c_char, c_int, c_void};

/// A function that LibXR calls with each message: context, bytes, length.
pub(crate) type Call = unsafe extern "C" fn(*mut c_void, *const u8, usize);

/// What LibXR does with messages of one size; `link.cpp` says what each function owes. Topics,
/// frames and subscribers are used with the table that made them alone.
#[repr(C)]
pub(crate) struct Table {
    pub(crate) payload_bytes: usize,
    pub(crate) new_frame: unsafe extern "C" fn() -> *mut c_void,
    pub(crate) delete_frame: unsafe extern "C" fn(*mut c_void),
    pub(crate) create: unsafe extern "C" fn(*const c_char) -> *mut c_void,
    pub(crate) publish: unsafe extern "C" fn(*mut c_void, *mut c_void),
    pub(crate) listen: unsafe extern "C" fn(*mut c_void, Call, *mut c_void),
    pub(crate) subscribe: unsafe extern "C" fn(*mut c_void, *mut c_void) -> *mut c_void,
    pub(crate) wait: unsafe extern "C" fn(*mut c_void, u32) -> c_int,
    pub(crate) unsubscribe: unsafe extern "C" fn(*mut c_void),
}

pub use imp::missing;
pub(crate) use imp::{is_publishing, is_ready, tables, version};

#[cfg(have_libxr)]
mod imp {
    use std::ffi::{c_int, c_void};

    use super::Table;

    unsafe extern "C" {
        fn myelin_libxr_tables(count: *mut usize) -> *const Table;
        fn myelin_libxr_is_ready() -> c_int;
        fn myelin_libxr_is_publishing(topic: *mut c_void) -> c_int;
    }

    /// Why LibXR cannot be used, and what to do; `None` if it can.
    pub fn missing() -> Option<&'static str> {
        None
    }

    pub(crate) fn version() -> &'static str {
        env!("LIBXR_VERSION")
    }

    /// One for each size of message, in ascending order.
    pub(crate) fn tables() -> &'static [Table] {
        let mut count = 0;
        // SAFETY: link.cpp returns its constant array, in this layout, and its length.
        unsafe { std::slice::from_raw_parts(myelin_libxr_tables(&mut count), count) }
    }

    /// Whether LibXR has set itself up.
    pub(crate) fn is_ready() -> bool {
        // SAFETY: reads a flag that is set before `main`.
        unsafe { myelin_libxr_is_ready() != 0 }
    }

    /// Whether a publish call on `topic` is under way.
    ///
    /// # Safety
    /// `topic` comes from [`Table::create`].
    pub(crate) unsafe fn is_publishing(topic: *mut c_void) -> bool {
        // SAFETY: as the caller promises; topics live for ever.
        unsafe { myelin_libxr_is_publishing(topic) != 0 }
    }
}

#[cfg(not(have_libxr))]
mod imp {
    use std::ffi::c_void;

    use super::Table;

    /// Why LibXR cannot be used, and what to do; `None` if it can.
    pub fn missing() -> Option<&'static str> {
        Some(env!("LIBXR_MISSING"))
    }

    pub(crate) fn version() -> &'static str {
        ""
    }

    pub(crate) fn tables() -> &'static [Table] {
        &[]
    }

    pub(crate) fn is_ready() -> bool {
        false
    }

    /// # Safety
    /// There are no topics to call it with.
    pub(crate) unsafe fn is_publishing(_: *mut c_void) -> bool {
        false
    }
}
