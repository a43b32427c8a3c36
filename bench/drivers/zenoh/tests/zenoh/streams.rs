//! Streams and frames of both systems through the real executable: every message is accounted for,
//! with several publishers, subscribers and topics, best effort and reliable.

use std::path::Path;
use std::time::Duration;

use crate::support;
use crate::support::streams::{across, at_rate, frames, one_way_systems, replays_arrive};
use crate::support::{Pair, Process, Samples, WATCHDOG};
use myelin_bench_kit::protocol::{Command, Done, Prepare, Reliability, Role, Topology};

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-zenoh");
const SYSTEMS: [&str; 2] = ["zenoh.tcp", "zenoh.shm"];

#[test]
fn recordings_arrive_as_sent() {
    replays_arrive(Path::new(EXECUTABLE));
}

#[test]
fn streams_and_frames_arrive_as_sent() {
    let systems = one_way_systems(Path::new(EXECUTABLE), Topology::TwoProcesses);
    let names: Vec<String> = systems.into_iter().map(|system| system.name).collect();
    assert_eq!(names, SYSTEMS);
    let folder = tempfile::tempdir().unwrap();
    for name in names {
        for payload_bytes in [0, 64, 70_000] {
            let directory = folder.path().into();
            let run = Prepare { payload_bytes, directory, ..at_rate(&name) };
            across(Path::new(EXECUTABLE), &run);
        }
        let run = Prepare { directory: folder.path().into(), ..frames(&name) };
        let ran = across(Path::new(EXECUTABLE), &run);
        let has_loans = ran.pings.iter().all(|ping| ping.loan_ns > 0);
        assert_eq!(has_loans, name == "zenoh.shm", "{name}: loans");
    }
}

#[test]
fn a_reliable_publisher_waits_and_nothing_is_lost() {
    for system in SYSTEMS {
        for (payload_bytes, messages) in [(64, 20_000), (100_000, 2_000)] {
            // Faster than possible, so the publisher is blocked.
            let run = Prepare {
                reliability: Reliability::Reliable,
                rate_hz: Some(1e6),
                depth: 2,
                payload_bytes,
                messages,
                ..at_rate(system)
            };
            let (pings, pongs) = group(&run);
            assert_eq!(pings[0].sent, messages, "{system}");
            let pong = &pongs[0];
            assert_eq!(pong.received + taken_back(pong), messages, "{system}: {pong:?}");
            assert_eq!((pong.corrupt, pong.out_of_order), (0, 0), "{system}: {pong:?}");
        }
    }
}

#[test]
fn a_best_effort_publisher_loses_without_damage() {
    for system in SYSTEMS {
        let fast = Prepare { rate_hz: Some(1e6), depth: 1, messages: 3_000, ..at_rate(system) };
        let (pings, pongs) = group(&Prepare { payload_bytes: 100_000, ..fast });
        let pong = &pongs[0];
        assert_eq!(pings[0].sent, 3_000, "{system}");
        assert!(pong.received > 0 && pong.received + pong.lost <= 3_000, "{system}: {pong:?}");
        assert_eq!((pong.corrupt, pong.out_of_order, pong.duplicates), (0, 0, 0), "{system}");
    }
}

#[test]
fn several_publishers_reach_several_subscribers() {
    for system in SYSTEMS {
        let run = Prepare {
            publishers: 3,
            subscribers: 2,
            topics: 2,
            reliability: Reliability::Reliable,
            rate_hz: Some(500.0),
            ..at_rate(system)
        };
        let (pings, pongs) = group(&run);
        let sent: u64 = pings.iter().map(|ping| ping.sent).sum();
        assert_eq!(sent, 3 * run.messages);
        for pong in pongs {
            assert_eq!(pong.received + taken_back(&pong), sent, "{system}: {pong:?}");
            assert_eq!((pong.duplicates, pong.corrupt), (0, 0), "{system}");
        }
    }
}

#[test]
fn messages_that_zenoh_reclaims_are_lost_and_reported() {
    // Zenoh's watchdog checks every 100 ms, and takes memory back at the second check; later on a
    // busy machine.
    let mut held = Duration::from_millis(250);
    while held_up_for(held) == 0 {
        held *= 2;
        assert!(held < WATCHDOG, "Zenoh never takes anything back");
    }
}

/// The number of messages that Zenoh takes back from a pong that stands still for this long while
/// it holds all messages.
fn held_up_for(held: Duration) -> u64 {
    let folder = tempfile::tempdir().unwrap();
    let run = Prepare {
        reliability: Reliability::Reliable,
        directory: folder.path().into(),
        messages: 100,
        ..at_rate("zenoh.shm")
    };
    let mut pair = Pair::open(Path::new(EXECUTABLE), &run, run.messages);
    // Pong keeps them when they arrive, because it may not count yet.
    pair.ping.go();
    assert_eq!(pair.ping.expect_done().sent, run.messages);
    pair.pong.pause();
    std::thread::sleep(held);
    pair.pong.resume();
    pair.pong.go();
    pair.pong.say(&Command::Stop);
    let pong = pair.pong.expect_done();
    // Warm-up and last message are counted in addition.
    assert!(pong.received + taken_back(&pong) >= run.messages, "{pong:?}");
    assert!(pair.pong.expect_end().success());
    pair.ping.stop_and_expect_end();
    taken_back(&pong)
}

/// The number of messages that Zenoh has taken back, according to pong: 0 unless it stood still for
/// 100 ms.
fn taken_back(pong: &Done) -> u64 {
    let number = |note: &String| note.split(' ').next()?.parse::<u64>().ok();
    pong.notes.iter().filter_map(number).sum()
}

#[test]
fn a_timeout_says_how_many_subscribers_connected() {
    let folder = tempfile::tempdir().unwrap();
    let samples = [Samples::new(1), Samples::new(1)];
    let run = support::unique_run();
    let one = |role, samples: &Samples| Prepare {
        run: run.clone(),
        role,
        directory: folder.path().into(),
        samples: Some(samples.path()),
        subscribers: 2,
        match_timeout_ns: 500_000_000,
        ..at_rate("zenoh.tcp")
    };
    let pong = Process::start(Path::new(EXECUTABLE), &one(Role::Pong, &samples[0]));
    let ping = Process::start(Path::new(EXECUTABLE), &one(Role::Ping, &samples[1]));
    let [message, remedy, _] = ping.expect_error();
    assert_eq!(message, "1 of 2 pongs connected within 0.5 s");
    assert!(remedy.contains("pong's log"), "{remedy}");
    drop(pong);
}

/// Runs all processes of `prepare` to the end; returns the counts of pings and pongs.
fn group(prepare: &Prepare) -> (Vec<Done>, Vec<Done>) {
    let folder = tempfile::tempdir().unwrap();
    let run = support::unique_run();
    let start = |role, index| {
        let samples = Samples::new(prepare.messages);
        let directory = folder.path().into();
        let (run, paths) = (run.clone(), Some(samples.path()));
        let one = Prepare { role, index, run, directory, samples: paths, ..prepare.clone() };
        (Process::start(Path::new(EXECUTABLE), &one), samples)
    };
    let mut pongs: Vec<_> =
        (0..prepare.subscribers).map(|index| start(Role::Pong, index)).collect();
    let mut pings: Vec<_> = (0..prepare.publishers).map(|index| start(Role::Ping, index)).collect();
    pongs.iter().chain(&pings).for_each(|(process, _)| process.expect_ready());
    pongs.iter_mut().chain(&mut pings).for_each(|(process, _)| process.go());
    let ping_counts = pings.iter().map(|(process, _)| process.expect_done()).collect();
    if prepare.reliability == Reliability::BestEffort {
        // Its last message may have been lost.
        pongs.iter_mut().for_each(|(pong, _)| pong.say(&Command::Stop));
    }
    let pong_counts = pongs.iter().map(|(process, _)| process.expect_done()).collect();
    // Pongs first: the shared memory of unread messages vanishes with its publisher.
    for (process, _) in pongs.iter_mut().chain(&mut pings) {
        process.say(&Command::Stop);
        assert!(process.expect_end().success());
    }
    (ping_counts, pong_counts)
}
