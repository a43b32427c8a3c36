//! Driver of `myelin bench` for iceoryx, in C and C++. `main` is in `driver.c`.
#![cfg_attr(not(test), no_main)]

use myelin_bench_kit as _;
use myelin_bench_roudi as _;
