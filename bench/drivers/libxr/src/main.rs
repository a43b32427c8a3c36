//! Driver of `myelin bench` for LibXR, in C and C++: `driver.c` is the beginning, with `main`.
#![cfg_attr(not(test), no_main)]

use myelin_driver_libxr as _;
