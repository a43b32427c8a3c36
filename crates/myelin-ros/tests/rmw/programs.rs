//! The programs of `ros/rmw_myelin/test`.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Instant;

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
        .env("MYELIN_RUNTIME_DIR", folder.path())
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
        .env("MYELIN_RUNTIME_DIR", folder.path())
        .env_remove("LD_PRELOAD"));
    assert_eq!(said, "passed\n");
}

#[test]
fn the_graph_shows_nodes_and_settings_of_the_user() {
    let Some((_, library)) = library() else { return };
    let folder = tempfile::tempdir().unwrap();
    let said = run(Command::new(library.with_file_name("graph"))
        .env("MYELIN_RUNTIME_DIR", folder.path())
        .env_remove("LD_PRELOAD"));
    assert_eq!(said, "passed\n");
}

/// The number of processes is `MYELIN_ROS_CROWD`; `make test-long` takes 500. Each sees all of them.
#[test]
fn a_crowd_of_processes_sees_itself() {
    let Some((_, library)) = library() else { return };
    let processes = std::env::var("MYELIN_ROS_CROWD").unwrap_or_else(|_| "12".to_owned());
    let processes: usize = processes.parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let begun = Instant::now();
    let start = |number: usize| {
        let mut one = Command::new(library.with_file_name("crowd"))
            .args([number, processes].map(|word| word.to_string()))
            .env("MYELIN_RUNTIME_DIR", folder.path())
            .env_remove("LD_PRELOAD")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(one.stdout.take().unwrap()).lines();
        assert_eq!(lines.next().unwrap().unwrap(), "ready");
        (one, lines)
    };
    let mut crowd: Vec<_> = (0..processes).map(start).collect();
    let started = begun.elapsed();
    for (one, _) in &mut crowd {
        one.stdin.as_ref().unwrap().write_all(b"\n").unwrap();
    }
    let mut mib: f64 = 0.0;
    for (_, lines) in &mut crowd {
        let line = lines.next().unwrap().unwrap();
        let words: Vec<_> = line.split(' ').collect();
        assert_eq!(words[0], "all", "{line}");
        mib = mib.max(words[3].parse().unwrap());
    }
    let seen = begun.elapsed();
    println!(
        "{processes} processes: started after {started:.1?}, all see all after {seen:.1?}, with at \
         most {mib:.1} MiB each"
    );
    // A link, a node and two endpoints for each of the others.
    assert!(mib < 4.0 + 0.012 * processes as f64, "{mib} MiB");
    for (mut one, _) in crowd {
        drop(one.stdin.take());
        assert!(one.wait().unwrap().success());
    }
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
