//! HORUS between processes of the real executable. They leave nothing behind, even if they are
//! killed. Tests that need HORUS are skipped, with a message, if it is not built in; then the
//! driver's own message is tested. The removal is also tested with a fake that leaves what HORUS
//! leaves.

#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;

use std::path::Path;

use myelin_bench_kit::protocol::{Prepare, Role, Topology};
use own_host::alone;
use support::many_to_many::{a_best_effort_publisher_goes_on, every_message_arrives};
use support::run_folder::RunFolders;
use support::streams::{across, at_rate, frames};
use support::{Pair, Process, Samples, describe, prepare};

const SYSTEM: &str = "horus.shm";
const FOLDERS: RunFolders = RunFolders { executable: EXECUTABLE, prefix: "horus_myelin_" };

#[test]
fn the_system_is_described_in_any_case() {
    let systems = describe(executable()).systems;
    assert_eq!(systems.iter().map(|system| &*system.name).collect::<Vec<_>>(), [SYSTEM]);
    let system = &systems[0];
    assert_eq!(system.topology, Topology::TwoProcesses);
    assert_eq!(system.version.is_empty(), system.missing.is_some(), "{system:?}");
    if let Some(missing) = &system.missing {
        assert!(missing.contains("HORUS_DIR") && missing.contains("README"), "{missing}");
        let [message, ..] = alone_in(Role::Ping, 64).0.expect_error();
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
        let prepare = Prepare { payload_bytes, messages: 200, ..prepare(SYSTEM, Role::Ping) };
        Pair::exchange(executable(), &prepare);
        FOLDERS.expect_none();
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
    FOLDERS.expect_none();
}

#[test]
fn messages_reach_several_subscribers() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    for subscribers in [2, 5] {
        // The depth is the length of the stream, so that a busy machine loses nothing, either.
        let stream = Prepare { messages: 100, depth: 128, subscribers, ..at_rate(SYSTEM) };
        every_message_arrives(executable(), &stream);
    }
    FOLDERS.expect_none();
}

#[test]
fn a_publisher_does_not_wait() {
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
    FOLDERS.are_gone_when_the_lab_dies_after_a_role_was_killed(&prepare(SYSTEM, Role::Ping));
}

#[test]
fn cleaning_removes_files_of_killed_roles_and_keeps_those_of_live_ones() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    FOLDERS.are_removed_by_cleaning_unless_a_role_lives(&prepare(SYSTEM, Role::Ping));
}

#[test]
fn cleaning_removes_folders_without_a_live_process() {
    let _alone = alone();
    FOLDERS.of_a_fake_are_removed_when_nobody_lives("topics/to-pong", "horus_default");
}

#[test]
fn a_timeout_names_the_missing_role() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    for (role, absent) in [(Role::Ping, "pong"), (Role::Pong, "ping")] {
        let (mut process, _samples) = alone_in(role, 64);
        let [message, remedy, _] = process.expect_error();
        assert_eq!(message, format!("HORUS: 0 of 1 {absent} found within 50ms"));
        assert!(remedy.contains("log"), "{remedy}");
        assert!(!process.expect_end().success());
    }
    FOLDERS.expect_none();
}

#[test]
fn a_size_without_a_type_is_refused() {
    if !is_built_in() {
        return;
    }
    let [message, remedy, _] = alone_in(Role::Ping, 65).0.expect_error();
    assert!(message.contains("65 B"), "{message}");
    assert!(remedy.contains("use one of 0, 5, 8,"), "{remedy}");
}

fn alone_in(role: Role, payload_bytes: u64) -> (Process, Samples) {
    Process::alone(executable(), &Prepare { payload_bytes, ..prepare(SYSTEM, role) })
}

fn is_built_in() -> bool {
    support::is_built_in(executable())
}

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-horus");
