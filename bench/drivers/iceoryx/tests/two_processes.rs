//! Both systems between processes of the real executable, with RouDi. They leave nothing behind,
//! even if they are killed. Skipped, with a message, if iceoryx is not installed.

#[path = "../../../kit/tests/support/many.rs"]
mod many;
#[path = "../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../kit/tests/support/mod.rs"]
mod support;

use std::fs::File;
use std::path::Path;
use std::time::{Duration, Instant};

use many::{Many, start_daemon};
use myelin_bench_kit::protocol::{Command, Prepare, Reliability, Role, Topology, Workload};
use serde_json::json;
use support::streams::{across, at_rate, frames, one_way_systems};
use support::{Pair, Process, Samples, WATCHDOG, describe, prepare, unique_run};
use tempfile::TempDir;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-iceoryx");
const POLL: &str = "iceoryx.poll";
const WAITSET: &str = "iceoryx.waitset";

#[test]
fn every_payload_comes_back_as_sent() {
    let _alone = alone();
    for system in systems() {
        for payload_bytes in [0, 13, 1 << 20] {
            exchange(&system, payload_bytes, 50);
        }
        exchange(&system, 10 << 20, 3);
    }
    assert_eq!(left_behind(), NOTHING);
}

fn exchange(system: &str, payload_bytes: u64, messages: u64) {
    let folder = tempfile::tempdir().unwrap();
    let of_ping = Prepare { warmup_messages: 2, ..prepare(system, Role::Ping) };
    let prepare = Prepare { payload_bytes, messages, ..within(&folder, of_ping) };
    let daemon = start_daemon(Path::new(EXECUTABLE), &prepare);
    let pair = Pair::exchange(Path::new(EXECUTABLE), &prepare);
    let what = format!("{system} with {payload_bytes} B");
    let pongs = pair.pong_samples.records();
    assert!(pongs.iter().all(|pong| pong.wake_ns > 0), "{what}");
    stop(daemon);
}

#[test]
fn streams_and_frames_arrive_as_sent() {
    let _alone = alone();
    for system in one_way_systems(Path::new(EXECUTABLE), Topology::TwoProcesses) {
        let folder = tempfile::tempdir().unwrap();
        for prepare in [
            Prepare { payload_bytes: 0, ..at_rate(&system.name) },
            Prepare { payload_bytes: 70_000, ..at_rate(&system.name) },
            frames(&system.name),
        ] {
            let prepare = within(&folder, prepare);
            let daemon = start_daemon(Path::new(EXECUTABLE), &prepare);
            let ran = across(Path::new(EXECUTABLE), &prepare);
            assert!(ran.pings.iter().all(|ping| ping.loan_ns > 0), "{}: loans", system.name);
            stop(daemon);
        }
    }
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn several_subscribers_publishers_and_topics() {
    let _alone = alone();
    for system in systems() {
        let folder = tempfile::tempdir().unwrap();
        let reliability = Reliability::Reliable;
        let prepare = Prepare { reliability, ..within(&folder, at_rate(&system)) };
        many::reach_every_subscriber(Path::new(EXECUTABLE), &prepare);
        many::hear_every_publisher(Path::new(EXECUTABLE), &prepare);
        many::serve_every_topic(Path::new(EXECUTABLE), &prepare, 128);
    }
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn a_slow_subscriber_loses_only_what_is_best_effort() {
    let _alone = alone();
    let folder = tempfile::tempdir().unwrap();
    for system in systems() {
        for reliability in [Reliability::BestEffort, Reliability::Reliable] {
            let prepare = Prepare { reliability, ..within(&folder, at_rate(&system)) };
            many::face_a_slow_subscriber(Path::new(EXECUTABLE), &prepare);
        }
    }
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn killed_roles_leave_nothing() {
    let _alone = alone();
    for system in systems() {
        let folder = tempfile::tempdir().unwrap();
        let prepare = within(&folder, at_rate(&system));
        let mut many = Many::open(Path::new(EXECUTABLE), &prepare);
        many.pings[0].kill();
        many.pongs[0].kill();
        many.end_daemon();
        assert_eq!(left_behind(), NOTHING, "{system}");
    }
}

#[test]
fn a_killed_daemon_leaves_nothing() {
    let _alone = alone();
    let Some(system) = systems().pop() else { return };
    let folder = tempfile::tempdir().unwrap();
    let prepare = within(&folder, at_rate(&system));
    let mut supervisor = start_daemon(Path::new(EXECUTABLE), &prepare).expect("it has a daemon");
    supervisor.kill();
    // RouDi ends a moment after its supervisor; until then cleaning does nothing.
    await_no_roudi();
    clean();
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn a_missing_daemon_is_reported() {
    let _alone = alone();
    for system in systems() {
        let [message, remedy, _] = refused(&at_rate(&system));
        assert!(message.contains("RouDi") && remedy.contains("iox-roudi"), "{message}: {remedy}");
    }
}

#[test]
fn a_timeout_names_the_missing_role() {
    let _alone = alone();
    let Some(system) = systems().pop() else { return };
    let folder = tempfile::tempdir().unwrap();
    let prepare = within(&folder, at_rate(&system));
    let daemon = start_daemon(Path::new(EXECUTABLE), &prepare);
    for (role, absent) in [(Role::Ping, "pong0"), (Role::Pong, "ping0")] {
        let [message, remedy, _] = refused(&Prepare { role, ..prepare.clone() });
        assert_eq!(message, format!("iceoryx: timeout: {absent} did not connect"));
        assert!(remedy.contains("match_timeout_ms"), "{remedy}");
    }
    stop(daemon);
}

#[test]
fn payloads_and_depths_over_the_limit_are_refused() {
    if systems().is_empty() {
        return;
    }
    let options = |value: serde_json::Value| value.as_object().expect("a table").clone();
    let stream = at_rate(WAITSET);
    for (prepare, expected, key) in [
        (
            Prepare { publishers: 8, subscribers: 8, topics: 100, ..stream.clone() },
            "need 928 publishers of iceoryx, which allows 500",
            "",
        ),
        (
            Prepare {
                options: options(json!({ "pools": [{ "bytes": 8, "count": 9 }] })),
                ..stream
            },
            "needs chunks of 72 B",
            "pools",
        ),
    ] {
        let [message, _, found] = checked(&prepare);
        assert!(message.contains(expected), "{message}");
        assert_eq!(found, key, "{message}");
    }
}

/// The error of `check`: message, remedy and key.
fn checked(prepare: &Prepare) -> [String; 3] {
    use std::io::Write;
    let mut child = std::process::Command::new(EXECUTABLE)
        .arg("check")
        .stdin(std::process::Stdio::piped())
        .stdout(std::process::Stdio::piped())
        .stderr(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let command = Command::Prepare(Box::new(prepare.clone()));
    let line = serde_json::to_string(&command).unwrap();
    writeln!(child.stdin.take().unwrap(), "{line}").unwrap();
    let output = child.wait_with_output().unwrap();
    let answer: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    ["message", "remedy", "key"].map(|key| answer["error"][key].as_str().unwrap().to_owned())
}

fn started(prepare: &Prepare) -> Process {
    let samples = Samples::new(1);
    let (run, path) = (unique_run(), Some(samples.path()));
    // The file must exist until the driver has opened it.
    std::mem::forget(samples);
    let prepare = Prepare { run, samples: path, match_timeout_ns: 300_000_000, ..prepare.clone() };
    Process::start(Path::new(EXECUTABLE), &prepare)
}

fn refused(prepare: &Prepare) -> [String; 3] {
    let mut process = started(prepare);
    let error = process.expect_error();
    assert!(!process.expect_end().success());
    error
}

fn within(folder: &TempDir, prepare: Prepare) -> Prepare {
    Prepare { directory: folder.path().into(), ..prepare }
}

fn stop(daemon: Option<Process>) {
    let mut daemon = daemon.expect("it has a daemon");
    daemon.say(&Command::Stop);
    daemon.expect_done();
    assert!(daemon.expect_end().success());
}

fn clean() {
    let status = std::process::Command::new(EXECUTABLE).arg("clean").status().unwrap();
    assert!(status.success());
}

/// The systems that can run here.
fn systems() -> Vec<String> {
    let systems = describe(Path::new(EXECUTABLE)).systems;
    assert_eq!(systems.iter().map(|system| &system.name).collect::<Vec<_>>(), [POLL, WAITSET]);
    for system in &systems {
        assert!(system.daemon && system.loans && system.workloads.contains(&Workload::Stream));
        match &system.missing {
            Some(missing) => eprintln!("skipped: {}: {missing}", system.name),
            None => assert!(system.version.starts_with("2.0."), "{}", system.version),
        }
    }
    let here = systems.into_iter().filter(|system| system.missing.is_none());
    here.map(|system| system.name).collect()
}

/// Names of iceoryx's files in /dev/shm and /tmp of this test. Waits for a live RouDi, whose files
/// are not left behind.
fn left_behind() -> Vec<String> {
    await_no_roudi();
    // SAFETY: the call has no preconditions.
    let group = unsafe { libc::getegid() };
    let group =
        std::fs::read_to_string("/etc/group").unwrap_or_default().lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            (fields.get(2)?.parse() == Ok(group)).then(|| fields[0].to_owned())
        });
    let names = |folder: &str| {
        let entries = std::fs::read_dir(folder).unwrap().map_while(Result::ok);
        entries.map(|entry| entry.file_name().into_string().unwrap()).collect::<Vec<_>>()
    };
    let shared = names("/dev/shm").into_iter();
    let shared = shared.filter(|name| name == "iceoryx_mgmt" || Some(name) == group.as_ref());
    let temporary = names("/tmp").into_iter();
    let temporary = temporary
        .filter(|name| ["iceoryx_", "iox-", "roudi"].iter().any(|start| name.starts_with(start)));
    shared.chain(temporary).collect()
}

/// Waits for RouDi, which ends a moment after its supervisor.
fn await_no_roudi() {
    let until = Instant::now() + WATCHDOG;
    // A live RouDi holds the lock of its file.
    while File::open("/tmp/iox-unique-roudi.lock").is_ok_and(|file| file.try_lock().is_err()) {
        assert!(Instant::now() < until, "a RouDi goes on running");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// One test at a time, each on its own host with its own RouDi.
fn alone() -> own_host::Turn {
    let turn = own_host::alone();
    await_no_roudi();
    turn
}

const NOTHING: Vec<String> = Vec::new();
