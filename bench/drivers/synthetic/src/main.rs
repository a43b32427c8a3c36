//! `myelin-driver-synthetic`: see [`myelin_driver_synthetic`].

fn main() -> std::process::ExitCode {
    myelin_bench_kit::main(&myelin_driver_synthetic::Synthetic)
}
