//! Compiles the adaptor against `libmyelin.so` if `scripts/c-library` has made it. Without it the
//! driver is built without the library and says what to do.

use myelin_bench_build::{driver, libmyelin};

fn main() {
    driver(|| libmyelin::compile("src/link.c"));
}
