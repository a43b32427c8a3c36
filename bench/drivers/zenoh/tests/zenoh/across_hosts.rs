//! Zenoh over TCP between two network namespaces. These tests require root.

use std::path::Path;

use crate::support::hosts::{
    another_host_is_reached, nobody_is_reached, nothing_leaves_the_host, systems_across,
};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-zenoh");

#[test]
fn tcp_reaches_another_host() {
    for system in systems_across(executable()) {
        assert_eq!(system.name, "zenoh.tcp");
        another_host_is_reached(executable(), &system);
    }
}

#[test]
fn a_host_that_cannot_be_reached_is_missed_in_time() {
    for system in systems_across(executable()) {
        let Some([ping, pong]) = nobody_is_reached(executable(), &system) else { return };
        assert!(ping[0].contains("10.2.2.2:47000"), "{ping:?}");
        assert!(pong[0].starts_with("ping did not connect within 1 s"), "{pong:?}");
    }
}

#[test]
fn nothing_leaves_one_host() {
    nothing_leaves_the_host(executable());
}

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}
