//! eCAL between processes of the real executable. They leave nothing behind, even if they are
//! killed. Tests that need eCAL are skipped, with a message, if it is not built in; then the
//! driver's own message is tested. The removal is also tested with a fake that leaves what eCAL
//! leaves.

#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;

use std::fs;
use std::path::Path;

use myelin_bench_kit::protocol::{Prepare, Reliability, Role, Topology};
use own_host::alone;
use support::many_to_many::{
    a_best_effort_publisher_goes_on, a_reliable_publisher_waits, every_message_arrives,
};
use support::run_folder::RunFolders;
use support::streams::{across, at_rate, frames};
use support::{Pair, Process, Samples, describe, prepare};

const SYSTEMS: [&str; 2] = ["ecal.shm", "ecal.shm-zero-copy"];
const FOLDERS: RunFolders = RunFolders { executable: EXECUTABLE, prefix: "myelin-ecal-" };

#[test]
fn both_systems_are_described_in_any_case() {
    let systems = describe(executable()).systems;
    assert_eq!(systems.iter().map(|system| &*system.name).collect::<Vec<_>>(), SYSTEMS);
    for system in systems {
        assert_eq!(system.topology, Topology::TwoProcesses);
        assert_eq!(system.version.is_empty(), system.missing.is_some(), "{system:?}");
        if let Some(missing) = &system.missing {
            assert!(missing.contains("ECAL_DIR") && missing.contains("README"), "{missing}");
            let [message, ..] = alone_in(Role::Ping, &system.name).0.expect_error();
            assert_eq!(&message, missing);
        }
    }
}

#[test]
fn every_payload_comes_back_as_sent_and_no_socket_is_opened() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    let before = packets();
    for system in SYSTEMS {
        for payload_bytes in [0, 64, 1 << 20] {
            let prepare = Prepare { payload_bytes, messages: 200, ..prepare(system, Role::Ping) };
            Pair::exchange(executable(), &prepare);
            FOLDERS.expect_none();
        }
    }
    assert_eq!(packets(), before);
}

#[test]
fn streams_and_frames_arrive_as_sent() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    for system in SYSTEMS {
        for payload_bytes in [0, 70_000] {
            // Enough for a busy machine to receive some: messages that arrive while the single
            // buffer is read are lost.
            let stream = Prepare { messages: 1000, ..at_rate(system) };
            across(executable(), &Prepare { payload_bytes, ..stream });
        }
        across(executable(), &frames(system));
        FOLDERS.expect_none();
    }
}

#[test]
fn all_messages_of_several_publishers_and_topics_arrive_if_publishing_waits() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    let reliability = Reliability::Reliable;
    for (publishers, subscribers, topics) in [(1, 3, 1), (3, 1, 1), (2, 2, 3)] {
        let stream = Prepare { messages: 100, reliability, ..at_rate(SYSTEMS[0]) };
        let stream = Prepare { publishers, subscribers, topics, ..stream };
        every_message_arrives(executable(), &stream);
    }
    let flood = Prepare { rate_hz: Some(100_000.0), messages: 3000, ..at_rate(SYSTEMS[0]) };
    a_reliable_publisher_waits(executable(), &flood);
    FOLDERS.expect_none();
}

#[test]
fn a_best_effort_publisher_does_not_wait_for_a_stalled_subscriber() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    for system in SYSTEMS {
        let flood = Prepare { rate_hz: Some(100_000.0), messages: 3000, ..at_rate(system) };
        a_best_effort_publisher_goes_on(executable(), &flood);
    }
}

#[test]
fn nothing_is_left_when_the_lab_dies_after_a_role_was_killed() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    let prepare = prepare(SYSTEMS[0], Role::Ping);
    FOLDERS.are_gone_when_the_lab_dies_after_a_role_was_killed(&prepare);
}

#[test]
fn cleaning_removes_files_of_killed_roles_and_keeps_those_of_live_ones() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    FOLDERS.are_removed_by_cleaning_unless_a_role_lives(&prepare(SYSTEMS[0], Role::Ping));
}

#[test]
fn cleaning_removes_folders_without_a_live_process() {
    let _alone = alone();
    FOLDERS.of_a_fake_are_removed_when_nobody_lives("ecal_12ab", "ecal_34cd");
}

#[test]
fn a_timeout_names_the_missing_role() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    for (role, absent) in [(Role::Ping, "pong"), (Role::Pong, "ping")] {
        let (mut process, _samples) = alone_in(role, SYSTEMS[0]);
        let [message, remedy, _] = process.expect_error();
        assert_eq!(message, format!("eCAL: {absent} did not connect"));
        assert!(remedy.contains("log"), "{remedy}");
        assert!(!process.expect_end().success());
    }
    FOLDERS.expect_none();
}

fn alone_in(role: Role, system: &str) -> (Process, Samples) {
    Process::alone(executable(), &prepare(system, role))
}

/// Packets in this thread's network, on every interface, in and out.
fn packets() -> String {
    fs::read_to_string("/proc/thread-self/net/dev").unwrap()
}

fn is_built_in() -> bool {
    support::is_built_in(executable())
}

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-ecal");
