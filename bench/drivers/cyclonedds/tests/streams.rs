//! Streams and frames of every system, through the real executable. Skips, with a line that says
//! so, what is not installed.

#[path = "../../../kit/tests/support/mod.rs"]
mod support;

use std::path::Path;

use myelin_bench_kit::protocol::{Command, Prepare, Role, System, Topology};
use support::Process;
use support::streams::{across, at_rate, frames, one_way_systems};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-cyclonedds");

/// One test, as there is one RouDi on a host.
#[test]
fn streams_and_frames_arrive_as_sent() {
    let systems = one_way_systems(Path::new(EXECUTABLE), Topology::TwoProcesses);
    if systems.is_empty() {
        eprintln!("skipped: CycloneDDS is not installed");
    }
    for system in systems {
        for payload_bytes in [0, 1003, 60_000] {
            run(&system, &Prepare { payload_bytes, ..at_rate(&system.name) });
        }
        run(&system, &frames(&system.name));
    }
}

fn run(system: &System, prepare: &Prepare) {
    let folder = tempfile::tempdir().unwrap();
    let prepare = Prepare { directory: folder.path().into(), domain: 77, ..prepare.clone() };
    let daemon = system.daemon.then(|| {
        let daemon = Prepare { role: Role::Daemon, ..prepare.clone() };
        let daemon = Process::start(Path::new(EXECUTABLE), &daemon);
        daemon.expect_ready();
        daemon
    });
    let ran = across(Path::new(EXECUTABLE), &prepare);
    assert!(ran.pongs.iter().all(|pong| pong.wake_ns > 0), "{}", system.name);
    assert_eq!(ran.pings.iter().all(|ping| ping.loan_ns > 0), system.loans, "{}", system.name);
    if let Some(mut daemon) = daemon {
        daemon.say(&Command::Stop);
        daemon.expect_done();
        assert!(daemon.expect_end().success());
    }
}
