//! The driver of CyberRT between processes of the real executable, if CyberRT is built in; without
//! it, the driver's message, and that a run leaves nothing behind. One program, because each one
//! takes a second to link.

use std::path::Path;

#[path = "../../../../kit/tests/support/many.rs"]
#[allow(dead_code)] // It has one topic, and publishers do not wait.
mod many;
#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
mod own_space;
mod runs;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-cyberrt");

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}
