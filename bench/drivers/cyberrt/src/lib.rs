//! The Rust part of the driver of CyberRT; `link.h` declares it for `driver.c` and `link.cpp`.

pub mod own_space;

use std::ffi::{c_char, c_int};

use myelin_bench_kit::capi::{CPrepare, status};

/// See `link.h`.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_cyberrt_enter(prepare: &CPrepare) -> c_int {
    status(own_space::enter(prepare.of_kit()))
}

/// See `link.h`.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_cyberrt_missing() -> *const c_char {
    match own_space::may_enter() {
        true => std::ptr::null(),
        false => DENIED.as_ptr(),
    }
}

const DENIED: &std::ffi::CStr =
    c"no permission to make network namespaces, and CyberRT's multicast would leave this host: \
      needs CAP_SYS_ADMIN and CAP_NET_ADMIN; run as root";
