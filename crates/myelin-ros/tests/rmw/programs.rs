//! The programs of `ros/rmw_myelin/test`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::library::{library, run};

/// Messages of all kinds, and the results for cut off or altered ones.
#[test]
fn serialized_messages_are_read_by_another_rmw() {
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
    assert_eq!(said, "passed\n");
}

#[test]
fn waits_callbacks_and_publishes_do_not_block_others() {
    let Some((_, library)) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    // Freed memory is overwritten, so that no reader finds the old content by luck.
    let said = run(Command::new(library.with_file_name("waits"))
        .env("GLIBC_TUNABLES", "glibc.malloc.tcache_count=0:glibc.malloc.perturb=165")
        .env("MYELIN_FOLDER", folder.path())
        .env_remove("LD_PRELOAD"));
    assert_eq!(said, "passed\n");
}

/// Its caller is C.
#[test]
fn no_exception_leaves_a_function_of_rmw() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ros/rmw_myelin/src");
    let is_source = |path: &PathBuf| path.extension().is_some_and(|it| it == "cpp");
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path()).filter(is_source);
    let mut functions = 0;
    for file in files {
        let text = fs::read_to_string(&file).unwrap();
        for function in text.split("RMW_PUBLIC ").skip(1) {
            functions += 1;
            let end = function.lines().find(|line| line.starts_with('}'));
            let is_contained =
                end.is_some_and(|line| line.contains("CONTAIN") || line.contains("catch"));
            // Functions that make nothing and call no function that does.
            let is_plain =
                ["return unsupported(", "init_options", "_identifier(void)", "_format(void)"]
                    .into_iter()
                    .chain(["_supported(", "set_log_severity", "check_compatible", "compare_gids"])
                    .any(|part| function.contains(part));
            assert!(is_contained || is_plain, "{}: {function}", file.display());
        }
    }
    assert!(functions > 80, "{functions}");
}
