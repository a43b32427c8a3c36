//! Fast DDS over UDP between two network namespaces. These tests take root.

#[path = "../../../kit/tests/support/mod.rs"]
mod support;

use std::path::Path;

use support::hosts::{
    a_cut_is_survived, messages_are_answered, nobody_is_reached, streams_arrive, systems_across,
};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-fastdds");

#[test]
fn udp_reaches_another_host() {
    for system in systems_across(executable()) {
        assert_eq!(system.name, "fastdds.udp");
        messages_are_answered(executable(), &system);
        streams_arrive(executable(), &system);
        a_cut_is_survived(executable(), &system);
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

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}
