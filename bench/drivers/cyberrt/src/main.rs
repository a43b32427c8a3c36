//! Driver of `myelin bench` for Apollo CyberRT, in C and C++. `main` is in `driver.c`.
#![no_main]

use myelin_driver_cyberrt as _;
