//! Streams and frames of every system, through the real executable. Skips, with a line that says
//! so, what is not installed.

use std::path::Path;

use crate::support::Process;
use crate::support::many_to_many::{
    a_best_effort_publisher_goes_on, a_reliable_publisher_waits, every_message_arrives,
};
use crate::support::streams::{across, at_rate, frames, one_way_systems};
use crate::{EXECUTABLE, own_host};
use myelin_bench_kit::protocol::{
    Command, Prepare, Reliability, Role, System, Topology, Transport,
};

/// One test, on a host, and so with a RouDi, of its own.
#[test]
fn streams_and_frames_arrive_as_sent() {
    let _host = own_host::enter();
    let systems = one_way_systems(executable(), Topology::TwoProcesses);
    if systems.is_empty() {
        eprintln!("skipped: CycloneDDS is not installed");
    }
    for system in systems {
        for payload_bytes in [0, 1003, 60_000] {
            run(&system, &Prepare { payload_bytes, ..at_rate(&system.name) });
        }
        run(&system, &frames(&system.name));
        many(&system);
        match system.streams.reliability.contains(&Reliability::Reliable) {
            true => reliable(&system),
            false => assert_eq!(system.transport, Transport::SharedMemory, "{}", system.name),
        }
    }
}

fn run(system: &System, prepare: &Prepare) {
    within_domain(system, prepare, |prepare| {
        let ran = across(executable(), prepare);
        assert!(ran.pongs.iter().all(|pong| pong.wake_ns > 0), "{}", system.name);
        assert_eq!(ran.pings.iter().all(|ping| ping.loan_ns > 0), system.loans, "{}", system.name);
    });
}

/// Several publishers, subscribers and topics, and a depth that holds all that one subscriber is
/// sent, should a busy machine not run it until the end.
fn many(system: &System) {
    let slow = Prepare { rate_hz: Some(500.0), depth: 255, ..at_rate(&system.name) };
    let messages = 40;
    for (publishers, subscribers, topics) in [(1, 3, 1), (3, 1, 1), (2, 2, 3), (6, 6, 1)] {
        let prepare = Prepare { publishers, subscribers, topics, messages, ..slow.clone() };
        within_domain(system, &prepare, |prepare| every_message_arrives(executable(), prepare));
    }
    let topics = match system.streams.topics_max {
        0 => TOPICS_MAX,
        topics => topics.min(TOPICS_MAX),
    };
    let depth = 4;
    let many = Prepare { topics, depth, messages: 2 * u64::from(topics), ..slow.clone() };
    within_domain(system, &many, |prepare| every_message_arrives(executable(), prepare));
    let flood = Prepare { rate_hz: Some(50_000.0), messages: 3000, depth: 4, ..slow };
    within_domain(system, &flood, |prepare| {
        a_best_effort_publisher_goes_on(executable(), prepare);
    });
}

fn reliable(system: &System) {
    let reliability = Reliability::Reliable;
    let flood = Prepare { rate_hz: Some(100_000.0), depth: 16, ..at_rate(&system.name) };
    let slow = Prepare { messages: 2000, payload_bytes: 20_000, ..flood.clone() };
    within_domain(system, &slow, |prepare| a_reliable_publisher_waits(executable(), prepare));
    let two = Prepare { messages: 500, subscribers: 2, publishers: 2, ..slow };
    within_domain(system, &two, |prepare| a_reliable_publisher_waits(executable(), prepare));
    for (payload_bytes, messages) in [(64, 3000), (10 << 20, 5)] {
        let large = Prepare { payload_bytes, messages, reliability, ..flood.clone() };
        within_domain(system, &large, |prepare| every_message_arrives(executable(), prepare));
    }
}

/// `then` in a folder and a domain of its own, with the daemon if the system needs one.
pub fn within_domain(system: &System, prepare: &Prepare, then: impl FnOnce(&Prepare)) {
    let folder = tempfile::tempdir().unwrap();
    let prepare = Prepare { directory: folder.path().into(), domain: 77, ..prepare.clone() };
    let daemon = system.daemon.then(|| {
        let daemon = Prepare { role: Role::Daemon, ..prepare.clone() };
        let daemon = Process::start(executable(), &daemon);
        daemon.expect_ready();
        daemon
    });
    then(&prepare);
    if let Some(mut daemon) = daemon {
        daemon.say(&Command::Stop);
        daemon.expect_done();
        assert!(daemon.expect_end().success());
    }
}

fn executable() -> &'static Path {
    Path::new(EXECUTABLE)
}

/// More would only take longer.
const TOPICS_MAX: u32 = 300;
