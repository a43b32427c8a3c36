//! Driver of `myelin bench` for CycloneDDS 11, in C: `driver.c` is the beginning, with `main`.
#![cfg_attr(not(test), no_main)]

use myelin_bench_kit as _;
use myelin_bench_roudi as _;
