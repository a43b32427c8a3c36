//! The C interface: drivers written in C, built against the static library and run through the
//! protocol, one of them also with an older header; and the header by itself, as C and as C++.

use std::path::{Path, PathBuf};
use std::process::Command as Program;
use std::sync::OnceLock;

use crate::support::streams::{across, at_rate, within};
use crate::support::{Pair, Process, Samples, Solo, describe, prepare};
use myelin_bench_kit::protocol::{
    Command, Event, Network, Prepare, Reliability, Role, Topology, Transport, Wait, Workload,
};

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
    exchange(executable);
}

fn exchange(executable: &Path) {
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

/// The driver that docs/how-to/drivers.md builds.
#[test]
fn two_processes_of_a_driver_in_c_answer_each_other() {
    let built = build_driver("socket_driver.c", "include", "myelin-driver-socket");
    let Some(executable) = built else { return };
    for payload_bytes in [0, 65_536] {
        let plain = prepare("socket.seqpacket", Role::Ping);
        Pair::exchange(&executable, &Prepare { messages: 500, payload_bytes, ..plain });
    }
}

/// Pong receives nothing, because the messages do not leave ping's process.
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
fn a_driver_in_c_gets_the_network_settings() {
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

/// Uses the driver that offers everything that the header has added since ABI 6.
#[test]
fn all_features_of_a_driver_in_c_are_described() {
    let Some(executable) = post_driver() else { return };
    let systems = describe(executable).systems;
    let [take, call, here, absent] = &systems[..] else { panic!("four systems: {systems:?}") };
    assert_eq!(take.workloads, [Workload::Roundtrip, Workload::Publish]);
    assert_eq!(call.workloads, [Workload::Roundtrip, Workload::Stream]);
    assert_eq!((call.wait, call.topology), (Wait::Callback, Topology::TwoProcesses));
    assert_eq!(here.workloads, [Workload::Stream, Workload::Publish]);
    assert_eq!((here.topology, here.transport), (Topology::OneProcess, Transport::Process));
    assert_eq!(
        systems.iter().map(|system| system.daemon).collect::<Vec<_>>(),
        [true, true, false, true]
    );
    assert!(systems.iter().all(|system| system.version == "as probed"), "{systems:?}");
    assert_eq!(absent.missing.as_deref(), Some("not here: fetch it"));
    assert_eq!(absent.workloads, [Workload::Roundtrip]);
}

#[test]
fn pong_in_c_answers_by_take_and_in_the_call() {
    let Some(executable) = post_driver() else { return };
    for system in ["post.take", "post.call"] {
        let prepare = Prepare { messages: 200, ..prepare(system, Role::Ping) };
        let mut pair = Pair::open(executable, &prepare, 200);
        let (ping, pong) = pair.finish();
        assert_eq!((ping.sent, ping.received, ping.corrupt), (200, 200, 0), "{system}");
        assert_eq!((pong.received, pong.corrupt), (200, 0), "{system}");
        assert_eq!(ping.notes, ["it is over"]);
    }
}

#[test]
fn a_stream_in_c_calls_in_one_process_and_between_two() {
    let Some(executable) = post_driver() else { return };
    across(executable, &at_rate("post.call"));
    within(executable, &at_rate("post.here"));
}

#[test]
fn a_driver_in_c_publishes_to_many() {
    let Some(executable) = post_driver() else { return };
    let of = |system| {
        let (workload, rate_hz) = (Workload::Publish, Some(2000.0));
        Prepare { workload, rate_hz, messages: 100, subscribers: 3, ..prepare(system, Role::Ping) }
    };
    let (ping, pong) = Pair::open(executable, &of("post.take"), 100).finish();
    assert_eq!((ping.sent, ping.corrupt, pong.corrupt), (100, 0, 0));
    // A full socket loses some messages.
    assert!(pong.received > 0 && pong.received <= 300, "{}", pong.received);
    let (ping, pong) = Solo::open(executable, &of("post.here"), 100).finish();
    assert_eq!((ping.sent, pong.received, pong.corrupt), (100, 300, 0));
}

#[test]
fn a_daemon_in_c_is_started_watched_and_stopped() {
    let Some(executable) = post_driver() else { return };
    let start = || {
        let daemon = Process::start(executable, &prepare("post.take", Role::Daemon));
        let Some(Event::Ready(ready)) = daemon.event() else { panic!("ready") };
        let [pid] = ready.pids[..] else { panic!("one process: {:?}", ready.pids) };
        (daemon, pid)
    };
    let is_there = |pid: u32| Path::new(&format!("/proc/{pid}")).exists();
    let (mut daemon, pid) = start();
    assert!(is_there(pid));
    daemon.say(&Command::Stop);
    daemon.expect_done();
    assert!(daemon.expect_end().success());
    assert!(!is_there(pid));

    let (mut daemon, pid) = start();
    // SAFETY: the process was started by this test's driver.
    unsafe { libc::kill(pid as libc::pid_t, libc::SIGKILL) };
    let [message, ..] = daemon.expect_error();
    assert_eq!(message, "the daemon has ended");
    assert!(!daemon.expect_end().success());
}

#[test]
fn a_driver_in_c_notes_and_cleans() {
    let Some(executable) = post_driver() else { return };
    let samples = Samples::new(1);
    let prepare = Prepare { samples: Some(samples.path()), ..prepare("post.here", Role::Ping) };
    let pong_samples = Some(samples.path());
    let (workload, rate_hz) = (Workload::Stream, Some(100.0));
    let ping = Process::start(executable, &Prepare { pong_samples, workload, rate_hz, ..prepare });
    let Some(Event::Ready(ready)) = ping.event() else { panic!("ready") };
    assert_eq!(ready.notes, ["a note on post.here", "and another"]);
    // Its prints do not reach the protocol.
    let cleaned = Program::new(executable).arg("clean").output().unwrap();
    assert!(cleaned.status.success() && cleaned.stdout.is_empty());
    assert_eq!(String::from_utf8_lossy(&cleaned.stderr), "cleaned\n");
}

#[test]
fn what_a_system_cannot_do_is_refused() {
    let Some(executable) = post_driver() else { return };
    let plain = |system| prepare(system, Role::Ping);
    let (own, peer) = ([127, 0, 0, 1].into(), [127, 0, 0, 1].into());
    let network = Network { interface: "lo".into(), own, peer, port: 47_000 };
    let options = serde_json::Map::from_iter([("speed".to_owned(), 9.into())]);
    let stream =
        |system| Prepare { rate_hz: Some(100.0), workload: Workload::Stream, ..plain(system) };
    for (prepare, expected) in [
        (stream("post.take"), "post.take cannot run the workload stream"),
        (Prepare { payload_bytes: 60_001, ..plain("post.take") }, "at most 60000 B can be sent"),
        (plain("post.lost"), "no system post.lost"),
        (
            Prepare { reliability: Reliability::Reliable, ..stream("post.call") },
            "post.call: not reliable",
        ),
        (Prepare { depth: 0, ..stream("post.call") }, "post.call: a depth of 0 is not possible"),
        (Prepare { network: Some(network), ..plain("post.take") }, "cannot reach other hosts"),
        (Prepare { options, ..plain("post.take") }, "options.post.speed: there is no such option"),
    ] {
        let samples = Samples::new(1);
        let mut ping =
            Process::start(executable, &Prepare { samples: Some(samples.path()), ..prepare });
        let [message, ..] = ping.expect_error();
        assert!(message.contains(expected), "{message}");
        assert!(!ping.expect_end().success());
    }
}

/// Compiles a driver with the first header of this series, whose structures are shorter.
#[test]
fn a_driver_with_an_earlier_header_works() {
    static EXECUTABLE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || build_driver("echo_driver.c", "tests/abi5", "myelin-driver-earlier");
    let Some(executable) = EXECUTABLE.get_or_init(build) else { return };
    let [system] = &describe(executable).systems[..] else { panic!("one system") };
    assert_eq!((system.name.as_str(), system.daemon), ("echo.memory", false));
    assert_eq!(system.topology, Topology::TwoProcesses);
    assert_eq!(system.workloads, [Workload::Roundtrip, Workload::Stream]);
    exchange(executable);
}

#[test]
fn a_driver_of_another_abi_series_must_be_rebuilt() {
    for (age, abi) in [("older", "4u"), ("newer", "MYELIN_BENCH_ABI+1")] {
        let name = format!("myelin-driver-{age}");
        let Some(mut program) = compiler_named("cc") else { return };
        program.arg(format!("-DECHO_ABI={abi}"));
        let Some(executable) = build_with(program, "echo_driver.c", "include", &name) else {
            return;
        };
        let output = Program::new(executable).arg("describe").output().unwrap();
        assert_eq!(output.status.code(), Some(2));
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(said.contains("rebuild the driver"), "{said}");
    }
}

/// The smallest driver in C, built once; `None` if there is no C compiler.
fn echo_driver() -> Option<&'static Path> {
    static EXECUTABLE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || build_driver("echo_driver.c", "include", "myelin-driver-echo");
    EXECUTABLE.get_or_init(build).as_deref()
}

/// The driver in C that offers everything else.
fn post_driver() -> Option<&'static Path> {
    static EXECUTABLE: OnceLock<Option<PathBuf>> = OnceLock::new();
    let build = || build_driver("post_driver.c", "include", "myelin-driver-post");
    EXECUTABLE.get_or_init(build).as_deref()
}

fn build_driver(file: &str, headers: &str, name: &str) -> Option<PathBuf> {
    build_with(compiler_named("cc")?, file, headers, name)
}

fn build_with(mut program: Program, file: &str, headers: &str, name: &str) -> Option<PathBuf> {
    let executable = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    program.arg("-std=c11").arg("-I").arg(source(headers)).arg(source("tests").join(file));
    program.arg(static_library()).args(["-lpthread", "-ldl", "-lm", "-o"]).arg(&executable);
    compile(program);
    Some(executable)
}

/// Builds `libmyelin_bench_kit.a`; cargo does nothing if it is up to date.
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

/// A compiler that treats warnings as errors; `None`, with a message, if it is not installed.
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
