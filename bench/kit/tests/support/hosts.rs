//! A driver on two hosts, which are [`Namespaces`].

use std::path::Path;
use std::process::Command as Program;
use std::time::Duration;

use myelin_bench_kit::protocol::{
    Description, Network, Prepare, Reliability, Role, System, Topology,
};
use tempfile::TempDir;

use super::namespaces::{INTERFACE, Namespaces};
use super::streams::{at_rate, finish};
use super::{Pair, Process, describe, prepare};

pub use super::namespaces::ADDRESSES;

/// Ping's host and pong's.
pub struct Hosts {
    spaces: Namespaces,
    /// Folder of the runs, on this host.
    folder: TempDir,
}

impl Hosts {
    /// See [`Namespaces::new`].
    pub fn new(addresses: [&str; 2]) -> Option<Self> {
        let spaces = Namespaces::new(addresses)?;
        Some(Hosts { spaces, folder: tempfile::tempdir().expect("a temporary folder") })
    }

    /// Runs a command on the host of `role`.
    pub fn run(&self, role: Role, command: &[&str]) {
        self.spaces.run(side(role), command);
    }

    /// Waits until a process listens on the first port of a run on the host of `role`.
    pub fn await_listener(&self, role: Role) {
        self.spaces.await_listener(side(role), PORT);
    }

    /// The command that runs `executable` on the host of `role`.
    pub fn program(&self, role: Role, executable: &Path) -> Program {
        self.spaces.program(side(role), executable)
    }

    /// The network from the host of `role` to the other one.
    pub fn network(&self, role: Role) -> Network {
        let [own, peer] = [side(role), 1 - side(role)].map(|host| self.spaces.address(host));
        Network { interface: INTERFACE.into(), own, peer, port: PORT }
    }

    /// Packets that the host of `role` has sent to the other one.
    fn sent_packets(&self, role: Role) -> u64 {
        let counters = self.spaces.run(side(role), &["cat", "/proc/net/dev"]);
        let own = counters.lines().find_map(|line| line.trim().strip_prefix(INTERFACE));
        let fields =
            own.and_then(|line| line.strip_prefix(':')).expect("counters of the interface");
        // The number of sent bytes comes after eight numbers of received packets.
        fields.split_whitespace().nth(9).and_then(|it| it.parse().ok()).expect("a number")
    }

    /// Starts both roles of `prepare`, each on its host, with the network that `network` returns.
    pub fn start(
        &self,
        executable: &Path,
        prepare: &Prepare,
        network: impl Fn(Role) -> Network,
    ) -> Pair {
        Pair::start(prepare, prepare.messages, |prepare| {
            let (network, directory) = (Some(network(prepare.role)), self.folder.path().into());
            let prepare = Prepare { network, directory, ..prepare.clone() };
            Process::start_by(self.program(prepare.role, executable), &prepare)
        })
    }

    /// See [`Pair::open`].
    pub fn open(&self, executable: &Path, prepare: &Prepare) -> Pair {
        let pair = self.start(executable, prepare, |role| self.network(role));
        pair.ping.expect_ready();
        pair.pong.expect_ready();
        pair
    }
}

/// The systems that can run across hosts here, without those that need an identity.
pub fn systems_across(executable: &Path) -> Vec<System> {
    let mut systems = describe(executable).systems;
    systems.retain(|system| system.across_hosts && !system.secure && system.missing.is_none());
    systems
}

/// All of the tests below.
pub fn another_host_is_reached(executable: &Path, system: &System) {
    messages_are_answered(executable, system);
    streams_arrive(executable, system);
    a_cut_is_survived(executable, system);
}

/// The same for a system that needs an IPv4 address.
pub fn another_host_is_reached_by_ipv4(executable: &Path, system: &System) {
    answered(executable, system, ADDRESSES, SIZES);
    streams_arrive(executable, system);
    a_cut_is_survived(executable, system);
}

/// Round trips of all sizes are answered, between addresses of either family.
pub fn messages_are_answered(executable: &Path, system: &System) {
    answered(executable, system, ADDRESSES, SIZES);
    answered(executable, system, ADDRESSES_IPV6, &[(70_000, 20)]);
}

fn answered(executable: &Path, system: &System, addresses: [&str; 2], sizes: &[(u64, u64)]) {
    let Some(hosts) = Hosts::new(addresses) else { return };
    for &(payload_bytes, messages) in sizes {
        let what = format!("{} with {payload_bytes} B", system.name);
        let prepare = Prepare { payload_bytes, messages, ..prepare(&system.name, Role::Ping) };
        let (ping, pong) = hosts.open(executable, &prepare).finish();
        assert_eq!((ping.sent, ping.received, ping.corrupt), (messages, messages, 0), "{what}");
        assert_eq!((pong.received, pong.corrupt), (messages, 0), "{what}");
    }
}

/// Small messages arrive with each reliability; a reliable stream of 10 MiB messages is complete.
pub fn streams_arrive(executable: &Path, system: &System) {
    let Some(hosts) = Hosts::new(ADDRESSES) else { return };
    for &reliability in &system.streams.reliability {
        let small = Prepare { reliability, ..at_rate(&system.name) };
        finish(hosts.open(executable, &small), &small);
        if reliability == Reliability::Reliable {
            let (payload_bytes, rate_hz, messages) = (10 << 20, Some(10.0), 20);
            let large = Prepare { payload_bytes, rate_hz, messages, ..small };
            let ran = finish(hosts.open(executable, &large), &large);
            assert_eq!((ran.pong.received, ran.pong.lost), (messages, 0), "{}", system.name);
        }
    }
}

/// The network goes down for a while: the stream continues, and a reliable one is complete.
pub fn a_cut_is_survived(executable: &Path, system: &System) {
    let Some(hosts) = Hosts::new(ADDRESSES) else { return };
    for &reliability in &system.streams.reliability {
        let (payload_bytes, rate_hz, messages) = (64 << 10, Some(50.0), 300);
        let plain = Prepare { reliability, depth: messages as u32, ..at_rate(&system.name) };
        let prepare = Prepare { payload_bytes, rate_hz, messages, ..plain };
        let mut pair = hosts.open(executable, &prepare);
        pair.go();
        pair.pong_samples.await_first();
        hosts.run(Role::Ping, &["ip", "link", "set", INTERFACE, "down"]);
        std::thread::sleep(CUT);
        hosts.run(Role::Ping, &["ip", "link", "set", INTERFACE, "up"]);
        let what = format!("{}, {}", system.name, reliability.name());
        let (ping, pong) = pair.end(reliability);
        assert_eq!(ping.sent, messages, "{what}");
        assert_eq!((pong.duplicates, pong.out_of_order, pong.corrupt), (0, 0, 0), "{what}");
        let last = pair.pong_samples.records().last().expect("some arrived").id;
        assert!(last > messages / 2, "{what}: nothing came after the cut");
        if reliability == Reliability::Reliable {
            assert_eq!((pong.received, pong.lost), (messages, 0), "{what}");
        }
    }
}

/// Processes of one host send nothing over its default interface, not even for discovery. Checks
/// every system without a daemon and without an identity.
pub fn nothing_leaves_the_host(executable: &Path) {
    let Some(hosts) = Hosts::new(ADDRESSES) else { return };
    // Packets of the kernel itself would be counted, too.
    let no_ipv6 = "at=/proc/sys/net/ipv6/conf/$0/disable_ipv6; [ ! -e $at ] || echo 1 >$at";
    for command in [
        &["sh", "-c", no_ipv6, INTERFACE][..],
        &["ip", "route", "add", "default", "dev", INTERFACE],
        // LCM needs this route.
        &["ip", "route", "add", "239.255.76.67", "dev", "lo"],
    ] {
        hosts.run(Role::Ping, command);
    }
    let started = hosts.program(Role::Ping, executable).arg("describe").output();
    let described: Description =
        serde_json::from_slice(&started.expect("the driver starts").stdout).expect("a description");
    for system in described.systems {
        if let Some(missing) = &system.missing {
            println!("skipped: {}: {missing}", system.name);
            continue;
        }
        if system.daemon || system.secure || system.topology == Topology::OneProcess {
            continue;
        }
        let sent = hosts.sent_packets(Role::Ping);
        let prepare = Prepare {
            directory: hosts.folder.path().into(),
            match_timeout_ns: MATCH_TIMEOUT_NS,
            ..prepare(&system.name, Role::Ping)
        };
        let start =
            |prepare: &Prepare| Process::start_by(hosts.program(Role::Ping, executable), prepare);
        let mut pair = Pair::start(&prepare, prepare.messages, start);
        pair.ping.expect_ready();
        pair.pong.expect_ready();
        let (ping, _) = pair.finish();
        assert!(ping.received > 0, "{}: {ping:?}", system.name);
        assert_eq!(hosts.sent_packets(Role::Ping), sent, "{}", system.name);
    }
}

/// Both roles fail if the other host is unreachable; returns their errors.
pub fn nobody_is_reached(executable: &Path, system: &System) -> Option<[[String; 3]; 2]> {
    // Neither host can reach the other: another subnet, no router.
    let hosts = Hosts::new(["10.1.1.1/24", "10.2.2.2/24"])?;
    let prepare = Prepare { match_timeout_ns: 1_000_000_000, ..prepare(&system.name, Role::Ping) };
    let mut pair = hosts.start(executable, &prepare, |role| hosts.network(role));
    let said = [pair.ping.expect_error(), pair.pong.expect_error()];
    assert!(!pair.ping.expect_end().success() && !pair.pong.expect_end().success());
    Some(said)
}

fn side(role: Role) -> usize {
    usize::from(role != Role::Ping)
}

const CUT: Duration = Duration::from_millis(1500);
/// Discovery can take seconds, and the machine may be busy.
const MATCH_TIMEOUT_NS: u64 = 30_000_000_000;
const PORT: u16 = 47_000;

const ADDRESSES_IPV6: [&str; 2] = ["fd00:9:8::1/64", "fd00:9:8::2/64"];
/// Bytes of a message, and how many of them.
const SIZES: &[(u64, u64)] = &[(64, 200), (70_000, 50), (10 << 20, 3)];
