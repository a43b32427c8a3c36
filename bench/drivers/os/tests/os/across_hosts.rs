//! The systems that reach another host, between two network namespaces. These tests require root.

use std::path::Path;

use crate::support::hosts::{
    ADDRESSES, Hosts, another_host_is_reached, nobody_is_reached, systems_across,
};
use crate::support::{Process, Samples, prepare};
use myelin_bench_kit::protocol::{Network, Prepare, Role};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-os");

#[test]
fn udp_and_tcp_reach_another_host() {
    let systems = systems_across(executable());
    let names: Vec<_> = systems.iter().map(|system| system.name.as_str()).collect();
    assert_eq!(names, ["os.udp", "os.tcp"]);
    for system in systems {
        another_host_is_reached(executable(), &system);
    }
}

#[test]
fn ping_says_that_pong_was_killed() {
    let Some(hosts) = Hosts::new(ADDRESSES) else { return };
    for system in systems_across(executable()) {
        let (messages, record_every) = (0, u64::MAX);
        let reply_timeout_ns = 1_000_000_000;
        let endless = prepare(&system.name, Role::Ping);
        let endless = Prepare { messages, record_every, reply_timeout_ns, ..endless };
        let mut pair = hosts.open(executable(), &endless);
        pair.pong.go();
        pair.ping.go();
        pair.pong.kill();
        let [message, ..] = pair.ping.expect_error();
        assert_eq!(message, "pong closed the connection", "{}", system.name);
        assert!(!pair.ping.expect_end().success());
    }
}

#[test]
fn a_host_that_cannot_be_reached_is_named() {
    for system in systems_across(executable()) {
        let Some([ping, pong]) = nobody_is_reached(executable(), &system) else { return };
        assert!(ping[0].starts_with("cannot reach pong at 10.2.2.2:47000"), "{ping:?}");
        assert!(ping[1].contains("ip route get 10.2.2.2"), "{ping:?}");
        assert!(pong[0].starts_with("ping did not connect within 1 s"), "{pong:?}");
        assert!(pong[1].contains("10.1.1.1"), "{pong:?}");
    }
}

#[test]
fn an_unavailable_port_or_address_is_named() {
    let Some(hosts) = Hosts::new(ADDRESSES) else { return };
    let refused = |network| {
        let samples = Samples::new(1);
        let network = Some(network);
        let prepare =
            Prepare { network, samples: Some(samples.path()), ..prepare("os.tcp", Role::Pong) };
        let program = hosts.program(Role::Pong, executable());
        let mut pong = Process::start_by(program, &prepare);
        let [message, remedy, _] = pong.expect_error();
        assert!(!pong.expect_end().success());
        format!("{message}; {remedy}")
    };
    let network = hosts.network(Role::Pong);
    let elsewhere = Network { own: "10.9.8.77".parse().unwrap(), ..network.clone() };
    let said = refused(elsewhere);
    assert!(said.starts_with("cannot use 10.9.8.77:47000: Cannot assign"), "{said}");
    assert!(said.contains("`ip address`"), "{said}");

    let holding = Prepare { network: Some(network.clone()), ..prepare("os.tcp", Role::Pong) };
    let samples = Samples::new(1);
    let holding = Prepare { samples: Some(samples.path()), ..holding };
    let _holder = Process::start_by(hosts.program(Role::Pong, executable()), &holding);
    hosts.await_listener(Role::Pong);
    let said = refused(network);
    assert!(said.starts_with("cannot use 10.9.8.2:47000: Address already in use"), "{said}");
    assert!(said.contains("sport = :47000"), "{said}");
}

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}
