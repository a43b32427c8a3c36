//! Streams, frames and publish calls of every system that has them, through the real executable.

use std::path::Path;

use crate::own_host::alone;
use crate::support::many_to_many::{
    a_best_effort_publisher_goes_on, a_reliable_publisher_waits, every_message_arrives,
};
use crate::support::streams::{across, at_rate, frames, one_way_systems, replays_arrive, within};
use crate::support::{Solo, prepare};
use myelin_bench_kit::protocol::{
    Command, Prepare, Reliability, Role, System, Topology, Wait, Workload,
};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-os");

#[test]
fn streams_and_frames_between_two_processes_arrive_as_sent() {
    let _alone = alone();
    let systems = one_way_systems(executable(), Topology::TwoProcesses);
    assert_eq!(systems.len(), 9);
    for system in systems {
        assert_ne!(system.wait, Wait::Callback);
        let reliability = system.streams.reliability[0];
        let plain = Prepare { reliability, ..at_rate(&system.name) };
        for payload_bytes in [0, 64, 70_000] {
            let ran = across(executable(), &Prepare { payload_bytes, ..plain.clone() });
            let last = ran.pongs.last().expect("something was received").id;
            assert_eq!(ran.pong.lost, last + 1 - ran.pong.received, "{}", system.name);
        }
        let ran = across(executable(), &Prepare { reliability, ..frames(&system.name) });
        assert!(ran.pings.iter().all(|ping| ping.loan_ns == 0), "{}: no loans", system.name);
    }
}

#[test]
fn recordings_arrive_as_sent() {
    let _alone = alone();
    replays_arrive(executable());
}

#[test]
fn a_call_is_made_for_each_message_before_publishing_returns() {
    let _alone = alone();
    for rate_hz in [None, Some(2000.0)] {
        let messages = 500;
        let ran = within(executable(), &Prepare { rate_hz, messages, ..at_rate("os.call") });
        assert_eq!((ran.pong.received, ran.pong.lost), (messages, 0));
        for (ping, pong) in ran.pings.iter().zip(&ran.pongs) {
            assert!(pong.take_return_ns <= ping.publish_return_ns, "{ping:?} {pong:?}");
            assert_eq!((pong.wake_ns, pong.take_cpu), (0, ping.publish_cpu));
        }
    }
}

#[test]
fn a_frame_is_copied_in_the_call() {
    let _alone = alone();
    let ran = within(executable(), &frames("os.call"));
    assert_eq!(ran.pong.lost, 0);
    for (ping, pong) in ran.pings.iter().zip(&ran.pongs) {
        let copies = pong.as_taken();
        let copies_ns = u64::from(copies.memcpy_ns) + u64::from(copies.stream_copy_ns);
        assert!(pong.take_return_ns + copies_ns <= ping.publish_return_ns);
    }
}

#[test]
fn publishing_calls_each_subscriber_once() {
    let _alone = alone();
    for subscribers in [0, 1, 5] {
        let (workload, messages, payload_bytes) = (Workload::Publish, 300, 2000);
        let plain = prepare("os.call", Role::Ping);
        let prepare = Prepare { workload, messages, subscribers, payload_bytes, ..plain };
        let mut solo = Solo::open(executable(), &prepare, messages);
        let (ping, pong) = solo.finish();
        assert_eq!((ping.sent, pong.received), (messages, messages * u64::from(subscribers)));
        assert_eq!((pong.corrupt, pong.duplicates, pong.more["silent_subscribers"]), (0, 0, 0));
        assert_eq!(solo.ping_samples.records().len() as u64, messages);
        assert!(solo.pong_samples.records().is_empty());
    }
}

#[test]
fn only_one_process_callbacks_run_back_to_back() {
    let without = Prepare { rate_hz: None, ..at_rate("os.spin") };
    let mut refused = Solo::start(executable(), &without, 1);
    let [message, remedy, _] = refused.ping.expect_error();
    assert!(message.starts_with("rate_hz: a subscriber of os.spin takes"), "{message}");
    assert!(remedy.contains("workload.rate_hz"), "{remedy}");
    assert!(!refused.ping.expect_end().success());
}

#[test]
fn a_depth_over_the_memory_limit_is_refused() {
    let deep = Prepare { depth: 1 << 20, payload_bytes: 1 << 20, ..at_rate("os.spin") };
    let mut refused = Solo::start(executable(), &deep, 1);
    let [message, ..] = refused.ping.expect_error();
    assert!(message.starts_with("depth: 1048576 messages"), "{message}");
    assert!(!refused.ping.expect_end().success());
}

#[test]
fn a_reliable_publisher_waits_for_its_subscriber() {
    let _alone = alone();
    for system in offering(Reliability::Reliable) {
        // More than the buffers of the kernel hold.
        let (messages, payload_bytes, depth) = (1000, 60_000, 5);
        let flood = Prepare { rate_hz: Some(100_000.0), messages, depth, ..at_rate(&system.name) };
        let flood = Prepare { payload_bytes, ..flood };
        a_reliable_publisher_waits(executable(), &flood);
        let (reliability, payload_bytes, messages) = (Reliability::Reliable, 10 << 20, 10);
        let large = Prepare { reliability, payload_bytes, messages, ..flood };
        every_message_arrives(executable(), &large);
    }
}

#[test]
fn a_best_effort_publisher_does_not_wait() {
    let _alone = alone();
    for system in offering(Reliability::BestEffort) {
        let flood = Prepare { rate_hz: Some(100_000.0), messages: 3000, ..at_rate(&system.name) };
        a_best_effort_publisher_goes_on(executable(), &Prepare { depth: 4, ..flood });
    }
}

fn offering(reliability: Reliability) -> Vec<System> {
    let mut systems = one_way_systems(executable(), Topology::TwoProcesses);
    systems.retain(|system| system.streams.reliability.contains(&reliability));
    systems
}

#[test]
fn a_stream_ends_when_stopped() {
    let _alone = alone();
    let (rate_hz, messages, record_every) = (None, 0, u64::MAX);
    let endless = Prepare { rate_hz, messages, record_every, ..at_rate("os.call") };
    let mut solo = Solo::open(executable(), &endless, 2);
    solo.ping.go();
    solo.pong_samples.await_first();
    solo.ping.say(&Command::Stop);
    let done = solo.ping.expect_done();
    assert_eq!(done.pong.expect("one process").received, done.sent);
    assert!(solo.ping.expect_end().success());
}

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}
