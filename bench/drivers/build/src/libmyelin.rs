//! `libmyelin.so` and its headers, linked like an installed program, for the drivers of Myelin in C and C++.

use std::path::{Path, PathBuf};

use crate::{adaptor, table};

/// Compiles `src/driver.c`, and `source` if the library exists. `scripts/c-library` puts this
/// clone's library into the folder of this build, since cargo does not make it before a build
/// script runs.
pub fn compile(source: &str) -> Result<(), String> {
    let folder = profile_folder().join("c");
    let library = folder.join("libmyelin.so");
    // As long as the library does not exist, cargo runs this script at every build.
    println!(
        "cargo:rerun-if-changed={}",
        if library.is_file() { &library } else { &folder }.display()
    );
    println!("cargo:rerun-if-changed={INCLUDE}");
    println!("cargo:rerun-if-changed=../myelin-c/src/systems.h");
    if !library.is_file() {
        return Err(format!(
            "not built in: scripts/c-library{} installs libmyelin.so for it; then build again",
            if folder.parent().is_some_and(|it| it.ends_with("release")) {
                " --release"
            } else {
                ""
            }
        ));
    }
    table::compile(&[("VERSION", env!("CARGO_PKG_VERSION"))]);
    let standard = if source.ends_with("cpp") { "c++17" } else { "c11" };
    adaptor::compiler(standard).file(source).include(INCLUDE).compile("myelin_driver_link");
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=myelin");
    // In a clone the library is beside the executable; an installed one is found by the loader.
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/c");
    Ok(())
}

/// The folder `<target>/<profile>`, derived from `<target>/<profile>/build/<package>/out`.
fn profile_folder() -> PathBuf {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    out.ancestors().nth(3).map(Path::to_owned).expect("OUT_DIR has three parents")
}

/// The headers of the library.
const INCLUDE: &str = "../../../crates/myelin-c/include";
