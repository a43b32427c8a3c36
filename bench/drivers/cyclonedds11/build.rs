//! Compiles the adaptor against the CycloneDDS 11 that `CYCLONEDDS11_PREFIX` names;
//! `make cyclonedds11` builds one. Without it, or with another version, the driver is built without
//! CycloneDDS and says what to do; the build never fails for that. The driver contains the path of
//! the library, since it is not in the system's folders.

use std::path::{Path, PathBuf};

use myelin_bench_build::installation::Installation;
use myelin_bench_build::{adaptor, driver, table};

fn main() {
    println!("cargo:rerun-if-changed={COMMON}");
    driver(|| CYCLONEDDS11.build(|prefix| compile(prefix, &find(prefix)?)));
}

/// The folder of the library, if it is that of CycloneDDS 11.
fn find(prefix: &Path) -> Result<PathBuf, String> {
    println!("cargo:rerun-if-changed={}", prefix.join(VERSION).display());
    let version = std::fs::read_to_string(prefix.join(VERSION));
    let version = version.map_err(|error| format!("{VERSION}: {error}"))?;
    let version = version.lines().find_map(|line| line.strip_prefix("#define DDS_VERSION "));
    let version = version.map_or("of an unknown version", |version| version.trim_matches('"'));
    if !version.starts_with("11.") {
        return Err(format!("CycloneDDS {version} and not 11"));
    }
    let folder = prefix.join("lib");
    let inner = std::fs::read_dir(&folder).into_iter().flatten().flatten();
    let mut folders = std::iter::once(folder).chain(inner.map(|entry| entry.path()));
    folders.find(|folder| folder.join("libddsc.so").exists()).ok_or("no lib/libddsc.so".to_owned())
}

fn compile(prefix: &Path, libraries: &Path) -> Result<(), String> {
    let iceoryx = format!("{:?}", libraries.join("libpsmx_iox.so").display().to_string());
    let common = ["config.c", "link.c", "match.c", "security.c", "table.c"];
    let mut build = adaptor::compiler("c11");
    adaptor::include_system(&mut build, &prefix.join("include"));
    build
        .files(common.map(|file| Path::new(COMMON).join(file)))
        .file("src/version.c")
        .define("_POSIX_C_SOURCE", "200809L")
        .define("PSMX_IOX", iceoryx.as_str());
    adaptor::compile(&mut build, ADAPTOR)?;
    // In the order in which they need each other.
    table::compile(&[]);
    adaptor::link(ADAPTOR);
    println!("cargo:rustc-link-search=native={}", libraries.display());
    println!("cargo:rustc-link-lib=ddsc");
    println!("cargo:rustc-link-arg-bins=-Wl,-rpath,{}", libraries.display());
    Ok(())
}

const ADAPTOR: &str = "myelin_cyclonedds11_link";
/// Sources shared with the driver of CycloneDDS 0.10.
const COMMON: &str = "../cyclonedds/src";
const VERSION: &str = "include/dds/version.h";
const CYCLONEDDS11: Installation = Installation {
    middleware: "CycloneDDS 11",
    variable: "CYCLONEDDS11_PREFIX",
    absent: "not built in: make cyclonedds11, then build Myelin again",
    remedy: "see bench/drivers/cyclonedds11/README.md, and build Myelin again",
};
