//! Compiles the adaptor against ZeroMQ if its development package is installed. Without it the
//! driver builds all the same and says what to install.

use std::path::Path;

use pkg_config::{Config, Error, Library};

fn main() {
    println!("cargo:rustc-check-cfg=cfg(have_zeromq)");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/link.c");
    println!("cargo:rerun-if-changed={HEADER}");
    match config().atleast_version("4.3.3").probe("libzmq") {
        Ok(library) => compile(&library),
        Err(error) => println!("cargo:rustc-env=ZEROMQ_MISSING={}", missing(&error)),
    }
}

/// Finds a library without telling cargo to link it: ours has to come first.
fn config() -> Config {
    let mut config = Config::new();
    config.cargo_metadata(false).env_metadata(true);
    config
}

fn compile(library: &Library) {
    println!("cargo:rustc-cfg=have_zeromq");
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
    for path in &library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for name in &library.libs {
        println!("cargo:rustc-link-lib={name}");
    }
}

/// What to tell the user who has no ZeroMQ that this driver can use.
fn missing(error: &Error) -> String {
    match (config().probe("libzmq"), error) {
        (Ok(library), _) => format!("needs libzmq 4.3.3 or later, found {}", library.version),
        (Err(_), Error::Command { .. }) => {
            "not installed: apt-get install pkg-config libzmq3-dev".to_owned()
        }
        (Err(_), _) => "not installed: apt-get install libzmq3-dev".to_owned(),
    }
}

const HEADER: &str = "/usr/include/zmq.h";
