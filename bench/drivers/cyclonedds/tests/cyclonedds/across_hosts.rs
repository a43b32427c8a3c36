//! CycloneDDS over UDP between two network namespaces. These tests take root.

use std::path::Path;

use crate::EXECUTABLE;
use crate::support::hosts::{
    another_host_is_reached, nobody_is_reached, nothing_leaves_the_host, systems_across,
};

#[test]
fn udp_reaches_another_host() {
    for system in systems_across(executable()) {
        assert!(system.name.contains(".udp"), "{}", system.name);
        another_host_is_reached(executable(), &system);
    }
}

#[test]
fn a_host_that_cannot_be_reached_is_missed_in_time() {
    for system in systems_across(executable()) {
        let Some([ping, pong]) = nobody_is_reached(executable(), &system) else { return };
        assert!(ping[0].starts_with("CycloneDDS: timeout: 0 of 1"), "{ping:?}");
        assert!(pong[0].starts_with("CycloneDDS: timeout: 0 of 1"), "{pong:?}");
    }
}

#[test]
fn nothing_leaves_one_host() {
    nothing_leaves_the_host(executable());
}

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}
