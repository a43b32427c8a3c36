//! Streams, frames and publish calls of every system that has them, through the real executable.

use std::path::Path;

use crate::own_host::alone;
use crate::support::many_to_many::{
    a_best_effort_publisher_goes_on, a_reliable_publisher_waits, every_message_arrives,
};
use crate::support::streams::{across, at_rate, frames, one_way_systems, replays_arrive, within};
use crate::support::{Solo, prepare};
use myelin_bench_kit::protocol::{Prepare, Reliability, Role, Topology, Workload};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-myelin");

#[test]
fn streams_and_frames_between_two_processes_arrive_as_sent() {
    let _alone = alone();
    let systems = one_way_systems(executable(), Topology::TwoProcesses);
    assert!(systems.len() >= 3);
    for system in systems {
        for payload_bytes in [0, 64, 200, 70_000] {
            let ran = across(executable(), &Prepare { payload_bytes, ..at_rate(&system.name) });
            assert!(ran.pongs.iter().all(|pong| pong.wake_ns > 0), "{}", system.name);
        }
        let ran = across(executable(), &frames(&system.name));
        assert!(ran.pings.iter().all(|ping| ping.loan_ns > 0), "{}: loans", system.name);
    }
}

#[test]
fn all_messages_of_several_publishers_and_topics_arrive() {
    let _alone = alone();
    for system in one_way_systems(executable(), Topology::TwoProcesses) {
        // The depth is the length of the stream, so that a busy machine loses nothing, either.
        let plain = Prepare { messages: 100, depth: 128, ..at_rate(&system.name) };
        for (publishers, subscribers, topics) in [(1, 3, 1), (3, 1, 1), (2, 2, 5)] {
            if topics <= system.streams.topics_max {
                let prepare = Prepare { publishers, subscribers, topics, ..plain.clone() };
                every_message_arrives(executable(), &prepare);
            }
        }
        let topics = system.streams.topics_max.min(200);
        let many = Prepare { topics, messages: 400, depth: 400 / topics + 2, ..plain };
        every_message_arrives(executable(), &many);
    }
}

#[test]
fn a_reliable_publisher_waits_for_its_slowest_subscriber() {
    let _alone = alone();
    for system in one_way_systems(executable(), Topology::TwoProcesses) {
        let flood = Prepare { rate_hz: Some(100_000.0), messages: 3000, ..at_rate(&system.name) };
        for (publishers, subscribers, topics) in [(1, 1, 1), (2, 2, 1), (1, 2, 3)] {
            if topics <= system.streams.topics_max {
                let prepare = Prepare { publishers, subscribers, topics, ..flood.clone() };
                a_reliable_publisher_waits(executable(), &prepare);
            }
        }
        let reliability = Reliability::Reliable;
        let large = Prepare { payload_bytes: 10 << 20, messages: 20, reliability, ..flood };
        every_message_arrives(executable(), &large);
    }
}

#[test]
fn a_best_effort_publisher_does_not_wait() {
    let _alone = alone();
    for system in one_way_systems(executable(), Topology::TwoProcesses) {
        let flood = Prepare { rate_hz: Some(100_000.0), messages: 3000, ..at_rate(&system.name) };
        a_best_effort_publisher_goes_on(executable(), &Prepare { depth: 4, ..flood });
    }
}

#[test]
fn reliable_streams_within_a_process_lose_nothing() {
    let _alone = alone();
    for system in one_way_systems(executable(), Topology::OneProcess) {
        if system.streams.reliability.contains(&Reliability::Reliable) {
            let (rate_hz, reliability) = (Some(100_000.0), Reliability::Reliable);
            let plain = Prepare { rate_hz, reliability, messages: 3000, ..at_rate(&system.name) };
            let ran = within(executable(), &Prepare { depth: 1, ..plain });
            assert_eq!((ran.pong.received, ran.pong.lost), (3000, 0), "{}", system.name);
        }
    }
}

#[test]
fn recordings_arrive_as_sent() {
    let _alone = alone();
    replays_arrive(executable());
}

#[test]
fn streams_and_frames_within_a_process_arrive_as_sent() {
    let _alone = alone();
    let systems = one_way_systems(executable(), Topology::OneProcess);
    assert_eq!(systems.len(), 3);
    for system in systems {
        for payload_bytes in [0, 64, 200, 70_000] {
            within(executable(), &Prepare { payload_bytes, ..at_rate(&system.name) });
        }
        within(executable(), &frames(&system.name));
    }
}

#[test]
fn the_taking_thread_runs_on_the_configured_cpu() {
    let _alone = alone();
    let cpu = first_cpu();
    let pinned = Prepare { pong_cpu: Some(cpu), ..at_rate("myelin.local-wait") };
    let ran = within(executable(), &pinned);
    assert!(ran.pongs.iter().all(|pong| u32::from(pong.take_cpu) == cpu));
    let nowhere = Prepare { pong_cpu: Some(100_000), ..pinned };
    let mut solo = Solo::open(executable(), &nowhere, 100);
    solo.ping.go();
    let [message, ..] = solo.ping.expect_error();
    assert_eq!(message, "pong_cpu: CPU 100000 does not exist");
    assert!(!solo.ping.expect_end().success());
}

/// A CPU that this process may use.
fn first_cpu() -> u32 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let list = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:")).unwrap();
    let first = list.trim().split([',', '-']).next().unwrap();
    first.parse().unwrap()
}

#[test]
fn publishing_calls_the_subscribers() {
    let _alone = alone();
    for subscribers in [0, 1, 3] {
        let (workload, messages, rate_hz) = (Workload::Publish, 100, Some(1000.0));
        let plain = prepare("myelin.local-callback", Role::Ping);
        let prepare = Prepare { workload, messages, rate_hz, subscribers, ..plain };
        let mut solo = Solo::open(executable(), &prepare, messages);
        let (ping, pong) = solo.finish();
        assert_eq!((ping.sent, pong.received), (messages, messages * u64::from(subscribers)));
        assert_eq!((pong.corrupt, pong.duplicates, pong.more["silent_subscribers"]), (0, 0, 0));
    }
}

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}
