//! Compiles the adaptor against iceoryx if its development package is installed. Without it the
//! driver is built without iceoryx and says what to install.

#[path = "../packages.rs"]
mod packages;
#[path = "../table.rs"]
mod table;

use std::path::{Path, PathBuf};

fn main() {
    if let Some(reason) = packages::built_elsewhere() {
        return table::compile_missing(reason);
    }
    // The folder changes with its contents, so cargo runs this script again when the package is
    // installed.
    println!("cargo:rerun-if-changed=/usr/include");
    println!("cargo:rerun-if-changed={ROOT}");
    match find() {
        Ok(headers) => compile(&headers),
        Err(missing) => table::compile_missing(&missing),
    }
}

/// The folder of the headers. iceoryx has no pkg-config file, but a folder for each of its
/// versions.
fn find() -> Result<PathBuf, String> {
    let folders = std::fs::read_dir(ROOT).into_iter().flatten().map_while(Result::ok);
    let versions = folders.filter_map(|folder| folder.file_name().into_string().ok());
    let mut versions: Vec<_> = versions.filter(|name| name.starts_with('v')).collect();
    versions.sort();
    let ours = versions.iter().rev().find(|version| version.starts_with(VERSION));
    match (ours, versions.last()) {
        (Some(version), _) => {
            let folder = Path::new(ROOT).join(version);
            match folder.join(HEADER).is_file() {
                true => Ok(folder),
                false => Err(packages::not_installed("iceoryx")),
            }
        }
        (None, Some(other)) => Err(format!("needs iceoryx {}0, found {other}", &VERSION[1..])),
        (None, None) => Err(packages::not_installed("iceoryx")),
    }
}

fn compile(headers: &Path) {
    table::compile(&[]);
    cc::Build::new()
        .file("src/link.cpp")
        .include(table::include())
        .include(table::roudi())
        // As system headers, because we cannot fix warnings in them.
        .flag("-isystem")
        .flag(headers)
        .cpp(true)
        .std("c++17")
        .flag("-fno-exceptions")
        // Optimised even in a debug build, because the middleware is what is measured.
        .opt_level(2)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("myelin_iceoryx_link");
    for library in ["iceoryx_posh", "iceoryx_hoofs", "iceoryx_platform"] {
        println!("cargo:rustc-link-lib={library}");
    }
}

const ROOT: &str = "/usr/include/iceoryx";
const VERSION: &str = "v2.0.";
const HEADER: &str = "iceoryx_posh/runtime/posh_runtime.hpp";
