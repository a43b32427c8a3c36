//! The driver's own table, `src/driver.c`, which contains `main`. It is always compiled, so that a driver
//! without its middleware is built, too, and says what to install.

use std::path::Path;

/// Compiles the table with `texts` defined: the strings that it uses. `MISSING` is the reason why the
/// middleware is not there (see `include/driver.h`).
pub fn compile(texts: &[(&str, &str)]) {
    for path in ["build.rs", "src"].iter().chain(&INCLUDE) {
        println!("cargo:rerun-if-changed={path}");
    }
    let mut build = cc::Build::new();
    build.file("src/driver.c").includes(include()).std("c11");
    for (name, text) in texts {
        build.define(name, format!("{text:?}").as_str());
    }
    build.extra_warnings(true).warnings_into_errors(true).compile("myelin_driver_table");
}

/// The folders of headers: the kit's, those that drivers share, and that of RouDi.
pub fn include() -> [&'static Path; 3] {
    INCLUDE.map(Path::new)
}

const INCLUDE: [&str; 3] = ["../../kit/include", "../build/include", "../roudi/include"];
