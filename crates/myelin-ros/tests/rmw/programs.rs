//! The programs of `ros/rmw_myelin/test`.

use std::process::Command;

use crate::library::{library, run};

/// Messages of all kinds, and what is made of those that are cut off or altered.
#[test]
fn what_one_rmw_writes_another_reads() {
    let Some((venv, library)) = library() else { return };
    let other = venv.join("lib/librmw_fastrtps_cpp.so");
    let said = run(Command::new(library.with_file_name("serialization")).args([library, &other]));
    assert!(said.starts_with("0 failures"), "{said}");
}

#[test]
fn loaned_messages_are_not_copied() {
    let Some((_, library)) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let said = run(Command::new(library.with_file_name("loans"))
        .env("MYELIN_FOLDER", folder.path())
        .env_remove("LD_PRELOAD"));
    assert_eq!(said, "lent and taken\n");
}
