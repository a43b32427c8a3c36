//! Round trips of both systems between two processes of the real executable. They leave nothing
//! behind, even if they are killed.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use crate::own_host;
use crate::support;
use crate::support::{Pair, Process, Samples, prepare};
use myelin_bench_kit::protocol::{Prepare, Role};
use myelin_bench_kit::samples::Record;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-zenoh");
const SYSTEMS: [&str; 2] = ["zenoh.tcp", "zenoh.shm"];

#[test]
fn every_payload_comes_back_as_sent() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    for system in SYSTEMS {
        for payload_bytes in [0, 5, 64, 32_000, 32_001, 65_536, 1 << 20] {
            exchange(&in_folder(folder.path(), system, payload_bytes, 100));
        }
        exchange(&in_folder(folder.path(), system, 10 << 20, 5));
        assert_eq!(left_behind(), NOTHING, "{system}");
    }
    for file in ["zenoh-ping.json", "zenoh-pong.json"] {
        let text = fs::read_to_string(folder.path().join(file)).unwrap();
        assert!(text.contains("unixsock-stream//tmp/"), "{file} is what was used: {text}");
    }
}

fn exchange(prepare: &Prepare) {
    let messages = prepare.messages;
    let what = format!("{} with {} B", prepare.system, prepare.payload_bytes);
    let pair = Pair::exchange(Path::new(EXECUTABLE), prepare);
    let (pings, pongs) = (pair.ping_samples.records(), pair.pong_samples.records());
    assert_eq!((pings.len() as u64, pongs.len() as u64), (messages, messages), "{what}");
    for (ping, pong) in pings.iter().zip(&pongs) {
        assert!(is_plausible(ping, pong), "{what}: {ping:?} {pong:?}");
        assert_eq!(ping.loan_ns > 0, prepare.system == "zenoh.shm", "{what}: loans");
    }
}

/// Times are in the order in which the events must have happened, across both processes.
fn is_plausible(ping: &Record, pong: &Record) -> bool {
    let there_and_back = [ping.publish_entry_ns, pong.take_return_ns, ping.take_return_ns];
    there_and_back.is_sorted()
        && ping.publish_entry_ns <= ping.publish_return_ns
        && ping.flags | pong.flags | ping.duplicates == 0
}

#[test]
fn parallel_pairs_do_not_mix() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let open =
        |system| Pair::open(Path::new(EXECUTABLE), &in_folder(folder.path(), system, 64, 50), 50);
    let mut pairs: Vec<Pair> = SYSTEMS.into_iter().chain(SYSTEMS).map(open).collect();
    for pair in &mut pairs {
        let (ping, pong) = pair.finish();
        assert_eq!((ping.received, pong.received), (50, 50));
    }
}

#[test]
fn nothing_is_left_when_the_lab_dies() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    for system in SYSTEMS {
        let mut pair = endless(folder.path(), system);
        pair.ping.hang_up();
        pair.pong.hang_up();
        assert!(!pair.ping.expect_end().success(), "{system}: ended by its lab, not by a stop");
        assert!(!pair.pong.expect_end().success(), "{system}: ended by its lab, not by a stop");
        assert_eq!(left_behind(), NOTHING, "{system}");
    }
}

#[test]
fn ping_notices_that_pong_was_killed() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    for system in SYSTEMS {
        let mut pair = endless(folder.path(), system);
        pair.pong.kill();
        let [message, remedy, _] = pair.ping.expect_error();
        assert!(message.contains("pong"), "{system}: {message}");
        assert!(remedy.contains("pong's log"), "{system}: {remedy}");
        assert!(!pair.ping.expect_end().success());
        assert_eq!(left_behind(), NOTHING, "{system}");
    }
}

#[test]
fn cleaning_removes_files_of_killed_roles_and_keeps_those_of_live_ones() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let mut dead = endless(folder.path(), "zenoh.shm");
    let mut living = endless(folder.path(), "zenoh.shm");
    dead.ping.kill();
    dead.pong.kill();
    assert_ne!(left_behind(), NOTHING, "Zenoh's memory has names");
    clean();
    assert_eq!(left_behind(), NOTHING);
    let exchanged = living.ping_samples.records().len();
    living.ping.say(&myelin_bench_kit::protocol::Command::Stop);
    let done = living.ping.expect_done();
    assert!(done.received as usize >= exchanged && done.lost == 0, "{done:?}");
}

#[test]
fn only_the_socket_of_a_dead_pong_is_removed() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    let mut lonely = alone_in(folder.path(), Role::Pong, "zenoh.shm", 64, 60_000);
    support_await(|| !sockets().is_empty());
    clean();
    assert_eq!(sockets().len(), 2, "socket and lock");
    lonely.kill();
    clean();
    assert_eq!(sockets(), NOTHING);
}

#[test]
fn a_timeout_names_the_missing_role() {
    let _host = own_host::enter();
    let folder = tempfile::tempdir().unwrap();
    for (role, absent) in [(Role::Ping, "pong"), (Role::Pong, "ping")] {
        for system in SYSTEMS {
            let mut process = alone_in(folder.path(), role, system, 64, 50);
            let [message, remedy, _] = process.expect_error();
            assert_eq!(message, format!("{absent} did not connect within 0.05 s"));
            assert!(!remedy.is_empty());
            assert!(!process.expect_end().success());
        }
    }
    clean();
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn the_systems_say_what_they_are() {
    let mut systems = support::describe(Path::new(EXECUTABLE)).systems;
    let (secure, names) = (systems.extract_if(.., |system| system.secure), ["zenoh.tls"]);
    assert_eq!(secure.map(|system| system.name).collect::<Vec<_>>(), names);
    assert_eq!(systems.iter().map(|system| system.name.as_str()).collect::<Vec<_>>(), SYSTEMS);
    assert!(systems.iter().all(|system| !system.daemon && system.missing.is_none()));
    assert!(systems.iter().all(|system| system.version.split('.').count() == 3));
    assert!(systems.iter().all(|system| system.loans == (system.name == "zenoh.shm")));
}

fn in_folder(folder: &Path, system: &str, payload_bytes: u64, messages: u64) -> Prepare {
    let directory = folder.into();
    Prepare { directory, payload_bytes, messages, ..prepare(system, Role::Ping) }
}

/// Ping and pong, exchanging messages until the test ends them.
fn endless(folder: &Path, system: &str) -> Pair {
    let prepare = Prepare {
        record_every: 1000,
        reply_timeout_ns: 500_000_000,
        ..in_folder(folder, system, 100_000, 0)
    };
    let mut pair = Pair::open(Path::new(EXECUTABLE), &prepare, 1 << 16);
    pair.pong.go();
    pair.ping.go();
    pair.ping_samples.await_first();
    pair
}

fn alone_in(folder: &Path, role: Role, system: &str, payload_bytes: u64, wait_ms: u64) -> Process {
    let samples = Samples::new(1);
    let prepare = Prepare {
        role,
        run: support::unique_run(),
        samples: Some(samples.path()),
        match_timeout_ns: wait_ms * 1_000_000,
        ..in_folder(folder, system, payload_bytes, 1)
    };
    let process = Process::start(Path::new(EXECUTABLE), &prepare);
    // The file must exist until the driver has opened it.
    std::mem::forget(samples);
    process
}

fn clean() {
    let status = Command::new(EXECUTABLE).arg("clean").status().unwrap();
    assert!(status.success());
}

fn support_await(is_so: impl Fn() -> bool) {
    let give_up = std::time::Instant::now() + support::WATCHDOG;
    while !is_so() {
        assert!(std::time::Instant::now() < give_up, "it does not come about");
        std::thread::yield_now();
    }
}

/// Our sockets, and Zenoh's memory that no process has locked.
fn left_behind() -> Vec<String> {
    let memory = names("/dev/shm").into_iter().filter(|path| path.ends_with(".zenoh"));
    let is_orphan = |path: &String| File::open(path).is_ok_and(|file| file.try_lock().is_ok());
    sockets().into_iter().chain(memory.filter(is_orphan)).collect()
}

fn sockets() -> Vec<String> {
    names("/tmp").into_iter().filter(|path| path.contains("/myelin-zenoh-")).collect()
}

fn names(folder: &str) -> Vec<String> {
    let entries = fs::read_dir(folder).into_iter().flatten().map_while(Result::ok);
    entries.map(|entry| entry.path().display().to_string()).collect()
}

const NOTHING: Vec<String> = Vec::new();
