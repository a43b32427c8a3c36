//! What the build scripts of the drivers in C and C++ share: to find `libmyelin.so` and its headers, and to
//! link them as an installed program does. A file and no crate: build scripts take it in by its path.

use std::path::{Path, PathBuf};

use crate::table;

/// Compiles `src/driver.c`, and `source` if the library is there. The library of this clone is what
/// `scripts/c-library` makes in this build's own folder: cargo has not made it before a build script runs.
pub fn compile(source: &str) {
    let folder = profile_folder().join("c");
    let library = folder.join("libmyelin.so");
    // As long as there is none, cargo runs this script at every build: it may have come.
    println!(
        "cargo:rerun-if-changed={}",
        if library.is_file() { &library } else { &folder }.display()
    );
    println!("cargo:rerun-if-changed={INCLUDE}");
    println!("cargo:rerun-if-changed=../libmyelin.rs");
    println!("cargo:rerun-if-changed=../myelin-c/src/systems.h");
    if !library.is_file() {
        return table::compile_missing(&format!(
            "not built in: scripts/c-library{} installs libmyelin.so for it; then build again",
            if folder.parent().is_some_and(|it| it.ends_with("release")) {
                " --release"
            } else {
                ""
            }
        ));
    }
    table::compile(&[("VERSION", env!("CARGO_PKG_VERSION"))]);
    let mut build = cc::Build::new();
    let is_cpp = source.ends_with("cpp");
    build.file(source).include(table::include()).include(INCLUDE);
    build.cpp(is_cpp).std(if is_cpp { "c++17" } else { "c11" });
    // Also in a debug build: what is measured is the library.
    build
        .opt_level(2)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("myelin_driver_link");
    println!("cargo:rustc-link-search=native={}", folder.display());
    println!("cargo:rustc-link-lib=dylib=myelin");
    // Beside the executable in a clone; installed, where the loader looks.
    println!("cargo:rustc-link-arg=-Wl,-rpath,$ORIGIN/c");
}

/// `<target>/<profile>`, of `<target>/<profile>/build/<package>/out`.
fn profile_folder() -> PathBuf {
    let out = PathBuf::from(std::env::var_os("OUT_DIR").expect("cargo sets OUT_DIR"));
    out.ancestors().nth(3).map(Path::to_owned).expect("it is that deep")
}

/// The headers of the library.
const INCLUDE: &str = "../../../crates/myelin-c/include";
