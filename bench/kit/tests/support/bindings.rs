//! Tests that the drivers of Myelin in other languages share; they include it by its path.

use std::path::Path;

use myelin_bench_kit::protocol::{Prepare, Role, System, Topology};

use crate::own_host;
use crate::support::many_to_many::{a_reliable_publisher_waits, every_message_arrives};
use crate::support::streams::{across, at_rate, frames};
use crate::support::{Pair, describe, prepare};

/// The systems of `executable`; none, with a message that says why, if it was built without the
/// library.
pub fn systems(executable: &Path, language: &str) -> Vec<System> {
    let systems = describe(executable).systems;
    let names: Vec<_> = systems.iter().map(|system| system.name.as_str()).collect();
    assert_eq!(names, ["poll", "block"].map(|way| format!("myelin-{language}.shm-{way}")));
    assert!(systems.iter().all(|system| system.topology == Topology::TwoProcesses));
    match systems.iter().find_map(|system| system.missing.as_ref()) {
        None => systems,
        Some(missing) => {
            println!("left out: myelin-{language}: {missing}");
            assert!(missing.contains("scripts/"), "{missing}");
            Vec::new()
        }
    }
}

/// Round trips, streams and frames, also with several processes and with reliability.
pub fn messages_arrive_as_sent(executable: &Path, language: &str) {
    let _alone = own_host::alone();
    for system in systems(executable, language) {
        for (payload_bytes, messages) in
            [(0, 200), (64, 200), (200, 200), (70_000, 200), (1 << 20, 20)]
        {
            let prepare = Prepare { payload_bytes, messages, ..prepare(&system.name, Role::Ping) };
            Pair::exchange(executable, &prepare);
        }
        for payload_bytes in [64, 70_000] {
            across(executable, &Prepare { payload_bytes, ..at_rate(&system.name) });
        }
        let ran = across(executable, &frames(&system.name));
        assert!(ran.pings.iter().all(|ping| ping.loan_ns > 0), "{}: loans", system.name);
        let few = Prepare { messages: 100, depth: 128, ..at_rate(&system.name) };
        every_message_arrives(executable, &Prepare { publishers: 2, subscribers: 2, ..few });
        let flood = Prepare { rate_hz: Some(100_000.0), messages: 3000, ..at_rate(&system.name) };
        a_reliable_publisher_waits(executable, &flood);
    }
}
