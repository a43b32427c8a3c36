//! Streams, frames and publish calls of every system that has them, through the real executable.

#[path = "../../../kit/tests/support/mod.rs"]
mod support;

use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use myelin_bench_kit::protocol::{Frame, Prepare, Role, System, Topology, Wait, Workload};
use myelin_bench_kit::samples::Record;
use support::{Pair, Solo, prepare};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-os");

#[test]
fn a_stream_between_two_processes_arrives_as_sent() {
    let _alone = alone();
    for system in one_way_systems(Topology::TwoProcesses) {
        for payload_bytes in [0, 64, 70_000] {
            let stream = Prepare { payload_bytes, ..at_rate(&system, Workload::Stream) };
            across(&stream, 100);
        }
    }
}

#[test]
fn frames_between_two_processes_are_copied_both_ways() {
    let _alone = alone();
    for system in one_way_systems(Topology::TwoProcesses) {
        let (pings, pongs) = across(&frames(&system), 20);
        assert!(pings.iter().all(|ping| ping.fill_ns > 0 && ping.loan_ns == 0), "{system}");
        assert!(pongs.iter().all(|pong| pong.loan_ns > 0 && pong.fill_ns > 0), "{system}");
    }
}

/// Both ends' records, after a look at what they must have in common. On a machine that is busy
/// a system may lose messages; none may be damaged, or come twice.
fn across(prepare: &Prepare, messages: u64) -> (Vec<Record>, Vec<Record>) {
    let prepare = Prepare { messages, warmup_messages: 3, ..prepare.clone() };
    let mut pair = Pair::open(Path::new(EXECUTABLE), &prepare, messages);
    let (ping, pong) = pair.finish();
    let what = format!("{} with {} B: {pong:?}", prepare.system, prepare.payload_bytes);
    assert_eq!((ping.sent, ping.received, ping.pong), (messages, 0, None), "{what}");
    assert!(pong.received > 0 && pong.received <= messages, "{what}");
    assert_eq!((pong.duplicates, pong.out_of_order, pong.corrupt), (0, 0, 0), "{what}");
    assert!(pong.cpu_ns.is_some(), "{what}");
    let pongs = pair.pong_samples.records();
    let (pings, pongs) = matching(pair.ping_samples.records(), pongs, pong.received);
    let last = pongs.last().expect("something was received").id;
    assert_eq!(pong.lost, last + 1 - pong.received, "{what}");
    (pings, pongs)
}

#[test]
fn a_call_is_made_for_each_message_before_publishing_returns() {
    let _alone = alone();
    for rate_hz in [None, Some(2000.0)] {
        let back_to_back = Prepare { rate_hz, ..at_rate("os.call", Workload::Stream) };
        let (pings, pongs) = alone_with(&back_to_back, 500);
        for (ping, pong) in pings.iter().zip(&pongs) {
            let order = [ping.publish_entry_ns, pong.take_return_ns, ping.publish_return_ns];
            assert!(order.is_sorted(), "{ping:?} {pong:?}");
            assert_eq!((pong.wake_ns, pong.take_cpu), (0, ping.publish_cpu));
        }
    }
}

#[test]
fn a_frame_is_copied_in_the_call() {
    let _alone = alone();
    let (pings, pongs) = alone_with(&frames("os.call"), 20);
    for (ping, pong) in pings.iter().zip(&pongs) {
        assert!(ping.fill_ns > 0 && pong.loan_ns > 0 && pong.fill_ns > 0);
        let copies_ns = u64::from(pong.loan_ns) + u64::from(pong.fill_ns);
        assert!(pong.take_return_ns + copies_ns <= ping.publish_return_ns);
    }
}

fn alone_with(prepare: &Prepare, messages: u64) -> (Vec<Record>, Vec<Record>) {
    let prepare = Prepare { messages, ..prepare.clone() };
    let mut solo = Solo::open(Path::new(EXECUTABLE), &prepare, messages);
    let (ping, pong) = solo.finish();
    assert_eq!((ping.sent, pong.received, pong.lost), (messages, messages, 0));
    assert_eq!((pong.duplicates, pong.out_of_order, pong.corrupt), (0, 0, 0));
    assert!(ping.cpu_ns.is_some() && pong.cpu_ns.is_none());
    matching(solo.ping_samples.records(), solo.pong_samples.records(), messages)
}

/// Those of both ends that speak of the same message, `received` of them; in the order of the times.
fn matching(pings: Vec<Record>, pongs: Vec<Record>, received: u64) -> (Vec<Record>, Vec<Record>) {
    let both = pings.into_iter().zip(pongs).filter(|(_, pong)| pong.take_return_ns != 0);
    let (pings, pongs): (Vec<_>, Vec<_>) = both.unzip();
    assert_eq!(pongs.len() as u64, received);
    for (ping, pong) in pings.iter().zip(&pongs) {
        assert_eq!(ping.id, pong.id);
        assert!(ping.intended_ns <= ping.publish_entry_ns);
        assert!(ping.publish_entry_ns <= ping.publish_return_ns);
        let arrived_ns = if pong.wake_ns == 0 { pong.take_return_ns } else { pong.wake_ns };
        assert!(ping.publish_entry_ns <= arrived_ns && arrived_ns <= pong.take_return_ns);
        assert_eq!((pong.publish_entry_ns, pong.flags, pong.duplicates), (0, 0, 0));
    }
    (pings, pongs)
}

#[test]
fn publishing_calls_each_subscriber_once() {
    let _alone = alone();
    for subscribers in [0, 1, 5] {
        let (workload, messages, payload_bytes) = (Workload::Publish, 300, 2000);
        let prepare = Prepare {
            workload,
            messages,
            subscribers,
            payload_bytes,
            ..prepare("os.call", Role::Ping)
        };
        let mut solo = Solo::open(Path::new(EXECUTABLE), &prepare, messages);
        let (ping, pong) = solo.finish();
        assert_eq!((ping.sent, pong.received), (messages, messages * u64::from(subscribers)));
        assert_eq!((pong.corrupt, pong.duplicates, pong.more["silent_subscribers"]), (0, 0, 0));
        assert_eq!(solo.ping_samples.records().len() as u64, messages);
        assert!(solo.pong_samples.records().is_empty());
    }
}

#[test]
fn only_calls_in_one_process_can_be_made_back_to_back() {
    let without = Prepare { rate_hz: None, ..at_rate("os.spin", Workload::Stream) };
    let mut refused = Solo::start(Path::new(EXECUTABLE), &without, 1);
    let [message, remedy, _] = refused.ping.expect_error();
    assert!(message.starts_with("rate_hz: os.spin takes"), "{message}");
    assert!(remedy.contains("workload.rate_hz"), "{remedy}");
    assert!(!refused.ping.expect_end().success());
}

#[test]
fn a_stream_ends_when_it_is_told_to() {
    let endless = Prepare { rate_hz: None, ..at_rate("os.call", Workload::Stream) };
    let endless = Prepare { messages: 0, record_every: u64::MAX, ..endless };
    let mut solo = Solo::open(Path::new(EXECUTABLE), &endless, 2);
    solo.ping.go();
    solo.pong_samples.await_first();
    solo.ping.say(&myelin_bench_kit::protocol::Command::Stop);
    let done = solo.ping.expect_done();
    assert_eq!(done.pong.expect("one process").received, done.sent);
    assert!(solo.ping.expect_end().success());
}

fn at_rate(system: &str, workload: Workload) -> Prepare {
    Prepare { workload, rate_hz: Some(2000.0), ..prepare(system, Role::Ping) }
}

fn frames(system: &str) -> Prepare {
    let frame = Frame { width: 320, height: 240 };
    let (payload_bytes, rate_hz) = (frame.bytes(), Some(200.0));
    let image = at_rate(system, Workload::Image);
    Prepare { frame: Some(frame), payload_bytes, rate_hz, ..image }
}

fn one_way_systems(topology: Topology) -> Vec<String> {
    let has = |system: &System| {
        let streams = system.workloads.contains(&Workload::Stream);
        assert_eq!(streams, system.workloads.contains(&Workload::Image));
        assert_eq!(system.wait == Wait::Callback, system.topology == Topology::OneProcess);
        streams && system.topology == topology
    };
    let systems = support::describe(Path::new(EXECUTABLE)).systems;
    let names: Vec<_> = systems.into_iter().filter(has).map(|system| system.name).collect();
    assert!(!names.is_empty());
    names
}

/// Spinning pairs need two cores each: one test of them at a time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}
