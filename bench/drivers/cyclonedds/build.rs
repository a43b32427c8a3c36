//! Compiles the adaptor against CycloneDDS if its development package is installed. Without it the
//! driver builds all the same and says what to install.

#[path = "../probe.rs"]
mod probe;

use std::path::Path;

use pkg_config::{Error, Library};

fn main() {
    println!("cargo:rustc-check-cfg=cfg(have_cyclonedds)");
    println!("cargo:rerun-if-changed=build.rs");
    match probe::config().range_version("0.10".."0.11").probe("CycloneDDS") {
        Ok(library) => compile(&library),
        Err(error) => probe::say_missing("CYCLONEDDS_MISSING", &missing(&error)),
    }
}

fn compile(library: &Library) {
    println!("cargo:rustc-cfg=have_cyclonedds");
    // pkg-config leaves out the system's own folder, hence the default.
    let mut headers = library.include_paths.iter().map(|folder| folder.join("dds/version.h"));
    let header = headers.find(|header| header.exists());
    println!("cargo:rerun-if-changed={}", header.as_deref().unwrap_or(Path::new(HEADER)).display());
    let kit = Path::new("../../kit/include");
    println!("cargo:rerun-if-changed={}", kit.join("myelin_bench_kit.h").display());
    for source in SOURCES.iter().chain(&["src/link.h"]) {
        println!("cargo:rerun-if-changed={source}");
    }
    cc::Build::new()
        .files(SOURCES)
        .includes(&library.include_paths)
        .include(kit)
        .std("c99")
        // Also in a debug build: what is measured is the middleware.
        .opt_level(2)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("myelin_cyclonedds_link");
    probe::link(library);
}

/// What to tell the user who has no CycloneDDS that this driver can use.
fn missing(error: &Error) -> String {
    match probe::config().probe("CycloneDDS") {
        // From 11 on, shared memory is no longer iceoryx built in but a plug-in (PSMX).
        Ok(library) => format!("needs CycloneDDS 0.10, found {}", library.version),
        Err(_) => probe::missing("CycloneDDS", "cyclonedds-dev", error),
    }
}

const SOURCES: [&str; 2] = ["src/link.c", "src/match.c"];
const HEADER: &str = "/usr/include/dds/version.h";
