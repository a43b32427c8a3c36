//! Compiles the adaptor against iceoryx if its development package is installed. Without it the
//! driver is built without iceoryx and says what to install.

use std::path::{Path, PathBuf};

use myelin_bench_build::{adaptor, driver, packages, table};

fn main() {
    // The folder changes with its contents, so cargo runs this script again when the package is
    // installed.
    println!("cargo:rerun-if-changed=/usr/include");
    println!("cargo:rerun-if-changed={ROOT}");
    driver(|| {
        packages::built_here()?;
        compile(&find()?);
        Ok(())
    });
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
    let mut build = adaptor::compiler("c++17");
    adaptor::include_system(&mut build, headers);
    build.file("src/link.cpp").flag("-fno-exceptions").compile("myelin_iceoryx_link");
    for library in ["iceoryx_posh", "iceoryx_hoofs", "iceoryx_platform"] {
        println!("cargo:rustc-link-lib={library}");
    }
}

const ROOT: &str = "/usr/include/iceoryx";
const VERSION: &str = "v2.0.";
const HEADER: &str = "iceoryx_posh/runtime/posh_runtime.hpp";
