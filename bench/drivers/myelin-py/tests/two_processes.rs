//! Myelin from Python between processes of the real executable, and between Python and C++.

#[path = "../../../kit/tests/support/bindings.rs"]
mod bindings;
#[path = "../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../kit/tests/support/mod.rs"]
mod support;

use std::path::{Path, PathBuf};
use std::process::Command;

use bindings::messages_arrive_as_sent;
use myelin_bench_kit::message::HEADER_BYTES;
use myelin_bench_kit::protocol::{Description, Frame, Prepare, Role};
use support::{Pair, Process, prepare};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-myelin-py");

#[test]
fn messages_arrive_as_sent_from_python() {
    messages_arrive_as_sent(Path::new(EXECUTABLE), "py");
}

/// Frames go from Python to C++ and back. Ping writes each frame into a loan, and pong copies what
/// it has taken into another loan. So each copies the bytes of the frames once, and nothing else
/// copies any.
#[test]
fn frames_between_python_and_cpp_are_copied_only_by_user_code() {
    let _alone = own_host::alone();
    let python = Path::new(EXECUTABLE);
    let cpp = python.with_file_name("myelin-driver-myelin-cpp");
    let is_there =
        |executable: &Path, language| !bindings::systems(executable, language).is_empty();
    if !cpp.is_file() || !is_there(&cpp, "cpp") || !is_there(python, "py") {
        println!("left out: frames from Python to C++: one of the drivers is not there");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let Some(counts) = count_of_copies(folder.path()) else { return };
    let frame = Frame { width: 1440, height: 1080 };
    let (payload_bytes, rate_hz, messages, warmup_messages) = (frame.bytes(), Some(30.0), 30, 0);
    let prepare = Prepare {
        payload_bytes,
        rate_hz,
        messages,
        warmup_messages,
        ..prepare("myelin-py.shm-block", Role::Ping)
    };
    let start = |prepare: &Prepare| {
        let (executable, system, file) = match prepare.role {
            Role::Ping => (python, "myelin-py.shm-block", "ping"),
            _ => (&*cpp, "myelin-cpp.shm-block", "pong"),
        };
        let mut program = Command::new(executable);
        program.env("LD_PRELOAD", &counts).env("COPIES", folder.path().join(file));
        Process::start_by(program, &Prepare { system: system.into(), ..prepare.clone() })
    };
    let mut pair = Pair::start(&prepare, messages, start);
    pair.ping.expect_ready();
    pair.pong.expect_ready();
    let (ping, pong) = pair.finish();
    assert_eq!((ping.sent, ping.received, ping.corrupt), (messages, messages, 0));
    assert_eq!((pong.received, pong.corrupt), (messages, 0));
    let message_bytes = payload_bytes + HEADER_BYTES as u64;
    // Ping's last message, the end of the stream, is not answered.
    for (role, copied) in [("ping", messages + 1), ("pong", messages)] {
        let bytes = std::fs::read_to_string(folder.path().join(role)).unwrap();
        assert_eq!(bytes.parse(), Ok(copied * message_bytes), "{role}");
    }
}

/// The counting library; `None`, with a message, without a C compiler.
fn count_of_copies(folder: &Path) -> Option<PathBuf> {
    let library = folder.join("copies.so");
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/copies.c");
    let mut compiler = Command::new("cc");
    compiler.args(["-O1", "-fno-builtin", "-fPIC", "-shared", "-o"]).arg(&library).arg(source);
    match compiler.status() {
        Ok(status) => {
            assert!(status.success());
            Some(library)
        }
        Err(error) => {
            println!("left out: copies of frames: cc: {error}");
            None
        }
    }
}

#[test]
fn without_python_or_its_modules_the_remedy_is_given() {
    for (python, remedy) in [
        (
            "/nowhere/python3",
            "no /nowhere/python3 (No such file or directory (os error 2)): apt-get install",
        ),
        // An interpreter without modules.
        ("false", "false: ended without output: scripts/python driver installs it"),
    ] {
        let output = Command::new(EXECUTABLE).arg("describe").env("MYELIN_PYTHON", python).output();
        let output = output.unwrap();
        let description: Description = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(description.systems.len(), 2);
        for system in description.systems {
            let missing = system.missing.unwrap();
            assert!(missing.starts_with(remedy), "{missing}");
        }
    }
}
