//! Messages of all kinds, and what is made of those that are cut off or altered.

use std::process::Command;

use crate::library::{library, run};

/// `ros/rmw_myelin/test/serialization.cpp`.
#[test]
fn what_one_rmw_writes_another_reads() {
    let Some((venv, library)) = library() else { return };
    let other = venv.join("lib/librmw_fastrtps_cpp.so");
    let said = run(Command::new(library.with_file_name("serialization")).args([library, &other]));
    assert!(said.starts_with("0 failures"), "{said}");
}
