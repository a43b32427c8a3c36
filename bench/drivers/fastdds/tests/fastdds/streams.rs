//! Streams of every system through the real executable and the real middleware: several processes,
//! several topics, and what becomes of messages when a subscriber stands still. Skips, with a line
//! that says so, what is not installed.

use std::path::Path;

use crate::own_host;
use crate::support;
use crate::support::many_to_many::await_standstill;
use crate::support::streams::{across, at_rate, frames, one_way_systems};
use crate::support::{Process, Samples};
use myelin_bench_kit::protocol::{Done, Prepare, Reliability, Role, Topology, Workload};
use tempfile::TempDir;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-fastdds");

#[test]
fn streams_and_frames_arrive_as_sent() {
    let _host = own_host::enter();
    for system in systems() {
        let folder = tempfile::tempdir().unwrap();
        let run = |prepare: &Prepare| {
            let directory = folder.path().into();
            let (domain, match_timeout_ns) = (DOMAIN, MATCH_TIMEOUT_NS);
            let prepare = Prepare { directory, domain, match_timeout_ns, ..prepare.clone() };
            // By data sharing a best-effort publisher overwrites what a subscriber that lags by the depth
            // is just reading in place, and that is damaged then. So it never lags by so much here.
            let depth = prepare.messages as u32 + AROUND_MESSAGES;
            across(Path::new(EXECUTABLE), &Prepare { depth, ..prepare })
        };
        for payload_bytes in [0, 1003, 60_000] {
            let ran = run(&Prepare { payload_bytes, ..at_rate(&system) });
            assert!(ran.pongs.iter().all(|pong| pong.wake_ns > 0), "{system}");
        }
        let ran = run(&frames(&system));
        assert_eq!(ran.pings.iter().all(|ping| ping.loan_ns > 0), system == DATA_SHARING);
    }
}

#[test]
fn reliable_streams_lose_nothing() {
    let _host = own_host::enter();
    for system in systems() {
        for (payload_bytes, messages) in [(0, 1000), (70_000, 100), (1 << 20, 30)] {
            let prepare = Prepare { payload_bytes, messages, ..reliable(&system) };
            let mut processes = Processes::open(&prepare);
            processes.finish().expect_all(&prepare);
        }
    }
}

#[test]
fn every_subscriber_gets_all_messages_of_every_publisher() {
    let _host = own_host::enter();
    for system in systems() {
        for (publishers, subscribers) in [(1, 3), (3, 1), (2, 2)] {
            let prepare = Prepare { publishers, subscribers, ..reliable(&system) };
            Processes::open(&prepare).finish().expect_all(&prepare);
        }
    }
}

#[test]
fn topics_are_served_alike() {
    let _host = own_host::enter();
    for system in systems() {
        let prepare = Prepare { topics: 50, messages: 500, ..reliable(&system) };
        let mut processes = Processes::open(&prepare);
        processes.finish().expect_all(&prepare);
    }
}

#[test]
fn a_reliable_publisher_waits_for_a_stalled_subscriber() {
    let _host = own_host::enter();
    for system in systems() {
        for topics in [1, 3] {
            let prepare = Prepare { depth: 4, topics, messages: 2000, ..reliable(&system) };
            let mut processes = Processes::open(&prepare);
            processes.go();
            processes.ping_samples[0].await_first();
            processes.pongs[0].pause();
            await_standstill(&processes.ping_samples[0]);
            processes.pongs[0].resume();
            processes.end().expect_all(&prepare);
        }
    }
}

#[test]
fn a_best_effort_publisher_does_not_wait() {
    let _host = own_host::enter();
    for system in systems() {
        let prepare = Prepare { depth: 4, messages: 2000, ..stream(&system) };
        let mut processes = Processes::open(&prepare);
        processes.go();
        processes.pong_samples[0].await_first();
        processes.pongs[0].pause();
        let ping = processes.pings[0].expect_done();
        assert_eq!(ping.sent, prepare.messages, "{system}: it published all while nobody took");
        processes.pongs[0].resume();
        let pong = processes.stop_all();
        assert!(pong[0].received > 0 && pong[0].received < prepare.messages, "{system}: {pong:?}");
        // By data sharing it reads in place what is overwritten meanwhile, and finds a later message there.
        if system != "fastdds.datasharing" {
            let bad = [pong[0].duplicates, pong[0].out_of_order, pong[0].corrupt];
            assert_eq!(bad, [0; 3], "{system}: {pong:?}");
        }
    }
}

#[test]
fn a_side_does_not_begin_before_all_others_have_matched() {
    let _host = own_host::enter();
    for system in systems() {
        let prepare =
            Prepare { subscribers: 2, match_timeout_ns: 1_500_000_000, ..stream(&system) };
        let processes = Processes::start(&Prepare { subscribers: 1, ..prepare.clone() }, &prepare);
        let [message, remedy, _] = processes.pings[0].expect_error();
        assert!(message.contains("too few readers"), "{system}: {message}");
        assert!(remedy.contains("match_timeout_ms"), "{system}: {remedy}");
        // Pong is killed with it.
        drop(processes);
        let cleaned = std::process::Command::new(EXECUTABLE).arg("clean").status().unwrap();
        assert!(cleaned.success());
    }
}

fn stream(system: &str) -> Prepare {
    Prepare {
        domain: DOMAIN,
        match_timeout_ns: MATCH_TIMEOUT_NS,
        workload: Workload::Stream,
        messages: 300,
        ..at_rate(system)
    }
}

fn reliable(system: &str) -> Prepare {
    Prepare { reliability: Reliability::Reliable, ..stream(system) }
}

/// All processes of a run.
struct Processes {
    pings: Vec<Process>,
    pongs: Vec<Process>,
    ping_samples: Vec<Samples>,
    pong_samples: Vec<Samples>,
    _folder: TempDir,
}

impl Processes {
    /// Starts all of them and waits until they are ready.
    fn open(prepare: &Prepare) -> Self {
        let processes = Processes::start(prepare, prepare);
        processes.pings.iter().chain(&processes.pongs).for_each(Process::expect_ready);
        processes
    }

    /// Starts as many processes as `counts` says, and tells them `prepare`.
    fn start(counts: &Prepare, prepare: &Prepare) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let prepare = Prepare {
            run: support::unique_run(),
            directory: folder.path().into(),
            ..prepare.clone()
        };
        let (pongs, pong_samples) = start_all(Role::Pong, counts.subscribers, &prepare);
        let (pings, ping_samples) = start_all(Role::Ping, counts.publishers, &prepare);
        Processes { pings, pongs, ping_samples, pong_samples, _folder: folder }
    }

    fn go(&mut self) {
        self.pongs.iter_mut().chain(&mut self.pings).for_each(Process::go);
    }

    /// Runs to the end.
    fn finish(&mut self) -> Counts {
        self.go();
        self.end()
    }

    fn end(&mut self) -> Counts {
        let pings = self.pings.iter().map(Process::expect_done).collect();
        let pongs = self.stop_all();
        Counts { pings, pongs }
    }

    /// Stops all, publishers last; what the pongs have counted.
    fn stop_all(&mut self) -> Vec<Done> {
        let done = self.pongs.iter_mut().map(Process::stop_at_goodbye).collect();
        self.pings.iter_mut().for_each(Process::stop_and_expect_end);
        done
    }
}

fn start_all(role: Role, size: u32, prepare: &Prepare) -> (Vec<Process>, Vec<Samples>) {
    let members = (0..size).map(|index| {
        let samples = Samples::new(prepare.messages * u64::from(prepare.publishers));
        let path = Some(samples.path());
        let prepare = Prepare { role, index, samples: path, ..prepare.clone() };
        (Process::start(Path::new(EXECUTABLE), &prepare), samples)
    });
    members.unzip()
}

/// What all processes have counted.
struct Counts {
    pings: Vec<Done>,
    pongs: Vec<Done>,
}

impl Counts {
    /// Each pong has everything that each ping has sent, once and in order.
    fn expect_all(&self, prepare: &Prepare) {
        let what = format!("{} with {} B", prepare.system, prepare.payload_bytes);
        assert!(self.pings.iter().all(|ping| ping.sent == prepare.messages), "{what}");
        let all = prepare.messages * u64::from(prepare.publishers);
        for pong in &self.pongs {
            let bad = [pong.lost, pong.duplicates, pong.corrupt];
            assert_eq!((pong.received, bad), (all, [0; 3]), "{what}: {pong:?}");
            // Several topics have no order among each other.
            assert!(prepare.topics > 1 || pong.out_of_order == 0, "{what}: {pong:?}");
        }
    }
}

/// The systems that can run here; says so if there are none.
fn systems() -> Vec<String> {
    let systems = one_way_systems(Path::new(EXECUTABLE), Topology::TwoProcesses);
    if systems.is_empty() {
        eprintln!("skipped: Fast DDS is not installed");
    }
    systems.into_iter().map(|system| system.name).collect()
}

/// Room for the warm-up and the end of the stream.
const AROUND_MESSAGES: u32 = 16;
const DATA_SHARING: &str = "fastdds.datasharing";
/// Apart from the domains of other tests.
const DOMAIN: u32 = 92;
/// Generous: a busy machine may need several rounds of discovery.
const MATCH_TIMEOUT_NS: u64 = 50_000_000_000;
