//! Fast DDS over UDP between two network namespaces. These tests take root.

use std::path::Path;

use crate::support::hosts::{
    another_host_is_reached, another_host_is_reached_by_ipv4, nobody_is_reached,
    nothing_leaves_the_host, systems_across,
};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-fastdds");

#[test]
fn udp_reaches_another_host() {
    for system in systems_across(executable()) {
        assert_eq!(system.name, "fastdds.udp");
        // Fast DDS 3 tells hosts apart by their IPv4 addresses: two that have none are one to it.
        match system.version.starts_with('2') {
            true => another_host_is_reached(executable(), &system),
            false => another_host_is_reached_by_ipv4(executable(), &system),
        }
    }
}

#[test]
fn a_host_that_cannot_be_reached_is_missed_in_time() {
    for system in systems_across(executable()) {
        let Some([ping, pong]) = nobody_is_reached(executable(), &system) else { return };
        assert!(ping[0].starts_with("Fast DDS: timeout: no other side"), "{ping:?}");
        assert!(pong[0].starts_with("Fast DDS: timeout: no other side"), "{pong:?}");
    }
}

#[test]
fn nothing_leaves_one_host() {
    nothing_leaves_the_host(executable());
}

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}
