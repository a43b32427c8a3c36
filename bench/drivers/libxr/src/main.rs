//! Driver of `myelin bench` for LibXR, in C and C++. `main` is in `driver.c`.
#![cfg_attr(not(test), no_main)]

use myelin_driver_libxr as _;
