//! Two hosts in namespaces, joined by a veth pair. All namespaces are anonymous and vanish with
//! their last process. Making them requires root.

use std::fs;
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// Host 0 and host 1. Dropping it kills everything that runs in their networks.
pub struct Namespaces {
    holders: [Child; 2],
    addresses: [IpAddr; 2],
}

impl Namespaces {
    /// Two hosts with these addresses (with prefix lengths); `None`, with a message, if this
    /// process may not make them.
    pub fn new(addresses: [&str; 2]) -> Option<Self> {
        let may = Command::new("unshare").args(["--net", "--mount", "true"]).output();
        let may = may.expect("util-linux is installed");
        let said = String::from_utf8_lossy(&may.stderr);
        if !may.status.success() && said.contains("not permitted") {
            eprintln!("skipped, network namespaces take root: {said}");
            return None;
        }
        let holders = [hold(), hold()];
        let [one, other] = [&holders[0], &holders[1]].map(|holder| holder.id().to_string());
        let link = ["link", "add", INTERFACE, "netns", &one, "type", "veth"];
        output(Command::new("ip").args(link).args(["peer", INTERFACE, "netns", &other]));
        let hosts = Namespaces { holders, addresses: addresses.map(without_prefix) };
        for (host, address) in addresses.into_iter().enumerate() {
            hosts.run(host, &["ip", "address", "add", address, "dev", INTERFACE, "nodad"]);
            hosts.run(host, &["ip", "link", "set", INTERFACE, "up"]);
        }
        hosts.await_links();
        Some(hosts)
    }

    /// Waits until both links are operational. The kernel may report that up to a second after they
    /// were taken up, and Fast DDS skips an interface before that.
    fn await_links(&self) {
        let give_up = Instant::now() + LIMIT;
        for host in 0..2 {
            let look = ["ip", "-brief", "link", "show", "dev", INTERFACE];
            while !self.run(host, &look).contains(" UP ") {
                assert!(Instant::now() < give_up, "a link does not come up");
            }
        }
    }

    /// The address of `host`.
    pub fn address(&self, host: usize) -> IpAddr {
        self.addresses[host]
    }

    /// Runs a command on `host`; returns its output.
    pub fn run(&self, host: usize, command: &[&str]) -> String {
        let said = output(self.program(host, Path::new(command[0])).args(&command[1..]));
        String::from_utf8_lossy(&said).into_owned()
    }

    /// Waits until a process listens on TCP `port` on `host`.
    pub fn await_listener(&self, host: usize, port: u16) {
        let give_up = Instant::now() + LIMIT;
        let filter = format!("sport = :{port}");
        while self.run(host, &["ss", "-Htln", &filter]).is_empty() {
            assert!(Instant::now() < give_up, "nobody listens");
        }
    }

    /// The command that runs `executable` on `host`.
    pub fn program(&self, host: usize, executable: &Path) -> Command {
        let mut program = Command::new("nsenter");
        let holder = self.holders[host].id().to_string();
        program.args(["--target", &holder, "--net", "--mount", "--uts", "--ipc", "--"]);
        program.arg(executable);
        program
    }

    /// The processes on `host`, except the holder of its namespaces.
    pub fn processes(&self, host: usize) -> Vec<u32> {
        let holder = self.holders[host].id();
        let network = |pid| fs::read_link(format!("/proc/{pid}/ns/net")).ok();
        let Some(own) = network(holder) else { return Vec::new() };
        let entries = fs::read_dir("/proc").expect("/proc").flatten();
        let pids = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
        pids.filter(|pid| *pid != holder && network(*pid) == Some(own.clone())).collect()
    }
}

impl Drop for Namespaces {
    fn drop(&mut self) {
        for host in 0..2 {
            for pid in self.processes(host) {
                // The process may have ended already.
                let _ = Command::new("kill").args(["-KILL", &pid.to_string()]).output();
            }
        }
        for holder in &mut self.holders {
            let _ = holder.kill();
            let _ = holder.wait();
        }
    }
}

/// A process that holds the namespaces of a host until it is killed or this process ends.
fn hold() -> Child {
    let script = "mount -t tmpfs tmpfs /dev/shm && ip link set lo up && echo && exec cat";
    let mut holder = Command::new("unshare")
        .args(["--net", "--mount", "--uts", "--ipc", "sh", "-c", script])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("util-linux is installed");
    let mut line = [0];
    let said = holder.stdout.as_mut().expect("piped");
    said.read_exact(&mut line).expect("root may make namespaces");
    holder
}

/// The output of a program, which must succeed.
fn output(program: &mut Command) -> Vec<u8> {
    let output = program.output().expect("iproute2 and util-linux are installed");
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program:?}: {said}");
    output.stdout
}

fn without_prefix(address: &str) -> IpAddr {
    address.split('/').next().and_then(|it| it.parse().ok()).expect("an address")
}

/// Addresses of two hosts that reach each other.
pub const ADDRESSES: [&str; 2] = ["10.9.8.1/24", "10.9.8.2/24"];
/// The interface of each host that leads to the other.
pub const INTERFACE: &str = "veth";
const LIMIT: Duration = Duration::from_secs(60);
