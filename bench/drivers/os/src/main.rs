//! `myelin-driver-os`: the floor below every middleware. See [`myelin_driver_os`].

#[cfg(not(loom))]
fn main() -> std::process::ExitCode {
    myelin_bench_kit::main(&myelin_driver_os::Os)
}

#[cfg(loom)]
fn main() {}
