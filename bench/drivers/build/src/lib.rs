//! What the build scripts of drivers share. A script finds its middleware, compiles the adaptor against it
//! and links it. If the middleware is not there, the driver is built without it, and says what to install.
//!
//! ```text
//! find     packages, probe     a library of the distribution
//!          installation        a folder that an environment variable names; compile_commands: its flags
//!          libmyelin           this clone's libmyelin.so
//! compile  table, adaptor      the driver's table (src/driver.c), and the adaptor
//! ```
//! Build scripts run in the folder of their driver, so relative paths begin there.

pub mod adaptor;
pub mod compile_commands;
pub mod installation;
pub mod libmyelin;
pub mod packages;
pub mod probe;
pub mod table;

pub use {cc, shlex};

/// The whole `main` of a build script. `build` compiles and links the driver with its middleware, or
/// returns why it cannot; the driver then says that.
pub fn driver(build: impl FnOnce() -> Result<(), String>) {
    if let Err(missing) = build() {
        table::compile(&[("MISSING", &missing)]);
    }
}
