//! Compiles the adaptor against CycloneDDS if its development package is installed. Without it the
//! driver builds all the same and says what to install.

#[path = "../packages.rs"]
mod packages;
#[path = "../probe.rs"]
mod probe;
#[path = "../table.rs"]
mod table;

use std::path::Path;

use pkg_config::{Error, Library};

fn main() {
    if let Some(reason) = packages::built_elsewhere() {
        return table::compile_missing(reason);
    }
    match probe::config().range_version("0.10".."0.11").probe("CycloneDDS") {
        Ok(library) => compile(&library),
        Err(error) => {
            table::compile_missing(&missing(&error));
            probe::await_packages();
        }
    }
}

fn compile(library: &Library) {
    table::compile(&[]);
    // pkg-config leaves out the system's own folder, hence the default.
    let mut headers = library.include_paths.iter().map(|folder| folder.join("dds/version.h"));
    let header = headers.find(|header| header.exists());
    println!("cargo:rerun-if-changed={}", header.as_deref().unwrap_or(Path::new(HEADER)).display());
    cc::Build::new()
        .files(["src/config.c", "src/link.c", "src/match.c", "src/table.c", "src/version.c"])
        .includes(&library.include_paths)
        .include(table::include())
        .include(table::roudi())
        .std("c99")
        .define("_POSIX_C_SOURCE", "200809L")
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
        Err(_) => probe::missing("CycloneDDS", "CycloneDDS", error),
    }
}

const HEADER: &str = "/usr/include/dds/version.h";
