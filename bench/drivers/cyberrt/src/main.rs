//! Driver of `myelin bench` for Apollo CyberRT, in C and C++. The program begins in `driver.c`, which has `main`
//! and the table of systems; `link.cpp` calls CyberRT, and `README.md` says how it is set up.
//! Without CyberRT (`CYBERRT_DIR`) it builds and lists its systems as missing.
#![no_main]

use myelin_driver_cyberrt as _;
