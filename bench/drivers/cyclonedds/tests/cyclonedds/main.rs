//! CycloneDDS between processes of the real executable. One program: each that is linked costs a second.

mod across_hosts;
mod config;
#[path = "../../../../kit/tests/support/library_version.rs"]
mod library_version;
#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
mod roundtrip;
mod secure;
#[path = "../../../../kit/tests/support/secured.rs"]
mod secured;
mod streams;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-cyclonedds");
