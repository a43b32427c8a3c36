//! Driver of `myelin bench` for LibXR, in C and C++. The program begins in `driver.c`, which has `main`
//! and the table of systems; `link.cpp` calls LibXR, in one process.
//! Without LibXR (`LIBXR_DIR`) it builds and lists its systems as missing.
#![cfg_attr(not(test), no_main)]

use myelin_driver_libxr as _;
