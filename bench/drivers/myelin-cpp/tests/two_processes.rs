//! Myelin from C++ between processes of the real executable.

#[path = "../../../kit/tests/support/bindings.rs"]
mod bindings;
#[path = "../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../kit/tests/support/mod.rs"]
mod support;

use std::path::Path;

use bindings::messages_arrive_as_sent;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-myelin-cpp");

#[test]
fn messages_arrive_as_sent_from_cpp() {
    messages_arrive_as_sent(Path::new(EXECUTABLE), "cpp");
}
