//! CycloneDDS 11 between processes of the real executable; requirements on 0.10 hold for it, too.

#[path = "../../../cyclonedds/tests/cyclonedds/across_hosts.rs"]
mod across_hosts;
mod missing;
#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
mod roundtrip;
#[path = "../../../cyclonedds/tests/cyclonedds/streams.rs"]
mod streams;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-cyclonedds11");
