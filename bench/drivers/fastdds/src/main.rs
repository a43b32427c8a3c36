//! Driver of `myelin bench` for Fast DDS, in C and C++. The program begins in `driver.c`, which has `main`
//! and the table of systems; `link.cpp` calls Fast DDS, and `README.md` says how it is set up.
//! This file has the parts in Rust; `link.h` declares them.
#![cfg_attr(not(test), no_main)]

mod config;
mod leftovers;

use std::ffi::{CString, c_char, c_int, c_uint};

use config::{Profiles, Series};
use myelin_bench_kit::Error;
use myelin_bench_kit::capi::{CPrepare, status};
use myelin_bench_kit::protocol::Prepare;

/// See `link.h`.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_fastdds_profiles(
    prepare: &CPrepare,
    major: c_uint,
    sends_whole: c_int,
    xml: &mut *mut c_char,
) -> c_int {
    let prepare = prepare.of_kit();
    let series = if major < 3 { Series::Two } else { Series::Three };
    let text = Profiles { prepare, series, sends_whole: sends_whole != 0 }.xml();
    status(config::write(prepare, &text).and_then(|()| {
        let text = CString::new(text).map_err(|_| Error::new("a NUL character in the XML"))?;
        *xml = text.into_raw();
        Ok(())
    }))
}

/// See `link.h`.
///
/// # Safety
/// `xml` comes from [`myelin_fastdds_profiles`], and is not used again.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn myelin_fastdds_free(xml: *mut c_char) {
    // SAFETY: the caller's promise.
    drop(unsafe { CString::from_raw(xml) });
}

/// See `link.h`.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_fastdds_check(prepare: &CPrepare) -> c_int {
    let prepare = prepare.of_kit();
    let Prepare { system, depth, topics, .. } = prepare;
    // Of the series that takes more.
    let profiles = Profiles { prepare, series: Series::Three, sends_whole: true };
    let bytes = profiles.history_bytes();
    status(match bytes <= HISTORY_BYTES_MAX {
        true => Ok(()),
        false => Err(Error::new(format!(
            "{system}: depth {depth} on {topics} topics takes {bytes} B of memory on each side, \
             more than {HISTORY_BYTES_MAX}"
        ))
        .remedy("use a smaller workload.depth, fewer topics or less payload")),
    })
}

/// See `link.h`.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_fastdds_clean() -> c_int {
    status(leftovers::clean())
}

/// What the histories of one end may take, so that a mistaken depth does not fill the memory.
const HISTORY_BYTES_MAX: u64 = 2 << 30;
