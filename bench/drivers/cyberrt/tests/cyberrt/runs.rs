//! Ping and pong of every system through the real executable and CyberRT. Skipped, with a message,
//! if CyberRT is not built in; then the driver's own message is tested.

use std::fs;
use std::process::Command;

use myelin_bench_kit::protocol::{Prepare, Reliability, Role, System, Topology, Wait, Workload};
use tempfile::TempDir;

use crate::many::{hear_every_publisher, reach_every_subscriber};
use crate::support::hosts::{
    ADDRESSES, Hosts, a_cut_is_survived, nobody_is_reached, nothing_leaves_the_host,
    streams_arrive, systems_across,
};
use crate::support::streams::{across, at_rate, frames, within};
use crate::support::{Pair, Process, Samples, describe, prepare, unique_run};
use crate::{executable, own_host};

#[test]
fn the_systems_say_what_they_are() {
    let systems = describe(executable()).systems;
    let names: Vec<&str> = systems.iter().map(|system| system.name.as_str()).collect();
    assert_eq!(
        names,
        ["cyberrt.shm", "cyberrt.shm-multicast", "cyberrt.arena", "cyberrt.intra", "cyberrt.rtps"]
    );
    for system in &systems {
        assert!(system.wait == Wait::Callback && !system.daemon && !system.floor);
        assert_eq!(system.across_hosts, system.name == "cyberrt.rtps");
        assert_eq!(system.topology == Topology::OneProcess, system.name == "cyberrt.intra");
        assert_eq!(system.streams.reliability, [Reliability::BestEffort]);
        // With several publishers each message would arrive several times in an arena.
        let is_one = ["cyberrt.arena", "cyberrt.intra"].contains(&system.name.as_str());
        assert_eq!(system.streams.publishers_max == 1, is_one, "{}", system.name);
        match &system.missing {
            Some(missing) if missing.contains("namespaces") => assert!(missing.contains("root")),
            Some(missing) => {
                assert!(
                    missing.contains("CYBERRT_DIR") && missing.contains("README.md"),
                    "{missing}"
                );
            }
            None => assert!(!system.version.is_empty()),
        }
    }
}

#[test]
fn every_payload_comes_back_as_sent() {
    let host = Host::enter();
    for system in systems(Topology::TwoProcesses) {
        for (payload_bytes, messages) in
            [(0, 100), (1003, 100), (65_536, 50), (1 << 20, 10), (10 << 20, 3)]
        {
            let what = format!("{} with {payload_bytes} B", system.name);
            let (run, _folder) = ours(&system, Role::Ping);
            let pair = Pair::exchange(executable(), &Prepare { payload_bytes, messages, ..run });
            let (pings, pongs) = (pair.ping_samples.records(), pair.pong_samples.records());
            for (ping, pong) in pings.iter().zip(&pongs) {
                let there_and_back =
                    [ping.publish_entry_ns, pong.take_return_ns, ping.wake_ns, ping.take_return_ns];
                assert!(there_and_back.is_sorted(), "{what}: {ping:?} {pong:?}");
            }
        }
        host.expect_untouched(&system.name);
    }
}

#[test]
fn streams_and_frames_arrive_as_sent() {
    let host = Host::enter();
    for system in systems(Topology::TwoProcesses) {
        for prepare in [at_rate(&system.name), frames(&system.name)] {
            let (run, _folder) = ours(&system, Role::Ping);
            // At 2 kHz a reader that lags 16 ms would be overtaken, as the pool has 32 messages.
            let rate_hz = if system.name == "cyberrt.arena" { Some(50.0) } else { prepare.rate_hz };
            let depth = prepare.messages as u32 + AROUND_MESSAGES;
            let Prepare { directory, match_timeout_ns, run, .. } = run;
            across(
                executable(),
                &Prepare { directory, match_timeout_ns, run, rate_hz, depth, ..prepare },
            );
        }
        host.expect_untouched(&system.name);
    }
}

#[test]
fn in_one_process_messages_are_handed_over() {
    let host = Host::enter();
    for system in systems(Topology::OneProcess) {
        for prepare in [at_rate(&system.name), frames(&system.name)] {
            let folder = tempfile::tempdir().unwrap();
            let (depth, directory) =
                (prepare.messages as u32 + AROUND_MESSAGES, folder.path().into());
            within(executable(), &Prepare { depth, directory, ..prepare });
        }
        host.expect_untouched(&system.name);
    }
}

#[test]
fn several_processes_of_a_role_all_match() {
    let _host = Host::enter();
    for system in systems(Topology::TwoProcesses) {
        let (run, _folder) = ours(&system, Role::Ping);
        let (workload, rate_hz) = (Workload::Stream, Some(100.0));
        let stream = Prepare { workload, rate_hz, messages: 50, depth: 200, ..run };
        reach_every_subscriber(executable(), &stream);
        if system.streams.publishers_max > 1 {
            hear_every_publisher(executable(), &stream);
        }
    }
}

#[test]
fn a_missing_other_side_is_a_timeout() {
    let _host = Host::enter();
    for system in systems(Topology::TwoProcesses) {
        for role in [Role::Ping, Role::Pong] {
            let (run, _folder) = ours(&system, role);
            let samples = Samples::new(1);
            let (samples, match_timeout_ns) = (Some(samples.path()), 500_000_000);
            let process =
                Process::start(executable(), &Prepare { samples, match_timeout_ns, ..run });
            let [message, remedy, _] = process.expect_error();
            assert!(message.contains("the other side did not match"), "{message}");
            assert!(remedy.contains("log"), "{remedy}");
        }
    }
}

#[test]
fn killed_roles_leave_nothing() {
    let host = Host::enter();
    for system in systems(Topology::TwoProcesses) {
        let (run, _folder) = ours(&system, Role::Ping);
        let run = Prepare { messages: 0, rate_hz: Some(100.0), payload_bytes: 100_000, ..run };
        let mut pair = Pair::open(executable(), &run, 1_000_000);
        pair.pong.go();
        pair.ping.go();
        pair.ping_samples.await_first();
        pair.ping.kill();
        pair.pong.kill();
        host.expect_untouched(&system.name);
    }
}

/// Its statistics must go into the folder of the run.
#[test]
fn no_files_are_left_in_the_working_directory() {
    let _host = Host::enter();
    let Some(system) = systems(Topology::TwoProcesses).pop() else { return };
    let (run, _folder) = ours(&system, Role::Ping);
    let place = tempfile::tempdir().unwrap();
    let mut pair = Pair::start(&run, run.messages, |prepare| {
        let mut program = Command::new(executable());
        program.current_dir(place.path());
        Process::start_by(program, prepare)
    });
    pair.ping.expect_ready();
    pair.pong.expect_ready();
    pair.finish();
    let left: Vec<_> = fs::read_dir(place.path()).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn nothing_leaves_one_host() {
    nothing_leaves_the_host(executable());
}

#[test]
fn rtps_reaches_another_host() {
    for system in systems_across(executable()) {
        assert_eq!(system.name, "cyberrt.rtps");
        let Some(hosts) = Hosts::new(ADDRESSES) else { return };
        for (payload_bytes, messages) in [(64, 200), (70_000, 50), (1 << 20, 10)] {
            let prepare = Prepare { payload_bytes, messages, ..prepare(&system.name, Role::Ping) };
            let (ping, pong) = hosts.open(executable(), &prepare).finish();
            assert_eq!((ping.received, ping.corrupt), (messages, 0), "{payload_bytes} B");
            assert_eq!((pong.received, pong.corrupt), (messages, 0), "{payload_bytes} B");
        }
        streams_arrive(executable(), &system);
        a_cut_is_survived(executable(), &system);
    }
}

#[test]
fn a_host_that_is_not_reached_is_missed_and_ipv6_refused() {
    for system in systems_across(executable()) {
        let Some(roles) = nobody_is_reached(executable(), &system) else { return };
        for [message, ..] in roles {
            assert!(message.contains("the other side did not match"), "{message}");
        }
        let Some(hosts) = Hosts::new(["fd00:9:8::1/64", "fd00:9:8::2/64"]) else { return };
        let prepare = prepare(&system.name, Role::Ping);
        let pair = hosts.start(executable(), &prepare, |role| hosts.network(role));
        for process in [&pair.ping, &pair.pong] {
            let [message, remedy, _] = process.expect_error();
            assert!(message.contains("IPv4 alone") && remedy.contains("IPv4"), "{message}");
        }
    }
}

/// The state before a test's processes start: a private host, where nobody else sends or has
/// segments.
struct Host {
    _turn: own_host::Turn,
    interfaces: String,
}

impl Host {
    fn enter() -> Self {
        let turn = own_host::alone();
        // SAFETY: the call takes only flags. If it is not permitted, no system can run anyway.
        unsafe { libc::unshare(libc::CLONE_NEWIPC) };
        Host { _turn: turn, interfaces: interfaces() }
    }

    /// Asserts that no interface has new packets and that there is no System V segment.
    fn expect_untouched(&self, system: &str) {
        assert_eq!(interfaces(), self.interfaces, "{system}");
        let segments = fs::read_to_string("/proc/sysvipc/shm").unwrap();
        assert_eq!(segments.lines().count(), 1, "{system}: {segments}");
    }
}

/// The counters of every interface.
fn interfaces() -> String {
    fs::read_to_string(format!("{}/dev", own_host::NET)).unwrap()
}

fn ours(system: &System, role: Role) -> (Prepare, TempDir) {
    let folder = tempfile::tempdir().unwrap();
    let (directory, run) = (folder.path().into(), unique_run());
    let (match_timeout_ns, warmup_messages) = (MATCH_TIMEOUT_NS, 2);
    let prepare = Prepare {
        directory,
        run,
        match_timeout_ns,
        warmup_messages,
        ..prepare(&system.name, role)
    };
    (prepare, folder)
}

/// The systems that can run here; prints which cannot.
fn systems(topology: Topology) -> Vec<System> {
    let systems = describe(executable()).systems.into_iter();
    let (there, absent): (Vec<_>, Vec<_>) = systems
        .filter(|system| system.topology == topology)
        .partition(|system| system.missing.is_none());
    for System { name, missing, .. } in absent {
        println!("skipped: {name}: {}", missing.unwrap_or_default());
    }
    there
}

/// Its processes have 34 threads each, and the machine may be busy.
const MATCH_TIMEOUT_NS: u64 = 30_000_000_000;
/// Unmeasured messages: warm-up and last message.
const AROUND_MESSAGES: u32 = 16;
