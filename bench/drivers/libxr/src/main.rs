//! `myelin-driver-libxr`: see [`myelin_driver_libxr`].

use std::process::ExitCode;

fn main() -> ExitCode {
    myelin_bench_kit::main(&myelin_driver_libxr::LibXr)
}
