//! What the build scripts of drivers in C and C++ share: the driver's own table, `src/driver.c`, in
//! which is `main`. It is compiled in any case, so that a driver whose middleware is not there builds
//! all the same and says what to install. A file and no crate: build scripts take it in by its path.

use std::path::{Path, PathBuf};

/// Compiles the table with `texts` defined: the strings that it needs to know.
pub fn compile(texts: &[(&str, &str)]) {
    println!("cargo:rerun-if-changed=build.rs");
    println!("cargo:rerun-if-changed=src");
    println!("cargo:rerun-if-changed={}", include().display());
    println!("cargo:rerun-if-changed={}", roudi().join("myelin_roudi.h").display());
    let mut build = cc::Build::new();
    build.file("src/driver.c").include(include()).include(roudi()).std("c11");
    for (name, text) in texts {
        build.define(name, format!("{text:?}").as_str());
    }
    build.extra_warnings(true).warnings_into_errors(true).compile("myelin_driver_table");
}

/// The table of a driver without its middleware: `reason` is why, and what to install.
pub fn compile_missing(reason: &str) {
    compile(&[("MISSING", reason)]);
}

/// The folder of the kit's headers.
pub fn include() -> PathBuf {
    Path::new("../../kit/include").to_owned()
}

/// The folder of the header of RouDi, for those that need that daemon.
pub fn roudi() -> PathBuf {
    Path::new("../roudi/include").to_owned()
}
