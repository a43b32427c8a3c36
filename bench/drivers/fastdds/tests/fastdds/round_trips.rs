//! Ping and pong of every system through the real executable and the real middleware, and what is
//! left on the host afterwards, also when they were killed. Skips, with a line that says so, what
//! is not installed.

use std::path::Path;
use std::process::Command;

use crate::support;
use crate::support::{Pair, Process, Samples, describe, prepare};
use crate::{library_version, own_host};
use myelin_bench_kit::protocol::{Prepare, Reliability, Role, Wait, Workload};
use tempfile::TempDir;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-fastdds");

#[test]
fn every_payload_comes_back_as_sent() {
    let _host = own_host::enter();
    for system in systems() {
        for (payload_bytes, messages) in [(0, 100), (5, 100), (1003, 100), (65_536, 50)] {
            exchange(&system, payload_bytes, messages);
        }
        exchange(&system, 1 << 20, 20);
        exchange(&system, 10 << 20, 3);
        assert_eq!(left_behind(), NOTHING, "{system}");
    }
}

fn exchange(system: &str, payload_bytes: u64, messages: u64) {
    let what = format!("{system} with {payload_bytes} B");
    let folder = tempfile::tempdir().unwrap();
    let directory = folder.path().into();
    let prepare = Prepare {
        payload_bytes,
        messages,
        directory,
        domain: DOMAIN,
        warmup_messages: 2,
        match_timeout_ns: MATCH_TIMEOUT_NS,
        ..prepare(system, Role::Ping)
    };
    let pair = Pair::exchange(Path::new(EXECUTABLE), &prepare);
    let (pings, pongs) = (pair.ping_samples.records(), pair.pong_samples.records());
    assert_eq!((pings.len() as u64, pongs.len() as u64), (messages, messages), "{what}");
    for (ping, pong) in pings.iter().zip(&pongs) {
        let there_and_back =
            [ping.publish_entry_ns, pong.take_return_ns, ping.wake_ns, ping.take_return_ns];
        assert!(there_and_back.is_sorted(), "{what}: {ping:?} {pong:?}");
        assert_eq!(ping.loan_ns > 0, system == DATA_SHARING, "{what}: {ping:?}");
    }
    let xml = std::fs::read_to_string(folder.path().join("fastdds.xml")).unwrap();
    assert_eq!(xml.contains("<type>UDPv4</type>"), system == UDP, "{what}");
    assert_eq!(xml.contains("<kind>ON</kind>"), system == DATA_SHARING, "{what}");
}

#[test]
fn a_missing_other_side_is_a_timeout() {
    let _host = own_host::enter();
    for system in systems() {
        for role in [Role::Ping, Role::Pong] {
            let (process, _needed) = lone(role, &system, |_| {});
            let [message, remedy, _] = process.expect_error();
            assert!(message.contains("no other side in either direction"), "{message}");
            assert!(remedy.contains("log"), "{remedy}");
        }
    }
    assert_eq!(left_behind(), NOTHING);
}

#[test]
fn sides_of_different_systems_do_not_match() {
    let _host = own_host::enter();
    if systems().is_empty() {
        return;
    }
    let run = support::unique_run();
    let sides = [(Role::Ping, SHARED_MEMORY), (Role::Pong, UDP)];
    let sides = sides.map(|(role, system)| lone(role, system, |prepare| prepare.run = run.clone()));
    for (process, _) in &sides {
        let [message, ..] = process.expect_error();
        assert!(message.contains("no other side"), "{message}");
    }
}

#[test]
fn impossible_settings_are_refused() {
    let _host = own_host::enter();
    let refused = |change: &dyn Fn(&mut Prepare)| {
        let (process, _needed) = lone(Role::Ping, DATA_SHARING, change);
        process.expect_error()
    };
    let [message, remedy, _] = refused(&|prepare| {
        prepare.workload = Workload::Stream;
        (prepare.depth, prepare.payload_bytes) = (100_000, 1 << 20);
        prepare.rate_hz = Some(10.0);
    });
    assert!(message.contains("depth 100000"), "{message}");
    assert!(remedy.contains("workload.depth"), "{remedy}");
}

#[test]
fn cleaning_after_killed_roles_keeps_files_of_live_ones() {
    let _host = own_host::enter();
    for system in systems() {
        let mut dead = endless(&system);
        dead.ping.kill();
        dead.pong.kill();
        let of_the_dead = left_behind();
        assert_eq!(of_the_dead.is_empty(), system == UDP, "{system}: {of_the_dead:?}");
        let mut living = endless(&system);
        clean();
        let of_the_living = left_behind();
        assert_eq!(of_the_living.is_empty(), system == UDP, "{system}: {of_the_living:?}");
        // It still works: more is exchanged, and each side ends in order.
        let before = living.ping_samples.records().len();
        let give_up = std::time::Instant::now() + support::WATCHDOG;
        while living.ping_samples.records().len() <= before {
            assert!(std::time::Instant::now() < give_up, "{system}: no more answers");
            std::thread::sleep(std::time::Duration::from_millis(1));
        }
        living.ping.hang_up();
        living.pong.hang_up();
        living.ping.expect_end();
        living.pong.expect_end();
        clean();
        assert_eq!(left_behind(), NOTHING, "{system}");
    }
}

/// Ping and pong exchanging messages until somebody ends them.
fn endless(system: &str) -> Pair {
    let folder = tempfile::tempdir().unwrap();
    let prepare = Prepare {
        messages: 0,
        rate_hz: Some(500.0),
        payload_bytes: 100_000,
        domain: DOMAIN,
        directory: folder.path().into(),
        match_timeout_ns: MATCH_TIMEOUT_NS,
        ..prepare(system, Role::Ping)
    };
    let mut pair = Pair::open(Path::new(EXECUTABLE), &prepare, 1_000_000);
    pair.pong.go();
    pair.ping.go();
    pair.ping_samples.await_first();
    pair
}

#[test]
fn the_systems_say_what_they_are() {
    let systems = describe(Path::new(EXECUTABLE)).systems;
    let names: Vec<&str> = systems.iter().map(|system| system.name.as_str()).collect();
    assert_eq!(names, [UDP, SHARED_MEMORY, DATA_SHARING]);
    for system in &systems {
        assert!(system.wait == Wait::Block && !system.daemon && !system.floor);
        assert_eq!(system.loans, system.name == DATA_SHARING);
        assert_eq!(
            system.streams.reliability,
            [Reliability::BestEffort, Reliability::Reliable],
            "{}",
            system.name
        );
        match &system.missing {
            None => assert!(system.version.starts_with(['2', '3']), "{}", system.version),
            Some(missing) => assert!(
                missing.starts_with("not installed: ") || missing.starts_with("needs Fast DDS"),
                "{missing}"
            ),
        }
    }
}

#[test]
fn the_version_is_that_of_the_library_that_runs() {
    let executable = Path::new(EXECUTABLE);
    let name = match describe(executable).systems[0].version.starts_with('2') {
        true => "libfastrtps.so",
        false => "libfastdds.so",
    };
    library_version::is_that_of_the_library_that_runs(executable, name);
}

/// A role without its counterpart, and what it needs while it lives.
fn lone(role: Role, system: &str, change: impl Fn(&mut Prepare)) -> (Process, (Samples, TempDir)) {
    let samples = Samples::new(1);
    let folder = tempfile::tempdir().unwrap();
    let mut prepare = Prepare {
        run: support::unique_run(),
        samples: Some(samples.path()),
        directory: folder.path().into(),
        domain: DOMAIN,
        match_timeout_ns: 500_000_000,
        ..prepare(system, role)
    };
    change(&mut prepare);
    let process = Process::start(Path::new(EXECUTABLE), &prepare);
    (process, (samples, folder))
}

/// The systems that can run here; says so if there are none.
fn systems() -> Vec<String> {
    let systems = describe(Path::new(EXECUTABLE)).systems;
    let missing = systems.iter().find_map(|system| system.missing.clone());
    if let Some(missing) = missing {
        eprintln!("skipped: Fast DDS: {missing}");
        return Vec::new();
    }
    systems.into_iter().map(|system| system.name).collect()
}

fn clean() {
    assert!(Command::new(EXECUTABLE).arg("clean").status().unwrap().success());
}

/// What Fast DDS has in this test's /dev/shm.
fn left_behind() -> Vec<String> {
    let entries = std::fs::read_dir("/dev/shm").unwrap().map_while(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    let ours = ["fastrtps_", "sem.fastrtps_", "fastdds_", "sem.fastdds_", "fast_datasharing_"];
    names.filter(|name| ours.iter().any(|prefix| name.starts_with(prefix))).collect()
}

const UDP: &str = "fastdds.udp";
const SHARED_MEMORY: &str = "fastdds.shm";
const DATA_SHARING: &str = "fastdds.datasharing";
const NOTHING: Vec<String> = Vec::new();
/// Apart from the domains of other tests.
const DOMAIN: u32 = 91;
/// Generous: a busy machine may need several rounds of discovery.
const MATCH_TIMEOUT_NS: u64 = 50_000_000_000;
