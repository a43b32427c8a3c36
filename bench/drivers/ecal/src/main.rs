//! Driver of `myelin bench` for eCAL, in C and C++. `main` is in `driver.c`; this is the Rust part,
//! which places eCAL's files. `link.h` declares it.
//!
//! eCAL makes up the names of its memory files, `ecal_<number>`, so the files of a killed process
//! look like those of any other. Therefore this program's `shm_open` replaces the C library's:
//! eCAL's files are in a folder of the run and are removed with it.
#![no_main]

use std::ffi::{CStr, CString, c_char, c_int};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::PathBuf;
use std::sync::Mutex;

use myelin_bench_kit::capi::status;
use myelin_bench_kit::run_folder::{RunFolder, RunFolders};

static FOLDER: Mutex<Option<RunFolder>> = Mutex::new(None);

/// See `link.h`.
///
/// # Safety
/// `run` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_ecal_enter(run: *const c_char) -> c_int {
    // SAFETY: required of the caller.
    let run = unsafe { CStr::from_ptr(run) }.to_string_lossy();
    status(FOLDERS.enter(&run).map(|folder| {
        *FOLDER.lock().expect("no thread panics while it holds the lock") = Some(folder);
    }))
}

/// See `link.h`.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_ecal_leave() {
    *FOLDER.lock().expect("no thread panics while it holds the lock") = None;
}

/// See `link.h`.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_ecal_clean() -> c_int {
    status(FOLDERS.clean())
}

/// Like the C library's function, in the run's folder.
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shm_open(name: *const c_char, flags: c_int, mode: libc::mode_t) -> c_int {
    // SAFETY: required of the caller.
    let path = unsafe { path_of(name) };
    // SAFETY: a C string that outlives the call.
    unsafe { libc::open(path.as_ptr(), flags | libc::O_CLOEXEC | libc::O_NOFOLLOW, mode) }
}

/// Like the C library's function, in the run's folder.
///
/// # Safety
/// `name` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn shm_unlink(name: *const c_char) -> c_int {
    // SAFETY: required of the caller.
    let path = unsafe { path_of(name) };
    // SAFETY: a C string that outlives the call.
    unsafe { libc::unlink(path.as_ptr()) }
}

/// # Safety
/// `name` is a C string.
unsafe fn path_of(name: *const c_char) -> CString {
    // SAFETY: required of the caller.
    let name = unsafe { CStr::from_ptr(name) }.to_bytes();
    let name = std::ffi::OsStr::from_bytes(name.strip_prefix(b"/").unwrap_or(name));
    let folder = FOLDER.lock().expect("no thread panics while it holds the lock");
    let folder = folder.as_ref().map_or_else(|| PathBuf::from("/dev/shm"), |it| it.path.clone());
    CString::new(folder.join(name).into_os_string().into_vec()).expect("two strings without zeros")
}

const FOLDERS: RunFolders = RunFolders::in_memory("myelin-ecal-");
