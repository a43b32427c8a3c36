//! Compiles the adaptor against LCM if its development package is installed. Without it the driver
//! builds all the same and says what to install.

use std::path::Path;

use pkg_config::{Config, Error, Library};

fn main() {
    println!("cargo:rustc-check-cfg=cfg(have_lcm)");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/link.c");
    println!("cargo:rerun-if-changed=src/loopback.c");
    println!("cargo:rerun-if-changed={HEADER}");
    match config().probe("lcm") {
        Ok(library) => compile(&library),
        Err(error) => println!("cargo:rustc-env=LCM_MISSING={}", missing(&error)),
    }
}

/// Finds a library without telling cargo to link it: ours has to come first.
fn config() -> Config {
    let mut config = Config::new();
    config.cargo_metadata(false).env_metadata(true);
    config
}

fn compile(library: &Library) {
    println!("cargo:rustc-cfg=have_lcm");
    // Up to 1.3 LCM itself does not tell.
    println!("cargo:rustc-env=LCM_VERSION={}", library.version);
    let kit = Path::new("../../kit/include");
    println!("cargo:rerun-if-changed={}", kit.join("myelin_bench_kit.h").display());
    let mut build = cc::Build::new();
    for path in &library.include_paths {
        // As the system's, so that their warnings are not ours.
        build.flag("-isystem").flag(path);
    }
    build
        .file("src/link.c")
        .file("src/loopback.c")
        .include(kit)
        .std("c11")
        .define("_GNU_SOURCE", None)
        // Also in a debug build: what is measured is the middleware.
        .opt_level(2)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("myelin_lcm_link");
    for path in &library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for name in &library.libs {
        println!("cargo:rustc-link-lib={name}");
    }
}

/// What to tell the user who has no LCM.
fn missing(error: &Error) -> &'static str {
    match error {
        Error::Command { .. } => "not installed: apt-get install pkg-config liblcm-dev",
        _ => "not installed: apt-get install liblcm-dev",
    }
}

const HEADER: &str = "/usr/include/lcm/lcm.h";
