//! Compiles the adaptor against LCM if its development package is installed. Without it the driver
//! builds all the same and says what to install.

#[path = "../packages.rs"]
mod packages;
#[path = "../probe.rs"]
mod probe;
#[path = "../table.rs"]
mod table;

use pkg_config::Library;

fn main() {
    match probe::config().probe("lcm") {
        Ok(library) => compile(&library),
        Err(error) => {
            table::compile_missing(&probe::missing("lcm", "LCM", &error));
            probe::await_packages();
        }
    }
}

fn compile(library: &Library) {
    // Up to 1.3 LCM itself does not tell.
    table::compile(&[("VERSION", &library.version)]);
    println!("cargo:rerun-if-changed={HEADER}");
    let mut build = cc::Build::new();
    for path in &library.include_paths {
        // As the system's, so that their warnings are not ours.
        build.flag("-isystem").flag(path);
    }
    build
        .file("src/link.c")
        .file("src/loopback.c")
        .include(table::include())
        .std("c11")
        .define("_GNU_SOURCE", None)
        // Also in a debug build: what is measured is the middleware.
        .opt_level(2)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("myelin_lcm_link");
    probe::link(library);
}

const HEADER: &str = "/usr/include/lcm/lcm.h";
