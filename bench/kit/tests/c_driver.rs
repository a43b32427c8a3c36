//! The C interface: a driver written in C, built against the static library and run through the
//! protocol; and the header by itself, as C and as C++.

mod support;

use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::OnceLock;

use myelin_bench_kit::protocol::{Command, Network, Prepare, Role, Transport, Wait, Workload};
use support::{Process, Samples, describe, prepare};

#[test]
fn a_driver_in_c_describes_itself() {
    let Some(executable) = echo_driver() else { return };
    let description = describe(executable);
    let [system] = &description.systems[..] else { panic!("one system") };
    assert_eq!((system.name.as_str(), system.version.as_str()), ("echo.memory", "1"));
    assert_eq!((system.wait, system.transport), (Wait::Poll, Transport::SharedMemory));
    assert_eq!((system.missing.as_deref(), system.payload_bytes_max), (None, 1 << 20));
}

#[test]
fn a_driver_in_c_runs_through_the_protocol() {
    let Some(executable) = echo_driver() else { return };
    let samples = Samples::new(1000);
    let prepare = Prepare {
        messages: 1000,
        samples: Some(samples.path()),
        ..prepare("echo.memory", Role::Ping)
    };
    let mut ping = Process::start(executable, &prepare);
    ping.expect_ready();
    ping.go();
    let done = ping.expect_done();
    assert_eq!((done.sent, done.received, done.lost, done.corrupt), (1000, 1000, 0, 0));
    assert_eq!(samples.records().len(), 1000);
    ping.say(&Command::Stop);
    assert!(ping.expect_end().success());
}

/// Its pong hears nothing, as the messages do not leave ping's process.
#[test]
fn a_stream_of_a_driver_in_c_has_two_ends() {
    let Some(executable) = echo_driver() else { return };
    let samples = [Samples::new(50), Samples::new(50)];
    let start = |role, samples: &Samples| {
        let (workload, rate_hz) = (Workload::Stream, Some(10_000.0));
        let (samples, messages) = (Some(samples.path()), 50);
        let plain = prepare("echo.memory", role);
        let mut process =
            Process::start(executable, &Prepare { samples, messages, workload, rate_hz, ..plain });
        process.expect_ready();
        process.go();
        process
    };
    let mut pong = start(Role::Pong, &samples[1]);
    let mut ping = start(Role::Ping, &samples[0]);
    assert_eq!((ping.expect_done().sent, samples[0].records().len()), (50, 50));
    ping.say(&Command::Stop);
    assert!(ping.expect_end().success());
    pong.say(&Command::Stop);
    assert_eq!((pong.expect_done().received, samples[1].records().len()), (0, 0));
    assert!(pong.expect_end().success());
}

#[test]
fn an_error_in_c_reaches_the_lab_with_its_remedy() {
    let Some(executable) = echo_driver() else { return };
    let samples = Samples::new(1);
    let options = serde_json::Map::from_iter([("fail".into(), true.into())]);
    let prepare =
        Prepare { options, samples: Some(samples.path()), ..prepare("echo.memory", Role::Ping) };
    let mut ping = Process::start(executable, &prepare);
    let [message, remedy, _] = ping.expect_error();
    assert_eq!(
        (message.as_str(), remedy.as_str()),
        ("told to fail", "leave out the option `fail`")
    );
    assert!(!ping.expect_end().success());
}

#[test]
fn a_driver_in_c_is_told_the_way_to_another_host() {
    let Some(executable) = echo_driver() else { return };
    let samples = Samples::new(1);
    let [own, peer] = ["10.9.8.1", "fd00::2"].map(|address| address.parse().unwrap());
    let network = Some(Network { interface: "eth0".into(), own, peer, port: 47_000 });
    let plain = prepare("echo.memory", Role::Ping);
    let prepare = Prepare { network, samples: Some(samples.path()), ..plain };
    let mut ping = Process::start(executable, &prepare);
    let [message, ..] = ping.expect_error();
    assert_eq!(message, "cannot echo to fd00::2 from 10.9.8.1 on eth0, port 47000");
    assert!(!ping.expect_end().success());
}

#[test]
fn the_header_stands_alone_in_c_and_cpp() {
    let header = source("include/myelin_bench_kit.h");
    for (compiler, language, standard) in
        [("cc", "c", "-std=c99"), ("c++", "c++", "-std=c++11"), ("g++", "c++", "-std=c++20")]
    {
        let Some(mut program) = compiler_named(compiler) else { continue };
        program.args([standard, "-fsyntax-only", "-pedantic", "-x", language]).arg(&header);
        compile(program);
    }
}

/// The driver in C, built once; `None` if there is no C compiler.
fn echo_driver() -> Option<&'static Path> {
    static EXECUTABLE: OnceLock<Option<PathBuf>> = OnceLock::new();
    EXECUTABLE.get_or_init(build_echo_driver).as_deref()
}

fn build_echo_driver() -> Option<PathBuf> {
    let mut program = compiler_named("cc")?;
    let executable = Path::new(env!("CARGO_TARGET_TMPDIR")).join("myelin-driver-echo");
    program.arg("-std=c11").arg("-I").arg(source("include")).arg(source("tests/echo_driver.c"));
    program.arg(static_library()).args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&executable);
    compile(program);
    Some(executable)
}

/// Builds `libmyelin_bench_kit.a`; nothing to do for cargo if it is there and new.
fn static_library() -> PathBuf {
    let target = Path::new(env!("CARGO_TARGET_TMPDIR")).parent().expect("a folder above");
    let status = Program::new(env!("CARGO"))
        .args(["build", "--quiet", "--offline", "--package", "myelin-bench-kit", "--target-dir"])
        .arg(target)
        .env_remove("CARGO_BUILD_TARGET")
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .status();
    assert!(status.expect("cargo starts").success(), "cargo build -p myelin-bench-kit");
    target.join("debug/libmyelin_bench_kit.a")
}

/// A compiler that takes warnings for errors; `None`, after saying so, if it is not installed.
fn compiler_named(name: &str) -> Option<Program> {
    if Program::new(name).arg("--version").output().is_err() {
        eprintln!("skipped: there is no `{name}` here");
        return None;
    }
    let mut program = Program::new(name);
    program.args(["-Wall", "-Wextra", "-Werror"]);
    Some(program)
}

fn compile(mut program: Program) {
    let output = program.output().expect("the compiler starts");
    assert!(output.status.success(), "{program:?}\n{}", String::from_utf8_lossy(&output.stderr));
}

fn source(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}
