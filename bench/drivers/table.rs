//! Shared by build scripts of drivers in C and C++: the driver's own table, `src/driver.c`, which
//! contains `main`. It is always compiled, so that a driver without its middleware is built, too,
//! and says what to install. This is a file and not a crate; build scripts include it by its path.

use std::path::{Path, PathBuf};

/// Compiles the table with `texts` defined: the strings that it uses.
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

/// The table of a driver without its middleware; `reason` says why, and what to install.
pub fn compile_missing(reason: &str) {
    compile(&[("MISSING", reason)]);
}

/// The folder of the kit's headers.
pub fn include() -> PathBuf {
    Path::new("../../kit/include").to_owned()
}

/// The folder of RouDi's header, for drivers that need that daemon.
pub fn roudi() -> PathBuf {
    Path::new("../roudi/include").to_owned()
}
