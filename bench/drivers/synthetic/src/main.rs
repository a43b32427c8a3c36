//! `myelin-driver-synthetic`: the program around the library [`myelin_driver_synthetic`], a middleware that does not
//! exist. Its delays and faults are known, so tests compare the reports with the truth.

fn main() -> std::process::ExitCode {
    myelin_bench_kit::main(&myelin_driver_synthetic::Synthetic)
}
