//! Compiles the adaptor against LCM if its development package is installed. Without it the driver
//! is built without LCM and says what to install.

#[path = "../packages.rs"]
mod packages;
#[path = "../probe.rs"]
mod probe;
#[path = "../table.rs"]
mod table;

use pkg_config::Library;

fn main() {
    if let Some(reason) = packages::built_elsewhere() {
        return table::compile_missing(reason);
    }
    match probe::config().probe("lcm") {
        Ok(library) => compile(&library),
        Err(error) => {
            table::compile_missing(&probe::missing("lcm", "LCM", &error));
            probe::await_packages();
        }
    }
}

fn compile(library: &Library) {
    // LCM itself does not report its version up to 1.3.
    table::compile(&[("VERSION", &library.version)]);
    println!("cargo:rerun-if-changed={HEADER}");
    let mut build = cc::Build::new();
    for path in &library.include_paths {
        // As system headers, because we cannot fix warnings in them.
        build.flag("-isystem").flag(path);
    }
    build
        .file("src/link.c")
        .file("src/loopback.c")
        .include(table::include())
        .std("c11")
        .define("_GNU_SOURCE", None)
        // Optimised even in a debug build, because the middleware is what is measured.
        .opt_level(2)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("myelin_lcm_link");
    probe::link(library);
}

const HEADER: &str = "/usr/include/lcm/lcm.h";
