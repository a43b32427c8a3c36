//! `myelin-driver-os`: the program around the library [`myelin_driver_os`], which measures bare primitives of the
//! operating system. They are the floor of every report.

#[cfg(not(loom))]
fn main() -> std::process::ExitCode {
    myelin_bench_kit::main(&myelin_driver_os::Os)
}

#[cfg(loom)]
fn main() {}
