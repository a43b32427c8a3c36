//! Driver of `myelin bench` for Myelin from C++: `driver.c` is the beginning, with `main`.
#![cfg_attr(not(test), no_main)]

use myelin_bench_kit as _;
