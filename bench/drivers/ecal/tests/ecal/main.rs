//! eCAL between processes of the real executable, and what they leave behind: nothing, even when they are
//! killed. Says so and skips what needs eCAL where it is not built in; what the driver says then is tested
//! too, and so is the removal, of a fake that leaves what eCAL leaves.

#[path = "../../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../../kit/tests/support/mod.rs"]
mod support;

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use myelin_bench_kit::protocol::{Prepare, Reliability, Role, Topology};
use own_host::alone;
use support::many_to_many::{
    a_best_effort_publisher_goes_on, a_reliable_publisher_waits, every_message_arrives,
};
use support::streams::{across, at_rate, frames};
use support::{Pair, Process, Samples, describe, prepare};

const SYSTEMS: [&str; 2] = ["ecal.shm", "ecal.shm-zero-copy"];

#[test]
fn both_systems_are_described_in_any_case() {
    let systems = describe(executable()).systems;
    assert_eq!(systems.iter().map(|system| &*system.name).collect::<Vec<_>>(), SYSTEMS);
    for system in systems {
        assert_eq!(system.topology, Topology::TwoProcesses);
        assert_eq!(system.version.is_empty(), system.missing.is_some(), "{system:?}");
        if let Some(missing) = &system.missing {
            assert!(missing.contains("ECAL_DIR") && missing.contains("README"), "{missing}");
            let [message, ..] = alone_in(Role::Ping, &system.name).expect_error();
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
            exchange(system, payload_bytes, 200);
            assert_eq!(left_behind(), NOTHING, "{system}, {payload_bytes} B");
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
            // Enough that a busy machine, which loses what comes while its one buffer is read, gets some.
            let stream = Prepare { messages: 1000, ..at_rate(system) };
            across(executable(), &Prepare { payload_bytes, ..stream });
        }
        across(executable(), &frames(system));
        assert_eq!(left_behind(), NOTHING);
    }
}

#[test]
fn several_publishers_subscribers_and_topics_are_all_heard_where_publishing_waits() {
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
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn a_best_effort_publisher_goes_on_with_a_subscriber_that_stands_still() {
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
    assert_ne!(left_behind(), NOTHING, "eCAL's memory has names");
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
    let runs = ["dead", "living"].map(|run| format!("/dev/shm/myelin-ecal-{run}"));
    for run in &runs {
        fs::create_dir_all(run).unwrap();
        fs::write(format!("{run}/ecal_12ab"), [0; 640]).unwrap();
    }
    let [dead, living] = runs.map(|run| File::create(format!("{run}/alive")).unwrap());
    drop(dead);
    living.lock_shared().unwrap();
    let other = "/dev/shm/ecal_34cd";
    fs::write(other, [0; 640]).unwrap();
    clean();
    assert_eq!(left_behind(), ["myelin-ecal-living"]);
    assert!(Path::new("/dev/shm/myelin-ecal-living/ecal_12ab").exists());
    assert!(Path::new(other).exists(), "somebody's own");
    drop(living);
    clean();
    assert_eq!(left_behind(), NOTHING);
    fs::remove_file(other).unwrap();
}

#[test]
fn a_side_that_stays_alone_says_who_did_not_come() {
    if !is_built_in() {
        return;
    }
    let _alone = alone();
    for (role, absent) in [(Role::Ping, "pong"), (Role::Pong, "ping")] {
        let mut process = alone_in(role, SYSTEMS[0]);
        let [message, remedy, _] = process.expect_error();
        assert_eq!(message, format!("eCAL: {absent} did not come"));
        assert!(remedy.contains("log"), "{remedy}");
        assert!(!process.expect_end().success());
    }
    assert_eq!(left_behind(), NOTHING);
}

fn exchange(system: &str, payload_bytes: u64, messages: u64) {
    let what = format!("{system}, {payload_bytes} B");
    let prepare = Prepare { payload_bytes, messages, ..prepare(system, Role::Ping) };
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
        ..prepare(SYSTEMS[0], Role::Ping)
    };
    let mut pair = Pair::open(executable(), &prepare, 2);
    pair.pong.go();
    pair.ping.go();
    pair.ping_samples.await_first();
    pair
}

fn alone_in(role: Role, system: &str) -> Process {
    let samples = Samples::new(1);
    let prepare = Prepare {
        samples: Some(samples.path()),
        match_timeout_ns: 50_000_000,
        ..prepare(system, role)
    };
    Process::start(executable(), &prepare)
}

fn clean() {
    let status = Command::new(executable()).arg("clean").status().unwrap();
    assert!(status.success());
}

/// Of this thread's network, on every interface, in and out.
fn packets() -> String {
    fs::read_to_string("/proc/thread-self/net/dev").unwrap()
}

/// Folders of runs.
fn left_behind() -> Vec<String> {
    let names = fs::read_dir("/dev/shm").unwrap().map(|entry| entry.unwrap().file_name());
    let names = names.filter_map(|name| name.into_string().ok());
    names.filter(|name| name.starts_with("myelin-ecal-")).collect()
}

fn is_built_in() -> bool {
    let is = describe(executable()).systems[0].missing.is_none();
    if !is {
        println!("skipped: eCAL is not built in");
    }
    is
}

fn executable() -> &'static Path {
    Path::new(env!("CARGO_BIN_EXE_myelin-driver-ecal"))
}

const NOTHING: [String; 0] = [];
