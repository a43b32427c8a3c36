//! Driver of `myelin bench` for ROS 2, in C and C++: `driver.c` is the beginning, with `main`. Here is
//! what of it is in Rust; `link.h` declares it.
#![no_main]

#[path = "../../fastdds/src/leftovers.rs"]
mod leftovers;

use std::ffi::c_int;

use myelin_bench_kit::capi::status;

/// See `link.h`. rmw_fastrtps leaves what Fast DDS does, rmw_myelin nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_ros2_clean() -> c_int {
    status(leftovers::clean())
}
