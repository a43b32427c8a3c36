//! Both systems between two processes of the real executable. They leave nothing behind, even if
//! they are killed.

use std::path::Path;

use crate::own_host::alone;
use crate::support;
use crate::support::streams::{across, at_rate, frames, one_way_systems, replays_arrive};
use crate::support::{Pair, Process, Samples, clean, prepare};
use myelin_bench_kit::protocol::{Prepare, Role, Topology};
use myelin_bench_kit::samples::Record;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-iceoryx2");

#[test]
fn every_payload_comes_back_as_sent() {
    let _alone = alone();
    for system in systems() {
        for payload_bytes in [0, 5, 64, 65_536, 1 << 20] {
            exchange(&system, payload_bytes, 200);
            assert_eq!(left_behind(), NOTHING, "{system} with {payload_bytes} B");
        }
    }
}

#[test]
fn recordings_arrive_as_sent() {
    let _alone = alone();
    replays_arrive(Path::new(EXECUTABLE));
}

#[test]
fn streams_and_frames_arrive_as_sent() {
    let _alone = alone();
    let systems = one_way_systems(Path::new(EXECUTABLE), Topology::TwoProcesses);
    for name in systems.into_iter().map(|system| system.name) {
        for payload_bytes in [0, 64, 70_000] {
            let ran = across(Path::new(EXECUTABLE), &Prepare { payload_bytes, ..at_rate(&name) });
            // A polling subscriber receives at once, without a wait.
            let waits_apart = name == "iceoryx2.event";
            assert!(ran.pongs.iter().all(|pong| (pong.wake_ns > 0) == waits_apart), "{name}");
        }
        let ran = across(Path::new(EXECUTABLE), &frames(&name));
        assert!(ran.pings.iter().all(|ping| ping.loan_ns > 0), "{name}: loans");
        assert_eq!(left_behind(), NOTHING, "{name}");
    }
}

fn exchange(system: &str, payload_bytes: u64, messages: u64) {
    let what = format!("{system} with {payload_bytes} B");
    let prepare = Prepare { payload_bytes, messages, ..prepare(system, Role::Ping) };
    let pair = Pair::exchange(Path::new(EXECUTABLE), &prepare);
    let (pings, pongs) = (pair.ping_samples.records(), pair.pong_samples.records());
    assert_eq!((pings.len() as u64, pongs.len() as u64), (messages, messages), "{what}");
    for (ping, pong) in pings.iter().zip(&pongs) {
        assert!(is_plausible(ping, pong), "{what}: {ping:?} {pong:?}");
    }
}

/// Times are in the order in which the events must have happened, across both processes. A wake-up
/// may come from the notification of an earlier sample that was taken without it.
fn is_plausible(ping: &Record, pong: &Record) -> bool {
    let there_and_back = [ping.publish_entry_ns, pong.take_return_ns, ping.take_return_ns];
    there_and_back.is_sorted()
        && [ping, pong].iter().all(|it| it.wake_ns <= it.take_return_ns)
        && ping.publish_entry_ns <= ping.publish_return_ns
        && ping.flags | pong.flags | ping.duplicates == 0
}

#[test]
fn a_slow_rate_survives_the_blocking_wait() {
    let _alone = alone();
    let slow = Prepare { rate_hz: Some(50.0), messages: 20, ..prepare(EVENT, Role::Ping) };
    let mut pair = Pair::open(Path::new(EXECUTABLE), &slow, 20);
    let (ping, _) = pair.finish();
    assert_eq!((ping.sent, ping.received, ping.lost), (20, 20, 0));
}

#[test]
fn nothing_is_left_when_the_lab_dies_after_ping_was_killed() {
    let _alone = alone();
    for system in systems() {
        let mut pair = endless(&system);
        pair.ping.kill();
        pair.pong.hang_up();
        assert!(!pair.pong.expect_end().success(), "{system}: ended by its lab, not by a stop");
        assert_eq!(left_behind(), NOTHING, "{system}");
    }
}

#[test]
fn nothing_is_left_when_pong_was_killed_and_ping_notices() {
    let _alone = alone();
    for system in systems() {
        let mut pair = endless(&system);
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
    let _alone = alone();
    for system in systems() {
        let mut dead = endless(&system);
        dead.ping.kill();
        dead.pong.kill();
        assert_ne!(left_behind(), NOTHING, "{system}: iceoryx2's memory has names");
        let mut living = endless(&system);
        clean(Path::new(EXECUTABLE));
        let of_the_living = left_behind();
        assert_ne!(of_the_living, NOTHING, "{system}: the living run has lost its files");
        living.ping_samples.await_first();
        living.hang_up();
        assert_eq!(left_behind(), NOTHING, "{system}");
    }
}

#[test]
fn the_next_run_cleans_up_after_killed_roles() {
    let _alone = alone();
    let mut dead = endless(EVENT);
    dead.ping.kill();
    dead.pong.kill();
    exchange(POLL, 64, 10);
    assert_eq!(left_behind(), NOTHING);
}

fn endless(system: &str) -> Pair {
    let prepare = Prepare { payload_bytes: 100_000, ..prepare(system, Role::Ping) };
    Pair::endless(Path::new(EXECUTABLE), &prepare)
}

#[test]
fn a_timeout_names_the_missing_role() {
    let _alone = alone();
    for (role, absent) in [(Role::Ping, "pong"), (Role::Pong, "ping")] {
        let (mut process, _samples) = alone_in(role, EVENT, 64);
        let [message, remedy, _] = process.expect_error();
        assert_eq!(message, format!("{absent} did not connect within 0.05 s"));
        assert!(!remedy.is_empty());
        assert!(!process.expect_end().success());
    }
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn two_sides_of_different_systems_do_not_match() {
    let _alone = alone();
    let run = support::unique_run();
    let sides = [(Role::Ping, POLL), (Role::Pong, EVENT)].map(|(role, system)| {
        let samples = Samples::new(1);
        let prepare = Prepare {
            run: run.clone(),
            samples: Some(samples.path()),
            match_timeout_ns: 200_000_000,
            ..prepare(system, role)
        };
        (Process::start(Path::new(EXECUTABLE), &prepare), samples)
    });
    for ((mut process, _samples), absent) in sides.into_iter().zip(["pong", "ping"]) {
        let [message, ..] = process.expect_error();
        assert!(message.starts_with(&format!("{absent} did not connect")), "{message}");
        process.expect_end();
    }
    assert_eq!(left_behind(), NOTHING);
}

fn alone_in(role: Role, system: &str, payload_bytes: u64) -> (Process, Samples) {
    let prepare = Prepare { payload_bytes, ..prepare(system, role) };
    Process::alone(Path::new(EXECUTABLE), &prepare)
}

#[test]
fn the_systems_name_the_version_of_the_middleware() {
    let systems = support::describe(Path::new(EXECUTABLE)).systems;
    assert!(systems.iter().all(|system| system.loans && !system.daemon && !system.floor));
    assert!(systems.iter().all(|system| system.missing.is_none()));
    assert!(systems.iter().all(|system| system.version.split('.').count() == 3));
}

fn systems() -> Vec<String> {
    let systems = support::describe(Path::new(EXECUTABLE)).systems;
    let names: Vec<String> = systems.into_iter().map(|system| system.name).collect();
    assert_eq!(names, [POLL, EVENT]);
    names
}

/// Our files in the folders that iceoryx2 uses.
fn left_behind() -> Vec<String> {
    let names = |folder: &str| {
        let entries = std::fs::read_dir(folder).into_iter().flatten().map_while(Result::ok);
        entries.map(|entry| entry.path().display().to_string()).collect::<Vec<_>>()
    };
    let ours = |path: &String| path.contains("/myelin-iceoryx2-") || path.contains("/mlx2-");
    ["/tmp", "/dev/shm"].into_iter().flat_map(names).filter(ours).collect()
}

const POLL: &str = "iceoryx2.poll";
const EVENT: &str = "iceoryx2.event";
const NOTHING: Vec<String> = Vec::new();
