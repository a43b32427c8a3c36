//! Every system of this driver, between two processes of the real executable.

use std::path::Path;

use crate::own_host::alone;
use crate::support;
use crate::support::{Pair, Process, Samples, prepare};
use myelin_bench_kit::protocol::{Prepare, Role, System, Topology, Transport};
use myelin_bench_kit::samples::Record;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-os");

#[test]
fn every_payload_comes_back_as_sent() {
    let _alone = alone();
    for system in systems() {
        for payload_bytes in [0, 5, 48, 64, 65_000, 65_536, 1 << 20] {
            exchange(&system, payload_bytes, 200);
        }
    }
}

#[test]
fn sixteen_mebibytes_come_back_as_sent() {
    let _alone = alone();
    for system in systems() {
        exchange(&system, 16 << 20, 3);
    }
}

fn exchange(system: &System, payload_bytes: u64, messages: u64) {
    let what = format!("{} with {payload_bytes} B", system.name);
    let prepare = Prepare { payload_bytes, messages, ..prepare(&system.name, Role::Ping) };
    let pair = Pair::exchange(Path::new(EXECUTABLE), &prepare);
    let (pings, pongs) = (pair.ping_samples.records(), pair.pong_samples.records());
    assert_eq!((pings.len() as u64, pongs.len() as u64), (messages, messages), "{what}");
    let stamps_wake = system.transport == Transport::SharedMemory;
    for (index, (ping, pong)) in pings.iter().zip(&pongs).enumerate() {
        assert_eq!((ping.id, pong.id), (index as u64, index as u64), "{what}");
        assert!(is_plausible(ping, pong), "{what}: {ping:?} {pong:?}");
        assert_eq!(ping.wake_ns != 0, stamps_wake, "{what}");
        assert_eq!(pong.wake_ns != 0, stamps_wake, "{what}");
    }
}

/// Times are in the order in which the events must have happened, across both processes.
fn is_plausible(ping: &Record, pong: &Record) -> bool {
    let wake_of = |record: &Record| match record.wake_ns {
        0 => record.take_return_ns,
        wake_ns => wake_ns,
    };
    let ping_order =
        [ping.publish_entry_ns, ping.publish_return_ns, wake_of(ping), ping.take_return_ns];
    let there_and_back =
        [ping.publish_entry_ns, wake_of(pong), pong.take_return_ns, ping.take_return_ns];
    ping.intended_ns == ping.publish_entry_ns
        && ping_order.is_sorted()
        && there_and_back.is_sorted()
        && pong.take_return_ns <= pong.publish_return_ns
        && ping.flags | pong.flags | ping.duplicates == 0
}

#[test]
fn pong_ends_when_the_lab_ends_after_a_killed_ping() {
    let _alone = alone();
    for system in systems() {
        let mut pair = endless(&system.name);
        pair.ping.kill();
        pair.pong.hang_up();
        let status = pair.pong.expect_end();
        assert!(!status.success(), "{}: ended by its lab, not by a stop", system.name);
        assert_eq!(shared_memory_left(), Vec::<String>::new(), "{}", system.name);
    }
}

#[test]
fn ping_says_that_pong_was_killed() {
    let _alone = alone();
    for system in systems() {
        let mut pair = endless(&system.name);
        pair.pong.kill();
        let [message, remedy, _] = pair.ping.expect_error();
        assert_eq!(message, "pong closed the connection", "{}", system.name);
        assert!(remedy.contains("pong's log"), "{}", system.name);
        assert!(!pair.ping.expect_end().success());
        assert_eq!(shared_memory_left(), Vec::<String>::new(), "{}", system.name);
    }
}

fn endless(system: &str) -> Pair {
    let prepare = Prepare { payload_bytes: 100_000, ..prepare(system, Role::Ping) };
    Pair::endless(Path::new(EXECUTABLE), &prepare)
}

#[test]
fn a_timeout_names_the_missing_role() {
    for (role, absent) in [(Role::Ping, "pong"), (Role::Pong, "ping")] {
        let (mut process, _samples) = alone_in(role, "os.pipe", 64);
        let [message, remedy, _] = process.expect_error();
        assert_eq!(message, format!("{absent} did not connect within 0.05 s"));
        assert!(!remedy.is_empty());
        assert!(!process.expect_end().success());
    }
}

fn alone_in(role: Role, system: &str, payload_bytes: u64) -> (Process, Samples) {
    let prepare = Prepare { payload_bytes, ..prepare(system, role) };
    Process::alone(Path::new(EXECUTABLE), &prepare)
}

#[test]
fn two_sides_of_different_cells_do_not_match() {
    let samples = [Samples::new(1), Samples::new(1)];
    let run = support::unique_run();
    let start = |role, system: &str, samples: &Samples| {
        let (run, samples) = (run.clone(), Some(samples.path()));
        let prepare = Prepare { run, samples, ..prepare(system, role) };
        Process::start(Path::new(EXECUTABLE), &prepare)
    };
    let ping = start(Role::Ping, "os.udp", &samples[0]);
    let pong = start(Role::Pong, "os.tcp", &samples[1]);
    let [message, ..] = ping.expect_error();
    assert!(message.contains("os.udp") && message.contains("os.tcp"), "{message}");
    let [message, ..] = pong.expect_error();
    assert!(message.starts_with("ping did not become ready"), "{message}");
}

fn systems() -> Vec<System> {
    let description = support::describe(Path::new(EXECUTABLE));
    assert_eq!(description.systems.len(), 10);
    assert!(description.systems.iter().all(|system| system.floor && system.missing.is_none()));
    let of_two = |system: &System| system.topology == Topology::TwoProcesses;
    description.systems.into_iter().filter(of_two).collect()
}

/// Files in this test's folder of POSIX shared memory that could belong to a run.
fn shared_memory_left() -> Vec<String> {
    let Ok(folder) = std::fs::read_dir("/dev/shm") else { return Vec::new() };
    let names = folder.map_while(Result::ok).map(|entry| entry.file_name());
    names.filter_map(|name| name.into_string().ok()).filter(|name| name.contains("os")).collect()
}
