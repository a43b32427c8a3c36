//! Compiles the adaptor against ZeroMQ if its development package is installed. Without it the
//! driver builds all the same and says what to install.

#[path = "../probe.rs"]
mod probe;

use std::path::Path;

use pkg_config::{Error, Library};

fn main() {
    println!("cargo:rustc-check-cfg=cfg(have_zeromq)");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/link.c");
    match probe::config().atleast_version("4.3.3").probe("libzmq") {
        Ok(library) => compile(&library),
        Err(error) => probe::say_missing("ZEROMQ_MISSING", &missing(&error)),
    }
}

fn compile(library: &Library) {
    println!("cargo:rustc-cfg=have_zeromq");
    println!("cargo:rerun-if-changed={HEADER}");
    let kit = Path::new("../../kit/include");
    println!("cargo:rerun-if-changed={}", kit.join("myelin_bench_kit.h").display());
    cc::Build::new()
        .file("src/link.c")
        .includes(&library.include_paths)
        .include(kit)
        .std("c11")
        // Also in a debug build: what is measured is the middleware.
        .opt_level(2)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("myelin_zeromq_link");
    probe::link(library);
}

/// What to tell the user who has no ZeroMQ that this driver can use.
fn missing(error: &Error) -> String {
    match probe::config().probe("libzmq") {
        Ok(library) => format!("needs libzmq 4.3.3 or later, found {}", library.version),
        Err(_) => probe::missing("libzmq", "libzmq3-dev", error),
    }
}

const HEADER: &str = "/usr/include/zmq.h";
