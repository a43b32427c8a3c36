//! Fast DDS over UDP between two network namespaces. These tests take root.

use std::path::Path;

use crate::support::hosts::{
    another_host_is_reached, nobody_is_reached, nothing_leaves_the_host, systems_across,
};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-fastdds");

#[test]
fn udp_reaches_another_host() {
    for system in systems_across(executable()) {
        assert_eq!(system.name, "fastdds.udp");
        another_host_is_reached(executable(), &system);
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
