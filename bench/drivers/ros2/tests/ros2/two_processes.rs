//! Ping and pong of every system through the real executable and the real middleware, and what is
//! left on the host afterwards. Skips missing systems, with a message.

use std::path::Path;
use std::process::Command;

use myelin_bench_kit::protocol::{Frame, Prepare, Role, Topology, Workload};
use tempfile::TempDir;

use crate::support::hosts::nothing_leaves_the_host;
use crate::support::{self, Pair, Process, Samples, describe, prepare};
use crate::{EXECUTABLE, many, own_host};

#[test]
fn every_payload_comes_back_as_sent() {
    let _host = own_host::enter();
    for system in systems() {
        for (payload_bytes, messages) in [(0, 100), (1003, 100), (65_536, 50), (1 << 20, 10)] {
            let what = format!("{system} with {payload_bytes} B");
            let prepare = Prepare { payload_bytes, messages, ..ours(&system, Role::Ping) };
            let pair = Pair::exchange(Path::new(EXECUTABLE), &prepare);
            let (pings, pongs) = (pair.ping_samples.records(), pair.pong_samples.records());
            for (ping, pong) in pings.iter().zip(&pongs) {
                let there_and_back =
                    [ping.publish_entry_ns, pong.take_return_ns, ping.wake_ns, ping.take_return_ns];
                assert!(there_and_back.is_sorted(), "{what}: {ping:?} {pong:?}");
            }
        }
        clean();
        assert_eq!(left_behind(), NOTHING, "{system}");
    }
}

#[test]
fn streams_reach_all_of_several_processes_and_topics() {
    let _host = own_host::enter();
    for system in systems() {
        let stream = Prepare { messages: 200, depth: 250, ..stream(&system) };
        many::reach_every_subscriber(Path::new(EXECUTABLE), &stream);
        many::hear_every_publisher(Path::new(EXECUTABLE), &stream);
        many::serve_every_topic(Path::new(EXECUTABLE), &stream, 20);
        many::face_a_slow_subscriber(Path::new(EXECUTABLE), &stream);
        let frame = Frame { width: 320, height: 240 };
        let (payload_bytes, frame) = (frame.bytes(), Some(frame));
        let image = Prepare { workload: Workload::Image, payload_bytes, frame, ..stream };
        many::reach_every_subscriber(Path::new(EXECUTABLE), &image);
    }
}

#[test]
fn nothing_leaves_one_host() {
    nothing_leaves_the_host(Path::new(EXECUTABLE));
}

#[test]
fn a_missing_other_side_is_a_timeout() {
    let _host = own_host::enter();
    for system in systems() {
        for role in [Role::Ping, Role::Pong] {
            let (process, _needed) = lone(role, &system);
            let [message, remedy, _] = process.expect_error();
            assert!(message.contains("the other side did not match"), "{message}");
            assert!(remedy.contains("log"), "{remedy}");
        }
    }
}

#[test]
fn cleaning_removes_all_files_of_killed_processes() {
    let _host = own_host::enter();
    for system in systems() {
        // `clean` finds files by their paths; those of other tests' processes have other names.
        let (messages, rate_hz, domain) = (0, Some(500.0), DOMAIN + 1);
        let prepare = Prepare { messages, rate_hz, domain, ..ours(&system, Role::Ping) };
        let mut pair = Pair::open(Path::new(EXECUTABLE), &prepare, 1_000_000);
        pair.pong.go();
        pair.ping.go();
        pair.ping_samples.await_first();
        pair.ping.kill();
        pair.pong.kill();
        clean();
        assert_eq!(left_behind(), NOTHING, "{system}");
    }
}

fn ours(system: &str, role: Role) -> Prepare {
    let (domain, warmup_messages) = (DOMAIN, 2);
    let match_timeout_ns = MATCH_TIMEOUT_NS;
    Prepare { domain, warmup_messages, match_timeout_ns, ..prepare(system, role) }
}

fn stream(system: &str) -> Prepare {
    let (workload, rate_hz) = (Workload::Stream, Some(500.0));
    Prepare { workload, rate_hz, ..ours(system, Role::Ping) }
}

/// A role without its counterpart, and what it needs while it lives.
fn lone(role: Role, system: &str) -> (Process, (Samples, TempDir)) {
    let samples = Samples::new(1);
    let folder = tempfile::tempdir().unwrap();
    let prepare = Prepare {
        run: support::unique_run(),
        samples: Some(samples.path()),
        directory: folder.path().into(),
        match_timeout_ns: 500_000_000,
        ..ours(system, role)
    };
    (Process::start(Path::new(EXECUTABLE), &prepare), (samples, folder))
}

/// The systems of two processes that can run here; prints why the others cannot.
fn systems() -> Vec<String> {
    let mut there = Vec::new();
    for system in describe(Path::new(EXECUTABLE)).systems {
        match system.missing {
            None if system.topology == Topology::TwoProcesses => there.push(system.name),
            None => {}
            Some(missing) => println!("left out: {}: {missing}", system.name),
        }
    }
    there
}

fn clean() {
    assert!(Command::new(EXECUTABLE).arg("clean").status().unwrap().success());
}

/// Files in this test's /dev/shm, except those that the tracing in the wheels keeps per user and
/// never removes.
fn left_behind() -> Vec<String> {
    let entries = std::fs::read_dir("/dev/shm").unwrap().map_while(Result::ok);
    let names = entries.map(|entry| entry.file_name().to_string_lossy().into_owned());
    names.filter(|name| !name.starts_with("lttng-ust-wait-")).collect()
}

const NOTHING: Vec<String> = Vec::new();
/// Different from the domains of other tests.
const DOMAIN: u32 = 93;
/// Generous: a busy machine may need several rounds of discovery.
const MATCH_TIMEOUT_NS: u64 = 50_000_000_000;
