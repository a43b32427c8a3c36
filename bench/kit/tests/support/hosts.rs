//! Two hosts, as far as a driver can tell: namespaces joined by a veth pair. All namespaces are
//! anonymous and go with the last process in them. Making them takes root.

use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Command as Program, Stdio};
use std::time::{Duration, Instant};

use myelin_bench_kit::protocol::{Command, Network, Prepare, Reliability, Role, System};

use tempfile::TempDir;

use super::streams::{at_rate, finish};
use super::{Pair, Process, WATCHDOG, describe, prepare};

/// Ping's host and pong's.
pub struct Hosts {
    holders: [Child; 2],
    addresses: [IpAddr; 2],
    /// Of the runs, here.
    folder: TempDir,
}

impl Hosts {
    /// Two hosts with these addresses (and the lengths of their prefixes); `None`, after saying so,
    /// where this process may not make them.
    pub fn new(addresses: [&str; 2]) -> Option<Self> {
        let may = Program::new("unshare").args(["--net", "--mount", "true"]).output();
        let may = may.expect("util-linux is installed");
        let said = String::from_utf8_lossy(&may.stderr);
        if !may.status.success() && said.contains("not permitted") {
            eprintln!("skipped, network namespaces take root: {said}");
            return None;
        }
        let holders = [hold(), hold()];
        let [ping, pong] = [&holders[0], &holders[1]].map(|holder| holder.id().to_string());
        let link = ["ip", "link", "add", INTERFACE, "netns", &ping, "type", "veth"];
        output(Program::new(link[0]).args(&link[1..]).args(["peer", INTERFACE, "netns", &pong]));
        let folder = tempfile::tempdir().expect("a temporary folder");
        let hosts = Hosts { holders, addresses: addresses.map(without_prefix), folder };
        for (role, address) in [(Role::Ping, addresses[0]), (Role::Pong, addresses[1])] {
            hosts.run(role, &["ip", "address", "add", address, "dev", INTERFACE, "nodad"]);
            hosts.run(role, &["ip", "link", "set", INTERFACE, "up"]);
        }
        hosts.await_links();
        Some(hosts)
    }

    /// Waits until both links are in operation, which the kernel may say up to a second after it has
    /// taken them up; Fast DDS passes over an interface that is not.
    fn await_links(&self) {
        let give_up = Instant::now() + WATCHDOG;
        for role in [Role::Ping, Role::Pong] {
            let look = ["-brief", "link", "show", "dev", INTERFACE];
            let is_up = |said: Vec<u8>| String::from_utf8_lossy(&said).contains(" UP ");
            while !is_up(output(self.program(role, Path::new("ip")).args(look))) {
                assert!(Instant::now() < give_up, "a link does not come up");
            }
        }
    }

    /// Runs a command on the host of `role`.
    pub fn run(&self, role: Role, command: &[&str]) {
        output(self.program(role, Path::new(command[0])).args(&command[1..]));
    }

    /// Waits until a process listens at the first port of a run on the host of `role`.
    pub fn await_listener(&self, role: Role) {
        let give_up = Instant::now() + WATCHDOG;
        let filter = format!("sport = :{PORT}");
        while output(self.program(role, Path::new("ss")).args(["-Htln", &filter])).is_empty() {
            assert!(Instant::now() < give_up, "nobody listens");
        }
    }

    /// `executable` on the host of `role`.
    pub fn program(&self, role: Role, executable: &Path) -> Program {
        let mut program = Program::new("nsenter");
        let holder = self.holders[side(role)].id().to_string();
        program.args(["--target", &holder, "--net", "--mount", "--uts", "--ipc", "--"]);
        program.arg(executable);
        program
    }

    /// The way of `role` to the other host.
    pub fn network(&self, role: Role) -> Network {
        let (own, peer) = (self.addresses[side(role)], self.addresses[1 - side(role)]);
        Network { interface: INTERFACE.into(), own, peer, port: PORT }
    }

    /// Starts both roles of `prepare`, each on its host, with the ways that `network` says.
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

    /// As [`Pair::open`].
    pub fn open(&self, executable: &Path, prepare: &Prepare) -> Pair {
        let pair = self.start(executable, prepare, |role| self.network(role));
        pair.ping.expect_ready();
        pair.pong.expect_ready();
        pair
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for holder in &mut self.holders {
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// The systems that can run across hosts here.
pub fn systems_across(executable: &Path) -> Vec<System> {
    let mut systems = describe(executable).systems;
    systems.retain(|system| system.across_hosts && system.missing.is_none());
    systems
}

/// Round trips of all sizes come back, between addresses of either family.
pub fn messages_are_answered(executable: &Path, system: &System) {
    answered(executable, system, ADDRESSES, &[(64, 200), (70_000, 50), (10 << 20, 3)]);
    answered(executable, system, ["fd00:9:8::1/64", "fd00:9:8::2/64"], &[(70_000, 20)]);
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

/// Small messages arrive by each reliability; of a reliable stream all do, 10 MiB each.
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

/// The network may go away for a while: then the stream goes on, and a reliable one is complete.
pub fn a_cut_is_survived(executable: &Path, system: &System) {
    let Some(hosts) = Hosts::new(ADDRESSES) else { return };
    for &reliability in &system.streams.reliability {
        let (payload_bytes, rate_hz, messages) = (64 << 10, Some(100.0), 300);
        let plain = Prepare { reliability, depth: messages as u32, ..at_rate(&system.name) };
        let prepare = Prepare { payload_bytes, rate_hz, messages, ..plain };
        let mut pair = hosts.open(executable, &prepare);
        pair.pong.go();
        pair.ping.go();
        pair.pong_samples.await_first();
        hosts.run(Role::Ping, &["ip", "link", "set", INTERFACE, "down"]);
        std::thread::sleep(CUT);
        hosts.run(Role::Ping, &["ip", "link", "set", INTERFACE, "up"]);
        let what = format!("{}, {}", system.name, reliability.name());
        assert_eq!(pair.ping.expect_done().sent, messages, "{what}");
        pair.pong.say(&Command::Stop);
        let pong = pair.pong.expect_done();
        assert_eq!((pong.duplicates, pong.out_of_order, pong.corrupt), (0, 0, 0), "{what}");
        let last = pair.pong_samples.records().last().expect("some arrived").id;
        assert!(last > messages / 2, "{what}: nothing came after the cut");
        if reliability == Reliability::Reliable {
            assert_eq!((pong.received, pong.lost), (messages, 0), "{what}");
        }
    }
}

/// Both roles fail when the other host cannot be reached; what they say.
pub fn nobody_is_reached(executable: &Path, system: &System) -> Option<[[String; 3]; 2]> {
    // Each host's way to the other leads nowhere: another subnet, no router.
    let hosts = Hosts::new(["10.1.1.1/24", "10.2.2.2/24"])?;
    let prepare = Prepare { match_timeout_ns: 1_000_000_000, ..prepare(&system.name, Role::Ping) };
    let mut pair = hosts.start(executable, &prepare, |role| hosts.network(role));
    let said = [pair.ping.expect_error(), pair.pong.expect_error()];
    assert!(!pair.ping.expect_end().success() && !pair.pong.expect_end().success());
    Some(said)
}

/// A process that keeps the namespaces of a host, until it is killed or this process ends.
fn hold() -> Child {
    let script = "mount -t tmpfs tmpfs /dev/shm && ip link set lo up && echo && exec cat";
    let mut holder = Program::new("unshare")
        .args(["--net", "--mount", "--uts", "--ipc", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux is installed");
    let mut line = [0];
    let output = holder.stdout.as_mut().expect("piped");
    output.read_exact(&mut line).expect("root may make namespaces");
    holder
}

/// What a program prints that succeeds.
fn output(program: &mut Program) -> Vec<u8> {
    let output = program.output().expect("iproute2 and util-linux are installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program:?}: {said}");
    output.stdout
}

fn without_prefix(address: &str) -> IpAddr {
    address.split('/').next().and_then(|it| it.parse().ok()).expect("an address")
}

fn side(role: Role) -> usize {
    usize::from(role != Role::Ping)
}

/// Of hosts that reach each other.
pub const ADDRESSES: [&str; 2] = ["10.9.8.1/24", "10.9.8.2/24"];
const CUT: Duration = Duration::from_millis(1500);
const INTERFACE: &str = "veth";
const PORT: u16 = 47_000;
