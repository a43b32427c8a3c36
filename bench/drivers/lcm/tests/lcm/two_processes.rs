//! LCM between processes of the real executable: messages arrive, over the loopback interface, and
//! nothing is left behind. Skipped, with a message, if LCM is not installed or has no route.

use std::path::Path;

use crate::many;
use crate::many::Many;
use crate::own_host;
use crate::support::hosts::nothing_leaves_the_host;
use crate::support::streams::{across, at_rate, frames, one_way_systems};
use crate::support::{Pair, Process, describe, prepare};
use myelin_bench_kit::protocol::{Prepare, Role, Topology, Transport};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-lcm");
const UDPM: &str = "lcm.udpm";

#[test]
fn every_payload_comes_back_as_sent() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    let messages = 200;
    for payload_bytes in [0, 13, 1400, 60_000] {
        let prepare = Prepare { payload_bytes, messages, ..prepare(UDPM, Role::Ping) };
        let before = loopback_packets();
        let mut pair = Pair::open(Path::new(EXECUTABLE), &prepare, messages);
        let (ping, pong) = pair.finish();
        let packets = loopback_packets() - before;
        let what = format!("{payload_bytes} B: {ping:?} {pong:?}");
        assert_eq!((ping.sent, ping.received + ping.lost), (messages, messages), "{what}");
        assert!(ping.received > 0 && pong.received >= ping.received, "{what}");
        assert_eq!((ping.duplicates, ping.corrupt, pong.corrupt), (0, 0, 0), "{what}");
        assert!(packets >= ping.received + pong.received, "{what}: {packets} packets on lo");
    }
}

/// The receive buffer may be too small for the fragments of a large message: then it is lost, but
/// never damaged.
#[test]
fn large_messages_come_whole_or_not_at_all() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    for payload_bytes in [1 << 20, 10 << 20] {
        let (messages, rate_hz) = (10, Some(10.0));
        let prepare = Prepare { payload_bytes, messages, rate_hz, ..at_rate(UDPM) };
        let (pings, pongs) = Many::open(Path::new(EXECUTABLE), &prepare).finish();
        let what = format!("{payload_bytes} B: {:?}", pongs[0]);
        assert_eq!(pings[0].sent, messages, "{what}");
        assert_eq!((pongs[0].duplicates, pongs[0].corrupt), (0, 0), "{what}");
        if receive_buffer_bytes() > 2 * payload_bytes {
            assert!(pongs[0].received > 0, "{what}");
        }
    }
}

/// The receive buffer that the host allows for a socket.
fn receive_buffer_bytes() -> u64 {
    let text = std::fs::read_to_string("/proc/sys/net/core/rmem_max").unwrap();
    text.trim().parse().unwrap()
}

#[test]
fn nothing_leaves_one_host() {
    nothing_leaves_the_host(Path::new(EXECUTABLE));
}

#[test]
fn streams_and_frames_arrive_as_sent() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    for system in one_way_systems(Path::new(EXECUTABLE), Topology::TwoProcesses) {
        for prepare in [
            Prepare { payload_bytes: 0, ..at_rate(&system.name) },
            Prepare { payload_bytes: 70_000, ..at_rate(&system.name) },
            frames(&system.name),
        ] {
            let ran = across(Path::new(EXECUTABLE), &prepare);
            assert!(ran.pongs.iter().all(|pong| pong.wake_ns > 0));
        }
    }
}

#[test]
fn several_subscribers_publishers_and_topics() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    many::reach_every_subscriber(Path::new(EXECUTABLE), &at_rate(UDPM));
    many::hear_every_publisher(Path::new(EXECUTABLE), &at_rate(UDPM));
    many::serve_every_topic(Path::new(EXECUTABLE), &at_rate(UDPM), 1024);
    let all = Prepare { publishers: 3, subscribers: 3, topics: 2, ..at_rate(UDPM) };
    let (_, pongs) = Many::open(Path::new(EXECUTABLE), &all).finish();
    assert!(pongs.iter().all(|pong| pong.received > 0 && pong.corrupt == 0), "{pongs:?}");
}

#[test]
fn a_slow_subscriber_does_not_hold_the_publisher() {
    let _host = own_host::enter();
    if is_installed() {
        many::face_a_slow_subscriber(Path::new(EXECUTABLE), &at_rate(UDPM));
    }
}

#[test]
fn runs_in_one_domain_do_not_mix() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    let first = Many::open(Path::new(EXECUTABLE), &at_rate(UDPM));
    let second = Many::open(Path::new(EXECUTABLE), &at_rate(UDPM));
    for many in [first, second] {
        let (_, pongs) = many.finish();
        assert_eq!((pongs[0].duplicates, pongs[0].corrupt), (0, 0), "{:?}", pongs[0]);
    }
}

#[test]
fn killed_roles_leave_nothing() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    let prepare = Prepare { domain: 201, ..at_rate(UDPM) };
    let mut many = Many::open(Path::new(EXECUTABLE), &prepare);
    assert_eq!(receivers(7667 + 201), 1, "pong alone has a receiving socket");
    many.pings[0].kill();
    many.pongs[0].kill();
    assert_eq!(receivers(7667 + 201), 0);
}

#[test]
fn a_timeout_names_the_missing_role() {
    let _host = own_host::enter();
    if !is_installed() {
        return;
    }
    for (role, absent) in [(Role::Ping, "pong0"), (Role::Pong, "ping0")] {
        let [message, remedy, _] =
            Process::refusal(Path::new(EXECUTABLE), &Prepare { role, ..at_rate(UDPM) });
        assert_eq!(message, format!("LCM: timeout: {absent} did not connect"));
        assert!(remedy.contains("match_timeout_ms"), "{remedy}");
    }
}

fn is_installed() -> bool {
    let systems = describe(Path::new(EXECUTABLE)).systems;
    assert_eq!(systems.len(), 1);
    let system = &systems[0];
    assert_eq!((system.name.as_str(), system.transport), (UDPM, Transport::Loopback));
    match &system.missing {
        Some(missing) => eprintln!("skipped: {UDPM}: {missing}"),
        None => assert_eq!(system.version.split('.').count(), 3, "{}", system.version),
    }
    system.missing.is_none()
}

/// Packets that the loopback interface has received.
fn loopback_packets() -> u64 {
    let table = std::fs::read_to_string(format!("{}/dev", own_host::NET)).unwrap();
    let line = table.lines().find_map(|line| line.trim().strip_prefix("lo:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// UDP sockets that are bound to `port`.
fn receivers(port: u16) -> usize {
    let table = std::fs::read_to_string(format!("{}/udp", own_host::NET)).unwrap();
    let ours = format!(" 00000000:{port:04X} ");
    table.lines().filter(|line| line.contains(&ours)).count()
}
