//! ROS 2 between processes of the real executable. One program, because each one takes a second to
//! link.

#[path = "../../../../kit/tests/support/many.rs"]
mod many;
mod missing;
mod one_process;
#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;
mod two_processes;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-ros2");
