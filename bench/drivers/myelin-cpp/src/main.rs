//! Driver of `myelin bench` for Myelin from C++, in C and C++. The program begins in `driver.c`, which has `main`
//! and the table of systems; `link.cpp` uses `myelin.hpp` as an installed program does.
//! Beside the driver `myelin` it shows the cost of the C++ binding.
#![cfg_attr(not(test), no_main)]

use myelin_bench_kit as _;
