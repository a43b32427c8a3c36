//! Driver of `myelin bench` for LCM, in C. The program begins in `driver.c`, which has `main`
//! and the table of systems; `link.c` calls LCM, and `loopback.c` keeps its packets on this host.
//! `README.md` says what was chosen and why.
#![cfg_attr(not(test), no_main)]

use myelin_bench_kit as _;
