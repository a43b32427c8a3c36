//! Two hosts on this one: network namespaces without a name, joined by a veth pair, which vanish
//! with the processes that hold them.

use std::path::Path;
use std::process::{Child, Command as Program, Stdio};

use myelin_bench_kit::protocol::Network;

/// Of which [`PORTS`](myelin_bench_kit::protocol::PORTS) the first is.
const PORT: u16 = 7400;

pub struct Hosts {
    holders: [Child; 2],
}

impl Hosts {
    /// `None`, and a word why, without the right to make them.
    pub fn new() -> Option<Self> {
        if !is_root() {
            eprintln!("skipped: making network namespaces needs root");
            return None;
        }
        let hosts = Hosts { holders: [hold(), hold()] };
        let pong = hosts.holders[1].id();
        hosts.ip(0, &format!("link add veth0 type veth peer name veth0 netns {pong}"));
        for host in [0, 1] {
            hosts.ip(host, &format!("address add 10.77.0.{}/24 dev veth0", host + 1));
            hosts.ip(host, "link set lo up");
            hosts.ip(host, "link set veth0 up");
        }
        Some(hosts)
    }

    /// The way to the other host, from host 0, ping's, or 1.
    pub fn network(&self, host: usize) -> Network {
        let address = |host| format!("10.77.0.{}", host + 1).parse().expect("an address");
        Network {
            interface: "veth0".into(),
            own: address(host),
            peer: address(1 - host),
            port: PORT,
        }
    }

    /// What starts `executable` on a host.
    pub fn program(&self, host: usize, executable: &Path) -> Program {
        let mut program = self.enter(host);
        program.arg(executable);
        program
    }

    /// As `program`, where `CLOCK_MONOTONIC` is ahead of everybody's by `seconds`.
    pub fn program_ahead(&self, host: usize, seconds: u32, executable: &Path) -> Program {
        let mut program = self.enter(host);
        let seconds = seconds.to_string();
        program.args(["unshare", "--time", "--monotonic", &seconds, "--fork", "--kill-child"]);
        program.arg(executable);
        program
    }

    fn enter(&self, host: usize) -> Program {
        let mut program = Program::new("nsenter");
        program.arg(format!("--net=/proc/{}/ns/net", self.holders[host].id()));
        program
    }

    fn ip(&self, host: usize, arguments: &str) {
        let mut program = self.enter(host);
        let status = program.arg("ip").args(arguments.split(' ')).status().expect("nsenter, ip");
        assert!(status.success(), "ip {arguments}");
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

fn is_root() -> bool {
    let status = std::fs::read_to_string("/proc/self/status").expect("procfs");
    let uid = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    uid.and_then(|line| line.split_whitespace().nth(1)) == Some("0")
}

/// A process in a network namespace of its own, which ends with this one.
fn hold() -> Child {
    let mut child = Program::new("unshare")
        .args(["--net", "sh", "-c", "echo there; exec cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("unshare");
    let mut said = [0; 6];
    let output = child.stdout.as_mut().expect("piped");
    std::io::Read::read_exact(output, &mut said).expect("a namespace of its own");
    child
}
