//! Streams of every system through the real executable and the real middleware: several processes,
//! several topics, and what becomes of messages when a subscriber stands still. Skips, with a line
//! that says so, what is not installed.

#[path = "../../../kit/tests/support/own_host.rs"]
mod own_host;
#[path = "../../../kit/tests/support/mod.rs"]
mod support;

use std::collections::HashSet;
use std::path::Path;
use std::sync::MutexGuard;

use myelin_bench_kit::protocol::{Done, Prepare, Reliability, Role, Topology, Workload};
use support::streams::{across, at_rate, frames, one_way_systems};
use support::{Process, Samples};
use tempfile::TempDir;

const EXECUTABLE: &str = env!("CARGO_BIN_EXE_myelin-driver-fastdds");

#[test]
fn streams_and_frames_arrive_as_sent() {
    let _alone = alone();
    for system in systems() {
        let folder = tempfile::tempdir().unwrap();
        let run = |prepare: &Prepare| {
            let directory = folder.path().into();
            let (domain, match_timeout_ns) = (DOMAIN, MATCH_TIMEOUT_NS);
            let prepare = Prepare { directory, domain, match_timeout_ns, ..prepare.clone() };
            across(Path::new(EXECUTABLE), &prepare)
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
    let _alone = alone();
    for system in systems() {
        for (payload_bytes, messages) in [(0, 1000), (70_000, 100), (1 << 20, 30)] {
            let prepare = Prepare { payload_bytes, messages, ..reliable(&system) };
            let mut crew = Crew::open(&prepare);
            crew.finish().expect_all(&prepare);
        }
    }
}

#[test]
fn every_subscriber_gets_what_every_publisher_sends() {
    let _alone = alone();
    for system in systems() {
        for (publishers, subscribers) in [(1, 3), (3, 1), (2, 2)] {
            let prepare = Prepare { publishers, subscribers, ..reliable(&system) };
            Crew::open(&prepare).finish().expect_all(&prepare);
        }
    }
}

#[test]
fn topics_are_served_alike() {
    let _alone = alone();
    for system in systems() {
        let prepare = Prepare { topics: 50, messages: 500, ..reliable(&system) };
        let mut crew = Crew::open(&prepare);
        crew.finish().expect_all(&prepare);
    }
}

#[test]
fn a_reliable_publisher_waits_for_a_subscriber_that_stands_still() {
    let _alone = alone();
    for system in systems() {
        for topics in [1, 3] {
            let prepare = Prepare { depth: 4, topics, messages: 2000, ..reliable(&system) };
            let mut crew = Crew::open(&prepare);
            crew.go();
            crew.ping_samples[0].await_first();
            let stopped = crew.stop_pong();
            // Far more is due in this time than all histories hold.
            std::thread::sleep(std::time::Duration::from_millis(300));
            drop(stopped);
            crew.end().expect_all(&prepare);
        }
    }
}

#[test]
fn a_best_effort_publisher_waits_for_nobody() {
    let _alone = alone();
    for system in systems() {
        let prepare = Prepare { depth: 4, messages: 2000, ..stream(&system) };
        let mut crew = Crew::open(&prepare);
        crew.go();
        crew.pong_samples[0].await_first();
        let stopped = crew.stop_pong();
        let ping = crew.pings[0].expect_done();
        assert_eq!(ping.sent, prepare.messages, "{system}: it published all while nobody took");
        drop(stopped);
        let pong = crew.stop_all();
        assert!(pong[0].received > 0 && pong[0].received < prepare.messages, "{system}: {pong:?}");
        let bad = [pong[0].duplicates, pong[0].out_of_order, pong[0].corrupt];
        assert_eq!(bad, [0; 3], "{system}: {pong:?}");
    }
}

#[test]
fn a_side_without_all_of_its_counterparts_does_not_begin() {
    let _alone = alone();
    for system in systems() {
        let prepare =
            Prepare { subscribers: 2, match_timeout_ns: 1_500_000_000, ..stream(&system) };
        let crew = Crew::start(&Prepare { subscribers: 1, ..prepare.clone() }, &prepare);
        let [message, remedy, _] = crew.pings[0].expect_error();
        assert!(message.contains("too few, read"), "{system}: {message}");
        assert!(remedy.contains("match_timeout_ms"), "{system}: {remedy}");
        // Pong is killed with it.
        drop(crew);
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
struct Crew {
    pings: Vec<Process>,
    pongs: Vec<Process>,
    ping_samples: Vec<Samples>,
    /// The system process of the first pong.
    pong_pid: u32,
    pong_samples: Vec<Samples>,
    _folder: TempDir,
}

impl Crew {
    /// Starts all of them and waits until they are ready.
    fn open(prepare: &Prepare) -> Self {
        let crew = Crew::start(prepare, prepare);
        crew.pings.iter().chain(&crew.pongs).for_each(Process::expect_ready);
        crew
    }

    /// Starts as many processes as `cast` says, and tells them `prepare`.
    fn start(cast: &Prepare, prepare: &Prepare) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let prepare = Prepare {
            run: support::unique_run(),
            directory: folder.path().into(),
            ..prepare.clone()
        };
        let before = children();
        let (pongs, pong_samples) = troupe(Role::Pong, cast.subscribers, &prepare);
        let new: Vec<u32> = children().difference(&before).copied().collect();
        let pong_pid = *new.first().expect("pong has been started");
        let (pings, ping_samples) = troupe(Role::Ping, cast.publishers, &prepare);
        Crew { pings, pongs, ping_samples, pong_pid, pong_samples, _folder: folder }
    }

    fn go(&mut self) {
        self.pongs.iter_mut().chain(&mut self.pings).for_each(Process::go);
    }

    /// Runs to the end.
    fn finish(&mut self) -> Books {
        self.go();
        self.end()
    }

    fn end(&mut self) -> Books {
        let pings = self.pings.iter().map(Process::expect_done).collect();
        let pongs = self.stop_all();
        Books { pings, pongs }
    }

    /// Stops all, publishers last; what the pongs have counted.
    fn stop_all(&mut self) -> Vec<Done> {
        let done = self.pongs.iter_mut().map(Process::stop_at_goodbye).collect();
        self.pings.iter_mut().for_each(Process::stop_and_expect_end);
        done
    }

    /// Has pong stand still until what is returned is dropped.
    fn stop_pong(&self) -> Stopped {
        assert_eq!(self.pongs.len(), 1);
        signal(self.pong_pid, libc::SIGSTOP);
        Stopped(self.pong_pid)
    }
}

fn troupe(role: Role, size: u32, prepare: &Prepare) -> (Vec<Process>, Vec<Samples>) {
    let members = (0..size).map(|index| {
        let samples = Samples::new(prepare.messages * u64::from(prepare.publishers));
        let path = Some(samples.path());
        let prepare = Prepare { role, index, samples: path, ..prepare.clone() };
        (Process::start(Path::new(EXECUTABLE), &prepare), samples)
    });
    members.unzip()
}

/// What all processes have counted.
struct Books {
    pings: Vec<Done>,
    pongs: Vec<Done>,
}

impl Books {
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

/// A process that stands still.
struct Stopped(u32);

impl Drop for Stopped {
    fn drop(&mut self) {
        signal(self.0, libc::SIGCONT);
    }
}

fn signal(pid: u32, signal: libc::c_int) {
    // SAFETY: kill has no preconditions; the process is this test's own.
    assert_eq!(unsafe { libc::kill(pid as libc::pid_t, signal) }, 0);
}

/// The processes that this one has started.
fn children() -> HashSet<u32> {
    let tasks = std::fs::read_dir("/proc/self/task").unwrap().map_while(Result::ok);
    let lists = tasks.map(|task| std::fs::read_to_string(task.path().join("children")));
    let lists: Vec<String> = lists.map_while(Result::ok).collect();
    lists.iter().flat_map(|list| list.split_whitespace()).map(|pid| pid.parse().unwrap()).collect()
}

/// The systems that can run here; says so if there are none.
fn systems() -> Vec<String> {
    let systems = one_way_systems(Path::new(EXECUTABLE), Topology::TwoProcesses);
    if systems.is_empty() {
        eprintln!("skipped: Fast DDS is not installed");
    }
    systems.into_iter().map(|system| system.name).collect()
}

/// One test at a time, on a host of its own: a best-effort stream on a busy machine proves little.
fn alone() -> MutexGuard<'static, ()> {
    own_host::alone()
}

const DATA_SHARING: &str = "fastdds.datasharing";
/// Apart from the domains of other tests.
const DOMAIN: u32 = 92;
/// Generous: a busy machine may need several rounds of discovery.
const MATCH_TIMEOUT_NS: u64 = 50_000_000_000;
