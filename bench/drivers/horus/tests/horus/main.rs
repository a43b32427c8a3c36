//! HORUS between processes of the real executable, and what they leave behind: nothing, even when they are
//! killed. Says so and skips what needs HORUS where it is not built in; what the driver says then is tested
//! too, and so is the removal, of a fake that leaves what HORUS leaves.

#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use myelin_bench_kit::protocol::{Prepare, Role, Topology};
use own_host::alone;
use support::many_to_many::{a_best_effort_publisher_goes_on, every_message_arrives};
use support::streams::{across, at_rate, frames};
use support::{Pair, Process, Samples, describe, prepare};

const SYSTEM: &str = "horus.shm";

#[test]
fn the_system_is_described_in_any_case() {
    let systems = describe(executable()).systems;
    assert_eq!(systems.iter().map(|system| &*system.name).collect::<Vec<_>>(), [SYSTEM]);
    let system = &systems[0];
    assert_eq!(system.topology, Topology::TwoProcesses);
    assert_eq!(system.version.is_empty(), system.missing.is_some(), "{system:?}");
    if let Some(missing) = &system.missing {
        assert!(missing.contains("HORUS_DIR") && missing.contains("README"), "{missing}");
        let [message, ..] = alone_in(Role::Ping, 64).expect_error();
        assert_eq!(&message, missing);
    }
}

#[test]
fn every_payload_comes_back_as_sent() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    for payload_bytes in [0, 5, 64, 65_536, 1 << 20] {
        exchange(payload_bytes, 200);
        assert_eq!(left_behind(), NOTHING, "{payload_bytes} B");
    }
}

#[test]
fn streams_and_frames_arrive_as_sent() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    for payload_bytes in [0, 64, 70_000] {
        across(executable(), &Prepare { payload_bytes, ..at_rate(SYSTEM) });
    }
    across(executable(), &frames(SYSTEM));
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn several_subscribers_are_all_heard() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    for subscribers in [2, 5] {
        // As deep as the stream is long, so that a busy machine loses nothing either.
        let stream = Prepare { messages: 100, depth: 128, subscribers, ..at_rate(SYSTEM) };
        every_message_arrives(executable(), &stream);
    }
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn a_publisher_waits_for_nobody() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    let flood = Prepare { rate_hz: Some(100_000.0), messages: 3000, depth: 4, ..at_rate(SYSTEM) };
    a_best_effort_publisher_goes_on(executable(), &flood);
}

#[test]
fn nothing_is_left_when_the_lab_dies_after_a_role_was_killed() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    let mut pair = endless();
    pair.ping.kill();
    pair.pong.hang_up();
    pair.pong.expect_end();
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn cleaning_removes_what_two_killed_roles_leave_and_spares_the_living() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    let mut dead = endless();
    dead.ping.kill();
    dead.pong.kill();
    assert_ne!(left_behind(), NOTHING, "HORUS's memory has names");
    let mut living = endless();
    clean();
    assert_eq!(left_behind().len(), 1, "of the living");
    living.ping_samples.await_first();
    for role in [&mut living.ping, &mut living.pong] {
        role.hang_up();
        role.expect_end();
    }
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn cleaning_removes_the_folders_of_which_nobody_lives() {
    let _alone = alone();
    let runs = ["dead", "living"].map(|run| format!("/dev/shm/horus_myelin_{run}"));
    for run in &runs {
        fs::create_dir_all(format!("{run}/topics")).unwrap();
        fs::write(format!("{run}/topics/to-pong"), [0; 640]).unwrap();
    }
    let [dead, living] = runs.map(|run| File::create(format!("{run}/alive")).unwrap());
    drop(dead);
    living.lock_shared().unwrap();
    let other = "/dev/shm/horus_default";
    fs::create_dir(other).unwrap();
    clean();
    assert_eq!(left_behind(), ["horus_myelin_living"]);
    assert!(Path::new("/dev/shm/horus_myelin_living/topics/to-pong").exists());
    assert!(Path::new(other).exists(), "somebody's own");
    drop(living);
    clean();
    assert_eq!(left_behind(), NOTHING);
    fs::remove_dir(other).unwrap();
}

#[test]
fn a_side_that_stays_alone_says_who_did_not_come() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    for (role, absent) in [(Role::Ping, "pong"), (Role::Pong, "ping")] {
        let mut process = alone_in(role, 64);
        let [message, remedy, _] = process.expect_error();
        assert_eq!(message, format!("HORUS: 0 of 1 {absent} found within 50ms"));
        assert!(remedy.contains("log"), "{remedy}");
        assert!(!process.expect_end().success());
    }
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn a_size_without_a_type_is_refused() {
    if !is_built_in() {
        return;
    }
    let [message, remedy, _] = alone_in(Role::Ping, 65).expect_error();
    assert!(message.contains("65 B"), "{message}");
    assert!(remedy.contains("use one of 0, 5, 8,"), "{remedy}");
}

fn exchange(payload_bytes: u64, messages: u64) {
    let what = format!("{payload_bytes} B");
    let prepare = Prepare { payload_bytes, messages, ..prepare(SYSTEM, Role::Ping) };
    let mut pair = Pair::open(executable(), &prepare, messages);
    let (ping, pong) = pair.finish();
    assert_eq!((ping.sent, ping.received, ping.lost), (messages, messages, 0), "{what}");
    assert_eq!((ping.duplicates, ping.out_of_order, ping.corrupt), (0, 0, 0), "{what}");
    assert_eq!((pong.received, pong.corrupt), (messages, 0), "{what}");
}

/// Ping and pong exchanging messages until somebody ends them.
fn endless() -> Pair {
    let prepare = Prepare {
        messages: 0,
        record_every: u64::MAX,
        reply_timeout_ns: 200_000_000,
        ..prepare(SYSTEM, Role::Ping)
    };
    let mut pair = Pair::open(executable(), &prepare, 2);
    pair.pong.go();
    pair.ping.go();
    pair.ping_samples.await_first();
    pair
}

fn alone_in(role: Role, payload_bytes: u64) -> Process {
    let samples = Samples::new(1);
    let prepare = Prepare {
        payload_bytes,
        samples: Some(samples.path()),
        match_timeout_ns: 50_000_000,
        ..prepare(SYSTEM, role)
    };
    Process::start(executable(), &prepare)
}

fn clean() {
    let status = Command::new(executable()).arg("clean").status().unwrap();
    assert!(status.success());
}

/// Folders of runs.
fn left_behind() -> Vec<String> {
    let names = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| name.starts_with("horus_myelin_")).collect()
}

fn is_built_in() -> bool {
    let is = describe(executable()).systems[0].missing.is_none();
    if !is {
        println!("skipped: HORUS is not built in");
    }
    is
}

fn executable() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_myelin-driver-horus"))
}

const NOTHING: [String; 0] = [];
