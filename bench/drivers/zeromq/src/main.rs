//! Driver of `myelin bench` for ZeroMQ, in C. The program begins in `driver.c`, which has `main`
//! and the table of systems; `link.c` calls libzmq.
//! `README.md` says what was chosen and why.
#![cfg_attr(not(test), no_main)]

use myelin_bench_kit as _;
