//! Compiles the bridge to CycloneDDS if its development package is installed. Without it the crate
//! builds nevertheless, and opening a participant says what to install. Nothing is linked: the
//! library is loaded at the first use.

#[path = "src/package.rs"]
mod package;

use std::path::Path;

use pkg_config::{Config, Library};

fn main() {
    println!("cargo:rustc-check-cfg=cfg(have_cyclonedds)");
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src/package.rs");
    match config().range_version("0.10".."0.11").probe("CycloneDDS") {
        Ok(library) => compile(&library),
        Err(_) => {
            println!("cargo:rustc-env=CYCLONEDDS_MISSING={}", missing());
            // This file does not exist, so that cargo runs this script at every build, until it
            // does.
            println!("cargo:rerun-if-changed={HEADER}");
        }
    }
}

/// Finds a library without telling cargo to link it.
fn config() -> Config {
    let mut config = Config::new();
    config.cargo_metadata(false).env_metadata(true);
    config
}

fn compile(library: &Library) {
    println!("cargo:rustc-cfg=have_cyclonedds");
    // pkg-config leaves out the system's own folder, so it is the default.
    let mut headers = library.include_paths.iter().map(|folder| folder.join("dds/version.h"));
    let header = headers.find(|header| header.exists());
    println!("cargo:rerun-if-changed={}", header.as_deref().unwrap_or(Path::new(HEADER)).display());
    for source in SOURCES.iter().chain(&["src/bridge.h", "src/cyclonedds.h"]) {
        println!("cargo:rerun-if-changed={source}");
    }
    cc::Build::new()
        .files(SOURCES)
        .includes(&library.include_paths)
        .std("gnu11")
        // Also in a debug build, because every sample is copied here.
        .opt_level(2)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("myelin_dds_bridge");
    println!("cargo:rustc-env=CYCLONEDDS_LIBRARY={}", name());
}

/// The name under which the loader finds the library of this version: a linker would write it into
/// the program. `libddsc.so` is a link to it.
fn name() -> String {
    let folder = pkg_config::get_variable("CycloneDDS", "libdir").unwrap_or_default();
    let target = Path::new(&folder).join(LIBRARY).read_link();
    let name = target.as_deref().ok().and_then(Path::file_name).and_then(|name| name.to_str());
    name.unwrap_or(LIBRARY).to_owned()
}

/// The hint for a user without a CycloneDDS that this crate can use.
fn missing() -> String {
    match config().probe("CycloneDDS") {
        // From version 11 on, types and samples have other tables of functions.
        Ok(library) => format!(
            "this program was built without it: it needs 0.10, and there was {}",
            library.version
        ),
        Err(_) => {
            let packages = "pkg-config cyclonedds-dev";
            let install = package::install(&package::os_release(), packages, packages);
            format!("this program was built without it: {install}, and build again")
        }
    }
}

const SOURCES: [&str; 5] =
    ["src/acknowledge.c", "src/blob.c", "src/bridge.c", "src/cyclonedds.c", "src/inbox.c"];
const LIBRARY: &str = "libddsc.so";
const HEADER: &str = "/usr/include/dds/version.h";
