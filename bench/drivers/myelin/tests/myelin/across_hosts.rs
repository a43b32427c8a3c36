//! Myelin's route to other hosts between two network namespaces. These tests require root.

use std::path::Path;

use crate::support::hosts::{
    a_cut_is_survived, messages_are_answered, nobody_is_reached, streams_arrive, systems_across,
};
use myelin_bench_kit::protocol::System;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-myelin");

#[test]
fn messages_and_streams_reach_another_host() {
    for system in systems() {
        messages_are_answered(executable(), &system);
        streams_arrive(executable(), &system);
    }
}

#[test]
fn a_cut_of_the_link_is_survived() {
    for system in systems() {
        a_cut_is_survived(executable(), &system);
    }
}

#[test]
fn a_host_that_cannot_be_reached_is_missed_in_time() {
    for system in systems() {
        let Some([ping, pong]) = nobody_is_reached(executable(), &system) else { return };
        assert!(ping[0].contains("was not found"), "{ping:?}");
        assert!(pong[0].contains("was not found"), "{pong:?}");
    }
}

fn systems() -> Vec<System> {
    let systems = systems_across(executable());
    match systems.is_empty() {
        true => println!("skipped: CycloneDDS is not installed"),
        false => assert!(systems.iter().all(|system| system.name == "myelin.dds")),
    }
    systems
}

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}
