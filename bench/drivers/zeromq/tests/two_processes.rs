//! ZeroMQ between processes of the real executable. They leave nothing behind, even if they are
//! killed. Skipped, with a message, if ZeroMQ is not installed.

#[path = "../../../kit/tests/support/many.rs"]
mod many;
#[path = "../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../kit/tests/support/mod.rs"]
mod support;

use std::path::Path;

use many::Many;
use myelin_bench_kit::protocol::{Prepare, Reliability, Role, Topology, Transport};
use support::streams::{across, at_rate, frames, one_way_systems, replays_arrive};
use support::{Pair, Process, describe, prepare};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-zeromq");
const IPC: &str = "zeromq.ipc";

#[test]
fn every_payload_comes_back_as_sent() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    for (payload_bytes, messages) in [(0, 200), (13, 200), (65_536, 200), (1 << 20, 100)] {
        exchange(payload_bytes, messages);
    }
    exchange(10 << 20, 10);
}

fn exchange(payload_bytes: u64, messages: u64) {
    let prepare = Prepare { payload_bytes, messages, ..prepare(IPC, Role::Ping) };
    Pair::exchange(Path::new(EXECUTABLE), &prepare);
}

#[test]
fn recordings_arrive_as_sent() {
    let _host = own_host::enter();
    replays_arrive(Path::new(EXECUTABLE));
}

#[test]
fn streams_and_frames_arrive_as_sent() {
    let _host = own_host::enter();
    for system in one_way_systems(Path::new(EXECUTABLE), Topology::TwoProcesses) {
        for prepare in [
            Prepare { payload_bytes: 0, ..at_rate(&system.name) },
            Prepare { payload_bytes: 70_000, ..at_rate(&system.name) },
            frames(&system.name),
        ] {
            let ran = across(Path::new(EXECUTABLE), &prepare);
            assert!(ran.pings.iter().all(|ping| ping.loan_ns > 0), "filled in place");
        }
    }
}

#[test]
fn several_subscribers_publishers_and_topics() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    let prepare = Prepare { reliability: Reliability::Reliable, ..at_rate(IPC) };
    many::reach_every_subscriber(Path::new(EXECUTABLE), &prepare);
    many::hear_every_publisher(Path::new(EXECUTABLE), &prepare);
    many::serve_every_topic(Path::new(EXECUTABLE), &prepare, 300);
    let all = Prepare { publishers: 2, subscribers: 2, topics: 3, ..prepare };
    let (_, pongs) = Many::open(Path::new(EXECUTABLE), &all).finish();
    assert!(pongs.iter().all(|pong| pong.received > 0 && pong.corrupt == 0), "{pongs:?}");
}

#[test]
fn a_slow_subscriber_loses_only_what_is_best_effort() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    for reliability in [Reliability::BestEffort, Reliability::Reliable] {
        let prepare = Prepare { reliability, ..at_rate(IPC) };
        many::face_a_slow_subscriber(Path::new(EXECUTABLE), &prepare);
    }
}

#[test]
fn killed_roles_leave_nothing() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    let mut many = Many::open(Path::new(EXECUTABLE), &at_rate(IPC));
    assert_ne!(sockets(), NOTHING, "the endpoints have our name");
    many.pings[0].kill();
    many.pongs[0].kill();
    assert_eq!(sockets(), NOTHING);
    let files = std::fs::read_dir("/dev/shm").unwrap().map_while(Result::ok);
    assert!(!files.into_iter().any(|file| file.file_name().to_string_lossy().contains("zeromq")));
}

#[test]
fn a_publisher_survives_the_end_of_its_subscriber() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    // A queue that stays full must not block a reliable publisher without subscribers.
    let reliability = Reliability::Reliable;
    let prepare = Prepare { reliability, depth: 1, messages: 300, ..at_rate(IPC) };
    let mut many = Many::open(Path::new(EXECUTABLE), &prepare);
    many.pings[0].go();
    many.samples[0].await_first();
    many.pongs[0].kill();
    assert_eq!(many.end_pings()[0].sent, 300);
}

#[test]
fn a_timeout_says_what_is_missing() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    let topics = Prepare { topics: 3, subscribers: 2, publishers: 2, ..at_rate(IPC) };
    for (role, expected) in [
        (Role::Ping, "ZeroMQ: timeout: 0 of 6 subscriptions received"),
        (Role::Pong, "ZeroMQ: timeout: 0 of 2 publishers connected"),
    ] {
        let [message, remedy, _] =
            Process::refusal(Path::new(EXECUTABLE), &Prepare { role, ..topics.clone() });
        assert_eq!(message, expected);
        assert!(remedy.contains("match_timeout_ms"), "{remedy}");
    }
}

fn is_installed() -> bool {
    let systems = describe(Path::new(EXECUTABLE)).systems;
    assert_eq!(systems.len(), 1);
    let system = &systems[0];
    assert_eq!((system.name.as_str(), system.transport), (IPC, Transport::Kernel));
    match &system.missing {
        Some(missing) => eprintln!("skipped: {IPC}: {missing}"),
        None => assert_eq!(system.version.split('.').count(), 3, "{}", system.version),
    }
    system.missing.is_none()
}

/// The abstract names of this test's runs: sockets that a process still has open.
fn sockets() -> Vec<String> {
    let all = std::fs::read_to_string(format!("{}/unix", own_host::NET)).unwrap();
    let ours = format!("@myelin-zeromq-test-{}-", std::process::id());
    all.lines().filter(|line| line.contains(&ours)).map(str::to_owned).collect()
}

const NOTHING: Vec<String> = Vec::new();
