//! Implements `include/myelin_roudi.h`, for drivers in C and C++.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::sync::OnceLock;

use myelin_bench_kit::capi::{CPrepare, CSystem, status};
use myelin_bench_kit::{Daemon, Error};

use crate::{Need, RouDi, clean, living_daemon, version};

/// `struct myelin_roudi_need`.
#[repr(C)]
pub struct CNeed {
    driver: *const c_char,
    around_bytes: u64,
    chunks: u32,
    shared_memory: c_int,
}

impl CNeed {
    /// # Safety
    /// `driver` is a C string that lives as long as the program.
    unsafe fn read(&self) -> Need {
        // SAFETY: required of the caller.
        let driver = unsafe { CStr::from_ptr::<'static>(self.driver) };
        Need {
            driver: driver.to_str().unwrap_or_default(),
            around_bytes: self.around_bytes,
            chunks: self.chunks,
            shared_memory: self.shared_memory != 0,
        }
    }
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_roudi_probe(system: &mut CSystem) {
    static FOUND: OnceLock<Result<CString, CString>> = OnceLock::new();
    let text = |text: String| CString::new(text).unwrap_or_default();
    match FOUND.get_or_init(|| version().map(text).map_err(text)) {
        Ok(version) => system.found(version),
        Err(missing) => system.lacks(missing),
    }
}

/// See the header.
///
/// # Safety
/// `need` has a text that lives as long as the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_roudi_check(prepare: &CPrepare, need: &CNeed) -> c_int {
    // SAFETY: required of the caller.
    let need = unsafe { need.read() };
    status(need.pools(prepare.of_kit()).map(drop))
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_roudi_expect() -> c_int {
    status(living_daemon().map(drop).ok_or_else(|| {
        Error::new("RouDi, the daemon of iceoryx, is not running")
            .remedy("the lab starts it as the daemon role; by hand: iox-roudi")
    }))
}

/// See the header.
///
/// # Safety
/// `need` has a text that lives as long as the program.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_roudi_start_daemon(
    prepare: &CPrepare,
    need: &CNeed,
    daemon: &mut *mut c_void,
) -> c_int {
    // SAFETY: required of the caller.
    let need = unsafe { need.read() };
    let prepare = prepare.of_kit();
    let roudi = need.pools(prepare).and_then(|pools| RouDi::start(prepare, &pools));
    status(roudi.map(|roudi| *daemon = Box::into_raw(Box::new(roudi)).cast()))
}

/// See the header.
///
/// # Safety
/// `daemon` comes from [`myelin_roudi_start_daemon`], and `pids` has room for `pids_max`.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_roudi_daemon_pids(
    daemon: *mut c_void,
    pids: *mut u32,
    pids_max: usize,
) -> usize {
    // SAFETY: required of the caller.
    let (roudi, room) =
        unsafe { (&*daemon.cast::<RouDi>(), std::slice::from_raw_parts_mut(pids, pids_max)) };
    let own = roudi.pids();
    room.iter_mut().zip(own).map(|(place, pid)| *place = pid).count()
}

/// See the header.
///
/// # Safety
/// `daemon` comes from [`myelin_roudi_start_daemon`].
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_roudi_check_daemon(daemon: *mut c_void) -> c_int {
    // SAFETY: required of the caller.
    status(unsafe { &mut *daemon.cast::<RouDi>() }.check())
}

/// See the header.
///
/// # Safety
/// `daemon` comes from [`myelin_roudi_start_daemon`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_roudi_stop_daemon(daemon: *mut c_void) -> c_int {
    // SAFETY: required of the caller.
    let mut roudi = unsafe { Box::from_raw(daemon.cast::<RouDi>()) };
    status(roudi.stop())
}

/// See the header.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_roudi_clean() -> c_int {
    status(clean())
}
