//! Driver of `myelin bench` for Apollo CyberRT, in C and C++: `driver.c` is the beginning, with `main`.
#![no_main]

use myelin_driver_cyberrt as _;
