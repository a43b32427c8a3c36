//! Driver of `myelin bench` for ZeroMQ, in C. `main` is in `driver.c`.
#![cfg_attr(not(test), no_main)]

use myelin_bench_kit as _;
