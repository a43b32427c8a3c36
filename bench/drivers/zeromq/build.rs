//! Compiles the adaptor against ZeroMQ if its development package is installed. Without it the
//! driver is built without ZeroMQ and says what to install.

#[path = "../packages.rs"]
mod packages;
#[path = "../probe.rs"]
mod probe;
#[path = "../table.rs"]
mod table;

use pkg_config::{Error, Library};

fn main() {
    if let Some(reason) = packages::built_elsewhere() {
        return table::compile_missing(reason);
    }
    match probe::config().atleast_version("4.3.3").probe("libzmq") {
        Ok(library) => compile(&library),
        Err(error) => {
            table::compile_missing(&missing(&error));
            probe::await_packages();
        }
    }
}

fn compile(library: &Library) {
    table::compile(&[]);
    println!("cargo:rerun-if-changed={HEADER}");
    cc::Build::new()
        .file("src/link.c")
        .includes(&library.include_paths)
        .include(table::include())
        .std("c11")
        // Optimised even in a debug build, because the middleware is what is measured.
        .opt_level(2)
        .extra_warnings(true)
        .warnings_into_errors(true)
        .compile("myelin_zeromq_link");
    probe::link(library);
}

/// The message for a user without a ZeroMQ that this driver can use.
fn missing(error: &Error) -> String {
    match probe::config().probe("libzmq") {
        Ok(library) => format!("needs libzmq 4.3.3 or later, found {}", library.version),
        Err(_) => probe::missing("libzmq", "ZeroMQ", error),
    }
}

const HEADER: &str = "/usr/include/zmq.h";
