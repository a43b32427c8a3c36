//! The driver of `driver.c` for callers within the same process, such as its tests.

use myelin_bench_kit::Driver;
use myelin_bench_kit::capi::{self, CDriver};

unsafe extern "C" {
    static myelin_libxr_driver: CDriver;
}

/// The driver of LibXR's topics.
pub fn driver() -> impl Driver {
    // SAFETY: a constant of driver.c, filled in as the kit's header requires.
    unsafe { capi::driver(&raw const myelin_libxr_driver) }.expect("it has this kit's header")
}
