//! Driver of `myelin bench` for ROS 2, in C and C++. The program begins in `driver.c`, which has `main`
//! and the table of systems; other files call rcl and rclcpp, and `README.md` says how they are set up.
//! This file has the parts in Rust; `link.h` declares them.
#![no_main]

#[path = "../../fastdds/src/leftovers.rs"]
mod leftovers;

use std::ffi::c_int;

use myelin_bench_kit::capi::status;

/// See `link.h`. rmw_fastrtps leaves the files of Fast DDS behind, rmw_myelin nothing.
#[unsafe(no_mangle)]
pub extern "C" fn myelin_ros2_clean() -> c_int {
    status(leftovers::clean())
}
