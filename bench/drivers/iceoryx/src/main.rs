//! Driver of `myelin bench` for iceoryx 2.0, in C and C++. The program begins in `driver.c`, which has `main`
//! and the table of systems; `link.cpp` calls iceoryx.
//! `../roudi` starts its daemon, RouDi.
#![cfg_attr(not(test), no_main)]

use myelin_bench_kit as _;
use myelin_bench_roudi as _;
