//! Driver of `myelin bench` for CycloneDDS 0.10, in C. The program begins in `driver.c`, which has `main`
//! and the table of systems; `link.c` calls CycloneDDS, over UDP or over iceoryx.
//! The driver of CycloneDDS 11 compiles the same files.
#![cfg_attr(not(test), no_main)]

use myelin_bench_kit as _;
use myelin_bench_roudi as _;
