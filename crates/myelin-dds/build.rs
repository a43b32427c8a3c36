//! Compiles the bridge to CycloneDDS if its development package is installed. Without it the crate
//! builds all the same, and opening a participant says what to install.

use std::path::Path;

use pkg_config::{Config, Library};

fn main() {
    println!("cargo:rustc-check-cfg=cfg(have_cyclonedds)");
    println!("cargo:rerun-if-changed=build.rs");
    match config().range_version("0.10".."0.11").probe("CycloneDDS") {
        Ok(library) => compile(&library),
        Err(_) => {
            println!("cargo:rustc-env=CYCLONEDDS_MISSING={}", missing());
            // Does not exist, so that cargo runs this script again at every build, until it does.
            println!("cargo:rerun-if-changed={HEADER}");
        }
    }
}

/// Finds a library without telling cargo to link it: ours has to come first.
fn config() -> Config {
    let mut config = Config::new();
    config.cargo_metadata(false).env_metadata(true);
    config
}

fn compile(library: &Library) {
    println!("cargo:rustc-cfg=have_cyclonedds");
    // pkg-config leaves out the system's own folder, hence the default.
    let mut headers = library.include_paths.iter().map(|folder| folder.join("dds/version.h"));
    let header = headers.find(|header| header.exists());
    println!("cargo:rerun-if-changed={}", header.as_deref().unwrap_or(Path::new(HEADER)).display());
    for source in SOURCES.iter().chain(&["src/bridge.h"]) {
        println!("cargo:rerun-if-changed={source}");
    }
    cc::Build::new()
        .files(SOURCES)
        .includes(&library.include_paths)
        .std("gnu11")
        // Also in a debug build: every sample is copied here.
        .opt_level(2)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("myelin_dds_bridge");
    for path in &library.link_paths {
        println!("cargo:rustc-link-search=native={}", path.display());
    }
    for name in &library.libs {
        println!("cargo:rustc-link-lib={name}");
    }
}

/// What to tell the user who has no CycloneDDS that this crate can use.
fn missing() -> String {
    match config().probe("CycloneDDS") {
        // From 11 on, types and samples have other tables of functions.
        Ok(library) => format!(
            "this program was built without CycloneDDS: it needs 0.10, found {}",
            library.version
        ),
        Err(_) => {
            "not installed: apt-get install pkg-config cyclonedds-dev, and build again".to_owned()
        }
    }
}

const SOURCES: [&str; 3] = ["src/acknowledge.c", "src/blob.c", "src/bridge.c"];
const HEADER: &str = "/usr/include/dds/version.h";
