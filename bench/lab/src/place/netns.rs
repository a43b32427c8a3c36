//! Two hosts in namespaces of this one, joined by a virtual cable.
//!
//! ```text
//! agent, namespaces of its own ── link0 ─────────── link0 ── agent, namespaces of its own
//!                          198.18.0.1/30  veth  198.18.0.2/30
//! ```
//! Each has its own network, mounts (`/dev/shm` and `/sys`), host name and System V objects. Nothing
//! has a name outside: the namespaces vanish with the agents, the cable with the namespaces. The
//! addresses are of the range for benchmarks (RFC 2544, RFC 6890) and are seen in there alone.

use std::ffi::CStr;
use std::fs::File;
use std::io;
use std::net::{IpAddr, Ipv4Addr};
use std::os::fd::AsRawFd;
use std::os::unix::process::CommandExt;
use std::process::Command;

use anyhow::Result;
use myelin_bench_kit::protocol::Network;

use super::line::{Line, agent};

/// Names of the two hosts, ping's first.
pub(super) const NAMES: [&str; 2] = ["myelin-a", "myelin-b"];

/// Starts an agent in namespaces of its own.
pub(super) fn line(name: &'static str) -> Result<Line> {
    let mut command = agent()?;
    // On the file system that vanishes with the namespace.
    command.args(["--folder", "/dev/shm/myelin-agent"]);
    // SAFETY: only async-signal-safe calls (raw system calls) between fork and exec.
    unsafe {
        command.pre_exec(move || unshare(name));
    }
    let denied = |error: &anyhow::Error| {
        let cause = error.downcast_ref::<io::Error>();
        cause.is_some_and(|cause| cause.kind() == io::ErrorKind::PermissionDenied)
    };
    Line::open(name, &mut command).map_err(|error| match denied(&error) {
        true => anyhow::anyhow!(
            "network namespaces may not be made: needs CAP_SYS_ADMIN (run as root), or real hosts \
             by --hosts ssh:a,ssh:b"
        ),
        false => error,
    })
}

/// Leaves the namespaces of this host.
fn unshare(name: &str) -> io::Result<()> {
    let spaces = libc::CLONE_NEWNET | libc::CLONE_NEWNS | libc::CLONE_NEWUTS | libc::CLONE_NEWIPC;
    // SAFETY: flags alone.
    check(unsafe { libc::unshare(spaces) })?;
    // What is mounted from here on stays in here.
    mount(c"none", c"/", None, libc::MS_REC | libc::MS_PRIVATE)?;
    mount(c"tmpfs", c"/dev/shm", Some(c"tmpfs"), libc::MS_NOSUID | libc::MS_NODEV)?;
    // Of the new network; where it may not be mounted, the old one is seen.
    let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
    let _ = mount(c"sysfs", c"/sys", Some(c"sysfs"), flags);
    // SAFETY: the name is valid for its length.
    check(unsafe { libc::sethostname(name.as_ptr().cast(), name.len()) })
}

fn mount(what: &CStr, place: &CStr, kind: Option<&CStr>, flags: libc::c_ulong) -> io::Result<()> {
    let kind = kind.map_or(std::ptr::null(), CStr::as_ptr);
    // SAFETY: the strings are valid for the call; no kind and no data are null.
    check(unsafe { libc::mount(what.as_ptr(), place.as_ptr(), kind, flags, std::ptr::null()) })
}

fn check(status: libc::c_int) -> io::Result<()> {
    if status < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}

/// The way from each to the other.
pub(super) fn networks() -> [Network; 2] {
    let [ping, pong] = ADDRESSES.map(IpAddr::from);
    let network = |own, peer| Network { interface: LINK.into(), own, peer, port: 0 };
    [network(ping, pong), network(pong, ping)]
}

/// The cable between two namespaces.
#[derive(Debug)]
pub(crate) struct Pair {
    spaces: [File; 2],
}

impl Pair {
    /// Lays it between the network namespaces of two processes, and gives both ends their addresses.
    pub(super) fn join(pids: &[u32]) -> Result<Self, String> {
        let &[ping, pong] = pids else {
            return Err("two hosts have two agents".into());
        };
        let space = |pid: u32| {
            File::open(format!("/proc/{pid}/ns/net")).map_err(|error| format!("namespace: {error}"))
        };
        let pair = Pair { spaces: [space(ping)?, space(pong)?] };
        let [ping, pong] = [ping, pong].map(|pid| pid.to_string());
        // Both ends are made where they belong: nobody can be killed in between.
        let [end, other] = [["name", LINK, "netns", &ping], ["name", LINK, "netns", &pong]];
        run("ip", &[&["link", "add"], &end[..], &["type", "veth", "peer"], &other[..]].concat())?;
        for host in 0..2 {
            let address = format!("{}/30", ADDRESSES[host]);
            pair.ip(host, &["link", "set", "lo", "up"])?;
            pair.ip(host, &["address", "add", &address, "dev", LINK])?;
            // Of IPv6 there is nothing but its own chatter.
            pair.ip(host, &["link", "set", LINK, "addrgenmode", "none"])?;
        }
        for host in 0..2 {
            pair.raise(host)?;
        }
        Ok(pair)
    }

    /// Takes one end up, and has everything that is not local go over it, as on a host with one
    /// network card: what is sent to groups finds its way.
    fn raise(&self, host: usize) -> Result<(), String> {
        self.ip(host, &["link", "set", LINK, "up"])?;
        self.ip(host, &["route", "replace", "default", "dev", LINK])
    }

    fn ip(&self, host: usize, arguments: &[&str]) -> Result<(), String> {
        run_in(Some(&self.spaces[host]), "ip", arguments)
    }
}

fn run(program: &str, arguments: &[&str]) -> Result<(), String> {
    run_in(None, program, arguments)
}

/// Runs a program of iproute2, in a network namespace if one is given.
fn run_in(space: Option<&File>, program: &str, arguments: &[&str]) -> Result<(), String> {
    let mut command = Command::new(program);
    command.args(arguments);
    if let Some(space) = space.map(AsRawFd::as_raw_fd) {
        // SAFETY: one async-signal-safe system call between fork and exec; the descriptor is open.
        unsafe {
            command.pre_exec(move || check(libc::setns(space, libc::CLONE_NEWNET)));
        }
    }
    let output = command.output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => {
            format!("{program} is not installed: apt-get install iproute2")
        }
        _ => format!("{program}: {error}"),
    })?;
    if output.status.success() {
        return Ok(());
    }
    let complaint = String::from_utf8_lossy(&output.stderr);
    let complaint = complaint.lines().next().unwrap_or("no reason given");
    Err(format!("{program} {}: {complaint}", arguments.join(" ")))
}

const LINK: &str = "link0";
const ADDRESSES: [Ipv4Addr; 2] = [Ipv4Addr::new(198, 18, 0, 1), Ipv4Addr::new(198, 18, 0, 2)];
