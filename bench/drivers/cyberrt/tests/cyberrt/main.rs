//! The driver of CyberRT between processes of the real executable, where CyberRT is built in; and without it
//! what it says, and that a run leaves nothing behind. One program: each that is linked costs a second.

use std::path::Path;

#[path = "../../../../kit/tests/support/many.rs"]
#[allow(dead_code)] // It has one topic, and waits for nobody.
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
