//! Driver of `myelin bench` for ZeroMQ, in C: `driver.c` is the beginning, with `main`.
#![cfg_attr(not(test), no_main)]

use myelin_bench_kit as _;
